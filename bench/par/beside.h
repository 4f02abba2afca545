/*
 * beside.h - what becomes of others while every worker is in a parallel loop, for blitz.c.
 *
 * As many tasks as there are workers call one loop after another: a hundred thousand items of a third
 * of a microsecond each. Beside them a ticker is due every millisecond; how late it comes is noted. Or
 * a client asks an echo task over two channels, rests for a millisecond and asks again; how long the
 * answer takes is noted. After a second the books are closed from outside: the figure is the 99th of a
 * hundred. A tick, or an answer, that has not come counts with its age.
 */
#ifndef BENCH_PAR_BESIDE_H
#define BENCH_PAR_BESIDE_H

#include <blitz.h>

#include "par/cases.h"

enum { BESIDE_ROUNDS = 1000 };

struct beside {
    blitz_chan *ask, *answer;
    uint64_t start_ns;
    bool is_over; /* read and written atomically, as what follows */
    int rounds;   /* begun */
    uint64_t due_ns[BESIDE_ROUNDS];
    uint32_t late_us[BESIDE_ROUNDS]; /* plus 1; 0: it has not come */
};

static struct beside beside;

static bool beside_is_over(void)
{
    return __atomic_load_n(&beside.is_over, __ATOMIC_RELAXED);
}

static void beside_begins(int round, uint64_t due_ns)
{
    __atomic_store_n(&beside.due_ns[round], due_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&beside.rounds, round + 1, __ATOMIC_RELEASE);
}

static void beside_came(int round)
{
    uint64_t now = bench_now_ns(), due = beside.due_ns[round];
    __atomic_store_n(&beside.late_us[round], now > due ? (uint32_t)((now - due) / 1000) + 1 : 1,
                     __ATOMIC_RELAXED);
}

static int beside_body(size_t from, size_t to, void *arg)
{
    uint64_t sum = 0;
    (void)arg;
    for (size_t i = from; i < to; i++)
        sum += orbit(i);
    bench_keep(sum);
    return beside_is_over();
}

static int beside_loops(void *arg)
{
    (void)arg;
    while (!beside_is_over())
        blitz_for(ORBIT_COUNT, beside_body, NULL, NULL);
    return 0;
}

/* A tick that is due while the ticker is late comes right after it, with its own delay. */
static int beside_ticker(void *arg)
{
    (void)arg;
    for (int k = 0; k < BESIDE_ROUNDS; k++)
        beside_begins(k, beside.start_ns + (uint64_t)k * BLITZ_MS);
    for (int k = 0; k < BESIDE_ROUNDS && !beside_is_over(); k++) {
        (void)!blitz_sleep_until(beside.due_ns[k]);
        beside_came(k);
    }
    return 0;
}

static int beside_echo(void *arg)
{
    int round;
    (void)arg;
    while (blitz_chan_recv(beside.ask, &round, BLITZ_FOREVER) == 0)
        (void)!blitz_chan_send(beside.answer, &round, BLITZ_FOREVER);
    return 0;
}

static int beside_client(void *arg)
{
    (void)arg;
    (void)!blitz_sleep_until(beside.start_ns);
    for (int k = 0; k < BESIDE_ROUNDS && !beside_is_over(); k++) {
        int back = -1;
        beside_begins(k, bench_now_ns());
        if (blitz_chan_send(beside.ask, &k, BLITZ_FOREVER) != 0 ||
            blitz_chan_recv(beside.answer, &back, BLITZ_FOREVER) != 0)
            break; /* cancelled: the second is over */
        if (back != k)
            bench_die("asked %d, answered %d", k, back);
        beside_came(k);
        (void)!blitz_sleep(BLITZ_MS);
    }
    blitz_chan_close(beside.ask);
    return 0;
}

static int beside_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Wait for the end of the second and close the books: p99 in milliseconds. */
static double beside_close(void)
{
    static uint32_t late[BESIDE_ROUNDS];
    uint64_t end = beside.start_ns + BLITZ_S;
    struct timespec t = {(time_t)(end / BLITZ_S), (long)(end % BLITZ_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
    uint64_t now = bench_now_ns();
    int rounds = __atomic_load_n(&beside.rounds, __ATOMIC_ACQUIRE);
    for (int k = 0; k < rounds; k++) {
        uint32_t came = __atomic_load_n(&beside.late_us[k], __ATOMIC_RELAXED);
        uint64_t due = __atomic_load_n(&beside.due_ns[k], __ATOMIC_RELAXED);
        late[k] = came != 0 ? came - 1 : (uint32_t)((now - due) / 1000);
    }
    __atomic_store_n(&beside.is_over, true, __ATOMIC_RELAXED);
    if (rounds == 0)
        bench_die("nothing came in a second");
    qsort(late, (size_t)rounds, sizeof(*late), beside_compare);
    printf("# %d rounds, p50 %.3f ms\n", rounds, late[rounds / 2] / 1000.0);
    return (late[rounds * 99 / 100] + 1) / 1000.0;
}

#endif
