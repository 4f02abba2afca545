/*
 * spot_libc.c - the switch of the simulator by getcontext(3) and setcontext(3). See spot.h.
 *
 * They are slow (half a microsecond, most of it system calls for the signal mask), but the C library knows its CPU: they
 * support shadow stacks and every architecture. Rejected: swapcontext (AddressSanitizer intercepts it, warns, and clears the
 * shadow of whole stacks at each call, although coro.c annotates every switch).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/compiler.h"
#include "sim/spot.h"

/* makecontext passes ints: a pointer comes in two halves. */
static void *joined(unsigned high, unsigned low)
{
    return (void *)((uintptr_t)high << 32 | (uintptr_t)low);
}

static void begin(unsigned main_high, unsigned main_low, unsigned arg_high, unsigned arg_low)
{
    void (*main)(void *) = (void (*)(void *))(uintptr_t)joined(main_high, main_low);
    main(joined(arg_high, arg_low));
    BZ_CHECK(false, "a simulated thread returned from its first function");
}

void bz_sim_spot_init(struct sim_spot *p, void *stack, size_t stack_bytes, void (*main)(void *),
                      void *arg)
{
    uintptr_t f = (uintptr_t)main, a = (uintptr_t)arg;
    getcontext(&p->context);
    p->context.uc_stack.ss_sp = stack;
    p->context.uc_stack.ss_size = stack_bytes;
    p->context.uc_link = NULL;
    makecontext(&p->context, (void (*)(void))begin, 4, (unsigned)(f >> 32),
                (unsigned)(f & UINT32_MAX), (unsigned)(a >> 32), (unsigned)(a & UINT32_MAX));
}

/* getcontext returns twice: at once, and when the context is resumed. */
BZ_NOINLINE void bz_sim_spot_switch(struct sim_spot *from, const struct sim_spot *to)
{
    /* On the stack, so that it survives the switch. lint: allow raw-atomic: one thread */
    volatile bool is_back = false;

    getcontext(&from->context);
    if (is_back)
        return;
    is_back = true;
    setcontext(&to->context);
    BZ_CHECK(false, "setcontext: errno %d", errno);
}
