/*
 * gather.c - at low load one proc listens for all.
 *
 * Each proc has a poll of its own (io/poll.h), and a file belongs to the poll of the proc that first waited for
 * it. Under full load that is best: each machine hears its own files, and no lock is shared. At low load it
 * makes the kernel wake two threads for work that one has time for: each hears half of the events, so there are
 * twice as many sleeps and wake-ups. So the runtime has two modes:
 *
 *   spread   a file belongs to the poll of the proc that waits for it first
 *   gathered all files belong to the poll of one proc, the home. The other procs sleep on their words, and are
 *            roused when the home has more to do than it can do soon (rouse.c)
 *
 * The monitor decides, once a WINDOW_NS, by how long all procs together were at work in it:
 *   - below GATHER_PERCENT of one proc in CALM_WINDOWS windows in a row: gather, at the proc that worked most;
 *   - above SPREAD_PERCENT: spread;
 *   - the home has been at one task for 2 ms: spread at once. A home that computes does not poll, and its
 *     files' tasks wait for the monitor each time.
 * After a spread the mode stays for HOLD_NS at least, and for twice as long each time, up to HOLD_MAX_NS. So a
 * program whose load goes up and down does not move its files to and fro.
 *
 * How files move. By readiness: a file moves to the home when its poll hears of it. It moves away when a task
 * waits for it under another decision than the one under which it was attached. The file is attached to the new
 * poll, and then taken out of the old one (two calls). An event that the old poll has heard meanwhile is
 * delivered as always. By completion: an operation flies in the ring of the proc where it began, and the kernel
 * wakes the thread that submitted it. So the task moves: a proc that is not home passes on tasks whose operations
 * have completed to the home's inbox. Their next operations begin there. The poll(2) backend does not move files:
 * its list holds the events that are wanted of each file.
 *
 * The gain, with 2 procs on 2 CPUs (redis-benchmark -c 50 -P 1): thread sleeps for a message 0.22 instead of 0.40
 * (epoll), 0.16 instead of 0.71 (uring); CPU for a message 1.02 times that of one proc instead of 1.2 (epoll) and
 * 1.7 (uring).
 *
 * A thread may act on a decision that is no longer in force. A file then moves at the next wait. A task is then in the
 * inbox of a proc that is not home any more, and that proc may be at a long task. So the monitor shares the inbox of a
 * former home as soon as that of the home (monitor.c).
 */
#include "proc/gather.h"

#include "proc/state.h"

enum {
    WINDOW_NS = 20000000,
    CALM_WINDOWS = 2,
    GATHER_PERCENT = 85, /* two procs that share a load use more for it than one: up to 1.6 times */
    SPREAD_PERCENT = 95,
    HOLD_NS = 100000000
};
#define HOLD_MAX_NS UINT64_C(6400000000)

void bz_gather_init(struct bz_gather *g)
{
    *g = (struct bz_gather){.hold_ns = HOLD_NS};
    bz_atomic_init(&g->word, 0);
}

struct bz_proc *bz_gather_home(struct bz_runtime *rt, uint32_t word)
{
    uint32_t home = word & BZ_GATHER_HOME;
    return home != 0 ? &rt->procs[home - 1] : NULL;
}

static bool is_gathered(struct bz_gather *g)
{
    return (bz_gather_word(g) & BZ_GATHER_HOME) != 0;
}

/* Make a decision. home: a proc's index + 1, or 0. */
static void decide(struct bz_runtime *rt, uint32_t home, uint64_t now)
{
    struct bz_gather *g = &rt->gather;
    uint32_t word = bz_gather_word(g);
    word = (word & ~(uint32_t)BZ_GATHER_HOME) + (1u << BZ_GATHER_HOME_BITS) + home;
    bz_store_relaxed(&g->word, word); /* relaxed: a hint */
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_poll *heir = home != 0 && i != home - 1 ? &rt->procs[home - 1].poll : NULL;
        bz_store_relaxed(&rt->procs[i].poll.heir, heir); /* relaxed: a hint */
    }
    g->since_ns = now;
    g->calm = 0;
}

static uint64_t busy_of(struct bz_proc *p)
{
    return bz_load_relaxed(&p->busy_ns); /* relaxed: a hint */
}

static uint64_t busy_in_all(struct bz_runtime *rt)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < rt->proc_count; i++)
        sum += busy_of(&rt->procs[i]);
    return sum;
}

static unsigned polls_in_use(struct bz_runtime *rt)
{
    unsigned count = 0;
    for (unsigned i = 0; i < rt->proc_count; i++)
        count += bz_poll_is_used(&rt->procs[i].poll);
    return count;
}

/* Return the proc that has worked most, of those that listen. */
static uint32_t best_home(struct bz_runtime *rt)
{
    uint32_t best = 0;
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (bz_poll_is_used(&rt->procs[i].poll) &&
            (best == 0 || busy_of(&rt->procs[i]) > busy_of(&rt->procs[best - 1])))
            best = i + 1;
    return best;
}

static void spread(struct bz_runtime *rt, uint64_t now)
{
    struct bz_gather *g = &rt->gather;
    bool was_long = now - g->since_ns > 16 * g->hold_ns;
    g->hold_ns = was_long ? HOLD_NS : g->hold_ns < HOLD_MAX_NS ? 2 * g->hold_ns : HOLD_MAX_NS;
    decide(rt, 0, now);
}

void bz_gather_end(struct bz_runtime *rt, uint64_t now)
{
    struct bz_gather *g = &rt->gather;
    if (is_gathered(g))
        spread(rt, now);
    g->calm = 0;
}

/* Decide by the share of a window in which all procs together were at work. */
static void weigh(struct bz_runtime *rt, uint64_t percent, uint64_t now)
{
    struct bz_gather *g = &rt->gather;
    if (is_gathered(g)) {
        if (percent > SPREAD_PERCENT)
            spread(rt, now);
        return;
    }
    g->calm = percent < GATHER_PERCENT ? g->calm + 1 : 0;
    bool may = g->since_ns == 0 || now - g->since_ns >= g->hold_ns;
    if (g->calm >= CALM_WINDOWS && may && polls_in_use(rt) > 1)
        decide(rt, best_home(rt), now);
}

void bz_gather_review(struct bz_runtime *rt, uint64_t now)
{
    struct bz_gather *g = &rt->gather;
    if (rt->proc_count == 1 || bz_is_plain(rt))
        return;
    if (g->began_ns != 0 && now - g->began_ns < WINDOW_NS)
        return;
    uint64_t busy = busy_in_all(rt);
    if (g->began_ns != 0)
        weigh(rt, (busy - g->busy_ns) * 100 / (now - g->began_ns), now);
    g->began_ns = now;
    g->busy_ns = busy;
}
