/*
 * trace.h - a record of events: a ring for each machine, and the flag that turns tracing on.
 *
 * To record an event, in one line:
 *
 *     bz_trace(rt, steal, 0, victim->index, NULL);
 *
 * With tracing off that is a compare and a branch that is never taken; the arguments are not evaluated.
 * With it on, a record goes into the ring of the calling machine, with or without a proc, or into the
 * ring that all other threads share. The same line is a static probe (os/probe.h), which evaluates `task` and
 * `arg`: they should be cheap.
 *
 *   event          task            arg                    text
 *   spawn          the new task    0: by the current one  its name
 *   start          runs here       its traits             its name
 *   claim          a child         0: the current one     its name; its joiner calls it
 *   back           the claimer     bz_trace_child()       its name; it continues after that
 *   park           leaves          0                      the target of its wait
 *   end            has returned    enum bz_ran            perhaps to run again
 *   wake           is queued       0: by the current one
 *   steal          0               from which proc
 *   handover       0               which proc, to another machine
 *   syscall_enter  the caller      0                      which, if that is known
 *   syscall_leave  the caller      0
 *   timer          the woken task  0
 *   sleep          0               0                      the machine sleeps
 *   roused         0               0                      ... and has woken
 *   mark           the caller      0                      the user's text
 *
 * A yield has no event: the start of another task while a task runs shows it. trace.c has the design, trace_json.c
 * writes the file.
 */
#ifndef BZ_TRACE_H
#define BZ_TRACE_H

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/probe.h"
#include "trace/tracering.h"

struct bz_machine;
struct bz_runtime;
struct bz_task;

enum bz_trace_event {
    BZ_TRACE_NOTHING,
    BZ_TRACE_spawn, /* the names of the probes */
    BZ_TRACE_start,
    BZ_TRACE_claim,
    BZ_TRACE_back,
    BZ_TRACE_park,
    BZ_TRACE_end,
    BZ_TRACE_wake,
    BZ_TRACE_steal,
    BZ_TRACE_handover,
    BZ_TRACE_syscall_enter,
    BZ_TRACE_syscall_leave,
    BZ_TRACE_timer,
    BZ_TRACE_sleep,
    BZ_TRACE_roused,
    BZ_TRACE_mark
};

/* ---- a record: the time, this, the task, the argument ---- */

enum { BZ_TRACE_TIME, BZ_TRACE_WHAT, BZ_TRACE_TASK, BZ_TRACE_ARG };
enum { BZ_TRACE_NO_PROC = 0xffff };

static inline uint64_t bz_trace_what(enum bz_trace_event event, unsigned name, unsigned proc)
{
    return (uint64_t)event | (uint64_t)name << 16 | (uint64_t)proc << 32;
}
static inline enum bz_trace_event bz_trace_event_of(const struct bz_record *r)
{
    return (enum bz_trace_event)(r->word[BZ_TRACE_WHAT] & 0xffff);
}
static inline unsigned bz_trace_name_of(const struct bz_record *r)
{
    return (unsigned)(r->word[BZ_TRACE_WHAT] >> 16 & 0xffff);
}
static inline unsigned bz_trace_proc_of(const struct bz_record *r)
{
    return (unsigned)(r->word[BZ_TRACE_WHAT] >> 32 & 0xffff);
}

/* The child's part of `back`: which child, and how it left. */
static inline uint64_t bz_trace_child(uint64_t id, unsigned ran)
{
    return id | (uint64_t)ran << 62;
}

/* ---- the state in a runtime ---- */

/* One writer's records. Lives from its first event to the runtime's end. */
struct bz_trace_row {
    struct bz_tracering ring;
    struct bz_trace_row *next; /* constant once it is in the list */
    unsigned number;           /* 0: threads that are no machines; constant */
    uint64_t from;             /* the first record of the current trace; guarded by trace.lock */
    struct bz_os_slab slab;    /* the row is at its beginning; constant */
};

enum { BZ_TRACE_NAMES = 512, BZ_TRACE_NAME_MAX = 56 };
struct bz_trace_name {
    bz_atomic(uint32_t) key; /* 0: free; written under trace.lock once text is there */
    uint32_t length;
    char text[BZ_TRACE_NAME_MAX];
};

struct bz_trace {
    bz_atomic(uint32_t) is_on;            /* written by start and stop under switch_lock */
    struct bz_lock lock;                  /* a leaf: guards the lists, new names, and row 0 */
    struct bz_lock switch_lock;           /* rank: first; held while it is started or stopped */
    uint64_t records;                     /* of a row; constant after the first start */
    unsigned rows;                        /* the number of rows; guarded by lock */
    bz_atomic(struct bz_trace_row *) row; /* the newest; row 0 is the last of the list */
    struct bz_trace_name *names;          /* constant after the first start, like the next */
    struct bz_os_slab names_slab;
    bz_atomic(uint64_t) unrecorded; /* events lost for lack of memory; statistics */
    bz_atomic(uint64_t) start_ns;   /* when the current trace began; written by start */
    bz_atomic(uint64_t) end_ns;     /* when it was stopped; 0: it still runs; likewise */
    char *path;                     /* the file to write at the end; NULL: none; constant */
    size_t path_bytes;
};

/* The number of traced runtimes of the process. One flag for all is the fastest check; the slow
 * half checks the runtime. */
extern BZ_HIDDEN bz_atomic(uint32_t) bz_traced;

#if defined(BZ_MODEL) || defined(BZ_TRACE_LEFT_OUT)
static inline bool bz_trace_is_on(void)
{
    return false; /* not for the model checker; bench/fair leaves it out, to compare */
}
#else
static BZ_ALWAYS_INLINE bool bz_trace_is_on(void)
{
    return bz_load_relaxed(&bz_traced) != 0; /* relaxed: a hint, trace.c [S] */
}
#endif

/* The slow half of bz_trace. Any thread. */
BZ_COLD void bz_trace_record(struct bz_runtime *rt, enum bz_trace_event event, uint64_t task,
                             uint64_t arg, const char *text);

/* A job's header has the id of its forker, which the event is not about: not recorded. */
BZ_COLD void bz_trace_record_wake(struct bz_task *t, uint64_t by);

#define bz_trace(rt_, event_, task_, arg_, text_)                        \
    do {                                                                 \
        BZ_PROBE(event_, task_, arg_);                                   \
        if (BZ_UNLIKELY(bz_trace_is_on()))                               \
            bz_trace_record(rt_, BZ_TRACE_##event_, task_, arg_, text_); \
    } while (0)

/* The same without a probe: for arguments that are not cheap. */
#define bz_trace_quiet(rt_, event_, task_, arg_, text_)                  \
    do {                                                                 \
        if (BZ_UNLIKELY(bz_trace_is_on()))                               \
            bz_trace_record(rt_, BZ_TRACE_##event_, task_, arg_, text_); \
    } while (0)

/* A task is about to be queued because it was woken; by 0: the current task. */
#define bz_trace_wake(t_, by_)             \
    do {                                   \
        BZ_PROBE(wake, (t_)->id, by_);     \
        if (BZ_UNLIKELY(bz_trace_is_on())) \
            bz_trace_record_wake(t_, by_); \
    } while (0)

/* With the runtime: initialize the fields; start tracing if the environment asks for it; write the
 * rest at the end, when all machines have left; free the memory. */
void bz_trace_init(struct bz_trace *t);
void bz_trace_begin(struct bz_runtime *rt);
void bz_trace_finish(struct bz_runtime *rt);
void bz_trace_fini(struct bz_runtime *rt);

/* trace_json.c. Returns: as blitz_trace_write_to. */
BZ_MUST_USE int bz_trace_json(struct bz_runtime *rt, int (*write)(const void *, size_t, void *),
                              void *ctx);

#endif
