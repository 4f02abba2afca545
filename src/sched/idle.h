/*
 * idle.h - who sleeps, who searches, and who must be roused when work appears.
 *
 * The set of sleeping procs and the count of searching ones. It rouses nobody itself: it says whom
 * to rouse, and the scheduler does it, outside. idle.c has the protocol and why no wake-up is lost.
 */
#ifndef BZ_IDLE_H
#define BZ_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

/* Procs a runtime can have; a bit each. */
#if !defined(BZ_PROCS_MAX)
#define BZ_PROCS_MAX 1024
#endif
#define BZ_IDLE_WORDS ((BZ_PROCS_MAX + 63) / 64)

struct bz_idle {
    unsigned procs;                             /* constant after init */
    BZ_OWN_LINE bz_atomic(uint32_t) searching;  /* procs that look for work */
    BZ_OWN_LINE bz_atomic(uint32_t) sleeping;   /* set bits in sleeper[]; a hint */
    bz_atomic(uint64_t) sleeper[BZ_IDLE_WORDS]; /* bit p: proc p has announced its sleep */
};

enum { BZ_NOBODY = -1 };

void bz_idle_init(struct bz_idle *idle, unsigned procs);

/*
 * Work has been made visible to others (pushed, injected). Any thread.
 * Returns: the proc to rouse, which is counted as searching already; BZ_NOBODY if none need be.
 */
BZ_MUST_USE int bz_idle_published(struct bz_idle *idle);

/* Ask to search other procs' queues. False if half of the procs search already. */
BZ_MUST_USE bool bz_idle_search(struct bz_idle *idle);

/*
 * A searcher has found work.
 * Returns: whom to rouse, as above: the last searcher that finds work sends another to look.
 */
BZ_MUST_USE int bz_idle_found(struct bz_idle *idle);

/*
 * Announce that proc `me` is about to sleep; it gives up its search if it `was_searching`. After
 * this the caller looks at every queue once more; if there is work it calls bz_idle_stay, else it
 * sleeps until it is roused.
 */
void bz_idle_announce(struct bz_idle *idle, unsigned me, bool was_searching);

/*
 * Proc `me` takes its announcement back, because it found work after all or woke by itself.
 * Returns: true if it was still announced; false if somebody has roused it meanwhile: then it is
 *          counted as searching.
 */
BZ_MUST_USE bool bz_idle_stay(struct bz_idle *idle, unsigned me);

/* How many procs have announced sleep, and how many search: hints. */
unsigned bz_idle_sleeping(struct bz_idle *idle);
bool bz_idle_is_asleep(struct bz_idle *idle, unsigned proc);
unsigned bz_idle_searching(struct bz_idle *idle);

/* The bits agree with the count, for a set nobody is using. Aborts with what it saw. */
void bz_idle_check(struct bz_idle *idle);

#endif
