/*
 * rwlock.c - readers counted in a word, a writer in a bit of it, and one line for both.
 *
 * The word: readers << 3 | TOLD | WRITER | QUEUED. While nobody stands in the line each operation is
 * one atomic instruction on it. QUEUED is set while somebody does and nobody of them is awake, and sends
 * everybody who comes to the end of the line: so a writer waits for those who read now and for nobody
 * who comes later. Whoever leaves and finds QUEUED alone serves the line.
 *
 * To serve is to tell the first one to try: QUEUED becomes TOLD, and until that one comes the lock is
 * anybody's. When it comes it has the lock, and sees to those behind it (a reader tells the next
 * reader, and so on), or goes back to the front of the line, with QUEUED. One that has waited for the
 * time of its patience is given the lock instead, and so are futures, which may be slow to come. So
 * whoever is first in line is passed for a millisecond at most, and as mutex.c does it, because what
 * is handed over is held by one who does not run yet: eight tasks on two CPUs with one write in a
 * hundred made a convoy of it, in which every write parked the other seven. (60 switches in a thousand
 * locks, and 45 ns of CPU time each; with telling 0.01, and 4.5.)
 *
 * Before it joins the line a writer waits for a moment for the readers to leave, with QUEUED unset,
 * because a reader that runs is done in nanoseconds and the line costs a switch. Readers that come
 * meanwhile go in before it; the moment is bounded, so it is no starvation.
 *
 * A reader adds itself first and looks then whether it may: a load before a CAS would wait for the
 * locked instruction before it (4.9 ns a lock and unlock, 4.2 with the addition, Go 4.4). One that came
 * in vain leaves by the same door as a real one: whoever brings the word to QUEUED alone serves the
 * line, be it only a guest, so a guest can delay a writer for a moment and never lose its turn.
 *
 * Rejected: reader counts spread over the CPUs (a writer must visit them all; a blitz_rwlock would
 * be kilobytes); a writer that is preferred to readers in line (it could starve them in turn).
 *
 * In the plain form every call takes the lock of the line, and nobody has patience.
 *
 * I1  WRITER -> no readers but guests, who have seen WRITER or QUEUED and are about to leave.
 * I2  Somebody is in the line -> QUEUED or TOLD. Both are changed under the lock of the line.
 * I3  With QUEUED set only serve lets anybody in, under the lock; others can only leave, and guests.
 * I4  Who leaves and brings the word to QUEUED alone serves the line.
 * I5  TOLD -> exactly one node is told, and QUEUED is not set. It clears TOLD when it enters again.
 *
 * [R] unlock: word release -> lock, serve: word acquire   a writer sees what readers and writers before
 *     it have done, a reader what writers have. Whoever is let in by serve gets it by its wait or
 *     the lock of the line
 */
#include "blitz/rwlock.h"

#include <assert.h>
#include <errno.h>

#include "sync/waitq.h"

enum { QUEUED = 1, WRITER = 2, TOLD = 4, READER = 8 };

/* Turns of the spin before the line. */
#if !defined(BZ_RWLOCK_SPINS)
#define BZ_RWLOCK_SPINS 4
#endif

/* How long one in line may be passed. */
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

/* What keeps one who wants to come in as a reader, or as a writer, out. */
static uint64_t obstacles_of(uint64_t want)
{
    return want == READER ? WRITER : ~(uint64_t)(QUEUED | TOLD);
}

/* ---- under the lock of the line ---- */

/* Has it been passed for long enough? */
static bool is_out_of_patience(const struct bz_node *n)
{
    if (BZ_SYNC_IS_DULL || n->request.waiter.is_polled)
        return true;
    return bz_os_now(bz_sync_os()) >= n->since + BZ_RWLOCK_PATIENCE_NS && !BZ_BROKEN(94);
}

/* The first in line, who can have the lock, is to try: I5. False: it had gone. */
static bool tell(struct bz_rwlock *l, struct bz_node *n, struct bz_wakelist *wakes)
{
    if (!bz_node_tell(n, wakes))
        return false;
    bz_fetch_add_relaxed(&l->word, TOLD - QUEUED); /* relaxed: flags; the lock */
    return true;
}

static void rwlock_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_rwlock *l = owner;
    if (bz_load_relaxed(&l->word) & TOLD) /* relaxed: the lock. It will see to them, I5 */
        return;
    for (struct bz_node *n; (n = bz_waitq_first(&l->q)) != NULL;) {
        uint64_t want = n->want;
        /* relaxed: I3; the addition below acquires, and whoever leaves after this look serves */
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
        bz_fetch_add_acquire(&l->word, want); /* [R] before it is woken, and may unlock */
        if (!bz_node_give(n, wakes))
            /* relaxed: nothing was done under it; stronger than needed: in a model, where nobody leaves
             * at the same moment; seeds and stress see to that */
            bz_fetch_sub_relaxed(&l->word, want);
    }
    bz_fetch_and_relaxed(&l->word, ~(uint64_t)QUEUED); /* relaxed: I2, a flag; the lock */
}

/* One that was told has the lock: those behind it are its to see to. */
static bool rwlock_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_node *n = bz_node_of(r);
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
        } else if (kept & TOLD || /* it will see to us, too */
                   bz_cas_weak_rlx_rlx(&l->word, &word, kept | QUEUED)) { /* relaxed: the lock */
            if (!was_told)
                n->since = bz_os_now(bz_sync_os());
            bz_node_join(n);
            return false;
        }
    }
    n->request.waiter.state = BZ_WAITER_OUT;
    if (queued)
        rwlock_serve(l, wakes);
    return true;
}

static void rwlock_give_back(struct bz_node *n, struct bz_wakelist *wakes)
{
    struct bz_rwlock *l = n->owner;
    (void)wakes;
    BZ_ASSERT(n->request.waiter.state == BZ_WAITER_GRANTED); /* futures are not told */
    bz_fetch_sub_relaxed(&l->word, n->want); /* relaxed: nothing was done under it */
}

static bool rwlock_is_far(const struct bz_request *r)
{
    const struct bz_node *n = BZ_CONTAINER_OF(r, const struct bz_node, request);
    const struct bz_rwlock *l = n->owner;
    /* relaxed: a look, nothing is taken */
    return (bz_load_relaxed(&l->word) & (obstacles_of(n->want) | QUEUED)) != 0;
}

static const struct bz_node_ops reading = {
    .look = BZ_NODE_FUTURE("rwlock: read"),
    .request = BZ_NODE_REQUEST("rwlock: read", rwlock_enter, rwlock_is_far),
    .serve = rwlock_serve,
    .give_back = rwlock_give_back};
static const struct bz_node_ops writing = {
    .look = BZ_NODE_FUTURE("rwlock: write"),
    .request = BZ_NODE_REQUEST("rwlock: write", rwlock_enter, rwlock_is_far),
    .serve = rwlock_serve,
    .give_back = rwlock_give_back};

/* ---- unlocking ---- */

/* Leave as what one was. If that lets somebody in, the line is served: I4. */
static inline void leave(struct bz_rwlock *l, uint64_t what)
{
    uint64_t was = bz_fetch_sub_release(&l->word, what); /* [R] */
    BZ_ASSERT(what == WRITER ? (was & WRITER) != 0 : was >= READER);
    if (BZ_UNLIKELY((was - what) == QUEUED) || BZ_SYNC_IS_DULL)
        bz_waitq_serve(&l->q, l, &reading);
}

void blitz_rwlock_read_unlock(blitz_rwlock *lock)
{
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    leave(of(lock), READER);
}

void blitz_rwlock_write_unlock(blitz_rwlock *lock)
{
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    leave(of(lock), WRITER);
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

/* One try, without the line. */
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

int blitz_rwlock_read(blitz_rwlock *lock, blitz_deadline until)
{
    struct bz_rwlock *l = of(lock);
    bz_look_up(); /* ask.h */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (!BZ_SYNC_IS_DULL) {
        uint64_t was = bz_fetch_add_acquire(&l->word, READER); /* [R] */
        if (BZ_LIKELY((was & (WRITER | QUEUED)) == 0))
            return 0;
        bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
        leave(l, READER); /* a guest */
    }
    return lock_slowly(l, READER, until);
}

int blitz_rwlock_write(blitz_rwlock *lock, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (!BZ_SYNC_IS_DULL && BZ_LIKELY(grab(of(lock), WRITER)))
        return 0;
    return lock_slowly(of(lock), WRITER, until);
}

int blitz_rwlock_try_read(blitz_rwlock *lock)
{
    return grab(of(lock), READER) ? 0 : -EAGAIN;
}

int blitz_rwlock_try_write(blitz_rwlock *lock)
{
    return grab(of(lock), WRITER) ? 0 : -EAGAIN;
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
