/*
 * ours.h - what our cases have in common: actors that are started and stopped around a measurement.
 */
#ifndef BENCH_ACTORS_OURS_H
#define BENCH_ACTORS_OURS_H

#include "actors/cases.h"
#include "tasks/ours.h"

/* An actor tells the measuring fiber that the work is done. */
static blitz_notify done = BLITZ_NOTIFY_INIT;

static inline blitz_actor_id start(const blitz_behaviour *b, const void *state)
{
    blitz_actor_id id;
    must(blitz_actor_spawn(b, state, NULL, &id), "spawn");
    return id;
}

static inline void stop(blitz_actor_id id)
{
    must(blitz_actor_stop(id), "stop");
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    must(rc == -ESRCH ? 0 : rc, "join");
}

static inline void tell(blitz_actor_id to, uint32_t what, const void *data, size_t size)
{
    must(blitz_actor_send(to, what, data, size), "send");
}

/* Wait for that. Returns the nanoseconds since `began`. */
static inline double done_since(uint64_t began)
{
    must(blitz_notify_wait(&done, BLITZ_FOREVER), "wait");
    return (double)(tasks_now_ns() - began);
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
