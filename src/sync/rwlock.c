/*
 * rwlock.c - a reader count and a writer bit in one word, and one wait queue for both.
 *
 * The word: readers << 3 | TOLD | WRITER | QUEUED. While the queue is empty, each operation is one atomic instruction
 * on the word. QUEUED is set while there are waiters and none of them is awake. It sends every newcomer to the end of
 * the queue: so a writer waits for the current readers only, and not for later ones. A thread that unlocks and leaves
 * QUEUED alone in the word serves the queue.
 *
 * To serve is to notify the first waiter: QUEUED becomes TOLD, and until that waiter runs any thread may take the
 * lock. When the notified waiter gets the lock, it takes care of the waiters behind it: a reader notifies the next
 * reader, and so on. If it does not get the lock, it goes back to the front of the queue and sets QUEUED.
 *
 * A waiter that has waited for BZ_RWLOCK_PATIENCE_NS is granted the lock instead. Futures are always granted it,
 * because they may run late. So the first waiter is passed for a millisecond at most. The reason for notifying is the
 * same as in mutex.c: after a hand-off the lock belongs to a task that does not run yet. With eight tasks on two CPUs
 * and one write in a hundred this made a convoy, in which every write parked the other seven. (60 switches in a
 * thousand locks, and 45 ns of CPU time each; with notifications 0.01, and 4.5.)
 *
 * Before it joins the queue, a writer spins for a moment until the readers leave, with QUEUED unset. A reader that
 * runs finishes in nanoseconds, and the queue costs a switch. Readers that come meanwhile go in before the writer. The
 * spin is bounded, so it cannot starve the writer.
 *
 * A reader first adds itself to the word and then checks whether it may read. A load before a CAS would wait for the
 * locked instruction before it (4.9 ns a lock and unlock, 4.2 with the addition, Go 4.4). A reader that may not read is
 * a *guest*. It leaves like a real reader: if it brings the word to QUEUED alone, it serves the queue. So a guest can
 * delay a writer for a moment, but the writer never loses its turn.
 *
 * Rejected: reader counts spread over the CPUs (a writer must visit them all; a blitz_rwlock would
 * be kilobytes); preferring a writer to readers in the queue (it could starve them in turn).
 *
 * In the plain form every call takes the lock of the wait queue, and the patience is 0.
 *
 * I1  WRITER -> no readers but guests, which have seen WRITER or QUEUED and are about to leave.
 * I2  A waiter is in the queue -> QUEUED or TOLD. Both are changed under the lock of the wait queue.
 * I3  With QUEUED set only serve grants the lock, under the lock of the queue; other threads can only leave, or be
 *     guests.
 * I4  A thread that leaves and brings the word to QUEUED alone serves the queue.
 * I5  TOLD -> exactly one node is notified, and QUEUED is not set. It clears TOLD when it enters again.
 *
 * [R] unlock: word release -> lock, serve: word acquire   a writer sees the writes of the readers and writers before
 *     it, a reader sees those of writers. A waiter granted by serve gets this from its wait or from the lock of
 *     the wait queue
 */
#include "blitz/rwlock.h"

#include <assert.h>
#include <errno.h>

#include "proc/opened.h"
#include "sync/waitq.h"

enum { QUEUED = 1, WRITER = 2, TOLD = 4, READER = 8 };

/* Rounds of the spin before the wait queue. */
#if !defined(BZ_RWLOCK_SPINS)
#define BZ_RWLOCK_SPINS 4
#endif

/* The time for which the first waiter may be passed. */
#if !defined(BZ_RWLOCK_PATIENCE_NS)
#define BZ_RWLOCK_PATIENCE_NS BLITZ_MS
#endif

struct bz_rwlock {
    bz_atomic(uint64_t) word;
    struct bz_waitq q;
};

static_assert(sizeof(struct bz_rwlock) <= sizeof(blitz_rwlock), "it has room");

static struct bz_rwlock *of(blitz_rwlock *lock)
{
    return (struct bz_rwlock *)lock;
}

/* Return the bits of the word that keep a reader, or a writer, out. */
static uint64_t obstacles_of(uint64_t want)
{
    return want == READER ? WRITER : ~(uint64_t)(QUEUED | TOLD);
}

/* ---- under the lock of the wait queue ---- */

/* True if the waiter must be granted the lock instead of being notified. */
static bool is_out_of_patience(const struct bz_sync_op *n)
{
    if (BZ_SYNC_IS_DULL || n->request.waiter.is_polled)
        return true;
    return bz_os_now(bz_sync_os()) >= n->since + BZ_RWLOCK_PATIENCE_NS;
}

/* Notify n, the first waiter, which can have the lock: I5. Return false if n had left. */
static bool tell(struct bz_rwlock *l, struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    if (!bz_sync_op_tell(n, wakes))
        return false;
    bz_fetch_add_relaxed(&l->word, TOLD - QUEUED); /* relaxed: flags; the lock */
    return true;
}

static void rwlock_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_rwlock *l = owner;
    if (bz_load_relaxed(&l->word) & TOLD) /* relaxed: the lock. The notified node serves, I5 */
        return;
    for (struct bz_sync_op *n; (n = bz_waitq_first(&l->q)) != NULL;) {
        uint64_t want = n->want;
        /* relaxed: I3; the addition below acquires, and a thread that leaves after this load serves */
        if (bz_load_relaxed(&l->word) & obstacles_of(want))
            return;
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        if (!is_out_of_patience(n)) {
            if (tell(l, n, wakes))
                return;
            continue;
        }
        bz_fetch_add_acquire(&l->word, want); /* [R] before n is woken and may unlock */
        if (!bz_sync_op_give(n, wakes))
            /* relaxed: nothing was done under it; stronger than needed: in a model, where no thread leaves
             * at the same moment; seeds and stress cover that */
            bz_fetch_sub_relaxed(&l->word, want);
    }
    bz_fetch_and_relaxed(&l->word, ~(uint64_t)QUEUED); /* relaxed: I2, a flag; the lock */
}

/* Take the lock or join the queue. A notified node that takes the lock serves the waiters behind it. */
static bool rwlock_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    struct bz_rwlock *l = n->owner;
    bool was_told = n->request.waiter.state == BZ_WAITER_NOTIFIED;
    uint64_t keeps_out = obstacles_of(n->want) | (was_told ? 0 : QUEUED);
    uint64_t queued = was_told && !bz_waitq_is_empty(&l->q) ? QUEUED : 0;
    uint64_t word = bz_load_relaxed(&l->word); /* relaxed: a first guess */
    for (;;) {
        uint64_t kept = was_told ? word & ~(uint64_t)TOLD : word;
        if ((word & keeps_out) == 0) {
            if (bz_cas_weak_acq_rlx(&l->word, &word, (kept | queued) + n->want)) /* [R] */
                break;
        } else if (kept & TOLD || /* the notified node will serve us, too */
                   bz_cas_weak_rlx_rlx(&l->word, &word, kept | QUEUED)) { /* relaxed: the lock */
            if (!was_told)
                n->since = bz_os_now(bz_sync_os());
            bz_sync_op_join(n);
            return false;
        }
    }
    n->request.waiter.state = BZ_WAITER_OUT;
    if (queued)
        rwlock_serve(l, wakes);
    return true;
}

static void rwlock_give_back(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    struct bz_rwlock *l = n->owner;
    (void)wakes;
    BZ_ASSERT(n->request.waiter.state == BZ_WAITER_GRANTED); /* futures are not notified */
    bz_fetch_sub_relaxed(&l->word, n->want); /* relaxed: nothing was done under it */
}

static bool rwlock_is_far(const struct bz_request *r)
{
    const struct bz_sync_op *n = BZ_CONTAINER_OF(r, const struct bz_sync_op, request);
    const struct bz_rwlock *l = n->owner;
    /* relaxed: a hint, it takes nothing */
    return (bz_load_relaxed(&l->word) & (obstacles_of(n->want) | QUEUED)) != 0;
}

static blitz_poll lock_future_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_poll poll = bz_sync_future_poll(f, waker);
    if (poll == BLITZ_READY && BZ_CONTAINER_OF(f, blitz_sync_future, future)->result == 0)
        bz_opened_begin();
    return poll;
}

static const struct bz_sync_op_ops reading = {
    .look = BZ_SYNC_OP_FUTURE_BY("rwlock: read", lock_future_poll),
    .request = BZ_SYNC_OP_REQUEST("rwlock: read", rwlock_enter, rwlock_is_far),
    .serve = rwlock_serve,
    .give_back = rwlock_give_back};
static const struct bz_sync_op_ops writing = {
    .look = BZ_SYNC_OP_FUTURE_BY("rwlock: write", lock_future_poll),
    .request = BZ_SYNC_OP_REQUEST("rwlock: write", rwlock_enter, rwlock_is_far),
    .serve = rwlock_serve,
    .give_back = rwlock_give_back};

/* ---- unlocking ---- */

/* Leave as a reader or as the writer (`what`). If only QUEUED remains in the word, serve the queue: I4. */
static inline void leave(struct bz_rwlock *l, uint64_t what)
{
    uint64_t was = bz_fetch_sub_release(&l->word, what); /* [R] */
    BZ_ASSERT(what == WRITER ? (was & WRITER) != 0 : was >= READER);
    if (BZ_UNLIKELY((was - what) == QUEUED) || BZ_SYNC_IS_DULL)
        bz_waitq_serve(&l->q, l, &reading);
}

/* Tasks whose faults are trapped count what they hold (opened.h): by calls at the very end, so that the other tasks pay for one
 * test and save no registers. */
static BZ_NOINLINE void leave_and_count(struct bz_rwlock *l, uint64_t what)
{
    leave(l, what);
    bz_opened_end();
}

static BZ_ALWAYS_INLINE void unlock(struct bz_rwlock *l, uint64_t what)
{
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (bz_opened_is_counted())
        leave_and_count(l, what);
    else
        leave(l, what);
}

void blitz_rwlock_read_unlock(blitz_rwlock *lock)
{
    unlock(of(lock), READER);
}

void blitz_rwlock_write_unlock(blitz_rwlock *lock)
{
    unlock(of(lock), WRITER);
}

void blitz_rwlock_downgrade(blitz_rwlock *lock)
{
    struct bz_rwlock *l = of(lock);
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    uint64_t was = bz_fetch_add_release(&l->word, READER - WRITER); /* [R] */
    BZ_ASSERT(was & WRITER);
    if (was & QUEUED || BZ_SYNC_IS_DULL)
        bz_waitq_serve(&l->q, l, &reading);
}

/* ---- locking ---- */

void blitz_rwlock_init(blitz_rwlock *lock)
{
    *lock = (blitz_rwlock)BLITZ_RWLOCK_INIT;
}

/* Try to lock without the wait queue. */
static inline bool grab(struct bz_rwlock *l, uint64_t want)
{
    uint64_t word = bz_load_relaxed(&l->word); /* relaxed: a first guess */
    while ((word & (obstacles_of(want) | QUEUED)) == 0)
        if (bz_cas_weak_acq_rlx(&l->word, &word, word + want)) /* [R] */
            return true;
    return false;
}

static BZ_NOINLINE int lock_slowly(struct bz_rwlock *l, uint64_t want, blitz_deadline until)
{
    if (!BZ_SYNC_IS_DULL) {
        const struct bz_os *os = bz_sync_os();
        for (int round = 0; round < BZ_RWLOCK_SPINS; round++) {
            bz_os_relax(os, (unsigned)round);
            if (grab(l, want))
                return 0;
        }
    }
    return bz_waitq_acquire(&l->q, l, want == READER ? &reading : &writing, want, until);
}

static BZ_ALWAYS_INLINE int lock_as(struct bz_rwlock *l, uint64_t want, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (!BZ_SYNC_IS_DULL && want == READER) {
        uint64_t was = bz_fetch_add_acquire(&l->word, READER); /* [R] */
        if (BZ_LIKELY((was & (WRITER | QUEUED)) == 0))
            return 0;
        bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
        leave(l, READER); /* a guest */
    }
    if (!BZ_SYNC_IS_DULL && want == WRITER && BZ_LIKELY(grab(l, WRITER)))
        return 0;
    return lock_slowly(l, want, until);
}

static BZ_NOINLINE int lock_and_count(struct bz_rwlock *l, uint64_t want, blitz_deadline until)
{
    int err = want == READER ? lock_as(l, READER, until) : lock_as(l, WRITER, until);
    if (err == 0)
        bz_opened_begin();
    return err;
}

int blitz_rwlock_read(blitz_rwlock *lock, blitz_deadline until)
{
    if (bz_opened_is_counted())
        return lock_and_count(of(lock), READER, until);
    return lock_as(of(lock), READER, until);
}

int blitz_rwlock_write(blitz_rwlock *lock, blitz_deadline until)
{
    if (bz_opened_is_counted())
        return lock_and_count(of(lock), WRITER, until);
    return lock_as(of(lock), WRITER, until);
}

static int try_lock(struct bz_rwlock *l, uint64_t want)
{
    if (!grab(l, want))
        return -EAGAIN;
    bz_opened_begin();
    return 0;
}

int blitz_rwlock_try_read(blitz_rwlock *lock)
{
    return try_lock(of(lock), READER);
}

int blitz_rwlock_try_write(blitz_rwlock *lock)
{
    return try_lock(of(lock), WRITER);
}

/* ---- as futures ---- */

void blitz_rwlock_read_future_init(blitz_sync_future *f, blitz_rwlock *lock)
{
    bz_sync_future_init(f, &of(lock)->q, of(lock), &reading, READER);
}

void blitz_rwlock_write_future_init(blitz_sync_future *f, blitz_rwlock *lock)
{
    bz_sync_future_init(f, &of(lock)->q, of(lock), &writing, WRITER);
}
