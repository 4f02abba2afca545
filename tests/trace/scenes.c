/*
 * scenes.c - small programs to be traced: run SCENE. tests/trace/run says what each trace must show.
 *
 * They know nothing of tracing, but for `live`, which writes its trace while it goes on.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bz_atomic.h"
#include "blitz.h"

#define MUST(x)                                                     \
    do {                                                            \
        if (!(x)) {                                                 \
            fprintf(stderr, "scenes: line %d: %s\n", __LINE__, #x); \
            exit(1);                                                \
        }                                                           \
    } while (0)

static blitz_task *spawn(int (*fn)(void *), void *arg, const char *name)
{
    blitz_task *t;
    MUST(blitz_spawn(fn, arg, &(blitz_spawn_opts){.name = name}, &t) == 0);
    return t;
}

static void join(blitz_task *t)
{
    MUST(blitz_task_join(t, NULL, BLITZ_FOREVER) == 0);
}

/* ---- a tree whose joins claim, yields, sleeps ---- */

static int leaf(void *arg)
{
    (void)arg;
    blitz_yield();
    MUST(blitz_sleep(200 * BLITZ_US) == 0);
    return 0;
}

static int branch(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_task *left = spawn(depth > 0 ? branch : leaf, (void *)(depth - 1), "left");
    blitz_task *right = spawn(depth > 0 ? branch : leaf, (void *)(depth - 1), "right");
    join(right);
    join(left);
    return 0;
}

static int tree(void *arg)
{
    (void)arg;
    return branch((void *)(intptr_t)4); /* 2 + 4 + ... + 64 tasks: 62 */
}

/* ---- one after the other: every time is known to be in order ---- */

static int second(void *arg)
{
    (void)arg;
    blitz_trace_mark("in the second");
    return 0;
}

static int first(void *arg)
{
    (void)arg;
    MUST(blitz_sleep(BLITZ_MS) == 0);
    blitz_task *t = spawn(second, NULL, "second");
    MUST(blitz_task_join(t, NULL, blitz_after(10 * BLITZ_S)) == 0); /* a deadline: not claimed */
    return 0;
}

static int line(void *arg)
{
    (void)arg;
    blitz_task *t = spawn(first, NULL, "first");
    MUST(blitz_task_join(t, NULL, blitz_after(10 * BLITZ_S)) == 0);
    return 0;
}

/* ---- forked jobs, taken by others and waiting ---- */

static int fork_tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_job left;
    if (depth == 0) {
        for (volatile int i = 0; i < 20000; i++)
            ;
        return 1;
    }
    blitz_fork(&left, fork_tree, (void *)(depth - 1));
    int right = fork_tree((void *)(depth - 1));
    if (depth == 2)
        blitz_yield();
    return right + blitz_join(&left);
}

static int jobs(void *arg)
{
    (void)arg;
    MUST(fork_tree((void *)(intptr_t)8) == 256);
    return 0;
}

/* ---- names that are no text ---- */

static const char *const odd[] = {
    "a \"quote\"",
    "back\\slash",
    "new\nline",
    "\xff\xfe",
    "\xc3\xa4",
    "",
    "a name that is longer than there is room for in the table of names"};

static int names(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        join(spawn(leaf, NULL, odd[i]));
    return 0;
}

/* ---- plain threads that spawn, and wait for it ---- */

static blitz_runtime *runtime;

static void *outsider(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        blitz_task *t;
        blitz_spawn_opts opts = {.runtime = runtime, .name = "from outside"};
        MUST(blitz_spawn(leaf, NULL, &opts, &t) == 0);
        join(t);
    }
    return NULL;
}

static int outside(void)
{
    pthread_t thread[2];
    MUST(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &runtime) == 0);
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&thread[i], NULL, outsider, NULL) == 0);
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(thread[i], NULL) == 0);
    MUST(blitz_runtime_shutdown(runtime, BLITZ_FOREVER) == 0);
    return blitz_runtime_unref(runtime);
}

/* ---- a hog on every proc, and a ready task ---- */

static bz_atomic(int) is_over;

static int hog(void *arg)
{
    (void)arg;
    while (!bz_load_acquire(&is_over))
        continue;
    return 0;
}

static int hogs(void *arg)
{
    blitz_task *t[2];
    (void)arg;
    for (int i = 0; i < 2; i++)
        t[i] = spawn(hog, NULL, "hog");
    for (int i = 0; i < 10; i++)
        MUST(blitz_sleep(BLITZ_MS) == 0);
    bz_store_release(&is_over, 1);
    for (int i = 0; i < 2; i++)
        join(t[i]);
    return 0;
}

/* ---- a blocking call in place, and a ready task ---- */

static bz_atomic(int) is_up;

static int sets(void *arg)
{
    (void)arg;
    bz_store_release(&is_up, 1);
    return 0;
}

/* Simulates a blocking call: it ends when another task has run. */
static int blocks(void *arg)
{
    (void)arg;
    while (!bz_load_acquire(&is_up))
        sched_yield();
    return 0;
}

static int call(void *arg)
{
    (void)arg;
    blitz_task *t = spawn(sets, NULL, "sets");
    MUST(blitz_block_in_place(blocks, NULL) == 0);
    join(t);
    return 0;
}

/* ---- read while it is written ---- */

static int busy(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        blitz_yield();
        if (i % 100 == 0)
            join(spawn(leaf, NULL, arg));
    }
    return 0;
}

static int live(void *arg)
{
    const char *path = arg;
    char name[512];
    blitz_task *t[4];
    MUST(blitz_trace_start(NULL, &(blitz_trace_opts){.records = 1024}) == 0);
    for (int i = 0; i < 4; i++)
        t[i] = spawn(busy, (void *)"short", "busy");
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        MUST(blitz_trace_write(NULL, name) == 0);
        blitz_yield();
    }
    for (int i = 0; i < 4; i++)
        join(t[i]);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*fn)(void *);
    } scene[] = {{"tree", tree}, {"hogs", hogs},   {"call", call}, {"line", line},
                 {"jobs", jobs}, {"names", names}, {"live", live}};
    MUST(argc >= 2);
    if (strcmp(argv[1], "outside") == 0)
        return outside();
    for (size_t i = 0; i < sizeof scene / sizeof *scene; i++)
        if (strcmp(argv[1], scene[i].name) == 0)
            return blitz_run(scene[i].fn, argc > 2 ? argv[2] : NULL,
                             &(blitz_runtime_opts){.procs = 2});
    return 2;
}
