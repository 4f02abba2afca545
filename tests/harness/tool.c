/*
 * tool.c - run another program, for no longer than so, and take what it prints.
 */
#include "record.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static double now_s(void)
{
    return (double)t_now_ns() / 1e9;
}

static _Noreturn void tool_exec(const char *const argv[], int out)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

/* True when it has closed its end; false when the time was up. */
static bool tool_read(FILE *out, int in, double until_s)
{
    char part[4096];

    for (double left; (left = until_s - now_s()) > 0;) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
            continue;
        ssize_t size = read(in, part, sizeof part);
        if (size <= 0)
            return true;
        fwrite(part, 1, (size_t)size, out);
    }
    return false;
}

int t_tool_run(FILE *out, const char *const argv[], double limit_s)
{
    int ends[2], status = 0;

    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        tool_exec(argv, ends[1]);
    close(ends[1]);
    if (pid != -1 && !tool_read(out, ends[0], now_s() + limit_s))
        kill(pid, SIGKILL);
    close(ends[0]);
    if (pid == -1 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}
