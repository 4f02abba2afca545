/* The number of procs changes at random on real threads, beside tasks of many kinds and sockets. */
#include "support/resize_program.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two tasks that send a byte to and fro, until all is over. */
struct talk {
    struct resize_program *p;
    int fd;
    bool begins;
};

static int talks(void *arg)
{
    struct talk *t = arg;
    char byte = 'x';
    if (t->begins && write(t->fd, &byte, 1) != 1)
        return -EIO;
    while (blitz_fd_wait(t->fd, BLITZ_FD_READ, BLITZ_FOREVER) >= 0) {
        ssize_t n = read(t->fd, &byte, 1);
        if (n == 0)
            return 0; /* the other has gone */
        if (n != 1)
            return -EIO;
        if (bz_load_seqcst(&t->p->is_over)) /* seq_cst: a flag of the test */
            break;
        if (write(t->fd, &byte, 1) != 1)
            break;
    }
    shutdown(t->fd, SHUT_RDWR);
    return 0;
}

static void breathes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        sched_yield();
}

static void *resizes(void *program)
{
    resize_often(program, breathes, NULL);
    return NULL;
}

static int plays(void *arg)
{
    struct resize_program *p = arg;
    int fd[2];
    blitz_task *t[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    struct talk talk[2] = {{p, fd[0], true}, {p, fd[1], false}};
    CHECK_EQ(blitz_spawn(talks, &talk[0], NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(talks, &talk[1], NULL, &t[1]), 0);
    CHECK_EQ(resize_players(p), 0);
    CHECK_EQ(blitz_task_join(t[0], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(t[1], NULL, BLITZ_FOREVER), 0);
    close(fd[0]);
    close(fd[1]);
    return 0;
}

TEST(resize_stress, bug_08_nothing_is_lost)
{
    static const char *const io[] = {"epoll", "poll", "uring"};
    for (uint64_t i = 0, n = t_scaled(300); i < n; i++) {
        uint64_t seed = t_random();
        struct resize_program p;
        blitz_runtime *rt;
        pthread_t thread;
        blitz_runtime_opts opts = {.procs = 1 + (unsigned)(seed % RESIZE_PROCS),
                                   .procs_max = RESIZE_PROCS,
                                   .io = io[i % 3]};
        t_watch("seed 0x%llx, %s", (unsigned long long)seed, opts.io);
        CHECK_EQ(blitz_runtime_new(&opts, &rt), 0);
        resize_begin(&p, rt, seed);
        CHECK_EQ(pthread_create(&thread, NULL, resizes, &p), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, plays, &p), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        resize_end(&p);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}
