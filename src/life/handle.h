/*
 * handle.h - a handle and the result behind it: handle.c. Cancelling: cancel.c.
 */
#ifndef BZ_LIFE_HANDLE_H
#define BZ_LIFE_HANDLE_H

#include "proc/enter.h"
#include "proc/state.h"

/* Drop the reference of a handle. Aborts with the task's name if the handle was released before. */
void bz_handle_give_up(struct bz_task *t);

/* The result of a task that has ended; 0 if it is a pointer. */
static inline int bz_task_result(const struct bz_task *t)
{
    return t->marks & BZ_MARK_POINTER ? 0 : t->result;
}

/* Take the pointer result; NULL if there is none, or another joiner has it. */
void *bz_task_take_pointer(struct bz_task *t);
/* Drop a pointer result that was not taken. `drop_result` may be NULL. */
void bz_task_drop_pointer(struct bz_task *t, bz_drop_fn *drop_result, void *ctx);
void bz_task_cancel(struct bz_task *t); /* any thread with a reference */

#endif
