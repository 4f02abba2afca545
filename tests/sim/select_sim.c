/*
 * The shares of a select's cases. Each ready case must be chosen equally often: in every form of select,
 * for every kind of case, for every number and place of the ready ones, at once and after a wait.
 *
 * The counts are compared with even shares by Pearson's chi-square. The seeds are fixed, so a verdict is
 * the same in every run; the bounds are those that an even draw exceeds once in ten million.
 */
#include "support/sched_sim.h"

#include "base/rng.h"
#include "chan/chan.h"
#include "runtime/runtime.h"
#include "support/bell.h"
#include "support/event.h"

enum { MAX = BLITZ_SELECT_MAX, ROUNDS = 1500 };

/* By degrees of freedom; 0 is not used. */
static const double bound[MAX] = {0,    28.4, 32.2, 35.4, 38.2, 40.9, 43.3, 45.7,
                                  48.0, 50.2, 52.3, 54.4, 56.4, 58.4, 60.4, 62.3};

enum kind { RECV, SEND, CLOSED, FUTURE, TIME, KINDS };
static const char *const kind_name[] = {"receives", "sends", "closed", "futures", "times", "mixed"};

/* How the select is made. */
enum form {
    CALL,    /* the call with an array */
    NOW,     /* the same, without waiting */
    AWAITED, /* the future, awaited */
    POLLED,  /* the future, polled once before anything is ready and once after */
    FORMS
};
static const char *const form_name[] = {"call", "call now", "awaited", "polled twice"};

struct world {
    const struct bz_os *os;
    unsigned count;
    uint32_t ready; /* one bit a case */
    enum kind kind[MAX];
    blitz_chan *c[MAX];
    struct t_event event[MAX];
    int value[MAX];
    unsigned chosen[MAX];
    blitz_select_case cases[MAX];
};

static bool is_ready(const struct world *w, unsigned i)
{
    return w->ready >> i & 1;
}

/* Make case i what it is before a select: not ready. */
static void disarm(struct world *w, unsigned i)
{
    int value = 7;
    if (w->c[i] != NULL)
        blitz_chan_unref(w->c[i]);
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &w->c[i]), 0);
    if (w->kind[i] == SEND)
        CHECK_EQ(blitz_chan_try_send(w->c[i], &value), 0);
    t_event_init(&w->event[i], w->os);
}

static void arm(struct world *w, unsigned i)
{
    int value = 7;
    if (w->kind[i] == RECV)
        CHECK_EQ(blitz_chan_try_send(w->c[i], &value), 0);
    else if (w->kind[i] == SEND)
        CHECK_EQ(blitz_chan_try_recv(w->c[i], &value), 0);
    else if (w->kind[i] == CLOSED)
        blitz_chan_close(w->c[i]);
    else if (w->kind[i] == FUTURE)
        t_event_set(&w->event[i]);
}

static void arm_all(struct world *w)
{
    for (unsigned i = 0; i < w->count; i++)
        if (is_ready(w, i))
            arm(w, i);
}

/* The cases as they are given to the select. A time that is to pass does so while the select waits. */
static void write_cases(struct world *w, uint64_t passes)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (w->kind[i] == SEND)
            w->cases[i] = blitz_case_send(w->c[i], &w->value[i]);
        else if (w->kind[i] == FUTURE)
            w->cases[i] = blitz_case_future(&w->event[i].f);
        else if (w->kind[i] == TIME)
            w->cases[i] = blitz_case_time(is_ready(w, i) ? passes : BLITZ_FOREVER);
        else
            w->cases[i] = blitz_case_recv(w->c[i], &w->value[i]);
    }
}

static int choose_polled(struct world *w)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker waker = t_bell_waker(&bell);
    blitz_select_future f;
    uint64_t passes = bz_os_now(w->os) + BLITZ_MS;
    write_cases(w, passes);
    blitz_select_wait_future_init(&f, w->cases, w->count, BLITZ_SELECT_FAIR);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    arm_all(w);
    while (bz_os_now(w->os) < passes)
        t_burn(BLITZ_MS);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_READY);
    return f.result;
}

static int choose(struct world *w, enum form form)
{
    blitz_select_future f;
    if (form == POLLED)
        return choose_polled(w);
    arm_all(w);
    write_cases(w, 1);
    if (form != AWAITED)
        return blitz_select_wait(w->cases, w->count, form == NOW ? BLITZ_SELECT_NOW : 0,
                                 BLITZ_FOREVER);
    blitz_select_wait_future_init(&f, w->cases, w->count, BLITZ_SELECT_FAIR);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    return f.result;
}

static void check_shares(const unsigned *chosen, unsigned ready, unsigned count, unsigned rounds)
{
    double want = (double)rounds / ready, chi = 0;
    char text[256];
    size_t used = 0;
    unsigned seen = 0;
    for (unsigned i = 0; i < count; i++) {
        seen += chosen[i] > 0;
        chi += chosen[i] > 0 ? (chosen[i] - want) * (chosen[i] - want) / want : 0;
        used += (size_t)snprintf(text + used, sizeof text - used, " %u", chosen[i]);
    }
    chi += (ready - seen) * want; /* those that were never chosen */
    if (chi > bound[ready - 1])
        FAIL("%u ready of %u, chosen:%s: chi-square %.1f, at most %.1f", ready, count, text, chi,
             bound[ready - 1]);
}

/* One arrangement of cases, in one form. */
static void try_world(struct world *w, enum form form)
{
    unsigned ready = 0;
    memset(w->chosen, 0, sizeof w->chosen);
    for (unsigned i = 0; i < w->count; i++)
        ready += is_ready(w, i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < w->count; i++)
            disarm(w, i);
        int chosen = choose(w, form);
        CHECK_GE(chosen, 0);
        CHECK(is_ready(w, (unsigned)chosen));
        w->chosen[chosen]++;
    }
    check_shares(w->chosen, ready, w->count, ROUNDS);
    for (unsigned i = 0; i < w->count; i++)
        blitz_chan_unref(w->c[i]);
    memset(w->c, 0, sizeof w->c);
}

/* All kinds alone and mixed, in all forms, with a number and places of ready ones that the dice say. */
static void try_all(const struct bz_os *os, struct bz_rng *rng)
{
    static struct world w;
    for (unsigned kind = 0; kind <= KINDS; kind++)
        for (unsigned form = 0; form < FORMS; form++) {
            w.os = os;
            w.count = 2 + bz_rng_below(rng, MAX - 1);
            w.ready = 0;
            unsigned ready = 2 + bz_rng_below(rng, w.count - 1);
            for (unsigned i = 0; i < w.count; i++)
                w.kind[i] = (enum kind)(kind < KINDS ? kind : bz_rng_below(rng, KINDS));
            while (ready > 0) {
                unsigned i = bz_rng_below(rng, w.count);
                ready -= !is_ready(&w, i);
                w.ready |= 1u << i;
            }
            t_watch("%s, %s, 0x%x of %u", kind_name[kind], form_name[form], w.ready, w.count);
            try_world(&w, (enum form)form);
        }
}

static struct bz_rng dice;

static int in_a_task(void *arg)
{
    try_all(arg, &dice);
    return 0;
}

static void play_in_a_task(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    (void)arg;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, in_a_task, (void *)os), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

static void play_on_a_thread(const struct bz_os *os, void *arg)
{
    (void)arg;
    try_all(os, &dice);
}

TEST_LIMIT(select_sim, every_ready_case_is_chosen_equally_often, 240)
{
    t_scenario play[] = {play_in_a_task, play_on_a_thread};
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (size_t i = 0; i < BZ_ARRAY_LEN(play); i++) {
            bz_rng_init(&dice, seed);
            struct bz_sim_config config = {.seed = seed, .steps_max = UINT64_MAX};
            CHECK_EQ(bz_sim_run(&config, play[i], NULL, NULL), 0);
        }
}

/* ---- after a wait ---- */

/* Cases of one kind on one channel, or times with one moment: all become ready in the same step, while
 * the select waits. */
static struct {
    blitz_chan *c;
    enum kind kind; /* RECV, SEND or TIME */
    bool is_polled;
    unsigned count;
    unsigned chosen[MAX];
} crowd;

static int choose_after_a_wait(void)
{
    blitz_select_case cases[MAX];
    blitz_select_future f;
    int value = 3;
    blitz_deadline when = blitz_after(BLITZ_MS);
    for (unsigned i = 0; i < crowd.count; i++)
        cases[i] = crowd.kind == TIME   ? blitz_case_time(when)
                   : crowd.kind == RECV ? blitz_case_recv(crowd.c, &value)
                                        : blitz_case_send(crowd.c, &value);
    if (!crowd.is_polled)
        return blitz_select_wait(cases, crowd.count, BLITZ_SELECT_FAIR, BLITZ_FOREVER);
    blitz_select_wait_future_init(&f, cases, crowd.count, BLITZ_SELECT_FAIR);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    return f.result;
}

static int chooses(void *arg)
{
    (void)arg;
    for (unsigned round = 0; round < ROUNDS; round++) {
        int chosen = choose_after_a_wait();
        CHECK_GE(chosen, 0);
        crowd.chosen[chosen]++;
    }
    return 0;
}

/* The other end: comes when the select waits. */
static void meet(void)
{
    int value = 3;
    struct bz_list *line = crowd.kind == RECV ? &crowd.c->receivers : &crowd.c->senders;
    while (bz_list_is_empty(line))
        CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    if (crowd.kind == RECV)
        CHECK_EQ(blitz_chan_send(crowd.c, &value, BLITZ_FOREVER), 0);
    else
        CHECK_EQ(blitz_chan_recv(crowd.c, &value, BLITZ_FOREVER), 0);
}

static int waits_in_a_crowd(void *arg)
{
    blitz_task *t;
    (void)arg;
    memset(crowd.chosen, 0, sizeof crowd.chosen);
    CHECK_EQ(blitz_chan_new(sizeof(int), 0, NULL, &crowd.c), 0);
    CHECK_EQ(blitz_spawn(chooses, NULL, NULL, &t), 0);
    for (unsigned round = 0; round < ROUNDS && crowd.kind != TIME; round++)
        meet();
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    check_shares(crowd.chosen, crowd.count, crowd.count, ROUNDS);
    blitz_chan_unref(crowd.c);
    return 0;
}

TEST_LIMIT(select_sim, cases_that_become_ready_together_are_chosen_equally_often, 240)
{
    static const enum kind kinds[] = {RECV, SEND, TIME};
    static const unsigned counts[] = {2, 3, MAX};
    for (size_t k = 0; k < BZ_ARRAY_LEN(kinds); k++)
        for (size_t n = 0; n < BZ_ARRAY_LEN(counts); n++)
            for (int is_polled = 0; is_polled < 2; is_polled++) {
                crowd.kind = kinds[k];
                crowd.count = counts[n];
                crowd.is_polled = is_polled;
                struct sim_scene s = {1, waits_in_a_crowd, NULL, 0};
                t_watch("%s, %u, %s", kind_name[kinds[k]], counts[n],
                        is_polled ? "polled" : "on a stack");
                struct bz_sim_config config = {.seed = 1 + n, .steps_max = UINT64_MAX};
                CHECK_EQ(bz_sim_run(&config, sim_play, &s, NULL), 0);
            }
}

/* ---- in order ---- */

static int biased(void *arg)
{
    enum { N = 4 };
    blitz_chan *c[N];
    int out = 0;
    blitz_select_case cases[N + 1];
    (void)arg;
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &c[i]), 0);
        cases[i] = blitz_case_recv(c[i], &out);
    }
    for (int round = 0; round < 100; round++) {
        int first = round % N;
        for (int i = first; i < N; i++)
            (void)!blitz_chan_try_send(c[i], &i);
        CHECK_EQ(blitz_select_wait(cases, N, BLITZ_SELECT_BIASED, BLITZ_FOREVER), first);
        while (blitz_select_wait(cases, N, BLITZ_SELECT_NOW, 0) >= 0)
            ;
    }
    for (int i = 0; i < N; i++)
        blitz_chan_unref(c[i]);
    for (int i = 0; i < N; i++)
        cases[i] = blitz_case_time((uint64_t)(i == 0 ? BLITZ_FOREVER : 1));
    CHECK_EQ(blitz_select_wait(cases, N, BLITZ_SELECT_BIASED, BLITZ_FOREVER), 1);
    return 0;
}

TEST(select_sim, a_biased_select_takes_the_first_ready_case)
{
    sim_on_seeds(biased, NULL, 0, 20);
}
