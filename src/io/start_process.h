/*
 * start_process.h - start a program, reap it, signal it: a contract, as io/sys.h is one.
 *
 * All system calls for child processes go through bz_spawn: the real ones, or those of a simulation (sim/processes.h).
 * Pipes of children are descriptors of io/sys.h.
 */
#ifndef BZ_IO_START_PROCESS_H
#define BZ_IO_START_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* The steps of a start, in their order: the first one that fails is reported. */
enum bz_start_step {
    BZ_START_NONE,
    BZ_START_CLONE,
    BZ_START_SESSION,
    BZ_START_GROUP,
    BZ_START_LIMIT,
    BZ_START_FD,
    BZ_START_TTY,
    BZ_START_USER,
    BZ_START_DIR,
    BZ_START_EXEC
};

/* The child's descriptor `to` is a duplicate of the parent's `from`. */
struct bz_fd_move {
    int from, to;
};

struct bz_limit {
    int what; /* RLIMIT_... */
    uint64_t soft, hard;
};

/* All that a start needs. Everything is made before the child exists: the child allocates nothing. */
struct bz_plan {
    const char *const *paths; /* to try one after the other; ends with NULL */
    char *const *argv;
    char *const *envp;
    const char *dir;        /* NULL: the parent's */
    struct bz_fd_move *fds; /* sorted by `to`, each once; the child changes `from` */
    unsigned fd_count;
    const struct bz_limit *limits;
    unsigned limit_count;
    bool has_session, has_group, has_user;
    bool has_tty; /* descriptor 0 becomes the controlling terminal; with has_session */
    int group;    /* to join; 0: a new one */
    uint32_t uid, gid;
    /* Written by the child before it ends, if a step fails. */
    int step, error;
};

struct bz_child {
    int pid;
    int pidfd; /* -1: the system has none */
};

struct bz_child_end {
    int code;   /* -1: ended by a signal */
    int signal; /* 0: ended by itself */
    bool has_core;
    uint64_t user_ns, system_ns;
};

struct bz_spawn {
    bool is_simulated;
    /*
     * Start the program. Returns when it runs or a step has failed. Blocks the calling thread that long.
     * Returns: 0, or a negative errno with plan->step. Then there is no child.
     */
    int (*start)(struct bz_plan *plan, struct bz_child *out);
    /*
     * Reap the child if it has ended; with `stays`, only say whether it has.
     * Returns: 0, -EAGAIN (it runs), -ECHILD (other code has reaped it).
     */
    int (*reap)(const struct bz_child *c, bool stays, struct bz_child_end *out);
    /* Send a signal to the child or to the group that it leads. It was not reaped. Returns: 0, -ESRCH, -EPERM. */
    int (*kill)(const struct bz_child *c, int signal, bool is_group);
    /* True if the descriptor is open in this process. */
    bool (*is_open)(int fd);
};

extern const struct bz_spawn bz_spawn_linux;
/* The calls in use. Changed only while there is no child. */
extern const struct bz_spawn *bz_spawn;

/* ---- spawn_child.c: between the two ---- */

/* Run the plan in a child that shares the parent's memory, on a stack of its own. Does not return. */
int bz_spawn_child(void *plan);

/* A terminal pair, both ends close-on-exec; the master does not block. Returns 0 or a negative errno. */
int bz_pty_open(int *master, int *slave, unsigned rows, unsigned columns);
int bz_pty_resize(int master, unsigned rows, unsigned columns);

/* Open a file for a child: close-on-exec. Returns the descriptor or a negative errno. */
enum bz_spawn_file { BZ_SPAWN_READ, BZ_SPAWN_WRITE, BZ_SPAWN_APPEND, BZ_SPAWN_NULL };
int bz_spawn_open(const char *path, enum bz_spawn_file how);

/* The environment of this process; and the system's search path, for a process without PATH. */
char **bz_spawn_environ(void);
void bz_spawn_default_path(char *text, size_t bytes);

#endif
