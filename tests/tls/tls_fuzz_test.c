/*
 * blitz/tls.h against sizes and bytes that no careful peer sends. `make fuzz-tls` runs millions of them
 * (BLITZ_FUZZ, a number of inputs); without that a few thousand.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tls/pair.h"

static uint64_t inputs(uint64_t few)
{
    const char *text = getenv("BLITZ_FUZZ");
    return text != NULL ? strtoull(text, NULL, 10) : t_scaled(few);
}

/* ---- sizes ---- */

/* Both directions through a pipe that takes and gives a random number of bytes at a time. */
struct pipe {
    unsigned char data[1 << 17];
    size_t at, end;
    struct bz_rng *rng;
};

static size_t some(struct bz_rng *rng, size_t most)
{
    size_t limit = bz_rng_below(rng, 3) == 0 ? most : most < 40 ? most : 40;
    return limit > 0 ? 1 + bz_rng_below(rng, limit) : 0;
}

static int64_t pipe_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    struct pipe *p = ctx;
    size_t n = some(p->rng, p->end - p->at < bytes ? p->end - p->at : bytes);
    (void)until;
    memcpy(data, p->data + p->at, n);
    p->at += n;
    return n > 0 ? (int64_t)n : -ETIMEDOUT;
}

static int64_t pipe_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    struct pipe *p = ctx;
    (void)until;
    if (p->at == p->end)
        p->at = p->end = 0;
    size_t n = some(p->rng, bytes < sizeof p->data - p->end ? bytes : sizeof p->data - p->end);
    memcpy(p->data + p->end, data, n);
    p->end += n;
    return n > 0 ? (int64_t)n : -ETIMEDOUT;
}

static const blitz_reader_ops pipe_reader = {.name = "pipe", .read = pipe_read};
static const blitz_writer_ops pipe_writer = {.name = "pipe", .write = pipe_write};

struct fuzz {
    struct t_world w;
    blitz_tls_config *config[2];
    struct pipe pipe[2]; /* pipe[i]: written by end i */
    blitz_tls *end[2];
    struct bz_rng rng;
    char said[70000], heard[70000];
};

static void fuzz_new(struct fuzz *f)
{
    t_world_new(&f->w);
    f->config[0] = t_client_config(&f->w);
    f->config[1] = t_server_config(&f->w);
    bz_rng_init(&f->rng, t_random());
    for (size_t i = 0; i < sizeof f->said; i++)
        f->said[i] = (char)(i * 31 + i / 255);
}

static void fuzz_free(struct fuzz *f)
{
    blitz_tls_config_unref(f->config[0]);
    blitz_tls_config_unref(f->config[1]);
    t_world_free(&f->w);
    free(f);
}

static void connect_both(struct fuzz *f)
{
    int err[2] = {-ETIMEDOUT, -ETIMEDOUT};
    for (int i = 0; i < 2; i++) {
        f->pipe[i].rng = &f->rng;
        f->pipe[i].at = f->pipe[i].end = 0;
    }
    for (int i = 0; i < 2; i++) {
        blitz_stream over = {{&pipe_reader, &f->pipe[1 - i]}, {&pipe_writer, &f->pipe[i]}};
        CHECK_EQ(blitz_tls_new(f->config[i], over, i == 0 ? "server.test" : NULL, &f->end[i]), 0);
    }
    for (int i = 0; err[0] != 0 || err[1] != 0; i = 1 - i)
        if (err[i] != 0) {
            err[i] = blitz_tls_handshake(f->end[i], 0);
            CHECK(err[i] == 0 || err[i] == -ETIMEDOUT);
        }
}

/* Write n bytes at one end, read them at the other, in pieces. */
static void pass(struct fuzz *f, int from, size_t n)
{
    size_t put = 0, got = 0, done;
    while (got < n) {
        if (put < n) {
            int rc = blitz_tls_write_all(f->end[from], f->said + put, n - put, &done, 0);
            CHECK(rc == 0 || rc == -ETIMEDOUT);
            put += done;
        } else {
            int rc = blitz_tls_flush(f->end[from], 0);
            CHECK(rc == 0 || rc == -ETIMEDOUT);
        }
        int64_t r;
        while (got < n && (r = blitz_tls_read(f->end[1 - from], f->heard + got,
                                              some(&f->rng, n - got), 0)) > 0)
            got += (size_t)r;
        CHECK(got == n || r == -ETIMEDOUT);
    }
    CHECK_EQ(memcmp(f->said, f->heard, n), 0);
}

/* Sizes around those of a record and of our buffers, and all others. */
static size_t odd_size(struct bz_rng *rng)
{
    static const size_t edges[] = {1, 16383, 16384, 16385, 17408, 32768, 65535, 65536, 65537};
    size_t n = bz_rng_below(rng, 20);
    if (n < sizeof edges / sizeof edges[0])
        return edges[n];
    return 1 + bz_rng_below(rng, n < 18 ? 300 : 70000);
}

TEST_LIMIT(tls_fuzz, records_of_every_size_in_fragments_of_every_size_arrive_whole, 36000)
{
    struct fuzz *f = calloc(1, sizeof *f);
    CHECK_NOT_NULL(f);
    fuzz_new(f);
    uint64_t count = inputs(2000);
    for (uint64_t i = 0; i < count;) {
        connect_both(f);
        for (int k = 0; k < 2000 && i < count; k++, i++) {
            size_t n = odd_size(&f->rng);
            t_watch("input %llu, %zu bytes", (unsigned long long)i, n);
            pass(f, (int)bz_rng_below(&f->rng, 2), n < 400 || k % 16 == 0 ? n : n % 400 + 1);
        }
        blitz_tls_unref(f->end[0]);
        blitz_tls_unref(f->end[1]);
    }
    fuzz_free(f);
}

/* ---- bytes ---- */

/* Records with any type, version, length and content. */
static size_t garbage(struct bz_rng *rng, unsigned char *out, size_t room)
{
    size_t end = 0;
    while (end + 5 < room && bz_rng_below(rng, 6) != 0) {
        size_t said = bz_rng_below(rng, 4) == 0 ? bz_rng_below(rng, 65536) : bz_rng_below(rng, 300);
        size_t there = said < room - end - 5 ? said : room - end - 5;
        out[end] = (unsigned char)(20 + bz_rng_below(rng, bz_rng_below(rng, 4) == 0 ? 200 : 5));
        out[end + 1] = 3;
        out[end + 2] = (unsigned char)bz_rng_below(rng, 6);
        out[end + 3] = (unsigned char)(said >> 8);
        out[end + 4] = (unsigned char)said;
        for (size_t i = 0; i < there; i++)
            out[end + 5 + i] = (unsigned char)bz_rng_below(rng, 256);
        if (there > 4 && bz_rng_below(rng, 2) == 0) { /* a hello of a plausible length */
            out[end + 5] = (unsigned char)(1 + bz_rng_below(rng, 2));
            out[end + 6] = 0;
            out[end + 7] = (unsigned char)((there - 4) >> 8);
            out[end + 8] = (unsigned char)(there - 4);
        }
        end += 5 + there;
    }
    return end;
}

TEST_LIMIT(tls_fuzz, garbage_instead_of_a_handshake_is_an_error, 36000)
{
    struct fuzz *f = calloc(1, sizeof *f);
    CHECK_NOT_NULL(f);
    fuzz_new(f);
    uint64_t count = inputs(2000);
    for (uint64_t i = 0; i < count; i++) {
        int side = (int)(i % 2);
        char sink[4096];
        blitz_memory in = {.data = f->heard, .room = sizeof f->heard},
                     out = {.data = sink, .room = sizeof sink};
        in.bytes = garbage(&f->rng, (unsigned char *)f->heard, 2000);
        blitz_stream over = {blitz_memory_reader(&in), blitz_memory_writer(&out)};
        blitz_tls *tls;
        CHECK_EQ(blitz_tls_new(f->config[side], over, side == 0 ? "server.test" : NULL, &tls), 0);
        int rc = blitz_tls_handshake(tls, 0);
        t_watch("input %llu: %d", (unsigned long long)i, rc);
        CHECK(rc == -EPROTO || rc == -ECONNABORTED || rc == -ENOSPC);
        CHECK_EQ(blitz_tls_handshake(tls, 0), rc);
        blitz_tls_unref(tls);
    }
    fuzz_free(f);
}

/* A byte of a good connection changes, disappears or comes twice. */
TEST_LIMIT(tls_fuzz, a_changed_record_is_never_taken_for_data, 36000)
{
    struct fuzz *f = calloc(1, sizeof *f);
    CHECK_NOT_NULL(f);
    fuzz_new(f);
    uint64_t count = inputs(2000) / 20;
    for (uint64_t i = 0; i < count; i++) {
        connect_both(f);
        pass(f, 0, 100);
        pass(f, 1, 100);
        struct pipe *p = &f->pipe[1];
        p->at = p->end = 0;
        size_t n = 1 + bz_rng_below(&f->rng, 2000), got = 0, done;
        while (blitz_tls_write_all(f->end[1], f->said, n, &done, 0) == -ETIMEDOUT && done < n)
            ;
        while (blitz_tls_flush(f->end[1], 0) == -ETIMEDOUT)
            ;
        p->data[bz_rng_below(&f->rng, p->end)] ^= (unsigned char)(1 + bz_rng_below(&f->rng, 255));
        int64_t r = 1;
        while ((r > 0 || (r == -ETIMEDOUT && p->at < p->end)) && got < n)
            if ((r = blitz_tls_read(f->end[0], f->heard + got, n - got, 0)) > 0)
                got += (size_t)r;
        t_watch("input %llu: %zu of %zu bytes, %d", (unsigned long long)i, got, n, (int)r);
        CHECK_EQ(got, 0); /* one record: all of it or nothing */
        CHECK(r == -EPROTO || r == -ETIMEDOUT || r == 0);
        CHECK_NE(r, 0);
        blitz_tls_unref(f->end[0]);
        blitz_tls_unref(f->end[1]);
    }
    fuzz_free(f);
}
