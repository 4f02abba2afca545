/*
 * blitz/process.h - start programs, talk to them, and wait for their end.
 *
 *     blitz_command *c;
 *     blitz_process *p;
 *     blitz_exit exit;
 *     blitz_command_new("sort", &c);
 *     blitz_command_arg(c, "-u");
 *     blitz_command_stdio(c, 0, BLITZ_STDIO_TO_CHILD);
 *     if (blitz_command_start(c, NULL, &p) == 0) {
 *         blitz_writer_write_all(blitz_process_writer(p, 0), "b\na\n", 4, NULL, BLITZ_FOREVER);
 *         blitz_process_close(p, 0);                           // sort sees the end
 *         blitz_process_wait(p, &exit, BLITZ_FOREVER);
 *         blitz_process_unref(p);
 *     }
 *     blitz_command_unref(c);
 *
 * A *command* says what to start and how; it can be started any number of times. The functions that build it return
 * nothing: the first error stays in the command, and a start returns it. A *process* is one that was started.
 *
 * A child gets the descriptors 0, 1 and 2 of this process, unless the command says otherwise, and those of the
 * command. No other descriptor, also not one that another library opens without close-on-exec at the same moment.
 * Default actions for all signals, no blocked signals; a signal that this process ignores stays ignored, except
 * SIGPIPE. The environment as it is at the start, with the command's changes.
 *
 * Whose children. blitz reaps the processes that it has started, and no others. Programs may wait for their own
 * children beside it, by their numbers. If other code reaps all children (waitpid(-1), or SIGCHLD set to SIG_IGN), a
 * wait returns -ECHILD.
 *
 * A process that is given up while it runs goes on running, and is reaped at a later start or unref; see
 * blitz_command_kill_on_unref(). All processes of a runtime must be given up before the runtime ends.
 *
 * How a wait works: by a pidfd. Where the system has none (before Linux 5.3, some sandboxes), blitz listens to SIGCHLD
 * (blitz/signal.h) while it has children; an earlier handler of it is called as well.
 */
#ifndef BLITZ_PROCESS_H
#define BLITZ_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/stream.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_command blitz_command;
typedef struct blitz_process blitz_process;

/* ---- commands ---- */

/*
 * Make a command for a program. Without a slash, the program is searched in the PATH of the child's environment. A path
 * that is not absolute is meant from the child's directory.
 * Owns:     copies the text. The command is the caller's; give it up with blitz_command_unref(), which ignores NULL.
 * Suspends: never. Call from any thread; not from two at once with one command.
 * Returns:  new: 0, -EINVAL (NULL or empty), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_command_new(const char *program, blitz_command **out);
BLITZ_API void blitz_command_unref(blitz_command *c);

/*
 * Add an argument, or several: a list that ends with NULL.
 * Owns:     copies the text.
 * Suspends: never.
 */
BLITZ_API void blitz_command_arg(blitz_command *c, const char *arg);
BLITZ_API void blitz_command_args(blitz_command *c, const char *const *args);

/*
 * Set a variable of the environment, or remove it (value NULL); or begin with an empty environment.
 * Owns:     copies the text.
 * Suspends: never.
 */
BLITZ_API void blitz_command_env(blitz_command *c, const char *name, const char *value);
BLITZ_API void blitz_command_env_clear(blitz_command *c);

/*
 * Start the program in a directory.
 * Owns:     copies the text.
 * Suspends: never.
 */
BLITZ_API void blitz_command_dir(blitz_command *c, const char *path);

typedef enum blitz_stdio {
    BLITZ_STDIO_INHERIT = 0, /* the same descriptor of this process: the default of 0, 1 and 2 */
    BLITZ_STDIO_NULL,        /* /dev/null */
    BLITZ_STDIO_TO_CHILD,    /* a pipe: this process writes, the child reads */
    BLITZ_STDIO_FROM_CHILD   /* a pipe: the child writes, this process reads */
} blitz_stdio;

enum {
    BLITZ_FILE_READ = 1,
    BLITZ_FILE_WRITE = 2,  /* made if it is not there, emptied if it is */
    BLITZ_FILE_APPEND = 4, /* made if it is not there */
};

/* Descriptors of a child are below this number, and a command sets at most 32 of them. */
#define BLITZ_PROCESS_FD_MAX 1024

/*
 * Say what the child's descriptor `target` is: 0, 1, 2 or any other. The last word counts.
 *   stdio   one of the above
 *   file    a file, opened at the start: one of BLITZ_FILE_...
 *   fd      a duplicate of a descriptor of this process, which must be open at the start and stays the caller's
 *   same    what the child's descriptor `as` is: blitz_command_same(c, 2, 1) is the shell's 2>&1
 * Owns:     copies the path.
 * Suspends: never.
 */
BLITZ_API void blitz_command_stdio(blitz_command *c, int target, blitz_stdio how);
BLITZ_API void blitz_command_file(blitz_command *c, int target, const char *path, unsigned how);
BLITZ_API void blitz_command_fd(blitz_command *c, int target, blitz_fd fd);
BLITZ_API void blitz_command_same(blitz_command *c, int target, int as);

/*
 * Give the child a terminal of its own, of that size, as descriptors 0, 1 and 2, in a session of its own. This process
 * reads and writes the other end as descriptor 0: blitz_process_reader(p, 0). The read ends (0) when the last process
 * has closed the terminal.
 * Owns:     borrows c until it returns.
 * Suspends: never.
 */
BLITZ_API void blitz_command_pty(blitz_command *c, unsigned rows, unsigned columns);

/*
 * Start the child in a process group: an existing one, or 0: a new one, that it leads. Or in a new session, which also
 * begins a group.
 * Owns:     borrows c until it returns.
 * Suspends: never.
 */
BLITZ_API void blitz_command_group(blitz_command *c, int group);
BLITZ_API void blitz_command_session(blitz_command *c);

/* A limit that is not set. */
#define BLITZ_UNLIMITED UINT64_MAX

/*
 * Set a limit of the child: one of the system's RLIMIT_ numbers. Or its user and group; it has no other groups then.
 * Owns:     borrows c until it returns.
 * Suspends: never.
 */
BLITZ_API void blitz_command_limit(blitz_command *c, int resource, uint64_t soft, uint64_t hard);
BLITZ_API void blitz_command_user(blitz_command *c, uint32_t uid, uint32_t gid);

/*
 * Kill the process (SIGKILL) if it still runs when its last reference is released.
 * Owns:     borrows c until it returns.
 * Suspends: never.
 */
BLITZ_API void blitz_command_kill_on_unref(blitz_command *c);

/* ---- starting ---- */

/* The step of a start that failed. */
typedef enum blitz_start_step {
    BLITZ_START_COMMAND = 0, /* the command itself is wrong, or there is no memory */
    BLITZ_START_OPEN,        /* a file or pipe for `target` */
    BLITZ_START_PROCESS,     /* no process: -EAGAIN (a limit), -ENOMEM, -EMFILE */
    BLITZ_START_SESSION,
    BLITZ_START_GROUP,
    BLITZ_START_LIMIT,
    BLITZ_START_FD, /* a descriptor could not be put in its place */
    BLITZ_START_TTY,
    BLITZ_START_USER,
    BLITZ_START_DIR, /* the directory */
    BLITZ_START_EXEC /* the program: -ENOENT, -EACCES, -ENOEXEC, -E2BIG ... */
} blitz_start_step;

typedef struct blitz_start_failure {
    blitz_start_step step;
    int target;       /* OPEN: the child's descriptor; else -1 */
    size_t index;     /* in a pipeline: which command */
    const char *name; /* of the step: "exec", "directory" ...; constant */
} blitz_start_failure;

/*
 * Start the command. When this returns 0 the program runs: an exec that failed is an error here.
 * Owns:     borrows the command until it returns. The process is the caller's; blitz_process_unref(). *failure (may be
 *           NULL) is written only on error.
 * Suspends: never; blocks the thread until the exec, a fraction of a millisecond. Other tasks go on. Call from a task.
 * Returns:  0, -errno of the failed step, -EOPNOTSUPP (not in a task, or in the child of a fork). *out is written only
 *           on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_command_start(const blitz_command *c,
                                                 blitz_start_failure *failure, blitz_process **out);

/*
 * Start several commands, each one's output the next one's input, as the shell's `|`. The first one's descriptor 0, the
 * last one's 1, and all others are as the commands say.
 * Owns:     as blitz_command_start(); `out` has room for `count` processes. If one cannot be started, those before it
 *           are killed and reaped.
 * Suspends: never. Call from a task.
 * Returns:  0, -EINVAL (no command), else as blitz_command_start().
 */
BLITZ_API BLITZ_MUST_USE int blitz_command_pipeline(const blitz_command *const *commands,
                                                    size_t count, blitz_start_failure *failure,
                                                    blitz_process **out);

/* ---- processes ---- */

/* How a process ended. */
typedef struct blitz_exit {
    int code;                    /* 0 to 255; -1: ended by a signal */
    int signal;                  /* the signal that ended it; 0: none */
    bool has_core;               /* the signal has left a core file */
    uint64_t user_ns, system_ns; /* CPU time, with that of the children it has reaped */
} blitz_exit;

/*
 * True if the process ended by itself with code 0.
 * Owns:     borrows *e until it returns.
 * Suspends: never.
 * Returns:  see above.
 */
static inline bool blitz_exit_is_ok(const blitz_exit *e)
{
    return e->code == 0 && e->signal == 0;
}

/*
 * Write an end as text: "exit code 3", "SIGKILL", "SIGSEGV, core dumped".
 * Owns:     writes at most `bytes` bytes, the final 0 included.
 * Suspends: never. Call from any thread.
 * Returns:  the length of the whole text, as snprintf().
 */
BLITZ_API int blitz_exit_format(const blitz_exit *e, char *text, size_t bytes);

/*
 * Add a reference, or release one; unref ignores NULL. The last release closes our ends of its pipes. It does not wait:
 * a process that still runs goes on, unless blitz_command_kill_on_unref().
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: p.
 */
BLITZ_API blitz_process *blitz_process_ref(blitz_process *p);
BLITZ_API void blitz_process_unref(blitz_process *p);

/*
 * Return the number of the process. It stays the process's own until a wait has succeeded.
 * Owns:     borrows p until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API int blitz_process_pid(const blitz_process *p);

/*
 * Wait for the end of the process. Any number of tasks and threads may wait, also after the end.
 * Owns:     *e (may be NULL) is the caller's, and written only on 0.
 * Suspends: until the end, `until`, or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED: the process still runs; -ECHILD (other code has reaped it).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_process_wait(blitz_process *p, blitz_exit *e,
                                                               blitz_deadline until);

/*
 * Check whether the process has ended.
 * Owns:     *e (may be NULL) is the caller's, and written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (it runs), -ECHILD.
 */
BLITZ_API BLITZ_MUST_USE int blitz_process_try_wait(blitz_process *p, blitz_exit *e);

/*
 * Send a signal to the process; or to every process of the group that it leads. It never reaches another process that
 * has got the same number.
 * Owns:     borrows p until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ESRCH (it has ended and was waited for; no such group), -EPERM, -EINVAL (no signal).
 */
BLITZ_API int blitz_process_signal(blitz_process *p, int signal);
BLITZ_API int blitz_process_signal_group(blitz_process *p, int signal);

/*
 * Send SIGKILL to the process.
 * Owns:     borrows p until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ESRCH, -EPERM, as blitz_process_signal().
 */
BLITZ_API int blitz_process_kill(blitz_process *p);

/*
 * Stop the process: SIGTERM, and SIGKILL if it has not ended after `grace`; then wait for its end.
 * Owns:     *e (may be NULL) is the caller's, and written only on 0.
 * Suspends: until the end, `until`, or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED: it may still run; -ECHILD, -EPERM.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_process_stop(blitz_process *p, blitz_duration grace, blitz_exit *e, blitz_deadline until);

/* A wait or a stop as a future. Revocable with epoll and poll, pinned with uring: the process goes on in any case. */
typedef struct blitz_process_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready or cancelled: what the call would return */
    blitz_exit exit;     /* when ready with 0 */
    uint64_t inside[40];
} blitz_process_future;

/*
 * Make a future of blitz_process_wait(), or of blitz_process_stop(); a stop begins with its first poll.
 * Owns:     borrows p until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_process_wait_future_init(blitz_process_future *f, blitz_process *p);
BLITZ_API void blitz_process_stop_future_init(blitz_process_future *f, blitz_process *p,
                                              blitz_duration grace);

/* ---- pipes ---- */

/*
 * Return our end of the pipe that is the child's descriptor `target`, as a stream. A target without such a pipe gives
 * a stream whose calls return -EBADF. Ending the writer closes it. Any task or thread may use the stream, one at a
 * time.
 * Owns:     borrows p for as long as they are used.
 * Suspends: never. Call from any thread.
 * Returns:  the reader, the writer.
 */
BLITZ_API blitz_reader blitz_process_reader(blitz_process *p, int target);
BLITZ_API blitz_writer blitz_process_writer(blitz_process *p, int target);

/*
 * Return the descriptor of our end: it does not block, and stays the process's. For blitz_fd_wait_future_init().
 * Owns:     *out is valid until the end is closed.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBADF (no such pipe, or closed).
 */
BLITZ_API int blitz_process_fd(blitz_process *p, int target, blitz_fd *out);

/*
 * Close our end: a child that reads sees the end, one that writes gets SIGPIPE. Ignores a target without a pipe. No
 * other task may be in a call on that end.
 * Owns:     borrows p until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_process_close(blitz_process *p, int target);

/*
 * Change the size of the terminal of blitz_command_pty(): the child gets SIGWINCH.
 * Owns:     borrows p until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBADF (no terminal).
 */
BLITZ_API int blitz_process_resize(blitz_process *p, unsigned rows, unsigned columns);

/* ---- to run a command and keep its output ---- */

typedef struct blitz_output_opts {
    const void *input; /* written to the child's descriptor 0; NULL: that is as the command says */
    size_t input_bytes;
    size_t max_bytes; /* the most bytes of each output; 0: 64 MiB */
} blitz_output_opts;

/* The two outputs end with a 0 byte that is not counted. */
typedef struct blitz_output {
    char *out, *err; /* the child's 1 and 2; blitz_output_drop() frees them */
    size_t out_bytes, err_bytes;
    blitz_exit exit;
    blitz_start_failure failure; /* if the start failed */
    size_t out_room, err_room;   /* not yours */
} blitz_output;

/*
 * Start a command, write its input and read both of its outputs at the same time, and wait for its end. If the deadline
 * or a cancel comes first, or the limit is exceeded, the process is killed and reaped.
 * Owns:     borrows the command, opts and the input until it returns. *out is written in every case: release it with
 *           blitz_output_drop(). After an error it has the bytes that came.
 * Suspends: until the child has ended and its outputs are closed, `until`, or a cancel. Call from a task.
 * Returns:  0 (whatever the exit code is); -ETIMEDOUT, -ECANCELED, -EMSGSIZE (more than max_bytes); errors of
 *           blitz_command_start() and of a read.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_command_output(const blitz_command *c,
                                                                 const blitz_output_opts *opts,
                                                                 blitz_output *out,
                                                                 blitz_deadline until);

/* Free the outputs. Ignores empty ones.
 * Owns:     takes the two outputs.
 * Suspends: never. */
BLITZ_API void blitz_output_drop(blitz_output *o);

/* The call as a future. Pinned: after a cancel it ends when the killed child was reaped. */
typedef struct blitz_output_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready or cancelled: what the call would return */
    uint64_t inside[140];
} blitz_output_future;

/*
 * Make a future of blitz_command_output(). It starts the command with its first poll, which must be in a task.
 * Owns:     borrows the command, *opts, the input and *out until it is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_command_output_future_init(blitz_output_future *f, const blitz_command *c,
                                                const blitz_output_opts *opts, blitz_output *out);

BLITZ_END_DECLS

#endif
