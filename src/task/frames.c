/*
 * frames.c - see frames.h.
 *
 * One system call a frame would be half a microsecond each; so the walk reads through a window: a
 * piece of the stack is copied at once, from the record that is asked for upward, and most parked
 * tasks stand within the first.
 *
 * Rejected: unwind tables (a lock and an allocation in most unwinders, and they want registers that a
 * parked context does not keep); guessing return addresses by scanning the stack (old frames leave
 * theirs behind).
 *
 * I1  A record lies in [sp, top), and the next one above it. So the walk ends.
 */
#include "task/frames.h"

#include <string.h>

#include "os/look.h"

struct record {
    uintptr_t fp, pc;
};

/* A piece of a stack, copied. */
struct window {
    uintptr_t from, to; /* what is in it */
    uintptr_t top;      /* beyond which nothing is read */
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

/* The three words, and where the stack begins. False: it cannot be one. */
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
        least = BZ_BROKEN(99) ? least : at + sizeof r; /* I1 */
        at = r.fp - BZ_CTX_FP_BIAS;
    }
    bool stood_still = read_context(s, &after) && is_same(&parked.ctx, &after.ctx);
    return stood_still ? count : 0;
}
