/*
 * wait.c - waiting in its three forms: spinning, sleeping on a word, and the barrier of all threads.
 *
 * Spinning. A loop that waits for another thread calls m_relax() each time round. If nothing it
 * read since the last call has a newer store, going round again can bring nothing: the thread stops
 * until there is one (so an endless wait is a finite execution). If there is a newer store but the
 * loop makes the same turn again, with the same reads and writes, the execution differs from a
 * shorter one only by an idle turn: it is pruned. That is also the fairness rule: a store becomes
 * visible in the end. A loop that gives up after n turns must be told about (spin_tries), since
 * those rules would never let it. Threads that all stand in m_relax and none of which can expect
 * news are a livelock; so is one that goes round more often than the bound, with stores each time.
 *
 * Sleep words. wait compares the word and goes to sleep in one step, under the system's lock of
 * that word, which wake takes too. So waits and wakes on a word are totally ordered, and a wait
 * after a wake sees the waker's writes to *this word*. There are no other guarantees: neither call
 * synchronises anything else, so code that needs more must order its own accesses. A wait may
 * otherwise read a stale value, and any of several sleepers may be woken. A wait may return for no
 * reason (settings.spurious), one with a deadline at any moment. For the search a wait is a read
 * that a store or a wake can race with. A wake is a read that a wait can race with, or another wake
 * that takes its sleeper.
 *
 * membarrier is: a seq_cst fence here; one in every other thread, at some moment after that,
 * ordered after the first; another here when all have been. "At some moment" is any place in the
 * other thread's program. If it has not got there yet, it is a decision before each of its
 * operations: now or later. If it is past the place already, the place had to wait for the start of
 * the membarrier. That is the same deferral as for a read, requested by the start of a membarrier
 * that does not depend on events after the place. So in tests that use it every operation is
 * preceded by a decision: it grows with the number of operations to the number of threads. Keep
 * them small.
 */
#include <errno.h>
#include <string.h>

#include "engine.h"

/* ---- spinning ---- */

static bool is_newer(int16_t store, int16_t than)
{
    for (int16_t s = m.event[store].mo_prev; s != M_NONE; s = m.event[s].mo_prev)
        if (s == than)
            return true;
    return false;
}

void m_watch_read(struct m_loc *x, int16_t store)
{
    struct m_thread *t = m_me();
    int16_t loc = (int16_t)(x - m.loc);
    for (int i = 0; i < t->watches; i++)
        if (t->watch[i].loc == loc)
            return; /* the first of a turn counts: anything newer may change the next turn */
    if (t->watches < M_WATCH_MAX)
        t->watch[t->watches++] = (struct m_watch){loc, store};
    else
        t->watches_too_many = true;
}

/* A digest of the thread's operations: two turns of a loop with the same digest did the same. A
 * store of its own counts by its value, a store of another thread by its identity. */
void m_turn_add(const struct m_event *e)
{
    struct m_thread *t = &m.thread[e->thread];
    if (e->thread == 0)
        return; /* the body does not spin */
    bool is_foreign = e->rf != M_NONE && m.event[e->rf].thread != e->thread;
    uint64_t h = (uint64_t)(uintptr_t)e->at ^ (uint64_t)e->kind << 56 ^ (uint64_t)e->outcome << 52;
    h ^= e->got * 0xBF58476D1CE4E5B9u;
    h += e->put * 0x94D049BB133111EBu;
    h ^= ((uint64_t)(uint16_t)e->loc << 32) + (is_foreign ? (uint64_t)e->rf : 0);
    t->turn = (t->turn ^ (t->turn >> 29) ^ h) * 0x9E3779B97F4A7C15u;
}

/* Has another thread stored to something it read, since? */
static bool has_news(const struct m_thread *t)
{
    for (int i = 0; i < t->watches; i++) {
        int16_t s = t->watch[i].store;
        while ((s = m.event[s].mo_next) != M_NONE)
            if (&m.thread[m.event[s].thread] != t)
                return true;
    }
    return false;
}

/* A store is there: wake who waits for one. */
void m_news(struct m_event *store)
{
    for (int i = 1; i <= m.threads; i++) {
        struct m_thread *t = &m.thread[i];
        if (t->state == M_ASLEEP && t->pending == store->loc && t->pending_kind != M_WAKE)
            t->state = M_RUNNABLE;
        if (t->state != M_SPINNING)
            continue;
        for (int k = 0; k < t->watches; k++)
            if (t->watch[k].loc == store->loc &&
                is_newer((int16_t)(store - m.event), t->watch[k].store))
                t->state = M_RUNNABLE;
    }
}

static bool replay_goes_on(void)
{
    for (int i = m.script_at; i < m.script_length; i++)
        if (m.script[i].thread == m.current && !m.script[i].is_fence)
            return true;
    return false;
}

/* May it go round once more though there is no news? */
static bool tries_on(struct m_thread *t, struct m_site *at)
{
    if (m.mode == M_REPLAY)
        return replay_goes_on();
    if (t->tries >= m.set.spin_tries || m_choose(2, at) == 0)
        return false;
    t->tries++;
    return true;
}

void m_relax_at(struct m_site *at)
{
    m_step_begin();
    if (m.uses_barrier)
        m_barrier_point(at);
    struct m_thread *t = m_me();
    m_event_done(m_event_new(M_RELAX, BZ_RELAXED, NULL, at));
    t->streak = 0;
    if (m.current == 0 || t->watches == 0)
        return;
    if (t->watches_too_many)
        m_fail(M_FAULT_LIMIT, at, "more than %d locations in one turn of a spin", M_WATCH_MAX);
    if (++t->relaxes > m.set.livelock)
        m_fail(M_FAULT_LIVELOCK, at, "thread %d went round %d times and got nowhere", m.current,
               t->relaxes - 1);
    if (t->waited_for_news && t->turn == t->old_turn && m.mode != M_REPLAY)
        m_ignore();
    t->waited_for_news = !tries_on(t, at);
    if (t->waited_for_news && !has_news(t)) {
        t->state = M_SPINNING;
        m_block();
    }
    t->old_turn = t->turn;
    t->turn = 0;
    t->watches = 0;
    t->watches_too_many = false;
}

/* ---- sleep words ---- */

/*
 * Which of two operations on a word depend on their order: a wait and a wake; and two wakes if the
 * first roused a thread that the other might have roused instead. Two waits do not.
 */
static bool depends_on(enum m_kind kind, const struct m_event *earlier)
{
    if (earlier->kind == M_WAIT)
        return kind == M_WAKE;
    return earlier->kind == M_WAKE && (kind == M_WAIT || earlier->got > 0);
}

/* A wait or wake by the current thread: those that went before it without need. */
static void flag_queue(const struct m_loc *x, enum m_kind kind)
{
    for (int16_t i = x->accesses; i != M_NONE; i = m.event[i].loc_prev) {
        const struct m_event *r = &m.event[i];
        if (r->thread != m.current && r->node != M_NONE && depends_on(kind, r) &&
            m_me()->porf.at[r->thread] < r->index)
            m.node[r->node].is_wanted = true;
    }
}

/* It depends on those of them that came before. */
static void queue_enter(struct m_event *e, struct m_loc *x)
{
    struct m_thread *t = m_me();
    for (int16_t i = x->accesses; i != M_NONE; i = m.event[i].loc_prev)
        if (depends_on((enum m_kind)e->kind, &m.event[i]))
            m_clock_join(&t->porf, &m.event[i].porf);
    e->loc_prev = x->accesses;
    x->accesses = (int16_t)(e - m.event);
}

static void wake_deferred(int16_t loc, enum m_kind kind)
{
    for (int i = 1; i <= m.threads; i++) {
        struct m_thread *t = &m.thread[i];
        if (t->pending_kind != kind || t->pending != loc)
            continue; /* it may be awake already, by a store, and not have come to it */
        if (t->state == M_ASLEEP)
            t->state = M_RUNNABLE;
        t->since = 0; /* the order of wait and wake is new, so every store is */
    }
}

static int wait_sleeps(struct m_loc *x, uint32_t expected, bool is_timed, struct m_site *at)
{
    struct m_thread *t = m_me();
    t->state = M_WAITING;
    t->pending = (int16_t)(x - m.loc);
    t->expected = expected;
    t->is_timed = is_timed;
    m_block();
    m_step_begin();
    struct m_event *e = m_event_new(M_WOKEN, BZ_RELAXED, x, at);
    e->pick = m_me()->woken_by;
    m_event_done(e);
    return 0;
}

int m_word_wait_at(const volatile uint32_t *word, uint32_t expected, bool is_timed,
                   struct m_site *at)
{
    struct m_loc *x = m_begin(word, sizeof *word, at);
    m_history(x);
    struct m_wish wish = {.kind = M_WAIT, .expected = expected};
    wish.is_weak = is_timed || m.spurious_left > 0;
    int32_t node = M_NONE;
    struct m_option r = m_read_decide(x, &wish, at, &node);
    struct m_event *e = m_event_new(M_WAIT, BZ_RELAXED, x, at);
    m_race_atomic(x, false, at);
    e->node = node;
    e->outcome = (uint8_t)r.outcome;
    e->expected = expected;
    flag_queue(x, M_WAIT);
    queue_enter(e, x);
    m_read_from(e, (int16_t)r.store);
    m_event_done(e);
    m_me()->streak = 0;
    wake_deferred(e->loc, M_WAKE);
    if (r.outcome == M_FOR_NO_REASON) {
        m.spurious_left -= !is_timed;
        return is_timed ? -ETIMEDOUT : 0;
    }
    if (e->got != expected)
        return -EAGAIN;
    return wait_sleeps(x, expected, is_timed, at);
}

/* The sleepers on the word, by number: any of them may be woken first, and those after it. */
static int sleepers(int16_t loc, int *lanes)
{
    int n = 0;
    for (int i = 1; i <= m.threads; i++)
        if (m.thread[i].state == M_WAITING && m.thread[i].pending == loc)
            lanes[n++] = i;
    return n;
}

/* Choose the first thread to wake. The search may let another thread fall asleep before. */
static int wake_decide(int16_t loc, int n, struct m_site *at, int32_t *node)
{
    struct m_thread *t = m_me();
    int lanes[M_LANES];
    t->since = 0;
    for (;;) {
        int found = sleepers(loc, lanes);
        if (m.mode == M_REPLAY && m.script_at < m.script_length && m.current > 0)
            return m.script[m.script_at].choice;
        int pick = m_choose_or_defer(found > n ? found : 1, at);
        *node = m.last_node;
        if (pick != M_NONE)
            return pick;
        t->state = M_ASLEEP;
        t->pending = loc;
        t->pending_kind = M_WAKE;
        m_block();
        t->pending_kind = M_FIRST;
    }
}

int m_word_wake_at(const volatile uint32_t *word, int n, struct m_site *at)
{
    struct m_loc *x = m_begin(word, sizeof *word, at);
    m_history(x);
    int32_t node = M_NONE;
    int16_t loc = (int16_t)(x - m.loc);
    int first = wake_decide(loc, n, at, &node);
    struct m_event *e = m_event_new(M_WAKE, BZ_RELAXED, x, at);
    e->node = node;
    e->pick = (int16_t)first;
    flag_queue(x, M_WAKE);
    queue_enter(e, x);
    m_event_done(e);
    m_clock_join(&x->wake_hb, &e->hb);
    wake_deferred(loc, M_WAIT);
    int lanes[M_LANES], found = sleepers(loc, lanes), woken = found < n ? found : n;
    for (int i = 0; i < woken; i++) {
        struct m_thread *t = &m.thread[lanes[(first + i) % found]];
        t->state = M_RUNNABLE;
        t->woken_by = (int16_t)(e - m.event);
        m_clock_join(&t->porf, &e->porf);
    }
    e->got = (uint64_t)woken;
    if (woken > 0)
        wake_deferred(loc, M_WAKE);
    return woken;
}

/* ---- membarrier ---- */

/* The fence of membarrier `b` in thread `lane`, here and now. */
static void fence_for(int lane, int b)
{
    struct m_barrier *barrier = &m.barrier[b];
    struct m_thread *t = &m.thread[lane];
    const struct m_event *begin = &m.event[barrier->begin];
    int back = m.current;
    m.current = lane;
    struct m_event *e = m_event_new(M_BARRIER_FENCE, BZ_SEQCST, NULL, begin->at);
    m_clock_join(&t->hb, &begin->hb);
    m_clock_join(&t->porf, &begin->porf);
    m_fence_effect(t, BZ_SEQCST);
    m_event_done(e);
    m.current = back;
    t->owes &= ~(1u << b);
    m_clock_join(&barrier->hb, &e->hb);
    m_clock_join(&barrier->porf, &e->porf);
    barrier->missing &= ~(1u << lane);
    if (barrier->missing == 0 && m.thread[barrier->caller].state == M_FENCING)
        m.thread[barrier->caller].state = M_RUNNABLE;
}

/* A replay says so. */
void m_barrier_fence_of(int lane)
{
    if (lane > m.threads || m.thread[lane].owes == 0)
        m_fail(M_FAULT_LIMIT, NULL, "the replay does not fit this program");
    fence_for(lane, __builtin_ctz(m.thread[lane].owes));
}

/* The place of a fence is here: sleep until the membarrier it belongs to begins. One that begins may
 * also be another, whose fence belongs elsewhere. */
static void barrier_await(struct m_thread *t, struct m_site *at)
{
    uint32_t old;
    int pick;
    do {
        old = t->owes;
        t->state = M_ASLEEP_BARRIER;
        m_block();
        t->since = 0;
        pick = m_choose_or_defer(1, at);
    } while (pick == M_NONE);
    if (m.last_node != M_NONE)
        m.node[m.last_node].is_wanted = true;
    fence_for(m.current, __builtin_ctz(t->owes & ~old));
}

/* Before an operation: fences this thread owes, and the chance to let a membarrier begin first. */
void m_barrier_point(struct m_site *at)
{
    struct m_thread *t = m_me();
    if (m.current == 0 || m.mode == M_REPLAY)
        return;
    for (;;) {
        for (uint32_t left = t->owes; left != 0; left &= left - 1)
            if (m_choose(2, at) == 0)
                fence_for(m.current, __builtin_ctz(left));
        t->since = 0;
        if (m.mode != M_SEARCH)
            return;
        int pick = m_choose_or_defer(1, at);
        if (pick == M_NONE) {
            barrier_await(t, at);
            continue;
        }
        if (m.last_node != M_NONE && t->points < (int)BZ_ARRAY_LEN(t->point)) {
            t->point[t->points].index = (int16_t)(t->index + 1);
            t->point[t->points++].node = m.last_node;
        }
        return;
    }
}

/* The places in other threads that went by without waiting for this membarrier. */
static void flag_points(void)
{
    for (int i = 1; i <= m.threads; i++)
        for (int k = 0; i != m.current && k < m.thread[i].points; k++)
            if (m_me()->porf.at[i] < m.thread[i].point[k].index)
                m.node[m.thread[i].point[k].node].is_wanted = true;
}

static void barrier_begin(int b, struct m_site *at)
{
    struct m_event *e = m_event_new(M_BARRIER_BEGIN, BZ_SEQCST, NULL, at);
    m_fence_effect(m_me(), BZ_SEQCST);
    m_event_done(e);
    flag_points();
    m.barrier[b] =
        (struct m_barrier){.begin = (int16_t)(e - m.event), .caller = (uint8_t)m.current};
    for (int i = 1; i <= m.threads && m.in_threads; i++) {
        if (i == m.current)
            continue;
        m.barrier[b].missing |= 1u << i;
        m.thread[i].owes |= 1u << b;
    }
    for (int i = 1; i <= m.threads; i++)
        if (m.thread[i].state == M_ASLEEP_BARRIER)
            m.thread[i].state = M_RUNNABLE;
}

void m_membarrier_at(struct m_site *at)
{
    m_step_begin();
    m.found_barrier = true;
    if (m.uses_barrier)
        m_barrier_point(at);
    if (m.barriers == M_BARRIERS_MAX)
        m_fail(M_FAULT_LIMIT, at, "more than %d membarriers", M_BARRIERS_MAX);
    int b = m.barriers++;
    barrier_begin(b, at);
    struct m_thread *t = m_me();
    while (m.barrier[b].missing != 0) {
        t->state = M_FENCING;
        m_block();
    }
    m_step_begin();
    struct m_event *e = m_event_new(M_BARRIER_END, BZ_SEQCST, NULL, at);
    m_clock_join(&t->hb, &m.barrier[b].hb);
    m_clock_join(&t->porf, &m.barrier[b].porf);
    m_fence_effect(t, BZ_SEQCST);
    m_event_done(e);
}

/* No thread can run: threads that are stopped, but not by the search, execute their pending fences
 * now. */
bool m_barrier_force(void)
{
    bool did = false;
    for (int i = 1; i <= m.threads; i++) {
        struct m_thread *t = &m.thread[i];
        if (t->state == M_ASLEEP || t->state == M_ASLEEP_BARRIER)
            continue;
        for (; t->owes != 0; did = true)
            fence_for(i, __builtin_ctz(t->owes));
    }
    return did;
}

/* The current thread has nothing more to do, and owes nothing. */
void m_thread_ends(void)
{
    m_step_begin();
    while (m_me()->owes != 0)
        fence_for(m.current, __builtin_ctz(m_me()->owes));
}
