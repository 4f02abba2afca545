/* blitz/blocking.h on real threads: calls on the pool, their results, nesting, deadlines, large stacks. */
#include "harness.h"

#include <unistd.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "proc/state.h"
#include "support/leave.h"
#include "support/on_each.h"

/* ---- calls ---- */

static int says_who(void *arg)
{
    *(void **)arg = blitz_task_current();
    return 42;
}

static int calls_once(void *arg)
{
    void *who = arg;
    CHECK_EQ(blitz_blocking(says_who, &who), 42);
    CHECK_NULL(who); /* no task: a thread of the pool */
    CHECK_EQ(blitz_blocking(NULL, NULL), -EINVAL);
    return 0;
}

TEST(blocking, a_call_returns_the_result_of_its_function)
{
    t_on_each(calls_once, NULL, 0);
    void *who = &who;
    CHECK_EQ(blitz_blocking(says_who, &who), 42); /* a plain thread: here */
    CHECK_NULL(who);
}

/* While one task's call blocks, the proc runs others: the call is over only when they have run. */
struct pipes {
    int fd[2];
};

static int reads(void *arg)
{
    char c = 0;
    return read(((struct pipes *)arg)->fd[0], &c, 1) == 1 ? c : -EIO;
}

static int reads_blocking(void *arg)
{
    return blitz_blocking(reads, arg);
}

static int reader_and_writer(void *arg)
{
    struct pipes p;
    blitz_task *t;
    int got = 0;
    (void)arg;
    CHECK_EQ(pipe(p.fd), 0);
    CHECK_EQ(blitz_spawn(reads_blocking, &p, NULL, &t), 0);
    for (int i = 0; i < 100; i++)
        blitz_yield();
    CHECK_EQ(write(p.fd[1], "x", 1), 1);
    CHECK_EQ(blitz_task_join(t, &got, BLITZ_FOREVER), 0);
    close(p.fd[0]);
    close(p.fd[1]);
    return got;
}

TEST(blocking, others_run_while_a_call_blocks)
{
    t_on_each(reader_and_writer, NULL, 'x');
}

/* ---- bug class 29 ---- */

static int nests(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    return depth == 0 ? 1 : 1 + blitz_blocking(nests, (void *)(depth - 1));
}

static int nests_in_many(void *arg)
{
    enum { N = 50, DEPTH = 5 };
    blitz_task *t[N];
    int sum = 0;
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(nests, (void *)(intptr_t)DEPTH, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int got = 0;
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        sum += got;
    }
    return sum;
}

/* A pool of one, and every call makes a nested call: no thread waits for itself. */
TEST(blocking, bug_29_nested_calls_on_a_pool_of_one)
{
    for (unsigned procs = 1; procs <= 3; procs++) {
        blitz_runtime_opts one = {.procs = procs, .threads_max = procs + 1};
        CHECK_EQ(blitz_run(nests_in_many, NULL, &one), 50 * 6);
    }
}

/* ---- figures ---- */

static int counts(void *arg)
{
    blitz_stats s;
    (void)arg;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_blocking(nests, NULL), 1);
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    CHECK_EQ(s.blocking, 10u);
    CHECK_EQ(s.blocking_pending, 0u);
    CHECK_GE(s.threads,
             2u); /* the worker's, and the pool's: one was enough, or it was not idle yet */
    CHECK_LE(s.threads_idle, s.threads - 1);
    return 0;
}

TEST(blocking, calls_and_threads_are_counted)
{
    CHECK_EQ(blitz_run(counts, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

/* ---- leaving at a deadline ---- */

struct parcel {
    struct pipes p;
    bz_atomic(int) begun, dropped;
};

static void drop_parcel(void *arg, void *ctx)
{
    (void)ctx;
    struct parcel *parcel = arg;
    bz_fetch_add_release(&parcel->dropped, 1); /* await_drop */
}

static int parcel_reads(void *arg)
{
    bz_store_relaxed(&((struct parcel *)arg)->begun, 1); /* relaxed: a flag */
    return reads(&((struct parcel *)arg)->p);
}

static void await_drop(struct parcel *parcel)
{
    while (bz_load_acquire(&parcel->dropped) == 0) /* drop_parcel */
        blitz_yield();
}

/* A call that was not begun by then is not made any more; its argument is dropped at once. */
static bool is_left(struct parcel *parcel, uint64_t patience_ns)
{
    int result = -1;
    blitz_deadline until = blitz_after(patience_ns);
    CHECK_EQ(leave_at(parcel_reads, parcel, drop_parcel, &result, until), -ETIMEDOUT);
    CHECK_EQ(result, -1);
    /* relaxed: if it still runs it cannot have returned */
    if (bz_load_relaxed(&parcel->dropped) == 0)
        return true;
    CHECK_EQ(bz_load_relaxed(&parcel->begun), 0); /* relaxed: a running call is not dropped */
    bz_store_relaxed(&parcel->dropped, 0);        /* relaxed: ours again */
    return false;
}

static int leaves_at_a_deadline(void *arg)
{
    struct parcel parcel = {.dropped = 0};
    int result = -1;
    uint64_t patience_ns = BLITZ_MS;
    (void)arg;
    CHECK_EQ(pipe(parcel.p.fd), 0);
    while (!is_left(&parcel, patience_ns))
        patience_ns *= 2; /* a busy system takes its time to start a thread */
    CHECK_EQ(write(parcel.p.fd[1], "a", 1), 1);
    await_drop(&parcel);
    CHECK_EQ(write(parcel.p.fd[1], "b", 1), 1);
    CHECK_EQ(leave_at(parcel_reads, &parcel, drop_parcel, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 'b');
    CHECK_EQ(bz_load_relaxed(&parcel.dropped), 1); /* relaxed: the result came, so arg is ours */
    close(parcel.p.fd[0]);
    close(parcel.p.fd[1]);
    return 0;
}

TEST(blocking, at_its_deadline_the_caller_leaves_and_the_call_goes_on)
{
    t_on_each(leaves_at_a_deadline, NULL, 0);
}

static int waits_for_parcel(void *arg)
{
    return leave_at(parcel_reads, arg, drop_parcel, NULL, BLITZ_FOREVER);
}

static int leaves_at_a_cancel(void *arg)
{
    struct parcel parcel = {.dropped = 0};
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(pipe(parcel.p.fd), 0);
    CHECK_EQ(blitz_spawn(waits_for_parcel, &parcel, NULL, &t), 0);
    (void)!blitz_sleep(BLITZ_MS); /* whether it has begun by then or not, both must be right */
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    CHECK_EQ(write(parcel.p.fd[1], "a", 1), 1);
    await_drop(&parcel);
    close(parcel.p.fd[0]);
    close(parcel.p.fd[1]);
    return 0;
}

TEST(blocking, a_cancelled_caller_leaves_and_its_argument_is_dropped)
{
    t_on_each(leaves_at_a_cancel, NULL, 0);
}

/* A call in the caller's frame cannot be left: a cancel is found by the next wait. */
static int insists(void *arg)
{
    CHECK_EQ(blitz_blocking(reads, arg), 'x');
    return blitz_sleep(BLITZ_S);
}

static int cancels_one_that_insists(void *arg)
{
    struct pipes p;
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(pipe(p.fd), 0);
    CHECK_EQ(blitz_spawn(insists, &p, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(write(p.fd[1], "x", 1), 1);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    close(p.fd[0]);
    close(p.fd[1]);
    return result;
}

TEST(blocking, a_call_in_the_callers_frame_outlasts_a_cancel)
{
    t_on_each(cancels_one_that_insists, NULL, -ECANCELED);
}

TEST(blocking, a_plain_thread_makes_the_call_itself)
{
    struct parcel parcel = {.dropped = 0};
    int result = 0;
    CHECK_EQ(pipe(parcel.p.fd), 0);
    CHECK_EQ(write(parcel.p.fd[1], "a", 1), 1);
    CHECK_EQ(leave_at(parcel_reads, &parcel, drop_parcel, &result, 0), 0);
    CHECK_EQ(result, 'a');
    CHECK_EQ(bz_load_relaxed(&parcel.dropped), 0); /* relaxed: no other thread */
    CHECK_EQ(leave_at(NULL, NULL, NULL, &result, BLITZ_FOREVER), -EINVAL);
    close(parcel.p.fd[0]);
    close(parcel.p.fd[1]);
}

/* ---- in a stackless task ---- */

struct polled {
    blitz_frame frame;
    blitz_blocking_future call;
    struct pipes *p;
};

static blitz_poll polls_a_call(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    blitz_blocking_future_init(&me->call, reads, me->p, NULL);
    BLITZ_AWAIT(rc, &me->call.future);
    CHECK_EQ(rc, 0);
    CHECK_EQ(blitz_future_output(&me->call.future), me->call.result);
    BLITZ_END(me->call.result);
}

static int awaits_a_poll(void *arg)
{
    struct pipes p;
    struct polled state = {.p = &p};
    blitz_task *t;
    int got = 0;
    (void)arg;
    CHECK_EQ(pipe(p.fd), 0);
    CHECK_EQ(blitz_spawn_poll(polls_a_call, &state, sizeof state, NULL, &t), 0);
    blitz_yield();
    CHECK_EQ(write(p.fd[1], "q", 1), 1);
    CHECK_EQ(blitz_task_join(t, &got, BLITZ_FOREVER), 0);
    close(p.fd[0]);
    close(p.fd[1]);
    return got;
}

TEST(blocking, a_stackless_task_awaits_a_call_as_a_future)
{
    t_on_each(awaits_a_poll, NULL, 'q');
}

/* ---- large stacks ---- */

static BZ_NOINLINE int digs(int depth)
{
    volatile char page[4096];
    page[0] = (char)depth;
    page[4095] = 1;
    return depth == 0 ? 0 : digs(depth - 1) + page[4095];
}

enum { PAGES = 900 }; /* more than any fiber of the default size has */

static int digs_deep(void *arg)
{
    uint64_t me = blitz_task_id(NULL);
    CHECK_EQ(digs(PAGES), PAGES);
    CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0); /* it may wait in there, and go on elsewhere */
    blitz_yield();
    CHECK_EQ(digs(PAGES), PAGES);
    CHECK_EQ(blitz_task_id(NULL), me);
    return (int)(intptr_t)arg;
}

static int in_a_big_one(void *arg)
{
    CHECK_EQ(digs_deep(arg), 7);
    return blitz_on_big_stack(digs_deep, arg, 6 << 20); /* and one inside the other */
}

static int goes_big(void *arg)
{
    return blitz_on_big_stack(in_a_big_one, arg, 6 << 20);
}

static int many_go_big(void *arg)
{
    enum { N = 8 };
    blitz_task *t[N];
    int got = 0;
    CHECK_EQ(blitz_on_big_stack(NULL, NULL, 1), -EINVAL);
    CHECK_EQ(blitz_on_big_stack(goes_big, arg, 9 << 20), -EINVAL);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(goes_big, arg, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        CHECK_EQ(got, 7);
    }
    return got;
}

TEST(blocking, a_hungry_function_gets_a_large_stack)
{
    t_on_each(many_go_big, (void *)7, 7);
    CHECK_EQ(blitz_on_big_stack(says_who, &(void *){NULL}, 1 << 20), 42); /* a plain thread's own */
}
