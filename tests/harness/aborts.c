/*
 * aborts.c - CHECK_ABORTS: a broken invariant must end the process, and say what it saw.
 */
#include "record.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(T_COVERAGE)
void __gcov_dump(void);
#else
static void __gcov_dump(void) {}
#endif

/* An abort would lose the lines counted so far. */
static void on_abort(int signo)
{
    __gcov_dump();
    signal(signo, SIG_DFL);
    raise(signo);
}

static _Noreturn void run_and_die(void (*fn)(void *), void *arg, int output)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};

    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        signal(crashes[i], SIG_DFL);
    signal(SIGABRT, on_abort);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    fn(arg);
    fflush(NULL);
    _exit(0);
}

static void describe_end(char *into, size_t size, int status)
{
    if (WIFSIGNALED(status))
        snprintf(into, size, "it ended by %s", t_signal_name(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 0)
        snprintf(into, size, "it returned");
    else
        snprintf(into, size, "it ended with exit status %d", WEXITSTATUS(status));
}

static void check_end(int status, const char *output, const char *says, const char *file, int line,
                      const char *text)
{
    char how[64];

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(output, says) != NULL)
        return;
    describe_end(how, sizeof how, status);
    t_record_claim(T_FAILED);
    snprintf(t_record->text, sizeof t_record->text, "%s aborts", text);
    snprintf(t_record->detail, sizeof t_record->detail,
             "%s, want SIGABRT and \"%s\"\nit said: %.2000s", how, says, output);
    t_record_tell(file, line);
}

void t_check_aborts(void (*fn)(void *), void *arg, const char *says, const char *file, int line,
                    const char *text)
{
    char said[4096];
    int status = 0;
    int output = memfd_create("said", MFD_CLOEXEC);

    CHECK_NE(output, -1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_and_die(fn, arg, output);
    if (pid == -1 || waitpid(pid, &status, 0) != pid)
        t_fail(file, line, "%s: cannot run it in a process of its own: %s", text, strerror(errno));
    ssize_t size = pread(output, said, sizeof said - 1, 0);
    said[size > 0 ? size : 0] = '\0';
    close(output);
    check_end(status, said, says, file, line, text);
}
