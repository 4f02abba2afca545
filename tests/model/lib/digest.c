/*
 * digest.c - is this execution new? For `--distinct`, which counts different executions.
 *
 * The search visits each graph once, by design; to check that, and that a search with the reduction
 * and one without visit the same ones, graphs are digested to 64 bits and kept in a set. A graph
 * has, for each event by thread and index: its operation, the store it read, and the store it
 * follows in mo. A wake has the waits before it on the same word, a wait the wakes.
 */
#include <stdlib.h>

#include "engine.h"

static uint64_t *set;
static size_t room, used;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

/* An event by a name that does not depend on when it was executed. */
static uint64_t name_of(int16_t i)
{
    if (i == M_NONE)
        return 1;
    const struct m_event *e = &m.event[i];
    return e->kind == M_FIRST ? 2 : 3 + (uint64_t)e->thread * 65536 + (uint64_t)(uint16_t)e->index;
}

/* Waits before a wake, or wakes before a wait. */
static uint64_t queue_before(const struct m_event *e)
{
    uint64_t sum = 0;
    if (e->kind != M_WAIT && e->kind != M_WAKE)
        return 0;
    for (int16_t i = e->loc_prev; i != M_NONE; i = m.event[i].loc_prev)
        if (m.event[i].kind == (e->kind == M_WAIT ? M_WAKE : M_WAIT))
            sum += mix(name_of(i), 7);
    return sum;
}

static uint64_t graph_digest(void)
{
    uint64_t sum = 0; /* of events, so that their order does not count */
    for (int16_t i = 0; i < m.events; i++) {
        const struct m_event *e = &m.event[i];
        if (e->kind == M_FIRST)
            continue;
        uint64_t h = mix(name_of(i), (uint64_t)e->kind << 8 | e->outcome);
        h = mix(h, e->loc == M_NONE ? 0 : m.loc[e->loc].addr);
        h = mix(h, name_of(e->rf));
        h = mix(h, e->is_write ? name_of(e->mo_prev) : 0);
        h = mix(h, e->got ^ (e->put << 1));
        sum += mix(h, e->kind == M_WOKEN ? name_of(e->pick) : queue_before(e));
    }
    return sum == 0 ? 1 : sum;
}

static bool insert(uint64_t *into, size_t size, uint64_t h)
{
    size_t i = h & (size - 1);
    while (into[i] != 0 && into[i] != h)
        i = (i + 1) & (size - 1);
    bool is_new = into[i] == 0;
    into[i] = h;
    return is_new;
}

static void grow(void)
{
    size_t bigger = room == 0 ? 1024 : room * 2;
    uint64_t *fresh = calloc(bigger, sizeof *fresh);
    if (fresh == NULL)
        abort();
    for (size_t i = 0; i < room; i++)
        if (set[i] != 0)
            insert(fresh, bigger, set[i]);
    free(set);
    set = fresh;
    room = bigger;
}

void m_digest_reset(void)
{
    free(set);
    set = NULL;
    room = used = 0;
}

/* True if no execution since the reset had this graph. */
bool m_digest_is_new(void)
{
    if (used * 2 >= room)
        grow();
    bool is_new = insert(set, room, graph_digest());
    used += is_new;
    return is_new;
}
