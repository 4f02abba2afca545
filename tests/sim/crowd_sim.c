/*
 * Broadcasts and watches with receivers of every form: fibers, stackless tasks and plain threads, which
 * wait, poll, have deadlines or are cancelled; more of them than a sender can wake at a time.
 *
 * Every receiver of the broadcast sees the values in order and knows how many it has missed; every
 * follower of the watch sees the last value before the end. One that is not woken stops the run.
 */
#include "support/sched_sim.h"

#include "base/rng.h"

enum { RECEIVERS = 40, VALUES = 8, NAPS_MAX = 500 };
enum form { FIBER, STACKLESS, THREAD, FORMS };

struct receiver {
    enum form form;
    bool is_watch, is_future; /* which of the two, and how this operation is performed */
    bool is_cancelled;
    bz_atomic(int) has_ended;
    struct bz_rng rng;
    blitz_broadcast_rx rx;
    uint64_t seen;   /* of the watch */
    uint64_t missed; /* of the broadcast */
    int value, next; /* the last value, and the next expected one */
    blitz_task *task;
    struct bz_os_thread thread;
    blitz_frame frame; /* a stackless one's, as are the next two */
    blitz_sleep_future timer;
    blitz_deadline until;
    blitz_future *future;
    blitz_broadcast_future of_broadcast;
    blitz_watch_future of_watch;
};

static struct {
    const struct bz_os *os;
    uint64_t seed;
    blitz_broadcast *broadcast;
    blitz_watch *watch;
    struct receiver receiver[RECEIVERS];
} world;

static void draw(struct receiver *r)
{
    r->is_future = r->form == STACKLESS || bz_rng_below(&r->rng, 2);
    r->until = bz_rng_below(&r->rng, 3) ? BLITZ_FOREVER
                                        : bz_os_now(world.os) + bz_rng_below(&r->rng, 4) * BLITZ_US;
    if (r->is_watch) {
        blitz_watch_recv_future_init(&r->of_watch, world.watch, &r->value, &r->seen);
        r->future = &r->of_watch.future;
    } else {
        blitz_broadcast_recv_future_init(&r->of_broadcast, &r->rx, &r->value);
        r->future = &r->of_broadcast.future;
    }
}

/* The result of the future, awaited with rc. */
static int outcome(struct receiver *r, int rc)
{
    int result = r->is_watch ? r->of_watch.result : r->of_broadcast.result;
    r->missed = r->of_broadcast.missed;
    return result == -ECANCELED ? rc : result;
}

static int call(struct receiver *r)
{
    if (r->is_watch)
        return blitz_watch_recv(world.watch, &r->value, &r->seen, r->until);
    return blitz_broadcast_recv(&r->rx, &r->value, &r->missed, r->until);
}

/* One receive has ended with rc. False: it was the last one. */
static bool goes_on(struct receiver *r, int rc)
{
    if (rc == -EPIPE)
        CHECK_EQ(r->next, VALUES);
    r->is_cancelled |= rc == -ECANCELED;
    if (rc == 0 && r->is_watch)
        CHECK_GE(r->value, r->next);
    else if (rc == 0)
        CHECK_EQ(r->value, r->next + (int)r->missed);
    if (rc == 0)
        r->next = r->value + 1;
    else
        CHECK(rc == -EPIPE || rc == -ETIMEDOUT || rc == -ECANCELED);
    return rc == 0 || rc == -ETIMEDOUT;
}

static void receive_all(struct receiver *r)
{
    int rc;
    do {
        draw(r);
        rc = r->is_future ? outcome(r, blitz_await(r->future, r->until)) : call(r);
    } while (goes_on(r, rc));
    bz_store_release(&r->has_ended, 1); /* with what it has seen */
}

static int fiber(void *r)
{
    receive_all(r);
    return 0;
}

static void thread(void *r)
{
    receive_all(r);
}

static blitz_poll stackless(void *state, blitz_cx *cx)
{
    struct receiver *r = *(struct receiver **)state;
    int rc;
    BLITZ_BEGIN(&r->frame, cx);
    do {
        draw(r);
        if (r->until == BLITZ_FOREVER)
            BLITZ_AWAIT(rc, r->future);
        else
            BLITZ_AWAIT_UNTIL(rc, r->future, &r->timer, r->until);
        rc = outcome(r, rc);
    } while (goes_on(r, rc));
    bz_store_release(&r->has_ended, 1); /* with what it has seen */
    BLITZ_END(0);
}

static void start(struct receiver *r, int i, struct bz_rng *rng)
{
    r->rng = bz_rng_split(rng);
    r->form = (enum form)bz_rng_below(&r->rng, FORMS);
    r->is_watch = i % 2;
    r->seen = 1; /* of the value it was made with */
    blitz_broadcast_subscribe(world.broadcast, &r->rx);
    if (r->form == FIBER)
        CHECK_EQ(blitz_spawn(fiber, r, NULL, &r->task), 0);
    else if (r->form == STACKLESS)
        CHECK_EQ(blitz_spawn_poll(stackless, &r, sizeof r, NULL, &r->task), 0);
    else
        CHECK_EQ(bz_os_thread_start(world.os, &r->thread, NULL, thread, r), 0);
}

static void end(struct receiver *r)
{
    for (int naps = 0; !bz_load_acquire(&r->has_ended); naps++) { /* as above */
        if (naps > NAPS_MAX)
            FAIL("a receiver waits for ever");
        CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    }
    if (r->form == THREAD)
        bz_os_thread_join(world.os, &r->thread);
    else
        CHECK_EQ(blitz_task_join(r->task, NULL, BLITZ_FOREVER), 0);
    blitz_broadcast_unsubscribe(&r->rx);
}

static int crowds(void *arg)
{
    struct bz_rng rng;
    (void)arg;
    bz_rng_init(&rng, world.seed);
    CHECK_EQ(blitz_broadcast_new(sizeof(int), 1 + bz_rng_below(&rng, 3), &world.broadcast), 0);
    CHECK_EQ(blitz_watch_new(sizeof(int), &(int){-1}, &world.watch), 0);
    for (int i = 0; i < RECEIVERS; i++)
        start(&world.receiver[i], i, &rng);
    for (int i = 0; i < VALUES; i++) {
        struct receiver *victim = &world.receiver[bz_rng_below(&rng, RECEIVERS)];
        CHECK_EQ(blitz_broadcast_send(world.broadcast, &i), 0);
        CHECK_EQ(blitz_watch_send(world.watch, &i), 0);
        if (bz_rng_below(&rng, 2))
            CHECK_EQ(blitz_sleep(bz_rng_below(&rng, 3) * BLITZ_US), 0);
        if (bz_rng_below(&rng, 4) == 0 && victim->form != THREAD)
            blitz_task_cancel(victim->task);
    }
    blitz_broadcast_close(world.broadcast);
    blitz_watch_close(world.watch);
    for (int i = 0; i < RECEIVERS; i++)
        end(&world.receiver[i]);
    blitz_broadcast_unref(world.broadcast);
    blitz_watch_unref(world.watch);
    return 0;
}

static void play(const struct bz_os *os, void *arg)
{
    struct sim_scene s = {1 + (unsigned)(world.seed % 3), crowds, NULL, 0};
    uint64_t seed = world.seed;
    (void)arg;
    memset(&world, 0, sizeof world);
    world.os = os;
    world.seed = seed;
    sim_play(os, &s);
}

TEST_LIMIT(crowd, bug_41_receivers_of_all_forms_see_every_change, 240)
{
    for (uint64_t i = 0, n = sim_seeds(1500); i < n; i++) {
        world.seed = sim_next_seed();
        struct bz_sim_config config = {.seed = world.seed,
                                       .has_no_barrier = world.seed / 4 % 4 == 0};
        t_watch("simulation seed 0x%llx", (unsigned long long)world.seed);
        CHECK_EQ(bz_sim_run(&config, play, NULL, NULL), 0);
    }
}
