/*
 * blitz/fd.h - wait for a descriptor that other code owns.
 *
 * Some libraries do their own input and output, but let the caller wait (libpq, curl's multi interface, c-ares). They
 * say which descriptor they wait for. Wait for it here, and call them again. Their work is done in a fiber, and no
 * thread is blocked.
 *
 *     while (PQisBusy(conn)) {
 *         int got = blitz_fd_wait(PQsocket(conn), BLITZ_FD_READ, until);
 *         if (got < 0)
 *             return got;
 *         PQconsumeInput(conn);
 *     }
 *
 * Each call is independent: between two of them the library may close the descriptor and open another one of the same
 * number. Several tasks may wait for one descriptor at the same time. The descriptor must stay open while a task waits
 * for it.
 */
#ifndef BLITZ_FD_H
#define BLITZ_FD_H

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/net_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

enum {
    BLITZ_FD_READ = 1,  /* there are bytes to read, an end, or a connection to accept */
    BLITZ_FD_WRITE = 2, /* there is room to write, or a connect has ended */
    BLITZ_FD_ERROR = 4, /* reported also if not requested */
    BLITZ_FD_HANGUP = 8 /* reported also if not requested */
};

/*
 * Wait until a descriptor is ready for one of `events` (BLITZ_FD_READ, BLITZ_FD_WRITE, or both).
 * Regular files always are.
 * Owns:     the descriptor stays the caller's, unchanged: blocking or not.
 * Suspends: until then, `until`, or a cancel. Call from a task.
 * Returns:  the events of the four that hold; -ETIMEDOUT, -ECANCELED; -EBADF (not open), -EINVAL (no
 *           such event), -ENOMEM, -EMFILE, -EOPNOTSUPP (not in a task).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_fd_wait(blitz_fd fd, unsigned events, blitz_deadline until);

/*
 * blitz_fd_wait() as a future, for one of the two events; for either, race two of them. f->result is what the call
 * would return.
 * Owns:     the descriptor stays the caller's, and must stay open until the future was ready or
 *           cancelled.
 * Suspends: never. Call from any thread; poll it in a task.
 */
BLITZ_API void blitz_fd_wait_future_init(blitz_net_future *f, blitz_fd fd, unsigned event);

BLITZ_END_DECLS

#endif
