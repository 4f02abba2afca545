/*
 * Combinators, promises and scopes in simulation: random programs over seeds, and a cancel at every
 * moment of a wait.
 */
#include "support/sched_sim.h"

#include "support/combine_program.h"
#include "wait/waker.h"

struct play {
    uint64_t seed;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    const struct play *p = arg;
    combine_play(os, p->seed, p->procs);
}

TEST_LIMIT(combine, bug_21_random_programs_give_each_child_one_end, 300)
{
    uint64_t n = sim_seeds(3000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {seed, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu programs", (unsigned long long)n);
}

/* ---- a cancel at every await ---- */

/* Messages that are sent to a stage by another: none is lost, wherever the race between the two is
 * cancelled, and whichever side wins. A token box: `give` is a message for the taker. */
struct tokens {
    struct t_probe probe[3];
    blitz_task *racer;
    uint64_t cancel_after;
    int outcome;
    blitz_fate fate[3];
};

static int races(void *arg)
{
    struct tokens *t = arg;
    blitz_child child[3];
    blitz_race r;
    for (int i = 0; i < 3; i++)
        child[i].future = &t->probe[i].f;
    CHECK_EQ(blitz_race_init(&r, child, 3), 0);
    t->outcome = blitz_await(&r.future, BLITZ_FOREVER);
    for (int i = 0; i < 3; i++)
        t->fate[i] = child[i].fate;
    return 0;
}

static int sets(void *arg)
{
    struct tokens *t = arg;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
        t_probe_set(&t->probe[(i + 1) % 3], 0);
    }
    return 0;
}

static int cancel_at(void *arg)
{
    struct tokens *t = arg;
    const struct bz_os *os = bz_os_here();
    blitz_task *setter;
    for (int i = 0; i < 3; i++)
        t_probe_init(&t->probe[i], os, i == 2 ? BLITZ_PINNED : BLITZ_REVOCABLE);
    CHECK_EQ(blitz_spawn(races, t, NULL, &t->racer), 0);
    CHECK_EQ(blitz_spawn(sets, t, NULL, &setter), 0);
    CHECK_EQ(blitz_sleep(t->cancel_after), 0);
    blitz_task_cancel(t->racer);
    CHECK_EQ(blitz_task_join(t->racer, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(setter, NULL, BLITZ_FOREVER), 0);
    CHECK(t->outcome == 0 || t->outcome == -ECANCELED);
    for (int i = 0; i < 3; i++) {
        CHECK(t->fate[i] == BLITZ_ENDED || t->fate[i] == BLITZ_REVOKED);
        cp_check_probe(&t->probe[i]);
    }
    return 0;
}

TEST(combine, bug_21_a_race_is_cancelled_at_every_moment)
{
    for (uint64_t i = 0, n = sim_seeds(1000); i < n; i++) {
        struct tokens t = {.cancel_after = i % 50 * BLITZ_US};
        sim_on_next(cancel_at, &t, 0);
    }
}

/* ---- scopes ---- */

struct scene {
    uint64_t seed;
    bz_atomic(int) began, ended;
};

struct leaf {
    struct scene *scene;
    blitz_scope *scope;
    uint64_t seed;
    unsigned depth;
};

static int leaf_main(void *arg);

static int spawn_leaf(struct scene *s, blitz_scope *scope, struct bz_rng *dice, unsigned depth,
                      struct leaf *out)
{
    *out = (struct leaf){s, scope, bz_rng_next(dice), depth};
    return blitz_scope_spawn(scope, leaf_main, out, NULL);
}

static int leaf_work(struct leaf *l, struct bz_rng *dice)
{
    struct leaf below[3];
    blitz_scope s;
    if (l->depth == 0 || bz_rng_below(dice, 2))
        return blitz_sleep(bz_rng_below(dice, 60) * BLITZ_US);
    uint64_t until = bz_rng_below(dice, 2) ? BLITZ_FOREVER : blitz_after(30 * BLITZ_US);
    CHECK_EQ(blitz_scope_open(&s, NULL, until), 0);
    for (int i = 0; i < 3; i++) {
        int err = spawn_leaf(l->scene, &s, dice, l->depth - 1, &below[i]);
        CHECK(err == 0 || err == -ECANCELED);
    }
    int err = blitz_scope_close(&s);
    CHECK(err == 0 || err == -EIO || err == -ECANCELED || err == -ETIMEDOUT);
    return err;
}

static int leaf_main(void *arg)
{
    struct leaf *l = arg;
    struct bz_rng dice;
    bz_rng_init(&dice, l->seed);
    bz_fetch_add_relaxed(&l->scene->began, 1); /* relaxed: a count, as is the other */
    int err = leaf_work(l, &dice);
    bz_fetch_add_relaxed(&l->scene->ended, 1);
    return err != 0 ? err : bz_rng_below(&dice, 8) == 0 ? -EIO : 0;
}

static int scopes_in_scopes(void *arg)
{
    struct scene s = {.seed = *(uint64_t *)arg};
    struct leaf top[4];
    struct bz_rng dice;
    blitz_token *token;
    blitz_scope scope;
    bz_rng_init(&dice, s.seed);
    CHECK_EQ(blitz_token_new(NULL, &token), 0);
    blitz_scope_opts opts = {.token = bz_rng_below(&dice, 2) ? token : NULL};
    uint64_t until = bz_rng_below(&dice, 2) ? BLITZ_FOREVER : blitz_after(50 * BLITZ_US);
    CHECK_EQ(blitz_scope_open(&scope, &opts, until), 0);
    for (int i = 0; i < 4; i++) {
        int err = spawn_leaf(&s, &scope, &dice, 3, &top[i]);
        CHECK(err == 0 || err == -ECANCELED);
    }
    if (bz_rng_below(&dice, 2))
        CHECK_EQ(blitz_sleep(bz_rng_below(&dice, 60) * BLITZ_US), 0);
    if (bz_rng_below(&dice, 2))
        blitz_token_cancel(token);
    if (bz_rng_below(&dice, 4) == 0)
        blitz_scope_cancel(&scope);
    (void)blitz_scope_close(&scope);
    /* relaxed: all have ended, and said so before the scope did */
    CHECK_EQ(bz_load_relaxed(&s.began), bz_load_relaxed(&s.ended));
    blitz_token_unref(token);
    return 0;
}

TEST(scope, all_tasks_have_ended_when_it_closes_for_any_reason)
{
    for (uint64_t n = sim_seeds(600); n > 0; n--) {
        uint64_t seed = t_random();
        sim_on_next(scopes_in_scopes, &seed, 0);
    }
}
