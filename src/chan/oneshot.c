/*
 * oneshot.c - one value, once, between two ends.
 *
 * One word records the events. Each of its bits is set once and by one side:
 *
 *   VALUE           the value is there                         by the sender
 *   CLOSED          there will be none                         by the sender, instead
 *   SENDER_GONE     the sender will not touch it any more      by the sender, last
 *   RECEIVER_GONE   the receiver will not touch it any more    by the receiver, last
 *   WAITS           a waiter is registered: take the lock      by the receiver, under the lock
 *   LEAVING         the receiver will take no value            by the receiver, if CLOSING is set
 *   CLOSING         a sender waited for the receiver's end     by the sender, under the lock
 *
 * The end that leaves second frees the memory. The common case takes no lock: a sender that finds no waiter sets VALUE
 * and SENDER_GONE by one CAS, and a receiver that finds both has nothing left to announce. With WAITS the sender takes
 * the lock, wakes, drops the lock, and only then sets SENDER_GONE: until then the memory stays.
 * The plain form always takes that path.
 *
 * A sender may wait until the receiver has gone (closed.h). It sets CLOSING first, once and for all. A receiver that finds
 * CLOSING leaves in the same three steps as the sender: it sets LEAVING, wakes under the lock, and only then sets
 * RECEIVER_GONE. Without CLOSING it sets RECEIVER_GONE alone.
 *
 * Rejected: a channel of capacity 1 (four locked instructions instead of one, and it does not know
 * which end is the last).
 *
 * I1  `waiter` is guarded by the lock; WAITS is set if and only if it was not NULL once.
 * I2  After its GONE bit is set an end touches nothing, unless the bit of the other end was set before.
 * I4  `closing` is guarded by the lock, and empty memory until CLOSING is set. Of LEAVING and VALUE, the one that is set
 *     first decides whether the value was sent.
 * I3  The sender's claim is its last access to a blocking waiter (wait/waiter.h, I2): the receiver continues, and
 *     leaves the frame, without the lock.
 *
 * [A] send: word release -> receive: word acquire           the value was written before
 * [B] gone: word acq_rel -> gone: word acq_rel              all uses come before the free
 */
#include <assert.h>
#include <errno.h>

#include "blitz/oneshot.h"
#include "park/closed.h"
#include "chan/copy.h"
#include "life/small_block.h"
#include "park/request.h"
#include "proc/ask.h"
#include "wait/waker.h"

enum {
    VALUE = 1,
    CLOSED = 2,
    SENDER_GONE = 4,
    RECEIVER_GONE = 8,
    WAITS = 16,
    LEAVING = 32,
    CLOSING = 64
};

#if defined(BZ_PLAIN)
enum { IS_PLAIN = 1 };
#else
enum { IS_PLAIN = 0 };
#endif

struct blitz_oneshot {
    bz_atomic(uint32_t) word;
    struct bz_lock lock;      /* rank WAIT */
    struct bz_waiter *waiter; /* I1 */
    struct bz_list closing;   /* senders that wait for the receiver's end: I4 */
    bool is_taken;            /* the value was received; used by the receiver only */
    size_t size;              /* constant, as is opts */
    blitz_oneshot_opts opts;
    _Alignas(max_align_t) char value[]; /* the sender's until VALUE, then the receiver's */
};

static size_t bytes_for(size_t value_size)
{
    return sizeof(struct blitz_oneshot) + value_size;
}

int blitz_oneshot_new(size_t value_size, const blitz_oneshot_opts *opts, blitz_oneshot **out)
{
    if (value_size == 0 || value_size > PTRDIFF_MAX / 2 || out == NULL)
        return -EINVAL;
    struct blitz_oneshot *o = bz_small_block_take(bytes_for(value_size));
    if (o == NULL)
        return -ENOMEM;
    bz_atomic_init(&o->word, 0);
    bz_lock_init_ranked(&o->lock, BZ_RANK_WAIT);
    o->waiter = NULL;
    o->is_taken = false;
    o->size = value_size;
    o->opts = opts != NULL ? *opts : (blitz_oneshot_opts){NULL, NULL};
    *out = o;
    return 0;
}

static void release(struct blitz_oneshot *o)
{
    bz_small_block_give(o, bytes_for(o->size));
}

/* ---- the sender's end ---- */

/* Wake the registered waiter, if there still is one. */
static void wake_receiver(struct blitz_oneshot *o)
{
    struct bz_wake wake = {.kind = BZ_WAKE_NONE};
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&o->lock, os);
    struct bz_waiter *w = o->waiter;
    o->waiter = NULL;
    if (w != NULL)
        (void)!bz_waiter_claim(w, 0, &wake); /* if it has left there is nothing to deliver */
    bz_lock_drop(&o->lock, os);
    bz_wake_deliver(&wake);
}

/* Publish VALUE or CLOSED (`says`) and leave as the sender. Return true if the receiver had not left. */
static bool sender_goes(struct blitz_oneshot *o, uint32_t says)
{
    uint32_t seen = 0;
    if (!IS_PLAIN && bz_cas_strong_rel_rlx(&o->word, &seen, says | SENDER_GONE)) /* [A] [B] */
        return true;
    seen = bz_fetch_or_release(&o->word, says); /* [A] */
    if (seen & WAITS)
        wake_receiver(o);
    if (bz_fetch_or_acqrel(&o->word, SENDER_GONE) & RECEIVER_GONE) /* [B] */
        release(o);
    return !(seen & (LEAVING | RECEIVER_GONE));
}

int blitz_oneshot_send(blitz_oneshot *o, const void *value)
{
    bz_value_copy(o->value, value, o->size);
    return sender_goes(o, VALUE) ? 0 : -EPIPE;
}

void blitz_oneshot_sender_drop(blitz_oneshot *o)
{
    (void)sender_goes(o, CLOSED);
}

bool blitz_oneshot_is_closed(blitz_oneshot *o)
{
    return (bz_load_relaxed(&o->word) & (LEAVING | RECEIVER_GONE)) != 0; /* relaxed: a hint */
}

/* ---- the sender waits for the end of the receiver ---- */

static void lock_of(void *o)
{
    bz_lock_take(&((struct blitz_oneshot *)o)->lock, bz_os_here());
}

static void unlock_of(void *o)
{
    bz_lock_drop(&((struct blitz_oneshot *)o)->lock, bz_os_here());
}

static struct bz_list *closing_of(void *oneshot)
{
    struct blitz_oneshot *o = oneshot;
    /* relaxed: a receiver that finds the bit takes the lock, which we hold; one that has left passes nothing on */
    uint32_t seen = bz_fetch_or_relaxed(&o->word, CLOSING);
    if (!(seen & CLOSING))
        bz_list_init(&o->closing); /* I4 */
    return seen & (LEAVING | RECEIVER_GONE) ? NULL : &o->closing;
}

static const struct bz_closed_ops closed =
    BZ_CLOSED_OPS("oneshot close", lock_of, unlock_of, closing_of);

int blitz_oneshot_wait_closed(blitz_oneshot *o, blitz_deadline until)
{
    return bz_closed_wait(&closed, o, bz_os_here(), until);
}

void blitz_oneshot_wait_closed_future_init(blitz_closed_future *f, blitz_oneshot *o)
{
    bz_closed_future_init(f, &closed, o);
}

/* ---- the receiver's end ---- */

/* Leave as the receiver. The word was `seen` before, with VALUE or CLOSED set. */
static void receiver_goes(struct blitz_oneshot *o, uint32_t seen)
{
    if ((seen & SENDER_GONE) ||
        (bz_fetch_or_acqrel(&o->word, RECEIVER_GONE) & SENDER_GONE)) /* [B] */
        release(o);
}

static inline int try_recv(struct blitz_oneshot *o, void *value)
{
    uint32_t seen = bz_load_acquire(&o->word); /* [A] */
    if (!(seen & (VALUE | CLOSED)))
        return -EAGAIN;
    if (!(seen & VALUE) || o->is_taken)
        return -EPIPE;
    bz_value_copy(value, o->value, o->size);
    o->is_taken = true;
    return 0;
}

int blitz_oneshot_try_recv(blitz_oneshot *o, void *value)
{
    return try_recv(o, value);
}

/* The receiver has set LEAVING: wake the senders that wait for its end, then leave. */
static void leave_and_wake(struct blitz_oneshot *o)
{
    lock_of(o);
    bz_closed_end(&closed, o, &o->closing);
    if (bz_fetch_or_acqrel(&o->word, RECEIVER_GONE) & SENDER_GONE) /* [B] */
        release(o);
}

static BZ_NOINLINE void receiver_drop(struct blitz_oneshot *o, uint32_t seen)
{
    while (!(seen & (VALUE | CLOSED))) {
        uint32_t bit = seen & CLOSING ? LEAVING : RECEIVER_GONE;
        if (!bz_cas_weak_rel_acq(&o->word, &seen, seen | bit)) /* [B] if it succeeds, [A] if not */
            continue;
        if (bit == LEAVING)
            leave_and_wake(o);
        return;
    }
    if ((seen & VALUE) && !o->is_taken && o->opts.drop != NULL)
        o->opts.drop(o->value, o->opts.ctx);
    receiver_goes(o, seen);
}

void blitz_oneshot_receiver_drop(blitz_oneshot *o)
{
    uint32_t seen = bz_load_acquire(&o->word); /* [A] [B] */
    if (BZ_LIKELY(o->is_taken && (seen & SENDER_GONE)))
        release(o);
    else
        receiver_drop(o, seen);
}

/* A receive, as a request. */
struct receive {
    struct bz_request request;
    struct blitz_oneshot *o;
    void *value; /* of a future */
};

static struct blitz_oneshot *oneshot_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct receive, request)->o;
}

static void oneshot_lock(struct bz_request *r)
{
    bz_lock_take(&oneshot_of(r)->lock, bz_os_here());
}

/* A receive serves no other, so there are no wake-ups. */
static void oneshot_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_lock_drop(&oneshot_of(r)->lock, bz_os_here());
}

/* Register, unless the sender has set VALUE or CLOSED. try_recv reads the result without the lock. */
static bool oneshot_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct blitz_oneshot *o = oneshot_of(r);
    (void)wakes;
    /* relaxed: a sender that finds the bit takes the lock, which we hold; a value is read by a load of its own */
    uint32_t seen = bz_fetch_or_relaxed(&o->word, WAITS);
    bool is_over = seen & (VALUE | CLOSED);
    o->waiter = is_over ? NULL : &r->waiter; /* I1: the sender takes the lock, which we hold */
    r->waiter.state = is_over ? BZ_WAITER_OUT : BZ_WAITER_QUEUED;
    return is_over;
}

static bool oneshot_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    oneshot_of(r)->waiter = NULL;
    r->waiter.state = BZ_WAITER_OUT;
    return true;
}

static const struct bz_request_ops receiving = {.what = "oneshot",
                                                .lock = oneshot_lock,
                                                .unlock = oneshot_unlock,
                                                .enter = oneshot_enter,
                                                .leave = oneshot_leave,
                                                .is_tried = true};

int blitz_oneshot_recv(blitz_oneshot *o, void *value, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    int rc = try_recv(o, value);
    if (BZ_LIKELY(rc != -EAGAIN))
        return rc;
    struct receive r = {.request.ops = &receiving, .o = o};
    bz_waiter_init(&r.request.waiter, NULL, BZ_WAIT_WOKEN);
    rc = bz_request_wait(&r.request, bz_os_here(), until);
    return rc != 0 ? rc : try_recv(o, value);
}

/* ---- as a future ---- */

static_assert(sizeof(struct receive) <= sizeof(((blitz_oneshot_future *)NULL)->inside),
              "it has room");

static struct receive *receive_of(blitz_future *future)
{
    return (struct receive *)BZ_CONTAINER_OF(future, blitz_oneshot_future, future)->inside;
}

static blitz_poll oneshot_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_oneshot_future *f = BZ_CONTAINER_OF(future, blitz_oneshot_future, future);
    struct receive *r = receive_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY; /* it was ready before */
    if (!r->request.waiter.was_polled) {
        f->result = try_recv(r->o, r->value); /* the sender knows of no waiter yet */
        if (f->result != -EAGAIN)
            return BLITZ_READY;
        f->result = -EINPROGRESS;
    }
    if (!bz_request_poll(&r->request, waker))
        return BLITZ_PENDING;
    f->result = try_recv(r->o, r->value);
    return BLITZ_READY;
}

static void oneshot_cancel(blitz_future *future)
{
    blitz_oneshot_future *f = BZ_CONTAINER_OF(future, blitz_oneshot_future, future);
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    (void)bz_request_cancel(&receive_of(future)->request);
}

static int oneshot_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_oneshot_future, future)->result;
}

void blitz_oneshot_recv_future_init(blitz_oneshot_future *f, blitz_oneshot *o, void *value)
{
    static const blitz_future_ops ops = {"oneshot", BLITZ_REVOCABLE, oneshot_poll, oneshot_cancel,
                                         oneshot_output};
    struct receive *r = receive_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    *r = (struct receive){.request.ops = &receiving, .o = o, .value = value};
    bz_waiter_init_polled(&r->request.waiter);
}
