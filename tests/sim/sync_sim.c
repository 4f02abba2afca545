/*
 * The primitives in the whole runtime, in virtual time, from seeds: fibers, stackless tasks and
 * plain threads that take, hold and give, with a deadline or a cancel at every wait. Acquired and
 * released permits add up, only holders are inside, and no waiter is left behind.
 */
#include "support/sched_sim.h"

#include "base/rng.h"
#include "runtime/runtime.h"
#include "support/askers.h"

enum { ACTORS = 5, ROUNDS = 3, PERMITS = 2 };

/* The object of one scene: how to acquire and release it. */
struct kind {
    int (*take)(void *object, unsigned how, blitz_deadline until);
    void (*take_later)(blitz_sync_future *f, void *object, unsigned how);
    void (*give)(void *object, unsigned how);
    void (*check)(void *object, unsigned how,
                  int by);     /* got in (by 1), or is about to leave (-1) */
    void (*end)(void *object); /* not held */
};

struct scene {
    const struct bz_os *os;
    const struct kind *kind;
    struct bz_rng rng;
    uint64_t seed;
    union {
        blitz_semaphore semaphore;
        blitz_mutex mutex;
        blitz_rwlock rwlock;
    };
};

static bz_atomic(int) inside, writing;

static uint64_t moment(struct bz_rng *rng)
{
    return bz_rng_below(rng, 4) * BLITZ_US;
}

static blitz_deadline deadline(struct bz_rng *rng, const struct bz_os *os)
{
    return bz_rng_below(rng, 3) == 0 ? BLITZ_FOREVER : bz_os_now(os) + moment(rng);
}

/* ---- an actor: a fiber or a plain thread ---- */

struct actor {
    struct scene *scene;
    struct bz_rng rng;
    bool is_thread;
};

static int acts(void *arg)
{
    struct actor *a = arg;
    struct scene *s = a->scene;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned how = (unsigned)bz_rng_below(&a->rng, PERMITS);
        blitz_deadline until = deadline(&a->rng, s->os);
        int err = s->kind->take(s, how, until);
        if (err == 0) {
            s->kind->check(s, how, 1);
            uint64_t nap = moment(&a->rng);
            if (a->is_thread)
                bz_sim_burn(nap);
            else
                (void)!blitz_sleep(nap); /* holding it, cancelled perhaps */
            s->kind->check(s, how, -1);
            s->kind->give(s, how);
        } else {
            CHECK(err == -ECANCELED || (err == -ETIMEDOUT && until != BLITZ_FOREVER));
        }
    }
    return 0;
}

static void acts_on_thread(void *arg)
{
    (void)acts(arg);
}

/* ---- an actor without a stack ---- */

struct stackless {
    blitz_frame frame;
    struct actor actor;
    blitz_sync_future f;
    blitz_sleep_future timer;
    int left;
    unsigned how;
};

static blitz_poll acts_by_poll(void *state, blitz_cx *cx)
{
    struct stackless *me = state;
    struct scene *s = me->actor.scene;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->left-- > 0) {
        me->how = (unsigned)bz_rng_below(&me->actor.rng, PERMITS);
        s->kind->take_later(&me->f, s, me->how);
        BLITZ_AWAIT_UNTIL(rc, &me->f.future, &me->timer, deadline(&me->actor.rng, s->os));
        if (rc != 0)
            continue;
        CHECK_EQ(me->f.result, 0);
        s->kind->check(s, me->how, 1);
        BLITZ_SLEEP(rc, &me->timer, moment(&me->actor.rng));
        s->kind->check(s, me->how, -1);
        s->kind->give(s, me->how);
    }
    BLITZ_END(0);
}

/* ---- the scene ---- */

static int cast(void *arg)
{
    struct scene *s = arg;
    struct actor actor[ACTORS], outside = {s, s->rng, true};
    blitz_task *t[ACTORS];
    struct bz_os_thread thread;
    bool has_thread = bz_rng_below(&s->rng, 2) == 0;
    bz_rng_init(&outside.rng, s->seed ^ 99);
    for (uint64_t i = 0; i < ACTORS; i++) {
        actor[i].scene = s;
        actor[i].is_thread = false;
        bz_rng_init(&actor[i].rng, s->seed + i);
        struct stackless state = {.actor = actor[i], .left = ROUNDS};
        if (bz_rng_below(&s->rng, 2) == 0)
            CHECK_EQ(blitz_spawn_poll(acts_by_poll, &state, sizeof state, NULL, &t[i]), 0);
        else
            CHECK_EQ(blitz_spawn(acts, &actor[i], NULL, &t[i]), 0);
    }
    if (has_thread)
        CHECK_EQ(bz_os_thread_start(s->os, &thread, NULL, acts_on_thread, &outside), 0);
    for (int i = 0; i < ACTORS; i++) {
        CHECK_EQ(blitz_sleep(moment(&s->rng)), 0);
        if (bz_rng_below(&s->rng, 2) == 0)
            blitz_task_cancel(t[bz_rng_below(&s->rng, ACTORS)]);
    }
    for (int i = 0; i < ACTORS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    if (has_thread)
        CHECK_EQ(bz_os_thread_join(s->os, &thread), 0);
    CHECK_EQ(bz_load_relaxed(&inside), 0);
    s->kind->end(s);
    return 0;
}

static void play(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *rt;
    s->os = os;
    bz_rng_init(&s->rng, s->seed);
    bz_atomic_init(&inside, 0);
    bz_atomic_init(&writing, 0);
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1 + (unsigned)(s->seed % 3)}, &rt),
             0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, cast, s), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

static void on_seeds(struct scene like, uint64_t full)
{
    for (uint64_t i = 0, n = sim_seeds(full); i < n; i++) {
        struct scene s = like;
        s.seed = sim_next_seed();
        t_watch("simulation seed 0x%llx", (unsigned long long)s.seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = s.seed}, play, &s, NULL), 0);
    }
}

/* ---- semaphore ---- */

static int semaphore_take(void *scene, unsigned how, blitz_deadline until)
{
    return blitz_semaphore_acquire(&((struct scene *)scene)->semaphore, 1 + how, until);
}

static void semaphore_take_later(blitz_sync_future *f, void *scene, unsigned how)
{
    blitz_semaphore_acquire_future_init(f, &((struct scene *)scene)->semaphore, 1 + how);
}

static void semaphore_give(void *scene, unsigned how)
{
    CHECK_EQ(blitz_semaphore_release(&((struct scene *)scene)->semaphore, 1 + how), 0);
}

static void semaphore_check(void *scene, unsigned how, int by)
{
    int n = by * (int)(1 + how);
    (void)scene;
    CHECK_LE(bz_fetch_add_relaxed(&inside, n) + n, PERMITS);
}

static void semaphore_end(void *scene)
{
    struct scene *s = scene;
    CHECK_EQ(blitz_semaphore_permits(&s->semaphore), PERMITS);
    CHECK_EQ(blitz_semaphore_try_acquire(&s->semaphore, PERMITS), 0); /* and no task waits */
}

TEST(sync, bug_22_permits_add_up_with_a_deadline_or_a_cancel_at_every_wait)
{
    static const struct kind kind = {semaphore_take, semaphore_take_later, semaphore_give,
                                     semaphore_check, semaphore_end};
    on_seeds((struct scene){.kind = &kind, .semaphore = BLITZ_SEMAPHORE_INIT(PERMITS)}, 500);
}

/* ---- mutex ---- */

static int mutex_take(void *scene, unsigned how, blitz_deadline until)
{
    (void)how;
    return blitz_mutex_lock(&((struct scene *)scene)->mutex, until);
}

static void mutex_take_later(blitz_sync_future *f, void *scene, unsigned how)
{
    (void)how;
    blitz_mutex_lock_future_init(f, &((struct scene *)scene)->mutex);
}

static void mutex_give(void *scene, unsigned how)
{
    (void)how;
    blitz_mutex_unlock(&((struct scene *)scene)->mutex);
}

static void mutex_check(void *scene, unsigned how, int by)
{
    (void)how;
    CHECK_EQ(blitz_mutex_holder(&((struct scene *)scene)->mutex), blitz_task_id(NULL));
    CHECK_LE(bz_fetch_add_relaxed(&inside, by) + by, 1);
}

static void mutex_end(void *scene)
{
    CHECK_EQ(blitz_mutex_try_lock(&((struct scene *)scene)->mutex), 0);
}

TEST(sync, bug_22_a_mutex_has_one_holder_and_is_free_in_the_end)
{
    static const struct kind kind = {mutex_take, mutex_take_later, mutex_give, mutex_check,
                                     mutex_end};
    on_seeds((struct scene){.kind = &kind, .mutex = BLITZ_MUTEX_INIT}, 500);
}

/* ---- rwlock ---- */

static int rwlock_take(void *scene, unsigned how, blitz_deadline until)
{
    blitz_rwlock *l = &((struct scene *)scene)->rwlock;
    return how ? blitz_rwlock_write(l, until) : blitz_rwlock_read(l, until);
}

static void rwlock_take_later(blitz_sync_future *f, void *scene, unsigned how)
{
    blitz_rwlock *l = &((struct scene *)scene)->rwlock;
    if (how)
        blitz_rwlock_write_future_init(f, l);
    else
        blitz_rwlock_read_future_init(f, l);
}

static void rwlock_give(void *scene, unsigned how)
{
    blitz_rwlock *l = &((struct scene *)scene)->rwlock;
    if (how)
        blitz_rwlock_downgrade(l);
    blitz_rwlock_read_unlock(l);
}

static void rwlock_check(void *scene, unsigned how, int by)
{
    (void)scene;
    bz_fetch_add_relaxed(&inside, by);
    if (how)
        bz_fetch_add_relaxed(&writing, by);
    CHECK(bz_load_relaxed(&writing) == 0 || bz_load_relaxed(&inside) <= 1);
}

static void rwlock_end(void *scene)
{
    CHECK_EQ(blitz_rwlock_try_write(&((struct scene *)scene)->rwlock), 0);
}

TEST(sync, bug_22_a_rwlock_keeps_readers_and_writers_apart)
{
    static const struct kind kind = {rwlock_take, rwlock_take_later, rwlock_give, rwlock_check,
                                     rwlock_end};
    on_seeds((struct scene){.kind = &kind, .rwlock = BLITZ_RWLOCK_INIT}, 500);
}

/* ---- how long one may be passed ---- */

static blitz_mutex busy;
static blitz_rwlock crowded;
static bz_atomic(int) is_over;
static bz_atomic(uint64_t) longest; /* of all waits; relaxed: read when they are over */

static int lock_busy(void)
{
    return blitz_mutex_lock(&busy, BLITZ_FOREVER);
}

static void unlock_busy(void)
{
    blitz_mutex_unlock(&busy);
}

static int read_crowded(void)
{
    return blitz_rwlock_read(&crowded, BLITZ_FOREVER);
}

static void end_reading(void)
{
    blitz_rwlock_read_unlock(&crowded);
}

static int write_crowded(void)
{
    return blitz_rwlock_write(&crowded, BLITZ_FOREVER);
}

static void end_writing(void)
{
    blitz_rwlock_write_unlock(&crowded);
}

/* The lock that the hog uses all the time and the other tasks want. */
struct passing {
    int (*hog_lock)(void);
    void (*hog_unlock)(void);
    int (*lock)(void);
    void (*unlock)(void);
    int hogs;
};

/* Locks again as soon as it has unlocked, and works only with the lock held. */
static int hogs(void *arg)
{
    const struct passing *p = arg;
    while (!bz_load_relaxed(&is_over)) {
        CHECK_EQ(p->hog_lock(), 0);
        t_burn(20 * BLITZ_US);
        p->hog_unlock();
    }
    return 0;
}

static int wants_a_turn(void *arg)
{
    const struct passing *p = arg;
    for (int i = 0; i < 3; i++) {
        uint64_t from = blitz_now();
        CHECK_EQ(p->lock(), 0);
        uint64_t waited = blitz_now() - from;
        p->unlock();
        if (waited > bz_load_relaxed(&longest))
            bz_store_relaxed(&longest, waited);
        CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    }
    return 0;
}

static int hogs_and_waiters(void *arg)
{
    enum { WAITERS = 2, HOGS_MAX = 2 };
    struct passing *p = arg;
    blitz_task *hog[HOGS_MAX], *t[WAITERS];
    blitz_mutex_init(&busy);
    blitz_rwlock_init(&crowded);
    bz_atomic_init(&is_over, 0);
    bz_atomic_init(&longest, 0);
    for (int i = 0; i < p->hogs; i++)
        CHECK_EQ(blitz_spawn(hogs, p, NULL, &hog[i]), 0);
    CHECK_EQ(blitz_sleep(50 * BLITZ_US), 0);
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(blitz_spawn(wants_a_turn, p, NULL, &t[i]), 0);
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    bz_store_relaxed(&is_over, 1);
    for (int i = 0; i < p->hogs; i++)
        CHECK_EQ(blitz_task_join(hog[i], NULL, BLITZ_FOREVER), 0);
    /* 1 ms, then the next unlock; the other waiter's turn before; the monitor's look at `next` */
    CHECK_LT(bz_load_relaxed(&longest), 4 * BLITZ_MS);
    return 0;
}

/* Bug class 25: a task that locks and unlocks in a loop does not starve other tasks. */
TEST(sync, bug_25_a_waiter_gets_the_mutex_in_a_few_milliseconds)
{
    struct passing p = {lock_busy, unlock_busy, lock_busy, unlock_busy, 1};
    sim_on_procs(hogs_and_waiters, &p, 0, 100, 2, 3);
}

/* Readers that take turns so that one is always inside would keep writers out for ever. */
TEST(sync, bug_25_a_waiting_writer_gets_the_lock_in_a_few_milliseconds)
{
    struct passing p = {read_crowded, end_reading, write_crowded, end_writing, 2};
    sim_on_procs(hogs_and_waiters, &p, 0, 100, 3, 4);
}

TEST(sync, bug_25_a_waiting_reader_gets_the_lock_in_a_few_milliseconds)
{
    struct passing p = {write_crowded, end_writing, read_crowded, end_reading, 1};
    sim_on_procs(hogs_and_waiters, &p, 0, 100, 2, 3);
}

/* ---- a loser that has the lock ---- */

static int hand_over_and_cancel(void *arg)
{
    struct asker loser = {.is_asking = false}, next = loser;
    (void)arg;
    blitz_mutex_init(&busy);
    CHECK_EQ(blitz_mutex_try_lock(&busy), 0);
    blitz_mutex_lock_future_init(&loser.f, &busy);
    blitz_mutex_lock_future_init(&next.f, &busy);
    asker_begin(&loser);
    asker_begin(&next);
    CHECK(!asker_ask(&loser));
    CHECK(!asker_ask(&next));
    CHECK_EQ(blitz_sleep(2 * BLITZ_MS), 0); /* now it is passed no more */
    blitz_mutex_unlock(&busy);
    CHECK(blitz_mutex_is_locked(&busy)); /* it has it, and has not been asked since */
    CHECK_EQ(blitz_mutex_try_lock(&busy), -EAGAIN);
    asker_give_up(&loser); /* something else was first, and the loser is revoked */
    CHECK(asker_was_rung(&next));
    CHECK(asker_ask(&next));
    CHECK_EQ(blitz_mutex_holder(&busy), blitz_task_id(NULL));
    blitz_mutex_unlock(&busy);
    CHECK(!blitz_mutex_is_locked(&busy));
    return 0;
}

/* Bug class 25: the grant of a losing select case goes to the next waiter. */
TEST(sync, bug_25_a_loser_that_was_handed_the_mutex_gives_it_back)
{
    sim_on_seeds(hand_over_and_cancel, NULL, 0, 20);
}

/* ---- a deadline at the very moment of the unlock ---- */

/* One object of each kind, all held until `at`, which is also the deadline of every waiter. */
struct rush {
    uint64_t at;
    blitz_mutex mutex;
    blitz_rwlock rwlock;
    blitz_semaphore semaphore;
    unsigned kind;
};

enum { RUSH_MUTEX, RUSH_READ, RUSH_WRITE, RUSH_SEMAPHORE, RUSH_KINDS };

static int rush_take(struct rush *r, unsigned kind, blitz_deadline until)
{
    switch (kind) {
    case RUSH_MUTEX:
        return blitz_mutex_lock(&r->mutex, until);
    case RUSH_READ:
        return blitz_rwlock_read(&r->rwlock, until);
    case RUSH_WRITE:
        return blitz_rwlock_write(&r->rwlock, until);
    default:
        return blitz_semaphore_acquire(&r->semaphore, 1, until);
    }
}

static void rush_give(struct rush *r, unsigned kind)
{
    if (kind == RUSH_MUTEX)
        blitz_mutex_unlock(&r->mutex);
    else if (kind == RUSH_READ)
        blitz_rwlock_read_unlock(&r->rwlock);
    else if (kind == RUSH_WRITE)
        blitz_rwlock_write_unlock(&r->rwlock);
    else
        CHECK_EQ(blitz_semaphore_release(&r->semaphore, 1), 0);
}

static int rush_in(void *arg)
{
    struct rush *r = arg;
    unsigned kind = r->kind;
    int rc = rush_take(r, kind, r->at);
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    if (rc == 0)
        rush_give(r, kind);
    return 0;
}

static int rush_hold(void *arg)
{
    struct rush *r = arg;
    for (unsigned k = 0; k < RUSH_KINDS; k++)
        if (k != RUSH_READ)
            CHECK_EQ(rush_take(r, k, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_sleep_until(r->at), 0);
    for (unsigned k = 0; k < RUSH_KINDS; k++)
        if (k != RUSH_READ)
            rush_give(r, k);
    return 0;
}

static int rush(void *arg)
{
    enum { EACH = 3 };
    struct rush r[RUSH_KINDS];
    blitz_task *holder[RUSH_KINDS], *t[RUSH_KINDS][EACH];
    uint64_t at = blitz_now() + 10 * BLITZ_MS; /* no waiter has such a long deadline */
    (void)arg;
    for (unsigned k = 0; k < RUSH_KINDS; k++) {
        r[k] = (struct rush){
            .at = at, .mutex = BLITZ_MUTEX_INIT, .rwlock = BLITZ_RWLOCK_INIT, .kind = k};
        blitz_semaphore_init(&r[k].semaphore, 1);
        CHECK_EQ(blitz_spawn(rush_hold, &r[k], NULL, &holder[k]), 0);
    }
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    for (unsigned k = 0; k < RUSH_KINDS; k++)
        for (int i = 0; i < EACH; i++)
            CHECK_EQ(blitz_spawn(rush_in, &r[k], NULL, &t[k][i]), 0);
    for (unsigned k = 0; k < RUSH_KINDS; k++) {
        CHECK_EQ(blitz_task_join(holder[k], NULL, BLITZ_FOREVER), 0);
        for (int i = 0; i < EACH; i++)
            CHECK_EQ(blitz_task_join(t[k][i], NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_mutex_try_lock(&r[k].mutex), 0);
        CHECK_EQ(blitz_rwlock_try_write(&r[k].rwlock), 0);
        CHECK_EQ(blitz_semaphore_try_acquire(&r[k].semaphore, 1), 0);
    }
    return 0;
}

/* Bug class 22: what is handed to a waiter whose time has just run out is free again. */
TEST(sync, bug_22_a_lock_that_is_freed_at_the_deadline_of_its_waiters_is_free)
{
    sim_on_seeds(rush, NULL, 0, 200);
}
