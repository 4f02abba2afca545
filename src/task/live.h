/*
 * live.h - the number of living tasks, and the end of the last one of a stopping runtime.
 *
 * Every proc counts the tasks that it has spawned and those that have ended on it, each with a plain
 * store; threads without a proc share a pair. The counts are not added up while the runtime runs. live.c
 * has the protocol by which a shutdown refuses spawns and notices the last end.
 */
#ifndef BZ_LIVE_H
#define BZ_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/own.h"
#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "os/os.h"

/* One for each proc, written by its machine alone; and one for all other threads, written by RMW. */
struct bz_live_count {
    bz_atomic(uint64_t) spawned; /* tasks counted in */
    bz_atomic(uint64_t) ended;   /* tasks counted out, here; they may have come from elsewhere */
};

enum bz_live_stage {
    BZ_LIVE_OPEN = 0,    /* spawns are accepted */
    BZ_LIVE_CLOSING = 1, /* refused; a task that slipped in may not be visible yet */
    BZ_LIVE_CLOSED = 2   /* all that got in are visible: each end checks whether it was the last */
};

struct bz_live {
    const struct bz_os *os;      /* constant, as are the next ones */
    struct bz_live_count *procs; /* proc 0's; the others' follow `stride` bytes apart */
    size_t stride;
    unsigned proc_count;
    bool is_plain;                            /* no barriers: every thread fences */
    bz_atomic(uint32_t) stage;                /* enum bz_live_stage; bz_live_close() */
    bz_os_word drained;                       /* 1: closed, and all have ended */
    BZ_OWN_LINE struct bz_live_count outside; /* of threads without a proc */
};

/* `procs` are zeroed here. */
void bz_live_init(struct bz_live *l, const struct bz_os *os, bool is_plain,
                  struct bz_live_count *procs, size_t stride, unsigned proc_count);

/* The slow paths of the functions below. */
void bz_live_refused(struct bz_live *l, struct bz_live_count *mine);
void bz_live_look(struct bz_live *l);

/* The writer's half of the store-buffer pattern: live.c [S] [E]. */
static BZ_ALWAYS_INLINE void bz_live_fence(const struct bz_live *l)
{
    if (l->is_plain)
        bz_fence_seqcst(); /* live.c [S] [E] */
    else
        bz_compiler_barrier();
}

static BZ_ALWAYS_INLINE void bz_live_bump(bz_atomic(uint64_t) *count, bool is_mine)
{
    if (is_mine)
        bz_own_add_release(count, 1); /* live.c [C] */
    else
        bz_fetch_add_release(count, 1); /* live.c [C] */
}

/*
 * Count a task in. Its header is complete, a walk over living tasks can find it, and it is in no queue
 * yet. `mine` is the count of the proc we have, NULL without one.
 * Returns: false if the runtime is stopping: nothing was counted, and the task must not run.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_live_spawn(struct bz_live *l,
                                                       struct bz_live_count *mine)
{
    bz_live_bump(mine != NULL ? &mine->spawned : &l->outside.spawned, mine != NULL);
    bz_live_fence(l);
    if (BZ_LIKELY(bz_equals_relaxed(&l->stage, BZ_LIVE_OPEN))) /* relaxed: [S] */
        return true;
    bz_live_refused(l, mine);
    return false;
}

/* The same on a proc, where there are barriers: the fast path of a spawn. False: the caller must call
 * bz_live_refused(), and the task must not run. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_live_spawn_is_open(struct bz_live *l,
                                                               struct bz_live_count *mine)
{
    bz_live_bump(&mine->spawned, true);
    bz_compiler_barrier();                                        /* live.c [S] */
    return BZ_LIKELY(bz_equals_relaxed(&l->stage, BZ_LIVE_OPEN)); /* relaxed: [S] */
}

/* Count a task out: it has done everything. If it was the last one of a stopping runtime, the thread that waits for
 * that may free everything but procs whose machines still run. */
static BZ_ALWAYS_INLINE void bz_live_end(struct bz_live *l, struct bz_live_count *mine)
{
    bz_live_bump(mine != NULL ? &mine->ended : &l->outside.ended, mine != NULL);
    bz_live_fence(l);
    /* relaxed: [E], and bz_live_look fences first */
    if (BZ_UNLIKELY(bz_equals_relaxed(&l->stage, BZ_LIVE_CLOSED)))
        bz_live_look(l);
}

/* The same on a proc, where there are barriers: the fast path of a join. True: the caller must call bz_live_look(). */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_live_end_is_watched(struct bz_live *l,
                                                                struct bz_live_count *mine)
{
    bz_live_bump(&mine->ended, true);
    bz_compiler_barrier(); /* live.c [E] */
    /* relaxed: [E], and bz_live_look fences first */
    return BZ_UNLIKELY(bz_equals_relaxed(&l->stage, BZ_LIVE_CLOSED));
}

/* Refuse spawns from now on. Every task that got in can then be found. One thread at a time. */
void bz_live_close(struct bz_live *l);
/* After bz_live_close, once every task was asked to end: from here on the last end is noticed. */
void bz_live_await_last(struct bz_live *l);

/* True if the last task has ended. Then the writes of all tasks are visible. */
static inline bool bz_live_is_drained(struct bz_live *l)
{
    return bz_load_acquire(&l->drained) != 0; /* live.c [D] */
}

/* Sums over all counts, for statistics; they may be out of date at once. */
uint64_t bz_live_spawned(struct bz_live *l);
uint64_t bz_live_ended(struct bz_live *l);
/* How many are alive: too many rather than too few. */
static inline uint64_t bz_live_alive(struct bz_live *l)
{
    uint64_t ended = bz_live_ended(l); /* first */
    return bz_live_spawned(l) - ended;
}

#endif
