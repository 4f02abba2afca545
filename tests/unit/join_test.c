/* A cancelled join leaves nothing behind in its task. */
#include "harness.h"

#include "blitz.h"
#include "observe/view.h"
#include "proc/state.h"
#include "support/event.h"
#include "support/on_each.h"

enum { ROUNDS = 5, JOINERS = 20 };

static int waits_for(void *event)
{
    t_event_await(event);
    return 7;
}

/* Fills the stack where the frames of the join stood. */
static BZ_NOINLINE void scribble(void)
{
    volatile char frames[2000];
    for (size_t i = 0; i < sizeof frames; i++)
        frames[i] = (char)0x5a;
}

static int gives_up_at_a_deadline(void *t)
{
    CHECK_EQ(blitz_task_join(t, NULL, blitz_after(20 * BLITZ_US)), -ETIMEDOUT);
    scribble();
    blitz_task_detach(t);
    return 0;
}

static void until_it_waits(blitz_task *t)
{
    struct bz_view v;
    do {
        blitz_yield();
        bz_view_take(&v, (struct bz_task *)t, false);
    } while (v.state != BZ_VIEW_WAITING);
}

/* Joiners come and go by their deadlines; the last one has the result. */
static int many_give_up(void *arg)
{
    (void)arg;
    for (int round = 0; round < ROUNDS; round++) {
        struct t_event end;
        blitz_task *t, *joiner[JOINERS];
        int result = 0;
        t_event_init(&end, &bz_os_system);
        CHECK_EQ(blitz_spawn(waits_for, &end, NULL, &t), 0);
        until_it_waits(t); /* else a joiner may run it on its own stack */
        for (int i = 0; i < JOINERS; i++)
            CHECK_EQ(blitz_spawn(gives_up_at_a_deadline, blitz_task_ref(t), NULL, &joiner[i]), 0);
        for (int i = 0; i < JOINERS; i++)
            CHECK_EQ(blitz_task_join(joiner[i], &result, BLITZ_FOREVER), 0);
        struct bz_task *inside = (struct bz_task *)t;
        bz_lock_take(&inside->lock, &bz_os_system);
        CHECK_EQ(bz_list_check(&inside->joiners), 0u);
        bz_lock_drop(&inside->lock, &bz_os_system);
        t_event_set(&end);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 7);
    }
    return 0;
}

TEST(join, one_that_gives_up_leaves_no_trace_in_the_task)
{
    t_on_each(many_give_up, NULL, 0);
}
