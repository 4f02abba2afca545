/*
 * trace_story.h - the records of all rows in one order, and their meaning: slices and arrows.
 *
 * trace_story.c merges the rows and keeps the open slices of each. It calls a listener with the
 * things to draw. trace_json.c is the listener that writes them to a file.
 */
#ifndef BZ_TRACE_STORY_H
#define BZ_TRACE_STORY_H

#include "base/alloc.h"
#include "trace/trace.h"

/* How a task leaves. */
enum bz_left { BZ_LEFT_CUT, BZ_LEFT_ENDS, BZ_LEFT_WAITS, BZ_LEFT_YIELDS };

/* A span of time: a run of a task, a system call, a sleep. */
struct bz_slice {
    enum bz_trace_event kind; /* start, claim: a task runs; syscall_enter, sleep */
    uint64_t begin, end;      /* ns */
    uint64_t task;            /* 0: none */
    unsigned name;            /* of the task, or of the call; 0: none */
    unsigned why;             /* the reason of its wait; 0: none */
    unsigned proc;            /* its proc; BZ_TRACE_NO_PROC: none */
    bool is_job;              /* a forked job of that task */
    bool is_open;             /* not over when the trace ended */
    bool is_below;            /* it left because the child that it had claimed left */
    enum bz_left left;        /* how it ended */
    uint64_t waited;          /* ns from its wake to here, if has_cause */
    bool has_cause;
};

/* An arrow from the wake or the spawn of a task to its next run. */
struct bz_arrow {
    uint64_t number; /* the same at both ends */
    uint64_t time;
    uint64_t task;
    uint64_t by;        /* the task that woke or spawned it; 0: none, or a timer */
    bool is_spawn;      /* not a wake */
    bool is_timer;      /* by a timer */
    bool is_in_a_slice; /* a slice is open on that row */
};

/* The listener. */
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

/* The time from which no row lacks records. */
uint64_t bz_story_whole_from(const struct bz_story_row *rows, unsigned count);

/* Call the listener for all records. Slices that are open at the end last until `until`.
 * Returns: 0, -ENOMEM. */
BZ_MUST_USE int bz_story_tell(const blitz_allocator *alloc, const struct bz_story_row *rows,
                              unsigned count, uint64_t until, const struct bz_story_teller *to);

#endif
