/*
 * idle.h - the procs that sleep or search, and the proc to rouse when work appears.
 *
 * The set of sleeping procs, and the numbers of sleeping and searching procs. The set does not rouse
 * threads itself. It returns the proc to rouse, and the scheduler rouses it. idle.c has the protocol,
 * and the reason why no wake-up is lost.
 *
 * A worker that has published work calls bz_idle_may_rouse(), which is one load. Only if that returns
 * true, it calls bz_idle_published(). Plain threads always call the latter: it fences for them.
 */
#ifndef BZ_IDLE_H
#define BZ_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "queue/membarrier.h"

/* Procs a runtime can have; a bit each. */
#if !defined(BZ_PROCS_MAX)
#define BZ_PROCS_MAX 1024
#endif
#define BZ_IDLE_WORDS ((BZ_PROCS_MAX + 63) / 64)

/* The counts, and how they are kept, in one word: see idle.c. */
#define BZ_IDLE_SEARCHER UINT64_C(1)
#define BZ_IDLE_SEARCHING UINT64_C(0xffff)
#define BZ_IDLE_SLEEPER (UINT64_C(1) << 16)
#define BZ_IDLE_SLEEPING (UINT64_C(0xffff) << 16)
#define BZ_IDLE_FENCES (UINT64_C(1) << 32)  /* publishers fence */
#define BZ_IDLE_TRUSTED (UINT64_C(1) << 33) /* ... and a proc that goes to sleep may rely on it */

struct bz_idle {
    unsigned procs;                         /* constant after init */
    bz_atomic(uint32_t) active;             /* procs that run tasks; seldom written: retire.c */
    bool has_barrier;                       /* constant after init: else publishers always fence */
    struct bz_barrier *barrier;             /* constant after init */
    BZ_OWN_LINE bz_atomic(uint64_t) counts; /* searching, sleeping, FENCES, TRUSTED */
    BZ_OWN_LINE bz_atomic(uint64_t) sleeper[BZ_IDLE_WORDS]; /* bit p: proc p announced its sleep */
    struct bz_lock mode_lock;      /* held to change FENCES and TRUSTED; only tried */
    bz_atomic(uint32_t) looks;     /* final looks since the window began */
    bz_atomic(uint64_t) window_ns; /* when it began */
};

enum { BZ_NOBODY = -1 };

/* The first `awake` procs are at work, the others count as asleep. */
void bz_idle_init(struct bz_idle *idle, unsigned procs, unsigned awake, struct bz_barrier *barrier,
                  bool has_barrier);

/* The check of bz_idle_may_rouse, for counts that the caller has loaded. */
static inline bool bz_idle_wants(uint64_t counts)
{
    if (BZ_LIKELY(counts == 0))
        return false;
    return (counts & BZ_IDLE_FENCES) ||
           ((counts & BZ_IDLE_SLEEPING) && !(counts & BZ_IDLE_SEARCHING));
}

/*
 * A worker has made work visible to other workers. False: no proc need be roused for it. True: call
 * bz_idle_published, which finds out.
 */
static BZ_ALWAYS_INLINE bool bz_idle_may_rouse(struct bz_idle *idle)
{
    bz_compiler_barrier();                                /* idle.c [F] */
    return bz_idle_wants(bz_load_relaxed(&idle->counts)); /* relaxed: idle.c [F] */
}

/* True if no proc sleeps or searches. A hint. */
static BZ_ALWAYS_INLINE bool bz_idle_is_quiet(struct bz_idle *idle)
{
    /* relaxed: a hint */
    return (bz_load_relaxed(&idle->counts) & (BZ_IDLE_SEARCHING | BZ_IDLE_SLEEPING)) == 0;
}

/*
 * Work has been made visible to others (pushed, injected). Any thread.
 * Returns: the proc to rouse, which is counted as searching already; BZ_NOBODY if none need be.
 */
BZ_MUST_USE int bz_idle_published(struct bz_idle *idle);

/*
 * Work has been put where only `proc` looks. Any thread.
 * Returns: the proc to rouse, counted as searching already: usually `proc`, if it sleeps; BZ_NOBODY if
 *          `proc` is awake, and so will look before it sleeps.
 */
BZ_MUST_USE int bz_idle_wanted(struct bz_idle *idle, unsigned proc);

/* Ask to search other procs' queues. False if half of the procs, or a few, search already. */
BZ_MUST_USE bool bz_idle_search(struct bz_idle *idle);

/*
 * A searcher has found work.
 * Returns: the proc to rouse, as above: the last searcher that finds work sends another to look.
 */
BZ_MUST_USE int bz_idle_found(struct bz_idle *idle);

/*
 * A searcher has found work and sees none for others. It stops searching.
 * Suspends: the thread, for a barrier, if no other proc searches and a proc sleeps.
 * Returns:  true: look at every queue once more, and if there is work call bz_idle_published. False:
 *           another searcher is responsible for all work, or no proc sleeps.
 */
BZ_MUST_USE bool bz_idle_leave(struct bz_idle *idle);

/*
 * Announce that proc `me` is about to sleep; it gives up its search if it `was_searching`.
 * Suspends: the thread, for a barrier, if no other proc searches.
 * Returns:  true: look at every queue once more, and if there is work call bz_idle_stay instead of
 *           sleeping. False: another proc searches and is responsible for all work; just sleep.
 */
BZ_MUST_USE bool bz_idle_announce(struct bz_idle *idle, unsigned me, bool was_searching);

/*
 * Proc `me` takes its announcement back, because it woke by itself, or its last look found work:
 * then it `will_search` and counts as searching.
 * Returns: true if it counts as searching now, because it will search or because another thread has
 *          roused it meanwhile.
 */
BZ_MUST_USE bool bz_idle_stay(struct bz_idle *idle, unsigned me, bool will_search);

/* Take a proc out of the set, before the first thread runs: it is not in use (retire.c). */
void bz_idle_take_out(struct bz_idle *idle, unsigned proc);

/*
 * Go over to fences in the pushes, or back. idle.c does that by itself, depending on how often a proc
 * has to take the last look. Harmless at any time, from any thread.
 */
void bz_idle_go_over(struct bz_idle *idle);
void bz_idle_go_back(struct bz_idle *idle);
/* Go back if the last looks have become rare. For a thread that looks now and then. */
void bz_idle_review(struct bz_idle *idle, uint64_t now_ns);

/* Return how many procs have announced sleep, whether one has, and how many search: hints. */
unsigned bz_idle_sleeping(struct bz_idle *idle);
bool bz_idle_is_asleep(struct bz_idle *idle, unsigned proc);
unsigned bz_idle_searching(struct bz_idle *idle);
/* True if all procs are asleep. Exact if every proc that woke up has fenced since, or has been made to. */
bool bz_idle_all_sleep(struct bz_idle *idle);
/* True if pushes fence at the moment. */
bool bz_idle_has_fences(struct bz_idle *idle);

/* Check that the bits agree with the count, for a set that is not in use. Aborts with the values it saw. */
void bz_idle_check(struct bz_idle *idle);

#endif
