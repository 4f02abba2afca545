/*
 * tracing.c - a program that traces itself.
 *
 * Three cooks make dishes; each chops, puts something into an oven (a task) and waits for it. The
 * program writes a file that Perfetto or Chrome (about:tracing) shows as a timeline: the runs of
 * each cook and their threads, the waits, the wake-ups. A user-defined mark shows when the kitchen
 * closes.
 *
 *     example_tracing [FILE]      default: kitchen.json
 *
 *     blitz-trace show FILE       the same as tables
 *
 * No code is needed for this: BLITZ_TRACE=FILE in the environment traces any program.
 */
#include <stdio.h>
#include <string.h>

#include <blitz.h>

enum { COOKS = 3, DISHES = 4 };

/* Spin for about this many microseconds. */
static void work(uint64_t us)
{
    blitz_deadline until = blitz_after(us * BLITZ_US);
    while (blitz_now() < until)
        continue;
}

static int bake(void *arg)
{
    (void)arg;
    work(300);
    return 0;
}

static int cook(void *arg)
{
    (void)arg;
    for (int dish = 0; dish < DISHES; dish++) {
        blitz_task *oven;
        work(100); /* chop */
        int err = blitz_spawn(bake, NULL, &(blitz_spawn_opts){.name = "oven"}, &oven);
        if (err == 0)
            err = blitz_sleep(500 * BLITZ_US); /* it takes its time */
        if (err == 0)
            err = blitz_task_join(oven, NULL, blitz_after(BLITZ_S));
        if (err != 0)
            return err;
    }
    return 0;
}

static int kitchen(void *arg)
{
    static const char *const name[COOKS] = {"anna", "ben", "carla"};
    blitz_task *t[COOKS];
    int err = blitz_trace_start(NULL, NULL);
    for (int i = 0; err == 0 && i < COOKS; i++)
        err = blitz_spawn(cook, NULL, &(blitz_spawn_opts){.name = name[i]}, &t[i]);
    for (int i = 0; err == 0 && i < COOKS; i++)
        err = blitz_task_join(t[i], NULL, BLITZ_FOREVER);
    blitz_trace_mark("closed");
    if (err == 0)
        err = blitz_trace_stop(NULL);
    return err == 0 ? blitz_trace_write(NULL, arg) : err;
}

int main(int argc, char **argv)
{
    static char standard[] = "kitchen.json";
    char *path = argc > 1 ? argv[1] : standard;
    int err = blitz_run(kitchen, path, NULL);
    if (err != 0)
        fprintf(stderr, "tracing: %s\n", strerror(-err));
    else
        printf("%d dishes; the timeline is in %s\n", COOKS * DISHES, path);
    return err != 0;
}
