/*
 * host.h - tasks that are ready and find no stack. host.c has the rules.
 */
#ifndef BZ_HOST_H
#define BZ_HOST_H

#include <stdbool.h>

#include "base/compiler.h"
#include "blitz/future.h"
#include "os/os.h"
#include "task/entry.h"

struct bz_machine;
struct bz_runtime;
struct bz_stack;
struct bz_task;

/* The frame of a fiber that awaits a future; task->wait points to it. */
struct bz_host {
    blitz_future as;       /* first: has the ops of the future, for dumps */
    const blitz_future *f; /* constant, as the next one */
    blitz_deadline until;
    struct bz_task
        *hosted; /* a task to run on this stack. Written by the thread that has the fiber */
};

/* The fiber that closes the scope of a task, and whether the scope is cancelled. */
struct bz_closer {
    struct bz_task *task; /* with a reference; NULL: none, or not a task */
    const blitz_future *scope;
    bool is_cancelled;
};

/* Stacks that the runtime keeps for tasks that find no other. */
enum bz_kept_for { BZ_KEPT_FOR_POLLS, BZ_KEPT_FOR_CANCELLED, BZ_KEPT };
struct bz_kept {
    struct bz_stack *own[BZ_KEPT];              /* constant */
    bz_atomic(struct bz_stack *) free[BZ_KEPT]; /* NULL: in use */
};

/* Take the stacks from the pool. 0 or -ENOMEM. */
BZ_MUST_USE int bz_kept_init(struct bz_runtime *rt);
/* All stacks have come back: return them to the pool. */
void bz_kept_fini(struct bz_runtime *rt);
bool bz_kept_is(const struct bz_runtime *rt, const struct bz_stack *s);
/* A task has ended on a kept stack and the stack is left. */
void bz_kept_give(struct bz_runtime *rt, struct bz_stack *s);

/* stacks.c: the system has refused a stack: spawns reserve theirs from now on, and each machine that sleeps gives up its
 * stacks. Any thread. */
void bz_shortage_begins(struct bz_runtime *rt);

/* The outcome for an entry for which the machine has no stack. */
enum bz_without {
    BZ_WITHOUT_WAITS, /* nothing was done: the caller still holds the entry */
    BZ_WITHOUT_RUNS,  /* the task has a stack now: run it */
    BZ_WITHOUT_GONE   /* another task runs it, or it has ended. The proc may be gone */
};

/* Find a way to run e without a stack from the pool. The caller has claimed e; it is in the runtime, with a proc. */
BZ_MUST_USE enum bz_without bz_do_without(struct bz_machine *m, bz_entry e);

/* claim.c: the calling fiber runs t, which was handed to it, on its own stack, and ends it or sets it aside. */
void bz_host_run(struct bz_task *t);

#endif
