/* Small adapters of streams, and what sockets have beyond bytes: pieces, halves, peeks and marks of packets. */
#include "harness.h"

#include <netinet/ip.h>

#include "blitz/stream.h"
#include "blitz/udp.h"
#include "support/keepers.h"
#include "support/net.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

static blitz_memory text(const char *s)
{
    return (blitz_memory){.data = (char *)(uintptr_t)s, .bytes = strlen(s), .room = strlen(s)};
}

/* ---- counts, limits, nothing ---- */

TEST(adapters, a_count_is_that_of_the_bytes_that_passed)
{
    blitz_memory in = text("0123456789"), out = {.is_growing = true};
    blitz_counted from = {.from = blitz_memory_reader(&in)};
    blitz_counted_out to = {.to = blitz_memory_writer(&out)};
    CHECK_EQ(
        blitz_stream_copy(blitz_counted_reader(&from), blitz_counted_writer(&to), NULL, soon()), 0);
    CHECK_EQ(from.bytes, 10u);
    CHECK_EQ(to.bytes, 10u);
    CHECK_EQ(blitz_writer_end(blitz_counted_writer(&to), soon()), 0);
    free(out.data);
}

TEST(adapters, a_limited_writer_refuses_what_is_beyond)
{
    char room[16];
    blitz_memory out = {.data = room, .room = sizeof room};
    blitz_limited_out l = {blitz_memory_writer(&out), 5};
    size_t done;
    CHECK_EQ(blitz_writer_write_all(blitz_limited_writer(&l), "0123456789", 10, &done, soon()),
             -ENOSPC);
    CHECK_EQ(done, 5u);
    CHECK_EQ(out.bytes, 5u);
    CHECK_EQ(blitz_writer_write(blitz_limited_writer(&l), "x", 1, soon()), -ENOSPC);
    CHECK_EQ(blitz_writer_end(blitz_limited_writer(&l), soon()), 0);
}

TEST(adapters, null_streams_have_no_bytes)
{
    char c;
    uint64_t copied;
    blitz_memory in = text("abc");
    CHECK_EQ(blitz_reader_read(blitz_null_reader(), &c, 1, soon()), 0);
    CHECK_EQ(blitz_stream_copy(blitz_memory_reader(&in), blitz_null_writer(), &copied, soon()), 0);
    CHECK_EQ(copied, 3u);
}

/* ---- tees ---- */

/* A writer that refuses each second call, and takes three bytes in the others. */
struct moody {
    blitz_memory to;
    unsigned calls;
};

static int64_t moody_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    struct moody *m = ctx;
    if (m->calls++ % 2 == 1)
        return -ETIMEDOUT;
    return blitz_writer_write(blitz_memory_writer(&m->to), data, bytes < 3 ? bytes : 3, until);
}

static const blitz_writer_ops moody_ops = {.name = "moody", .write = moody_write};

TEST(adapters, a_tee_of_writers_loses_and_doubles_no_byte)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    struct moody side[2] = {{.to = {.is_growing = true}}, {.to = {.is_growing = true}, .calls = 1}};
    char room[8];
    blitz_tee_out t = {
        .to = {{&moody_ops, &side[0]}, {&moody_ops, &side[1]}}, .room = room, .room_bytes = 8};
    blitz_writer w = blitz_tee_writer(&t);
    size_t at = 0;
    while (at < 36) {
        int64_t n = blitz_writer_write(w, digits + at, 36 - at, soon());
        CHECK(n > 0 || n == -ETIMEDOUT);
        at += n > 0 ? (size_t)n : 0;
    }
    while (blitz_writer_end(w, soon()) != 0)
        continue;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(side[i].to.bytes, 36u);
        CHECK_MEM_EQ(side[i].to.data, digits, 36);
        free(side[i].to.data);
    }
    t.room = NULL;
    CHECK_EQ(blitz_writer_write(w, "x", 1, soon()), -EINVAL);
}

/* ---- parts ---- */

/* A reader that gives a few bytes at a time. */
struct slow {
    blitz_memory *from;
    size_t step;
};

static int64_t slow_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    struct slow *s = ctx;
    return blitz_reader_read(blitz_memory_reader(s->from), data, bytes < s->step ? bytes : s->step,
                             until);
}

static const blitz_reader_ops slow_ops = {.name = "slow", .read = slow_read};

TEST(adapters, a_stream_is_split_by_a_delimiter_of_several_bytes)
{
    blitz_memory in = text("one--two-three----last-");
    char room[16];
    const char *data;
    for (size_t step = 1; step <= sizeof room; step++) { /* the delimiter lies across reads */
        in.at = 0;
        blitz_buffered_reader b;
        struct slow slow = {&in, step};
        CHECK_EQ(
            blitz_buffered_reader_init(&b, (blitz_reader){&slow_ops, &slow}, room, sizeof room), 0);
        CHECK_EQ(blitz_buffered_split(&b, "--", 2, 16, &data, soon()), 3);
        CHECK_MEM_EQ(data, "one", 3);
        CHECK_EQ(blitz_buffered_split(&b, "--", 2, 9, &data, soon()), -EMSGSIZE);
        CHECK_EQ(blitz_buffered_split(&b, "--", 2, 16, &data, soon()), 9);
        CHECK_MEM_EQ(data, "two-three", 9);
        CHECK_EQ(blitz_buffered_split(&b, "--", 2, 16, &data, soon()), 0);
        CHECK_EQ(blitz_buffered_split(&b, "--", 2, 16, &data, soon()), 5);
        CHECK_MEM_EQ(data, "last-", 5);
        CHECK_EQ(blitz_buffered_split(&b, "--", 2, 16, &data, soon()), -ENODATA);
        CHECK_EQ(blitz_buffered_split(&b, "", 0, 16, &data, soon()), -EINVAL);
    }
}

TEST(adapters, a_line_that_is_too_long_can_be_skipped)
{
    blitz_memory in = text("short\nvery very very long line\nnext\nrest");
    char room[8];
    const char *line;
    uint64_t skipped;
    blitz_buffered_reader b;
    CHECK_EQ(blitz_buffered_reader_init(&b, blitz_memory_reader(&in), room, sizeof room), 0);
    CHECK_EQ(blitz_buffered_line(&b, 8, &line, soon()), 5);
    CHECK_EQ(blitz_buffered_line(&b, 8, &line, soon()), -EMSGSIZE);
    CHECK_EQ(blitz_buffered_skip(&b, '\n', &skipped, soon()), 0);
    CHECK_EQ(skipped, 25u);
    CHECK_EQ(blitz_buffered_line(&b, 8, &line, soon()), 4);
    CHECK_EQ(blitz_buffered_skip(&b, '\n', &skipped, soon()), -ENODATA);
    CHECK_EQ(skipped, 4u);
}

/* ---- pieces ---- */

static int many_pieces(void *arg)
{
    enum { PIECES = 3000 };
    static char out[PIECES], in[PIECES];
    static blitz_piece piece[PIECES + 10];
    blitz_tcp *end[2];
    (void)arg;
    t_tcp_pair(end);
    memset(piece, 0, sizeof piece); /* ten empty ones at the front */
    for (size_t i = 0; i < PIECES; i++) {
        out[i] = (char)(i * 7);
        piece[i + 10] = (blitz_piece){&out[i], 1};
    }
    for (size_t at = 0; at < PIECES;) {
        int64_t n = blitz_tcp_writev(end[0], piece + at, PIECES + 10 - at, soon());
        CHECK(n > 0);
        CHECK_LE(n, BLITZ_PIECES_MAX);
        at += (size_t)n + (at == 0 ? 10 : 0);
        if (at >= 10 + PIECES)
            break;
    }
    CHECK_EQ(blitz_tcp_read_exact(end[1], in, PIECES, NULL, soon()), 0);
    CHECK_MEM_EQ(in, out, PIECES);
    CHECK_EQ(blitz_tcp_writev(end[0], piece, 10, soon()), 0); /* all empty */
    t_close_both(end);
    return 0;
}

TEST(adapters, one_call_writes_a_thousand_pieces)
{
    t_on_keepers(many_pieces, NULL);
}

/* ---- halves ---- */

static int reunited(void *arg)
{
    blitz_tcp *end[2], *other[2], *r, *w, *whole;
    char c;
    (void)arg;
    t_tcp_pair(end);
    t_tcp_pair(other);
    CHECK_EQ(blitz_tcp_split(end[0], &r, &w), 0);
    CHECK_EQ(blitz_tcp_reunite(r, r, &whole), -EINVAL);
    CHECK_EQ(blitz_tcp_reunite(r, other[0], &whole), -EINVAL);
    CHECK_EQ(blitz_tcp_reunite(NULL, w, &whole), -EINVAL);
    (void)blitz_tcp_ref(w);
    CHECK_EQ(blitz_tcp_reunite(r, w, &whole), -EBUSY);
    blitz_tcp_unref(w);
    CHECK_EQ(blitz_tcp_reunite(w, r, &whole), 0); /* in any order */
    CHECK_EQ(blitz_tcp_write_all(whole, "x", 1, NULL, soon()), 0);
    CHECK_EQ(blitz_tcp_read_exact(end[1], &c, 1, NULL, soon()), 0); /* nothing was shut down */
    CHECK_EQ(blitz_tcp_write_all(end[1], "y", 1, NULL, soon()), 0);
    CHECK_EQ(blitz_tcp_read_exact(whole, &c, 1, NULL, soon()), 0);
    CHECK_EQ(blitz_tcp_split(whole, &r, &w), 0);
    blitz_tcp_close(r);
    blitz_tcp_close(w);
    CHECK_EQ(blitz_tcp_read(end[1], &c, 1, soon()), 0);
    blitz_tcp_close(end[1]);
    t_close_both(other);
    return 0;
}

TEST(adapters, two_halves_become_one_connection_again)
{
    t_on_keepers(reunited, NULL);
}

/* ---- peeks ---- */

static int peeks(void *arg)
{
    blitz_udp *a, *b;
    blitz_addr any = blitz_addr_loopback_v4(0), at, from;
    blitz_net_future f;
    blitz_message_future m;
    char data[8];
    (void)arg;
    CHECK_EQ(blitz_udp_bind(&any, NULL, &a), 0);
    CHECK_EQ(blitz_udp_bind(&any, NULL, &b), 0);
    CHECK_EQ(blitz_udp_local(b, &at), 0);
    CHECK_EQ(blitz_udp_peek(b, data, 8, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_udp_send_to(a, "hello", 5, &at, soon()), 5);
    CHECK_EQ(blitz_udp_peek(b, data, 8, soon()), 5);
    CHECK_EQ(blitz_udp_peek(b, data, 2, soon()), 5); /* cut, and told */
    CHECK_EQ(blitz_udp_peek_from(b, data, 8, &from, soon()), 5);
    CHECK_EQ(blitz_udp_local(a, &at), 0);
    CHECK(blitz_addr_is_equal(&from, &at));
    blitz_udp_peek_future_init(&f, b, data, 8);
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, 5);
    blitz_udp_peek_from_future_init(&m, b, data, 8, &from);
    CHECK_EQ(blitz_await(&m.future, soon()), 0);
    CHECK_EQ(m.result, 5);
    CHECK_EQ(blitz_udp_recv(b, data, 8, soon()), 5);
    CHECK_EQ(blitz_udp_peek(b, data, 8, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_udp_peek(NULL, data, 8, 0), -EINVAL);
    blitz_udp_close(a);
    blitz_udp_close(b);
    return 0;
}

TEST(adapters, a_peek_leaves_the_datagram_where_it_is)
{
    t_on_keepers(peeks, NULL);
}

/* ---- marks of packets ---- */

static int option_of(blitz_tcp *t, int level, int name)
{
    int value = -1;
    socklen_t bytes = sizeof value;
    CHECK_EQ(getsockopt(((struct bz_socket *)t)->file->fd, level, name, &value, &bytes), 0);
    return value;
}

static int marks(void *arg)
{
    blitz_tcp *end[2];
    blitz_udp *u;
    blitz_addr any = blitz_addr_loopback_v4(0);
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_set_tos(end[0], 46 * 4), 0);
    CHECK_EQ(option_of(end[0], IPPROTO_IP, IP_TOS), 46 * 4);
    CHECK_EQ(blitz_tcp_set_tos(end[0], 256), -EINVAL);
    CHECK_EQ(blitz_tcp_set_tos(NULL, 1), -EINVAL);
    CHECK_EQ(blitz_tcp_set_quickack(end[0], true), 0);
    CHECK_EQ(blitz_tcp_set_quickack(end[0], false), 0);
    CHECK_EQ(blitz_udp_bind(&any, NULL, &u), 0);
    CHECK_EQ(blitz_udp_set_tos(u, 8), 0);
    CHECK_EQ(option_of((blitz_tcp *)u, IPPROTO_IP, IP_TOS), 8);
    CHECK_EQ(blitz_udp_set_tos(u, -1), -EINVAL);
    blitz_udp_close(u);
    t_close_both(end);
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_tcp_set_quickack(end[0], true), -EOPNOTSUPP);
    t_close_both(end);
    return 0;
}

TEST(adapters, packets_carry_the_type_of_service_that_was_set)
{
    t_on_keepers(marks, NULL);
}
