/*
 * quiet.c - a broken pipe without its signal.
 *
 * Who writes to a connection or a pipe that nobody reads any more is killed by SIGPIPE, unless the call
 * says otherwise; send and sendmsg can say it (MSG_NOSIGNAL), sendfile, splice and write cannot. For
 * those the signal is held back while the call is made, and taken away if it has come. It is the calling
 * thread's own, so nobody else's can be mistaken for it: only one that was waiting already is left. It may
 * have come beside a success: a call that moves several pieces says how many went before it broke.
 *
 * Rejected: to ignore the signal in the whole process, which is the program's to decide; and to hold it
 * back in all workers for good, whose threads run the program's own code, and which a thread that lends
 * itself to a runtime is not.
 *
 * It costs two calls of about a tenth of a microsecond each beside one that moves up to a megabyte.
 */
#include "io/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static sigset_t broken_pipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void bz_quiet_begin(struct bz_quiet *q)
{
    sigset_t set = broken_pipe(), pending;
    pthread_sigmask(SIG_BLOCK, &set, &q->was);
    q->is_pending = sigismember(&q->was, SIGPIPE) == 1 && sigpending(&pending) == 0 &&
                    sigismember(&pending, SIGPIPE) == 1;
}

void bz_quiet_end(struct bz_quiet *q, bool is_whole)
{
    int err = errno;
    sigset_t set = broken_pipe();
    const struct timespec now = {0, 0};
    if (!is_whole && !q->is_pending)
        (void)sigtimedwait(&set, NULL, &now); /* none has come, as a rule */
    pthread_sigmask(SIG_SETMASK, &q->was, NULL);
    errno = err;
}
