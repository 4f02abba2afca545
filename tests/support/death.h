/*
 * death.h - a broken invariant must abort with a message.
 *
 *     DIES("freed twice", bz_slab_free(&s, object));
 *
 * runs the statement in a child process and checks that it aborts with those words on standard
 * error. Changes of the child are lost with it.
 */
#ifndef DEATH_H
#define DEATH_H

#if defined(_WIN32)

#include <stdlib.h>

#include "harness.h"

#define DIES(words, ...)                                              \
    do {                                                              \
        if (t_dies_here()) {                                          \
            __VA_ARGS__;                                              \
            _exit(0);                                                 \
        }                                                             \
        t_dies_elsewhere(words, __FILE__, __LINE__, "the statement"); \
    } while (0)

#else

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define DIES(words, ...)                                    \
    do {                                                    \
        int out_;                                           \
        pid_t child_ = death_begin(&out_);                  \
        if (child_ == 0) {                                  \
            __VA_ARGS__;                                    \
            _exit(0);                                       \
        }                                                   \
        death_end(child_, out_, words, __FILE__, __LINE__); \
    } while (0)

static inline pid_t death_begin(int *out)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL); /* a handler of the harness is not what is tested */
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
    }
    close(ends[1]);
    *out = ends[0];
    return child;
}

static inline void death_end(pid_t child, int out, const char *words, const char *file, int line)
{
    char said[4096];
    size_t length = 0;
    ssize_t n;
    while ((n = read(out, said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)n;
    said[length] = '\0';
    close(out);
    int status;
    if (waitpid(child, &status, 0) != child)
        t_fail(file, line, "the child is gone");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        t_fail(file, line, "did not abort: status 0x%x, said: %s", (unsigned)status, said);
    if (strstr(said, words) == NULL)
        t_fail(file, line, "aborted, but did not say \"%s\": %s", words, said);
}

#endif
#endif
