/*
 * urge.c - the handler of SIGURG, its earlier owner, and how to send it. See urge.h.
 *
 * Ours carries a mark (the address of a variable, as the value of a queued signal), so that the
 * handler knows what to pass on. A signal that the kernel could not queue arrives without it; then
 * the earlier handler is called once for nothing, which any handler of SIGURG must bear. Two of the
 * same thread that wait to be delivered are merged by the kernel, ours and another's as well as two of
 * another's; SIGURG of sockets is sent to the process and waits elsewhere.
 *
 * SA_ONSTACK: a fiber's stack has no room for the frame (12 KB with AVX-512). SA_RESTART: system calls
 * that can be are restarted. What cannot, ends with EINTR: so we signal only threads that burn.
 *
 * A thread that is interrupted at a wrong place may ask to be interrupted again by a timer of its own. The timer belongs to the
 * process, so it is deleted when the thread ends.
 *
 * A thread is named by its kernel id, not its pthread_t: the id of a thread that has ended makes the
 * call fail, where pthread_kill is undefined; and if it is in use again, by another thread of this
 * process, the handler there finds that nothing was asked of it.
 *
 * ThreadSanitizer keeps signals back until the thread calls into it, and code that burns does not:
 * there is no interrupting in such a build, and bz_os_urge_watch says so.
 *
 * I1  `users` and `previous` are guarded by the lock; previous is constant while users > 0.
 *
 * [U] watch: `urged` release -> handler: acquire   the previous action is there before it is asked
 */
#include "os/urge.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "os/linux.h"
#include "os/lock.h"

#if defined(__SANITIZE_THREAD__)
#define KEEPS_SIGNALS_BACK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KEEPS_SIGNALS_BACK 1
#endif
#endif

#if defined(KEEPS_SIGNALS_BACK)
#define PC_OF(uc) ((void)(uc), 0)
#define CAN_INTERRUPT 0
#elif defined(__x86_64__)
#define PC_OF(uc) ((uintptr_t)(uc)->uc_mcontext.gregs[REG_RIP])
#define CAN_INTERRUPT 1
#elif defined(__aarch64__)
#define PC_OF(uc) ((uintptr_t)(uc)->uc_mcontext.pc)
#define CAN_INTERRUPT 1
#elif defined(__riscv)
#define PC_OF(uc) ((uintptr_t)(uc)->uc_mcontext.__gregs[REG_PC])
#define CAN_INTERRUPT 1
#else
#define PC_OF(uc) ((void)(uc), 0)
#define CAN_INTERRUPT 0
#endif

static struct bz_lock lock = BZ_LOCK_INIT;
static unsigned users;                    /* I1 */
static struct sigaction previous;         /* I1 */
static bz_atomic(bz_os_urged_fn *) urged; /* NULL: nobody watches */
static char mark;                         /* its address is on each signal of ours */

static void pass_on(int signal, siginfo_t *info, void *context)
{
    if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)
        return; /* the default is to do nothing */
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, &previous.sa_mask, &mask);
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(signal, info, context);
    else
        previous.sa_handler(signal);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void on_urge(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    bz_os_urged_fn *fn = bz_load_acquire(&urged); /* [U] */
    if (fn != NULL)
        fn(PC_OF((ucontext_t *)context));
    bool has_value = info->si_code == SI_QUEUE || info->si_code == SI_TIMER;
    if (!has_value || info->si_value.sival_ptr != &mark)
        pass_on(signal, info, context);
    errno = saved;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_urge;
}

/* Under the lock. */
static int install(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, was;
    ours.sa_sigaction = on_urge;
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGURG, NULL, &was) != 0)
        return -errno;
    if (is_ours(&was))
        return 0; /* left beneath somebody's handler, who is gone now */
    previous = was;
    return sigaction(SIGURG, &ours, NULL) == 0 ? 0 : -errno;
}

int bz_linux_urge_watch(const struct bz_os *os, bz_os_urged_fn *fn)
{
    (void)os;
    if (!CAN_INTERRUPT)
        return -ENOSYS;
    bz_code_find();
    bz_lock_take(&lock, &bz_os_linux);
    int err = users == 0 ? install() : 0;
    if (err == 0) {
        users++;
        bz_store_release(&urged, fn); /* [U] */
    }
    bz_lock_drop(&lock, &bz_os_linux);
    return err;
}

void bz_linux_urge_unwatch(const struct bz_os *os)
{
    struct sigaction now;
    (void)os;
    bz_lock_take(&lock, &bz_os_linux);
    if (--users == 0) {
        bz_store_relaxed(&urged, NULL); /* relaxed: a handler under way may still call it */
        if (sigaction(SIGURG, NULL, &now) == 0 && is_ours(&now))
            sigaction(SIGURG, &previous, NULL);
    }
    bz_lock_drop(&lock, &bz_os_linux);
}

/* ---- the keeper's half ---- */

uint32_t bz_linux_thread_id(const struct bz_os *os)
{
    (void)os;
    return (uint32_t)syscall(SYS_gettid);
}

/* The state follows the name, which is in brackets and may contain anything. */
static int state_of(const char *stat, ssize_t length)
{
    for (ssize_t i = length - 1; i > 0; i--)
        if (stat[i] == ')')
            return i + 2 < length ? stat[i + 2] : 0;
    return 0;
}

int bz_linux_thread_sleeps(const struct bz_os *os, uint32_t id)
{
    char path[64], stat[128]; /* the name is at most 64 bytes, and the state follows */
    (void)os;
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -ENOSYS;
    ssize_t length = read(fd, stat, sizeof stat);
    close(fd);
    int state = length > 0 ? state_of(stat, length) : 0;
    if (state == 0)
        return -ESRCH;
    return state == 'S' || state == 'D';
}

/* A thread's own timer, made when it first needs one. By system calls: the C library's wrappers may allocate. */
#if !defined(sigev_notify_thread_id)
#define sigev_notify_thread_id _sigev_un._tid
#endif
#define NO_TIMER (-1)

static __attribute__((tls_model("initial-exec"))) _Thread_local int timer = NO_TIMER;

void bz_linux_urge_again(const struct bz_os *os, uint64_t ns)
{
    struct itimerspec when = {.it_value.tv_nsec = (long)ns};
    if (timer == NO_TIMER) {
        struct sigevent event;
        int made;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGURG;
        event.sigev_value.sival_ptr = &mark;
        event.sigev_notify_thread_id = (pid_t)bz_linux_thread_id(os);
        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &made) != 0)
            return;
        timer = made;
    }
    (void)syscall(SYS_timer_settime, timer, 0, &when, NULL);
}

void bz_linux_urge_forget(void)
{
    if (timer != NO_TIMER)
        (void)syscall(SYS_timer_delete, timer);
    timer = NO_TIMER;
}

int bz_linux_thread_urge(const struct bz_os *os, uint32_t id)
{
    siginfo_t info;
    (void)os;
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = &mark;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), id, SIGURG, &info) == 0 ? 0 : -errno;
}
