/* Maps: compared with an array, with keys and values of every size, without memory, and shared by threads and tasks. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "support/on_each.h"
#include "support/test_alloc.h"

static blitz_map *map_of_ints(unsigned shards)
{
    blitz_map *m;
    CHECK_EQ(blitz_map_new(sizeof(int), &(blitz_map_opts){.shards = shards}, &m), 0);
    return m;
}

static int value_of(blitz_map *m, const char *key)
{
    int value = -1;
    return blitz_map_get(m, key, strlen(key), &value) == 0 ? value : -1;
}

TEST(map, each_call_does_what_it_says)
{
    blitz_map *m = map_of_ints(0);
    int out = 7;
    CHECK_EQ(blitz_map_get(m, "a", 1, &out), -ENOENT);
    CHECK_EQ(blitz_map_remove(m, "a", 1, &out), -ENOENT);
    CHECK_EQ(blitz_map_swap(m, "a", 1, &(int){0}, &(int){1}), -EAGAIN);
    CHECK_EQ(out, 7);
    CHECK_EQ(blitz_map_put(m, "a", 1, &(int){1}), 0);
    CHECK_EQ(blitz_map_add(m, "a", 1, &(int){2}), -EAGAIN);
    CHECK_EQ(value_of(m, "a"), 1);
    CHECK_EQ(blitz_map_get(m, "a", 1, NULL), 0);
    CHECK_EQ(blitz_map_put(m, "a", 1, &(int){3}), 0);
    CHECK_EQ(blitz_map_swap(m, "a", 1, &(int){2}, &(int){4}), -EAGAIN);
    CHECK_EQ(value_of(m, "a"), 3);
    CHECK_EQ(blitz_map_swap(m, "a", 1, &(int){3}, &(int){4}), 0);
    CHECK_EQ(blitz_map_add(m, "b", 1, &(int){5}), 0);
    CHECK_EQ(blitz_map_len(m), 2u);
    CHECK_EQ(blitz_map_remove(m, "a", 1, &out), 0);
    CHECK_EQ(out, 4);
    CHECK_EQ(value_of(m, "a"), -1);
    CHECK_EQ(value_of(m, "b"), 5);
    blitz_map_unref(blitz_map_ref(m));
    CHECK_EQ(blitz_map_len(m), 1u);
    blitz_map_unref(m);
    blitz_map_unref(NULL);
}

TEST(map, bad_input_is_refused)
{
    blitz_map *m;
    CHECK_EQ(blitz_map_new(0, NULL, &m), -EINVAL);
    CHECK_EQ(blitz_map_new(SIZE_MAX, NULL, &m), -EINVAL);
    CHECK_EQ(blitz_map_new(1, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_map_new(1, &(blitz_map_opts){.shards = 65537}, &m), -EINVAL);
    m = map_of_ints(1);
    CHECK_EQ(blitz_map_put(m, "", SIZE_MAX, &(int){1}), -EINVAL);
    blitz_map_unref(m);
}

/* Keys that differ in their last byte, in their length alone, or not at all; and the empty key. */
TEST(map, keys_and_values_of_any_size_are_kept_apart)
{
    enum { LONGEST = 300, WIDE = 1000 };
    static unsigned char key[LONGEST], wide[WIDE], out[WIDE];
    blitz_map *m;
    CHECK_EQ(blitz_map_new(WIDE, &(blitz_map_opts){.shards = 2}, &m), 0);
    for (int n = 0; n <= LONGEST; n++) {
        memset(wide, n, WIDE);
        CHECK_EQ(blitz_map_add(m, n > 0 ? key : NULL, (size_t)n, wide), 0);
    }
    for (int n = 1; n <= LONGEST; n++) {
        key[n - 1] = 1;
        CHECK_EQ(blitz_map_get(m, key, (size_t)n, NULL), -ENOENT);
        key[n - 1] = 0;
    }
    CHECK_EQ(blitz_map_len(m), LONGEST + 1u);
    for (int n = 0; n <= LONGEST; n++) {
        memset(wide, n, WIDE);
        CHECK_EQ(blitz_map_get(m, key, (size_t)n, out), 0);
        CHECK_MEM_EQ(out, wide, WIDE);
    }
    blitz_map_unref(m);
}

/* Random calls, compared with an array; every value is accounted for. */
static int balance; /* values in the map, as the drop hook and the calls say */

static void drops(void *value, void *ctx)
{
    CHECK_EQ(ctx, &balance);
    CHECK_NE(*(int *)value, 0);
    balance--;
}

enum { KEYS = 100 };

static void one_call(blitz_map *m, int *want, int value)
{
    int k = (int)t_random_below(KEYS), out = 0, rc;
    switch (t_random_below(5)) {
    case 0:
        CHECK_EQ(blitz_map_put(m, &k, sizeof k, &value), 0);
        balance++;
        want[k] = value;
        break;
    case 1:
        rc = blitz_map_add(m, &k, sizeof k, &value);
        CHECK_EQ(rc, want[k] != 0 ? -EAGAIN : 0);
        balance += rc == 0;
        want[k] = rc == 0 ? value : want[k];
        break;
    case 2:
        rc = blitz_map_swap(m, &k, sizeof k, &want[k], &value);
        CHECK_EQ(rc, want[k] != 0 ? 0 : -EAGAIN);
        want[k] = rc == 0 ? value : 0;
        break;
    case 3:
        rc = blitz_map_remove(m, &k, sizeof k, t_random_below(2) ? &out : NULL);
        CHECK_EQ(rc, want[k] != 0 ? 0 : -ENOENT);
        CHECK(out == 0 || out == want[k]);
        balance -= out != 0;
        want[k] = 0;
        break;
    default:
        rc = blitz_map_get(m, &k, sizeof k, &out);
        CHECK_EQ(rc, want[k] != 0 ? 0 : -ENOENT);
        CHECK_EQ(out, want[k]);
    }
}

TEST(map, random_calls_agree_with_an_array)
{
    for (unsigned shards = 1; shards <= 64; shards *= 4) {
        int want[KEYS] = {0}, keys = 0;
        blitz_map *m;
        balance = 0;
        CHECK_EQ(blitz_map_new(sizeof(int),
                               &(blitz_map_opts){.shards = shards, .drop = drops, .ctx = &balance},
                               &m),
                 0);
        for (int i = 1, n = (int)t_scaled(20000); i <= n; i++)
            one_call(m, want, i);
        for (int k = 0; k < KEYS; k++)
            keys += want[k] != 0;
        CHECK_EQ(blitz_map_len(m), (size_t)keys);
        CHECK_EQ(balance, keys);
        blitz_map_unref(m);
        CHECK_EQ(balance, 0);
    }
}

/* A value that names another key of its map: the hook of each second one removes it, and each hook puts another value once. */
enum { KIN = 64 };

struct kin {
    blitz_map *m;
    int drops, puts;
};

static void drops_kin(void *value, void *ctx)
{
    struct kin *k = ctx;
    int key = *(int *)value, other = (key + 7) % KIN, more = KIN + key;
    k->drops++;
    if (key % 2 == 0) /* otherwise the hook of the first value would remove all others */
        (void)!blitz_map_remove(k->m, &other, sizeof other, NULL);
    if (key < KIN && blitz_map_put(k->m, &more, sizeof more, &more) == 0)
        k->puts++;
    (void)!blitz_map_get(k->m, &key, sizeof key, NULL);
}

TEST(map, the_drop_hook_may_use_the_map_also_at_its_end)
{
    for (unsigned shards = 1; shards <= 8; shards *= 8) {
        struct kin k = {NULL, 0, 0};
        CHECK_EQ(blitz_map_new(sizeof(int),
                               &(blitz_map_opts){.shards = shards, .drop = drops_kin, .ctx = &k},
                               &k.m),
                 0);
        for (int key = 0; key < KIN; key++)
            CHECK_EQ(blitz_map_add(k.m, &key, sizeof key, &key), 0);
        blitz_map_unref(k.m);
        CHECK_EQ(k.puts, KIN);
        CHECK_EQ(k.drops, 2 * KIN);
    }
}

static void counts_drops(void *value, void *drops)
{
    (void)value;
    ++*(int *)drops;
}

TEST(map, values_are_dropped_with_the_last_reference)
{
    int drops = 0;
    blitz_map *m;
    CHECK_EQ(blitz_map_new(sizeof(int), &(blitz_map_opts){.drop = counts_drops, .ctx = &drops}, &m),
             0);
    CHECK_EQ(blitz_map_add(m, "a", 1, &(int){1}), 0);
    CHECK_EQ(blitz_map_ref(m), m);
    blitz_map_unref(m);
    CHECK_EQ(drops, 0);
    blitz_map_unref(m);
    CHECK_EQ(drops, 1);
}

TEST(map, no_memory_is_an_error_and_changes_nothing)
{
    struct test_alloc memory = TEST_ALLOC;
    blitz_allocator alloc = test_allocator(&memory);
    blitz_map_opts opts = {.shards = 1, .alloc = &alloc};
    blitz_map *m = NULL;
    memory.fail_at = 1;
    CHECK_EQ(blitz_map_new(sizeof(int), &opts, &m), -ENOMEM);
    CHECK_NULL(m);
    CHECK_EQ(blitz_map_new(sizeof(int), &opts, &m), 0);
    for (int k = 0; k < 40; k++) { /* the node or, now and then, the table is refused */
        for (size_t nth = 1; nth <= 2; nth++) {
            size_t len = blitz_map_len(m);
            memory.fail_at = memory.calls + nth;
            int rc = blitz_map_add(m, &k, sizeof k, &k);
            memory.fail_at = 0;
            CHECK(rc == 0 || rc == -ENOMEM);
            CHECK_EQ(blitz_map_len(m), len + (rc == 0));
            if (rc == 0)
                break;
        }
        CHECK_EQ(blitz_map_put(m, &k, sizeof k, &k), 0);
    }
    CHECK_EQ(blitz_map_len(m), 40u);
    memory.fail_at = memory.calls + 1;
    CHECK_EQ(blitz_map_each(m, NULL, NULL), -ENOMEM);
    blitz_map_unref(m);
    CHECK_EQ(memory.live, 0u);
}

/* ---- all of them ---- */

struct visit {
    blitz_map *m;
    int seen[KEYS], count, stop_at;
};

static int visits(const void *key, size_t key_bytes, const void *value, void *arg)
{
    struct visit *v = arg;
    int k;
    CHECK_EQ(key_bytes, sizeof k);
    memcpy(&k, key, sizeof k);
    CHECK_EQ(*(const int *)value, -k);
    v->seen[k]++;
    if (k % 2)
        CHECK_EQ(blitz_map_remove(v->m, &k, sizeof k, NULL), 0); /* no lock is held */
    return ++v->count == v->stop_at ? 5 : 0;
}

TEST(map, each_key_is_visited_once_and_may_be_removed_meanwhile)
{
    struct visit v = {.m = map_of_ints(4)};
    CHECK_EQ(blitz_map_each(v.m, visits, &v), 0);
    CHECK_EQ(v.count, 0);
    for (int k = 0; k < KEYS; k++)
        CHECK_EQ(blitz_map_put(v.m, &k, sizeof k, &(int){-k}), 0);
    CHECK_EQ(blitz_map_each(v.m, visits, &v), 0);
    for (int k = 0; k < KEYS; k++)
        CHECK_EQ(v.seen[k], 1);
    CHECK_EQ(blitz_map_len(v.m), KEYS / 2u);
    struct visit w = {.m = v.m, .stop_at = 3};
    CHECK_EQ(blitz_map_each(v.m, visits, &w), 5);
    CHECK_EQ(w.count, 3);
    blitz_map_unref(v.m);
}

/* ---- shared ---- */

enum { SHARED = 10, PARTIES = 6 };

struct crowd {
    blitz_map *m;
    uint64_t rounds;
    bz_atomic(int) index;
};

/* Add 1 to a shared key. */
static void increments(blitz_map *m, int k)
{
    int old, rc;
    do {
        rc = blitz_map_get(m, &k, sizeof k, &old);
        rc = rc == 0 ? blitz_map_swap(m, &k, sizeof k, &old, &(int){old + 1})
                     : blitz_map_add(m, &k, sizeof k, &(int){1});
        CHECK(rc == 0 || rc == -EAGAIN);
    } while (rc != 0);
}

/* Shared keys are counted; own keys come and go, and make the shards grow. */
static void uses(struct crowd *c, int index)
{
    for (uint64_t i = 0; i < c->rounds; i++) {
        uint64_t own = (uint64_t)(index + 1) << 32 | i;
        int out = 0;
        increments(c->m, (int)(i % SHARED));
        CHECK_EQ(blitz_map_add(c->m, &own, sizeof own, &(int){index}), 0);
        if (i % 4 == 0)
            continue;
        CHECK_EQ(blitz_map_remove(c->m, &own, sizeof own, &out), 0);
        CHECK_EQ(out, index);
    }
}

static void thread_uses(void *arg, int index)
{
    uses(arg, index);
}

static int counts(const void *key, size_t key_bytes, const void *value, void *arg)
{
    (void)key;
    if (key_bytes == sizeof(int))
        *(uint64_t *)arg += (uint64_t)(*(const int *)value);
    return 0;
}

static void check_shared(struct crowd *c)
{
    uint64_t sum = 0;
    CHECK_EQ(blitz_map_each(c->m, counts, &sum), 0);
    CHECK_EQ(sum, c->rounds * PARTIES); /* no increment is lost */
    CHECK_EQ(blitz_map_len(c->m), SHARED + PARTIES * (c->rounds / 4));
    blitz_map_unref(c->m);
}

TEST(map, threads_lose_no_update)
{
    for (unsigned shards = 1; shards <= 16; shards *= 16) {
        struct crowd c = {.m = map_of_ints(shards), .rounds = t_scaled(4000) / 4 * 4};
        t_threads(PARTIES, thread_uses, &c);
        check_shared(&c);
    }
}

static int task_uses(void *arg)
{
    struct crowd *c = arg;
    uses(c, bz_fetch_add_seqcst(&c->index, 1)); /* seq_cst: a count of the test */
    return 0;
}

static int tasks_use(void *arg)
{
    struct crowd c = {.m = map_of_ints(2), .rounds = t_scaled(2000) / 4 * 4};
    blitz_task *t[PARTIES];
    (void)arg;
    for (int i = 0; i < PARTIES; i++)
        CHECK_EQ(blitz_spawn(task_uses, &c, NULL, &t[i]), 0);
    for (int i = 0; i < PARTIES; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    check_shared(&c);
    return 0;
}

TEST(map, tasks_lose_no_update)
{
    t_on_each(tasks_use, NULL, 0);
}
