/*
 * outside.c - parallel calls from threads that are no workers.
 *
 * A program that sorts an array in main() has no runtime and needs none; it only wants every CPU to help. So there
 * is one runtime for the process, created by the first such call, as OpenMP and oneTBB create
 * their threads. A program that has a runtime can choose it instead (blitz_par_use).
 *
 * The function becomes a task of that runtime, and the thread itself runs it as far as possible (guest.c; the
 * plain form injects it, and the thread waits). If no runtime can be created (no memory, no thread), or it refuses
 * the task, the caller's thread calls the function: it forks, and its joins call the forked functions. So a parallel
 * call never fails for want of help.
 *
 * The runtime does not end by itself: no thread can know whether another is about to call. Its threads
 * sleep. All but the first leave after ten seconds without use. The rest end with the process, like any
 * thread that is not joined. A program that knows that no thread calls any more may end it (blitz_par_end).
 *
 * A plugin may be closed while such threads sleep. The runtime holds the library of its code
 * until blitz_par_end(), so that they wake up to code that is still mapped (os/loaded.h).
 *
 * Under simulation the process's own runtime would be outside of the simulation; there only a runtime set by
 * blitz_par_use is used.
 *
 * Rejected: creating it when the library is loaded (most programs never call), ending it at exit (the
 * handlers that run then may sort, too), and counting the callers (a shared word written by each).
 *
 * [M] chosen, make: release -> chosen, made: acquire   the runtime is complete
 */
#include <errno.h>

#include "blitz/fork.h"
#include "os/forked.h"
#include "os/loaded.h"
#include "proc/state.h"
#include "runtime/runtime.h"

static bz_atomic(struct bz_runtime *) chosen; /* by blitz_par_use; NULL: our own */
static bz_atomic(struct bz_runtime *) made;   /* our own, once created */
static bz_atomic(void *) held;                /* keeps our code mapped while `made` is set */

/* Create the process's runtime. If two threads do so at the same time, one ends its own. */
static struct bz_runtime *make(void)
{
    static const blitz_runtime_opts config = {.name = "blitz-par"};
    struct bz_runtime *mine, *first = NULL;
    if (bz_os_is_simulated() || bz_runtime_new(&bz_os_system, &config, &mine) != 0)
        return NULL;
    if (bz_cas_strong_acqrel_acq(&made, &first, mine)) { /* [M] */
        bz_store_relaxed(&held, bz_loaded_hold());       /* relaxed: read when all calls are over */
        return mine;
    }
    (void)blitz_runtime_shutdown((blitz_runtime *)mine, BLITZ_FOREVER);
    (void)!blitz_runtime_unref((blitz_runtime *)mine);
    return first;
}

blitz_runtime *blitz_par_runtime(void)
{
    struct bz_machine *m = bz_machine_self();
    if (m != NULL)
        return (blitz_runtime *)m->rt;
    if (bz_is_forked())
        return NULL;
    struct bz_runtime *rt = bz_load_acquire(&chosen); /* [M] */
    if (rt == NULL && !bz_os_is_simulated())
        rt = bz_load_acquire(&made); /* [M] */
    return (blitz_runtime *)(rt != NULL ? rt : make());
}

int blitz_par_end(void)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_runtime *rt = bz_load_acquire(&made); /* [M] */
    if (m != NULL && m->rt == rt)
        return -EBUSY;
    bz_store_relaxed(&made, NULL); /* relaxed: no other thread is about to read it */
    if (rt != NULL)
        (void)blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER);
    int err = blitz_runtime_unref((blitz_runtime *)rt);
    if (err == 0 && rt != NULL)
        bz_loaded_release(bz_xchg_relaxed(&held, NULL)); /* relaxed: likewise */
    return err;
}

void blitz_par_use(blitz_runtime *rt)
{
    bz_store_release(&chosen, (struct bz_runtime *)rt); /* [M] */
}

/* Run fn as an ordinary task; negative: it was not spawned. */
static int inject(struct bz_runtime *rt, int (*fn)(void *), void *arg, int *result)
{
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)rt, .name = "parallel"};
    blitz_task *t;
    int err = blitz_spawn(fn, arg, &opts, &t);
    return err != 0 ? err : blitz_task_join(t, result, BLITZ_FOREVER);
}

/* Call fn in rt. Called on a plain thread, or in a task of another runtime. */
static int call_in(struct bz_runtime *rt, int (*fn)(void *), void *arg, int *result)
{
    if (bz_is_plain(rt) || bz_machine_self() != NULL)
        return inject(rt, fn, arg, result);
    int err = bz_guest_call(rt, fn, arg, result);
    return err == -EAGAIN ? inject(rt, fn, arg, result) : err;
}

int blitz_par_run(blitz_runtime *runtime, int (*fn)(void *arg), void *arg)
{
    struct bz_machine *m = bz_machine_self();
    int result = 0;
    if (fn == NULL)
        return -EINVAL;
    struct bz_runtime *rt = (struct bz_runtime *)(runtime != NULL ? runtime : blitz_par_runtime());
    if (rt == NULL || bz_is_forked() || (m != NULL && m->rt == rt) ||
        call_in(rt, fn, arg, &result) != 0)
        return fn(arg);
    return result;
}

int blitz_par_outside_(int (*fn)(void *arg), void *arg)
{
    return blitz_par_run(NULL, fn, arg);
}
