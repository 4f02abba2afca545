/*
 * process.c - a process that runs: wait for its end, signal it, stop it.
 *
 * The end. A pidfd becomes readable when its process has ended. So a wait is a poll of the driver, and then a reap of
 * this child alone. The reap is the kernel's, once; its result stays in the process for every later wait.
 *
 * Numbers. A process keeps its number until it is reaped. A reap and a signal by number take the same lock, so no
 * signal reaches a process that has got the number later. The lock is held over these two system calls, which do not
 * block.
 *
 * A stop is a wait with two steps before it: SIGTERM, and, if the process has not ended after the grace, SIGKILL.
 * Both are one future, driven by a poll or by an await.
 *
 * Orphans. A process that was given up while it runs must be reaped, too, or it stays as a zombie. It waits in a list,
 * by its number alone, and each later start or unref asks for all in the list.
 *
 * I1  `ended` leaves -EAGAIN once, under the lock.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include "process/process.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "blitz/combine.h"
#include "io/raw.h"
#include "io/sock.h"
#include "os/signals.h"
#include "wait/waker.h"

/* ---- making and freeing ---- */

static size_t bytes_for(unsigned ends)
{
    return sizeof(blitz_process) + ends * sizeof(struct bz_pipe_end);
}

blitz_process *bz_process_new(unsigned ends)
{
    blitz_process *p =
        bz_alloc(&bz_allocator_libc, bytes_for(ends), _Alignof(struct blitz_process));
    if (p == NULL)
        return NULL;
    memset(p, 0, bytes_for(ends));
    bz_atomic_init(&p->refs, 1);
    bz_lock_init(&p->lock);
    bz_list_init(&p->orphan);
    p->os = bz_os_here();
    p->ended = -EAGAIN;
    p->child = (struct bz_child){-1, -1};
    p->stand_in.read = -1;
    p->end_count = ends;
    for (unsigned i = 0; i < ends; i++)
        p->ends[i] = (struct bz_pipe_end){.target = -1, .fd = -1};
    return p;
}

static void unwatch(blitz_process *p)
{
    if (p->watched != NULL)
        bz_io_close(p->watched);
    p->watched = NULL;
    bz_stand_in_end(&p->stand_in);
    if (p->child.pidfd >= 0)
        bz_raw_close(p->child.pidfd);
    p->child.pidfd = -1;
}

void bz_process_free(blitz_process *p)
{
    for (unsigned i = 0; i < p->end_count; i++)
        bz_pipe_end_close(&p->ends[i]);
    unwatch(p);
    bz_free(&bz_allocator_libc, p, bytes_for(p->end_count));
}

/* ---- orphans ---- */

static struct bz_lock orphans_lock = BZ_LOCK_INIT;
static struct bz_list orphans = {&orphans, &orphans}; /* guarded by orphans_lock */

void bz_orphans_sweep(void)
{
    struct bz_list ended;
    struct bz_child_end end;
    bz_list_init(&ended);
    bz_lock_take(&orphans_lock, bz_os_outside());
    for (struct bz_list *at = orphans.next, *next; at != &orphans; at = next) {
        blitz_process *p = BZ_CONTAINER_OF(at, blitz_process, orphan);
        next = at->next;
        if (bz_spawn->reap(&p->child, false, &end) == -EAGAIN)
            continue;
        bz_list_remove(at);
        bz_list_push_back(&ended, at);
    }
    bz_lock_drop(&orphans_lock, bz_os_outside());
    for (struct bz_list *at; (at = bz_list_take_front(&ended)) != NULL;)
        bz_process_free(BZ_CONTAINER_OF(at, blitz_process, orphan));
}

static void abandon(blitz_process *p)
{
    if (p->kills)
        (void)bz_spawn->kill(&p->child, SIGKILL, false);
    for (unsigned i = 0; i < p->end_count; i++)
        bz_pipe_end_close(&p->ends[i]);
    unwatch(p);
    bz_lock_take(&orphans_lock, bz_os_outside());
    bz_list_push_back(&orphans, &p->orphan);
    bz_lock_drop(&orphans_lock, bz_os_outside());
}

blitz_process *blitz_process_ref(blitz_process *p)
{
    bz_fetch_add_relaxed(&p->refs, 1); /* relaxed: the caller holds one */
    return p;
}

void blitz_process_unref(blitz_process *p)
{
    if (p == NULL || bz_fetch_sub_acqrel(&p->refs, 1) != 1) /* [A] */
        return;
    if (bz_process_reap(p, NULL) == -EAGAIN)
        abandon(p);
    else
        bz_process_free(p);
    bz_orphans_sweep();
}

/* ---- the child ---- */

/* It was started, and cannot be watched: it must not go on unseen. */
static void kill_now(blitz_process *p)
{
    p->kills = true;
    abandon(p);
    bz_orphans_sweep();
}

static int watch(blitz_process *p)
{
    int fd = p->child.pidfd;
    if (fd < 0) {
        int err = bz_stand_in_begin(&p->stand_in, &p->child);
        if (err != 0)
            return err;
        fd = p->stand_in.read;
    }
    return bz_io_open(fd, BZ_FILE_FOREIGN, &p->watched);
}

int bz_process_begin(blitz_process *p)
{
    int err = watch(p);
    if (err != 0)
        kill_now(p);
    return err;
}

int bz_process_reap(blitz_process *p, blitz_exit *out)
{
    bz_lock_take(&p->lock, p->os);
    if (p->ended == -EAGAIN)
        p->ended = bz_spawn->reap(&p->child, false, &p->end); /* I1 */
    int rc = p->ended;
    struct bz_child_end end = p->end;
    bz_lock_drop(&p->lock, p->os);
    if (rc == 0 && out != NULL)
        *out = (blitz_exit){.code = end.code,
                            .signal = end.signal,
                            .has_core = end.has_core,
                            .user_ns = end.user_ns,
                            .system_ns = end.system_ns};
    return rc;
}

static int send_to(blitz_process *p, int signal, bool is_group)
{
    if (signal < 0 || signal > BZ_SIGNAL_MAX)
        return -EINVAL;
    bz_lock_take(&p->lock, p->os);
    bool is_there = p->ended == -EAGAIN || (is_group && p->ended == 0);
    int rc = is_there ? bz_spawn->kill(&p->child, signal, is_group) : -ESRCH;
    bz_lock_drop(&p->lock, p->os);
    return rc;
}

int blitz_process_signal(blitz_process *p, int signal)
{
    return send_to(p, signal, false);
}

int blitz_process_signal_group(blitz_process *p, int signal)
{
    return send_to(p, signal, true);
}

int blitz_process_kill(blitz_process *p)
{
    return send_to(p, SIGKILL, false);
}

int blitz_process_pid(const blitz_process *p)
{
    return p->child.pid;
}

int blitz_process_try_wait(blitz_process *p, blitz_exit *e)
{
    return bz_process_reap(p, e);
}

/* ---- a wait and a stop ---- */

enum stage { WAITING, TO_TERMINATE, IN_GRACE };

struct process_future {
    blitz_future future;
    int result;
    blitz_exit exit;
    blitz_process *of;
    blitz_duration grace;
    uint8_t stage; /* enum stage */
    bool is_begun; /* the inner future is waited for */
    bool is_ready;
    bool is_stopping; /* cancelled, and pinned */
    struct bz_io_future io;
    blitz_timeout limit; /* IN_GRACE */
};

static_assert(sizeof(struct process_future) <= sizeof(blitz_process_future), "it has room");
static_assert(offsetof(struct process_future, exit) == offsetof(blitz_process_future, exit),
              "same");

static struct process_future *own(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, struct process_future, future);
}

static blitz_future *inner(struct process_future *f)
{
    return f->stage == IN_GRACE ? &f->limit.future : &f->io.future;
}

static void over(struct process_future *f, int result)
{
    f->result = result;
    f->is_ready = true;
}

/* Send a signal of a stop. The process may have ended in this moment: the reap that follows tells. */
static bool told(struct process_future *f, int signal)
{
    int rc = send_to(f->of, signal, false);
    if (rc == -EPERM)
        over(f, rc);
    return !f->is_ready;
}

static void begin(struct process_future *f)
{
    int rc = bz_process_reap(f->of, &f->exit);
    if (rc != -EAGAIN || f->is_stopping) {
        over(f, rc != -EAGAIN ? rc : -ECANCELED);
        return;
    }
    if (f->stage == TO_TERMINATE && !told(f, SIGTERM))
        return;
    bz_io_future_init(&f->io, f->of->watched, BZ_OP_POLL);
    bz_sock_poll(&f->io.op, true, false, false);
    f->is_begun = true;
    if (f->stage != TO_TERMINATE)
        return;
    f->stage = IN_GRACE;
    (void)!blitz_timeout_init(&f->limit, &f->io.future, blitz_after(f->grace));
}

/* The inner future is ready: the process has ended, or the grace is over. */
static void came(struct process_future *f)
{
    bool is_late = f->stage == IN_GRACE && f->limit.result == -ETIMEDOUT;
    int64_t result = bz_io_future_result(&f->io);
    f->is_begun = false;
    f->stage = WAITING;
    if (is_late && !f->is_stopping)
        (void)told(f, SIGKILL);
    else if (result < 0 && result != -ECANCELED)
        over(f, (int)result);
}

static blitz_poll process_poll(blitz_future *future, const blitz_waker *waker)
{
    struct process_future *f = own(future);
    while (!f->is_ready) {
        if (!f->is_begun)
            begin(f);
        if (f->is_ready)
            break;
        if (inner(f)->ops->poll(inner(f), waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        came(f);
    }
    return BLITZ_READY;
}

static void process_cancel(blitz_future *future)
{
    struct process_future *f = own(future);
    if (f->is_ready)
        return;
    f->result = -ECANCELED;
    f->is_stopping = true;
    f->is_ready = !f->is_begun;
    if (!f->is_begun)
        return;
    inner(f)->ops->cancel(inner(f));
    f->is_ready = f->io.future.ops->kind == BLITZ_REVOCABLE;
}

static int process_output(blitz_future *future)
{
    return own(future)->result;
}

static const blitz_future_ops revocable = {"process", BLITZ_REVOCABLE, process_poll, process_cancel,
                                           process_output};
static const blitz_future_ops pinned = {"process", BLITZ_PINNED, process_poll, process_cancel,
                                        process_output};

static void future_init(blitz_process_future *out, blitz_process *p, enum stage stage,
                        blitz_duration grace)
{
    struct process_future *f = (struct process_future *)out;
    f->future.ops = bz_io_completes(p->watched) ? &pinned : &revocable;
    f->result = -ECANCELED;
    f->of = p;
    f->grace = grace;
    f->stage = (uint8_t)stage;
    f->is_begun = f->is_ready = f->is_stopping = false;
}

void blitz_process_wait_future_init(blitz_process_future *f, blitz_process *p)
{
    future_init(f, p, WAITING, 0);
}

void blitz_process_stop_future_init(blitz_process_future *f, blitz_process *p, blitz_duration grace)
{
    future_init(f, p, TO_TERMINATE, grace);
}

/* A pinned future may have completed in spite of the deadline or the cancel. */
static int await(blitz_process_future *f, blitz_exit *e, blitz_deadline until)
{
    int err = blitz_await(&f->future, until);
    if (err == 0 || f->result == 0)
        err = f->result;
    if (err == 0 && e != NULL)
        *e = f->exit;
    return err;
}

int blitz_process_wait(blitz_process *p, blitz_exit *e, blitz_deadline until)
{
    blitz_process_future f;
    int rc = bz_process_reap(p, e);
    if (rc != -EAGAIN)
        return rc;
    blitz_process_wait_future_init(&f, p);
    return await(&f, e, until);
}

int blitz_process_stop(blitz_process *p, blitz_duration grace, blitz_exit *e, blitz_deadline until)
{
    blitz_process_future f;
    blitz_process_stop_future_init(&f, p, grace);
    return await(&f, e, until);
}

int blitz_exit_format(const blitz_exit *e, char *text, size_t bytes)
{
    if (e->signal == 0)
        return snprintf(text, bytes, "exit code %d", e->code);
    return snprintf(text, bytes, "%s%s", bz_signal_name(e->signal),
                    e->has_core ? ", core dumped" : "");
}
