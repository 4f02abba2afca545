/*
 * memory.c - what a load may return and where a store may land: C11's memory, as RC11 repairs it.
 *
 * An execution is a graph of events. Each location has its *modification order* (mo): a chain of
 * all stores to it, which every thread agrees on. A load takes its value from one store of the
 * chain (rf, reads from), not necessarily the newest; a store enters the chain, not necessarily at
 * its end. Which places are open is decided by what the thread already knows:
 *
 * hb    happens-before, kept as vector clocks. An acquiring load of a releasing store joins the
 *       store's clock. A release sequence is C++20's: only RMWs carry it on, a later relaxed store of
 *       the same thread does not. (C11 said it did. Ours is the weaker rule, so what passes here is
 *       right under both.) Fences as usual: what a relaxed load would have acquired waits in `acq`
 *       for an acquire fence; a relaxed store hands out what the thread knew at its last release
 *       fence, `rel`.
 * floor The newest store of the chain that was written, or read, by anything that happens before
 *       the access. Nothing older may be read (CoRR, CoWR), and a store lands after it (CoWW, CoRW).
 *       One comparison finds it: each store keeps in `seen` the first event of each thread that
 *       touched it.
 * RMW   An RMW lands right after the store it read, and nothing may come between them later; so two
 *       RMWs never read the same store.
 * SC    sc.c: the seq_cst operations must admit a single total order.
 *
 * What is not here: load buffering. A load reads only stores that were executed before it, so a
 * value cannot depend on itself, and po U rf has no cycle (RC11's own restriction). Hardware that
 * lets a load overtake a later store of its thread (ARM, POWER) shows outcomes of that kind for
 * relaxed accesses; they are out of scope.
 *
 * porf  is hb's big sister: joined on every rf, whatever the orders. It says what an event depends
 *       on, which the search needs to know (explore.c) and hb must not.
 *
 * Real memory holds the newest store of the chain at all times; after the threads have ended that
 * is the only one the body can read. A location's first sight takes what real memory holds as a
 * store that happens before everything, and the end of the execution puts that back.
 */
#include "engine.h"

#define SLOTS 1024 /* of the table from addresses to locations; a power of two */

static struct {
    uintptr_t addr;
    uint32_t generation;
    int16_t loc;
} slot[SLOTS];

/* By cases: a memcpy of unknown size is a call, and these are done millions of times. */
static uint64_t memory_get(uintptr_t addr, size_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)addr;
    case 2:
        return *(const uint16_t *)addr;
    case 4:
        return *(const uint32_t *)addr;
    case 8:
        return *(const uint64_t *)addr;
    default:
        return 0; /* a structure: only plain fields may be one, and those have no history */
    }
}

void m_memory_put(struct m_loc *x, uint64_t value)
{
    switch (x->size) {
    case 1:
        *(uint8_t *)x->addr = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)x->addr = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)x->addr = (uint32_t)value;
        break;
    case 8:
        *(uint64_t *)x->addr = value;
        break;
    default:
        break;
    }
}

void m_memory_reset(void)
{
    m.generation++;
    m.events = 0;
    m.locs = 0;
    m.sc_events = 0;
}

void m_memory_restore(void)
{
    for (int i = 0; i < m.locs; i++)
        m_memory_put(&m.loc[i], m.loc[i].original);
}

static struct m_loc *loc_new(uintptr_t addr, size_t size, struct m_site *at)
{
    if (m.locs == M_LOCS_MAX)
        m_fail(M_FAULT_LIMIT, at, "more than %d locations: make the test smaller", M_LOCS_MAX);
    struct m_loc *x = &m.loc[m.locs++];
    const union m_clock none = {{0}};
    x->addr = addr;
    x->size = (uint8_t)(size <= 8 ? size : 9);
    x->plain_read = x->read = x->written = x->wake_hb = none;
    x->mo_first = x->mo_last = x->accesses = x->plain_write = M_NONE;
    x->block = m_heap_find(addr);
    x->original = memory_get(addr, size);
    x->at = at;
    return x;
}

struct m_loc *m_loc_of(const volatile void *p, size_t size, struct m_site *at)
{
    uintptr_t addr = (uintptr_t)p;
    for (uint32_t i = (uint32_t)((addr >> 2) * 0x9E3779B1u) >> 22;; i++) {
        i &= SLOTS - 1;
        if (slot[i].generation != m.generation) {
            struct m_loc *x = loc_new(addr, size, at);
            slot[i].generation = m.generation;
            slot[i].addr = addr;
            slot[i].loc = (int16_t)(m.locs - 1);
            return x;
        }
        if (slot[i].addr == addr)
            return &m.loc[slot[i].loc];
    }
}

/* See to it that the chain has a beginning: the store that was there before everything. */
void m_history(struct m_loc *x)
{
    if (x->mo_last != M_NONE)
        return;
    const union m_clock none = {{0}};
    struct m_event *e = &m.event[m.events];
    e->kind = M_FIRST;
    e->thread = e->order = e->outcome = 0;
    e->index = 0;
    e->is_rmw = false;
    e->hb = e->porf = e->rel = none;
    e->got = e->expected = 0;
    e->loc = (int16_t)(x - m.loc);
    e->is_write = true;
    e->rf = e->mo_prev = e->mo_next = e->loc_prev = M_NONE;
    e->node = M_NONE;
    e->put = memory_get(x->addr, x->size);
    e->size = x->size;
    e->at = x->at;
    m_clock_set_never(&e->seen);
    e->seen.at[0] = 0;
    x->mo_first = x->mo_last = (int16_t)m.events++;
}

struct m_event *m_event_new(enum m_kind kind, enum m_order order, struct m_loc *x,
                            const struct m_site *at)
{
    struct m_thread *t = m_me();
    if (m.events >= M_EVENTS_MAX - 2)
        m_fail(M_FAULT_LIMIT, at, "an execution of more than %d operations", M_EVENTS_MAX - 2);
    struct m_event *e = &m.event[m.events++];
    e->kind = (uint8_t)kind;
    e->thread = (uint8_t)m.current;
    e->order = (uint8_t)order;
    e->outcome = M_READS;
    e->is_write = e->is_rmw = false;
    e->index = ++t->index;
    e->loc = x == NULL ? M_NONE : (int16_t)(x - m.loc);
    e->size = x == NULL ? 0 : x->size;
    e->rf = e->mo_prev = e->mo_next = e->loc_prev = M_NONE;
    e->pick = 0;
    e->node = M_NONE;
    e->got = e->put = e->expected = 0;
    e->at = at;
    m_clock_put(&t->hb, m.current, e->index);
    m_clock_put(&t->porf, m.current, e->index);
    if (order == BZ_SEQCST)
        m.sc_events++;
    if (m.mode == M_REPLAY && m.current > 0 && m.in_threads)
        m_replay_step(++m.script_at);
    return e;
}

/* The event's clocks are final: what it acquired is in them. */
void m_event_done(struct m_event *e)
{
    struct m_thread *t = &m.thread[e->thread];
    e->hb = t->hb;
    e->porf = t->porf;
    m_turn_add(e);
}

/* How many stores of its location are newer. */
int m_age(int16_t store)
{
    int age = 0;
    while ((store = m.event[store].mo_next) != M_NONE)
        age++;
    return age;
}

static bool has_room_behind(int16_t store)
{
    int16_t next = m.event[store].mo_next;
    return next == M_NONE || !m.event[next].is_rmw;
}

static int options_of(int16_t s, const struct m_wish *wish, struct m_option *out)
{
    int n = 0;
    bool is_equal = m.event[s].put == wish->expected;
    switch (wish->kind) {
    case M_RMW:
        if (has_room_behind(s))
            out[n++] = (struct m_option){(uint16_t)s, M_WRITES};
        break;
    case M_CAS:
        if (!is_equal)
            out[n++] = (struct m_option){(uint16_t)s, M_READS};
        else if (has_room_behind(s))
            out[n++] = (struct m_option){(uint16_t)s, M_WRITES};
        if (is_equal && wish->is_weak)
            out[n++] = (struct m_option){(uint16_t)s, M_FOR_NO_REASON};
        break;
    case M_WAIT:
        out[n++] = (struct m_option){(uint16_t)s, M_READS};
        if (is_equal && wish->is_weak)
            out[n++] = (struct m_option){(uint16_t)s, M_FOR_NO_REASON};
        break;
    default:
        out[n++] = (struct m_option){(uint16_t)s, M_READS};
    }
    return n;
}

/* The stores that a read may take, newest first: from events `since` on, down to the floor. */
int m_options(const union m_clock *floor, const struct m_loc *x, const struct m_wish *wish,
              int since, struct m_option *out)
{
    int n = 0;
    for (int16_t s = x->mo_last; s != M_NONE && n < M_OPTIONS_MAX - 2; s = m.event[s].mo_prev) {
        if (s >= since)
            n += options_of(s, wish, out + n);
        if (!BZ_BROKEN(20) && m_clock_touches(floor, &m.event[s].seen))
            break;
    }
    return n;
}

/* Where a store may land: behind which stores, newest first. */
int m_places(const union m_clock *floor, const struct m_loc *x, int16_t *after)
{
    int n = 0;
    for (int16_t s = x->mo_last; s != M_NONE && n < M_OPTIONS_MAX - 2; s = m.event[s].mo_prev) {
        if (has_room_behind(s))
            after[n++] = s;
        if (m_clock_touches(floor, &m.event[s].seen))
            break;
    }
    return n;
}

void m_read_from(struct m_event *e, int16_t store)
{
    struct m_thread *t = &m.thread[e->thread];
    struct m_event *s = &m.event[store];
    e->rf = store;
    e->got = s->put;
    m_clock_join(&t->porf, &s->porf);
    if (e->order & BZ_ACQUIRE)
        m_clock_join(&t->hb, &s->rel);
    else
        m_clock_join(&t->acq, &s->rel);
    if (s->seen.at[e->thread] > e->index)
        m_clock_put(&s->seen, e->thread, e->index);
}

static uint64_t cut(uint64_t v, int size)
{
    return size >= 8 ? v : v & ((UINT64_C(1) << (8 * size)) - 1);
}

void m_write_after(struct m_event *e, int16_t after, uint64_t value)
{
    struct m_thread *t = &m.thread[e->thread];
    struct m_loc *x = &m.loc[e->loc];
    int16_t id = (int16_t)(e - m.event);
    e->is_write = true;
    e->put = cut(value, x->size);
    e->rel = (e->order & BZ_RELEASE) ? t->hb : t->rel;
    if (e->is_rmw && !BZ_BROKEN(21))
        m_clock_join(&e->rel, &m.event[e->rf].rel);
    m_clock_set_never(&e->seen);
    m_clock_put(&e->seen, e->thread, e->index);
    e->mo_prev = after;
    e->mo_next = after == M_NONE ? x->mo_first : m.event[after].mo_next;
    *(after == M_NONE ? &x->mo_first : &m.event[after].mo_next) = id;
    *(e->mo_next == M_NONE ? &x->mo_last : &m.event[e->mo_next].mo_prev) = id;
    if (e->mo_next == M_NONE)
        m_memory_put(x, e->put);
    m_news(e);
}

void m_fence_effect(struct m_thread *t, enum m_order order)
{
    if (order & BZ_ACQUIRE)
        m_clock_join(&t->hb, &t->acq);
    if (order & BZ_RELEASE)
        t->rel = t->hb;
}
