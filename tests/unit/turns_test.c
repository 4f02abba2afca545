/* sched/turns.c: whose turn it is. Machines without threads, and time that the test makes. */
#include "harness.h"

#include "proc/state.h"

enum { HOGS_MAX = 160, MS = 1000000 };

static struct bz_runtime rt;
static struct bz_machine machine[HOGS_MAX];
static struct bz_machine *hogs[HOGS_MAX];
static uint64_t ran_ms[HOGS_MAX], signals[HOGS_MAX];
static bool is_deaf[HOGS_MAX]; /* in malloc whenever the signal comes */
static uint64_t now;

/* The signal comes, and the thread stops at once. */
static int interrupt(const struct bz_os *os, uint32_t id)
{
    struct bz_machine *m = &machine[id - 1];
    (void)os;
    signals[id - 1]++;
    CHECK(bz_halt_is_requested(&m->turn.halt));
    if (!is_deaf[id - 1])
        bz_store_relaxed(&m->turn.halt.word, BZ_HALT_STOPPED);
    return 0;
}

static void wake(const struct bz_os *os, bz_os_word *word, uint32_t count)
{
    (void)os;
    (void)word;
    (void)count;
}

static const struct bz_os os = {.name = "turns", .thread_interrupt = interrupt, .wake = wake};

static void given(unsigned n)
{
    memset(machine, 0, sizeof machine);
    memset(ran_ms, 0, sizeof ran_ms);
    memset(signals, 0, sizeof signals);
    rt = (struct bz_runtime){.os = &os};
    now = 1000 * (uint64_t)MS;
    for (unsigned i = 0; i < n; i++) {
        machine[i].rt = &rt;
        machine[i].is_proven = true;
        bz_store_relaxed(&machine[i].turn.thread, i + 1);
        hogs[i] = &machine[i];
        is_deaf[i] = false;
    }
}

static unsigned running(unsigned n)
{
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++)
        count += !bz_halt_is_stopped(&machine[i].turn.halt);
    return count;
}

/* A check each millisecond, as while a hog is asked to stop. Returns the maximum that ran after a
 * check. */
static unsigned pass(unsigned n, unsigned allowed, unsigned ms)
{
    unsigned most = 0;
    for (unsigned t = 0; t < ms; t++, now += MS) {
        (void)!bz_turns_rotate(&rt, now, hogs, n, allowed);
        for (unsigned i = 0; i < n; i++)
            ran_ms[i] += !bz_halt_is_stopped(&machine[i].turn.halt);
        unsigned count = running(n);
        most = count > most ? count : most;
    }
    return most;
}

TEST(turns, below_the_limit_no_thread_is_signalled)
{
    given(3);
    CHECK_EQ(bz_turns_rotate(&rt, now, hogs, 3, 3), BZ_OS_FOREVER);
    pass(3, 3, 100);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(signals[i], (uint64_t)0);
    CHECK_EQ(running(3), 3u);
}

/* A stray whose thread had no CPU may be a short task that lost its proc for want of one. */
TEST(turns, a_machine_that_is_not_known_to_burn_is_left_alone)
{
    given(8);
    for (unsigned i = 0; i < 8; i++)
        machine[i].is_proven = i >= 4;
    pass(8, 1, 100);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(signals[i], (uint64_t)0);
    CHECK_EQ(running(8), 4u);
}

TEST(turns, past_the_limit_no_more_run_than_are_allowed)
{
    given(32);
    CHECK_LE(pass(32, 4, 1), 4u);
    CHECK_LE(pass(32, 4, 1000), 4u);
}

/* 32 loops on 4 places for 3.2 s: 400 ms each is the fair share. Those who give up a place and those who
 * get it cross within a look, which costs a tenth of a slice. */
TEST(turns, all_get_the_same_share)
{
    given(32);
    pass(32, 4, 3200);
    for (unsigned i = 0; i < 32; i++) {
        t_watch("hog %u", i);
        CHECK_GE(ran_ms[i], 320u);
        CHECK_LE(ran_ms[i], 420u);
    }
}

static void check_turn(unsigned n, unsigned slice_ms)
{
    uint64_t before[HOGS_MAX];
    t_watch("%u hogs", n);
    given(n);
    pass(n, 1, 1);
    CHECK_EQ(running(n), 1u);
    memcpy(before, signals, sizeof before);
    pass(n, 1, slice_ms - 5); /* slices that end within 3 ms end together */
    CHECK_MEM_EQ(signals, before, sizeof before);
    pass(n, 1, 7);
    CHECK(memcmp(signals, before, sizeof before) != 0);
}

TEST(turns, a_turn_is_ten_milliseconds)
{
    check_turn(3, 10);
    check_turn(31, 10);
}

TEST(turns, a_turn_is_longer_for_each_32_hogs_up_to_40_milliseconds)
{
    check_turn(32, 20);
    check_turn(63, 20);
    check_turn(64, 30);
    check_turn(95, 30);
    check_turn(96, 40);
    check_turn(HOGS_MAX, 40);
}

/* A hog that cannot be stopped keeps its CPU; the others share the rest in turns. */
TEST(turns, one_that_cannot_be_stopped_costs_the_others_no_turn)
{
    given(6);
    is_deaf[2] = true;
    pass(6, 2, 3000);
    CHECK_EQ(ran_ms[2], 3000u);
    for (unsigned i = 0; i < 6; i++) {
        t_watch("hog %u", i);
        CHECK_GE(ran_ms[i], 300u);
    }
    CHECK_LE(signals[2], 3000u / 15); /* each try is followed by a slice in peace */
}

/* The longest is asked first, wherever it is in the list of machines. */
TEST(turns, the_hog_that_has_run_longest_stops_first)
{
    for (unsigned longest = 0; longest < 3; longest++) {
        t_watch("hog %u", longest);
        given(3);
        for (unsigned i = 0; i < 3; i++)
            machine[i].turn.since_ns = now - (i == longest ? 5 : 3 - i) * (uint64_t)MS;
        pass(3, 2, 1);
        for (unsigned i = 0; i < 3; i++)
            CHECK_EQ(signals[i], (uint64_t)(i == longest));
    }
}

/* A signal may come at a wrong instruction, so a hog is asked twice. Then it has a slice, and another hog makes room.
 * After that one signal must do. */
TEST(turns, a_hog_that_does_not_stop_is_asked_twice_and_then_once_in_a_slice)
{
    given(2);
    is_deaf[0] = true;
    pass(2, 1, 10); /* a hog has 10 ms to stop */
    CHECK_EQ(signals[0], (uint64_t)1);
    pass(2, 1, 10);
    CHECK_EQ(signals[0], (uint64_t)2);
    CHECK(bz_halt_is_requested(&machine[0].turn.halt));

    pass(2, 1, 1);

    CHECK(bz_halt_is_running(&machine[0].turn.halt));
    CHECK(bz_halt_is_stopped(&machine[1].turn.halt));
    pass(2, 1, 6); /* slices that end within 3 ms end together */
    CHECK_EQ(signals[0], (uint64_t)2);
    pass(2, 1, 1);
    CHECK_EQ(signals[0], (uint64_t)3);
    pass(2, 1, 10);
    CHECK_EQ(signals[0], (uint64_t)3);
    CHECK(bz_halt_is_running(&machine[0].turn.halt));
}

/* The threads that are stopped let all go if the monitor stalls. Its count of signals begins anew then. */
TEST(turns, a_hog_that_went_on_by_itself_is_asked_twice_again)
{
    given(2);
    pass(2, 1, 5);
    CHECK(bz_halt_is_stopped(&machine[0].turn.halt));
    CHECK_EQ(signals[0], (uint64_t)1);
    CHECK(bz_halt_go(&machine[0].turn.halt, &os));
    is_deaf[0] = is_deaf[1] = true;
    signals[0] = 0;

    pass(2, 1, 20); /* the other one has run longer, and is asked twice */
    CHECK_EQ(signals[0], (uint64_t)0);
    pass(2, 1, 11);

    CHECK_EQ(signals[0], (uint64_t)2);
}

/* The others have ended, or waited: what is left runs. */
TEST(turns, when_there_is_room_all_go_on)
{
    given(6);
    pass(6, 2, 50);
    CHECK_EQ(running(6), 2u);
    CHECK_EQ(bz_turns_rotate(&rt, now, hogs, 6, 6), BZ_OS_FOREVER);
    CHECK_EQ(running(6), 6u);
}

/* A shutdown waits for the tasks of all hogs. */
TEST(turns, at_the_end_of_the_runtime_every_hog_goes_on)
{
    static bz_atomic(struct bz_machine *) slot[6];
    given(6);
    for (unsigned i = 0; i < 6; i++)
        bz_atomic_init(&slot[i], &machine[i]);
    rt.machines.slot = slot;
    bz_atomic_init(&rt.machines.count, 6);
    pass(6, 1, 5);
    CHECK(bz_halt_is_stopped(&machine[0].turn.halt)); /* it was the first to be asked */
    CHECK_EQ(running(6), 1u);

    bz_turns_end(&rt, true);

    CHECK_EQ(running(6), 6u);
}

TEST(turns, a_stop_request_that_is_no_longer_needed_is_withdrawn)
{
    given(3);
    is_deaf[0] = is_deaf[1] = is_deaf[2] = true;
    pass(3, 1, 3);
    unsigned asked = 0;
    for (unsigned i = 0; i < 3; i++)
        asked += bz_halt_is_requested(&machine[i].turn.halt);
    CHECK_EQ(asked, 2u);

    pass(3, 3, 1);

    for (unsigned i = 0; i < 3; i++)
        CHECK(!bz_halt_is_requested(&machine[i].turn.halt));
}

/* The monitor sleeps until then: while a hog waits for its turn it must return. */
TEST(turns, it_schedules_another_check_while_a_hog_waits)
{
    given(4);
    for (unsigned t = 0; t < 200; t++) {
        uint64_t next = bz_turns_rotate(&rt, now, hogs, 4, 2);
        CHECK_GT(next, now);
        CHECK_LE(next, now + 10 * (uint64_t)MS);
        now = next;
    }
}

/* A cancelled task has to unwind: it does not wait for all the others first. */
TEST(turns, a_cancelled_hog_goes_on_before_the_others)
{
    static struct bz_task task;
    given(20);
    pass(20, 1, 5);
    CHECK_EQ(running(20), 1u);
    unsigned last = 20; /* the one that was stopped last: its turn is far away */
    for (unsigned i = 0; i < 20; i++)
        if (bz_halt_is_stopped(&machine[i].turn.halt) &&
            (last == 20 || machine[i].turn.since_ns >= machine[last].turn.since_ns))
            last = i;
    bz_atomic_init(&task.word, BZ_WORD_CANCELLED);
    bz_store_relaxed(&machine[last].turn.task, &task);
    pass(20, 1, 20);
    CHECK_GT(ran_ms[last], 0u);
}

/* A resumed hog starts at once, and does not wait until the one before it has stopped. */
TEST(turns, a_turn_changes_hands_within_one_look)
{
    given(4);
    pass(4, 1, 5);
    for (unsigned t = 0; t < 100; t++) {
        (void)!bz_turns_rotate(&rt, now, hogs, 4, 1);
        CHECK_EQ(running(4), 1u);
        now += 10 * (uint64_t)MS;
    }
}
