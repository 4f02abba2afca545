/*
 * network.h - a simulated network: the system calls of io/sys.h on a seed, in virtual time.
 *
 *     static void scenario(const struct bz_os *os, void *arg)        // under bz_sim_run()
 *     {
 *         bz_sim_net_begin(os, &(struct bz_sim_net_config){.reset_one_in = 50});
 *         ... runtimes, with any backend: blitz_runtime_opts.io = "epoll", "kqueue", "poll" or "uring" ...
 *         struct bz_sim_net_books left = bz_sim_net_end();           // left.fds: never closed
 *     }
 *
 * It simulates stream sockets (TCP and Unix, listeners, pairs), edge-triggered epoll, poll(2),
 * pipes and eventfds, and rings. So the real backends and everything above them run on it
 * unchanged. It does not simulate datagrams, descriptor passing and files.
 *
 * Besides the schedule, the seed decides:
 * - how many bytes a connection holds (a few to a hundred), and a ring's queue sizes
 * - the delays of bytes, ends, acknowledgements, edges and completions, and what arrives together
 * - the order of events and completions, and how many are reported at once
 * - spurious events, interrupted waits, writes that are short although there is room
 * - completions that come before the request to cancel them
 * A real system may do all of this. Connections are reset, refused and stopped in one direction only if
 * the configuration says so.
 *
 * The network is a thread of the simulation: data arrives at decision points. If no event is
 * pending and all threads sleep, the simulation reports a deadlock.
 *
 * A call on a descriptor that is not open is a bug of the driver: it aborts with the number and the
 * call.
 */
#ifndef BZ_SIM_NETWORK_H
#define BZ_SIM_NETWORK_H

#include "base/compiler.h"
#include "os/os.h"

struct bz_sim_net_config {
    unsigned fds;           /* 0: no limit; else the maximum number of descriptors */
    unsigned reset_one_in;  /* 0: never; else a connection is reset at every n-th arrival */
    unsigned refuse_one_in; /* 0: never; else every n-th connect is refused */
    unsigned busy_one_in;   /* 0: never; else a ring refuses while completions wait for room */
    unsigned
        stall_one_in; /* 0: never; else one direction of a connection stands at every n-th arrival */
    uint64_t
        stall_ns; /* ... for so long at most. Its bytes and its end arrive later; a reset does not wait */
    bool is_calm; /* no spurious events, short writes or delays: for counting */
};

/* Open resources at the end. */
struct bz_sim_net_books {
    unsigned fds;     /* descriptors that are open */
    unsigned files;   /* files, and connections in accept queues */
    unsigned flights; /* operations in flight in rings */
    uint64_t calls;   /* system calls made */
    uint64_t told;    /* edges and completions */
    uint64_t resets;  /* connections */
    uint64_t stalls;  /* of a direction of a connection */
};

/*
 * Simulate bz_sys from here on. From a simulated thread, before the first runtime. Discards the
 * state of an earlier failed run.
 * Returns: 0, or an errno if there is no thread or memory.
 */
BZ_MUST_USE int bz_sim_net_begin(const struct bz_os *os, const struct bz_sim_net_config *config);
/* Restore the real system calls. From the same thread, after the last runtime. */
struct bz_sim_net_books bz_sim_net_end(void);

/*
 * Other rates of resets, refusals and stalls from here on. A direction that stands goes on at its time. The other fields
 * of the configuration stay. From a simulated thread.
 */
void bz_sim_net_weather(const struct bz_sim_net_config *config);

/* The current counts. */
struct bz_sim_net_books bz_sim_net_books(void);

#endif
