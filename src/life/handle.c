/*
 * handle.c - the operations on a handle besides joining, and results that are pointers.
 *
 * A handle is a reference to the header. The header owns a pointer result until a joiner takes it. That
 * happens under the task's lock, because several handles may ask. A result that no joiner took is freed
 * with the header. Rejected: freeing it when the last *handle* goes. Handles and wakers are counted
 * together, and a second count would cost every task for the sake of a few.
 */
#include <errno.h>

#include "life/escape.h"
#include "life/handle.h"
#include "life/spawn.h"
#include "life/stacks.h"
#include "os/look.h"
#include "proc/enter.h"
#include "proc/state.h"

/* ---- a handle ---- */

/*
 * Abort: the handle was joined or detached before. Its header still describes that task, unless another
 * task uses the header by now. The two cases cannot be told apart. The name is the program's memory and
 * may be gone.
 */
static BZ_NOINLINE BZ_COLD void given_up_twice(struct bz_task *t)
{
    char name[64];
    (void)bz_look_text(name, sizeof name, t->name);
    BZ_CHECK(false,
             "handle already given up: task %llu \"%s\": a handle is joined or detached once",
             (unsigned long long)t->id, name);
}

void bz_handle_give_up(struct bz_task *t)
{
    if (BZ_UNLIKELY(!bz_word_is_held(&t->word)))
        given_up_twice(t);
    bz_task_unref(t);
}

blitz_task *blitz_task_ref(blitz_task *t)
{
    bz_task_ref((struct bz_task *)t);
    return t;
}

void blitz_task_detach(blitz_task *t)
{
    if (t != NULL)
        bz_handle_give_up((struct bz_task *)t);
}

void blitz_task_cancel(blitz_task *t)
{
    if (t != NULL)
        bz_task_cancel((struct bz_task *)t);
}

bool blitz_task_is_done(blitz_task *t)
{
    return bz_word_is_complete(&((struct bz_task *)t)->word);
}

static struct bz_task *task_or_self(blitz_task *task)
{
    return task != NULL ? (struct bz_task *)task : bz_task_self();
}

uint64_t blitz_task_id(blitz_task *task)
{
    struct bz_task *t = task_or_self(task);
    return t != NULL ? t->id : 0;
}

const char *blitz_task_name(blitz_task *task)
{
    struct bz_task *t = task_or_self(task);
    return t != NULL ? t->name : NULL;
}

blitz_task *blitz_task_current(void)
{
    return (blitz_task *)bz_task_self();
}

int blitz_task_try_join(blitz_task *task, int *result)
{
    struct bz_task *t = (struct bz_task *)task;
    if (t == NULL)
        return -EINVAL;
    if (t == bz_task_self())
        return -EDEADLK;
    if (!bz_word_is_complete(&t->word))
        return -EAGAIN;
    if (result != NULL)
        *result = bz_task_result(t);
    bz_handle_give_up(t);
    return 0;
}

/* ---- pointers ---- */

struct bz_ptr_fiber {
    struct bz_task task;
    void *(*fn)(void *arg);
    void *arg;
    bz_drop_fn *drop_result;
    void *ctx;
};

void *bz_task_take_pointer(struct bz_task *t)
{
    void *p = NULL;
    if (!(t->marks & BZ_MARK_POINTER))
        return NULL;
    bz_lock_take(&t->lock, t->rt->os);
    p = t->pointer;
    t->pointer = NULL;
    bz_lock_drop(&t->lock, t->rt->os);
    return p;
}

void bz_task_drop_pointer(struct bz_task *t, bz_drop_fn *drop_result, void *ctx)
{
    if ((t->marks & BZ_MARK_POINTER) && t->pointer != NULL && drop_result != NULL)
        bz_drop_out(drop_result, t->pointer, ctx);
}

static BZ_NOINLINE enum bz_ran ptr_run(struct bz_task *t)
{
    BZ_STOP_EXCEPTIONS();
    struct bz_ptr_fiber *f = BZ_CONTAINER_OF(t, struct bz_ptr_fiber, task);
    void *p = f->fn(f->arg);
    bz_locals_end(t);
    t->marks |= BZ_MARK_POINTER;
    t->pointer = p;
    return BZ_RAN_DONE;
}

static void ptr_drop(struct bz_task *t)
{
    struct bz_ptr_fiber *f = BZ_CONTAINER_OF(t, struct bz_ptr_fiber, task);
    bz_task_drop_pointer(t, f->drop_result, f->ctx);
    bz_task_free(t);
}

static uintptr_t ptr_begun_in(const struct bz_task *t)
{
    return (uintptr_t)BZ_CONTAINER_OF(t, const struct bz_ptr_fiber, task)->fn;
}

static const struct bz_task_ops ptr_ops = {
    .kind = "fiber", .run = ptr_run, .drop = ptr_drop, .begun_in = ptr_begun_in};

int blitz_spawn_ptr(void *(*fn)(void *arg), void *arg, const blitz_spawn_opts *opts,
                    blitz_task **out)
{
    struct bz_runtime *rt = bz_runtime_for(opts);
    if (fn == NULL || rt == NULL || bz_opts_are_bad(opts, rt))
        return -EINVAL;
    struct bz_task *t = bz_task_alloc(rt, sizeof(struct bz_ptr_fiber));
    if (t == NULL)
        return -ENOMEM;
    struct bz_ptr_fiber *f = BZ_CONTAINER_OF(t, struct bz_ptr_fiber, task);
    f->fn = fn;
    f->arg = arg;
    f->drop_result = opts != NULL ? opts->drop_result : NULL;
    f->ctx = opts != NULL ? opts->ctx : NULL;
    bz_task_init(t, rt, &ptr_ops, opts, bz_reserve_traits(rt), bz_task_refs(out));
    return bz_task_start(t, opts, out);
}
