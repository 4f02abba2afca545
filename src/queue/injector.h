/*
 * injector.h - the queue all procs share.
 *
 * It holds tasks that no proc owns: tasks spawned or woken by plain threads, and tasks spilled from a
 * full ring. It is first in, first out. A proc takes entries in batches, so that it takes the lock
 * once for its share of the entries.
 *
 * It is a lock and a list, on purpose. Procs look here every N ticks and when they have nothing else,
 * a batch at a time. So the lock is taken once for dozens of tasks, and a lock-free list would have to
 * give up batches, order or the count. The hot operation is the question "is there anything?", which
 * is asked without the lock.
 *
 * Two lanes. A woken task that is pushed while hogs occupy the procs goes into the urgent lane, which
 * is taken first. Otherwise it would wait 10 ms for each hog that is before it in the queue. The
 * urgent lane is taken one entry at a time, because the rest of a batch goes into a ring, behind the
 * hogs there. After BZ_URGENT_ROW urgent entries in a row the other lane has a turn.
 *
 * I1  length is chain.count + urgent.count and urgent_length is urgent.count whenever the lock is free.
 *
 * [A] push: length store, then the pusher's full fence -> sleeper's full fence, then is_empty:
 *     length load. If a sleeper announces its sleep and then finds the injector empty, the pusher
 *     sees the announcement. See queue/idle.c, which has both fences.
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
 * Take one entry of the urgent lane, if there is one and it is its turn. Otherwise take a proc's share from the
 * front, oldest first: clamp(length / procs, 4, 64), but at most `max` and at most the entries there are.
 * Any thread.
 * Returns: how many are in out[].
 */
unsigned bz_injector_take(struct bz_injector *in, bz_entry *out, unsigned max, unsigned procs);

/*
 * Take entries for which is_dead returns true from the front, up to the first one that is not dead, and at
 * most `max`. Any thread; is_dead is called under the lock.
 * Returns: how many are in out[].
 */
unsigned bz_injector_take_dead(struct bz_injector *in, bool (*is_dead)(bz_entry e), bz_entry *out,
                               unsigned max);

/* Return how many entries it holds, without the lock. The number may be out of date at once. */
static inline size_t bz_injector_length(struct bz_injector *in)
{
    return bz_load_relaxed(&in->length); /* relaxed: [A]'s fences order it where that matters */
}

/* Return how many of them are urgent, likewise. */
static inline size_t bz_injector_urgent(struct bz_injector *in)
{
    return bz_load_relaxed(&in->urgent_length); /* relaxed: a hint */
}

/* Check I1. Takes the lock. Aborts with the values it saw. */
void bz_injector_check(struct bz_injector *in);

#endif
