/*
 * order.c - a failed execution, put in an order that a person can follow, and in a string that
 * repeats it.
 *
 * The search executes stores as early as it can, so its own order is full of reads that look stale
 * and are not. In a graph only po U rf is fixed, and any order that respects it is the same
 * execution. We search an order in which every read finds its store newest, that is, an ordinary
 * interleaving. It is a topological order of po U rf U mo U rb that stays on a thread as long as
 * possible. If there is none, weak memory is at work; then as few reads as the greedy choice finds
 * are out of place, and the report says for each what it missed.
 *
 * Events that the failure does not depend on are left out. What remains is closed under po U rf, so
 * it is an execution by itself, and the script made of it replays to the same end.
 *
 * The script is one letter per event, a for thread 1. Then follows a number, if it is not 0: the
 * newer stores that a read skipped or a store was placed under, or the sleeper that a wake took.
 * Then `!` if it failed spuriously, `|` if it is the fence of another thread's membarrier.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"

static bool is_out[M_EVENTS_MAX]; /* already put in order */
static union m_clock kept;        /* events of each thread that matter */
static bool is_all;               /* all of them do */

static void decide_what_matters(void)
{
    is_all = m.current == 0 || m.fault == M_FAULT_DEADLOCK || m.fault == M_FAULT_LOST_WAKEUP ||
             (m.fault == M_FAULT_LIVELOCK && m.fault_at == NULL);
    kept = m_me()->porf;
    if (m.other_event != M_NONE)
        m_clock_join(&kept, &m.event[m.other_event].porf);
    for (int i = 1; i <= m.threads && is_all; i++)
        kept.at[i] = m.thread[i].index;
}

/* The next event of a thread, or M_NONE. */
static int next_of(int lane, const int16_t *done)
{
    if (done[lane] >= kept.at[lane])
        return M_NONE;
    for (int i = 0; i < m.events; i++)
        if (m.event[i].thread == lane && m.event[i].index == done[lane] + 1)
            return i;
    return M_NONE;
}

static bool is_ready(const struct m_event *e, const int16_t *done)
{
    for (int i = 1; i <= m.threads; i++)
        if (done[i] < e->porf.at[i] - (i == e->thread))
            return false;
    return true;
}

/* Would it come too early for an interleaving: before a store it follows, or a read it outdates? */
static bool is_early(const struct m_event *e)
{
    if (!e->is_write || e->mo_prev == M_NONE)
        return false;
    if (!is_out[e->mo_prev])
        return true;
    for (int i = 0; i < m.events; i++)
        if (!is_out[i] && &m.event[i] != e && m.event[i].rf == e->mo_prev &&
            m.event[i].index <= kept.at[m.event[i].thread])
            return true;
    return false;
}

/* The failing thread's last event ends the story, if it is one event that ends it. */
static bool is_finale(int i, int left)
{
    const struct m_event *e = &m.event[i];
    return !is_all && e->thread == m.current && e->index == kept.at[m.current] && left > 1;
}

static int pick_next(int lane_now, const int16_t *done, int left, bool *is_weak)
{
    int any = M_NONE;
    for (int k = 0; k < m.threads; k++) {
        int lane = (lane_now + k - 1) % m.threads + 1;
        int i = next_of(lane, done);
        if (i == M_NONE || !is_ready(&m.event[i], done) || is_finale(i, left))
            continue;
        if (!is_early(&m.event[i]))
            return i;
        if (any == M_NONE)
            any = i;
    }
    *is_weak = true;
    return any;
}

/* Fill `order` with the events of the threads that matter; how many. */
int m_order_steps(int16_t *order, bool *is_weak)
{
    int16_t done[M_LANES] = {0};
    int count = 0, left = 0, lane = 1;
    decide_what_matters();
    for (int i = 0; i < m.events; i++)
        is_out[i] = m.event[i].kind == M_FIRST ||
                    (m.event[i].thread == 0 && (m.ended_at == M_NONE || i < m.ended_at));
    for (int i = 1; i <= m.threads; i++)
        left += kept.at[i];
    *is_weak = false;
    for (; left > 0; left--) {
        int i = pick_next(lane, done, left, is_weak);
        if (i == M_NONE)
            break;
        lane = m.event[i].thread;
        done[lane]++;
        is_out[i] = true;
        order[count++] = (int16_t)i;
    }
    return count;
}

static int newer_than(int16_t store)
{
    int n = 0;
    for (int16_t s = m.event[store].mo_next; s != M_NONE; s = m.event[s].mo_next)
        n += is_out[s];
    return n;
}

void m_order_script(const int16_t *order, int count, struct m_step *script)
{
    for (int k = 0; k < count; k++)
        is_out[order[k]] = false;
    for (int k = 0; k < count; k++) {
        const struct m_event *e = &m.event[order[k]];
        int16_t choice = e->kind == M_WAKE ? e->pick : 0;
        if (e->rf != M_NONE)
            choice = (int16_t)newer_than(e->rf);
        else if (e->is_write)
            choice = (int16_t)newer_than(order[k]);
        script[k] = (struct m_step){e->thread, e->kind == M_BARRIER_FENCE,
                                    e->outcome == M_FOR_NO_REASON, choice};
        is_out[order[k]] = true;
    }
}

void m_script_print(const struct m_step *script, int count, char *out, size_t size)
{
    size_t used = 0;
    for (int k = 0; k < count && used + 10 < size; k++) {
        out[used++] = (char)('a' + script[k].thread - 1);
        if (script[k].choice != 0)
            used += (size_t)snprintf(out + used, size - used, "%d", script[k].choice);
        if (script[k].is_odd)
            out[used++] = '!';
        if (script[k].is_fence)
            out[used++] = '|';
    }
    out[used] = '\0';
}

/* How many steps, or -1: not a script. */
int m_script_parse(const char *text, struct m_step *out, int room)
{
    int n = 0;
    while (*text != '\0') {
        if (*text < 'a' || *text >= 'a' + M_THREADS_MAX || n == room)
            return -1;
        struct m_step s = {.thread = (uint8_t)(*text++ - 'a' + 1)};
        while (isdigit((unsigned char)*text) && s.choice < 1000)
            s.choice = (int16_t)(s.choice * 10 + (*text++ - '0'));
        if (*text == '!')
            s.is_odd = true, text++;
        if (*text == '|')
            s.is_fence = true, text++;
        out[n++] = s;
    }
    return n;
}
