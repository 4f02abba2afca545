/*
 * quiet.c - suppress SIGPIPE.
 *
 * A write to a closed connection or pipe raises SIGPIPE, which by default ends the process. send
 * and sendmsg have a flag against it (MSG_NOSIGNAL); sendfile, splice and write do not. For those
 * we block the signal during the call, and consume it if it is pending afterwards. The signal is
 * sent to the calling thread, so it cannot be confused with one of another thread; a signal that
 * was already pending is left. It may also be raised with a successful call: a call that moves
 * several pieces returns how many it moved before the error.
 *
 * Rejected: ignoring the signal in the whole process, which is the program's decision. Also
 *           blocking it permanently in all workers: their threads run the program's code, and a
 *           plain thread that runs a task is not a worker.
 *
 * It costs two calls of about 0.1 us each, around a call that moves up to a megabyte.
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
        (void)sigtimedwait(&set, NULL, &now); /* usually no signal is pending */
    pthread_sigmask(SIG_SETMASK, &q->was, NULL);
    if (errno != err) /* simulated threads share it, and none of these calls fails there */
        errno = err;
}
