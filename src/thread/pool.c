/*
 * pool.c - threads that wait for something to run.
 *
 * One lock and four lists are enough. Threads are handed out when a machine is started or a call blocks, some
 * hundred thousand times a second at the very most. The next step (a futex wake, or starting a
 * thread) costs microseconds. The last thread to fall asleep is the first to be taken: its stack is
 * the warmest. Unused threads stay at the other end of the list until their idle timeout.
 *
 * Machines and work share the threads and their limit, and machines go first. A machine without a
 * thread is a proc that stands still, and all its tasks with it; a blocking call delays one
 * task. So work gets a thread only while enough are left: for the procs whose machines
 * do not run, and a reserve for procs that are handed off from a stuck machine. Beyond that
 * work waits in a queue. A machine never waits: it takes an idle thread, or starts one, or is refused, and then
 * its caller continues with fewer machines.
 *
 * A thread that has finished its work takes work from the queue, before it goes idle. No other thread needs to
 * check the queue. Work is queued in two cases. If the limit is reached, the thread that makes room is such a thread.
 * If a thread could not be started, the threads that work already serve the queue. (If none works, the work is
 * refused: no thread would come to take it.) A thread that takes from the queue and leaves it not empty tries to
 * start another thread. So the pool asks again if the system refused threads for a moment.
 *
 * Some idle threads may be kept for future machines (bz_pool_keep): they do no work and do not leave.
 *
 * A thread that is taken is moved to `busy` by the taker, under the lock, before it is woken. A thread
 * whose idle timeout expires leaves only if it is still idle under the lock. So a thread is never both given
 * work and gone. A thread cannot join itself: it goes to `left`, and another thread joins it: the next one that
 * hands out a thread, or the next one that leaves. If many threads leave one by one, only the
 * last remains to be joined. Once fini has begun, threads do not touch the lists: fini takes them out, and joins
 * them all. The threads that work, or fini itself, do the work that is still in the queue.
 *
 * A thread that has nothing to do spins for some microseconds before it sleeps. A futex wake
 * costs both sides tens of them, and a caller that made one blocking call often makes the next at once. One
 * thread spins at a time, the one that is given work first. Each spin in vain shortens the next, until a sleep turns
 * out to have been too short to be worth it.
 *
 * The lock is held while a thread is started: the thread that joins it must know that its starter is done with it.
 *
 * Abandoning. A foreign call may never return, and would block a shutdown. Work that allows it can be
 * abandoned: its thread leaves the lists and is detached. The thread and the abandoner decide by one word
 * (fate.h) in the thread's record, which the thread then frees. An abandoned thread touches
 * neither the pool nor its lock; it has copies of the allocator and the os. Work in the queue would then wait for ever,
 * so it is refused before (bz_work.refuse). Rejected: starting a thread for each, beyond the limit, at the very end.
 *
 * A shutdown waits for the tasks, and then until no work is left. A task's work cannot come after that. Work that plain threads
 * begin could: so it is refused from the beginning of the shutdown on (is_stopping), under the lock under which the shutdown looks.
 *
 * Rejected:
 *  - a second pool for work: its threads could not become machines, nor machines' threads do
 *    work, and two limits are harder to choose than one;
 *  - detached threads for all work: they would touch a runtime that is gone.
 *
 * I1  Every thread that was started is in exactly one list, until another thread takes it out to join it.
 * I2  count is the length of idle and busy together, until fini; machines + working is that of busy.
 * I3  Work is in the queue only while some thread works, or a thread holds the lock.
 *
 * [A] rouse: given release -> rest: given acquire (handoff.h [A])   the work is filled in
 */
#include "thread/pool.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "queue/handoff.h"

struct bz_pool_thread {
    struct bz_list in;    /* one of the pool's lists; guarded by its lock */
    struct bz_pool *pool; /* constant */
    struct bz_os_thread thread;
    void (*fn)(void *arg); /* a machine, or NULL; written by the giver, [A] */
    void *arg;
    struct bz_work *work;   /* a piece of work, or NULL; likewise. Both NULL: end */
    bz_os_word given;       /* handoff.h: something to do, or an end */
    unsigned spins;         /* turns before it sleeps; private */
    bz_fate fate;           /* whether its work may be, or was, abandoned */
    const struct bz_os *os; /* constant, for an abandoned thread, like */
    blitz_allocator alloc;
};

#if defined(BZ_PLAIN)
enum { SPINS_MIN = 0, SPINS_MAX = 0 };
#else
enum { SPINS_MIN = 1, SPINS_MAX = 10 }; /* beyond that bz_os_relax yields the CPU */
#endif
#define SHORT_NS UINT64_C(20000) /* a shorter sleep was not worth it */

void bz_pool_init(struct bz_pool *pool, const struct bz_os *os, const blitz_allocator *alloc,
                  const char *name, unsigned count_max, unsigned machines)
{
    unsigned more = count_max > machines ? count_max - machines : 0;
    *pool = (struct bz_pool){.os = os,
                             .alloc = alloc,
                             .name = name,
                             .count_max = count_max,
                             .machines_min = machines,
                             .reserve = more / 2 < machines + 2 ? more / 2 : machines + 2};
    bz_atomic_init(&pool->working, 0);
    bz_atomic_init(&pool->ended, 0);
    bz_lock_init(&pool->lock);
    bz_list_init(&pool->idle);
    bz_list_init(&pool->busy);
    bz_list_init(&pool->left);
    bz_list_init(&pool->pending);
}

static struct bz_pool_thread *thread_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(in, struct bz_pool_thread, in);
}

/* ---- the counts: all of this under the lock ---- */

static void move_to(struct bz_list *list, struct bz_pool_thread *t)
{
    bz_list_remove(&t->in);
    bz_list_push_back(list, &t->in);
}

static unsigned working(struct bz_pool *pool)
{
    return bz_load_relaxed(&pool->working); /* relaxed: written under the lock */
}

static void change_working(struct bz_pool *pool, int by)
{
    bz_store_relaxed(&pool->working, working(pool) + (unsigned)by); /* relaxed: under the lock */
}

/* A piece of work is done: wake the thread that waits for that. */
static void end_work(struct bz_pool *pool)
{
    change_working(pool, -1);
    bz_store_relaxed(&pool->ended, bz_load_relaxed(&pool->ended) + 1); /* relaxed: under the lock */
    if (pool->is_awaited)
        bz_os_wake(pool->os, &pool->ended, UINT32_MAX);
}

/* True if one more thread may do work. Else the remaining threads are reserved for machines. */
static bool may_work(struct bz_pool *pool)
{
    unsigned busy = pool->machines + working(pool) + pool->kept;
    unsigned to_come =
        pool->machines < pool->machines_min ? pool->machines_min - pool->machines : 0;
    return busy + to_come + pool->reserve < pool->count_max;
}

static struct bz_work *next_work(struct bz_pool *pool)
{
    struct bz_list *in = bz_list_take_front(&pool->pending);
    return in != NULL ? BZ_CONTAINER_OF(in, struct bz_work, in) : NULL;
}

/* Assign a machine or work to an idle or new thread. */
static void assign(struct bz_pool_thread *t, void (*fn)(void *), void *arg, struct bz_work *w)
{
    t->fn = fn;
    t->arg = arg;
    t->work = w;
    bz_fate_set(&t->fate, w != NULL && w->may_abandon);
    if (w != NULL)
        w->fate = &t->fate;
    t->pool->machines += fn != NULL; /* I2 */
    change_working(t->pool, w != NULL);
    t->pool->begun += w != NULL;
}

/* Clear the assignment: it is done. */
static void unassign(struct bz_pool_thread *t)
{
    t->pool->machines -= t->fn != NULL; /* I2 */
    if (t->work != NULL)
        end_work(t->pool);
    t->fn = NULL;
    t->work = NULL;
}

/* Wake an idle thread; without an assignment it ends. */
static void rouse(struct bz_pool_thread *t)
{
    bz_handoff_give(&t->given, t->pool->os); /* [A] */
}

/* ---- starting ---- */

static void join(struct bz_pool *pool, struct bz_list *in)
{
    struct bz_pool_thread *t = thread_of(in);
    bz_os_thread_join(pool->os, &t->thread);
    bz_free(pool->alloc, t, sizeof *t);
}

static void thread_main(void *arg);

static struct bz_pool_thread *thread_new(struct bz_pool *pool)
{
    struct bz_pool_thread *t = bz_alloc(pool->alloc, sizeof *t, _Alignof(struct bz_pool_thread));
    if (t != NULL) {
        *t = (struct bz_pool_thread){
            .pool = pool, .spins = SPINS_MAX, .os = pool->os, .alloc = *pool->alloc};
        bz_atomic_init(&t->fate, BZ_FATE_FIXED);
        bz_list_init(&t->in);
        bz_atomic_init(&t->given, BZ_HANDOFF_GIVEN);
    }
    return t;
}

static void thread_free(struct bz_pool *pool, struct bz_pool_thread *t)
{
    if (t != NULL)
        bz_free(pool->alloc, t, sizeof *t);
}

static unsigned idle_count(struct bz_pool *pool)
{
    return pool->count - pool->machines - working(pool);
}

/* True if a machine, or a piece of work, would have to start a thread now. Under the lock. Queued
 * work needs none. */
static bool needs_thread(struct bz_pool *pool, bool is_work)
{
    return idle_count(pool) <= pool->kept && pool->count < pool->count_max && !pool->is_closing &&
           (!is_work || may_work(pool));
}

/* The pool's name and a number, so that threads can be told apart in ps and in dumps. */
static void name_thread(struct bz_pool *pool, char name[BZ_OS_NAME_MAX])
{
    char number[8];
    size_t length = (size_t)snprintf(number, sizeof number, "-%u", (pool->started + 1) % 100000);
    size_t room = strnlen(pool->name, BZ_OS_NAME_MAX - 1 - length);
    memcpy(name, pool->name, room);
    memcpy(name + room, number, length + 1);
}

/* Under the lock: start the spare thread with fn(arg) or w, if there is one and the limit allows
 * it. On success *spare is NULL. */
static int start(struct bz_pool *pool, struct bz_pool_thread **spare, void (*fn)(void *), void *arg,
                 struct bz_work *w, const struct bz_os_thread **out)
{
    char name[BZ_OS_NAME_MAX];
    struct bz_os_thread_opts opts = {.name = name};
    struct bz_pool_thread *t = *spare;
    if (pool->count == pool->count_max)
        return -EAGAIN;
    if (t == NULL)
        return -ENOMEM;
    assign(t, fn, arg, w);
    if (out != NULL)
        *out = &t->thread;
    move_to(&pool->busy, t);
    name_thread(pool, name);
    int err = bz_os_thread_start(pool->os, &t->thread, &opts, thread_main, t);
    if (err == 0) {
        pool->started++;
        pool->count++; /* I2 */
        *spare = NULL;
        return 0;
    }
    bz_list_remove(&t->in);
    pool->machines -= fn != NULL; /* undo: it did not start */
    change_working(pool, -(w != NULL));
    pool->begun -= w != NULL;
    return err;
}

/* Under the lock: give fn(arg) or w to an idle thread, or to the spare one. Idle threads that are
 * kept for machines do no work. */
static int hand_out(struct bz_pool *pool, struct bz_pool_thread **spare, void (*fn)(void *),
                    void *arg, struct bz_work *w, const struct bz_os_thread **out)
{
    struct bz_list *last = bz_list_last(&pool->idle);
    if (last == NULL || (w != NULL && idle_count(pool) <= pool->kept))
        return start(pool, spare, fn, arg, w, out);
    struct bz_pool_thread *t = thread_of(last);
    assign(t, fn, arg, w);
    if (out != NULL)
        *out = &t->thread;
    move_to(&pool->busy, t);
    rouse(t);
    return 0;
}

/* Take the lock. If a thread will be needed, allocate it first, without the lock: the allocator may
 * be user code. */
static struct bz_pool_thread *lock_with_spare(struct bz_pool *pool, bool is_work)
{
    struct bz_pool_thread *spare = NULL;
    bz_lock_take(&pool->lock, pool->os);
    if (needs_thread(pool, is_work)) {
        bz_lock_drop(&pool->lock, pool->os);
        spare = thread_new(pool);
        bz_lock_take(&pool->lock, pool->os);
    }
    return spare;
}

/* Drop the lock, free an unused spare, and join one thread that has left. */
static void unlock_with_spare(struct bz_pool *pool, struct bz_pool_thread *spare)
{
    struct bz_list *gone = pool->is_closing ? NULL : bz_list_take_front(&pool->left);
    bz_lock_drop(&pool->lock, pool->os);
    thread_free(pool, spare);
    if (gone != NULL)
        join(pool, gone);
}

/* ---- handing out ---- */

int bz_pool_run(struct bz_pool *pool, void (*fn)(void *arg), void *arg,
                const struct bz_os_thread **out)
{
    struct bz_pool_thread *spare = lock_with_spare(pool, false);
    int err = pool->is_closing ? -ESHUTDOWN : hand_out(pool, &spare, fn, arg, NULL, out);
    unlock_with_spare(pool, spare);
    return err;
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Start a thread that runs an empty machine function and goes idle at once. */
int bz_pool_keep(struct bz_pool *pool)
{
    struct bz_pool_thread *spare = thread_new(pool);
    bz_lock_take(&pool->lock, pool->os);
    int err = 0;
    if (pool->is_closing)
        err = -ESHUTDOWN;
    else if (idle_count(pool) <= pool->kept)
        err = start(pool, &spare, nothing, NULL, NULL, NULL);
    pool->kept += err == 0;
    unlock_with_spare(pool, spare);
    return err;
}

void bz_pool_unkeep(struct bz_pool *pool)
{
    bz_lock_take(&pool->lock, pool->os);
    BZ_ASSERT(pool->kept > 0);
    pool->kept--;
    bz_lock_drop(&pool->lock, pool->os);
}

/* Under the lock: give the first queued work to a thread, if allowed and possible. */
static int serve(struct bz_pool *pool, struct bz_pool_thread **spare)
{
    if (!may_work(pool))
        return -EAGAIN;
    struct bz_work *w = next_work(pool);
    int err = hand_out(pool, spare, NULL, NULL, w, NULL);
    if (err != 0)
        bz_list_push_front(&pool->pending, &w->in);
    return err;
}

int bz_pool_work(struct bz_pool *pool, struct bz_work *w)
{
    struct bz_pool_thread *spare = lock_with_spare(pool, true);
    int err = -ESHUTDOWN;
    bz_list_init(&w->in);
    if (!pool->is_closing && !(pool->is_stopping && w->is_independent)) {
        bz_list_push_back(&pool->pending, &w->in);
        err = serve(pool, &spare);
        if (err != 0 && working(pool) > 0)
            err = 0; /* a working thread will take it */
        if (err != 0)
            bz_list_remove(&w->in); /* I3: it is still there, since no thread works */
    }
    unlock_with_spare(pool, spare);
    return err;
}

void bz_pool_stop(struct bz_pool *pool)
{
    bz_lock_take(&pool->lock, pool->os);
    pool->is_stopping = true;
    bz_lock_drop(&pool->lock, pool->os);
}

bool bz_pool_withdraw(struct bz_pool *pool, struct bz_work *w)
{
    bz_lock_take(&pool->lock, pool->os);
    bool may = bz_list_is_linked(&w->in);
    bz_list_remove(&w->in);
    bz_lock_drop(&pool->lock, pool->os);
    return may;
}

/* ---- a thread ---- */

/* Leave after the idle timeout. Return false if the thread was given something meanwhile, or is
 * kept. */
static bool leave(struct bz_pool *pool, struct bz_pool_thread *t)
{
    struct bz_list *before = NULL;
    bz_lock_take(&pool->lock, pool->os);
    bool may = !bz_handoff_is_given(&t->given) && idle_count(pool) > pool->kept;
    if (may) {
        before = bz_list_take_front(&pool->left);
        move_to(&pool->left, t);
        pool->count--; /* I2 */
    }
    bz_lock_drop(&pool->lock, pool->os);
    if (before != NULL)
        join(pool, before);
    return may;
}

/* Spin for a while. True if the thread was given something. */
static bool spin(struct bz_pool *pool, struct bz_pool_thread *t)
{
    for (unsigned round = 0; round < t->spins; round++) {
        if (bz_handoff_is_given(&t->given)) { /* [A] */
            t->spins = SPINS_MAX;
            return true;
        }
        bz_os_relax(pool->os, round);
    }
    t->spins = t->spins > SPINS_MIN ? t->spins - 1 : SPINS_MIN;
    bz_handoff_doze(&t->given);
    return false;
}

/* Sleep until work arrives. Return false if the idle timeout expires. */
static bool fall_asleep(struct bz_pool *pool, struct bz_pool_thread *t)
{
    uint64_t since = bz_os_now(pool->os), until = since + BZ_POOL_IDLE_NS;
    bz_os_delay(pool->os, BZ_OS_AT_SLEEP);
    while (!bz_handoff_sleep(&t->given, pool->os, until)) { /* [A] */
        if (leave(pool, t))
            return false;
        until = bz_os_now(pool->os) + BZ_POOL_IDLE_NS; /* it is kept, or was given something */
    }
    if (bz_os_now(pool->os) - since < SHORT_NS)
        t->spins = SPINS_MAX;
    return true;
}

/* Rest until there is something to do. Return false if the thread must end. */
static bool rest(struct bz_pool *pool, struct bz_pool_thread *t, bool may_spin)
{
    if (!(may_spin && spin(pool, t)) && !fall_asleep(pool, t))
        return false;
    return t->fn != NULL || t->work != NULL;
}

/* Under the lock: go idle. One idle thread spins, the one that is given work first; the others
 * sleep. Return true if it is this one. */
static bool lie_down(struct bz_pool *pool, struct bz_pool_thread *t)
{
    struct bz_list *last = pool->idle.prev, *at = &pool->idle;
    /* relaxed: a guess */
    if (last != at && bz_load_relaxed(&thread_of(last)->given) == BZ_HANDOFF_AWAKE)
        at = last; /* before it; else at the end */
    bool may_spin = at == &pool->idle && SPINS_MAX > 0;
    bz_handoff_rest(&t->given, may_spin);
    bz_list_remove(&t->in);
    bz_list_push_back(at, &t->in);
    return may_spin;
}

/* Under the lock, after a thread has finished: take the next queued work, if allowed. Some thread
 * must keep working as long as work is queued: I3. */
static void take_next(struct bz_pool *pool, struct bz_pool_thread *t)
{
    unassign(t);
    if (!bz_list_is_empty(&pool->pending) &&
        (may_work(pool) || working(pool) == 0 || pool->is_closing))
        assign(t, NULL, NULL, next_work(pool));
}

/* Work is queued: try to start a thread again. */
static void try_again(struct bz_pool *pool)
{
    struct bz_pool_thread *spare = lock_with_spare(pool, true);
    if (!bz_list_is_empty(&pool->pending) && !pool->is_closing)
        (void)!serve(pool, &spare);
    unlock_with_spare(pool, spare);
}

/* Get the next thing to run: from the queue, or given during the rest. Return false if the thread
 * must end. */
static bool go_on(struct bz_pool *pool, struct bz_pool_thread *t)
{
    bz_lock_take(&pool->lock, pool->os);
    take_next(pool, t);
    bool has_work = t->work != NULL, may_rest = !has_work && !pool->is_closing;
    bool is_more = has_work && !bz_list_is_empty(&pool->pending) && may_work(pool);
    bool may_spin = may_rest && lie_down(pool, t);
    bz_lock_drop(&pool->lock, pool->os);
    if (is_more)
        try_again(pool);
    return has_work || (may_rest && rest(pool, t, may_spin));
}

/* End an abandoned thread. The pool is gone, or will be. */
static void leave_for_good(struct bz_pool_thread *t)
{
    const struct bz_os *os = t->os;
    blitz_allocator alloc = t->alloc;
    for (unsigned round = 0; !bz_fate_is_gone(&t->fate); round++)
        bz_os_relax(os, round);
    struct bz_os_thread thread = t->thread;
    bz_free(&alloc, t, sizeof *t);
    bz_os_thread_quit(os, &thread);
}

static void thread_main(void *arg)
{
    struct bz_pool_thread *t = arg;
    do {
        bz_fate_begin(&t->fate);
        if (t->fn != NULL)
            t->fn(t->arg);
        else
            t->work->run(t->work);
        if (bz_fate_is_abandoned(&t->fate)) {
            leave_for_good(t);
            return;
        }
    } while (go_on(t->pool, t));
}

/* ---- abandoning ---- */

bool bz_work_is_wanted(struct bz_work *w)
{
    return bz_fate_come_back(w->fate);
}

/* Under the lock: abandon the work of one thread and return the thread; NULL if there is none. *is_starting: a thread is
 * on its way to such work. */
static struct bz_pool_thread *take_abandoned(struct bz_pool *pool, bool *is_starting)
{
    *is_starting = false;
    BZ_LIST_FOR_EACH (node, &pool->busy) {
        struct bz_pool_thread *t = thread_of(node);
        bool starts = bz_fate_is_starting(&t->fate);
        *is_starting |= starts;
        if (starts || !bz_fate_take(&t->fate))
            continue;
        bz_list_remove(&t->in);
        pool->count--; /* I2 */
        end_work(pool);
        return t;
    }
    return NULL;
}

/* Take work out of the queue that may be refused; NULL: there is none. */
static struct bz_work *take_refused(struct bz_pool *pool)
{
    struct bz_work *w = NULL;
    bz_lock_take(&pool->lock, pool->os);
    BZ_LIST_FOR_EACH (node, &pool->pending) {
        if (BZ_CONTAINER_OF(node, struct bz_work, in)->refuse == NULL)
            continue;
        bz_list_remove(node);
        w = BZ_CONTAINER_OF(node, struct bz_work, in);
        break;
    }
    bz_lock_drop(&pool->lock, pool->os);
    return w;
}

unsigned bz_pool_abandon(struct bz_pool *pool)
{
    unsigned count = 0;
    bool is_starting;
    struct bz_work *w;
    if (pool->os->thread_detach == NULL)
        return 0;
    while ((w = take_refused(pool)) !=
           NULL) /* first, or a thread that ends takes the next one: I3 */
        w->refuse(w);
    for (unsigned round = 0;; round++) {
        bz_lock_take(&pool->lock, pool->os);
        struct bz_pool_thread *t = take_abandoned(pool, &is_starting);
        bz_lock_drop(&pool->lock, pool->os);
        if (t != NULL) {
            bz_os_thread_detach(pool->os, &t->thread);
            bz_fate_let_go(&t->fate);
            count++;
        } else if (is_starting) {
            bz_os_relax(pool->os, round);
        } else {
            return count;
        }
    }
}

/* ---- the end ---- */

/* Under the lock: take any thread to join, and tell it to end. */
static struct bz_list *take_any(struct bz_pool *pool)
{
    struct bz_list *in = bz_list_take_front(&pool->idle);
    if (in != NULL)
        rouse(thread_of(in));
    if (in == NULL)
        in = bz_list_take_front(&pool->left);
    return in != NULL ? in : bz_list_take_front(&pool->busy);
}

void bz_pool_fini(struct bz_pool *pool)
{
    struct bz_list *in;
    do {
        bz_lock_take(&pool->lock, pool->os);
        pool->is_closing = true;
        in = take_any(pool);
        bz_lock_drop(&pool->lock, pool->os);
        if (in != NULL)
            join(pool, in);
    } while (in != NULL);
    BZ_ASSERT(bz_list_is_empty(&pool->pending)); /* I3: the last working thread emptied it */
}

/* One check, and the word to wait on before the next. Return the amount of work running or
 * queued. */
static unsigned look_for_work(struct bz_pool *pool, uint32_t *out_ended)
{
    bz_lock_take(&pool->lock, pool->os);
    unsigned left = working(pool) + (unsigned)bz_list_check(&pool->pending);
    *out_ended = bz_load_relaxed(&pool->ended); /* relaxed: written under the lock */
    pool->is_awaited = true;
    bz_lock_drop(&pool->lock, pool->os);
    return left;
}

bool bz_pool_is_quiet(struct bz_pool *pool)
{
    bz_lock_take(&pool->lock, pool->os);
    bool is_quiet = working(pool) == 0 && bz_list_is_empty(&pool->pending);
    bz_lock_drop(&pool->lock, pool->os);
    return is_quiet;
}

int bz_pool_await_quiet(struct bz_pool *pool, uint64_t until, unsigned *out_left)
{
    uint32_t ended;
    bz_os_delay(pool->os, BZ_OS_AT_SLEEP);
    while ((*out_left = look_for_work(pool, &ended)) > 0)
        if (bz_os_wait(pool->os, &pool->ended, ended, until) == -ETIMEDOUT)
            return -ETIMEDOUT;
    return 0;
}

struct bz_pool_figures bz_pool_figures(struct bz_pool *pool)
{
    bz_lock_take(&pool->lock, pool->os);
    struct bz_pool_figures f = {.threads = pool->count,
                                .idle = idle_count(pool),
                                .pending = (unsigned)bz_list_check(&pool->pending),
                                .begun = pool->begun};
    bz_lock_drop(&pool->lock, pool->os);
    return f;
}

void bz_pool_check(struct bz_pool *pool)
{
    bz_lock_take(&pool->lock, pool->os);
    size_t idle = bz_list_check(&pool->idle), busy = bz_list_check(&pool->busy);
    size_t pending = bz_list_check(&pool->pending);
    bz_list_check(&pool->left);
    BZ_CHECK(pool->count == idle + busy, "pool: %u threads, but %zu idle and %zu busy", pool->count,
             idle, busy);
    BZ_CHECK(busy == pool->machines + working(pool), "pool: %zu busy, but %u machines, %u working",
             busy, pool->machines, working(pool));
    BZ_CHECK(pending == 0 || working(pool) > 0, "pool: %zu in the line, and nobody works", pending);
    bz_lock_drop(&pool->lock, pool->os);
}
