/*
 * object_pool.c - ten tasks share three connections.
 *
 * A connection takes a while to make. Each task borrows one for every query; a connection that has served twenty
 * queries counts as worn out and is replaced.
 */
#include <stdio.h>
#include <stdlib.h>

#include "blitz.h"

enum { TASKS = 10, QUERIES = 30, CONNECTIONS = 3, WORN_OUT = 20 };

struct connection {
    int queries;
};

static int opened;

static int count(void)
{
    return __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
}

static int open_connection(void **out, void *ctx)
{
    (void)ctx;
    int err = blitz_sleep(2 * BLITZ_MS); /* the handshake */
    struct connection *c = err == 0 ? calloc(1, sizeof *c) : NULL;
    if (c == NULL)
        return err != 0 ? err : -1;
    (void)count();
    *out = c;
    return 0;
}

static void close_connection(void *connection, void *ctx)
{
    (void)ctx;
    free(connection);
}

static bool is_fresh(void *connection, void *ctx)
{
    (void)ctx;
    return ((struct connection *)connection)->queries < WORN_OUT;
}

static int worker(void *pool)
{
    for (int i = 0; i < QUERIES; i++) {
        void *connection;
        int err = blitz_object_pool_acquire(pool, &connection, blitz_after(BLITZ_S));
        if (err != 0)
            return err;
        ((struct connection *)connection)->queries++; /* no other task has it */
        blitz_object_pool_release(pool, connection);
    }
    return QUERIES;
}

static int all(void *arg)
{
    const blitz_object_pool_opts opts = {.make = open_connection,
                                         .drop = close_connection,
                                         .is_good = is_fresh,
                                         .objects_max = CONNECTIONS};
    blitz_object_pool *pool;
    blitz_task *task[TASKS];
    int sum = 0, done, err = blitz_object_pool_new(&opts, &pool);
    (void)arg;
    for (int i = 0; err == 0 && i < TASKS; i++)
        err = blitz_spawn(worker, pool, NULL, &task[i]);
    for (int i = 0; err == 0 && i < TASKS; i++, sum += done)
        err = blitz_task_join(task[i], &done, BLITZ_FOREVER);
    if (err != 0)
        return err;
    blitz_object_pool_unref(pool);
    printf("%d queries over %d connections, at most %d at a time\n", sum, opened, CONNECTIONS);
    return sum == TASKS * QUERIES ? 0 : 1;
}

int main(void)
{
    return blitz_run(all, NULL, NULL) != 0;
}
