/*
 * box.c - a future in memory of its own, which may go on without its caller.
 *
 *     | struct box: the outer future, options, bytes | the caller's struct: the inner future ...
 *
 * The outer future passes every call on to the inner one, except a cancel, which takes the box. A
 * revocable or detachable inner future is finished at once. A pinned one is asked to stop, and handed off
 * to a stackless task that polls it until it is ready. If there is no runtime to do that, or no
 * memory, the cancel itself waits: it may wait, and the memory must not be freed before.
 *
 * I1  The box is freed once: by its owner, by the cancel, or by the task it was handed off to.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "blitz/poll.h"
#include "blitz/promise.h"
#include "blitz/task.h"

struct box {
    blitz_future outer;
    blitz_box_opts opts;
    size_t bytes; /* of the whole box */
    _Alignas(max_align_t) char memory[];
};

static struct box *box_of(void *memory)
{
    return BZ_CONTAINER_OF(memory, struct box, memory);
}

static blitz_future *inner_of(struct box *b)
{
    return (blitz_future *)b->memory;
}

static struct box *outer_box(blitz_future *outer)
{
    return BZ_CONTAINER_OF(outer, struct box, outer);
}

static void box_free(struct box *b)
{
    if (b->opts.drop != NULL)
        b->opts.drop(b->memory, b->opts.ctx);
    bz_free(&bz_allocator_libc, b, b->bytes); /* I1 */
}

/* ---- without its caller ---- */

struct left {
    struct box *box;
};

static blitz_poll see_it_out(void *state, blitz_cx *cx)
{
    struct box *b = ((struct left *)state)->box;
    blitz_future *inner = inner_of(b);
    if (inner->ops->poll(inner, cx->waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    box_free(b);
    return BLITZ_READY;
}

static void hand_over(struct box *b)
{
    blitz_spawn_opts opts = {.name = "box"};
    struct left state = {b};
    if (blitz_spawn_poll(see_it_out, &state, sizeof state, &opts, NULL) == 0)
        return;
    blitz_shield();
    (void)!blitz_await(inner_of(b), BLITZ_FOREVER);
    blitz_unshield();
    box_free(b);
}

/* ---- the outer future ---- */

static blitz_poll box_poll(blitz_future *outer, const blitz_waker *waker)
{
    blitz_future *inner = inner_of(outer_box(outer));
    return inner->ops->poll(inner, waker);
}

static void box_cancel(blitz_future *outer)
{
    struct box *b = outer_box(outer);
    blitz_future *inner = inner_of(b);
    bool is_pinned = inner->ops->kind == BLITZ_PINNED;
    inner->ops->cancel(inner);
    if (is_pinned)
        hand_over(b);
    else
        box_free(b);
}

static int box_output(blitz_future *outer)
{
    return blitz_future_output(inner_of(outer_box(outer)));
}

/* ---- for its owner ---- */

void *blitz_box_new(size_t bytes, const blitz_box_opts *opts)
{
    static const blitz_future_ops ops = {"box", BLITZ_DETACHABLE, box_poll, box_cancel, box_output};
    if (bytes < sizeof(blitz_future) || bytes > SIZE_MAX - sizeof(struct box))
        return NULL;
    struct box *b = bz_alloc(&bz_allocator_libc, sizeof(struct box) + bytes, _Alignof(struct box));
    if (b == NULL)
        return NULL;
    b->outer.ops = &ops;
    b->opts = opts != NULL ? *opts : (blitz_box_opts){NULL, NULL};
    b->bytes = sizeof(struct box) + bytes;
    memset(b->memory, 0, bytes);
    return b->memory;
}

blitz_future *blitz_box_future(void *memory)
{
    return &box_of(memory)->outer;
}

void blitz_box_unref(void *memory)
{
    if (memory != NULL)
        box_free(box_of(memory));
}
