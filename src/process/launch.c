/*
 * launch.c - carry out a command.
 *
 * Everything that can fail before the child exists fails here, with words: the list of paths, the environment, files
 * and pipes. io/start_process.h does the rest from a finished plan.
 *
 * Descriptors that a start opens are close-on-exec, and closed here afterwards: those of the child always, ours if the
 * start fails. The child's ends of pipes block, as programs expect of their standard streams. Ours do not.
 *
 * The start blocks its thread until the exec. It is announced as a blocking call, so the monitor can move the proc.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "block/blocking.h"
#include "io/attempt.h"
#include "io/raw.h"
#include "os/forked.h"
#include "process/command.h"
#include "process/process.h"

enum { MOVES_MAX = BZ_CHILD_FDS_MAX + 3 };

/* One start. */
struct start {
    const blitz_command *c;
    struct bz_wiring wiring;
    struct bz_words env, paths;
    struct bz_fd_move moves[MOVES_MAX];
    unsigned move_count;
    int theirs[MOVES_MAX]; /* to close when the child has them */
    unsigned theirs_count;
    struct {
        int target, fd;
    } ours[MOVES_MAX];
    unsigned ours_count;
    struct bz_plan plan;
    struct bz_child child;
    int target; /* of the descriptor that could not be opened */
    char default_path[256];
};

/* ---- the environment, and where the program may be ---- */

static size_t name_bytes(const char *variable)
{
    const char *end = strchr(variable, '=');
    return end != NULL ? (size_t)(end - variable) : strlen(variable);
}

static bool is_changed(const blitz_command *c, const char *variable)
{
    size_t bytes = name_bytes(variable);
    for (size_t i = 0; i < c->env.count; i++)
        if (name_bytes(c->env.at[i]) == bytes && strncmp(c->env.at[i], variable, bytes) == 0)
            return true;
    return false;
}

static bool make_env(struct start *s)
{
    bool has_room = true;
    for (char **at = bz_spawn_environ(); !s->c->clears_env && at != NULL && *at != NULL && has_room;
         at++)
        if (!is_changed(s->c, *at))
            has_room = bz_words_add(&s->env, *at);
    for (size_t i = 0; i < s->c->env.count && has_room; i++)
        if (strchr(s->c->env.at[i], '=') != NULL)
            has_room = bz_words_add(&s->env, s->c->env.at[i]);
    return has_room;
}

static const char *path_of(struct start *s)
{
    for (size_t i = 0; i < s->env.count; i++)
        if (strncmp(s->env.at[i], "PATH=", 5) == 0)
            return s->env.at[i] + 5;
    bz_spawn_default_path(s->default_path, sizeof s->default_path);
    return s->default_path;
}

/* An empty part of the path is the current directory. */
static bool make_paths(struct start *s)
{
    const char *program = s->c->args.at[0], *at = path_of(s);
    if (strchr(program, '/') != NULL)
        return bz_words_add(&s->paths, program);
    for (;;) {
        size_t bytes = strcspn(at, ":");
        if (!bz_words_add_pair(&s->paths, bytes > 0 ? at : ".", '/', program,
                               bytes > 0 ? bytes : 1))
            return false;
        if (at[bytes] == '\0')
            return true;
        at += bytes + 1;
    }
}

/* ---- descriptors ---- */

static int add_move(struct start *s, int from, int to)
{
    for (unsigned i = 0; i < s->move_count; i++)
        if (s->moves[i].to == to) {
            s->moves[i].from = from;
            return 0;
        }
    if (s->move_count == MOVES_MAX)
        return -EINVAL;
    s->moves[s->move_count++] = (struct bz_fd_move){from, to};
    return 0;
}

/* A descriptor of ours that only the child needs. */
static int give(struct start *s, int fd, int to)
{
    if (fd < 0)
        return fd;
    s->theirs[s->theirs_count++] = fd;
    return add_move(s, fd, to);
}

static void keep(struct start *s, int fd, int target)
{
    s->ours[s->ours_count].fd = fd;
    s->ours[s->ours_count++].target = target;
}

static int open_pipe(struct start *s, int target, bool to_child)
{
    int fd[2];
    int err = bz_raw_pipe(fd);
    if (err != 0)
        return err;
    bz_let_block(fd[to_child ? 0 : 1]);
    keep(s, fd[to_child ? 1 : 0], target);
    return give(s, fd[to_child ? 0 : 1], target);
}

static int open_file(struct start *s, const struct bz_child_fd *slot)
{
    enum bz_spawn_file how = slot->how == BLITZ_FILE_READ    ? BZ_SPAWN_READ
                             : slot->how == BLITZ_FILE_WRITE ? BZ_SPAWN_WRITE
                                                             : BZ_SPAWN_APPEND;
    return give(s, bz_spawn_open(s->c->paths.at[slot->path], how), slot->target);
}

/* A descriptor that is closed here is closed in the child. */
static int inherit(struct start *s, int fd)
{
    return bz_spawn->is_open(fd) ? add_move(s, fd, fd) : 0;
}

static int open_stdio(struct start *s, int target, unsigned how)
{
    switch (how) {
    case BLITZ_STDIO_NULL:
        return give(s, bz_spawn_open(NULL, BZ_SPAWN_NULL), target);
    case BLITZ_STDIO_TO_CHILD:
        return open_pipe(s, target, true);
    case BLITZ_STDIO_FROM_CHILD:
        return open_pipe(s, target, false);
    default:
        return inherit(s, target);
    }
}

static int open_pty(struct start *s)
{
    int master, slave;
    int err = bz_pty_open(&master, &slave, s->c->rows, s->c->columns);
    if (err != 0)
        return err;
    keep(s, master, 0);
    (void)give(s, slave, 0);
    (void)add_move(s, slave, 1);
    return add_move(s, slave, 2);
}

static int source_of(const struct start *s, int target)
{
    for (unsigned i = 0; i < s->move_count; i++)
        if (s->moves[i].to == target)
            return s->moves[i].from;
    return -EBADF;
}

static int open_slot(struct start *s, const struct bz_child_fd *slot)
{
    switch ((enum bz_child_fd_kind)slot->kind) {
    case BZ_CHILD_FD_STDIO:
        return open_stdio(s, slot->target, slot->how);
    case BZ_CHILD_FD_FILE:
        return open_file(s, slot);
    case BZ_CHILD_FD_FD:
        return bz_spawn->is_open(slot->fd) ? add_move(s, slot->fd, slot->target) : -EBADF;
    default:
        return 0; /* after all others */
    }
}

static bool has_slot(const blitz_command *c, int target)
{
    for (unsigned i = 0; i < c->slot_count; i++)
        if (c->slots[i].target == target)
            return true;
    return false;
}

/* The wiring comes before the command's own words: it takes the place of a slot. */
static bool is_wired(const struct start *s, int target)
{
    if (target == 0)
        return s->wiring.in >= 0 || s->wiring.has_input;
    return target == 1 ? s->wiring.out >= 0 || s->wiring.has_output
                       : target == 2 && s->wiring.has_output;
}

static int open_wired(struct start *s, int target)
{
    s->target = target;
    if (target == 0 && s->wiring.in >= 0)
        return add_move(s, s->wiring.in, 0);
    if (target == 1 && s->wiring.out >= 0)
        return add_move(s, s->wiring.out, 1);
    return open_pipe(s, target, target == 0);
}

/* 0, 1 and 2, if the command does not mention them. */
static int open_standard(struct start *s)
{
    int err = s->c->has_pty ? open_pty(s) : 0;
    for (int target = 0; target < 3 && err == 0; target++) {
        if (is_wired(s, target))
            err = open_wired(s, target);
        else if (!s->c->has_pty && !has_slot(s->c, target))
            err = inherit(s, target);
    }
    return err;
}

static int open_all(struct start *s)
{
    int err = open_standard(s);
    for (unsigned i = 0; i < s->c->slot_count && err == 0; i++) {
        const struct bz_child_fd *slot = &s->c->slots[i];
        s->target = slot->target;
        if (!is_wired(s, slot->target))
            err = open_slot(s, slot);
    }
    for (unsigned i = 0; i < s->c->slot_count && err == 0; i++) {
        const struct bz_child_fd *slot = &s->c->slots[i];
        s->target = slot->target;
        if (slot->kind != BZ_CHILD_FD_SAME || is_wired(s, slot->target))
            continue;
        int from = source_of(s, slot->fd);
        err = from < 0 ? from : add_move(s, from, slot->target);
    }
    return err;
}

/* By target, for the child. There are a few. */
static void sort_moves(struct start *s)
{
    for (unsigned i = 1; i < s->move_count; i++)
        for (unsigned j = i; j > 0 && s->moves[j].to < s->moves[j - 1].to; j--) {
            struct bz_fd_move swap = s->moves[j];
            s->moves[j] = s->moves[j - 1];
            s->moves[j - 1] = swap;
        }
}

/* ---- the start ---- */

static void make_plan(struct start *s)
{
    static char *nothing[] = {NULL};
    const blitz_command *c = s->c;
    sort_moves(s);
    s->plan = (struct bz_plan){.paths = (const char *const *)s->paths.at,
                               .argv = c->args.at,
                               .envp = s->env.at != NULL ? s->env.at : nothing,
                               .dir = c->dir.count > 0 ? c->dir.at[0] : NULL,
                               .fds = s->moves,
                               .fd_count = s->move_count,
                               .limits = c->limits,
                               .limit_count = c->limit_count,
                               .has_session = c->has_session,
                               .has_group = c->has_group && !c->has_session,
                               .has_user = c->has_user,
                               .has_tty = c->has_pty,
                               .group = c->group,
                               .uid = c->uid,
                               .gid = c->gid};
}

static int call_start(void *arg)
{
    struct start *s = arg;
    return bz_spawn->start(&s->plan, &s->child);
}

static void close_theirs(struct start *s)
{
    for (unsigned i = 0; i < s->theirs_count; i++)
        bz_raw_close(s->theirs[i]);
}

static void close_ours(struct start *s)
{
    for (unsigned i = 0; i < s->ours_count; i++)
        bz_raw_close(s->ours[i].fd);
    s->ours_count = 0;
}

/* Take our ends into the process. Those that were not taken are closed. */
static int take_ours(struct start *s, blitz_process *p)
{
    int err = 0;
    unsigned i = 0;
    for (; i < s->ours_count && err == 0; i++)
        err = bz_pipe_end_open(&p->ends[i], s->ours[i].target, s->ours[i].fd,
                               s->c->has_pty && s->ours[i].target == 0);
    for (unsigned k = err != 0 ? i - 1 : i; k < s->ours_count; k++)
        bz_raw_close(s->ours[k].fd);
    s->ours_count = 0;
    return err;
}

static int report(blitz_start_failure *failure, blitz_start_step step, int target, int err)
{
    static const char *const names[] = {"command", "open",      "process",    "session",
                                        "group",   "limit",     "descriptor", "terminal",
                                        "user",    "directory", "exec"};
    if (failure != NULL)
        *failure = (blitz_start_failure){.step = step, .target = target, .name = names[step]};
    return err;
}

static int start_in(struct start *s, blitz_start_failure *failure, blitz_process *p)
{
    if (!make_env(s) || !make_paths(s))
        return report(failure, BLITZ_START_COMMAND, -1, -ENOMEM);
    int err = open_all(s);
    if (err != 0)
        return report(failure, BLITZ_START_OPEN, s->target, err);
    make_plan(s);
    err = bz_call_here(call_start, s);
    if (err != 0)
        return report(failure, (blitz_start_step)(s->plan.step + 1), -1, err);
    p->child = s->child;
    p->kills = s->c->kills;
    return 0;
}

/* The process exists: it is begun, or killed. */
static int begin(struct start *s, blitz_start_failure *failure, blitz_process *p,
                 blitz_process **out)
{
    int err = take_ours(s, p);
    if (err != 0)
        p->kills = true;
    int unwatched = bz_process_begin(p); /* on error the process is gone */
    if (err != 0 && unwatched == 0)
        blitz_process_unref(p);
    err = err != 0 ? err : unwatched;
    if (err != 0)
        return report(failure, BLITZ_START_PROCESS, -1, err);
    *out = p;
    return 0;
}

static int refuse(const blitz_command *c, blitz_process **out)
{
    if (c == NULL || out == NULL)
        return -EINVAL;
    if (bz_is_forked()) {
        bz_forked_refuse("blitz_command_start");
        return -EOPNOTSUPP;
    }
    if (bz_machine_self() == NULL)
        return bz_io_refuse();
    return c->error;
}

int bz_command_start(const blitz_command *c, const struct bz_wiring *wiring,
                     blitz_start_failure *failure, blitz_process **out)
{
    struct start s = {.c = c, .wiring = {.in = -1, .out = -1}, .target = -1};
    int err = refuse(c, out);
    if (err != 0)
        return report(failure, BLITZ_START_COMMAND, -1, err);
    if (wiring != NULL)
        s.wiring = *wiring;
    bz_orphans_sweep();
    blitz_process *p = bz_process_new(MOVES_MAX);
    if (p == NULL)
        return report(failure, BLITZ_START_COMMAND, -1, -ENOMEM);
    err = start_in(&s, failure, p);
    close_theirs(&s);
    bz_words_drop(&s.env);
    bz_words_drop(&s.paths);
    if (err == 0)
        return begin(&s, failure, p, out);
    close_ours(&s);
    bz_process_free(p);
    return err;
}

int blitz_command_start(const blitz_command *c, blitz_start_failure *failure, blitz_process **out)
{
    return bz_command_start(c, NULL, failure, out);
}

/* ---- pipelines ---- */

/* The pipe from command i to the next one; both ends block, and close when they have been given. */
static int link_next(int fd[2])
{
    int err = bz_raw_pipe(fd);
    if (err != 0)
        return err;
    bz_let_block(fd[0]);
    bz_let_block(fd[1]);
    return 0;
}

static void undo(blitz_process **out, size_t count)
{
    while (count-- > 0) {
        (void)blitz_process_kill(out[count]);
        int err = blitz_process_wait(out[count], NULL, BLITZ_FOREVER);
        (void)err; /* a cancel: the orphans are swept later */
        blitz_process_unref(out[count]);
    }
}

static int start_linked(const blitz_command *c, bool is_last, int *in, blitz_start_failure *failure,
                        blitz_process **out)
{
    int fd[2] = {-1, -1};
    int err = is_last ? 0 : link_next(fd);
    if (err != 0)
        return report(failure, BLITZ_START_OPEN, 1, err);
    struct bz_wiring wiring = {.in = *in, .out = fd[1]};
    err = bz_command_start(c, &wiring, failure, out);
    if (fd[1] >= 0)
        bz_raw_close(fd[1]);
    if (*in >= 0)
        bz_raw_close(*in);
    *in = fd[0];
    return err;
}

int blitz_command_pipeline(const blitz_command *const *commands, size_t count,
                           blitz_start_failure *failure, blitz_process **out)
{
    int in = -1, err = 0;
    if (commands == NULL || count == 0 || out == NULL)
        return report(failure, BLITZ_START_COMMAND, -1, -EINVAL);
    size_t i = 0;
    for (; i < count && err == 0; i++)
        err = start_linked(commands[i], i + 1 == count, &in, failure, &out[i]);
    if (in >= 0)
        bz_raw_close(in);
    if (err == 0)
        return 0;
    undo(out, i - 1);
    if (failure != NULL)
        failure->index = i - 1;
    return err;
}
