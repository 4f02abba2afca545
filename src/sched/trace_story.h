/*
 * trace_story.h - the records of all rows in one order, and what they mean: slices and arrows.
 *
 * trace_story.c puts the rows together and keeps what is open on each; it tells whoever listens what
 * there is to draw. trace_json.c listens and writes it down.
 */
#ifndef BZ_TRACE_STORY_H
#define BZ_TRACE_STORY_H

#include "base/alloc.h"
#include "sched/trace.h"

/* How a task leaves. */
enum bz_left { BZ_LEFT_CUT, BZ_LEFT_ENDS, BZ_LEFT_WAITS, BZ_LEFT_YIELDS };

/* Something that takes time: a run of a task, a system call, a sleep. */
struct bz_slice {
    enum bz_trace_event kind; /* start, claim: a task runs; syscall_enter, sleep */
    uint64_t begin, end;      /* ns */
    uint64_t task;            /* 0: none */
    unsigned name;            /* of the task, or of the call; 0: none */
    unsigned why;             /* it waits: for what; 0: none */
    unsigned proc;            /* on which; BZ_TRACE_NO_PROC: none */
    bool is_job;              /* a forked job of that task */
    bool is_open;             /* it was not over when the trace ended */
    bool is_below;            /* it left because the child it had claimed did */
    enum bz_left left;        /* how it ended */
    uint64_t waited;          /* ns from its wake to here, if has_cause */
    bool has_cause;
};

/* From the wake or the spawn of a task to where it runs. */
struct bz_arrow {
    uint64_t number; /* the same at both ends */
    uint64_t time;
    uint64_t task;
    uint64_t by;        /* the task that did it; 0: none, or a timer */
    bool is_spawn;      /* not a wake */
    bool is_timer;      /* by a timer */
    bool is_in_a_slice; /* something is open on that row */
};

/* Whoever listens. */
struct bz_story_teller {
    void (*slice)(void *ctx, unsigned row, const struct bz_slice *s); /* when it is over */
    void (*cause)(void *ctx, unsigned row, const struct bz_arrow *a);
    void (*effect)(void *ctx, unsigned row, const struct bz_arrow *a);
    void (*moment)(void *ctx, unsigned row, const struct bz_record *r); /* steal, handover, mark */
    void *ctx;
};

/* The records of one row, oldest first. */
struct bz_story_row {
    const struct bz_record *records;
    size_t count;
    bool is_cut; /* older ones were overwritten */
};

/* From when on no row lacks anything. */
uint64_t bz_story_whole_from(const struct bz_story_row *rows, unsigned count);

/* What is open at the end is open until `until`.
 * Returns: 0, -ENOMEM. */
BZ_MUST_USE int bz_story_tell(const blitz_allocator *alloc, const struct bz_story_row *rows,
                              unsigned count, uint64_t until, const struct bz_story_teller *to);

#endif
