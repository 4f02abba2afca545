/*
 * process.h - a process that was started, and our ends of its pipes.
 */
#ifndef BZ_PROCESS_PROCESS_H
#define BZ_PROCESS_PROCESS_H

#include "base/bz_atomic.h"
#include "base/list.h"
#include "blitz/process.h"
#include "block/io.h"
#include "io/start_process.h"
#include "os/lock.h"
#include "signal/service.h"

/* Our end of a pipe of the child. */
struct bz_pipe_end {
    int target;
    int fd; /* -1: closed */
    struct bz_file *file;
    bool is_pty;
};

/* Instead of a pidfd: a pipe that gets a byte when the child has ended. */
struct bz_stand_in {
    struct bz_hearer hearer;
    struct bz_child child;
    int read, write; /* constant; -1: none is used */
    bool is_told;    /* the hearer's */
};

struct blitz_process {
    bz_atomic(uint32_t) refs;
    struct bz_lock lock;     /* a leaf: guards the next two, and a reap or signal of the child */
    int ended;               /* -EAGAIN: it runs; 0; -ECHILD */
    struct bz_child_end end; /* if ended is 0 */
    struct bz_child child;   /* constant, as are the rest */
    struct bz_file *watched; /* the pidfd, or the stand-in: readable at the end */
    struct bz_stand_in stand_in;
    struct bz_list orphan; /* after the last unref; guarded by the lock of the orphans */
    const struct bz_os *os;
    bool kills;
    unsigned end_count;
    struct bz_pipe_end ends[]; /* of pipe.c */
};

/* Reap the child if it has ended. Returns 0 with *out (may be NULL), -EAGAIN, -ECHILD. */
int bz_process_reap(blitz_process *p, blitz_exit *out);

/* Allocate one, with its ends closed; and free it: for a start that fails. */
blitz_process *bz_process_new(unsigned ends);
void bz_process_free(blitz_process *p);
/* Watch the child, which was started. Returns 0; else the child was killed and reaped, and the process is freed. */
BZ_MUST_USE int bz_process_begin(blitz_process *p);
/* Reap processes that were given up while they ran. */
void bz_orphans_sweep(void);

/* pipe.c: take a descriptor as our end. Takes it if it succeeds. */
BZ_MUST_USE int bz_pipe_end_open(struct bz_pipe_end *e, int target, int fd, bool is_pty);
void bz_pipe_end_close(struct bz_pipe_end *e);
struct bz_pipe_end *bz_process_end(blitz_process *p, int target);
/* Read or write without waiting: bytes, 0 at the end, -EAGAIN, -errno. */
int64_t bz_pipe_end_read(struct bz_pipe_end *e, void *data, size_t bytes);

/* stand_in.c: begin before the child can have ended, with a pipe of our own; end in any case. */
BZ_MUST_USE int bz_stand_in_begin(struct bz_stand_in *s, const struct bz_child *c);
void bz_stand_in_end(struct bz_stand_in *s);

#endif
