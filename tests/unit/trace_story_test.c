/* trace/trace_story.h: from records to slices and arrows. Every case is a small trace by hand. */
#include "harness.h"

#include <stdarg.h>

#include "support/test_alloc.h"
#include "task/task.h"
#include "trace/trace_story.h"

/* The story, one line each. */
static char told[4096];
static size_t length;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    length += (size_t)vsnprintf(told + length, sizeof told - length, format, args);
    va_end(args);
}

static void on_slice(void *ctx, unsigned row, const struct bz_slice *s)
{
    (void)ctx;
    say("%u: %s%llu %llu-%llu%s%s\n", row,
        s->kind == BZ_TRACE_sleep           ? "sleep "
        : s->kind == BZ_TRACE_syscall_enter ? "call "
        : s->is_job                         ? "job "
                                            : "run ",
        (unsigned long long)s->task, (unsigned long long)s->begin, (unsigned long long)s->end,
        s->is_open                  ? " open"
        : s->left == BZ_LEFT_WAITS  ? " waits"
        : s->left == BZ_LEFT_YIELDS ? " yields"
        : s->left == BZ_LEFT_ENDS   ? " ends"
                                    : "",
        s->has_cause ? " woken" : "");
}

static void on_cause(void *ctx, unsigned row, const struct bz_arrow *a)
{
    (void)ctx;
    say("%u: %s %llu by %llu\n", row,
        a->is_spawn   ? "spawn"
        : a->is_timer ? "timer"
                      : "wake",
        (unsigned long long)a->task, (unsigned long long)a->by);
}

static void on_effect(void *ctx, unsigned row, const struct bz_arrow *a)
{
    (void)ctx;
    say("%u: -> %llu\n", row, (unsigned long long)a->task);
}

static void on_moment(void *ctx, unsigned row, const struct bz_record *r)
{
    (void)ctx;
    say("%u: moment %llu\n", row, (unsigned long long)r->word[BZ_TRACE_ARG]);
}

static const struct bz_story_teller teller = {on_slice, on_cause, on_effect, on_moment, NULL};

#define E(time_, event_, task_, arg_)                                                          \
    {                                                                                          \
        {                                                                                      \
            time_, bz_trace_what(BZ_TRACE_##event_, 0, 0), (uint64_t)(task_), (uint64_t)(arg_) \
        }                                                                                      \
    }
#define ROW(r) ((struct bz_story_row){r, BZ_ARRAY_LEN(r), false})

static const char *story(const struct bz_story_row *rows, unsigned count)
{
    length = 0;
    told[0] = '\0';
    CHECK_EQ(bz_story_tell(&bz_allocator_libc, rows, count, 0, &teller), 0);
    return told;
}

TEST(story, a_task_is_spawned_runs_waits_is_woken_and_ends)
{
    struct bz_record outside[] = {E(1, spawn, 7, 0), E(5, wake, 7, 0)};
    struct bz_record machine[] = {E(2, start, 7, 0),  E(4, park, 7, 0),  E(4, sleep, 0, 0),
                                  E(6, roused, 0, 0), E(7, start, 7, 0), E(9, end, 7, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(outside), ROW(machine)}, 2),
                 "0: spawn 7 by 0\n1: -> 7\n1: run 7 2-4 waits woken\n0: wake 7 by 0\n"
                 "1: sleep 0 4-6\n1: -> 7\n1: run 7 7-9 ends woken\n");
}

TEST(story, a_claimed_child_runs_on_top_of_its_joiner)
{
    struct bz_record row[] = {E(1, start, 1, 0), E(2, spawn, 2, 1), E(3, claim, 2, 1),
                              E(4, back, 1, bz_trace_child(2, BZ_RAN_DONE)), E(6, end, 1, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(row)}, 1),
                 "0: spawn 2 by 1\n0: -> 2\n0: run 2 3-4 ends woken\n0: run 1 1-6 ends\n");
}

/* The child waits: both leave. It goes on alone, and its joiner after it, there. */
TEST(story, a_claimed_child_that_waits_takes_its_joiner_along)
{
    struct bz_record a[] = {E(1, start, 1, 0), E(3, claim, 2, 1), E(4, park, 2, 0)};
    struct bz_record b[] = {E(5, start, 2, 0), E(6, back, 1, bz_trace_child(2, BZ_RAN_DONE)),
                            E(8, end, 1, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(a), ROW(b)}, 2),
                 "0: run 2 3-4 waits\n0: run 1 1-4 waits\n1: run 2 5-6 ends\n1: run 1 6-8 ends\n");
}

TEST(story, a_stackless_child_that_waits_returns_to_its_joiner)
{
    struct bz_record row[] = {
        E(1, start, 1, 0), E(3, claim, 2, 1), E(4, back, 1, bz_trace_child(2, BZ_RAN_PENDING)),
        E(6, park, 1, 0),  E(7, start, 2, 0), E(8, end, 2, BZ_RAN_AGAIN)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(row)}, 1),
                 "0: run 2 3-4 waits\n0: run 1 1-6 waits\n0: run 2 7-8 yields\n");
}

TEST(story, overwritten_records_are_not_missed)
{
    struct bz_record row[] = {E(1, end, 5, 0), E(2, syscall_leave, 5, 0), E(2, roused, 0, 0),
                              E(3, park, 6, 0), E(4, start, 8, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(row)}, 1), "0: run 8 4-4 open\n");
}

/* There is no record of a yield: a row has no holes, so what is open has yielded. */
TEST(story, a_start_or_a_sleep_on_top_of_a_run_is_a_yield)
{
    struct bz_record row[] = {E(1, start, 1, 0), E(2, start, 2, 0), E(4, start, 1, 0),
                              E(5, sleep, 0, 0), E(6, roused, 0, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(row)}, 1),
                 "0: run 1 1-2 yields\n0: run 2 2-4 yields\n0: run 1 4-5 yields\n0: sleep 0 5-6\n");
}

TEST(story, a_start_on_another_row_implies_a_yield_here)
{
    struct bz_record a[] = {E(1, start, 1, 0), E(9, start, 2, 0)};
    struct bz_record b[] = {E(5, start, 1, 0), E(6, end, 1, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(a), ROW(b)}, 2),
                 "0: run 1 1-5 yields\n1: run 1 5-6 ends\n0: run 2 9-9 open\n");
}

TEST(story, calls_and_moments)
{
    struct bz_record row[] = {E(1, start, 1, 0),    E(2, syscall_enter, 1, 0),
                              E(3, handover, 0, 4), E(5, syscall_leave, 1, 0),
                              E(6, steal, 0, 3),    E(7, park, 1, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(row)}, 1),
                 "0: moment 4\n0: call 1 2-5\n0: moment 3\n0: run 1 1-7 waits\n");
}

TEST(story, a_timer_wakes_and_not_the_task_that_happens_to_leave)
{
    struct bz_record row[] = {E(1, start, 1, 0), E(3, timer, 2, 0), E(3, wake, 2, 1),
                              E(3, wake, 3, 1), E(4, end, 1, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(row)}, 1),
                 "0: timer 2 by 0\n0: wake 3 by 1\n0: run 1 1-4 ends\n");
}

/* No task runs by then; but the joiners wait for the end of the task. */
TEST(story, a_task_wakes_its_joiners_by_its_end)
{
    struct bz_record row[] = {E(1, start, 1, 0), E(3, end, 1, 0),   E(3, wake, 2, 0),
                              E(3, wake, 3, 0),  E(4, steal, 0, 1), E(4, wake, 4, 0)};
    CHECK_STR_EQ(
        story((struct bz_story_row[]){ROW(row)}, 1),
        "0: run 1 1-3 ends\n0: wake 2 by 1\n0: wake 3 by 1\n0: moment 1\n0: wake 4 by 0\n");
}

/* A job's header has the id of the task that forked it. */
TEST(story, a_job_does_not_take_its_parents_arrow)
{
    struct bz_record a[] = {E(1, start, 1, 0), E(2, park, 1, 0)};
    struct bz_record b[] = {E(1, start, 1, BZ_TASK_ANONYMOUS), E(3, wake, 1, 1),
                            E(3, end, 1, BZ_RAN_JOB)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(a), ROW(b)}, 2),
                 "0: run 1 1-2 waits\n1: wake 1 by 1\n1: job 1 1-3 ends\n");
}

/* In virtual time a wake and the start it leads to may be of the same moment, on two rows. */
TEST(story, of_one_moment_the_cause_goes_first)
{
    struct bz_record a[] = {E(5, start, 2, 0), E(5, spawn, 3, 2), E(5, end, 2, 0)};
    struct bz_record b[] = {E(1, start, 1, 0), E(5, spawn, 2, 1), E(5, end, 1, 0),
                            E(5, start, 3, 0)};
    CHECK_STR_EQ(story((struct bz_story_row[]){ROW(a), ROW(b)}, 2),
                 "1: spawn 2 by 1\n0: -> 2\n0: spawn 3 by 2\n0: run 2 5-5 ends woken\n"
                 "1: run 1 1-5 ends\n1: -> 3\n1: run 3 5-5 open woken\n");
}

TEST(story, claims_too_deep_to_draw_are_balanced)
{
    enum { DEEP = 200 };
    static struct bz_record row[2 * DEEP + 2];
    row[0] = (struct bz_record)E(0, start, 1, 0);
    for (unsigned i = 1; i <= DEEP; i++) {
        row[i] = (struct bz_record)E(i, claim, 1 + i, i);
        row[2 * DEEP + 1 - i] =
            (struct bz_record)E(1000 - i, back, i, bz_trace_child(1 + i, BZ_RAN_DONE));
    }
    row[2 * DEEP + 1] = (struct bz_record)E(2000, end, 1, 0);
    const char *all = story((struct bz_story_row[]){ROW(row)}, 1);
    unsigned slices = 0;
    for (const char *at = all; (at = strstr(at, "run ")) != NULL; at++)
        slices++;
    CHECK_EQ(slices, 64u);
    CHECK_NOT_NULL(strstr(all, "0: run 1 0-2000 ends\n"));
    CHECK_NULL(strstr(all, "open"));
}

/* The start that the spawn led to is missing: the next one has another cause. */
TEST(story, an_arrow_from_before_all_rows_begin_is_not_drawn)
{
    struct bz_record outside[] = {E(1, spawn, 7, 0)};
    struct bz_record machine[] = {E(20, park, 7, 0), E(30, wake, 8, 0), E(40, start, 7, 0),
                                  E(50, start, 8, 0)};
    struct bz_story_row rows[] = {ROW(outside), ROW(machine)};
    rows[1].is_cut = true;
    CHECK_EQ(bz_story_whole_from(rows, 2), 20u);
    CHECK_STR_EQ(story(rows, 2), "1: wake 8 by 0\n1: run 7 40-50 yields\n1: -> 8\n"
                                 "1: run 8 50-50 open woken\n");
}

TEST(story, without_memory_it_says_so)
{
    struct bz_record row[] = {E(1, start, 1, 0)};
    for (size_t n = 1; n <= 2; n++) {
        struct test_alloc memory = TEST_ALLOC;
        blitz_allocator a = test_allocator(&memory);
        memory.fail_at = n;
        CHECK_EQ(bz_story_tell(&a, (struct bz_story_row[]){ROW(row)}, 1, 0, &teller), -ENOMEM);
        CHECK_EQ(memory.live, 0u);
    }
}
