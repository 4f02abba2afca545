/*
 * io.c - operations on files: tasks, threads and futures that wait for them. reap.c delivers their completion.
 *
 * By readiness, an operation is a loop: try; if it must wait, wait until a try is worthwhile; try again.
 * The wait is a request (park/request.h), under the file's lock. A blocking call drives it from a stack, a
 * future from a poll. To enter is to register with the backend. It checks once more whether a try is
 * worthwhile: an edge may have come since the try, and it will not come again. A deadline or a cancel
 * takes the registration back. Nothing has been done then, because the task itself makes the system call
 * when it resumes. So bytes are never read for a reader that has left, and only the reader ever uses its buffer.
 *
 * Rejected: the machine that hears of readiness makes the call for the task. It saves nothing on one
 * proc, and on several it keeps work on one proc that thieves could share.
 *
 * A file joins the poll of the proc on which a task first waits for it. Its completed operations
 * resume their tasks there, and idle workers steal them from there. A thread without a proc uses the
 * poll of proc 0.
 *
 * I1  An operation is in its file's list only between enter and its wake, its deadline or its cancel; a
 *     waiter that leaves takes the lock (wait.h, rules 1 and 2).
 */
#include "block/io.h"

#include <errno.h>
#include <limits.h>

#include "base/log.h"
#include "blitz/blocking.h"
#include "block/flight.h"
#include "block/recv.h"
#include "io/attempt.h"
#include "io/iocp.h"
#include "io/ready.h"
#include "io/sys.h"
#include "proc/batch.h"
#include "proc/enter.h"
#include "wait/wait.h"

/* ---- files ---- */

static void wake_closed(struct bz_wake *wake, void *rt)
{
    bz_io_wake(rt, wake);
}

static bool completes(const struct bz_runtime *rt)
{
    return rt->files.completes;
}

bool bz_io_completes(const struct bz_file *f)
{
    return completes(bz_io_runtime(f));
}

bool bz_io_interrupts(const struct bz_runtime *rt)
{
    return completes(rt);
}

int bz_io_refuse(void)
{
    if (bz_machine_self() == NULL)
        bz_log_once(BLITZ_LOG_WARN,
                    "net: this thread runs no task: sockets are opened and accepted in "
                    "a task (blitz_run), where waiting stops nobody");
    else
        bz_log_once(BLITZ_LOG_WARN, "net: the runtime waits for no files: its io is \"none\"");
    return -EOPNOTSUPP;
}

int bz_io_open(blitz_fd fd, unsigned flags, struct bz_file **out)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->rt->procs[0].poll.files == NULL)
        return bz_io_refuse();
    struct bz_poll *first = &m->rt->procs[0].poll; /* if it opens, all files can be waited for */
    int err = first->ops->open != NULL ? first->ops->open(first) : 0;
    if (err != 0)
        return err;
    if (completes(m->rt) && !(flags & BZ_FILE_FOREIGN))
        bz_let_block(fd); /* the kernel waits, unless the descriptor is nonblocking */
    return bz_file_open(&m->rt->files, fd, flags, out);
}

void bz_io_close(struct bz_file *f)
{
    bz_file_close(f, wake_closed, bz_io_runtime(f));
}

/* This proc's backend cannot be opened because descriptors have run out: use one that is already open. The first
 * proc's is open (bz_io_open). */
static int attach_elsewhere(struct bz_runtime *rt, struct bz_file *f, int err)
{
    for (unsigned i = 0; i < rt->proc_count && (err == -EMFILE || err == -ENFILE); i++)
        err = bz_poll_attach(&rt->procs[i].poll, f);
    return err;
}

/* Attach the file to the poll that this decision gives it, or move it there. Under the file's lock. */
static BZ_NOINLINE int listen_to(struct bz_file *f, uint32_t word)
{
    uint32_t was;
    struct bz_runtime *rt = bz_io_runtime(f);
    struct bz_machine *m = bz_enter(&was);
    struct bz_proc *here = m != NULL && m->rt == rt ? m->proc : &rt->procs[0];
    struct bz_proc *home = bz_gather_home(rt, word);
    struct bz_poll *to = &(home != NULL ? home : here)->poll;
    int err = f->poll == NULL ? bz_poll_attach(to, f) : 0;
    if (f->poll != to && f->poll != NULL)
        bz_poll_move(to, f);
    f->gathered = bz_gather_number(word);
    bz_leave(was);
    return err == 0 ? 0 : attach_elsewhere(rt, f, err);
}

/* Add a user to the file, and attach the file to a poll. Under the file's lock. */
static BZ_ALWAYS_INLINE int join(struct bz_op *op)
{
    struct bz_file *f = op->file;
    if (!bz_file_enter(f, op))
        return -EBADF;
    uint32_t word = bz_gather_word(&bz_io_runtime(f)->gather);
    if (BZ_LIKELY(f->poll != NULL && f->gathered == bz_gather_number(word)))
        return 0;
    return listen_to(f, word);
}

/* ---- the request: until a try is worthwhile ---- */

/* Enter for a blocking call (w), or for a future (NULL). */
static BZ_ALWAYS_INLINE bool enter_for(struct bz_request *r, struct bz_wait *w)
{
    struct bz_op *op = bz_io_op_of(r);
    int err = join(op);
    if (BZ_UNLIKELY(err != 0)) {
        bz_set(&r->waiter.result, err);
        return true;
    }
    if (bz_ready_wait(op))
        return true;
    bz_file_say_near(op->file, op, w, w != NULL ? w->task : NULL);
    return false;
}

static BZ_ALWAYS_INLINE bool blocking_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    return enter_for(r, r->waiter.wait);
}

static bool ready_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    if (!r->waiter.is_polled)
        return blocking_enter(r, wakes);
    if (r->waiter.state == BZ_WAITER_NOTIFIED)
        return true; /* the try uses up the notification */
    return enter_for(r, NULL);
}

/* If it was notified, another waiter is notified instead. */
static bool ready_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_wake *next = bz_wakelist_next(wakes);
    if (!bz_io_op_of(r)->is_in)
        return true; /* it never entered its file, which may be closed by now */
    bz_ready_revoke(bz_io_op_of(r), next);
    if (next->kind != BZ_WAKE_NONE)
        bz_wakelist_add(wakes);
    return true;
}

/* To enter wakes no other waiter, so there is nothing to deliver. */
static BZ_ALWAYS_INLINE void unlock_only(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_file_unlock(bz_io_op_of(r)->file);
}

/* The waker uses up the half's readiness after the claim, under the lock: see that this is done before the try. */
static BZ_ALWAYS_INLINE void ready_resumed(struct bz_request *r, bool is_early)
{
    if (BZ_LIKELY(!is_early))
        return;
    bz_io_lock(r);
    bz_file_unlock(bz_io_op_of(r)->file);
}

#define READY_REQUEST(unlock_, enter_)                                             \
    {                                                                              \
        .what = "I/O", .lock = bz_io_lock, .unlock = (unlock_), .enter = (enter_), \
        .leave = ready_leave, .is_tried = true, .resumed = ready_resumed           \
    }

const struct bz_request_ops bz_io_by_readiness = READY_REQUEST(bz_io_unlock, ready_enter);
static const struct bz_request_ops in_hook = READY_REQUEST(unlock_only, blocking_enter);

static BZ_ALWAYS_INLINE bool hook_inline(struct bz_wait *w, void *arg)
{
    return bz_request_hook_by(w, arg, &in_hook);
}

static bool hook_of_thread(struct bz_wait *w, void *arg)
{
    return hook_inline(w, arg);
}

/* The task on the next stack is about to make system calls, if it is like this one. So there is time to prefetch the task
 * after it. */
static BZ_ALWAYS_INLINE void warm_next(void)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(m->proc != NULL))
        bz_warm_next(m);
}

/* On the next stack. */
static void hook_of_task(void *wait)
{
    bz_wait_register(wait, hook_inline);
    warm_next();
}

/* ---- a receive that begins with a wait: recv.h ---- */

static BZ_ALWAYS_INLINE bool hook_short(struct bz_wait *w, void *arg)
{
    return bz_request_hook_of(w, arg, &in_hook, false);
}

/* The hook below in every other case. */
static BZ_NOINLINE void recv_hook_slowly(struct bz_wait *w, struct bz_request *request)
{
    w->arg = request;
    bz_wait_register_by(w, hook_short, false);
    warm_next();
}

/* The task was cancelled. Under the file's lock. */
static BZ_NOINLINE void recv_hook_cancelled(struct bz_wait *w, struct bz_file *f)
{
    struct bz_task *t = w->task;
    bool waits = bz_wait_publish_flagged(w);
    bz_file_unlock(f); /* last: the frame may be gone */
    if (!waits) {
        bz_trace_wake(t, t->id); /* by itself */
        bz_task_resume(t);
    }
    warm_next();
}

/* The steps of blocking_enter and bz_request_hook_of, for an operation of a handle that has not entered its file, by a task
 * without a deadline. No function is called, but at the end. */
void bz_io_recv_hook(void *wait)
{
    struct bz_recv *r = BZ_CONTAINER_OF(wait, struct bz_recv, wait);
    struct bz_wait *w = &r->wait;
    struct bz_op *op = &r->op;
    struct bz_task *t = w->task;
    struct bz_file *f = op->file;
    struct bz_half *in = &f->half[BZ_SIDE_IN];
    bz_os_delay(t->rt->os, BZ_OS_AT_PUBLISH);
    bz_waiter_init(&op->request.waiter, w, BZ_WAIT_WOKEN);
    if (BZ_UNLIKELY(!bz_file_try_lock(f))) {
        recv_hook_slowly(w, &op->request);
        return;
    }
    uint8_t number = bz_gather_number(bz_gather_word(&bz_io_runtime(f)->gather));
    if (BZ_UNLIKELY(f->generation != op->generation || f->poll == NULL || f->gathered != number ||
                    f->poll->ops->want != NULL || bz_half_is_worth_a_try(in))) {
        bz_file_unlock(f);
        recv_hook_slowly(w, &op->request);
        return;
    }
    f->users++;
    op->is_in = 1;
    op->state = BZ_OP_WAITS;
    bz_waiter_queue(&op->request.waiter, &in->waiting);
    op->request.waiter.is_parked = true;
    bz_file_say_near(f, op, w, t);
    if (BZ_UNLIKELY(!bz_wait_show_by(w, t, false))) {
        recv_hook_cancelled(w, f);
        return;
    }
    bz_file_unlock(f); /* last: the frame may be gone */
    warm_next();
}

int64_t bz_io_recv_after(struct bz_op *op, const char *what, uint32_t outcome)
{
    int err = 0;
    if (outcome < BZ_WAIT_WOKEN && bz_request_leave_now(&op->request))
        err = bz_wait_error(outcome);
    if (err == 0)
        err = bz_get(&op->request.waiter.result);
    if (err == 0)
        return bz_io_recv(op, what, BLITZ_FOREVER);
    bz_io_leave_file(op);
    return err;
}

int64_t bz_io_recv_end(struct bz_op *op, const char *what, uint32_t overs, int64_t n)
{
    struct bz_runtime *rt = bz_io_runtime(op->file);
    struct bz_wake next = {.kind = BZ_WAKE_NONE};
    bool is_done = bz_ready_end_unlock(op, BZ_OP_RECV, overs, n, &next);
    if (next.kind != BZ_WAKE_NONE)
        bz_io_wake(rt, &next);
    return is_done ? n : bz_io_recv(op, what, BLITZ_FOREVER);
}

static const struct bz_request_hooks ready_hooks = {hook_of_thread, hook_of_task, NULL};

/* Try the operation. Return true if it is done: op->result. */
static BZ_ALWAYS_INLINE bool try_now(struct bz_op *op)
{
    struct bz_wake next;
    bool is_done = bz_ready_try(op, &next);
    if (BZ_UNLIKELY(next.kind != BZ_WAKE_NONE))
        bz_io_wake(bz_io_runtime(op->file), &next);
    return is_done;
}

/* ---- fibers and threads ---- */

/* Try once, without a wait. The cached readiness says that the call would block; the kernel knows better. */
static int64_t try_once(struct bz_op *op)
{
    bz_file_lock(op->file);
    bz_half_set_ready(&op->file->half[op->side], true);
    bz_file_unlock(op->file);
    bool is_done = try_now(op);
    bz_io_leave_file(op);
    return is_done ? op->result : -ETIMEDOUT;
}

/* Wait until a try is worthwhile. Return 0, or the reason for giving up. */
static BZ_ALWAYS_INLINE int wait_for(struct bz_op *op, const char *what, blitz_deadline until)
{
    struct bz_wait w;
    op->request.ops = &bz_io_by_readiness;
    bz_wait_begin(&w, bz_io_os(op), what, until);
    bz_waiter_init(&op->request.waiter, &w, BZ_WAIT_WOKEN);
    int err = bz_request_park_by(&op->request, &w, ready_hooks, &bz_io_by_readiness);
    if (err == 0)
        err = bz_get(&op->request.waiter.result);
    if (BZ_UNLIKELY(err != 0))
        bz_io_leave_file(op);
    return err;
}

/* The same, not inline: a caller that need not wait saves fewer registers. */
static BZ_NOINLINE int wait_for_any(struct bz_op *op, const char *what, blitz_deadline until)
{
    return wait_for(op, what, until);
}

/* `code` is op->code, perhaps a constant. A receive waits often: then its wait is inline. */
static BZ_ALWAYS_INLINE int64_t run_by_readiness(struct bz_op *op, enum bz_op_code code,
                                                 const char *what, blitz_deadline until)
{
    struct bz_wake next;
    while (!bz_ready_try_as(op, code, &next)) { /* then next is empty */
        if (BZ_UNLIKELY(until == 0))
            return try_once(op);
        int err =
            __builtin_constant_p(code) ? wait_for(op, what, until) : wait_for_any(op, what, until);
        if (BZ_UNLIKELY(err != 0))
            return err;
    }
    if (BZ_UNLIKELY(next.kind != BZ_WAKE_NONE))
        bz_io_wake(bz_io_runtime(op->file), &next);
    return op->result;
}

int64_t bz_io_recv(struct bz_op *op, const char *what, blitz_deadline until)
{
    return BZ_UNLIKELY(op->file->files->completes) ? bz_flight_run(op, what, until)
                                                   : run_by_readiness(op, BZ_OP_RECV, what, until);
}

bool bz_io_call_end(struct bz_file *f, const struct bz_call *c, int64_t n, int64_t *result)
{
    struct bz_runtime *rt = bz_io_runtime(f);
    struct bz_wake next;
    *result = bz_call_outcome(n);
    bool is_done = bz_ready_call_end(f, c, *result, &next);
    if (BZ_UNLIKELY(next.kind != BZ_WAKE_NONE))
        bz_io_wake(rt, &next);
    return is_done;
}

int64_t bz_io_send(struct bz_op *op, const char *what, blitz_deadline until)
{
    struct bz_file *f = op->file;
    struct bz_call call = bz_call_of(op, BZ_OP_SEND);
    int64_t result;
    if (BZ_UNLIKELY(bz_io_fault != NULL) ||
        !bz_ready_call_begin(f, op->generation, BZ_SIDE_OUT)) /* never by completion: file.c */
        return bz_io_run(op, what, until);
    int64_t n = bz_call_make(f->fd, &call);
    bz_os_delay(f->files->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(bz_ready_call_end_usual(f, &call, n)))
        return n;
    return bz_io_call_end(f, &call, n, &result) ? result : bz_io_run(op, what, until);
}

static int attempt_call(void *arg)
{
    struct bz_op *op = arg;
    op->result = bz_attempt(op);
    return 0;
}

int64_t bz_io_run(struct bz_op *op, const char *what, blitz_deadline until)
{
    /* An operation with a generation may be too late for its file, so it must not read the file's flags. */
    bool is_disk = op->generation == 0 && (op->file->flags & BZ_FILE_DISK);
    if (is_disk) {
        (void)!blitz_blocking(attempt_call, op); /* it has a function */
        return op->result;
    }
    return completes(bz_io_runtime(op->file))
               ? bz_flight_run(op, what, until)
               : run_by_readiness(op, (enum bz_op_code)op->code, what, until);
}

/* ---- futures ---- */

static blitz_poll future_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_op *op = &bz_io_future_of(future)->op;
    if (!op->is_in && op->state == BZ_OP_DONE) /* the backend writes the state while it is in */
        return BLITZ_READY;
    bool waits = op->is_in; /* since an earlier poll */
    while (waits || !try_now(op)) {
        if (!bz_request_poll(&op->request, waker))
            return BLITZ_PENDING;
        waits = false;
        int err = bz_get(&op->request.waiter.result);
        if (err == 0)
            continue;
        bz_io_leave_file(op);
        op->result = err;
        op->state = BZ_OP_DONE;
        break;
    }
    return BLITZ_READY;
}

static void future_cancel(blitz_future *future)
{
    struct bz_op *op = &bz_io_future_of(future)->op;
    if (!op->is_in)
        return;                             /* not started, or over */
    (void)!bz_request_cancel(&op->request); /* nothing was done */
    bz_io_leave_file(op);
}

int bz_io_future_output(blitz_future *future)
{
    int64_t result = bz_io_future_of(future)->op.result;
    return result > INT_MAX ? INT_MAX : (int)result;
}

static const blitz_future_ops ready_future_ops = {
    .name = "I/O",
    .kind = BLITZ_REVOCABLE,
    .poll = future_poll,
    .cancel = future_cancel,
    .output = bz_io_future_output,
};

void bz_io_future_init(struct bz_io_future *f, struct bz_file *file, enum bz_op_code code)
{
    bz_op_init(&f->op, file, code);
    bool flies = completes(bz_io_runtime(file));
    bz_waiter_init_polled(&f->op.request.waiter);
    f->op.request.ops = flies ? &bz_flight_request : &bz_io_by_readiness;
    f->future.ops = flies ? &bz_flight_future_ops : &ready_future_ops;
}

/* ---- the polls of a runtime ---- */

static int poll_init(struct bz_poll *poll, struct bz_runtime *rt, enum bz_io_kind kind)
{
    if (kind == BZ_IO_URING)
        return bz_poll_uring_init(poll, rt->os, &rt->files);
    if (kind == BZ_IO_IOCP)
        return bz_poll_iocp_init(poll, rt->os, &rt->files);
    if (kind == BZ_IO_NONE)
        bz_poll_null_init(poll, rt->os);
    else if (kind == BZ_IO_POLL)
        bz_poll_posix_init(poll, rt->os, &rt->files);
    else if (kind == BZ_IO_KQUEUE)
        bz_poll_kqueue->init(poll, rt->os, &rt->files);
    else
        bz_poll_epoll_init(poll, rt->os, &rt->files);
    return 0;
}

static bool has_queues(void)
{
    return bz_poll_kqueue != NULL && bz_poll_kqueue->is_there();
}

static const char *name_of(enum bz_io_kind kind)
{
    static const char *const names[] = {
        [BZ_IO_BEST] = "best", [BZ_IO_NONE] = "none",   [BZ_IO_EPOLL] = "epoll",
        [BZ_IO_POLL] = "poll", [BZ_IO_URING] = "uring", [BZ_IO_KQUEUE] = "kqueue",
        [BZ_IO_IOCP] = "iocp"};
    return names[kind];
}

/* The best backend for sockets: by readiness, but where there is none. */
static enum bz_io_kind best(void)
{
    if (bz_poll_iocp_is_there())
        return BZ_IO_IOCP;
    if (bz_poll_epoll_is_there())
        return BZ_IO_EPOLL;
    return has_queues() ? BZ_IO_KQUEUE : bz_poll_posix_is_there() ? BZ_IO_POLL : BZ_IO_NONE;
}

/* Choose the best backend there is. Sockets get epoll: it is as fast as a ring for them, and does not interrupt
 * system calls (uring.c). Systems without epoll have queues of kevents. Where both are refused, use the backend that
 * needs only POSIX. The real system's descriptors cannot be waited for in simulated time. */
static enum bz_io_kind choose(const struct bz_runtime *rt)
{
    enum bz_io_kind asked = rt->is.io;
    bool is_unheard = bz_os_is_simulated() && !bz_sys->is_simulated;
    if (is_unheard || (asked == BZ_IO_EPOLL && !bz_poll_epoll_is_there()) ||
        (asked == BZ_IO_KQUEUE && !has_queues()) ||
        (asked == BZ_IO_POLL && !bz_poll_posix_is_there()) ||
        (asked == BZ_IO_IOCP && !bz_poll_iocp_is_there()))
        return BZ_IO_NONE;
    return asked != BZ_IO_BEST ? asked : best();
}

/* The reason for a backend, for statistics. */
static const char *why(const struct bz_runtime *rt, enum bz_io_kind kind)
{
    enum bz_io_kind asked = rt->is.io;
    if (kind == asked)
        return "it was asked for";
    if (asked == BZ_IO_URING)
        return "the system refuses a ring";
    return kind == BZ_IO_EPOLL    ? "it is the fastest here: the system has epoll"
           : kind == BZ_IO_KQUEUE ? "it is the fastest here: the system has kqueue"
           : kind == BZ_IO_IOCP   ? "it is the only one here: the system has completion ports"
           : kind == BZ_IO_POLL   ? "the system refuses epoll"
           : bz_os_is_simulated() ? "in simulated time there are no events of the real system"
                                  : "there is no backend for this system";
}

/* Every proc has the same backend, or none of them has one. */
static int init_all(struct bz_runtime *rt, enum bz_io_kind kind)
{
    for (unsigned i = 0; i < rt->proc_count; i++) {
        int err = poll_init(&rt->procs[i].poll, rt, kind);
        if (err == 0)
            continue;
        while (i-- > 0)
            bz_poll_fini(&rt->procs[i].poll);
        return err;
    }
    rt->files.completes = rt->procs[0].poll.ops->completes;
    rt->files.why = why(rt, kind);
    return 0;
}

int bz_io_init(struct bz_runtime *rt)
{
    enum bz_io_kind kind = choose(rt);
    bool is_missing = rt->is.io != BZ_IO_BEST && rt->is.io != BZ_IO_NONE;
    if (kind == BZ_IO_NONE && is_missing && !bz_os_is_simulated()) {
        bz_log(BLITZ_LOG_ERROR, "io = %s: the system has none", name_of(rt->is.io));
        return -ENOSYS;
    }
    bz_files_init(&rt->files, rt->os, &rt->alloc);
    int err = init_all(rt, kind);
    if (err == 0 || kind != BZ_IO_URING)
        return err;
    kind = best();
    bz_log(BLITZ_LOG_WARN, "io = uring: the system refuses a ring (error %d): using %s", -err,
           name_of(kind));
    return init_all(rt, kind);
}

void bz_io_fini(struct bz_runtime *rt)
{
    for (unsigned i = 0; i < rt->proc_count; i++)
        bz_poll_fini(&rt->procs[i].poll);
    unsigned left = bz_files_fini(&rt->files);
    if (left > 0)
        bz_log(BLITZ_LOG_WARN, "runtime %s: %u files were never closed", rt->is.name, left);
}
