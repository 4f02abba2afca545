/* Calls made in place, and tasks locked to their thread, on real threads: blitz/blocking.h. */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "proc/state.h"
#include "support/alone.h"
#include "support/on_each.h"

struct pipes {
    int fd[2];
};

static int reads(void *arg)
{
    char c = 0;
    return read(((struct pipes *)arg)->fd[0], &c, 1) == 1 ? c : -errno;
}

static int writes(void *arg)
{
    return write(((struct pipes *)arg)->fd[1], "x", 1) == 1 ? 0 : -errno;
}

/* The writer must still run, on the proc whose task blocks until it has. */
static int reads_in_place(void *arg)
{
    struct pipes p;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(pipe(p.fd), 0);
    CHECK_EQ(blitz_spawn(writes, &p, NULL, &t), 0);
    int got = blitz_block_in_place(reads, &p);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    close(p.fd[0]);
    close(p.fd[1]);
    return got;
}

TEST(syscall, a_blocking_call_in_place_blocks_no_other_task)
{
    t_on_each(reads_in_place, NULL, 'x');
}

static int calls_five_times(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    uint32_t before = bz_load_relaxed(&m->calls); /* relaxed: ours */
    (void)arg;
    for (uint32_t i = 1; i <= 5; i++) {
        blitz_syscall_enter();
        blitz_syscall_enter(); /* inside of the first: one call to the monitor */
        CHECK_EQ(bz_load_relaxed(&m->calls), before + i); /* relaxed: ours */
        blitz_syscall_leave();
        blitz_syscall_leave();
    }
    return 0;
}

/* So the monitor can tell one call that lasts from several short ones. */
TEST(syscall, each_call_is_counted_once)
{
    CHECK_EQ(t_run_alone(calls_five_times, NULL), 0);
}

/* As many as there are procs, and more. */
static int many_read_in_place(void *arg)
{
    enum { N = 12 };
    blitz_task *t[N];
    int got = 0;
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(reads_in_place, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        CHECK_EQ(got, 'x');
    }
    return 0;
}

TEST(syscall, more_calls_than_procs)
{
    t_on_each(many_read_in_place, NULL, 0);
}

/* ---- how a call comes back to its proc ---- */

static void needs_calls_in_place(void)
{
    const char *io = getenv("BLITZ_IO");
    if (io != NULL && strcmp(io, "uring") == 0)
        t_skip("with uring a call in place goes to the pool");
}

static blitz_stats figures(void)
{
    blitz_stats s;
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    return s;
}

/* A call under way, and a plain thread that ends it once the proc is as the test wants it. */
struct call {
    struct pipes p;
    struct bz_runtime *rt;
    bool (*is_time)(struct call *c); /* on the plain thread */
    bz_atomic(int) has_returned;     /* the task has gone on after its call */
    bz_atomic(int) hog_runs, hog_may_end;
};

static void *ends_the_call(void *arg)
{
    struct call *c = arg;
    while (!c->is_time(c))
        sched_yield();
    CHECK_EQ(write(c->p.fd[1], "x", 1), 1);
    return NULL;
}

static int makes_the_call(void *arg)
{
    struct call *c = arg;
    int got = blitz_block_in_place(reads, &c->p);
    bz_store_relaxed(&c->has_returned, 1); /* relaxed: a flag */
    return got;
}

static pthread_t begin_call(struct call *c, bool (*is_time)(struct call *c))
{
    pthread_t thread;
    *c = (struct call){.rt = bz_machine_self()->rt, .is_time = is_time};
    CHECK_EQ(pipe(c->p.fd), 0);
    CHECK_EQ(pthread_create(&thread, NULL, ends_the_call, c), 0);
    return thread;
}

static void end_call(struct call *c, pthread_t thread)
{
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(c->p.fd[0]);
    close(c->p.fd[1]);
}

static int does_nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* The proc has left the call, has run what waited, and its new machine sleeps. */
static bool is_proc_asleep(struct call *c)
{
    uint32_t word = bz_load_acquire(&c->rt->procs[0].state); /* proc.c */
    return bz_proc_state_of(word) == BZ_PROC_ASLEEP;
}

static int calls_until_regained(void *arg)
{
    enum { WANTED = 5 };
    struct call c;
    (void)arg;
    while (figures().calls_regained < WANTED) { /* the sleeper may be up again by chance */
        blitz_task *waits;
        CHECK_EQ(blitz_spawn(does_nothing, NULL, NULL, &waits), 0); /* a reason to move the proc */
        pthread_t thread = begin_call(&c, is_proc_asleep);
        CHECK_EQ(makes_the_call(&c), 'x');
        CHECK_NOT_NULL(bz_machine_self()->proc);
        end_call(&c, thread);
        CHECK_EQ(blitz_task_join(waits, NULL, BLITZ_FOREVER), 0);
    }
    CHECK_GE(figures().calls_moved, figures().calls_regained);
    return 0;
}

/* A task that returns from a call continues at once if its proc is idle. */
TEST(syscall, a_call_that_ends_takes_its_sleeping_proc_back)
{
    needs_calls_in_place();
    CHECK_EQ(t_run_alone(calls_until_regained, NULL), 0);
}

/* Holds the proc until the returning task is in the queue. */
static int hogs_the_proc(void *arg)
{
    struct call *c = arg;
    bz_store_release(&c->hog_runs, 1); /* is_hog_running */
    while (bz_injector_length(&c->rt->injector) == 0)
        sched_yield();
    CHECK_EQ(bz_load_relaxed(&c->has_returned), 0); /* relaxed: one proc, and it is ours */
    CHECK_EQ(figures().calls_regained, 0u);
    return 0;
}

static bool is_hog_running(struct call *c)
{
    return bz_load_acquire(&c->hog_runs) != 0; /* hogs_the_proc */
}

static int comes_back_to_a_hog(void *arg)
{
    struct call c;
    blitz_task *hog;
    (void)arg;
    pthread_t thread = begin_call(&c, is_hog_running);
    CHECK_EQ(blitz_spawn(hogs_the_proc, &c, NULL, &hog), 0);
    CHECK_EQ(makes_the_call(&c), 'x');
    CHECK_EQ(figures().calls_moved, 1u);
    CHECK_EQ(blitz_task_join(hog, NULL, BLITZ_FOREVER), 0);
    end_call(&c, thread);
    return 0;
}

/* No more tasks run at a time than there are procs: a call that ends beside a busy proc is queued. */
TEST(syscall, a_call_that_ends_beside_a_busy_proc_stands_in_line)
{
    needs_calls_in_place();
    for (int i = 0; i < 20; i++) {
        t_watch("round %d", i);
        CHECK_EQ(t_run_alone(comes_back_to_a_hog, NULL), 0);
    }
}

static int waits_for_one_behind_it(void *arg)
{
    CHECK_EQ(reads_in_place(arg), 'x');
    CHECK_GE(figures().calls_moved, 1u); /* on one proc the writer had no other way to run */
    return 0;
}

/* The monitor gives the proc of a call that lasts to another machine. */
TEST(syscall, the_proc_of_a_call_that_lasts_is_handed_over)
{
    needs_calls_in_place();
    CHECK_EQ(t_run_alone(waits_for_one_behind_it, NULL), 0);
}

static int adds_one(void *arg)
{
    return 1 + *(int *)arg;
}

TEST(syscall, on_a_plain_thread_it_is_a_call)
{
    int n = 41;
    CHECK_EQ(blitz_block_in_place(adds_one, &n), 42);
    CHECK_EQ(blitz_block_in_place(NULL, NULL), -EINVAL);
    blitz_syscall_enter();
    blitz_syscall_leave();
    CHECK_EQ(blitz_thread_lock(), 0);
    CHECK_EQ(blitz_thread_unlock(), 0);
}

#if defined(BZ_DEBUG)
static int leaves_without_entering(void *arg)
{
    blitz_syscall_enter();
    blitz_syscall_leave();
    blitz_syscall_leave();
    return (int)(intptr_t)arg;
}

static void runs_it(void *arg)
{
    blitz_run(leaves_without_entering, arg, &(blitz_runtime_opts){.procs = 1});
}

TEST(syscall, a_leave_without_an_enter_aborts_in_debug_builds)
{
    CHECK_ABORTS(runs_it, NULL, "where");
}
#endif

/* ---- locked ---- */

static _Thread_local uint64_t owner; /* the task that has locked this thread; 0: none */

static BZ_NOINLINE uint64_t owner_here(void)
{
    __asm__ volatile(""); /* afresh: a task may go on elsewhere */
    return owner;
}

static BZ_NOINLINE void own(uint64_t id)
{
    __asm__ volatile("");
    owner = id;
}

static int passes_by(void *arg)
{
    for (int i = 0; i < (int)(intptr_t)arg; i++) {
        CHECK_EQ(owner_here(), 0u);
        blitz_yield();
        CHECK_EQ(owner_here(), 0u);
        CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    }
    return 0;
}

static int stays(void *arg)
{
    uint64_t me = blitz_task_id(NULL);
    CHECK_EQ(blitz_thread_lock(), 0);
    pthread_t mine = pthread_self();
    own(me);
    for (int i = 0; i < (int)(intptr_t)arg; i++) {
        blitz_yield();
        CHECK_EQ(owner_here(), me);
        CHECK_EQ(blitz_sleep(20 * BLITZ_US), 0);
        CHECK_EQ(owner_here(), me);
        CHECK_EQ(blitz_blocking(passes_by, NULL), 0);
        CHECK_EQ(blitz_block_in_place(passes_by, NULL), 0);
        CHECK_EQ(owner_here(), me);
    }
    CHECK(pthread_equal(mine, pthread_self()));
    own(0);
    CHECK_EQ(blitz_thread_unlock(), 0);
    CHECK_EQ(blitz_thread_unlock(), -EPERM);
    return 0;
}

static int some_stay(void *arg)
{
    enum { N = 8 };
    blitz_task *t[N];
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(i % 2 ? stays : passes_by, arg, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(thread_lock, the_task_stays_and_no_other_task_runs_there)
{
    t_on_each(some_stay, (void *)(intptr_t)20, 0);
}

static int ends_locked(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_thread_lock(), 0);
    CHECK_EQ(blitz_thread_lock(), 0);
    return blitz_sleep(BLITZ_US);
}

static int many_end_locked(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        blitz_task *t;
        CHECK_EQ(blitz_spawn(ends_locked, NULL, NULL, &t), 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
    struct bz_runtime *rt = bz_machine_self()->rt;
    CHECK_EQ(bz_load_relaxed(&rt->locked), 0u); /* relaxed: all have ended */
    CHECK_EQ(rt->pool.kept, 0u);                /* and no thread is kept for them */
    return 0;
}

TEST(thread_lock, it_ends_with_the_task)
{
    t_on_each(many_end_locked, NULL, 0);
}

/* A cancel and a shutdown find it asleep, too. */
static int sleeps_locked(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_thread_lock(), 0);
    return blitz_sleep(1000 * BLITZ_S);
}

static int leaves_one_asleep(void *arg)
{
    CHECK_EQ(blitz_spawn(sleeps_locked, NULL, NULL, NULL), 0);
    blitz_yield();
    return (int)(intptr_t)arg;
}

TEST(thread_lock, a_locked_task_is_cancelled_like_any_other)
{
    t_on_each(leaves_one_asleep, (void *)(intptr_t)3, 3);
}
