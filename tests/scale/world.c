/*
 * world.c - the backend of a simulated machine: threads in the order of their clocks.
 *
 * Each thread that is not asleep runs on a CPU of its own. The world runs the thread with the
 * smallest clock. At every access the running thread compares its clock with the *horizon*, which
 * is SLACK_PS beyond the clock of the next thread. Behind the horizon it continues, which keeps
 * switches rare; beyond it the next thread runs. So two accesses that are less than SLACK_PS apart
 * may happen in the wrong order. No access sees a half-made one.
 *
 * I1  One thread runs; the others are inside give_way(). `is_inside` is true while the world's own
 *     code runs: accesses then are not the program's.
 * I2  key[i] is the clock of a thread that can run, the deadline of one that sleeps, and WORLD_NEVER for
 *     all others. The key of the running thread is stale.
 * I3  No decision depends on an address, or two processes would differ. Ties go to the older thread.
 */
#include "scale/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/linux.h"
#include "os/self.h"
#include "scale/lines.h"
#include "scale/prices.h"

#define START_PS (UINT64_C(1000000000) * WORLD_NS)
#define SLACK_PS (20 * WORLD_NS)
#define STACK_BYTES (UINT64_C(256) * 1024)

struct world world;

static const struct line_prices prices = PRICES_OF_LINES;

/* ---- threads in the order of their clocks ----------------------------------------------------- */

static void note_key(unsigned index, uint64_t key)
{
    world.key[index] = key;
    if (key < WORLD_NEVER - SLACK_PS && key + SLACK_PS < world.horizon)
        world.horizon = key + SLACK_PS;
}

/* The thread with the smallest key but `except`; the count of threads if none has one. */
static unsigned earliest_but(unsigned except)
{
    unsigned best = world.count;
    uint64_t key = WORLD_NEVER;
    for (unsigned i = 0; i < world.count; i++) {
        if (world.key[i] < key && i != except) {
            key = world.key[i];
            best = i;
        }
    }
    return best;
}

static void set_horizon(unsigned me)
{
    unsigned next = earliest_but(me);
    world.horizon = next < world.count ? world.key[next] + SLACK_PS : WORLD_NEVER;
}

static BZ_NORETURN void report_deadlock(void)
{
    fprintf(stderr, "scale: all threads sleep for ever\n");
    for (unsigned i = 0; i < world.count; i++)
        fprintf(stderr, "  thread %u: state %d\n", i, (int)world.threads[i]->state);
    abort();
}

/* Arrive at the thread that runs next. A sleeper whose deadline has come wakes here. */
static void arrive(struct thread *t)
{
    world.current = t;
    if (t->state == ASLEEP) {
        t->is_timed_out = true;
        t->clock = world.key[t->index] + WAKE_DELAY_PS;
        t->slept += t->clock - t->since;
        t->state = CAN_RUN;
    }
    set_horizon(t->index);
}

/* Run another thread, and return when this one is next. */
static BZ_NOINLINE void switch_to(struct thread *me, struct thread *next)
{
    me->self = bz_self_get();
    me->holds = bz_self_holds();
    me->saved_errno = errno;
    bz_ctx_switch(&me->ctx, &next->ctx, NULL, NULL);
    bz_self_set(me->self);
    bz_self_holds_set(me->holds);
    errno = me->saved_errno;
    arrive(me);
}

/* Let the threads run whose clocks are behind. */
static void give_way(void)
{
    struct thread *me = world.current;
    world.key[me->index] = me->state == CAN_RUN ? me->clock : world.key[me->index];
    unsigned next = earliest_but(world.count);
    if (next == world.count)
        report_deadlock();
    if (next == me->index)
        arrive(me);
    else
        switch_to(me, world.threads[next]);
}

struct thread *world_enter(void)
{
    BZ_CHECK(world.current != NULL, "a call of the simulated system outside a world");
    world.is_inside = true;
    return world.current;
}

void world_spend(struct thread *me, uint64_t ps)
{
    me->clock += ps;
    if (me->clock > world.horizon)
        give_way();
}

void world_leave(void)
{
    world.is_inside = false;
}

void world_sleep_as(struct thread *me, enum state state, uint64_t until_ps)
{
    me->since = me->clock;
    me->state = state;
    me->is_timed_out = false;
    world.key[me->index] = until_ps;
    give_way();
}

void world_rouse(struct thread *t, uint64_t at)
{
    t->state = CAN_RUN;
    t->clock = at + WAKE_DELAY_PS;
    t->slept += t->clock - t->since;
    note_key(t->index, t->clock);
}

/* ---- accesses --------------------------------------------------------------------------------- */

/* errno and the self slot: all threads have them at one address here. */
static bool is_thread_local(uintptr_t at)
{
    return at - (world.tls - 65536) < 65536 + 4096;
}

void world_access_line(struct thread *me, uintptr_t line, bool is_write, uintptr_t pc)
{
    struct line_cost c = lines_access(line, me->index, is_write, me->clock, &prices);
    me->clock += c.price_ps + c.wait_ps;
    world.sums.accesses++;
    if (c.is_move) {
        me->clock += bz_rng_below(&world.jitter, (uint32_t)(prices.move / 8));
        world.sums.moves++;
        world.sums.queue_ps += c.wait_ps;
        lines_site(pc, line, &c);
    }
}

void world_access(const volatile void *at, size_t bytes, enum world_access kind, uintptr_t pc)
{
    struct thread *me = world.current;
    uintptr_t from = (uintptr_t)at;

    if (me == NULL || world.is_inside || bytes == 0 || is_thread_local(from))
        return;
    world.is_inside = true;
    if (me->clock > world.horizon)
        give_way();
    if (kind == WORLD_RMW)
        me->clock += prices.locked;
    for (uintptr_t l = from / LINE_BYTES; l <= (from + bytes - 1) / LINE_BYTES; l++)
        world_access_line(me, l, kind != WORLD_READ, pc);
    world.is_inside = false;
}

void world_fence(void)
{
    if (world.current == NULL || world.is_inside)
        return;
    world_spend(world_enter(), FENCE_PS);
    world_leave();
}

void world_burn(uint64_t ns)
{
    struct thread *me = world_enter();
    world.sums.burnt_ps += ns * WORLD_NS;
    world_spend(me, ns * WORLD_NS);
    world_leave();
}

/* ---- starting ---------------------------------------------------------------------------------- */

static void thread_main(void *arg)
{
    struct thread *me = arg;

    bz_self_set(NULL);
    bz_self_holds_set(0);
    arrive(me);
    world_leave();
    me->fn(me->arg);
    world.is_inside = true;
    for (unsigned i = 0; i < world.count; i++) {
        if (world.threads[i]->state == JOINING && world.threads[i]->joins == me)
            world_rouse(world.threads[i], me->clock);
    }
    if (me->index == 0)
        bz_ctx_switch(&me->ctx, &world.home, NULL, NULL);
    world_sleep_as(me, DONE, WORLD_NEVER);
    BZ_CHECK(false, "a thread that has ended runs");
}

struct thread *world_thread_new(void (*fn)(void *), void *arg, uint64_t clock)
{
    struct thread *t = calloc(1, sizeof *t);

    BZ_CHECK(t != NULL && world.count < WORLD_THREADS_MAX, "no room for thread %u", world.count);
    int err = bz_linux_slab_reserve(NULL, &t->stack, STACK_BYTES, 0, BZ_OS_SLAB_SMALL_PAGES,
                                    "scale-stack");
    BZ_CHECK(err == 0, "no stack for thread %u: %d", world.count, err);
    t->fn = fn;
    t->arg = arg;
    t->index = world.count++;
    t->clock = t->began = clock;
    bz_ctx_init(&t->ctx, t->stack.base, t->stack.base + t->stack.bytes, thread_main, t,
                bz_fpcw_read());
    world.threads[t->index] = t;
    note_key(t->index, clock);
    return t;
}

/* ---- the run ---------------------------------------------------------------------------------- */

struct first {
    void (*fn)(const struct bz_os *os, void *arg);
    void *arg;
};

static void first_main(void *arg)
{
    const struct first *first = arg;
    first->fn(&world.os, first->arg);
}

static void threads_free(void)
{
    for (unsigned i = 0; i < world.count; i++) {
        bz_linux_slab_release(NULL, &world.threads[i]->stack);
        free(world.threads[i]);
    }
}

void world_run(const struct world_config *config, void (*fn)(const struct bz_os *os, void *arg),
               void *arg)
{
    struct first first = {fn, arg};
    struct bz_rng seed;

    memset(&world, 0, sizeof world);
    lines_reset();
    world.os = world_backend;
    world.cpus = config->cpus;
    world.is_inside = true;
    world.horizon = WORLD_NEVER;
    world.tls = (uintptr_t)__builtin_thread_pointer();
    bz_rng_init(&seed, config->seed);
    world.jitter = bz_rng_split(&seed);
    world.entropy = bz_rng_split(&seed);
    bz_os_process = &world.os;
    bz_ctx_adopt(&world.home);
    world.current = world_thread_new(first_main, &first, START_PS);
    bz_ctx_switch(&world.home, &world.current->ctx, NULL, NULL);
    world.current = NULL;
    bz_os_process = &bz_os_system;
    threads_free();
}

/* ---- measurement ------------------------------------------------------------------------------ */

uint64_t world_cpu_of(const struct thread *t)
{
    return (t->state == CAN_RUN ? t->clock : t->since) - t->began - t->slept;
}

static uint64_t cpu_of_all(void)
{
    uint64_t ps = 0;
    for (unsigned i = 0; i < world.count; i++)
        ps += world_cpu_of(world.threads[i]);
    return ps;
}

void world_mark(void)
{
    struct thread *me = world_enter();
    world.sums = (struct world_sums){0};
    lines_sites_clear();
    world.mark_at = me->clock;
    world.mark_cpu = cpu_of_all();
    world_leave();
}

struct world_sums world_since_mark(void)
{
    struct thread *me = world_enter();
    struct world_sums sums = world.sums;
    sums.elapsed_ps = me->clock - world.mark_at;
    sums.cpu_ps = cpu_of_all() - world.mark_cpu;
    world_leave();
    return sums;
}
