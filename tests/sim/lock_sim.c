/* The runtime's own lock, on every schedule the simulator can think of. */
#include <stdatomic.h>

#include "os/lock.h"
#include "support/sim.h"

#define THREADS 4
#define TURNS 25

struct locked {
    const struct bz_os *os;
    struct bz_lock lock;
    int inside; /* guarded by lock; not atomic: ThreadSanitizer looks, too */
    uint64_t turns;
};

static void takes_turns(void *arg)
{
    struct locked *l = arg;
    for (int i = 0; i < TURNS; i++) {
        bz_lock_take(&l->lock, l->os);
        CHECK_EQ(l->inside++, 0);
        bz_os_delay_here(l->os, BZ_OS_AT_LOCK); /* where another would come in, if it could */
        if (i % 5 == 0)
            t_burn(50000); /* long enough to send the others to sleep */
        l->turns++;
        CHECK_EQ(--l->inside, 0);
        bz_lock_drop(&l->lock, l->os);
        bz_os_delay_here(l->os, BZ_OS_AT_PUBLISH);
    }
}

static void all_take_turns(const struct bz_os *os, void *arg)
{
    struct locked l = {.os = os};
    struct bz_os_thread t[THREADS];
    (void)arg;
    bz_lock_init(&l.lock);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, takes_turns, &l), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
    CHECK_EQ(l.turns, (uint64_t)THREADS * TURNS);
    CHECK(bz_lock_try(&l.lock)); /* it was left free */
}

/* One holder at a time, and no thread sleeps forever: a lost wake-up would be a deadlock here. */
TEST(lock, one_holder_at_a_time_and_no_lost_waiter_on_any_schedule)
{
    t_sim_each_seed(300, all_take_turns, NULL);
}
