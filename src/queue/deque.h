/*
 * deque.h - the forked jobs of the frames that stand on a machine.
 *
 * The newest end is private: fork and join (blitz/fork.h) push and pop there without an atomic
 * operation. The oldest job is exposed in a separate slot, where thieves take it. deque.c has the
 * protocol.
 */
#ifndef BZ_DEQUE_H
#define BZ_DEQUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/fork.h"
#include "queue/latch.h"

/* The number of jobs on the shelf, which are the next to be exposed; the model checker shrinks it. */
#if !defined(BZ_DEQUE_SHELF)
#define BZ_DEQUE_SHELF 32
#endif

/* A longer list is not exposed job by job: its older half goes to the queues. The model checker shrinks it. */
#if !defined(BZ_DEQUE_LONG)
#define BZ_DEQUE_LONG 1024
#endif

static inline bz_latch *bz_latch_of(struct blitz_job *job)
{
    return (bz_latch *)&job->latch_;
}

/* asked_ as an atomic. To the inline code of blitz/yield.h it is an ordinary word, like attention_. */
static inline bz_atomic(uintptr_t) *bz_asked_of(struct blitz_worker_ *ends)
{
    return (bz_atomic(uintptr_t) *)&ends->asked_;
}

/* Why a task may not leave its stack by a fast path, nor run another task on it. Bits of bz_deque.rare. */
enum bz_deque_rare {
    BZ_RARE_SHOWN = 1,   /* a job is on the shelf or exposed, or was since it was last empty */
    BZ_RARE_NO_PROC = 2, /* its machine has no proc, or is a guest; set by it (proc/state.h) */
    BZ_RARE_LOCKED = 4,  /* a task is locked to that machine; likewise */
    BZ_RARE_NO_TASK = 8  /* its machine calls a callback in its loop; set by it (proc/callout.c) */
};

/* Only the owner touches it, except for ends.attention_, ends.asked_ and exposed. */
struct bz_deque {
    struct blitz_worker_ ends; /* first: the inline code sees it through the machine's address */
    uint32_t shelf_head;       /* shelf[head, tail): older than the list, oldest first */
    uint32_t shelf_tail;
    bool is_plain; /* constant: every fork takes the slow path */
    uint8_t rare;  /* enum bz_deque_rare */
    struct blitz_job
        *marked;   /* this job of the list, and those below it, know their task; or NULL */
    bool is_long;  /* the list was long when it was last walked */
    bool is_taken; /* the list, from `taken` on, was taken by the taker; guarded by retake.h */
    struct blitz_job *taken;       /* likewise */
    bz_atomic(uint64_t) exposures; /* how often a job was exposed; any thread may read it */
    struct blitz_job *shelf[BZ_DEQUE_SHELF];
    BZ_OWN_LINE bz_atomic(struct blitz_job *) exposed; /* the oldest job; any thread may take it */
};

void bz_deque_init(struct bz_deque *d, bool is_plain);

/* Read or set a job's check_: it has left the private list and is not joined; it is joined. */
bool bz_job_is_out(const struct blitz_job *job);
void bz_job_was_joined(struct blitz_job *job);

/* ---- the owner ---- */

/* Account for a list that was taken meanwhile. In the runtime, before any of the functions below. */
void bz_deque_catch_up_slow(struct bz_deque *d);
static inline void bz_deque_catch_up(struct bz_deque *d)
{
    if (BZ_UNLIKELY(d->is_taken))
        bz_deque_catch_up_slow(d);
}

enum bz_shared {
    BZ_SHARED_NOTHING, /* there is no job to take */
    BZ_SHARED_BEFORE,  /* the job that thieves could take before is still there */
    BZ_SHARED_NOW      /* a job can now be taken that could not before */
};

/* Attention is set: expose the oldest job, which is `task`'s, if none is exposed. */
BZ_MUST_USE enum bz_shared bz_deque_share(struct bz_deque *d, void *task);

/*
 * The slow path of a join: take the job back, unless a thief took it. The caller then shares.
 * Returns: true: the caller runs it. False: it has left this deque, see its latch.
 */
BZ_MUST_USE bool bz_deque_take_back(struct bz_deque *d, struct blitz_job *job);

/* Send the next fork or join to the slow path. */
void bz_deque_ask(struct bz_deque *d);

/* Take the oldest job out; NULL if none is left, and the deque is as new. For `task`. */
struct blitz_job *bz_deque_take_oldest(struct bz_deque *d, void *task);

/* Take out all jobs, or the older half of a long list: oldest first, linked through link_. */
struct blitz_job *bz_deque_drain(struct bz_deque *d, void *task);
struct blitz_job *bz_deque_take_older(struct bz_deque *d, void *task);

/* True if that job, just forked, is the only one. */
bool bz_deque_is_lone(struct bz_deque *d, const struct blitz_job *job);

/* True if there are jobs that no other thread can see. */
static inline bool bz_deque_has_private(const struct bz_deque *d)
{
    return d->ends.newest_ != 0 || d->shelf_head != d->shelf_tail;
}

/* True if there is no job at all. */
static inline bool bz_deque_is_empty(struct bz_deque *d)
{
    return !bz_deque_has_private(d) &&
           bz_load_relaxed(&d->exposed) == NULL; /* relaxed: only we fill it */
}

/* The same, by two loads: also false if it was not empty a while ago. */
static BZ_ALWAYS_INLINE bool bz_deque_is_surely_empty(const struct bz_deque *d)
{
    return d->ends.newest_ == 0 && !(d->rare & BZ_RARE_SHOWN);
}

/* True if it is surely empty, its machine has a proc and runs a task, and no task is locked to the machine. A fast path asks
 * this before it takes the current task off its stack. The machine must be in the runtime. */
static BZ_ALWAYS_INLINE bool bz_deque_is_usual(const struct bz_deque *d)
{
    return BZ_LIKELY(d->ends.newest_ == 0) && BZ_LIKELY(d->rare == 0);
}

/*
 * Between mark and unmark another task runs on top of the frames whose jobs are in the deque. These jobs
 * belong to `task`; jobs that are forked meanwhile do not.
 */
struct bz_deque_mark {
    struct bz_deque *deque; /* NULL: there was nothing to mark */
    struct blitz_job *marked;
};
struct bz_deque_mark bz_deque_mark_slow(struct bz_deque *d, void *task);
void bz_deque_unmark_slow(struct bz_deque *d, const struct bz_deque_mark *mark);

static inline struct bz_deque_mark bz_deque_mark(struct bz_deque *d, void *task)
{
    if (BZ_LIKELY(d->ends.newest_ == 0))
        return (struct bz_deque_mark){NULL, NULL};
    return bz_deque_mark_slow(d, task);
}

/* `d` is the deque of the machine on which the frames stand now. (By address: a copy is read wider than
 * it was written, and the CPU then waits until the write has left its store buffer.) */
static inline void bz_deque_unmark(struct bz_deque *d, const struct bz_deque_mark *mark)
{
    if (BZ_UNLIKELY(mark->deque != NULL))
        bz_deque_unmark_slow(d, mark);
}

/* ---- others ---- */

/* Take the exposed job; NULL if there is none. */
struct blitz_job *bz_deque_steal(struct bz_deque *d);

/* Send the owner's next fork or join to the slow path, although no job was taken. */
void bz_deque_alert(struct bz_deque *d);

/*
 * Take all jobs, while the owner is in user code for long. One taker at a time, between ask and end of
 * retake.h. Call halt before its barrier, and take_all after it and only if the owner may be taken from.
 * Returns: the jobs, oldest first, linked through link_; NULL: none, or the owner was in the runtime meanwhile.
 */
void bz_deque_halt(struct bz_deque *d);
struct blitz_job *bz_deque_take_all(struct bz_deque *d, void *task);

/* Return the address of the newest private job. A hint. */
static inline uintptr_t bz_deque_peek(struct bz_deque *d)
{
    return bz_load_relaxed((bz_atomic(uintptr_t) *)&d->ends.newest_); /* relaxed: a hint */
}

/* True if there is a job to take. */
static inline bool bz_deque_has_work(struct bz_deque *d)
{
    return bz_load_relaxed(&d->exposed) != NULL; /* relaxed: idle.c's fences order it */
}

/* Check the invariants of deque.c, for an owner that is not forking. Aborts with the values it saw. */
void bz_deque_check(struct bz_deque *d);

#endif
