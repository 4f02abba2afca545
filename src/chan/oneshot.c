/*
 * oneshot.c - one value, once, between two ends.
 *
 * One word says what has happened; each of its bits is set once and by one side:
 *
 *   VALUE           the value is there                         the sender's
 *   CLOSED          there will be none                         the sender's, instead
 *   SENDER_GONE     the sender will not touch it any more      the sender's, the last
 *   RECEIVER_GONE   likewise                                   the receiver's, the last
 *   WAITS           somebody is registered: go by the lock     the receiver's, under the lock
 *
 * Whoever of the two goes second frees. The common case takes no lock: a sender that finds nobody
 * waiting says VALUE and SENDER_GONE by one CAS, and a receiver that finds both has nothing to tell
 * anybody. With WAITS the sender takes the lock, wakes, drops it, and only then is gone: until it is,
 * the memory is there. The plain form always goes that way.
 *
 * Rejected: a channel of capacity 1 (four locked instructions instead of one, and it does not know
 * who is last).
 *
 * I1  `waiter` is guarded by the lock; WAITS is set if and only if it was not NULL once.
 * I2  After its GONE bit is set an end touches nothing, unless the other one's was set before.
 * I3  The sender's claim is its last touch of a waiter on a stack (wait/waiter.h, I2): the receiver goes on, and
 *     leaves the frame, without the lock.
 *
 * [A] send: word release -> receive: word acquire           the value was written before
 * [B] gone: word acq_rel -> gone: word acq_rel              all uses come before the free
 */
#include <assert.h>
#include <errno.h>

#include "blitz/oneshot.h"
#include "chan/copy.h"
#include "sched/ask.h"
#include "sched/scrap.h"
#include "sched/wait.h"

enum { VALUE = 1, CLOSED = 2, SENDER_GONE = 4, RECEIVER_GONE = 8, WAITS = 16 };

#if defined(BZ_PLAIN)
enum { IS_PLAIN = 1 };
#else
enum { IS_PLAIN = 0 };
#endif

struct blitz_oneshot {
    bz_atomic(uint32_t) word;
    struct bz_lock lock;      /* rank WAIT */
    struct bz_waiter *waiter; /* I1 */
    bool is_taken;            /* the value was received; the receiver's own */
    size_t size;              /* constant, as is */
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
    struct blitz_oneshot *o = bz_scrap_take(bytes_for(value_size));
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
    bz_scrap_give(o, bytes_for(o->size));
}

/* ---- the sender's end ---- */

/* Wake whoever is registered, if somebody still is. */
static void wake_receiver(struct blitz_oneshot *o)
{
    struct bz_wake wake = {.kind = BZ_WAKE_NONE};
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&o->lock, os);
    struct bz_waiter *w = o->waiter;
    o->waiter = NULL;
    if (w != NULL)
        (void)!bz_waiter_claim(w, 0, &wake); /* if it has gone there is nothing to deliver */
    bz_lock_drop(&o->lock, os);
    bz_wake_deliver(&wake);
}

/* The sender has said what there is to say, and goes. True: there was somebody to say it to. */
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
    return !(seen & RECEIVER_GONE);
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
    return (bz_load_relaxed(&o->word) & RECEIVER_GONE) != 0; /* relaxed: a hint */
}

/* ---- the receiver's end ---- */

/* The receiver goes; the word was `seen` before, with all the sender has to say. */
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

static BZ_NOINLINE void receiver_drop(struct blitz_oneshot *o, uint32_t seen)
{
    while (!(seen & (VALUE | CLOSED)))
        if (bz_cas_weak_rel_acq(&o->word, &seen,
                                seen | RECEIVER_GONE)) /* [B] if won, [A] if lost */
            return;
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

/* Register, unless there is something by now. Under the lock. */
static bool enlist(struct blitz_oneshot *o, struct bz_waiter *w)
{
    /* relaxed: whoever finds the bit takes the lock, which we hold; a value is read by a load of its own */
    uint32_t seen = bz_fetch_or_relaxed(&o->word, WAITS);
    if (seen & (VALUE | CLOSED))
        return false;
    o->waiter = w; /* I1: the sender comes by the lock, which we hold */
    return true;
}

struct receiver {
    struct bz_waiter waiter;
    struct blitz_oneshot *o;
};

static bool receive_hook(struct bz_wait *w, void *arg)
{
    struct receiver *r = arg;
    struct blitz_oneshot *o = r->o;
    const struct bz_os *os = w->os;
    bz_lock_take(&o->lock, os);
    bool waits = enlist(o, &r->waiter);
    waits = waits ? bz_wait_publish(w) : bz_wait_over(w, BZ_WAIT_WOKEN);
    bz_lock_drop(&o->lock, os);
    return waits;
}

static void unlist(struct blitz_oneshot *o)
{
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&o->lock, os);
    o->waiter = NULL;
    bz_lock_drop(&o->lock, os);
}

int blitz_oneshot_recv(blitz_oneshot *o, void *value, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    int rc = try_recv(o, value);
    if (BZ_LIKELY(rc != -EAGAIN))
        return rc;
    struct bz_wait w;
    struct receiver r = {.o = o};
    bz_wait_begin(&w, bz_os_here(), "oneshot", until);
    bz_waiter_init(&r.waiter, &w, BZ_WAIT_WOKEN);
    uint32_t outcome = bz_wait_refuse(&w);
    if (outcome == BZ_WAIT_OPEN) {
        outcome = bz_wait_park(&w, receive_hook, &r);
        if (outcome < BZ_WAIT_WOKEN)
            unlist(o);
    }
    return outcome < BZ_WAIT_WOKEN ? bz_wait_error(outcome) : try_recv(o, value);
}

/* ---- as a future ---- */

struct future_inside {
    struct bz_waiter waiter;
    struct blitz_oneshot *o;
    void *value;
};

static_assert(sizeof(struct future_inside) <= sizeof(((blitz_oneshot_future *)NULL)->inside),
              "it has room");

static struct future_inside *inside_of(blitz_future *future)
{
    return (struct future_inside *)BZ_CONTAINER_OF(future, blitz_oneshot_future, future)->inside;
}

/* Register with this waker; returns the one before. */
static blitz_waker enlist_future(struct future_inside *in, blitz_waker waker)
{
    struct blitz_oneshot *o = in->o;
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&o->lock, os);
    blitz_waker old = bz_waiter_set_waker(&in->waiter, waker);
    (void)enlist(o, &in->waiter);
    bz_lock_drop(&o->lock, os);
    return old;
}

static blitz_waker unlist_future(struct future_inside *in)
{
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&in->o->lock, os);
    in->o->waiter = NULL;
    blitz_waker old = bz_waiter_take_waker(&in->waiter);
    bz_lock_drop(&in->o->lock, os);
    return old;
}

static blitz_poll oneshot_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_oneshot_future *f = BZ_CONTAINER_OF(future, blitz_oneshot_future, future);
    struct future_inside *in = inside_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY; /* as before */
    blitz_waker old = {NULL, NULL};
    for (int round = 0; round < 2; round++) {
        /* relaxed: try_recv has the order */
        bool is_there = bz_load_relaxed(&in->o->word) & (VALUE | CLOSED);
        if (is_there) {
            if (bz_load_relaxed(&in->o->word) & WAITS) /* relaxed: our own bit */
                old = unlist_future(in);
            f->result = try_recv(in->o, in->value);
            blitz_waker_drop(&old);
            return BLITZ_READY;
        }
        if (round == 0) {
            old = enlist_future(in, blitz_waker_clone(waker));
            blitz_waker_drop(&old);
        }
    }
    return BLITZ_PENDING;
}

static void oneshot_cancel(blitz_future *future)
{
    blitz_oneshot_future *f = BZ_CONTAINER_OF(future, blitz_oneshot_future, future);
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    blitz_waker old = unlist_future(inside_of(future));
    blitz_waker_drop(&old);
}

static int oneshot_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_oneshot_future, future)->result;
}

void blitz_oneshot_recv_future_init(blitz_oneshot_future *f, blitz_oneshot *o, void *value)
{
    static const blitz_future_ops ops = {"oneshot", BLITZ_REVOCABLE, oneshot_poll, oneshot_cancel,
                                         oneshot_output};
    struct future_inside *in = inside_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    in->o = o;
    in->value = value;
    bz_waiter_init_polled(&in->waiter);
}
