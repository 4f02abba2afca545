/*
 * host.c - tasks that are ready and find no stack.
 *
 * A machine that has no stack stands on g0 (machine.c). It fires timers there and resumes tasks that have a
 * stack. So each wait of a fiber ends at its deadline. But a task that was spawned before the shortage, or a
 * stackless task, may be ready and have no stack. The stack that it needs may be held by the very fiber that
 * waits for its end. The machine tries in this order:
 *
 *   1  A forked job goes back to the join that waits for it (job.c). A timer's foreign waker is called on
 *      g0 (deadlines.c).
 *   2  A cancelled task begins on the stack that the runtime keeps for cancelled tasks.
 *   3  A fiber *hosts* the task: the fiber waits for the end of the task and cannot return before. So it runs the
 *      task on its own stack, as a join runs a child that has not begun (claim.c). See below.
 *   4  A stackless task is polled on the stack that the runtime keeps for polls.
 *   5  The entry waits in the proc's list want_stack. The machine looks at the list again when it looks for work,
 *      and after a millisecond at the latest.
 *
 * Which fibers may host a task T? A host cannot return while T stands on its stack. So:
 *
 *   a join of T without a deadline     always. A cancel of the host goes to T (wait.h)
 *   the close of T's scope             always. The scope's deadline is a timer of its own, which cancels T
 *   an await of a pinned join of T     if the await has no deadline
 *   an await of any pinned future that T's end wakes    if T is cancelled. A deadline in such a future (timeout.c) may
 *                                      need a poll by the host to cancel T: that has happened
 *
 * No other: a join with a deadline, or an await of a revocable future, returns before T ends.
 *
 * Why each deadline holds. A wait of a fiber needs no stack. A scope's deadline cancels the tasks of the scope. A
 * cancelled task ends if it gets a stack and honours the cancel: its waits return at once, except that it waits
 * for children, which are cancelled with it. If it has no stack, it gets the kept one (2). That stack comes back:
 * its task is cancelled too, and hosts (3) each child that it waits for and that has no stack. A stackless task
 * that waits for a deadline without a stack of its own is polled on the other kept stack (4), which comes back
 * when the poll returns. So three programs can still be late:
 *   - a task ignores its cancel while it stands on the kept stack;
 *   - a poll blocks (stackless.c) while it stands on the kept stack, and is not cancelled;
 *   - hosts stand on each other until less than half of the stack is left.
 *
 * A task that is neither cancelled nor hosted nor polled waits for a stack, as a task waits for a CPU. So that a
 * stack comes back, machines without work sleep on g0 while stacks are short, and give up all others (find.c,
 * search.c). A machine that sleeps already is roused for that when the shortage begins.
 *
 * How a task is handed over. The machine holds T: it has taken T's only entry. A join in T->joiners is found under
 * T's lock; its wait is sole, so the machine that takes it off the list is the only one to wake it
 * (BZ_WAIT_HOSTS). An await parks behind the state word. If the machine's WAKE finds the fiber idle, then the
 * machine holds the fiber until it places it, and may write into its frame (bz_host.hosted).
 *
 * Rejected: ending a cancelled task without a call of its function (the function owns its argument, which would
 * leak). Rejected: running tasks on g0 (a task that waits there takes the thread with it). Rejected: lending the
 * stack of any parked fiber (the task may wait for something that this fiber holds). Rejected: reserving a stack
 * at each spawn (a spawn would cost more than the call that it usually becomes).
 *
 * [K] give: free release -> take: free acquire   the stack was left before it is used again
 */
#include "sched/host.h"

#include <errno.h>

#include "life/deadlines.h"
#include "life/joiner.h"
#include "life/spawn.h"
#include "life/stacks.h"
#include "proc/place.h"
#include "proc/state.h"
#include "wait/wait.h"
#include "wait/waker.h"

/* ---- kept stacks ---- */

int bz_kept_init(struct bz_runtime *rt)
{
    struct bz_stack_cache cache;
    int err = 0, count = 0;
    bz_stack_cache_init(&cache, &rt->stacks);
    while (count < BZ_KEPT && err == 0) {
        err = bz_stack_take(&cache, rt->stack_class, &rt->kept.own[count]);
        count += err == 0;
    }
    while (err != 0 && count > 0)
        bz_stack_give(&cache, rt->kept.own[--count]);
    bz_stack_cache_fini(&cache);
    for (int i = 0; i < count; i++)
        bz_atomic_init(&rt->kept.free[i], rt->kept.own[i]);
    return err != 0 ? -ENOMEM : 0;
}

void bz_kept_fini(struct bz_runtime *rt)
{
    struct bz_stack_cache cache;
    bz_stack_cache_init(&cache, &rt->stacks);
    for (int i = 0; i < BZ_KEPT; i++) {
        struct bz_stack *s = bz_load_acquire(&rt->kept.free[i]); /* [K] */
        BZ_CHECK(s == rt->kept.own[i], "a task stands on kept stack %d", i);
        bz_stack_give(&cache, s);
    }
    bz_stack_cache_fini(&cache);
}

bool bz_kept_is(const struct bz_runtime *rt, const struct bz_stack *s)
{
    return s == rt->kept.own[BZ_KEPT_FOR_POLLS] || s == rt->kept.own[BZ_KEPT_FOR_CANCELLED];
}

void bz_kept_give(struct bz_runtime *rt, struct bz_stack *s)
{
    enum bz_kept_for which =
        s == rt->kept.own[BZ_KEPT_FOR_POLLS] ? BZ_KEPT_FOR_POLLS : BZ_KEPT_FOR_CANCELLED;
    bz_store_release(&rt->kept.free[which], s); /* [K] */
}

/* Let t begin on a kept stack. Return false if that stack is in use. */
static bool keep(struct bz_task *t, enum bz_kept_for which)
{
    struct bz_stack *s = bz_xchg_acquire(&t->rt->kept.free[which], NULL); /* [K] */
    if (s == NULL)
        return false;
    bz_task_begin_on(t, s);
    return true;
}

/* ---- hosts ---- */

/* True if a parked fiber may host a task of its runtime. The caller holds the fiber. */
static bool has_room(const struct bz_task *host)
{
    const struct bz_stack *s = host->stack;
    return s != NULL && !(host->marks & BZ_MARK_LOCKED) && (char *)s->ctx.sp >= s->claim_low;
}

/* True if w is a fiber that only the end of t lets go on. */
static bool is_sole_fiber(const struct bz_waiter *w, const struct bz_task *t)
{
    return !w->is_polled && w->wait->is_sole && w->wait->task != NULL && w->wait->task->rt == t->rt;
}

/* Claim a join without a deadline that is to run t. Under t's lock. In the plain form a stray wake may let the joiner
 * run just now, so the joiner itself checks whether it has room. */
static bool claim_join(struct bz_task *t, struct bz_wake *wake)
{
    for (struct bz_list *l = t->joiners.next; l != &t->joiners; l = l->next) {
        struct bz_waiter *w = bz_waiter_of(l);
        if (!is_sole_fiber(w, t) || (!bz_is_plain(t->rt) && !has_room(w->wait->task)))
            continue;
        w->outcome = BZ_WAIT_HOSTS;
        return bz_waiter_claim(w, 0, wake);
    }
    return false;
}

static bool give_to_join(struct bz_task *t)
{
    struct bz_wake wake;
    bz_task_ref(t); /* in the plain form the host may end it while we hold its lock */
    bz_lock_take(&t->lock, t->rt->os);
    bool is_given = claim_join(t, &wake);
    bz_lock_drop(&t->lock, t->rt->os);
    bz_task_unref(t);
    if (is_given)
        bz_wake_deliver(&wake);
    return is_given;
}

/* True if this fiber is worth a wake-up. A guess. */
static bool seems_to_await(struct bz_task *host, const struct bz_task *t)
{
    uintptr_t wait = bz_load_relaxed(&host->wait); /* relaxed: a guess */
    return host != t && host->rt == t->rt && (wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_FUTURE;
}

/* True if this frame may host t. `direct` is the future that t's end completes without a poll of other futures. */
static bool may_host(const struct bz_host *h, const struct bz_task *host, const void *direct,
                     bool is_cancelled)
{
    bool is_direct = h->f == direct && h->until == BLITZ_FOREVER;
    return h->hosted == NULL && h->as.ops->kind == BLITZ_PINNED && (is_direct || is_cancelled) &&
           has_room(host);
}

/* Give t to a fiber that awaits. The caller has a reference to the fiber. */
static bool give_to_await(struct bz_task *host, struct bz_task *t, const void *direct,
                          bool is_cancelled)
{
    bool is_given = false;
    if (!seems_to_await(host, t))
        return false;
    bz_os_delay(host->rt->os, BZ_OS_AT_PUBLISH);
    if (bz_word_step(&host->word, BZ_WAKE) != BZ_OWES_ENQUEUE)
        return false;
    uintptr_t wait = bz_load_acquire(&host->wait); /* wait.h [W]: it is parked, and ours */
    if ((wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_FUTURE) {
        struct bz_host *h = (struct bz_host *)(wait - BZ_WAIT_FUTURE); /* NOLINT: tagged */
        is_given = may_host(h, host, direct, is_cancelled);
        if (is_given)
            h->hosted = t;
    }
    bz_trace_wake(host, t->id);
    bz_place(host->rt, bz_entry_resumed(host));
    return is_given;
}

/* Return the first task that joins t by a future, with a reference; NULL: none. *direct is that future. */
static struct bz_task *first_future(struct bz_task *t, const void **direct)
{
    struct bz_task *found = NULL;
    bz_lock_take(&t->lock, t->rt->os);
    for (struct bz_list *l = t->joiners.next; l != &t->joiners && found == NULL; l = l->next) {
        struct bz_waiter *w = bz_waiter_of(l);
        if (!w->is_polled || w->waker.ops != &bz_task_waker)
            continue;
        found = w->waker.data;
        bz_task_ref(found); /* the waker has one */
        *direct = bz_join_future_of(BZ_CONTAINER_OF(w, struct bz_join, request.waiter));
    }
    bz_lock_drop(&t->lock, t->rt->os);
    return found;
}

static bool give_to_future(struct bz_task *t, bool is_cancelled)
{
    const void *direct = NULL;
    struct bz_task *host = first_future(t, &direct);
    bool is_given = host != NULL && give_to_await(host, t, direct, is_cancelled);
    if (host != NULL)
        bz_task_unref(host);
    return is_given;
}

static struct bz_closer closer_of(struct bz_task *t)
{
    struct bz_closer c = {NULL, NULL, false};
    if (t->ops->closer != NULL)
        t->ops->closer(t, &c);
    return c;
}

/* Hand t to a fiber that waits for its end. */
static bool host(struct bz_task *t, const struct bz_closer *c, bool is_cancelled)
{
    if (c->task != NULL && give_to_await(c->task, t, c->scope, is_cancelled))
        return true;
    return give_to_join(t) || give_to_future(t, is_cancelled);
}

static bool is_poll(const struct bz_task *t)
{
    return t->ops->run == bz_poll_run && t->ops->closer == NULL;
}

static enum bz_without do_without(struct bz_task *t)
{
    struct bz_closer c = closer_of(t);
    bool is_cancelled = c.is_cancelled || bz_word_is_cancelled(&t->word);
    enum bz_without way = BZ_WITHOUT_WAITS;
    if (is_cancelled && keep(t, BZ_KEPT_FOR_CANCELLED))
        way = BZ_WITHOUT_RUNS;
    else if (host(t, &c, is_cancelled))
        way = BZ_WITHOUT_GONE;
    else if (is_poll(t) && keep(t, BZ_KEPT_FOR_POLLS))
        way = BZ_WITHOUT_RUNS;
    if (c.task != NULL)
        bz_task_unref(c.task);
    return way;
}

enum bz_without bz_do_without(struct bz_machine *m, bz_entry e)
{
    if (bz_entry_tag(e) == BZ_ENTRY_JOB)
        return bz_job_give_back(e) ? BZ_WITHOUT_GONE : BZ_WITHOUT_WAITS;
    if (m->runner != NULL)
        return BZ_WITHOUT_WAITS;
    if (bz_timer_wake_here(bz_entry_task(e)))
        return BZ_WITHOUT_GONE;
    return do_without(bz_entry_task(e));
}
