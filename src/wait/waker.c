/*
 * waker.c - wakers: of a task, of a plain thread, and foreign ones.
 *
 * The waker of a plain thread outlives its wait if other code keeps a clone. So it is counted and comes from the C
 * library's allocator. This is the one place where waiting allocates.
 *
 * [A] parker wake_by_ref: woken release -> await.c, the thread: woken acquire   what the waker did is visible to
 *     the thread that asks again
 * [B] parker drop: refs acq_rel -> parker drop: refs acq_rel      all uses come before the free
 */
#include "wait/waker.h"

#include "proc/enter.h"
#include "proc/place.h"
#include "wait/peek.h"
#include "wait/readylist.h"
#include "wait/wait.h"

blitz_waker blitz_waker_clone(const blitz_waker *w)
{
    if (w->ops != NULL)
        w->ops->clone(w->data);
    return *w;
}

bool bz_waker_is_ours(const blitz_waker *w)
{
    return w->ops == &bz_task_waker || w->ops == &bz_parker_waker || w->ops == NULL ||
           bz_readylist_is_ours(w);
}

/* Call our own wakers directly, and foreign ones outside the runtime: they may take long. */
static void call(void (*fn)(void *), const blitz_waker *w)
{
    if (BZ_LIKELY(bz_waker_is_ours(w)))
        fn(w->data);
    else
        bz_call_out(fn, w->data);
}

void blitz_waker_wake(blitz_waker *w)
{
    blitz_waker taken = *w;
    *w = (blitz_waker){NULL, NULL}; /* first: *w may lie in memory that ends with the wake */
    if (taken.ops != NULL)
        call(taken.ops->wake, &taken);
}

void blitz_waker_wake_by_ref(const blitz_waker *w)
{
    if (w->ops != NULL)
        call(w->ops->wake_by_ref, w);
}

void blitz_waker_drop(blitz_waker *w)
{
    if (w->ops != NULL)
        call(w->ops->drop, w);
    *w = (blitz_waker){NULL, NULL};
}

/* ---- of a task ---- */

static void task_waker_clone(void *task)
{
    bz_task_ref(task);
}

static void task_waker_wake_by_ref(void *task)
{
    bz_task_wake(task);
}

static void task_waker_drop(void *task)
{
    bz_task_unref(task);
}

static void task_waker_wake(void *task)
{
    bz_task_wake(task);
    task_waker_drop(task);
}

const blitz_waker_ops bz_task_waker = {task_waker_clone, task_waker_wake, task_waker_wake_by_ref,
                                       task_waker_drop};

/* ---- of a plain thread ---- */

static void parker_clone(void *data)
{
    bz_fetch_add_relaxed(&((struct bz_parker *)data)->refs, 1); /* relaxed: the cloner holds one */
}

static void parker_wake_by_ref(void *data)
{
    struct bz_parker *p = data;
    bz_store_release(&p->woken, 1); /* [A] */
    bz_os_wake(p->os, &p->woken, 1);
}

static void parker_drop(void *data)
{
    struct bz_parker *p = data;
    if (bz_fetch_sub_acqrel(&p->refs, 1) == 1) /* [B] */
        bz_free(&bz_allocator_libc, p, sizeof *p);
}

static void parker_wake(void *data)
{
    parker_wake_by_ref(data);
    parker_drop(data);
}

const blitz_waker_ops bz_parker_waker = {parker_clone, parker_wake, parker_wake_by_ref,
                                         parker_drop};

struct bz_parker *bz_parker_new(const struct bz_os *os)
{
    struct bz_parker *p = bz_alloc(&bz_allocator_libc, sizeof *p, _Alignof(struct bz_parker));
    if (p == NULL)
        return NULL;
    p->os = os;
    p->by = BLITZ_FOREVER;
    bz_atomic_init(&p->woken, 0);
    bz_atomic_init(&p->refs, 1);
    return p;
}

const struct bz_os *bz_waker_by(const blitz_waker *w, uint64_t when)
{
    struct bz_machine *m = bz_machine_self();
    if (m != NULL)
        return m->rt->os;
    const blitz_waker *parent;
    if (bz_readylist_by(w, when, &parent))
        return parent != NULL ? bz_waker_by(parent, when) : bz_os_outside();
    if (w->ops != &bz_parker_waker)
        return bz_os_outside();
    struct bz_parker *p = w->data;
    if (p->by > when)
        p->by = when;
    return p->os;
}

/* ---- futures ---- */

void bz_look_cancel(blitz_future *f)
{
    ((const struct bz_look_ops *)f->ops)->cancel(f);
}

bool bz_future_cancel(blitz_future *f)
{
    bool is_pinned = f->ops->kind == BLITZ_PINNED;
    f->ops->cancel(f);
    return is_pinned;
}

const struct bz_os *bz_os_here(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? m->rt->os : bz_os_outside();
}
