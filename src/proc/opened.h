/*
 * opened.h - what is open in the frames of a task whose faults are trapped: forks, scopes, locks.
 *
 * A fault in such a task skips its frames (actor/trap.c). That is allowed only if no other thread may still use them, and no
 * lock would stay locked. So a task with the trait BZ_TASK_TRAPS counts what is open: in its byte `place`, which tasks in
 * slots do not use otherwise. A job counts while another thread has it (a job in the deque is seen there), a scope from open to
 * close, a mutex or an rwlock while the task holds it. The jobs are counted by the threads that take them, the rest by the task.
 *
 * A thread that steals a job takes it out of the deque and then counts it. In between the job is in neither, so the number of
 * threads in that step is counted as well (takers).
 *
 * Without such a task in the process the counts cost one load and one branch that is never taken: 3 instructions for each call of a
 * mutex or an rwlock.
 *
 * I1  A count that has reached BZ_OPENED_MANY stays there: the task is never trapped again. So it cannot wrap.
 * I2  The word bz_opened_counted is not 0 before the first such task is made, and as long as one may run.
 *
 * [O] take_begin: takers, then the job leaves the deque -> is_none: the deque, then takers acquire   a job that is in neither
 *     the deque nor the count is seen. Both steps of the taker are locked instructions, which order each other on x86_64; another
 *     architecture with a trap needs a release there. take_end: takers release -> is_none   the count is seen
 */
#ifndef BZ_PROC_OPENED_H
#define BZ_PROC_OPENED_H

#include "task/task.h"

enum { BZ_OPENED_MANY = 255 };

#if defined(BZ_MODEL)

/* Models have no such tasks. */
static inline bool bz_opened_is_counted(void)
{
    return false;
}
static inline void bz_opened_add(struct bz_task *t)
{
    (void)t;
}
static inline bool bz_opened_take_begin(void)
{
    return false;
}
static inline void bz_opened_take_end(bool was_counted)
{
    (void)was_counted;
}
static inline void bz_opened_begin(void) {}
static inline void bz_opened_end(void) {}
static inline uint64_t bz_opened_self(void)
{
    return 0;
}

#else

/* The number of runtimes with such tasks. */
extern BZ_HIDDEN bz_atomic(uint32_t) bz_opened_counted;
/* The number of threads between take_begin and take_end. */
extern BZ_HIDDEN bz_atomic(uint32_t) bz_opened_takers;

/* True if such tasks may exist. */
static BZ_ALWAYS_INLINE bool bz_opened_is_counted(void)
{
    return BZ_UNLIKELY(bz_load_relaxed(&bz_opened_counted) != 0); /* relaxed: I2 */
}

BZ_COLD void bz_opened_add_slowly(struct bz_task *t);
BZ_COLD void bz_opened_mine_slowly(bool is_more);
BZ_COLD uint64_t bz_opened_self_slowly(void);

/* Another thread has taken a job that t has forked. Any thread. */
static BZ_ALWAYS_INLINE void bz_opened_add(struct bz_task *t)
{
    if (bz_opened_is_counted())
        bz_opened_add_slowly(t);
}

/*
 * A thread is about to take jobs out of the deque of another, and has counted them. In between a job is neither in the deque
 * nor in the count: bz_opened_is_none() waits for that. begin returns the argument of end.
 */
static BZ_ALWAYS_INLINE bool bz_opened_take_begin(void)
{
    if (!bz_opened_is_counted())
        return false;
    bz_fetch_add_seqcst(&bz_opened_takers, 1); /* [O] */
    return true;
}

static BZ_ALWAYS_INLINE void bz_opened_take_end(bool was_counted)
{
    if (was_counted)
        bz_fetch_sub_release(&bz_opened_takers, 1); /* [O] */
}

/* The calling task has opened something, or closed it. */
static BZ_ALWAYS_INLINE void bz_opened_begin(void)
{
    if (bz_opened_is_counted())
        bz_opened_mine_slowly(true);
}

static BZ_ALWAYS_INLINE void bz_opened_end(void)
{
    if (bz_opened_is_counted())
        bz_opened_mine_slowly(false);
}

/* The id of the calling task, if it counts; else 0. */
static BZ_ALWAYS_INLINE uint64_t bz_opened_self(void)
{
    return bz_opened_is_counted() ? bz_opened_self_slowly() : 0;
}

#endif

/* True if nothing is open in the frames of t, the calling task, whose deque was found empty before. For signal handlers. */
bool bz_opened_is_none(struct bz_task *t);

#endif
