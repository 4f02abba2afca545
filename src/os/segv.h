/*
 * segv.h - the handler of faults. A trap may turn a fault into a jump; a watcher may explain it before it ends the process.
 *
 * Our handler is installed while there is a watcher (bz_segv_watch) or a trap (bz_segv_trap). A watcher is asked about
 * SIGSEGV and SIGBUS, a trap about SIGFPE and SIGILL as well.
 *
 * The handler runs on the alternate stack of the thread that faulted. Threads of os.h have one; on
 * a thread without one the handler cannot run, and an overflow ends the process without a message.
 * The handler calls the trap first. If the trap refuses, it calls the watcher. If the watcher knows the address, its message
 * goes to standard error. Then the previous handler is called, or the instruction faults again with the default
 * action, so that a core file shows the exact place.
 *
 * The functions here are for one thread at a time: task/overflow.c has the lock.
 */
#ifndef BZ_SEGV_H
#define BZ_SEGV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Called in a signal handler that may interrupt any code: no allocation, and no lock that the
 * thread may hold. Write a message of at most `room` bytes, newline included. Return its length; 0
 * if the address is not ours.
 */
typedef size_t bz_segv_explain(const void *address, char *text, size_t room);

/* Returns: 0, -EBUSY (there is a watcher already), -errno of sigaction. */
BZ_MUST_USE int bz_segv_watch(bz_segv_explain *explain);

/* Stop explaining. If another handler was installed over ours, ours stays and forwards all
 * signals. */
void bz_segv_unwatch(void);

/* A fault of the calling thread, and where the thread was. */
struct bz_segv_fault {
    int signal;
    const void *address; /* as the kernel reports it; NULL if it does not know */
    uintptr_t pc, sp;
    void *context; /* ucontext_t */
};

/*
 * Called in the handler, by the rules of bz_segv_explain. True: bz_segv_go_on was called, and the handler returns to the new
 * place. False: the fault takes its course.
 */
typedef bool bz_segv_trap_fn(const struct bz_segv_fault *fault);

/*
 * Call `trap` first, until there are as many calls of untrap. All callers give the same function.
 * Returns: 0, -EOPNOTSUPP (not on this architecture), -errno of sigaction.
 */
BZ_MUST_USE int bz_segv_trap(bz_segv_trap_fn *trap);
void bz_segv_untrap(void);

/* The thread goes on at `pc` with that stack pointer when the handler has returned. The other registers stay. */
void bz_segv_go_on(const struct bz_segv_fault *fault, uintptr_t pc, uintptr_t sp);

/* The name of a fault's signal: "SIGSEGV". */
const char *bz_segv_name(int signal);

/* Return from bz_segv_walk's visitor: go on outward, or stop. */
typedef bool bz_segv_visit(uintptr_t pc, void *ctx);

/*
 * Visit the frames of the interrupted code in the handler, innermost first, until `visit` returns false or no caller is
 * known. The first is fault->pc, the others are return addresses. Reads the unwind tables; a damaged stack may fault again,
 * and then the kernel ends the process.
 */
void bz_segv_walk(const struct bz_segv_fault *fault, bz_segv_visit *visit, void *ctx);

#endif
