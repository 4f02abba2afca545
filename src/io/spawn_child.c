/*
 * spawn_child.c - the code of a child between its start and the exec.
 *
 * The child shares the parent's memory, and the thread that started it waits (CLONE_VM, CLONE_VFORK). So it must not
 * call anything that takes a lock, allocates, or changes data of the C library: only system calls, on memory that the
 * parent has prepared. They are made by syscall(), because sanitizers wrap the functions of the C library and would
 * book the child's descriptors as the parent's.
 *
 * All signals are blocked until the handlers are gone: a handler of the parent would run in the parent's memory. exec
 * keeps the mask and the ignored signals. So the last step before it is an empty mask. An ignored signal stays ignored
 * (nohup), except SIGPIPE, which most programs expect to end them.
 *
 * Descriptors. Entry i of the list wants a duplicate of from[i] at to[i]. A source may be in the way of a target:
 * sources below the highest target are first duplicated above it. Then each is put in its place, and every other
 * descriptor becomes close-on-exec, also one that other code opens without that flag at any time. A system without
 * close_range gets the list from /proc/self/fd.
 */
#include "io/start_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static IN_CHILD BZ_NORETURN void fail(struct bz_plan *p, enum bz_start_step step)
{
    p->error = errno;
    p->step = step;
    for (;;)
        syscall(SYS_exit_group, 127);
}

/* ---- signals ---- */

/* The action of the system call, which is not that of the C library. */
struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static IN_CHILD void reset_signals(void)
{
    struct kernel_action was;
    struct kernel_action plain = {NULL, 0, NULL, 0}; /* SIG_DFL */
    struct kernel_action ignored = {(void *)SIG_IGN, 0, NULL, 0};
    for (int s = 1; s <= 64; s++)
        if (syscall(SYS_rt_sigaction, s, &plain, &was, sizeof was.mask) == 0 &&
            was.handler == (void *)SIG_IGN && s != SIGPIPE)
            syscall(SYS_rt_sigaction, s, &ignored, NULL, sizeof was.mask);
}

static IN_CHILD void unblock_signals(void)
{
    uint64_t none = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

/* ---- descriptors ---- */

static IN_CHILD void move_out_of_the_way(struct bz_plan *p)
{
    int top = p->fd_count > 0 ? p->fds[p->fd_count - 1].to + 1 : 0;
    for (unsigned i = 0; i < p->fd_count; i++) {
        if (p->fds[i].from >= top || p->fds[i].from == p->fds[i].to)
            continue;
        long copy = syscall(SYS_fcntl, p->fds[i].from, F_DUPFD_CLOEXEC, top);
        if (copy < 0)
            fail(p, BZ_START_FD);
        p->fds[i].from = (int)copy;
    }
}

static IN_CHILD void put_in_place(struct bz_plan *p)
{
    for (unsigned i = 0; i < p->fd_count; i++) {
        struct bz_fd_move *m = &p->fds[i];
        long rc = m->from == m->to ? syscall(SYS_fcntl, m->to, F_SETFD, 0)
                                   : syscall(SYS_dup3, m->from, m->to, 0);
        if (rc < 0)
            fail(p, BZ_START_FD);
    }
}

static IN_CHILD bool is_target(const struct bz_plan *p, int fd)
{
    for (unsigned i = 0; i < p->fd_count; i++)
        if (p->fds[i].to == fd)
            return true;
    return false;
}

struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static IN_CHILD int number_of(const char *name)
{
    int n = 0;
    if (*name < '0' || *name > '9')
        return -1;
    for (; *name >= '0' && *name <= '9'; name++)
        n = n * 10 + (*name - '0');
    return n;
}

/* Without close_range: the open descriptors are in a directory. */
static IN_CHILD void hide_one_by_one(struct bz_plan *p)
{
    _Alignas(struct entry) char room[1024];
    long dir = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        fail(p, BZ_START_FD);
    for (long n; (n = syscall(SYS_getdents64, dir, room, sizeof room)) > 0;)
        for (long at = 0; at < n; at += ((struct entry *)(room + at))->bytes) {
            int fd = number_of(((struct entry *)(room + at))->name);
            if (fd >= 0 && !is_target(p, fd))
                syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
        }
    syscall(SYS_close, dir);
}

static IN_CHILD bool hide_range(unsigned from, unsigned to)
{
    return from > to || syscall(SYS_close_range, from, to, CLOSE_RANGE_CLOEXEC) == 0;
}

/* Make every descriptor that is no target close-on-exec. */
static IN_CHILD void hide_others(struct bz_plan *p)
{
    unsigned from = 0;
    bool is_done = true;
    for (unsigned i = 0; i < p->fd_count && is_done; i++) {
        unsigned to = (unsigned)p->fds[i].to;
        is_done = to == 0 || hide_range(from, to - 1);
        from = to + 1;
    }
    if (!is_done || !hide_range(from, ~0u))
        hide_one_by_one(p);
}

/* ---- the rest ---- */

static IN_CHILD void set_limits(struct bz_plan *p)
{
    for (unsigned i = 0; i < p->limit_count; i++) {
        uint64_t both[2] = {p->limits[i].soft, p->limits[i].hard};
        if (syscall(SYS_prlimit64, 0, p->limits[i].what, both, NULL) != 0)
            fail(p, BZ_START_LIMIT);
    }
}

/* System calls of the thread: those of the C library would change all threads of the parent. */
static IN_CHILD void become_user(struct bz_plan *p)
{
    if (syscall(SYS_setgroups, 0, NULL) != 0 && errno != EPERM)
        fail(p, BZ_START_USER);
    if (syscall(SYS_setresgid, p->gid, p->gid, p->gid) != 0 ||
        syscall(SYS_setresuid, p->uid, p->uid, p->uid) != 0)
        fail(p, BZ_START_USER);
}

/* A file that may not be run counts more than one that is not there. */
static IN_CHILD BZ_NORETURN void run(struct bz_plan *p)
{
    int worst = ENOENT;
    for (unsigned i = 0; p->paths[i] != NULL; i++) {
        syscall(SYS_execve, p->paths[i], p->argv, p->envp);
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            fail(p, BZ_START_EXEC);
        if (errno == EACCES)
            worst = EACCES;
    }
    errno = worst;
    fail(p, BZ_START_EXEC);
}

IN_CHILD int bz_spawn_child(void *plan)
{
    struct bz_plan *p = plan;
    reset_signals();
    if (p->has_session && syscall(SYS_setsid) < 0)
        fail(p, BZ_START_SESSION);
    if (p->has_group && syscall(SYS_setpgid, 0, p->group) != 0)
        fail(p, BZ_START_GROUP);
    set_limits(p);
    move_out_of_the_way(p);
    put_in_place(p);
    hide_others(p);
    if (p->has_tty && syscall(SYS_ioctl, 0, TIOCSCTTY, 0) != 0)
        fail(p, BZ_START_TTY);
    if (p->has_user)
        become_user(p);
    if (p->dir != NULL && syscall(SYS_chdir, p->dir) != 0)
        fail(p, BZ_START_DIR);
    unblock_signals();
    run(p);
}
