/*
 * sc.c - the seq_cst operations must admit a single total order: RC11's condition.
 *
 * The order itself is never built. RC11 (Lahav and others, "Repairing sequential consistency in
 * C/C++11", which C++20 adopted) says which pairs of seq_cst operations it would have to contain,
 * and asks that these, `psc`, have no cycle:
 *
 *   scb  = po  U  po!=loc ; hb ; po!=loc  U  hb|loc  U  mo  U  rb
 *   psc  = ([SC] U [F]; hb?) ; scb ; ([SC] U hb?; [F])   U   [F] ; (hb U hb; eco; hb) ; [F]
 *
 * where [SC] are the seq_cst accesses and fences, [F] the fences. The relation rb goes from a read to
 * the stores after the one it read, eco = (rf U mo U rb)+, and po!=loc leads to another location.
 * There are an older and a stronger rule. C11's rule is a total order consistent with hb, which
 * real compilers for POWER and ARM do not keep. "Every interleaving of the seq_cst operations" is
 * what a checker gets by executing them in an order. Ours is the one that allows most of the three,
 * and what must be shown of a program is that it survives everything allowed.
 *
 * Called only after a choice that was not the newest (ops.c): such a choice alone can order a new
 * event before an old one. The number of seq_cst operations in a model test is small, so a matrix
 * of bits and its closure are cheap. To avoid work that is quadratic in all events, each fence and
 * location has two positions: the oldest accessed after the fence, and the newest accessed before
 * it.
 */
#include "engine.h"

#define SC_MAX 64

/* Positions in a location's modification order around a fence. */
struct reach {
    int16_t lo, lo_write;      /* oldest touched, oldest written, after the fence */
    int16_t hi_read, hi_write; /* newest read, newest written, before it */
};

static struct {
    int count;
    int16_t event[SC_MAX];
    uint64_t edge[SC_MAX];
    struct reach reach[SC_MAX][M_LOCS_MAX];
    int16_t position[M_EVENTS_MAX]; /* of the store an access wrote or read */
    int16_t previous[M_EVENTS_MAX]; /* in its thread, or M_NONE */
    int16_t next[M_EVENTS_MAX];
} sc;

static bool is_access(const struct m_event *e)
{
    return e->kind != M_FIRST && (e->is_write || e->rf != M_NONE);
}

static bool is_fence(const struct m_event *e)
{
    return e->kind == M_FENCE || e->kind == M_BARRIER_BEGIN || e->kind == M_BARRIER_FENCE ||
           e->kind == M_BARRIER_END;
}

static bool hb(const struct m_event *a, const struct m_event *b)
{
    return a != b && m_before(a, &b->hb);
}

static void number_stores(void)
{
    for (int i = 0; i < m.locs; i++) {
        int16_t position = 0;
        for (int16_t s = m.loc[i].mo_first; s != M_NONE; s = m.event[s].mo_next)
            sc.position[s] = position++;
    }
}

/* Positions, neighbours in the thread, and the list of seq_cst operations. */
static void survey(void)
{
    int16_t last[M_LANES];
    for (int i = 0; i < M_LANES; i++)
        last[i] = M_NONE;
    number_stores();
    sc.count = 0;
    for (int i = 0; i < m.events; i++) {
        const struct m_event *e = &m.event[i];
        if (e->kind == M_FIRST)
            continue;
        if (!e->is_write && e->rf != M_NONE)
            sc.position[i] = sc.position[e->rf];
        if (e->order == BZ_SEQCST && sc.count == SC_MAX)
            m_fail(M_FAULT_LIMIT, e->at, "more than %d seq_cst operations", SC_MAX);
        if (e->order == BZ_SEQCST)
            sc.event[sc.count++] = (int16_t)i;
        sc.previous[i] = last[e->thread];
        sc.next[i] = M_NONE;
        if (last[e->thread] != M_NONE)
            sc.next[last[e->thread]] = (int16_t)i;
        last[e->thread] = (int16_t)i;
    }
}

static void reach_add(struct reach *r, const struct m_event *e, int16_t position, bool is_after)
{
    if (is_after) {
        r->lo = position < r->lo ? position : r->lo;
        if (e->is_write)
            r->lo_write = position < r->lo_write ? position : r->lo_write;
    } else if (e->is_write) {
        r->hi_write = position > r->hi_write ? position : r->hi_write;
    } else {
        r->hi_read = position > r->hi_read ? position : r->hi_read;
    }
}

static void survey_fence(int f)
{
    const struct m_event *fence = &m.event[sc.event[f]];
    for (int i = 0; i < m.locs; i++)
        sc.reach[f][i] = (struct reach){INT16_MAX, INT16_MAX, -1, -1};
    for (int i = 0; i < m.events; i++) {
        const struct m_event *e = &m.event[i];
        if (!is_access(e))
            continue;
        if (hb(fence, e))
            reach_add(&sc.reach[f][e->loc], e, sc.position[i], true);
        if (hb(e, fence))
            reach_add(&sc.reach[f][e->loc], e, sc.position[i], false);
    }
}

/* [F] ; (hb U hb; eco; hb) ; [F] */
static bool fence_to_fence(int a, int b)
{
    if (hb(&m.event[sc.event[a]], &m.event[sc.event[b]]))
        return true;
    for (int i = 0; i < m.locs; i++) {
        const struct reach *from = &sc.reach[a][i], *to = &sc.reach[b][i];
        if (from->lo < to->hi_read || from->lo < to->hi_write || from->lo_write <= to->hi_read)
            return true;
    }
    return false;
}

/* Is there an access to loc that happens after a and before b? */
static bool access_between(const struct m_event *a, const struct m_event *b, int loc)
{
    if (!hb(a, b))
        return false;
    for (int i = 0; i < m.events; i++) {
        const struct m_event *e = &m.event[i];
        if (is_access(e) && e->loc == loc && hb(a, e) && hb(e, b))
            return true;
    }
    return false;
}

/* [access] ; scb ; hb? ; [F]. All that begins with a step in program order is one clock lane. */
static bool access_to_fence(int a, int b)
{
    const struct m_event *from = &m.event[sc.event[a]], *to = &m.event[sc.event[b]];
    return to->hb.at[from->thread] > from->index ||
           sc.position[sc.event[a]] < sc.reach[b][from->loc].hi_write ||
           access_between(from, to, from->loc);
}

/* [F] ; hb? ; scb ; [access] */
static bool fence_to_access(int a, int b)
{
    const struct m_event *from = &m.event[sc.event[a]], *to = &m.event[sc.event[b]];
    int16_t previous = sc.previous[sc.event[b]];
    return (previous != M_NONE && m_before(from, &m.event[previous].hb)) ||
           (to->is_write && sc.reach[a][to->loc].lo < sc.position[sc.event[b]]) ||
           access_between(from, to, to->loc);
}

/* The nearest operation of the same thread, forward or back, that is on something else. */
static const struct m_event *elsewhere(int16_t i, const int16_t *step)
{
    int16_t loc = m.event[i].loc;
    for (i = step[i]; i != M_NONE; i = step[i]) {
        const struct m_event *e = &m.event[i];
        if (is_fence(e) || (e->loc != M_NONE && e->loc != loc && e->kind != M_WAKE))
            return e;
    }
    return NULL;
}

/* scb between two accesses. */
static bool access_to_access(int a, int b)
{
    int16_t from = sc.event[a], to = sc.event[b];
    const struct m_event *x = &m.event[from], *y = &m.event[to];
    if (x->thread == y->thread)
        return x->index < y->index;
    if (x->loc == y->loc)
        return hb(x, y) || (y->is_write && sc.position[from] < sc.position[to]);
    if (!hb(x, y))
        return false;
    const struct m_event *out = elsewhere(from, sc.next), *in = elsewhere(to, sc.previous);
    return out != NULL && in != NULL && hb(out, in);
}

static bool has_edge(int a, int b)
{
    bool from_fence = is_fence(&m.event[sc.event[a]]), to_fence = is_fence(&m.event[sc.event[b]]);
    if (from_fence && to_fence)
        return fence_to_fence(a, b);
    if (from_fence)
        return fence_to_access(a, b);
    return to_fence ? access_to_fence(a, b) : access_to_access(a, b);
}

static bool has_cycle(void)
{
    for (int k = 0; k < sc.count; k++)
        for (int i = 0; i < sc.count; i++)
            if (sc.edge[i] >> k & 1)
                sc.edge[i] |= sc.edge[k];
    for (int i = 0; i < sc.count; i++)
        if (sc.edge[i] >> i & 1)
            return true;
    return false;
}

bool m_sc_consistent(void)
{
    if (BZ_BROKEN(24))
        return true;
    survey();
    for (int i = 0; i < sc.count; i++)
        if (is_fence(&m.event[sc.event[i]]))
            survey_fence(i);
    for (int a = 0; a < sc.count; a++) {
        sc.edge[a] = 0;
        for (int b = 0; b < sc.count; b++)
            if (a != b && has_edge(a, b))
                sc.edge[a] |= UINT64_C(1) << b;
    }
    return !has_cycle();
}
