/*
 * iter - parallel iterators over an array of a million measurements.
 *
 *     example_iter [COUNT]
 *
 * One line defines each function; its expression is compiled into the loop. Run with and without
 * BLITZ_PROCS=1 to see the gain of more workers.
 */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blitz.h"
#include "blitz/iter.h"

struct sample {
    uint32_t station;
    float celsius;
};

struct stats {
    double sum, least, most;
};

static inline struct stats stats_of(double x)
{
    struct stats s = {x, x, x};
    return s;
}

static inline struct stats stats_of_nothing(void)
{
    struct stats s = {0, DBL_MAX, -DBL_MAX};
    return s;
}

static inline struct stats stats_both(struct stats a, struct stats b)
{
    struct stats s = {a.sum + b.sum, a.least < b.least ? a.least : b.least,
                      a.most > b.most ? a.most : b.most};
    return s;
}

static inline struct sample measure(size_t i)
{
    uint32_t dice = (uint32_t)i * 2654435761u;
    struct sample s = {dice % 100, (float)(dice >> 16) / 1000.0f - 20.0f};
    if (i % 100003 == 77777)
        s.celsius = 99; /* a broken sensor */
    return s;
}

static inline int check(struct sample s)
{
    return s.celsius > 60 ? (int)s.station + 1 : 0;
}

/* clang-format off */
BLITZ_MAP_DEFINE(measure_all, struct sample, BLITZ_RANGE, measure(i));
BLITZ_TRY_FOR_EACH_DEFINE(check_all, BLITZ_EACH(struct sample, s), check(s));
BLITZ_FIND_FIRST_DEFINE(first_broken, BLITZ_EACH(struct sample, s), s.celsius > 60);
BLITZ_FILTER_DEFINE(keep_sane, BLITZ_EACH(struct sample, s), s.celsius <= 60);
BLITZ_COUNT_DEFINE(count_station, BLITZ_EACH(struct sample, s), s.station == wanted, (uint32_t, wanted));
BLITZ_MAP_DEFINE(to_fahrenheit, double, BLITZ_EACH(struct sample, s), s.celsius * 1.8 + 32);
BLITZ_MAX_BY_KEY_DEFINE(steepest, double, BLITZ_WINDOWS(const double, w, 2), w[1] - w[0]);
BLITZ_SUM_DEFINE(sum_of_some, double, BLITZ_STEP(double, x, 100), x);
BLITZ_REDUCE_DEFINE(summarize, struct stats, stats_of_nothing(), BLITZ_EACH(double, x), stats_of(x),
                    a, b, stats_both(a, b));
/* clang-format on */

static int work(void *arg)
{
    size_t n = *(size_t *)arg, at = 0, kept = 0, count = 0;
    struct sample *all = calloc(n, sizeof *all), *sane = calloc(n, sizeof *sane);
    double *degrees = calloc(n, sizeof *degrees);
    struct stats stats;
    int err = -1;
    if (all == NULL || sane == NULL || degrees == NULL || measure_all(n, all, NULL) != 0)
        goto out;

    int station = check_all(all, n, NULL);
    if (station > 0 && first_broken(all, n, &at, NULL) == 0)
        printf("sample %zu is broken: %.0f degrees at station %d\n", at, (double)all[at].celsius,
               station - 1);

    if (keep_sane(all, n, sane, &kept, NULL) != 0 ||
        count_station(sane, kept, 42, &count, NULL) != 0)
        goto out;
    printf("%zu of %zu are sane, %zu of them from station 42\n", kept, n, count);

    if (to_fahrenheit(sane, kept, degrees, NULL) != 0 ||
        summarize(degrees, kept, &stats, NULL) != 0)
        goto out;
    printf("%.1f to %.1f F, %.3f on average", stats.least, stats.most, stats.sum / (double)kept);
    size_t seen = (kept + 99) / 100;
    double some = 0;
    if (sum_of_some(degrees, kept, &some, NULL) == 0)
        printf(" (%.3f of every hundredth)", some / (double)seen);
    if (steepest(degrees, kept, &at, NULL) == 0)
        printf("; the steepest rise is after sample %zu", at);
    printf("\n");
    err = 0;
out:
    free(all), free(sane), free(degrees);
    return err;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
    return blitz_run(work, &n, NULL) == 0 ? 0 : 1;
}
