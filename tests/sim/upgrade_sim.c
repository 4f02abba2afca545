/* Hot upgrade in virtual time, from seeds: random upgrades, births and kills. The libraries are tables of this program. */
#include "support/sched_sim.h"

#include <errno.h>
#include <string.h>

#include "os/library.h"

enum { ADD, GET, WAIT, VERSIONS = 3, COUNTERS = 5, STEPS = 12 };

/* The state of version n: its size is another one, and it says whose it is. */
struct state {
    long version, sum, next, broken;
    long filler[];
};

static size_t state_bytes(long version)
{
    return sizeof(struct state) + (size_t)(version * version) * 20 * sizeof(long);
}

struct answer {
    long version, sum, next, broken;
};

/* ---- three versions ---- */

static int add_as(long version, struct state *s, const long *n)
{
    if (s->version == 0)
        s->version = version; /* it was born so */
    s->broken += s->version != version || *n != s->next;
    s->next = *n + 1;
    s->sum += *n;
    return 0;
}

static int get_as(long version, const struct state *s, const blitz_msg *m)
{
    struct answer a = {version, s->sum, s->next,
                       s->broken + (s->version != version && s->version != 0)};
    return blitz_actor_reply(m->reply, &a, sizeof a);
}

static int on_wait(void *state, const blitz_msg *m)
{
    (void)state, (void)m;
    int rc = blitz_sleep_until(blitz_after((blitz_duration)20 * BLITZ_MS));
    return rc == -ECANCELED ? rc : 0;
}

/* A sum that 11 divides cannot become version 3. */
static int change_to(long version, const struct state *old, uint32_t from, struct state *now)
{
    if (version == 3 && old->sum % 11 == 10)
        return blitz_actor_fail(-ERANGE, "not this sum");
    if (version == 2 && blitz_sleep_until(blitz_after(BLITZ_MS)) == -ECANCELED)
        return -ECANCELED;
    *now = (struct state){.sum = old->sum, .next = old->next, .broken = old->broken};
    now->broken += old->version != (long)from && old->version != 0;
    now->version = version;
    memset(now->filler, (int)version, state_bytes(version) - sizeof *now);
    return 0;
}

#define DEFINE(n, first, second)                                                           \
    static int add_##n(void *state, const blitz_msg *m)                                    \
    {                                                                                      \
        return add_as(n, state, m->data);                                                  \
    }                                                                                      \
    static int get_##n(void *state, const blitz_msg *m)                                    \
    {                                                                                      \
        return get_as(n, state, m);                                                        \
    }                                                                                      \
    static int change_##n(void *old_state, uint32_t old_version, void *new_state)          \
    {                                                                                      \
        return change_to(n, old_state, old_version, new_state);                            \
    }                                                                                      \
    static const blitz_handler handlers_##n[] = {                                          \
        {ADD, sizeof(long), add_##n}, {GET, 0, get_##n}, {WAIT, 0, on_wait}};              \
    static const blitz_change changes_##n[] = {{first, change_##n}, {second, change_##n}}; \
    static const blitz_behaviour version_##n = {.name = "counter",                         \
                                                .version = n,                              \
                                                .changes = changes_##n,                    \
                                                .change_count = 2,                         \
                                                .state_bytes = sizeof(struct state) +      \
                                                               sizeof(long) * 20 * n * n,  \
                                                .handlers = handlers_##n,                  \
                                                .handler_count = 3};                       \
    static const blitz_behaviour *const list_##n[] = {&version_##n};                       \
    static const blitz_library table_##n = {BLITZ_LIBRARY_ABI, sizeof(blitz_behaviour),    \
                                            sizeof(blitz_handler), 1, list_##n}

DEFINE(1, 2, 3);
DEFINE(2, 1, 3);
DEFINE(3, 1, 2);

/* ---- a loader of tables ---- */

static atomic_int open_count;
static const blitz_library *const tables[] = {&table_1, &table_2, &table_3};

static int table_open(const char *path, struct bz_image *out, char *text, size_t text_bytes)
{
    if (path[0] < '1' || path[0] > '3') {
        snprintf(text, text_bytes, "no such table");
        return -ENOENT;
    }
    *out = (struct bz_image){.handle = (void *)(uintptr_t)tables[path[0] - '1']};
    atomic_fetch_add(&open_count, 1);
    return 0;
}

static const void *table_find(const struct bz_image *image, const char *name)
{
    return strcmp(name, "blitz_library_table") == 0 ? image->handle : NULL;
}

static void table_close(struct bz_image *image)
{
    CHECK_NOT_NULL(image->handle);
    atomic_fetch_sub(&open_count, 1);
}

static const struct bz_loader loader = {table_open, table_find, table_close};

/* ---- the play ---- */

struct play {
    struct t_rng dice;
    blitz_actor_id counter[COUNTERS]; /* the last one is killed and born again, and has no load */
    long sent[COUNTERS];
    blitz_event stops;
    bool is_cut; /* the runtime ends meanwhile */
};

static unsigned below(struct play *p, unsigned n)
{
    return (unsigned)t_rng_below(&p->dice, n);
}

static int feed(void *arg)
{
    struct play *p = arg;
    while (!blitz_event_is_set(&p->stops)) {
        for (int i = 0; i < COUNTERS - 1; i++) {
            int rc = blitz_actor_send(p->counter[i], ADD, &p->sent[i], sizeof(long));
            CHECK(rc == 0 || p->is_cut);
            p->sent[i] += rc == 0;
        }
        if (blitz_sleep_until(blitz_after(BLITZ_MS)) == -ECANCELED)
            return 0;
    }
    return 0;
}

static void upgrade(struct play *p)
{
    static const char *const paths[] = {"1", "2", "3", "nowhere"};
    unsigned which = below(p, 4);
    blitz_upgrade_opts opts = {.unload = true};
    int rc = blitz_upgrade("counter", paths[which], &opts, NULL);
    CHECK_EQ(rc, which == 3 ? -ENOENT : 0);
    if (below(p, 2) == 0) {
        rc = blitz_upgrade_wait("counter", NULL, NULL, blitz_after(below(p, 40) * BLITZ_MS));
        CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    }
}

static void step(struct play *p)
{
    switch (below(p, 4)) {
    case 0:
        (void)blitz_actor_kill(p->counter[COUNTERS - 1]);
        (void)!blitz_behaviour_spawn("counter", 1, NULL, NULL, &p->counter[COUNTERS - 1]);
        break;
    case 1:
        (void)blitz_actor_send(p->counter[below(p, COUNTERS)], WAIT, NULL, 0);
        break;
    default:
        upgrade(p);
    }
}

/* Each counter has all its messages, in order, and runs code that its state belongs to. */
static void look(struct play *p)
{
    blitz_upgrade_info info;
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
    CHECK_EQ(info.late, 0u);
    CHECK_GE(info.changed + info.kept + info.ended,
             info.asked); /* answers to earlier asks count, too */
    for (int i = 0; i < COUNTERS - 1; i++) {
        struct answer a;
        CHECK_EQ(blitz_actor_call(p->counter[i], GET, NULL, 0, &a, sizeof a, BLITZ_FOREVER),
                 (int)sizeof a);
        CHECK_EQ(a.broken, 0);
        CHECK_EQ(a.next, p->sent[i]);
        CHECK_EQ(a.sum, p->sent[i] * (p->sent[i] - 1) / 2);
        if (info.kept == 0)
            CHECK_EQ(a.version, (long)info.version);
    }
    CHECK_EQ(info.libraries, (uint32_t)open_count);
}

static int scene(void *arg)
{
    struct play p = {.dice = {*(uint64_t *)arg}};
    blitz_task *feeder;
    blitz_event_init(&p.stops);
    for (int i = 0; i < COUNTERS; i++)
        CHECK_EQ(blitz_actor_spawn(&version_1, NULL, NULL, &p.counter[i]), 0);
    CHECK_EQ(blitz_spawn(feed, &p, NULL, &feeder), 0);
    for (int i = 0; i < STEPS; i++)
        step(&p);
    blitz_event_set(&p.stops);
    CHECK_EQ(blitz_task_join(feeder, NULL, BLITZ_FOREVER), 0);
    look(&p);
    return 0;
}

/* Each seed: the schedule, the number of procs and the dice. Every library is closed at the end. */
static void on_seeds(int (*fn)(void *))
{
    bz_loader = &loader;
    for (uint64_t i = 0, n = sim_seeds(1500); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {1 + (unsigned)(seed % 4), fn, &seed, 0};
        sim_one(seed, &s);
        CHECK_EQ(open_count, 0);
    }
}

/* No message is lost or doubled, no state meets foreign code, every library is closed. */
TEST_LIMIT(upgrade_sim, random_upgrades_lose_nothing_and_close_all, 300)
{
    on_seeds(scene);
}

/* ---- births ---- */

enum { BORN = 8 };

static int bear(void *arg)
{
    blitz_actor_id *born = arg;
    for (int i = 0; i < BORN; i++) {
        CHECK_EQ(blitz_behaviour_spawn("counter", 1, NULL, NULL, &born[i]), 0);
        blitz_yield();
    }
    return 0;
}

/* Upgrade a few times, beside another task that does the same. */
static int upgrade_some(void *arg)
{
    struct t_rng dice = {*(uint64_t *)arg};
    for (int i = 0; i < 3; i++) {
        const char *path = t_rng_below(&dice, 2) == 0 ? "2" : "3";
        int rc = blitz_upgrade("counter", path, &(blitz_upgrade_opts){.unload = true}, NULL);
        CHECK(rc == 0 || rc == -EBUSY);
        blitz_yield();
    }
    return 0;
}

static int births(void *arg)
{
    uint64_t seed[2] = {*(uint64_t *)arg, *(uint64_t *)arg + 1};
    blitz_actor_id born[BORN];
    blitz_task *task[3];
    blitz_upgrade_info info;
    struct answer a;
    CHECK_EQ(blitz_behaviour_register(NULL, &version_1), 0);
    CHECK_EQ(blitz_spawn(bear, born, NULL, &task[0]), 0);
    CHECK_EQ(blitz_spawn(upgrade_some, &seed[0], NULL, &task[1]), 0);
    CHECK_EQ(blitz_spawn(upgrade_some, &seed[1], NULL, &task[2]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
    for (int i = 0; i < BORN; i++) {
        CHECK_EQ(blitz_actor_call(born[i], GET, NULL, 0, &a, sizeof a, BLITZ_FOREVER),
                 (int)sizeof a);
        CHECK_EQ(a.version, (long)info.version);
    }
    return 0;
}

/* Spawns and two upgrades at the same time: each actor ends at the version of the last upgrade. */
TEST_LIMIT(upgrade_sim, actors_that_are_born_meanwhile_are_not_forgotten, 300)
{
    on_seeds(births);
}

/* ---- the end ---- */

static int cut_short(void *arg)
{
    static struct play p; /* the fiber outlives this frame */
    p = (struct play){.dice = {*(uint64_t *)arg}, .is_cut = true};
    blitz_event_init(&p.stops);
    for (int i = 0; i < COUNTERS; i++)
        CHECK_EQ(blitz_actor_spawn(&version_1, NULL, NULL, &p.counter[i]), 0);
    CHECK_EQ(blitz_spawn(feed, &p, NULL, NULL), 0);
    for (int i = 0; i < 3; i++)
        step(&p);
    (void)!blitz_upgrade("counter", "2", &(blitz_upgrade_opts){.unload = true}, NULL);
    for (unsigned i = below(&p, 30); i > 0; i--)
        blitz_yield();
    blitz_event_set(&p.stops);
    return 0;
}

/* The runtime ends at any point of an upgrade. */
TEST_LIMIT(upgrade_sim, a_shutdown_at_any_point_closes_all, 300)
{
    on_seeds(cut_short);
}
