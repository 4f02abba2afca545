/*
 * blitz/closed_future.h - a sender's wait for the end of its receivers, as a future.
 *
 * A sender that computes a value for a long time wants to know when no receiver is left for it. Each of chan.h,
 * oneshot.h, broadcast.h and watch.h has a call ..._wait_closed() for that. Its future form is one case of a select or a
 * race, beside the work:
 *
 *     blitz_oneshot_wait_closed_future_init(&gone, reply);
 *     blitz_select(BLITZ_FOREVER) {
 *         blitz_on_future(&work.future) { blitz_oneshot_send(reply, &work.value); }
 *         blitz_on_future(&gone.future) { blitz_oneshot_sender_drop(reply); }       // work was cancelled
 *     }
 *
 * All of them are revocable (blitz/future.h): a cancel changes nothing.
 */
#ifndef BLITZ_CLOSED_FUTURE_H
#define BLITZ_CLOSED_FUTURE_H

#include "blitz/api.h"
#include "blitz/future.h"

BLITZ_BEGIN_DECLS

/* The memory is yours, from init until the future is ready or cancelled; do not move or copy it in between. */
typedef struct blitz_closed_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready or cancelled: 0 (closed), -ECANCELED */
    void *inside[8];
} blitz_closed_future;

BLITZ_END_DECLS

#endif
