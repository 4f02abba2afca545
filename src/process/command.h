/*
 * command.h - the content of a command: command.c builds it, launch.c carries it out.
 */
#ifndef BZ_PROCESS_COMMAND_H
#define BZ_PROCESS_COMMAND_H

#include "blitz/process.h"
#include "io/start_process.h"
#include "process/words.h"

enum { BZ_CHILD_FDS_MAX = 32, BZ_LIMITS_MAX = 16 };

enum bz_child_fd_kind { BZ_CHILD_FD_STDIO, BZ_CHILD_FD_FILE, BZ_CHILD_FD_FD, BZ_CHILD_FD_SAME };

/* The meaning of one descriptor of the child. */
struct bz_child_fd {
    int target;
    uint8_t kind; /* enum bz_child_fd_kind */
    uint8_t how;  /* blitz_stdio, or BLITZ_FILE_... */
    int fd;       /* FD: the descriptor; SAME: the other target */
    size_t path;  /* FILE: its index in `paths` */
};

struct blitz_command {
    int error;            /* the first one: 0, -EINVAL, -ENOMEM */
    struct bz_words args; /* with the program first */
    struct bz_words env;  /* NAME=value; NAME alone: removed */
    struct bz_words paths;
    struct bz_words dir; /* none, or one */
    struct bz_child_fd slots[BZ_CHILD_FDS_MAX];
    unsigned slot_count;
    struct bz_limit limits[BZ_LIMITS_MAX];
    unsigned limit_count;
    bool clears_env, has_session, has_group, has_user, has_pty, kills;
    int group;
    uint32_t uid, gid;
    unsigned rows, columns;
};

/* A change of a command for one start: the ends of a pipeline, the pipes of a capture. */
struct bz_wiring {
    int in, out;     /* descriptors for 0 and 1; -1: as the command says */
    bool has_input;  /* 0 is a pipe to the child */
    bool has_output; /* 1 and 2 are pipes from the child */
};

/* launch.c: blitz_command_start() with a wiring; NULL: none. */
BZ_MUST_USE int bz_command_start(const blitz_command *c, const struct bz_wiring *wiring,
                                 blitz_start_failure *failure, blitz_process **out);

#endif
