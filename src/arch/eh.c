/*
 * eh.c - access to the C++ runtime's exception state. See eh.h.
 *
 * The function and the bit of bz_ctx_extras need no order. A switch that sees the bit without the function exchanges
 * nothing, as a switch before the bit does. No task has exceptions before C++ is found.
 */
#include "arch/eh.h"

#include <stddef.h>

#include "arch/ctx.h"

/* The function of the C++ runtime, if the program has one. Only ELF has weak references that are worth the name. */
#if defined(__ELF__)
extern struct bz_eh *__cxa_get_globals(void) __attribute__((weak));
#define LINKED __cxa_get_globals
#else
#define LINKED NULL
#endif

bz_atomic(bz_eh_globals_fn *) bz_eh_globals;

void bz_eh_init(void)
{
    bz_eh_found(LINKED);
}

void bz_eh_found(bz_eh_globals_fn *globals)
{
    if (globals == NULL)
        return;
    bz_store_relaxed(&bz_eh_globals, globals);                /* relaxed: the essay */
    (void)bz_fetch_or_relaxed(&bz_ctx_extras, BZ_CTX_HAS_EH); /* relaxed: likewise */
}

/* Not inlined: the address of the words may change with every switch. */
BZ_NOINLINE void bz_eh_exchange(const struct bz_eh *to, struct bz_eh *from)
{
    bz_eh_globals_fn *globals = bz_load_relaxed(&bz_eh_globals); /* relaxed: the essay */
    if (globals == NULL)
        return;
    struct bz_eh *now = globals();
    if (from != NULL)
        *from = *now;
    *now = to != NULL ? *to : (struct bz_eh){NULL, 0};
}

struct bz_eh bz_eh_now(void)
{
    bz_eh_globals_fn *globals = bz_load_relaxed(&bz_eh_globals); /* relaxed: a constant */
    return globals != NULL ? *globals() : (struct bz_eh){NULL, 0};
}
