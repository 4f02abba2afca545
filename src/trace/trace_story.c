/*
 * trace_story.c - from records to slices and arrows: the runs of each task, and their causes.
 *
 * All rows are merged in the order of time. A row has a stack of open slices: a task
 * that runs, a child that it has claimed and so runs on top, a system call in that. A task that leaves its
 * stack closes all open slices; a task that returns closes its own. A start, or a sleep, while a task is
 * open means that the task has yielded; so does its own start on another row. For each task we record whether a
 * wake or a spawn is pending: the next start is its effect.
 *
 * Two records of the same nanosecond, on two rows, have no order, and in virtual time whole
 * conversations take no time. In that case, a start whose cause we have not seen comes after the other records of
 * that moment.
 *
 * Records may be missing at the beginning of each row, up to different times. So nothing is
 * required: an end without a beginning is skipped, and a slice that is open at the end is closed there
 * and marked as open. An arrow that begins before all rows do is not drawn: its start may be
 * missing, and a later start is not its effect.
 *
 * I1  A slice is reported once, when it is closed; all are closed at the end.
 * I2  An arrow's effect is reported after its cause, and at most once.
 */
#include "trace/trace_story.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "task/task.h"

enum { DEEP = 64 }; /* nested claims that are drawn */

static_assert((int)BZ_LEFT_ENDS == 1 + (int)BZ_RAN_DONE &&
                  (int)BZ_LEFT_WAITS == 1 + (int)BZ_RAN_PENDING &&
                  (int)BZ_LEFT_YIELDS == 1 + (int)BZ_RAN_AGAIN,
              "left_by");

struct row {
    struct bz_story_row in;
    size_t at;
    struct bz_slice open[DEEP];
    unsigned depth;     /* of open, and beyond: the deeper ones are not drawn */
    uint64_t timer_for; /* the record before was a timer's, for this task */
    uint64_t over;      /* the last record except wakes was this task's end */
};

/* The known state of a task. */
struct known {
    uint64_t id;    /* 0: free */
    uint64_t arrow; /* pending arrow to it; 0: none */
    uint64_t woken; /* when */
    unsigned row;   /* the row where it last ran, + 1; 0: none */
};

struct story {
    const struct bz_story_teller *to;
    struct row *rows;
    unsigned count;
    struct known *tasks;
    size_t mask;
    uint64_t arrows; /* so far */
    uint64_t begin;  /* the time from which no row lacks records */
    uint64_t end;    /* the last time */
};

/* ---- tasks ---- */

/* Find or add a task. There is always room: there are more slots than records. */
static struct known *know(struct story *s, uint64_t id)
{
    size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 17) & s->mask;
    while (s->tasks[at].id != 0 && s->tasks[at].id != id)
        at = (at + 1) & s->mask;
    s->tasks[at].id = id;
    return &s->tasks[at];
}

/* ---- slices ---- */

static struct bz_slice *top(struct row *r)
{
    return r->depth > 0 && r->depth <= DEEP ? &r->open[r->depth - 1] : NULL;
}

static void close_top(struct story *s, struct row *r, uint64_t now, enum bz_left left, unsigned why)
{
    struct bz_slice *slice = top(r);
    r->depth--;
    if (slice == NULL)
        return; /* too deep */
    slice->end = now;
    slice->left = left;
    slice->why = why;
    s->to->slice(s->to->ctx, (unsigned)(r - s->rows), slice);
}

static void close_all(struct story *s, struct row *r, uint64_t now, enum bz_left left, unsigned why)
{
    while (r->depth > 0) {
        close_top(s, r, now, left, why);
        why = 0; /* only the top slice has the reason */
        if (top(r) != NULL)
            top(r)->is_below = true;
    }
}

static struct bz_slice *open_slice(struct row *r, const struct bz_record *e)
{
    static struct bz_slice none;
    struct bz_slice *slice = r->depth < DEEP ? &r->open[r->depth] : &none;
    r->depth++;
    *slice = (struct bz_slice){.kind = bz_trace_event_of(e),
                               .begin = e->word[BZ_TRACE_TIME],
                               .task = e->word[BZ_TRACE_TASK],
                               .name = bz_trace_name_of(e),
                               .proc = bz_trace_proc_of(e)};
    return slice;
}

/* ---- events ---- */

/* True if it is a job's header, which has its forker's id. */
static bool is_job_start(const struct bz_record *e)
{
    return bz_trace_event_of(e) == BZ_TRACE_start && (e->word[BZ_TRACE_ARG] & BZ_TASK_ANONYMOUS);
}

/* The task runs again, so it has yielded on its last row, if its slice is still open there. The
 * start of the next task on that row is recorded after this task was queued. */
static void left_elsewhere(struct story *s, struct row *here, const struct known *task,
                           uint64_t now)
{
    struct row *there = task->row != 0 ? &s->rows[task->row - 1] : here;
    for (unsigned i = 0; there != here && i < there->depth && i < DEEP; i++)
        if (there->open[i].task == task->id && !there->open[i].is_job)
            close_all(s, there, now, BZ_LEFT_YIELDS, 0);
}

/* A task runs from here on. */
static void run(struct story *s, struct row *r, const struct bz_record *e)
{
    uint64_t now = e->word[BZ_TRACE_TIME], id = e->word[BZ_TRACE_TASK];
    struct bz_slice *slice = open_slice(r, e);
    slice->is_job = is_job_start(e);
    if (slice->is_job)
        return; /* the arrows belong to its forker */
    struct known *task = know(s, id);
    left_elsewhere(s, r, task, now);
    task->row = 1 + (unsigned)(r - s->rows);
    if (task->arrow == 0)
        return;
    struct bz_arrow a = {.number = task->arrow, .time = now, .task = id, .is_in_a_slice = true};
    slice->has_cause = true;
    slice->waited = now > task->woken ? now - task->woken : 0;
    task->arrow = 0;
    s->to->effect(s->to->ctx, (unsigned)(r - s->rows), &a); /* I2 */
}

/* The task is queued, by a task or thread of this row. A task that is queued already has only
 * yielded. */
static void cause(struct story *s, struct row *r, const struct bz_record *e, bool is_spawn)
{
    struct known *task = know(s, e->word[BZ_TRACE_TASK]);
    if (task->arrow != 0 || e->word[BZ_TRACE_TIME] < s->begin)
        return;
    task->arrow = ++s->arrows;
    task->woken = e->word[BZ_TRACE_TIME];
    bool is_timer = !is_spawn && r->timer_for == task->id;
    uint64_t by = e->word[BZ_TRACE_ARG] != 0 ? e->word[BZ_TRACE_ARG] : r->over; /* its joiner */
    struct bz_arrow a = {.number = task->arrow,
                         .time = task->woken,
                         .task = task->id,
                         .by = is_timer ? 0 : by,
                         .is_spawn = is_spawn,
                         .is_timer = is_timer,
                         .is_in_a_slice = r->depth > 0};
    s->to->cause(s->to->ctx, (unsigned)(r - s->rows), &a);
}

/* How a task left its row, by the result of its `run`. */
static enum bz_left left_by(unsigned ran)
{
    if (ran == BZ_RAN_REST)
        return BZ_LEFT_WAITS; /* for its next message */
    return ran == BZ_RAN_JOB ? BZ_LEFT_ENDS : (enum bz_left)(1 + ran);
}

/* The top task has returned. */
static void returned(struct story *s, struct row *r, uint64_t now, uint64_t id, unsigned ran)
{
    struct bz_slice *t = top(r);
    if (r->depth > DEEP)
        r->depth--;
    else if (t != NULL && t->task == id)
        close_top(s, r, now, left_by(ran), 0);
}

/* The task leaves its stack, with all tasks on it. */
static void parked(struct story *s, struct row *r, const struct bz_record *e)
{
    struct bz_slice *t = top(r);
    if (r->depth > DEEP || (t != NULL && t->task == e->word[BZ_TRACE_TASK]))
        close_all(s, r, e->word[BZ_TRACE_TIME], BZ_LEFT_WAITS, bz_trace_name_of(e));
}

/* A task that had claimed a child continues. If the child has waited, the row may differ. */
static void back(struct story *s, struct row *r, const struct bz_record *e)
{
    uint64_t arg = e->word[BZ_TRACE_ARG], child = arg & (UINT64_MAX >> 2);
    returned(s, r, e->word[BZ_TRACE_TIME], child, (unsigned)(arg >> 62));
    struct bz_slice *t = top(r);
    if (r->depth <= DEEP && (t == NULL || t->task != e->word[BZ_TRACE_TASK]))
        run(s, r, e);
}

static void call_over(struct story *s, struct row *r, const struct bz_record *e,
                      enum bz_trace_event kind)
{
    struct bz_slice *t = top(r);
    if (t != NULL && t->kind == kind)
        close_top(s, r, e->word[BZ_TRACE_TIME], BZ_LEFT_CUT, 0);
}

static void tell(struct story *s, struct row *r, const struct bz_record *e)
{
    uint64_t timer_for = 0;
    switch (bz_trace_event_of(e)) {
    case BZ_TRACE_spawn:
        cause(s, r, e, true);
        break;
    case BZ_TRACE_wake:
        cause(s, r, e, false);
        break;
    case BZ_TRACE_start:
        close_all(s, r, e->word[BZ_TRACE_TIME], BZ_LEFT_YIELDS, 0);
        run(s, r, e);
        break;
    case BZ_TRACE_claim:
        run(s, r, e);
        break;
    case BZ_TRACE_back:
        back(s, r, e);
        break;
    case BZ_TRACE_park:
        parked(s, r, e);
        break;
    case BZ_TRACE_end:
        returned(s, r, e->word[BZ_TRACE_TIME], e->word[BZ_TRACE_TASK],
                 (unsigned)e->word[BZ_TRACE_ARG]);
        break;
    case BZ_TRACE_sleep:
        close_all(s, r, e->word[BZ_TRACE_TIME], BZ_LEFT_YIELDS, 0);
        open_slice(r, e);
        break;
    case BZ_TRACE_syscall_enter:
        open_slice(r, e);
        break;
    case BZ_TRACE_roused:
        call_over(s, r, e, BZ_TRACE_sleep);
        break;
    case BZ_TRACE_syscall_leave:
        call_over(s, r, e, BZ_TRACE_syscall_enter);
        break;
    case BZ_TRACE_timer:
        timer_for = e->word[BZ_TRACE_TASK];
        break;
    default: /* steal, handover, mark */
        s->to->moment(s->to->ctx, (unsigned)(r - s->rows), e);
        break;
    }
    r->timer_for = timer_for;
    if (bz_trace_event_of(e) != BZ_TRACE_wake)
        r->over = bz_trace_event_of(e) == BZ_TRACE_end ? e->word[BZ_TRACE_TASK] : 0;
}

/* ---- in the order of time ---- */

static const struct bz_record *head(const struct row *r)
{
    return r->at < r->in.count ? &r->in.records[r->at] : NULL;
}

/* True if it starts before it was woken. Then its cause is still to come, if it is on another
 * row. */
static bool is_early(struct story *s, const struct bz_record *e)
{
    enum bz_trace_event event = bz_trace_event_of(e);
    if ((event != BZ_TRACE_start && event != BZ_TRACE_claim) || is_job_start(e))
        return false;
    const struct known *task = know(s, e->word[BZ_TRACE_TASK]);
    return task->arrow == 0;
}

/* The row with the oldest next record; NULL: none. */
static struct row *next_row(struct story *s)
{
    struct row *best = NULL;
    bool best_is_early = false;
    for (unsigned i = 0; i < s->count; i++) {
        const struct bz_record *e = head(&s->rows[i]);
        if (e == NULL)
            continue;
        uint64_t than = best != NULL ? head(best)->word[BZ_TRACE_TIME] : 0;
        if (best == NULL || e->word[BZ_TRACE_TIME] < than ||
            (e->word[BZ_TRACE_TIME] == than && best_is_early && !is_early(s, e))) {
            best = &s->rows[i];
            best_is_early = is_early(s, e);
        }
    }
    return best;
}

static void tell_all(struct story *s)
{
    for (struct row *r; (r = next_row(s)) != NULL;) {
        const struct bz_record *e = &r->in.records[r->at++];
        s->end = e->word[BZ_TRACE_TIME] > s->end ? e->word[BZ_TRACE_TIME] : s->end;
        tell(s, r, e);
    }
    for (unsigned i = 0; i < s->count; i++) { /* I1 */
        for (unsigned n = 0; n < s->rows[i].depth && n < DEEP; n++)
            s->rows[i].open[n].is_open = true;
        close_all(s, &s->rows[i], s->end, BZ_LEFT_CUT, 0);
    }
}

uint64_t bz_story_whole_from(const struct bz_story_row *rows, unsigned count)
{
    uint64_t from = 0;
    for (unsigned i = 0; i < count; i++)
        if (rows[i].is_cut && rows[i].count > 0 && rows[i].records[0].word[BZ_TRACE_TIME] > from)
            from = rows[i].records[0].word[BZ_TRACE_TIME];
    return from;
}

int bz_story_tell(const blitz_allocator *alloc, const struct bz_story_row *rows, unsigned count,
                  uint64_t until, const struct bz_story_teller *to)
{
    size_t records = 0, places = 2;
    for (unsigned i = 0; i < count; i++)
        records += rows[i].count;
    while (places < 2 * (records + 1))
        places *= 2;
    struct story s = {.to = to, .count = count, .mask = places - 1, .end = until};
    s.begin = bz_story_whole_from(rows, count);
    size_t row_bytes = count * sizeof *s.rows, task_bytes = places * sizeof *s.tasks;
    s.rows = bz_alloc(alloc, row_bytes, _Alignof(struct row));
    s.tasks = bz_alloc(alloc, task_bytes, _Alignof(struct known));
    int err = s.rows != NULL && s.tasks != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        memset(s.rows, 0, row_bytes);
        memset(s.tasks, 0, task_bytes);
        for (unsigned i = 0; i < count; i++)
            s.rows[i].in = rows[i];
        tell_all(&s);
    }
    bz_free(alloc, s.tasks, task_bytes);
    bz_free(alloc, s.rows, row_bytes);
    return err;
}
