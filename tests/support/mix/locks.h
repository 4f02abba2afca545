/*
 * locks.h - the scenes of mutex, rwlock and semaphore.
 *
 * Parties lock, hold for a while, and unlock. `inside` counts the parties that hold the lock: a writer
 * is alone, and no more permits are out than there are. At the end the lock is free.
 *
 * The second scene of the semaphore moves permits one way: producers release, consumers acquire. At the
 * end as many are left as were released and not acquired.
 */
#ifndef MIX_LOCKS_H
#define MIX_LOCKS_H

#include "support/mix/round.h"

enum {
    LOCKS_MUTEX,
    LOCKS_READ,
    LOCKS_WRITE,
    LOCKS_PERMITS,
    LOCKS_PRODUCE,
    LOCKS_CONSUME,
    LOCKS_CLOSE
};

static struct {
    blitz_mutex mutex;
    blitz_rwlock rwlock;
    blitz_semaphore semaphore;
    uint32_t permits;
    bool is_closing; /* a party closes the semaphore */
    struct mix_count writers, readers, out, released, acquired;
    uint64_t plain[2]; /* written by the holder alone */
} locks;

/* p->scratch: is it held, and how many permits were asked for. */
enum { LOCKS_HELD, LOCKS_N };

static void locks_clear(struct mix_round *r, unsigned least, unsigned more)
{
    memset(&locks, 0, sizeof locks);
    blitz_mutex_init(&locks.mutex);
    blitz_rwlock_init(&locks.rwlock);
    for (unsigned n = least + (unsigned)mix_die(&r->dice, more); n > 0; n--)
        mix_join_in(r, LOCKS_MUTEX, mix_one_in(&r->dice, 2))->left =
            1 + (unsigned)mix_die(&r->dice, 12);
}

static void mutex_make(struct mix_round *r)
{
    locks_clear(r, 2, 8);
}

static void rwlock_make(struct mix_round *r)
{
    locks_clear(r, 2, 10);
    for (unsigned i = 0; i < r->count; i++)
        r->party[i].role = mix_one_in(&r->dice, 3) ? LOCKS_WRITE : LOCKS_READ;
}

static void semaphore_make(struct mix_round *r)
{
    locks_clear(r, 2, 10);
    locks.permits = 1 + (uint32_t)mix_die(&r->dice, 4);
    blitz_semaphore_init(&locks.semaphore, locks.permits);
    mix_say(r, " %u permits", locks.permits);
    for (unsigned i = 0; i < r->count; i++)
        r->party[i].role = LOCKS_PERMITS;
}

/* ---- exclusion ---- */

static void locks_enter(struct mix_party *p)
{
    p->scratch[LOCKS_HELD] = 1;
    if (p->role == LOCKS_PERMITS) {
        CHECK_LE(mix_add(&locks.out, (int64_t)p->scratch[LOCKS_N]), locks.permits);
        return;
    }
    if (p->role == LOCKS_READ) {
        mix_add(&locks.readers, 1);
        CHECK_EQ(mix_get(&locks.writers), 0);
        CHECK_EQ(locks.plain[0], locks.plain[1]);
        return;
    }
    CHECK_EQ(mix_add(&locks.writers, 1), 1);
    CHECK_EQ(mix_get(&locks.readers), 0);
    locks.plain[0]++;
}

static void locks_exit(struct mix_party *p)
{
    p->scratch[LOCKS_HELD] = 0;
    if (p->role == LOCKS_PERMITS) {
        mix_add(&locks.out, -(int64_t)p->scratch[LOCKS_N]);
        CHECK_EQ(blitz_semaphore_release(&locks.semaphore, (uint32_t)p->scratch[LOCKS_N]), 0);
        return;
    }
    if (p->role == LOCKS_READ) {
        mix_add(&locks.readers, -1);
        blitz_rwlock_read_unlock(&locks.rwlock);
        return;
    }
    CHECK_EQ(++locks.plain[1], locks.plain[0]);
    if (p->role == LOCKS_MUTEX) {
        mix_add(&locks.writers, -1);
        blitz_mutex_unlock(&locks.mutex);
        return;
    }
    bool is_read_next = mix_one_in(&p->dice, 3);
    mix_add(&locks.readers, is_read_next);
    mix_add(&locks.writers, -1);
    if (!is_read_next) {
        blitz_rwlock_write_unlock(&locks.rwlock);
        return;
    }
    blitz_rwlock_downgrade(&locks.rwlock);
    CHECK_EQ(mix_get(&locks.writers), 0);
    mix_add(&locks.readers, -1);
    blitz_rwlock_read_unlock(&locks.rwlock);
}

/* ---- scripts ---- */

static int locks_try(struct mix_party *p)
{
    switch (p->role) {
    case LOCKS_MUTEX:
        return blitz_mutex_try_lock(&locks.mutex);
    case LOCKS_READ:
        return blitz_rwlock_try_read(&locks.rwlock);
    case LOCKS_WRITE:
        return blitz_rwlock_try_write(&locks.rwlock);
    default:
        return blitz_semaphore_try_acquire(&locks.semaphore, (uint32_t)p->scratch[LOCKS_N]);
    }
}

static void locks_choose(struct mix_party *p)
{
    if (p->role == LOCKS_PERMITS) {
        p->scratch[LOCKS_N] = mix_die(&p->dice, locks.permits + 1);
        p->op.n = p->scratch[LOCKS_N];
    }
    if (mix_one_in(&p->dice, 8) && locks_try(p) == 0) {
        locks_enter(p);
        return;
    }
    switch (p->role) {
    case LOCKS_MUTEX:
        mix_begin(p, &mix_lock, &locks.mutex);
        break;
    case LOCKS_READ:
        mix_begin(p, &mix_read, &locks.rwlock);
        break;
    case LOCKS_WRITE:
        mix_begin(p, &mix_write, &locks.rwlock);
        break;
    default:
        mix_begin(p, &mix_acquire, &locks.semaphore);
    }
}

static bool locks_next(struct mix_party *p)
{
    if (p->scratch[LOCKS_HELD] == 0) {
        if (p->left-- == 0)
            return false;
        locks_choose(p);
        return true;
    }
    p->op.n = mix_one_in(&p->dice, 3) ? mix_die(&p->dice, 20) * BLITZ_US : 0;
    mix_begin(p, &mix_pause, NULL);
    return true;
}

static void locks_done(struct mix_party *p, int rc)
{
    if (p->scratch[LOCKS_HELD]) {
        CHECK(rc == 0 || rc == -ECANCELED);
        locks_exit(p);
        return;
    }
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc != 0)
        return;
    locks_enter(p);
    if (mix_one_in(&p->dice, 2))
        locks_exit(p);
}

static void locks_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(mix_get(&locks.writers), 0);
    CHECK_EQ(mix_get(&locks.readers), 0);
    CHECK(!blitz_mutex_is_locked(&locks.mutex));
    CHECK_EQ(blitz_rwlock_try_write(&locks.rwlock), 0);
    CHECK_EQ(blitz_semaphore_permits(&locks.semaphore), locks.permits);
}

/* ---- permits that go one way ---- */

/* As many permits are released as the consumers request in total; a keeper never cancels. */
static void permits_make(struct mix_round *r)
{
    int64_t total = 0;
    memset(&locks, 0, sizeof locks);
    blitz_semaphore_init(&locks.semaphore, 0);
    for (uint64_t n = 1 + mix_die(&r->dice, 6); n > 0; n--) {
        struct mix_party *p = mix_join_in(r, LOCKS_CONSUME, mix_one_in(&r->dice, 2));
        p->left = 1 + (unsigned)mix_die(&r->dice, 8);
        p->scratch[LOCKS_N] = 1 + mix_die(&r->dice, 3);
        total += (int64_t)(p->left * p->scratch[LOCKS_N]);
    }
    locks.is_closing = mix_one_in(&r->dice, 5);
    uint64_t producers = 1 + mix_die(&r->dice, 3);
    for (uint64_t n = 0; n < producers; n++) {
        struct mix_party *p = mix_join_in(r, LOCKS_PRODUCE, true);
        p->left = (unsigned)(n + 1 < producers ? total / 2 : total);
        total -= p->left;
    }
    if (locks.is_closing)
        mix_join_in(r, LOCKS_CLOSE, true)->left = 1 + (unsigned)mix_die(&r->dice, 3);
    mix_say(r, "%s", locks.is_closing ? " closed suddenly" : "");
}

static bool permits_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->op.n = p->role == LOCKS_CONSUME ? p->scratch[LOCKS_N] : mix_die(&p->dice, 3) * 5 * BLITZ_US;
    mix_begin(p, p->role == LOCKS_CONSUME ? &mix_acquire : &mix_pause, &locks.semaphore);
    return true;
}

static void permits_done(struct mix_party *p, int rc)
{
    if (p->role == LOCKS_CONSUME) {
        CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED ||
              (rc == -EPIPE && locks.is_closing));
        p->is_over = rc == -EPIPE;
        p->left -= rc == 0;
        if (rc == 0)
            mix_add(&locks.acquired, (int64_t)p->scratch[LOCKS_N]);
        return;
    }
    unsigned n = 1 + (unsigned)mix_die(&p->dice, 4);
    n = n < p->left ? n : p->left;
    p->left -= n;
    if (p->role == LOCKS_PRODUCE) {
        mix_add(&locks.released, n);
        CHECK_EQ(blitz_semaphore_release(&locks.semaphore, n), 0);
    } else if (p->left == 0) {
        blitz_semaphore_close(&locks.semaphore);
    }
}

static void permits_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(blitz_semaphore_permits(&locks.semaphore),
             mix_get(&locks.released) - mix_get(&locks.acquired));
}

static const struct mix_scene mix_scene_mutex = {"mutex",    1,    mutex_make, locks_next,
                                                 locks_done, NULL, locks_check};
static const struct mix_scene mix_scene_rwlock = {"rwlock",   2,    rwlock_make, locks_next,
                                                  locks_done, NULL, locks_check};
static const struct mix_scene mix_scene_semaphore = {"semaphore", 1,    semaphore_make, locks_next,
                                                     locks_done,  NULL, locks_check};
static const struct mix_scene mix_scene_permits = {"permits",    2,    permits_make, permits_next,
                                                   permits_done, NULL, permits_check};

#endif
