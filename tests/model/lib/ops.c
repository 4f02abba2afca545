/*
 * ops.c - the operations of base/bz_atomic.h, each a step of the model.
 *
 * Every operation has the same steps. The scheduler of the random phase or a replay may run another
 * thread first (m_step_begin). A pending fence of another thread's membarrier may be executed
 * (m_barrier_point). The search decides which store is read or where the store lands. The event
 * enters the graph, and races and the seq_cst order are checked. A read that the search defers
 * sleeps here, in m_read_decide().
 */
#include <errno.h>
#include <string.h>

#include "engine.h"

/* A choice that was not the newest may have closed a cycle in the order of the seq_cst operations.
 * The newest never does: nothing is ordered after it yet. */
static void check_sc(const struct m_event *e)
{
    bool is_newest = e->is_write ? e->mo_next == M_NONE : m.event[e->rf].mo_next == M_NONE;
    if (is_newest || m.sc_events < 2 || m_sc_consistent())
        return;
    m.inconsistent++;
    m_stop(M_END_PRUNED);
}

/*
 * A thread that does nothing but read what it has read before waits for something, and does not say
 * so. If there is a newer store that it has not read, this is no error: it would see it in the end,
 * and the execution differs from others only by idle turns (wait.c).
 */
static void count_streak(const struct m_event *e)
{
    struct m_thread *t = m_me();
    if (e->is_write || m.event[e->rf].seen.at[e->thread] == e->index) {
        t->streak = 0;
        t->declines = false;
        return;
    }
    t->declines |= m.event[e->rf].mo_next != M_NONE;
    bool is_replay = m.mode == M_REPLAY && m.script_at < m.script_length;
    if (++t->streak <= m.set.streak || m.current == 0 || is_replay)
        return;
    if (t->declines)
        m_ignore();
    m_fail(M_FAULT_SPIN, e->at,
           "%d reads in a row brought nothing new, without m_relax() or os_relax() between them",
           t->streak);
}

static struct m_option replay_option(const struct m_option *o, int n, struct m_site *at)
{
    const struct m_step *s = &m.script[m.script_at];
    for (int i = 0; i < n; i++)
        if (m_age((int16_t)o[i].store) == s->choice &&
            (o[i].outcome == M_FOR_NO_REASON) == s->is_odd)
            return o[i];
    m_fail(M_FAULT_LIMIT, at, "the replay does not fit this program");
}

/*
 * Which store this read takes. In the search the thread may be put to sleep first, until there is a
 * new store; it then chooses among the new ones alone (explore.c).
 */
struct m_option m_read_decide(struct m_loc *x, const struct m_wish *wish, struct m_site *at,
                              int32_t *node)
{
    struct m_thread *t = m_me();
    struct m_option o[M_OPTIONS_MAX];
    t->since = 0;
    for (;;) {
        union m_clock floor = t->hb;
        if (wish->kind == M_WAIT)
            m_clock_join(&floor, &x->wake_hb);
        int n = m_options(&floor, x, wish, t->since, o);
        if (m.mode == M_REPLAY && m.script_at < m.script_length && m.in_threads && m.current > 0)
            return replay_option(o, n, at);
        int pick = n == 0 ? M_NONE : m_choose_or_defer(n, at);
        if (pick != M_NONE) {
            t->last_read = *node = m.last_node;
            return o[pick];
        }
        if (n > 0)
            t->since = m.events;
        t->state = M_ASLEEP;
        t->pending = (int16_t)(x - m.loc);
        t->pending_kind = (uint8_t)wish->kind;
        m_block();
        t->pending_kind = M_FIRST;
    }
}

struct m_loc *m_begin(const volatile void *p, size_t size, struct m_site *at)
{
    m_step_begin();
    if (m.uses_barrier)
        m_barrier_point(at);
    return m_loc_of(p, size, at);
}

/* A read event is in the chain of its location, for the stores to come to find. */
static void chain(struct m_event *e)
{
    struct m_loc *x = &m.loc[e->loc];
    e->loc_prev = x->accesses;
    x->accesses = (int16_t)(e - m.event);
}

uint64_t m_load(const volatile void *p, size_t size, enum m_order o, struct m_site *at)
{
    struct m_loc *x = m_begin(p, size, at);
    m_history(x);
    int32_t node = M_NONE;
    struct m_option r = m_read_decide(x, &(struct m_wish){.kind = M_LOAD}, at, &node);
    struct m_event *e = m_event_new(M_LOAD, o, x, at);
    m_race_atomic(x, false, at);
    e->node = node;
    chain(e);
    m_read_from(e, (int16_t)r.store);
    m_event_done(e);
    m_watch_read(x, (int16_t)r.store);
    count_streak(e);
    check_sc(e);
    return e->got;
}

static int16_t place_decide(struct m_loc *x, struct m_site *at)
{
    int16_t after[M_OPTIONS_MAX];
    int n = m_places(&m_me()->hb, x, after);
    if (m.mode == M_REPLAY && m.script_at < m.script_length && m.in_threads && m.current > 0) {
        for (int i = 0; i < n; i++)
            if (m_age(after[i]) == m.script[m.script_at].choice)
                return after[i];
        m_fail(M_FAULT_LIMIT, at, "the replay does not fit this program");
    }
    return after[m_choose(n, at)];
}

void m_store(volatile void *p, size_t size, uint64_t v, enum m_order o, struct m_site *at)
{
    struct m_loc *x = m_begin(p, size, at);
    m_history(x);
    int16_t after = place_decide(x, at);
    struct m_event *e = m_event_new(M_STORE, o, x, at);
    m_race_atomic(x, true, at);
    m_flag_readers(x);
    m_write_after(e, after, v);
    m_event_done(e);
    m_me()->streak = 0;
    check_sc(e);
}

static uint64_t apply(enum m_rmw_op op, uint64_t old, uint64_t v)
{
    switch (op) {
    case M_OP_add:
        return old + v;
    case M_OP_sub:
        return old - v;
    case M_OP_or:
        return old | v;
    case M_OP_and:
        return old & v;
    case M_OP_xchg:
        break;
    }
    return v;
}

/* An event that reads `r` and, if it says so, writes right behind it. */
static void read_and_write(struct m_event *e, struct m_option r, uint64_t put)
{
    struct m_loc *x = &m.loc[e->loc];
    chain(e);
    e->outcome = (uint8_t)r.outcome;
    m_race_atomic(x, r.outcome == M_WRITES, (struct m_site *)(uintptr_t)e->at);
    m_flag_readers(x); /* even if it failed: another order might have let it win */
    m_read_from(e, (int16_t)r.store);
    if (r.outcome == M_WRITES) {
        e->is_rmw = true;
        m_write_after(e, (int16_t)r.store, put);
    }
    m_event_done(e);
    m_watch_read(x, (int16_t)r.store);
    count_streak(e);
    check_sc(e);
}

uint64_t m_rmw(volatile void *p, size_t size, enum m_rmw_op op, uint64_t v, enum m_order o,
               struct m_site *at)
{
    struct m_loc *x = m_begin(p, size, at);
    m_history(x);
    int32_t node = M_NONE;
    struct m_option r = m_read_decide(x, &(struct m_wish){.kind = M_RMW}, at, &node);
    struct m_event *e = m_event_new(M_RMW, o, x, at);
    e->node = node;
    e->rmw_op = (uint8_t)op;
    read_and_write(e, r, apply(op, m.event[r.store].put, v));
    return e->got;
}

bool m_cas(volatile void *p, size_t size, void *expected, uint64_t v, enum m_order won,
           enum m_order lost, bool is_weak, struct m_site *at)
{
    struct m_loc *x = m_begin(p, size, at);
    m_history(x);
    uint64_t want = 0;
    memcpy(&want, expected, size);
    int32_t node = M_NONE;
    struct m_wish wish = {
        .kind = M_CAS, .is_weak = is_weak && m.spurious_left > 0, .expected = want};
    struct m_option r = m_read_decide(x, &wish, at, &node);
    struct m_event *e = m_event_new(M_CAS, r.outcome == M_WRITES ? won : lost, x, at);
    e->node = node;
    e->expected = want;
    if (r.outcome == M_FOR_NO_REASON)
        m.spurious_left--;
    read_and_write(e, r, v);
    if (!e->is_write)
        memcpy(expected, &e->got, size);
    return e->is_write;
}

void m_fence(enum m_order o, struct m_site *at)
{
    m_step_begin();
    if (m.uses_barrier)
        m_barrier_point(at);
    struct m_event *e = m_event_new(M_FENCE, o, NULL, at);
    m_fence_effect(m_me(), o);
    m_event_done(e);
}

/* Before another thread can see the location: a plain write that begins or continues its
 * history. */
void m_init(volatile void *p, size_t size, uint64_t v, struct m_site *at)
{
    struct m_loc *x = m_begin(p, size, at);
    struct m_event *e = m_event_new(M_INIT, BZ_RELAXED, x, at);
    m_race_plain(x, true, at, "an atomic is initialised while others use it");
    m_write_after(e, x->mo_last, v);
    m_event_done(e);
}

const volatile void *m_get(const volatile void *p, size_t size, struct m_site *at)
{
    struct m_loc *x = m_begin(p, size, at);
    struct m_event *e = m_event_new(M_GET, BZ_RELAXED, x, at);
    memcpy(&e->got, (const void *)(uintptr_t)p, size <= 8 ? size : 0);
    m_race_plain(x, false, at, "a plain read meets a write");
    m_event_done(e);
    return p;
}

volatile void *m_set(volatile void *p, size_t size, struct m_site *at)
{
    struct m_loc *x = m_begin(p, size, at);
    struct m_event *e = m_event_new(M_SET, BZ_RELAXED, x, at);
    m_race_plain(x, true, at, "a plain write meets another access");
    m_event_done(e);
    m_me()->set_event = (int)(e - m.event);
    return p;
}

void m_set_done(void)
{
    struct m_event *e = &m.event[m_me()->set_event];
    struct m_loc *x = &m.loc[e->loc];
    e->pick = 1; /* done: the value is known */
    if (x->size <= 8)
        memcpy(&e->put, (const void *)x->addr, x->size);
    m_turn_add(e);
    if (x->mo_last != M_NONE) /* the field is an atomic at other times */
        m_write_after(e, x->mo_last, e->put);
}

void m_note_at(const char *text, uint64_t value, struct m_site *at)
{
    (void)text; /* it is the place's expression, too */
    m_step_begin();
    struct m_event *e = m_event_new(M_NOTE, BZ_RELAXED, NULL, at);
    e->got = value;
    m_event_done(e);
}
