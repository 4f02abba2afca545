/*
 * codec.h - what a compression library gives to compress.c. One file for each library keeps it.
 */
#ifndef BZ_COMPRESS_CODEC_H
#define BZ_COMPRESS_CODEC_H

#include "blitz/compress.h"

enum bz_codec_how { BZ_CODEC_MORE, BZ_CODEC_FLUSH, BZ_CODEC_END };

/* Bytes in and out of one step. */
struct bz_codec_io {
    const char *in;
    size_t in_bytes; /* left of the input; the step moves both on */
    char *out;
    size_t out_bytes; /* room left for the output; likewise */
};

struct bz_codec {
    const char *name;
    /* Make the state for one direction. Returns 0 and *out, -ENOMEM, -EINVAL (no such level). */
    int (*begin)(const blitz_compress_opts *opts, bool is_compressing, void **out);
    /*
     * Compress or decompress as much as input and room allow.
     * Returns: 1: the flush, the end of the stream or, decompressing, the end of its frame is complete; 0: not yet;
     *          -EIO (damaged), -ENOMEM.
     */
    int (*compress)(void *state, struct bz_codec_io *io, enum bz_codec_how how);
    int (*decompress)(void *state, struct bz_codec_io *io);
    /* Begin another frame after a complete one. Returns 0, -EIO. */
    int (*again)(void *state);
    void (*end)(void *state);
};

/* NULL: built without it. */
extern const struct bz_codec *const bz_codec_zlib, *const bz_codec_zstd;

#endif
