/*
 * connect.c - connecting: to one address, and to the first of several that answers.
 *
 * A connect is begun by a system call that does not wait, and has ended when the socket has become
 * writable; the socket then says how it went. That is one poll and no buffer, so nothing of the
 * caller's is in the kernel's hands, whatever keeper does the waiting. A connect that is given up is
 * closed: nobody could say what state it is in.
 *
 * A Unix socket connects at once or not at all: if the listener's line is full it says -EAGAIN and
 * will not tell when there is room. So it is tried again after a nap, as an accept without descriptors
 * is.
 *
 * Of several addresses each is tried to its end before the next, with a share of the time that is
 * left: a host that swallows packets costs its share, not all of it. It is a future over those of
 * single connects, each in a timeout; the call on a stack awaits it. Rejected for now: racing them.
 * It is faster when the first is dead, and makes connections on the other side that nobody uses.
 */
#include <assert.h>
#include <errno.h>

#include "blitz/combine.h"
#include "blitz/tcp.h"
#include "net/net.h"

int bz_connect_begin(const blitz_addr *to, struct bz_socket **out)
{
    int fd = bz_sock_open(to, true);
    if (fd < 0)
        return fd;
    int begun = bz_sock_connect(fd, to); /* before it is a file: a keeper may have it block */
    if (begun == -EINTR)
        begun = -EINPROGRESS; /* it goes on by itself */
    if (begun != 0 && begun != -EINPROGRESS) {
        bz_sock_close(fd);
        return begun;
    }
    int err = bz_socket_take(fd, BZ_FILE_STREAM, out);
    return err != 0 ? err : begun;
}

int bz_connect_end(struct bz_socket *s)
{
    int error = 0;
    int err = bz_socket_get(s, BZ_SOCK_ERROR, &error);
    return err != 0 ? err : -error;
}

int blitz_tcp_connect(const blitz_addr *to, blitz_tcp **out, blitz_deadline until)
{
    blitz_net_future f;
    if (to == NULL || out == NULL)
        return -EINVAL;
    blitz_tcp_connect_future_init(&f, to);
    int err = blitz_await(&f.future, until);
    if (err == 0 || f.result == 0)
        err = (int)f.result;
    if (err == 0)
        *out = f.tcp;
    return err;
}

/* ---- the first of several ---- */

enum { SHARE_MIN_S = 2 };

static blitz_deadline share_of(blitz_deadline until, size_t left)
{
    blitz_duration time = blitz_deadline_left(until);
    if (until == BLITZ_FOREVER)
        return until;
    blitz_duration share = time / left;
    if (share < SHARE_MIN_S * BLITZ_S)
        share = SHARE_MIN_S * BLITZ_S;
    return blitz_deadline_first(until, blitz_after(share));
}

/* No use in going on with the next: it would end the same. */
static bool is_final(int err, blitz_deadline until)
{
    return err == -ECANCELED || err == -EOPNOTSUPP || err == -ENOMEM ||
           (err == -ETIMEDOUT && blitz_deadline_left(until) == 0);
}

struct first {
    blitz_future future;
    int result;
    blitz_tcp *tcp;
    const blitz_addr *to;
    size_t count, at;
    int *errors;
    blitz_deadline until;
    int first_error;
    bool is_trying; /* `limit` is what is waited for */
    bool is_over, is_stopping;
    blitz_net_future one;
    blitz_timeout limit;
};

static_assert(sizeof(struct first) <= sizeof(blitz_connect_first_future), "it has room");
static_assert(offsetof(struct first, tcp) == offsetof(blitz_connect_first_future, tcp), "the same");

static struct first *first_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct first, future);
}

static void first_over(struct first *c, int result)
{
    c->result = result;
    c->is_over = true;
}

static void try_next(struct first *c)
{
    blitz_tcp_connect_future_init(&c->one, &c->to[c->at]);
    (void)!blitz_timeout_init(&c->limit, &c->one.future, share_of(c->until, c->count - c->at));
    c->is_trying = true;
}

/* A connect that has ended well counts, whatever else has: a share that ran out, a cancel. */
static void tried(struct first *c)
{
    int err = c->one.result == 0 ? 0 : c->limit.result;
    c->is_trying = false;
    if (c->errors != NULL)
        c->errors[c->at] = err;
    c->first_error = c->first_error != 0 ? c->first_error : err;
    if (err == 0) {
        c->tcp = c->one.tcp;
        first_over(c, (int)c->at);
    } else if (c->is_stopping || is_final(err, c->until)) {
        first_over(c, c->is_stopping ? -ECANCELED : err);
    } else if (++c->at == c->count) {
        first_over(c, c->first_error);
    }
}

static blitz_poll first_poll(blitz_future *future, const blitz_waker *waker)
{
    struct first *c = first_of(future);
    while (!c->is_over) {
        if (!c->is_trying)
            try_next(c);
        if (c->limit.future.ops->poll(&c->limit.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        tried(c);
    }
    return BLITZ_READY;
}

static void first_cancel(blitz_future *future)
{
    struct first *c = first_of(future);
    if (c->is_over)
        return;
    c->is_stopping = true;
    if (c->is_trying)
        c->limit.future.ops->cancel(&c->limit.future);
    else
        first_over(c, -ECANCELED);
}

static int first_output(blitz_future *future)
{
    return first_of(future)->result;
}

void blitz_tcp_connect_first_future_init(blitz_connect_first_future *f, const blitz_addr *to,
                                         size_t count, int *errors, blitz_deadline until)
{
    static const blitz_future_ops ops = {"connect", BLITZ_PINNED, first_poll, first_cancel,
                                         first_output};
    struct first *c = (struct first *)f;
    *c = (struct first){.future = {&ops},
                        .result = -ECANCELED,
                        .to = to,
                        .count = count,
                        .errors = errors,
                        .until = until};
    if (to == NULL || count == 0 || count > INT16_MAX)
        first_over(c, -EINVAL);
    for (size_t i = 0; errors != NULL && !c->is_over && i < count; i++)
        errors[i] = -EINPROGRESS;
}

/* The future knows the deadline: it is over then by itself, and says of each address what was. */
int blitz_tcp_connect_first(const blitz_addr *to, size_t count, int *errors, blitz_tcp **out,
                            blitz_deadline until)
{
    blitz_connect_first_future f;
    if (out == NULL)
        return -EINVAL;
    blitz_tcp_connect_first_future_init(&f, to, count, errors, until);
    (void)!blitz_await(&f.future,
                       BLITZ_FOREVER); /* the result says how it ended, cancelled or not */
    if (f.result >= 0)
        *out = f.tcp;
    return f.result;
}
