/*
 * system.c - the system calls of a world: the table of os/os.h.
 *
 * Each call advances the clock of its thread by its price (prices.h) and has its effect. A sleep and
 * a wake cost a system call; a woken thread starts WAKE_DELAY_PS later. A membarrier interrupts every
 * running thread, and its callers queue. So do the callers that change mappings.
 */
#include "scale/inner.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/linux.h"
#include "scale/lines.h"
#include "scale/prices.h"

/* Spend time in the kernel. */
static void spend_in_kernel(struct thread *me, uint64_t ps)
{
    world.sums.kernel_ps += ps;
    world_spend(me, ps);
}

/* ---- time and sleep --------------------------------------------------------------------------- */

static uint64_t world_now(const struct bz_os *os)
{
    struct thread *me = world_enter();
    (void)os;
    world_spend(me, CLOCK_PS);
    uint64_t ns = me->clock / WORLD_NS;
    world_leave();
    return ns;
}

static uint64_t world_cpu_time(const struct bz_os *os)
{
    (void)os;
    return world_cpu_of(world.current) / WORLD_NS;
}

static int world_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                                 uint64_t *out_ns)
{
    const struct thread *thread = (const struct thread *)t->native;
    (void)os;
    if (thread->state == DONE)
        return -ESRCH;
    *out_ns = world_cpu_of(thread) / WORLD_NS;
    return 0;
}

static uint64_t ps_of(uint64_t ns)
{
    return ns < WORLD_NEVER / WORLD_NS / 2 ? ns * WORLD_NS : WORLD_NEVER;
}

static int world_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected,
                      uint64_t until_ns)
{
    struct thread *me = world_enter();
    int err = 0;

    (void)os;
    spend_in_kernel(me, SYSCALL_PS);
    world_access_line(me, (uintptr_t)word / LINE_BYTES, false, (uintptr_t)world_wait);
    if (atomic_load(word) != expected) { /* lint: allow raw-atomic: the kernel's access */
        err = -EAGAIN;
    } else if (ps_of(until_ns) <= me->clock) {
        err = -ETIMEDOUT;
    } else {
        world.sums.sleeps++;
        me->word = word;
        world_sleep_as(me, ASLEEP, ps_of(until_ns));
        err = me->is_timed_out ? -ETIMEDOUT : 0;
    }
    world_leave();
    return err;
}

static void world_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    struct thread *me = world_enter();
    uint32_t roused = 0;

    (void)os;
    spend_in_kernel(me, SYSCALL_PS);
    for (unsigned i = 0; i < world.count && roused < count_max; i++) {
        struct thread *t = world.threads[i];
        if (t->state != ASLEEP || t->word != word)
            continue;
        me->clock += WAKE_PS;
        world.sums.kernel_ps += WAKE_PS;
        world_rouse(t, me->clock);
        world.sums.wakes++;
        roused++;
    }
    world_spend(me, 0);
    world_leave();
}

static void world_relax(const struct bz_os *os, unsigned round)
{
    struct thread *me = world_enter();
    (void)os;
    uint64_t pauses = UINT64_C(1) << (round < 6 ? round : 6);
    uint64_t ps = PAUSE_PS * pauses + (round >= 10 ? YIELD_PS : 0);
    world.sums.relax_ps += ps;
    world_spend(me, ps);
    world_leave();
}

/* ---- calls that interrupt other CPUs ---------------------------------------------------------- */

/* Delay every other running thread by an interrupt; return how many there are. */
static unsigned interrupt_others(const struct thread *me, uint64_t each_ps)
{
    unsigned n = 0;
    for (unsigned i = 0; i < world.count; i++) {
        struct thread *t = world.threads[i];
        if (t == me || t->state != CAN_RUN)
            continue;
        t->clock += each_ps;
        world.key[i] = t->clock;
        n++;
    }
    return n;
}

/* Callers queue for *free_at. */
static void exclusive_call(struct thread *me, uint64_t *free_at, uint64_t ps)
{
    uint64_t from = *free_at > me->clock ? *free_at : me->clock;
    *free_at = from + ps;
    spend_in_kernel(me, from + ps - me->clock);
}

static int world_barrier(const struct bz_os *os)
{
    struct thread *me = world_enter();
    (void)os;
    world.sums.barriers++;
    unsigned n = interrupt_others(me, INTERRUPT_PS);
    exclusive_call(me, &world.barrier_free_at,
                   n == 0 ? SYSCALL_PS : BARRIER_PS + n * INTERRUPT_EACH_PS);
    world_leave();
    return 0;
}

static int world_barrier_register(const struct bz_os *os)
{
    (void)os;
    return 0;
}

static void map_cost(struct thread *me)
{
    world.sums.maps++;
    exclusive_call(me, &world.maps_free_at, MAP_PS);
}

/* Every running CPU drops its translations. */
static uint64_t shootdown_ps(struct thread *me)
{
    world.sums.maps++;
    return MAP_PS + interrupt_others(me, INTERRUPT_PS) * INTERRUPT_EACH_PS;
}

static int world_reserve(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes,
                         size_t align, enum bz_os_slab_flags flags, const char *name)
{
    map_cost(world_enter());
    int err = bz_linux_slab_reserve(os, slab, bytes, align, flags, name);
    world_leave();
    return err;
}

static void world_release(const struct bz_os *os, struct bz_os_slab *slab)
{
    struct thread *me = world_enter();
    exclusive_call(me, &world.maps_free_at, shootdown_ps(me));
    bz_linux_slab_release(os, slab);
    world_leave();
}

static int world_guard(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                       const struct bz_os_guards *where)
{
    map_cost(world_enter());
    int err = bz_linux_slab_guard(os, slab, how, where);
    world_leave();
    return err;
}

static int world_discard(const struct bz_os *os, void *start, size_t bytes)
{
    struct thread *me = world_enter();
    spend_in_kernel(me, shootdown_ps(me)); /* others may do the same meanwhile */
    int err = bz_linux_pages_discard(os, start, bytes);
    world_leave();
    return err;
}

/* ---- threads, and the rest ---- */

static int world_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                              const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg)
{
    struct thread *me = world_enter();
    (void)os;
    (void)opts;
    spend_in_kernel(me, THREAD_PS);
    struct thread *thread = world_thread_new(fn, arg, me->clock + WAKE_DELAY_PS);
    *t = (struct bz_os_thread){.fn = fn, .arg = arg, .native = (uintptr_t)thread};
    world_leave();
    return 0;
}

static int world_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    struct thread *me = world_enter(), *it = (struct thread *)t->native;
    (void)os;
    if (it->state != DONE) {
        me->joins = it;
        world_sleep_as(me, JOINING, WORLD_NEVER);
    }
    world_leave();
    return 0;
}

static int world_cpus(const struct bz_os *os)
{
    (void)os;
    return world.cpus;
}

static int world_others(const struct bz_os *os)
{
    (void)os;
    return -ENOSYS;
}

static int world_entropy(const struct bz_os *os, void *out, size_t bytes)
{
    unsigned char *at = out;
    (void)os;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(bz_rng_next(&world.entropy) >> 32);
    return 0;
}

const struct bz_os world_backend = {
    .name = "scale",
    .now = world_now,
    .wait = world_wait,
    .wake = world_wake,
    .relax = world_relax,
    .barrier = world_barrier,
    .barrier_register = world_barrier_register,
    .thread_start = world_thread_start,
    .thread_join = world_thread_join,
    .cpu_time = world_cpu_time,
    .thread_cpu_time = world_thread_cpu_time,
    .page_bytes = bz_linux_page_bytes,
    .slab_reserve = world_reserve,
    .slab_release = world_release,
    .slab_guard = world_guard,
    .pages_discard = world_discard,
    .cpus = world_cpus,
    .others = world_others,
    .entropy = world_entropy,
};
