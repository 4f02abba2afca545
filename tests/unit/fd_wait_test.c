/* Waiting for descriptors that other code owns. */
#include "harness.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "blitz/fd.h"
#include "support/net.h"
#include "support/on_each.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

struct wait_call {
    int fd;
    unsigned events;
};

static int waits(void *arg)
{
    struct wait_call *w = arg;
    return blitz_fd_wait(w->fd, w->events, BLITZ_FOREVER);
}

static int pipes(void *arg)
{
    int fd[2];
    char c;
    (void)arg;
    for (int i = 0; i < 20; i++) {         /* the same numbers again and again */
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0); /* one that blocks: it is not ours to change */
        CHECK_EQ(blitz_fd_wait(fd[0], BLITZ_FD_READ, 0), -ETIMEDOUT);
        CHECK_EQ(blitz_fd_wait(fd[0], BLITZ_FD_READ, blitz_after(100 * BLITZ_US)), -ETIMEDOUT);
        CHECK_EQ(blitz_fd_wait(fd[1], BLITZ_FD_WRITE, soon()), BLITZ_FD_WRITE);
        struct wait_call w = {fd[0], BLITZ_FD_READ};
        blitz_task *task = t_spawn(waits, &w);
        t_until_waits(task);
        CHECK_EQ(write(fd[1], "x", 1), 1);
        CHECK_EQ(t_join(task), BLITZ_FD_READ);
        CHECK_EQ(blitz_fd_wait(fd[0], BLITZ_FD_READ, 0), BLITZ_FD_READ); /* it still is */
        CHECK_EQ(read(fd[0], &c, 1), 1);
        task = t_spawn(waits, &w);
        t_until_waits(task);
        close(fd[1]);
        CHECK_EQ(t_join(task) & BLITZ_FD_HANGUP, BLITZ_FD_HANGUP);
        CHECK_EQ(fcntl(fd[0], F_GETFL) & O_NONBLOCK, 0);
        close(fd[0]);
    }
    return 0;
}

TEST(fd_wait, a_pipe_is_waited_for_and_left_as_it_was)
{
    t_on_each(pipes, NULL, 0);
}

/* One reads, one writes, one wants both, by the same descriptor at the same time. */
static int both_sides(void *arg)
{
    int fd[2];
    char big[4096] = "";
    (void)arg;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    unsigned fds = t_open_fds();
    while (write(fd[0], big, sizeof big) > 0)
        continue; /* no room any more */
    struct wait_call in = {fd[0], BLITZ_FD_READ}, out = {fd[0], BLITZ_FD_WRITE},
                     either = {fd[0], BLITZ_FD_READ | BLITZ_FD_WRITE};
    blitz_task *reads = t_spawn(waits, &in), *writes = t_spawn(waits, &out),
               *both = t_spawn(waits, &either);
    t_until_waits(reads);
    t_until_waits(writes);
    t_until_waits(both);
    while (read(fd[1], big, sizeof big) > 0)
        continue; /* now there is room */
    CHECK_EQ(t_join(writes), BLITZ_FD_WRITE);
    CHECK_EQ(t_join(both), BLITZ_FD_WRITE);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    CHECK_EQ(t_join(reads), BLITZ_FD_READ);
    /* the backend's own descriptors were opened before, or are counted */
    CHECK_EQ(t_open_fds(), fds);
    close(fd[0]);
    close(fd[1]);
    return 0;
}

static int both_sides_twice(void *arg)
{
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(blitz_fd_wait(fd[0], BLITZ_FD_READ, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    for (int i = 0; i < 8; i++) { /* every proc has opened what it needs */
        struct wait_call w = {fd[0], BLITZ_FD_READ};
        blitz_task *task = t_spawn(waits, &w);
        t_until_waits(task);
        blitz_task_cancel(task);
        CHECK_EQ(t_join(task), -ECANCELED);
    }
    close(fd[0]);
    close(fd[1]);
    return both_sides(arg);
}

TEST(fd_wait, several_wait_for_one_descriptor)
{
    CHECK_EQ(blitz_run(both_sides_twice, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

/* Between two waits the number becomes another thing: nothing of the old one is remembered. */
static int reused(void *arg)
{
    int a[2], b[2];
    (void)arg;
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(pipe2(a, O_CLOEXEC), 0);
        CHECK_EQ(pipe2(b, O_CLOEXEC), 0);
        CHECK_EQ(blitz_fd_wait(a[0], BLITZ_FD_READ, blitz_after(50 * BLITZ_US)), -ETIMEDOUT);
        CHECK_EQ(write(a[1], "x", 1), 1); /* a is readable, and gone */
        CHECK_EQ(dup2(b[0], a[0]), a[0]);
        CHECK_EQ(blitz_fd_wait(a[0], BLITZ_FD_READ, blitz_after(50 * BLITZ_US)), -ETIMEDOUT);
        CHECK_EQ(write(b[1], "y", 1), 1);
        CHECK_EQ(blitz_fd_wait(a[0], BLITZ_FD_READ, soon()), BLITZ_FD_READ);
        for (int k = 0; k < 2; k++) {
            close(a[k]);
            close(b[k]);
        }
    }
    return 0;
}

TEST(fd_wait, bug_14_a_reused_descriptor_number_is_another_file)
{
    t_on_each(reused, NULL, 0);
}

static int others(void *arg)
{
    int fd[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    blitz_net_future f;
    char c;
    (void)arg;
    CHECK_EQ(blitz_fd_wait(file, BLITZ_FD_READ, soon()), BLITZ_FD_READ);
    CHECK_EQ(blitz_fd_wait(file, BLITZ_FD_READ | BLITZ_FD_WRITE, soon()) & BLITZ_FD_READ,
             BLITZ_FD_READ);
    close(file);
    CHECK_EQ(blitz_fd_wait(file, BLITZ_FD_READ, soon()), -EBADF);
    CHECK_EQ(blitz_fd_wait(-1, BLITZ_FD_READ, soon()), -EBADF);
    CHECK_EQ(blitz_fd_wait(0, 0, soon()), -EINVAL);
    CHECK_EQ(blitz_fd_wait(0, 16, soon()), -EINVAL);
    blitz_fd_wait_future_init(&f, 0, 3);
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, -EINVAL);

    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    struct wait_call w = {fd[0], BLITZ_FD_READ};
    blitz_task *task = t_spawn(waits, &w); /* so that the future needs a copy */
    t_until_waits(task);
    blitz_fd_wait_future_init(&f, fd[0], BLITZ_FD_READ);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(f.result, -ECANCELED);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    blitz_fd_wait_future_init(&f, fd[0], BLITZ_FD_READ);
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, BLITZ_FD_READ);
    CHECK_EQ(t_join(task), BLITZ_FD_READ);
    CHECK_EQ(read(fd[0], &c, 1), 1);
    close(fd[0]);
    close(fd[1]);
    return 0;
}

TEST(fd_wait, files_futures_and_bad_input)
{
    t_on_each(others, NULL, 0);
}
