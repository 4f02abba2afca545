/* Streams that compress: every byte comes back, whatever the pieces, the rooms and the errors are. */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "blitz/compress.h"
#include "blitz/runtime.h"

enum { BYTES = 300000 };

static const blitz_compression kinds[] = {BLITZ_GZIP, BLITZ_ZLIB, BLITZ_ZSTD};

static char *some_bytes(void)
{
    char *data = malloc(BYTES);
    CHECK_NOT_NULL(data);
    for (size_t i = 0; i < BYTES; i++) /* a third of it does not shrink */
        data[i] = i % 3 == 0 ? (char)t_random_below(256) : (char)('a' + i / 1000 % 20);
    return data;
}

/* A writer that takes a few bytes, and fails each third time. */
struct moody {
    blitz_memory to;
    unsigned calls;
};

static int64_t moody_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    struct moody *m = ctx;
    if (m->calls++ % 3 == 2)
        return -ETIMEDOUT;
    return blitz_writer_write(blitz_memory_writer(&m->to), data, bytes < 777 ? bytes : 777, until);
}

/* A reader that gives a few bytes, and fails each third time. */
static int64_t moody_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    struct moody *m = ctx;
    if (m->calls++ % 3 == 2)
        return -ETIMEDOUT;
    return blitz_reader_read(blitz_memory_reader(&m->to), data, bytes < 501 ? bytes : 501, until);
}

static const blitz_writer_ops moody_writer = {.name = "moody", .write = moody_write};
static const blitz_reader_ops moody_reader = {.name = "moody", .read = moody_read};

static void compress_into(struct moody *m, const char *data, size_t bytes,
                          const blitz_compress_opts *opts)
{
    blitz_compressor *c;
    size_t at = 0;
    CHECK_EQ(blitz_compressor_new((blitz_writer){&moody_writer, m}, opts, &c), 0);
    while (at < bytes) {
        size_t piece = 1 + (size_t)t_random_below(20000);
        int64_t n = blitz_writer_write(blitz_compressor_writer(c), data + at,
                                       piece < bytes - at ? piece : bytes - at, BLITZ_FOREVER);
        CHECK(n > 0 || n == -ETIMEDOUT);
        at += n > 0 ? (size_t)n : 0;
        while (t_random_below(20) == 0 && blitz_compressor_flush(c, BLITZ_FOREVER) != 0)
            continue;
    }
    while (blitz_writer_end(blitz_compressor_writer(c), BLITZ_FOREVER) != 0)
        continue;
    CHECK_EQ(blitz_writer_write(blitz_compressor_writer(c), "x", 1, BLITZ_FOREVER), -EPIPE);
    blitz_compressor_unref(c);
}

static size_t decompress_from(struct moody *m, char *out, size_t room,
                              const blitz_compress_opts *opts)
{
    blitz_decompressor *d;
    size_t have = 0;
    CHECK_EQ(blitz_decompressor_new((blitz_reader){&moody_reader, m}, opts, &d), 0);
    for (int64_t n = 1; n != 0;) {
        n = blitz_reader_read(blitz_decompressor_reader(d), out + have,
                              room - have < 1000 ? room - have : 1 + (size_t)t_random_below(1000),
                              BLITZ_FOREVER);
        CHECK(n >= 0 || n == -ETIMEDOUT);
        have += n > 0 ? (size_t)n : 0;
    }
    CHECK_EQ(blitz_reader_read(blitz_decompressor_reader(d), out, 1, BLITZ_FOREVER),
             0); /* again the end */
    blitz_decompressor_unref(d);
    return have;
}

TEST(compress, every_byte_comes_back)
{
    static const size_t rooms[] = {1, 100, 0};
    char *data = some_bytes(), *back = malloc(2 * BYTES + 1);
    CHECK_NOT_NULL(back);
    for (size_t i = 0; i < BZ_ARRAY_LEN(kinds); i++) {
        if (!blitz_compression_is_there(kinds[i]))
            continue;
        for (size_t k = 0; k < BZ_ARRAY_LEN(rooms); k++) {
            blitz_compress_opts opts = {.as = kinds[i], .room_bytes = rooms[k], .level = (int)k};
            struct moody m = {.to = {.is_growing = true}};
            size_t bytes = rooms[k] == 1 ? 3000 : BYTES;
            compress_into(&m, data, bytes, &opts);
            CHECK_EQ(decompress_from(&m, back, BYTES + 1, &opts), bytes);
            CHECK_MEM_EQ(back, data, bytes);
            compress_into(&m, data, bytes, &opts); /* a second frame behind the first */
            m.to.at = 0;
            CHECK_EQ(decompress_from(&m, back, 2 * BYTES + 1, &opts), 2 * bytes);
            CHECK_MEM_EQ(back + bytes, data, bytes);
            free(m.to.data);
        }
    }
    free(data);
    free(back);
}

TEST(compress, damaged_and_cut_streams_are_errors)
{
    char *data = some_bytes(), *back = malloc(BYTES);
    CHECK_NOT_NULL(back);
    for (size_t i = 0; i < BZ_ARRAY_LEN(kinds); i++) {
        blitz_compress_opts opts = {.as = kinds[i]};
        struct moody m = {.to = {.is_growing = true}};
        blitz_decompressor *d;
        if (!blitz_compression_is_there(kinds[i]))
            continue;
        compress_into(&m, data, BYTES, &opts);
        m.to.bytes -= 5;
        CHECK_EQ(blitz_decompressor_new(blitz_memory_reader(&m.to), &opts, &d), 0);
        int err = 0;
        while (err == 0)
            err = blitz_reader_read_exact(blitz_decompressor_reader(d), back, 1000, NULL,
                                          BLITZ_FOREVER);
        CHECK_EQ(err, -EPIPE);
        blitz_decompressor_unref(d);
        m.to.bytes += 5;
        m.to.at = 0;
        m.to.data[m.to.bytes / 2] ^= 0x10;
        CHECK_EQ(blitz_decompressor_new(blitz_memory_reader(&m.to), &opts, &d), 0);
        for (err = 0; err == 0;)
            err = blitz_reader_read_exact(blitz_decompressor_reader(d), back, 1000, NULL,
                                          BLITZ_FOREVER);
        CHECK_EQ(err, -EIO);
        blitz_decompressor_unref(d);
        free(m.to.data);
    }
    free(data);
    free(back);
}

/* A few bytes may say "a gigabyte of zeros". */
TEST(compress, more_bytes_than_allowed_are_an_error)
{
    static char zeros[100000], back[100001];
    for (size_t i = 0; i < BZ_ARRAY_LEN(kinds); i++) {
        blitz_compress_opts opts = {.as = kinds[i], .bytes_max = 99999};
        struct moody m = {.to = {.is_growing = true}};
        blitz_decompressor *d;
        size_t done;
        if (!blitz_compression_is_there(kinds[i]))
            continue;
        compress_into(&m, zeros, sizeof zeros, &opts);
        CHECK_LT(m.to.bytes, 1000u);
        CHECK_EQ(blitz_decompressor_new(blitz_memory_reader(&m.to), &opts, &d), 0);
        CHECK_EQ(blitz_reader_read_exact(blitz_decompressor_reader(d), back, sizeof zeros, &done,
                                         BLITZ_FOREVER),
                 -EMSGSIZE);
        CHECK_EQ(done, 99999u);
        blitz_decompressor_unref(d);
        m.to.at = 0;
        opts.bytes_max = 100000;
        CHECK_EQ(decompress_from(&m, back, sizeof back, &opts), sizeof zeros);
        free(m.to.data);
    }
}

TEST(compress, wrong_options_are_refused)
{
    blitz_compressor *c;
    blitz_decompressor *d;
    blitz_compress_opts wrong = {.as = (blitz_compression)9}, steep = {.level = 1000};
    CHECK_EQ(blitz_compressor_new((blitz_writer){NULL, NULL}, NULL, &c), -EINVAL);
    CHECK_EQ(blitz_compressor_new(blitz_null_writer(), &wrong, &c), -EOPNOTSUPP);
    CHECK_EQ(blitz_decompressor_new(blitz_null_reader(), &wrong, &d), -EOPNOTSUPP);
    for (size_t i = 0; i < BZ_ARRAY_LEN(kinds); i++) {
        steep.as = kinds[i];
        if (blitz_compression_is_there(kinds[i]))
            CHECK_EQ(blitz_compressor_new(blitz_null_writer(), &steep, &c), -EINVAL);
    }
    CHECK_EQ(blitz_compressor_flush(NULL, 0), -EINVAL);
    blitz_compressor_unref(NULL);
    blitz_decompressor_unref(NULL);
}
