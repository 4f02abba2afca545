/*
 * retake.c - the slow half of coming back into the runtime. The design is in retake.h.
 */
#include "sched/retake.h"

void bz_retake_wait(struct bz_retake *r, const struct bz_os *os)
{
    for (unsigned round = 0; bz_load_acquire(&r->retake) != 0; round++) /* [B] */
        bz_os_relax(os, round);
}
