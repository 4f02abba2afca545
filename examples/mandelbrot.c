/*
 * mandelbrot.c - a picture of the Mandelbrot set, written as PNG.
 *
 * A row through the middle takes a thousand times as long as a row at the edge. With one stripe for
 * each worker, most workers would wait for one. blitz_for balances such a loop without hints: an
 * idle worker steals half of the remaining rows of another worker. The sequential version calls the
 * same function for all rows.
 *
 *     example_mandelbrot [WIDTH [FILE]]     default 900 and mandelbrot.png
 */
#include <stdlib.h>
#include <string.h>

#include "twin.h"

enum { STEPS_MAX = 500 };

struct picture {
    size_t width, height;
    unsigned char *together, *alone; /* a byte a pixel, row after row */
    const char *file;
};

static unsigned char pixel(double x, double y)
{
    double re = 0, im = 0;
    int steps = 0;
    while (steps < STEPS_MAX && re * re + im * im < 4) {
        double next = re * re - im * im + x;
        im = 2 * re * im + y;
        re = next;
        steps++;
    }
    return (unsigned char)(steps == STEPS_MAX ? 0 : 255 - steps * 7 % 200);
}

static void draw(const struct picture *p, unsigned char *pixels, size_t from, size_t to)
{
    double scale = 3.0 / (double)p->width;
    for (size_t row = from; row < to; row++)
        for (size_t column = 0; column < p->width; column++)
            pixels[row * p->width + column] =
                pixel((double)column * scale - 2.25, ((double)row - (double)p->height / 2) * scale);
}

static int rows(size_t from, size_t to, void *arg)
{
    struct picture *p = arg;
    draw(p, p->together, from, to);
    return 0;
}

static int in_parallel(void *arg)
{
    struct picture *p = arg;
    return blitz_for(p->height, rows, p, NULL);
}

static int one_after_another(void *arg)
{
    struct picture *p = arg;
    draw(p, p->alone, 0, p->height);
    return 0;
}

/* ---- PNG, as plain as can be: grey, one byte a pixel, not compressed ---- */

struct png {
    FILE *out;
    uint32_t crc;  /* of the chunk so far, inverted */
    uint32_t a, b; /* Adler-32 of the image data so far */
};

static void put(struct png *png, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) {
        png->crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            png->crc = png->crc >> 1 ^ (png->crc & 1 ? 0xedb88320u : 0);
    }
    fwrite(data, 1, bytes, png->out);
}

static void put_32(struct png *png, uint32_t n)
{
    put(png,
        (unsigned char[]){(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                          (unsigned char)(n >> 8), (unsigned char)n},
        4);
}

static void chunk_begin(struct png *png, uint32_t bytes, const char *type)
{
    put_32(png, bytes);
    png->crc = ~0u; /* the length is not part of it */
    put(png, type, 4);
}

static void chunk_end(struct png *png)
{
    put_32(png, ~png->crc);
}

/* One row as a stored block of its own: "no filter", then its pixels. */
static void put_row(struct png *png, const unsigned char *pixels, size_t width, int is_last)
{
    unsigned size = (unsigned)width + 1, rest = ~size;
    unsigned char head[] = {(unsigned char)is_last,     (unsigned char)size,
                            (unsigned char)(size >> 8), (unsigned char)rest,
                            (unsigned char)(rest >> 8), 0};
    put(png, head, sizeof head);
    put(png, pixels, width);
    png->b = (png->b + png->a) % 65521; /* the filter byte is 0 */
    for (size_t i = 0; i < width; i++) {
        png->a = (png->a + pixels[i]) % 65521;
        png->b = (png->b + png->a) % 65521;
    }
}

static int write_png(const struct picture *p)
{
    struct png png = {.out = fopen(p->file, "wb"), .a = 1};
    if (png.out == NULL)
        return -1;
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, png.out);
    chunk_begin(&png, 13, "IHDR");
    put_32(&png, (uint32_t)p->width);
    put_32(&png, (uint32_t)p->height);
    put(&png, (unsigned char[]){8, 0, 0, 0, 0}, 5); /* 8 bits of grey */
    chunk_end(&png);
    chunk_begin(&png, (uint32_t)(2 + p->height * (p->width + 6) + 4), "IDAT");
    put(&png, (unsigned char[]){0x78, 0x01}, 2);
    for (size_t row = 0; row < p->height; row++)
        put_row(&png, p->together + row * p->width, p->width, row + 1 == p->height);
    put_32(&png, png.b << 16 | png.a);
    chunk_end(&png);
    chunk_begin(&png, 0, "IEND");
    chunk_end(&png);
    return fclose(png.out);
}

static int compare(void *arg)
{
    struct picture *p = arg;
    int err = twin_race(one_after_another, in_parallel, p);
    if (err != 0 || memcmp(p->alone, p->together, p->width * p->height) != 0)
        return fprintf(stderr, "mandelbrot: error %d, or another picture\n", -err), 1;
    if (write_png(p) != 0)
        return fprintf(stderr, "mandelbrot: cannot write %s\n", p->file), 1;
    printf("%s: %zu x %zu, the same picture\n", p->file, p->width, p->height);
    return 0;
}

int main(int argc, char **argv)
{
    struct picture p = {.width = argc > 1 ? strtoul(argv[1], NULL, 10) : 900,
                        .file = argc > 2 ? argv[2] : "mandelbrot.png"};
    if (p.width < 3 || p.width > 20000) {
        fprintf(stderr, "usage: %s [WIDTH, 3 to 20000 [FILE]]\n", argv[0]);
        return 2;
    }
    p.height = p.width * 2 / 3;
    p.together = malloc(p.width * p.height);
    p.alone = malloc(p.width * p.height);
    int err = p.together == NULL || p.alone == NULL ? 1 : blitz_run(compare, &p, NULL);
    free(p.together);
    free(p.alone);
    return err != 0;
}
