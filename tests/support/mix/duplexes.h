/*
 * duplexes.h - the scene of streams in memory: readers, writers and their adapters on blitz_duplex.
 *
 * As in streams.h, each pair has a writer and a reader, and byte n is a function of n. The rings are small, from 1 to 64
 * bytes. A writer uses its end directly or through a buffered writer. A reader uses its end directly, through a
 * buffered reader, or by copies of a limited part to memory.
 */
#ifndef MIX_DUPLEXES_H
#define MIX_DUPLEXES_H

#include "support/mix/party.h"

enum { DUPLEX_WRITE, DUPLEX_READ };
enum { DUPLEX_PAIRS = 5, DUPLEX_ROOM = 100 };

struct duplex_pair {
    blitz_duplex *duplex;
    blitz_stream end[2];
    uint64_t bytes[2];   /* written and read so far, each by its party */
    bool has_ended;      /* the reader has read the end */
    bool is_buffered[2]; /* by role */
    uint64_t
        line_end; /* the reader's last step was a line: at most so many bytes of it were its end */
    blitz_buffered_writer out;
    blitz_buffered_reader in;
    char room[2][DUPLEX_ROOM];
};

static struct {
    unsigned pairs;
    struct duplex_pair pair[DUPLEX_PAIRS];
} duplexes;

/* ---- verbs: op->of is the pair; op->n bytes of op->bytes; the result is 0 or an error, and op->moved ---- */

/* The end of a stream is -ENODATA. */
static int duplex_moved(struct mix_op *op, int64_t rc)
{
    op->moved = rc > 0 ? (size_t)rc : 0;
    return rc == 0 ? -ENODATA : rc > 0 ? 0 : (int)rc;
}

static blitz_writer duplex_writer(struct duplex_pair *d)
{
    return d->is_buffered[DUPLEX_WRITE] ? blitz_buffered_as_writer(&d->out)
                                        : d->end[DUPLEX_WRITE].out;
}
static blitz_reader duplex_reader(struct duplex_pair *d)
{
    return d->is_buffered[DUPLEX_READ] ? blitz_buffered_as_reader(&d->in) : d->end[DUPLEX_READ].in;
}

static int mix_writer_write_call(struct mix_op *op, blitz_deadline until)
{
    return duplex_moved(op, blitz_writer_write(duplex_writer(op->of), op->bytes, op->n, until));
}
static const struct mix_verb mix_writer_write = {"writer", mix_writer_write_call, NULL, NULL, 0, 0};

static int mix_writer_all_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_writer_write_all(duplex_writer(op->of), op->bytes, op->n, &op->moved, until);
}
static const struct mix_verb mix_writer_all = {"writer all", mix_writer_all_call, NULL, NULL, 0, 0};

static int mix_flush_call(struct mix_op *op, blitz_deadline until)
{
    struct duplex_pair *d = op->of;
    op->moved = 0;
    return blitz_buffered_flush(&d->out, until);
}
static const struct mix_verb mix_flush = {"flush", mix_flush_call, NULL, NULL, 0, 0};

static int mix_reader_read_call(struct mix_op *op, blitz_deadline until)
{
    return duplex_moved(op, blitz_reader_read(duplex_reader(op->of), op->bytes, op->n, until));
}
static const struct mix_verb mix_reader_read = {"reader", mix_reader_read_call, NULL, NULL, 0, 0};

static int mix_reader_exact_call(struct mix_op *op, blitz_deadline until)
{
    int rc = blitz_reader_read_exact(duplex_reader(op->of), op->bytes, op->n, &op->moved, until);
    return rc == -EPIPE ? -ENODATA : rc;
}
static const struct mix_verb mix_reader_exact = {
    "reader exact", mix_reader_exact_call, NULL, NULL, 0, 0};

/* Copy a part to memory. */
static int mix_copy_call(struct mix_op *op, blitz_deadline until)
{
    blitz_memory memory = {.data = (char *)op->bytes, .room = MIX_BYTES};
    blitz_limited part = {.from = duplex_reader(op->of), .left = op->n};
    uint64_t copied = 0;
    int rc = blitz_stream_copy(blitz_limited_reader(&part), blitz_memory_writer(&memory), &copied,
                               until);
    CHECK_EQ(copied, memory.bytes);
    op->moved = (size_t)copied;
    return rc == 0 && part.left > 0 ? -ENODATA : rc;
}
static const struct mix_verb mix_copy = {"copy", mix_copy_call, NULL, NULL, 0, 0};

static int mix_peek_call(struct mix_op *op, blitz_deadline until)
{
    struct duplex_pair *d = op->of;
    const char *data;
    int64_t n = blitz_buffered_peek(&d->in, op->n % DUPLEX_ROOM + 1, &data, until);
    if (n > 0) {
        memcpy(op->bytes, data, (size_t)n);
        blitz_buffered_take(&d->in, (size_t)n);
    }
    return duplex_moved(op, n);
}
static const struct mix_verb mix_peek = {"peek", mix_peek_call, NULL, NULL, 0, 0};

/* Up to a line feed, if there is one in the buffer's room. */
static int mix_up_to_call(struct mix_op *op, blitz_deadline until)
{
    struct duplex_pair *d = op->of;
    const char *data;
    int64_t n = blitz_buffered_until(&d->in, '\n', DUPLEX_ROOM, &data, until);
    if (n == -EMSGSIZE)
        return mix_peek_call(op, until);
    if (n > 0)
        memcpy(op->bytes, data, (size_t)n);
    return duplex_moved(op, n);
}
static const struct mix_verb mix_up_to = {"up to", mix_up_to_call, NULL, NULL, 0, 0};

/* A line. Its end is not in op->bytes; op->count is set. */
static int mix_line_call(struct mix_op *op, blitz_deadline until)
{
    struct duplex_pair *d = op->of;
    const char *data;
    op->moved = 0;
    int64_t n = blitz_buffered_line(&d->in, DUPLEX_ROOM, &data, until);
    if (n == -EMSGSIZE)
        return mix_peek_call(op, until);
    if (n < 0)
        return (int)n;
    memcpy(op->bytes, data, (size_t)n);
    op->moved = (size_t)n;
    op->count = 1;
    return 0;
}
static const struct mix_verb mix_line = {"line", mix_line_call, NULL, NULL, 0, 0};

/* A part up to a line feed, and the line feed, if it was there. */
static int mix_split_call(struct mix_op *op, blitz_deadline until)
{
    struct duplex_pair *d = op->of;
    const char *data;
    int64_t n = blitz_buffered_split(&d->in, "\n", 1, DUPLEX_ROOM, &data, until);
    if (n == -EMSGSIZE)
        return mix_peek_call(op, until);
    if (n >= 0)
        n = (d->in.room + d->in.at) - data;
    if (n > 0)
        memcpy(op->bytes, data, (size_t)n);
    return duplex_moved(op, n);
}
static const struct mix_verb mix_split = {"split", mix_split_call, NULL, NULL, 0, 0};

/* ---- the scene: p->scratch[0] is the pair ---- */

/* A line feed comes every few dozen bytes, sometimes behind a carriage return. */
static unsigned char duplex_byte(uint64_t at)
{
    if (at % 37 == 36 || at % 111 == 50)
        return '\n';
    return at % 111 == 49 ? '\r' : (unsigned char)('A' + at * 7 % 50);
}

static void duplex_make(struct mix_round *r)
{
    static const size_t rooms[] = {1, 2, 7, 64};
    memset(&duplexes, 0, sizeof duplexes);
    duplexes.pairs = 1 + (unsigned)mix_die(&r->dice, DUPLEX_PAIRS);
    for (unsigned i = 0; i < duplexes.pairs; i++) {
        struct duplex_pair *d = &duplexes.pair[i];
        CHECK_EQ(blitz_duplex_new(rooms[mix_die(&r->dice, 4)], d->end, &d->duplex), 0);
        CHECK_EQ(blitz_buffered_writer_init(&d->out, d->end[DUPLEX_WRITE].out, d->room[0],
                                            1 + mix_die(&r->dice, DUPLEX_ROOM)),
                 0);
        CHECK_EQ(
            blitz_buffered_reader_init(&d->in, d->end[DUPLEX_READ].in, d->room[1], DUPLEX_ROOM), 0);
        for (unsigned role = 0; role < 2; role++) {
            struct mix_party *p = mix_join_in(r, role, role == DUPLEX_READ && i % 3 != 2);
            d->is_buffered[role] = mix_one_in(&r->dice, 2);
            p->scratch[0] = i;
            p->left = 1 + (unsigned)mix_die(&r->dice, 12);
        }
    }
    mix_say(r, " %u pairs", duplexes.pairs);
}

static bool duplex_next(struct mix_party *p)
{
    static const struct mix_verb *const writes[] = {&mix_writer_write, &mix_writer_all, &mix_flush};
    static const struct mix_verb *const reads[] = {&mix_reader_read, &mix_reader_exact, &mix_copy,
                                                   &mix_peek,        &mix_up_to,        &mix_line,
                                                   &mix_split};
    struct duplex_pair *d = &duplexes.pair[p->scratch[0]];
    bool is_unbounded = p->role == DUPLEX_READ && p->is_keeper;
    if (!is_unbounded && p->left-- == 0)
        return false;
    bool is_buffered = d->is_buffered[p->role];
    p->op.n = 1 + mix_die(&p->dice, 200);
    p->op.count = 0;
    if (p->role == DUPLEX_READ) {
        mix_begin(p, reads[mix_die(&p->dice, is_buffered ? 7 : 3)], d);
        return true;
    }
    for (uint64_t i = 0; i < p->op.n; i++)
        p->op.bytes[i] = duplex_byte(d->bytes[DUPLEX_WRITE] + i);
    mix_begin(p, writes[mix_die(&p->dice, is_buffered ? 3 : 2)], d);
    return true;
}

/* The bytes of the end behind a line that stops before byte `at`. At the end of the stream there may be fewer. */
static uint64_t duplex_line_end(uint64_t at)
{
    return duplex_byte(at) == '\n' ? 1 : 2;
}

static void duplex_done(struct mix_party *p, int rc)
{
    struct duplex_pair *d = &duplexes.pair[p->scratch[0]];
    uint64_t *at = &d->bytes[p->role];
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED ||
          rc == (p->role == DUPLEX_WRITE ? -EPIPE : -ENODATA));
    if (p->role == DUPLEX_READ) {
        for (uint64_t i = 0; i < p->op.moved; i++)
            CHECK_EQ(p->op.bytes[i], duplex_byte(*at + i));
        if (rc == 0)
            d->line_end = p->op.count != 0 ? duplex_line_end(*at + p->op.moved) : 0;
        *at += rc == 0 ? d->line_end : 0;
    }
    *at += p->op.moved;
    p->is_over |= rc == -EPIPE || rc == -ENODATA;
    if (rc == -ENODATA)
        d->has_ended = true;
}

static void duplex_leave(struct mix_party *p)
{
    struct duplex_pair *d = &duplexes.pair[p->scratch[0]];
    blitz_shield(); /* a cancelled party ends its stream, too */
    if (p->role == DUPLEX_WRITE) {
        int rc = blitz_writer_end(duplex_writer(d), BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -EPIPE);
    }
    blitz_duplex_close(d->duplex, (int)p->role);
    blitz_unshield();
}

static void duplex_check(struct mix_round *r)
{
    (void)r;
    for (unsigned i = 0; i < duplexes.pairs; i++) {
        struct duplex_pair *d = &duplexes.pair[i];
        CHECK(d->has_ended || i % 3 == 2); /* else a keeper has left early */
        if (d->has_ended) {
            CHECK_GE(d->bytes[DUPLEX_READ], d->bytes[DUPLEX_WRITE]);
            CHECK_LE(d->bytes[DUPLEX_READ], d->bytes[DUPLEX_WRITE] + d->line_end);
        }
        blitz_duplex_unref(d->duplex);
    }
}

static const struct mix_scene mix_scene_duplex = {
    "duplex", 1, duplex_make, duplex_next, duplex_done, duplex_leave, duplex_check};

#endif
