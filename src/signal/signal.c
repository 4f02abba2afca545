/*
 * signal.c - listeners of signals.
 *
 * A handler counts each signal for the process (os/signals.h). A listener has, for each signal that it names, the count
 * that it has received and the count that it knows of. It is a change of chan/listeners.h: its number is the sum of the
 * known counts, and the position of its receivers the sum of the received ones. So a receive is the same request as
 * that of a broadcast, as a call and as a future.
 *
 * The thread of service.c renews the known counts after a signal, which wakes receivers. A receive renews them too,
 * before it looks: a signal whose handler has returned is there at once.
 *
 * The counts are not a queue, so a storm of signals costs no memory, and a slow listener loses only multiplicity.
 *
 * I1  number == the sum of `known`, at == the sum of `taken`, taken <= known: under the lock of the listeners.
 * I2  A listener watches its signals before it becomes a hearer, and ceases to be one before it stops to watch.
 */
#include "blitz/signal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

#include "base/alloc.h"
#include "chan/listeners.h"
#include "os/forked.h"
#include "os/signals.h"
#include "signal/service.h"

struct kind {
    int signal;            /* constant */
    uint64_t known, taken; /* I1 */
};

struct blitz_signal {
    struct bz_listeners listeners;
    struct bz_hearer hearer;
    uint64_t at;    /* I1 */
    unsigned next;  /* the kind to look at first; under the lock */
    unsigned count; /* of kinds; constant, as is */
    bool chains;
    struct kind kind[];
};

static size_t bytes_for(size_t count)
{
    return sizeof(struct blitz_signal) + count * sizeof(struct kind);
}

static const struct bz_request_ops receiving = BZ_LISTENERS_REQUEST("signal");

/* ---- counts ---- */

/* Renew the known counts, and wake receivers if there is a signal more. */
static void renew(struct blitz_signal *s)
{
    if (!bz_listeners_begin(&s->listeners))
        return;
    for (unsigned i = 0; i < s->count; i++) {
        uint64_t now = bz_signals_arrived(s->kind[i].signal);
        s->listeners.number += now - s->kind[i].known;
        s->kind[i].known = now; /* I1 */
    }
    bz_listeners_end(&s->listeners);
}

static void hear(struct bz_hearer *h)
{
    renew(BZ_CONTAINER_OF(h, struct blitz_signal, hearer));
}

/* Take the next signal, in turn. Under the lock, and there is one. */
static void take(struct bz_receive *r)
{
    struct blitz_signal *s = BZ_CONTAINER_OF(r->of, struct blitz_signal, listeners);
    blitz_signal_event *event = r->value;
    struct kind *k = &s->kind[s->next % s->count];
    while (k->known == k->taken)
        k = &s->kind[++s->next % s->count];
    *event = (blitz_signal_event){.signal = k->signal, .count = k->known - k->taken};
    k->taken = k->known;
    s->at += event->count; /* I1 */
    s->next++;
}

/* ---- beginning and ending ---- */

static bool has_twin(const int *signals, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (signals[i] == signals[at])
            return true;
    return false;
}

static bool is_valid(const int *signals, size_t count)
{
    if (signals == NULL || count == 0 || count > BZ_SIGNAL_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!bz_signal_is_open(signals[i]) || has_twin(signals, i))
            return false;
    return true;
}

static void unwatch(struct blitz_signal *s, unsigned count)
{
    while (count-- > 0)
        bz_signals_unwatch(s->kind[count].signal, s->chains);
}

static int watch(struct blitz_signal *s, const int *signals)
{
    for (unsigned i = 0; i < s->count; i++) {
        uint64_t now = bz_signals_arrived(signals[i]);
        s->kind[i] = (struct kind){signals[i], now, now};
        s->at += now;
        int err = bz_signals_watch(signals[i], s->chains);
        if (err != 0) {
            unwatch(s, i);
            return err;
        }
    }
    s->listeners.number = s->at; /* I1 */
    return 0;
}

static int begin(struct blitz_signal *s, const int *signals)
{
    int err = watch(s, signals);
    if (err != 0)
        return err;
    s->hearer.hear = hear;
    err = bz_hearer_add(&s->hearer); /* I2 */
    if (err != 0)
        unwatch(s, s->count);
    else
        bz_hearers_renew();
    return err;
}

int blitz_signal_listen(const int *signals, size_t count, const blitz_signal_opts *opts,
                        blitz_signal **out)
{
    if (!is_valid(signals, count) || out == NULL)
        return -EINVAL;
    if (bz_is_forked()) {
        bz_forked_refuse("blitz_signal_listen");
        return -EOPNOTSUPP;
    }
    struct blitz_signal *s =
        bz_alloc(&bz_allocator_libc, bytes_for(count), _Alignof(struct blitz_signal));
    if (s == NULL)
        return -ENOMEM;
    *s = (struct blitz_signal){.count = (unsigned)count, .chains = opts != NULL && opts->chains};
    bz_listeners_init(&s->listeners, "signal", take);
    int err = begin(s, signals);
    if (err == 0)
        *out = s;
    else
        bz_free(&bz_allocator_libc, s, bytes_for(count));
    return err;
}

int blitz_signal_ctrl_c(blitz_signal **out)
{
    return blitz_signal_listen(&(int){SIGINT}, 1, NULL, out);
}

int blitz_signal_terminate(blitz_signal **out)
{
    return blitz_signal_listen(&(int){SIGTERM}, 1, NULL, out);
}

int blitz_signal_hangup(blitz_signal **out)
{
    return blitz_signal_listen(&(int){SIGHUP}, 1, NULL, out);
}

int blitz_signal_child(blitz_signal **out)
{
    return blitz_signal_listen(&(int){SIGCHLD}, 1, NULL, out);
}

blitz_signal *blitz_signal_ref(blitz_signal *s)
{
    bz_listeners_ref(&s->listeners);
    return s;
}

void blitz_signal_unref(blitz_signal *s)
{
    if (s == NULL || !bz_listeners_unref(&s->listeners))
        return;
    bz_hearer_remove(&s->hearer); /* I2 */
    unwatch(s, s->count);
    bz_free(&bz_allocator_libc, s, bytes_for(s->count));
}

const char *blitz_signal_name(int signal)
{
    return bz_signal_name(signal);
}

/* ---- receiving ---- */

static struct bz_receive receive_by(blitz_signal *s, blitz_signal_event *event)
{
    return (struct bz_receive){
        .request.ops = &receiving, .of = &s->listeners, .at = &s->at, .value = event};
}

int blitz_signal_recv(blitz_signal *s, blitz_signal_event *event, blitz_deadline until)
{
    struct bz_receive r = receive_by(s, event);
    renew(s);
    return bz_listeners_wait(&r, until);
}

int blitz_signal_try_recv(blitz_signal *s, blitz_signal_event *event)
{
    struct bz_receive r = receive_by(s, event);
    renew(s);
    return bz_listeners_try(&r);
}

/* ---- as a future ---- */

static_assert(sizeof(struct bz_receive) <= sizeof(((blitz_signal_future *)NULL)->inside),
              "it has room");

static blitz_signal_future *of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_signal_future, future);
}

static struct bz_receive *receive_of(blitz_future *future)
{
    return (struct bz_receive *)of(future)->inside;
}

static blitz_poll signal_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_receive *r = receive_of(future);
    renew(BZ_CONTAINER_OF(r->of, struct blitz_signal, listeners));
    return bz_listeners_poll(r, &of(future)->result, waker);
}

static void signal_cancel(blitz_future *future)
{
    bz_listeners_cancel(receive_of(future), &of(future)->result);
}

static int signal_output(blitz_future *future)
{
    return of(future)->result;
}

void blitz_signal_recv_future_init(blitz_signal_future *f, blitz_signal *s)
{
    static const blitz_future_ops ops = {"signal", BLITZ_REVOCABLE, signal_poll, signal_cancel,
                                         signal_output};
    struct bz_receive *r = receive_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    *r = receive_by(s, &f->event);
    bz_waiter_init_polled(&r->request.waiter);
}
