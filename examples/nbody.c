/*
 * nbody.c - bodies that attract each other, all pairs, step by step.
 *
 * A step has two loops: the acceleration of each body by all others, then the new positions. Each
 * loop is a blitz_for. No barrier is needed between them, because a loop returns when all of it is
 * done. The energy is a reduction with `is_ordered`: floating-point sums depend on the order of
 * their additions, and a fixed order gives the same result to the last bit with any number of
 * workers. The sequential version makes the same steps with the same functions.
 *
 *     example_nbody [BODIES [STEPS]]     default 2000 and 10
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "twin.h"

struct body {
    double at[3], speed[3], pull[3], mass;
};

struct world {
    size_t count;
    int steps;
    double step; /* of time */
    struct body *start, *together, *alone, *now;
};

/* Between body i and all others. A small constant is added to each distance, so that close bodies
 * do not diverge. */
static void pull_on(struct body *all, size_t count, size_t i)
{
    double pull[3] = {0, 0, 0};
    for (size_t k = 0; k < count; k++) {
        double d[3], square = 1e-4;
        for (int axis = 0; axis < 3; axis++) {
            d[axis] = all[k].at[axis] - all[i].at[axis];
            square += d[axis] * d[axis];
        }
        double by = all[k].mass / (square * sqrt(square));
        for (int axis = 0; axis < 3; axis++)
            pull[axis] += by * d[axis];
    }
    memcpy(all[i].pull, pull, sizeof pull);
}

static int pull_some(size_t from, size_t to, void *arg)
{
    struct world *w = arg;
    for (size_t i = from; i < to; i++)
        pull_on(w->now, w->count, i);
    return 0;
}

static int move_some(size_t from, size_t to, void *arg)
{
    struct world *w = arg;
    for (size_t i = from; i < to; i++)
        for (int axis = 0; axis < 3; axis++) {
            w->now[i].speed[axis] += w->now[i].pull[axis] * w->step;
            w->now[i].at[axis] += w->now[i].speed[axis] * w->step;
        }
    return 0;
}

static int in_parallel(void *arg)
{
    struct world *w = arg;
    int err = 0;
    w->now = w->together;
    memcpy(w->now, w->start, w->count * sizeof *w->now);
    for (int i = 0; i < w->steps && err == 0; i++) {
        err = blitz_for(w->count, pull_some, w, NULL);
        if (err == 0)
            err = blitz_for(w->count, move_some, w, NULL);
    }
    return err;
}

static int one_after_another(void *arg)
{
    struct world *w = arg;
    w->now = w->alone;
    memcpy(w->now, w->start, w->count * sizeof *w->now);
    for (int i = 0; i < w->steps; i++) {
        pull_some(0, w->count, w);
        move_some(0, w->count, w);
    }
    return 0;
}

/* ---- energy ---- */

static void energy_init(void *acc, void *arg)
{
    (void)arg;
    *(double *)acc = 0;
}

/* Of motion, and half of that of each pair, which is met twice. */
static int energy_map(void *acc, size_t from, size_t to, void *arg)
{
    const struct world *w = arg;
    double sum = 0;
    for (size_t i = from; i < to; i++) {
        const struct body *a = &w->now[i];
        double square = 0;
        for (int axis = 0; axis < 3; axis++)
            square += a->speed[axis] * a->speed[axis];
        sum += a->mass * square / 2;
        for (size_t k = 0; k < w->count; k++) {
            double apart = 1e-4;
            for (int axis = 0; axis < 3; axis++)
                apart += (w->now[k].at[axis] - a->at[axis]) * (w->now[k].at[axis] - a->at[axis]);
            sum -= k == i ? 0 : a->mass * w->now[k].mass / sqrt(apart) / 2;
        }
    }
    *(double *)acc += sum;
    return 0;
}

static void energy_combine(void *acc, const void *right, void *arg)
{
    (void)arg;
    *(double *)acc += *(const double *)right;
}

static double energy(struct world *w, struct body *bodies)
{
    static const blitz_reduction how = {sizeof(double), energy_init, energy_map, energy_combine};
    blitz_par_opts opts = {.is_ordered = 1};
    double sum = NAN;
    w->now = bodies;
    return blitz_reduce(w->count, &how, w, &sum, &opts) == 0 ? sum : NAN;
}

static int compare(void *arg)
{
    struct world *w = arg;
    int err = twin_race(one_after_another, in_parallel, w);
    if (err != 0 || memcmp(w->alone, w->together, w->count * sizeof *w->alone) != 0)
        return fprintf(stderr, "nbody: error %d, or other places\n", -err), 1;
    double before = energy(w, w->start), after = energy(w, w->together);
    printf("%zu bodies, %d steps: energy %.6f, then %.6f\n", w->count, w->steps, before, after);
    if (after != energy(w, w->alone) || !(fabs(after / before - 1) < 0.02))
        return fprintf(stderr, "nbody: the energy is not kept\n"), 1;
    return 0;
}

/* A ball of them, at rest: xorshift, so that every run is the same. */
static void place(struct body *b, size_t count)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < count; i++) {
        memset(&b[i], 0, sizeof b[i]);
        b[i].mass = 1 / (double)count;
        for (int axis = 0; axis < 3; axis++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            b[i].at[axis] = (double)(x % 2000) / 1000 - 1;
        }
    }
}

int main(int argc, char **argv)
{
    struct world w = {.count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000,
                      .steps = argc > 2 ? atoi(argv[2]) : 10,
                      .step = 0.001};
    if (w.count < 2 || w.count > 1000000 || w.steps < 1) {
        fprintf(stderr, "usage: %s [BODIES, 2 to 1000000 [STEPS]]\n", argv[0]);
        return 2;
    }
    struct body *memory = malloc(3 * w.count * sizeof *memory);
    if (memory == NULL)
        return fprintf(stderr, "nbody: no memory\n"), 1;
    w.start = memory;
    w.together = memory + w.count;
    w.alone = memory + 2 * w.count;
    place(w.start, w.count);
    int err = blitz_run(compare, &w, NULL);
    free(memory);
    return err != 0;
}
