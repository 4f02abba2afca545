/*
 * ours.h - an actor with a heap that does one thing, message by message: what all our cases have in common.
 */
#ifndef BENCH_GC_OURS_H
#define BENCH_GC_OURS_H

#include "gc/cases.h"
#include "tasks/ours.h"

struct worker;

/* The work of a worker. `begin` makes the objects that live all the time; `step` is the work of a message. */
struct job {
    void (*begin)(struct worker *w, blitz_heap *heap);
    void (*step)(struct worker *w, blitz_heap *heap);
};

struct worker {
    void *live; /* object: what begin() made */
    const struct job *job;
    uint64_t size; /* of the case: a depth, or a number of nodes */
    uint64_t left; /* messages */
    uint64_t seed;
    /* Of the case: the longest time between two messages, with a full collection and without one; or NULL. */
    uint64_t *pause;
    uint64_t full;  /* collections, when the last handler returned, */
    uint64_t ended; /* and that moment */
};
BLITZ_TYPE(gc_worker, struct worker, live);

static blitz_notify done = BLITZ_NOTIFY_INIT;

enum { BEGIN, STEP };

BLITZ_HANDLER(on_begin, struct worker, void)
{
    (void)data, (void)m;
    blitz_heap *heap = blitz_actor_heap();
    if (state->job->begin != NULL)
        state->job->begin(state, heap);
    void *live = state->live;
    must(BLITZ_ACTOR_COLLECT(&live), "collect");
    state->live = live;
    blitz_notify_one(&done);
    return 0;
}

static inline uint64_t full_collections(void)
{
    blitz_heap_info info;
    blitz_heap_info_get(blitz_actor_heap(), &info);
    return info.full;
}

static inline void note_pause(struct worker *w, uint64_t ns)
{
    uint64_t *longest = &w->pause[full_collections() == w->full];
    *longest = ns > *longest ? ns : *longest;
}

BLITZ_HANDLER(on_step, struct worker, void)
{
    (void)data, (void)m;
    if (state->pause != NULL && state->ended != 0)
        note_pause(state, bench_thread_ns() - state->ended);
    if (state->left-- == 0) {
        blitz_notify_one(&done);
        return 0;
    }
    state->job->step(state, blitz_actor_heap());
    must(blitz_actor_send(blitz_actor_self(), STEP, NULL, 0), "send");
    if (state->pause != NULL) {
        state->full = full_collections();
        state->ended = bench_thread_ns();
    }
    return 0;
}

static const blitz_handler worker_handlers[] = {BLITZ_ON_EMPTY(BEGIN, on_begin),
                                                BLITZ_ON_EMPTY(STEP, on_step)};
static const blitz_behaviour worker = {.name = "worker",
                                       .state_bytes = sizeof(struct worker),
                                       .state_type = &gc_worker,
                                       .handlers = worker_handlers,
                                       .handler_count = 2};

static inline void done_wait(void)
{
    must(blitz_notify_wait(&done, BLITZ_FOREVER), "wait");
}

/* The nanoseconds of `messages` messages. The rest, with *pause, is of struct worker. */
static inline double work(const struct job *job, uint64_t size, uint64_t messages, uint64_t *pause)
{
    struct worker w = {
        .job = job, .size = size, .left = messages, .seed = 88172645463325252u, .pause = pause};
    blitz_actor_id id;
    must(blitz_actor_spawn(&worker, &w, NULL, &id), "spawn");
    must(blitz_actor_send(id, BEGIN, NULL, 0), "send");
    done_wait();
    uint64_t began = tasks_now_ns();
    must(blitz_actor_send(id, STEP, NULL, 0), "send");
    done_wait();
    double ns = (double)(tasks_now_ns() - began);
    must(blitz_actor_stop(id), "stop");
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    must(rc == -ESRCH ? 0 : rc, "join");
    return ns;
}

/* The nanoseconds of `ops` operations, of which a message makes `each`. */
static inline double work_ops(const struct job *job, uint64_t size, uint64_t ops, uint64_t each)
{
    uint64_t messages = (ops + each - 1) / each;
    return work(job, size, messages, NULL) / (double)(messages * each) * (double)ops;
}

static inline void *made(void *object)
{
    if (object == NULL)
        bench_die("no memory for an object");
    return object;
}

#endif
