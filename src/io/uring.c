/*
 * uring.c - the completion backend: one io_uring for each proc.
 *
 * An operation is written into the ring of the proc on which it starts, with its buffers, and is
 * then in flight. Pending entries are submitted once in each turn of the loop, when the machine
 * sleeps or polls. The completion carries the operation's address: its owner stays until it is
 * woken.
 *
 * Any thread may use the ring (ring.c), because procs move between threads. This has three consequences,
 * all seen in experiments:
 *
 *   The kernel ends an operation with -ECANCELED when the thread that submitted it exits. If no
 *   cancel was requested, the operation is submitted again, by the table below: an operation
 *   without an effect so far can be repeated. A connect continues in the kernel, so only its end is
 *   waited for.
 *
 *   While an operation is in flight, the kernel ends sleeps of the thread that submitted it. A foreign
 *   call there may return short or with EINTR. So with this backend blitz_block_in_place runs its
 *   function on a pool thread, and pool threads never submit. An unmarked call of a task must
 *   handle EINTR (docs/networking.md). From Linux 5.19 on a thread that runs is not interrupted. If it
 *   is in user code for long, its completions come with its next system call or the next timer tick;
 *   the signal by which the monitor rotates hogs does as well.
 *
 *   Two threads may sleep in one ring, and one may take the completion that would have woken the
 *   other. Only a kick is meant for a particular thread: a thread that takes a kick while others
 *   sleep there kicks again.
 *
 * Receives get a provided buffer when data arrives (provided.c): an idle connection has none. After a
 * receive that emptied its stream the next one expects to wait, and the kernel does not try it
 * first. That saves 130 ns of 7.6 us, less if the guess is wrong.
 *
 * No operation is multishot. A multishot accept takes connections that were not requested, and a
 * closed listener would have to handle them. A multishot receive takes bytes that the next call
 * would have to find.
 *
 * On a non-blocking descriptor the kernel returns -EAGAIN at once. So our descriptors are blocking
 * (block/io.c sets them), and foreign ones are polled first. Operations that rings lack (several
 * messages at once) are polled for, and then called.
 *
 * One call a turn. A machine that sleeps submits by the same call, without the lock (ring.c
 * explains why this is safe). A machine that finds completions, or was roused, submits and
 * continues. Before it spins for work it submits first, so a spin without work is followed by a
 * second call, which only sleeps. In plain builds submitting and sleeping are two calls. With one
 * connection a message takes two calls instead of three. With many, whose sends complete as they
 * are submitted, there was one call before: there the CPU time of a message is unchanged, within
 * the noise.
 *
 * Rejected: sends made directly by a system call, if there is room for them. That saves a park and a completion, but
 * adds a system call to each message. With 64 connections a message took 1.3 calls instead of 0.2, and 11.4 us of CPU
 * instead of 9.3. (Medians of four interleaved runs on a busy machine, bench-net echo-64.)
 *
 * Everything else here is under the lock. It is held over a call that submits and does not sleep.
 *
 * The kernel may refuse an enter, for now (short of memory, EAGAIN, EBUSY) or for good (EPERM,
 * EACCES, ENOSYS: a filter that came after the start). In both cases a kick cannot be submitted. So
 * each ring in which a thread sleeps polls an eventfd, the *bell*, which is written only then. For
 * now: pending entries stay pending, entries that find the ring full are kept beside it (`later`),
 * and the machine tries again after a pause that doubles from 0.1 to 6.4 ms.
 *   For good: the ring is *denied*. One line is logged. Operations that the kernel has not taken,
 *   and new ones, fail with -EIO.
 *   Operations in flight still complete, because the kernel needs no call for that; the machine
 *   checks every 5 ms. They cannot be cancelled through the ring. So a cancel shuts the socket
 *   down, which completes them. A poll of a descriptor that is no socket is abandoned instead: it
 *   has no buffer, and its later completion is dropped (`lost`). A read or write of a pipe in
 *   flight ends when the kernel ends it.
 *
 * I1  poll->attached counts the operations in flight.
 * I2  An operation in flight is in its file's list, and its file is in use.
 *
 * poll->own is made at init, before any other thread reads it.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "io/attempt.h"
#include "io/sys.h"
#include "io/uring_own.h"

unsigned bz_uring_submissions = 256, bz_uring_completions = 1024;

/* Pauses of a machine whose ring is refused. */
enum { PAUSE_MIN_NS = 100000, PAUSE_DOUBLINGS = 6, DENIED_NS = 5000000 };

/* ---- submissions ---- */

/* A machine that sleeps on the word is not woken here: a caller on another machine rouses it anyway
 * (block/flight.c). */
static int uring_submit(struct bz_poll *poll, struct bz_op *op)
{
    op->has_own = 0;
    int err = bz_uring_begin(poll, op, false);
    if (err != 0)
        return err;
    op->poll = poll;
    op->is_cancelled = 0;
    op->state = BZ_OP_IN_FLIGHT;
    bz_list_push_back(&op->file->flying, &op->request.waiter.in); /* I2 */
    bz_fetch_add_relaxed(&poll->attached, 1); /* I1; relaxed: a sleeping machine is roused */
    return 0;
}

static void uring_cancel(struct bz_poll *poll, struct bz_op *op)
{
    op->is_cancelled = 1;
    bz_uring_request_end(poll, op);
}

/* The kernel wakes one accept for a connection. If that one is just being cancelled it takes
 * nothing, and the connection stays in the backlog beside sleeping accepts (bug class 20). So those
 * are cancelled without a request and submitted again: then they check the backlog. Under the
 * file's lock. */
static void restart_accepts(struct bz_file *f)
{
    struct pollfd line = {.fd = f->fd, .events = POLLIN};
    if (bz_list_is_empty(&f->flying) || bz_sys->poll(&line, 1, 0) != 1)
        return;
    for (struct bz_list *l = f->flying.next; l != &f->flying; l = l->next) {
        struct bz_op *op = bz_op_of(l);
        if (op->code == BZ_OP_ACCEPT && !op->is_cancelled)
            bz_uring_request_end(op->poll, op);
    }
}

/* ---- gathering completions ---- */

/* Under the lock. */
static void kick_locked(struct bz_poll *poll)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    bool is_in =
        own->is_denied || bz_ring_has(&own->ring, BZ_URING_KICK); /* a refused kick will do */
    struct bz_uring_sqe *sqe = is_in ? NULL : bz_uring_put(poll);
    if (sqe != NULL) {
        sqe->opcode = BZ_URING_OP_NOP;
        sqe->user_data = BZ_URING_KICK;
    }
    bz_uring_hand_in(poll);
}

/* The bell was written, or the thread that submitted its poll has ended, or the kernel is too old.
 * Under the lock. */
static void heard_bell(struct bz_uring_own *own, const struct bz_uring_cqe *c)
{
    uint64_t count;
    (void)!bz_sys->read(own->bell, &count, sizeof count);
    own->has_bell = (c->flags & BZ_URING_CQE_MORE) != 0;
    own->rings_once |= c->res == -EINVAL;
}

/* Have the ring poll the bell. Under the lock. */
static void hang_bell(struct bz_poll *poll)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    struct bz_uring_sqe *sqe = own->bell >= 0 && !own->has_bell ? bz_ring_put(&own->ring) : NULL;
    if (sqe == NULL)
        return;
    sqe->opcode = BZ_URING_OP_POLL_ADD;
    sqe->fd = own->bell;
    sqe->op_flags = POLLIN;
    sqe->len = own->rings_once
                   ? 0
                   : BZ_URING_POLL_MULTI; /* it cannot be polled again while enters are refused */
    sqe->user_data = BZ_URING_BELL;
    own->has_bell = true;
}

/* True if the receive found no provided buffer. */
static bool found_no_buffer(const struct bz_op *op, int64_t result)
{
    return result == -ENOBUFS && op->code == BZ_OP_RECV && !op->has_own;
}

/* Gather the result of an operation for delivery. Its owner stays until it is woken, and the fields
 * read here are constant until then. Under the ring's lock, not under the file's. */
static void note(struct bz_uring_own *own, const struct bz_uring_cqe *c, struct bz_reaped *reaped)
{
    if (c->flags & BZ_URING_CQE_BUFFER)
        bz_provided_copy(&own->provided, c, bz_uring_op_of(c->user_data));
    if (BZ_UNLIKELY(c->res == -ENOBUFS) && found_no_buffer(bz_uring_op_of(c->user_data), c->res))
        bz_provided_more(&own->provided);
    reaped->entry[reaped->count].key = c->user_data;
    reaped->entry[reaped->count].more = c->flags;
    reaped->entry[reaped->count++].what = c->res;
}

static void add(struct bz_reaped *reaped, uint64_t key, int64_t what)
{
    reaped->entry[reaped->count].key = key;
    reaped->entry[reaped->count].more = 0;
    reaped->entry[reaped->count++].what = what;
}

/* True if it is the completion of an abandoned poll. Under the lock. */
static bool was_lost(struct bz_uring_own *own, uint64_t key)
{
    for (size_t i = 0; i < own->lost_count; i++)
        if (own->lost[i].key == key && own->lost[i].is_told) {
            own->lost[i] = own->lost[--own->lost_count];
            return true;
        }
    return false;
}

/* Gather the operations that were kept for later and end there. Under the lock. Returns whether there was any. */
static bool gather_later(struct bz_uring_own *own, struct bz_reaped *reaped)
{
    size_t left = 0, i = 0;
    for (; i < own->later_count && reaped->count < BZ_HARVEST_MAX; i++) {
        const struct bz_later *l = &own->later[i];
        if (!l->is_over && !own->is_denied)
            own->later[left++] = *l;
        else if (l->what != BZ_LATER_END)
            add(reaped, (uint64_t)(uintptr_t)l->op, l->is_over ? -ECANCELED : -EIO);
    }
    bool is_any = left < i;
    while (i < own->later_count)
        own->later[left++] = own->later[i++];
    own->later_count = left;
    return is_any;
}

/* Gather the operations that fail because the ring is denied. Under the lock. Returns whether there was any. */
static bool gather_failed(struct bz_poll *poll, struct bz_reaped *reaped)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    unsigned before = reaped->count;
    const struct bz_uring_sqe *sqe;
    for (size_t i = 0; i < own->lost_count && reaped->count < BZ_HARVEST_MAX; i++)
        if (!own->lost[i].is_told) {
            own->lost[i].is_told = true;
            add(reaped, own->lost[i].key, -ECANCELED);
        }
    while (own->inside == 0 && reaped->count < BZ_HARVEST_MAX &&
           (sqe = bz_ring_unput(&own->ring)) != NULL)
        if (sqe->user_data > BZ_URING_BELL)
            add(reaped, sqe->user_data, -EIO);
    return reaped->count > before;
}

/* Take completions. Under the lock. Returns whether there were any. */
static bool gather(struct bz_poll *poll, struct bz_reaped *reaped)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    bool is_kicked = false, is_any = false;
    if (bz_ring_has_more(&own->ring) && !own->is_denied)
        bz_ring_fetch(&own->ring);
    for (const struct bz_uring_cqe *c;
         reaped->count < BZ_HARVEST_MAX && (c = bz_ring_peek(&own->ring)) != NULL;) {
        is_any = true;
        is_kicked |= c->user_data == BZ_URING_KICK || c->user_data == BZ_URING_BELL;
        if (c->user_data == BZ_URING_BELL)
            heard_bell(own, c);
        else if (c->user_data != BZ_URING_KICK && c->user_data != BZ_URING_ASKED &&
                 !was_lost(own, c->user_data))
            note(own, c, reaped);
        bz_ring_seen(&own->ring);
    }
    if (BZ_UNLIKELY(own->later_count > 0))
        is_any |= gather_later(own, reaped);
    if (BZ_UNLIKELY(own->is_denied))
        is_any |= gather_failed(poll, reaped);
    if (is_kicked && own->inside > 0)
        kick_locked(poll); /* it may be meant for another sleeper that has not seen it */
    return is_any;
}

enum nap { SLEEP, LOOK, REFUSED };

/* Prepare a sleep that submits the pending entries in the same call. Under the lock. LOOK: do not
 * sleep now. REFUSED: do not sleep in the ring. */
static enum nap lie_down(struct bz_poll *poll, struct bz_reaped *reaped, struct bz_ring_nap *nap)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    bool must = BZ_RING_IS_PLAIN || own->later_count > 0; /* submit before the sleep */
    bool is_in = !must || (bz_uring_submit(poll) == 0 && own->later_count == 0);
    bool is_roused = bz_load_acquire(&poll->roused) != 0; /* poll.h [A] */
    if (gather(poll, reaped) || is_roused) {
        (void)!bz_uring_submit(poll); /* refused: still pending, for the next turn */
        return LOOK;
    }
    if (!is_in || own->is_denied)
        return REFUSED;
    hang_bell(poll);
    *nap = bz_ring_show(&own->ring);
    own->inside++;
    return SLEEP;
}

/* How long to sleep on the word instead of in the ring. Under the lock. */
static uint64_t pause_of(const struct bz_uring_own *own)
{
    unsigned doublings = own->refusals < PAUSE_DOUBLINGS ? own->refusals : PAUSE_DOUBLINGS;
    return own->is_denied ? (uint64_t)DENIED_NS : (uint64_t)PAUSE_MIN_NS << doublings;
}

static int sleep_in_ring(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    struct bz_ring_nap nap;
    bool is_timed = until_ns != BZ_OS_FOREVER;
    uint64_t now = is_timed ? bz_os_now(poll->os) : 0;
    struct bz_uring_own *own = bz_uring_own_of(poll);
    bz_uring_lock(poll);
    enum nap how = lie_down(poll, reaped, &nap);
    bz_uring_unlock(poll);
    if (how == LOOK)
        return 0;
    if (how == SLEEP) {
        nap.is_for_ever = !is_timed;
        nap.left_ns = until_ns > now ? until_ns - now : 0;
        int err = bz_ring_sleep(&nap);
        bz_uring_lock(poll);
        own->inside--;
        if (BZ_UNLIKELY(err != 0))
            bz_uring_was_refused(own, err);
        else
            own->refusals = 0;
        bool is_any = gather(poll, reaped);
        bz_uring_unlock(poll);
        if (BZ_LIKELY(err == 0 || is_any))
            return is_timed && reaped->count == 0 ? -ETIMEDOUT : 0;
    }
    bz_uring_lock(poll);
    uint64_t pause = pause_of(own);
    bz_uring_unlock(poll);
    bz_sleep_instead(poll, pause, until_ns);
    return is_timed ? -ETIMEDOUT : 0;
}

static int uring_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    int err;
    if (bz_poll_is_used(poll))
        err = sleep_in_ring(poll, until_ns, reaped);
    else
        err = bz_os_wait(poll->os, &poll->roused, 0, until_ns);
    return err == -ETIMEDOUT && bz_os_now(poll->os) >= until_ns ? err : 0;
}

static void uring_reap(struct bz_poll *poll, struct bz_reaped *reaped)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    if (!bz_lock_try(&own->lock))
        return;                   /* another thread is gathering */
    (void)!bz_uring_submit(poll); /* no call if nothing is pending */
    gather(poll, reaped);
    bz_uring_unlock(poll);
}

static void uring_kick(struct bz_poll *poll)
{
    bz_os_wake(poll->os, &poll->roused, UINT32_MAX); /* rouse a machine that sleeps on the word */
    bz_uring_lock(poll);
    if (bz_uring_own_of(poll)->inside > 0)
        kick_locked(poll);
    bz_uring_unlock(poll);
}

/* ---- results ---- */

enum verdict { OVER, AGAIN, POLL_FIRST };

/* The result of a connect that was interrupted, or was already in progress. */
static int64_t connect_outcome(struct bz_op *op)
{
    int err = 0;
    socklen_t bytes = sizeof err;
    if (bz_sys->getsockopt(op->file->fd, SOL_SOCKET, SO_ERROR, &err, &bytes) != 0)
        return -errno;
    return -err;
}

/* The file is ready: complete or resubmit the operation. */
static enum verdict after_poll(struct bz_op *op, int64_t *result)
{
    if (*result < 0)
        return OVER;
    if (op->code == BZ_OP_CONNECT) {
        *result = connect_outcome(op);
        return OVER;
    }
    if (op->code == BZ_OP_RECVMMSG || op->code == BZ_OP_SENDMMSG) {
        *result = bz_attempt(op);
        return *result == -EAGAIN ? POLL_FIRST : OVER;
    }
    return AGAIN;
}

/* By opcode: how to continue an operation that ended without a cancel request. */
static enum verdict look(struct bz_op *op, bool was_polled, int64_t *result)
{
    bool is_unrequested =
        *result == -ECANCELED && !op->is_cancelled && !bz_file_is_closing(op->file);
    if (was_polled)
        return is_unrequested ? POLL_FIRST : op->is_cancelled ? OVER : after_poll(op, result);
    if (op->code == BZ_OP_CONNECT) {
        bool is_under_way =
            *result == -EINPROGRESS || *result == -EALREADY || *result == -EINTR || is_unrequested;
        if (*result == -EISCONN && op->is_begun)
            *result = 0;
        op->is_begun = 1;
        if (is_under_way && op->is_cancelled)
            *result = -ECANCELED;
        return is_under_way && !op->is_cancelled ? POLL_FIRST : OVER;
    }
    bool is_dry = found_no_buffer(op, *result);
    bool is_undone = is_dry || is_unrequested || *result == -EINTR || *result == -EAGAIN;
    if (!is_undone)
        return OVER; /* recv, send, accept, read and write return their progress */
    if (op->is_cancelled) {
        *result = -ECANCELED;
        return OVER;
    }
    op->has_own |= is_dry;
    return *result == -EAGAIN ? POLL_FIRST : AGAIN;
}

/* The stream is empty: the next receive will have to wait. Under the file's lock. */
static bool left_more(const struct bz_op *op, bool was_polled, int64_t result, uint64_t flags)
{
    return was_polled || op->code != BZ_OP_RECV || bz_attempt_left_more(op, BZ_OP_RECV, result) ||
           (flags & BZ_URING_CQE_NONEMPTY);
}

static bool is_denied(struct bz_poll *poll)
{
    bz_uring_lock(poll);
    bool is = bz_uring_own_of(poll)->is_denied;
    bz_uring_unlock(poll);
    return is;
}

static void uring_deliver(struct bz_poll *poll, struct bz_reaped *reaped,
                          struct bz_wake wakes[BZ_SIDES])
{
    uint64_t key = reaped->entry[reaped->at].key;
    struct bz_op *op = bz_uring_op_of(key);
    struct bz_file *f = op->file; /* I2 */
    int64_t result = reaped->entry[reaped->at].what;
    bz_file_lock(f);
    bool was_polled = (key & BZ_URING_POLLED) != 0;
    if (op->side == BZ_SIDE_IN)
        bz_half_set_ready(&f->half[BZ_SIDE_IN],
                          left_more(op, was_polled, result, reaped->entry[reaped->at].more));
    enum verdict v = look(op, was_polled, &result);
    if (v == OVER && op->is_cancelled && was_polled && result >= 0)
        result = -ECANCELED; /* it was ready, and nothing has been done yet */
    if (v == OVER && op->is_cancelled && result <= 0 && is_denied(poll))
        result = -ECANCELED; /* a result of the shutdown that ended it */
    int err = v != OVER ? bz_uring_begin(poll, op, v == POLL_FIRST) : 0;
    if (v != OVER && err == 0) {
        bz_file_unlock(f);
        return;
    }
    bz_list_remove(&op->request.waiter.in);
    bz_fetch_sub_relaxed(&poll->attached, 1); /* I1; relaxed: a wait without events is harmless */
    if (result == -ECANCELED && op->code == BZ_OP_ACCEPT && !bz_file_is_closing(f))
        restart_accepts(f);
    if (result == -ECANCELED && bz_file_is_closing(f))
        result = -EBADF;
    op->result = err != 0 ? err : result;
    op->state = BZ_OP_DONE;
    unsigned is_in = op->is_in;
    op->is_in = 0;
    (void)!bz_waiter_claim(&op->request.waiter, 0,
                           &wakes[0]); /* from here on the owner owns the operation */
    bz_file_leave_unlock(f, &(struct bz_op){.is_in = (uint8_t)is_in});
}

/* ---- the backend ---- */

static int uring_attach(struct bz_poll *poll, struct bz_file *f)
{
    (void)poll;
    (void)f;
    return 0;
}

static void uring_fini(struct bz_poll *poll)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    bz_ring_close(&own->ring);
    bz_provided_fini(&own->provided);
    if (own->bell >= 0)
        bz_sys->close(own->bell);
    if (own->lost != NULL)
        bz_free(poll->files->alloc, own->lost, own->lost_room * sizeof *own->lost);
    if (own->later != NULL)
        bz_free(poll->files->alloc, own->later, own->later_room * sizeof *own->later);
    bz_free(poll->files->alloc, own, sizeof *own);
    poll->ops = NULL;
}

static const struct bz_poll_ops uring_ops = {
    .name = "uring",
    .completes = true,
    .wait = uring_wait,
    .reap = uring_reap,
    .deliver = uring_deliver,
    .attach = uring_attach,
    .submit = uring_submit,
    .cancel = uring_cancel,
    .kick = uring_kick,
    .fini = uring_fini,
};

const struct bz_provided *bz_uring_provided(struct bz_poll *poll)
{
    return &bz_uring_own_of(poll)->provided;
}

uint32_t bz_uring_pending(struct bz_poll *poll)
{
    bz_uring_lock(poll);
    uint32_t pending = bz_ring_pending(&bz_uring_own_of(poll)->ring);
    bz_uring_unlock(poll);
    return pending;
}

int bz_poll_uring_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    struct bz_uring_own *own = bz_alloc(files->alloc, sizeof *own, _Alignof(struct bz_uring_own));
    if (own == NULL)
        return -ENOMEM;
    int err = bz_ring_open(&own->ring, bz_uring_submissions, bz_uring_completions);
    if (err != 0) {
        bz_free(files->alloc, own, sizeof *own);
        return err;
    }
    bz_lock_init(&own->lock);
    memset(&own->provided, 0, sizeof own->provided);
    own->inside = own->refusals = 0;
    own->is_denied = own->has_bell = own->rings_once = false;
    own->bell =
        bz_sys->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); /* -1: only a refused kick needs it */
    own->lost = NULL;
    own->lost_count = own->lost_room = 0;
    own->later = NULL;
    own->later_count = own->later_room = 0;
    poll->ops = &uring_ops;
    poll->os = os;
    poll->files = files;
    bz_atomic_init(&poll->own, own);
    bz_atomic_init(&poll->attached, 0);
    bz_atomic_init(&poll->heir, NULL);
    bz_atomic_init(&poll->roused, 0);
    return 0;
}
