/*
 * threads.c - several threads that start together.
 *
 * A barrier alone wakes them one after another, tens of microseconds apart, and a short function is
 * over before the next begins. So behind the barrier they meet once more and yield until all are
 * awake.
 */
#include "record.h"

#include <pthread.h>
#include <sched.h>

struct gate {
    pthread_barrier_t made;
    _Atomic int awake;
    int count;
    void (*fn)(void *, int);
    void *arg;
};
struct start {
    struct gate *gate;
    pthread_t id;
    int index;
};

/* Named so that a stack's printer knows where the case's own frames end. */
void *t_thread_main(void *p)
{
    struct start *s = p;
    struct gate *g = s->gate;

    pthread_barrier_wait(&g->made);
    atomic_fetch_add(&g->awake, 1);
    while (atomic_load(&g->awake) < g->count)
        sched_yield();
    g->fn(g->arg, s->index);
    t_watch_end();
    return NULL;
}

void t_threads(int n, void (*fn)(void *arg, int index), void *arg)
{
    struct gate gate = {.count = n, .fn = fn, .arg = arg};
    struct start *start = calloc((size_t)(n > 0 ? n : 1), sizeof *start);

    CHECK_GT(n, 0);
    CHECK_NOT_NULL(start);
    pthread_barrier_init(&gate.made, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        start[i] = (struct start){.gate = &gate, .index = i};
        int err = pthread_create(&start[i].id, NULL, t_thread_main, &start[i]);
        if (err != 0)
            FAIL("cannot start thread %d of %d: %s (%s)", i + 1, n, t_errno_name(err),
                 strerror(err));
    }
    for (int i = 0; i < n; i++)
        pthread_join(start[i].id, NULL);
    pthread_barrier_destroy(&gate.made);
    free(start);
}
