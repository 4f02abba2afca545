/*
 * mutex.c - a word with three flags: locked, a waiter is queued, a notified waiter is awake.
 *
 * The word: WOKEN | QUEUED | LOCKED. The holder's task id is stored beside it, so that a dump can name the holder and
 * a debug build can check the caller of unlock. All plain threads have id 0. (With the id in the word, the id would
 * have to be known before the CAS and the subtraction. That is three dependent loads, and each locked instruction
 * delays the next load: 5.0 ns a pair, against 4.1 with a store beside the word. Go's mutex, inline, takes 4.8.)
 *
 *   lock      If the mutex is free: one CAS. Else a short spin, then the wait queue.
 *   unlock    If the queue is empty or a notified waiter is awake: one subtraction. Else notify the first waiter,
 *             set WOKEN and leave the mutex free for the first thread that locks it.
 *
 * WOKEN says that a notified waiter is on its way. So a holder that locks and unlocks in a loop wakes one task, and
 * not one task in every round. After that waiter has locked the mutex, or has gone back into the queue, the next
 * unlock wakes another one.
 *
 * Rejected:
 *   handing off at every unlock    fair, but each round is a switch: 8 tasks on 2 procs took ten
 *                                  times as long (and with a thread in the queue, a thousand times)
 *   never handing off              a waiter can be passed for ever (go#13086)
 *   a mode, as Go's mutex has      the age of the first waiter says the same. It is checked only when
 *                                  a waiter is woken, where a clock read does not matter
 *   spinning long                  the cache line of the word goes back and forth between the CPUs (0.3 us
 *                                  a round trip here) while the holder would finish by itself
 *
 *                     LOCKED QUEUED WOKEN
 *   free               0      0      0
 *   held               1      0      0
 *   held, wanted       1      1      0       the unlock will notify or hand off
 *   held, one awake    1      ?      1       the unlock is a subtraction
 *   free, one awake    0      ?      1       the first thread that locks it gets it
 *   free, wanted       0      1      0       for a moment: the thread that made it so serves the queue
 *
 * In the plain form lock takes the lock of the wait queue, and so does unlock unless a notified waiter is awake.
 *
 * I1  A waiter is in the queue -> QUEUED.
 * I2  WOKEN -> exactly one node is notified. It clears WOKEN when it enters again or is revoked, under the
 *     lock.
 * I3  While the holder also has the lock of the wait queue, no other thread changes the word: it is LOCKED, and
 *     the flags are changed under the lock.
 * I4  A thread that leaves QUEUED set without LOCKED and WOKEN serves the queue: no other thread would.
 * I5  The thread that locks the mutex or hands it off writes holder, before any other thread could.
 *
 * [L] unlock: word release -> lock: word acquire   the next holder sees the writes of the last one. After a
 *     hand-off the new holder gets this from its wait, or from the lock of the wait queue
 */
#include "blitz/mutex.h"

#include <assert.h>
#include <errno.h>

#include "proc/opened.h"
#include "sync/waitq.h"

enum { LOCKED = 1, QUEUED = 2, WOKEN = 4 };

/* Rounds of the spin: long enough for a running holder to finish. Measured with 8 tasks on two CPUs, ns a turn: 27
 * with no rounds, 8 with 1 to 4 rounds (Go: 15). */
#if !defined(BZ_MUTEX_SPINS)
#define BZ_MUTEX_SPINS 2
#endif

/* The time for which the first waiter may be passed. */
#if !defined(BZ_MUTEX_PATIENCE_NS)
#define BZ_MUTEX_PATIENCE_NS BLITZ_MS
#endif

struct bz_mutex {
    bz_atomic(uint32_t) word;
    bz_atomic(uint64_t) holder; /* I5; if the mutex is not locked, its last holder */
    struct bz_waitq q;
};

static_assert(sizeof(struct bz_mutex) <= sizeof(blitz_mutex), "it has room");

static struct bz_mutex *of(blitz_mutex *mutex)
{
    return (struct bz_mutex *)mutex;
}

static inline uint64_t id_of_caller(void)
{
    struct bz_task *me = bz_task_self();
    return me != NULL ? me->id : 0;
}

/* Record the caller as the holder. */
static inline void own(struct bz_mutex *m)
{
    bz_store_relaxed(&m->holder, id_of_caller()); /* relaxed: I5, for dumps and ourselves */
}

/* ---- under the lock of the wait queue ---- */

static bool mutex_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    struct bz_mutex *m = n->owner;
    uint32_t word = bz_load_relaxed(&m->word); /* relaxed: a first guess */
    uint32_t ours = n->request.waiter.state == BZ_WAITER_NOTIFIED ? WOKEN : 0; /* I2 */
    (void)wakes;
    for (;;) {
        uint32_t kept = word & (QUEUED | WOKEN) & ~ours;
        if (!(word & LOCKED)) {
            if (bz_cas_weak_acq_rlx(&m->word, &word, kept | LOCKED)) /* [L] */
                break;
            /* relaxed: flags; a thread that acts on them takes the lock of the wait queue */
        } else if (bz_cas_weak_rlx_rlx(&m->word, &word, (word | QUEUED) & ~ours)) {
            if (!ours)
                n->since = bz_os_now(bz_sync_os());
            bz_sync_op_join(n);
            return false;
        }
    }
    n->request.waiter.state = BZ_WAITER_OUT;
    /* relaxed: I5. A blocking caller may be here on another stack (waitq.h): its id is in `want` */
    bz_store_relaxed(&m->holder, n->request.waiter.is_polled ? id_of_caller() : n->want);
    return true;
}

static bool mutex_is_far(const struct bz_request *r)
{
    const struct bz_sync_op *n = BZ_CONTAINER_OF(r, const struct bz_sync_op, request);
    const struct bz_mutex *m = n->owner;
    return (bz_load_relaxed(&m->word) & LOCKED) != 0; /* relaxed: a hint, it takes nothing */
}

/* True if the first waiter has been passed for BZ_MUTEX_PATIENCE_NS. */
static bool is_out_of_patience(const struct bz_sync_op *n)
{
    return bz_os_now(bz_sync_os()) >= n->since + BZ_MUTEX_PATIENCE_NS;
}

static uint32_t queued_flag(struct bz_mutex *m)
{
    return bz_waitq_is_empty(&m->q) ? 0 : QUEUED;
}

/* Hand off the locked mutex to n, the first waiter. Write the word first: the new holder may unlock as soon as it is
 * woken. */
static bool hand_over(struct bz_mutex *m, struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    uint32_t queued =
        n->request.waiter.in.next == &m->q.inside ? 0 : QUEUED; /* after n has left the queue */
    /* relaxed: I3 and I5, and the new holder sees our writes through its wait or the lock */
    bz_store_relaxed(&m->holder, n->want);
    bz_store_relaxed(&m->word, queued | LOCKED); /* relaxed: likewise */
    return bz_sync_op_give(n, wakes);
}

/* Release the mutex, which the caller holds: LOCKED is set, WOKEN is not, and no other thread changes the word (I3). */
static void release_to_next(struct bz_mutex *m, struct bz_wakelist *wakes)
{
    for (struct bz_sync_op *n; (n = bz_waitq_first(&m->q)) != NULL;) {
        if (is_out_of_patience(n)) {
            if (hand_over(m, n, wakes))
                return;
        } else if (bz_sync_op_tell(n, wakes)) {
            bz_store_release(&m->word, queued_flag(m) | WOKEN); /* [L] */
            return;
        }
    }
    bz_store_release(&m->word, 0); /* [L] */
}

/* If the mutex is free and no notified waiter is awake, notify the first waiter or hand off to it: I4. */
static void mutex_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_mutex *m = owner;
    if (bz_waitq_is_empty(&m->q)) {
        bz_fetch_and_relaxed(&m->word, ~(uint32_t)QUEUED); /* relaxed: a flag; I1 */
        return;
    }
    uint32_t word = bz_load_relaxed(&m->word); /* relaxed: a first guess */
    do {
        if (word & (LOCKED | WOKEN))
            return;
    } while (!bz_cas_weak_acq_rlx(&m->word, &word, word | LOCKED)); /* [L] */
    release_to_next(m, wakes);
}

/* Take back the notification or the mutex of a future that is cancelled. */
static void mutex_give_back(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    struct bz_mutex *m = n->owner;
    if (n->request.waiter.state == BZ_WAITER_NOTIFIED)
        bz_fetch_and_relaxed(&m->word, ~(uint32_t)WOKEN); /* relaxed: a flag; I2 */
    else
        release_to_next(m, wakes);
}

static const void *mutex_holder(const struct bz_request *r)
{
    const struct bz_sync_op *n = BZ_CONTAINER_OF(r, const struct bz_sync_op, request);
    return &((const struct bz_mutex *)n->owner)->holder;
}

static blitz_poll lock_future_poll(blitz_future *f, const blitz_waker *waker);

static const struct bz_sync_op_ops locking = {
    .look.future = {"mutex", BLITZ_REVOCABLE, lock_future_poll, bz_sync_future_cancel,
                    bz_sync_future_output},
    .request = {.what = "mutex",
                .lock = bz_sync_op_lock,
                .unlock = bz_sync_op_unlock,
                .enter = mutex_enter,
                .leave = bz_sync_op_leave,
                .is_far = BZ_SYNC_IS_DULL ? NULL : mutex_is_far,
                .holder = mutex_holder},
    .serve = mutex_serve,
    .give_back = mutex_give_back};

/* ---- locking ---- */

void blitz_mutex_init(blitz_mutex *mutex)
{
    *mutex = (blitz_mutex)BLITZ_MUTEX_INIT;
}

static inline bool grab_free(struct bz_mutex *m)
{
    uint32_t seen = 0;
    return bz_cas_strong_acq_rlx(&m->word, &seen, LOCKED); /* [L] */
}

/* Lock a free mutex, even if there are waiters: the first one may be passed. */
static bool grab(struct bz_mutex *m)
{
    uint32_t word = bz_load_relaxed(&m->word); /* relaxed: a first guess */
    while (!(word & LOCKED))
        if (bz_cas_weak_acq_rlx(&m->word, &word, word | LOCKED)) { /* [L] */
            own(m);
            return true;
        }
    return false;
}

static BZ_NOINLINE int lock_slowly(struct bz_mutex *m, blitz_deadline until)
{
    if (!BZ_SYNC_IS_DULL) {
        const struct bz_os *os = bz_sync_os();
        for (int round = 0; round < BZ_MUTEX_SPINS; round++) {
            if (grab(m))
                return 0;
            bz_os_relax(os, (unsigned)round);
        }
    }
    return bz_waitq_acquire(&m->q, m, &locking, id_of_caller(), until);
}

static BZ_ALWAYS_INLINE int lock(struct bz_mutex *m, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (BZ_SYNC_IS_DULL || BZ_UNLIKELY(!grab_free(m)))
        return lock_slowly(m, until);
    own(m);
    return 0;
}

/* Tasks whose faults are trapped count what they hold (opened.h): by calls at the very end, so that the other tasks pay for one
 * test and save no registers. */
static BZ_NOINLINE int lock_and_count(struct bz_mutex *m, blitz_deadline until)
{
    int err = lock(m, until);
    if (err == 0)
        bz_opened_begin();
    return err;
}

int blitz_mutex_lock(blitz_mutex *mutex, blitz_deadline until)
{
    if (bz_opened_is_counted())
        return lock_and_count(of(mutex), until);
    return lock(of(mutex), until);
}

int blitz_mutex_try_lock(blitz_mutex *mutex)
{
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (!grab(of(mutex)))
        return -EAGAIN;
    bz_opened_begin();
    return 0;
}

/* Unlock while there are waiters and none is awake. This does not change while the caller holds the mutex. */
static BZ_NOINLINE void unlock_slowly(struct bz_mutex *m)
{
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&m->q, os);
    release_to_next(m, &wakes);
    bz_waitq_end(&m->q, m, &locking, &wakes, os);
}

/* True if the unlock must wake a waiter. */
static inline bool owes_a_wake(uint32_t word)
{
    return (word & (QUEUED | WOKEN)) == QUEUED;
}

/* Abort unless the caller holds the mutex. */
BZ_MAYBE_UNUSED static void check_owner(struct bz_mutex *m, uint32_t word)
{
    uint64_t holder = bz_load_relaxed(&m->holder), me = id_of_caller(); /* relaxed: I5 */
    BZ_CHECK(word & LOCKED, "mutex %p: unlocked by task %llu (0: a thread), but it is not locked",
             (void *)m, (unsigned long long)me);
    BZ_CHECK(holder == me, "mutex %p: unlocked by task %llu, but it is task %llu's (0: a thread)",
             (void *)m, (unsigned long long)me, (unsigned long long)holder);
}

/* Handle a word that was not just LOCKED: a waiter came meanwhile, one is awake, or the mutex was not locked. */
static BZ_NOINLINE void after_unlock(struct bz_mutex *m, uint32_t word)
{
    BZ_CHECK(word & LOCKED, "mutex %p: unlocked by task %llu (0: a thread), but it is not locked",
             (void *)m, (unsigned long long)id_of_caller());
    if (owes_a_wake(word))
        bz_waitq_serve(&m->q, m, &locking); /* I4 */
}

static BZ_ALWAYS_INLINE void unlock(struct bz_mutex *m)
{
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    uint32_t word = bz_load_relaxed(&m->word); /* relaxed: our own write, and flags */
    BZ_ASSERT((check_owner(m, word), true));
    if (BZ_UNLIKELY(owes_a_wake(word)) || (BZ_SYNC_IS_DULL && !(word & WOKEN))) {
        unlock_slowly(m);
        return;
    }
    word = bz_fetch_sub_release(&m->word, LOCKED); /* [L] */
    if (BZ_UNLIKELY(word != LOCKED))               /* one test for all rare cases */
        after_unlock(m, word);
}

static BZ_NOINLINE void unlock_and_count(struct bz_mutex *m)
{
    unlock(m);
    bz_opened_end();
}

void blitz_mutex_unlock(blitz_mutex *mutex)
{
    if (bz_opened_is_counted())
        unlock_and_count(of(mutex));
    else
        unlock(of(mutex));
}

/* ---- queries ---- */

bool blitz_mutex_is_locked(const blitz_mutex *mutex)
{
    const struct bz_mutex *m = (const struct bz_mutex *)mutex;
    return (bz_load_relaxed(&m->word) & LOCKED) != 0; /* relaxed: outdated at once */
}

uint64_t blitz_mutex_holder(const blitz_mutex *mutex)
{
    const struct bz_mutex *m = (const struct bz_mutex *)mutex;
    return blitz_mutex_is_locked(mutex) ? bz_load_relaxed(&m->holder) : 0; /* relaxed: outdated */
}

/* ---- as a future ---- */

/* Poll the lock, and record the holder. A hand-off to a future cannot know which task polls it; the poll does. */
static blitz_poll lock_future_poll(blitz_future *f, const blitz_waker *waker)
{
    struct bz_mutex *m = bz_sync_future_node(BZ_CONTAINER_OF(f, blitz_sync_future, future))->owner;
    if (bz_sync_future_poll(f, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    own(m);
    if (((blitz_sync_future *)f)->result == 0)
        bz_opened_begin();
    return BLITZ_READY;
}

void blitz_mutex_lock_future_init(blitz_sync_future *f, blitz_mutex *mutex)
{
    bz_sync_future_init(f, &of(mutex)->q, of(mutex), &locking, 0);
}
