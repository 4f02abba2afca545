/*
 * callout.c - call a function of the program's from inside the runtime.
 *
 * The call may take long, and the monitor may take the proc meanwhile: so the machine leaves the runtime for it
 * (retake.h), unless its caller must keep the proc (holds_on).
 *
 * A machine in its loop has no task to suspend. Its fast paths do not ask for that, but deque.rare tells them.
 */
#include "proc/enter.h"
#include "proc/state.h"

void bz_drop_out(bz_drop_fn *drop, void *value, void *ctx)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->holds_on > 0 || bz_retake_where(&m->taken) != BZ_IN_RUNTIME) {
        drop(value, ctx);
        return;
    }
    uint32_t was;
    uint8_t no_task = m->current == NULL ? BZ_RARE_NO_TASK : 0;
    bool is_outer = !(m->deque.rare & no_task); /* not: a callback in a callback */
    m->deque.rare |= no_task;
    bz_leave(BZ_IN_USER);
    drop(value, ctx); /* without a task it does not suspend, so the machine is the same */
    (void)!bz_enter(&was);
    if (no_task != 0 && is_outer)
        m->deque.rare &= (uint8_t)~no_task;
}

struct call {
    void (*fn)(void *arg);
};

static void call_fn(void *arg, void *call)
{
    ((struct call *)call)->fn(arg);
}

void bz_call_out(void (*fn)(void *), void *arg)
{
    struct call call = {fn};
    bz_drop_out(call_fn, arg, &call);
}
