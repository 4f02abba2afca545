/*
 * signal_names.c - what signals are called.
 */
#include "record.h"

#include <signal.h>

#define NAME(x) \
    {           \
        x, #x   \
    }

const char *t_signal_name(int signo)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        NAME(SIGABRT), NAME(SIGALRM), NAME(SIGBUS),  NAME(SIGCHLD),   NAME(SIGFPE),  NAME(SIGHUP),
        NAME(SIGILL),  NAME(SIGINT),  NAME(SIGKILL), NAME(SIGPIPE),   NAME(SIGPROF), NAME(SIGQUIT),
        NAME(SIGSEGV), NAME(SIGSYS),  NAME(SIGTERM), NAME(SIGTRAP),   NAME(SIGURG),  NAME(SIGUSR1),
        NAME(SIGUSR2), NAME(SIGXCPU), NAME(SIGXFSZ), NAME(SIGVTALRM),
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == signo)
            return names[i].name;
    return "a signal";
}
