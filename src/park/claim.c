/*
 * claim.c - a join of a child that has not started runs it here and now.
 *
 * A joiner whose child is still in a queue has nothing better to do than to run the child. So the
 * joiner *claims* the child, by a CAS on the child's word. It then calls the child on its own stack,
 * like a plain function: no switch, no wait, no wake-up. A tree of a million tasks becomes a million
 * calls.
 *
 * The child's queue entry stays where it is, in a ring or in the injector. The entry is now a
 * *tombstone*. It keeps a reference, which the claim adds, so that the thread that dequeues it can
 * look at the task and see that it was claimed. If the entry is in our own `next` slot or batch, the
 * joiner removes it instead. The claimed child may park. It then stays on the joiner's stack, above
 * the joiner's frames, and the machine that resumes the child later returns into the joiner. The
 * child may be queued again while its tombstone is still queued; each entry has its own link.
 *
 * A tombstone is dropped when it is dequeued, or when a full ring would spill it. A joiner of many
 * children never takes from the injector. So after every TIDY_EVERY tombstones it looks for
 * tombstones there. bz_drop_tombstones_left drops the tombstones that are still queued when the runtime ends. The
 * queues can hold no other entry then, because all tasks have ended.
 *
 * Not claimed:
 *   by a joiner that was asked     it has run for long (ask.c): it waits, and other tasks run
 *   with a deadline               the joiner could not return before the child ends
 *   from outside the runtime      there is no worker to run it on
 *   a child that must run elsewhere   a proc hint, another stack class (BZ_TASK_STAYS)
 *   by a task that is locked to its thread   the child may resume on another thread
 *   on the lower half of a stack   the stack class promises half of the stack to the child
 *   in the plain form
 *
 * While the child runs, `current`, shields, task-locals and C++ exceptions (arch/eh.h) are the
 * child's. A cancel of the joiner is passed on to the child: wait.h, which needs only two stores
 * here.
 *
 * Rejected: running any other task while waiting, as Rayon does. Such a task may take locks that the
 * joiner holds, and the frames of unrelated tasks pile up on the joiner's stack. The joiner may run
 * only the task that it waits for: if that child waits, the joiner has to wait as well.
 */
#include "life/evacuate.h"
#include "life/finish.h"
#include "park/claim.h"
#include "proc/ask.h"
#include "proc/batch.h"
#include "proc/enter.h"
#include "proc/place.h"
#include "proc/state.h"
#include "sched/loop.h"
#include "wait/wait.h"

static bool may_claim(struct bz_machine *m, struct bz_task *t)
{
    return !bz_is_plain(m->rt) && t->rt == m->rt && !(t->traits & BZ_TASK_STAYS) &&
           !(m->current->marks & BZ_MARK_LOCKED) && bz_claim_has_room(m);
}

/* Return the task's entry in the batch, or NULL if it is not there. */
static bz_shared(bz_entry) *entry_in_batch(struct bz_proc *p, bz_entry e)
{
    struct bz_batch *h = &p->batch;
    unsigned first = bz_load_relaxed(&h->at); /* relaxed: ours to touch */
    for (unsigned n = bz_batch_left(h), at = first; n > 0; n--, at++)
        if (bz_get(&h->entry[at]) == e)
            return &h->entry[at];
    return NULL;
}

enum { TIDY_EVERY = 64, TIDY_SELDOM = 1024 };

BZ_NOINLINE void bz_claim_tidy(struct bz_machine *m)
{
    m->proc->tombstones = bz_tidy_injector(m->rt) > 0 ? TIDY_EVERY : TIDY_SELDOM;
}

/* Take the task out of its queue, or leave a tombstone there. Return false if another worker has started it. */
static bool claim(struct bz_machine *m, struct bz_task *t)
{
    uint32_t was;
    if (!bz_enter_on(m, &was)) {
        bz_leave_on(m, was);
        return false; /* no proc: another worker runs the child meanwhile */
    }
    struct bz_proc *p = m->proc;
    bool is_next = bz_load_relaxed(&p->next) == bz_entry_first(t); /* relaxed: ours to touch */
    bz_shared(bz_entry) *held = is_next ? NULL : entry_in_batch(p, bz_entry_first(t));
    bool is_won = bz_word_claim(&t->word, is_next || held != NULL ? 0 : 1);
    if (is_won && is_next)
        bz_store_relaxed(&p->next, 0); /* relaxed: ours to touch */
    else if (is_won && held != NULL)
        bz_set(held, 0);
    else if (is_won && --p->tombstones == 0)
        bz_claim_tidy(m);
    if (is_won)
        bz_count(&p->counters, claimed);
    bz_leave_on(m, was);
    return is_won;
}

enum bz_ran bz_run_apart(struct bz_task *t)
{
    struct bz_eh ours;
    bz_eh_exchange(NULL, &ours);
    enum bz_ran ran = t->ops->run(t);
    bz_eh_exchange(&ours, NULL);
    return ran;
}

/* Call the child. If it waits without a stack, move the jobs that it forked and did not join to the queues. */
static BZ_ALWAYS_INLINE enum bz_ran call(struct bz_task *t)
{
    enum bz_ran ran = bz_run_child(t);
    if (BZ_UNLIKELY(ran != BZ_RAN_DONE)) {
        uint32_t was;
        bz_evacuate(bz_enter_as(&was));
        bz_leave(was);
    }
    return ran;
}

/*
 * Run the child while the joiner has forked jobs that are not joined. The jobs stay the joiner's.
 * The owner of the jobs in the deque and `current` change together, in the runtime: the monitor may
 * take all jobs from a machine that is in user code (deque.c).
 */
static BZ_NOINLINE enum bz_ran run_marked(struct bz_machine *m, struct bz_task *me,
                                          struct bz_task *t)
{
    uint32_t was;
    (void)!bz_enter_on(m, &was);
    bz_deque_catch_up(&m->deque);
    struct bz_deque_mark mark = bz_deque_mark(&m->deque, me);
    m->current = t;
    bz_leave_on(m, was);
    enum bz_ran ran = call(t);
    m = bz_enter_as(&was); /* the child may have moved to another machine */
    bz_deque_catch_up(&m->deque);
    if (ran == BZ_RAN_DONE)
        bz_watch_jobs(m, t, m->deque.marked, true);
    bz_deque_unmark(&m->deque, &mark);
    m->current = me;
    bz_leave_on(m, was);
    return ran;
}

static BZ_ALWAYS_INLINE enum bz_ran run(struct bz_machine *m, struct bz_task *me, struct bz_task *t)
{
    if (BZ_UNLIKELY(!bz_deque_is_empty(&m->deque)))
        return run_marked(m, me, t);
    m->current = t;
    enum bz_ran ran = call(t);
    m = bz_machine_self(); /* the child may have moved to another machine */
    if (ran == BZ_RAN_DONE)
        bz_watch_jobs(m, t, NULL, false);
    m->current = me;
    return ran;
}

static BZ_NOINLINE BZ_COLD enum bz_ran run_traced(struct bz_machine *m, struct bz_task *me,
                                                  struct bz_task *t)
{
    struct bz_runtime *rt = m->rt;
    bz_trace_record(rt, BZ_TRACE_claim, t->id, me->id, t->name);
    enum bz_ran ran = run(m, me, t);
    bz_trace_record(rt, BZ_TRACE_back, me->id, bz_trace_child(t->id, ran), me->name);
    return ran;
}

static bool was_asked(struct bz_machine *m)
{
    if (BZ_LIKELY(bz_load_relaxed(bz_asked_of(&m->deque.ends)) == 0)) /* relaxed: a hint */
        return false;
    bz_store_relaxed(bz_asked_of(&m->deque.ends), 0); /* relaxed: a hint */
    return true;
}

/* Call t, which the caller has the right to run, on the stack of the current task. */
static BZ_ALWAYS_INLINE enum bz_ran run_on(struct bz_machine *m, struct bz_task *t)
{
    struct bz_task *me = m->current;
    bz_watch_end(m, me);
    bz_watch_begin(m, t);
    BZ_PROBE(claim, t->id, me->id);
    enum bz_ran ran = BZ_UNLIKELY(bz_trace_is_on()) ? run_traced(m, me, t) : run(m, me, t);
    m = bz_machine_self(); /* the child may have moved to another machine */
    if (BZ_UNLIKELY(t->marks & BZ_MARK_LOCKED))
        bz_locked_end(m);
    bz_watch_end(m, t);
    bz_watch_begin(m, me);
    return ran;
}

enum bz_ran bz_run_here(struct bz_task *t)
{
    if (bz_word_life(&t->word) != BZ_RUNNING) {
        enum bz_owes owes = bz_word_step(&t->word, BZ_RUN);
        BZ_ASSERT(owes == BZ_OWES_NOTHING);
        (void)owes;
    }
    return run_on(bz_machine_self(), t);
}

bool bz_claim(struct bz_task *t, enum bz_ran *ran)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->current == NULL || was_asked(m) || !may_claim(m, t) || !claim(m, t))
        return false;
    struct bz_task *me = m->current;
    bz_wait_enter_child(me, t);
    *ran = run_on(m, t);
    bz_wait_leave_child(me, t);
    return true;
}

static void drop_left(bz_entry e)
{
    BZ_CHECK(bz_entry_tag(e) == BZ_ENTRY_FIRST && bz_word_is_complete(&bz_entry_task(e)->word),
             "entry %llx is queued, and the runtime has ended", (unsigned long long)e);
    bz_task_unref(bz_entry_task(e));
}

void bz_drop_tombstones_left(struct bz_runtime *rt)
{
    bz_entry e, batch[BZ_PRIVATE_MAX];
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        while ((e = bz_runq_take(&p->ring)) != 0)
            drop_left(e);
        for (unsigned n = bz_batch_empty(p, batch); n > 0;)
            drop_left(batch[--n]);
    }
    while (bz_injector_take(&rt->injector, &e, 1, 1) != 0)
        drop_left(e);
}

/* ---- on behalf of host.c ---- */

void bz_host_run(struct bz_task *t)
{
    struct bz_machine *m = bz_machine_self();
    if (!bz_claim_has_room(m)) { /* the plain form: another machine must do it */
        bz_place(t->rt, bz_entry_resumed(t));
        return;
    }
    enum bz_ran ran = bz_run_here(t);
    if (ran == BZ_RAN_DONE)
        bz_task_finish(t);
    else
        bz_task_set_aside(t, ran);
}
