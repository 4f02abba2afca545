/*
 * engine.h - shared by the files of the checker: one execution, as a graph of events.
 *
 * explore.c explains the search, memory.c the memory model, sc.c the seq_cst order, wait.c sleeping
 * and membarrier, report.c and order.c what is said about a failure. All of them work on one global
 * `m`, because there is one execution at a time. It is rebuilt hundreds of thousands of times a
 * second: so it has fixed arrays and indices instead of pointers, and only used parts are cleared.
 */
#ifndef M_ENGINE_H
#define M_ENGINE_H

#include <stdint.h>

#include "base/compiler.h"
#include "clock.h"
#include "coro.h"
#include "model.h"
#include "../../canaries/planted.h"

#define M_THREADS_MAX (M_LANES - 1) /* lane 0 is the body of the MODEL */
#define M_EVENTS_MAX 4096
#define M_LOCS_MAX 512
#define M_NODES_MAX 4096
#define M_OPTIONS_MAX 256
#define M_BLOCKS_MAX 256
#define M_WATCH_MAX 32
#define M_BARRIERS_MAX 16
#define M_NONE (-1)

enum m_kind {
    M_FIRST, /* the initial value of a location: before everything */
    M_LOAD,
    M_STORE,
    M_RMW,
    M_CAS,
    M_FENCE,
    M_INIT,
    M_GET,
    M_SET,
    M_RELAX,
    M_WAIT,
    M_WOKEN,
    M_WAKE,
    M_BARRIER_BEGIN,
    M_BARRIER_FENCE, /* on behalf of another thread's membarrier */
    M_BARRIER_END,
    M_ALLOC,
    M_FREE,
    M_NOTE
};

enum m_outcome { M_READS, M_WRITES, M_FOR_NO_REASON };

struct m_event {
    uint8_t kind, thread, order, outcome;
    uint8_t rmw_op, size;
    bool is_write; /* takes a place in the modification order */
    bool is_rmw;   /* ... right after the store it read */
    int16_t index; /* in its thread, from 1 */
    int16_t loc;   /* or M_NONE */
    int16_t rf;    /* the store it read, or M_NONE */
    int16_t mo_prev, mo_next;
    int16_t loc_prev; /* the previous read or attempt on this location */
    int16_t pick;     /* a decision that is not a place in a history: whom to wake */
    int32_t node;     /* the decision at which it was taken, or M_NONE */
    uint64_t got, put, expected;
    const struct m_site *at;
    union m_clock hb,
        porf;           /* events that happen before it; events it depends on. Itself included */
    union m_clock rel;  /* a store: what an acquiring reader comes to know */
    union m_clock seen; /* a store: first event of each thread that wrote or read it */
};

struct m_loc {
    uintptr_t addr;
    uint8_t size;
    int16_t block; /* the model allocation it lies in, or M_NONE */
    int16_t mo_first, mo_last;
    int16_t accesses;                        /* newest of the chain through loc_prev */
    int16_t plain_write;                     /* last plain write, or M_NONE */
    union m_clock plain_read, read, written; /* last event of each thread */
    union m_clock wake_hb;                   /* the clocks of the wakes on this word */
    uint64_t original;                       /* real memory at first sight, put back at the end */
    const struct m_site *at;
};

enum m_state {
    M_RUNNABLE,
    M_ASLEEP,         /* by the search: until there is a new store to `pending`, explore.c */
    M_ASLEEP_BARRIER, /* by the search: until a membarrier begins */
    M_SPINNING,       /* in m_relax until there is news */
    M_WAITING,        /* in m_word_wait */
    M_FENCING,        /* in m_membarrier */
    M_JOINING,        /* the body of the MODEL, in m_threads */
    M_DONE
};

struct m_watch {
    int16_t loc, store;
};

struct m_thread {
    enum m_state state;
    int16_t index;
    union m_clock hb, porf;
    union m_clock acq;    /* the events that an acquire fence would add to hb */
    union m_clock rel;    /* hb at the last release fence */
    int16_t pending;      /* M_ASLEEP: the location; M_WAITING: the word */
    int since;            /* M_ASLEEP: events from here on are news */
    uint8_t pending_kind; /* M_ASLEEP: the m_kind it sleeps before */
    bool is_timed;        /* M_WAITING with a deadline */
    uint32_t expected;    /* M_WAITING */
    int16_t woken_by;     /* the wake that ended it */
    int16_t watches;
    struct m_watch watch[M_WATCH_MAX]; /* read since the last relax */
    uint64_t turn, old_turn;           /* digest of what it did since the last relax; before */
    bool waited_for_news, watches_too_many;
    bool declines; /* something in the streak of reads was not the newest */
    int relaxes, tries, streak;
    uint32_t owes;     /* bit per membarrier whose fence it has yet to run */
    int16_t owed_to;   /* M_FENCING: the membarrier */
    int set_event;     /* the m_set under way */
    int32_t last_read; /* the decision of its last read, or M_NONE */
    int priority;      /* random phase */
    void (*fn)(void);
    int points; /* positions at which a fence for a membarrier could have been */
    struct {
        int16_t index;
        int32_t node;
    } point[M_EVENTS_MAX / 8]; /* not cleared, from here on */
    struct m_coro coro;
};

struct m_block {
    uintptr_t addr;
    size_t size;
    int16_t alloc_event, free_event;
};

struct m_barrier {
    int16_t begin; /* event */
    uint8_t caller;
    uint32_t missing;       /* bit per thread */
    union m_clock hb, porf; /* of the fences so far */
};

/* One decision of the search. */
struct m_node {
    uint16_t pick, count;
    bool can_defer, is_wanted, is_deferring;
    int defers_before;
    struct m_site *at;
};

enum m_mode { M_SEARCH, M_RANDOM, M_REPLAY };
enum m_end { M_END_NONE, M_END_COMPLETE, M_END_PRUNED, M_END_FAILED };
enum m_fault {
    M_FAULT_NONE,
    M_FAULT_ASSERT,
    M_FAULT_RACE,
    M_FAULT_DEADLOCK,
    M_FAULT_LOST_WAKEUP,
    M_FAULT_LIVELOCK,
    M_FAULT_SPIN,
    M_FAULT_USE_AFTER_FREE,
    M_FAULT_DOUBLE_FREE,
    M_FAULT_LEAK,
    M_FAULT_CRASH,
    M_FAULT_LIMIT,
    M_FAULT_NEVER_SEEN
};

struct m_step {
    uint8_t thread;
    bool is_fence, is_odd; /* a membarrier's fence; "for no reason" */
    int16_t choice;        /* how old, how far back, or whom */
};

struct m_engine {
    /* the execution */
    int events, locs, blocks, barriers, threads, current;
    uint32_t generation;
    int nodes_used;    /* cursor into node[] */
    int32_t last_node; /* of the last m_choose_or_defer, or M_NONE */
    int defers, spurious_left;
    enum m_end end;
    enum m_fault fault;
    char fault_text[512];
    const struct m_site *fault_at;
    int other_event; /* the other half of a race, or M_NONE */
    bool in_threads;
    int ended_at; /* events from here on are of the body, after its threads; M_NONE before */
    const char *thread_names;
    struct m_coro engine;

    /* the search */
    enum m_mode mode;
    int nodes;
    struct m_node node[M_NODES_MAX];
    bool always_defer; /* no reduction: for checking the reduction */
    int bound;         /* most deferrals in one execution, or M_NONE */
    bool bound_hit;
    bool uses_barrier, found_barrier, found_sc;
    uint64_t executions, pruned, inconsistent;
    int longest;
    struct m_site *branching;

    /* the random phase and replays */
    uint64_t rng;
    int change_point[8], steps;
    const struct m_step *script;
    int script_length, script_at;

    struct m_settings set;
    int sc_events;
    struct m_event event[M_EVENTS_MAX];
    struct m_loc loc[M_LOCS_MAX];
    struct m_thread thread[M_LANES];
    struct m_block block[M_BLOCKS_MAX];
    struct m_barrier barrier[M_BARRIERS_MAX];
};
extern struct m_engine m;

static inline struct m_thread *m_me(void)
{
    return &m.thread[m.current];
}

/* Did the event happen before what the clock knows? */
static inline bool m_before(const struct m_event *e, const union m_clock *c)
{
    return c->at[e->thread] >= e->index;
}

/* explore.c */
__attribute__((noreturn)) void m_stop(enum m_end end);
__attribute__((noreturn, format(printf, 3, 4))) void
m_fail(enum m_fault fault, const struct m_site *at, const char *format, ...);
int m_choose(int count, struct m_site *at);
int m_choose_or_defer(int count, struct m_site *at);
void m_block(void);
void m_step_begin(void);
void m_replay_step(int step);
bool m_others_can_run(void);
void m_flag_readers(const struct m_loc *x);
enum m_end m_execute(void (*body)(void));
bool m_backtrack(void);
void m_thread_reset(struct m_thread *t);
uint64_t m_random(void);

/* memory.c */
struct m_option {
    uint32_t store : 20, outcome : 12; /* one word: written and read as such */
};
struct m_wish {
    enum m_kind kind;
    bool is_weak;
    uint64_t expected; /* M_CAS */
};
void m_memory_reset(void);
void m_memory_restore(void);
void m_history(struct m_loc *x);
struct m_loc *m_loc_of(const volatile void *p, size_t size, struct m_site *at);
int m_options(const union m_clock *floor, const struct m_loc *x, const struct m_wish *wish,
              int since, struct m_option *out);
int m_places(const union m_clock *floor, const struct m_loc *x, int16_t *after);
struct m_event *m_event_new(enum m_kind kind, enum m_order order, struct m_loc *x,
                            const struct m_site *at);
void m_event_done(struct m_event *e);
void m_read_from(struct m_event *e, int16_t store);
void m_write_after(struct m_event *e, int16_t after, uint64_t value);
void m_fence_effect(struct m_thread *t, enum m_order order);
int m_age(int16_t store);
void m_memory_put(struct m_loc *x, uint64_t value);

/* ops.c */
struct m_loc *m_begin(const volatile void *p, size_t size, struct m_site *at);
struct m_option m_read_decide(struct m_loc *x, const struct m_wish *wish, struct m_site *at,
                              int32_t *node);

/* race.c */
void m_race_atomic(struct m_loc *x, bool is_write, struct m_site *at);
void m_race_plain(struct m_loc *x, bool is_write, struct m_site *at, const char *what);

/* sc.c */
bool m_sc_consistent(void);

/* wait.c */
void m_news(struct m_event *store);
void m_barrier_point(struct m_site *at);
bool m_barrier_force(void);
void m_barrier_fence_of(int lane);
void m_thread_ends(void);
void m_watch_read(struct m_loc *x, int16_t store);
void m_turn_add(const struct m_event *e);

/* heap.c */
void m_heap_reset(void);
int16_t m_heap_find(uintptr_t addr);
void m_heap_check_access(struct m_loc *x, struct m_site *at);
void m_heap_check_leaks(void);

/* digest.c */
void m_digest_reset(void);
bool m_digest_is_new(void);

/* order.c */
int m_order_steps(int16_t *order, bool *is_weak);
void m_order_script(const int16_t *order, int count, struct m_step *script);
void m_script_print(const struct m_step *script, int count, char *out, size_t size);
int m_script_parse(const char *text, struct m_step *out, int room);

/* report.c */
struct m_case;
void m_report(const struct m_case *c, const char *program);
const char *m_fault_name(enum m_fault fault);
const char *m_file_name(const char *path);

#endif
