/*
 * scene_hogs.c - a heartbeat beside tasks that never yield.
 *
 * Two endless loops more than there are workers: no wait, no yield, no call. In most runtimes no
 * other task would run again. Here a thread that runs one task for 10 ms loses the right to run
 * tasks to another thread, and the heartbeat continues.
 */
#include <blitz.h>

#include "demo.h"

enum { BEAT_MS = 20 };

struct heart {
    uint64_t beats;
    _Atomic uint64_t done;
    _Atomic int is_over; /* the loops may end */
    uint64_t latest_ns, missed;
};

static int loop_for_ever(void *arg)
{
    struct heart *h = arg;
    uint64_t turns = 0;
    while (!h->is_over)
        turns++;
    return turns == 0;
}

static int beat(void *arg)
{
    struct heart *h = arg;
    uint64_t due = blitz_now();
    for (uint64_t i = 0; i < h->beats; i++) {
        due += BEAT_MS * BLITZ_MS;
        if (blitz_sleep_until(due) != 0)
            break;
        uint64_t late = blitz_now() - due;
        h->latest_ns = late > h->latest_ns ? late : h->latest_ns;
        h->missed += late > BEAT_MS * BLITZ_MS;
        h->done++;
    }
    h->is_over = 1;
    return 0;
}

static void play(struct demo *d)
{
    struct heart h = {.beats = demo_scaled(d, 100)};
    blitz_runtime_opts config = {.procs = 2};
    unsigned loops = config.procs + 2, spawned = 0;
    blitz_runtime *rt;
    int err = blitz_runtime_new(&config, &rt);
    demo_claim(d, err == 0, "a runtime: error %d", -err);
    if (err != 0)
        return;
    blitz_spawn_opts opts = {.runtime = rt};
    for (; spawned < loops && err == 0; spawned++)
        err = blitz_spawn(loop_for_ever, &h, &opts, NULL);
    if (err == 0)
        err = blitz_spawn(beat, &h, &opts, NULL);
    demo_claim(d, err == 0, "a task: error %d", -err);
    if (err == 0)
        demo_watch(d, &h.done, h.beats, "beats");
    h.is_over = 1;
    err = blitz_runtime_shutdown(rt, BLITZ_FOREVER);
    demo_claim(d, err == 0, "the end: error %d", -err);
    demo_claim(d, h.done == h.beats, "every beat came, not %s", demo_count(h.done));
    (void)!blitz_runtime_unref(rt); /* it was shut down */
    demo_result(
        d, "%u endless loops on %u procs: %s beats every %d ms, %s missed, the latest by %.1f ms",
        loops, config.procs, demo_count(h.done), BEAT_MS, demo_count(h.missed),
        (double)h.latest_ns / 1e6);
}

const struct demo_scene scene_hogs = {
    "hogs", "A heartbeat beside endless loops",
    "Two loops more than workers, that never wait and never yield; the proc moves away from them.",
    play};
