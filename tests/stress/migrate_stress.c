/*
 * Fibers of the whole runtime that change their thread at nearly every wait: each waits for an
 * event that a plain thread sets, so the first free worker resumes it. The checks find code of the
 * compiler, the C library or the runtime that assumes a fixed thread. Once more in a shared library
 * made with link-time optimization, where everything is inlined.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/event.h"
#include "support/sanitizers.h"

#include "base/bz_atomic.h"
#include "blitz.h"
#include "proc/state.h"

enum { FIBERS = 24, MACHINES_MAX = 32 };

struct fiber {
    struct t_event event;
    bz_atomic(int) is_waiting; /* the kicker's turn */
    uint64_t hops, migrated;
    uint64_t stale; /* a plain read of errno was another thread's: the user's own risk */
};
static struct fiber fibers[FIBERS];
static bz_atomic(int) alive;

static uint32_t tid(void)
{
    return bz_os_thread_id(&bz_os_system);
}

/* ---- thread identity ---- */

/* The thread itself, asked for afresh. */
static BZ_NOINLINE uintptr_t thread_now(void)
{
    __asm__ volatile("");
    return (uintptr_t)pthread_self();
}

/* Every machine, and which thread it was when first seen. Only that thread looks at its place. */
static struct {
    bz_atomic(uintptr_t) machine;
    uintptr_t thread;
} seen[MACHINES_MAX];

static void check_thread(struct bz_machine *m)
{
    for (int i = 0; i < MACHINES_MAX; i++) {
        uintptr_t none = 0;
        if (bz_cas_strong_rlx_rlx(&seen[i].machine, &none, (uintptr_t)m)) {
            seen[i].thread = thread_now();
            return;
        }
        if (none == (uintptr_t)m) {
            CHECK_EQ(seen[i].thread, thread_now());
            return;
        }
    }
    FAIL("more machines than procs");
}

/* The runtime's thread-local belongs to this thread, and names the running task. */
static void check_identity(uint64_t id)
{
    struct bz_machine *m = bz_machine_self();
    CHECK_NOT_NULL(m);
    check_thread(m);
    CHECK_NOT_NULL(m->current);
    CHECK_EQ(blitz_task_id(NULL), id);
}

/* ---- the C library ---- */

/* Read errno through a fresh address. */
static BZ_NOINLINE int errno_now(void)
{
    __asm__ volatile("");
    return errno;
}

static BZ_NOINLINE void fail_with_ebadf(void)
{
    __asm__ volatile("");
    CHECK_EQ(close(-1), -1);
}

static void check_library(struct fiber *f, char **block, uint64_t hop)
{
    fail_with_ebadf();
    if (!T_TSAN) /* its address may be the one from before the wait: a race with that thread */
        f->stale += errno != EBADF;
    CHECK_EQ(errno_now(), EBADF);
    CHECK_EQ((*block)[0], (char)hop); /* allocated on another thread, freed on this one */
    free(*block);
    *block = malloc(64 + hop % 512);
    CHECK_NOT_NULL(*block);
}

static void hop(struct fiber *f)
{
    t_event_init(&f->event, &bz_os_system);
    bz_store_release(&f->is_waiting, 1); /* pairs with the kicker's xchg */
    t_event_await(&f->event);
}

static int wander(void *arg)
{
    struct fiber *f = arg;
    uint64_t id = blitz_task_id(NULL);
    char *block = malloc(64);
    CHECK_NOT_NULL(block);
    for (uint64_t i = 0; i < f->hops; i++) {
        uint32_t before = tid();
        block[0] = (char)i;
        if (!T_TSAN)
            errno = 0;
        hop(f);
        f->migrated += tid() != before;
        check_identity(id);
        check_library(f, &block, i);
        if (i % 16 == 0)
            blitz_yield();
        check_identity(id);
    }
    free(block);
    bz_fetch_sub_release(&alive, 1); /* the kickers end when all have */
    return 0;
}

/* A plain thread that wakes the waiting tasks, through the injector. */
static void kick(void *arg, int index)
{
    (void)arg;
    while (bz_load_acquire(&alive) > 0) {
        bool was_idle = true;
        for (int i = index; i < FIBERS; i += 2)
            if (bz_xchg_acquire(&fibers[i].is_waiting, 0)) {
                t_event_set(&fibers[i].event);
                was_idle = false;
            }
        if (was_idle)
            sched_yield();
    }
}

/* Returns how often a fiber was on another thread after a hop. */
static uint64_t wander_once(unsigned procs, uint64_t hops)
{
    blitz_runtime *rt;
    blitz_task *t[FIBERS];
    uint64_t migrated = 0, stale = 0;
    t_watch("%u procs", procs);
    memset(seen, 0, sizeof seen);
    bz_store_relaxed(&alive, FIBERS);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < FIBERS; i++) {
        fibers[i].hops = hops;
        fibers[i].migrated = fibers[i].stale = 0;
        CHECK_EQ(blitz_spawn(wander, &fibers[i], &opts, &t[i]), 0);
    }
    t_threads(2, kick, NULL);
    for (int i = 0; i < FIBERS; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        migrated += fibers[i].migrated;
        stale += fibers[i].stale;
    }
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    t_note("%u procs: %llu migrations; a kept address of errno was wrong %llu times", procs,
           (unsigned long long)migrated, (unsigned long long)stale);
    return migrated;
}

/* Whether fibers migrate is up to the scheduler, which keeps few on one proc: go on until some have. The time limit of the case
 * ends a runtime in which none ever does. */
static void wander_on(unsigned procs, uint64_t hops)
{
    while (wander_once(procs, hops) == 0)
        ;
}

TEST(migrate, bug_31_a_fiber_of_the_runtime_knows_its_thread_after_every_migration)
{
    wander_on(2, t_scaled(1500));
    wander_on(4, t_scaled(500));
    wander_on(8, t_scaled(300));
}
