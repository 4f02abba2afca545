/*
 * blitz/sync.h - the synchronization primitives, in one include.
 *
 *   semaphore.h    a number of permits
 *   mutex.h        mutual exclusion
 *   rwlock.h       many readers, or one writer
 *   condition.h    wait, with a mutex held, until the data that it guards changes
 *   notify.h       a notification to check again, kept if there is no waiter
 *   event.h        a flag to wait for
 *   latch.h        wait until n things have happened
 *   wait_group.h   wait until all of a changing number are done
 *   barrier.h      n callers meet and continue together
 *   once.h         a value that is made once
 *   rate.h         so many permits in so much time
 *
 * docs/choosing-a-primitive.md helps to choose. Common properties:
 *
 *   - Fibers, stackless tasks (by a blitz_sync_future) and plain threads use them side by side, also
 *     tasks of several runtimes. Nothing is allocated to wait.
 *   - Every call that waits takes a deadline and ends with a cancel of the task. A call that failed has changed
 *     nothing. A call that need not wait succeeds with any deadline, also in a cancelled task.
 *   - A primitive is a struct of yours with a static initializer. Its fields are not yours. Do not move or copy it
 *     while it is in use. There is nothing to free.
 *   - Waiters are served first come, first served. Only those of a mutex may be passed, for a millisecond.
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
#include "blitz/rate.h"
#include "blitz/rwlock.h"
#include "blitz/semaphore.h"
#include "blitz/wait_group.h"

#endif
