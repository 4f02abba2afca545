/*
 * Use a blocking library that knows nothing of blitz from fibers, without blocking other tasks.
 *
 *     example_blocking [CLIENTS]
 *
 * The library is a small database client. One call sends a query and blocks until the answer
 * arrives (here: 20 ms). Another call returns an error number in a thread-local variable. A third
 * is usually fast. Every client is a fiber; a ticker shows that the workers stay free. A report is started before the
 * clients and asked for when they have ended.
 */
#include <blitz.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- the library, as it came ---- */

static _Thread_local int db_error; /* of the last call on this thread */

static int db_query(int id)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    db_error = id % 10 == 9 ? ETIME : 0;
    return db_error != 0 ? -1 : id * id;
}

static int db_cached(int id) /* from memory, but for the first time */
{
    static _Atomic int is_warm;
    if (!is_warm)
        nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
    is_warm = 1;
    return id;
}

/* ---- fibers that use it ---- */

enum { CLIENTS_MAX = 10000 };

struct client {
    int id;
    int answer; /* of the query */
};

/* Runs on a pool thread, so it also reads the thread-local error number there. */
static int query(void *arg)
{
    struct client *c = arg;
    c->answer = db_query(c->id);
    return c->answer < 0 ? -db_error : 0;
}

static int client(void *arg)
{
    struct client *c = arg;
    int err = blitz_blocking(query, c); /* the fiber waits, its worker does not */
    if (err != 0)
        return err;
    blitz_syscall_enter(); /* short, nearly always: made here, for some nanoseconds more */
    int cached = db_cached(c->id);
    blitz_syscall_leave();
    return cached == c->id ? 0 : -EIO;
}

/* Takes as long as it takes, on a pool thread. */
static int report(void *arg)
{
    int *rows = arg;
    for (int id = 0; id < 5; id++)
        *rows += db_query(id) >= 0;
    return 0;
}

static int ticker(void *arg)
{
    int *ticks = arg;
    while (blitz_sleep(BLITZ_MS) == 0)
        (*ticks)++;
    return 0;
}

static int run(void *arg)
{
    static struct client c[CLIENTS_MAX];
    static blitz_task *t[CLIENTS_MAX];
    int count = *(int *)arg, failed = 0, ticks = 0, rows = 0;
    blitz_task *tick;
    blitz_offload *reporting;
    if (blitz_spawn(ticker, &ticks, NULL, &tick) != 0)
        return 1;
    if (blitz_offload_start(report, &rows, NULL, &reporting) != 0) /* now; the result later */
        return 1;
    uint64_t begun = blitz_now();
    for (int i = 0; i < count; i++) {
        c[i].id = i;
        if (blitz_spawn(client, &c[i], NULL, &t[i]) != 0)
            return 1;
    }
    for (int i = 0; i < count; i++) {
        int result = 0;
        blitz_task_join(t[i], &result, BLITZ_FOREVER);
        failed += result == -ETIME;
    }
    if (blitz_offload_wait(reporting, NULL, BLITZ_FOREVER) != 0)
        return 1;
    blitz_offload_unref(reporting);
    blitz_stats s;
    blitz_stats_read(NULL, &s);
    printf("%d queries of 20 ms, %d of which failed, in %.0f ms on %llu workers and %llu threads\n",
           count, failed, (double)(blitz_now() - begun) / 1e6, (unsigned long long)s.procs,
           (unsigned long long)s.threads);
    blitz_task_cancel(tick);
    blitz_task_join(tick, NULL, BLITZ_FOREVER); /* the ticker is over: its count may be read */
    printf("the ticker beside them ticked %d times; the report has %d rows\n", ticks, rows);
    return failed == count / 10 && rows == 5 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 200;
    if (count < 1 || count > CLIENTS_MAX) {
        fprintf(stderr, "usage: example_blocking [1 to %d]\n", CLIENTS_MAX);
        return 2;
    }
    return blitz_run(run, &count, NULL);
}
