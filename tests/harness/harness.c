/*
 * harness.c - runs the cases of a test program, each in a process of its own.
 */
#include "harness.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static struct t_case *cases, **cases_end = &cases;
static struct t_case *running;
static uint64_t seed = 0x5f3a91c2, random_state;

void t_register(struct t_case *c) { *cases_end = c; cases_end = &c->next; }

void t_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "FAIL %s.%s   %s:%d\n     ", running->noun, running->property, file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n     --seed=0x%llx\n", (unsigned long long)seed);
    va_end(args);
    _exit(1);
}
void t_check(bool ok, const char *file, int line, const char *text)
{
    if (!ok)
        t_fail(file, line, "%s", text);
}
void t_compare(enum t_op op, struct t_value got, struct t_value want, const char *file, int line,
               const char *got_text, const char *want_text)
{
    bool lt = got.kind == T_SIGNED ? got.s < want.s : got.kind == T_DOUBLE ? got.d < want.d : got.u < want.u;
    bool eq = got.kind == T_DOUBLE ? got.d == want.d : got.u == want.u;
    bool ok[] = {eq, !eq, lt, lt || eq, !lt && !eq, !lt};
    if (!ok[op])
        t_fail(file, line, "%s ? %s   got %lld, want %lld", got_text, want_text, got.s, want.s);
}
void t_compare_text(const char *got, const char *want, const char *file, int line,
                    const char *got_text, const char *want_text)
{
    if (strcmp(got, want) != 0)
        t_fail(file, line, "%s == %s   got \"%s\", want \"%s\"", got_text, want_text, got, want);
}
void t_compare_bytes(const void *got, const void *want, size_t size, const char *file, int line,
                     const char *got_text, const char *want_text)
{
    if (memcmp(got, want, size) != 0)
        t_fail(file, line, "%s == %s", got_text, want_text);
}
void t_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
    _exit(77);
}
void t_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}
uint64_t t_seed(void) { return seed; }
uint64_t t_random(void)
{
    uint64_t z = __atomic_add_fetch(&random_state, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
uint64_t t_random_below(uint64_t limit) { return t_random() % limit; }
uint64_t t_scaled(uint64_t full) { return full; }

struct start {
    pthread_barrier_t *go;
    void (*fn)(void *, int);
    void *arg;
    int index;
};
static void *thread_main(void *p)
{
    struct start *s = p;
    pthread_barrier_wait(s->go);
    s->fn(s->arg, s->index);
    return NULL;
}
void t_threads(int n, void (*fn)(void *arg, int index), void *arg)
{
    pthread_t id[64];
    struct start s[64];
    pthread_barrier_t go;
    pthread_barrier_init(&go, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        s[i] = (struct start){&go, fn, arg, i};
        if (pthread_create(&id[i], NULL, thread_main, &s[i]) != 0)
            abort();
    }
    for (int i = 0; i < n; i++)
        pthread_join(id[i], NULL);
    pthread_barrier_destroy(&go);
}

int main(int argc, char **argv)
{
    int failed = 0, passed = 0, skipped = 0;
    for (struct t_case *c = cases; c != NULL; c = c->next) {
        char name[256];
        snprintf(name, sizeof name, "%s.%s", c->noun, c->property);
        if (argc > 1 && fnmatch(argv[1], name, 0) != 0)
            continue;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            running = c;
            random_state = seed;
            c->body();
            exit(0);
        }
        int status;
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            passed++;
        else if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skipped++;
        else {
            failed++;
            printf("FAIL %s\n", name);
        }
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
