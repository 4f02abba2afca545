/*
 * case.c - the child: runs one case and says how it ended.
 *
 * The end of the body, a failed check and a skip compete for one word, record->state; the first one
 * changes it and reports, the others wait for the process to end. So a report is never mixed of
 * two, and a check that fails on a thread while the body returns is not lost.
 *
 * What a case may not leave behind is counted before and after. All of it is counted without opening
 * a file, for a case may have used up its descriptors.
 */
#include "record.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FD_MAX = 4096, LEAVE_WAIT_MS = 3000, TELL_WAIT_MS = 60000, STACKS_WAIT_MS = 60000 };

struct t_record *t_record;
const struct t_options *t_options;
bool t_is_quick;

static struct {
    unsigned char has_fd[FD_MAX];
    unsigned threads;
    struct rlimit fds;
} before;
static unsigned may_leave;

int t_self_tid(void)
{
    return (int)syscall(SYS_gettid);
}

/* ---- telling ---- */

static bool claimed_from(enum t_state from, enum t_state to)
{
    int expected = from;
    return atomic_compare_exchange_strong(&t_record->state, &expected, (int)to);
}

/* Another thread is ending this case; give it time to report the reason. */
static _Noreturn void wait_for_the_end(void)
{
    for (uint64_t until = 0; !atomic_load(&t_record->is_told) && t_waits(&until, TELL_WAIT_MS);)
        continue;
    t_nap_ms(500); /* their exit ends us, too, unless we are another process */
    _exit(T_EXIT_FAILED);
}

void t_record_claim(enum t_state to)
{
    if (T_BROKEN(1) && to == T_FAILED) {
        atomic_store(&t_record->state, T_RETURNED);
        _exit(0);
    }
    if (!claimed_from(T_RUNNING, to) && !(to == T_FAILED && claimed_from(T_RETURNED, to)))
        wait_for_the_end();
}

static const char *own_watch(void)
{
    for (int i = 0; i < T_THREADS_MAX; i++)
        if (atomic_load(&t_record->watch[i].tid) == t_record->told_by)
            return t_record->watch[i].text;
    return "";
}

/* Without a parent we are our own reporter. One write, so that lines do not mix. */
static void tell_here(void)
{
    static char out[sizeof t_record->text + sizeof t_record->detail + 512];
    const char *watch = own_watch();
    int size =
        snprintf(out, sizeof out, "%s %s%s%d\n     %s   %s\n%s%s%s",
                 atomic_load(&t_record->state) == T_SKIPPED ? "SKIP" : "FAIL", t_record->file,
                 t_record->file[0] ? ":" : "", t_record->line, t_record->text, t_record->detail,
                 *watch ? "     while: " : "", watch, *watch ? "\n" : "");
    ssize_t ignored = write(STDERR_FILENO, out, (size_t)size);
    (void)ignored;
}

static _Atomic(void (*)(void)) at_failure;

void t_at_failure(void (*fn)(void))
{
    atomic_store(&at_failure, fn);
}

void t_record_tell(const char *file, int line)
{
    void (*say_more)(void) = atomic_exchange(&at_failure, NULL); /* once: it may fail, too */
    if (say_more != NULL && atomic_load(&t_record->state) != T_SKIPPED)
        say_more();
    snprintf(t_record->file, sizeof t_record->file, "%s", t_short_path(file));
    t_record->line = line;
    t_record->told_by = t_self_tid();
    atomic_store(&t_record->is_told, 1);
    if (t_options->here)
        tell_here();
    _exit(T_EXIT_FAILED);
}

/* ---- leaks ---- */

void t_may_leave(unsigned what)
{
    may_leave |= what;
}

/* A directory has a link for each subdirectory and two of its own; here, threads are those. */
static unsigned count_threads(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) == 0 && st.st_nlink > 2 ? (unsigned)st.st_nlink - 2 : 1;
}

static bool fd_is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

static void *store_tid(void *tid)
{
    *(int *)tid = t_self_tid();
    return NULL;
}

/*
 * TSan starts a thread of its own with our first: have it start before we count. Our thread must be
 * gone by then from the kernel's list, where it lingers for a moment after the join.
 */
static void start_strangers(void)
{
    pthread_t id;
    int tid = 0;

    if (t_slowdown() == 1 || pthread_create(&id, NULL, store_tid, &tid) != 0)
        return;
    pthread_join(id, NULL);
    for (uint64_t until = 0;
         syscall(SYS_tgkill, getpid(), tid, 0) == 0 && t_waits(&until, LEAVE_WAIT_MS);)
        continue;
}

static void note_strangers(void)
{
    size_t used = 0, max = sizeof t_record->strangers / sizeof t_record->strangers[0];
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");

    while (tasks != NULL && used < max && (entry = readdir(tasks)) != NULL)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != t_self_tid())
            t_record->strangers[used++] = atoi(entry->d_name);
    if (tasks != NULL)
        closedir(tasks);
}

static void count_before(void)
{
    start_strangers();
    note_strangers();
    getrlimit(RLIMIT_NOFILE, &before.fds);
    before.threads = count_threads();
    for (int fd = 0; fd < FD_MAX; fd++)
        before.has_fd[fd] = fd_is_open(fd);
}

static void add(const char *format, ...) T_PRINTF(1, 2);

static void add(const char *format, ...)
{
    size_t used = strlen(t_record->detail);
    va_list args;

    va_start(args, format);
    if (used > 0)
        used += (size_t)snprintf(t_record->detail + used, sizeof t_record->detail - used, "\n");
    vsnprintf(t_record->detail + used, sizeof t_record->detail - used, format, args);
    va_end(args);
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* A joined thread may linger for a moment in the kernel's list: wait for it, not for long. */
static unsigned threads_left(void)
{
    for (uint64_t until = 0; count_threads() > before.threads && t_waits(&until, LEAVE_WAIT_MS);)
        continue;
    unsigned now = count_threads();
    return now > before.threads ? now - before.threads : 0;
}

static int leaked_fd_after(int fd)
{
    for (fd++; fd < FD_MAX; fd++)
        if (!before.has_fd[fd] && fd_is_open(fd))
            return fd;
    return -1;
}

static void add_fd(int fd)
{
    char link[64], target[160];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, target, sizeof target - 1);
    target[size > 0 ? size : 0] = '\0';
    add("leaks file descriptor %d (%s)", fd, target);
}

/* The parent can say where the threads stand that are still there. */
static void await_stacks(void)
{
    if (t_options->here)
        return;
    atomic_store(&t_record->wants_stacks, 1);
    for (uint64_t until = 0;
         atomic_load(&t_record->wants_stacks) && t_waits(&until, STACKS_WAIT_MS);)
        continue;
}

static _Noreturn void tell_leaks(const struct t_case *c, unsigned threads, bool children, int fd)
{
    t_record_claim(T_LEAKED);
    if (threads > 0)
        await_stacks();
    snprintf(t_record->text, sizeof t_record->text, "the case leaves something behind");
    if (threads > 0)
        add("leaks %u thread%s: still running", threads, threads == 1 ? "" : "s");
    if (children)
        add("leaks a child process: still running or not waited for");
    for (int shown = 0; fd != -1 && shown < 10; fd = leaked_fd_after(fd), shown++)
        add_fd(fd);
    t_record_tell(c->file, c->line);
}

/* LeakSanitizer needs a descriptor to look around. */
static bool leaks_memory(void)
{
    setrlimit(RLIMIT_NOFILE, &before.fds);
    int fd = dup(STDIN_FILENO);
    if (fd == -1) {
        t_note("memory leaks are not looked for: no descriptor is free");
        return false;
    }
    close(fd);
    return t_leak_check() != 0;
}

static void check_leaks(const struct t_case *c)
{
    unsigned threads = may_leave & T_THREADS ? 0 : threads_left();
    bool children = !(may_leave & T_CHILDREN) && !T_BROKEN(7) && has_children();
    int fd = may_leave & T_FDS || T_BROKEN(4) ? -1 : leaked_fd_after(-1);

    if (threads > 0 || children || fd != -1)
        tell_leaks(c, threads, children, fd);
    if (!(may_leave & T_MEMORY) && leaks_memory()) {
        t_record_claim(T_LEAKED);
        snprintf(t_record->text, sizeof t_record->text, "the case leaves something behind");
        add("leaks memory");
        t_record_tell(c->file, c->line);
    }
}

void t_case_run(struct t_case *c, uint64_t seed)
{
    t_random_start(seed);
    t_stacks_catch();
    count_before();
    atomic_store(&t_record->has_begun, 1);
    c->body();
    check_leaks(c);
    fflush(NULL);
    if (!claimed_from(T_RUNNING, T_RETURNED))
        wait_for_the_end();
    exit(0);
}
