/*
 * view.c - a task's state, pieced together from the outside.
 *
 * The state word alone is not enough: a task that waits in a node, joins a child or has yielded stays
 * *running* in it (park.c, machine.c), because that saves a read-modify-write. The state follows from the
 * machine that has it as its current task, and from task->wait:
 *
 *   word        current of   task->wait                        it is
 *   complete                                                   ended
 *   scheduled                                                  ready; new, if it was never started
 *   otherwise   a machine                                      running
 *               none         a node that is open               waiting for the event of the node
 *                            a node that has an outcome        ready
 *                            a child, a job or a future        waiting for it; ready if it has ended
 *                            0, and the word says idle         waiting for a wake
 *                            0, and its ops say that it idles  idle: an actor without a message
 *                            0                                 ready: it has yielded
 *
 * All of that may change at any time. The task's header stays (the caller has a reference), and so
 * do machines. Everything else behind a pointer may go: nodes are in frames, children end, names belong to
 * the user. So the kernel copies it (os/look.h), and the copy is used only if task->wait has not changed
 * meanwhile. A new wait in the same frame may defeat that check: then the view was true of one of the
 * two. No pointer in such a copy is followed without the same care.
 *
 * Rejected:
 *  - task->lock: it keeps the target of the wait alive for a *canceller* only (wait.h: a leaving waiter
 *    checks the flag first);
 *  - asking the task itself, by a flag that it checks: a hog would not answer, and hogs are the interesting tasks.
 */
#include "observe/view.h"

#include <string.h>

#include "os/look.h"
#include "proc/state.h"
#include "wait/wait.h"

static const char *const state_name[BZ_VIEW_STATES] = {"running", "ready", "new",
                                                       "waiting", "idle",  "ended"};

const char *bz_view_state_name(enum bz_view_state state)
{
    return state_name[state];
}

/* ---- the machine that runs it ---- */

/* True if a machine has `t` as its current task. */
static bool is_running(struct bz_view *v, struct bz_task *t)
{
    struct bz_runtime *rt = t->rt;
    for (unsigned i = 0; i < bz_machines_count(rt); i++) {
        struct bz_machine *m = bz_machines_at(rt, i);
        if (bz_look_word(&m->current) != (uintptr_t)t)
            continue;
        v->proc = (int)((const struct bz_proc *)bz_look_word(&m->last))->index;
        v->is_stray = bz_load_relaxed(&m->is_stray) != 0; /* relaxed: for a reader */
        return true;
    }
    return false;
}

/* ---- the target of its wait ---- */

static void says(struct bz_view *v, enum bz_view_state state, const char *what)
{
    v->state = state;
    memcpy(v->what, what, strlen(what) + 1);
}

static bool is_still(struct bz_task *t, uintptr_t wait)
{
    return bz_load_acquire(&t->wait) == wait; /* wait.h [W] */
}

static void waits_in_node(struct bz_view *v, struct bz_task *t, const void *node)
{
    struct bz_wait w;
    int err = bz_look_copy(&w, node, offsetof(struct bz_wait, hook));
    if (err != 0 || w.task != t) { /* it has left; or we may not read it */
        says(v, err == 0 ? BZ_VIEW_READY : BZ_VIEW_WAITING, "");
        return;
    }
    v->state = bz_load_relaxed(&w.arbiter) == BZ_WAIT_OPEN ? BZ_VIEW_WAITING /* relaxed: a copy */
                                                           : BZ_VIEW_READY;
    v->until = w.until;
    v->since = w.since;
    bz_look_text(v->what, sizeof v->what, w.what);
    if (w.holder != NULL && bz_look_copy(&v->joins, w.holder, sizeof v->joins) != 0)
        v->joins = 0;
}

static void waits_for_child(struct bz_view *v, const void *child)
{
    struct bz_task c;
    says(v, BZ_VIEW_WAITING, "join");
    if (bz_look_copy(&c, child, offsetof(struct bz_task, wait)) != 0)
        return;
    v->joins = c.id;
    if (bz_word_life(&c.word) == BZ_COMPLETE)
        v->state = BZ_VIEW_READY;
}

static void waits_for_future(struct bz_view *v, const void *future)
{
    blitz_future f;
    const char *name;
    says(v, BZ_VIEW_WAITING, "await");
    if (bz_look_copy(&f, future, sizeof f) != 0)
        return;
    /* f.ops may be any number by now: f.ops->name would be undefined even as an address. */
    uintptr_t at = (uintptr_t)f.ops + offsetof(blitz_future_ops, name);
    if (bz_look_copy(&name, (const void *)at, sizeof name) == 0) /* NOLINT: read by the kernel */
        bz_look_text(v->what, sizeof v->what, name);
}

/* It has no wait: its word and its ops tell. */
static void waits_for_nothing(struct bz_view *v, struct bz_task *t, enum bz_life life)
{
    const char *what = t->ops->idles != NULL ? t->ops->idles(t) : NULL;
    if (what != NULL)
        says(v, *what == '\0' ? BZ_VIEW_IDLE : BZ_VIEW_WAITING, what);
    else
        says(v, life == BZ_IDLE ? BZ_VIEW_WAITING : BZ_VIEW_READY, life == BZ_IDLE ? "wake" : "");
}

/* Fill in the state of a task that is neither running nor queued, as far as its word and the
 * machines tell. */
static void waits(struct bz_view *v, struct bz_task *t, enum bz_life life)
{
    uintptr_t wait = bz_load_acquire(&t->wait);                           /* wait.h [W] */
    const void *in = (const void *)(wait & ~(uintptr_t)BZ_WAIT_TAG_MASK); /* NOLINT: tagged */
    if (wait == 0)
        waits_for_nothing(v, t, life);
    else if ((wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_CHILD)
        waits_for_child(v, in);
    else if ((wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_JOB)
        says(v, BZ_VIEW_WAITING, "join of a fork");
    else if ((wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_FUTURE)
        waits_for_future(v, in);
    else
        waits_in_node(v, t, in);
    if (!is_still(t, wait))
        says(v, BZ_VIEW_READY, ""); /* it continued while we looked */
}

/* ---- the whole ---- */

static void look(struct bz_view *v, struct bz_task *t)
{
    uint64_t word = bz_load_acquire(&t->word); /* word.c [T] */
    enum bz_life life = (enum bz_life)(word & BZ_WORD_LIFE);
    v->is_cancelled = (word & BZ_WORD_CANCELLED) != 0;
    v->proc = BZ_VIEW_NOWHERE;
    if (life == BZ_COMPLETE)
        v->state = BZ_VIEW_ENDED;
    else if (life == BZ_SCHEDULED)
        v->state = word & BZ_WORD_STARTED ? BZ_VIEW_READY : BZ_VIEW_NEW;
    else if (is_running(v, t))
        v->state = BZ_VIEW_RUNNING;
    else
        waits(v, t, life);
}

void bz_view_take(struct bz_view *v, struct bz_task *t, bool with_frames)
{
    *v = (struct bz_view){.id = t->id, .kind = t->ops->kind, .until = BZ_OS_FOREVER};
    look(v, t);
    if (v->state != BZ_VIEW_ENDED)
        v->born = bz_look_half(&t->born);
    if (t->name != NULL)
        bz_look_text(v->name, sizeof v->name, t->name);
    if (!with_frames || v->state == BZ_VIEW_RUNNING || v->state == BZ_VIEW_ENDED)
        return;
    const struct bz_stack *stack = (const struct bz_stack *)bz_look_word(&t->stack);
    v->is_beneath = v->joins != 0 && stack == NULL;
    if (stack != NULL)
        v->depth = bz_frames_walk(stack, v->pc);
    if (bz_look_word(&t->stack) != (uintptr_t)stack)
        v->depth = 0;
}
