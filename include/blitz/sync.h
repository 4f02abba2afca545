/*
 * blitz/sync.h - what tasks and threads wait for each other with, in one include.
 *
 *   semaphore.h    a number of permits
 *   mutex.h        one at a time
 *   rwlock.h       many who read, or one who writes
 *   condition.h    wait, with a mutex held, for a change of what it guards
 *   notify.h       "look again", kept if nobody waits
 *   event.h        has it happened?
 *   latch.h        have all n happened?
 *   wait_group.h   are all done, however many there are?
 *   barrier.h      n meet and go on together
 *   once.h         a value that is made once
 *
 * docs/choosing-a-primitive.md says which to take. What they have in common:
 *
 *   - Fibers, stackless tasks (by a blitz_sync_future) and plain threads use them side by side, also
 *     tasks of several runtimes. Nothing is allocated to wait.
 *   - Everything that waits takes a deadline and ends with a cancel of the task; what a call that
 *     failed has done is said with each: nothing, everywhere. A call that need not wait succeeds,
 *     whatever the deadline, and also in a task that was cancelled.
 *   - A primitive is a struct of yours with a static initializer. Its fields are not yours. It must
 *     not be moved or copied while it is in use; there is nothing to be freed.
 *   - Lines are first come, first served; only a mutex's may be passed, for a millisecond.
 */
#ifndef BLITZ_SYNC_H
#define BLITZ_SYNC_H

#include "blitz/barrier.h"
#include "blitz/condition.h"
#include "blitz/event.h"
#include "blitz/latch.h"
#include "blitz/mutex.h"
#include "blitz/notify.h"
#include "blitz/once.h"
#include "blitz/rwlock.h"
#include "blitz/semaphore.h"
#include "blitz/wait_group.h"

#endif
