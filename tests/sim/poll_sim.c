/*
 * Stackless tasks in virtual time, from seeds: every order in which a poll, its wakers, its timers
 * and its canceller can meet, as far as the seeds go. A wake that is lost is a deadlock, and reported.
 */
#include "support/sched_sim.h"

static int join(blitz_task *t)
{
    int result = -1;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

/* ---- the swallowed wake ---- */

struct bell {
    bz_atomic(bool) has_waker, is_rung; /* has_waker orders waker */
    blitz_waker waker;
};

/* Asks, gives its waker away, and waits before it says "pending": by a future, behind the waker the
 * poll has as well, so that the wait takes what is meant for the poll. */
static blitz_poll asks_then_waits(void *state, blitz_cx *cx)
{
    struct bell *b = *(struct bell **)state;
    if (bz_load_acquire(&b->is_rung))
        return BLITZ_READY;
    if (!bz_load_relaxed(&b->has_waker)) {
        b->waker = blitz_waker_clone(cx->waker);
        bz_store_release(&b->has_waker, true);
    }
    blitz_sleep_future nap;
    blitz_sleep_until_future_init(&nap, blitz_after(10 * BLITZ_US));
    CHECK_EQ(blitz_await(&nap.future, BLITZ_FOREVER), 0);
    return BLITZ_PENDING;
}

static int ring(void *bell)
{
    struct bell *b = bell;
    while (!bz_load_acquire(&b->has_waker))
        CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    bz_store_release(&b->is_rung, true);
    blitz_waker_wake(&b->waker);
    return 0;
}

static int ring_one_that_waits(void *arg)
{
    struct bell bell = {false}, *b = &bell;
    blitz_task *t, *ringer;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(asks_then_waits, &b, sizeof b, NULL, &t), 0);
    CHECK_EQ(blitz_spawn(ring, b, NULL, &ringer), 0);
    CHECK_EQ(join(t), 0);
    CHECK_EQ(join(ringer), 0);
    return 0;
}

TEST(poll, bug_01_a_swallowed_wake_is_made_good)
{
    sim_on_seeds(ring_one_that_waits, NULL, 0, 300);
}

/* ---- tokens ---- */

enum { RING = 6, ROUNDS = 4 };

static struct {
    struct bz_lock lock;
    blitz_waker waker[RING]; /* guarded by lock */
    bz_atomic(int) at;       /* whose turn it is */
} token;

static void keep_waker(int who, const blitz_waker *w)
{
    const struct bz_os *os = bz_machine_self()->rt->os;
    bz_lock_take(&token.lock, os);
    token.waker[who] = blitz_waker_clone(w);
    bz_lock_drop(&token.lock, os);
}

static void wake(int who)
{
    const struct bz_os *os = bz_machine_self()->rt->os;
    bz_lock_take(&token.lock, os);
    blitz_waker w = blitz_waker_clone(&token.waker[who]);
    bz_lock_drop(&token.lock, os);
    blitz_waker_wake(&w);
}

struct member {
    blitz_frame frame;
    int me, rounds;
};

static blitz_poll passes_on(void *state, blitz_cx *cx)
{
    struct member *s = state;
    BLITZ_BEGIN(&s->frame, cx);
    keep_waker(s->me, cx->waker);
    for (s->rounds = 0; s->rounds < ROUNDS; s->rounds++) {
        BLITZ_WAIT_FOR(bz_load_acquire(&token.at) % RING == s->me);
        bz_fetch_add_release(&token.at, 1);
        wake((s->me + 1) % RING);
    }
    BLITZ_END(s->rounds);
}

static int ring_of_tokens(void *arg)
{
    blitz_task *t[RING];
    (void)arg;
    bz_store_relaxed(&token.at, 0);
    bz_lock_init(&token.lock);
    memset(token.waker, 0, sizeof token.waker);
    for (int i = RING; i-- > 0;) {
        struct member s = {.me = i};
        CHECK_EQ(blitz_spawn_poll(passes_on, &s, sizeof s, NULL, &t[i]), 0);
    }
    for (int i = 0; i < RING; i++)
        CHECK_EQ(join(t[i]), ROUNDS);
    for (int i = 0; i < RING; i++)
        blitz_waker_drop(&token.waker[i]);
    return 0;
}

TEST(poll, bug_01_a_token_goes_round)
{
    sim_on_seeds(ring_of_tokens, NULL, 0, 300);
}

/* ---- sleeps, joins, deadlines, cancels ---- */

struct busy {
    blitz_frame frame;
    blitz_sleep_future nap, timer;
    blitz_join_future child;
    blitz_task *task;
    int kind;
};

static int naps(void *arg)
{
    return blitz_sleep((uint64_t)(intptr_t)arg * 100 * BLITZ_US);
}

static blitz_poll is_busy(void *state, blitz_cx *cx)
{
    struct busy *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    BLITZ_SLEEP(rc, &s->nap, (uint64_t)s->kind * 50 * BLITZ_US);
    if (rc != 0)
        BLITZ_RETURN(rc);
    CHECK_EQ(blitz_spawn(naps, (void *)(intptr_t)s->kind, NULL, &s->task), 0);
    blitz_task_join_future_init(&s->child, s->task);
    BLITZ_AWAIT_UNTIL(rc, &s->child.future, &s->timer, blitz_after(100 * BLITZ_US));
    if (rc == 0)
        BLITZ_RETURN(s->child.value);
    BLITZ_YIELD();
    BLITZ_JOIN(rc, &s->child, s->task); /* the handle is still ours; a cancel is passed on */
    CHECK_EQ(rc, 0);
    BLITZ_END(s->child.value);
}

static int busy_and_cancelled(void *arg)
{
    enum { N = 8 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        struct busy s = {.kind = i % 4};
        CHECK_EQ(blitz_spawn_poll(is_busy, &s, sizeof s, NULL, &t[i]), 0);
    }
    for (int i = 0; i < N; i += 2) {
        if (i % 4 == 0)
            CHECK_EQ(blitz_sleep((uint64_t)i * 20 * BLITZ_US), 0);
        blitz_task_cancel(t[i]);
    }
    for (int i = 0; i < N; i++) {
        int result = join(t[i]);
        CHECK(result == 0 || (i % 2 == 0 && result == -ECANCELED));
    }
    return 0;
}

TEST(poll, sleeps_joins_deadlines_and_cancels_in_any_order)
{
    sim_on_seeds(busy_and_cancelled, NULL, 0, 400);
}

/* ---- the end ---- */

static blitz_poll never(void *state, blitz_cx *cx)
{
    (void)state;
    cx->result = -ECANCELED;
    return blitz_is_cancelled() ? BLITZ_READY : BLITZ_PENDING;
}

static blitz_poll sleeps_on(void *state, blitz_cx *cx)
{
    struct busy *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    BLITZ_SLEEP(rc, &s->nap, (uint64_t)s->kind * 50 * BLITZ_US);
    BLITZ_YIELD();
    BLITZ_SLEEP(rc, &s->nap, BLITZ_S);
    BLITZ_END(rc);
}

static int leave_sleepers_behind(void *arg)
{
    (void)arg;
    for (int i = 0; i < 4; i++) {
        struct busy s = {.kind = i};
        CHECK_EQ(blitz_spawn_poll(i % 2 ? sleeps_on : never, &s, sizeof s, NULL, NULL), 0);
    }
    return 3;
}

/* Bug class 37: shutdown comes upon them in every state. */
TEST(poll, bug_37_shutdown_ends_stackless_tasks_in_every_state)
{
    sim_on_seeds(leave_sleepers_behind, NULL, 3, 300);
}
