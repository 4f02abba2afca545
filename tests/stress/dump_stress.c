/* Dumps while tasks start, wait, resume and end. */
#include "harness.h"

#include "blitz.h"
#include "proc/state.h"

struct world {
    blitz_runtime *rt;
    bz_atomic(bool) is_over;
    bz_atomic(unsigned) tasks_run;
};

static int returns(void *arg)
{
    (void)arg;
    return 0;
}

/* Some nap, some join, some are claimed by their joiners, some fork; stacks come and go. */
static int naps(void *arg)
{
    return blitz_sleep((uintptr_t)arg % 4 * BLITZ_US);
}

/* Awaits a future in its frame; the bytes there are something else before and after. */
static int awaits(void *arg)
{
    uintptr_t waste[32];
    memset(waste, (int)(uintptr_t)arg | 1, sizeof waste);
    blitz_sleep_future nap;
    blitz_sleep_until_future_init(&nap, blitz_after((uintptr_t)arg % 4 * BLITZ_US));
    int err = blitz_await(&nap.future, BLITZ_FOREVER);
    memset(&nap, 0xa5, sizeof nap);
    blitz_yield();
    return err != 0 || waste[31] == 0 || nap.when == 0;
}

static int goes_deep(void *arg)
{
    char room[8192];
    memset(room, (int)(uintptr_t)arg, sizeof room);
    blitz_yield();
    return room[4096] == (char)(uintptr_t)arg ? 0 : 1;
}

static int works(void *arg)
{
    struct world *w = arg;
    while (!bz_load_relaxed(&w->is_over)) { /* relaxed: a flag */
        blitz_task *t[8];
        for (uintptr_t i = 0; i < 8; i++) {
            int (*fn)(void *) = i < 2 ? naps : i < 5 ? awaits : i < 6 ? returns : goes_deep;
            blitz_spawn_opts opts = {.name = "child", .stack_bytes = i == 7 ? 64 << 10 : 0};
            CHECK_EQ(blitz_spawn(fn, (void *)i, i % 2 ? &opts : NULL, &t[i]), 0);
        }
        blitz_yield();
        for (int i = 0; i < 8; i++) {
            int result = 1;
            CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
            CHECK_EQ(result, 0);
        }
        bz_fetch_add_relaxed(&w->tasks_run, 8); /* relaxed: a count */
    }
    return 0;
}

static int swallow(void *bytes, const char *line, size_t length)
{
    CHECK_EQ(line[length - 1], '\n');
    *(size_t *)bytes += length;
    return 0;
}

static void looks(void *arg, int index)
{
    static const unsigned flags[] = {BLITZ_DUMP_FRAMES, BLITZ_DUMP_ALL | BLITZ_DUMP_FRAMES,
                                     BLITZ_DUMP_ALL | BLITZ_DUMP_ENDED, 0};
    struct world *w = arg;
    size_t bytes = 0;
    if (index == 0) {
        /* On a busy machine no other task may have started yet. Relaxed: a count. */
        for (uint64_t i = 0, n = t_scaled(2000); i < n || !bz_load_relaxed(&w->tasks_run); i++)
            CHECK_EQ(blitz_dump_to(w->rt, swallow, &bytes, flags[i % 4]), 0);
        CHECK_GT(bytes, 0);
        bz_store_relaxed(&w->is_over, true); /* relaxed: a flag */
    } else {
        CHECK_EQ(blitz_runtime_block_on(w->rt, works, w), 0);
    }
}

/* Objects that a dump reads may be freed meanwhile; it must not crash or disturb tasks. */
TEST(dump, looks_at_tasks_that_come_and_go)
{
    struct world w = {.rt = NULL};
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 3}, &w.rt), 0);
    t_threads(3, looks, &w);
    CHECK_GT(bz_load_relaxed(&w.tasks_run), 0); /* relaxed: its writers are joined */
    CHECK_EQ(blitz_runtime_shutdown(w.rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(w.rt), 0);
}
