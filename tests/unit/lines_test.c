/*
 * lines_test.c - the coherence model of the simulated machine (tests/scale/lines.h).
 */
#include "harness.h"
/* The program of tests/scale has it in a build of its own. */
#include "scale/lines.c" /* NOLINT(bugprone-suspicious-include) */

static const struct line_prices prices = {
    .hit = 1, .cold = 10, .move = 100, .invalidate = 5, .share = 20, .locked = 0};

static uint64_t now;

static void given(void)
{
    lines_reset();
    now = 1000;
}

static uint64_t price(unsigned cpu, bool is_write)
{
    return lines_access(7, cpu, is_write, now, &prices).price_ps;
}

static uint64_t read_by(unsigned cpu)
{
    now += 1000; /* no access waits for the one before */
    return price(cpu, false);
}

static uint64_t write_by(unsigned cpu)
{
    now += 1000;
    return price(cpu, true);
}

TEST(lines, a_line_of_one_cpu_stays_in_its_cache)
{
    given();
    CHECK_EQ(read_by(3), 10u); /* cold */
    CHECK_EQ(write_by(3), 1u); /* no other cache has it */
    CHECK_EQ(read_by(3), 1u);
}

TEST(lines, readers_share_a_line)
{
    given();
    CHECK_EQ(write_by(0), 10u);
    for (unsigned cpu = 1; cpu < 200; cpu++)
        CHECK_EQ(read_by(cpu), 100u);
    for (unsigned cpu = 0; cpu < 200; cpu++)
        CHECK_EQ(read_by(cpu), 1u);
}

TEST(lines, a_write_takes_the_line_from_all_readers)
{
    given();
    for (unsigned cpu = 0; cpu < 10; cpu++)
        (void)read_by(cpu);
    CHECK_EQ(write_by(0), 100u + 8 * 5u);
    CHECK_EQ(write_by(0), 1u);
    CHECK_EQ(read_by(9), 100u);
}

TEST(lines, writers_queue_for_a_line_and_readers_overlap)
{
    given();
    (void)write_by(0);
    now += 1000;
    CHECK_EQ(lines_access(7, 1, true, now, &prices).wait_ps, 0u);
    CHECK_EQ(lines_access(7, 2, true, now, &prices).wait_ps, 100u);
    CHECK_EQ(lines_access(7, 3, false, now, &prices).wait_ps, 200u); /* it has an owner */
    CHECK_EQ(lines_access(7, 4, false, now, &prices).wait_ps, 300u);
    CHECK_EQ(lines_access(7, 5, false, now, &prices).wait_ps, 320u); /* shared already */
}

TEST(lines, lines_are_told_apart)
{
    given();
    for (uintptr_t line = 1; line <= 100000; line++)
        CHECK_EQ(lines_access(line, line % 7, true, now, &prices).price_ps, 10u);
    for (uintptr_t line = 1; line <= 100000; line++)
        CHECK_EQ(lines_access(line, line % 7, true, now, &prices).price_ps, 1u);
}

TEST(lines, the_most_expensive_sites_come_first_and_know_their_line)
{
    struct line_site top[3 + 1];
    struct line_cost cost = {.price_ps = 1, .is_move = true};

    given();
    for (uintptr_t pc = 1; pc <= 50; pc++) {
        cost.price_ps = pc;
        lines_site(pc, 1000 + pc, &cost);
        lines_site(pc, 1000 + pc, &cost);
    }
    CHECK_EQ(lines_sites_top(top, 3), 3u);
    CHECK_EQ(top[0].pc, 50u);
    CHECK_EQ(top[2].pc, 48u);
    CHECK_EQ(top[0].ps, 100u);
    CHECK_EQ(top[0].line, 1050u);
    CHECK_EQ(top[0].here, top[0].moves);
}
