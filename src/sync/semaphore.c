/*
 * semaphore.c - permits in a word, and a wait queue for acquires that found too few.
 *
 * The word: permits << 2 | CLOSED | QUEUED. While the queue is empty, acquire and release are one CAS each. QUEUED is
 * set while there are waiters. It sends every acquire to the end of the queue, so that no waiter is passed. It sends
 * every release to the queue's lock, where serve hands off the permits to the first waiters. The word counts the
 * permits at all times, also while QUEUED is set; serve subtracts them before it grants.
 *
 * Releasing is a CAS loop and not an addition, so that a release beyond the limit is refused without
 * having happened; uncontended the two cost the same.
 *
 * In the plain form every call takes the lock of the wait queue.
 *
 * I1  Permits in the word + permits given and not released are what was made and released.
 * I2  A waiter is in the queue -> QUEUED. Cleared under the lock when the queue is empty.
 * I3  With QUEUED set only serve lowers the number of permits, under the lock.
 *
 * [P] release: word release -> acquire, serve: word acquire   the next holder of a permit sees the writes of the
 *     last one. A waiter gets this from serve, through its wait or the lock
 */
#include "blitz/semaphore.h"

#include <assert.h>
#include <errno.h>

#include "sync/waitq.h"

enum { QUEUED = 1, CLOSED = 2, FLAGS = 3, SHIFT = 2 };

struct bz_semaphore {
    bz_atomic(uint64_t) word;
    struct bz_waitq q;
};

static_assert(sizeof(struct bz_semaphore) <= sizeof(blitz_semaphore), "it has room");

static uint64_t permits_of(uint64_t word)
{
    return word >> SHIFT;
}

/* True if the word has n permits and none of the flags in `obstacles`. */
static bool has_permits(uint64_t word, uint64_t n, uint64_t obstacles)
{
    return (word & obstacles) == 0 && permits_of(word) >= n;
}

/* ---- under the lock ---- */

static bool semaphore_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    struct bz_semaphore *s = n->owner;
    uint64_t word = bz_load_relaxed(&s->word); /* relaxed: a first guess */
    (void)wakes;
    for (;;) {
        if (word & CLOSED) {
            bz_set(&n->request.waiter.result, -EPIPE);
            return true;
        }
        if (has_permits(word, n->want, QUEUED)) {
            if (bz_cas_weak_acq_rlx(&s->word, &word, word - (n->want << SHIFT))) /* [P] */
                return true;
        } else if (bz_cas_weak_rlx_rlx(&s->word, &word, word | QUEUED)) { /* relaxed: the lock */
            bz_sync_op_join(n);
            return false;
        }
    }
}

/* Subtract the permits and grant them. Put them back if the node's owner has left. */
static bool give_permits(struct bz_semaphore *s, struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    uint64_t taken = n->want << SHIFT;
    bz_fetch_sub_acquire(&s->word, taken); /* [P] I3 */
    if (bz_sync_op_give(n, wakes))
        return true;
    /* relaxed: nothing was done with them; stronger than needed: in a model, where no thread releases
     * at the same moment; seeds and stress cover that */
    bz_fetch_add_relaxed(&s->word, taken);
    return false;
}

static void semaphore_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_semaphore *s = owner;
    for (struct bz_sync_op *n; (n = bz_waitq_first(&s->q)) != NULL;) {
        uint64_t word = bz_load_relaxed(&s->word); /* relaxed: I3; a release serves what it adds */
        bool is_closed = word & CLOSED;
        if (!is_closed && !has_permits(word, n->want, 0))
            return;
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        if (is_closed) {
            bz_set(&n->request.waiter.result, -EPIPE);
            (void)!bz_sync_op_give(n, wakes);
        } else {
            (void)give_permits(s, n, wakes);
        }
    }
    bz_fetch_and_relaxed(&s->word, ~(uint64_t)QUEUED); /* relaxed: I2, a flag; the lock */
}

static void semaphore_give_back(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    struct bz_semaphore *s = n->owner;
    (void)wakes;
    if (bz_get(&n->request.waiter.result) == 0)
        bz_fetch_add_relaxed(&s->word, n->want << SHIFT); /* relaxed: nothing was done with them */
}

static bool semaphore_is_far(const struct bz_request *r)
{
    const struct bz_sync_op *n = BZ_CONTAINER_OF(r, const struct bz_sync_op, request);
    const struct bz_semaphore *s = n->owner;
    uint64_t word = bz_load_relaxed(&s->word); /* relaxed: a hint, it takes nothing */
    return !(word & CLOSED) && !has_permits(word, n->want, FLAGS);
}

static const struct bz_sync_op_ops acquiring = {
    .look = BZ_SYNC_OP_FUTURE("semaphore"),
    .request = BZ_SYNC_OP_REQUEST("semaphore", semaphore_enter, semaphore_is_far),
    .serve = semaphore_serve,
    .give_back = semaphore_give_back};

/* ---- for users ---- */

void blitz_semaphore_init(blitz_semaphore *semaphore, uint32_t permits)
{
    *semaphore = (blitz_semaphore)BLITZ_SEMAPHORE_INIT(permits);
}

static struct bz_semaphore *of(blitz_semaphore *semaphore)
{
    return (struct bz_semaphore *)semaphore;
}

int blitz_semaphore_try_acquire(blitz_semaphore *semaphore, uint32_t n)
{
    struct bz_semaphore *s = of(semaphore);
    uint64_t word = bz_load_relaxed(&s->word); /* relaxed: a first guess */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    while (has_permits(word, n, FLAGS))
        if (bz_cas_weak_acq_rlx(&s->word, &word, word - ((uint64_t)n << SHIFT))) /* [P] */
            return 0;
    return word & CLOSED ? -EPIPE : -EAGAIN;
}

int blitz_semaphore_acquire(blitz_semaphore *semaphore, uint32_t n, blitz_deadline until)
{
    struct bz_semaphore *s = of(semaphore);
    bz_look_up(); /* ask.h */
    if (!BZ_SYNC_IS_DULL) {
        int err = blitz_semaphore_try_acquire(semaphore, n);
        if (BZ_LIKELY(err != -EAGAIN))
            return err;
    }
    return bz_waitq_acquire(&s->q, s, &acquiring, n, until);
}

int blitz_semaphore_release(blitz_semaphore *semaphore, uint32_t n)
{
    struct bz_semaphore *s = of(semaphore);
    uint64_t word = bz_load_relaxed(&s->word); /* relaxed: a first guess */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    do {
        if (n > BLITZ_PERMITS_MAX - permits_of(word))
            return -EOVERFLOW;
    } while (!bz_cas_weak_rel_rlx(&s->word, &word, word + ((uint64_t)n << SHIFT))); /* [P] */
    if (word & QUEUED || BZ_SYNC_IS_DULL)
        bz_waitq_serve(&s->q, s, &acquiring);
    return 0;
}

void blitz_semaphore_close(blitz_semaphore *semaphore)
{
    struct bz_semaphore *s = of(semaphore);
    bz_fetch_or_relaxed(&s->word, CLOSED); /* relaxed: a flag; waiters get it by the lock */
    bz_waitq_serve(&s->q, s, &acquiring);
}

uint32_t blitz_semaphore_permits(const blitz_semaphore *semaphore)
{
    const struct bz_semaphore *s = (const struct bz_semaphore *)semaphore;
    return (uint32_t)permits_of(bz_load_relaxed(&s->word)); /* relaxed: outdated at once */
}

void blitz_semaphore_acquire_future_init(blitz_sync_future *f, blitz_semaphore *semaphore,
                                         uint32_t n)
{
    struct bz_semaphore *s = of(semaphore);
    bz_sync_future_init(f, &s->q, s, &acquiring, n);
}
