/*
 * A hundredfold overload within bounded memory: 100 actors and some fibers send to one that is slow.
 *
 *     BLITZ_TEST_OVERLOAD_S=10 build/release/tests/stress/stress_overload        so many seconds, at each number of procs
 */
#include "harness.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "blitz.h"
#include "support/resident.h"
#include "support/sanitizers.h"

enum { ACTORS = 100, FIBERS = 20, MIB_MAX = 64 };
enum { TAKE, GO };

static atomic_long taken, sent;
static atomic_bool is_over;
static blitz_actor_id sink;

/* About a hundred times as long as a send. */
BLITZ_HANDLER(on_take, void, long)
{
    (void)state, (void)data, (void)m;
    for (volatile int i = 0; i < 5000; i++)
        ;
    taken++;
    return 0;
}

/* Send one message, and come back at once. */
BLITZ_HANDLER(on_go, void, void)
{
    (void)state, (void)data, (void)m;
    int rc = blitz_actor_send(sink, TAKE, &(long){1}, sizeof(long));
    sent++;
    return rc != 0 || is_over ? rc : blitz_actor_send(blitz_actor_self(), GO, NULL, 0);
}

static int sends(void *arg)
{
    (void)arg;
    while (!is_over) {
        int rc = blitz_actor_send(sink, TAKE, &(long){1}, sizeof(long));
        if (rc != 0)
            return rc;
        sent++;
    }
    return 0;
}

struct overload {
    blitz_duration time;
    uint64_t grown; /* bytes, at the most */
};

static int overloads(void *arg)
{
    static const blitz_handler takes[] = {BLITZ_ON(TAKE, long, on_take)};
    static const blitz_handler goes[] = {BLITZ_ON_EMPTY(GO, on_go)};
    static const blitz_behaviour one = {.name = "sink", .handlers = takes, .handler_count = 1};
    static const blitz_behaviour many = {.name = "sender", .handlers = goes, .handler_count = 1};
    struct overload *o = arg;
    blitz_task *fiber[FIBERS];
    uint64_t before = t_resident();
    blitz_deadline end = blitz_after(o->time);
    CHECK_EQ(blitz_actor_spawn(&one, NULL, NULL, &sink), 0);
    for (int i = 0; i < ACTORS; i++) {
        blitz_actor_id id;
        CHECK_EQ(blitz_actor_spawn(&many, NULL, NULL, &id), 0);
        CHECK_EQ(blitz_actor_send(id, GO, NULL, 0), 0);
    }
    for (int i = 0; i < FIBERS; i++)
        CHECK_EQ(blitz_spawn(sends, NULL, NULL, &fiber[i]), 0);
    while (blitz_after(0) < end) {
        uint64_t now = t_resident();
        o->grown = now > before && now - before > o->grown ? now - before : o->grown;
        CHECK_EQ(blitz_sleep(o->time / 100), 0);
    }
    is_over = true;
    for (int i = 0; i < FIBERS; i++) {
        int result;
        CHECK_EQ(blitz_task_join(fiber[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0); /* no send was refused */
    }
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(taken, sent); /* none was lost */
    return 0;
}

/* Without back-pressure the senders would fill the memory with messages. */
TEST_LIMIT(overload_stress, bug_39_a_hundredfold_overload_stays_within_64_mb, 300)
{
    const char *asked = getenv("BLITZ_TEST_OVERLOAD_S");
    t_no_huge_pages();
    for (unsigned procs = 1; procs <= 3; procs++) {
        struct overload o = {.time = asked != NULL ? atol(asked) * BLITZ_S : BLITZ_S / 4};
        t_watch("%u procs", procs);
        taken = sent = 0;
        is_over = false;
        CHECK_EQ(blitz_run(overloads, &o, &(blitz_runtime_opts){.procs = procs}), 0);
        t_note("%u procs: %ld messages, %llu KiB", procs, (long)taken,
               (unsigned long long)o.grown / 1024);
#if !T_TSAN && !T_ASAN
        CHECK_LE(o.grown, (uint64_t)MIB_MAX << 20);
#endif
    }
}
