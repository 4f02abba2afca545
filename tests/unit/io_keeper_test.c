/* The backend of a runtime: its choice, and its duties beyond block/io.h. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blitz.h"
#include "block/io.h"
#include "io/attempt.h"
#include "io/ring.h"
#include "support/deny.h"
#include "support/net.h"

static const char *refused; /* a call the system does not have */

static int refuse(const char *call)
{
    return refused != NULL && strcmp(call, refused) == 0 ? ENOSYS : 0;
}

static int name_of_keeper(void *out)
{
    *(const char **)out = bz_machine_self()->rt->procs[0].poll.ops->name;
    return 0;
}

/* The backend of a runtime that selects `io`, if the system refuses that call. */
static int keeper_with(const char *io, const char *call, const char **name)
{
    refused = call;
    bz_io_fault = refuse;
    int err = blitz_run(name_of_keeper, name, &(blitz_runtime_opts){.procs = 2, .io = io});
    bz_io_fault = NULL;
    return err;
}

static bool has_rings(void)
{
    struct bz_ring r;
    if (bz_ring_open(&r, 2, 4) != 0)
        return false;
    bz_ring_close(&r);
    return true;
}

TEST(io_keeper, the_best_there_is_unless_one_is_forced)
{
    const char *name = "";
    CHECK_EQ(keeper_with("best", NULL, &name), 0);
    CHECK_STR_EQ(name, "epoll");
    CHECK_EQ(keeper_with("poll", NULL, &name), 0);
    CHECK_STR_EQ(name, "poll");
    CHECK_EQ(keeper_with("none", NULL, &name), 0);
    CHECK_STR_EQ(name, "none");
    if (has_rings()) {
        CHECK_EQ(keeper_with("uring", NULL, &name), 0);
        CHECK_STR_EQ(name, "uring");
    }
}

TEST(io_keeper, bug_18_a_refused_system_call_has_a_fallback)
{
    const char *name = "";
    CHECK_EQ(keeper_with("best", "epoll_create", &name), 0);
    CHECK_STR_EQ(name, "poll");
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR + 1); /* the errors that follow are wanted */
    CHECK_EQ(keeper_with("uring", "io_uring_setup", &name), 0);
    CHECK_STR_EQ(name, "epoll");
    CHECK_EQ(keeper_with("epoll", "epoll_create", &name), -ENOSYS);
    CHECK_EQ(keeper_with("select", NULL, &name), -EINVAL);
}

TEST(io_keeper, kqueue_by_name_is_a_clear_error_where_the_system_has_none)
{
    const char *name = "";
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR + 1); /* the error that follows is wanted */
    CHECK_EQ(keeper_with("kqueue", NULL, &name), -ENOSYS);
}

/* ---- a system that forbids rings ---- */

static int serves_one(void *arg)
{
    blitz_addr at;
    blitz_tcp *end[2];
    char got[4];
    CHECK_STR_EQ(bz_machine_self()->rt->procs[0].poll.ops->name, "epoll");
    (void)arg;
    blitz_tcp_listener *l = t_listen(&at);
    CHECK_EQ(blitz_tcp_connect(&at, &end[0], blitz_after(10 * BLITZ_S)), 0);
    CHECK_EQ(blitz_tcp_accept(l, &end[1], NULL, blitz_after(10 * BLITZ_S)), 0);
    CHECK_EQ(blitz_tcp_write(end[0], "ping", 4, blitz_after(10 * BLITZ_S)), 4);
    CHECK_EQ(blitz_tcp_read(end[1], got, 4, blitz_after(10 * BLITZ_S)), 4);
    CHECK_MEM_EQ(got, "ping", 4);
    t_close_both(end);
    blitz_tcp_listener_close(l);
    return 0;
}

static unsigned lines;
static char line[256];

static void count_lines(void *ctx, blitz_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    lines++;
    snprintf(line, sizeof line, "%s", text);
}

/* By the kernel itself, as a container's filter or kernel.io_uring_disabled would. */
static void serves_without_rings(int err)
{
    if (!has_rings())
        t_skip("no rings on this system");
    t_deny(SYS_io_uring_setup, err);
    CHECK_EQ(blitz_log_set(count_lines, NULL, BLITZ_LOG_WARN), 0);
    CHECK_EQ(blitz_run(serves_one, NULL, &(blitz_runtime_opts){.procs = 2, .io = "uring"}), 0);
    t_note("%s", line);
    CHECK_EQ(lines, 1u);
    CHECK(strstr(line, "epoll") != NULL);
}

TEST(io_keeper, bug_18_a_kernel_that_answers_eperm_is_served_by_epoll)
{
    serves_without_rings(EPERM);
}

TEST(io_keeper, bug_18_a_kernel_that_answers_enosys_is_served_by_epoll)
{
    serves_without_rings(ENOSYS);
}

/* ---- a ring alone ---- */

TEST(io_keeper, bug_17_a_queue_of_two_entries_loses_nothing)
{
    enum { MANY = 50 };
    struct bz_ring r;
    unsigned seen = 0;
    if (bz_ring_open(&r, 2, 2) != 0)
        t_skip("no rings on this system");
    for (unsigned i = 0; i < MANY; i++) {
        struct bz_uring_sqe *sqe;
        while ((sqe = bz_ring_put(&r)) == NULL)
            (void)bz_ring_submit(&r);
        sqe->opcode = BZ_URING_OP_NOP;
        sqe->user_data = i;
    }
    while (seen < MANY) {
        (void)bz_ring_submit(&r);
        if (bz_ring_has_more(&r))
            bz_ring_fetch(&r);
        const struct bz_uring_cqe *c = bz_ring_peek(&r);
        if (c == NULL)
            continue;
        CHECK_EQ(c->user_data, seen);
        seen++;
        bz_ring_seen(&r);
    }
    CHECK(bz_ring_peek(&r) == NULL);
    bz_ring_close(&r);
}

/* ---- foreign calls beside operations in flight ---- */

struct beside {
    int pipe[2];
    int64_t wrote;
};

static int write_much(void *arg)
{
    static char data[1 << 20];
    struct beside *b = arg;
    b->wrote = write(b->pipe[1], data, sizeof data);
    return 0;
}

static int drain(void *arg)
{
    struct beside *b = arg;
    char data[4096];
    for (size_t have = 0; have < 1 << 20;) {
        ssize_t n = read(b->pipe[0], data, sizeof data);
        if (n <= 0)
            return 1;
        have += (size_t)n;
    }
    return 0;
}

static int ping(void *arg)
{
    struct bz_file **end = arg;
    char byte = 'x';
    for (int i = 0; i < 200; i++) {
        struct bz_op op;
        bz_op_init(&op, end[i % 2], BZ_OP_SEND);
        op.buffer.data = &byte;
        op.buffer.bytes = 1;
        CHECK_EQ(bz_io_run(&op, "send", BLITZ_FOREVER), 1);
        bz_op_init(&op, end[1 - i % 2], BZ_OP_RECV);
        op.buffer.data = &byte;
        op.buffer.bytes = 1;
        CHECK_EQ(bz_io_run(&op, "receive", BLITZ_FOREVER), 1);
    }
    return 0;
}

static int block_write(void *arg)
{
    return blitz_block_in_place(write_much, arg);
}

static int block_drain(void *arg)
{
    return blitz_blocking(drain, arg);
}

static int beside_foreign_calls(void *arg)
{
    struct beside *b = arg;
    struct bz_file *end[2];
    blitz_task *t[3];
    int fd[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bz_io_open(fd[i], BZ_FILE_STREAM, &end[i]), 0);
    CHECK_EQ(pipe(b->pipe), 0);
    CHECK_EQ(blitz_spawn(block_write, b, NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(ping, end, NULL, &t[1]), 0);
    CHECK_EQ(blitz_spawn(block_drain, b, NULL, &t[2]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(b->wrote, 1 << 20);
    for (int i = 0; i < 2; i++) {
        bz_io_close(end[i]);
        close(b->pipe[i]);
    }
    return 0;
}

TEST(io_keeper, a_foreign_write_in_place_is_whole_beside_operations)
{
    for (unsigned procs = 1; procs <= 2; procs++) {
        struct beside b = {.wrote = 0};
        CHECK_EQ(blitz_run(beside_foreign_calls, &b, &(blitz_runtime_opts){.procs = procs}), 0);
    }
}

/* ---- the submitting thread has ended ---- */

struct alone {
    struct bz_files files;
    struct bz_poll poll;
    struct bz_file *end[2];
    struct bz_op op;
    char data[8];
    int told;
};

/* A waker that counts its wake-ups in an int. */
static void waker_clone(void *count)
{
    (void)count;
}

static void waker_count(void *count)
{
    ++*(int *)count;
}

static const blitz_waker_ops counting = {waker_clone, waker_count, waker_count, waker_clone};

/* One look at what there is, until `until`. */
static void alone_hear(struct alone *a, uint64_t until)
{
    struct bz_reaped heard = {.count = 0};
    struct bz_wake wakes[BZ_SIDES];
    bz_poll_prepare(&a->poll);
    (void)bz_poll_wait(&a->poll, until, &heard);
    while (bz_poll_deliver(&a->poll, &heard, wakes))
        for (int s = 0; s < BZ_SIDES; s++)
            bz_wake_deliver(&wakes[s]);
}

static void *hand_in_and_exit(void *arg)
{
    struct alone *a = arg;
    bz_file_lock(a->end[0]);
    CHECK(bz_file_enter(a->end[0], &a->op));
    CHECK_EQ(a->poll.ops->submit(&a->poll, &a->op), 0);
    bz_file_unlock(a->end[0]);
    alone_hear(a, bz_os_now(&bz_os_system) + 1000000); /* handed in by this thread */
    return NULL;
}

static void nobody(struct bz_wake *wake, void *arg)
{
    (void)wake;
    (void)arg;
}

TEST(io_keeper, an_operation_outlives_the_thread_that_handed_it_in)
{
    static struct alone a;
    pthread_t thread;
    int fd[2];
    bz_files_init(&a.files, &bz_os_system, &bz_allocator_libc);
    if (bz_poll_uring_init(&a.poll, &bz_os_system, &a.files) != 0)
        t_skip("no rings on this system");
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bz_file_open(&a.files, fd[i], BZ_FILE_STREAM, &a.end[i]), 0);
    bz_op_init(&a.op, a.end[0], BZ_OP_RECV);
    a.op.buffer.data = a.data;
    a.op.buffer.bytes = sizeof a.data;
    bz_waiter_init_polled(&a.op.request.waiter);
    a.op.request.waiter.waker = (blitz_waker){&counting, &a.told};
    CHECK_EQ(pthread_create(&thread, NULL, hand_in_and_exit, &a), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    alone_hear(&a, bz_os_now(&bz_os_system) + 20000000); /* the kernel has ended it: begun again */
    CHECK_EQ(a.told, 0);
    CHECK_EQ(write(fd[1], "hello", 5), 5);
    while (a.told == 0)
        alone_hear(&a, BZ_OS_FOREVER);
    CHECK_EQ(a.op.result, 5);
    CHECK_MEM_EQ(a.data, "hello", 5);
    for (int i = 0; i < 2; i++)
        bz_file_close(a.end[i], nobody, NULL);
    bz_poll_fini(&a.poll);
    CHECK_EQ(bz_files_fini(&a.files), 0);
}
