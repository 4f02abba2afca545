/*
 * zlib.c - gzip and zlib by the library zlib.
 *
 * Decompressing takes either frame, also the one that was not asked for: zlib recognises its own two. A count of bytes is an
 * unsigned int there, so larger inputs are given in parts.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "compress/codec.h"

enum { WINDOW_BITS = 15, GZIP_FRAME = 16, EITHER_FRAME = 32, MEMORY_LEVEL = 8 };

struct zlib {
    z_stream z;
    bool is_compressing;
};

static int error_of(int rc)
{
    return rc == Z_MEM_ERROR ? -ENOMEM : rc == Z_STREAM_ERROR ? -EINVAL : -EIO;
}

static int zlib_begin(const blitz_compress_opts *opts, bool is_compressing, void **out)
{
    struct zlib *s = calloc(1, sizeof *s); /* lint: allow allocator: a library of its own */
    if (s == NULL)
        return -ENOMEM;
    s->is_compressing = is_compressing;
    int bits = WINDOW_BITS + (opts->as == BLITZ_GZIP ? GZIP_FRAME : 0);
    int level = opts->level != 0 ? opts->level : Z_DEFAULT_COMPRESSION;
    int rc = is_compressing
                 ? deflateInit2(&s->z, level, Z_DEFLATED, bits, MEMORY_LEVEL, Z_DEFAULT_STRATEGY)
                 : inflateInit2(&s->z, WINDOW_BITS + EITHER_FRAME);
    if (rc == Z_OK) {
        *out = s;
        return 0;
    }
    free(s); /* lint: allow allocator: a library of its own */
    return error_of(rc);
}

static unsigned most(size_t bytes)
{
    return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;
}

static int step(struct zlib *s, struct bz_codec_io *io, int flush)
{
    unsigned in = most(io->in_bytes), out = most(io->out_bytes);
    s->z.next_in = (Bytef *)(uintptr_t)io->in; /* zlib only reads it */
    s->z.avail_in = in;
    s->z.next_out = (Bytef *)io->out;
    s->z.avail_out = out;
    int rc = s->is_compressing ? deflate(&s->z, flush) : inflate(&s->z, flush);
    io->in += in - s->z.avail_in;
    io->in_bytes -= in - s->z.avail_in;
    io->out += out - s->z.avail_out;
    io->out_bytes -= out - s->z.avail_out;
    return rc;
}

static int zlib_compress(void *state, struct bz_codec_io *io, enum bz_codec_how how)
{
    static const int flush[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
    int rc = step(state, io, flush[how]);
    if (rc == Z_STREAM_END)
        return 1;
    if (rc != Z_OK && rc != Z_BUF_ERROR)
        return error_of(rc);
    return how == BZ_CODEC_FLUSH && io->in_bytes == 0 && io->out_bytes > 0;
}

static int zlib_decompress(void *state, struct bz_codec_io *io)
{
    int rc = step(state, io, Z_NO_FLUSH);
    if (rc == Z_STREAM_END)
        return 1;
    return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : rc == Z_MEM_ERROR ? -ENOMEM : -EIO;
}

static int zlib_again(void *state)
{
    return inflateReset(&((struct zlib *)state)->z) == Z_OK ? 0 : -EIO;
}

static void zlib_end(void *state)
{
    struct zlib *s = state;
    (void)(s->is_compressing ? deflateEnd(&s->z) : inflateEnd(&s->z));
    free(s); /* lint: allow allocator: a library of its own */
}

static const struct bz_codec codec = {"zlib",          zlib_begin, zlib_compress,
                                      zlib_decompress, zlib_again, zlib_end};
const struct bz_codec *const bz_codec_zlib = &codec;
