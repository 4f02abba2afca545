/*
 * deque.c - forked jobs: a private list through the frames, and one slot in which the oldest is
 * exposed.
 *
 *     newest -> j -> j -> j -> j -> 0          shelf: j j j j j          exposed: [ j ]
 *               private, linked                private, older            others take it
 *
 * The private part is a list only its owner touches, linked through the jobs themselves, with plain
 * loads and stores: a fork links the job in front, a join looks whether the one it wants is in front.
 * No locked instruction, no fence, and no limit. What others can take is always the oldest job: it
 * stands in the slot `exposed`, is taken from there by an exchange, and is had back by its owner by a
 * CAS. Both are one RMW on one word, so one of them gets it. The owner alone fills the slot.
 *
 * The oldest job is at the far end of the list. Whoever needs it walks there once and takes the older
 * half of the list along, onto the shelf, so that a job is passed about twice however often jobs
 * are exposed.
 *
 * A join whose job is on the shelf or was exposed finds another job in front, or none, and goes the
 * long way. The same when the task has moved to another machine in the meantime: its jobs were taken
 * out when it was suspended, and the new deque knows nothing of them.
 *
 * Attention. Forks and joins look at one word, which is 0 unless something is to be done: nothing is
 * exposed. So the fork on an empty deque goes the long way and exposes its job at once, and after the
 * exposed job was taken the next fork or join exposes the next oldest one: whoever empties the slot
 * stores 1. In the plain form it is always 1.
 *
 * Why a thief's 1 is not lost: the owner clears the word *before* it exposes a job, and a thief
 * stores 1 after it has taken one; so the thief's store comes later [A]. But a thief may be slow, and
 * its 1 come when the slot is full again. Then the owner, finding the slot full, exchanges the word
 * and looks at the slot once more [C]: a plain store could hide the 1 of the next thief.
 *
 * What a job's fields beyond link, fn and arg say is written when it leaves the list, not by the fork:
 * a job that is in no list has been through prepare(). Whose it is, is known then: the current
 * task's. But a join may call a child on top of the joiner's frames (claim.c), and then the older
 * jobs are the joiner's: they are marked with it before.
 *
 * Rejected: an array of pointers with an index in memory, as most have it: fork and join would each
 * load the index the last one stored, add one and store it, a chain of ten cycles through the
 * store buffer for every pair (fib took 1.58 times as long as plain calls; with the list, whose
 * stores depend on no load, 1.15). It would also have to grow. An array shared with thieves, with a
 * split point: thief and owner meet at an index, and one of them fences. All jobs behind a CAS: 9.5
 * ns a join where this takes half of one. A thief that takes half: the oldest job is usually half of
 * the work.
 *
 * I1  exposed is older than the shelf, the shelf (from head to tail) is older than the list, and the
 *     list is in the order of forks, newest first.
 * I2  marked is NULL or in the list. It and what is below it have their task_; what is above it is
 *     the current task's.
 * I3  If the slot is empty, attention is 1, or will be: whoever emptied it is about to store that.
 *
 * [A] expose: exposed release -> steal: exposed acquire   the job is filled in, and attention is 0,
 *     before it can be taken
 * [C] steal: exposed, then attention release -> fork: attention acquire, then exposed   if the 1 is
 *     overwritten, the slot is seen to be empty; exchanges all of them, so that one thief's 1 upon
 *     another's hides neither
 */
#include "sched/deque.h"

#include "base/check.h"

/* The inline code of fork.h knows it as an ordinary word. */
static bz_atomic(uintptr_t) *attention_of(struct bz_deque *d)
{
    return (bz_atomic(uintptr_t) *)&d->ends.attention_;
}

static struct blitz_job *next_of(struct blitz_job *job)
{
    return (struct blitz_job *)job->link_;
}

void bz_deque_init(struct bz_deque *d, bool is_plain)
{
    d->ends.newest_ = NULL;
    d->shelf_head = d->shelf_tail = 0;
    d->is_plain = is_plain;
    d->marked = NULL;
    bz_atomic_init(&d->exposures, 0);
    bz_atomic_init(attention_of(d), 1);
    bz_atomic_init(bz_asked_of(&d->ends), 0);
    d->ends.paused_ = 0;
    bz_atomic_init(&d->exposed, NULL);
}

/* ---- the shelf ---- */

/* It leaves the list: others may see it. */
static void prepare(struct blitz_job *job, void *task)
{
    bz_latch_init(bz_latch_of(job));
    job->task_ = task;
}

/* The last of the list that stays, when the older half goes; NULL: all go. *out: how many go. */
static struct blitz_job *cut_at(struct bz_deque *d, uint32_t *out)
{
    uint32_t count = 0, go;
    struct blitz_job *last = NULL;
    for (struct blitz_job *j = d->ends.newest_; j != NULL; j = next_of(j))
        count++;
    go = count - count / 2;
    *out = go < BZ_DEQUE_SHELF ? go : BZ_DEQUE_SHELF;
    for (uint32_t stay = count - *out; stay > 0; stay--)
        last = last == NULL ? d->ends.newest_ : next_of(last);
    return last;
}

/* Is it below the mark, given that it is in the list? */
static bool mark_stays(struct bz_deque *d, struct blitz_job *last)
{
    for (struct blitz_job *j = d->ends.newest_; last != NULL && j != next_of(last); j = next_of(j))
        if (j == d->marked)
            return true;
    return false;
}

/* Fill the empty shelf with the older half of the list. */
static void refill(struct bz_deque *d, void *task)
{
    uint32_t go;
    struct blitz_job *last = cut_at(d, &go), *j = last != NULL ? next_of(last) : d->ends.newest_;
    bool is_marked = d->marked != NULL && mark_stays(d, last);
    bool is_void = d->marked != NULL && !is_marked;
    for (uint32_t i = go; i > 0 && j != NULL; i--, j = next_of(j)) {
        is_marked |= j == d->marked;
        prepare(j, is_marked ? j->task_ : task); /* I2 */
        d->shelf[i - 1] = j;
    }
    if (last != NULL)
        last->link_ = 0;
    else
        d->ends.newest_ = NULL;
    if (is_void)
        d->marked = NULL;
    d->shelf_head = 0;
    d->shelf_tail = go;
}

/* The only one: the usual case of a fork on an empty deque. */
static struct blitz_job *take_only(struct bz_deque *d, void *task)
{
    struct blitz_job *job = d->ends.newest_;
    prepare(job, job == d->marked ? job->task_ : task); /* I2 */
    d->ends.newest_ = NULL;
    d->marked = NULL;
    return job;
}

/* The oldest private job, or NULL. */
static struct blitz_job *take_private(struct bz_deque *d, void *task)
{
    if (d->shelf_head == d->shelf_tail) {
        if (d->ends.newest_ == NULL)
            return NULL;
        if (next_of(d->ends.newest_) == NULL)
            return take_only(d, task);
        refill(d, task);
    }
    return d->shelf[d->shelf_head++];
}

/* ---- the owner ---- */

/* Attention was asked for although a job is exposed: answer, then see whether it still is. */
static bool is_still_exposed(struct bz_deque *d)
{
    if (BZ_BROKEN(71))
        bz_store_relaxed(attention_of(d), 0); /* relaxed: broken, it may hide a thief's 1 */
    else if (!d->is_plain)
        bz_xchg_acquire(attention_of(d), 0);     /* [C] */
    return bz_load_relaxed(&d->exposed) != NULL; /* relaxed: after [C] */
}

enum bz_shared bz_deque_share(struct bz_deque *d, void *task)
{
    if (bz_load_relaxed(&d->exposed) != NULL && is_still_exposed(d)) /* relaxed: only we fill it */
        return BZ_SHARED_BEFORE;
    struct blitz_job *job = take_private(d, task);
    bool is_open = job != NULL && !d->is_plain;
    bz_store_relaxed(attention_of(d), is_open ? 0 : 1); /* relaxed: [A] publishes it; I3 */
    if (job == NULL)
        return BZ_SHARED_NOTHING;
    uint64_t exposures = bz_load_relaxed(&d->exposures); /* relaxed: ours */
    bz_store_relaxed(&d->exposures, exposures + 1);      /* relaxed: a count */
    bz_store_release(&d->exposed, job);                  /* [A] */
    return BZ_SHARED_NOW;
}

void bz_deque_ask(struct bz_deque *d)
{
    bz_store_relaxed(attention_of(d), 1); /* relaxed: ours to look at */
}

void bz_deque_push(struct bz_deque *d, struct blitz_job *job)
{
    job->link_ = (uintptr_t)d->ends.newest_;
    d->ends.newest_ = job;
}

static bool take_from_shelf(struct bz_deque *d, struct blitz_job *job)
{
    for (uint32_t i = d->shelf_tail; i > d->shelf_head; i--)
        if (d->shelf[i - 1] == job) {
            for (d->shelf_tail--; i <= d->shelf_tail; i++)
                d->shelf[i - 1] = d->shelf[i];
            return true;
        }
    return false;
}

/* It is in front, or joined out of order. */
static bool take_from_list(struct bz_deque *d, struct blitz_job *job)
{
    struct blitz_job *above = NULL;
    for (struct blitz_job *j = d->ends.newest_; j != NULL; above = j, j = next_of(j))
        if (j == job) {
            BZ_ASSERT(job != d->marked); /* its forker waits for a child */
            if (above != NULL)
                above->link_ = job->link_;
            else
                d->ends.newest_ = next_of(job);
            return true;
        }
    return false;
}

bool bz_deque_take_back(struct bz_deque *d, struct blitz_job *job)
{
    struct blitz_job *seen = bz_load_relaxed(&d->exposed); /* relaxed: a first guess */
    if (seen == job &&
        bz_cas_strong_rlx_rlx(&d->exposed, &seen, NULL)) { /* relaxed: it was ours all the time */
        bz_store_relaxed(attention_of(d), 1);              /* relaxed: ours to look at; I3 */
        return true;
    }
    return take_from_list(d, job) || take_from_shelf(d, job);
}

struct blitz_job *bz_deque_take_oldest(struct bz_deque *d, void *task)
{
    struct blitz_job *job = bz_xchg_relaxed(&d->exposed, NULL); /* relaxed: it was ours all along */
    bz_store_relaxed(attention_of(d), 1);                       /* relaxed: ours to look at; I3 */
    return job != NULL ? job : take_private(d, task);
}

struct bz_deque_mark bz_deque_mark_slow(struct bz_deque *d, void *task)
{
    struct bz_deque_mark was = {d, d->marked};
    for (struct blitz_job *j = d->ends.newest_; j != NULL && j != d->marked; j = next_of(j))
        j->task_ = task;
    d->marked = d->ends.newest_;
    return was;
}

/* What was marked before may have left the list meanwhile; then so has everything below it. */
void bz_deque_unmark_slow(struct bz_deque *d, const struct bz_deque_mark *mark)
{
    struct blitz_job *j = d->ends.newest_;
    if (d != mark->deque)
        return; /* the frames have moved, without their jobs */
    while (j != NULL && j != mark->marked)
        j = next_of(j);
    d->marked = j; /* I2 */
}

/* ---- others ---- */

struct blitz_job *bz_deque_steal(struct bz_deque *d)
{
    if (!bz_deque_has_work(d))
        return NULL;
    struct blitz_job *job = bz_xchg_acquire(&d->exposed, NULL); /* [A] */
    if (job != NULL)
        bz_xchg_release(attention_of(d), 1); /* I3, [C] */
    return job;
}

void bz_deque_alert(struct bz_deque *d)
{
    bz_xchg_relaxed(attention_of(d), 1); /* relaxed: took nothing; an exchange, as for [C] */
}

void bz_deque_check(struct bz_deque *d)
{
    bool has_mark = d->marked == NULL;
    BZ_CHECK(d->shelf_head <= d->shelf_tail && d->shelf_tail <= BZ_DEQUE_SHELF,
             "deque %p: shelf from %u to %u", (void *)d, d->shelf_head, d->shelf_tail);
    for (struct blitz_job *j = d->ends.newest_; j != NULL; j = next_of(j))
        has_mark |= j == d->marked;
    BZ_CHECK(has_mark, "deque %p: the mark %p is not in it", (void *)d, (void *)d->marked); /* I2 */
    uintptr_t attention = bz_load_relaxed(attention_of(d)); /* relaxed: a look */
    BZ_CHECK(attention <= 1, "deque %p: attention %zu", (void *)d, (size_t)attention);
}
