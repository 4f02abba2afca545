/*
 * live.c - shutdown against spawns and ends that need no locked instruction.
 *
 * A runtime that stops must refuse every further spawn, find every task that got in, and notice the end
 * of the last one. One shared counter would do it with two locked instructions a task on one line that
 * all CPUs write. This protocol does it with two plain stores, and the thread that stops pays.
 *
 *      spawn                          end                           stop
 *      1 spawned++                    1 ended++                     1 stage = closing
 *        (compiler barrier)             (compiler barrier)          2 barrier on every thread
 *      2 stage open?                  2 stage closed?               3 stage = closed
 *        no: ended++, refuse            fence, add up: all ended?   4 barrier on every thread
 *                                       yes: drained = 1            5 add up: all ended? drained = 1
 *
 * Both are the store-buffer pattern with the expensive half on one side.
 *
 * [S] At barrier 2 each spawner has either made its spawned++ visible to all, or will see that we
 *     close. So from then on the set of tasks is fixed. Its members can be found (a header is complete
 *     before it is counted). The sum of `spawned` changes only by refusals, which add the same to
 *     `ended`. That is why ends must not be looked at before stage 3: a look between 1 and 2 could miss
 *     a spawn on its way and call a living runtime drained.
 * [E] At barrier 4 each end has either made its ended++ visible to our sum, or will see that it is
 *     closed and add up itself. Two ends that both see `closed` fence between store and look, so at
 *     least one of them sees the other. An end that does not see
 *     `closed` is seen by the sum at 5. If that sum misses an end that does, the fence of that end comes
 *     after barrier 4, and its look sees all that the sum saw. So one of these sums finds that no task
 *     is left.
 *
 * Adding up reads all `ended` first and all `spawned` then. A sum that includes an end also includes the
 * spawn before it [C]. So the difference is the number of tasks that were seen to begin and not to end,
 * never less, however the counters change meanwhile. After [S] no task can be unseen.
 *
 * Without barriers (is_plain), a fence replaces each compiler barrier and each barrier.
 *
 * Rejected: a shared counter (above). Rejected: per-proc counts and a lock at shutdown that every proc
 * must pass (a proc in user code would delay it for as long as it computes). Rejected: one stage (above,
 * [S]).
 *
 * I1  The sum of spawned less that of ended is the number of living tasks, but for refusals under way.
 * I2  drained is 1 only if the stage is closed and no task lives, and then stays.
 *
 * [S] spawn: spawned, fence, stage -> close: stage, barrier
 * [E] end: ended, fence, stage -> await_last: stage, barrier, look
 * [C] bump: release -> sum: ended acquire   a spawn comes before its end in every sum, and the task's
 *     writes come before all that follows its shutdown
 * [D] look: drained release -> is_drained: drained acquire   likewise
 * [F] look: fence -> look: fence   of two that end last, one sees the other
 */
#include "task/live.h"

#include "base/check.h"

static struct bz_live_count *count_of(struct bz_live *l, unsigned proc)
{
    return (struct bz_live_count *)((char *)l->procs + proc * l->stride);
}

void bz_live_init(struct bz_live *l, const struct bz_os *os, bool is_plain,
                  struct bz_live_count *procs, size_t stride, unsigned proc_count)
{
    l->os = os;
    l->procs = procs;
    l->stride = stride;
    l->proc_count = proc_count;
    l->is_plain = is_plain;
    bz_atomic_init(&l->stage, BZ_LIVE_OPEN);
    bz_atomic_init(&l->drained, 0);
    bz_atomic_init(&l->outside.spawned, 0);
    bz_atomic_init(&l->outside.ended, 0);
    for (unsigned i = 0; i < proc_count; i++) {
        bz_atomic_init(&count_of(l, i)->spawned, 0);
        bz_atomic_init(&count_of(l, i)->ended, 0);
    }
}

uint64_t bz_live_ended(struct bz_live *l)
{
    uint64_t sum = bz_load_acquire(&l->outside.ended); /* [C] */
    for (unsigned i = 0; i < l->proc_count; i++)
        sum += bz_load_acquire(&count_of(l, i)->ended); /* [C] */
    return sum;
}

uint64_t bz_live_spawned(struct bz_live *l)
{
    uint64_t sum = bz_load_relaxed(&l->outside.spawned); /* relaxed: [C] or [S] came before */
    for (unsigned i = 0; i < l->proc_count; i++)
        sum += bz_load_relaxed(&count_of(l, i)->spawned); /* relaxed: likewise */
    return sum;
}

void bz_live_look(struct bz_live *l)
{
    bz_fence_seqcst();                 /* [F] [E] */
    uint64_t ended = bz_live_ended(l); /* first */
    uint64_t spawned = bz_live_spawned(l);
    BZ_ASSERT(spawned >= ended); /* I1 */
    if (spawned != ended)
        return;
    bz_store_release(&l->drained, 1); /* [D] I2 */
    bz_os_wake(l->os, &l->drained, UINT32_MAX);
}

void bz_live_refused(struct bz_live *l, struct bz_live_count *mine)
{
    bz_live_end(l, mine);
}

static void heavy_fence(struct bz_live *l)
{
    if (l->is_plain || bz_os_barrier(l->os) != 0)
        bz_fence_seqcst(); /* [S] [E] */
}

void bz_live_close(struct bz_live *l)
{
    if (bz_load_relaxed(&l->stage) != BZ_LIVE_OPEN) /* relaxed: one closer at a time */
        return;
    bz_store_relaxed(&l->stage, BZ_LIVE_CLOSING); /* relaxed: [S] */
    heavy_fence(l);
}

void bz_live_await_last(struct bz_live *l)
{
    if (bz_load_relaxed(&l->stage) == BZ_LIVE_CLOSED) /* relaxed: one closer at a time */
        return;
    bz_store_relaxed(&l->stage,
                     BZ_LIVE_CLOSED); /* relaxed: [E], and close's barrier is before it */
    heavy_fence(l);
    bz_live_look(l); /* [F] */
}
