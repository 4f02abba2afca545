/*
 * dns_ask.c - questions to name servers, over UDP and TCP.
 *
 * Each server is asked in turn, as often as the configuration says. Both questions (A and AAAA) are sent at once from
 * one socket, and each answer closes its question. A server that is silent costs its timeout; one that refuses, or whose
 * host refuses the datagram, costs nothing. A cut answer is asked for again over TCP, from the same server.
 *
 * Against forged answers: each attempt has a new socket, so a new port chosen at random by the system, and new random
 * ids. The socket is connected before it has a port, so the system drops datagrams from every other address. A datagram
 * that does not repeat its question is ignored, and the wait goes on until its deadline. So a late answer of an earlier
 * attempt, a second copy of an answer and a forged one all have the same effect: none.
 *
 * EDNS0 announces room for 1232 bytes. A server that does not know it gets the question without it. Some firewalls drop
 * such questions, so attempts after the first one do without.
 *
 * It is written as a loop of blocking calls, for the fiber of one lookup (dns.c). So deadlines and cancels are those of
 * the calls below, and no state machine repeats them.
 */
#include "net/dns_ask.h"

#include <errno.h>

#include "base/alloc.h"
#include "blitz/tcp.h"
#include "blitz/udp.h"
#include "net/net.h"
#include "wait/waker.h"

/* True if this host cannot ask anyone: another server would fail in the same way. */
static bool is_ours(int err)
{
    return err == -ECANCELED || err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
           err == -EOPNOTSUPP;
}

/* True if the question is to be asked at the current server. */
static bool is_asked(const struct bz_dns_ask *a, unsigned i)
{
    return a->is_open[i] && !a->is_given_up[i] && !a->is_cut[i];
}

static bool has_asked(const struct bz_dns_ask *a)
{
    return is_asked(a, 0) || is_asked(a, 1);
}

/* Take the verdict on an answer to question i. */
static void decide(struct bz_dns_ask *a, unsigned i, enum bz_dns_verdict verdict)
{
    switch (verdict) {
    case BZ_DNS_FOUND:
    case BZ_DNS_NO_NAME:
    case BZ_DNS_NO_DATA:
        a->verdict[i] = verdict;
        a->is_open[i] = false;
        a->came(a, i);
        break;
    case BZ_DNS_TRUNCATED:
        a->is_cut[i] = true;
        break;
    case BZ_DNS_NO_EDNS:
    case BZ_DNS_REFUSES:
        a->is_given_up[i] = true;
        a->has_failed = true;
        break;
    case BZ_DNS_FOREIGN:
        break;
    }
}

/* ---- UDP ---- */

/* Make a socket that sends to and receives from this server only. Returns 0 or a negative errno. */
static int open_to(const blitz_addr *server, blitz_udp **out)
{
    int fd = bz_sock_open(server, false);
    if (fd < 0)
        return fd;
    int err =
        bz_sock_connect(fd, server); /* it gets its port with its peer: no datagram comes before */
    if (err != 0) {
        bz_sock_close(fd);
        return err;
    }
    return bz_socket_take(fd, 0, (struct bz_socket **)out);
}

static int send_one(struct bz_dns_ask *a, unsigned i, blitz_udp *u, blitz_deadline until)
{
    size_t bytes = bz_dns_write(&a->q[i], a->has_edns[i], a->out);
    int64_t n = blitz_udp_send(u, a->out, bytes, until);
    return n < 0 ? (int)n : 0;
}

/* A datagram came. Returns 0, or the error of sending a question again. */
static int take(struct bz_dns_ask *a, blitz_udp *u, size_t bytes, blitz_deadline until)
{
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS; i++) {
        if (!is_asked(a, i))
            continue;
        enum bz_dns_verdict verdict = bz_dns_read(&a->q[i], a->in, bytes, &a->answer[i]);
        if (verdict == BZ_DNS_NO_EDNS && a->has_edns[i]) {
            a->has_edns[i] = false;
            return send_one(a, i, u, until);
        }
        decide(a, i, verdict);
        if (verdict != BZ_DNS_FOREIGN)
            return 0;
    }
    return 0;
}

/* Receive until all questions are answered. Returns 0, -ETIMEDOUT, an error. */
static int receive(struct bz_dns_ask *a, blitz_udp *u, blitz_deadline until)
{
    int err = 0;
    while (err == 0 && has_asked(a)) {
        int64_t n = blitz_udp_recv(u, a->in, sizeof a->in, blitz_deadline_first(until, a->hint_at));
        if (n == -ETIMEDOUT && blitz_deadline_left(until) > 0) {
            a->hint_at = BLITZ_FOREVER;
            a->hint(a);
        } else if (n < 0) {
            err = (int)n;
        } else if (n <= (int64_t)sizeof a->in) {
            err = take(a, u, (size_t)n, until);
        }
    }
    return err;
}

static int ask_udp(struct bz_dns_ask *a, const blitz_addr *server, blitz_deadline until)
{
    blitz_udp *u;
    int err = open_to(server, &u);
    if (err != 0)
        return err;
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS && err == 0; i++)
        if (is_asked(a, i))
            err = send_one(a, i, u, until);
    if (err == 0)
        err = receive(a, u, until);
    blitz_udp_close(u);
    return err;
}

/* ---- TCP ---- */

/* Read an answer into memory of its own, and decide. Returns 0 or a negative errno. */
static int read_answer(struct bz_dns_ask *a, unsigned i, blitz_tcp *t, blitz_deadline until)
{
    uint8_t length[2];
    int err = blitz_tcp_read_exact(t, length, sizeof length, NULL, until);
    size_t bytes = (size_t)length[0] << 8 | length[1];
    if (err != 0 || bytes == 0)
        return err != 0 ? err : -EIO;
    uint8_t *data = bz_alloc(&bz_allocator_libc, bytes, 1);
    if (data == NULL)
        return -ENOMEM;
    err = blitz_tcp_read_exact(t, data, bytes, NULL, until);
    enum bz_dns_verdict verdict =
        err == 0 ? bz_dns_read(&a->q[i], data, bytes, &a->answer[i]) : BZ_DNS_FOREIGN;
    bz_free(&bz_allocator_libc, data, bytes);
    if (err != 0)
        return err;
    bool is_useless = verdict == BZ_DNS_TRUNCATED || verdict == BZ_DNS_FOREIGN;
    decide(a, i, is_useless ? BZ_DNS_REFUSES : verdict);
    return 0;
}

static int ask_one_tcp(struct bz_dns_ask *a, unsigned i, blitz_tcp *t, blitz_deadline until)
{
    size_t bytes = bz_dns_write(&a->q[i], a->has_edns[i], a->out + 2);
    a->out[0] = (uint8_t)(bytes >> 8);
    a->out[1] = (uint8_t)bytes;
    int err = blitz_tcp_write_all(t, a->out, bytes + 2, NULL, until);
    return err != 0 ? err : read_answer(a, i, t, until);
}

static int ask_tcp(struct bz_dns_ask *a, const blitz_addr *server, blitz_deadline until)
{
    blitz_tcp *t;
    int err = blitz_tcp_connect(server, &t, until);
    if (err != 0)
        return err;
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS && err == 0; i++)
        if (a->is_open[i] && !a->is_given_up[i])
            err = ask_one_tcp(a, i, t, until);
    blitz_tcp_close(t);
    return err;
}

/* ---- servers in turn ---- */

static int ask_by_both(struct bz_dns_ask *a, const blitz_addr *server)
{
    blitz_duration timeout = a->conf->timeout_s * BLITZ_S;
    int err = a->conf->is_tcp ? 0 : ask_udp(a, server, blitz_after(timeout));
    bool needs_tcp =
        a->conf->is_tcp || (a->is_open[0] && a->is_cut[0]) || (a->is_open[1] && a->is_cut[1]);
    if (!needs_tcp || is_ours(err))
        return err;
    for (unsigned i = 0; !a->conf->is_tcp && i < BZ_DNS_QUESTIONS; i++)
        a->is_given_up[i] = !a->is_cut[i];
    return ask_tcp(a, server, blitz_after(timeout));
}

/* Ask one server the questions from `from` to `to`. */
static int ask_server(struct bz_dns_ask *a, const blitz_addr *server, bool has_edns, unsigned from,
                      unsigned to)
{
    uint16_t ids[BZ_DNS_QUESTIONS];
    int err = bz_os_entropy(bz_os_here(), ids, sizeof ids);
    if (err != 0)
        return err;
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS; i++) {
        a->q[i].id = ids[i];
        a->is_given_up[i] = i < from || i >= to;
        a->is_cut[i] = false;
        a->has_edns[i] = has_edns;
    }
    return ask_by_both(a, server);
}

/* Ask both questions at once, or one after the other. Returns 0, or an error that ends it all. */
static int ask_turn(struct bz_dns_ask *a, const blitz_addr *server, bool has_edns)
{
    unsigned step = a->conf->is_single ? 1 : BZ_DNS_QUESTIONS;
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS; i += step) {
        int err = ask_server(a, server, has_edns, i, i + step);
        if (is_ours(err))
            return err;
    }
    return 0;
}

int bz_dns_ask(struct bz_dns_ask *a)
{
    const struct bz_dns_conf *c = a->conf;
    a->has_failed = false;
    for (unsigned turn = 0; turn < c->attempts * c->server_count; turn++) {
        if (!a->is_open[0] && !a->is_open[1])
            return 0;
        const blitz_addr *server = &c->server[(a->first + turn) % c->server_count];
        int err = ask_turn(a, server, turn < c->server_count);
        if (err != 0)
            return err;
    }
    if (!a->is_open[0] && !a->is_open[1])
        return 0;
    return a->has_failed ? -EIO : -EAGAIN;
}
