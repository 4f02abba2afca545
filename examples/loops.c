/*
 * loops.c - parallel loops in a nutshell: a loop, a reduction, a scan, a pipeline.
 *
 * A loop generates readings of a thousand thermometers. A reduction finds their mean and range, a
 * scan the start of each day. A pipeline formats lines of text, and its last stage writes them in
 * order. The program sets no chunk size and starts no thread. All of this also works in main(): a
 * plain thread that calls a loop waits while workers run it.
 *
 *     example_loops [READINGS]      (default 1000000)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

struct readings {
    size_t n;
    double *celsius;
    size_t *begins; /* of each day: how many it has, then where it begins */
    size_t days;
};

/* ---- a loop: its body gets chunks ---- */

static int make_up(size_t from, size_t to, void *arg)
{
    struct readings *r = arg;
    for (size_t i = from; i < to; i++)
        r->celsius[i] = 12.5 + (double)((i * 2654435761u) % 2000) / 100.0 - 10.0;
    return 0;
}

/* ---- a reduction: an accumulator, how to add a chunk, how to combine two accumulators ---- */

struct range {
    double sum, least, most;
};

static void range_init(void *acc, void *arg)
{
    (void)arg;
    *(struct range *)acc = (struct range){0, 1e9, -1e9};
}

static int range_map(void *acc, size_t from, size_t to, void *arg)
{
    const struct readings *r = arg;
    struct range *a = acc;
    for (size_t i = from; i < to; i++) {
        double c = r->celsius[i];
        a->sum += c;
        a->least = c < a->least ? c : a->least;
        a->most = c > a->most ? c : a->most;
    }
    return 0;
}

static void range_combine(void *acc, const void *right, void *arg)
{
    struct range *a = acc;
    const struct range *b = right;
    (void)arg;
    a->sum += b->sum;
    a->least = b->least < a->least ? b->least : a->least;
    a->most = b->most > a->most ? b->most : a->most;
}

/* ---- a scan: sizes become places ---- */

static void none(void *acc, void *arg)
{
    (void)arg;
    *(size_t *)acc = 0;
}

static void add(void *acc, const void *right, void *arg)
{
    (void)arg;
    *(size_t *)acc += *(const size_t *)right;
}

static void find_days(struct readings *r)
{
    const blitz_reduction how = {.bytes = sizeof(size_t), .init = none, .combine = add};
    for (size_t d = 0; d < r->days; d++)
        r->begins[d] = 1000 + d % 3; /* now and then a thermometer is read twice */
    blitz_scan_exclusive(r->days, r->begins, r->begins, &how, NULL, NULL);
}

/* ---- a pipeline: days become lines, several at a time, and are written in order ---- */

struct line {
    size_t day;
    char text[64];
};

struct report {
    const struct readings *r;
    size_t next, written;
};

static int next_day(void **item, void *arg)
{
    struct report *rep = arg;
    struct line *l = rep->next < rep->r->days ? malloc(sizeof *l) : NULL;
    if (l != NULL)
        l->day = rep->next++;
    *item = l;
    return 0;
}

static int spell(void **item, void *arg)
{
    const struct report *rep = arg;
    struct line *l = *item;
    size_t at = rep->r->begins[l->day];
    snprintf(l->text, sizeof l->text, "day %zu begins at %zu with %.2f", l->day, at,
             at < rep->r->n ? rep->r->celsius[at] : 0.0);
    return 0;
}

static int write_line(void **item, void *arg)
{
    struct report *rep = arg;
    struct line *l = *item;
    if (l->day != rep->written++)
        return -1; /* cannot be: the stage is ordered */
    if (l->day < 3)
        puts(l->text);
    return 0;
}

static void drop_line(void *item, void *arg)
{
    (void)arg;
    free(item);
}

static int report(struct readings *r)
{
    struct report rep = {r, 0, 0};
    blitz_stage stages[] = {{BLITZ_STAGE_PARALLEL, spell, &rep},
                            {BLITZ_STAGE_ORDERED, write_line, &rep}};
    int err = blitz_pipeline(next_day, &rep, stages, 2, &(blitz_pipeline_opts){.drop = drop_line});
    printf("%zu lines in order\n", rep.written);
    return err;
}

static int run(void *arg)
{
    const blitz_reduction how = {sizeof(struct range), range_init, range_map, range_combine};
    struct readings *r = arg;
    struct range all;
    int err = blitz_for(r->n, make_up, r, NULL);
    /* In a fixed order, so that the mean is the same to the last bit in every run. */
    if (err == 0)
        err = blitz_reduce(r->n, &how, r, &all, &(blitz_par_opts){.is_ordered = 1});
    if (err != 0)
        return err;
    printf("%zu readings from %.2f to %.2f, mean %.4f\n", r->n, all.least, all.most,
           all.sum / (double)r->n);
    find_days(r);
    return report(r);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000 * 1000;
    struct readings r = {n, malloc((n + 1) * sizeof(double)), NULL, n / 1000};
    r.begins = malloc((r.days + 1) * sizeof(size_t));
    int err = r.celsius == NULL || r.begins == NULL ? -1 : blitz_run(run, &r, NULL);
    if (err != 0)
        fprintf(stderr, "loops: %s\n", strerror(-err));
    free(r.celsius);
    free(r.begins);
    return err != 0;
}
