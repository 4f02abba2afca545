/*
 * task.h - the one thing the scheduler runs: a header with a state word and two functions.
 *
 * A fiber's `run` calls a function, a stackless task's calls `poll`, an actor's will drain its
 * mailbox. The scheduler knows no more than that. `run` is called on a runner's stack and may
 * suspend there, any number of times, in any function it calls; it returns what is to become of
 * the task:
 *
 *   BZ_RAN_DONE      it is over; result is set
 *   BZ_RAN_PENDING   it waits and owns no stack: whoever holds its waker will see it run again
 *   BZ_RAN_AGAIN     it waits for nothing but its next turn
 *   BZ_RAN_JOB       a forked job is over; nobody joins the header it ran under
 *
 * Who may touch what: the word, anybody; everything marked "the runner's" only the worker that is
 * running the task or has it in hand between two queues, which is one at a time (the word sees to
 * it, and the pairing T of word.c carries what one wrote to the next).
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

enum bz_ran { BZ_RAN_DONE, BZ_RAN_PENDING, BZ_RAN_AGAIN, BZ_RAN_JOB };

enum bz_task_traits {
    BZ_TASK_STAYS = 1,     /* is not to be run by whoever joins it */
    BZ_TASK_CLASS = 4,     /* begins on a stack of its own class, not of the runtime's */
    BZ_TASK_ANONYMOUS = 2, /* stands in for another, whose id and name it has: a job's header */
    BZ_TASK_OWN = 16       /* this bit and those above are its maker's */
};

enum bz_task_marks {
    BZ_MARK_WAITED = 1,  /* it has left its stack since it was last called */
    BZ_MARK_POINTER = 2, /* its result is a pointer */
    BZ_MARK_LOCKED = 4   /* it runs on one thread only: sched/locked.h */
};

struct bz_task_ops {
    const char *kind;                      /* for dumps: "fiber", "poll" */
    enum bz_ran (*run)(struct bz_task *t); /* on a worker; may suspend */
    void (*drop)(struct bz_task *t);       /* the last reference is gone: free it. Any thread. */
    uintptr_t (*begun_in)(
        const struct bz_task *t); /* for messages: its function; NULL: not known */
    /* Its scope, if it is a task of one: sched/host.h. The task has not begun, and the caller has it. NULL: none */
    void (*closer)(struct bz_task *t, struct bz_closer *out);
};

struct bz_task {
    bz_word word;
    const struct bz_task_ops *ops; /* constant */
    struct bz_runtime *rt;    /* constant; the runtime outlives the task's run, not the header */
    bz_shared(bz_entry) next; /* link of its resumed entry: chain.h */
    bz_shared(bz_entry) first_next; /* link of its first-run entry, a tombstone perhaps */
    struct bz_stack *stack; /* where it stands while it does not run; NULL: nowhere. The runner's */
    uint64_t id;            /* constant */
    const char *name;       /* constant; may be NULL */
    bz_atomic(uintptr_t) wait; /* what it waits in; the task's own to write: sched/wait.h */
    struct bz_lock lock;       /* guards joiners, and what wait points to against a canceller */
    uint8_t traits;            /* enum bz_task_traits; constant */
    uint8_t marks;             /* enum bz_task_marks; the runner's until EXIT, then constant */
    uint8_t own;               /* its maker's; constant */
    uint8_t stack_class;       /* if BZ_TASK_CLASS: enum bz_stack_class; constant */
    union {
        struct {
            int result;    /* written before EXIT, read after */
            uint32_t born; /* when it was spawned, until it has a pointer: sched/age.h */
        };
        void *pointer; /* as result, if BZ_MARK_POINTER; taken under lock, then NULL */
    };
    struct bz_locals *locals; /* NULL: none; the task's own */
    struct bz_list joiners;   /* waiting for its end; guarded by lock */
#if defined(BZ_WATCH)
    bz_atomic(uint32_t) runs_on;  /* 1 + the proc it runs on; sched/watch.h */
    bz_atomic(uint32_t) jobs_out; /* forked, taken by others and not joined; likewise */
#endif
};

/* What test builds keep about it; before its first run. */
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
