/*
 * config_watch.c - settings that change while the program runs.
 *
 * Each worker selects over a channel of jobs and a watch of the settings. A watch keeps only the
 * latest value, so a worker that was busy during three changes sees the last one. A timeout in the
 * same select reports that nothing happened.
 */
#include <errno.h>
#include <stdio.h>

#include <blitz.h>

enum { WORKERS = 2, JOBS = 300 };

struct settings {
    int version, factor;
};

struct office {
    blitz_chan *jobs;
    blitz_watch *settings;
};

static int work(void *arg)
{
    struct office *o = arg;
    struct settings now = {0, 0};
    uint64_t seen = 0;
    int job, done = 0;
    int error = blitz_watch_recv(o->settings, &now, &seen, BLITZ_FOREVER); /* at once: the first */
    while (error == 0) {
        blitz_watch_future change;
        blitz_watch_recv_future_init(&change, o->settings, &now, &seen);
        blitz_select(blitz_after(BLITZ_S))
        {
            blitz_on_recv(o->jobs, &job, &error)
            {
                done += error == 0;
            }
            blitz_on_future(&change.future)
            {
                printf("a worker goes on with version %d\n", now.version);
            }
            blitz_on_timeout
            {
                puts("nothing to do for a second");
            }
            blitz_on_cancel
            {
                error = -ECANCELED;
            }
        }
    }
    return done;
}

static int run(void *arg)
{
    struct settings first = {1, 10};
    struct office o;
    blitz_task *worker[WORKERS];
    int done = 0;
    (void)arg;
    if (blitz_chan_new(sizeof(int), 4, NULL, &o.jobs) != 0 ||
        blitz_watch_new(sizeof first, &first, &o.settings) != 0)
        return -1;
    for (int i = 0; i < WORKERS; i++)
        if (blitz_spawn(work, &o, NULL, &worker[i]) != 0)
            return -1;
    for (int i = 0; i < JOBS && blitz_chan_send(o.jobs, &i, BLITZ_FOREVER) == 0; i++) {
        if (i % 100 == 99) {
            struct settings next = {2 + i / 100, 10 * i};
            blitz_watch_send(o.settings, &next);
        }
    }
    blitz_chan_close(o.jobs);
    for (int i = 0; i < WORKERS; i++) {
        int result = 0;
        blitz_task_join(worker[i], &result, BLITZ_FOREVER);
        done += result;
    }
    blitz_chan_unref(o.jobs);
    blitz_watch_unref(o.settings);
    return done;
}

int main(void)
{
    int done = blitz_run(run, NULL, NULL);
    printf("%d of %d jobs done\n", done, JOBS);
    return done == JOBS ? 0 : 1;
}
