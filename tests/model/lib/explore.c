/*
 * explore.c - every execution once: the search, the coroutines it drives, and how one ends.
 *
 * What there is to explore. An execution is a graph: which store each read took (rf), in which order
 * the stores of each location stand (mo). Two interleavings with the same graph are the same
 * execution, so we do not enumerate interleavings; we enumerate graphs. Whether a graph is allowed
 * (memory.c, sc.c) does not depend on the order in which its events were executed, only that order
 * must respect po U rf. That leaves little to schedule:
 *
 *   - A store, a fence, a plain access never need wait for another thread: whatever comes later can
 *     still be placed before it in mo. They are executed at once. A store has a decision, its place.
 *   - A read may take any store that is there, one branch each; or it must wait for one that is not
 *     there yet. That branch is the *deferral*: the thread sleeps, others go on, and with the first
 *     new store to its location it wakes and chooses again, among the new stores only. The old ones
 *     have been tried in the branches before (this is what a sleep set says). If all threads end up
 *     asleep the branch held nothing new and is pruned.
 *   - A deferral is tried only if it can lead anywhere: if in one of the branches in which the read
 *     went first, a store to its location was executed that does not depend on it (not po U rf after
 *     it). Then that store might as well have come first. This is dynamic partial-order reduction.
 *     Attempts count as stores, because a CAS that lost here might win in another order.
 *
 * Each graph has exactly one path through these decisions: a read takes its store if it is there,
 * or else defers. So no graph is visited twice, and none is missed, given that the deferral is
 * offered where it is needed. It is: suppose a graph G in which read r takes a store w that is not
 * there yet. Run the events G needs for w up to the first new store w' to r's location. Up to there
 * r could have run first and taken the newest store, which no rule of the model forbids (nothing is
 * ordered after the newest yet). So w' appears below a branch in which r ran first, unordered with
 * r, and requests the deferral. `--all-orders` turns the reduction off; the litmus tests compare.
 * (When r has been woken once and may only take new stores, the newest may not be among them; with
 * seq_cst operations about the argument then has a gap, and we defer without being asked.)
 *
 * The search is stateless: a decision is undone by running everything again up to it. Decisions are
 * the array `node`; backtracking changes the last one that has something left.
 *
 * The bound. The complete search may be too large. A deferral is the preemption of this search: one
 * thread waits while others pass. The option --bound=k allows k of them in an execution. main.c
 * tries the complete search first, then bounds 0, 1, 2, ... within the time budget, then random
 * schedules. A bounded search is a sample, not a proof: the one path of a graph may need more
 * deferrals than another order of the same events would.
 *
 * Rejected: enumerating interleavings with a preemption bound. It visits the same graph many times,
 * stale reads multiply on top of that, and a bound that cuts inside sleep sets loses executions
 * silently. Also rejected: revisiting reads when a store arrives by cutting the graph back to the
 * read. That prunes no branches, but every thread would have to be re-executed out of step, and the
 * pruned branches are a small part of the search.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define STACK_SIZE (256 * 1024)

struct m_engine m;

void m_stop(enum m_end end)
{
    m.end = end;
    m_coro_switch(&m_me()->coro, &m.engine);
    abort(); /* no thread switches back to a stopped one */
}

void m_fail(enum m_fault fault, const struct m_site *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m.fault_text, sizeof m.fault_text, format, args);
    va_end(args);
    m.fault = fault;
    m.fault_at = at;
    m_stop(M_END_FAILED);
}

/* ---- decisions ---- */

uint64_t m_random(void)
{
    m.rng ^= m.rng << 13;
    m.rng ^= m.rng >> 7;
    m.rng ^= m.rng << 17;
    return m.rng;
}

static void note_branching(struct m_site *at)
{
    if (at->branches++ == 0) {
        at->next = m.branching;
        m.branching = at;
    }
}

/* The decision the cursor stands at: the one of the last execution, or a new one. */
static struct m_node *node_next(int count, bool can_defer, struct m_site *at)
{
    m.last_node = m.nodes_used;
    struct m_node *n = &m.node[m.nodes_used++];
    if (m.nodes_used <= m.nodes) {
        if (n->count != count)
            m_fail(M_FAULT_LIMIT, at,
                   "not repeatable: %d ways to go on where there were %d; does the test keep state "
                   "from one execution to the next?",
                   count, n->count);
        return n;
    }
    if (m.nodes_used >= M_NODES_MAX)
        m_fail(M_FAULT_LIMIT, at, "an execution of more than %d decisions", M_NODES_MAX);
    m.nodes = m.nodes_used;
    *n = (struct m_node){.count = (uint16_t)count, .can_defer = can_defer, .at = at};
    n->is_wanted = m.always_defer;
    n->defers_before = m.defers;
    if (count > 1)
        note_branching(at);
    return n;
}

bool m_others_can_run(void)
{
    for (int i = 1; i <= m.threads; i++)
        if (i != m.current && m.thread[i].state == M_RUNNABLE)
            return true;
    return false;
}

/* One of `count`; the first is the natural one. */
int m_choose(int count, struct m_site *at)
{
    if (count == 1)
        return 0;
    if (m.mode == M_SEARCH)
        return node_next(count, false, at)->pick;
    return m.mode == M_RANDOM && m_random() % 4 == 0 ? (int)(m_random() % (unsigned)count) : 0;
}

/* One of `count`, or M_NONE: wait for something new. */
int m_choose_or_defer(int count, struct m_site *at)
{
    m.last_node = M_NONE;
    if (m.mode != M_SEARCH) {
        bool is_any = m.mode == M_RANDOM && m_random() % 2 == 0;
        return is_any ? (int)(m_random() % (unsigned)count) : 0;
    }
    bool can_defer = m_others_can_run();
    if (count == 1 && !can_defer)
        return 0;
    struct m_node *n = node_next(count, can_defer, at);
    m.found_sc |= m.sc_events > 0;
    if (m_me()->since > 0 && m.found_sc)
        n->is_wanted = true; /* the gap in the argument above */
    if (!n->is_deferring)
        return n->pick;
    m.defers++;
    return M_NONE;
}

/* A store to x, or an attempt, by the current thread: reads that went before it without need. */
void m_flag_readers(const struct m_loc *x)
{
    const struct m_thread *t = m_me();
    if (!m.in_threads)
        return;
    for (int16_t i = x->accesses; i != M_NONE; i = m.event[i].loc_prev) {
        const struct m_event *r = &m.event[i];
        if (r->node != M_NONE && r->thread != m.current && r->kind != M_WAKE &&
            t->porf.at[r->thread] < r->index)
            m.node[r->node].is_wanted = true;
    }
}

/* Change the last decision that has something left. False: the search is over. */
bool m_backtrack(void)
{
    for (; m.nodes > 0; m.nodes--) {
        struct m_node *n = &m.node[m.nodes - 1];
        if (n->is_deferring)
            continue;
        if (n->pick + 1 < n->count) {
            n->pick++;
            return true;
        }
        if (!n->is_wanted || !n->can_defer || BZ_BROKEN(23))
            continue;
        if (m.bound != M_NONE && n->defers_before >= m.bound) {
            m.bound_hit = true;
            continue;
        }
        n->is_deferring = true;
        note_branching(n->at);
        return true;
    }
    return false;
}

/* ---- threads ---- */

static void switch_to(int next)
{
    int from = m.current;
    m.current = next;
    if (from != next)
        m_coro_switch(&m.thread[from].coro, &m.thread[next].coro);
}

static int next_by_turn(void)
{
    for (int i = 1; i <= m.threads; i++) {
        int next = (m.current + i - 1) % m.threads + 1;
        if (m.thread[next].state == M_RUNNABLE)
            return next;
    }
    return M_NONE;
}

static int next_by_priority(void)
{
    int best = M_NONE;
    for (int i = 1; i <= m.threads; i++)
        if (m.thread[i].state == M_RUNNABLE &&
            (best == M_NONE || m.thread[i].priority > m.thread[best].priority))
            best = i;
    return best;
}

static int next_by_script(void)
{
    while (m.script_at < m.script_length && m.script[m.script_at].is_fence)
        m_barrier_fence_of(m.script[m.script_at].thread);
    if (m.script_at >= m.script_length)
        return next_by_turn();
    int next = m.script[m.script_at].thread;
    if (next > m.threads || m.thread[next].state != M_RUNNABLE)
        m_fail(M_FAULT_LIMIT, NULL, "the replay does not fit this program");
    return next;
}

static int next_thread(void)
{
    switch (m.mode) {
    case M_RANDOM:
        return next_by_priority();
    case M_REPLAY:
        return next_by_script();
    default:
        return next_by_turn();
    }
}

/* No thread can continue: the end, a wall of the search itself, or a bug. */
static void nobody_can_run(void)
{
    int waiting = 0, spinning = 0, asleep = 0, timed = 0, first = M_NONE;
    for (int i = 1; i <= m.threads; i++) {
        const struct m_thread *t = &m.thread[i];
        waiting += t->state == M_WAITING;
        spinning += t->state == M_SPINNING;
        timed += t->state == M_WAITING && t->is_timed;
        asleep += t->state == M_ASLEEP || t->state == M_ASLEEP_BARRIER || t->state == M_FENCING;
        if (first == M_NONE && t->state == M_WAITING)
            first = i;
    }
    if (asleep > 0 || timed > 0)
        m_stop(M_END_PRUNED);
    if (waiting == 0 && spinning == 0) { /* all done */
        switch_to(0);
        return;
    }
    if (waiting == 0)
        m_fail(M_FAULT_LIVELOCK, NULL,
               "every thread that is left spins on what nobody will store any more");
    const struct m_loc *x = &m.loc[m.thread[first].pending];
    const struct m_event *last = &m.event[x->mo_last];
    if (last->put != m.thread[first].expected)
        m_fail(
            M_FAULT_LOST_WAKEUP, NULL,
            "thread %d sleeps for ever: the word is no longer what it waits on (%llu, it is %llu), "
            "and nobody will wake it",
            first, (unsigned long long)m.thread[first].expected, (unsigned long long)last->put);
    m_fail(M_FAULT_DEADLOCK, NULL, "every thread that is left sleeps (%d) or spins (%d)", waiting,
           spinning);
}

/* The current thread cannot go on, or has ended. Returns when it is runnable again. */
void m_block(void)
{
    do {
        int next = next_thread();
        if (next != M_NONE)
            switch_to(next);
        else if (!m_barrier_force())
            nobody_can_run();
    } while (m_me()->state != M_RUNNABLE);
}

/* In the random phase and in a replay another thread may run before every operation. */
static void step_elsewhere(void)
{
    if (m.current == 0 || !m.in_threads || (m.mode == M_REPLAY && m.script_at >= m.script_length))
        return;
    m.steps++;
    if (m.mode == M_RANDOM)
        for (int i = 0; i < 8; i++)
            if (m.change_point[i] == m.steps)
                m_me()->priority = -m.steps;
    for (int next; (next = next_thread()) != m.current && next != M_NONE;)
        switch_to(next);
}

/* Where a debugger stops: before step `step` of a replay. */
__attribute__((noinline)) void m_replay_step(int step)
{
    __asm__ volatile("" ::"r"(step) : "memory");
}

void m_step_begin(void)
{
    if (m.mode != M_SEARCH)
        step_elsewhere();
}

static void thread_entry(void)
{
    m_me()->fn();
    m_thread_ends();
    m_me()->state = M_DONE;
    m_block();
    abort();
}

void m_threads_run(void (*const *fns)(void), int count, const char *names)
{
    if (count < 1 || count > M_THREADS_MAX || m.threads != 0)
        m_fail(M_FAULT_LIMIT, NULL, "m_threads takes 1 to %d threads, once", M_THREADS_MAX);
    struct m_thread *body = &m.thread[0];
    m.threads = count;
    m.thread_names = names;
    m.in_threads = true;
    m.spurious_left = m.set.spurious;
    for (int i = 1; i <= count; i++) {
        struct m_thread *t = &m.thread[i];
        m_thread_reset(t);
        t->hb = t->porf = body->hb;
        t->fn = fns[i - 1];
        t->priority = (int)(m_random() % 1024);
        m_coro_prepare(&t->coro, thread_entry);
    }
    body->state = M_JOINING;
    int next = next_thread();
    switch_to(next == M_NONE ? 1 : next);
    m.in_threads = false;
    m.ended_at = m.events;
    body->state = M_RUNNABLE;
    for (int i = 1; i <= count; i++) {
        m_clock_join(&body->hb, &m.thread[i].hb);
        m_clock_join(&body->porf, &m.thread[i].porf);
    }
}

int m_self(void)
{
    return m.current;
}

/* ---- one execution ---- */

void m_thread_reset(struct m_thread *t)
{
    memset(t, 0, offsetof(struct m_thread, point));
    t->last_read = M_NONE;
}

static void (*the_body)(void);

static void body_entry(void)
{
    the_body();
    m_heap_check_leaks();
    m_stop(M_END_COMPLETE);
}

static void on_crash(int sig)
{
    if (m.end != M_END_NONE) { /* not in an execution: ours */
        signal(sig, SIG_DFL);
        raise(sig);
    }
    m_fail(M_FAULT_CRASH, NULL, "the code under test died of signal %d (%s)", sig, strsignal(sig));
}

/* Stacks for all threads, and a handler that turns a crash into a report. */
static void prepare_once(void)
{
    static bool is_done;
    if (is_done)
        return;
    is_done = true;
    for (int i = 0; i < M_LANES; i++)
        m_coro_init(&m.thread[i].coro, STACK_SIZE);
    static char alternate[64 * 1024];
    sigaltstack(&(stack_t){.ss_sp = alternate, .ss_size = sizeof alternate}, NULL);
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &crash, NULL);
}

/* Run the body once, along the decisions in node[] and then along the first of each kind. */
enum m_end m_execute(void (*body)(void))
{
    prepare_once();
    m_memory_reset();
    m_heap_reset();
    m.barriers = m.threads = m.current = m.nodes_used = m.defers = m.steps = m.script_at = 0;
    m.in_threads = false;
    m.fault = M_FAULT_NONE;
    m.other_event = m.ended_at = M_NONE;
    m.set = (struct m_settings){.spurious = 1, .livelock = 32, .streak = 24};
    m.spurious_left = 0;
    m_thread_reset(&m.thread[0]);
    the_body = body;
    m_coro_prepare(&m.thread[0].coro, body_entry);
    m.end = M_END_NONE;
    m_coro_switch(&m.engine, &m.thread[0].coro);
    m_memory_restore();
    if (m.events > m.longest)
        m.longest = m.events;
    return m.end;
}

struct m_settings *m_settings(void)
{
    return &m.set;
}

/*
 * An execution that ends here keeps the other threads from what they would still have done, and that
 * might have asked for a deferral. So ask for one: of the last thing this thread did, so that they
 * get to run in its stead.
 */
void m_ignore(void)
{
    if (m.mode == M_SEARCH && m_me()->last_read != M_NONE)
        m.node[m_me()->last_read].is_wanted = true;
    m_stop(M_END_PRUNED);
}

void m_assert_failed(const char *file, int line, const char *cond)
{
    static struct m_site at;
    at = (struct m_site){.file = file, .line = line, .expr = cond};
    m_fail(M_FAULT_ASSERT, &at, "%s", cond);
}

void bz_model_fail(const char *text)
{
    m_fail(M_FAULT_ASSERT, NULL, "%s", text);
}
