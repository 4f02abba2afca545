/*
 * evacuate.h - forked jobs of a task that is about to leave its stack: job.c.
 */
#ifndef BZ_LIFE_EVACUATE_H
#define BZ_LIFE_EVACUATE_H

#include "proc/state.h"

/* job.c: the current task is about to leave its stack. Move its pending jobs to the queues. */
static inline void bz_evacuate(struct bz_machine *m)
{
    if (BZ_LIKELY(bz_deque_is_surely_empty(&m->deque)))
        return;
    if (!bz_deque_is_empty(&m->deque))
        bz_evacuate_slow(m);
    m->deque.rare &= (uint8_t)~BZ_RARE_SHOWN;
}

#endif
