/* io/quiet.h: a call on a broken pipe raises no signal, and takes none of the program's. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>

#include "io/quiet.h"

static bool is_pending(void)
{
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE) == 1;
}

/* A call raises the signal, or does not, and did a part of what was asked for. */
static void fails(bool raises)
{
    struct bz_quiet q;
    bz_quiet_begin(&q);
    if (raises)
        CHECK_EQ(raise(SIGPIPE), 0);
    bz_quiet_end(&q, false);
}

TEST(sigpipe, the_signal_of_a_call_is_consumed)
{
    fails(true); /* else it ends the process */
    CHECK(!is_pending());
}

/* The program has blocked the signal, and wants to see its own. */
TEST(sigpipe, a_signal_that_was_pending_before_the_call_stays)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    fails(true);
    CHECK(!is_pending());
    CHECK_EQ(raise(SIGPIPE), 0);
    fails(false);
    CHECK(is_pending());
    fails(true);
    CHECK(is_pending());
}
