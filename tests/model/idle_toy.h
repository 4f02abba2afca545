/* idle_toy.h - a toy scheduler around queue/idle.h: slots for queues, a sleep word a proc. */
#ifndef IDLE_TOY_H
#define IDLE_TOY_H

#include "model.h"
#include "model_os.h"

#include "queue/idle.h"

enum { SLOTS = 2 };
static struct bz_idle idle;
static struct bz_barrier barrier;
static bz_atomic(uint32_t) slot[SLOTS]; /* 1: work */
static bz_atomic(uint32_t) roused[2];
static bz_atomic(uint32_t) done; /* pieces of work that were run */

static inline void rouse(int proc)
{
    if (proc == BZ_NOBODY)
        return;
    bz_store_release(&roused[proc], 1);
    m_word_wake(&roused[proc], 1);
}

static inline void publish_from_outside(int i)
{
    bz_store_relaxed(&slot[i], 1);
    rouse(bz_idle_published(&idle));
}

/* The fence-free push, and the question that follows it. */
static inline void publish(int i)
{
    bz_store_relaxed(&slot[i], 1);
    if (bz_idle_may_rouse(&idle))
        rouse(bz_idle_published(&idle));
}

/* Take one piece of work; false if there is none. */
static inline bool take(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (bz_load_relaxed(&slot[i]) && bz_xchg_acqrel(&slot[i], 0)) {
            bz_fetch_add_relaxed(&done, 1);
            return true;
        }
    return false;
}

static inline bool has_work(void)
{
    return bz_load_relaxed(&slot[0]) || bz_load_relaxed(&slot[1]);
}

/* A searcher with a task to run, which sees no work for others. */
static inline void leaves_the_search(void)
{
    if (bz_idle_leave(&idle) && has_work())
        rouse(bz_idle_published(&idle));
}

/* Goes to sleep as proc `me`; true if it counts as searching now. */
BZ_MUST_USE static inline bool sleeps(unsigned me, bool is_searching)
{
    bz_store_relaxed(&roused[me], 0);
    bool will_search = bz_idle_announce(&idle, me, is_searching) && has_work();
    if (!will_search)
        m_word_wait(&roused[me], 0);
    return bz_idle_stay(&idle, me, will_search);
}

/* Sleeps until there is work and runs one piece; true if it counts as searching now. */
BZ_MUST_USE static inline bool sleeps_and_runs_one(unsigned me, bool is_searching)
{
    do
        is_searching = sleeps(me, is_searching);
    while (!take());
    return is_searching;
}

#endif
