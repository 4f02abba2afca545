/* blitz/stream.h: readers, writers and what is put between them; every byte accounted for. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "blitz.h"
#include "blitz/net.h"
#include "blitz/stream.h"
#include "support/on_each.h"

enum { BIG = 200000 };

static char *pattern(size_t bytes)
{
    char *data = malloc(bytes);
    for (size_t i = 0; data != NULL && i < bytes; i++)
        data[i] = (char)(i * 131 + i / 251);
    CHECK_NOT_NULL(data);
    return data;
}

/* A reader that gives a few bytes at a time, and fails when it is told to. */
struct stingy {
    blitz_memory of;
    struct bz_rng rng;
    int fail_in;
};

static int64_t stingy_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    struct stingy *s = ctx;
    size_t most = 1 + bz_rng_below(&s->rng, 7);
    if (s->fail_in > 0 && --s->fail_in == 0)
        return -ETIMEDOUT;
    return blitz_reader_read(blitz_memory_reader(&s->of), data, bytes < most ? bytes : most, until);
}

static const blitz_reader_ops stingy_ops = {.name = "stingy", .read = stingy_read};

static blitz_reader stingy_of(struct stingy *s, const char *text, int fail_in)
{
    *s = (struct stingy){.of = {.data = (char *)text, .bytes = strlen(text)}, .fail_in = fail_in};
    bz_rng_init(&s->rng, 7);
    return (blitz_reader){&stingy_ops, s};
}

/* ---- memory ---- */

TEST(stream, memory_is_read_to_its_end_and_written_to_its_room)
{
    char room[8], out[16];
    blitz_memory m = {.data = room, .room = sizeof room};
    blitz_writer w = blitz_memory_writer(&m);
    size_t done;
    CHECK_EQ(blitz_writer_write_all(w, "0123456789", 10, &done, 0), -ENOSPC);
    CHECK_EQ(done, 8);
    CHECK_EQ(blitz_reader_read(blitz_memory_reader(&m), out, 3, 0), 3);
    CHECK_EQ(blitz_reader_read_exact(blitz_memory_reader(&m), out + 3, 9, &done, 0), -EPIPE);
    CHECK_EQ(done, 5);
    CHECK_MEM_EQ(out, "01234567", 8);
    CHECK_EQ(blitz_reader_read(blitz_memory_reader(&m), out, 1, 0), 0);
    CHECK_EQ(blitz_reader_read((blitz_reader){NULL, NULL}, out, 1, 0), -EINVAL);
    CHECK_EQ(blitz_writer_write((blitz_writer){NULL, NULL}, out, 1, 0), -EINVAL);
}

TEST(stream, memory_grows_if_it_may)
{
    blitz_memory m = {.is_growing = true};
    char *data = pattern(BIG);
    for (size_t at = 0; at < BIG; at += 1000)
        CHECK_EQ(blitz_writer_write_all(blitz_memory_writer(&m), data + at, 1000, NULL, 0), 0);
    CHECK_EQ(m.bytes, BIG);
    CHECK_MEM_EQ(m.data, data, BIG);
    free(m.data);
    free(data);
}

/* ---- buffered ---- */

TEST(stream, lines_end_as_lines_do)
{
    struct stingy s;
    char room[16];
    const char *line;
    blitz_buffered_reader b;
    CHECK_EQ(blitz_buffered_reader_init(&b, stingy_of(&s, "one\r\n\ntwo\r\nlast", 0), room, 16), 0);
    CHECK_EQ(blitz_buffered_line(&b, 16, &line, 0), 3);
    CHECK_MEM_EQ(line, "one", 3);
    CHECK_EQ(blitz_buffered_line(&b, 16, &line, 0), 0);
    CHECK_EQ(blitz_buffered_line(&b, 16, &line, 0), 3);
    CHECK_MEM_EQ(line, "two", 3);
    CHECK_EQ(blitz_buffered_line(&b, 16, &line, 0), 4);
    CHECK_MEM_EQ(line, "last", 4);
    CHECK_EQ(blitz_buffered_line(&b, 16, &line, 0), -ENODATA);
    CHECK_EQ(blitz_buffered_reader_init(&b, stingy_of(&s, "", 0), NULL, 0), -EINVAL);
}

TEST(stream, a_line_that_is_too_long_is_not_taken)
{
    struct stingy s;
    char room[8];
    const char *line;
    blitz_buffered_reader b;
    CHECK_EQ(blitz_buffered_reader_init(&b, stingy_of(&s, "123456789\n", 0), room, 8), 0);
    CHECK_EQ(blitz_buffered_line(&b, 100, &line, 0), -EMSGSIZE); /* more than the buffer */
    CHECK_EQ(blitz_buffered_line(&b, 4, &line, 0), -EMSGSIZE);   /* more than asked for */
    CHECK_EQ(blitz_buffered_peek(&b, 4, &line, 0), 8);
    CHECK_MEM_EQ(line, "12345678", 8);
    CHECK_EQ(blitz_buffered_peek(&b, 9, &line, 0), -EMSGSIZE);
    blitz_buffered_take(&b, 100);
    CHECK_EQ(blitz_buffered_line(&b, 8, &line, 0), 1);
    CHECK_MEM_EQ(line, "9", 1);
}

/* A deadline at every read: what came so far is still there. */
TEST(stream, bug_21_a_read_that_fails_in_the_middle_of_a_line_loses_nothing)
{
    static const char text[] = "the first line\nthe second one\n";
    for (int fail = 1; fail < 12; fail++) {
        struct stingy s;
        char room[32];
        const char *line;
        blitz_buffered_reader b;
        CHECK_EQ(blitz_buffered_reader_init(&b, stingy_of(&s, text, fail), room, 32), 0);
        int64_t n = blitz_buffered_line(&b, 32, &line, 0);
        if (n == -ETIMEDOUT)
            n = blitz_buffered_line(&b, 32, &line, 0);
        CHECK_EQ(n, 14);
        CHECK_MEM_EQ(line, "the first line", 14);
        n = blitz_buffered_line(&b, 32, &line, 0);
        if (n == -ETIMEDOUT)
            n = blitz_buffered_line(&b, 32, &line, 0);
        CHECK_EQ(n, 14);
        CHECK_MEM_EQ(line, "the second one", 14);
    }
}

/* Against a sequential model: random takes, peeks and reads give the bytes in order. */
TEST(stream, a_buffered_reader_gives_every_byte_once_and_in_order)
{
    char *data = pattern(BIG), out[300];
    struct bz_rng rng;
    size_t at = 0;
    bz_rng_init(&rng, t_seed());
    struct stingy s = {.of = {.data = data, .bytes = BIG}};
    bz_rng_init(&s.rng, t_seed() + 1);
    char room[64];
    blitz_buffered_reader b;
    CHECK_EQ(blitz_buffered_reader_init(&b, (blitz_reader){&stingy_ops, &s}, room, 64), 0);
    while (at < BIG) {
        const char *seen;
        int64_t n;
        if (bz_rng_below(&rng, 2) == 0) {
            n = blitz_buffered_peek(&b, bz_rng_below(&rng, 65), &seen, 0);
            n = bz_rng_below(&rng, (uint32_t)n + 1);
            CHECK(memcmp(seen, data + at, (size_t)n) == 0);
            blitz_buffered_take(&b, (size_t)n);
        } else {
            size_t want = 1 + bz_rng_below(&rng, sizeof out);
            n = blitz_reader_read(blitz_buffered_as_reader(&b), out, want, 0);
            CHECK(n > 0 && memcmp(out, data + at, (size_t)n) == 0);
        }
        at += (size_t)n;
    }
    CHECK_EQ(blitz_reader_read(blitz_buffered_as_reader(&b), out, 1, 0), 0);
    free(data);
}

TEST(stream, a_buffered_writer_keeps_unwritten_bytes_after_an_error)
{
    char room[8], out[12];
    blitz_memory m = {.data = out, .room = 10};
    blitz_buffered_writer b;
    CHECK_EQ(blitz_buffered_writer_init(&b, blitz_memory_writer(&m), room, 8), 0);
    blitz_writer w = blitz_buffered_as_writer(&b);
    CHECK_EQ(blitz_writer_write(w, "12345", 5, 0), 5);
    CHECK_EQ(m.bytes, 0);
    CHECK_EQ(blitz_writer_write(w, "67890", 5, 0), 5); /* the first five go */
    CHECK_EQ(m.bytes, 5);
    CHECK_EQ(blitz_writer_write(w, "ab", 2, 0), 2);
    CHECK_EQ(blitz_buffered_flush(&b, 0), -ENOSPC);
    CHECK_EQ(m.bytes, 10);
    m.room = 12;
    CHECK_EQ(blitz_writer_end(w, 0), 0);
    CHECK_MEM_EQ(out, "1234567890ab", 12);
}

/* ---- in between ---- */

TEST(stream, a_limited_reader_ends_at_its_limit)
{
    struct stingy s;
    char out[16];
    size_t done;
    blitz_limited l = {stingy_of(&s, "0123456789", 0), 4};
    CHECK_EQ(blitz_reader_read_exact(blitz_limited_reader(&l), out, 16, &done, 0), -EPIPE);
    CHECK_EQ(done, 4);
    CHECK_EQ(blitz_reader_read(l.from, out, 1, 0), 1);
    CHECK_EQ(out[0], '4');
}

TEST(stream, a_tee_gives_to_both_and_loses_nothing_if_one_fails)
{
    struct stingy s;
    char out[16], copy[16], room[5];
    size_t done;
    blitz_memory m = {.data = copy, .room = 3};
    blitz_tee t = {.from = stingy_of(&s, "0123456789", 0),
                   .to = blitz_memory_writer(&m),
                   .room = room,
                   .room_bytes = sizeof room};
    int err = blitz_reader_read_exact(blitz_tee_reader(&t), out, 10, &done, 0);
    CHECK_EQ(err, -ENOSPC);
    m.room = 16;
    CHECK_EQ(blitz_reader_read_exact(blitz_tee_reader(&t), out + done, 10 - done, NULL, 0), 0);
    CHECK_MEM_EQ(out, "0123456789", 10);
    CHECK_EQ(m.bytes, 10);
    CHECK_MEM_EQ(copy, "0123456789", 10);
}

/* ---- two ends, and copies ---- */

struct source {
    blitz_writer to;
    const char *data;
    size_t bytes;
};

static int pour(void *arg)
{
    struct source *s = arg;
    CHECK_EQ(blitz_writer_write_all(s->to, s->data, s->bytes, NULL, BLITZ_FOREVER), 0);
    return blitz_writer_end(s->to, BLITZ_FOREVER);
}

static int through_a_duplex(void *arg)
{
    blitz_duplex *d;
    blitz_stream ends[2];
    blitz_task *t;
    char *data = pattern(BIG);
    blitz_memory m = {.is_growing = true};
    uint64_t copied;
    (void)arg;
    CHECK_EQ(blitz_duplex_new(100, ends, &d), 0);
    struct source s = {ends[0].out, data, BIG};
    CHECK_EQ(blitz_spawn(pour, &s, NULL, &t), 0);
    CHECK_EQ(blitz_stream_copy(ends[1].in, blitz_memory_writer(&m), &copied, BLITZ_FOREVER), 0);
    CHECK_EQ(copied, BIG);
    CHECK_MEM_EQ(m.data, data, BIG);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    char c;
    CHECK_EQ(blitz_reader_read(ends[0].in, &c, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_duplex_close(d, 1);
    CHECK_EQ(blitz_reader_read(ends[0].in, &c, 1, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_writer_write(ends[1].out, "x", 1, BLITZ_FOREVER), -EBADF);
    blitz_duplex_unref(d);
    free(m.data);
    free(data);
    return 0;
}

TEST(stream, a_duplex_carries_everything_and_ends)
{
    t_on_each(through_a_duplex, NULL, 0);
    blitz_stream ends[2];
    blitz_duplex *d;
    CHECK_EQ(blitz_duplex_new(0, ends, &d), -EINVAL);
}

/* a - b are two connections' inner ends: a proxy in the middle of a client and a server. */
static int proxy(void *arg)
{
    blitz_stream *inner = arg;
    uint64_t to_b, to_a;
    CHECK_EQ(blitz_stream_copy_both(inner[0], inner[1], 0, &to_b, &to_a, BLITZ_FOREVER), 0);
    CHECK_EQ(to_b, BIG);
    CHECK_EQ(to_a, BIG);
    return 0;
}

static int echo_all(void *arg)
{
    blitz_stream *s = arg;
    CHECK_EQ(blitz_stream_copy(s->in, s->out, NULL, BLITZ_FOREVER), 0);
    return blitz_writer_end(s->out, BLITZ_FOREVER);
}

static int through_a_proxy(void *arg)
{
    blitz_tcp *client[2], *server[2];
    blitz_task *t[3];
    char *data = pattern(BIG);
    blitz_memory m = {.is_growing = true};
    (void)arg;
    CHECK_EQ(blitz_unix_pair(client), 0);
    CHECK_EQ(blitz_unix_pair(server), 0);
    blitz_stream inner[2] = {blitz_tcp_stream(client[1]), blitz_tcp_stream(server[0])};
    blitz_stream far = blitz_tcp_stream(server[1]);
    struct source s = {blitz_tcp_writer(client[0]), data, BIG};
    CHECK_EQ(blitz_spawn(proxy, inner, NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(echo_all, &far, NULL, &t[1]), 0);
    CHECK_EQ(blitz_spawn(pour, &s, NULL, &t[2]), 0);
    CHECK_EQ(blitz_stream_copy(blitz_tcp_reader(client[0]), blitz_memory_writer(&m), NULL,
                               BLITZ_FOREVER),
             0);
    CHECK_EQ(m.bytes, BIG);
    CHECK_MEM_EQ(m.data, data, BIG);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 2; i++) {
        blitz_tcp_close(client[i]);
        blitz_tcp_close(server[i]);
    }
    free(m.data);
    free(data);
    return 0;
}

TEST(stream, a_proxy_copies_both_ways_and_passes_ends_on)
{
    t_on_each(through_a_proxy, NULL, 0);
}

/* ---- descriptors ---- */

static int file_to_connection(void *arg)
{
    char path[] = "/tmp/blitz-stream-XXXXXX";
    char *data = pattern(BIG);
    blitz_tcp *pair[2];
    blitz_memory m = {.is_growing = true};
    blitz_fd_stream file;
    blitz_task *t;
    int fd = mkstemp(path);
    (void)arg;
    CHECK(fd >= 0);
    unlink(path);
    CHECK_EQ(blitz_fd_stream_init(&file, fd), 0);
    CHECK(file.is_disk);
    CHECK_EQ(blitz_writer_write_all(blitz_fd_writer(&file), data, BIG, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(blitz_unix_pair(pair), 0);
    blitz_stream way = {blitz_fd_reader(&file), blitz_tcp_writer(pair[0])};
    CHECK_EQ(blitz_spawn(echo_all, &way, NULL, &t), 0);
    CHECK_EQ(
        blitz_stream_copy(blitz_tcp_reader(pair[1]), blitz_memory_writer(&m), NULL, BLITZ_FOREVER),
        0);
    CHECK_EQ(m.bytes, BIG);
    CHECK_MEM_EQ(m.data, data, BIG);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    blitz_tcp_close(pair[0]);
    blitz_tcp_close(pair[1]);
    close(fd);
    free(m.data);
    free(data);
    return 0;
}

TEST(stream, a_file_goes_to_a_connection)
{
    t_on_each(file_to_connection, NULL, 0);
}

static int through_a_pipe(void *arg)
{
    int fd[2];
    blitz_fd_stream in, out;
    char *data = pattern(BIG);
    blitz_memory m = {.is_growing = true};
    blitz_task *t;
    (void)arg;
    CHECK_EQ(pipe(fd), 0);
    CHECK_EQ(blitz_fd_stream_init(&in, fd[0]), 0);
    CHECK_EQ(blitz_fd_stream_init(&out, fd[1]), 0);
    CHECK(!in.is_disk);
    struct source s = {blitz_fd_writer(&out), data, BIG};
    CHECK_EQ(blitz_spawn(pour, &s, NULL, &t), 0);
    while (m.bytes < BIG) {
        char some[999];
        int64_t n = blitz_reader_read(blitz_fd_reader(&in), some, sizeof some, BLITZ_FOREVER);
        CHECK(n > 0);
        CHECK_EQ(blitz_writer_write_all(blitz_memory_writer(&m), some, (size_t)n, NULL, 0), 0);
    }
    CHECK_MEM_EQ(m.data, data, BIG);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    close(fd[0]);
    close(fd[1]);
    CHECK_EQ(blitz_fd_stream_init(&in, fd[0]), -EBADF);
    free(m.data);
    free(data);
    return 0;
}

TEST(stream, a_pipe_is_waited_for)
{
    t_on_each(through_a_pipe, NULL, 0);
}
