/*
 * dump.c - all tasks, procs and threads of a runtime as text, while it goes on.
 *
 * A user asks for a dump when something is wrong: procs hogged, a lock held for ever, memory gone. So a
 * dump takes no lock that another thread could hold. It finds tasks by a walk over the slabs (tasks.c:
 * a walk delays no thread) and looks at them as view.h says. It reads all other state from words that
 * their owners write. It needs no proc and no allocator.
 *
 * For people, a million waiting tasks are one fact, not a million lines. Equal tasks are counted in a
 * table: kind, name, state, what they wait for and, if frames were asked for, their frames. The table
 * is GROUPS entries of reserved pages, given back at the end; without pages it is a few entries on the
 * stack. Tasks that find no room are counted, and the dump says so. No memory grows with the tasks.
 * Running tasks differ from each other: each has its own line.
 *
 * Rejected: stopping the runtime meanwhile. A hog does not stop, and a dump that hangs is worse than one
 * that is blurred. Rejected: a list of tasks sorted by age (it would have to be kept somewhere).
 *
 * On SIGQUIT the handler only sets a flag and wakes the monitor, which writes the dump. The monitor's
 * thread has no proc, so it can run when all procs are hogged.
 *
 * I1  A group's hash is not 0; its first view is that of the oldest task it has.
 *
 * [Q] ask: dump_asked release -> if_asked: dump_asked acquire   all that came before the signal
 */
#include "observe/dump.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "life/deadlines.h"
#include "observe/view.h"
#include "os/look.h"
#include "os/sigquit.h"
#include "proc/fresh.h"
#include "proc/state.h"

enum { GROUPS = 512, GROUPS_FEW = 4, LINE_MAX_BYTES = 320 };

struct group {
    uint64_t hash; /* 0: free */
    uint64_t count;
    uint64_t until; /* the earliest deadline */
    uint32_t since; /* the longest wait */
    struct bz_view first;
};

struct dump {
    struct bz_runtime *rt;
    blitz_dump_fn fn;
    void *ctx;
    unsigned flags;
    int err;                  /* the first error: nothing is written after it */
    uint64_t now;             /* of the system: ages */
    uint64_t time;            /* of the runtime: timers and deadlines */
    uint64_t tasks, homeless; /* seen; and of those, without room in the table */
    struct group *table;
    size_t size; /* of the table, a power of two */
};

/* ---- text ---- */

BZ_PRINTF(2, 3) static void say(struct dump *d, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    if (d->err != 0)
        return;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    line[length++] = '\n';
    d->err = d->fn(d->ctx, line, length);
}

const char *bz_span_text(char out[BZ_SPAN_MAX], uint64_t ns)
{
    unsigned long long n = ns;
    if (n < 10000)
        snprintf(out, BZ_SPAN_MAX, "%llu ns", n);
    else if (n < 10000000)
        snprintf(out, BZ_SPAN_MAX, "%llu us", n / 1000);
    else if (n < 1000000000)
        snprintf(out, BZ_SPAN_MAX, "%llu ms", n / 1000000);
    else if (n < 120000000000)
        snprintf(out, BZ_SPAN_MAX, "%llu.%llu s", n / 1000000000, n / 100000000 % 10);
    else if (n < 7200000000000)
        snprintf(out, BZ_SPAN_MAX, "%llu min", n / 60000000000);
    else
        snprintf(out, BZ_SPAN_MAX, "%llu h", n / 3600000000000);
    return out;
}

/* "in 8 ms", "2.1 s ago". */
static const char *moment_text(char out[BZ_SPAN_MAX + 8], uint64_t when, uint64_t now)
{
    char span[BZ_SPAN_MAX];
    if (when >= now)
        snprintf(out, BZ_SPAN_MAX + 8, "in %s", bz_span_text(span, when - now));
    else
        snprintf(out, BZ_SPAN_MAX + 8, "%s ago", bz_span_text(span, now - when));
    return out;
}

/* ---- procs and threads ---- */

static const char *timer_text(char out[BZ_SPAN_MAX + 24], struct bz_proc *p, uint64_t now)
{
    char moment[BZ_SPAN_MAX + 8];
    uint64_t first = bz_timers_first(p);
    if (first == BZ_OS_FOREVER)
        snprintf(out, BZ_SPAN_MAX + 24, "no timer");
    else
        snprintf(out, BZ_SPAN_MAX + 24, "timer %s", moment_text(moment, first, now));
    return out;
}

/* Write " on thread blitz-2", for a machine that may be about to change its thread. */
static const char *thread_text(char *out, size_t size, struct bz_machine *m)
{
    char name[BZ_OS_NAME_MAX] = "";
    const struct bz_os_thread *t = (const struct bz_os_thread *)bz_look_word(&m->thread);
    if (t != NULL)
        bz_look_text(name, sizeof name, t->name);
    snprintf(out, size, name[0] != '\0' ? " on thread %s" : "%s", name);
    return out;
}

/* Write the state of the proc, and the task of its machine. */
static const char *proc_state(char *out, size_t size, struct bz_proc *p)
{
    static const char *const without[] = {[BZ_PROC_FREE] = "free",
                                          [BZ_PROC_ORPHAN] = "free, no thread to be had",
                                          [BZ_PROC_STARTING] = "a thread starts for it"};
    char thread[40];
    uint64_t id = 0;
    uint32_t word = bz_load_acquire(&p->state); /* machines.c [M] */
    if (bz_proc_state_of(word) < BZ_PROC_ASLEEP) {
        snprintf(out, size, "%s", without[bz_proc_state_of(word)]);
        return out;
    }
    struct bz_machine *m = bz_proc_machine(p->rt, word);
    /* A task header that was freed meanwhile is still readable: memory of a slab, or read as nothing. */
    const struct bz_task *t = (const struct bz_task *)bz_look_word(&m->current);
    thread_text(thread, sizeof thread, m);
    if (bz_proc_state_of(word) == BZ_PROC_ASLEEP)
        snprintf(out, size, "asleep%s", thread);
    else if (t != NULL && bz_look_copy(&id, &t->id, sizeof id) == 0)
        snprintf(out, size, "running task %llu%s%s", (unsigned long long)id, thread,
                 bz_retake_where(&m->taken) != BZ_IN_RUNTIME ? "" : ", in the runtime");
    else
        snprintf(out, size, "looking for work%s", thread);
    return out;
}

static void say_proc(struct dump *d, struct bz_proc *p)
{
    char state[128], timer[BZ_SPAN_MAX + 24];
    /* relaxed: for a reader, here and below */
    uint32_t at = bz_load_relaxed(&p->batch.at), count = bz_load_relaxed(&p->batch.count);
    say(d, "  proc %u: %s; queued %u, next %d, in hand %u; %s; %u tasks run", p->index,
        proc_state(state, sizeof state, p), bz_runq_count(&p->ring),
        bz_load_relaxed(&p->next) != 0, /* relaxed: as above */
        (count > at ? count - at : 0) + bz_fresh_count(p), timer_text(timer, p, d->time),
        bz_tick_now(&p->tick));
}

static const char *monitor_state(struct bz_runtime *rt)
{
    static const char *const name[] = {
        [BZ_MONITOR_NONE] = "not started",   [BZ_MONITOR_DOZES] = "asleep",
        [BZ_MONITOR_UP] = "looks",           [BZ_MONITOR_SLOW] = "looks seldom",
        [BZ_MONITOR_RESTS] = "looks seldom", [BZ_MONITOR_HOGGED] = "sees all procs hogged"};
    return name[bz_load_relaxed(&rt->monitor.state)]; /* relaxed: for a reader */
}

static void say_runtime(struct dump *d)
{
    struct bz_runtime *rt = d->rt;
    uint64_t ended = bz_live_ended(&rt->tasks.live); /* first: never more than were spawned */
    uint64_t live = bz_live_spawned(&rt->tasks.live) - ended;
    say(d, "runtime \"%s\": %u procs (%u asleep, %u searching), %llu tasks live%s", rt->is.name,
        rt->proc_count, bz_idle_sleeping(&rt->idle), bz_idle_searching(&rt->idle),
        (unsigned long long)live,
        bz_load_relaxed(&rt->tasks.live.stage) != BZ_LIVE_OPEN /* relaxed: for a reader */
            ? ", shutting down"
            : "");
    for (unsigned i = 0; i < rt->proc_count; i++)
        say_proc(d, &rt->procs[i]);
    say(d, "  queued for all: %zu; pool threads: %u; monitor: %s, %llu looks",
        bz_injector_length(&rt->injector), bz_look_half(&rt->pool.count), monitor_state(rt),
        (unsigned long long)bz_load_relaxed(&rt->monitor.looks)); /* relaxed: for a reader */
}

/* ---- tasks ---- */

static void say_frames(struct dump *d, const struct bz_view *v)
{
    char symbol[200];
    for (unsigned i = 0; i < v->depth; i++) {
        /* A return address may be the first of the next function: look up the call before it. */
        if (!bz_look_symbol(symbol, sizeof symbol, v->pc[i] - (i > 0)))
            break; /* no code: a frame without a frame pointer has misled us */
        say(d, "      #%u 0x%llx %s", i, (unsigned long long)v->pc[i], symbol);
    }
    if (v->is_beneath)
        say(d, "      (below task %llu, on the same stack)", (unsigned long long)v->joins);
    else if (v->depth == 0 && v->state != BZ_VIEW_RUNNING && v->state != BZ_VIEW_NEW)
        say(d, "      (no frames)");
}

static const char *age_text(char out[BZ_SPAN_MAX + 16], const struct bz_view *v, uint64_t now)
{
    char span[BZ_SPAN_MAX];
    out[0] = '\0';
    if (v->born != 0)
        snprintf(out, BZ_SPAN_MAX + 16, ", %s old", bz_span_text(span, bz_age_of(v->born, now)));
    return out;
}

static const char *wait_text(char *out, size_t size, const struct bz_view *v, const struct dump *d)
{
    char moment[BZ_SPAN_MAX + 8];
    size_t used = 0;
    out[0] = '\0';
    if (v->state == BZ_VIEW_RUNNING)
        snprintf(out, size, v->is_stray ? " without a proc, which had %d" : " on proc %d", v->proc);
    if (v->state != BZ_VIEW_WAITING)
        return out;
    used += (size_t)snprintf(out, size, ": %s", v->what[0] != '\0' ? v->what : "(not readable)");
    if (v->joins != 0)
        used += (size_t)snprintf(out + used, size - used, " of task %llu",
                                 (unsigned long long)v->joins);
    if (v->since != 0)
        used += (size_t)snprintf(out + used, size - used, " for %s",
                                 bz_span_text(moment, bz_age_of(v->since, d->now)));
    if (v->until != BZ_OS_FOREVER)
        snprintf(out + used, size - used, ", deadline %s", moment_text(moment, v->until, d->time));
    return out;
}

static void say_tasks(struct dump *d, const struct bz_view *v, uint64_t count)
{
    char wait[128], age[BZ_SPAN_MAX + 16], who[40], like[40] = "";
    unsigned long long id = v->id;
    if (count == 1) {
        snprintf(who, sizeof who, "task %llu", id);
    } else {
        snprintf(who, sizeof who, "%llu tasks", (unsigned long long)count);
        snprintf(like, sizeof like, ", e.g. task %llu", id);
    }
    const char *quote = v->name[0] != '\0' ? "\"" : "";
    say(d, "  %s %s%s%s%s(%s): %s%s%s%s%s", who, quote, v->name, quote,
        v->name[0] != '\0' ? " " : "", v->kind, bz_view_state_name(v->state),
        v->is_cancelled ? ", cancelled" : "", wait_text(wait, sizeof wait, v, d),
        age_text(age, v, d->now), like);
    if (d->flags & BLITZ_DUMP_FRAMES)
        say_frames(d, v);
}

/* ---- equal tasks ---- */

static uint64_t hash_more(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_of(const struct bz_view *v)
{
    uint64_t hash = hash_more(UINT64_C(0xcbf29ce484222325), &v->kind, sizeof v->kind);
    unsigned state = (unsigned)v->state * 2 + v->is_cancelled;
    hash = hash_more(hash, &state, sizeof state);
    hash = hash_more(hash, v->name, strlen(v->name) + 1);
    hash = hash_more(hash, v->what, strlen(v->what) + 1);
    hash = hash_more(hash, v->pc, v->depth * sizeof v->pc[0]);
    return hash != 0 ? hash : 1; /* I1 */
}

static bool is_equal(const struct bz_view *a, const struct bz_view *b)
{
    return a->kind == b->kind && a->state == b->state && a->is_cancelled == b->is_cancelled &&
           a->depth == b->depth && strcmp(a->name, b->name) == 0 && strcmp(a->what, b->what) == 0 &&
           memcmp(a->pc, b->pc, a->depth * sizeof a->pc[0]) == 0;
}

/* Return the group of tasks equal to v, or a free entry; NULL if there is no room. */
static struct group *group_of(struct dump *d, const struct bz_view *v, uint64_t hash)
{
    for (size_t i = 0; i < d->size; i++) {
        struct group *g = &d->table[(hash + i) & (d->size - 1)];
        if (g->hash == 0 || (g->hash == hash && is_equal(&g->first, v)))
            return g;
    }
    return NULL;
}

/* True if tick a comes before tick b, both of age.h. */
static bool is_before(uint32_t a, uint32_t b)
{
    return a != 0 && (b == 0 || (int32_t)(a - b) < 0);
}

static void count_in(struct dump *d, const struct bz_view *v)
{
    uint64_t hash = hash_of(v);
    struct group *g = group_of(d, v, hash);
    if (g == NULL) {
        d->homeless++;
        return;
    }
    if (g->hash == 0)
        *g = (struct group){.hash = hash, .until = BZ_OS_FOREVER, .first = *v};
    else if (is_before(v->born, g->first.born))
        g->first = *v; /* I1 */
    g->count++;
    if (v->until < g->until)
        g->until = v->until;
    if (is_before(v->since, g->since))
        g->since = v->since;
}

static void see(struct bz_task *t, void *ctx)
{
    struct dump *d = ctx;
    struct bz_view v;
    bz_view_take(&v, t, (d->flags & BLITZ_DUMP_FRAMES) != 0);
    if (v.state == BZ_VIEW_ENDED && !(d->flags & BLITZ_DUMP_ENDED))
        return;
    d->tasks++;
    if (v.state == BZ_VIEW_RUNNING || (d->flags & BLITZ_DUMP_ALL))
        say_tasks(d, &v, 1);
    else
        count_in(d, &v);
}

static void say_group(struct dump *d, struct group *g)
{
    g->first.until = g->until;
    g->first.since = g->since;
    say_tasks(d, &g->first, g->count);
}

static void say_groups(struct dump *d)
{
    for (int state = 0; state < BZ_VIEW_STATES; state++)
        for (size_t i = 0; i < d->size; i++)
            if (d->table[i].hash != 0 && (int)d->table[i].first.state == state)
                say_group(d, &d->table[i]);
    if (d->homeless > 0)
        say(d, "  %llu tasks more, unlike these: ask for all", (unsigned long long)d->homeless);
}

/* ---- the whole ---- */

static void walk(struct dump *d)
{
    struct bz_os_slab pages;
    struct group few[GROUPS_FEW];
    size_t page = bz_os_page_bytes(d->rt->os);
    size_t bytes = (GROUPS * sizeof(struct group) + page - 1) / page * page;
    bool has_pages =
        bz_os_slab_reserve(d->rt->os, &pages, bytes, 0, BZ_OS_SLAB_PLAIN, "blitz-dump") == 0;
    memset(few, 0, sizeof few);
    d->table = has_pages ? (struct group *)(void *)pages.base : few;
    d->size = has_pages ? GROUPS : GROUPS_FEW;
    bz_tasks_each(d->rt, see, d);
    say_groups(d);
    if (has_pages)
        bz_os_slab_release(d->rt->os, &pages);
}

int bz_dump(struct bz_runtime *rt, blitz_dump_fn fn, void *ctx, unsigned flags)
{
    struct dump d = {.rt = rt,
                     .fn = fn,
                     .ctx = ctx,
                     .flags = flags,
                     .now = bz_os_now(rt->os),
                     .time = bz_os_now(rt->time),
                     .err = 0};
    say_runtime(&d);
    walk(&d);
    return d.err;
}

/* ---- on SIGQUIT ---- */

static int to_stderr(void *ctx, const char *line, size_t length)
{
    (void)ctx;
    return bz_look_say(2, line, length);
}

/* In a signal handler: a store and a wake. */
static void ask(void *runtime)
{
    struct bz_runtime *rt = runtime;
    bz_store_release(&rt->dump_asked, 1); /* [Q] */
    bz_monitor_tell(rt);
}

void bz_dump_if_asked(struct bz_runtime *rt)
{
    if (BZ_LIKELY(bz_load_relaxed(&rt->dump_asked) == 0)) /* relaxed: the exchange decides */
        return;
    bz_xchg_acquire(&rt->dump_asked, 0);                    /* [Q] */
    (void)!bz_dump(rt, to_stderr, NULL, BLITZ_DUMP_FRAMES); /* no caller for an error */
}

void bz_dump_watch(struct bz_runtime *rt)
{
    if (!rt->is.dumps_on_quit || bz_os_is_simulated())
        return;
    int err = bz_sigquit_watch(ask, rt);
    if (err != 0 || !bz_monitor_raise(rt))
        bz_log(BLITZ_LOG_WARN, "SIGQUIT will not be answered with a dump (error %d)", -err);
}

void bz_dump_unwatch(struct bz_runtime *rt)
{
    if (rt->is.dumps_on_quit && !bz_os_is_simulated())
        bz_sigquit_unwatch(rt);
}

/* ---- the public face ---- */

int blitz_dump_to(blitz_runtime *runtime, blitz_dump_fn fn, void *ctx, unsigned flags)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_runtime *rt = runtime != NULL ? (struct bz_runtime *)runtime
                            : m != NULL     ? m->rt
                                            : NULL;
    const unsigned known = BLITZ_DUMP_ALL | BLITZ_DUMP_FRAMES | BLITZ_DUMP_ENDED;
    if (rt == NULL || fn == NULL || (flags & ~known) != 0)
        return -EINVAL;
    return bz_dump(rt, fn, ctx, flags);
}

static int to_fd(void *fd, const char *line, size_t length)
{
    return bz_look_say(*(int *)fd, line, length);
}

int blitz_dump(blitz_runtime *rt, blitz_fd fd, unsigned flags)
{
    return blitz_dump_to(rt, to_fd, &fd, flags);
}
