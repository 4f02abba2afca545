/*
 * ready.h - operations by readiness: try, and wait until another try may succeed. ready.c has the
 * rules.
 *
 * For backends that report readiness of descriptors (epoll, poll, kqueue).
 */
#ifndef BZ_IO_READY_H
#define BZ_IO_READY_H

#include "io/op.h"

/*
 * Try the operation if the file is probably ready. No lock is held.
 * Returns: true: done, op->result; *next is the wake-up of the next waiter, or BZ_WAKE_NONE. False:
 *          it must wait; no waiter was claimed, and it may not have entered the file.
 */
BZ_MUST_USE bool bz_ready_try(struct bz_op *op, struct bz_wake *next);

/* Under the file's lock, after enter and attach: return true if another try may succeed already.
 * Else the operation waits from here on. */
BZ_MUST_USE bool bz_ready_wait(struct bz_op *op);

/* Under the file's lock: end the wait. If the operation was notified, *next is the waiter that is
 * notified instead. */
void bz_ready_revoke(struct bz_op *op, struct bz_wake *next);

/* Process an edge of the file. Under its lock. */
enum { BZ_READY_IN = 1, BZ_READY_OUT = 2, BZ_READY_OVER = 4, BZ_READY_IN_OVER = 8 };
void bz_ready_event(struct bz_file *f, unsigned events, struct bz_wake wakes[BZ_SIDES]);

#endif
