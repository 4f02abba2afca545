/*
 * gate.c - wait until a number is 0: latches, wait groups and events.
 *
 * The word: count << 1 | QUEUED. The gate is open while the count is 0. A latch counts down, a group up
 * and down, an event is a count of 1 or 0. QUEUED says that a waiter is in the queue, or was there when the
 * gate was last opened. A thread that brings the count to 0 and sees QUEUED releases all waiters.
 *
 * A waiter may free the gate as soon as its wait returns. So the opener's last access must come before the
 * waiter returns:
 *
 *   empty queue       the CAS that opened the gate was the last access
 *   waiters           the opener serves the queue under its lock, and dropping the lock is the last access. A
 *                     woken waiter takes the lock once more before it returns (waitq.c, I3). A waiter
 *                     that comes now must not see an open gate without having had the lock: QUEUED
 *                     stays set until a waiter clears it under the lock
 *   many futures      the opener releases one batch and no more: it may not take the lock again. The
 *                     released waiters release the rest (waitq.c, I4). A waiter that gives up before
 *                     the chain reaches it finds the opening that it waited for, and returns 0
 *
 * If QUEUED is set, the opener brings the count to 0 under the lock, too. Otherwise a waiter that gives up could find
 * an open gate between the CAS and the lock and clear QUEUED. It could then free the gate that the opener is about to
 * lock.
 *
 * In the plain form every call takes the lock of the wait queue.
 *
 * I1  A waiter is in the queue -> QUEUED.
 * I2  A gate with QUEUED set is opened under the lock of the wait queue.
 *
 * [G] down: word release -> wait, open: word acquire   a waiter that returns sees everything that came before any of
 *     the counting. A released waiter has not read the word: the opener has read it for the waiter
 */
#include <assert.h>
#include <errno.h>

#include "blitz/event.h"
#include "blitz/latch.h"
#include "blitz/wait_group.h"
#include "sync/waitq.h"

enum { QUEUED = 1, ONE = 2 };

struct bz_gate {
    bz_atomic(uint64_t) word;
    struct bz_waitq q;
    uint64_t openings; /* openings with waiters in the queue; guarded by q.lock */
};

static_assert(sizeof(struct bz_gate) <= sizeof(blitz_latch), "it has room");
static_assert(sizeof(struct bz_gate) <= sizeof(blitz_wait_group), "it has room");
static_assert(sizeof(struct bz_gate) <= sizeof(blitz_event), "it has room");

static bool is_open(uint64_t word)
{
    return word < ONE;
}

/* ---- under the lock ---- */

/* Release the waiters that were in the queue when the gate was opened, even if the gate is shut again. */
static void gate_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_gate *g = owner;
    for (struct bz_sync_op *n; (n = bz_waitq_first(&g->q)) != NULL && n->since != g->openings;) {
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        (void)!bz_sync_op_give(n, wakes); /* false: the waiter has left */
    }
}

static bool gate_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    struct bz_gate *g = n->owner;
    uint64_t word = bz_load_relaxed(&g->word); /* relaxed: a first guess */
    (void)wakes;
    for (;;) {
        if (is_open(word)) {
            uint64_t to = bz_waitq_is_empty(&g->q) ? 0 : QUEUED;
            if (bz_cas_weak_acq_rlx(&g->word, &word, to)) /* [G] */
                return true;
        } else if (bz_cas_weak_rlx_rlx(&g->word, &word, word | QUEUED)) { /* relaxed: the lock */
            n->since = g->openings;
            bz_sync_op_join(n);
            return false;
        }
    }
}

/* End the wait by a deadline or a cancel. Return false if the gate was opened since the node joined. */
static bool gate_leave(struct bz_sync_op *n)
{
    return n->since == ((const struct bz_gate *)n->owner)->openings;
}

static bool gate_is_far(const struct bz_request *r)
{
    const struct bz_sync_op *n = BZ_CONTAINER_OF(r, const struct bz_sync_op, request);
    const struct bz_gate *g = n->owner;
    return !is_open(bz_load_relaxed(&g->word)); /* relaxed: a hint, it releases no waiter */
}

static const struct bz_sync_op_ops waiting_for_event = {
    .look = BZ_SYNC_OP_FUTURE("event"),
    .request = BZ_SYNC_OP_REQUEST_LAST("event", gate_enter, gate_is_far),
    .serve = gate_serve,
    .leave = gate_leave,
    .is_last_to_leave = true};
static const struct bz_sync_op_ops waiting_for_latch = {
    .look = BZ_SYNC_OP_FUTURE("latch"),
    .request = BZ_SYNC_OP_REQUEST_LAST("latch", gate_enter, gate_is_far),
    .serve = gate_serve,
    .leave = gate_leave,
    .is_last_to_leave = true};
static const struct bz_sync_op_ops waiting_for_group = {
    .look = BZ_SYNC_OP_FUTURE("wait group"),
    .request = BZ_SYNC_OP_REQUEST_LAST("wait group", gate_enter, gate_is_far),
    .serve = gate_serve,
    .leave = gate_leave,
    .is_last_to_leave = true};

/* ---- the gate ---- */

static void gate_init(struct bz_gate *g, uint64_t count)
{
    *g = (struct bz_gate){.q = {.inside = {NULL, NULL}}};
    bz_atomic_init(&g->word, count * ONE);
}

static int gate_wait(struct bz_gate *g, const struct bz_sync_op_ops *ops, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (!BZ_SYNC_IS_DULL && bz_load_acquire(&g->word) == 0) /* [G] and QUEUED is not set */
        return 0;
    return bz_waitq_acquire(&g->q, g, ops, 0, until);
}

/* Bring the count to 0 under the lock, because QUEUED is set: I2. The word may have changed, or another thread may
 * have opened the gate. Then return false, and the caller retries. */
static BZ_NOINLINE bool open_locked(struct bz_gate *g, uint64_t word)
{
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&g->q, os);
    bool is_ours = bz_cas_strong_acqrel_rlx(&g->word, &word, QUEUED); /* [G] */
    if (is_ours) {
        g->openings++;
        gate_serve(g, &wakes);
    }
    bz_waitq_end(&g->q, g, &waiting_for_event, &wakes, os);
    return is_ours;
}

/* Count down by n. Return false if the count is less than n. */
static bool gate_down(struct bz_gate *g, uint64_t n)
{
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    uint64_t word = bz_load_relaxed(&g->word); /* relaxed: a first guess */
    for (;;) {
        uint64_t to = word - n * ONE;
        if (word / ONE < n)
            return false;
        if (n == 0)
            return true;
        if (is_open(to) && (to == QUEUED || BZ_SYNC_IS_DULL)) {
            if (open_locked(g, word))
                return true;
            word = bz_load_relaxed(&g->word);                  /* relaxed: a guess again */
        } else if (bz_cas_weak_rel_rlx(&g->word, &word, to)) { /* [G] */
            return true;
        }
    }
}

/* Count up by n. Return false if the sum would exceed `most`. */
static bool gate_up(struct bz_gate *g, uint64_t n, uint64_t most)
{
    uint64_t word = bz_load_relaxed(&g->word); /* relaxed: a first guess */
    do {
        if (n > most - word / ONE)
            return false;
    } while (!bz_cas_weak_rlx_rlx(&g->word, &word, word + n * ONE)); /* relaxed: it only shuts */
    return true;
}

static uint32_t gate_left(struct bz_gate *g)
{
    return (uint32_t)(bz_load_acquire(&g->word) / ONE); /* [G] */
}

/* ---- an event: a count of 1 while it is not set ---- */

void blitz_event_init(blitz_event *e)
{
    gate_init((struct bz_gate *)e, 1);
}

int blitz_event_wait(blitz_event *e, blitz_deadline until)
{
    return gate_wait((struct bz_gate *)e, &waiting_for_event, until);
}

void blitz_event_set(blitz_event *e)
{
    (void)gate_down((struct bz_gate *)e, 1);
}

void blitz_event_reset(blitz_event *e)
{
    (void)gate_up((struct bz_gate *)e, 1, 1);
}

bool blitz_event_is_set(blitz_event *e)
{
    return gate_left((struct bz_gate *)e) == 0;
}

void blitz_event_wait_future_init(blitz_sync_future *f, blitz_event *e)
{
    struct bz_gate *g = (struct bz_gate *)e;
    bz_sync_future_init(f, &g->q, g, &waiting_for_event, 0);
}

/* ---- a latch ---- */

void blitz_latch_init(blitz_latch *l, uint32_t n)
{
    gate_init((struct bz_gate *)l, n);
}

int blitz_latch_count_down(blitz_latch *l, uint32_t n)
{
    return gate_down((struct bz_gate *)l, n) ? 0 : -EINVAL;
}

int blitz_latch_wait(blitz_latch *l, blitz_deadline until)
{
    return gate_wait((struct bz_gate *)l, &waiting_for_latch, until);
}

uint32_t blitz_latch_left(blitz_latch *l)
{
    return gate_left((struct bz_gate *)l);
}

void blitz_latch_wait_future_init(blitz_sync_future *f, blitz_latch *l)
{
    struct bz_gate *g = (struct bz_gate *)l;
    bz_sync_future_init(f, &g->q, g, &waiting_for_latch, 0);
}

/* ---- a wait group ---- */

void blitz_wait_group_init(blitz_wait_group *group)
{
    gate_init((struct bz_gate *)group, 0);
}

int blitz_wait_group_add(blitz_wait_group *group, uint32_t n)
{
    return gate_up((struct bz_gate *)group, n, UINT32_MAX) ? 0 : -EOVERFLOW;
}

int blitz_wait_group_done(blitz_wait_group *group)
{
    return gate_down((struct bz_gate *)group, 1) ? 0 : -EINVAL;
}

int blitz_wait_group_wait(blitz_wait_group *group, blitz_deadline until)
{
    return gate_wait((struct bz_gate *)group, &waiting_for_group, until);
}

uint32_t blitz_wait_group_left(blitz_wait_group *group)
{
    return gate_left((struct bz_gate *)group);
}

void blitz_wait_group_wait_future_init(blitz_sync_future *f, blitz_wait_group *group)
{
    struct bz_gate *g = (struct bz_gate *)group;
    bz_sync_future_init(f, &g->q, g, &waiting_for_group, 0);
}
