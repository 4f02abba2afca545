/*
 * service.h - the thread that hears signals, and the functions that it calls.
 *
 * A *hearer* names a function that the thread calls after signals have arrived: with the counts of os/signals.h it
 * finds out which. The thread exists while there is a hearer.
 */
#ifndef BZ_SIGNAL_SERVICE_H
#define BZ_SIGNAL_SERVICE_H

#include "base/compiler.h"
#include "base/list.h"

struct bz_hearer {
    struct bz_list in; /* guarded by the service's lock */
    void (*hear)(
        struct bz_hearer *h); /* on the thread; must not wait, and not add or remove a hearer */
};

/*
 * Call h->hear() whenever signals have arrived from here on, perhaps without need.
 * Returns: 0, -EAGAIN, -ENOMEM: there is no thread.
 */
BZ_MUST_USE int bz_hearer_add(struct bz_hearer *h);
/* Stop. On return no call is in progress. */
void bz_hearer_remove(struct bz_hearer *h);

/* Let the thread take the signals that are watched now: one that all other threads block arrives nevertheless. */
void bz_hearers_renew(void);

#endif
