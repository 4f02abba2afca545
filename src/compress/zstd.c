/*
 * zstd.c - zstd by the library libzstd, with a checksum of the content in each frame.
 */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "compress/codec.h"

struct zstd {
    ZSTD_CCtx *c; /* one of the two */
    ZSTD_DCtx *d;
};

static void zstd_end(void *state)
{
    struct zstd *s = state;
    ZSTD_freeCCtx(s->c);
    ZSTD_freeDCtx(s->d);
    free(s); /* lint: allow allocator: a library of its own */
}

static bool sets(ZSTD_CCtx *c, const blitz_compress_opts *opts)
{
    int level = opts->level != 0 ? opts->level : ZSTD_CLEVEL_DEFAULT;
    return level <= ZSTD_maxCLevel() &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1));
}

static int zstd_begin(const blitz_compress_opts *opts, bool is_compressing, void **out)
{
    struct zstd *s = calloc(1, sizeof *s); /* lint: allow allocator: a library of its own */
    if (s == NULL)
        return -ENOMEM;
    s->c = is_compressing ? ZSTD_createCCtx() : NULL;
    s->d = is_compressing ? NULL : ZSTD_createDCtx();
    int err = s->c == NULL && s->d == NULL        ? -ENOMEM
              : s->c != NULL && !sets(s->c, opts) ? -EINVAL
                                                  : 0;
    if (err == 0)
        *out = s;
    else
        zstd_end(s);
    return err;
}

static void move_on(struct bz_codec_io *io, size_t in, size_t out)
{
    io->in += in;
    io->in_bytes -= in;
    io->out += out;
    io->out_bytes -= out;
}

static int zstd_compress(void *state, struct bz_codec_io *io, enum bz_codec_how how)
{
    static const ZSTD_EndDirective directive[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
    ZSTD_inBuffer in = {io->in, io->in_bytes, 0};
    ZSTD_outBuffer out = {io->out, io->out_bytes, 0};
    size_t left = ZSTD_compressStream2(((struct zstd *)state)->c, &out, &in, directive[how]);
    move_on(io, in.pos, out.pos);
    return ZSTD_isError(left) ? -EIO : how != BZ_CODEC_MORE && left == 0;
}

static int zstd_decompress(void *state, struct bz_codec_io *io)
{
    ZSTD_inBuffer in = {io->in, io->in_bytes, 0};
    ZSTD_outBuffer out = {io->out, io->out_bytes, 0};
    size_t left = ZSTD_decompressStream(((struct zstd *)state)->d, &out, &in);
    move_on(io, in.pos, out.pos);
    return ZSTD_isError(left) ? -EIO : left == 0;
}

/* The next call begins another frame by itself. */
static int zstd_again(void *state)
{
    (void)state;
    return 0;
}

static const struct bz_codec codec = {"zstd",          zstd_begin, zstd_compress,
                                      zstd_decompress, zstd_again, zstd_end};
const struct bz_codec *const bz_codec_zstd = &codec;
