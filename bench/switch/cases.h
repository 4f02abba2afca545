/*
 * cases.h - the cases of bench-switch, the same for all contenders. A contender defines, before
 * including:
 *
 *     struct place                      a context and whatever it needs
 *     place_make(p, fn, arg)            fn(arg) on a stack of its own, not yet entered; never returns
 *     place_hop(from, to)               stop in `from`, go on in `to`
 *     place_suspend(from, to)           the same as it is called from the depth of a program
 *
 * and gets
 *
 *     switch      two contexts back and forth: one operation is one switch
 *     ring-1000   a thousand contexts, each passes on to the next: one operation is one switch
 *     depth-8    a context that calls eight functions deep, switches there, returns from all of
 *                 them and begins again, against one that does the same: what a switch does to the
 *                 return predictor of its callers is part of its price
 *     floating    as `switch`, and both sides divide: a sticky flag is set most of the time
 */
#ifndef BENCH_SWITCH_CASES_H
#define BENCH_SWITCH_CASES_H

#include "bench.h"

static struct place main_place, other_place;
static uint64_t hops;

/* ---- switch ---- */

static void answer(void *arg)
{
    (void)arg;
    for (;;) {
        hops++;
        place_hop(&other_place, &main_place);
    }
}

static double case_switch(uint64_t ops)
{
    static bool is_made;
    if (!is_made)
        place_make(&other_place, answer, NULL);
    is_made = true;
    uint64_t rounds = ops / 2 + 1, before = hops, began = bench_thread_ns();
    for (uint64_t i = 0; i < rounds; i++)
        place_hop(&main_place, &other_place);
    double ns = (double)(bench_thread_ns() - began);
    if (hops - before != rounds)
        bench_die("%llu hops of %llu", (unsigned long long)(hops - before),
                  (unsigned long long)rounds);
    return ns / (double)(2 * rounds);
}

/* ---- ring ---- */

enum { RING = 1000 };
static struct place ring[RING];
static uint64_t ring_left;

static void pass_on(void *arg)
{
    struct place *me = (struct place *)arg;
    struct place *next = me == &ring[RING - 1] ? &ring[0] : me + 1;
    for (;;) {
        hops++;
        place_hop(me, --ring_left == 0 ? &main_place : next);
    }
}

static double case_ring(uint64_t ops)
{
    static bool is_made;
    static unsigned at; /* where the last run stopped */
    for (int i = 0; i < RING && !is_made; i++)
        place_make(&ring[i], pass_on, &ring[i]);
    is_made = true;
    ring_left = ops;
    uint64_t before = hops, began = bench_thread_ns();
    place_hop(&main_place, &ring[at]);
    double ns = (double)(bench_thread_ns() - began);
    at = (unsigned)((at + ops) % RING);
    if (hops - before != ops)
        bench_die("%llu hops of %llu", (unsigned long long)(hops - before),
                  (unsigned long long)ops);
    return ns / (double)(ops + 1);
}

/* ---- depth ---- */

/* Eight functions, as a program has: a recursion would return to one address eight times over, and
 * hide that the predictor is one off. */
#define BENCH_DIVE(n, deeper)                                                              \
    static __attribute__((noinline)) uint64_t dive_##n(struct place *me, struct place *to) \
    {                                                                                      \
        uint64_t below = deeper;                                                           \
        bench_keep(below); /* not a tail call */                                           \
        return below + 1;                                                                  \
    }
BENCH_DIVE(1, (place_suspend(me, to), 0))
BENCH_DIVE(2, dive_1(me, to))
BENCH_DIVE(3, dive_2(me, to))
BENCH_DIVE(4, dive_3(me, to))
BENCH_DIVE(5, dive_4(me, to))
BENCH_DIVE(6, dive_5(me, to))
BENCH_DIVE(7, dive_6(me, to))
BENCH_DIVE(8, dive_7(me, to))

static struct place deep_place;
static void dive_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        hops += dive_8(&deep_place, &main_place);
}

static double case_depth(uint64_t ops)
{
    static bool is_made;
    if (!is_made)
        place_make(&deep_place, dive_for_ever, NULL);
    is_made = true;
    uint64_t rounds = ops / 2 + 1, began = bench_thread_ns();
    for (uint64_t i = 0; i < rounds; i++)
        bench_keep(dive_8(&main_place, &deep_place));
    return (double)(bench_thread_ns() - began) / (double)(2 * rounds);
}

/* ---- floating ---- */

static volatile double dividend = 1, divisor = 3, quotient;
static struct place float_place;
static void divide_for_ever(void *arg)
{
    (void)arg;
    for (;;) {
        quotient = dividend / divisor;
        place_hop(&float_place, &main_place);
    }
}

static double case_floating(uint64_t ops)
{
    static bool is_made;
    if (!is_made)
        place_make(&float_place, divide_for_ever, NULL);
    is_made = true;
    uint64_t rounds = ops / 2 + 1, began = bench_thread_ns();
    for (uint64_t i = 0; i < rounds; i++) {
        quotient = dividend / divisor;
        place_hop(&main_place, &float_place);
    }
    return (double)(bench_thread_ns() - began) / (double)(2 * rounds);
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {{"switch", case_switch},
                                              {"ring-1000", case_ring},
                                              {"depth-8", case_depth},
                                              {"floating", case_floating}};
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}

#endif
