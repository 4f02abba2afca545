/*
 * compress.c - compressors as writers, decompressors as readers.
 *
 * Between the two streams lies a room for compressed bytes. A compressor fills it and writes it out when it is full;
 * a decompressor reads into it and takes bytes from its front. The rule of streams is "at least a byte, or an error and
 * nothing". So a write that has given bytes to the codec has taken them. If the writer behind fails then, the write
 * returns the number of bytes it took. The compressed bytes stay in the room, and the next call fails if the error stays.
 *
 * I1  room[at..end) are compressed bytes: not yet written, or read and not yet decompressed.
 * I2  A call that returns an error has changed nothing but the part of I1 that was written or read.
 */
#include "blitz/compress.h"

#include <errno.h>
#include <stdlib.h>

#include "compress/codec.h"

enum { ROOM_BYTES = 64 << 10 };

struct side {
    const struct bz_codec *codec;
    void *state;
    char *room;
    size_t room_bytes, at, end;
};

struct blitz_compressor {
    struct side s;
    blitz_writer to;
    bool is_complete; /* the end of the stream is in the room or written */
};

struct blitz_decompressor {
    struct side s;
    blitz_reader from;
    uint64_t left;                      /* bytes that may still come */
    bool is_in_frame, is_at_source_end; /* in_frame: a frame has begun and is not complete */
};

static const struct bz_codec *codec_of(blitz_compression as)
{
    return as == BLITZ_ZSTD                       ? bz_codec_zstd
           : as == BLITZ_GZIP || as == BLITZ_ZLIB ? bz_codec_zlib
                                                  : NULL;
}

bool blitz_compression_is_there(blitz_compression as)
{
    return codec_of(as) != NULL;
}

static int side_begin(struct side *s, const blitz_compress_opts *opts, bool is_compressing)
{
    s->codec = codec_of(opts->as);
    if (s->codec == NULL)
        return -EOPNOTSUPP;
    s->room_bytes = opts->room_bytes != 0 ? opts->room_bytes : ROOM_BYTES;
    s->room = malloc(s->room_bytes); /* lint: allow allocator: a library of its own */
    if (s->room == NULL)
        return -ENOMEM;
    int err = s->codec->begin(opts, is_compressing, &s->state);
    if (err != 0)
        free(s->room); /* lint: allow allocator: a library of its own */
    return err;
}

static void side_end(struct side *s)
{
    s->codec->end(s->state);
    free(s->room); /* lint: allow allocator: a library of its own */
}

/* ---- compressing ---- */

/* Write the bytes of the room. */
static int drain(blitz_compressor *c, blitz_deadline until)
{
    size_t done = 0;
    int err = blitz_writer_write_all(c->to, c->s.room + c->s.at, c->s.end - c->s.at, &done, until);
    c->s.at += done; /* I1 */
    if (c->s.at == c->s.end)
        c->s.at = c->s.end = 0;
    return err;
}

/* One step of the codec into the free part of the room. Returns as bz_codec.compress. */
static int press(blitz_compressor *c, const char **data, size_t *bytes, enum bz_codec_how how)
{
    struct bz_codec_io io = {*data, *bytes, c->s.room + c->s.end, c->s.room_bytes - c->s.end};
    int rc = c->s.codec->compress(c->s.state, &io, how);
    c->s.end = (size_t)(io.out - c->s.room);
    *data = io.in;
    *bytes = io.in_bytes;
    return rc;
}

static int64_t compressor_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    blitz_compressor *c = ctx;
    const char *in = data;
    size_t left = bytes;
    int err = c->is_complete ? -EPIPE : c->s.end == c->s.room_bytes ? drain(c, until) : 0;
    while (err == 0 && left > 0) {
        int rc = press(c, &in, &left, BZ_CODEC_MORE);
        if (rc < 0)
            err = rc;
        else if (c->s.end == c->s.room_bytes)
            err = drain(c, until);
    }
    return left < bytes ? (int64_t)(bytes - left) : err; /* I2 */
}

/* Write all that the codec holds. */
static int complete(blitz_compressor *c, enum bz_codec_how how, blitz_deadline until)
{
    const char *none = "";
    size_t bytes = 0;
    int rc = c->is_complete;
    while (rc == 0) {
        rc = c->s.end == c->s.room_bytes ? drain(c, until) : 0;
        if (rc == 0)
            rc = press(c, &none, &bytes, how);
    }
    if (rc < 0)
        return rc;
    c->is_complete = c->is_complete || how == BZ_CODEC_END;
    return drain(c, until);
}

static int compressor_end(void *ctx, blitz_deadline until)
{
    blitz_compressor *c = ctx;
    int err = complete(c, BZ_CODEC_END, until);
    return err != 0 ? err : blitz_writer_end(c->to, until);
}

int blitz_compressor_flush(blitz_compressor *c, blitz_deadline until)
{
    return c == NULL ? -EINVAL : complete(c, BZ_CODEC_FLUSH, until);
}

blitz_writer blitz_compressor_writer(blitz_compressor *c)
{
    static const blitz_writer_ops ops = {
        .name = "compressor", .write = compressor_write, .end = compressor_end};
    return (blitz_writer){&ops, c};
}

int blitz_compressor_new(blitz_writer to, const blitz_compress_opts *opts, blitz_compressor **out)
{
    static const blitz_compress_opts plain;
    if (to.ops == NULL || out == NULL)
        return -EINVAL;
    blitz_compressor *c = calloc(1, sizeof *c); /* lint: allow allocator: a library of its own */
    if (c == NULL)
        return -ENOMEM;
    c->to = to;
    int err = side_begin(&c->s, opts != NULL ? opts : &plain, true);
    if (err == 0)
        *out = c;
    else
        free(c); /* lint: allow allocator: a library of its own */
    return err;
}

void blitz_compressor_unref(blitz_compressor *c)
{
    if (c == NULL)
        return;
    side_end(&c->s);
    free(c); /* lint: allow allocator: a library of its own */
}

/* ---- decompressing ---- */

/* Read into the empty room. Returns as a reader. */
static int64_t refill(blitz_decompressor *d, blitz_deadline until)
{
    int64_t n = blitz_reader_read(d->from, d->s.room, d->s.room_bytes, until);
    if (n > 0) {
        d->s.at = 0;
        d->s.end = (size_t)n;
    }
    d->is_at_source_end = n == 0;
    return n;
}

/* One step of the codec. Returns the bytes that came, or an error. */
static int64_t unpress(blitz_decompressor *d, char *data, size_t bytes)
{
    struct bz_codec_io io = {d->s.room + d->s.at, d->s.end - d->s.at, data, bytes};
    if (!d->is_in_frame && d->s.codec->again(d->s.state) != 0)
        return -EIO;
    d->is_in_frame = true;
    int rc = d->s.codec->decompress(d->s.state, &io);
    d->s.at = (size_t)(io.in - d->s.room);
    if (rc < 0)
        return rc;
    d->is_in_frame = rc == 0;
    return io.out - data;
}

static int64_t decompressor_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    blitz_decompressor *d = ctx;
    char beyond;
    bool is_full = d->left == 0; /* one more byte would be too much: see whether there is one */
    size_t most = is_full ? 1 : d->left < bytes ? (size_t)d->left : bytes;
    int64_t n = 0;
    while (n == 0) {
        if (d->s.at == d->s.end && !d->is_at_source_end) {
            /* the codec may hold bytes that had no room: ask it before waiting */
            n = d->is_in_frame ? unpress(d, is_full ? &beyond : data, most) : 0;
            if (n != 0)
                break;
            n = refill(d, until);
            if (n < 0)
                return n;
        }
        if (d->s.at == d->s.end && d->is_at_source_end)
            return d->is_in_frame ? -EPIPE : 0;
        n = unpress(d, is_full ? &beyond : data, most);
    }
    if (n > 0 && is_full)
        return -EMSGSIZE;
    d->left -= n > 0 ? (uint64_t)n : 0;
    return n;
}

blitz_reader blitz_decompressor_reader(blitz_decompressor *d)
{
    static const blitz_reader_ops ops = {.name = "decompressor", .read = decompressor_read};
    return (blitz_reader){&ops, d};
}

int blitz_decompressor_new(blitz_reader from, const blitz_compress_opts *opts,
                           blitz_decompressor **out)
{
    static const blitz_compress_opts plain;
    if (from.ops == NULL || out == NULL)
        return -EINVAL;
    opts = opts != NULL ? opts : &plain;
    blitz_decompressor *d = calloc(1, sizeof *d); /* lint: allow allocator: a library of its own */
    if (d == NULL)
        return -ENOMEM;
    d->from = from;
    d->left = opts->bytes_max != 0 ? opts->bytes_max : UINT64_MAX;
    int err = side_begin(&d->s, opts, false);
    if (err == 0)
        *out = d;
    else
        free(d); /* lint: allow allocator: a library of its own */
    return err;
}

void blitz_decompressor_unref(blitz_decompressor *d)
{
    if (d == NULL)
        return;
    side_end(&d->s);
    free(d); /* lint: allow allocator: a library of its own */
}
