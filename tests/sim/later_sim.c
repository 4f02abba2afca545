/*
 * blitz/later.h in virtual time: calls come at their moment, in order, and a cancel at any point of a run gives the argument
 * back or comes too late.
 */
#include "support/sim_faults.h"

#include "base/rng.h"

enum { CALLS = 20 };

struct call {
    blitz_later *l;
    blitz_instant when, called_at;
    bz_atomic(int) calls, drops;
    int back;
};

static void call_run(void *arg)
{
    struct call *c = arg;
    CHECK_EQ(bz_fetch_add_seqcst(&c->calls, 1), 0); /* seq_cst: a count of the test */
    c->called_at = blitz_now();
    (void)!blitz_sleep(BLITZ_US); /* it may wait */
}

static void call_drop(void *arg, void *ctx)
{
    (void)ctx;
    bz_fetch_add_seqcst(&((struct call *)arg)->drops, 1); /* seq_cst: likewise */
}

/* Half of them are cancelled, at a random moment. */
static int calls_and_cancels(void *arg)
{
    static struct call call[CALLS];
    struct bz_rng rng;
    blitz_token *token;
    (void)arg;
    bz_rng_init(&rng, t_random());
    memset(call, 0, sizeof call);
    CHECK_EQ(blitz_token_new(NULL, &token), 0);
    for (int i = 0; i < CALLS; i++) {
        struct call *c = &call[i];
        blitz_later_opts opts = {.drop = call_drop};
        c->when = blitz_after(bz_rng_below(&rng, 10) * BLITZ_MS);
        CHECK_EQ(i % 4 == 3 ? blitz_later_on_cancel(token, call_run, c, &opts, &c->l)
                            : blitz_later_at(c->when, call_run, c, &opts, &c->l),
                 0);
    }
    CHECK_EQ(blitz_sleep(bz_rng_below(&rng, 10) * BLITZ_MS), 0);
    for (int i = 0; i < CALLS; i += 2) {
        int rc = blitz_later_cancel(call[i].l);
        CHECK(rc == 0 || rc == -EBUSY);
        call[i].back = rc == 0;
    }
    blitz_token_cancel(token);
    for (int i = 0; i < CALLS; i++) {
        struct call *c = &call[i];
        CHECK_EQ(blitz_later_wait(c->l, BLITZ_FOREVER), 0);
        CHECK_EQ(bz_load_seqcst(&c->calls), !c->back); /* seq_cst: likewise */
        CHECK_EQ(bz_load_seqcst(&c->drops), 0);        /* seq_cst: likewise */
        CHECK_EQ(blitz_later_was_called(c->l), !c->back);
        if (i % 4 != 3 && !c->back) {
            CHECK_GE(c->called_at, c->when);
            CHECK_LE(c->called_at, c->when + 5 * BLITZ_MS);
        }
        blitz_later_unref(c->l);
    }
    blitz_token_unref(token);
    return 0;
}

TEST(later_sim, each_is_called_at_its_moment_or_given_back)
{
    sim_on_seeds(calls_and_cancels, NULL, 0, 200);
}

/* ---- no memory, no thread ---- */

static int tries_all(void *arg)
{
    static struct call call[CALLS];
    (void)arg;
    memset(call, 0, sizeof call);
    for (int i = 0; i < CALLS; i++) {
        int rc = blitz_later_at(blitz_after((uint64_t)i * BLITZ_US), call_run, &call[i], NULL,
                                &call[i].l);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    for (int i = 0; i < CALLS; i++) {
        if (call[i].l != NULL)
            CHECK_EQ(blitz_later_wait(call[i].l, BLITZ_FOREVER), 0);
        CHECK_EQ(bz_load_seqcst(&call[i].calls), call[i].l != NULL); /* seq_cst: likewise */
        blitz_later_unref(call[i].l);
    }
    return 0;
}

TEST(later_sim, bug_30_no_memory_is_an_error_at_the_beginning_and_never_later)
{
    for (uint64_t i = t_scaled(4); i > 0; i--)
        CHECK_GE(sim_each_fault(BZ_FAULT_MEMORY, false, tries_all), 3u);
}
