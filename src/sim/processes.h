/*
 * processes.h - simulated child processes: the contract of io/start_process.h on a seed, in virtual time.
 *
 *     bz_sim_net_begin(os, ...); bz_sim_signals_begin();
 *     bz_sim_children_begin(os, &(struct bz_sim_children_config){.refuse_one_in = 8});
 *     ... blitz_command_new("exit", &c) ...
 *     struct bz_sim_children_books left = bz_sim_children_end();      // left.unreaped: zombies
 *
 * The program of a command is a script:
 *
 *   exit CODE NS   ends with that code after some time, or by a signal
 *   never          ends by a signal alone
 *   deaf           ends by SIGKILL alone
 *
 * Any other program is not found. A child is a thread of the simulation. Its pidfd is a descriptor of sim/network.h.
 * If the configuration says so, there are no pidfds: the child raises SIGCHLD (sim/sim_signals.h). Descriptors of children
 * are not simulated: the pipes of sim/network.h count, and carry no bytes.
 */
#ifndef BZ_SIM_PROCESSES_H
#define BZ_SIM_PROCESSES_H

#include "base/compiler.h"
#include "os/os.h"

struct bz_sim_children_config {
    bool has_no_pidfds;
    unsigned refuse_one_in; /* 0: never; else every n-th start fails with -EAGAIN */
};

struct bz_sim_children_books {
    unsigned started, refused, unreaped;
};

/* Simulate bz_spawn from here on, from a simulated thread; or go back to the system, when all children have ended. */
void bz_sim_children_begin(const struct bz_os *os, const struct bz_sim_children_config *config);
struct bz_sim_children_books bz_sim_children_end(void);

/* Kill every child that runs, as other code of the machine may. */
void bz_sim_children_kill_all(void);

#endif
