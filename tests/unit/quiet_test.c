/* io/quiet.h: a SIGPIPE of ours is eaten, one of the program's is left where it was. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>

#include "io/quiet.h"

static sigset_t only_sigpipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

static bool is_pending(void)
{
    sigset_t set;
    CHECK_EQ(sigpending(&set), 0);
    return sigismember(&set, SIGPIPE) == 1;
}

static bool is_blocked(void)
{
    sigset_t set;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
    return sigismember(&set, SIGPIPE) == 1;
}

static void eat(void)
{
    sigset_t set = only_sigpipe();
    CHECK_EQ(sigtimedwait(&set, NULL, &(struct timespec){0, 0}), SIGPIPE);
}

/* The program has blocked it, and one is waiting: that one stays. */
TEST(quiet, a_pending_signal_of_the_program_stays_pending)
{
    sigset_t set = only_sigpipe();
    struct bz_quiet q;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CHECK_EQ(pthread_kill(pthread_self(), SIGPIPE), 0);
    bz_quiet_begin(&q);
    bz_quiet_end(&q, false);
    CHECK(is_pending());
    CHECK(is_blocked());
    eat();
}

/* The program has blocked it, and ours is the first: it goes. */
TEST(quiet, a_signal_of_ours_is_eaten_while_the_program_blocks_it)
{
    sigset_t set = only_sigpipe();
    struct bz_quiet q;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    bz_quiet_begin(&q);
    CHECK_EQ(pthread_kill(pthread_self(), SIGPIPE), 0);
    bz_quiet_end(&q, false);
    CHECK(!is_pending());
    CHECK(is_blocked());
}

/* The program does not expect it at all: it would die of it. */
TEST(quiet, our_sigpipe_ends_no_process)
{
    struct bz_quiet q;
    CHECK(!is_blocked());
    bz_quiet_begin(&q);
    CHECK(is_blocked());
    CHECK_EQ(pthread_kill(pthread_self(), SIGPIPE), 0);
    errno = 77;
    bz_quiet_end(&q, false);
    CHECK_EQ(errno, 77);
    CHECK(!is_pending());
    CHECK(!is_blocked());
    bz_quiet_begin(&q);
    bz_quiet_end(&q, true); /* all was written: there is nothing to look for */
    CHECK(!is_blocked());
}
