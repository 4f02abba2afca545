/* A resolver without memory: each allocation of a lookup fails once, and nothing is lost by that. */
#include "harness.h"

#include "support/dns.h"
#include "support/mallocs.h"

static const struct t_rule rules[] = {
    {.name = "both.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .ttl_s = 600}};

static int without(void *arg)
{
    struct t_dns s = {.rules = rules, .count = 1};
    unsigned failed = 0;
    blitz_addr at[4];
    (void)arg;
    t_dns_begin(&s);
    for (uint64_t n = 1; n < 40; n++) {
        blitz_resolver *r = t_resolver(&s, "", "192.0.2.3 other\n", NULL);
        t_watch("allocation %llu", (unsigned long long)n);
        t_fail_malloc(n);
        int rc = blitz_resolver_look_up(r, "both.test", "80", at, 4, blitz_after(50 * BLITZ_S));
        t_fail_malloc(0);
        CHECK(rc == 2 || rc == -ENOMEM);
        failed += rc == -ENOMEM;
        CHECK_EQ(blitz_resolver_look_up(r, "both.test", "80", at, 4, blitz_after(50 * BLITZ_S)), 2);
        blitz_resolver_unref(r);
    }
    CHECK_GT(failed, 3u);
    t_note("%u lookups without memory", failed);
    t_dns_end(&s);
    return 0;
}

TEST(dns_memory, a_lookup_without_memory_is_an_error_and_the_next_one_works)
{
    CHECK_EQ(blitz_run(without, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

static int make(void)
{
    blitz_resolver *r;
    int err = blitz_resolver_new(NULL, &r);
    if (err == 0)
        blitz_resolver_unref(r);
    return err;
}

TEST(dns_memory, a_resolver_without_memory_is_not_made)
{
    int err = -ENOMEM;
    for (uint64_t n = 1; err == -ENOMEM; n++) {
        t_fail_malloc(n);
        err = make();
        t_fail_malloc(0);
        CHECK(err == 0 || err == -ENOMEM);
        CHECK(n > 5 || err == -ENOMEM); /* itself, three paths, the cache */
    }
}
