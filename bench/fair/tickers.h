/*
 * tickers.h - what bench-fair asks of every runtime: do a thousand tasks that want to run every 10 ms
 * get to run, and how late, beside tasks that do not let go. It knows nothing of blitz; the peers in
 * other languages say the same again.
 *
 * Ticker i is due at `start + i * 10 us + k * 10 ms`, k = 0 to 99: spread evenly, so that the
 * figure is not that of a thousand tasks due at once. Each notes how late every tick came. One that
 * comes late does not leave out what fell due in the meantime: those ticks come at once, each with
 * its own delay. A thread outside the runtime ends the measurement a second after the start,
 * whether the tickers are done or not. A tick that has not come by then counts with its delay at
 * that moment. So a runtime in which the tickers never run gets a figure, too: about a second.
 */
#ifndef BENCH_FAIR_TICKERS_H
#define BENCH_FAIR_TICKERS_H

#include "bench.h"

enum { TICKERS = 1000, TICKS = 100 };

#define TICK_NS UINT64_C(10000000)
#define HOG_NS UINT64_C(100000000)
#define LEAD_NS UINT64_C(20000000) /* from the first spawn to the start */

struct tickers {
    uint64_t start_ns;
    bool is_over;                     /* the hogs are to end: read and written atomically */
    uint32_t late_us[TICKERS][TICKS]; /* plus 1; 0: it has not come */
};

static struct tickers tickers;

static inline uint64_t ticker_due(unsigned ticker, unsigned tick)
{
    return tickers.start_ns + ticker * (TICK_NS / TICKERS) + tick * TICK_NS;
}

static inline void ticker_came(unsigned ticker, unsigned tick)
{
    uint64_t now = bench_now_ns(), due = ticker_due(ticker, tick);
    uint32_t late_us = now > due ? (uint32_t)((now - due) / 1000) : 0;
    __atomic_store_n(&tickers.late_us[ticker][tick], late_us + 1, __ATOMIC_RELAXED);
}

static inline bool tickers_are_over(void)
{
    return __atomic_load_n(&tickers.is_over, __ATOMIC_RELAXED);
}

/* Compute for 100 ms, or until it is over. */
static inline void hog_once(void)
{
    for (uint64_t until = bench_now_ns() + HOG_NS; bench_now_ns() < until && !tickers_are_over();)
        bench_relax();
}

/* The endless loop. It ends when everything does. */
static inline void loop_for_ever(void)
{
    while (!tickers_are_over())
        bench_keep(0);
}

static inline int tickers_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

struct tickers_figures {
    double p50_ms, p99_ms, delivered_percent;
};

/* Wait for the end of the second, close the books, and let the hogs go. */
static inline struct tickers_figures tickers_close(void)
{
    static uint32_t late[TICKERS * TICKS];
    uint64_t end = tickers.start_ns + TICKS * TICK_NS;
    struct timespec t = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
    uint64_t now = bench_now_ns();
    unsigned count = 0, delivered = 0;
    for (unsigned i = 0; i < TICKERS; i++)
        for (unsigned k = 0; k < TICKS && ticker_due(i, k) <= end; k++) {
            uint32_t came = __atomic_load_n(&tickers.late_us[i][k], __ATOMIC_RELAXED);
            uint64_t due = ticker_due(i, k), us = came != 0 ? came - 1 : (now - due) / 1000;
            delivered += came != 0 && due + us * 1000 <= end;
            late[count++] = (uint32_t)us;
        }
    __atomic_store_n(&tickers.is_over, true, __ATOMIC_RELAXED);
    qsort(late, count, sizeof(*late), tickers_compare);
    return (struct tickers_figures){.p50_ms = (late[count / 2] + 1) / 1000.0,
                                    .p99_ms = (late[count / 100 * 99] + 1) / 1000.0,
                                    .delivered_percent = 100.0 * delivered / count + 1e-9};
}

#endif
