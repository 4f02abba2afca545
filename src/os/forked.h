/*
 * forked.h - am I the child of a fork that left its runtime behind?
 *
 * fork() copies one thread. In the child the workers are gone, locks that they held stay locked, and
 * tasks that wait, in both processes, would run twice if the child went on scheduling. So the child may
 * call exec or _exit (blitz/runtime.h), and a call of blitz must say so instead of waiting for ever:
 *
 *   calls that can fail        an error, and a line in the log
 *   a wait without a deadline, a switch to another task        abort, with the same words
 *   parallel calls             run on the calling thread alone
 *
 * The child is told by a page that the kernel empties at a fork (MADV_WIPEONFORK): asking is two loads.
 * Rejected: pthread_atfork(), a hook for the whole process that cannot be taken back; getpid() at
 * every wait, a system call. On a kernel without such pages nothing is noticed.
 */
#ifndef BZ_FORKED_H
#define BZ_FORKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

typedef bz_atomic(uint32_t) bz_forked_word;

extern bz_atomic(bz_forked_word *) bz_forked_at /* where 0 means: this is a child */
    __attribute__((visibility("hidden")));

/* A runtime begins to live, or has ended. Any thread. */
void bz_forked_enter(void);
void bz_forked_leave(void);

/* True if a runtime lived when this process was forked, and was not given up before. */
BZ_COLD bool bz_forked_confirm(void);
static BZ_ALWAYS_INLINE bool bz_is_forked(void)
{
    bz_forked_word *at = bz_load_relaxed(&bz_forked_at); /* relaxed: changes with no other thread */
    return BZ_UNLIKELY(bz_load_relaxed(at) == 0) && bz_forked_confirm(); /* relaxed: likewise */
}

/* Log, once, why `call` cannot be answered in a child. */
BZ_COLD void bz_forked_refuse(const char *call);

/* A wait that would never end. */
BZ_NORETURN BZ_COLD void bz_forked_abort(void);

#endif
