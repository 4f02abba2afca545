/*
 * trace.c - recording: the rows of the writers, names that outlive their tasks, starting and stopping.
 *
 * A machine writes into its own row, made at its first event. It is the only writer, so a
 * record is a few stores (tracering.h). The row belongs to the machine and not to the proc: a proc moves
 * while the machine that lost it still runs its task, and both record events. All other
 * threads (plain ones, the monitor, workers of other runtimes) share row 0 under a lock: their
 * events are wakes and spawns, which take locks anyway.
 *
 * The time is bz_os_now's: virtual under simulation, the same on all CPUs elsewhere, so that records
 * of two rows can be compared. It is read before the event becomes visible: for a wake, before the
 * task is queued, so that the following start cannot be older.
 *
 * A name lives as long as its task, and a record may be read long after that. So each name is copied
 * once into a table, and a record has its number. The reasons of waits and the user's marks go into the
 * same table. It is read without a lock and added to under one. Programs have few
 * different names; a task whose name does not fit has none in the trace.
 *
 * Memory is pages of the system and not of the user's allocator, which is user code and must not be
 * called where events happen. A machine that gets no memory counts its lost events.
 *
 * A second start uses the rows again from their current position: a machine that saw the flag a moment ago
 * may still be writing, and the ring has one writer. So a trace begins at a number in each ring.
 *
 * Rejected: one ring for all (a contended cache line at each event), a ring per proc (see above), a
 * name in each record (twice the size).
 *
 * I1  Rows are added and never removed before the runtime ends.
 * I2  records, names and row 0 are there before is_on is 1, and stay.
 *
 * [R] add_row: row release -> snapshots: row acquire   the row is filled in before it is found
 * [N] add_name: key release -> find: key acquire   the text is there
 * [S] begin_here: is_on release -> is_on: is_on acquire   I2. Every thread first reads the count of traced
 *     runtimes, which is a hint: an event is a little late, or checks once more for nothing
 */
#include "trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/unusual.h"
#include "blitz/trace.h"
#include "proc/state.h"

enum { RECORDS = 65536, RECORDS_MAX = 1 << 24, RECORDS_MIN = 16 };

static uint64_t round_up(uint64_t n)
{
    uint64_t size = RECORDS_MIN;
    while (size < n)
        size *= 2;
    return size;
}

bz_atomic(uint32_t) bz_traced;

static bool is_on(struct bz_trace *t)
{
    return bz_load_acquire(&t->is_on) != 0; /* [S] */
}

/* ---- names ---- */

static uint32_t key_of(const char *text, size_t length)
{
    uint32_t key = 2166136261u;
    for (size_t i = 0; i < length; i++)
        key = (key ^ (unsigned char)text[i]) * 16777619u;
    return key | 1; /* 0 is a free slot */
}

static bool is_it(const struct bz_trace_name *n, const char *text, size_t length)
{
    return n->length == length && memcmp(n->text, text, length) == 0;
}

/* The slot of the name, or a free one for it; from 1 on. 0: the table is full. */
static unsigned find(struct bz_trace *t, const char *text, size_t length, uint32_t key)
{
    for (unsigned i = 0; i < BZ_TRACE_NAMES - 1; i++) {
        unsigned at = 1 + (key + i) % (BZ_TRACE_NAMES - 1);
        uint32_t seen = bz_load_acquire(&t->names[at].key); /* [N] */
        if (seen == 0 || (seen == key && is_it(&t->names[at], text, length)))
            return at;
    }
    return 0;
}

static BZ_NOINLINE unsigned add_name(struct bz_runtime *rt, const char *text, size_t length,
                                     uint32_t key)
{
    struct bz_trace *t = &rt->trace;
    bz_lock_take(&t->lock, rt->os);
    unsigned at = find(t, text, length, key);
    struct bz_trace_name *n = &t->names[at];
    if (at != 0 && bz_load_relaxed(&n->key) == 0) { /* relaxed: we have the lock */
        memcpy(n->text, text, length);
        n->length = (uint32_t)length;
        bz_store_release(&n->key, key); /* [N] */
    }
    bz_lock_drop(&t->lock, rt->os);
    return at;
}

/* The number of a text; 0: none. */
static unsigned number_of(struct bz_runtime *rt, const char *text)
{
    if (text == NULL)
        return 0;
    size_t length = strnlen(text, BZ_TRACE_NAME_MAX - 1);
    uint32_t key = key_of(text, length);
    unsigned at = find(&rt->trace, text, length, key);
    if (at == 0 || bz_load_acquire(&rt->trace.names[at].key) != 0) /* [N] */
        return at;
    return add_name(rt, text, length, key);
}

/* ---- rows ---- */

/* Add a row to the list; NULL if there is no memory. */
static struct bz_trace_row *add_row(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    struct bz_os_slab slab;
    size_t page = bz_os_page_bytes(rt->os), words = sizeof(struct bz_record) * (size_t)t->records;
    size_t head = (sizeof(struct bz_trace_row) + BZ_LINE - 1) / BZ_LINE * BZ_LINE;
    size_t bytes = (head + words + page - 1) / page * page;
    if (bz_os_slab_reserve(rt->os, &slab, bytes, 0, BZ_OS_SLAB_PLAIN, "blitz-trace") != 0)
        return NULL;
    struct bz_trace_row *row = (void *)slab.base;
    *row = (struct bz_trace_row){.slab = slab};
    bz_tracering_init(&row->ring, (void *)(slab.base + head), t->records);
    bz_lock_take(&t->lock, rt->os);
    row->number = t->rows++;
    row->next = bz_load_relaxed(&t->row); /* relaxed: we have the lock */
    bz_store_release(&t->row, row);       /* [R] */
    bz_lock_drop(&t->lock, rt->os);
    return row;
}

/* Row 0, which was added first. */
static struct bz_trace_row *shared_row(struct bz_trace *t)
{
    struct bz_trace_row *row = bz_load_acquire(&t->row); /* [R] */
    while (row != NULL && row->number != 0)
        row = row->next;
    return row;
}

/* ---- recording ---- */

static void record_elsewhere(struct bz_runtime *rt, const struct bz_record *r)
{
    struct bz_trace *t = &rt->trace;
    bz_lock_take(&t->lock, rt->os);
    bz_tracering_push(&shared_row(t)->ring, r);
    bz_lock_drop(&t->lock, rt->os);
}

static void record_here(struct bz_machine *m, const struct bz_record *r)
{
    if (m->trace == NULL && (m->trace = add_row(m->rt)) == NULL)
        bz_fetch_add_relaxed(&m->rt->trace.unrecorded, 1); /* relaxed: statistics */
    else
        bz_tracering_push(&m->trace->ring, r);
}

void bz_trace_record(struct bz_runtime *rt, enum bz_trace_event event, uint64_t task, uint64_t arg,
                     const char *text)
{
    struct bz_machine *m = bz_machine_self();
    unsigned proc = BZ_TRACE_NO_PROC;
    uint64_t now = bz_os_now(rt->os);
    if (!is_on(&rt->trace))
        return;
    if (m != NULL && m->rt != rt)
        m = NULL;
    if (m != NULL && m->proc != NULL)
        proc = m->proc->index;
    if (arg == 0 && m != NULL && m->current != NULL &&
        (event == BZ_TRACE_wake || event == BZ_TRACE_spawn || event == BZ_TRACE_claim))
        arg = m->current->id;
    struct bz_record r = {{now, bz_trace_what(event, number_of(rt, text), proc), task, arg}};
    if (m != NULL)
        record_here(m, &r);
    else
        record_elsewhere(rt, &r);
}

void bz_trace_record_wake(struct bz_task *t, uint64_t by)
{
    if (!(t->traits & BZ_TASK_ANONYMOUS))
        bz_trace_record(t->rt, BZ_TRACE_wake, t->id, by, NULL);
}

void blitz_trace_mark(const char *text)
{
    struct bz_task *t = bz_task_self();
    if (t != NULL && text != NULL)
        bz_trace(t->rt, mark, t->id, 0, text);
}

/* ---- starting and stopping ---- */

static struct bz_runtime *runtime_of(blitz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (rt != NULL)
        return (struct bz_runtime *)rt;
    return m != NULL ? m->rt : NULL;
}

/* Allocate the table of names and row 0, once. */
static int make_room(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    size_t page = bz_os_page_bytes(rt->os);
    size_t bytes = (BZ_TRACE_NAMES * sizeof *t->names + page - 1) / page * page;
    if (t->names == NULL) {
        if (bz_os_slab_reserve(rt->os, &t->names_slab, bytes, 0, BZ_OS_SLAB_PLAIN, "blitz-trace") !=
            0)
            return -ENOMEM;
        t->names = (void *)t->names_slab.base; /* zeroed: all are free */
    }
    return shared_row(t) != NULL || add_row(rt) != NULL ? 0 : -ENOMEM;
}

static void begin_here(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    bz_lock_take(&t->lock, rt->os);
    /* relaxed: we have the lock */
    for (struct bz_trace_row *row = bz_load_relaxed(&t->row); row != NULL; row = row->next)
        row->from = bz_tracering_count(&row->ring);
    bz_lock_drop(&t->lock, rt->os);
    bz_store_relaxed(&t->unrecorded, 0);               /* relaxed: statistics */
    bz_store_relaxed(&t->start_ns, bz_os_now(rt->os)); /* relaxed: its reader knows that it is on */
    bz_store_relaxed(&t->end_ns, 0);                   /* relaxed: as above */
    bz_store_release(&t->is_on, 1);                    /* [S] */
    bz_fetch_add_relaxed(&bz_traced, 1);               /* relaxed: a hint, [S] */
    bz_unusual_begin();
}

/* Returns false if it was off. */
static bool end_here(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    bz_lock_take(&t->switch_lock, rt->os);
    bool was_on = is_on(t);
    bz_store_relaxed(&t->is_on, 0); /* relaxed: writers stop soon */
    if (was_on) {
        bz_fetch_sub_relaxed(&bz_traced, 1); /* relaxed: a hint, [S] */
        bz_unusual_end();
        bz_store_relaxed(&t->end_ns, bz_os_now(rt->os)); /* relaxed: as start_ns */
    }
    bz_lock_drop(&t->switch_lock, rt->os);
    return was_on;
}

/* Record a start of the calling task, if it traces its own runtime: its real start is not in the
 * trace. */
static void record_caller(struct bz_runtime *rt)
{
    struct bz_task *t = bz_task_self();
    if (t != NULL && t->rt == rt)
        bz_trace_record(rt, BZ_TRACE_start, t->id, t->traits, t->name);
}

int blitz_trace_start(blitz_runtime *runtime, const blitz_trace_opts *opts)
{
    struct bz_runtime *rt = runtime_of(runtime);
    uint64_t records = opts != NULL && opts->records != 0 ? opts->records : RECORDS;
    if (rt == NULL || records > RECORDS_MAX)
        return -EINVAL;
    struct bz_trace *t = &rt->trace;
    int err = -EBUSY;
    bz_lock_take(&t->switch_lock, rt->os);
    if (!is_on(t)) {
        if (t->records == 0)
            t->records = round_up(records);
        err = make_room(rt);
        if (err == 0)
            begin_here(rt);
    }
    bz_lock_drop(&t->switch_lock, rt->os);
    if (err == 0)
        record_caller(rt);
    return err;
}

int blitz_trace_stop(blitz_runtime *runtime)
{
    struct bz_runtime *rt = runtime_of(runtime);
    if (rt == NULL)
        return -EINVAL;
    return end_here(rt) ? 0 : -EALREADY;
}

/* ---- writing ---- */

int blitz_trace_write_to(blitz_runtime *runtime, blitz_trace_fn write, void *ctx)
{
    struct bz_runtime *rt = runtime_of(runtime);
    if (rt == NULL || write == NULL)
        return -EINVAL;
    if (bz_load_acquire(&rt->trace.row) == NULL) /* [R] */
        return -ENODATA;
    return bz_trace_json(rt, write, ctx);
}

static int write_file(const void *data, size_t bytes, void *file)
{
    return fwrite(data, 1, bytes, file) == bytes ? 0 : -errno;
}

int blitz_trace_write(blitz_runtime *rt, const char *path)
{
    if (path == NULL || runtime_of(rt) == NULL)
        return -EINVAL;
    FILE *file = fopen(path, "we"); /* e: not inherited by a child that is started meanwhile */
    if (file == NULL)
        return -errno;
    int err = blitz_trace_write_to(rt, write_file, file);
    if (fclose(file) != 0 && err == 0)
        err = -errno;
    return err;
}

/* ---- with the runtime ---- */

void bz_trace_init(struct bz_trace *t)
{
    *t = (struct bz_trace){.records = 0};
    bz_atomic_init(&t->is_on, 0);
    bz_lock_init(&t->lock);
    bz_lock_init_ranked(&t->switch_lock, BZ_RANK_RUNTIME);
    bz_atomic_init(&t->row, NULL);
    bz_atomic_init(&t->unrecorded, 0);
    bz_atomic_init(&t->start_ns, 0);
    bz_atomic_init(&t->end_ns, 0);
}

/* The first runtime's file has the requested name; each further one has a number behind it. */
static char *path_for(struct bz_runtime *rt, const char *asked, size_t *bytes)
{
    static bz_atomic(unsigned) count;
    unsigned n = bz_fetch_add_relaxed(&count, 1) + 1; /* relaxed: a number */
    *bytes = strlen(asked) + 16;
    char *path = bz_alloc(&rt->alloc, *bytes, 1);
    if (path != NULL && n == 1)
        snprintf(path, *bytes, "%s", asked);
    else if (path != NULL)
        snprintf(path, *bytes, "%s.%u", asked, n);
    return path;
}

void bz_trace_begin(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent setenv is the program's fault */
    const char *asked = getenv("BLITZ_TRACE");
    if (asked == NULL || *asked == '\0')
        return;
    blitz_trace_opts opts = {.records = (size_t)rt->is.trace_records};
    t->path = path_for(rt, asked, &t->path_bytes);
    int err = t->path != NULL ? blitz_trace_start((blitz_runtime *)rt, &opts) : -ENOMEM;
    if (err == 0)
        return;
    bz_free(&rt->alloc, t->path, t->path_bytes);
    t->path = NULL;
    bz_log(BLITZ_LOG_WARN, "BLITZ_TRACE=%s: nothing is traced (error %d)", asked, -err);
}

void bz_trace_finish(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    end_here(rt);
    int err = t->path != NULL ? blitz_trace_write((blitz_runtime *)rt, t->path) : 0;
    if (err != 0)
        bz_log(BLITZ_LOG_ERROR, "the trace could not be written to %s (error %d)", t->path, -err);
}

void bz_trace_fini(struct bz_runtime *rt)
{
    struct bz_trace *t = &rt->trace;
    struct bz_trace_row *row = bz_load_acquire(&t->row); /* [R] */
    while (row != NULL) {
        struct bz_os_slab slab = row->slab; /* the row lies in it */
        row = row->next;
        bz_os_slab_release(rt->os, &slab);
    }
    if (t->names != NULL)
        bz_os_slab_release(rt->os, &t->names_slab);
    bz_free(&rt->alloc, t->path, t->path_bytes);
}
