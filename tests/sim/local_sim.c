/*
 * Inherited task-local values while memory is refused: a spawn succeeds with all copies, or fails and leaves none behind.
 */
#include "support/sim_faults.h"

enum { KEYS = 6, CHILDREN = 4 }; /* more keys than the first table has room for */

static bz_atomic(int) copies;
static blitz_local_key keys[KEYS];

static void *copy_one(void *value, void *ctx)
{
    (void)ctx;
    bz_fetch_add_seqcst(&copies, 1); /* seq_cst: a count of the test */
    return value;
}

static void drop_one(void *value, void *ctx)
{
    (void)ctx;
    (void)value;
    bz_fetch_sub_seqcst(&copies, 1); /* seq_cst: likewise */
}

static int heir(void *arg)
{
    blitz_yield();
    for (int i = 0; i < *(int *)arg; i++)
        CHECK_EQ(blitz_local_get(&keys[i]), &keys[i]);
    return 0;
}

static blitz_poll heir_poll(void *state, blitz_cx *cx)
{
    (void)cx;
    CHECK_EQ(heir(*(void **)state), 0);
    return BLITZ_READY;
}

static int spawns_heirs(void *arg)
{
    blitz_spawn_opts opts = {.inherits = true};
    blitz_task *t[CHILDREN];
    int set = 0, started = 0;
    void *state = &set;
    (void)arg;
    bz_store_seqcst(&copies, 0); /* seq_cst: likewise */
    for (int i = 0; i < KEYS; i++)
        keys[i] = (blitz_local_key){drop_one, NULL};
    while (set < KEYS && blitz_local_set_inherited(&keys[set], &keys[set], copy_one) == 0) {
        bz_fetch_add_seqcst(&copies, 1); /* seq_cst: likewise */
        set++;
    }
    for (int i = 0; i < CHILDREN; i++) {
        int rc = i % 2 ? blitz_spawn(heir, &set, &opts, &t[started])
                       : blitz_spawn_poll(heir_poll, &state, sizeof state, &opts, &t[started]);
        CHECK(rc == 0 || rc == -ENOMEM);
        started += rc == 0;
    }
    for (int i = 0; i < started; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_seqcst(&copies), set); /* seq_cst: likewise */
    return 0;
}

TEST(local_sim, bug_30_a_spawn_without_memory_for_the_copies_leaves_none)
{
    for (uint64_t i = t_scaled(10); i > 0; i--)
        CHECK_GE(sim_each_fault(BZ_FAULT_MEMORY, false, spawns_heirs), 4u);
}
