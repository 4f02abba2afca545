/*
 * opened.c - see opened.h.
 *
 * The functions here are the rare half: they look whether the task counts at all. The count is changed by a CAS, because a thief
 * and the task may change it at the same time, and because it must stop at both ends (I1).
 */
#include "proc/opened.h"

#include "proc/state.h"

enum { PATIENCE = 10000 }; /* looks, each a few nanoseconds */

bz_atomic(uint32_t) bz_opened_counted;
bz_atomic(uint32_t) bz_opened_takers;

static bool is_counted(const struct bz_task *t)
{
    return t != NULL && (t->traits & BZ_TASK_TRAPS) != 0;
}

/* One more, or one less. */
static void count(struct bz_task *t, bool is_more)
{
    uint8_t seen = bz_load_relaxed(&t->place),
            next; /* relaxed: a count; the forker sees its own jobs leave */
    do {
        if (seen == BZ_OPENED_MANY || (!is_more && seen == 0)) /* I1 */
            return;
        next = (uint8_t)(is_more ? seen + 1 : seen - 1);
    } while (!bz_cas_weak_rlx_rlx(&t->place, &seen, next)); /* relaxed: likewise */
}

void bz_opened_add_slowly(struct bz_task *t)
{
    if (is_counted(t))
        count(t, true);
}

void bz_opened_mine_slowly(bool is_more)
{
    struct bz_task *t = bz_task_self();
    if (is_counted(t))
        count(t, is_more);
}

uint64_t bz_opened_self_slowly(void)
{
    struct bz_task *t = bz_task_self();
    return is_counted(t) ? t->id : 0;
}

bool bz_opened_is_none(struct bz_task *t)
{
    int left = PATIENCE;
    while (bz_load_acquire(&bz_opened_takers) != 0) /* [O] */
        if (--left == 0)
            return false;                   /* a taker has lost its CPU: perhaps with a job of t */
    return bz_load_relaxed(&t->place) == 0; /* relaxed: [O] */
}
