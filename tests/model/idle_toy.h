/* idle_toy.h - a toy scheduler around sched/idle.h: slots for queues, a sleep word a proc. */
#ifndef IDLE_TOY_H
#define IDLE_TOY_H

#include "model.h"
#include "model_os.h"

#include "sched/idle.h"

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

/* Runs as proc `me` until `goal` pieces have been run by anybody. */
static inline void proc(unsigned me, uint32_t goal, bool is_searching)
{
    while (bz_load_relaxed(&done) < goal) {
        if (take()) {
            if (is_searching)
                rouse(bz_idle_found(&idle));
            is_searching = false;
            continue;
        }
        bz_store_relaxed(&roused[me], 0);
        bool will_search = bz_idle_announce(&idle, me, is_searching) && has_work();
        if (!will_search && bz_load_relaxed(&done) < goal)
            m_word_wait(&roused[me], 0);
        is_searching = bz_idle_stay(&idle, me, will_search);
    }
    if (is_searching)
        rouse(bz_idle_found(&idle));
}

/* All is done: nobody need sleep any more. Who clears its word now sees `done` after its fence. */
static inline void all_over(void)
{
    bz_fence_seqcst();
    rouse(0);
    rouse(1);
}

#endif
