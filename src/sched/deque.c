/*
 * deque.c - forked jobs: a private stack, and one slot in which the oldest is exposed.
 *
 *        base            top                 bot            end
 *     0   | 0 0 0 0 0 0 0 | j  j  j  j  j  j  |  free ...    |          exposed: [ j ]
 *
 * The private part is an array only its owner touches, with plain loads and stores: a fork stores
 * the job's address at bot, a join compares bot[-1] with the job it wants. No locked instruction, no
 * fence. What others can take is always the oldest job: it stands in the slot `exposed`, is taken
 * from there by an exchange, and is had back by its owner by a CAS. Both are one RMW on one word,
 * so one of them gets it. The owner alone fills the slot.
 *
 * A job that was exposed leaves the array; its place is NULL. So the fast join needs no second
 * compare: where the private part ends, bot[-1] is NULL (base[-1] always is), which is no job, and
 * the join goes the long way. The same when the task has moved to another machine in the meantime:
 * its jobs were taken out when it was suspended, and the new deque knows nothing of them.
 *
 * Attention. A fork compares bot with `limit`, which is the end of the array, or 0 when something
 * is to be done: nothing is exposed. So the fork on an empty deque goes the long way and exposes
 * its job at once, and after the exposed job was taken the next fork exposes the next oldest one:
 * whoever empties the slot stores 0. In the plain form the limit stays 0.
 *
 * Why a thief's 0 is not lost: the owner opens the limit *before* it exposes a job, and a thief
 * stores 0 after it has taken one; so the thief's store comes later [A]. But a thief may be slow, and
 * its 0 come when the slot is full again. Then the owner, finding the slot full, exchanges the limit
 * and looks at the slot once more [C]: a plain store could hide the 0 of the next thief.
 *
 * What a job's fields beyond fn and arg say is written when it leaves the array, not by the fork:
 * a job that is in no array and not in the slot has been through prepare().
 *
 * Whose a job is, is known when it leaves the array: the current task's. But a join may call a child
 * on top of the joiner's frames (claim.c), and then the older jobs are the joiner's: they are marked
 * with it before. The mark is void as soon as the array has been empty: what is in it then is newer.
 *
 * Rejected: the array shared, with a split point (a thief and the owner then meet at an index, and
 * the owner fences or the thief interrupts it; here they meet in one word, and the array can grow by
 * being copied); all jobs behind a CAS (9.5 ns a join where this takes 1); a thief that takes half
 * (the oldest job is usually half of the work).
 *
 * I1  [base, top) is NULL, [top, bot) is not; base[-1] is NULL. [top, bot) is in the order of forks.
 *     The jobs below base + marked have their task_; the others are the current task's.
 * I2  The exposed job is older than all private ones.
 * I3  If the slot is empty, limit is 0, or will be: whoever emptied it is about to store that.
 *
 * [A] expose: exposed release -> steal: exposed acquire   the job is filled in, and the limit open,
 *     before it can be taken
 * [C] steal: exposed, then limit release -> fork: limit acquire, then exposed   if the 0 is
 *     overwritten, the slot is seen to be empty; exchanges all of them, so that one thief's 0 upon
 *     another's hides neither
 */
#include "sched/deque.h"

#include "base/check.h"

/* The inline code of par.h reads it as an ordinary word. */
static bz_atomic(uintptr_t) *limit_of(struct bz_deque *d)
{
    return (bz_atomic(uintptr_t) *)&d->ends.limit_;
}

static void close_limit(struct bz_deque *d)
{
    bz_store_relaxed(limit_of(d), 0); /* relaxed: an advice, I3 */
}

void bz_deque_init(struct bz_deque *d, const blitz_allocator *alloc, bool is_plain)
{
    d->first[0] = NULL;
    d->base = d->top = d->ends.bot_ = d->first + 1;
    d->end = d->base + BZ_DEQUE_FIRST;
    d->is_plain = is_plain;
    d->alloc = alloc;
    d->exposures = 0;
    d->marked = 0;
    d->epoch = 0;
    bz_atomic_init(limit_of(d), 0);
    bz_atomic_init(&d->exposed, NULL);
}

static size_t room_bytes(struct blitz_job **base, struct blitz_job **end)
{
    return (size_t)(end - base + 1) * sizeof(void *);
}

static void free_room(struct bz_deque *d)
{
    if (d->base != d->first + 1)
        bz_free(d->alloc, d->base - 1, room_bytes(d->base, d->end));
}

void bz_deque_fini(struct bz_deque *d)
{
    BZ_ASSERT(bz_deque_is_empty(d));
    free_room(d);
}

/* ---- the owner's end ---- */

/* No private jobs: the places below are of no use to anybody. */
static void rewind_if_empty(struct bz_deque *d)
{
    if (d->top != d->ends.bot_)
        return;
    d->top = d->ends.bot_ = d->base;
    if (d->marked != 0) {
        d->marked = 0;
        d->epoch++;
    }
}

/* Twice the places. False if there is no memory. */
static bool grow(struct bz_deque *d)
{
    size_t used = (size_t)(d->ends.bot_ - d->base), places = 2 * (size_t)(d->end - d->base);
    struct blitz_job **base = bz_alloc(d->alloc, (places + 1) * sizeof(void *), sizeof(void *));
    if (base == NULL)
        return false;
    for (size_t i = 0; i < used + 1; i++)
        base[i] = d->base[(ptrdiff_t)i - 1]; /* the sentinel, too */
    free_room(d);
    d->top = base + 1 + (d->top - d->base);
    d->base = base + 1;
    d->ends.bot_ = d->base + used;
    d->end = d->base + places;
    return true;
}

/* It leaves the array: others will see it. */
static void prepare(struct blitz_job *job, void *task)
{
    bz_store_relaxed((bz_atomic(uintptr_t) *)&job->latch_,
                     BZ_LATCH_OPEN); /* relaxed: not yet seen */
    job->task_ = task;
}

static struct blitz_job *take_private(struct bz_deque *d, void *task)
{
    if (d->top == d->ends.bot_)
        return NULL;
    struct blitz_job *job = *d->top;
    bool is_marked = (size_t)(d->top - d->base) < d->marked;
    *d->top++ = NULL; /* I1 */
    prepare(job, is_marked ? job->task_ : task);
    rewind_if_empty(d);
    return job;
}

/* Put the oldest private job into the empty slot. */
static bool expose(struct bz_deque *d, void *task)
{
    struct blitz_job *job = take_private(d, task);
    if (job == NULL)
        return false;
    d->exposures++;
    if (!d->is_plain)
        bz_store_relaxed(limit_of(d), (uintptr_t)d->end); /* relaxed: [A] publishes it */
    bz_store_release(&d->exposed, job);                   /* [A] */
    return true;
}

/* The limit is closed although a job is exposed: open it, then see whether it still is. */
static bool is_still_exposed(struct bz_deque *d)
{
    if (!d->is_plain)
        bz_xchg_acquire(limit_of(d), (uintptr_t)d->end); /* [C] */
    return bz_load_relaxed(&d->exposed) != NULL;         /* relaxed: after [C] */
}

bool bz_deque_fork(struct bz_deque *d, struct blitz_job *job, void *task)
{
    if (d->ends.bot_ == d->end && !grow(d)) {
        prepare(job, task);
        bz_store_relaxed((bz_atomic(uintptr_t) *)&job->latch_, BZ_LATCH_MINE); /* relaxed: unseen */
        return false;
    }
    *d->ends.bot_++ = job;
    if (bz_load_relaxed(&d->exposed) != NULL && is_still_exposed(d)) /* relaxed: only we fill it */
        return false;
    return expose(d, task);
}

/* It is private, but not the newest: joined out of order. The marked ones wait for their turn. */
static bool take_out(struct bz_deque *d, struct blitz_job *job)
{
    for (struct blitz_job **p = d->top; p < d->ends.bot_; p++)
        if (*p == job) {
            BZ_ASSERT((size_t)(p - d->base) >= d->marked);
            for (d->ends.bot_--; p < d->ends.bot_; p++)
                p[0] = p[1];
            return true;
        }
    return false;
}

bool bz_deque_take_back(struct bz_deque *d, struct blitz_job *job)
{
    struct blitz_job *seen = job;
    if (bz_cas_strong_rlx_rlx(&d->exposed, &seen, NULL)) { /* relaxed: it was ours all the time */
        close_limit(d);                                    /* I3 */
        return true;
    }
    bool is_here = take_out(d, job);
    rewind_if_empty(d);
    return is_here;
}

struct blitz_job *bz_deque_take_oldest(struct bz_deque *d, void *task)
{
    struct blitz_job *job =
        bz_xchg_relaxed(&d->exposed, NULL); /* relaxed: it was ours all the time */
    close_limit(d);                         /* I3 */
    return job != NULL ? job : take_private(d, task);
}

struct bz_deque_mark bz_deque_mark_slow(struct bz_deque *d, void *task)
{
    struct bz_deque_mark was = {d, d->marked, d->epoch};
    for (struct blitz_job **p = d->base + d->marked; p < d->ends.bot_; p++)
        if (*p != NULL)
            (*p)->task_ = task;
    d->marked = (size_t)(d->ends.bot_ - d->base);
    return was;
}

void bz_deque_unmark_slow(struct bz_deque *d, struct bz_deque_mark mark)
{
    if (d == mark.deque && d->epoch == mark.epoch)
        d->marked = mark.marked;
}

/* ---- others ---- */

struct blitz_job *bz_deque_steal(struct bz_deque *d)
{
    if (!bz_deque_has_work(d))
        return NULL;
    struct blitz_job *job = bz_xchg_acquire(&d->exposed, NULL); /* [A] */
    if (job != NULL)
        bz_xchg_release(limit_of(d), 0); /* I3, [C] */
    return job;
}

void bz_deque_check(struct bz_deque *d)
{
    BZ_CHECK(d->base[-1] == NULL, "deque %p: no sentinel", (void *)d);
    BZ_CHECK(d->base <= d->top && d->top <= d->ends.bot_ && d->ends.bot_ <= d->end,
             "deque %p: base %p, top %p, bot %p, end %p", (void *)d, (void *)d->base,
             (void *)d->top, (void *)d->ends.bot_, (void *)d->end);
    for (struct blitz_job **p = d->base; p < d->ends.bot_; p++)
        BZ_CHECK((*p == NULL) == (p < d->top), "deque %p: place %td", (void *)d,
                 p - d->base);                      /* I1 */
    uintptr_t limit = bz_load_relaxed(limit_of(d)); /* relaxed: a look */
    BZ_CHECK(limit == 0 || limit == (uintptr_t)d->end, "deque %p: limit %zx", (void *)d,
             (size_t)limit); /* I3 */
}
