/*
 * injector.h - the queue all procs share.
 *
 * For what has no proc of its own to go to: tasks spawned or woken by plain threads, and what
 * spills out of a full ring. First in, first out; taken in batches, so that a proc that comes here
 * pays for its lock once and takes its share of what there is.
 *
 * A lock and a list, on purpose. Procs look here every N ticks and when they have nothing else, a
 * batch at a time; the lock is taken once for dozens of tasks, and a lock-free list would have to
 * give up batches, order or the count. What is hot is the question "is there anything?", asked
 * without the lock.
 *
 * Two lanes. A woken task that is pushed while hogs occupy the procs goes into the urgent lane, which is
 * taken first: else it would wait for every hog that stands in the queue before it, 10 ms for each. The
 * urgent lane is taken one entry at a time, because the rest of a batch goes into a ring, behind the hogs
 * there. After BZ_URGENT_ROW urgent entries in a row the other lane has a turn.
 *
 * I1  length is chain.count + urgent.count and urgent_length is urgent.count whenever the lock is free.
 *
 * [A] push: length store, then the pusher's full fence -> sleeper's full fence, then is_empty:
 *     length load. Who announces its sleep and then finds the injector empty is seen by the
 *     pusher; see sched/idle.c, which has both fences.
 */
#ifndef BZ_INJECTOR_H
#define BZ_INJECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "os/lock.h"
#include "task/chain.h"

enum { BZ_INJECTOR_BATCH = 64 }; /* the most that one take gives */
enum { BZ_URGENT_ROW = 64 };     /* urgent entries in a row while others wait */

struct bz_injector {
    const struct bz_os *os; /* constant after init */
    BZ_OWN_LINE struct bz_lock lock;
    struct bz_entries chain;         /* guarded by lock, as are the next two */
    struct bz_entries urgent;        /* taken before chain */
    unsigned row;                    /* urgent entries taken since the last one of chain */
    bz_atomic(size_t) length;        /* of both; written under lock, read by any thread */
    bz_atomic(size_t) urgent_length; /* likewise */
};

void bz_injector_init(struct bz_injector *in, const struct bz_os *os);

/* Append one, or many at once, in their order. Any thread. */
void bz_injector_push(struct bz_injector *in, bz_entry entry);
void bz_injector_push_all(struct bz_injector *in, const bz_entry *entries, unsigned count);

/* Append one to the urgent lane. Any thread. */
void bz_injector_push_urgent(struct bz_injector *in, bz_entry entry);

/*
 * Take one entry of the urgent lane, if there is one and it is its turn. Else take a proc's share from the front, oldest first: clamp(length / procs, 4, 64), at most `max`, or
 * what there is. Any thread.
 * Returns: how many are in out[].
 */
unsigned bz_injector_take(struct bz_injector *in, bz_entry *out, unsigned max, unsigned procs);

/*
 * Take from the front what is_dead, up to the first that is not and at most `max`. Any thread;
 * is_dead is asked under the lock.
 * Returns: how many are in out[].
 */
unsigned bz_injector_take_dead(struct bz_injector *in, bool (*is_dead)(bz_entry e), bz_entry *out,
                               unsigned max);

/* How many are in it, without the lock: true of a moment. */
static inline size_t bz_injector_length(struct bz_injector *in)
{
    return bz_load_relaxed(&in->length); /* relaxed: [A]'s fences order it where that matters */
}

/* How many of them are urgent, likewise. */
static inline size_t bz_injector_urgent(struct bz_injector *in)
{
    return bz_load_relaxed(&in->urgent_length); /* relaxed: a hint */
}

/* I1. Takes the lock. Aborts with what it saw. */
void bz_injector_check(struct bz_injector *in);

#endif
