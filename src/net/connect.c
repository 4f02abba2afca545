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
 * left: a host that swallows packets costs its share, not all of it. Rejected for now: racing them.
 * It is faster when the first is dead, and makes connections on the other side that nobody uses.
 */
#include <errno.h>

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

int blitz_tcp_connect(const blitz_addr *to, blitz_deadline until, blitz_tcp **out)
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
    return err == -ECANCELED || err == -ENOTSUP || err == -ENOMEM ||
           (err == -ETIMEDOUT && blitz_deadline_left(until) == 0);
}

int blitz_tcp_connect_first(const blitz_addr *to, size_t count, int *errors, blitz_deadline until,
                            blitz_tcp **out)
{
    int first = 0;
    if (to == NULL || count == 0 || count > INT16_MAX || out == NULL)
        return -EINVAL;
    for (size_t i = 0; errors != NULL && i < count; i++)
        errors[i] = -EINPROGRESS;
    for (size_t i = 0; i < count; i++) {
        int err = blitz_tcp_connect(&to[i], share_of(until, count - i), out);
        if (errors != NULL)
            errors[i] = err;
        if (err == 0)
            return (int)i;
        if (is_final(err, until))
            return err;
        first = first != 0 ? first : err;
    }
    return first;
}
