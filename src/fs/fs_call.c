/*
 * fs_call.c - calls on files, made where they stop no other task.
 *
 * A call has one of three ways to run:
 *
 *   attempt   now, if it does not block: a read whose bytes are in memory. Costs the system call.
 *   in place  on the calling thread, announced to the monitor (blitz/blocking.h). If it takes long, another
 *             machine takes the proc. For calls that rarely wait: opens, stats, renames, buffered writes.
 *   away      by a ring or on a thread of the pool, while the task waits. For calls that usually wait: reads from
 *             the disk, syncs, copies, removals of trees.
 *
 * A caller that waits tries these in order. A future has no stack to be stopped on, and a poll that blocks would
 * delay the futures beside it: so a future goes away if its attempt fails. A plain thread makes the call itself.
 *
 * A call uses its caller's memory, so a future is pinned, whatever the way (bug class 15). A cancel withdraws a
 * call that waits for a thread. Otherwise it asks the ring to end the operation, or the call to stop between two
 * steps, and the future stays pending until the kernel or the thread is done. The blocking form awaits the future
 * in its frame, so it has the same guarantee.
 *
 *   step       NEXT                                   CANCEL
 *   NEW        AWAY, NAPPING, OVER                    OVER
 *   AWAY       OVER (the thread is done)              OVER if withdrawn, else AWAY, asked
 *   FLYING     NEW (more to do), OVER                 FLYING, asked
 *   NAPPING    NEW                                    OVER
 *
 * A file of the driver (io/file.h) exists for the time of one operation of a ring, as for a foreign descriptor in
 * net/fd.c: so a handle belongs to no runtime. That costs two locks beside a disk access. Rejected: a file for
 * each handle and runtime, with a table to find it.
 *
 * Rejected: in place for all. A read of a cold page holds a proc until the monitor notices, and as many reads run
 * at a time as there are procs. Rejected, too: away for all. A stat in memory takes 0.5 us, a hop to a thread and back
 * ten.
 *
 * I1  While a thread of the pool has the call, `is_done` and the waker are guarded by the lock, and the thread does
 *     not touch the future after it has dropped the lock.
 */
#include "fs/fs_call.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "blitz/blocking.h"
#include "blitz/futures.h"
#include "block/blocking.h"
#include "block/io.h"
#include "park/await.h"
#include "proc/now.h"
#include "wait/waker.h"

enum step { NEW, AWAY, FLYING, NAPPING, OVER };
enum { NAP_MIN_NS = 1000000, NAP_MAX_NS = 50000000 };

struct fs_future {
    blitz_future future;
    int64_t result;
    size_t done;
    struct bz_fs_call call;
    uint8_t step;     /* enum step */
    bool is_stopping; /* a cancel has come */
    uint32_t nap_ns;
    union {
        struct {
            struct bz_work work;
            struct bz_runtime *rt;
            struct bz_lock lock; /* guards the rest: I1 */
            bool is_done;
            blitz_waker waker;
        } pool;
        struct {
            struct bz_io_future io;
            struct bz_file *file;
        } ring;
        blitz_sleep_future nap;
    } in;
};

static_assert(sizeof(struct fs_future) <= sizeof(blitz_fs_future), "it has room");
static_assert(offsetof(struct fs_future, done) == offsetof(blitz_fs_future, done), "the same");

static struct fs_future *own(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct fs_future, future);
}

static const struct bz_fs_verb *verb_of(const struct fs_future *f)
{
    return BZ_CONTAINER_OF(f->future.ops, struct bz_fs_verb, ops);
}

bool bz_fs_is_slow(const struct bz_fs_call *c)
{
    (void)c;
    return true;
}

/* ---- reasons to stop ---- */

static int why_not(struct bz_task *t, blitz_deadline until)
{
    if (t != NULL && bz_word_is_cancelled(&t->word))
        return -ECANCELED;
    if (until != BLITZ_FOREVER && bz_has_passed(bz_os_here(), until))
        return -ETIMEDOUT;
    return 0;
}

int bz_fs_stopped(struct bz_fs_call *c)
{
    if (bz_load_relaxed(&c->is_asked)) /* relaxed: a request; it carries nothing */
        return -ECANCELED;
    return why_not(c->task, c->until);
}

/* ---- on a thread of the pool ---- */

static void away_run(struct bz_work *w)
{
    struct fs_future *f = BZ_CONTAINER_OF(w, struct fs_future, in.pool.work);
    const struct bz_os *os = f->in.pool.rt->os;
    int64_t result = verb_of(f)->run(&f->call);
    bz_lock_take(&f->in.pool.lock, os);
    blitz_waker waker = f->in.pool.waker;
    f->result = result;
    f->in.pool.is_done = true;
    bz_lock_drop(&f->in.pool.lock, os); /* the future may be gone: I1 */
    blitz_waker_wake(&waker);
}

struct in_place {
    const struct bz_fs_verb *verb;
    struct bz_fs_call *call;
    int64_t result;
};

static int run_in_place(void *arg)
{
    struct in_place *p = arg;
    p->result = p->verb->run(p->call);
    return 0;
}

/* Announce the call, and make it here. */
static int64_t make_here(const struct bz_fs_verb *verb, struct bz_fs_call *c)
{
    struct in_place p = {.verb = verb, .call = c};
    (void)bz_call_here(run_in_place, &p);
    return p.result;
}

/* Bytes that were read are not lost because of an error behind them: the next call finds it. */
static int64_t settle(const struct bz_fs_call *c, int64_t result)
{
    bool is_some = result < 0 && (c->args.flags & BZ_FS_PARTIAL) && c->args.done > 0;
    return is_some ? (int64_t)c->args.done : result;
}

static blitz_poll over(struct fs_future *f, int64_t result)
{
    f->result = settle(&f->call, result);
    f->done = f->call.args.done;
    f->step = OVER;
    return BLITZ_READY;
}

static blitz_poll go_away(struct fs_future *f, struct bz_runtime *rt, const blitz_waker *waker)
{
    f->in.pool.work = (struct bz_work){.run = away_run};
    f->in.pool.rt = rt;
    f->in.pool.is_done = false;
    f->in.pool.waker = blitz_waker_clone(waker);
    bz_lock_init(&f->in.pool.lock);
    f->step = AWAY;
    if (bz_pool_work(&rt->pool, &f->in.pool.work) == 0)
        return BLITZ_PENDING;
    blitz_waker_drop(&f->in.pool.waker);
    return over(f, make_here(verb_of(f), &f->call));
}

/* Look whether the thread is done; if not, store the newest waker. */
static blitz_poll away_poll(struct fs_future *f, const blitz_waker *waker)
{
    const struct bz_os *os = f->in.pool.rt->os;
    blitz_waker spare = blitz_waker_clone(waker); /* not under the lock: foreign code */
    bz_lock_take(&f->in.pool.lock, os);
    bool is_done = f->in.pool.is_done;
    if (!is_done) {
        blitz_waker old = f->in.pool.waker;
        f->in.pool.waker = spare;
        spare = old;
    }
    bz_lock_drop(&f->in.pool.lock, os);
    blitz_waker_drop(&spare);
    return is_done ? over(f, f->result) : BLITZ_PENDING;
}

/* ---- by a ring ---- */

/* Begin an operation of this runtime's ring. False: it has none, or not for this call. */
static bool fly(struct fs_future *f, struct bz_runtime *rt)
{
    struct bz_op op = {.code = 0};
    const struct bz_fs_verb *verb = verb_of(f);
    if (verb->for_ring == NULL || !bz_fsys->has_rings || !bz_io_interrupts(rt) ||
        !verb->for_ring(&f->call, &op))
        return false;
    int fd = blitz_file_fd(f->call.args.file);
    if (bz_io_open(fd, BZ_FILE_FOREIGN | BZ_FILE_DISK, &f->in.ring.file) != 0)
        return false;
    bz_io_future_init(&f->in.ring.io, f->in.ring.file, (enum bz_op_code)op.code);
    f->in.ring.io.op.flags = op.flags;
    f->in.ring.io.op.v.vector = op.v.vector;
    f->in.ring.io.op.v.at = op.v.at;
    f->step = FLYING;
    return true;
}

static blitz_poll flying_poll(struct fs_future *f, const blitz_waker *waker)
{
    blitz_future *io = &f->in.ring.io.future;
    if (io->ops->poll(io, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    int64_t result = bz_io_future_result(&f->in.ring.io);
    bz_io_close(f->in.ring.file);
    bool is_over = verb_of(f)->landed(&f->call, &result);
    if (is_over || f->is_stopping)
        return over(f, is_over ? result : -ECANCELED);
    f->step = NEW;
    return BLITZ_PENDING;
}

/* ---- again after a nap ---- */

static blitz_poll nap(struct fs_future *f)
{
    f->nap_ns = f->nap_ns == 0 ? NAP_MIN_NS : f->nap_ns < NAP_MAX_NS ? f->nap_ns * 2 : NAP_MAX_NS;
    blitz_sleep_until_future_init(&f->in.nap, blitz_after(f->nap_ns));
    f->step = NAPPING;
    return BLITZ_PENDING;
}

static blitz_poll napping_poll(struct fs_future *f, const blitz_waker *waker)
{
    if (f->in.nap.future.ops->poll(&f->in.nap.future, waker) == BLITZ_READY)
        f->step = NEW;
    return BLITZ_PENDING;
}

/* ---- futures ---- */

static blitz_poll begin(struct fs_future *f, const blitz_waker *waker)
{
    const struct bz_fs_verb *verb = verb_of(f);
    struct bz_machine *m = bz_machine_self();
    if (verb->attempt != NULL) {
        int64_t result = verb->attempt(&f->call);
        if (result != -EAGAIN)
            return over(f, result);
    }
    if (verb->naps)
        return nap(f);
    if (m == NULL)
        return over(f, verb->run(&f->call));
    return fly(f, m->rt) ? BLITZ_PENDING : go_away(f, m->rt, waker);
}

blitz_poll bz_fs_poll(blitz_future *future, const blitz_waker *waker)
{
    struct fs_future *f = own(future);
    uint8_t before;
    do { /* until no step follows at once */
        before = f->step;
        blitz_poll answer = before == NEW       ? begin(f, waker)
                            : before == AWAY    ? away_poll(f, waker)
                            : before == FLYING  ? flying_poll(f, waker)
                            : before == NAPPING ? napping_poll(f, waker)
                                                : BLITZ_READY;
        if (answer == BLITZ_READY)
            return BLITZ_READY;
    } while (f->step != before && f->step != AWAY);
    return BLITZ_PENDING;
}

void bz_fs_cancel(blitz_future *future)
{
    struct fs_future *f = own(future);
    f->is_stopping = true;
    bz_store_relaxed(&f->call.is_asked, true); /* relaxed: a request; it carries nothing */
    if (f->step == NEW) {
        (void)over(f, -ECANCELED);
    } else if (f->step == FLYING) {
        f->in.ring.io.future.ops->cancel(&f->in.ring.io.future);
    } else if (f->step == NAPPING) {
        f->in.nap.future.ops->cancel(&f->in.nap.future);
        (void)over(f, -ECANCELED);
    } else if (f->step == AWAY && bz_pool_withdraw(&f->in.pool.rt->pool, &f->in.pool.work)) {
        blitz_waker_drop(&f->in.pool.waker); /* no thread has it */
        (void)over(f, -ECANCELED);
    }
}

int bz_fs_output(blitz_future *future)
{
    int64_t result = own(future)->result;
    return result > INT_MAX ? INT_MAX : (int)result;
}

void bz_fs_future_begin(blitz_fs_future *future, const struct bz_fs_verb *verb,
                        const struct bz_fs_args *args)
{
    struct fs_future *f = (struct fs_future *)future;
    f->future.ops = &verb->ops;
    f->result = -ECANCELED;
    f->done = 0;
    f->call.args = *args;
    f->call.until = BLITZ_FOREVER;
    f->call.task = NULL;
    bz_atomic_init(&f->call.is_asked, false);
    f->step = NEW;
    f->is_stopping = false;
    f->nap_ns = 0;
}

void bz_fs_future_fail(blitz_fs_future *future, int err)
{
    static const struct bz_fs_verb none = BZ_FS_VERB("file", NULL, .naps = false);
    static const struct bz_fs_args nothing;
    bz_fs_future_begin(future, &none, &nothing);
    (void)over((struct fs_future *)future, err);
}

/* ---- callers that wait ---- */

/* Await the call as a future, in this frame. */
static BZ_NOINLINE int64_t await(const struct bz_fs_verb *verb, struct bz_fs_call *c,
                                 blitz_deadline until)
{
    blitz_fs_future f;
    bz_fs_future_begin(&f, verb, &c->args);
    int err = bz_await(bz_os_here(), &f.future, until);
    c->args.done = f.done;
    return err != 0 && f.result == -ECANCELED ? err : f.result;
}

int64_t bz_fs_do(const struct bz_fs_verb *verb, struct bz_fs_call *c, blitz_deadline until)
{
    struct bz_task *t = bz_task_self();
    if (verb->attempt != NULL) {
        int64_t result = verb->attempt(c);
        if (result != -EAGAIN)
            return result;
    }
    int err = why_not(t, until);
    if (err != 0)
        return settle(c, err);
    c->until = until;
    c->task = t;
    bz_atomic_init(&c->is_asked, false);
    if (verb->naps || (t != NULL && verb->is_slow != NULL && verb->is_slow(c)))
        return await(verb, c, until);
    return settle(c, t != NULL ? make_here(verb, c) : verb->run(c));
}
