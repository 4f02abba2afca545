/*
 * view.h - what can be seen of a task by somebody who only looks.
 *
 * For dumps: one task's state in plain values, taken without a lock, without waiting, and without
 * the task noticing. It may be another one by the time it is read; what matters is that it was so,
 * and that looking is harmless. view.c says how.
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
    BZ_VIEW_ENDED, /* and is still held: by a handle or a waker */
    BZ_VIEW_STATES
};

enum { BZ_VIEW_NAME_MAX = 32, BZ_VIEW_WHAT_MAX = 32, BZ_VIEW_NOWHERE = -1 };

struct bz_view {
    uint64_t id;
    const char *kind; /* "fiber", "poll", "job" */
    enum bz_view_state state;
    bool is_cancelled; /* asked to stop */
    int proc;          /* it runs on, or had when it lost it; or BZ_VIEW_NOWHERE */
    bool is_stray;     /* it runs, and its proc was given to others meanwhile */
    uint32_t born;     /* age.h; 0: not known */
    uint32_t since;    /* since when it waits, likewise */
    uint64_t joins;    /* the task it waits for, or that has the mutex it waits for; 0: none */
    bool is_beneath;   /* ... and which it runs itself: it stands on the same stack */
    uint64_t until;    /* its deadline; BZ_OS_FOREVER: none */
    unsigned depth;    /* of pc[]; 0: it was not asked for, or there are none */
    char name[BZ_VIEW_NAME_MAX];
    char what[BZ_VIEW_WHAT_MAX]; /* it waits for */
    uintptr_t pc[BZ_FRAMES_MAX];
};

/* Look at a task the caller has a reference to. Any thread. */
void bz_view_take(struct bz_view *v, struct bz_task *t, bool with_frames);

/* "running", "ready", ... */
const char *bz_view_state_name(enum bz_view_state state);

#endif
