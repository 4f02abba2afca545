/*
 * tasks.h - where task headers live, how they are counted, and how all of them are found.
 *
 * Headers are slab objects of a few sizes. Each proc has slabs of its own and allocates without an
 * atomic operation; threads without a proc share some under a lock. There is no list of tasks: to
 * find them all is to walk over the slabs and look at each state word, which says by its references
 * whether somebody lives there. tasks.c has the design.
 */
#ifndef BZ_TASKS_H
#define BZ_TASKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/slab.h"
#include "os/lock.h"
#include "sched/live.h"
#include "task/task.h"

enum {
    BZ_TASK_CLASSES = 5,
    BZ_TASK_ALIGN = 64,     /* of every header: two do not share a line on most machines */
    BZ_TASK_BYTES_MAX = 512 /* the largest class; who needs more keeps it elsewhere */
};

/*
 * Fiber headers that have just ended on a proc, ready to be used again: constant fields set, the
 * others as a fresh task's. Most tasks are spawned where others end, so most spawns find one here.
 * None in builds that look for uses of freed memory.
 */
#if defined(BZ_DEBUG) || defined(BZ_WATCH)
enum { BZ_STASH_MAX = 0 };
#else
enum { BZ_STASH_MAX = 256 }; /* more than a full ring drops tombstones at once */
#endif
struct bz_task_stash {
    unsigned count;
    unsigned
        max; /* constant: 0 where the fast spawn is not to be: a limit on tasks, the plain form */
    struct bz_task *ready[BZ_STASH_MAX + 1]; /* + 1: no array is empty */
};

/* What a proc has of it; and what threads without one share, under outside_lock. */
struct bz_task_home {
    struct bz_task_stash stash; /* a proc's; fibers of class 0 */
    struct bz_slab slab[BZ_TASK_CLASSES];
    struct bz_live_count live; /* of a proc; the shared one is in bz_live */
    uint64_t id_next, id_end;  /* ids to give out */
};

struct bz_tasks {
    struct bz_slab_class kind[BZ_TASK_CLASSES]; /* constant */
    uint64_t max;                               /* constant; 0: any number of tasks */
    bz_atomic(uint32_t) is_short; /* a stack was refused: spawns reserve theirs. machine.c */
    struct bz_live live;
    struct bz_lock outside_lock;
    struct bz_task_home outside; /* guarded by outside_lock, as far as a proc's is its machine's */
    BZ_OWN_LINE bz_atomic(uint64_t) alive; /* tasks, where there is a limit */
    bz_atomic(uint64_t) left;              /* headers that outlive the runtime: tasks.c [L] */
};

/* Called for a task that somebody holds; it may have ended. The reference is the walk's. */
typedef void bz_tasks_fn(struct bz_task *t, void *ctx);

/* Make and unmake what belongs to the runtime; its procs exist, and nothing runs. */
void bz_tasks_init(struct bz_runtime *rt, uint64_t tasks_max);

/* How many headers are out, when no task lives and no machine runs: somebody still holds them. */
uint64_t bz_tasks_out(struct bz_runtime *rt);

/*
 * The runtime has ended, its machines are gone, and its user gives it up. Headers may be held by
 * handles and wakers; the last of them calls bz_runtime_release().
 * Returns: true if there are none: the caller releases.
 */
BZ_MUST_USE bool bz_tasks_close(struct bz_runtime *rt);
/* Free what is left: the memory of the slabs. */
void bz_tasks_fini(struct bz_runtime *rt);

/*
 * A header of `bytes` (to BZ_TASK_BYTES_MAX) in all, with its id set and its word without references:
 * nobody finds it before bz_word_init. NULL if there is no memory. Any thread.
 */
struct bz_task *bz_task_alloc(struct bz_runtime *rt, size_t bytes);

/* Its last reference is gone, or it never had one. Any thread, also when the runtime is gone. */
void bz_task_free(struct bz_task *t);

/* The slow half of a new id: another block. */
void bz_task_ids_refill(struct bz_task_home *h);

/* A ready-made fiber header with a new id, or NULL: then bz_task_alloc. The proc's machine only. */
static BZ_ALWAYS_INLINE struct bz_task *bz_task_unstash(struct bz_task_home *h)
{
    struct bz_task_stash *s = &h->stash;
    unsigned count = s->count;
    uint64_t id = h->id_next;
    if (BZ_UNLIKELY(count == 0))
        return NULL;
    if (BZ_UNLIKELY(id == h->id_end)) {
        bz_task_ids_refill(h);
        id = h->id_next;
    }
    struct bz_task *t = s->ready[count - 1];
    s->count = count - 1;
    h->id_next = id + 1;
    t->id = id;
    return t;
}

/* Keep a fiber's header that nobody holds any more. False if there is no room: then bz_task_free. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_task_stash(struct bz_task_home *h, struct bz_task *t)
{
    struct bz_task_stash *s = &h->stash;
    if (s->count >= s->max)
        return false;
    s->ready[s->count++] = t;
    return true;
}

/*
 * Count a task in, after bz_word_init and before it is queued.
 * Returns: 0, -ESHUTDOWN (the runtime is stopping), -EAGAIN (as many live as may). On error the caller
 *          drops the references it made.
 */
BZ_MUST_USE int bz_task_enlist(struct bz_task *t);

/* A task of the runtime has ended; its header may be gone. Between bz_enter and bz_leave. */
void bz_task_strike(struct bz_runtime *rt);

/* Show every task that is held while the walk goes on; one that comes meanwhile may be missed. Any
 * thread; fn may do whatever the caller may, but for walking itself. */
void bz_tasks_each(struct bz_runtime *rt, bz_tasks_fn *fn, void *ctx);

/* The machine is about to sleep or to leave: what it has collected for others goes to them, and what
 * they have sent is taken in. */
void bz_tasks_rest(struct bz_task_home *home);

/* Bytes the slabs hold, free objects included; roughly, if something runs. */
uint64_t bz_tasks_bytes(struct bz_runtime *rt);

#endif
