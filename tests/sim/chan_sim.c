/*
 * Channels in the whole runtime, in virtual time, from seeds.
 *
 * Histories: a few tasks and a plain thread do random operations on one channel, as calls, futures
 * or selects, with deadlines and cancels. Every call and return is recorded. The history must be
 * linearizable and prompt: the deadlines that keep a run from hanging must not hide a lost wake-up
 * (support/lin.h).
 *
 * Conservation: the sent values are those received and those left, with any cancels: also with a
 * cancel at every single point of a run, one after the other.
 */
#include "support/sched_sim.h"

#include "base/rng.h"
#include "chan/chan.h"
#include "runtime/runtime.h"
#include "support/lin.h"

enum { WORKERS = 4, OPS = 4 };

struct scene {
    const struct bz_os *os;
    /* guards the next three: one thread runs at a time, so this is only for TSan */
    struct bz_lock lock;
    struct bz_rng rng;
    struct lin h;
    blitz_chan *c;
    blitz_task *task[WORKERS];
    int next_value;
    uint64_t seed;
};

/* ---- histories ---- */

static unsigned draw(struct scene *s, unsigned below)
{
    bz_lock_take(&s->lock, s->os);
    unsigned n = (unsigned)bz_rng_below(&s->rng, below);
    bz_lock_drop(&s->lock, s->os);
    return n;
}

static int called(struct scene *s, enum lin_kind kind, int *value)
{
    bz_lock_take(&s->lock, s->os);
    if (kind == LIN_SEND)
        *value = ++s->next_value;
    s->h.now = bz_os_now(s->os);
    int i = lin_call(&s->h, kind, *value);
    bz_lock_drop(&s->lock, s->os);
    return i;
}

static void returned(struct scene *s, int i, int result, int value)
{
    bz_lock_take(&s->lock, s->os);
    s->h.now = bz_os_now(s->os);
    lin_return(&s->h, i, result, value);
    bz_lock_drop(&s->lock, s->os);
}

/* The deadline of operation i. */
static blitz_deadline soon(struct scene *s, int i)
{
    blitz_deadline until;
    switch (draw(s, 4)) {
    case 0:
        return 0;
    case 1:
        return bz_os_now(s->os) + draw(s, 4) * BLITZ_US;
    default:
        until = bz_os_now(s->os) + BLITZ_MS; /* so that no task waits forever */
        bz_lock_take(&s->lock, s->os);
        lin_waits_until(&s->h, i, until);
        bz_lock_drop(&s->lock, s->os);
        return until;
    }
}

static int by_future(blitz_chan_future *f, blitz_deadline until)
{
    int rc = blitz_await(&f->future, until);
    return f->result == -ECANCELED ? rc : f->result;
}

static int by_select(blitz_select_case x, blitz_deadline until)
{
    int other;
    blitz_select_case cases[2] = {x, blitz_case_recv(NULL, &other)};
    int chosen = blitz_select_wait(cases, 2, 0, until);
    return chosen == 0 ? cases[0].error : chosen;
}

static int one_send(struct scene *s, int i, int value)
{
    blitz_chan_future f;
    switch (draw(s, 5)) {
    case 0:
        return blitz_chan_try_send(s->c, &value);
    case 1:
        blitz_chan_send_future_init(&f, s->c, &value);
        return by_future(&f, soon(s, i));
    case 2:
        return by_select(blitz_case_send(s->c, &value), soon(s, i));
    case 3:
        return blitz_chan_send_many(s->c, &value, 1, NULL, soon(s, i));
    default:
        return blitz_chan_send(s->c, &value, soon(s, i));
    }
}

static int one_recv(struct scene *s, int i, int *value)
{
    blitz_chan_future f;
    size_t n;
    switch (draw(s, 5)) {
    case 0:
        return blitz_chan_try_recv(s->c, value);
    case 1:
        blitz_chan_recv_future_init(&f, s->c, value);
        return by_future(&f, soon(s, i));
    case 2:
        return by_select(blitz_case_recv(s->c, value), soon(s, i));
    case 3:
        return blitz_chan_recv_many(s->c, value, 1, &n, soon(s, i));
    default:
        return blitz_chan_recv(s->c, value, soon(s, i));
    }
}

/* (A permit is two operations, and what is in between shows: not here, but below.) */
static void one_op(struct scene *s)
{
    unsigned dice = draw(s, 40);
    int value = 0, rc, i;
    if (dice < 17) {
        i = called(s, LIN_SEND, &value);
        rc = one_send(s, i, value);
    } else if (dice < 34) {
        i = called(s, LIN_RECV, &value);
        rc = one_recv(s, i, &value);
    } else if (dice < 36) {
        i = called(s, LIN_LEN, &value);
        rc = (int)blitz_chan_len(s->c);
    } else if (dice == 36) {
        i = called(s, LIN_CLOSE, &value);
        blitz_chan_close(s->c);
        rc = 0;
    } else if (dice == 37) {
        i = called(s, LIN_SHUT, &value);
        rc = (int)blitz_chan_shut(s->c);
    } else {
        i = called(s, LIN_ADD, &value);
        rc = blitz_chan_sender_add(s->c);
        if (rc == 0) {
            returned(s, i, rc, 0);
            i = called(s, LIN_DROP, &value);
            blitz_chan_sender_drop(s->c);
        }
    }
    returned(s, i, rc, value);
}

static int worker(void *arg)
{
    struct scene *s = arg;
    for (int i = 0; i < OPS && !blitz_is_cancelled(); i++)
        one_op(s);
    return 0;
}

static void thread(void *arg)
{
    struct scene *s = arg;
    for (int i = 0; i < OPS; i++)
        one_op(s);
}

static int recorded(void *arg)
{
    struct scene *s = arg;
    struct bz_os_thread plain;
    bool has_thread = draw(s, 2);
    CHECK_EQ(blitz_chan_new(sizeof(int), draw(s, 3), NULL, &s->c), 0);
    s->h = (struct lin){.capacity = (int)blitz_chan_capacity(s->c), .senders = 1};
    CHECK_EQ(blitz_chan_sender_add(s->c), 0); /* it is closed by a close, or when this one goes */
    if (has_thread)
        CHECK_EQ(bz_os_thread_start(s->os, &plain, NULL, thread, s), 0);
    for (int i = 0; i < WORKERS - 1; i++)
        CHECK_EQ(blitz_spawn(worker, s, NULL, &s->task[i]), 0);
    for (unsigned n = draw(s, 3); n > 0; n--) {
        CHECK_EQ(blitz_sleep(draw(s, 3) * BLITZ_US), 0);
        blitz_task_cancel(s->task[draw(s, WORKERS - 1)]);
    }
    for (int i = 0; i < WORKERS - 1; i++)
        CHECK_EQ(blitz_task_join(s->task[i], NULL, BLITZ_FOREVER), 0);
    if (has_thread)
        bz_os_thread_join(s->os, &plain);
    return 0;
}

static void play_recorded(const struct bz_os *os, void *arg)
{
    static char text[4096];
    struct scene *s = arg;
    struct bz_runtime *rt;
    s->os = os;
    bz_lock_init(&s->lock);
    bz_rng_init(&s->rng, s->seed);
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1 + (unsigned)(s->seed % 3)}, &rt),
             0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, recorded, s), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    if (!lin_is_linearizable(&s->h)) {
        lin_print(&s->h, text, sizeof text);
        FAIL("capacity %d, not linearizable:\n%s", s->h.capacity, text);
    }
    if (!lin_is_prompt(&s->h)) {
        lin_print(&s->h, text, sizeof text);
        FAIL("capacity %d, timed out beside what it waited for:\n%s", s->h.capacity, text);
    }
    CHECK(bz_list_is_empty(&s->c->receivers) && bz_list_is_empty(&s->c->senders));
    CHECK_EQ(s->c->notified_receivers + s->c->notified_senders + s->c->permits, 0u);
    blitz_chan_sender_drop(s->c);
    blitz_chan_unref(s->c);
}

/* Bug class 24: close, drop and clone against everything else, and everything else against itself. */
TEST_LIMIT(chan_sim, bug_24_every_history_is_linearizable, 120)
{
    static struct scene s;
    for (uint64_t i = 0, n = sim_seeds(3000); i < n; i++) {
        s = (struct scene){.seed = sim_next_seed()};
        struct bz_sim_config config = {.seed = s.seed, .has_no_barrier = s.seed / 4 % 4 == 0};
        t_watch("simulation seed 0x%llx", (unsigned long long)s.seed);
        CHECK_EQ(bz_sim_run(&config, play_recorded, &s, NULL), 0);
    }
}

/* ---- conservation ---- */

enum { ROUNDS = 6 };

static struct {
    blitz_chan *c[2];
    bz_atomic(int) sent, received, sum_sent, sum_received; /* relaxed: one runs at a time */
    blitz_task *task[8];
    int tasks;
    blitz_task *victim;
} world;

static void has_sent(int value)
{
    bz_fetch_add_relaxed(&world.sent, 1);         /* relaxed: as above */
    bz_fetch_add_relaxed(&world.sum_sent, value); /* relaxed: as above */
}

static void has_received(int value)
{
    bz_fetch_add_relaxed(&world.received, 1);         /* relaxed: as above */
    bz_fetch_add_relaxed(&world.sum_received, value); /* relaxed: as above */
}

static int sends(void *arg)
{
    int base = (int)(intptr_t)arg * 100;
    for (int i = 0; i < ROUNDS; i++) {
        int value = base + i;
        blitz_permit permit;
        int rc = i % 3 ? -EOPNOTSUPP : blitz_chan_reserve(world.c[i % 2], &permit, BLITZ_FOREVER);
        if (rc == 0)
            blitz_permit_send(&permit, &value);
        else if (rc == -EOPNOTSUPP)
            rc = blitz_chan_send(world.c[i % 2], &value, BLITZ_FOREVER);
        if (rc != 0)
            return rc;
        has_sent(value);
    }
    return 0;
}

static int receives(void *arg)
{
    blitz_chan *c = world.c[(intptr_t)arg];
    int value, rc;
    while ((rc = blitz_chan_recv(c, &value, BLITZ_FOREVER)) == 0)
        has_received(value);
    return rc;
}

static int receives_by_futures(void *arg)
{
    blitz_chan *c = world.c[(intptr_t)arg];
    for (;;) {
        blitz_chan_future f;
        int value;
        blitz_chan_recv_future_init(&f, c, &value);
        int rc = blitz_await(&f.future, BLITZ_FOREVER);
        if (f.result != 0)
            return rc != 0 ? rc : f.result;
        has_received(value);
    }
}

static int selects(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int in = 1000 + i, out;
        blitz_select_case cases[2];
        cases[0] = blitz_case_send(world.c[i % 2], &in);
        cases[1] = blitz_case_recv(world.c[(i + 1) % 2], &out);
        int chosen = blitz_select_wait(cases, 2, 0, BLITZ_FOREVER);
        if (chosen < 0 || cases[chosen].error != 0)
            return chosen;
        if (chosen == 0)
            has_sent(in);
        else
            has_received(out);
    }
    return 0;
}

static int selects_polled(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        int in = 2000 + i, out;
        blitz_select_case cases[2];
        blitz_select_future f;
        cases[0] = blitz_case_recv(world.c[i % 2], &out);
        cases[1] = blitz_case_send(world.c[(i + 1) % 2], &in);
        blitz_select_wait_future_init(&f, cases, 2, 0);
        (void)!blitz_await(&f.future, BLITZ_FOREVER);
        if (f.result < 0 || cases[f.result].error != 0)
            return f.result;
        if (f.result == 1)
            has_sent(in);
        else
            has_received(out);
    }
    return 0;
}

static void spawn(int (*fn)(void *), intptr_t arg)
{
    CHECK_EQ(blitz_spawn(fn, (void *)arg, NULL, &world.task[world.tasks++]), 0);
}

/* The finder of a remaining value counts it. */
static void drain(blitz_chan *c)
{
    int value;
    while (blitz_chan_try_recv(c, &value) == 0)
        has_received(value);
    CHECK(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->senders));
    CHECK_EQ(c->notified_receivers + c->notified_senders, 0u);
    blitz_chan_unref(c);
}

static void begin(size_t capacity)
{
    memset(&world, 0, sizeof world);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_chan_new(sizeof(int), capacity, NULL, &world.c[i]), 0);
    spawn(receives, 0);
    spawn(receives_by_futures, 1);
    spawn(selects, 0);
    spawn(selects_polled, 0);
    spawn(sends, 1);
    spawn(sends, 2);
}

/* The senders first: what they wait for is received, or they were cancelled. */
static void end(void)
{
    for (int i = 4; i < 6; i++)
        CHECK_EQ(blitz_task_join(world.task[i], NULL, BLITZ_FOREVER), 0);
    blitz_chan_close(world.c[0]);
    blitz_chan_close(world.c[1]);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(world.task[i], NULL, BLITZ_FOREVER), 0);
    drain(world.c[0]);
    drain(world.c[1]);
    CHECK_EQ(bz_load_relaxed(&world.received),
             bz_load_relaxed(&world.sent));        /* relaxed: as above */
    CHECK_EQ(bz_load_relaxed(&world.sum_received), /* relaxed: as above */
             bz_load_relaxed(&world.sum_sent));    /* relaxed: as above */
}

static int conserves(void *arg)
{
    struct bz_rng *rng = arg;
    begin(bz_rng_below(rng, 3));
    for (unsigned n = (unsigned)bz_rng_below(rng, 4); n > 0; n--) {
        CHECK_EQ(blitz_sleep(bz_rng_below(rng, 3) * BLITZ_US), 0);
        /* the receivers of last resort stay, or the senders would wait for ever */
        blitz_task_cancel(world.task[2 + bz_rng_below(rng, 4)]);
    }
    end();
    return 0;
}

/* Bug class 21: cancels that come whenever they like lose nothing and double nothing. */
TEST_LIMIT(chan_sim, bug_21_sent_values_are_received_despite_any_cancels, 120)
{
    static struct bz_rng rng;
    for (uint64_t i = 0, n = sim_seeds(1500); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {1 + (unsigned)(seed % 4), conserves, &rng, 0};
        bz_rng_init(&rng, seed);
        sim_one(seed, &s);
    }
}

/* ---- a cancel at every point ---- */

static bz_os_word cancel_now; /* poked */
static int victim;            /* whose turn it is */

static void cancels(void *arg)
{
    const struct bz_os *os = arg;
    while (bz_load_acquire(&cancel_now) == 0) /* os.h, sleep words */
        bz_os_wait(os, &cancel_now, 0, BZ_OS_FOREVER);
    blitz_task_cancel(world.victim);
    blitz_task_detach(world.victim);
}

static int pokes(void *arg)
{
    const struct bz_os *os = arg;
    struct bz_os_thread canceller;
    begin(1);
    world.victim = blitz_task_ref(world.task[victim]);
    CHECK_EQ(bz_os_thread_start(os, &canceller, NULL, cancels, arg), 0);
    end();
    bz_store_release(&cancel_now, 1); /* os.h, sleep words: if it has not come by now */
    bz_os_wake(os, &cancel_now, 1);
    bz_os_thread_join(os, &canceller);
    return 0;
}

static void play_poked(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    (void)arg;
    bz_atomic_init(&cancel_now, 0);
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, pokes, (void *)os), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* The same run again and again, the cancel one point later each time. */
TEST_LIMIT(chan_sim, bug_22_a_cancel_at_every_point_of_a_run, 240)
{
    uint64_t runs = 0;
    for (uint64_t round = 0, rounds = sim_seeds(8); round < rounds; round++) {
        uint64_t seed = sim_next_seed(), steps = 1;
        victim = 2 + (int)(round % 4);
        for (uint64_t at = 1; at <= steps; at++, runs++) {
            struct bz_sim_result r;
            struct bz_sim_config config = {.seed = seed, .poke = &cancel_now, .poke_at = at};
            t_watch("simulation seed 0x%llx, victim %d, cancelled at %llu",
                    (unsigned long long)seed, victim, (unsigned long long)at);
            CHECK_EQ(bz_sim_run(&config, play_poked, NULL, &r), 0);
            steps = r.steps;
        }
    }
    t_note("%llu runs", (unsigned long long)runs);
}
