/*
 * compress - read, compress, write: a small gzip and zstd of streams.
 *
 *     compress < file > file.gz            gzip; or: compress zstd
 *     compress -d < file.gz > file         decompress
 *     compress --try                       compress and decompress a text in memory, and compare
 *
 * Each arrow is a stream, and the copy drives them all: reader -> copy -> compressor -> writer. A connection, a pipe or
 * memory in the place of standard input changes one line.
 */
#include <blitz.h>
#include <blitz/compress.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    bool is_decompressing, is_trial;
    blitz_compress_opts opts;
};

static int compress(blitz_reader from, blitz_writer to, const blitz_compress_opts *opts)
{
    blitz_compressor *c;
    int err = blitz_compressor_new(to, opts, &c);
    if (err != 0)
        return err;
    err = blitz_stream_copy(from, blitz_compressor_writer(c), NULL, BLITZ_FOREVER);
    if (err == 0)
        err = blitz_writer_end(blitz_compressor_writer(c),
                               BLITZ_FOREVER); /* the rest, and the checksum */
    blitz_compressor_unref(c);
    return err;
}

static int decompress(blitz_reader from, blitz_writer to, const blitz_compress_opts *opts)
{
    blitz_decompressor *d;
    int err = blitz_decompressor_new(from, opts, &d);
    if (err != 0)
        return err;
    err = blitz_stream_copy(blitz_decompressor_reader(d), to, NULL, BLITZ_FOREVER);
    blitz_decompressor_unref(d);
    return err;
}

/* Compress a text in memory, count both sides, decompress it and compare. */
static int trial(const blitz_compress_opts *opts)
{
    static char text[100000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox jumps over the lazy dog\n"[(i * i / 7 + i) % 44];
    blitz_memory in = {.data = text, .bytes = sizeof text, .room = sizeof text};
    blitz_memory small = {.is_growing = true}, back = {.is_growing = true};
    blitz_counted counted = {.from = blitz_memory_reader(&in)};
    int err = compress(blitz_counted_reader(&counted), blitz_memory_writer(&small), opts);
    if (err == 0)
        err = decompress(blitz_memory_reader(&small), blitz_memory_writer(&back), opts);
    if (err == 0 && (back.bytes != sizeof text || memcmp(back.data, text, sizeof text) != 0))
        err = -EIO;
    if (err == 0)
        printf("%llu bytes became %zu, and came back\n", (unsigned long long)counted.bytes,
               small.bytes);
    free(small.data);
    free(back.data);
    return err;
}

static int run(void *arg)
{
    const struct job *j = arg;
    blitz_fd_stream in, out;
    if (j->is_trial)
        return trial(&j->opts);
    int err = blitz_fd_stream_init(&in, 0);
    if (err == 0)
        err = blitz_fd_stream_init(&out, 1);
    if (err == 0)
        err = (j->is_decompressing ? decompress : compress)(blitz_fd_reader(&in),
                                                            blitz_fd_writer(&out), &j->opts);
    return err;
}

int main(int argc, char **argv)
{
    struct job j = {.is_decompressing = false};
    j.opts.as = blitz_compression_is_there(BLITZ_GZIP) ? BLITZ_GZIP : BLITZ_ZSTD;
    for (int i = 1; i < argc; i++) {
        j.is_decompressing |= strcmp(argv[i], "-d") == 0;
        j.is_trial |= strcmp(argv[i], "--try") == 0;
        if (strcmp(argv[i], "zstd") == 0)
            j.opts.as = BLITZ_ZSTD;
    }
    int err = blitz_run(run, &j, NULL);
    if (err != 0)
        fprintf(stderr, "compress: %s\n", strerror(-err));
    return err != 0;
}
