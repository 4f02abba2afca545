/*
 * forked.h - detect the child of a fork whose runtime stayed in the parent.
 *
 * fork() copies one thread. In the child the workers do not exist, locks that they held stay
 * locked, and waiting tasks would run twice if the child continued to schedule. So the child may
 * only call exec or _exit (blitz/runtime.h), and a call of blitz must report this instead of
 * waiting forever:
 *
 *   calls that can fail        an error, and a line in the log
 *   a wait without a deadline, a switch to another task        abort, with the same words
 *   parallel calls             run on the calling thread alone
 *
 * The kernel clears a page of the child at a fork (MADV_WIPEONFORK): the check is two loads.
 * Rejected: pthread_atfork(), a hook for the whole process that cannot be removed; getpid() at
 * every wait, a system call. On a kernel without MADV_WIPEONFORK a fork is not detected.
 */
#ifndef BZ_FORKED_H
#define BZ_FORKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

typedef bz_atomic(uint32_t) bz_forked_word;

extern bz_atomic(bz_forked_word *) bz_forked_at /* 0 in a child */
    BZ_HIDDEN;

/* Call when a runtime starts and when it has ended. Any thread. */
void bz_forked_enter(void);
void bz_forked_leave(void);

/* True if a runtime existed when this process was forked. */
BZ_COLD bool bz_forked_confirm(void);
static BZ_ALWAYS_INLINE bool bz_is_forked(void)
{
    bz_forked_word *at = bz_load_acquire(&bz_forked_at); /* forked.c [P] */
    /* relaxed: only this process and its children write it */
    return BZ_UNLIKELY(bz_load_relaxed(at) == 0) && bz_forked_confirm();
}

/* Log, once, why `call` cannot work in a child. */
BZ_COLD void bz_forked_refuse(const char *call);

/* Abort in a child, where this wait would never end. */
BZ_NORETURN BZ_COLD void bz_forked_abort(void);

#endif
