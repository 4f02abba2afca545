/*
 * blitz/compress.h - streams that compress and decompress: gzip, zlib and zstd. A library of its own.
 *
 *     cc ... -lblitz-compress -lblitz                 (pkg-config blitz-compress, blitz::compress)
 *
 *     blitz_compressor *c;
 *     int err = blitz_compressor_new(blitz_fd_writer(&file), &(blitz_compress_opts){.as = BLITZ_GZIP}, &c);
 *     if (err == 0)
 *         err = blitz_stream_copy(blitz_tcp_reader(t), blitz_compressor_writer(c), NULL, until);
 *     if (err == 0)
 *         err = blitz_writer_end(blitz_compressor_writer(c), until);   // writes the rest, and its checksum
 *     blitz_compressor_unref(c);
 *
 * A compressor is a writer in front of another writer, a decompressor a reader behind another reader. So they fit
 * wherever a stream does (blitz/stream.h). Compressing computes on the calling task; only the streams wait. Deadlines
 * and cancels are those of the streams, and none loses a byte: bytes that were compressed and not yet written are kept.
 *
 * The library uses zlib and libzstd, each if it was there when blitz was built: blitz_compression_is_there(). Neither
 * object is for two tasks at once.
 */
#ifndef BLITZ_COMPRESS_H
#define BLITZ_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/stream.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

#if defined(__GNUC__)
#define BLITZ_COMPRESS_API __attribute__((visibility("default")))
#else
#define BLITZ_COMPRESS_API
#endif

typedef enum blitz_compression {
    BLITZ_GZIP = 0, /* with the header and checksum of gzip files */
    BLITZ_ZLIB = 1, /* the same bytes in zlib's frame: "deflate" in HTTP */
    BLITZ_ZSTD = 2
} blitz_compression;

/* The options of both. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_compress_opts {
    blitz_compression as;
    int level; /* 0: the default of the library (6 of zlib, 3 of zstd); more is smaller and slower */
    size_t room_bytes;  /* of the buffer between the two; 0: 64 KiB */
    uint64_t bytes_max; /* decompressing: more bytes than that are an error; 0: any number */
} blitz_compress_opts;

/*
 * True if the library was built with it.
 * Suspends: never. Call from any thread.
 * Returns:  true if it was.
 */
BLITZ_COMPRESS_API bool blitz_compression_is_there(blitz_compression as);

/* ---- compressing ---- */

typedef struct blitz_compressor blitz_compressor;

/*
 * Make a compressor in front of a writer.
 * Owns:     *out is the caller's: blitz_compressor_unref(). Copies the options. Uses `to` until then.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (no writer, or no such level), -EOPNOTSUPP (built without it). *out is written only on
 *           0.
 */
BLITZ_COMPRESS_API BLITZ_MUST_USE int
blitz_compressor_new(blitz_writer to, const blitz_compress_opts *opts, blitz_compressor **out);

/* Return the compressor as a writer. Its end writes the rest of the compressed bytes and ends the other.
 * Owns:     borrows the compressor while it is used.
 * Suspends: never.
 * Returns:  the writer. */
BLITZ_COMPRESS_API blitz_writer blitz_compressor_writer(blitz_compressor *c);

/*
 * Write all that was given so far, so that a reader at the other end can have it. It costs some bytes each time.
 * Owns:     borrows the compressor until it returns.
 * Suspends: until it is written, `until`, or a cancel.
 * Returns:  0; -ETIMEDOUT, -ECANCELED, an error of the stream: the rest is kept, flush again.
 */
BLITZ_COMPRESS_API BLITZ_SUSPENDS int blitz_compressor_flush(blitz_compressor *c,
                                                             blitz_deadline until);

/* Owns:     takes it; NULL is ignored. Bytes that were not written are lost: end the writer first.
 * Suspends: never. */
BLITZ_COMPRESS_API void blitz_compressor_unref(blitz_compressor *c);

/* ---- decompressing ---- */

typedef struct blitz_decompressor blitz_decompressor;

/*
 * Make a decompressor behind a reader. Several compressed streams in a row are read as one.
 * Owns:     *out is the caller's: blitz_decompressor_unref(). Copies the options. Uses `from` until then.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (no reader), -EOPNOTSUPP (built without it). *out is written only on 0.
 */
BLITZ_COMPRESS_API BLITZ_MUST_USE int blitz_decompressor_new(blitz_reader from,
                                                             const blitz_compress_opts *opts,
                                                             blitz_decompressor **out);

/* Return the decompressor as a reader. Its errors, besides those of the other: -EIO (the bytes are damaged, or not
 * compressed so), -EPIPE (the source ended in the middle), -EMSGSIZE (more than bytes_max).
 * Owns:     borrows the decompressor while it is used.
 * Suspends: never.
 * Returns:  the reader. */
BLITZ_COMPRESS_API blitz_reader blitz_decompressor_reader(blitz_decompressor *d);

/* Owns:     takes it; NULL is ignored.
 * Suspends: never. */
BLITZ_COMPRESS_API void blitz_decompressor_unref(blitz_decompressor *d);

BLITZ_END_DECLS

#endif
