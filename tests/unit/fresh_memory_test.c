/* A runtime whose allocator hands out memory full of old bytes runs like any other. */
#include "harness.h"

#include <fenv.h>
#include <string.h>

#include "base/alloc.h"
#include "blitz.h"

static void *alloc_dirty(void *ctx, size_t size, size_t align)
{
    void *p = bz_alloc(&bz_allocator_libc, size, align);
    if (p != NULL)
        memset(p, *(unsigned char *)ctx, size);
    return p;
}

static void free_dirty(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    bz_free(&bz_allocator_libc, memory, size);
}

static int leaf(void *arg)
{
    volatile double one = 1.0, three = 3.0;
    CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    blitz_yield();
    CHECK_EQ(fegetround(), FE_TONEAREST);
    CHECK(one / three * three == 1.0);
    return (int)(intptr_t)arg;
}

static int uses_everything(void *arg)
{
    enum { N = 50 };
    blitz_task *t[N];
    blitz_stats s;
    int sum = 0;
    (void)arg;
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    CHECK_EQ(s.spawned, 1u);
    CHECK_LE(s.run, 1u);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(leaf, (void *)(intptr_t)i, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int got = -1;
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        CHECK_EQ(got, i);
        sum += blitz_blocking(leaf, (void *)(intptr_t)1);
    }
    return sum;
}

TEST(fresh_memory, old_content_of_allocated_memory_does_not_matter)
{
    for (int byte = 0; byte < 256; byte += 85) {
        unsigned char fill = (unsigned char)byte;
        blitz_allocator a = {alloc_dirty, free_dirty, &fill};
        t_watch("memory full of %02x", byte);
        for (unsigned procs = 1; procs <= 3; procs++)
            CHECK_EQ(blitz_run(uses_everything, NULL,
                               &(blitz_runtime_opts){.procs = procs, .allocator = &a}),
                     50);
    }
}
