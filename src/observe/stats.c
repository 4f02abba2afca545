/*
 * stats.c - the sums of the procs' counters.
 *
 * Reading disturbs no thread: it loads each counter of each proc once. Spawns and ends are those of
 * live.c, which the runtime counts anyway. Ends are read first, so that no reading shows more
 * ends than spawns. Stacks and threads are counted by their pools under their locks.
 *
 * counters.h has the list of counters. Each has a field of the same name in blitz/stats.h, so a
 * counter that is added in one place only does not compile.
 */
#include <errno.h>
#include <stdio.h>

#include "blitz/stats.h"
#include "proc/retire.h"
#include "proc/state.h"

static void add(blitz_stats *to, struct bz_counters *from)
{
#define ADD(name) to->name += bz_load_relaxed(&from->name); /* relaxed: statistics */
    BZ_COUNTERS(ADD)
#undef ADD
    uint64_t turns = bz_load_relaxed(&from->turns);   /* relaxed: statistics */
    uint64_t loops = bz_load_relaxed(&from->loops);   /* relaxed: statistics */
    uint64_t relays = bz_load_relaxed(&from->relays); /* relaxed: statistics */
    to->run += turns + loops + relays;
    to->yielded += turns + loops;
    to->parked += relays;
    to->switches += turns + relays;
}

static struct bz_runtime *runtime_of(blitz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (rt != NULL)
        return (struct bz_runtime *)rt;
    return m != NULL ? m->rt : NULL;
}

static void read_pool(struct bz_pool *pool, blitz_stats *out)
{
    struct bz_pool_figures f = bz_pool_figures(pool);
    out->threads = f.threads;
    out->threads_idle = f.idle;
    out->blocking = f.begun;
    out->blocking_pending = f.pending;
}

static void read_io(const struct bz_runtime *rt, blitz_stats *out)
{
    out->io = rt->procs[0].poll.ops->name;
    out->io_why = rt->files.why;
}

int blitz_stats_read(blitz_runtime *runtime, blitz_stats *out)
{
    struct bz_runtime *rt = runtime_of(runtime);
    if (rt == NULL)
        return -EINVAL;
    *out = (blitz_stats){.procs = bz_procs_active(rt)};
    read_io(rt, out);
    out->ended = bz_live_ended(&rt->tasks.live); /* first */
    out->spawned = bz_live_spawned(&rt->tasks.live);
    for (unsigned i = 0; i < rt->proc_count; i++)
        add(out, &rt->procs[i].counters);
    add(out, &rt->counters);
    out->stacks = bz_stack_pool_used(&rt->stacks);
    out->task_bytes = bz_tasks_bytes(rt);
    read_pool(&rt->pool, out);
    return 0;
}

int blitz_stats_read_proc(blitz_runtime *runtime, unsigned proc, blitz_stats *out)
{
    struct bz_runtime *rt = runtime_of(runtime);
    if (rt == NULL || proc >= rt->proc_count)
        return -EINVAL;
    struct bz_proc *p = &rt->procs[proc];
    *out = (blitz_stats){.procs = 1};
    read_io(rt, out);
    out->ended = bz_load_relaxed(&p->tasks.live.ended);     /* relaxed: statistics */
    out->spawned = bz_load_relaxed(&p->tasks.live.spawned); /* relaxed: statistics */
    add(out, &p->counters);
    return 0;
}

/* ---- for people ---- */

struct text {
    char *at;
    size_t size, used;
};

static void line(struct text *t, const char *name, uint64_t figure, const char *means)
{
    char *to = t->used < t->size ? t->at + t->used : NULL;
    int n = snprintf(to, to != NULL ? t->size - t->used : 0, "%-17s %14llu  %s\n", name,
                     (unsigned long long)figure, means);
    t->used += n > 0 ? (size_t)n : 0;
}

static void line_of_words(struct text *t, const char *name, const char *word, const char *means)
{
    char *to = t->used < t->size ? t->at + t->used : NULL;
    int n = snprintf(to, to != NULL ? t->size - t->used : 0, "%-17s %14s  %s\n", name,
                     word != NULL ? word : "", means != NULL ? means : "");
    t->used += n > 0 ? (size_t)n : 0;
}

size_t blitz_stats_format(const blitz_stats *s, char *out, size_t size)
{
    struct text t = {out, size, 0};
    if (size > 0)
        out[0] = '\0';
    line(&t, "procs", s->procs, "workers");
    line(&t, "spawned", s->spawned, "tasks");
    line(&t, "ended", s->ended, "tasks");
    line(&t, "run", s->run, "times a task was begun or gone on with");
    line(&t, "parked", s->parked, "times a task left to wait");
    line(&t, "yielded", s->yielded, "times a task left for others");
    line(&t, "switches", s->switches, "between stacks");
    line(&t, "claimed", s->claimed, "tasks called by who joined them");
    line(&t, "next_hits", s->next_hits, "tasks that ran next after their waker");
    line(&t, "injector_batches", s->injector_batches, "taken from the shared queue");
    line(&t, "injected", s->injected, "tasks in them");
    line(&t, "searches", s->searches, "of the others' queues");
    line(&t, "steals", s->steals, "from another worker");
    line(&t, "stolen", s->stolen, "tasks in them");
    line(&t, "sleeps", s->sleeps, "of workers");
    line(&t, "wakes", s->wakes, "of workers");
    line(&t, "useless_wakes", s->useless_wakes, "after which there was nothing");
    line(&t, "forks_shared", s->forks_shared, "jobs others could have taken");
    line(&t, "jobs_stolen", s->jobs_stolen, "jobs others took");
    line(&t, "jobs_evacuated", s->jobs_evacuated, "jobs queued because their task waited");
    line(&t, "joins_suspended", s->joins_suspended, "joins that waited");
    line(&t, "joins_out_of_order", s->joins_out_of_order, "joins that had to look for their job");
    line(&t, "calls_moved", s->calls_moved, "calls during which others took the place");
    line(&t, "calls_regained", s->calls_regained, "of these, that found a free place at once");
    line(&t, "stacks", s->stacks, "in use or at hand");
    line(&t, "task_bytes", s->task_bytes, "of task headers");
    line(&t, "threads", s->threads, "of workers and blocking calls");
    line(&t, "threads_idle", s->threads_idle, "wait for something to do");
    line(&t, "blocking", s->blocking, "calls on a thread of the pool");
    line(&t, "blocking_pending", s->blocking_pending, "calls that wait for a thread");
    line_of_words(&t, "io", s->io, s->io_why);
    return t.used;
}
