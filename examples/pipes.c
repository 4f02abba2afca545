/*
 * pipes.c - a pipeline of programs: the ten most frequent words of a text.
 *
 *     example_pipes [FILE]           without a file: of this program's own text
 *
 * The shell would say: tr -cs a-z '\n' < FILE | sort | uniq -c | sort -rn. Four programs run at the same time. Our
 * program writes the text to the first one in a task of its own and reads the result of the last one, so no pipe that
 * is full stops another. When the ten lines are read, our end is closed: the programs that still write get SIGPIPE, and
 * end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

enum { STAGES = 4, LINES = 10, TEXT_MAX = 1 << 20 };

struct text {
    blitz_process *to;
    const char *data;
    size_t bytes;
};

static int feed(void *arg)
{
    struct text *t = arg;
    /* An error is no failure: the programs may have seen enough. */
    (void)!blitz_writer_write_all(blitz_process_writer(t->to, 0), t->data, t->bytes, NULL,
                                  BLITZ_FOREVER);
    blitz_process_close(t->to, 0); /* the end of the text */
    return 0;
}

static blitz_command *stage(const char *program, const char *a, const char *b)
{
    blitz_command *c;
    if (blitz_command_new(program, &c) != 0)
        exit(1);
    if (a != NULL)
        blitz_command_arg(c, a);
    if (b != NULL)
        blitz_command_arg(c, b);
    return c;
}

static int show(blitz_process *last)
{
    char room[4096];
    const char *line;
    blitz_buffered_reader in;
    int shown = 0;
    int64_t n;
    if (blitz_buffered_reader_init(&in, blitz_process_reader(last, 1), room, sizeof room) != 0)
        return 0;
    while (shown < LINES && (n = blitz_buffered_line(&in, sizeof room, &line, BLITZ_FOREVER)) > 0) {
        printf("%.*s\n", (int)n, line);
        shown++;
    }
    blitz_process_close(last, 1);
    return shown;
}

static int count_words(struct text *t)
{
    blitz_command *c[STAGES] = {stage("tr", "-cs", "a-z"), stage("sort", NULL, NULL),
                                stage("uniq", "-c", NULL), stage("sort", "-rn", NULL)};
    blitz_process *p[STAGES];
    blitz_start_failure why;
    blitz_task *feeder;
    blitz_command_arg(c[0], "\n");
    blitz_command_stdio(c[0], 0, BLITZ_STDIO_TO_CHILD);
    blitz_command_stdio(c[STAGES - 1], 1, BLITZ_STDIO_FROM_CHILD);
    for (int i = 0; i < STAGES; i++)
        blitz_command_env(c[i], "LC_ALL", "C");
    int err = blitz_command_pipeline((const blitz_command *const *)c, STAGES, &why, p);
    for (int i = 0; i < STAGES; i++)
        blitz_command_unref(c[i]);
    if (err != 0) {
        fprintf(stderr, "program %zu: %s: error %d\n", why.index, why.name, -err);
        return 1;
    }
    t->to = p[0];
    if (blitz_spawn(feed, t, NULL, &feeder) != 0)
        exit(1);
    int shown = show(p[STAGES - 1]);
    if (blitz_task_join(feeder, NULL, BLITZ_FOREVER) != 0)
        return 1;
    for (int i = 0; i < STAGES; i++) {
        blitz_exit e;
        char how[64];
        if (blitz_process_wait(p[i], &e, BLITZ_FOREVER) == 0 && !blitz_exit_is_ok(&e) &&
            blitz_exit_format(&e, how, sizeof how) > 0)
            printf("(program %d: %s)\n", i, how);
        blitz_process_unref(p[i]);
    }
    return shown > 0 ? 0 : 1;
}

static int program(void *arg)
{
    const char *path = arg;
    char *data = malloc(TEXT_MAX);
    FILE *file = fopen(path, "r");
    if (data == NULL || file == NULL) {
        perror(path);
        exit(1);
    }
    struct text t = {.data = data, .bytes = fread(data, 1, TEXT_MAX, file)};
    fclose(file);
    int rc = count_words(&t);
    free(data);
    return rc;
}

int main(int argc, char **argv)
{
    return blitz_run(program, argc > 1 ? argv[1] : (char[]){__FILE__}, NULL);
}
