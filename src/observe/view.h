/*
 * view.h - the state of a task as an observer sees it.
 *
 * For dumps: one task's state in plain values, taken without a lock, without waiting, and without
 * an effect on the task. The state may have changed when it is read. But it was true at one time,
 * and looking is harmless. view.c has the method.
 */
#ifndef BZ_VIEW_H
#define BZ_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "task/frames.h"
#include "task/task.h"

enum bz_view_state {
    BZ_VIEW_RUNNING, /* a machine has it as its current task */
    BZ_VIEW_READY,   /* it is in a queue, or about to be */
    BZ_VIEW_NEW,     /* likewise, and has never run */
    BZ_VIEW_WAITING,
    BZ_VIEW_IDLE,  /* an actor without a message; it waits for nothing */
    BZ_VIEW_ENDED, /* ended, and still referenced by a handle or a waker */
    BZ_VIEW_STATES
};

enum { BZ_VIEW_NAME_MAX = 32, BZ_VIEW_WHAT_MAX = 32, BZ_VIEW_NOWHERE = -1 };

struct bz_view {
    uint64_t id;
    const char *kind; /* "fiber", "poll", "job", "actor" */
    enum bz_view_state state;
    bool is_cancelled; /* cancelled */
    int proc;          /* the proc it runs on, or had before the loss; or BZ_VIEW_NOWHERE */
    bool is_stray;     /* it runs, and its proc was given to another machine meanwhile */
    uint32_t born;     /* age.h; 0: not known */
    uint32_t since;    /* when its wait began, likewise */
    uint64_t joins;    /* the task it waits for, or that holds the mutex it waits for; 0: none */
    bool is_beneath;   /* ... and which it runs itself, on the same stack */
    uint64_t until;    /* its deadline; BZ_OS_FOREVER: none */
    unsigned depth;    /* of pc[]; 0: not requested, or no frames */
    char name[BZ_VIEW_NAME_MAX];
    char what[BZ_VIEW_WHAT_MAX]; /* the target of its wait */
    uintptr_t pc[BZ_FRAMES_MAX];
};

/* Look at a task the caller has a reference to. Any thread. */
void bz_view_take(struct bz_view *v, struct bz_task *t, bool with_frames);

/* "running", "ready", ... */
const char *bz_view_state_name(enum bz_view_state state);

#endif
