/*
 * scene_sort.c - sort the same numbers in three ways.
 *
 * qsort takes a comparison and one CPU. blitz_sort takes the same comparison and every CPU: it
 * forks parts of the array, and idle workers sort them. If the type is known at compile time, no
 * comparison function is called, and blitz_sort_uint64 is several times faster again.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <blitz.h>

#include "demo.h"

enum { WAYS = 3 };

struct race {
    uint64_t count, *fresh, *numbers;
    double seconds[WAYS];
    int err, is_in_order;
};

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_with(const void *a, const void *b, void *arg)
{
    (void)arg;
    return compare(a, b);
}

static int sort_by(struct race *r, int way)
{
    if (way == 1)
        return blitz_sort(r->numbers, r->count, sizeof *r->numbers, compare_with, NULL);
    if (way == 2)
        return blitz_sort_uint64(r->numbers, r->count);
    qsort(r->numbers, r->count, sizeof *r->numbers, compare);
    return 0;
}

static int race(void *arg)
{
    struct race *r = arg;
    r->is_in_order = 1;
    for (int way = 0; way < WAYS && r->err == 0; way++) {
        memcpy(r->numbers, r->fresh, r->count * sizeof *r->numbers);
        double start = demo_seconds();
        r->err = sort_by(r, way);
        r->seconds[way] = demo_seconds() - start;
        for (uint64_t i = 1; i < r->count; i++)
            r->is_in_order &= r->numbers[i - 1] <= r->numbers[i];
    }
    return 0;
}

static void show(struct demo *d, const struct race *r, unsigned cpus)
{
    demo_claim(d, r->err == 0 && r->is_in_order, "in order (error %d)", -r->err);
    demo_result(d, "%s numbers: qsort %.0f ms", demo_count(r->count), r->seconds[0] * 1e3);
    demo_result(d, "blitz_sort, the same comparison on %u CPUs: %.0f ms, %.1f times as fast", cpus,
                r->seconds[1] * 1e3, r->seconds[0] / r->seconds[1]);
    demo_result(d, "blitz_sort_uint64: %.0f ms, %.1f times as fast", r->seconds[2] * 1e3,
                r->seconds[0] / r->seconds[2]);
}

static void play(struct demo *d)
{
    struct race r = {.count = demo_scaled(d, 3000000)};
    uint64_t x = 88172645463325252u;
    r.fresh = malloc(2 * r.count * sizeof *r.fresh);
    if (r.fresh == NULL) {
        demo_cannot(d, "no memory for %s numbers", demo_count(2 * r.count));
        return;
    }
    r.numbers = r.fresh + r.count;
    for (uint64_t i = 0; i < r.count; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        r.fresh[i] = x;
    }
    demo_progress(d, 0, WAYS, "of 3 ways");
    int err = blitz_run(race, &r, NULL);
    demo_claim(d, err == 0, "a runtime: error %d", -err);
    if (err == 0)
        show(d, &r, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
    free(r.fresh);
}

const struct demo_scene scene_sort = {
    "sort", "A sort on every CPU",
    "qsort against blitz_sort with the same comparison, and against the sort for one type.", play};
