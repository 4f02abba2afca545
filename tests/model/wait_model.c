/*
 * wait_model.c - a wait has one outcome, its task is resumed once, and no thread accesses its frame
 * after it is freed.
 *
 *   covers: src/wait/wait.h src/park/park.c src/park/request.c
 *   covers: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/os/lock.c src/os/self.c src/task/word.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * A toy scheduler around the real waits. The waiter is a thread. When it suspends, the hook is
 * given to another thread (the next stack), and the waiter continues when it has been queued:
 * perhaps while the hook still runs, which is the critical case. The primitive is one slot under a
 * lock, the wheel another one. Node and frame are memory that is freed when the wait has been left.
 */
#include "model.h"

#include "life/deadlines.h"
#include "life/handle.h"
#include "model_os.h"
#include "proc/place.h"
#include "sched/loop.h"
#include "wait/wait.h"
#include "waker_toy.h"

static struct bz_runtime runtime;
static struct bz_proc proc;
static struct bz_machine machine;
static struct bz_task parent, child;

/* ---- the toy scheduler ---- */

static struct {
    bz_ctx_hook *hook;
    void *arg;
} next_stack;
static bool is_alone; /* it is not resumed before the hook has returned: the waiter runs the hook */
static bz_os_word left;   /* 1: the waiter has left its stack, next_stack is filled */
static bz_os_word queued; /* 1: the task is in the queue */

void bz_place(struct bz_runtime *rt, bz_entry e)
{
    (void)rt;
    m_assert(e == bz_entry_resumed(&parent));
    uint32_t was = bz_xchg_acqrel(&queued, 1);
    m_assert(was == 0); /* never queued twice */
    m_word_wake(&queued, 1);
}

void bz_suspend(bz_ctx_hook *hook, void *arg)
{
    next_stack.hook = hook;
    next_stack.arg = arg;
    if (is_alone) {
        hook(arg);
    } else {
        bz_store_release(&left, 1);
        m_word_wake(&left, 1);
    }
    while (!bz_xchg_acqrel(&queued, 0))
        m_word_wait(&queued, 0);
    if (bz_word_life(&parent.word) != BZ_RUNNING)
        (void)!bz_word_step(&parent.word, BZ_RUN);
}

/* The next stack, to which the waiter switched. */
static void runs_the_hook(void)
{
    while (!bz_load_acquire(&left))
        m_word_wait(&left, 0);
    next_stack.hook(next_stack.arg);
}

static void hook_park(void *task)
{
    struct bz_task *t = task;
    if (bz_word_step(&t->word, BZ_PARK) == BZ_OWES_ENQUEUE)
        bz_place(t->rt, bz_entry_resumed(t));
}

void bz_park(void)
{
    m_assert(is_alone && runtime.is_plain); /* else nothing wakes it for nothing */
    bz_suspend(hook_park, &parent);
}

void bz_task_wake(struct bz_task *t)
{
    if (bz_word_step(&t->word, BZ_WAKE) == BZ_OWES_ENQUEUE)
        bz_place(t->rt, bz_entry_resumed(t));
}

void bz_jobs_cancel(struct bz_task *t)
{
    (void)t;
}

static bool is_paid; /* does the canceller issue its barrier? */

void bz_barrier_pay(struct bz_barrier *b)
{
    (void)b;
    if (is_paid)
        bz_os_barrier(&m_os);
}

/* ---- the toy wheel ---- */

static struct bz_timer *armed; /* guarded by proc.timer_lock */

void bz_timers_lock(struct bz_proc *p)
{
    bz_lock_take(&p->timer_lock, &m_os);
}

void bz_timers_unlock(struct bz_proc *p)
{
    bz_lock_drop(&p->timer_lock, &m_os);
}

/* Every waiter here has a proc. */
void bz_timers_armed(struct bz_proc *p)
{
    (void)p;
    m_assert(false);
}

void bz_timer_init(struct bz_timer *timer, struct bz_proc *p,
                   struct bz_wake (*fire)(struct bz_timer *timer))
{
    timer->proc = p;
    timer->fire = fire;
}

void bz_timer_arm_locked(struct bz_timer *timer, uint64_t when)
{
    (void)when;
    armed = timer;
}

bool bz_timer_disarm(struct bz_timer *timer)
{
    bz_timers_lock(timer->proc);
    bool was_armed = armed == timer;
    armed = NULL;
    bz_timers_unlock(timer->proc);
    return was_armed;
}

static void fires(void)
{
    struct bz_wake fired = {.kind = BZ_WAKE_NONE};
    bz_timers_lock(&proc);
    struct bz_timer *due = armed;
    armed = NULL;
    if (due != NULL)
        fired = due->fire(due);
    bz_timers_unlock(&proc);
    bz_wake_deliver(&fired);
}

/* ---- the toy primitive: a value for one receiver ---- */

static struct bz_lock slot_lock;
static struct bz_wait *registered; /* guarded by slot_lock */
static bool has_value;             /* likewise */
static bz_shared(int) value;
static uint32_t outcome; /* the result of the waiter, for the final check */

static bool receive_hook(struct bz_wait *w, void *arg)
{
    (void)arg;
    bz_lock_take(&slot_lock, &m_os);
    if (has_value) {
        has_value = false;
        bz_lock_drop(&slot_lock, &m_os);
        return bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    registered = w;
    bool waits = bz_wait_publish(w);
    bz_lock_drop(&slot_lock, &m_os);
    return waits;
}

static void wakes(void)
{
    bz_set(&value, 7);
    bz_lock_take(&slot_lock, &m_os);
    struct bz_wait *w = registered;
    registered = NULL;
    if (w == NULL || !bz_wait_wake(w, BZ_WAIT_WOKEN))
        has_value = true;
    bz_lock_drop(&slot_lock, &m_os);
}

static void cancels(void)
{
    bz_task_cancel(&parent);
}

static void receive(struct bz_wait *w)
{
    outcome = bz_wait_park(w, receive_hook, NULL);
    if (outcome >= BZ_WAIT_WOKEN) {
        m_assert(bz_get(&value) == 7);
    } else { /* rule 2 of wait.h */
        bz_lock_take(&slot_lock, &m_os);
        registered = NULL;
        bz_lock_drop(&slot_lock, &m_os);
    }
}

static void waits(void)
{
    struct bz_wait *w = m_alloc(sizeof *w);
    bz_wait_begin(w, &m_os, "model", BLITZ_FOREVER);
    receive(w);
    m_free(w);
}

static void waits_with_a_deadline(void)
{
    struct bz_wait *w = m_alloc(sizeof *w);
    bz_wait_begin(w, &m_os, "model", 1000);
    receive(w);
    m_free(w);
}

static void waits_alone(void)
{
    struct bz_wait *w = m_alloc(sizeof *w);
    bz_wait_begin_sole(w, &m_os, "model");
    receive(w);
    m_free(w);
}

static void sleeps(void)
{
    struct bz_wait *w = m_alloc(sizeof *w);
    bz_wait_begin(w, &m_os, "sleep", 1000);
    outcome = bz_wait_park(w, NULL, NULL);
    m_free(w);
}

static void sleeps_for_ever(void)
{
    struct bz_wait *w = m_alloc(sizeof *w);
    bz_wait_begin(w, &m_os, "sleep", BLITZ_FOREVER);
    outcome = bz_wait_park(w, NULL, NULL);
    m_free(w);
}

static void task_init(struct bz_task *t, enum bz_life life)
{
    static const struct bz_task_ops ops = {.kind = "model"};
    t->rt = &runtime;
    t->ops = &ops;
    bz_atomic_init(&t->wait, 0);
    bz_lock_init_ranked(&t->lock, BZ_RANK_TASK);
    bz_word_init(&t->word, life, 2);
}

static void given(bool is_plain)
{
    runtime.os = &m_os;
    runtime.is_plain = is_plain;
    proc.rt = &runtime;
    bz_lock_init_ranked(&proc.timer_lock, BZ_RANK_TIMERS);
    bz_lock_init_ranked(&slot_lock, BZ_RANK_RUNTIME);
    machine.rt = &runtime;
    machine.proc = machine.last = &proc;
    machine.current = &parent;
    bz_self_set(&machine);
    task_init(&parent, BZ_RUNNING);
    task_init(&child, BZ_RUNNING);
    bz_atomic_init(&left, 0);
    bz_atomic_init(&queued, 0);
    armed = NULL;
    registered = NULL;
    has_value = false;
    outcome = BZ_WAIT_OPEN;
    is_alone = false;
    is_paid = true;
}

/* One thread less, for cases in which the hook is not what matters. */
static void given_a_hook_of_its_own(bool is_plain)
{
    given(is_plain);
    is_alone = true;
}

/* The end of every case: one outcome, nothing left behind. */
static void then_it_ended_once(void)
{
    m_assert(outcome != BZ_WAIT_OPEN);
    if (!runtime.is_plain) /* there a wake may come after the end of the wait */
        m_assert(bz_load_relaxed(&queued) == 0);
    m_assert(bz_load_relaxed(&parent.wait) == 0);
    m_assert(armed == NULL);
}

/* ---- cases ---- */

/* Bug class 1: a wake before, while and after the stack is left. A lost one is a deadlock. */
MODEL(wait, bug_01_a_wake_is_not_lost_whenever_it_comes)
{
    given(false);
    m_threads(waits, runs_the_hook, wakes);
    then_it_ended_once();
    m_assert(outcome == BZ_WAIT_WOKEN);
}

MODEL(wait, the_only_waker_needs_no_arbiter)
{
    given(false);
    m_threads(waits_alone, runs_the_hook, wakes);
    then_it_ended_once();
    m_assert(outcome == BZ_WAIT_WOKEN);
}

/* The second event changes nothing, and the frame is freed only when no thread uses it. */
MODEL(wait, a_wake_and_a_cancel_have_one_outcome)
{
    given_a_hook_of_its_own(false);
    m_threads(waits, wakes, cancels);
    then_it_ended_once();
    m_assert((outcome == BZ_WAIT_WOKEN) != has_value);
    m_sometimes(outcome == BZ_WAIT_WOKEN);
    m_sometimes(outcome == BZ_WAIT_CANCELLED);
}

MODEL(wait, a_wake_and_a_deadline_have_one_outcome)
{
    given(false);
    m_threads(waits_with_a_deadline, runs_the_hook, wakes, fires);
    then_it_ended_once();
    m_assert((outcome == BZ_WAIT_WOKEN) != has_value);
    m_sometimes(outcome == BZ_WAIT_WOKEN);
    m_sometimes(outcome == BZ_WAIT_TIMED_OUT);
}

/* There is no lock of a primitive here: the timer's or the task's lock protects the frame. The
 * cancel ends the sleep if the timer had nothing to fire yet. */
MODEL(wait, a_sleep_that_is_cancelled_at_its_deadline_has_one_outcome)
{
    given_a_hook_of_its_own(false);
    m_threads(sleeps, fires, cancels);
    then_it_ended_once();
    m_sometimes(outcome == BZ_WAIT_CANCELLED);
    m_sometimes(outcome == BZ_WAIT_TIMED_OUT);
}

MODEL(wait, a_cancel_is_heard_whenever_it_comes)
{
    given(false);
    m_threads(sleeps_for_ever, runs_the_hook, cancels);
    then_it_ended_once();
    m_assert(outcome == BZ_WAIT_CANCELLED);
}

/* The same where the primitive's lock, or the timer's, keeps the frame for the hook. */
MODEL(wait, a_cancel_ends_a_receive_while_its_hook_runs)
{
    given(false);
    m_threads(waits, runs_the_hook, cancels);
    then_it_ended_once();
    m_assert(outcome == BZ_WAIT_CANCELLED);
}

MODEL(wait, a_cancel_ends_a_sleep_while_its_hook_runs)
{
    given(false);
    m_threads(sleeps, runs_the_hook, cancels);
    then_it_ended_once();
    m_assert(outcome == BZ_WAIT_CANCELLED);
}

/* ---- the plain form: fences, and steps of the word ---- */

/* An old clone of its waker. */
static void wakes_for_nothing(void)
{
    bz_task_wake(&parent);
}

static bz_atomic(struct bz_wait *) told; /* a primitive without a lock: one waker, told once */

static struct bz_wait node; /* which is never gone */

static bool tell_hook(struct bz_wait *w, void *arg)
{
    (void)arg;
    bool waits = bz_wait_publish(w);
    bz_store_release(&told, w);
    return waits;
}

static void waits_for_who_was_told(void)
{
    bz_wait_begin_sole(&node, &m_os, "model");
    outcome = bz_wait_park(&node, tell_hook, NULL);
    m_assert(bz_get(&value) == 7);
}

static void wakes_when_told(void)
{
    struct bz_wait *w;
    while ((w = bz_load_acquire(&told)) == NULL)
        m_relax();
    bz_set(&value, 7);
    bz_wait_wake(w, BZ_WAIT_WOKEN);
}

/* arbiter.c [A]: it may continue with an outcome for which it has not been queued yet. */
MODEL(wait, plain_a_wake_for_nothing_is_slept_over)
{
    given_a_hook_of_its_own(true);
    bz_atomic_init(&told, NULL);
    m_threads(waits_for_who_was_told, wakes_when_told, wakes_for_nothing);
    then_it_ended_once();
    m_assert(outcome == BZ_WAIT_WOKEN);
}

/* Both fence, and the task is parked by a step of its word when the hook has done all else. */
MODEL(wait, plain_a_cancel_ends_a_receive_while_its_hook_runs)
{
    given(true);
    m_threads(waits, runs_the_hook, cancels);
    then_it_ended_once();
    m_assert(outcome == BZ_WAIT_CANCELLED);
}

/* ---- a plain thread: no queue comes between it and its waker ---- */

static void given_a_thread(void)
{
    given(false);
    bz_self_set(NULL);
}

/* arbiter.c [A]. */
MODEL(wait, a_woken_thread_sees_earlier_writes)
{
    given_a_thread();
    m_threads(waits_alone, wakes);
    m_assert(outcome == BZ_WAIT_WOKEN);
}

MODEL(wait, a_thread_that_is_woken_at_its_deadline_has_one_outcome)
{
    given_a_thread();
    m_threads(waits_with_a_deadline, wakes);
    m_assert((outcome == BZ_WAIT_WOKEN) != has_value);
    m_sometimes(outcome == BZ_WAIT_WOKEN);
    m_sometimes(outcome == BZ_WAIT_TIMED_OUT);
}

/* ---- a child ---- */

static struct bz_task *spawned;
static bool was_reached; /* for the end */

static void drop_child(struct bz_task *t)
{
    m_free(t);
}

/* Spawn it, join it, be done with it. */
static void joins_a_child(void)
{
    static const struct bz_task_ops ops = {.drop = drop_child};
    spawned = m_alloc(sizeof *spawned);
    task_init(spawned, BZ_RUNNING);
    spawned->ops = &ops;
    bz_wait_enter_child(&parent, spawned);
    bz_wait_leave_child(&parent, spawned);
    was_reached = bz_word_is_cancelled(&spawned->word);
    bz_task_unref(spawned); /* the handle */
    bz_task_unref(spawned); /* it has ended */
}

/* wait.h [W] [L]: a cancel that meets a join goes to the child, which the canceller sees whole, and
 * which is not gone while it has it. */
MODEL(wait, a_cancel_of_a_joiner_reaches_the_child_while_it_lives)
{
    given(false);
    m_threads(joins_a_child, cancels);
    m_sometimes(was_reached);
    m_sometimes(!was_reached);
}

static void joins_and_waits_for_its_cancel(void)
{
    bz_wait_enter_child(&parent, &child);
    for (unsigned round = 0; !bz_word_is_cancelled(&child.word); round++)
        bz_os_relax(&m_os, round); /* the child ends when it is cancelled */
    bz_wait_leave_child(&parent, &child);
}

/* wait.h [C]: one of the two sees the other, or the join would last for ever. */
MODEL(wait, a_cancel_of_a_joiner_is_passed_on_whenever_it_comes)
{
    given(false);
    m_threads(joins_and_waits_for_its_cancel, cancels);
    m_assert(bz_word_is_cancelled(&child.word));
    m_assert(bz_load_relaxed(&parent.wait) == 0);
}

/* Both halves are needed: the waiter's is only a compiler barrier. */
MODEL_FAILS(wait, without_a_barrier_a_cancel_of_a_joiner_is_lost, "nobody will store")
{
    given(false);
    is_paid = false;
    m_threads(joins_and_waits_for_its_cancel, cancels);
}
