/*
 * runtimes.c - where a debugger begins: every runtime of the process, and the constants it needs.
 *
 * A program in a debugger is stopped, or is a core file: no function can be called, and only types and the addresses
 * of variables are available. tools/gdb/blitz.py starts from the two variables
 * below. This file and base/slab_chunk.c are compiled with debug information in every build, so that their
 * types are known in a release build as well, unless it was stripped; that adds nothing to the code.
 *
 * Rejected: finding runtimes through the thread-local of their workers. A core file may lack the data
 * needed to find thread-locals, and a runtime whose workers have not started has none.
 *
 * The list also leads from an id to its runtime. A thread that is not of that runtime may come at any time, and the user may release
 * the runtime meanwhile. So it *visits*: it counts itself in under the lock, and out when it is done. The end removes the runtime
 * from the list, and waits until the count is 0. A visit is brief. A visitor that waits, for a reply for example, keeps the memory
 * instead, as a handle of a task does (life/tasks.c).
 *
 * I1  The list holds every runtime from its creation to the beginning of its end.
 *
 * [V] leave: visits release -> remove: visits acquire   what a visitor has done comes before the end
 */
#include "runtime/runtimes.h"

#include "proc/state.h"
#include "wait/wait.h"
#include "wait/waker.h"

/* Constants that the script would otherwise have to repeat. */
struct bz_debug {
    struct bz_runtime *runtimes; /* the newest; guarded by lock */
    struct bz_lock lock;
    uint64_t word_life, word_started, word_cancelled, word_refs; /* task/word.h */
    enum bz_life idle, scheduled, running, complete;
    unsigned wait_mask, wait_child, wait_job, wait_future, wait_open; /* wait/wait.h */
    unsigned age_shift;                                               /* queue/age.h */
    unsigned proc_bits;                                               /* proc/proc.h */
    enum bz_proc_state proc_asleep, proc_held;
    uint64_t ring_mask;           /* queue/runq.h */
    const struct bz_wait *a_wait; /* so that the type is known */
    const struct bz_stack *a_stack;
};

struct bz_debug bz_debug = {
    .lock = BZ_LOCK_INIT,
    .word_life = BZ_WORD_LIFE,
    .word_started = BZ_WORD_STARTED,
    .word_cancelled = BZ_WORD_CANCELLED,
    .word_refs = BZ_WORD_REF_MASK,
    .idle = BZ_IDLE,
    .scheduled = BZ_SCHEDULED,
    .running = BZ_RUNNING,
    .complete = BZ_COMPLETE,
    .wait_mask = BZ_WAIT_TAG_MASK,
    .wait_child = BZ_WAIT_CHILD,
    .wait_job = BZ_WAIT_JOB,
    .wait_future = BZ_WAIT_FUTURE,
    .wait_open = BZ_WAIT_OPEN,
    .age_shift = BZ_AGE_SHIFT,
    .ring_mask = BZ_RUNQ_MASK,
    .proc_bits = BZ_PROC_STATE_BITS,
    .proc_asleep = BZ_PROC_ASLEEP,
    .proc_held = BZ_PROC_HELD,
};

static uint32_t creations; /* guarded by bz_debug.lock */

void bz_runtimes_add(struct bz_runtime *rt)
{
    bz_lock_take(&bz_debug.lock, rt->os);
    rt->creation = ++creations;
    rt->older = bz_debug.runtimes;
    bz_debug.runtimes = rt; /* I1 */
    bz_lock_drop(&bz_debug.lock, rt->os);
}

void bz_runtimes_remove(struct bz_runtime *rt)
{
    bz_lock_take(&bz_debug.lock, rt->os);
    for (struct bz_runtime **at = &bz_debug.runtimes; *at != NULL; at = &(*at)->older)
        if (*at == rt) {
            *at = rt->older;
            break;
        }
    bz_lock_drop(&bz_debug.lock, rt->os);
    for (unsigned round = 0; bz_load_acquire(&rt->visits) != 0; round++) /* [V] */
        bz_os_relax(rt->os, round);
}

/* Under the lock. */
static struct bz_runtime *find(uint32_t creation)
{
    struct bz_runtime *rt = bz_debug.runtimes;
    while (rt != NULL && rt->creation != creation)
        rt = rt->older;
    return rt;
}

struct bz_runtime *bz_runtimes_find(uint32_t creation)
{
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&bz_debug.lock, os);
    struct bz_runtime *rt = find(creation);
    bz_lock_drop(&bz_debug.lock, os);
    return rt;
}

struct bz_runtime *bz_runtimes_visit(uint32_t creation)
{
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&bz_debug.lock, os);
    struct bz_runtime *rt = find(creation);
    if (rt != NULL)
        bz_fetch_add_relaxed(&rt->visits,
                             1); /* relaxed: the lock; the end looks after it has had the lock */
    bz_lock_drop(&bz_debug.lock, os);
    return rt;
}

void bz_runtimes_leave(struct bz_runtime *rt)
{
    bz_fetch_sub_release(&rt->visits, 1); /* [V] */
}
