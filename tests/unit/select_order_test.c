/* blitz/select.h: every case counts, at any position. */
#include "harness.h"

#include "blitz.h"

enum { N = BLITZ_SELECT_MAX };

static blitz_chan *chan[N];
static int got[N];

/* A select over `count` receives of which only `ready` has a value. */
static void select_one(int count, int ready, unsigned how)
{
    blitz_select_case cases[N];
    int value = 100 * count + ready;
    t_watch("%d cases, %d is ready", count, ready);
    for (int k = 0; k < count; k++)
        cases[k] = (blitz_select_case){.kind = BLITZ_SELECT_RECV, .of = chan[k], .value = &got[k]};
    CHECK_EQ(blitz_chan_send(chan[ready], &value, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_select_wait(cases, (size_t)count, how, BLITZ_FOREVER), ready);
    CHECK_EQ(got[ready], value);
}

TEST(select_order, the_only_ready_case_is_chosen_at_every_place)
{
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &chan[i]), 0);
    for (int count = 1; count <= N; count++)
        for (int i = 0; i < count; i++) {
            select_one(count, i, BLITZ_SELECT_BIASED);
            select_one(count, i, BLITZ_SELECT_FAIR);
        }
    for (int i = 0; i < N; i++)
        blitz_chan_unref(chan[i]);
}

static int awaits_the_first_time(void *arg)
{
    const int *at = arg;
    blitz_select_case cases[3];
    blitz_select_future f;
    for (int i = 0; i < 3; i++)
        cases[i] = (blitz_select_case){.kind = BLITZ_SELECT_TIME,
                                       .until = blitz_after(i == *at ? BLITZ_MS : 1000 * BLITZ_S)};
    blitz_select_wait_future_init(&f, cases, 3, BLITZ_SELECT_FAIR);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    return f.result;
}

/* A select that waits for later times first would not end here. */
TEST(select_order, of_several_times_the_earliest_ends_the_wait)
{
    for (int at = 0; at < 3; at++)
        CHECK_EQ(blitz_run(awaits_the_first_time, &at, &(blitz_runtime_opts){.procs = 1}), at);
}
