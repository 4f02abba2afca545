/*
 * ready.h - operations by readiness: try, wait until it is worth another try. ready.c has the rules.
 *
 * For keepers that hear when a descriptor becomes ready (epoll, poll, kqueue).
 */
#ifndef BZ_IO_READY_H
#define BZ_IO_READY_H

#include "io/op.h"

/*
 * Try it, if the file is ready as far as is known. No lock is held.
 * Returns: true: done, op->result; *next is the wake-up of the next waiter, or BZ_WAKE_NONE. False: it must
 *          wait; no waiter was claimed, and it may not have entered the file.
 */
BZ_MUST_USE bool bz_ready_try(struct bz_op *op, struct bz_wake *next);

/* Under the file's lock, entered and attached: would it be worth another try already? Else it waits from
 * here on. */
BZ_MUST_USE bool bz_ready_wait(struct bz_op *op);

/* Under the file's lock: it waits no longer. If it was notified, *next is the waiter that is notified instead. */
void bz_ready_revoke(struct bz_op *op, struct bz_wake *next);

/* Something happened to it. Under its lock. */
enum { BZ_READY_IN = 1, BZ_READY_OUT = 2, BZ_READY_OVER = 4, BZ_READY_IN_OVER = 8 };
void bz_ready_event(struct bz_file *f, unsigned events, struct bz_wake wakes[BZ_SIDES]);

#endif
