/*
 * race.c - data races: two accesses, one of them plain, one of them a write, neither first.
 *
 * A plain field (bz_shared) has no history: if its accesses are ordered by happens-before there is
 * one value it can have, the last written, and if they are not, the program is wrong whatever the
 * value. So a plain access is no decision of the search; it is compared with the last accesses of
 * each other thread. The order in which the search executes two unordered accesses does not matter:
 * the later one finds the earlier one outside its clock. bz_atomic_init counts as a plain write.
 */
#include "engine.h"

/* The event of thread `lane` with that index. Only for reports: it walks. */
static int event_at(int lane, int index)
{
    for (int i = m.events - 1; i >= 0; i--)
        if (m.event[i].thread == lane && m.event[i].index == index && m.event[i].kind != M_FIRST)
            return i;
    return M_NONE;
}

static void check_lanes(const union m_clock *last, struct m_site *at, const char *what)
{
    const struct m_thread *t = m_me();
    if (!m_clock_exceeds(last, &t->hb))
        return;
    int lane = 0;
    while (last->at[lane] <= t->hb.at[lane])
        lane++;
    m.other_event = event_at(lane, last->at[lane]);
    m_fail(M_FAULT_RACE, at, "%s, with nothing that orders the two", what);
}

static void check_plain_write(const struct m_loc *x, struct m_site *at, const char *what)
{
    if (x->plain_write == M_NONE || m_before(&m.event[x->plain_write], &m_me()->hb))
        return;
    m.other_event = x->plain_write;
    m_fail(M_FAULT_RACE, at, "%s, with nothing that orders the two", what);
}

/* Called when the event is the newest of its thread. */
void m_race_atomic(struct m_loc *x, bool is_write, struct m_site *at)
{
    m_heap_check_access(x, at);
    check_plain_write(x, at, "an atomic access meets a plain write");
    if (is_write)
        check_lanes(&x->plain_read, at, "an atomic store meets a plain read");
    int16_t index = m_me()->index;
    if (is_write)
        m_clock_put(&x->written, m.current, index);
    m_clock_put(&x->read, m.current, index);
}

void m_race_plain(struct m_loc *x, bool is_write, struct m_site *at, const char *what)
{
    m_heap_check_access(x, at);
    if (BZ_BROKEN(22))
        return;
    check_plain_write(x, at, what);
    check_lanes(is_write ? &x->read : &x->written, at, what);
    if (is_write)
        check_lanes(&x->plain_read, at, what);
    if (is_write)
        x->plain_write = (int16_t)(m.events - 1);
    else
        m_clock_put(&x->plain_read, m.current, m_me()->index);
}
