/*
 * start_process.c - child processes of Linux.
 *
 * Start. clone(CLONE_VM | CLONE_VFORK), as posix_spawn does it: no page table is copied, however large the process is,
 * and the calling thread waits until the exec. fork() was rejected: it copies the page table (milliseconds with
 * gigabytes), and the copies of locks that other threads held stay locked. posix_spawn was rejected: it reports one
 * error for all its steps, knows no limits, users or pidfds, and closes no descriptors that other code has opened
 * without close-on-exec while we start. The price is the code of spawn_child.c.
 *
 * Errors of the child come back in the plan, which both share. There is no pipe for them.
 *
 * The child's stack is a block of memory of our own: the caller may be a fiber with a small stack. All signals are
 * blocked meanwhile, those of the C library, too: spawn_child.c says why.
 *
 * Wait. A pidfd names the child for good: no number that is used again can be meant. waitid() asks for this child
 * alone, so children of other code are never reaped (bug class 36). Without pidfds (before Linux 5.3, or refused by a
 * filter) the number is used: it stays the child's until we reap it.
 *
 * ETXTBSY. A thread writes a program, closes it, and starts it. A child that another thread started in between has a
 * copy of the descriptor that was open for writing, until its own exec. The kernel refuses the program that long. The
 * copies can only become fewer, so a start that is refused sleeps a moment and tries again, for at most a second.
 */
#include "io/start_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/attempt.h"
#include "os/os.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* ThreadSanitizer takes clone() for a fork with memory of its own, and fails. The C library has a second name. */
#if BZ_TSAN
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

enum { STACK_BYTES = 32 << 10, BUSY_TRIES = 10 };

/* ---- starting ---- */

static void block_all(uint64_t *was)
{
    uint64_t all = ~UINT64_C(0);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, was, sizeof all);
}

static void unblock(const uint64_t *was)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, was, NULL, sizeof *was);
}

/* Returns the child's number or a negative errno. */
static int clone_once(struct bz_plan *plan, char *stack, bool has_pidfd, int *pidfd)
{
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (has_pidfd ? CLONE_PIDFD : 0);
    uint64_t was;
    int fault = bz_io_fault_of("clone");
    if (fault != 0)
        return -fault;
    block_all(&was);
    int pid = clone(bz_spawn_child, stack + STACK_BYTES, flags, plan, pidfd, NULL, NULL);
    int err = -errno;
    unblock(&was);
    return pid >= 0 ? pid : err;
}

static int clone_child(struct bz_plan *plan, char *stack, struct bz_child *out)
{
    out->pidfd = -1;
    bool is_refused = bz_io_fault_of("pidfd") != 0;
    out->pid = is_refused ? -EINVAL : clone_once(plan, stack, true, &out->pidfd);
    if (out->pid == -EINVAL) { /* no such flag: before Linux 5.2 */
        out->pid = clone_once(plan, stack, false, NULL);
        if (out->pid > 0 && !is_refused)
            out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
    }
    return out->pid < 0 ? out->pid : 0;
}

/* A step has failed, and the child ends at once. */
static void bury(struct bz_child *c)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)c->pid, &info, WEXITED) != 0 && errno == EINTR)
        continue;
    if (c->pidfd >= 0)
        close(c->pidfd);
}

static int start_once(struct bz_plan *plan, struct bz_child *out)
{
    char *stack = bz_alloc(&bz_allocator_libc, STACK_BYTES, 64);
    plan->error = 0;
    plan->step = BZ_START_CLONE;
    if (stack == NULL)
        return -ENOMEM;
    int err = clone_child(plan, stack, out);
    bz_free(&bz_allocator_libc, stack, STACK_BYTES);
    if (err != 0)
        return err;
    if (plan->error != 0)
        bury(out);
    else
        plan->step = BZ_START_NONE;
    return -plan->error;
}

static void nap(uint64_t ns)
{
    bz_os_word word = 0;
    (void)bz_os_wait(&bz_os_system, &word, 0, bz_os_now(&bz_os_system) + ns);
}

static int linux_start(struct bz_plan *plan, struct bz_child *out)
{
    int err = start_once(plan, out);
    for (int i = 0; err == -ETXTBSY && i < BUSY_TRIES; i++) {
        nap(UINT64_C(1000000) << i);
        err = start_once(plan, out);
    }
    return err;
}

/* ---- reaping and signalling ---- */

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

static void decode(const siginfo_t *info, const struct rusage *used, struct bz_child_end *out)
{
    bool is_exit = info->si_code == CLD_EXITED;
    *out = (struct bz_child_end){.code = is_exit ? info->si_status : -1,
                                 .signal = is_exit ? 0 : info->si_status,
                                 .has_core = info->si_code == CLD_DUMPED,
                                 .user_ns = ns_of(used->ru_utime),
                                 .system_ns = ns_of(used->ru_stime)};
}

/* The system call, because that of the C library does not tell the use of resources. */
static int linux_reap(const struct bz_child *c, bool stays, struct bz_child_end *out)
{
    siginfo_t info;
    struct rusage used;
    int how = WEXITED | WNOHANG | (stays ? WNOWAIT : 0);
    long rc;
    memset(&info, 0, sizeof info);
    memset(&used, 0, sizeof used);
    do {
        rc = c->pidfd >= 0 ? syscall(SYS_waitid, P_PIDFD, c->pidfd, &info, how, &used)
                           : syscall(SYS_waitid, P_PID, c->pid, &info, how, &used);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && c->pidfd >= 0 && errno == EINVAL) /* before Linux 5.4 */
        return linux_reap(&(struct bz_child){c->pid, -1}, stays, out);
    if (rc != 0)
        return -errno;
    if (info.si_pid == 0)
        return -EAGAIN;
    decode(&info, &used, out);
    return 0;
}

static int linux_kill(const struct bz_child *c, int signal, bool is_group)
{
    long rc = is_group        ? kill(-c->pid, signal)
              : c->pidfd >= 0 ? syscall(SYS_pidfd_send_signal, c->pidfd, signal, NULL, 0)
                              : kill(c->pid, signal);
    if (rc != 0 && !is_group && c->pidfd >= 0 && (errno == ENOSYS || errno == EPERM))
        rc = kill(c->pid, signal);
    return rc == 0 ? 0 : -errno;
}

static bool linux_is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

const struct bz_spawn bz_spawn_linux = {
    .start = linux_start, .reap = linux_reap, .kill = linux_kill, .is_open = linux_is_open};
const struct bz_spawn *bz_spawn = &bz_spawn_linux;

/* ---- terminals and files ---- */

int bz_pty_resize(int master, unsigned rows, unsigned columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    return ioctl(master, TIOCSWINSZ, &size) == 0 ? 0 : -errno;
}

/* The ioctl opens the other end without a name: it works also if the process sees another /dev/pts. */
static int slave_of(int master)
{
    int locked = 0;
    if (ioctl(master, TIOCSPTLCK, &locked) != 0)
        return -errno;
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return slave >= 0 ? slave : -errno;
}

static int open_as(const char *path, int flags)
{
    int fd, fault = bz_io_fault_of("open");
    if (fault != 0)
        return -fault;
    do {
        fd = open(path, flags | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EINTR);
    return fd >= 0 ? fd : -errno;
}

int bz_pty_open(int *master, int *slave, unsigned rows, unsigned columns)
{
    int m = open_as("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (m < 0)
        return m;
    int s = slave_of(m);
    if (s < 0) {
        close(m);
        return s;
    }
    (void)bz_pty_resize(m, rows, columns);
    *master = m;
    *slave = s;
    return 0;
}

int bz_spawn_open(const char *path, enum bz_spawn_file how)
{
    static const int flags[] = {[BZ_SPAWN_READ] = O_RDONLY,
                                [BZ_SPAWN_WRITE] = O_WRONLY | O_CREAT | O_TRUNC,
                                [BZ_SPAWN_APPEND] = O_WRONLY | O_CREAT | O_APPEND,
                                [BZ_SPAWN_NULL] = O_RDWR};
    return open_as(how == BZ_SPAWN_NULL ? "/dev/null" : path, flags[how]);
}

char **bz_spawn_environ(void)
{
    return environ;
}

void bz_spawn_default_path(char *text, size_t bytes)
{
    size_t needed = confstr(_CS_PATH, text, bytes);
    if (needed == 0 || needed > bytes)
        text[0] = '\0';
}
