/*
 * Our own resolver on the simulated network, over seeds and in virtual time. The network has no datagrams, so the
 * questions go over TCP (`options use-vc`); test_dns has the datagrams. Here are the times (how long answers are kept,
 * when a question is asked again), connections that are reset, and cancels at every moment.
 */
#include "support/dns.h"
#include "support/net_scenes.h"

#define CONF "options use-vc timeout:2 attempts:5\n"

static const struct t_rule rules[] = {
    {.name = "both.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .ttl_s = 60},
    {.name = "short.test", .v4 = "192.0.2.1", .ttl_s = 3},
    {.name = "never.test", .v4 = "192.0.2.1", .ttl_s = 0},
};

static int look_up(blitz_resolver *r, const char *name, blitz_deadline until)
{
    blitz_addr at[4];
    return blitz_resolver_look_up(r, name, "80", at, 4, until);
}

/* ---- time ---- */

static int kept(void *arg)
{
    struct t_dns s = {.rules = rules, .count = BZ_ARRAY_LEN(rules), .negative_s = 20};
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, CONF, "", NULL);
    blitz_instant start = blitz_now();
    for (unsigned second = 0; second <= 100; second += 5) { /* 21 times */
        CHECK_EQ(blitz_sleep_until(start + second * BLITZ_S + net_dice(1000) * BLITZ_US), 0);
        CHECK_EQ(look_up(r, "both.test", BLITZ_FOREVER), 2);
        CHECK_EQ(look_up(r, "none.test", BLITZ_FOREVER), -ENOENT);
        CHECK_EQ(look_up(r, "never.test", BLITZ_FOREVER), 1);
    }
    /* both: at 0 and 65 s; none: at 0, 25, 50, 75, 100; never: each time for A, every 25 s for AAAA. An answer
     * ages from its arrival, so the moments may be those or five seconds earlier. */
    uint32_t asked = bz_load_relaxed(&s.asked[0]); /* relaxed: counted. For A */
    CHECK(asked >= 2 + 5 + 21 && asked <= 2 + 6 + 21);
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

/* An answer must be used for its time, and no longer: names move. */
TEST(dns_sim, answers_are_asked_for_again_after_their_time)
{
    net_on_seeds(kept, NULL, (struct bz_sim_net_config){.is_calm = true}, 20);
}

/* ---- trouble ---- */

static blitz_resolver *shared;

static int asks(void *arg)
{
    static const char *const names[] = {"both.test", "short.test", "never.test", "none.test"};
    (void)arg;
    for (unsigned i = 0; i < 4; i++) {
        unsigned which = net_dice(4);
        blitz_deadline until =
            net_dice(3) == 0 ? blitz_after(net_dice(50) * BLITZ_MS) : BLITZ_FOREVER;
        int n = look_up(shared, names[which], until);
        bool is_right = which == 3 ? n == -ENOENT : n == (which == 0 ? 2 : 1);
        bool is_half = which == 0 && n == 1; /* the other question was given up */
        CHECK(is_right || is_half || n == -EAGAIN || n == -EIO ||
              (n == -ETIMEDOUT && until != BLITZ_FOREVER) || n == -ECANCELED);
        if (n == -ECANCELED)
            return n;
        CHECK_EQ(blitz_sleep(net_dice(2) * BLITZ_S), 0);
    }
    return 0;
}

static int crowd(void *arg)
{
    struct t_dns s = {.rules = rules, .count = BZ_ARRAY_LEN(rules)};
    blitz_task *task[5];
    (void)arg;
    t_dns_begin(&s);
    shared = t_resolver(&s, CONF, "", &(blitz_resolver_opts){.cache_max = 2});
    for (unsigned i = 0; i < BZ_ARRAY_LEN(task); i++)
        task[i] = t_spawn(asks, NULL);
    for (unsigned i = 0; i < BZ_ARRAY_LEN(task); i++)
        CHECK_EQ(t_join(task[i]), 0);
    blitz_resolver_unref(shared);
    t_dns_end(&s);
    return 0;
}

/* Every lookup ends, with the right answer or an error that says why there is none. */
TEST(dns_sim, lookups_end_although_connections_are_reset)
{
    net_on_seeds(crowd, NULL, (struct bz_sim_net_config){.reset_one_in = 30, .refuse_one_in = 10},
                 30);
}

static int asks_for_ever(void *arg)
{
    (void)arg;
    for (;;) {
        int n = look_up(shared, "both.test", BLITZ_FOREVER);
        if (n == -ECANCELED)
            return n;
        blitz_resolver_clear(shared);
    }
}

static int cancelled(void *arg)
{
    struct t_dns s = {.rules = rules, .count = BZ_ARRAY_LEN(rules)};
    blitz_task *task[3];
    (void)arg;
    t_dns_begin(&s);
    shared = t_resolver(&s, CONF, "", &(blitz_resolver_opts){.is_uncached = true});
    for (unsigned i = 0; i < BZ_ARRAY_LEN(task); i++)
        task[i] = t_spawn(asks_for_ever, NULL);
    for (unsigned i = 0; i < BZ_ARRAY_LEN(task); i++) {
        CHECK_EQ(blitz_sleep(net_dice(3000) * BLITZ_US), 0);
        blitz_task_cancel(task[i]);
        CHECK_EQ(t_join(task[i]), -ECANCELED);
    }
    blitz_resolver_unref(shared);
    t_dns_end(&s);
    return 0;
}

TEST(dns_sim, a_cancel_at_any_moment_leaves_nothing_open)
{
    net_on_seeds(cancelled, NULL, (struct bz_sim_net_config){0}, 40);
}
