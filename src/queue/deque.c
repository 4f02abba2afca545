/*
 * deque.c - forked jobs: a private list through the frames, and one slot in which the oldest is
 * exposed.
 *
 *     newest -> j -> j -> j -> j -> 0          shelf: j j j j j          exposed: [ j ]
 *               private, linked                private, older            others take it
 *
 * The private part is a list that only its owner touches. It is linked through the jobs themselves,
 * with plain loads and stores. A fork links its job in front. A join checks whether its job is in
 * front. There is no locked instruction, no fence and no limit. Thieves can take only the oldest job,
 * which is in the slot `exposed`. A thief takes it by an exchange, and the owner takes it back by a
 * CAS. Both are one RMW on one word, so exactly one of them gets the job. Only the owner fills the slot.
 *
 * The oldest job is at the far end of the list. To reach it, the owner walks the list once and moves
 * the older half of the list onto the shelf. So each job is moved about twice, however often jobs are
 * exposed. The shelf is short. If the list is much longer, the owner moves its older half to the run
 * queues at once, where any worker can take the jobs. Otherwise each refill would walk the whole list.
 *
 * If a join's job is on the shelf or was exposed, the join finds another job in front, or none, and
 * takes the slow path. The same happens if the task has moved to another machine. Its jobs were taken
 * out of the old deque when it was suspended, and the new deque does not have them.
 *
 * Attention. Forks and joins look at one word. It is 0 unless there is something to do: no job is
 * exposed. So a fork on an empty deque takes the slow path and exposes its job at once. After the
 * exposed job is taken, the next fork or join exposes the next oldest job: the thread that empties
 * the slot stores 1. In the plain form the word is always 1.
 *
 * Why a thief's 1 is not lost: the owner clears the word *before* it exposes a job, and a thief
 * stores 1 after it has taken one. So the thief's store comes later [A]. But a thief may be slow, and
 * its 1 may arrive when the slot is full again. An owner that finds the slot full therefore exchanges
 * the word and looks at the slot once more [C]. A plain store could hide the 1 of the next thief.
 *
 * A fork writes only link, fn and arg. The other fields of a job are written when the job leaves the
 * list: every job outside the list has been through prepare(). At that time its task is known: it is
 * the current task. But a join may call a child on top of the joiner's frames (claim.c), and then the
 * older jobs are the joiner's. These jobs are marked with the joiner before the call.
 *
 * Taking all jobs. A frame that forks and then computes for long does not look at the word. Its
 * private jobs wait although other workers are idle. The monitor then takes them without the frame's
 * help: it can take from any machine that is in user code, by the handshake of retake.h. But the
 * inline code touches the list in user code and takes no part in that handshake. So the inline code
 * checks last: it stores, then looks at attention. The taker sets attention to HALT, then runs a
 * barrier on every thread, then looks:
 *
 *      owner, inline                           taker
 *      1  store to newest                      1  attention = HALT
 *         (compiler barrier)                   2  barrier on every thread
 *      2  attention? the slow path             3  attention is still HALT? the list is ours
 *
 * If the taker may have missed a store, the owner's next look sees HALT [H]. That owner takes the
 * slow path: it enters the runtime and waits there for the taker. Then `taken` tells it which jobs
 * are gone: the job that the taker saw in front, and all jobs beneath it. A job that the owner had
 * pushed, or had popped and put back, is that job or is above it. So the taker never writes to the
 * list, and the front that it saw may be old by one step. If HALT is gone, the owner has been in the
 * runtime meanwhile, and the taker leaves the list alone. The taker also leaves it alone if a thief
 * has stored 1 over HALT: the owner's next look would obey that 1 without knowing of the taker.
 *
 * Rejected: a flag around push and pop (four more stores for a fork and its join); letting thieves
 * take from the list (a fence in the join, or all jobs behind a CAS).
 *
 * Rejected: an array of pointers with an index in memory, which is the usual design. Fork and join
 * would each load the index that the last one stored, add one and store it. For every pair that is a
 * chain of ten cycles through the store buffer. The fib benchmark took 1.58 times as long as plain calls; with the
 * list, whose stores depend on no load, it takes 1.15 times as long. The array would also have to grow.
 * Rejected: an array shared with thieves, with a split point. Thief and owner meet at an index, and
 * one of them fences. Rejected: all jobs behind a CAS: 9.5 ns a join, where this design takes half a
 * nanosecond. Rejected: a thief that takes half of the jobs. The oldest job is usually half of the work.
 *
 * I1  exposed is older than the shelf, the shelf (from head to tail) is older than the list, and the
 *     list is in the order of forks, newest first.
 * I2  marked is NULL or in the list. The marked job and all jobs below it have their task_; the jobs
 *     above it are the current task's.
 * I3  If the slot is empty, attention is not 0, or the thread that emptied the slot is about to store 1.
 * I4  While is_taken, attention is not 0. Only the owner clears both, is_taken first.
 *
 * [A] expose: exposed release -> steal: exposed acquire   the job is filled in, and attention is 0,
 *     before it can be taken
 * [C] steal: exposed, then attention release -> fork: attention acquire, then exposed   if the 1 is
 *     overwritten, the slot is seen to be empty; all of them are exchanges, so that one thief's 1 over
 *     another's hides neither
 * [H] push, pop: newest, compiler barrier, attention -> halt: attention, barrier, take_all: newest
 *     the store-buffer pattern, as above
 * [N] push, pop, set_newest: newest release -> take_all: newest acquire   the data that the jobs work
 *     on, also of jobs that were pushed after the owner's part of the barrier
 */
#include "queue/deque.h"

#include "base/check.h"

/* The inline code of fork.h accesses attention as an ordinary word. */
static bz_atomic(uintptr_t) *attention_of(struct bz_deque *d)
{
    return (bz_atomic(uintptr_t) *)&d->ends.attention_;
}

static struct blitz_job *next_of(struct blitz_job *job)
{
    return (struct blitz_job *)job->link_;
}

/* Values of attention besides 0. LOOK: take the slow path. HALT: also, the list may have been taken. */
enum { LOOK = 1, HALT = 2 };

/* Values of a job's check_ once it has left the list. */
enum { OUT = 0x10b5eed5, JOINED = 0x10b5d09e };

static bz_atomic(uintptr_t) *newest_of(struct bz_deque *d)
{
    return (bz_atomic(uintptr_t) *)&d->ends.newest_;
}

/* Return the front of the list. Owner only. */
static struct blitz_job *newest(const struct bz_deque *d)
{
    return (struct blitz_job *)d->ends.newest_;
}

static void set_newest(struct bz_deque *d, struct blitz_job *job)
{
    /* [N]; stronger than needed: in the runtime, so retake.h [A] follows */
    bz_store_release(newest_of(d), (uintptr_t)job);
}

static bz_atomic(uintptr_t) *link_of(struct blitz_job *job)
{
    return (bz_atomic(uintptr_t) *)&job->link_;
}

/* The inline code may read the link meanwhile, but it does not act on it: [H]. */
static void set_link(struct blitz_job *job, struct blitz_job *to)
{
    bz_store_relaxed(link_of(job),
                     (uintptr_t)to); /* relaxed: attention tells the reader otherwise */
}

void bz_deque_init(struct bz_deque *d, bool is_plain)
{
    bz_atomic_init(newest_of(d), 0);
    d->is_taken = d->is_long = false;
    d->taken = NULL;
    d->shelf_head = d->shelf_tail = 0;
    d->rare = 0;
    d->is_plain = is_plain;
    d->marked = NULL;
    bz_atomic_init(&d->exposures, 0);
    bz_atomic_init(attention_of(d), LOOK);
    bz_atomic_init(bz_asked_of(&d->ends), 0);
    d->ends.paused_ = 0;
    bz_atomic_init(&d->exposed, NULL);
}

/* ---- the shelf ---- */

/* Fill in a job that leaves the list, because other threads may see it from now on. */
static void prepare(struct blitz_job *job, void *task)
{
    bz_latch_init(bz_latch_of(job));
    job->task_ = task;
    job->check_ = OUT;
}

bool bz_job_is_out(const struct blitz_job *job)
{
    return job->check_ == OUT;
}

void bz_job_was_joined(struct blitz_job *job)
{
    job->check_ = JOINED;
}

/* Return the last job that stays in the list when the older half goes; NULL: all go. *out: how many go. */
static struct blitz_job *cut_at(struct bz_deque *d, uint32_t *out)
{
    uint32_t count = 0, go;
    struct blitz_job *last = NULL;
    for (struct blitz_job *j = newest(d); j != NULL; j = next_of(j))
        count++;
    go = count - count / 2;
    d->is_long = count > BZ_DEQUE_LONG;
    *out = go < BZ_DEQUE_SHELF ? go : BZ_DEQUE_SHELF;
    for (uint32_t stay = count - *out; stay > 0; stay--)
        last = last == NULL ? newest(d) : next_of(last);
    return last;
}

/* True if the marked job, which is in the list, is among the jobs that stay: `last` and those above it. */
static bool mark_stays(struct bz_deque *d, struct blitz_job *last)
{
    for (struct blitz_job *j = newest(d); last != NULL && j != next_of(last); j = next_of(j))
        if (j == d->marked)
            return true;
    return false;
}

/* Fill the empty shelf with the older half of the list. */
static void refill(struct bz_deque *d, void *task)
{
    uint32_t go;
    struct blitz_job *last = cut_at(d, &go), *j = last != NULL ? next_of(last) : newest(d);
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
        set_newest(d, NULL);
    if (is_void)
        d->marked = NULL;
    d->shelf_head = 0;
    d->shelf_tail = go;
    d->rare |= BZ_RARE_SHOWN;
}

/* Prepare the jobs from `j` on and reverse them. Jobs that know their task keep it. Return them, oldest first. */
static struct blitz_job *turn_over(struct bz_deque *d, struct blitz_job *j, bool is_marked,
                                   void *task)
{
    struct blitz_job *all = NULL, *next;
    for (; j != NULL; all = j, j = next) {
        next = next_of(j);
        is_marked |= j == d->marked;
        prepare(j, is_marked ? j->task_ : task); /* I2 */
        set_link(j, all);
    }
    return all;
}

struct blitz_job *bz_deque_take_older(struct bz_deque *d, void *task)
{
    uint32_t count = 0;
    struct blitz_job *last = newest(d), *all;
    d->is_long = false;
    for (struct blitz_job *j = newest(d); j != NULL; j = next_of(j))
        count++;
    if (count <= BZ_DEQUE_LONG)
        return NULL;
    for (uint32_t stay = count / 2; stay > 1; stay--)
        last = next_of(last);
    bool is_marked = d->marked != NULL && mark_stays(d, last);
    bool is_void = d->marked != NULL && !is_marked;
    all = turn_over(d, next_of(last), is_marked, task);
    last->link_ = 0;
    if (is_void)
        d->marked = NULL;
    return all;
}

/* Take the only job of the list: the usual case of a fork on an empty deque. */
static struct blitz_job *take_only(struct bz_deque *d, void *task)
{
    struct blitz_job *job = newest(d);
    prepare(job, job == d->marked ? job->task_ : task); /* I2 */
    set_newest(d, NULL);
    d->marked = NULL;
    return job;
}

/* Take the oldest private job; NULL if there is none. */
static struct blitz_job *take_private(struct bz_deque *d, void *task)
{
    if (d->shelf_head == d->shelf_tail) {
        if (newest(d) == NULL)
            return NULL;
        if (next_of(newest(d)) == NULL)
            return take_only(d, task);
        refill(d, task);
    }
    return d->shelf[d->shelf_head++];
}

/* ---- the owner ---- */

/* Return the value of attention when there is nothing to do. Test builds take the slow path at every step of a
 * task that runs on top of another task's jobs. */
static uintptr_t calm(const struct bz_deque *d)
{
#if defined(BZ_WATCH)
    return d->marked != NULL ? LOOK : 0;
#else
    (void)d;
    return 0;
#endif
}

/* Attention is set although a job is exposed: reset it, then check whether the job is still exposed. */
static bool is_still_exposed(struct bz_deque *d)
{
    if (!d->is_plain)
        bz_xchg_acquire(attention_of(d), calm(d)); /* [C] */
    return bz_load_relaxed(&d->exposed) != NULL;   /* relaxed: after [C] */
}

enum bz_shared bz_deque_share(struct bz_deque *d, void *task)
{
    bz_deque_catch_up(d);
    if (bz_load_relaxed(&d->exposed) != NULL && is_still_exposed(d)) /* relaxed: only we fill it */
        return BZ_SHARED_BEFORE;
    struct blitz_job *job = take_private(d, task);
    bool is_open = job != NULL && !d->is_plain;
    bz_store_relaxed(attention_of(d), is_open ? calm(d) : LOOK); /* relaxed: [A] publishes it; I3 */
    if (job == NULL)
        return BZ_SHARED_NOTHING;
    uint64_t exposures = bz_load_relaxed(&d->exposures); /* relaxed: ours */
    bz_store_relaxed(&d->exposures, exposures + 1);      /* relaxed: a count */
    d->rare |= BZ_RARE_SHOWN;
    bz_store_release(&d->exposed, job); /* [A] */
    return BZ_SHARED_NOW;
}

void bz_deque_ask(struct bz_deque *d)
{
    bz_store_relaxed(attention_of(d), LOOK); /* relaxed: ours to look at */
}

bool bz_deque_is_lone(struct bz_deque *d, const struct blitz_job *job)
{
    return newest(d) == job && job->link_ == 0 && d->shelf_head == d->shelf_tail &&
           bz_load_relaxed(&d->exposed) == NULL; /* relaxed: only we fill it */
}

/* Drop all jobs from `taken` on. The marked job was among them. */
void bz_deque_catch_up_slow(struct bz_deque *d)
{
    struct blitz_job *above = NULL, *j = newest(d);
    while (j != NULL && j != d->taken) {
        above = j;
        j = next_of(j);
    }
    if (above != NULL)
        above->link_ = 0;
    else
        set_newest(d, NULL);
    d->marked = NULL;
    d->is_taken = false; /* I4: the caller clears attention */
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

/* The job is in front, or it is joined out of order. */
static bool take_from_list(struct bz_deque *d, struct blitz_job *job)
{
    struct blitz_job *above = NULL;
    for (struct blitz_job *j = newest(d); j != NULL; above = j, j = next_of(j))
        if (j == job) {
            BZ_ASSERT(job != d->marked); /* the task that forked it waits for a child */
            if (above != NULL)
                above->link_ = job->link_;
            else
                set_newest(d, next_of(job));
            return true;
        }
    return false;
}

bool bz_deque_take_back(struct bz_deque *d, struct blitz_job *job)
{
    bz_deque_catch_up(d);
    struct blitz_job *seen = bz_load_relaxed(&d->exposed); /* relaxed: a first guess */
    if (seen == job &&
        bz_cas_strong_rlx_rlx(&d->exposed, &seen, NULL)) { /* relaxed: it was ours all the time */
        bz_store_relaxed(attention_of(d), LOOK);           /* relaxed: ours to look at; I3 */
        return true;
    }
    return take_from_list(d, job) || take_from_shelf(d, job);
}

struct blitz_job *bz_deque_take_oldest(struct bz_deque *d, void *task)
{
    bz_deque_catch_up(d);
    struct blitz_job *job = bz_xchg_relaxed(&d->exposed, NULL); /* relaxed: it was ours all along */
    bz_store_relaxed(attention_of(d), LOOK);                    /* relaxed: ours to look at; I3 */
    return job != NULL ? job : take_private(d, task);
}

struct bz_deque_mark bz_deque_mark_slow(struct bz_deque *d, void *task)
{
    struct bz_deque_mark was = {d, d->marked};
    for (struct blitz_job *j = newest(d); j != NULL && j != d->marked; j = next_of(j))
        j->task_ = task;
    d->marked = newest(d);
    bz_deque_ask(d); /* the jobs below are not for the next task to join */
    return was;
}

/* The job that was marked before may have left the list meanwhile; then all jobs below it have left, too. */
void bz_deque_unmark_slow(struct bz_deque *d, const struct bz_deque_mark *mark)
{
    struct blitz_job *j = newest(d);
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
        bz_xchg_release(attention_of(d), LOOK); /* I3, [C] */
    return job;
}

void bz_deque_halt(struct bz_deque *d)
{
    bz_xchg_relaxed(attention_of(d), HALT); /* relaxed: the barrier follows, [H] */
}

/* Take the whole list, oldest first. */
static struct blitz_job *take_list(struct bz_deque *d, void *task)
{
    d->taken = (struct blitz_job *)bz_load_acquire(newest_of(d)); /* [H] [N] */
    d->is_taken = d->taken != NULL;
    return turn_over(d, d->taken, false, task);
}

/* Put the jobs of the shelf and the slot in front of the younger ones in `all`. */
static struct blitz_job *take_the_rest(struct bz_deque *d, struct blitz_job *all)
{
    struct blitz_job *job;
    while (d->shelf_tail > d->shelf_head) {
        job = d->shelf[--d->shelf_tail];
        set_link(job, all);
        all = job;
    }
    /* [A]; stronger than needed: the owner filled it, and a taker has retake.h [A] */
    if ((job = bz_xchg_acquire(&d->exposed, NULL)) != NULL) {
        set_link(job, all);
        all = job;
    }
    return all;
}

struct blitz_job *bz_deque_drain(struct bz_deque *d, void *task)
{
    bz_deque_catch_up(d);
    struct blitz_job *all = turn_over(d, newest(d), false, task);
    set_newest(d, NULL);
    d->marked = NULL;
    bz_store_relaxed(attention_of(d), LOOK); /* relaxed: ours to look at; I3 */
    return take_the_rest(d, all);
}

struct blitz_job *bz_deque_take_all(struct bz_deque *d, void *task)
{
    /* relaxed: [H] */
    if (bz_load_relaxed(attention_of(d)) != HALT && !d->is_plain)
        return NULL;
    if (d->is_taken)
        return NULL; /* the owner has not noticed the last take yet */
    return take_the_rest(d, take_list(d, task));
}

void bz_deque_alert(struct bz_deque *d)
{
    bz_xchg_relaxed(attention_of(d), LOOK); /* relaxed: took nothing; an exchange, as for [C] */
}

void bz_deque_check(struct bz_deque *d)
{
    bool has_mark = d->marked == NULL;
    BZ_CHECK(d->shelf_head <= d->shelf_tail && d->shelf_tail <= BZ_DEQUE_SHELF,
             "deque %p: shelf from %u to %u", (void *)d, d->shelf_head, d->shelf_tail);
    for (struct blitz_job *j = newest(d); j != NULL; j = next_of(j))
        has_mark |= j == d->marked;
    BZ_CHECK(has_mark, "deque %p: the mark %p is not in it", (void *)d, (void *)d->marked); /* I2 */
    uintptr_t attention = bz_load_relaxed(attention_of(d)); /* relaxed: a look */
    BZ_CHECK(attention <= HALT, "deque %p: attention %zu", (void *)d, (size_t)attention);
}
