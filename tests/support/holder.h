/*
 * holder.h - the machine that has a proc.
 */
#ifndef T_HOLDER_H
#define T_HOLDER_H

#include "proc/proc.h"
#include "proc/state.h"

/* The machine that has it, awake or asleep; NULL: none. May be outdated on return. */
static inline struct bz_machine *t_proc_holder(struct bz_proc *p)
{
    uint32_t word = bz_load_acquire(&p->state);
    return bz_proc_state_of(word) >= BZ_PROC_ASLEEP ? bz_proc_machine(p->rt, word) : NULL;
}

#endif
