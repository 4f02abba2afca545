/*
 * Programs that run out of something after the runtime has started: threads, system calls. They use
 * public headers only, as a stranger's program would. Whatever is refused, each call returns, and the
 * program goes on with what it has or is told.
 */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "blitz.h"
#include "support/deny.h"
#include "support/sanitizers.h"

enum { NOBODY = 65534 };

/* ---- no thread for a blocking call ---- */

static int add_one(void *arg)
{
    return 1 + *(int *)arg;
}

static int read_nothing(void *arg)
{
    char byte;
    (void)arg;
    return (int)read(-1, &byte, 1) == -1 ? errno : 0;
}

/* Each form of a blocking call, and one inside another. */
static int call_nested(void *arg)
{
    return blitz_block_in_place(add_one, arg);
}

static int call_without_memory(void *arg)
{
    int zero = 0;
    (void)arg;
    CHECK_EQ(blitz_blocking(add_one, &zero), 1);
    CHECK_EQ(blitz_block_in_place(add_one, &zero), 1);
    CHECK_EQ(blitz_blocking(call_nested, &zero), 1);
    CHECK_EQ(blitz_block_in_place(call_nested, &zero), 1);
    CHECK_EQ(blitz_blocking(read_nothing, NULL), EBADF);
    return 0;
}

static int call_in_every_form(void *arg)
{
    int zero = 0, result = -1;
    call_without_memory(arg);
    CHECK_EQ(blitz_blocking_until(add_one, &zero, NULL, BLITZ_FOREVER, &result), 0);
    CHECK_EQ(result, 1);
    blitz_blocking_future f;
    blitz_blocking_future_init(&f, add_one, &zero, NULL);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 1);
    return 0;
}

static blitz_poll polled_call(void *state, blitz_cx *cx)
{
    blitz_blocking_future *f = state;
    blitz_poll p = f->future.ops->poll(&f->future, cx->waker);
    cx->result = f->result;
    return p;
}

static int zero_for_ever;

static int call_from_a_stackless_task(void *arg)
{
    blitz_blocking_future f;
    blitz_task *t;
    int result = -1;
    (void)arg;
    blitz_blocking_future_init(&f, add_one, &zero_for_ever, NULL);
    CHECK_EQ(blitz_spawn_poll(polled_call, &f, sizeof f, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, BLITZ_FOREVER, &result), 0);
    return result;
}

static void call_without_threads(const char *io)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_config){.procs = 1, .io = io}, &rt), 0);
    if (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
        t_skip("cannot become a user whom limits bind: %s", strerror(errno));
    t_has_denied = true; /* the leak check starts a thread */
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_runtime_block_on(rt, call_in_every_form, NULL), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, call_from_a_stackless_task, NULL), 1);
    }
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* With uring a call in place goes to the pool, and a call that the pool refuses is made in place. */
TEST(scarce, bug_42_blocking_calls_without_a_thread_are_made_in_place_on_uring)
{
    call_without_threads("uring");
}

TEST(scarce, bug_42_blocking_calls_without_a_thread_are_made_in_place_on_epoll)
{
    call_without_threads("epoll");
}

TEST(scarce, bug_42_blocking_calls_without_a_thread_are_made_in_place_on_poll)
{
    call_without_threads("poll");
}

/* The address space ends instead: a thread's stack cannot be mapped. */
TEST(scarce, bug_42_blocking_calls_without_address_space_are_made_in_place)
{
    blitz_runtime *rt;
    if (T_ASAN || T_TSAN)
        t_skip("a sanitizer needs terabytes of address space");
    CHECK_EQ(blitz_runtime_new(&(blitz_config){.procs = 1, .io = "uring"}, &rt), 0);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, 1 << 20}), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, call_without_memory, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}
