/*
 * checkpoint.c - BLITZ_POLL() and the calls that may wait: let other tasks run, if the machine was asked.
 *
 * ask.c has the flag and its rules.
 */
#include "proc/ask.h"

#include "proc/state.h"
#include "sched/loop.h"

void blitz_poll_slow_(void)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || !bz_machine_may_interrupt(m))
        return;
    blitz_share_slow_(); /* in the runtime: until then the monitor may be taking the jobs */
    uintptr_t asked = bz_load_relaxed(bz_asked_of(&m->deque.ends)); /* relaxed: a hint */
    if (asked == 0)
        return;
    bz_store_relaxed(bz_asked_of(&m->deque.ends), 0); /* relaxed: a hint, ask.c I1 */
    if (!bz_ask_is_stale(m, asked))
        bz_yield();
}
