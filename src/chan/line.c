/*
 * line.c - paying what is owed to those who waited. The essay is in line.h.
 *
 * In the order in which they were taken off: who waited first goes on first, if it is all the same.
 */
#include "chan/line.h"

void bz_owed_pay_slow(struct bz_owed *owed)
{
    for (unsigned i = 0; i < owed->count; i++) {
        struct bz_owed_one *one = &owed->one[i];
        if (one->is_waker)
            blitz_waker_wake(&one->waker);
        else
            bz_won_resume(&one->won);
    }
    owed->count = 0;
}
