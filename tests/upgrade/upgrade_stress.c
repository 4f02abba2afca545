/* Upgrades to and fro under load, on real threads: messages keep their order and their number, and mappings are bounded. */
#include "upgrade_scene.h"

#include <stdatomic.h>

#include "support/sanitizers.h"

enum { COUNTERS = 8, SENDERS = 4 };

struct load {
    blitz_actor_id counter[COUNTERS];
    atomic_bool ends;
    atomic_long sent[COUNTERS];
    int upgrades;
};

struct sender {
    struct load *load;
    unsigned
        first; /* it feeds each SENDERS-th counter, so that each has its messages from one sender */
};

static int feed(void *arg)
{
    struct sender s = *(struct sender *)arg;
    while (!atomic_load(&s.load->ends)) {
        for (unsigned i = s.first; i < COUNTERS; i += SENDERS) {
            long n = atomic_fetch_add(&s.load->sent[i], 1);
            CHECK_EQ(blitz_actor_send(s.load->counter[i], ADD, &n, sizeof n), 0);
        }
        blitz_yield();
    }
    return 0;
}

/* Ask for a version that is not the present one: by a library, or the program's. */
static const char *another(struct t_rng *r, unsigned *version)
{
    unsigned next = 1 + (*version + (unsigned)t_rng_below(r, 2)) % 3;
    *version = next;
    return library(next == 1 ? "1" : next == 2 ? "2" : "3");
}

static int upgrades(void *arg)
{
    static const blitz_upgrade_opts unloads = {.unload = true};
    struct load *l = arg;
    struct sender s[SENDERS];
    blitz_task *senders[SENDERS];
    struct t_rng r = t_rng_of(0);
    unsigned version = 1;
    int most = 0;
    blitz_upgrade_info info = {.version = 0};
    for (unsigned i = 0; i < COUNTERS; i++)
        l->counter[i] = born(&counter);
    for (unsigned i = 0; i < SENDERS; i++) {
        s[i] = (struct sender){l, i};
        CHECK_EQ(blitz_spawn(feed, &s[i], NULL, &senders[i]), 0);
    }
    for (int i = 0; i < l->upgrades; i++) {
        t_watch("upgrade %d", i);
        const char *path = another(&r, &version);
        CHECK_EQ(blitz_upgrade("counter", path, &unloads, &info), 0);
        CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
        CHECK_EQ(info.changed, (uint32_t)COUNTERS);
        CHECK_EQ(info.libraries, 1u);
        if (i % 100 == 0 && mappings() > most)
            most = mappings();
    }
    atomic_store(&l->ends, true);
    for (unsigned i = 0; i < SENDERS; i++)
        CHECK_EQ(blitz_task_join(senders[i], NULL, BLITZ_FOREVER), 0);
    long sum = 0;
    for (unsigned i = 0; i < COUNTERS; i++) {
        long n = l->sent[i];
        struct counted_by by = ask(l->counter[i], GET);
        CHECK_EQ(by.sum, n * (n - 1) / 2); /* none lost, none twice */
        CHECK_EQ(by.broken, 0);            /* none out of order */
        CHECK_EQ(by.version, version);
        sum += n;
    }
    CHECK_LE(most, 12); /* two libraries at the most, of five or six mappings each */
    t_note("%d upgrades, %ld messages, at most %d mappings", l->upgrades, sum, most);
    return 0;
}

/* No message is lost, doubled or out of order, and the old libraries go. */
TEST_LIMIT(upgrade_stress, ten_thousand_upgrades_to_and_fro_under_load, 900)
{
    struct load l = {.upgrades = (int)t_scaled(10000)};
    CHECK_EQ(blitz_run(upgrades, &l, &(blitz_runtime_opts){.procs = 2}), 0);
    CHECK_EQ(mappings(), 0);
}

/* ---- births and deaths meanwhile ---- */

struct crowd {
    atomic_bool ends;
    atomic_long births, wrong;
};

static int bear(void *arg)
{
    struct crowd *c = arg;
    struct t_rng r = t_rng_of(1);
    blitz_actor_id id[16] = {{0, 0, 0, 0}};
    while (!atomic_load(&c->ends)) {
        unsigned at = (unsigned)t_rng_below(&r, 16);
        (void)blitz_actor_kill(id[at]);
        CHECK_EQ(blitz_behaviour_spawn("counter", 1, NULL, NULL, &id[at]), 0);
        add(id[at], 0, 3);
        atomic_fetch_add(&c->births, 1);
        blitz_yield();
    }
    for (unsigned i = 0; i < 16; i++)
        (void)blitz_actor_kill(id[i]);
    return 0;
}

static int crowded(void *arg)
{
    static const blitz_upgrade_opts unloads = {.unload = true};
    struct crowd *c = arg;
    struct t_rng r = t_rng_of(0);
    blitz_task *parents[2];
    blitz_upgrade_info info;
    unsigned version = 1;
    CHECK_EQ(blitz_behaviour_register(NULL, &counter), 0);
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(bear, c, NULL, &parents[i]), 0);
    for (int i = 0; i < (int)t_scaled(500); i++) {
        t_watch("upgrade %d", i);
        CHECK_EQ(blitz_upgrade("counter", another(&r, &version), &unloads, &info), 0);
        if (t_rng_below(&r, 2) == 0)
            CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
    }
    atomic_store(&c->ends, true);
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(parents[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
    CHECK_EQ(info.libraries,
             1u); /* that of new actors: no use was forgotten, and none is counted twice */
    t_note("%ld births", (long)c->births);
    return 0;
}

/* Actors are born and killed while upgrades begin: each use is counted once. */
TEST_LIMIT(upgrade_stress, births_and_kills_during_upgrades, 600)
{
    struct crowd c = {.ends = false};
    CHECK_EQ(blitz_run(crowded, &c, &(blitz_runtime_opts){.procs = 3}), 0);
    CHECK_EQ(mappings(), 0);
}
