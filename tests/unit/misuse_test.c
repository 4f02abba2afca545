/* A call that cannot work says why, in a line: silence sends its author to a debugger. */
#include "harness.h"

#include <errno.h>

#include "arch/notes.h"
#include "blitz.h"
#include "blitz/tcp.h"
#include "runtime/config.h"

/* ---- log messages ---- */

static char said[4096];

static void listen_to(void *ctx, blitz_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    size_t used = strlen(said);
    snprintf(said + used, sizeof said - used, "%s\n", line);
}

static void begin_listening(void)
{
    said[0] = '\0';
    CHECK_EQ(blitz_log_set(listen_to, NULL, BLITZ_LOG_WARN), 0);
}

static void was_said(const char *words)
{
    if (strstr(said, words) == NULL)
        FAIL("nothing said \"%s\", but: %s", words, said);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* ---- outside of a runtime ---- */

TEST(misuse, a_spawn_outside_of_a_runtime_explains_the_error)
{
    blitz_task *t;
    begin_listening();
    CHECK_EQ(blitz_spawn(nothing, NULL, NULL, &t), -EINVAL);
    was_said("spawn: this thread runs no task");
    was_said("opts.runtime");
}

TEST(misuse, a_socket_outside_of_a_runtime_explains_the_error)
{
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp_listener *l;
    begin_listening();
    CHECK_EQ(blitz_tcp_listen(&at, NULL, &l), -EOPNOTSUPP);
    was_said("net: this thread runs no task");
}

static int runs_inside(void *arg)
{
    (void)arg;
    blitz_spawn_opts no_such_proc = {.proc = BLITZ_ON_PROC(7)},
                     too_large = {.stack_bytes = 1 << 30};
    CHECK_EQ(blitz_run(nothing, NULL, NULL), -EBUSY);
    CHECK_EQ(blitz_spawn(nothing, NULL, &no_such_proc, NULL), -EINVAL);
    CHECK_EQ(blitz_spawn(nothing, NULL, &too_large, NULL), -EINVAL);
    return 0;
}

TEST(misuse, calls_inside_of_a_runtime_explain_their_errors)
{
    begin_listening();
    CHECK_EQ(blitz_run(runs_inside, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
    was_said("blitz_run: called in a task");
    was_said("opts.proc is proc 7, but the runtime has 2");
    was_said("opts.stack_bytes = 1073741824");
}

/* ---- handles ---- */

static int joins_twice(void *arg)
{
    blitz_task *t;
    blitz_spawn_opts opts = {.name = "parser"};
    CHECK_EQ(blitz_spawn(nothing, NULL, &opts, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    if (arg != NULL)
        blitz_task_detach(t);
    else
        (void)!blitz_task_join(t, NULL, BLITZ_FOREVER);
    return 0;
}

static void run_joins_twice(void *arg)
{
    (void)!blitz_run(joins_twice, arg, NULL);
}

TEST(misuse, a_handle_that_was_given_up_is_named)
{
    if (BZ_ASAN)
        t_skip("AddressSanitizer is first");
#if !defined(BZ_DEBUG) /* which overwrites what was freed */
    CHECK_ABORTS(run_joins_twice, NULL, "\"parser\": a handle is joined or detached once");
#endif
    CHECK_ABORTS(run_joins_twice, said, "handle already given up: task ");
}

static int forgets(void *arg)
{
    blitz_task **t = arg;
    blitz_spawn_opts opts = {.name = "forgotten"};
    CHECK_EQ(blitz_spawn(nothing, NULL, &opts, &t[0]), 0);
    CHECK_EQ(blitz_spawn(nothing, NULL, &opts, &t[1]), 0);
    CHECK_EQ(blitz_task_join(t[1], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(misuse, a_handle_that_was_never_given_up_is_named_at_the_end)
{
    blitz_task *t[2];
    begin_listening();
    CHECK_EQ(blitz_run(forgets, t, NULL), 0);
    was_said("(forgotten) has ended and is still held");
    CHECK_NULL(strstr(strstr(said, "(forgotten)") + 1, "(forgotten)")); /* the other was joined */
    blitz_task_detach(t[0]);
}

TEST(misuse, a_runtime_that_was_left_in_order_says_nothing)
{
    begin_listening();
    CHECK_EQ(blitz_run(nothing, NULL, NULL), 0);
    CHECK_STR_EQ(said, "");
}

/* ---- locks ---- */

static void unlock_unlocked(void *arg)
{
    static blitz_mutex m = BLITZ_MUTEX_INIT;
    (void)arg;
    CHECK_EQ(blitz_mutex_lock(&m, BLITZ_FOREVER), 0);
    blitz_mutex_unlock(&m);
    blitz_mutex_unlock(&m);
}

TEST(misuse, unlocking_a_mutex_that_is_not_locked_aborts)
{
    CHECK_ABORTS(unlock_unlocked, NULL, "but it is not locked");
}

/* ---- the environment ---- */

TEST(misuse, a_variable_that_does_not_exist_is_named_with_the_nearest)
{
    static const char *const all[] = {"PATH=somewhere",      "BLITZ_PROC=4",   "BLITZ_STAK=1M",
                                      "BLITZ_PROCS=4",       "BLITZ_IO=epoll", "BLITZ_TEST_SEED=1",
                                      "BLITZ_THREAD_MAX=10", "BLITZ_WHATEVER", NULL};
    begin_listening();
    bz_settings_judge_environment(all);
    was_said("BLITZ_PROC: no such variable; did you mean BLITZ_PROCS?");
    was_said("BLITZ_STAK: no such variable; did you mean BLITZ_STACK?");
    was_said("BLITZ_THREAD_MAX: no such variable; did you mean BLITZ_THREADS_MAX?");
    was_said("BLITZ_WHATEVER: no such variable; blitz(7) lists them");
    CHECK_NULL(strstr(said, "BLITZ_TEST_SEED"));
    CHECK_NULL(strstr(said, "BLITZ_IO"));
}

/* Four letters put in, taken out or exchanged are a slip; five are another word. */
TEST(misuse, a_variable_that_is_too_far_from_all_is_not_named_with_any)
{
    static const char *const all[] = {"BLITZ_STACKXXXX", "BLITZ_STACKXXXXX", "BLITZ_BURNING",
                                      "BLITZ_REDUC",     "BLITZ_PXXXX",      "BLITZ_XXXXX",
                                      "BLITZ_SPROC",     "BLITZ_ROCSP",      NULL};
    begin_listening();
    bz_settings_judge_environment(all);
    was_said("BLITZ_STACKXXXX: no such variable; did you mean BLITZ_STACK?");
    was_said("BLITZ_STACKXXXXX: no such variable; blitz(7) lists them");
    was_said("BLITZ_BURNING: no such variable; did you mean BLITZ_BURNING_MAX?");
    was_said("BLITZ_REDUC: no such variable; blitz(7) lists them");
    was_said("BLITZ_PXXXX: no such variable; did you mean BLITZ_PROCS?");
    was_said("BLITZ_XXXXX: no such variable; blitz(7) lists them");
    was_said(
        "BLITZ_SPROC: no such variable; did you mean BLITZ_PROCS?"); /* one put in, one taken out */
    was_said("BLITZ_ROCSP: no such variable; did you mean BLITZ_PROCS?");
}
