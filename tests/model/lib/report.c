/*
 * report.c - the report of a failure.
 *
 * One row per event, one column per thread, the place in the source on the left. A read that did
 * not find the newest store has a line with the stores it took and missed; a store that was placed
 * behind others has a line with those. Then the string that repeats it. Everything printed is a
 * function of the test: addresses are named in the order in which they appear, so that
 * docs/model-checking.md can quote these reports and be compared.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"

#define COLUMN 36
#define NAMES_MAX 64
#define ROWS_FIRST 48 /* of a long story */
#define ROWS_LAST 16

static const char *const order_name[] = {"relaxed", "acquire", "release", "acq_rel",
                                         "",        "",        "",        "seq_cst"};

const char *m_fault_name(enum m_fault fault)
{
    static const char *const name[] = {
        [M_FAULT_NONE] = "nothing",
        [M_FAULT_ASSERT] = "assertion",
        [M_FAULT_RACE] = "data race",
        [M_FAULT_DEADLOCK] = "deadlock",
        [M_FAULT_LOST_WAKEUP] = "lost wakeup",
        [M_FAULT_LIVELOCK] = "livelock",
        [M_FAULT_SPIN] = "spin that never yields",
        [M_FAULT_USE_AFTER_FREE] = "use after free",
        [M_FAULT_DOUBLE_FREE] = "double free",
        [M_FAULT_LEAK] = "leak",
        [M_FAULT_CRASH] = "crash",
        [M_FAULT_LIMIT] = "limit",
        [M_FAULT_NEVER_SEEN] = "never seen",
    };
    return name[fault];
}

const char *m_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static const char *place(const struct m_site *at, char *out, size_t size)
{
    if (at == NULL || at->line == 0)
        snprintf(out, size, "%s", at == NULL ? "" : at->file);
    else
        snprintf(out, size, "%s:%d", m_file_name(at->file), at->line);
    return out;
}

/* One expression may have stood for several locations, slot[i]: which of them, from 1; 0 if not. */
static int which(const struct m_event *e)
{
    bool is_met[M_LOCS_MAX] = {false};
    int before = 0, others = 0;
    for (int i = 0; i < m.events && e->loc != M_NONE; i++) {
        const struct m_event *o = &m.event[i];
        if (o->loc == M_NONE || o->kind == M_FIRST || is_met[o->loc] ||
            strcmp(o->at->expr, e->at->expr) != 0)
            continue;
        is_met[o->loc] = true;
        others += o->loc != e->loc;
        before += o->loc < e->loc;
    }
    return others > 0 ? before + 1 : 0;
}

/* "&q->head" is q->head to a reader. */
static void print_expr(char *out, size_t size, const struct m_event *e)
{
    const char *s = e->at == NULL || e->at->expr == NULL ? "" : e->at->expr;
    size_t n = strlen(s);
    while (*s == '&' || (*s == '(' && s[n - 1] == ')')) {
        n -= *s == '(' ? 2 : 1;
        s++;
    }
    int used = snprintf(out, size, "%.*s", (int)(n < 24 ? n : 24), s), k = which(e);
    if (k > 0)
        snprintf(out + used, size - (size_t)used, "@%d", k);
}

/* Small numbers as they are; addresses by the allocation they lie in, or as P1, P2, ... */
static const char *value(uint64_t v, int size, char *out, size_t room)
{
    static uint64_t named[NAMES_MAX];
    static int names;
    int16_t block = m_heap_find((uintptr_t)v);
    if (size == 0) {
        names = 0;
        return "";
    }
    if (v < 1 << 20) {
        snprintf(out, room, "%llu", (unsigned long long)v);
    } else if (size < 8 || v > UINT64_MAX - 4096) {
        long long negative = size == 4 ? (int32_t)v : (long long)v;
        snprintf(out, room, size == 4 && negative < -4096 ? "0x%llx" : "%lld", negative);
    } else if (block != M_NONE && v == m.block[block].addr) {
        snprintf(out, room, "block%d", block + 1);
    } else if (block != M_NONE) {
        snprintf(out, room, "block%d+%d", block + 1, (int)(v - m.block[block].addr));
    } else {
        int i = 0;
        while (i < names && named[i] != v)
            i++;
        if (i == names && names < NAMES_MAX)
            named[names++] = v;
        snprintf(out, room, "P%d", i + 1);
    }
    return out;
}

static void describe_rmw(const struct m_event *e, const char *x, char *out, size_t size)
{
    static const char *const op[] = {"xchg", "fetch_add", "fetch_sub", "fetch_or", "fetch_and"};
    char got[24], put[24], want[24];
    value(e->got, e->size, got, sizeof got);
    value(e->put, e->size, put, sizeof put);
    value(e->expected, e->size, want, sizeof want);
    if (e->kind == M_RMW)
        snprintf(out, size, "%s.%s %s  %s -> %s", x, op[e->rmw_op], order_name[e->order], got, put);
    else if (e->is_write)
        snprintf(out, size, "%s.cas %s  %s -> %s", x, order_name[e->order], got, put);
    else
        snprintf(out, size, "%s.cas %s  lost: %s, %s", x, order_name[e->order], got,
                 e->outcome == M_FOR_NO_REASON ? "for no reason" : "not what it expected");
}

static void describe_wait(const struct m_event *e, const char *x, char *out, size_t size)
{
    if (e->outcome == M_FOR_NO_REASON)
        snprintf(out, size, "wait %s == %llu: returns for no reason", x,
                 (unsigned long long)e->expected);
    else if (e->got == e->expected)
        snprintf(out, size, "wait %s == %llu: sleeps", x, (unsigned long long)e->expected);
    else
        snprintf(out, size, "wait %s == %llu: no, it is %llu", x, (unsigned long long)e->expected,
                 (unsigned long long)e->got);
}

/* One event in a few words. */
static void describe(const struct m_event *e, char *out, size_t size)
{
    char x[32], got[24], put[24];
    print_expr(x, sizeof x, e);
    value(e->got, e->size ? e->size : 8, got, sizeof got);
    value(e->put, e->size ? e->size : 8, put, sizeof put);
    switch (e->kind) {
    case M_LOAD:
        snprintf(out, size, "%s.load %s  %s", x, order_name[e->order], got);
        break;
    case M_STORE:
        snprintf(out, size, "%s.store %s  %s", x, order_name[e->order], put);
        break;
    case M_RMW:
    case M_CAS:
        describe_rmw(e, x, out, size);
        break;
    case M_WAIT:
        describe_wait(e, x, out, size);
        break;
    case M_FENCE:
        snprintf(out, size, "fence %s", order_name[e->order]);
        break;
    case M_INIT:
        snprintf(out, size, "%s.init  %s", x, put);
        break;
    case M_GET:
        snprintf(out, size, "%s.get  %s", x, got);
        break;
    case M_SET:
        snprintf(out, size, e->pick ? "%s.set  %s" : "%s.set", x, put);
        break;
    case M_RELAX:
        snprintf(out, size, "relax");
        break;
    case M_WOKEN:
        snprintf(out, size, "wakes up");
        break;
    case M_WAKE:
        snprintf(out, size, "wake %s: %s woken", x, got);
        break;
    case M_BARRIER_BEGIN:
        snprintf(out, size, "membarrier begins");
        break;
    case M_BARRIER_FENCE:
        snprintf(out, size, "(fence of the membarrier)");
        break;
    case M_BARRIER_END:
        snprintf(out, size, "membarrier ends");
        break;
    case M_ALLOC:
        snprintf(out, size, "alloc %llu bytes  %s", (unsigned long long)e->got, put);
        break;
    case M_FREE:
        snprintf(out, size, "free  %s", put);
        break;
    default:
        snprintf(out, size, "%s  %s", x, got);
    }
}

static int step_of[M_EVENTS_MAX]; /* the row an event is in, 0 if none */

static void print_store(const char *word, const struct m_event *s)
{
    char v[24], where[64];
    value(s->put, s->size, v, sizeof v);
    int step = step_of[s - m.event];
    if (s->kind == M_FIRST)
        printf("%s %s, what was there first", word, v);
    else if (step == 0)
        printf("%s %s, from the set-up (%s)", word, v, place(s->at, where, sizeof where));
    else
        printf("%s %s of step %d (%s)", word, v, step, place(s->at, where, sizeof where));
}

/* The newest store that is out and newer than s. */
static const struct m_event *missed_by(int16_t s, int step)
{
    const struct m_event *newest = NULL;
    while ((s = m.event[s].mo_next) != M_NONE)
        if (step_of[s] != 0 && step_of[s] < step)
            newest = &m.event[s];
    return newest;
}

static void print_staleness(const struct m_event *e, int step)
{
    bool is_read = e->rf != M_NONE;
    const struct m_event *missed = missed_by(is_read ? e->rf : (int16_t)(e - m.event), step);
    if (missed == NULL || missed == e || !(is_read || e->is_write))
        return;
    printf("%29s^ ", "");
    if (is_read) {
        print_store("stale: took", &m.event[e->rf]);
        print_store("; missed", missed);
    } else {
        print_store("lands behind", missed);
        printf(" in the order all threads agree on");
    }
    printf("\n");
}

static void print_row(const struct m_event *e, int step)
{
    char text[160], where[64];
    describe(e, text, sizeof text);
    printf("  %4d  %-20s ", step, place(e->at, where, sizeof where));
    if (e->thread > 0)
        printf("%*s", COLUMN * (e->thread - 1), "");
    printf("%s\n", text);
    print_staleness(e, step);
}

/* The same thing again and again is said once. */
static bool repeats(const int16_t *order, int k, int count)
{
    if (k == 0 || k >= count)
        return false;
    const struct m_event *a = &m.event[order[k - 1]], *b = &m.event[order[k]];
    return a->at == b->at && a->thread == b->thread && a->got == b->got && a->put == b->put &&
           a->rf == b->rf && a->kind == b->kind;
}

static void print_heads(void)
{
    const char *s = m.thread_names == NULL ? "" : m.thread_names;
    printf("  step  %-20s ", "where");
    for (int i = 1; i <= m.threads; i++) {
        int n = (int)strcspn(s, ",");
        char head[64];
        snprintf(head, sizeof head, "%d: %.*s", i, n, s);
        printf(i < m.threads ? "%-*s" : "%.*s", i < m.threads ? COLUMN : 60, head);
        s += n;
        s += strspn(s, ", ");
    }
    printf("\n");
}

static void print_steps(const int16_t *order, int count)
{
    print_heads();
    for (int i = 0; i < m.events; i++)
        step_of[i] = 0;
    for (int k = 0; k < count; k++)
        step_of[order[k]] = k + 1;
    for (int k = 0; k < count; k++) {
        int same = 0;
        while (repeats(order, k + same, count))
            same++;
        if (same > 2) {
            printf("%29s(and %d times more)\n", "", same);
            k += same - 1;
            continue;
        }
        if (count > ROWS_FIRST + ROWS_LAST + 8 && k == ROWS_FIRST) {
            printf("%29s... %d steps left out ...\n", "", count - ROWS_FIRST - ROWS_LAST);
            k = count - ROWS_LAST;
        }
        print_row(&m.event[order[k]], k + 1);
    }
}

/* The operations of the body after the threads have ended. */
static void print_ending(int count)
{
    int said = 0;
    for (int i = 0; i < m.events; i++) {
        if (m.ended_at == M_NONE || i < m.ended_at || m.event[i].kind == M_FIRST)
            continue;
        if (said++ == 0)
            printf("        when all have ended:\n");
        print_row(&m.event[i], ++count);
    }
}

static void print_other(void)
{
    if (m.other_event == M_NONE)
        return;
    const struct m_event *e = &m.event[m.other_event];
    char text[160], where[64];
    describe(e, text, sizeof text);
    printf("  the other: %s, thread %d, %s\n", text, e->thread, place(e->at, where, sizeof where));
}

/* The string that repeats it, for --replay. */
static void print_again(const struct m_case *c, const char *program, const int16_t *order,
                        int count)
{
    static struct m_step script[M_EVENTS_MAX];
    static char text[4 * M_EVENTS_MAX];
    m_order_script(order, count, script);
    m_script_print(script, count, text, sizeof text);
    printf("  again with: %s %s.%s --replay=%s\n", program, c->noun, c->property, text);
}

/* The kind of order that the failure needs. A missing happens-before is wrong in any. */
static void print_nature(bool is_weak)
{
    if (m.threads == 0 || m.fault == M_FAULT_RACE || m.fault == M_FAULT_USE_AFTER_FREE ||
        m.fault == M_FAULT_DOUBLE_FREE)
        return;
    printf("  %s\n", is_weak ? "No interleaving does this: it takes reordering, by compiler or CPU."
                             : "An interleaving of the threads: no reordering is needed.");
}

void m_report(const struct m_case *c, const char *program)
{
    static int16_t order[M_EVENTS_MAX];
    char where[64];
    bool is_weak;
    value(0, 0, NULL, 0);
    printf("FAIL %s.%s: %s\n", c->noun, c->property, m_fault_name(m.fault));
    printf("  %s", m.fault_text);
    if (m.fault_at != NULL)
        printf("   %s", place(m.fault_at, where, sizeof where));
    printf("\n");
    if (m.fault == M_FAULT_NEVER_SEEN)
        return;
    int count = m_order_steps(order, &is_weak);
    print_steps(order, count);
    print_ending(count);
    print_other();
    print_nature(is_weak);
    printf("  found after %llu executions, %llu pruned\n", (unsigned long long)m.executions,
           (unsigned long long)m.pruned);
    print_again(c, program, order, count);
}
