/*
 * outside.c - parallel calls from threads that are no workers.
 *
 * Whoever sorts an array in main() has no runtime and wants none; all he wants is that every CPU
 * helps. So there is one for the process, made by the first such call, as OpenMP and oneTBB make
 * their threads; and a call for those who have a runtime and want it to be that one.
 *
 * The function becomes a task of that runtime, run by the thread itself as far as it goes (guest.c; the
 * plain form injects it, and the thread waits). If there is no
 * runtime to be had (no memory, no thread), or it will not have the task, the function is called
 * where we are: it forks, and its joins call what they forked. So a parallel call never fails for
 * want of help.
 *
 * The runtime is not ended by itself: whoever could do it cannot know who is about to call. Its threads
 * sleep, go after ten seconds without use but for the first, and end with the process, as any
 * thread of its does that nobody joins. Who knows that nobody calls may say so (blitz_par_end).
 *
 * A plugin may be closed while such threads sleep. The runtime holds the library that its code is in
 * until blitz_par_end(), so that they wake up to code that is still mapped (os/loaded.h).
 *
 * Under simulation the process's own runtime would be outside of the simulation; there only one that was
 * named (blitz_par_use) is used.
 *
 * Rejected: making it when the library is loaded (most programs never call), ending it at exit (the
 * handlers that run then may sort, too), and counting the callers (a shared word written by each).
 *
 * [M] chosen, make: release -> chosen, made: acquire   the runtime is complete
 */
#include <errno.h>

#include "blitz/fork.h"
#include "os/forked.h"
#include "os/loaded.h"
#include "sched/sched.h"

static bz_atomic(struct bz_runtime *) chosen; /* by blitz_par_use; NULL: our own */
static bz_atomic(struct bz_runtime *) made;   /* our own, once there is one */
static bz_atomic(void *) held;                /* keeps our code mapped while `made` is set */

/* Two may make one at the same time; one of them is too many. */
static struct bz_runtime *make(void)
{
    static const blitz_runtime_opts config = {.name = "blitz-par"};
    struct bz_runtime *mine, *first = NULL;
    if (bz_os_outside() != &bz_os_linux || bz_runtime_new(&bz_os_linux, &config, &mine) != 0)
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
    if (rt == NULL && bz_os_outside() == &bz_os_linux)
        rt = bz_load_acquire(&made); /* [M] */
    return (blitz_runtime *)(rt != NULL ? rt : make());
}

int blitz_par_end(void)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_runtime *rt = bz_load_acquire(&made); /* [M] */
    if (m != NULL && m->rt == rt)
        return -EBUSY;
    bz_store_relaxed(&made, NULL); /* relaxed: nobody else is about to look */
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

/* As a task like any other; negative: it did not come to that. */
static int inject(struct bz_runtime *rt, int (*fn)(void *), void *arg, int *result)
{
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)rt, .name = "parallel"};
    blitz_task *t;
    int err = blitz_spawn(fn, arg, &opts, &t);
    return err != 0 ? err : blitz_task_join(t, result, BLITZ_FOREVER);
}

/* On a plain thread, or in a task of another runtime. */
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
