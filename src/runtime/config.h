/*
 * config.h - the settings of a runtime, from the user's config, the environment and the defaults.
 */
#ifndef BZ_CONFIG_H
#define BZ_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "blitz/runtime.h"
#include "os/os.h"
#include "task/stack.h"

/* Backends of io/poll.h. The order of preference is io.c's. */
enum bz_io_kind {
    BZ_IO_BEST,
    BZ_IO_NONE,
    BZ_IO_EPOLL,
    BZ_IO_POLL,
    BZ_IO_URING,
    BZ_IO_KQUEUE,
    BZ_IO_IOCP
};

struct bz_settings {
    unsigned procs, procs_max;
    unsigned threads_max; /* more than procs_max */
    enum bz_stack_class stack_class;
    enum bz_stack_guards guards;
    uint64_t tasks_max;     /* 0: any number */
    unsigned burning_max;   /* hogs that may have a thread of their own */
    bool is_plain;          /* asked to do without fast paths */
    bool dumps_on_quit;     /* SIGQUIT is answered with a dump */
    bool reports_overflows; /* a fault in the guard of a stack is explained: task/overflow.h */
    uint64_t trace_records; /* a thread keeps, if BLITZ_TRACE is set; 0: the default */
    bool no_rotation;       /* hogs do not take turns: turns.h */
    enum bz_io_kind io;     /* which backend; io.c */
    blitz_clock_mode clock; /* of its timers and tasks */
    char name[BZ_OS_NAME_MAX];
    blitz_thread_fn thread_start, thread_stop; /* may be NULL */
    void *thread_ctx;
};

/*
 * Read the settings. An error is logged: which variable or field, its value, and what would be right.
 * Returns: 0, -EINVAL.
 */
BZ_MUST_USE int bz_settings_read(struct bz_settings *out, const struct bz_os *os,
                                 const blitz_runtime_opts *config);

/* Log every unknown variable of that environment whose name begins with BLITZ_. */
void bz_settings_judge_environment(const char *const *all);

#endif
