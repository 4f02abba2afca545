/* check.h: three costs, one way to end. */
#include "harness.h"

#include "base/check.h"
#include "support/death.h"

static int evaluated;

static bool note_and(bool value)
{
    evaluated++;
    return value;
}

TEST(check, a_check_that_holds_is_silent_and_evaluated_once)
{
    BZ_CHECK(note_and(true), "never shown");
    CHECK_EQ(evaluated, 1);
}

TEST(check, a_failed_check_prints_the_place_the_condition_and_the_message)
{
    int seen = 42;
    DIES("check_test.c:", BZ_CHECK(seen == 41, "seen %d", seen));
    DIES("broken: seen == 41: seen 42", BZ_CHECK(seen == 41, "seen %d", seen));
}

TEST(check, a_message_longer_than_the_buffer_is_cut_not_lost)
{
    static char tail[2000];
    memset(tail, 'x', sizeof tail - 1);
    DIES("broken: 0: xxxxxxxxxx", BZ_CHECK(0, "%s", tail));
    DIES("blitz: ", bz_fail(tail, 1, tail, "%s", tail));
    DIES("blitz: ", bz_fail("file", 1, tail, "%s", tail));
}

TEST(check, assertions_cost_nothing_in_release_but_still_compile)
{
    BZ_ASSERT(note_and(true));
    BZ_ASSERT_SLOW(note_and(true));
#if !defined(BZ_DEBUG)
    CHECK_EQ(evaluated, 0);
    BZ_ASSERT(note_and(false));
#else
    CHECK_GE(evaluated, 1);
    DIES("broken: note_and(0)", BZ_ASSERT(note_and(0)));
#endif
}
