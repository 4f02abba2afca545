/* os/os.h, bz_os_others, and the report built on it: "no thread is left" must be true when it is
 * reported. */
#include "harness.h"

#include <pthread.h>
#include <unistd.h>

#include "blitz.h"
#include "os/os.h"
#include "os/sleepers.h"
#include "proc/state.h"
#include "support/event.h"
#include "support/sanitizers.h"
#include "support/tasks.h"

static void given_a_process_of_our_own(void)
{
    if (T_TSAN)
        t_skip("ThreadSanitizer has a thread of its own, which counts");
    t_skip_if_emulated("does not count threads as the kernel does");
    t_skip_under_valgrind("has threads of its own");
}

/* ---- other threads that could act ---- */

static struct {
    bz_os_word word;
    uint64_t until;
    int fds[2];
    bz_atomic(int) tid, stage;
} other;

static void *sleeps_on_the_word(void *arg)
{
    (void)arg;
    bz_store_relaxed(&other.tid, t_tid());    /* relaxed: only a marker */
    while (bz_load_acquire(&other.word) == 0) /* os.h: the word's own */
        bz_os_wait(&bz_os_system, &other.word, 0, other.until);
    return NULL;
}

static void *reads(void *arg)
{
    char byte;
    (void)arg;
    bz_store_relaxed(&other.tid, t_tid()); /* relaxed: as above */
    CHECK_EQ(read(other.fds[0], &byte, 1), 1);
    return NULL;
}

static void *spins(void *arg)
{
    (void)arg;
    bz_store_relaxed(&other.tid, t_tid());     /* relaxed: as above */
    while (bz_load_relaxed(&other.stage) == 0) /* relaxed: a flag */
        continue;
    return NULL;
}

static pthread_t start(void *(*fn)(void *), bool will_sleep)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
    while (bz_load_relaxed(&other.tid) == 0) /* relaxed: as above */
        sched_yield();
    if (will_sleep)
        CHECK(t_until_asleep(bz_load_relaxed(&other.tid))); /* relaxed: as above */
    return t;
}

static void let_go(pthread_t t)
{
    bz_store_release(&other.word, 1); /* os.h: the word's own */
    bz_os_wake(&bz_os_system, &other.word, 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

TEST(others, a_process_with_one_thread_has_none)
{
    given_a_process_of_our_own();
    CHECK_EQ(bz_os_others(&bz_os_system), 0);
}

TEST(others, one_that_sleeps_for_ever_does_not_count)
{
    given_a_process_of_our_own();
    other.until = BZ_OS_FOREVER;
    pthread_t t = start(sleeps_on_the_word, true);
    CHECK_EQ(bz_os_others(&bz_os_system), 0);
    let_go(t);
}

/* A wake is in progress: between the change of the word and the wake no thread counts as asleep. */
TEST(others, one_whose_word_has_changed_counts)
{
    given_a_process_of_our_own();
    other.until = BZ_OS_FOREVER;
    pthread_t t = start(sleeps_on_the_word, true);
    bz_store_release(&other.word, 1); /* os.h: the word's own. Not woken yet */
    CHECK_EQ(bz_os_others(&bz_os_system), 1);
    let_go(t);
}

TEST(others, one_with_a_deadline_counts)
{
    given_a_process_of_our_own();
    other.until = bz_os_now(&bz_os_system) + 3600 * BLITZ_S;
    pthread_t t = start(sleeps_on_the_word, true);
    CHECK_EQ(bz_os_others(&bz_os_system), 1);
    let_go(t);
}

TEST(others, one_that_reads_counts)
{
    given_a_process_of_our_own();
    CHECK_EQ(pipe(other.fds), 0);
    pthread_t t = start(reads, true);
    CHECK_EQ(bz_os_others(&bz_os_system), 1);
    CHECK_EQ(write(other.fds[1], "x", 1), 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
    close(other.fds[0]);
    close(other.fds[1]);
}

TEST(others, one_that_runs_counts)
{
    given_a_process_of_our_own();
    pthread_t t = start(spins, false);
    CHECK_EQ(bz_os_others(&bz_os_system), 1);
    bz_store_relaxed(&other.stage, 1); /* relaxed: a flag */
    CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- the report, on real threads ---- */

static struct {
    bz_atomic(int) deadlocks, lines;
    struct t_event reported;
} heard;

/* Gets the report on the monitor's thread, and lets the tasks go, so that the test comes to an end. */
static void hears(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    bz_fetch_add_relaxed(&heard.lines, 1); /* relaxed: a count */
    if (strncmp(message, "deadlock: ", 10) == 0)
        bz_fetch_add_relaxed(&heard.deadlocks, 1); /* relaxed: a count */
    if (strstr(message, "waiting: event") != NULL)
        t_event_set(&heard.reported);
}

static int waits_for_what_nobody_will_do(void *arg)
{
    (void)arg;
    return t_event_await_until(&heard.reported, BLITZ_FOREVER);
}

TEST(deadlock, is_reported_once_with_a_dump)
{
    given_a_process_of_our_own();
    t_event_init(&heard.reported, &bz_os_system);
    blitz_runtime_opts config = {.procs = 2, .log = hears};
    CHECK_EQ(blitz_run(waits_for_what_nobody_will_do, NULL, &config), 0);
    CHECK_EQ(bz_load_relaxed(&heard.deadlocks), 1); /* relaxed: its threads are joined */
    CHECK_GE(bz_load_relaxed(&heard.lines), 5);     /* relaxed: likewise */
}
