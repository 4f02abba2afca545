/* Names of actors that come and go. */
#include "harness.h"

#include <errno.h>

#include "actor/actors.h"
#include "blitz.h"
#include "support/alone.h"
#include "support/counted.h"

enum { NOTHING };

BLITZ_HANDLER(on_nothing, void, void)
{
    (void)state, (void)data;
    return blitz_actor_reply(m->reply, NULL, 0);
}

static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(NOTHING, on_nothing)};
static const blitz_behaviour thing = {.name = "thing", .handlers = handlers, .handler_count = 1};

static blitz_actor_id spawn(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&thing, NULL, NULL, &id), 0);
    return id;
}

/* The actor has handled all that came before. */
static void settle(blitz_actor_id id)
{
    CHECK_EQ(blitz_actor_call(id, NOTHING, NULL, 0, NULL, 0, BLITZ_FOREVER), 0);
}

static int comes_and_goes(void *arg)
{
    blitz_actor_id id = spawn();
    long before = 0;
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        if (i == 2000)
            before = counted_blocks();
        CHECK_EQ(blitz_actor_register("door", id), 0);
        CHECK_EQ(blitz_actor_unregister(NULL, "door"), 0);
        if (i % 100 == 0)
            settle(id);
    }
    CHECK_LE(counted_blocks(), before + 2); /* blocks of the slabs of messages */
    return 0;
}

TEST(names, an_actor_that_is_named_and_unnamed_for_ever_keeps_nothing)
{
    CHECK_EQ(
        blitz_run(comes_and_goes, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
        0);
    CHECK_EQ(counted_blocks(), 0);
}

static int keeps_the_others(void *arg)
{
    blitz_actor_id id = spawn(), other = spawn();
    (void)arg;
    CHECK_EQ(blitz_actor_register("one", id), 0);
    CHECK_EQ(blitz_actor_register("two", id), 0);
    CHECK_EQ(blitz_actor_unregister(NULL, "one"), 0);
    CHECK_EQ(blitz_actor_unregister(NULL, "one"), -ESRCH);
    CHECK_EQ(blitz_actor_register("one", other), 0);
    CHECK_EQ(blitz_actor_kill(id), 0);
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    CHECK_EQ(blitz_actor_whereis(NULL, "two").generation, 0u);
    CHECK(blitz_actor_id_equal(blitz_actor_whereis(NULL, "one"), other));
    return 0;
}

TEST(names, the_end_of_an_actor_takes_its_names_and_no_others)
{
    CHECK_EQ(t_run_alone(keeps_the_others, NULL), 0);
}

/* The steps of two spawns with one name, and an unregister between them. */
static int spawns_twice(void *arg)
{
    struct bz_runtime *rt = bz_actor_runtime(spawn());
    (void)arg;
    CHECK_EQ(bz_name_add(rt, "shop", 7, 0), 0);
    CHECK_EQ(blitz_actor_unregister(NULL, "shop"), -ESRCH); /* it is not found */
    CHECK_EQ(bz_name_add(rt, "shop", 8, 0), -EEXIST);
    bz_name_show(rt, "shop", 3);
    CHECK_EQ(blitz_actor_whereis(NULL, "shop").index, 7u);
    CHECK_EQ(blitz_actor_whereis(NULL, "shop").generation, 3u);
    CHECK(!bz_name_remove(rt, "shop", 7, 0));
    CHECK(!bz_name_remove(rt, "shop", 8, 3));
    CHECK(bz_name_remove(rt, "shop", 7, 3));
    CHECK_EQ(bz_name_add(rt, "shop", 8, 0), 0);
    CHECK(bz_name_remove(rt, "shop", 8, 0)); /* a spawn that failed */
    return 0;
}

/* It was, and the first spawn then showed the name of the second, with its own generation. */
TEST(names, the_name_of_a_spawn_that_goes_on_is_not_taken_away)
{
    CHECK_EQ(t_run_alone(spawns_twice, NULL), 0);
}
