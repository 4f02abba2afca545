/*
 * locked.h - a task that runs on one thread only: blitz_thread_lock.
 *
 * locked.c has the design. A machine whose task is locked looks for no successor. It passes its proc on,
 * and goes home to wait. A machine that finds a locked task in a queue gives its proc to the machine that
 * waits for the task, and goes home too.
 */
#ifndef BZ_LOCKED_H
#define BZ_LOCKED_H

#include "os/os.h"
#include "queue/handoff.h"
#include "task/task.h"

struct bz_machine;
struct bz_proc;

/* Part of a machine. */
struct bz_locked {
    bz_atomic(struct bz_task *)
        task;             /* runs nowhere else; NULL: none. The machine's, others look */
    unsigned depth;       /* of lock without unlock; the machine's own */
    bz_os_word offer;     /* handoff.h: it waits here for a proc */
    struct bz_proc *gift; /* the proc; written by the giver */
    bool left_orphan;     /* no thread was there to take ours; the machine's own */
};

static inline void bz_locked_init(struct bz_locked *l)
{
    bz_atomic_init(&l->task, NULL);
    bz_atomic_init(&l->offer, BZ_HANDOFF_ASLEEP);
    l->depth = 0;
    l->gift = NULL;
    l->left_orphan = false;
}

/* True if an entry of a queue is a task that runs on one thread only. */
static inline bool bz_entry_is_locked(bz_entry e)
{
    return bz_entry_tag(e) == BZ_ENTRY_RESUMED && (bz_entry_task(e)->marks & BZ_MARK_LOCKED);
}

/* The machine's task is locked and about to leave its stack: pass the proc on to another machine. */
void bz_locked_release_proc(struct bz_machine *m);
/* The entry that was found is locked: give our proc to its machine. We have none any more. */
void bz_locked_hand_over(struct bz_machine *m, bz_entry e);
/* On g0: wait until our task is woken, and resume it. Returns when the machine has left its stack again. */
void bz_locked_wait(struct bz_machine *m);
/* The task has returned without unlocking. */
void bz_locked_end(struct bz_machine *m);

#endif
