/*
 * frames.c - see frames.h.
 *
 * A system call for each frame would take half a microsecond each. So the walk copies a window of
 * the stack at once, upward from the requested record. The frames of most parked tasks are within
 * the first window.
 *
 * Rejected: unwind tables (most unwinders lock and allocate, and need registers that a parked
 *           context does not save); scanning the stack for return addresses (old frames leave
 *           theirs behind).
 *
 * I1  A record is in [sp, top), and the next one is above it. So the walk ends.
 */
#include "task/frames.h"

#include <string.h>

#include "os/look.h"

struct record {
    uintptr_t fp, pc;
};

/* A copied part of a stack. */
struct window {
    uintptr_t from, to; /* bytes in it */
    uintptr_t top;      /* limit of all reads */
    char bytes[1024];
};

static bool window_read(struct window *w, uintptr_t at, struct record *out)
{
    if (at < w->from || at + sizeof *out > w->to) {
        size_t bytes = w->top - at < sizeof w->bytes ? w->top - at : sizeof w->bytes;
        if (bytes < sizeof *out || bz_look_copy(w->bytes, (const void *)at, bytes) != 0)
            return false;
        w->from = at;
        w->to = at + bytes;
    }
    memcpy(out, w->bytes + (at - w->from), sizeof *out);
    return true;
}

/* Read the three words and the bounds of the stack. Return false if they are implausible. */
static bool read_context(const struct bz_stack *s, struct bz_stack *out)
{
    if (bz_look_copy(out, s, offsetof(struct bz_stack, slab)) != 0)
        return false;
    uintptr_t sp = (uintptr_t)out->ctx.sp;
    return sp >= (uintptr_t)out->low && sp < (uintptr_t)s && out->ctx.pc != NULL;
}

static bool is_same(const struct bz_ctx *a, const struct bz_ctx *b)
{
    return a->sp == b->sp && a->fp == b->fp && a->pc == b->pc;
}

unsigned bz_frames_walk(const struct bz_stack *s, uintptr_t pc[BZ_FRAMES_MAX])
{
    struct bz_stack parked, after;
    struct window w = {.top = (uintptr_t)s};
    struct record r;
    unsigned count = 0;
    if (!read_context(s, &parked))
        return 0;
    uintptr_t least = (uintptr_t)parked.ctx.sp, at = (uintptr_t)parked.ctx.fp - BZ_CTX_FP_BIAS;
    pc[count++] = (uintptr_t)parked.ctx.pc;
    while (count < BZ_FRAMES_MAX && at >= least && at < w.top && at % sizeof(uintptr_t) == 0 &&
           window_read(&w, at, &r) && r.pc != 0) {
        pc[count++] = r.pc;
        least = at + sizeof r; /* I1 */
        at = r.fp - BZ_CTX_FP_BIAS;
    }
    bool stood_still = read_context(s, &after) && is_same(&parked.ctx, &after.ctx);
    return stood_still ? count : 0;
}
