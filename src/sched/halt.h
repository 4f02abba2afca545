/*
 * halt.h - make a thread stop where it is, and let it go on.
 *
 * One who asks (the monitor) and one who stops (a thread, in a signal handler). halt.c has the
 * protocol.
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

/* It shall stop. The caller then makes its thread call bz_halt_here, and again until it has. Nothing
 * if it is asked or has stopped already. */
void bz_halt_ask(struct bz_halt *h);
/* It shall go on, or not stop at all if it has not yet. Returns true if it had stopped. */
bool bz_halt_go(struct bz_halt *h, const struct bz_os *os);

static inline bool bz_halt_is_stopped(struct bz_halt *h)
{
    return bz_load_relaxed(&h->word) == BZ_HALT_STOPPED; /* relaxed: it orders nothing, I3 */
}

static inline bool bz_halt_is_running(struct bz_halt *h)
{
    return bz_load_relaxed(&h->word) == BZ_HALT_RUNS; /* relaxed: likewise */
}

static inline bool bz_halt_is_asked(struct bz_halt *h)
{
    return bz_load_relaxed(&h->word) == BZ_HALT_ASKED; /* relaxed: likewise */
}

/* ---- the thread itself ---- */

/*
 * Stop here if it was asked for, until told to go on. Calls nothing but os->now, os->wait and
 * is_over(ctx), so it may be called in a signal handler. is_over is asked now and every BZ_HALT_LOOK_NS:
 * true ends the stop, whatever the asker says. So does BZ_HALT_MAX_NS.
 * Returns: true if it has stopped.
 */
#if !defined(BZ_HALT_LOOK_NS) /* the model checker has no time */
#define BZ_HALT_LOOK_NS UINT64_C(20000000)
#endif
#define BZ_HALT_MAX_NS UINT64_C(1000000000)
bool bz_halt_here(struct bz_halt *h, const struct bz_os *os, bool (*is_over)(void *ctx), void *ctx);

#endif
