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

/* Something that takes time: a run of a task, a system call, a sleep. */
struct bz_slice {
    enum bz_trace_event kind; /* start, claim: a task runs; syscall_enter, sleep */
    uint64_t begin, end;      /* ns */
    uint64_t task;            /* 0: none */
    unsigned name;            /* of the task, or of the call; 0: none */
    unsigned why;             /* it ended: the reason of a wait; 0: none */
    unsigned proc;            /* on which; BZ_TRACE_NO_PROC: none */
    bool is_job;              /* a forked job of that task */
    bool is_open;             /* it was not over when the trace ended */
    enum bz_trace_event by;   /* what ended it; BZ_TRACE_NOTHING: we do not know */
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
};

/* Returns: 0, -ENOMEM. */
BZ_MUST_USE int bz_story_tell(const blitz_allocator *alloc, const struct bz_story_row *rows,
                              unsigned count, const struct bz_story_teller *to);

#endif
