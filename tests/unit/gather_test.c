/* proc/gather.c: when one proc listens for all, in virtual time. */
#include "harness.h"

#include "base/compiler.h"
#include "proc/gather.h"
#include "proc/state.h"

enum { PROCS = 3, WINDOW_NS = 20000000, HOLD_NS = 100000000 };
#define HOLD_MAX_NS UINT64_C(6400000000)
#define HOUR_NS UINT64_C(3600000000000)

static struct bz_proc procs[PROCS + 1]; /* the last one is not of the runtime */
static struct bz_runtime rt;
static uint64_t now;

/* Three procs, of which the last two listen for files; the first window has begun. */
static void given_procs_that_listen(void)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form does not gather");
#endif
    for (unsigned i = 0; i <= PROCS; i++) {
        bz_atomic_init(&procs[i].busy_ns, 0);
        bz_atomic_init(&procs[i].poll.attached, i > 0);
        bz_atomic_init(&procs[i].poll.heir, NULL);
    }
    rt.procs = procs;
    rt.proc_count = PROCS;
    rt.is_plain = false;
    bz_gather_init(&rt.gather);
    now = HOUR_NS;
    bz_gather_review(&rt, now);
}

/* A proc works for this share of a window. */
static void work(unsigned proc, unsigned percent)
{
    uint64_t ns = bz_load_relaxed(&procs[proc].busy_ns); /* relaxed: one thread */
    bz_store_relaxed(&procs[proc].busy_ns, ns + (uint64_t)percent * WINDOW_NS / 100); /* likewise */
}

static void end_window(void)
{
    work(PROCS, 100);
    now += WINDOW_NS;
    bz_gather_review(&rt, now);
}

static int home(void)
{
    struct bz_proc *p = bz_gather_home(&rt, bz_gather_word(&rt.gather));
    return p != NULL ? (int)(p - procs) : -1;
}

static void calm_windows(int count)
{
    for (int i = 0; i < count; i++)
        end_window();
}

static void busy_window(void)
{
    work(0, 96);
    end_window();
}

TEST(gather, two_calm_windows_in_a_row_gather)
{
    given_procs_that_listen();
    calm_windows(1);
    CHECK_EQ(home(), -1);
    work(0, 50);
    work(1, 35); /* 85 in all: not calm */
    end_window();
    CHECK_EQ(home(), -1);
    work(0, 50);
    work(1, 34);
    end_window();
    CHECK_EQ(home(), -1);
    end_window();
    CHECK_GE(home(), 1);
}

TEST(gather, a_look_within_a_window_decides_nothing)
{
    given_procs_that_listen();
    for (int i = 1; i < 20; i++)
        bz_gather_review(&rt, now + (uint64_t)i * WINDOW_NS / 20);
    CHECK_EQ(home(), -1);
    calm_windows(1);
    CHECK_EQ(home(), -1);
    calm_windows(1);
    CHECK_GE(home(), 1);
}

/* Proc 0 works most and listens for no file. */
TEST(gather, the_home_is_the_proc_that_worked_most_of_those_that_listen)
{
    for (int best = 1; best < PROCS; best++) {
        given_procs_that_listen();
        work(0, 30);
        work((unsigned)best, 20);
        work((unsigned)(PROCS - best), 10);
        calm_windows(2);
        CHECK_EQ(home(), best);
        for (int i = 0; i <= PROCS; i++) /* relaxed: one thread */
            CHECK(bz_load_relaxed(&procs[i].poll.heir) ==
                  (i != best && i < PROCS ? &procs[best].poll : NULL));
    }
}

TEST(gather, a_lone_listener_is_left_alone)
{
    given_procs_that_listen();
    bz_store_relaxed(&procs[1].poll.attached, 0); /* relaxed: one thread */
    calm_windows(10);
    CHECK_EQ(home(), -1);
    bz_store_relaxed(&procs[0].poll.attached, 1); /* relaxed: likewise */
    work(0, 1);
    end_window();
    CHECK_EQ(home(), 0);
}

TEST(gather, a_load_for_more_than_one_proc_spreads)
{
    given_procs_that_listen();
    calm_windows(2);
    uint32_t gathered = bz_gather_word(&rt.gather);
    work(0, 60);
    work(1, 35); /* 95 in all: as much as one proc can do */
    end_window();
    CHECK_EQ(bz_gather_word(&rt.gather), gathered);
    busy_window();
    CHECK_EQ(home(), -1);
    CHECK_NE(bz_gather_number(bz_gather_word(&rt.gather)), bz_gather_number(gathered));
    for (int i = 0; i < PROCS; i++) /* relaxed: one thread */
        CHECK(bz_load_relaxed(&procs[i].poll.heir) == NULL);
}

/* Return for how long the procs stay spread while there is no load. */
static uint64_t time_until_gathered(void)
{
    uint64_t begin = now;
    while (home() < 0)
        end_window();
    return now - begin;
}

static uint64_t hold_after_a_spread(void)
{
    busy_window();
    CHECK_EQ(home(), -1);
    return time_until_gathered();
}

TEST(gather, the_first_time_it_gathers_without_a_hold)
{
    given_procs_that_listen();
    CHECK_EQ(time_until_gathered(), 2u * WINDOW_NS);
}

/* A load that goes up and down soon finds its files where they are. */
TEST(gather, each_spread_holds_for_twice_as_long_up_to_a_limit)
{
    given_procs_that_listen();
    calm_windows(2);
    for (uint64_t hold = 2 * HOLD_NS; hold < 4 * HOLD_MAX_NS; hold *= 2)
        CHECK_EQ(hold_after_a_spread(), hold < HOLD_MAX_NS ? hold : HOLD_MAX_NS);
}

TEST(gather, a_spread_after_a_long_calm_holds_for_the_shortest_time)
{
    for (unsigned is_long = 0; is_long < 2; is_long++) { /* more than 16 holds, or just as many */
        given_procs_that_listen();
        calm_windows(2);
        CHECK_EQ(hold_after_a_spread(), 2u * HOLD_NS);
        now += 16 * 2 * (uint64_t)HOLD_NS - 2 * WINDOW_NS + is_long; /* two windows follow */
        end_window();
        CHECK_EQ(hold_after_a_spread(), is_long ? (uint64_t)HOLD_NS : 4u * (uint64_t)HOLD_NS);
    }
}

TEST(gather, a_home_at_a_long_task_spreads_at_once)
{
    given_procs_that_listen();
    calm_windows(1);
    bz_gather_end(&rt, now); /* a long task while spread: the calm windows before it do not count */
    calm_windows(1);
    CHECK_EQ(home(), -1);
    calm_windows(1);
    CHECK_GE(home(), 1);
    bz_gather_end(&rt, now + 1);
    CHECK_EQ(home(), -1);
    CHECK_GE(time_until_gathered(), (uint64_t)HOLD_NS);
}
