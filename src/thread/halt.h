/*
 * halt.h - stop a thread where it stands, and let it go on.
 *
 * The monitor asks, the thread stops in a signal handler. halt.c has the protocol.
 */
#ifndef BZ_HALT_H
#define BZ_HALT_H

#include <stdbool.h>

#include "os/os.h"

enum { BZ_HALT_RUNS = 0, BZ_HALT_ASKED = 1, BZ_HALT_STOPPED = 2 };

struct bz_halt {
    bz_os_word word; /* one of the above */
};

void bz_halt_init(struct bz_halt *h);

/* ---- the asker, one at a time ---- */

/* Ask the thread to stop. The caller then interrupts the thread, and again until it has stopped. Does nothing
 * if the thread has been asked or has stopped. */
void bz_halt_ask(struct bz_halt *h);
/* Let the thread go on, or take the question back if it has not stopped yet. Any thread. Returns true if
 * the thread had stopped. */
bool bz_halt_go(struct bz_halt *h, const struct bz_os *os);

static inline bool bz_halt_is_stopped(struct bz_halt *h)
{
    return bz_load_relaxed(&h->word) == BZ_HALT_STOPPED; /* relaxed: it orders nothing, I3 */
}

static inline bool bz_halt_is_running(struct bz_halt *h)
{
    return bz_load_relaxed(&h->word) == BZ_HALT_RUNS; /* relaxed: likewise */
}

static inline bool bz_halt_is_requested(struct bz_halt *h)
{
    return bz_load_relaxed(&h->word) == BZ_HALT_ASKED; /* relaxed: likewise */
}

/* ---- the thread itself ---- */

/*
 * Stop here if the asker has asked for it, until the thread is let go. It calls only os->now, os->wait and
 * look(ctx), so it is safe in a signal handler. It calls look when the thread has stopped, and again after as
 * many nanoseconds as look returned (BZ_OS_FOREVER: not again). If look returns 0, the thread goes on by itself.
 * Returns: true if the thread has stopped.
 */
bool bz_halt_here(struct bz_halt *h, const struct bz_os *os, uint64_t (*look)(void *ctx),
                  void *ctx);

#endif
