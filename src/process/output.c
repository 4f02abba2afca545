/*
 * output.c - run a command, and keep what it writes.
 *
 * A program that writes its input before it reads the output deadlocks when both pipes are full. So one future drives
 * all of them: it writes what fits, reads what is there, and waits for every pipe and for the end of the process at
 * once. One waker is registered with each.
 *
 * A cancel, or more output than the limit, kills the process. The pipes are then given up, because a grandchild may
 * hold them open for ever. The future ends when the process was reaped. So it is pinned, and leaves nothing behind.
 *
 * The child may close its input early: a write then fails with EPIPE, which is no error. The rest of the input is not
 * wanted.
 *
 * I1  A channel waits only while its descriptor is open.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "io/raw.h"
#include "io/sock.h"
#include "process/command.h"
#include "process/process.h"

enum { CHANNELS = 3, FIRST_ROOM = 4096, MOST = 64 << 20 };

struct channel {
    struct bz_pipe_end *end;
    bool is_waiting; /* `io` was polled, and was not ready: I1 */
    bool is_over;
    struct bz_io_future io;
};

struct output_future {
    blitz_future future;
    int result;
    const blitz_command *c;
    const blitz_output_opts *opts;
    blitz_output *out;
    size_t written; /* of the input */
    int error;      /* why the process was killed; 0: it was not */
    bool is_begun, is_ready, has_exit;
    blitz_process *p;
    struct channel channel[CHANNELS]; /* by target */
    blitz_process_future wait;
};

static_assert(sizeof(struct output_future) <= sizeof(blitz_output_future), "it has room");

static struct output_future *own(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, struct output_future, future);
}

static size_t most(const struct output_future *f)
{
    return f->opts != NULL && f->opts->max_bytes > 0 ? f->opts->max_bytes : MOST;
}

static bool has_input(const struct output_future *f)
{
    return f->opts != NULL && f->opts->input != NULL;
}

/* ---- buffers ---- */

struct buffer {
    char **data;
    size_t *bytes, *room;
};

static struct buffer buffer_of(struct output_future *f, int target)
{
    blitz_output *o = f->out;
    return target == 1 ? (struct buffer){&o->out, &o->out_bytes, &o->out_room}
                       : (struct buffer){&o->err, &o->err_bytes, &o->err_room};
}

/* Make room for another byte and the final 0, up to the limit: 0, -ENOMEM, -EMSGSIZE. */
static int make_room(struct output_future *f, struct buffer b)
{
    size_t limit = most(f) + 2; /* one byte more tells that there is more */
    if (*b.bytes + 1 < *b.room)
        return 0;
    size_t room = *b.room == 0 ? FIRST_ROOM : *b.room * 2;
    room = room < limit ? room : limit;
    char *data = bz_alloc(&bz_allocator_libc, room, 1);
    if (data == NULL)
        return -ENOMEM;
    if (*b.bytes > 0)
        memcpy(data, *b.data, *b.bytes);
    bz_free(&bz_allocator_libc, *b.data, *b.room);
    *b.data = data;
    *b.room = room;
    return 0;
}

void blitz_output_drop(blitz_output *o)
{
    bz_free(&bz_allocator_libc, o->out, o->out_room);
    bz_free(&bz_allocator_libc, o->err, o->err_room);
    memset(o, 0, sizeof *o);
}

/* ---- channels ---- */

static void channel_over(struct channel *ch)
{
    bz_pipe_end_close(ch->end);
    ch->is_over = true;
}

/* Write as much as fits. Returns 0: no room; 1: done. */
static int try_input(struct output_future *f, struct channel *ch)
{
    const char *data = f->opts->input;
    while (f->written < f->opts->input_bytes) {
        int64_t n = bz_raw_write(ch->end->fd, data + f->written, f->opts->input_bytes - f->written);
        if (n == -EAGAIN)
            return 0;
        if (n < 0)
            return n == -EPIPE ? 1 : (int)n;
        f->written += (size_t)n;
    }
    return 1;
}

/* Read as much as there is. Returns 0: no more yet; 1: the end; -errno. */
static int try_output(struct output_future *f, struct channel *ch, int target)
{
    struct buffer b = buffer_of(f, target);
    for (;;) {
        int err = make_room(f, b);
        if (err != 0)
            return err;
        int64_t n = bz_pipe_end_read(ch->end, *b.data + *b.bytes, *b.room - *b.bytes - 1);
        if (n == -EAGAIN)
            return 0;
        if (n <= 0)
            return n == 0 ? 1 : (int)n;
        *b.bytes += (size_t)n;
        if (*b.bytes > most(f)) {
            *b.bytes = most(f);
            return -EMSGSIZE;
        }
    }
}

static void stop(struct output_future *f, int error);

/* Drive a channel until it is over or waits. */
static void drive(struct output_future *f, int target, const blitz_waker *waker)
{
    struct channel *ch = &f->channel[target];
    while (!ch->is_over && f->error == 0) {
        if (!ch->is_waiting) {
            int rc = target == 0 ? try_input(f, ch) : try_output(f, ch, target);
            if (rc == 1)
                channel_over(ch);
            if (rc < 0)
                stop(f, rc);
            if (rc != 0)
                return;
            bz_io_future_init(&ch->io, ch->end->file, BZ_OP_POLL);
            bz_sock_poll(&ch->io.op, target != 0, target == 0, false);
        }
        ch->is_waiting = ch->io.future.ops->poll(&ch->io.future, waker) == BLITZ_PENDING;
        if (ch->is_waiting)
            return;
    }
}

/* Give up a channel: true when the driver has nothing of it any more. */
static bool give_up(struct channel *ch, const blitz_waker *waker)
{
    if (ch->is_waiting && ch->io.future.ops->kind == BLITZ_PINNED)
        ch->is_waiting = ch->io.future.ops->poll(&ch->io.future, waker) == BLITZ_PENDING;
    if (ch->is_waiting)
        return false;
    if (!ch->is_over)
        channel_over(ch);
    return true;
}

/* Kill the process, and ask the driver for what it has. */
static void stop(struct output_future *f, int error)
{
    if (f->error != 0)
        return;
    f->error = error;
    (void)blitz_process_kill(f->p);
    for (int i = 0; i < CHANNELS; i++) {
        struct channel *ch = &f->channel[i];
        if (!ch->is_waiting)
            continue;
        ch->io.future.ops->cancel(&ch->io.future);
        if (ch->io.future.ops->kind == BLITZ_REVOCABLE)
            ch->is_waiting = false;
    }
}

/* ---- the future ---- */

static void over(struct output_future *f, int result)
{
    f->result = result;
    f->is_ready = true;
}

static void begin(struct output_future *f)
{
    struct bz_wiring wiring = {.in = -1, .out = -1, .has_input = has_input(f), .has_output = true};
    int err = bz_command_start(f->c, &wiring, &f->out->failure, &f->p);
    f->is_begun = true;
    if (err != 0) {
        over(f, err);
        return;
    }
    for (int i = 0; i < CHANNELS; i++) {
        f->channel[i] = (struct channel){.end = bz_process_end(f->p, i)};
        f->channel[i].is_over = (i == 0 && !has_input(f)) || f->channel[i].end == NULL;
    }
    blitz_process_wait_future_init(&f->wait, f->p);
}

static void finish(struct output_future *f)
{
    for (int target = 1; target < CHANNELS; target++) {
        struct buffer b = buffer_of(f, target);
        if (*b.data != NULL)
            (*b.data)[*b.bytes] = '\0';
    }
    f->out->exit = f->wait.exit;
    over(f, f->error != 0 ? f->error : f->wait.result);
    blitz_process_unref(f->p);
}

static blitz_poll output_poll(blitz_future *future, const blitz_waker *waker)
{
    struct output_future *f = own(future);
    bool is_done = true;
    if (!f->is_begun && !f->is_ready)
        begin(f);
    if (f->is_ready)
        return BLITZ_READY;
    for (int i = 0; i < CHANNELS; i++) {
        drive(f, i, waker);
        is_done &= f->channel[i].is_over;
    }
    if (f->error != 0) {
        is_done = true;
        for (int i = 0; i < CHANNELS; i++)
            is_done &= f->channel[i].end == NULL || give_up(&f->channel[i], waker);
    }
    if (!f->has_exit)
        f->has_exit = f->wait.future.ops->poll(&f->wait.future, waker) == BLITZ_READY;
    if (!is_done || !f->has_exit)
        return BLITZ_PENDING;
    finish(f);
    return BLITZ_READY;
}

static void output_cancel(blitz_future *future)
{
    struct output_future *f = own(future);
    if (f->is_ready)
        return;
    if (f->is_begun)
        stop(f, -ECANCELED);
    else
        over(f, -ECANCELED);
}

static int output_output(blitz_future *future)
{
    return own(future)->result;
}

void blitz_command_output_future_init(blitz_output_future *out, const blitz_command *c,
                                      const blitz_output_opts *opts, blitz_output *to)
{
    static const blitz_future_ops ops = {"command output", BLITZ_PINNED, output_poll, output_cancel,
                                         output_output};
    struct output_future *f = (struct output_future *)out;
    *f = (struct output_future){
        .future = {&ops}, .result = -ECANCELED, .c = c, .opts = opts, .out = to};
    if (to != NULL)
        memset(to, 0, sizeof *to);
    if (c == NULL || to == NULL)
        over(f, -EINVAL);
}

/* The await cancels at the deadline, and says why. */
int blitz_command_output(const blitz_command *c, const blitz_output_opts *opts, blitz_output *out,
                         blitz_deadline until)
{
    blitz_output_future f;
    blitz_command_output_future_init(&f, c, opts, out);
    int err = blitz_await(&f.future, until);
    return err != 0 && f.result == -ECANCELED ? err : f.result;
}
