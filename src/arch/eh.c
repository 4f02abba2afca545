/*
 * eh.c - access to the C++ runtime's exception state. See eh.h.
 */
#include "arch/eh.h"

#include <stddef.h>

/* The function of the C++ runtime, if the program has one. */
extern struct bz_eh *__cxa_get_globals(void) __attribute__((weak));

bz_atomic(bz_eh_globals_fn *) bz_eh_globals;

void bz_eh_init(void)
{
    if (__cxa_get_globals != NULL)
        bz_store_relaxed(&bz_eh_globals, __cxa_get_globals); /* relaxed: a constant */
}

void bz_eh_found(bz_eh_globals_fn *globals)
{
    if (globals != NULL)
        bz_store_relaxed(&bz_eh_globals, globals); /* relaxed: a constant */
}

/* Not inlined: the address of the words may change with every switch. */
BZ_NOINLINE void bz_eh_exchange(const struct bz_eh *me, struct bz_eh *left)
{
    struct bz_eh *now = bz_load_relaxed(&bz_eh_globals)(); /* relaxed: a constant */
    if (left != NULL)
        *left = *now;
    *now = me != NULL ? *me : (struct bz_eh){NULL, 0};
}

struct bz_eh bz_eh_now(void)
{
    bz_eh_globals_fn *globals = bz_load_relaxed(&bz_eh_globals); /* relaxed: a constant */
    return globals != NULL ? *globals() : (struct bz_eh){NULL, 0};
}
