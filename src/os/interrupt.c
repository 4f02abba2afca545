/*
 * interrupt.c - the SIGURG handler, the previous handler, and sending the signal. See interrupt.h.
 *
 * Our signals carry a mark (the address of a variable, as the value of a queued signal), so that
 * the handler forwards only the others. A signal that the kernel could not queue arrives without
 * the mark; then the previous handler is called spuriously, which any handler of SIGURG must
 * tolerate. The kernel merges two pending signals of the same thread, whether ours or not; SIGURG
 * of sockets is sent to the process and is queued separately.
 *
 * SA_ONSTACK: a fiber's stack has no room for the frame (12 KB with AVX-512). SA_RESTART: system
 * calls are restarted if possible; others end with EINTR. So we signal only threads that burn.
 *
 * A thread that is interrupted at a place where it cannot stop may set a timer that interrupts it
 * again. The timer belongs to the process, so it is deleted when the thread ends.
 *
 * A thread is identified by its kernel id, not its pthread_t: for a thread that has ended the call
 * fails, where pthread_kill is undefined. If another thread of this process has reused the id, its
 * handler finds no request.
 *
 * ThreadSanitizer delays signals until the thread calls into it, and burning code does not. So
 * interrupts do not work in such a build, and bz_os_interrupt_watch returns -ENOSYS.
 *
 * I1  `users` and `previous` are guarded by the lock; previous is constant while users > 0.
 *
 * [U] watch: `interrupted` release -> handler: acquire   the previous action is written before it is read
 */
#include "os/interrupt.h"

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

#if BZ_TSAN /* it delays handlers */
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
static unsigned users;                                /* I1 */
static struct sigaction previous;                     /* I1 */
static bz_atomic(bz_os_interrupted_fn *) interrupted; /* NULL: no watcher */
static char mark;                                     /* each of our signals carries its address */

static void call_earlier_handler(int signal, siginfo_t *info, void *context)
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

static void on_interrupt(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    bz_os_interrupted_fn *fn = bz_load_acquire(&interrupted); /* [U] */
    if (fn != NULL)
        fn(PC_OF((ucontext_t *)context));
    bool has_value = info->si_code == SI_QUEUE || info->si_code == SI_TIMER;
    if (!has_value || info->si_value.sival_ptr != &mark)
        call_earlier_handler(signal, info, context);
    errno = saved;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_interrupt;
}

/* Under the lock. */
static int install(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, was;
    ours.sa_sigaction = on_interrupt;
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGURG, NULL, &was) != 0)
        return -errno;
    if (is_ours(&was))
        return 0; /* our handler is still installed from an earlier watch */
    previous = was;
    return sigaction(SIGURG, &ours, NULL) == 0 ? 0 : -errno;
}

int bz_linux_interrupt_watch(const struct bz_os *os, bz_os_interrupted_fn *fn)
{
    (void)os;
    if (!CAN_INTERRUPT)
        return -ENOSYS;
    bz_code_find();
    bz_lock_take(&lock, &bz_os_system);
    int err = users == 0 ? install() : 0;
    if (err == 0) {
        users++;
        bz_store_release(&interrupted, fn); /* [U] */
    }
    bz_lock_drop(&lock, &bz_os_system);
    return err;
}

void bz_linux_interrupt_unwatch(const struct bz_os *os)
{
    struct sigaction now;
    (void)os;
    bz_lock_take(&lock, &bz_os_system);
    if (--users == 0) {
        bz_store_relaxed(&interrupted, NULL); /* relaxed: a running handler may still call it */
        if (sigaction(SIGURG, NULL, &now) == 0 && is_ours(&now))
            sigaction(SIGURG, &previous, NULL);
    }
    bz_lock_drop(&lock, &bz_os_system);
}

/* ---- the functions of the backend ---- */

uint32_t bz_linux_thread_id(const struct bz_os *os)
{
    (void)os;
    return (uint32_t)syscall(SYS_gettid);
}

/* The state follows the name, which is in brackets and may contain any character. */
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

/* The timer of a thread, made on first use. By system calls, because the C library's wrappers may
 * allocate. */
#if !defined(sigev_notify_thread_id)
#define sigev_notify_thread_id _sigev_un._tid
#endif
#define NO_TIMER (-1)

static __attribute__((tls_model("initial-exec"))) _Thread_local int timer = NO_TIMER;

void bz_linux_interrupt_again(const struct bz_os *os, uint64_t ns)
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

void bz_linux_interrupt_forget(void)
{
    if (timer != NO_TIMER)
        (void)syscall(SYS_timer_delete, timer);
    timer = NO_TIMER;
}

int bz_linux_thread_interrupt(const struct bz_os *os, uint32_t id)
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
