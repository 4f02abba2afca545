/*
 * Programs that run out of something after the runtime has started: threads, system calls. They use
 * public headers only, as a user's program would. For any refused resource each call returns, and
 * the program continues with less or gets an error.
 */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "blitz.h"
#include "io/attempt.h"
#include "io/uring_abi.h"
#include "support/deny.h"
#include "support/keepers.h"
#include "support/leave.h"
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
    CHECK_EQ(leave_at(add_one, &zero, NULL, &result, BLITZ_FOREVER), 0);
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
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static void call_without_threads(const char *io)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .io = io}, &rt), 0);
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
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .io = "uring"}, &rt), 0);
    /* The memory of a task comes from a cache then: some C libraries have no memory left over. */
    CHECK_EQ(blitz_runtime_block_on(rt, add_one, &(int){-1}), 0);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, 1 << 20}), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, call_without_memory, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- no memory ---- */

static atomic_int has_memory = 1;

static void *alloc_or_not(void *ctx, size_t bytes, size_t align)
{
    (void)ctx;
    if (!atomic_load(&has_memory))
        return NULL;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void free_it(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    free(p);
}

static int answer(void *arg)
{
    blitz_yield();
    return (int)(intptr_t)arg;
}

/* Forks, and waits before it joins: the jobs leave its worker's deque and need headers elsewhere. */
static int fork_and_wait(void *arg)
{
    enum { JOBS = 5 };
    blitz_job job[JOBS];
    int sum = 0;
    (void)arg;
    for (intptr_t i = 0; i < JOBS; i++)
        blitz_fork(&job[i], answer, (void *)((intptr_t)1 << i));
    CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    for (int i = JOBS; i-- > 0;)
        sum += blitz_join(&job[i]);
    CHECK_EQ(sum, (1 << JOBS) - 1);
    return 0;
}

/* Nested forks that idle workers steal. */
static int fork_a_tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_job left;
    if (depth == 0)
        return 1;
    blitz_fork(&left, fork_a_tree, (void *)(depth - 1));
    if (depth == 3)
        blitz_yield();
    int right = fork_a_tree((void *)(depth - 1));
    return right + blitz_join(&left);
}

static int forks_without_memory(void *arg)
{
    enum { DEPTH = 7 };
    (void)arg;
    atomic_store(&has_memory, 0);
    CHECK_EQ(fork_and_wait(NULL), 0);
    CHECK_EQ(fork_a_tree((void *)(intptr_t)DEPTH), 1 << DEPTH);
    atomic_store(&has_memory, 1);
    CHECK_EQ(fork_and_wait(NULL), 0);
    return 0;
}

/* A job without a header went round a queue for ever, 14 million times a second. */
TEST_LIMIT(scarce, bug_43_forks_without_memory_are_run_by_their_joins, 240)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    blitz_allocator a = {.alloc = alloc_or_not, .free = free_it};
    unsigned rounds = t_scaled(2000) / BZ_ARRAY_LEN(procs);
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        blitz_runtime *rt;
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs[i], .allocator = &a}, &rt),
                 0);
        for (unsigned round = 0; round < rounds; round++) {
            t_watch("%u procs, round %u", procs[i], round);
            CHECK_EQ(blitz_runtime_block_on(rt, forks_without_memory, NULL), 0);
        }
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}

/* ---- no stack ---- */

static int wait_for_ever(void *never)
{
    return blitz_event_wait(never, BLITZ_FOREVER);
}

/* The scope's children cannot all have a stack; its deadline holds, and each spawn says what became of it. */
static int scope_without_stacks(void *arg)
{
    enum { CHILDREN = 40 };
    blitz_event never;
    blitz_scope s;
    int refused = 0;
    (void)arg;
    blitz_event_init(&never);
    CHECK_EQ(blitz_scope_open(&s, NULL, blitz_after(20 * BLITZ_MS)), 0);
    for (int i = 0; i < CHILDREN; i++) {
        int err = blitz_scope_spawn(&s, wait_for_ever, &never, NULL);
        CHECK(err == 0 || err == -ENOMEM || err == -ECANCELED); /* the last: it is late already */
        refused += err != 0;
        blitz_yield(); /* the child begins, if it can */
    }
    CHECK_EQ(blitz_scope_close(&s), refused < CHILDREN ? -ETIMEDOUT : 0);
    return refused;
}

static int join_with_a_deadline(void *arg)
{
    blitz_event never;
    blitz_task *t[20];
    size_t started = 0;
    (void)arg;
    blitz_event_init(&never);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        started += blitz_spawn(wait_for_ever, &never, NULL, &t[started]) == 0;
    for (size_t i = 0; i < started; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_event_set(&never);
    for (size_t i = 0; i < started; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* Headers for tasks are allocated by the dozen: have some, so that stacks are all that is missing. */
static int warm_up(void)
{
    blitz_scope s;
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(blitz_scope_spawn(&s, add_one, &zero_for_ever, NULL), 0);
    return blitz_scope_close(&s);
}

static int run_without_stacks(void *arg)
{
    CHECK_EQ(warm_up(), 0);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, RLIM_INFINITY}), 0);
    CHECK_GT(scope_without_stacks(arg), 0);
    CHECK_GT(scope_without_stacks(arg), 0); /* those that have ended leave room for others */
    return join_with_a_deadline(arg);
}

/* Stacks of 8 MiB: there are two or so when the address space ends. */
TEST(scarce, deadlines_hold_and_spawns_are_refused_when_no_stack_is_to_be_had)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    if (T_ASAN || T_TSAN)
        t_skip("a sanitizer needs terabytes of address space; stress_scarce covers it");
    t_skip_if_emulated("does not limit its guest's address space");
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        t_watch("%u procs", procs[i]);
        blitz_runtime_opts config = {.procs = procs[i], .stack_bytes = (size_t)8 << 20};
        blitz_runtime *rt;
        CHECK_EQ(blitz_runtime_new(&config, &rt), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, run_without_stacks, NULL), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    }
}

/* ---- calls that a filter refuses ---- */

static atomic_uint warned; /* lines about a call; builds with checks log others, too */
static char warning[256];

static void count_warnings(void *ctx, blitz_log_level level, const char *message)
{
    static const char *const calls[] = {"io_uring", "epoll", "membarrier"};
    (void)ctx;
    (void)level;
    for (size_t i = 0; i < BZ_ARRAY_LEN(calls); i++)
        if (strstr(message, calls[i]) != NULL) {
            atomic_fetch_add(&warned, 1);
            snprintf(warning, sizeof warning, "%s", message);
            return;
        }
    fprintf(stderr, "%s\n", message);
}

static int echo_one(void *arg)
{
    char byte = 0;
    blitz_tcp *c = arg;
    int n = (int)blitz_tcp_read(c, &byte, 1, BLITZ_FOREVER);
    if (n == 0)
        return 0;
    CHECK_EQ(n, 1);
    CHECK_EQ(blitz_tcp_write(c, &byte, 1, BLITZ_FOREVER), 1);
    return 0;
}

/* A connected pair, a reader that waits, a timer and a blocking call: whatever the backend is, it works. */
static int use_the_backend(void *arg)
{
    blitz_tcp *end[2];
    blitz_task *t;
    char byte = 7;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_spawn(echo_one, end[1], NULL, &t), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    CHECK_EQ(blitz_tcp_write(end[0], &byte, 1, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_tcp_read(end[0], &byte, 1, BLITZ_FOREVER), 1);
    CHECK_EQ(byte, 7);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tcp_read(end[0], &byte, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_blocking(add_one, &zero_for_ever), 1);
    blitz_tcp_unref(end[0]);
    blitz_tcp_unref(end[1]);
    return 0;
}

static int wait_for_a_byte(void *arg)
{
    char byte;
    return (int)blitz_tcp_read(arg, &byte, 1, BLITZ_FOREVER);
}

/* Its machine sleeps with a timer while it has files to hear. */
static int sleep_beside_a_reader(void *arg)
{
    blitz_tcp *end[2];
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_spawn(wait_for_a_byte, end[1], NULL, &t), 0);
    CHECK_EQ(blitz_sleep(50 * BLITZ_MS), 0);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    blitz_tcp_unref(end[0]);
    blitz_tcp_unref(end[1]);
    return 0;
}

/* Run fn in a child process, since a filter cannot be taken back. */
static void in_a_child(void (*fn)(const void *arg), const void *arg)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        fn(arg);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

struct refusal {
    const char *io;
    int call, arg, value; /* arg -1: whatever its arguments are */
    int err;
    const char *warns; /* the expected log message; NULL: none */
};

static void run_refused(const void *arg)
{
    const struct refusal *r = arg;
    blitz_runtime_opts config = {.procs = 2, .io = r->io, .log = count_warnings};
    blitz_stats before, after;
    blitz_runtime *rt;
    t_deny_arg(r->call, r->arg, (uint32_t)r->value, r->err);
    CHECK_EQ(blitz_runtime_new(&config, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, use_the_backend, NULL), 0);
    CHECK_EQ(blitz_stats_read(rt, &before), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, sleep_beside_a_reader, NULL), 0);
    CHECK_EQ(blitz_stats_read(rt, &after), 0);
    CHECK_LT(after.sleeps - before.sleeps, 500u); /* a machine that cannot sleep does thousands */
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK_EQ(atomic_load(&warned), r->warns != NULL ? 1u : 0u);
    if (r->warns != NULL && strstr(warning, r->warns) == NULL)
        FAIL("warned \"%s\", without \"%s\"", warning, r->warns);
}

/* A filter may refuse to make a ring, or every use of one that was made. */
TEST(scarce, bug_46_a_ring_that_cannot_complete_a_nop_is_replaced_by_epoll)
{
    static const int calls[] = {BZ_SYS_URING_SETUP, BZ_SYS_URING_REGISTER, BZ_SYS_URING_ENTER};
    static const int errors[] = {ENOSYS, EPERM, EACCES, ENOMEM};
    for (size_t c = 0; c < BZ_ARRAY_LEN(calls); c++)
        for (size_t e = 0; e < BZ_ARRAY_LEN(errors); e++) {
            t_watch("call %d, error %d", calls[c], errors[e]);
            struct refusal r = {"uring", calls[c], -1, 0, errors[e], "using epoll"};
            in_a_child(run_refused, &r);
        }
}

/* Old filters answer EPERM to a call they do not know; new ones may refuse one call of a family. */
TEST(scarce, bug_46_each_call_of_epoll_may_be_refused)
{
    static const int errors[] = {ENOSYS, EPERM, EACCES};
    for (size_t e = 0; e < BZ_ARRAY_LEN(errors); e++) {
        t_watch("error %d", errors[e]);
        in_a_child(run_refused,
                   &(struct refusal){"best", SYS_epoll_create1, -1, 0, errors[e], NULL});
        in_a_child(run_refused, &(struct refusal){"best", SYS_epoll_ctl, -1, 0, errors[e], NULL});
        in_a_child(run_refused, &(struct refusal){"best", SYS_eventfd2, -1, 0, errors[e], NULL});
        in_a_child(run_refused,
                   &(struct refusal){"best", SYS_epoll_pwait2, -1, 0, errors[e], NULL});
#if defined(SYS_epoll_wait)
        in_a_child(run_refused, &(struct refusal){"best", SYS_epoll_wait, -1, 0, errors[e], NULL});
#else
        in_a_child(run_refused, &(struct refusal){"best", SYS_epoll_pwait, -1, 0, errors[e], NULL});
#endif
    }
}

/* The runtime registers for barriers at its start and uses them when it looks for work. */
TEST(scarce, bug_46_a_barrier_that_is_refused_after_it_was_registered)
{
    enum { USE = 1 << 3, REGISTER = 1 << 4 };
    static const int errors[] = {ENOSYS, EPERM, EACCES, ENOMEM};
    for (size_t e = 0; e < BZ_ARRAY_LEN(errors); e++) {
        t_watch("error %d", errors[e]);
        in_a_child(run_refused,
                   &(struct refusal){"best", SYS_membarrier, 0, REGISTER, errors[e], NULL});
        in_a_child(run_refused, &(struct refusal){"best", SYS_membarrier, 0, USE, errors[e], NULL});
    }
}

/* ---- calls that a filter refuses after the start ---- */

enum { LATE_PROCS = 2 };

struct late {
    blitz_tcp *end[2], *idle[2];
    blitz_event reads; /* a reader is about to wait */
};

static int read_one(void *arg)
{
    struct late *l = arg;
    char byte;
    blitz_event_set(&l->reads);
    return (int)blitz_tcp_read(l->end[1], &byte, 1, blitz_after(20 * BLITZ_MS));
}

static int wait_for_a_pipe(void *arg)
{
    return blitz_fd_wait(*(int *)arg, BLITZ_FD_READ, BLITZ_FOREVER);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Both procs sleep in their backend, one with a read that has a deadline, when the filter comes. */
static int refused_later(void *arg)
{
    const struct refusal *r = arg;
    struct late l;
    blitz_task *t;
    char byte = 1;
    int result = 0;
    blitz_event_init(&l.reads);
    CHECK_EQ(blitz_unix_pair(l.end), 0);
    CHECK_EQ(blitz_unix_pair(l.idle), 0);
    CHECK_EQ(blitz_spawn(wait_for_a_byte, l.idle[1], &(blitz_spawn_opts){.proc = 2}, &t), 0);
    blitz_task *idle = t, *pipe_waits;
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(blitz_spawn(wait_for_a_pipe, &fds[0], &(blitz_spawn_opts){.proc = 2}, &pipe_waits), 0);
    CHECK_EQ(blitz_spawn(read_one, &l, &(blitz_spawn_opts){.proc = 2}, &t), 0);
    CHECK_EQ(blitz_event_wait(&l.reads, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_sleep(5 * BLITZ_MS), 0); /* the reader waits, and its proc sleeps */
    t_deny_arg(r->call, r->arg, (uint32_t)r->value, r->err);

    if (r->call == BZ_SYS_URING_ENTER) /* one that was put into the ring and cannot be handed in */
        CHECK_EQ(blitz_tcp_read(l.end[0], &byte, 1, BLITZ_FOREVER), -EIO);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK(result == -ETIMEDOUT || result == -EIO);
    for (unsigned i = 0; i < 20; i++) { /* a proc that sleeps is roused */
        CHECK_EQ(blitz_spawn(nothing, NULL, &(blitz_spawn_opts){.proc = 1 + i % LATE_PROCS}, &t),
                 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
    int64_t n = blitz_tcp_read(l.end[0], &byte, 1, blitz_after(5 * BLITZ_MS));
    CHECK(n == -ETIMEDOUT || n == -EIO);
    CHECK_EQ(blitz_sleep(50 * BLITZ_MS), 0); /* nothing spins */
    blitz_task_cancel(idle);
    CHECK_EQ(blitz_task_join(idle, &result, BLITZ_FOREVER), 0);
    CHECK(result == -ECANCELED || result == -EIO);
    blitz_task_cancel(pipe_waits);
    CHECK_EQ(blitz_task_join(pipe_waits, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    close(fds[0]);
    close(fds[1]);
    for (int i = 0; i < 2; i++) {
        blitz_tcp_unref(l.end[i]);
        blitz_tcp_unref(l.idle[i]);
    }
    return 0;
}

static void run_refused_later(const void *arg)
{
    const struct refusal *r = arg;
    blitz_runtime_opts config = {.procs = LATE_PROCS, .io = r->io, .log = count_warnings};
    blitz_stats after;
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&config, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, refused_later, (void *)(uintptr_t)r), 0);
    CHECK_EQ(blitz_stats_read(rt, &after), 0);
    CHECK_LT(after.sleeps, 1000u); /* a machine that cannot sleep does thousands */
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK_EQ(atomic_load(&warned), 1u);
    if (strstr(warning, r->warns) == NULL)
        FAIL("warned \"%s\", without \"%s\"", warning, r->warns);
}

static const int denials[] = {ENOSYS, EPERM, EACCES};

static void each_denial(const char *io, int call, const char *warns)
{
    for (size_t e = 0; e < BZ_ARRAY_LEN(denials); e++) {
        t_watch("%s: call %d, error %d", io, call, denials[e]);
        in_a_child(run_refused_later, &(struct refusal){io, call, -1, 0, denials[e], warns});
    }
}

/* Operations fail or keep their deadline, procs that sleep in their ring are roused, and the runtime ends. */
TEST(scarce, bug_46_a_ring_that_is_denied_after_the_start_fails_its_operations)
{
    each_denial("uring", BZ_SYS_URING_ENTER, "io_uring_enter is refused");
}

/* ---- and for a while ---- */

static atomic_int refusal_now;

static int refuse_enters(const char *call)
{
    return strcmp(call, "io_uring_enter") == 0 ? atomic_load(&refusal_now) : 0;
}

static int echoes(void)
{
    return (int)t_scaled(2000);
}

static int echo_many(void *arg)
{
    char byte;
    for (int i = 0, count = echoes(); i < count; i++) {
        CHECK_EQ(blitz_tcp_read(arg, &byte, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_tcp_write(arg, &byte, 1, BLITZ_FOREVER), 1);
    }
    return 0;
}

static int ask_many(void *arg)
{
    static const int errors[] = {ENOMEM, EAGAIN, EBUSY};
    blitz_tcp *end[2], *idle[2];
    blitz_task *t;
    char byte = 5;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_unix_pair(idle), 0);
    CHECK_EQ(blitz_spawn(echo_many, end[1], NULL, &t), 0);
    for (int i = 0, count = echoes(); i < count; i++) {
        if (i % 20 == 0) { /* the read that follows is ended while enters are refused */
            atomic_store(&refusal_now, errors[i / 20 % BZ_ARRAY_LEN(errors)]);
            CHECK_EQ(blitz_sleep(BLITZ_MS / 4), 0);
            atomic_store(&refusal_now, 0);
            CHECK_EQ(blitz_tcp_read(idle[0], &byte, 1, blitz_after(BLITZ_MS / 10)), -ETIMEDOUT);
        }
        CHECK_EQ(blitz_tcp_write(end[0], &byte, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_tcp_read(end[0], &byte, 1, BLITZ_FOREVER), 1);
    }
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 2; i++) {
        blitz_tcp_unref(end[i]);
        blitz_tcp_unref(idle[i]);
    }
    return 0;
}

/* The kernel is short of memory now and then: every operation is done in the end, with one line in the log. */
TEST(scarce, bug_46_enters_that_fail_for_a_while_lose_no_operation)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    if (!t_has_rings())
        t_skip("no io_uring here");
    bz_io_fault = refuse_enters;
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        t_watch("%u procs", procs[i]);
        blitz_runtime_opts config = {.procs = procs[i], .io = "uring", .log = count_warnings};
        CHECK_EQ(blitz_run(ask_many, NULL, &config), 0);
    }
    CHECK_LE(atomic_load(&warned), 1u);
    bz_io_fault = NULL;
}

TEST(scarce, bug_46_a_barrier_that_is_refused_after_the_start_is_replaced)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form makes no barriers");
#endif
    each_denial("best", SYS_membarrier, "membarrier is refused");
}

/* Files are looked at every few milliseconds then, so reads and writes go on. */
static int echo_without_events(void *arg)
{
    const struct refusal *r = arg;
    blitz_tcp *end[2];
    blitz_task *t;
    char byte = 7;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_spawn(echo_one, end[1], NULL, &t), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    t_deny(SYS_epoll_pwait2, r->err);
#if defined(SYS_epoll_wait)
    t_deny(SYS_epoll_wait, r->err);
#endif
    t_deny(SYS_epoll_pwait, r->err);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_tcp_write(end[0], &byte, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_tcp_read(end[0], &byte, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(byte, 7);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_spawn(echo_one, end[1], NULL, &t), 0);
    }
    CHECK_EQ(blitz_sleep(50 * BLITZ_MS), 0);
    blitz_tcp_unref(end[0]);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    blitz_tcp_unref(end[1]);
    return 0;
}

static void run_without_events(const void *arg)
{
    blitz_runtime_opts config = {.procs = LATE_PROCS, .io = "epoll", .log = count_warnings};
    blitz_stats after;
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&config, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, echo_without_events, (void *)(uintptr_t)arg), 0);
    CHECK_EQ(blitz_stats_read(rt, &after), 0);
    CHECK_LT(after.sleeps, 1000u);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK_EQ(atomic_load(&warned), 1u);
    CHECK(strstr(warning, "epoll_wait is refused") != NULL);
}

TEST(scarce, bug_46_epoll_that_is_denied_after_the_start_is_replaced_by_looks)
{
    for (size_t e = 0; e < BZ_ARRAY_LEN(denials); e++) {
        t_watch("error %d", denials[e]);
        in_a_child(run_without_events, &(struct refusal){.err = denials[e]});
    }
}
