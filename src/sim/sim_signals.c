/*
 * sim_signals.c - see sim_signals.h. One thread of a simulation runs at a time, so plain memory does. ThreadSanitizer does not
 * see this file (kernel.c says why), so it copies by bz_sim_copy().
 */
#include "sim/sim_signals.h"

#include <errno.h>
#include <string.h>

#include "os/signals.h"
#include "sim/kernel.h"

static struct sigaction actions[BZ_SIGNAL_MAX + 1];

static int sim_action(int signal, const struct sigaction *set, struct sigaction *was)
{
    if (signal < 1 || signal > BZ_SIGNAL_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (was != NULL)
        bz_sim_copy(was, &actions[signal], sizeof *was);
    if (set != NULL)
        bz_sim_copy(&actions[signal], set, sizeof *set);
    return 0;
}

static int sim_unblock(const sigset_t *set)
{
    (void)set;
    return 0;
}

static const struct bz_signal_sys simulated = {
    .is_simulated = true, .action = sim_action, .unblock = sim_unblock};

void bz_sim_signals_begin(void)
{
    memset(actions, 0, sizeof actions);
    bz_signal_sys = &simulated;
}

int bz_sim_signals_end(void)
{
    int left = 0;
    bz_signal_sys = &bz_signal_sys_linux;
    for (int s = 1; s <= BZ_SIGNAL_MAX; s++)
        left += actions[s].sa_handler != SIG_DFL;
    return left;
}

int bz_sim_raise(int signal)
{
    struct sigaction *a = &actions[signal];
    siginfo_t info;
    if (a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN)
        return 0;
    memset(&info, 0, sizeof info);
    info.si_signo = signal;
    if (a->sa_flags & SA_SIGINFO)
        a->sa_sigaction(signal, &info, NULL);
    else
        a->sa_handler(signal);
    return 1;
}
