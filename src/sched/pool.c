/*
 * pool.c - threads that wait to be given something to run.
 *
 * A lock and three lists: threads are handed out when a machine is started or a call blocks, a few
 * thousand times a second at the very most, and what follows (a futex wake, or starting a thread)
 * costs microseconds. The last thread to fall asleep is the first to be taken: its stack is the
 * warmest, and those that nobody needs stay at the other end until their time is over.
 *
 * A thread that is taken is moved to `busy` by the taker, under the lock, before it is woken; one
 * whose time is over leaves only if the lock finds it idle still. So a thread is never both given
 * work and gone. A thread cannot join itself: it goes to `left`, and the next who comes by joins it.
 * Once fini has begun, threads leave the lists alone: it takes them out, and joins them all.
 *
 * The lock is held while a thread is started: who joins it must know that its starter is through.
 *
 * Rejected: joining by the thread that times out next to another (one more party to the end of the
 * pool), and detached threads (os/os.h has none: they would outlive their code).
 *
 * I1  Every thread that was started is in exactly one list, until somebody takes it out to join it.
 * I2  count is the length of idle and busy together, until fini.
 *
 * [A] run: given release -> rest: given acquire   fn and arg are written before they are called
 */
#include "sched/pool.h"

#include "base/alloc.h"

struct bz_pool_thread {
    struct bz_list in;    /* one of the pool's lists; guarded by its lock */
    struct bz_pool *pool; /* constant */
    struct bz_os_thread thread;
    void (*fn)(void *arg); /* written by who gives it work, [A] */
    void *arg;
    bz_os_word given; /* 1: there is work, or an end */
};

void bz_pool_init(struct bz_pool *pool, const struct bz_os *os, const blitz_allocator *alloc,
                  const char *name, unsigned count_max)
{
    *pool = (struct bz_pool){.os = os, .alloc = alloc, .name = name, .count_max = count_max};
    bz_lock_init(&pool->lock);
    bz_list_init(&pool->idle);
    bz_list_init(&pool->busy);
    bz_list_init(&pool->left);
}

/* ---- a thread ---- */

static void move_to(struct bz_list *list, struct bz_pool_thread *t)
{
    bz_list_remove(&t->in);
    bz_list_push_back(list, &t->in);
}

/* Its work is done. True if it may wait for more. */
static bool lie_down(struct bz_pool *pool, struct bz_pool_thread *t)
{
    bz_lock_take(&pool->lock, pool->os);
    bool may = !pool->is_closing;
    if (may) {
        bz_store_relaxed(&t->given, 0); /* relaxed: nobody gives to one that is not idle */
        move_to(&pool->idle, t);
    }
    bz_lock_drop(&pool->lock, pool->os);
    return may;
}

/* Its time is over. True if nobody has given it anything meanwhile. */
static bool leave(struct bz_pool *pool, struct bz_pool_thread *t)
{
    bz_lock_take(&pool->lock, pool->os);
    bool may = bz_load_relaxed(&t->given) == 0; /* relaxed: written under the lock */
    if (may) {
        move_to(&pool->left, t);
        pool->count--; /* I2 */
    }
    bz_lock_drop(&pool->lock, pool->os);
    return may;
}

/* Sleep until there is work. False: it is to end. */
static bool rest(struct bz_pool *pool, struct bz_pool_thread *t)
{
    uint64_t until = bz_os_now(pool->os) + BZ_POOL_IDLE_NS;
    bz_os_delay(pool->os, BZ_OS_AT_SLEEP);
    while (bz_load_acquire(&t->given) == 0) /* [A] */
        if (bz_os_wait(pool->os, &t->given, 0, until) == -ETIMEDOUT && leave(pool, t))
            return false;
    return t->fn != NULL;
}

static void thread_main(void *arg)
{
    struct bz_pool_thread *t = arg;
    struct bz_pool *pool = t->pool;
    do
        t->fn(t->arg);
    while (lie_down(pool, t) && rest(pool, t));
}

/* ---- handing out ---- */

static void join(struct bz_pool *pool, struct bz_list *in)
{
    struct bz_pool_thread *t = BZ_CONTAINER_OF(in, struct bz_pool_thread, in);
    bz_os_thread_join(pool->os, &t->thread);
    bz_free(pool->alloc, t, sizeof *t);
}

/* Under the lock: an idle thread goes on with fn; NULL: it ends. */
static void give(struct bz_pool_thread *t, void (*fn)(void *), void *arg)
{
    t->fn = fn;
    t->arg = arg;
    bz_store_release(&t->given, 1); /* [A] */
    bz_os_wake(t->pool->os, &t->given, 1);
}

/* Under the lock. */
static int start(struct bz_pool *pool, struct bz_pool_thread *t)
{
    struct bz_os_thread_opts opts = {.name = pool->name};
    bz_list_push_back(&pool->busy, &t->in);
    int err = bz_os_thread_start(pool->os, &t->thread, &opts, thread_main, t);
    if (err != 0)
        bz_list_remove(&t->in);
    pool->count += err == 0; /* I2 */
    return err;
}

static struct bz_pool_thread *thread_new(struct bz_pool *pool, void (*fn)(void *), void *arg)
{
    struct bz_pool_thread *t = bz_alloc(pool->alloc, sizeof *t, _Alignof(struct bz_pool_thread));
    if (t != NULL) {
        *t = (struct bz_pool_thread){.pool = pool, .fn = fn, .arg = arg};
        bz_list_init(&t->in);
        bz_atomic_init(&t->given, 1);
    }
    return t;
}

/* Under the lock. *spare is a thread that could be started, or NULL; it is NULL if it was. */
static int run_locked(struct bz_pool *pool, void (*fn)(void *), void *arg,
                      struct bz_pool_thread **spare)
{
    if (pool->is_closing)
        return -ESHUTDOWN;
    if (!bz_list_is_empty(&pool->idle)) {
        struct bz_pool_thread *t =
            BZ_CONTAINER_OF(bz_list_last(&pool->idle), struct bz_pool_thread, in);
        move_to(&pool->busy, t);
        give(t, fn, arg);
        return 0;
    }
    if (pool->count == pool->count_max)
        return -EAGAIN;
    if (*spare == NULL)
        return -ENOMEM;
    int err = start(pool, *spare);
    if (err == 0)
        *spare = NULL;
    return err;
}

static int run(struct bz_pool *pool, void (*fn)(void *), void *arg, struct bz_pool_thread **spare)
{
    bz_lock_take(&pool->lock, pool->os);
    int err = run_locked(pool, fn, arg, spare);
    struct bz_list *gone = bz_list_take_front(&pool->left);
    bz_lock_drop(&pool->lock, pool->os);
    if (gone != NULL)
        join(pool, gone);
    return err;
}

int bz_pool_run(struct bz_pool *pool, void (*fn)(void *arg), void *arg)
{
    struct bz_pool_thread *spare = NULL;
    int err = run(pool, fn, arg, &spare);
    if (err != -ENOMEM)
        return err;
    spare = thread_new(pool, fn, arg); /* outside: the allocator may be anybody's code */
    if (spare != NULL)
        err = run(pool, fn, arg, &spare);
    if (spare != NULL)
        bz_free(pool->alloc, spare, sizeof *spare);
    return err;
}

/* ---- the end ---- */

/* Under the lock: any thread that is to be joined, told to end. */
static struct bz_list *take_any(struct bz_pool *pool)
{
    struct bz_list *in = bz_list_take_front(&pool->idle);
    if (in != NULL)
        give(BZ_CONTAINER_OF(in, struct bz_pool_thread, in), NULL, NULL);
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
}

unsigned bz_pool_count(struct bz_pool *pool, unsigned *out_idle)
{
    bz_lock_take(&pool->lock, pool->os);
    unsigned count = pool->count;
    *out_idle = (unsigned)bz_list_check(&pool->idle);
    bz_lock_drop(&pool->lock, pool->os);
    return count;
}
