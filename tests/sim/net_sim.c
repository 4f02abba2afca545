/*
 * The network on a simulated kernel: the keepers that ship, the driver and the calls of blitz/tcp.h, on
 * seeds, in virtual time. What is asked is the same whatever the keeper does: every byte arrives once
 * and in order, whoever waits is told, and nothing is left open.
 */
#include "blitz/combine.h"
#include "blitz/tcp.h"
#include "blitz/unix.h"
#include "support/net.h"
#include "support/net_sim.h"

/* ---- bytes that say where they belong ---- */

/* The byte number `at` of stream `id`. */
static uint8_t byte_of(unsigned id, uint64_t at)
{
    return (uint8_t)((id * 31 + at) * 167 >> 3);
}

static void fill_in(uint8_t *data, size_t bytes, unsigned id, uint64_t at)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(id, at + i);
}

static void look_through(const uint8_t *data, size_t bytes, unsigned id, uint64_t at)
{
    for (size_t i = 0; i < bytes; i++)
        CHECK_EQ(data[i], byte_of(id, at + i));
}

enum { PIECE = 48 };

/* Soon, later, or never. */
static blitz_deadline some_deadline(void)
{
    static const uint64_t ns[] = {0, 1, 1000, 50000, 3000000};
    uint32_t which = net_dice(BZ_ARRAY_LEN(ns) + 1);
    return which == BZ_ARRAY_LEN(ns) ? BLITZ_FOREVER : which == 0 ? 0 : blitz_after(ns[which]);
}

/* ---- echo ---- */

static int serve(void *arg)
{
    blitz_tcp *t = arg;
    uint8_t data[PIECE];
    int64_t n;
    while ((n = blitz_tcp_read(t, data, sizeof data, BLITZ_FOREVER)) > 0)
        CHECK_EQ(blitz_tcp_write_all(t, data, (size_t)n, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(n, 0);
    blitz_tcp_close(t);
    return 0;
}

struct server {
    blitz_tcp_listener *listener;
    blitz_addr at;
    unsigned count;
};

static int accept_all(void *arg)
{
    struct server *s = arg;
    blitz_task *t[8];
    for (unsigned i = 0; i < s->count; i++) {
        blitz_tcp *c;
        CHECK_EQ(blitz_tcp_accept(s->listener, &c, NULL, BLITZ_FOREVER), 0);
        t[i] = t_spawn(serve, c);
    }
    for (unsigned i = 0; i < s->count; i++)
        t_join(t[i]);
    return 0;
}

struct stream {
    blitz_tcp *t;
    unsigned id;
    uint64_t bytes; /* to be sent */
    uint64_t sent, got;
};

static int send_all(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    while (s->sent < s->bytes) {
        size_t n = 1 + net_dice(PIECE);
        n = n < s->bytes - s->sent ? n : (size_t)(s->bytes - s->sent);
        fill_in(data, n, s->id, s->sent);
        CHECK_EQ(blitz_tcp_write_all(s->t, data, n, NULL, BLITZ_FOREVER), 0);
        s->sent += n;
    }
    CHECK_EQ(blitz_tcp_shutdown(s->t, BLITZ_WRITABLE), 0);
    return 0;
}

static int talk(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    int64_t n;
    blitz_task *sender = t_spawn(send_all, s);
    while ((n = blitz_tcp_read(s->t, data, 1 + net_dice(PIECE), BLITZ_FOREVER)) > 0) {
        look_through(data, (size_t)n, s->id, s->got);
        s->got += (uint64_t)n;
    }
    CHECK_EQ(n, 0);
    t_join(sender);
    CHECK_EQ(s->got, s->bytes);
    blitz_tcp_close(s->t);
    return 0;
}

static int connect_and_talk(void *arg)
{
    struct stream s = {.id = net_dice(1000), .bytes = net_dice(300)};
    CHECK_EQ(blitz_tcp_connect(&((struct server *)arg)->at, BLITZ_FOREVER, &s.t), 0);
    return talk(&s);
}

static int echo_of_several(void *arg)
{
    struct server s = {.count = 1 + net_dice(4)};
    blitz_task *client[4];
    (void)arg;
    s.listener = t_listen(&s.at);
    blitz_task *server = t_spawn(accept_all, &s);
    for (unsigned i = 0; i < s.count; i++)
        client[i] = t_spawn(connect_and_talk, &s);
    for (unsigned i = 0; i < s.count; i++)
        t_join(client[i]);
    t_join(server);
    blitz_tcp_listener_close(s.listener);
    return 0;
}

TEST(net, what_is_sent_comes_back)
{
    net_on_seeds(echo_of_several, NULL, (struct bz_sim_net_config){0}, 100);
}

/* ---- given up at every wait ---- */

/* One write of a stream, in one of the ways there are. Returns what it did, or why not. */
static int64_t write_some(struct stream *s, const uint8_t *data, size_t n)
{
    blitz_piece piece[2] = {{(void *)(uintptr_t)data, n / 2},
                            {(void *)(uintptr_t)(data + n / 2), n - n / 2}};
    size_t done = 0;
    int err;
    switch (net_dice(4)) {
    case 0:
        return blitz_tcp_write(s->t, data, n, some_deadline());
    case 1:
        return blitz_tcp_writev(s->t, piece, 2, some_deadline());
    case 2:
        err = blitz_tcp_write_all(s->t, data, n, &done, some_deadline());
        return done > 0 ? (int64_t)done : err;
    default:
        err = blitz_tcp_wait(s->t, BLITZ_WRITABLE, some_deadline());
        return err != 0 ? err : blitz_tcp_try_write(s->t, data, n);
    }
}

static int64_t read_some(struct stream *s, uint8_t *data, size_t n)
{
    blitz_piece piece[2] = {{data, n / 2}, {data + n / 2, n - n / 2}};
    size_t done = 0;
    int64_t seen;
    int err;
    switch (net_dice(5)) {
    case 0:
        return blitz_tcp_read(s->t, data, n, some_deadline());
    case 1:
        return blitz_tcp_readv(s->t, piece, 2, some_deadline());
    case 2:
        err = blitz_tcp_read_exact(s->t, data, n, &done, some_deadline());
        return done > 0 ? (int64_t)done : err == -ENODATA ? 0 : err;
    case 3:
        seen = blitz_tcp_peek(s->t, data, n, some_deadline());
        if (seen > 0)
            look_through(data, (size_t)seen, s->id, s->got);
        return seen > 0 ? -EAGAIN : seen;
    default:
        err = blitz_tcp_wait(s->t, BLITZ_READABLE, some_deadline());
        return err != 0 ? err : blitz_tcp_try_read(s->t, data, n);
    }
}

static bool is_a_pause(int64_t result)
{
    return result == -ETIMEDOUT || result == -EAGAIN;
}

/* Until it is done, or cancelled. */
static int send_restlessly(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    while (s->sent < s->bytes) {
        size_t n = 1 + net_dice(PIECE);
        n = n < s->bytes - s->sent ? n : (size_t)(s->bytes - s->sent);
        fill_in(data, n, s->id, s->sent);
        int64_t done = write_some(s, data, n);
        memset(data, 0, sizeof data); /* it is ours again, whatever came of it */
        if (done == -ECANCELED)
            return -ECANCELED;
        CHECK(done > 0 || is_a_pause(done));
        s->sent += done > 0 ? (uint64_t)done : 0;
        if (done < 0)
            blitz_yield();
    }
    return blitz_tcp_shutdown(s->t, BLITZ_WRITABLE);
}

static int receive_restlessly(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    for (;;) {
        int64_t n = read_some(s, data, 1 + net_dice(PIECE));
        if (n == 0 || n == -ECANCELED)
            return (int)n;
        CHECK(n > 0 || is_a_pause(n));
        if (n > 0) {
            look_through(data, (size_t)n, s->id, s->got);
            s->got += (uint64_t)n;
        } else {
            blitz_yield();
        }
    }
}

/* Run it, cancel it, let another go on where it stopped. */
static void insist(int (*fn)(void *), struct stream *s)
{
    for (int rounds = 0, result = -ECANCELED; result != 0; rounds++) {
        blitz_task *t = t_spawn(fn, s);
        if (rounds < 5) {
            CHECK_EQ(blitz_sleep(net_dice(3) * net_dice(100000)), 0);
            blitz_task_cancel(t);
        }
        result = t_join(t);
        CHECK(result == 0 || result == -ECANCELED);
    }
}

static int insist_on_sending(void *s)
{
    insist(send_restlessly, s);
    return 0;
}

static int both_ways_restlessly(void *arg)
{
    blitz_tcp *end[2];
    (void)arg;
    if (net_dice(2) == 0)
        t_tcp_pair(end);
    else
        CHECK_EQ(blitz_unix_pair(end), 0);
    struct stream out = {.t = end[0], .id = 1, .bytes = net_dice(400)}, in = {.t = end[1], .id = 1};
    blitz_task *sender = t_spawn(insist_on_sending, &out);
    insist(receive_restlessly, &in);
    t_join(sender);
    CHECK_EQ(in.got, out.bytes);
    t_close_both(end);
    return 0;
}

TEST(net, bug_21_what_is_cancelled_or_late_has_done_what_it_says)
{
    net_on_seeds(both_ways_restlessly, NULL, (struct bz_sim_net_config){0}, 100);
}
