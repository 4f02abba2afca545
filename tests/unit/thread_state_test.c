/* Thread state that a task keeps: blitz/task.h lists it. */
#include "harness.h"

#include <fenv.h>

#include "support/net.h"
#include "support/on_each.h"

static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

static int rounds_its_way(void *arg)
{
    const int mine = *(const int *)arg;
    const int before = fegetround();
    CHECK_EQ(fesetround(mine), 0);
    for (uint64_t i = 0; i < t_scaled(200); i++) {
        if (i % 8 == 0)
            (void)!blitz_sleep_until(blitz_after(t_random() % 50 * BLITZ_US));
        else
            blitz_yield();
        CHECK_EQ(fegetround(), mine);
    }
    CHECK_EQ(fesetround(before), 0);
    return 0;
}

static int rounding(void *arg)
{
    enum { TASKS = 16 };
    blitz_task *t[TASKS];
    (void)arg;
    for (int i = 0; i < TASKS; i++)
        t[i] = t_spawn(rounds_its_way, (void *)(uintptr_t)&modes[i % 4]);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(t_join(t[i]), 0);
    CHECK_EQ(fegetround(), FE_TONEAREST);
    return 0;
}

TEST(thread_state, bug_44_the_rounding_mode_of_a_task_is_its_own_across_waits)
{
    t_on_each(rounding, NULL, 0);
}

/* ---- errno ---- */

static int ends_in(void *arg)
{
    blitz_task *t = t_spawn(rounds_its_way, (void *)(uintptr_t)&modes[0]);
    (void)arg;
    errno = 77;
    blitz_task_detach(t);
    CHECK_EQ(errno, 77); /* a call that never suspends leaves it alone */
    blitz_task_cancel(NULL);
    CHECK_EQ(errno, 77);
    return 0;
}

TEST(thread_state, bug_44_calls_that_never_suspend_leave_errno_alone)
{
    t_on_each(ends_in, NULL, 0);
}
