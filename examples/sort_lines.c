/*
 * sort_lines.c - sort the lines of a file, on all CPUs.
 *
 *     example_sort_lines FILE          write the sorted lines to standard output, as `LC_ALL=C sort` does
 *     example_sort_lines COUNT         generate so many lines, sort and check them, and print the time
 *
 * The file is read into one block; a line is a pointer into it, ended in place. The rest is one
 * call: blitz_sort_strings() compares the first bytes of the lines as numbers and forks its parts
 * to idle workers.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

struct text {
    char *bytes;
    size_t size;
    char **lines;
    size_t count;
};

/* The whole file, with room for one more end of line. */
static int read_file(const char *name, struct text *t)
{
    FILE *f = fopen(name, "rb");
    size_t room = 1 << 16;
    if (f == NULL)
        return -1;
    t->bytes = malloc(room + 1);
    while (t->bytes != NULL) {
        t->size += fread(t->bytes + t->size, 1, room - t->size, f);
        if (t->size < room)
            break;
        room *= 2;
        char *more = realloc(t->bytes, room + 1);
        if (more == NULL)
            free(t->bytes);
        t->bytes = more;
    }
    fclose(f);
    return t->bytes == NULL ? -1 : 0;
}

static int make_up(size_t count, struct text *t)
{
    uint64_t dice = 88172645463325252u;
    t->bytes = malloc(count * 20 + 1);
    if (t->bytes == NULL)
        return -1;
    for (size_t i = 0; i < count; i++) {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        t->size += (size_t)snprintf(t->bytes + t->size, 20, "line %llu\n",
                                    (unsigned long long)dice % 1000000000);
    }
    return 0;
}

/* Ends every line in place, and notes where it begins. */
static int cut(struct text *t)
{
    size_t room = 0;
    if (t->size > 0 && t->bytes[t->size - 1] != '\n')
        t->bytes[t->size++] = '\n';
    for (size_t i = 0; i < t->size; i++)
        room += t->bytes[i] == '\n';
    t->lines = malloc((room + 1) * sizeof *t->lines);
    if (t->lines == NULL)
        return -1;
    for (char *at = t->bytes; t->count < room; t->count++) {
        char *end = memchr(at, '\n', (size_t)(t->bytes + t->size - at));
        t->lines[t->count] = at;
        *end = '\0';
        at = end + 1;
    }
    return 0;
}

static int sort_lines(void *arg)
{
    struct text *t = arg;
    return blitz_sort_strings(t->lines, t->count);
}

static int is_number(const char *s)
{
    while (isdigit((unsigned char)*s))
        s++;
    return *s == '\0';
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "200000";
    struct text t = {NULL, 0, NULL, 0};
    int is_made_up = is_number(what);
    if ((is_made_up ? make_up(strtoul(what, NULL, 10), &t) : read_file(what, &t)) != 0 ||
        cut(&t) != 0) {
        fprintf(stderr, "sort_lines: cannot read %s\n", what);
        free(t.bytes);
        return 1;
    }
    uint64_t began = blitz_now();
    int err = blitz_run(sort_lines, &t, NULL);
    double ms = (double)(blitz_now() - began) / 1e6;
    for (size_t i = 0; !is_made_up && i < t.count; i++)
        puts(t.lines[i]);
    for (size_t i = 1; is_made_up && i < t.count; i++)
        err = strcmp(t.lines[i - 1], t.lines[i]) > 0 ? 1 : err;
    fprintf(stderr, "sort_lines: %zu lines in %.1f ms%s\n", t.count, ms, err != 0 ? ": error" : "");
    free(t.lines);
    free(t.bytes);
    return err != 0;
}
