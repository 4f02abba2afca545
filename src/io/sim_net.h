/*
 * sim_net.h - a simulated network: the system calls of io/sys.h on a seed, in virtual time.
 *
 *     static void scenario(const struct bz_os *os, void *arg)        // under bz_sim_run()
 *     {
 *         bz_sim_net_begin(os, &(struct bz_sim_net_config){.reset_one_in = 50});
 *         ... runtimes, with any keeper: blitz_config.io = "epoll", "poll" or "uring" ...
 *         struct bz_sim_net_books left = bz_sim_net_end();           // left.fds: never closed
 *     }
 *
 * What there is: stream sockets (TCP and Unix, listeners, pairs), sets of descriptors with edges,
 * poll(2), pipes and counters to kick with, and rings. So the keepers that ship run on it as they are,
 * and so does all that stands on them. What there is not: datagrams, descriptors as cargo, files.
 *
 * What the seed decides, beside who runs: how much a connection holds (a few bytes to a hundred), how
 * long bytes, ends, acknowledgements, edges and completions are under way, what arrives together; in
 * which order events and completions are told and how many at once; whether a ready half is told of for
 * nothing, a wait is interrupted, a write is cut short though there is room, a completion beats the
 * request that would have cancelled it; how large a ring's queues are. All that is what a system may
 * do. Connections are reset and refused only if the configuration says so.
 *
 * The network is a thread of the simulation: things arrive at points of choice like any other, and when
 * nothing is under way and everybody sleeps, that is a deadlock, and found.
 *
 * A call on a descriptor that is not open is never what the driver means: it ends the program, with the
 * number and the call.
 */
#ifndef BZ_IO_SIM_NET_H
#define BZ_IO_SIM_NET_H

#include "base/compiler.h"
#include "os/os.h"

struct bz_sim_net_config {
    unsigned fds;           /* 0: as many as there are; else descriptors run out after so many */
    unsigned reset_one_in;  /* 0: never; else a connection is reset at every n-th arrival */
    unsigned refuse_one_in; /* 0: never; else every n-th connect is refused */
    unsigned busy_one_in;   /* 0: never; else a ring refuses while completions wait for room */
    bool is_calm;           /* nothing for nothing, nothing cut short, no delays: to count by */
};

/* What is left at the end. */
struct bz_sim_net_books {
    unsigned fds;     /* descriptors that are open */
    unsigned files;   /* what is behind them, and in lines of listeners */
    unsigned flights; /* operations that rings have */
    uint64_t calls;   /* made in all */
    uint64_t told;    /* edges and completions */
    uint64_t resets;  /* connections */
};

/*
 * From here on bz_sys is simulated. From a simulated thread, before the first runtime. What an earlier
 * run that ended badly has left is forgotten.
 * Returns: 0, or why there is no thread or memory.
 */
BZ_MUST_USE int bz_sim_net_begin(const struct bz_os *os, const struct bz_sim_net_config *config);
/* ... and the system's own again. From the thread that began, after the last runtime. */
struct bz_sim_net_books bz_sim_net_end(void);

/* As they are now. */
struct bz_sim_net_books bz_sim_net_books(void);

#endif
