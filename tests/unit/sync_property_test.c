/*
 * The primitives against sequential models, by random steps of one thread: acquire, cancel,
 * release. Each model is a few lines of arrays; after every step both must agree on every waiter.
 */
#include "harness.h"

#include "blitz.h"
#include "support/askers.h"

enum { N = 12, STEPS = 20000 };

static struct asker asker[N];

/* The waiters, in order. */
static struct {
    int who[N];
    int count;
} line;

static void line_join(int who)
{
    line.who[line.count++] = who;
}

static void line_leave_at(int at)
{
    for (line.count--; at < line.count; at++)
        line.who[at] = line.who[at + 1];
}

static void line_leave(int who)
{
    for (int i = 0; i < line.count; i++)
        if (line.who[i] == who) {
            line_leave_at(i);
            return;
        }
}

static bool line_has(int who)
{
    for (int i = 0; i < line.count; i++)
        if (line.who[i] == who)
            return true;
    return false;
}

static void line_clear(void)
{
    line.count = 0;
    for (int i = 0; i < N; i++)
        asker[i].is_asking = false;
}

/* A random waiter in this state; -1: none. */
static int pick(bool is_asking)
{
    int from = (int)t_random_below(N);
    for (int i = 0; i < N; i++)
        if (asker[(from + i) % N].is_asking == is_asking)
            return (from + i) % N;
    return -1;
}

/* ---- semaphore ---- */

static struct {
    uint64_t permits, held;
    uint64_t want[N];
    bool is_granted[N];
} model;

static void model_serve(void)
{
    while (line.count > 0 && model.want[line.who[0]] <= model.permits) {
        model.permits -= model.want[line.who[0]];
        model.is_granted[line.who[0]] = true;
        line_leave_at(0);
    }
}

static void semaphore_ask(blitz_semaphore *s, int who)
{
    if (!asker[who].is_asking) {
        model.want[who] = t_random_below(4);
        blitz_semaphore_acquire_future_init(&asker[who].f, s, (uint32_t)model.want[who]);
        asker_begin(&asker[who]);
        if (line.count == 0 && model.want[who] <= model.permits) {
            model.permits -= model.want[who];
            model.is_granted[who] = true;
        } else {
            line_join(who);
        }
    }
    CHECK_EQ(asker_ask(&asker[who]), model.is_granted[who]);
    if (model.is_granted[who]) {
        CHECK_EQ(asker[who].f.result, 0);
        model.held += model.want[who];
        model.is_granted[who] = false;
    }
}

static void semaphore_give_up(int who)
{
    if (who < 0)
        return;
    asker_give_up(&asker[who]);
    if (model.is_granted[who])
        model.permits += model.want[who];
    model.is_granted[who] = false;
    line_leave(who);
    model_serve();
}

static void semaphore_release(blitz_semaphore *s)
{
    uint64_t n = t_random_below(model.held + 1);
    CHECK_EQ(blitz_semaphore_release(s, (uint32_t)n), 0);
    model.held -= n;
    model.permits += n;
    model_serve();
}

static void semaphore_try(blitz_semaphore *s)
{
    uint64_t n = t_random_below(3);
    bool can = line.count == 0 && n <= model.permits;
    CHECK_EQ(blitz_semaphore_try_acquire(s, (uint32_t)n), can ? 0 : -EAGAIN);
    if (can) {
        model.permits -= n;
        model.held += n;
    }
}

/* Bug class 22: the sum of permits is constant, for every cancel with or without permits. */
TEST(sync_property, bug_22_a_semaphore_is_first_come_first_served_and_loses_no_permit)
{
    enum { PERMITS = 5 };
    blitz_semaphore s = BLITZ_SEMAPHORE_INIT(PERMITS);
    line_clear();
    memset(&model, 0, sizeof model);
    model.permits = PERMITS;
    for (uint64_t i = 0, n = t_scaled(STEPS); i < n; i++) {
        uint64_t what = t_random_below(8);
        if (what < 4)
            semaphore_ask(&s, (int)t_random_below(N));
        else if (what == 4)
            semaphore_give_up(pick(true));
        else if (what == 5)
            semaphore_try(&s);
        else
            semaphore_release(&s);
        CHECK_EQ(blitz_semaphore_permits(&s), model.permits);
        for (int k = 0; k < N; k++)
            if (asker[k].is_asking && asker_was_rung(&asker[k]))
                CHECK(model.is_granted[k]); /* no spurious wake-up */
    }
    for (int who; (who = pick(true)) >= 0;)
        semaphore_give_up(who);
    CHECK_EQ(blitz_semaphore_permits(&s) + model.held, PERMITS);
}

/* ---- mutex ---- */

/* A waiter is woken when the mutex is free, so that it cannot be missed: I4 of mutex.c. */
static void mutex_somebody_was_told(const blitz_mutex *m)
{
    int asking = 0, rung = 0;
    for (int i = 0; i < N; i++) {
        asking += asker[i].is_asking;
        rung += asker[i].is_asking && asker_was_rung(&asker[i]);
    }
    if (!blitz_mutex_is_locked(m) && asking > 0)
        CHECK_GE(rung, 1);
}

TEST(sync_property, bug_22_a_mutex_has_one_holder_and_a_free_one_has_notified_a_waiter)
{
    blitz_mutex m = BLITZ_MUTEX_INIT;
    bool is_held = false;
    line_clear();
    for (uint64_t i = 0, n = t_scaled(STEPS); i < n; i++) {
        int who = (int)t_random_below(N);
        uint64_t what = t_random_below(8);
        if (what < 4) {
            if (!asker[who].is_asking) {
                blitz_mutex_lock_future_init(&asker[who].f, &m);
                asker_begin(&asker[who]);
            }
            if (asker_ask(&asker[who])) {
                CHECK(!is_held);
                is_held = true;
            }
        } else if (what == 4) {
            if ((who = pick(true)) >= 0)
                asker_give_up(&asker[who]);
        } else if (what == 5 && !is_held) {
            is_held = blitz_mutex_try_lock(&m) == 0;
        } else if (is_held) {
            blitz_mutex_unlock(&m);
            is_held = false;
        }
        mutex_somebody_was_told(&m);
    }
    for (int who; (who = pick(true)) >= 0;)
        asker_give_up(&asker[who]);
    if (is_held)
        blitz_mutex_unlock(&m);
    CHECK(!blitz_mutex_is_locked(&m));
}

/* ---- rwlock ---- */

static struct {
    int readers;
    bool has_writer;
    bool is_writer[N];
    bool is_granted[N];
} rw;

static bool rw_can(int who)
{
    return rw.is_writer[who] ? rw.readers == 0 && !rw.has_writer : !rw.has_writer;
}

static void rw_let_in(int who)
{
    if (rw.is_writer[who])
        rw.has_writer = true;
    else
        rw.readers++;
    rw.is_granted[who] = true;
}

static void rw_serve(void)
{
    while (line.count > 0 && rw_can(line.who[0])) {
        rw_let_in(line.who[0]);
        line_leave_at(0);
    }
}

static void rw_ask(blitz_rwlock *l, int who)
{
    if (!asker[who].is_asking) {
        if (rw.is_granted[who])
            return; /* it holds the lock */
        rw.is_writer[who] = t_random_below(3) == 0;
        if (rw.is_writer[who])
            blitz_rwlock_write_future_init(&asker[who].f, l);
        else
            blitz_rwlock_read_future_init(&asker[who].f, l);
        asker_begin(&asker[who]);
        if (line.count == 0 && rw_can(who))
            rw_let_in(who);
        else
            line_join(who);
    }
    CHECK_EQ(asker_ask(&asker[who]), rw.is_granted[who]);
}

static void rw_unlock(blitz_rwlock *l, int who)
{
    if (asker[who].is_asking || !rw.is_granted[who])
        return;
    if (rw.is_writer[who] && t_random_below(2) == 0) {
        blitz_rwlock_downgrade(l);
        rw.has_writer = false;
        rw.is_writer[who] = false;
        rw.readers++;
    } else if (rw.is_writer[who]) {
        blitz_rwlock_write_unlock(l);
        rw.has_writer = rw.is_granted[who] = false;
    } else {
        blitz_rwlock_read_unlock(l);
        rw.readers--;
        rw.is_granted[who] = false;
    }
    rw_serve();
}

static void rw_give_up(int who)
{
    if (who < 0)
        return;
    asker_give_up(&asker[who]);
    if (rw.is_granted[who] && rw.is_writer[who])
        rw.has_writer = false;
    else if (rw.is_granted[who])
        rw.readers--;
    rw.is_granted[who] = false;
    line_leave(who);
    rw_serve();
}

TEST(sync_property, bug_25_a_rwlock_starves_neither_readers_nor_writers)
{
    blitz_rwlock l = BLITZ_RWLOCK_INIT;
    line_clear();
    memset(&rw, 0, sizeof rw);
    for (uint64_t i = 0, n = t_scaled(STEPS); i < n; i++) {
        uint64_t what = t_random_below(8);
        if (what < 4)
            rw_ask(&l, (int)t_random_below(N));
        else if (what == 4)
            rw_give_up(pick(true));
        else
            rw_unlock(&l, (int)t_random_below(N));
        int can_read = blitz_rwlock_try_read(&l);
        CHECK_EQ(can_read, line.count == 0 && !rw.has_writer ? 0 : -EAGAIN);
        if (can_read == 0)
            blitz_rwlock_read_unlock(&l);
        int can_write = blitz_rwlock_try_write(&l);
        CHECK_EQ(can_write, line.count == 0 && !rw.has_writer && rw.readers == 0 ? 0 : -EAGAIN);
        if (can_write == 0)
            blitz_rwlock_write_unlock(&l);
    }
}

/* ---- notify ---- */

TEST(sync_property, bug_22_a_notification_for_one_is_heard_by_one_or_kept)
{
    blitz_notify notify = BLITZ_NOTIFY_INIT;
    bool is_kept = false, has_one[N] = {false}, has_all[N] = {false};
    line_clear();
    for (uint64_t i = 0, n = t_scaled(STEPS); i < n; i++) {
        uint64_t what = t_random_below(8);
        int who = (int)t_random_below(N);
        bool is_passed_on = false;
        if (what < 4) {
            if (!asker[who].is_asking) {
                blitz_notify_wait_future_init(&asker[who].f, &notify);
                asker_begin(&asker[who]);
                has_one[who] = is_kept;
                if (!is_kept)
                    line_join(who);
                is_kept = false;
            }
            CHECK_EQ(asker_ask(&asker[who]), has_one[who] || has_all[who]);
            has_one[who] = has_all[who] = has_one[who] && asker[who].is_asking;
        } else if (what == 4 && (who = pick(true)) >= 0) {
            asker_give_up(&asker[who]);
            line_leave(who);
            is_passed_on = has_one[who];
            has_one[who] = has_all[who] = false;
        } else if (what == 5) {
            blitz_notify_all(&notify);
            for (; line.count > 0; line_leave_at(0))
                has_all[line.who[0]] = true;
        } else if (what == 6) {
            CHECK_EQ(blitz_notify_try_wait(&notify), is_kept ? 0 : -EAGAIN);
            is_kept = false;
        } else {
            blitz_notify_one(&notify);
            is_passed_on = true;
        }
        if (is_passed_on && line.count > 0) {
            has_one[line.who[0]] = true;
            line_leave_at(0);
        } else if (is_passed_on) {
            is_kept = true;
        }
    }
}

/* ---- barrier ---- */

TEST(sync_property, a_barrier_lets_every_meeting_go_together_with_one_leader)
{
    enum { PARTIES = 5 };
    blitz_barrier b = BLITZ_BARRIER_INIT(PARTIES);
    bool is_released[N] = {false};
    line_clear();
    for (uint64_t i = 0, n = t_scaled(STEPS); i < n; i++) {
        int who = (int)t_random_below(N);
        if (t_random_below(5) != 0) {
            bool is_leader = false;
            if (!asker[who].is_asking) {
                blitz_barrier_wait_future_init(&asker[who].f, &b);
                asker_begin(&asker[who]);
                line_join(who);
                is_leader = line.count == PARTIES;
                for (; is_leader && line.count > 0; line_leave_at(0))
                    is_released[line.who[0]] = true;
            }
            CHECK_EQ(asker_ask(&asker[who]), is_released[who]);
            if (is_released[who])
                CHECK_EQ(asker[who].f.result, is_leader ? BLITZ_BARRIER_LEADER : 0);
            is_released[who] = false;
        } else if ((who = pick(true)) >= 0) {
            asker_give_up(&asker[who]);
            line_leave(who); /* if its meeting is complete, it was in it all the same */
            is_released[who] = false;
        }
    }
}

/* ---- gates ---- */

TEST(sync_property, a_wait_group_releases_all_waiters_at_zero)
{
    blitz_wait_group g = BLITZ_WAIT_GROUP_INIT;
    uint32_t count = 0;
    bool is_released[N] = {false};
    line_clear();
    for (uint64_t i = 0, n = t_scaled(STEPS); i < n; i++) {
        uint64_t what = t_random_below(6);
        int who = (int)t_random_below(N);
        if (what < 3) {
            if (!asker[who].is_asking) {
                blitz_wait_group_wait_future_init(&asker[who].f, &g);
                asker_begin(&asker[who]);
                is_released[who] = count == 0;
                if (count != 0)
                    line_join(who);
            }
            CHECK_EQ(asker_ask(&asker[who]), is_released[who]);
        } else if (what == 3 && (who = pick(true)) >= 0) {
            asker_give_up(&asker[who]);
            line_leave(who);
        } else if (what == 4) {
            uint32_t more = (uint32_t)t_random_below(3);
            CHECK_EQ(blitz_wait_group_add(&g, more), 0);
            count += more;
        } else {
            CHECK_EQ(blitz_wait_group_done(&g), count > 0 ? 0 : -EINVAL);
            if (count > 0 && --count == 0)
                for (; line.count > 0; line_leave_at(0))
                    is_released[line.who[0]] = true;
        }
        CHECK_EQ(blitz_wait_group_left(&g), count);
        for (int k = 0; k < N; k++)
            if (line_has(k))
                CHECK(!asker_was_rung(&asker[k]));
    }
}

/* ---- once ---- */

struct attempt {
    int number, err, count;
};

static int make_it(void *arg, void **value)
{
    struct attempt *a = arg;
    a->count++;
    *value = a;
    return a->err;
}

/* A failed attempt affects only its maker; the next waiter makes the value. A cancelled waiter
 * loses nothing. */
TEST(sync_property, bug_22_a_value_is_made_once_and_a_failure_lets_the_next_try)
{
    for (uint64_t round = 0, n = t_scaled(500); round < n; round++) {
        blitz_once once = BLITZ_ONCE_INIT;
        blitz_once_future f[N];
        struct attempt attempt[N];
        struct t_bell bell[N];
        int made = 0;
        void *value = NULL;
        for (int i = 0; i < N; i++) {
            attempt[i] = (struct attempt){i, t_random_below(3) == 0 ? 0 : -EIO, 0};
            bell[i] = (struct t_bell){.holders = 1};
            blitz_once_get_future_init(&f[i], &once, make_it, &attempt[i]);
        }
        for (int step = 0; step < 3 * N; step++) {
            int who = (int)t_random_below(N);
            blitz_waker w = t_bell_waker(&bell[who]);
            if (t_random_below(4) == 0) {
                f[who].future.ops->cancel(&f[who].future);
                blitz_once_get_future_init(&f[who], &once, make_it, &attempt[who]);
                continue;
            }
            bool was_made = blitz_once_try_get(&once, &value) == 0;
            blitz_poll poll = f[who].future.ops->poll(&f[who].future, &w);
            CHECK_EQ(poll, BLITZ_READY); /* no waiter waits for the maker here */
            made += !was_made && f[who].result == 0;
            if (f[who].result == 0)
                CHECK_EQ(blitz_once_try_get(&once, &value), 0);
            else
                CHECK(f[who].result == -EIO && attempt[who].err == -EIO);
        }
        CHECK_LE(made, 1);
        for (int i = 0; i < N; i++)
            CHECK_EQ(bell[i].holders, 1);
    }
}
