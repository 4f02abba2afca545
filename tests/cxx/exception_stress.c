/* Exceptions of C++ stay with their task, wherever it waits and wherever it goes on. */
#include "harness.h"

#include "base/compiler.h"
#include "cxx/exceptions.h"
#include "support/death.h"

static const unsigned procs[] = {1, 2, 3, 8};

static void stays_right(void (*scene)(struct ex_scene *), unsigned tasks, unsigned rounds)
{
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        struct ex_scene s = {
            .procs = procs[i], .tasks = tasks, .rounds = rounds, .seed = t_random()};
        t_watch("%u procs, seed 0x%llx", procs[i], (unsigned long long)s.seed);
        scene(&s);
        CHECK_STR_EQ(s.wrong, "");
        CHECK_EQ(s.done, (uint64_t)tasks * rounds);
        t_note("%u procs: %llu rounds, %llu waits ended on another thread", procs[i],
               (unsigned long long)s.done, (unsigned long long)s.migrations);
    }
}

/* Two tasks that wait in a catch block had each other's exception when they went on. */
TEST_LIMIT(exception, bug_44_a_wait_in_a_catch_block_keeps_the_exception, 240)
{
    const char *given = getenv("BLITZ_ROUNDS"); /* of each of 16 tasks */
    stays_right(ex_mix, 16, given != NULL ? (unsigned)atoi(given) : (unsigned)t_scaled(130));
}

TEST(exception, bug_44_a_plain_thread_finds_its_exception_after_a_run)
{
    stays_right(ex_thread, 4, (unsigned)t_scaled(20));
}

/* Also out of a child that its joiner runs, whose frames could catch it. */
TEST(exception, an_exception_that_leaves_a_task_ends_the_process_by_name)
{
    for (enum ex_escape how = 0; how < EX_ESCAPES; how++) {
        t_watch("way %d", (int)how);
        DIES("(parser): the process ends", ex_escape(how));
        DIES("lost", ex_escape(how)); /* the C++ runtime says what it was */
    }
}
