/*
 * trace_json.c - a trace as Chrome's JSON, which Perfetto and Chrome (about:tracing) open.
 *
 * One process, a row ("thread") for each machine and one for all other threads. A slice is a complete
 * event ("X": begin and length, so none can be left unclosed). An arrow is a flow: "s" where a task was
 * woken or spawned, "f" where it continued. An event without duration is an instant ("i"). A flow begins
 * in the slice around it. If a wake comes from a row without an open slice (a timer, a plain thread), it gets a
 * slice of a nanosecond to begin in.
 *
 * Times are microseconds with three decimals since the trace began. Names come from the user: bytes that
 * are not text are escaped or replaced, so that the file is always valid JSON. `otherData` lists
 * the missing data: `lost` records that were overwritten, `unrecorded` events for which there was no memory, and
 * the time from which no row lacks records.
 *
 * Rejected: B and E events (an E without its B, lost in a ring, unbalances a row to its end);
 * Perfetto's own format (a schema and a compiler for it; it reads this one).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proc/state.h"
#include "trace/trace_story.h"

enum { PID = 1, BUFFER = 8192, LINE = 768, NAME_JSON = 6 * BZ_TRACE_NAME_MAX + 1 };

struct out {
    struct bz_trace *trace;
    int (*write)(const void *, size_t, void *);
    void *ctx;
    uint64_t start; /* ns */
    int err;        /* the first error; nothing is written after it */
    size_t used;
    char buffer[BUFFER];
};

/* ---- text ---- */

static void flush(struct out *o)
{
    if (o->err == 0 && o->used > 0)
        o->err = o->write(o->buffer, o->used, o->ctx);
    o->used = 0;
}

BZ_PRINTF(2, 3) static void put(struct out *o, const char *format, ...)
{
    va_list args;
    if (o->used + LINE > BUFFER)
        flush(o);
    va_start(args, format);
    int n = vsnprintf(o->buffer + o->used, BUFFER - o->used, format, args);
    va_end(args);
    BZ_ASSERT(n >= 0 && n < LINE);
    o->used += (size_t)n;
}

/* The number of bytes of the UTF-8 character that begins here; 0: not well-formed. */
static unsigned utf8(const unsigned char *c, size_t left)
{
    unsigned n = c[0] < 0x80   ? 1
                 : c[0] < 0xc2 ? 0
                 : c[0] < 0xe0 ? 2
                 : c[0] < 0xf0 ? 3
                 : c[0] < 0xf5 ? 4
                               : 0;
    if (n > left || (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    for (unsigned i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* A name from the table, as the inside of a JSON string; "" if it has none. */
static const char *name_of(struct out *o, unsigned number, char text[NAME_JSON])
{
    const struct bz_trace_name *name = &o->trace->names[number];
    const unsigned char *from = (const unsigned char *)name->text;
    size_t length = number != 0 ? name->length : 0, at = 0;
    for (size_t i = 0; i < length;) {
        unsigned n = utf8(from + i, length - i);
        if (n == 0)
            at += (size_t)sprintf(text + at, "\\ufffd"), n = 1;
        else if (n > 1)
            memcpy(text + at, from + i, n), at += n;
        else if (from[i] < 0x20 || from[i] == '"' || from[i] == '\\' || from[i] == 0x7f)
            at += (size_t)sprintf(text + at, "\\u%04x", from[i]);
        else
            text[at++] = (char)from[i];
        i += n;
    }
    text[at] = '\0';
    return text;
}

/* ---- events ---- */

/* Begin an event; the caller adds the fields of its kind, and a brace. */
static void event(struct out *o, const char *kind, unsigned row, uint64_t time)
{
    uint64_t since = time > o->start ? time - o->start : 0;
    put(o, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u,\"ts\":%" PRIu64 ".%03u", kind, PID, row,
        since / 1000, (unsigned)(since % 1000));
}

static void title(struct out *o, const struct bz_slice *s)
{
    char text[NAME_JSON];
    name_of(o, s->name, text);
    if (s->kind == BZ_TRACE_sleep)
        put(o, ",\"name\":\"asleep\",\"cat\":\"machine\"");
    else if (s->kind == BZ_TRACE_syscall_enter)
        put(o, ",\"name\":\"%s\",\"cat\":\"syscall\"", *text != '\0' ? text : "system call");
    else if (*text != '\0')
        put(o, ",\"name\":\"%s%s\",\"cat\":\"task\"", s->is_job ? "job of " : "", text);
    else
        put(o, ",\"name\":\"%s %" PRIu64 "\",\"cat\":\"task\"", s->is_job ? "job of task" : "task",
            s->task);
}

static const char *end_name(const struct bz_slice *s)
{
    static const char *const name[] = {[BZ_LEFT_CUT] = "",
                                       [BZ_LEFT_ENDS] = "ends",
                                       [BZ_LEFT_WAITS] = "waits",
                                       [BZ_LEFT_YIELDS] = "yields"};
    return s->is_open ? "goes on" : name[s->left];
}

static void put_slice(void *ctx, unsigned row, const struct bz_slice *s)
{
    struct out *o = ctx;
    char why[NAME_JSON];
    uint64_t length = s->end > s->begin ? s->end - s->begin : 0;
    event(o, "X", row, s->begin);
    put(o, ",\"dur\":%" PRIu64 ".%03u", length / 1000, (unsigned)(length % 1000));
    title(o, s);
    put(o, ",\"args\":{");
    if (s->proc != BZ_TRACE_NO_PROC)
        put(o, "\"proc\":%u,", s->proc);
    if (s->task != 0)
        put(o, "\"task\":%" PRIu64 ",", s->task);
    if (s->has_cause)
        put(o, "\"waited_us\":%" PRIu64 ".%03u,", s->waited / 1000, (unsigned)(s->waited % 1000));
    if (s->why != 0)
        put(o, "\"for\":\"%s\",", name_of(o, s->why, why));
    else if (s->is_below)
        put(o, "\"for\":\"a claimed child\",");
    put(o, "\"then\":\"%s\"}}", end_name(s));
}

static void put_cause(void *ctx, unsigned row, const struct bz_arrow *a)
{
    struct out *o = ctx;
    const char *what = a->is_spawn ? "spawn" : a->is_timer ? "timer" : "wake";
    if (!a->is_in_a_slice) {
        event(o, "X", row, a->time);
        put(o,
            ",\"dur\":0.001,\"name\":\"%s\",\"cat\":\"outside\",\"args\":{\"wakes\":%" PRIu64 "}}",
            what, a->task);
    }
    event(o, "s", row, a->time);
    put(o, ",\"id\":%" PRIu64 ",\"name\":\"wake\",\"cat\":\"wake\"", a->number);
    put(o, ",\"args\":{\"how\":\"%s\",\"task\":%" PRIu64 ",\"by\":%" PRIu64 "}}", what, a->task,
        a->by);
}

static void put_effect(void *ctx, unsigned row, const struct bz_arrow *a)
{
    struct out *o = ctx;
    event(o, "f", row, a->time);
    put(o, ",\"bp\":\"e\",\"id\":%" PRIu64 ",\"name\":\"wake\",\"cat\":\"wake\"}", a->number);
}

static void put_moment(void *ctx, unsigned row, const struct bz_record *r)
{
    struct out *o = ctx;
    char text[NAME_JSON];
    uint64_t arg = r->word[BZ_TRACE_ARG];
    event(o, "i", row, r->word[BZ_TRACE_TIME]);
    switch (bz_trace_event_of(r)) {
    case BZ_TRACE_steal:
        put(o, ",\"s\":\"t\",\"name\":\"steal\",\"args\":{\"from\":%" PRIu64 "}}", arg);
        break;
    case BZ_TRACE_handover:
        put(o, ",\"s\":\"p\",\"name\":\"hand-over\",\"args\":{\"proc\":%" PRIu64 "}}", arg);
        break;
    default: /* a user's mark */
        put(o, ",\"s\":\"t\",\"name\":\"%s\",\"cat\":\"mark\",\"args\":{\"task\":%" PRIu64 "}}",
            name_of(o, bz_trace_name_of(r), text), r->word[BZ_TRACE_TASK]);
        break;
    }
}

static void put_rows(struct out *o, unsigned rows)
{
    for (unsigned i = 0; i < rows; i++) {
        put(o, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"thread_sort_index\",", PID, i);
        put(o, "\"args\":{\"sort_index\":%u}}", i == 0 ? rows : i);
        put(o, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"thread_name\",", PID, i);
        if (i == 0)
            put(o, "\"args\":{\"name\":\"other threads\"}}");
        else
            put(o, "\"args\":{\"name\":\"machine %u\"}}", i);
    }
}

/* ---- copies of the rings ---- */

struct source {
    struct bz_trace_row *row;
    uint64_t from; /* the first record of the trace in it, or the first that is left */
    size_t room;   /* number of records when we looked */
};

struct copy {
    struct source *sources;
    struct bz_story_row *rows;
    unsigned count;
    struct bz_record *records; /* of all rows */
    size_t room;
    uint64_t lost;
};

static unsigned count_rows(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    bz_lock_take(&t->lock, rt->os);
    unsigned count = t->rows;
    bz_lock_drop(&t->lock, rt->os);
    return count;
}

/* Find the first record of the trace in each row, and the number of records. A row that was added
 * meanwhile is left out. */
static void look(struct bz_runtime *rt, struct copy *c)
{
    struct bz_trace *t = &rt->trace;
    bz_lock_take(&t->lock, rt->os);
    /* relaxed: we have the lock */
    for (struct bz_trace_row *r = bz_load_relaxed(&t->row); r != NULL; r = r->next) {
        uint64_t there = bz_tracering_count(&r->ring) - r->from;
        if (r->number >= c->count)
            continue;
        struct source *s = &c->sources[r->number];
        *s = (struct source){.row = r, .from = r->from};
        s->room = (size_t)(there < t->records ? there : t->records);
        c->room += s->room;
    }
    bz_lock_drop(&t->lock, rt->os);
}

static void copy_rows(struct copy *c)
{
    struct bz_record *to = c->records;
    for (unsigned i = 0; i < c->count; i++) {
        struct source *s = &c->sources[i];
        uint64_t lost = 0;
        size_t n = bz_tracering_read(&s->row->ring, &s->from, to, s->room, &lost);
        c->rows[i] = (struct bz_story_row){to, n, lost > 0};
        c->lost += lost;
        to += n;
    }
}

static void put_head(struct out *o, const char *name, const struct copy *c)
{
    uint64_t unrecorded = bz_load_relaxed(&o->trace->unrecorded); /* relaxed: statistics */
    uint64_t whole = bz_story_whole_from(c->rows, c->count);
    whole = whole > o->start ? whole - o->start : 0;
    put(o,
        "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"lost\":%" PRIu64 ",\"unrecorded\":%" PRIu64,
        c->lost, unrecorded);
    put(o, ",\"whole_from_us\":%" PRIu64 ".%03u},\n\"traceEvents\":[\n", whole / 1000,
        (unsigned)(whole % 1000));
    put(o, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}", PID,
        name);
    put_rows(o, c->count);
}

static int put_all(struct bz_runtime *rt, struct out *o, const struct copy *c)
{
    const struct bz_story_teller to = {put_slice, put_cause, put_effect, put_moment, o};
    put_head(o, rt->is.name, c);
    uint64_t end = bz_load_relaxed(&rt->trace.end_ns); /* relaxed: it was stopped before, or not */
    if (end == 0)
        end = bz_os_now(rt->os);
    int err = bz_story_tell(&rt->alloc, c->rows, c->count, end, &to);
    put(o, "\n]}\n");
    flush(o);
    return err != 0 ? err : o->err;
}

static int copy_and_put(struct bz_runtime *rt, struct out *o, struct copy *c)
{
    look(rt, c);
    size_t bytes = (c->room + 1) * sizeof *c->records;
    c->records = bz_alloc(&rt->alloc, bytes, _Alignof(struct bz_record));
    if (c->records == NULL)
        return -ENOMEM;
    copy_rows(c);
    int err = put_all(rt, o, c);
    bz_free(&rt->alloc, c->records, bytes);
    return err;
}

int bz_trace_json(struct bz_runtime *rt, int (*write)(const void *, size_t, void *), void *ctx)
{
    struct copy c = {.count = count_rows(rt)};
    size_t row_bytes = c.count * sizeof *c.rows, source_bytes = c.count * sizeof *c.sources;
    struct out *o = bz_alloc(&rt->alloc, sizeof *o, _Alignof(struct out));
    c.sources = bz_alloc(&rt->alloc, source_bytes, _Alignof(struct source));
    c.rows = bz_alloc(&rt->alloc, row_bytes, _Alignof(struct bz_story_row));
    int err = -ENOMEM;
    if (o != NULL && c.sources != NULL && c.rows != NULL) {
        /* relaxed: a caller that writes a trace has seen it started */
        uint64_t start = bz_load_relaxed(&rt->trace.start_ns);
        *o = (struct out){.trace = &rt->trace, .write = write, .ctx = ctx, .start = start};
        err = copy_and_put(rt, o, &c);
    }
    bz_free(&rt->alloc, c.rows, row_bytes);
    bz_free(&rt->alloc, c.sources, source_bytes);
    bz_free(&rt->alloc, o, sizeof *o);
    return err;
}
