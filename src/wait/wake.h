/*
 * wake.h - a wake-up that is decided under a lock and delivered after it.
 *
 * Something has happened: a value is there, a socket is readable, a deadline has passed. The code that
 * noticed holds the lock of the primitive. Under that lock it claims the waiter, so that no deadline or
 * cancel can end the wait any more. But it must not deliver the wake-up there: delivering queues a task,
 * may rouse a thread, and may call a waker of the user's. So the wake-up is stored in a struct bz_wake,
 * alone or in a list, and delivered when the lock has been dropped:
 *
 *     struct bz_wakelist wakes;
 *     bz_wakelist_init(&wakes);
 *     lock
 *     ... bz_waiter_claim(w, result, &wakes) ...
 *     unlock
 *     bz_wakelist_deliver(&wakes);
 *
 * I1  A wake-up is delivered exactly once. Between claim and delivery the waiter stays where it is, but
 *     for a plain thread and for a task of the plain form: these may continue as soon as they are
 *     claimed (wait/wait.h, bz_wait_is_early).
 * I2  A wake-up holds no pointer into the waiter's frame that is dereferenced. Of a thread it holds the
 *     address of a word, and waking an address is harmless when the frame is gone.
 */
#ifndef BZ_WAIT_WAKE_H
#define BZ_WAIT_WAKE_H

#include "base/check.h"
#include "base/compiler.h"
#include "blitz/future.h"
#include "os/os.h"

struct bz_task;

enum bz_wake_kind {
    BZ_WAKE_NONE,
    BZ_WAKE_TASK,      /* resume the task; the caller is a worker of its runtime */
    BZ_WAKE_HELD_TASK, /* resume the task, then drop the reference that the claim took */
    BZ_WAKE_THREAD,    /* wake a plain thread */
    BZ_WAKE_WAKER      /* wake the waker of a polled future */
};

struct bz_wake {
    enum bz_wake_kind kind;
    union {
        struct bz_task *task;
        struct {
            const struct bz_os *os;
            bz_os_word *word; /* I2 */
        } thread;
        blitz_waker waker;
    };
};

/* Deliver one wake-up. No lock is held. Defined in park/park.c. */
void bz_wake_deliver(struct bz_wake *wake);

/* The wake-up of a polled future: the waker moves out of *from. */
static inline void bz_wake_set_waker(struct bz_wake *wake, blitz_waker *from)
{
    wake->kind = BZ_WAKE_WAKER;
    wake->waker = *from;
    *from = (blitz_waker){NULL, NULL};
}

/* ---- several of them ---- */

/* How many wake-ups one critical section may decide. Models make it small. */
#if !defined(BZ_WAKELIST_MAX)
#define BZ_WAKELIST_MAX 16
#endif

struct bz_wakelist {
    unsigned count;
    bool has_more; /* the list was full and more waiters could have been served: serve again */
    struct bz_wake wake[BZ_WAKELIST_MAX]; /* the first `count` are set */
};

static BZ_ALWAYS_INLINE void bz_wakelist_init(struct bz_wakelist *list)
{
    list->count = 0;
    list->has_more = false;
}

static inline bool bz_wakelist_is_full(const struct bz_wakelist *list)
{
    return list->count == BZ_WAKELIST_MAX;
}

/* The place for the next wake-up. It counts once bz_wakelist_add has been called. */
static inline struct bz_wake *bz_wakelist_next(struct bz_wakelist *list)
{
    BZ_ASSERT(!bz_wakelist_is_full(list));
    return &list->wake[list->count];
}

static inline void bz_wakelist_add(struct bz_wakelist *list)
{
    list->count++;
}

/* Deliver all wake-ups, the first claimed first. No lock is held. */
static inline void bz_wakelist_deliver_all(struct bz_wakelist *list)
{
    for (unsigned i = 0; i < list->count; i++)
        bz_wake_deliver(&list->wake[i]);
    list->count = 0;
}

static BZ_ALWAYS_INLINE void bz_wakelist_deliver(struct bz_wakelist *list)
{
    if (list->count != 0)
        bz_wakelist_deliver_all(list);
}

#endif
