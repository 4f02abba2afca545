/*
 * stacks.c - the stacks of all threads, when a case crashes or hangs.
 *
 * The crashing or signalled thread only stores raw addresses in the record; the parent, which may
 * allocate, finds their names (symbols.c). So the handlers are short, need little stack, and do not
 * depend on the heap. On expiry the parent signals the threads one by one. Rejected as the first
 * means: gdb, which is not always installed, may be forbidden to attach and takes seconds. It is
 * used with --gdb and for threads that do not answer.
 *
 * The signal is an otherwise unused real-time signal; under TSan it is SIGSYS. TSan delays ordinary
 * signals until the thread next enters the sanitizer's runtime, which a thread in a tight loop
 * never does. Signals that an instruction of the thread may raise are delivered at once. (But a
 * sent signal of that kind ends valgrind.)
 */
#include "record.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

enum { ANSWER_WAIT_MS = 20000 };

/* ---- the child's side ---- */

static pid_t case_pid;

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *frame, void *p)
{
    struct t_stack *s = p;
    int is_exact = 0;
    uintptr_t pc = _Unwind_GetIPInfo(frame, &is_exact);

    if (is_exact)
        s->depth = 0; /* the interrupted instruction: what we saw before was the handler's */
    if (pc == 0 || s->depth == T_DEPTH_MAX)
        return _URC_END_OF_STACK;
    s->pc[s->depth++] = is_exact ? pc : pc - 1;
    return _URC_NO_REASON;
}

static void stack_take(struct t_stack *s)
{
    s->tid = t_self_tid();
    s->depth = 0;
    _Unwind_Backtrace(add_frame, s);
}

static void on_ask(int signo)
{
    int err = errno;

    (void)signo;
    atomic_load(
        &t_record->dump.is_told); /* the parent asks one at a time; TSan sees it here alone */
    stack_take(&t_record->dump.stack);
    atomic_store(&t_record->dump.is_told, 1);
    errno = err;
}

static void on_crash(int signo, siginfo_t *info, void *context)
{
    static _Atomic int crashes;

    (void)context;
    if (getpid() == case_pid && atomic_fetch_add(&crashes, 1) == 0) {
        t_record->crash.signo = signo;
        t_record->crash.has_address = info->si_code > 0 && (signo == SIGSEGV || signo == SIGBUS);
        t_record->crash.address = (uintptr_t)info->si_addr;
        atomic_store(&t_record->crash.is_told, 1); /* before we walk what may be corrupt */
        stack_take(&t_record->crash.stack);
    }
    signal(signo, SIG_DFL);
    raise(signo); /* comes as soon as we return */
}

static void catch_on_own_stack(void)
{
    static char room[64 * 1024];
    stack_t now;

    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE))
        sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
}

void t_stacks_catch(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
    struct sigaction ask = {.sa_handler = on_ask, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct sigaction crash = {.sa_sigaction = on_crash, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    struct t_stack warm_up; /* the unwinder's first walk may allocate: not in a handler, then */

    case_pid = getpid();
    stack_take(&warm_up);
    catch_on_own_stack();
    sigaction(t_ask_signal(), &ask, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigaction(crashes[i], &crash, NULL);
}

/* ---- the parent's side ---- */

/* One line of a file in /proc; "" if there is none. */
static void proc_read(char *into, size_t size, pid_t pid, int tid, const char *what)
{
    char path[96];

    into[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, tid, what);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    size_t used = fread(into, 1, size - 1, f);
    into[used] = '\0';
    fclose(f);
}

static bool answers(pid_t pid, int tid)
{
    char status[4096];
    proc_read(status, sizeof status, pid, tid, "status");
    const char *blocked = strstr(status, "SigBlk:");

    if (blocked == NULL)
        return false;
    return !(strtoull(blocked + strlen("SigBlk:"), NULL, 16) >> (t_ask_signal() - 1) & 1);
}

static bool ask(pid_t pid, int tid, struct t_record *r)
{
    atomic_store(&r->dump.is_told, 0);
    if (!answers(pid, tid) || syscall(SYS_tgkill, pid, tid, t_ask_signal()) != 0)
        return false;
    for (uint64_t until = 0; !atomic_load(&r->dump.is_told) && t_waits(&until, ANSWER_WAIT_MS);)
        continue;
    return atomic_load(&r->dump.is_told);
}

static void print_thread_title(FILE *out, pid_t pid, int tid)
{
    char comm[64], where[64];

    proc_read(comm, sizeof comm, pid, tid, "comm");
    comm[strcspn(comm, "\n")] = '\0';
    proc_read(where, sizeof where, pid, tid, "wchan");
    fprintf(out, "     thread %d (%s)%s", tid, comm, tid == (int)pid ? ", the main one" : "");
    if (where[0] != '\0' && where[0] != '0')
        fprintf(out, ", in %s", where);
    fprintf(out, "\n");
}

/* A sanitizer's own thread does not know what to do with a signal. */
static bool is_stranger(const struct t_record *r, int tid)
{
    for (size_t i = 0; i < sizeof r->strangers / sizeof r->strangers[0]; i++)
        if (r->strangers[i] == tid)
            return true;
    return false;
}

static bool print_thread(FILE *out, pid_t pid, int tid, struct t_record *r)
{
    print_thread_title(out, pid, tid);
    if (ask(pid, tid, r)) {
        t_stack_print(out, pid, &r->dump.stack, "       ");
        return true;
    }
    fprintf(out, "       blocks signals or does not answer\n");
    return false;
}

void t_stacks_of_process(FILE *out, pid_t pid, struct t_record *r)
{
    char path[64];
    bool all = true;
    struct dirent *entry;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    kill(pid, SIGCONT); /* it may have been stopped */
    DIR *tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL)
        if (entry->d_name[0] != '.' && !is_stranger(r, atoi(entry->d_name)))
            all &= print_thread(out, pid, atoi(entry->d_name), r);
    if (tasks != NULL)
        closedir(tasks);
    if (!all || t_options->gdb)
        t_stacks_by_gdb(out, pid);
}

void t_stacks_by_gdb(FILE *out, pid_t pid)
{
    char number[16], *said = NULL;
    size_t size = 0;
    const char *const argv[] = {"gdb", "-nx",  "-batch", "-ex", "thread apply all backtrace",
                                "-p",  number, NULL};

    snprintf(number, sizeof number, "%d", (int)pid);
    FILE *answer = open_memstream(&said, &size);
    bool is_told = answer != NULL && t_tool_run(answer, argv, 60) == 0;
    if (answer != NULL)
        fclose(answer);
    fprintf(out, is_told ? "     gdb says:\n" : "     gdb is not here, or may not attach\n");
    for (char *rest = said, *line; is_told && (line = strsep(&rest, "\n")) != NULL;)
        if (line[0] != '\0' && line[0] != '[')
            fprintf(out, "     | %s\n", line);
    free(said);
}
