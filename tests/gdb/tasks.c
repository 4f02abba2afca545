/*
 * For tests/gdb/run: a runtime with a task of every kind of wait, and one that runs. With an argument
 * it leaves a core file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blitz.h"

enum { CROWD = 8 };
static volatile int is_over, hog_runs;

int waits_inside(int n);
int waits_outside(int n);
void stop_here(void);
void spins(void);

__attribute__((noinline)) int waits_inside(int n)
{
    return blitz_sleep(3600 * BLITZ_S) + n;
}
__attribute__((noinline)) int waits_outside(int n)
{
    return waits_inside(n + 1) + 1;
}

static int sleeper(void *arg)
{
    return waits_outside(arg != NULL);
}

static int joiner(void *task)
{
    return blitz_task_join(task, NULL, BLITZ_FOREVER);
}

__attribute__((noinline)) void spins(void)
{
    hog_runs = 1;
    while (!is_over)
        continue;
}

static int hog(void *arg)
{
    (void)arg;
    spins();
    return 0;
}

static blitz_poll idles(void *state, blitz_cx *cx)
{
    (void)state;
    (void)cx;
    return BLITZ_PENDING;
}

__attribute__((noinline)) void stop_here(void)
{
    __asm__ volatile("");
}

static blitz_task *spawn(int (*fn)(void *), void *arg, const char *name)
{
    blitz_task *t;
    if (blitz_spawn(fn, arg, &(blitz_spawn_opts){.name = name}, &t) != 0)
        abort();
    return t;
}

static int count_waiting(void *count, const char *line, size_t length)
{
    *(int *)count += memmem(line, length, ": waiting", 9) != NULL;
    return 0;
}

static int waiting(void)
{
    int count = 0;
    blitz_dump_to(NULL, count_waiting, &count, BLITZ_DUMP_ALL);
    return count;
}

static int first(void *dies)
{
    blitz_task *t = spawn(sleeper, NULL, "sleeper"), *unused;
    printf("sleeper is %llu\n", (unsigned long long)blitz_task_id(t));
    blitz_task_ref(t);
    blitz_task *j = spawn(joiner, t, "joiner");
    printf("joiner is %llu\n", (unsigned long long)blitz_task_id(j));
    if (blitz_spawn_poll(idles, NULL, 0, &(blitz_spawn_opts){.name = "stackless"}, &unused) != 0)
        abort();
    for (int i = 0; i < CROWD; i++)
        spawn(sleeper, NULL, "crowd"); /* on stacks above and below those of the threads */
    blitz_task *h = spawn(hog, NULL, "hog");
    printf("hog is %llu\n", (unsigned long long)blitz_task_id(h));
    fflush(stdout);
    while (!hog_runs || waiting() < 3 + CROWD)
        blitz_yield();
    stop_here();
    if (dies != NULL)
        abort();
    is_over = 1;
    return 0;
}

int main(int argc, char **argv)
{
    return blitz_run(first, argc > 1 ? argv : NULL,
                     &(blitz_runtime_opts){.procs = 3, .name = "seen"});
}
