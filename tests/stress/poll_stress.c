/*
 * Stackless tasks on real threads: bells that plain threads and fibers ring at random, tasks that
 * wait for them in every way a poll can, and cancels in between. Every ring must be seen: a task
 * ends only when all its rings are counted, and a lost wake-up is a hang.
 */
#include <pthread.h>
#include <sched.h>

#include "harness.h"

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"

enum { BELLS = 16, RINGERS = 2 };

/* A bell counts its rings and wakes its listener. A lock in one word guards the waker. */
struct bell {
    bz_atomic(uint32_t) is_locked;
    blitz_waker waker;         /* guarded by is_locked */
    bz_atomic(uint64_t) rings; /* so far */
};
static struct bell bells[BELLS];
static bz_atomic(uint64_t) heard; /* by all */

static void lock(struct bell *b)
{
    while (bz_xchg_acquire(&b->is_locked, 1)) /* unlock's release */
        sched_yield();
}

static void unlock(struct bell *b)
{
    bz_store_release(&b->is_locked, 0); /* lock's acquire */
}

static void listen(struct bell *b, const blitz_waker *w)
{
    blitz_waker mine = blitz_waker_clone(w);
    lock(b);
    blitz_waker old = b->waker;
    b->waker = mine;
    unlock(b);
    blitz_waker_drop(&old);
}

static void ring(struct bell *b)
{
    bz_fetch_add_relaxed(&b->rings, 1); /* relaxed: the lock that follows publishes it */
    lock(b);
    blitz_waker w = b->waker;
    b->waker = (blitz_waker){NULL, NULL};
    unlock(b);
    blitz_waker_wake(&w);
}

/* ---- listeners ---- */

struct listener {
    blitz_frame frame;
    struct bell *bell;
    uint64_t counted, before, want;
    blitz_sleep_future nap;
    struct t_rng rng;
};

/* Count the rings. The waker is stored first, so that no ring is missed. */
static void count(struct listener *me, blitz_cx *cx)
{
    listen(me->bell, cx->waker);
    uint64_t rings = bz_load_relaxed(&me->bell->rings); /* relaxed: after the lock of listen */
    bz_fetch_add_relaxed(&heard, rings - me->counted);  /* relaxed: a count, read at the end */
    me->counted = rings;
}

/* Anything new? Now and then, having asked, it waits inside the poll, behind the same waker: what
 * rings meanwhile may be swallowed. */
static bool has_heard(struct listener *me, blitz_cx *cx)
{
    count(me, cx);
    if (me->counted > me->before || me->counted >= me->want)
        return true;
    if (t_rng_below(&me->rng, 8) == 0) {
        blitz_sleep_future nap;
        blitz_sleep_until_future_init(&nap, blitz_after(10 * BLITZ_US));
        (void)!blitz_await(&nap.future, BLITZ_FOREVER);
    }
    return false;
}

static blitz_poll listener(void *state, blitz_cx *cx)
{
    struct listener *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->counted < me->want) {
        if (t_rng_below(&me->rng, 8) == 0) {
            BLITZ_SLEEP(rc, &me->nap, t_rng_below(&me->rng, 50) * BLITZ_US);
            (void)rc;
        } else if (t_rng_below(&me->rng, 4) == 0) {
            BLITZ_YIELD();
        }
        count(me, cx);
        me->before = me->counted;
        BLITZ_WAIT_FOR(has_heard(me, cx));
    }
    BLITZ_END(7);
}

struct ringer {
    uint64_t each;
    unsigned index;
};

static void ring_all(const struct ringer *r)
{
    struct t_rng rng = t_rng_of(r->index);
    uint64_t left[BELLS], total = r->each * BELLS;
    for (int i = 0; i < BELLS; i++)
        left[i] = r->each;
    while (total > 0) {
        unsigned i = (unsigned)t_rng_below(&rng, BELLS);
        while (left[i] == 0)
            i = (i + 1) % BELLS;
        left[i]--;
        total--;
        ring(&bells[i]);
    }
}

static void *ring_on_a_thread(void *arg)
{
    ring_all(arg);
    return NULL;
}

static int ring_in_a_task(void *arg)
{
    ring_all(arg);
    return 0;
}

static int listen_to_all(void *arg)
{
    uint64_t each = *(uint64_t *)arg;
    blitz_task *t[BELLS], *fiber[RINGERS];
    pthread_t thread[RINGERS];
    struct ringer r[2 * RINGERS];
    for (unsigned i = 0; i < BELLS; i++) {
        struct listener s = {
            .bell = &bells[i], .want = each * 2 * RINGERS, .rng = t_rng_of(100 + i)};
        CHECK_EQ(blitz_spawn_poll(listener, &s, sizeof s, NULL, &t[i]), 0);
    }
    for (unsigned i = 0; i < 2 * RINGERS; i++)
        r[i] = (struct ringer){each, i};
    for (unsigned i = 0; i < RINGERS; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, ring_on_a_thread, &r[i]), 0);
        CHECK_EQ(blitz_spawn(ring_in_a_task, &r[RINGERS + i], NULL, &fiber[i]), 0);
    }
    for (unsigned i = 0; i < BELLS; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 7);
    }
    for (unsigned i = 0; i < RINGERS; i++) {
        CHECK_EQ(blitz_task_join(fiber[i], NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
    return 0;
}

TEST(poll, bug_01_every_ring_is_heard)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (size_t k = 0; k < BZ_ARRAY_LEN(procs); k++) {
        uint64_t each = t_scaled(20000);
        t_watch("%u procs", procs[k]);
        bz_store_relaxed(&heard, 0); /* relaxed: no other thread yet */
        for (int i = 0; i < BELLS; i++)
            bz_store_relaxed(&bells[i].rings, 0); /* relaxed: likewise */
        CHECK_EQ(blitz_run(listen_to_all, &each, &(blitz_runtime_opts){.procs = procs[k]}), 0);
        CHECK_EQ(bz_load_relaxed(&heard), each * 2 * RINGERS * BELLS); /* relaxed: all have ended */
        for (int i = 0; i < BELLS; i++)
            blitz_waker_drop(&bells[i].waker);
    }
}

/* ---- cancels at any moment ---- */

struct napper {
    blitz_frame frame;
    blitz_sleep_future nap, timer;
    blitz_join_future child;
    blitz_task *task;
    int left;
};

static int naps(void *arg)
{
    return blitz_sleep((uint64_t)(uintptr_t)arg * BLITZ_US);
}

static blitz_poll napper(void *state, blitz_cx *cx)
{
    struct napper *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    for (; me->left > 0; me->left--) {
        BLITZ_SLEEP(rc, &me->nap, 20 * BLITZ_US);
        if (rc < 0)
            BLITZ_RETURN(rc);
        CHECK_EQ(blitz_spawn(naps, (void *)(uintptr_t)(me->left * 10), NULL, &me->task), 0);
        blitz_task_join_future_init(&me->child, me->task);
        BLITZ_AWAIT_UNTIL(rc, &me->child.future, &me->timer, blitz_after(30 * BLITZ_US));
        if (rc != 0)
            BLITZ_JOIN(rc, &me->child, me->task);
        CHECK_EQ(rc, 0);
    }
    BLITZ_END(1);
}

static int cancel_many(void *arg)
{
    enum { N = 64 };
    uint64_t rounds = *(uint64_t *)arg;
    struct t_rng rng = t_rng_of(7);
    for (uint64_t round = 0; round < rounds; round++) {
        blitz_task *t[N];
        for (int i = 0; i < N; i++) {
            struct napper s = {.left = 1 + i % 5};
            CHECK_EQ(blitz_spawn_poll(napper, &s, sizeof s, NULL, &t[i]), 0);
        }
        for (int i = 0; i < N / 2; i++) {
            if (t_rng_below(&rng, 4) == 0)
                CHECK_EQ(blitz_sleep(t_rng_below(&rng, 40) * BLITZ_US), 0);
            blitz_task_cancel(t[t_rng_below(&rng, N)]);
        }
        for (int i = 0; i < N; i++) {
            int result = 0;
            CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
            CHECK(result == 1 || result == -ECANCELED);
        }
    }
    return 0;
}

TEST(poll, sleeps_joins_and_deadlines_under_cancels)
{
    static const unsigned procs[] = {1, 2, 8};
    uint64_t rounds = t_scaled(200);
    for (size_t k = 0; k < BZ_ARRAY_LEN(procs); k++)
        CHECK_EQ(blitz_run(cancel_many, &rounds, &(blitz_runtime_opts){.procs = procs[k]}), 0);
}
