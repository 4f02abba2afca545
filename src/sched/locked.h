/*
 * locked.h - a task that runs on one thread only: blitz_thread_lock.
 *
 * locked.c has the design. What the loop has to do with it: a machine whose task is locked asks
 * nobody for a successor but passes its proc on, and goes home to wait; whoever finds a locked task
 * in a queue gives its proc to the machine that waits for it, and goes home too.
 */
#ifndef BZ_LOCKED_H
#define BZ_LOCKED_H

#include "os/os.h"
#include "task/task.h"

struct bz_machine;
struct bz_proc;

/* Part of a machine. */
struct bz_locked {
    bz_atomic(struct bz_task *)
        task;             /* runs nowhere else; NULL: none. The machine's, others look */
    unsigned depth;       /* of lock without unlock; the machine's own */
    bz_os_word errand;    /* given.h: it waits here for a proc */
    struct bz_proc *gift; /* the proc; written by who gives it */
    bool left_orphan;     /* nobody was there to take ours; the machine's own */
};

void bz_locked_init(struct bz_locked *l);

/* Is what comes out of a queue a task that runs on one thread only? */
static inline bool bz_entry_is_locked(bz_entry e)
{
    return bz_entry_tag(e) == BZ_ENTRY_RESUMED && (bz_entry_task(e)->marks & BZ_MARK_LOCKED) &&
           !BZ_BROKEN(126);
}

/* The machine's task is locked and about to leave its stack: the proc is for others. */
void bz_locked_pass_on(struct bz_machine *m);
/* What was found is locked: its machine gets our proc, and we have none any more. */
void bz_locked_hand_over(struct bz_machine *m, bz_entry e);
/* On g0: wait for the task of ours to be woken, and go on with it. Returns when the stacks are left
 * again. */
void bz_locked_wait(struct bz_machine *m);
/* The task has returned without unlocking. */
void bz_locked_end(struct bz_machine *m);

#endif
