/*
 * delay_queue.c - values that are due at a time: a heap, and one timer for its first entry.
 *
 * The timer (blitz/timer.h) is set for the first entry. Receivers take turns at a semaphore with one permit; the one
 * with the turn, the leader, takes what is due or waits for the timer. So one receiver is woken for each value, in
 * the order in which the receivers came. The logic is a future; the blocking call tries, and then awaits the future.
 *
 * Setting the timer wakes the leader, which may be foreign code, so it happens after the lock is dropped. Two threads
 * that change the first entry may set the timer in the wrong order. So each thread looks again after it has set the
 * timer: the last of them finds the time that it has set, or sets the right one (follow).
 *
 * A lost wake-up is impossible: the leader looks at the heap and then waits for the timer. If an earlier entry comes in
 * between, its inserter sets the timer after that, and the timer wakes the leader, or is ready at its next poll.
 *
 * Rejected: each receiver sleeps until the first entry is due. All of them would wake for one value.
 *
 * A leader that receives a value may be waiting for the timer still: an insert has woken it. It cancels that wait, or the
 * timer would keep its waker and the wheel a sleep in the queue's memory.
 *
 * I1  When no thread is between a change and the end of its follow(), the timer is set for the time of next_time().
 */
#include <errno.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "base/check.h"
#include "blitz/delay_queue.h"
#include "blitz/semaphore.h"
#include "chan/delay_heap.h"
#include "os/lock.h"
#include "wait/waker.h"

enum { FIRST_CAPACITY = 16 };

struct blitz_delay_queue {
    const struct bz_os *os; /* constant */
    struct bz_lock lock;    /* guards the next two */
    struct bz_delay_heap heap;
    bool is_closed;
    bz_atomic(uint32_t) refs;
    blitz_semaphore turn; /* of the receivers */
    blitz_timer timer;    /* awaited by the leader; I1 */
};

static void lock(struct blitz_delay_queue *q)
{
    bz_lock_take(&q->lock, q->os);
}

static void unlock(struct blitz_delay_queue *q)
{
    bz_lock_drop(&q->lock, q->os);
}

/* Under the lock: when the leader has something to do. */
static uint64_t next_time(const struct blitz_delay_queue *q)
{
    if (q->heap.count > 0)
        return bz_delay_heap_first(&q->heap);
    return q->is_closed ? 0 : BLITZ_FOREVER;
}

/* Set the timer for the next time, until it is right. */
static void follow(struct blitz_delay_queue *q)
{
    for (;;) {
        lock(q);
        uint64_t when = next_time(q);
        unlock(q);
        bz_os_delay(q->os, BZ_OS_AT_PUBLISH);
        if (blitz_timer_when(&q->timer) == when)
            return;
        blitz_timer_reset(&q->timer, when);
    }
}

/* Drop the lock after a change. `before` is what next_time() was before it. */
static void unlock_changed(struct blitz_delay_queue *q, uint64_t before)
{
    bool is_changed = next_time(q) != before;
    unlock(q);
    if (is_changed)
        follow(q);
}

/* ---- its life ---- */

int blitz_delay_queue_new(size_t value_size, blitz_delay_queue **out)
{
    if (value_size > PTRDIFF_MAX / 2 || out == NULL)
        return -EINVAL;
    struct blitz_delay_queue *q =
        bz_alloc(&bz_allocator_libc, sizeof *q, _Alignof(struct blitz_delay_queue));
    if (q == NULL)
        return -ENOMEM;
    *q = (struct blitz_delay_queue){.os = bz_os_here()};
    bz_lock_init(&q->lock);
    bz_delay_heap_init(&q->heap, value_size);
    bz_atomic_init(&q->refs, 1);
    blitz_semaphore_init(&q->turn, 1);
    blitz_timer_init(&q->timer, BLITZ_FOREVER);
    *out = q;
    return 0;
}

blitz_delay_queue *blitz_delay_queue_ref(blitz_delay_queue *q)
{
    bz_fetch_add_relaxed(&q->refs, 1); /* relaxed: the caller has a reference */
    return q;
}

static void block_free(const struct bz_delay_heap *h, void *block, uint32_t capacity)
{
    if (block != NULL)
        bz_free(&bz_allocator_libc, block, bz_delay_heap_bytes(h, capacity));
}

void blitz_delay_queue_unref(blitz_delay_queue *q)
{
    /* acq_rel: the last one sees what the others have written */
    if (q == NULL || bz_fetch_sub_acqrel(&q->refs, 1) != 1)
        return;
    BZ_CHECK(blitz_semaphore_permits(&q->turn) == 1, "delay queue %p: freed while a receiver waits",
             (void *)q);
    block_free(&q->heap, q->heap.slot, q->heap.capacity);
    bz_free(&bz_allocator_libc, q, sizeof *q);
}

/* ---- entries ---- */

/* Make room for more than `capacity` entries, which are all in use. Called with the lock, returns with it. */
static int grow(struct blitz_delay_queue *q)
{
    uint32_t had = q->heap.capacity, wanted = had > 0 ? had * 2 : FIRST_CAPACITY;
    size_t bytes = wanted <= BZ_DELAY_MAX ? bz_delay_heap_bytes(&q->heap, wanted) : 0;
    unlock(q);
    void *block = bytes > 0 ? bz_alloc(&bz_allocator_libc, bytes, _Alignof(max_align_t)) : NULL;
    lock(q);
    if (q->heap.capacity != had) { /* another thread has made room */
        unlock(q);
        block_free(&q->heap, block, wanted);
    } else if (block == NULL) {
        return -ENOMEM;
    } else {
        block = bz_delay_heap_grow(&q->heap, wanted, block);
        unlock(q);
        block_free(&q->heap, block, had);
    }
    lock(q);
    return 0;
}

int blitz_delay_queue_insert(blitz_delay_queue *q, const void *value, blitz_deadline when,
                             blitz_delay_key *key)
{
    int err = 0;
    lock(q);
    while (err == 0 && !q->is_closed && bz_delay_heap_is_full(&q->heap))
        err = grow(q);
    if (q->is_closed)
        err = -EPIPE;
    if (err != 0) {
        unlock(q);
        return err;
    }
    uint64_t before = next_time(q), made = bz_delay_heap_insert(&q->heap, value, when);
    unlock_changed(q, before);
    if (key != NULL)
        *key = made;
    return 0;
}

int blitz_delay_queue_move(blitz_delay_queue *q, blitz_delay_key key, blitz_deadline when)
{
    lock(q);
    uint64_t before = next_time(q);
    bool is_found = bz_delay_heap_move(&q->heap, key, when);
    unlock_changed(q, before);
    return is_found ? 0 : -ENOENT;
}

int blitz_delay_queue_remove(blitz_delay_queue *q, blitz_delay_key key, void *value)
{
    lock(q);
    uint64_t before = next_time(q);
    bool is_found = bz_delay_heap_remove(&q->heap, key, value);
    unlock_changed(q, before);
    return is_found ? 0 : -ENOENT;
}

void blitz_delay_queue_close(blitz_delay_queue *q)
{
    lock(q);
    uint64_t before = next_time(q);
    q->is_closed = true;
    unlock_changed(q, before);
}

size_t blitz_delay_queue_length(blitz_delay_queue *q)
{
    lock(q);
    size_t length = q->heap.count;
    unlock(q);
    return length;
}

/* ---- receiving ---- */

int blitz_delay_queue_try_recv(blitz_delay_queue *q, void *value)
{
    int rc = -EAGAIN;
    lock(q);
    uint64_t before = next_time(q);
    if (q->heap.count == 0) {
        rc = q->is_closed ? -EPIPE : -EAGAIN;
    } else if (before != BLITZ_FOREVER && before <= blitz_now()) {
        bz_delay_heap_take(&q->heap, value);
        rc = 0;
    }
    unlock_changed(q, before);
    return rc;
}

enum { NEW, TURN, LEADER, OVER };

static blitz_delay_queue_future *of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_delay_queue_future, future);
}

/* The leader leaves: it waits for the timer no more, and the next receiver has the turn. */
static void stop_leading(blitz_delay_queue_future *f)
{
    f->of->timer.future.ops->cancel(&f->of->timer.future);
    (void)blitz_semaphore_release(&f->of->turn, 1); /* cannot fail: there is one permit */
    f->state = OVER;
}

static blitz_poll lead(blitz_delay_queue_future *f, const blitz_waker *waker)
{
    blitz_future *timer = &f->of->timer.future;
    for (;;) {
        int rc = blitz_delay_queue_try_recv(f->of, f->value);
        if (rc != -EAGAIN) {
            f->result = rc;
            stop_leading(f);
            return BLITZ_READY;
        }
        if (timer->ops->poll(timer, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        follow(f->of); /* the timer may still be set for an entry that is gone */
    }
}

static blitz_poll delay_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_delay_queue_future *f = of(future);
    if (f->state == NEW) {
        f->state = TURN;
        blitz_semaphore_acquire_future_init(&f->turn, &f->of->turn, 1);
    }
    if (f->state == TURN) {
        if (f->turn.future.ops->poll(&f->turn.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        f->state = LEADER;
    }
    return f->state == LEADER ? lead(f, waker) : BLITZ_READY;
}

static void delay_cancel(blitz_future *future)
{
    blitz_delay_queue_future *f = of(future);
    if (f->state == LEADER)
        stop_leading(f);
    else if (f->state == TURN)
        f->turn.future.ops->cancel(&f->turn.future);
    f->state = OVER;
}

static int delay_output(blitz_future *future)
{
    return of(future)->result;
}

void blitz_delay_queue_recv_future_init(blitz_delay_queue_future *f, blitz_delay_queue *q,
                                        void *value)
{
    static const blitz_future_ops ops = {"delay queue", BLITZ_REVOCABLE, delay_poll, delay_cancel,
                                         delay_output};
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    f->state = NEW;
    f->of = q;
    f->value = value;
}

int blitz_delay_queue_recv(blitz_delay_queue *q, void *value, blitz_deadline until)
{
    blitz_delay_queue_future f;
    blitz_delay_queue_recv_future_init(&f, q, value);
    int rc = blitz_await(&f.future, until);
    return rc == 0 ? f.result : rc;
}
