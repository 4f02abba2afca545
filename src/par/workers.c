/*
 * workers.c - run a function once on every worker.
 *
 * Each worker gets a task with a hint for its proc (place.c ensures that no other proc takes it).
 * So the task's number is that of the proc, and data indexed by it, such as a per-worker slot of an
 * array, stays valid as long as the function does not wait. If a task computes for long on a proc,
 * the function runs there when the monitor has moved the proc.
 *
 * Rejected: forked jobs that wait for each other until each worker has one. It works only while no
 *           other task uses the workers, and one worker may take two of the jobs when the first
 *           waits.
 */
#include <errno.h>

#include "blitz/par.h"
#include "blitz/task.h"
#include "par/split.h"
#include "proc/retire.h"
#include "proc/state.h"

struct call {
    int (*fn)(unsigned worker, void *arg);
    void *arg;
    unsigned worker;
    blitz_task *task; /* NULL: it was not spawned, or is joined */
};

static int call_main(void *arg)
{
    struct call *c = arg;
    return c->fn(c->worker, c->arg);
}

static int count_inside(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    *(unsigned *)arg = m != NULL ? bz_procs_active(m->rt) : 1;
    return 0;
}

unsigned blitz_worker_count(void)
{
    unsigned count;
    (void)!blitz_par_call_(count_inside, &count);
    return count;
}

static void cancel_all(struct call *calls, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        blitz_task_cancel(calls[i].task);
}

/* Start the tasks; on the first error cancel those already started. */
static int start(struct call *calls, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        blitz_spawn_opts opts = {.name = "on_each_worker", .proc = BLITZ_ON_PROC(i)};
        int err = blitz_spawn(call_main, &calls[i], &opts, &calls[i].task);
        if (err == 0)
            continue;
        cancel_all(calls, i);
        return err;
    }
    return 0;
}

static int on_each(struct call *calls, unsigned count)
{
    int first = 0, err = start(calls, count);
    for (unsigned i = 0; i < count && calls[i].task != NULL; i++) {
        int result = 0;
        /* Without a deadline a cancel is forwarded to the child, and the join returns 0. */
        (void)!blitz_task_join(calls[i].task, &result, BLITZ_FOREVER);
        calls[i].task = NULL;
        if (blitz_is_cancelled())
            cancel_all(calls + i + 1, count - i - 1);
        if (first == 0)
            first = result;
    }
    return err != 0 ? err : first;
}

struct all {
    int (*fn)(unsigned worker, void *arg);
    void *arg;
};

static int all_inside(void *arg)
{
    const struct all *all = arg;
    unsigned count = blitz_worker_count();
    if (bz_machine_self() == NULL)
        return all->fn(0, all->arg); /* there are no workers */
    struct call *calls = bz_par_alloc(count * sizeof *calls);
    if (calls == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++)
        calls[i] = (struct call){all->fn, all->arg, i, NULL};
    int err = on_each(calls, count);
    bz_par_free(calls, count * sizeof *calls);
    return err;
}

int blitz_on_each_worker(int (*fn)(unsigned worker, void *arg), void *arg)
{
    if (fn == NULL)
        return -EINVAL;
    return blitz_par_call_(all_inside, &(struct all){fn, arg});
}
