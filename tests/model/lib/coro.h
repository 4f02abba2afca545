/*
 * coro.h - the threads of a model: coroutines on one OS thread.
 *
 * A search of a million executions switches some ten million times, so the switch is a dozen
 * instructions of our own on x86_64 and aarch64 (swapcontext makes a system call each time: 250 ns
 * against 5). Elsewhere ucontext serves. A coroutine that is no longer wanted is simply never
 * switched to again; preparing it once more starts it afresh.
 */
#ifndef M_CORO_H
#define M_CORO_H

#include <stddef.h>

struct m_coro {
    void *sp;    /* where it stands; or, in the portable form, its ucontext_t */
    char *stack; /* NULL for the one that was there first */
    size_t size;
};

/* Give `c` a stack, once. The first coroutine of all, main's own, needs none. */
void m_coro_init(struct m_coro *c, size_t size);

/* The next switch to `c` calls entry(), which must never return. */
void m_coro_prepare(struct m_coro *c, void (*entry)(void));

/* Leave `from` where it stands, go on where `to` stands. */
void m_coro_switch(struct m_coro *from, struct m_coro *to);

#endif
