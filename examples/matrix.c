/*
 * matrix.c - the product of two matrices, tile by tile.
 *
 * blitz_for_2d divides the result into tiles and distributes them over the workers. An ordinary
 * function computes a tile: it reads both factors and writes only its own tile, so no lock is
 * needed. An index of the loop stands for a block of 4 x 240 elements. Narrow blocks are slow (the
 * inner loop is short), and four rows can share their reads. The sequential version calls the same
 * function for the whole matrix. Every element is summed in the same order, so the results are
 * equal to the last bit.
 *
 *     example_matrix [SIZE]     a multiple of 240, default 720
 */
#include <stdlib.h>
#include <string.h>

#include "twin.h"

enum { HIGH = 4, WIDE = 240 };

struct product {
    size_t size;
    float *a, *b, *together, *alone; /* size x size, row after row */
};

/* Four rows of the result, from column `left` to `right`: each row of b is read once for all four. */
static void multiply_rows(const struct product *p, float *c, size_t row, size_t left, size_t right)
{
    float *restrict c0 = c + row * p->size, *restrict c1 = c0 + p->size;
    float *restrict c2 = c1 + p->size, *restrict c3 = c2 + p->size;
    const float *a = p->a + row * p->size;
    for (size_t i = row; i < row + HIGH; i++)
        memset(c + i * p->size + left, 0, (right - left) * sizeof *c);
    for (size_t k = 0; k < p->size; k++, a++) {
        const float *restrict from = p->b + k * p->size;
        float a0 = a[0], a1 = a[p->size], a2 = a[2 * p->size], a3 = a[3 * p->size];
        for (size_t j = left; j < right; j++) {
            c0[j] += a0 * from[j];
            c1[j] += a1 * from[j];
            c2[j] += a2 * from[j];
            c3[j] += a3 * from[j];
        }
    }
}

/* A tile of blocks. */
static void multiply(const struct product *p, float *c, size_t top, size_t bottom, size_t left,
                     size_t right)
{
    for (size_t row = top; row < bottom; row++)
        multiply_rows(p, c, row * HIGH, left * WIDE, right * WIDE);
}

static int tile(size_t top, size_t bottom, size_t left, size_t right, void *arg)
{
    struct product *p = arg;
    multiply(p, p->together, top, bottom, left, right);
    return 0;
}

static int in_parallel(void *arg)
{
    struct product *p = arg;
    return blitz_for_2d(p->size / HIGH, p->size / WIDE, tile, p, NULL);
}

static int one_after_another(void *arg)
{
    struct product *p = arg;
    multiply(p, p->alone, 0, p->size / HIGH, 0, p->size / WIDE);
    return 0;
}

static int compare(void *arg)
{
    struct product *p = arg;
    size_t cells = p->size * p->size;
    double trace = 0;
    int err = twin_race(one_after_another, in_parallel, p);
    if (err != 0 || memcmp(p->alone, p->together, cells * sizeof *p->alone) != 0)
        return fprintf(stderr, "matrix: error %d, or another product\n", -err), 1;
    for (size_t i = 0; i < p->size; i++)
        trace += p->together[i * p->size + i];
    printf("%zu x %zu, trace %.1f, the same to the last bit\n", p->size, p->size, trace);
    return 0;
}

int main(int argc, char **argv)
{
    struct product p = {.size = argc > 1 ? strtoul(argv[1], NULL, 10) : 720};
    size_t cells = p.size * p.size;
    if (p.size == 0 || p.size > 9600 || p.size % WIDE != 0) {
        fprintf(stderr, "usage: %s [SIZE, a multiple of %d up to 9600]\n", argv[0], WIDE);
        return 2;
    }
    float *memory = malloc(4 * cells * sizeof *memory);
    if (memory == NULL)
        return fprintf(stderr, "matrix: no memory\n"), 1;
    p.a = memory;
    p.b = memory + cells;
    p.together = memory + 2 * cells;
    p.alone = memory + 3 * cells;
    for (size_t i = 0; i < cells; i++) {
        p.a[i] = (float)(i * 7 % 13) - 6;
        p.b[i] = (float)(i * 5 % 11) - 5;
    }
    int err = blitz_run(compare, &p, NULL);
    free(memory);
    return err != 0;
}
