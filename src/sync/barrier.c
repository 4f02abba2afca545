/*
 * barrier.c - meetings, by number.
 *
 * Everything is under the lock of the wait queue. An arriving waiter joins the queue with the number of the current
 * meeting. The last arrival increments the number and so releases all waiters with an old number. Many futures are
 * released in batches, and meanwhile others may already arrive for the next meeting.
 *
 * A waiter that leaves the queue before its meeting is complete does not count as arrived. After that it cannot leave
 * any more: the others have counted on it.
 *
 * I1  arrived is the number of nodes in the queue that have the meeting's present number, and less than
 *     parties.
 *
 * No atomics: the lock of the wait queue guards everything.
 */
#include "blitz/barrier.h"

#include <assert.h>
#include <errno.h>

#include "sync/waitq.h"

struct bz_meeting {
    uint64_t parties; /* constant */
    uint64_t arrived; /* guarded by q.lock, as is */
    uint64_t number;
    struct bz_waitq q;
};

static_assert(sizeof(struct bz_meeting) <= sizeof(blitz_barrier), "it has room");

static struct bz_meeting *of(blitz_barrier *barrier)
{
    return (struct bz_meeting *)barrier;
}

/* ---- under the lock ---- */

static void barrier_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_meeting *b = owner;
    for (struct bz_sync_op *n; (n = bz_waitq_first(&b->q)) != NULL && n->since != b->number;) {
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        if (!bz_sync_op_give(n, wakes))
            n->request.waiter.state =
                BZ_WAITER_GRANTED; /* it was about to leave, but the others have counted on it */
    }
}

static bool barrier_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    struct bz_meeting *b = n->owner;
    if (b->arrived + 1 < b->parties) {
        b->arrived++;
        n->since = b->number;
        bz_sync_op_join(n);
        return false;
    }
    b->arrived = 0;
    b->number++;
    bz_set(&n->request.waiter.result, BLITZ_BARRIER_LEADER);
    barrier_serve(b, wakes);
    return true;
}

static bool barrier_leave(struct bz_sync_op *n)
{
    struct bz_meeting *b = n->owner;
    if (n->since != b->number)
        return false;
    BZ_ASSERT(b->arrived > 0); /* I1 */
    b->arrived--;
    return true;
}

static const struct bz_sync_op_ops meeting = {
    .look = BZ_SYNC_OP_FUTURE("barrier"),
    .request = BZ_SYNC_OP_REQUEST("barrier", barrier_enter, NULL),
    .serve = barrier_serve,
    .leave = barrier_leave};

/* ---- for users ---- */

void blitz_barrier_init(blitz_barrier *barrier, uint32_t parties)
{
    *barrier = (blitz_barrier)BLITZ_BARRIER_INIT(parties);
}

int blitz_barrier_wait(blitz_barrier *barrier, blitz_deadline until)
{
    return bz_waitq_acquire(&of(barrier)->q, of(barrier), &meeting, 0, until);
}

void blitz_barrier_wait_future_init(blitz_sync_future *f, blitz_barrier *barrier)
{
    bz_sync_future_init(f, &of(barrier)->q, of(barrier), &meeting, 0);
}
