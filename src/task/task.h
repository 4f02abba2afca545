/*
 * task.h - the header of a task: a state word and two functions.
 *
 * The `run` of a fiber calls a function, that of a stackless task calls `poll`, that of an actor
 * handles messages. The scheduler knows no more than that. `run` is called on a runner's
 * stack and may suspend there, any number of times, in any function it calls. Its result tells the
 * scheduler what to do next:
 *
 *   BZ_RAN_DONE      the task has ended; result is set
 *   BZ_RAN_PENDING   it waits without a stack; its waker will queue it again
 *   BZ_RAN_AGAIN     it yields: queue it again
 *   BZ_RAN_JOB       a forked job has ended; its header has no joiner
 *   BZ_RAN_REST      nothing is left to do: call ops->rest, the last that the loop does to the task.
 *                    From then on the task may run elsewhere, or be gone
 *
 * Access: any thread may access the word. Fields marked "the runner's" belong to the worker that
 * runs the task or moves it between two queues. The word ensures that this is one worker at a time,
 * and the pairing T of word.c makes its writes visible to the next.
 */
#ifndef BZ_TASK_H
#define BZ_TASK_H

#include "base/list.h"
#include "os/lock.h"
#include "task/entry.h"
#include "task/word.h"

struct bz_task;
struct bz_runtime;
struct bz_stack;
struct bz_locals;
struct bz_closer;

enum bz_ran { BZ_RAN_DONE, BZ_RAN_PENDING, BZ_RAN_AGAIN, BZ_RAN_JOB, BZ_RAN_REST };

enum bz_task_traits {
    BZ_TASK_STAYS = 1,     /* must not be run by its joiner */
    BZ_TASK_CLASS = 4,     /* starts on a stack of its own class, not of the runtime's */
    BZ_TASK_ANONYMOUS = 2, /* the header of a job, with the id and name of the forking task */
    BZ_TASK_TRAPS = 8,     /* its faults may end it: proc/opened.h, actor/trap.c */
    BZ_TASK_OWN = 16       /* this bit and those above belong to the creator */
};

enum bz_task_marks {
    BZ_MARK_WAITED = 1,  /* it has left its stack since it was last called */
    BZ_MARK_POINTER = 2, /* its result is a pointer */
    BZ_MARK_LOCKED = 4   /* it is bound to one thread: sched/locked.h */
};

struct bz_task_ops {
    const char *kind;                      /* for dumps: "fiber", "poll" */
    enum bz_ran (*run)(struct bz_task *t); /* on a worker; may suspend */
    void (*drop)(struct bz_task *t); /* free it after the last reference is dropped. Any thread. */
    uintptr_t (*begun_in)(
        const struct bz_task *t); /* for messages: its function; NULL: not known */
    /* Its scope, if it is a task of one: sched/host.h. The task has not begun, and the caller has it. NULL: none */
    void (*closer)(struct bz_task *t, struct bz_closer *out);
    /* After BZ_RAN_REST: let another worker have the task, or queue it again. In the runtime. NULL: `run` never rests */
    void (*rest)(struct bz_task *t);
    /* The task was cancelled, and its wait, if there was one, has ended. Any thread with a reference. NULL: nothing to do */
    void (*cancel)(struct bz_task *t);
    /* For dumps: why a task that does not run, without a wait, is in no queue. "": it is idle and waits for nothing. NULL
     * or no function: it is in a queue. Any thread */
    const char *(*idles)(struct bz_task *t);
};

struct bz_task {
    bz_word word;
    const struct bz_task_ops *ops; /* constant */
    struct bz_runtime *rt;    /* constant; the runtime outlives the task's run, not the header */
    bz_shared(bz_entry) next; /* link of its resumed entry: chain.h */
    union {
        bz_shared(bz_entry) first_next; /* link of its first-run entry, a tombstone perhaps */
        struct {
            uint32_t index; /* constant: life/slots.h */
            uint32_t flags; /* its creator's */
        } slot;             /* of a task in a slot, which has no such entry */
    };
    struct bz_stack *stack;    /* its stack while it is suspended; NULL: none. The runner's */
    uint64_t id;               /* constant */
    const char *name;          /* constant; may be NULL */
    bz_atomic(uintptr_t) wait; /* its current wait; written by the task itself: wait/wait.h */
    struct bz_lock lock;       /* guards joiners, and what wait points to against a canceller */
    uint8_t traits;            /* enum bz_task_traits; constant */
    uint8_t marks;             /* enum bz_task_marks; the runner's until EXIT, then constant */
    /* Of a stackless task: where its state is; constant. Of a simple fiber: its place in a fresh list, if it is in
     * one (proc/fresh.c I2); written by the proc that has the list, read by a joiner. Of a
     * task that traps faults: what is open in its frames (proc/opened.h) */
    bz_atomic(uint8_t) place;
    uint8_t stack_class; /* if BZ_TASK_CLASS: enum bz_stack_class; constant */
    union {
        struct {
            int result;    /* written before EXIT, read after */
            uint32_t born; /* when it was spawned, until it has a pointer: queue/age.h */
        };
        void *pointer; /* as result, if BZ_MARK_POINTER; taken under lock, then NULL */
    };
    struct bz_locals *locals; /* NULL: none; accessed by the task itself */
    struct bz_list joiners;   /* joiners waiting for its end; guarded by lock */
#if defined(BZ_WATCH)
    bz_atomic(uint32_t) runs_on; /* 1 + the proc it runs on; proc/selfcheck.h */
    /* forked jobs taken by other workers and not yet joined; guarded by lock */
    bz_atomic(uint32_t) jobs_out;
#endif
};

/* Initialise the fields of test builds; before its first run. */
static inline void bz_task_init_watch(struct bz_task *t)
{
#if defined(BZ_WATCH)
    bz_atomic_init(&t->runs_on, 0);
    bz_atomic_init(&t->jobs_out, 0);
#else
    (void)t;
#endif
}

static inline void bz_task_ref(struct bz_task *t)
{
    bz_word_ref(&t->word);
}

static inline void bz_task_unref(struct bz_task *t)
{
    if (bz_word_unref(&t->word))
        t->ops->drop(t);
}

#endif
