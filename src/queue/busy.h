/*
 * busy.h - the number of actors that are not idle, counted with plain stores.
 *
 * Each machine counts the actors that leave idleness by its hand, and those that come to rest on it. Threads of no machine of
 * this runtime share a pair. No count is added up while no thread asks. busy.c has the protocol by which a thread learns that
 * no actor is at work.
 */
#ifndef BZ_BUSY_H
#define BZ_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/own.h"
#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "queue/membarrier.h"

/* One for each machine, written by its thread alone; and one for all other threads, written by RMW. */
struct bz_busy_count {
    bz_atomic(uint64_t) begun;  /* actors counted in */
    bz_atomic(uint64_t) rested; /* actors counted out, here; they may have begun elsewhere */
};

/* In `watchers`: there are no barriers, and every thread fences. */
#define BZ_BUSY_PLAIN (UINT32_C(1) << 31)

struct bz_busy {
    bz_atomic(uint32_t) watchers; /* waits for rest, for which each rest looks; and BZ_BUSY_PLAIN */
    BZ_OWN_LINE struct bz_busy_count outside; /* of threads that are no machine of this runtime */
};

static inline void bz_busy_count_init(struct bz_busy_count *c)
{
    bz_atomic_init(&c->begun, 0);
    bz_atomic_init(&c->rested, 0);
}

void bz_busy_init(struct bz_busy *b, bool is_plain);

/*
 * Count an actor in. A caller that is not an actor counts before it pushes, and counts out again if another sender has the
 * actor placed. An actor is counted in itself, so it may push first. `mine` is the count of our machine, NULL without one.
 */
static BZ_ALWAYS_INLINE void bz_busy_begin(struct bz_busy *b, struct bz_busy_count *mine)
{
    if (BZ_LIKELY(mine != NULL))
        bz_own_add(&mine->begun, 1); /* relaxed: [C], the push or the rest that follows releases */
    else
        bz_fetch_add_relaxed(&b->outside.begun, 1); /* relaxed: likewise */
}

/* The number of watchers is not 0, or the runtime is plain. True: there are watchers. */
bool bz_busy_is_watched(struct bz_busy *b);

/* Count an actor out: it has rested, or has ended. True: there are watchers, and the caller must look. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_busy_rest(struct bz_busy *b, struct bz_busy_count *mine)
{
    if (BZ_LIKELY(mine != NULL))
        bz_own_add_release(&mine->rested, 1); /* busy.c [C] */
    else
        bz_fetch_add_release(&b->outside.rested, 1); /* busy.c [C] */
    bz_compiler_barrier();
    return BZ_UNLIKELY(bz_load_relaxed(&b->watchers) != 0) && /* relaxed: [W] */
           bz_busy_is_watched(b);
}

/* From here on each rest looks, or is seen by our look. `barrier` is unused if there are none. */
void bz_busy_watch(struct bz_busy *b, struct bz_barrier *barrier);
void bz_busy_unwatch(struct bz_busy *b);

/* Return the count of machine i; NULL behind the last one. */
typedef struct bz_busy_count *bz_busy_at(void *ctx, unsigned i);

/* True if there was a moment during this call at which no actor was counted in. */
bool bz_busy_is_none(struct bz_busy *b, bz_busy_at *at, void *ctx);
/* The same for a caller that has just counted one out: of several, the last one sees all of them. */
bool bz_busy_was_last(struct bz_busy *b, bz_busy_at *at, void *ctx);

#endif
