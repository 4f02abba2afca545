/*
 * world.c - the backend of a simulated machine: threads in the order of their clocks.
 *
 * Each thread that is not asleep runs on a CPU of its own. The world runs the thread with the
 * smallest clock. At every access the running thread compares its clock with the *horizon*, which
 * is SLACK_PS beyond the clock of the next thread. Behind the horizon it continues, which keeps
 * switches rare; beyond it the next thread runs. So two accesses that are less than SLACK_PS apart
 * may happen in the wrong order. No access sees a half-made one.
 *
 * System calls have prices, too. A sleep and a wake cost a system call; a woken thread starts
 * WAKE_DELAY later. A membarrier interrupts every running thread, and callers queue. So do calls
 * that change mappings. A pause takes PAUSE.
 *
 * I1  One thread runs; the others are inside give_way(). `is_inside` is true while the world's own
 *     code runs: accesses then are not the program's.
 * I2  key[i] is the clock of a thread that can run, the deadline of one that sleeps, and NEVER for
 *     all others. The key of the running thread is stale.
 * I3  No decision depends on an address, or two processes would differ. Ties go to the older thread.
 */
#include "scale/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/ctx.h"
#include "base/rng.h"
#include "os/linux.h"
#include "os/self.h"
#include "scale/lines.h"
#include "scale/prices.h"

#define NEVER UINT64_MAX
#define START_PS (UINT64_C(1000000000) * WORLD_NS)
#define SLACK_PS (20 * WORLD_NS)
#define STACK_BYTES (UINT64_C(256) * 1024)

enum state { CAN_RUN, ASLEEP, JOINING, DONE };

struct thread {
    struct bz_ctx ctx;
    struct bz_os_slab stack;
    void (*fn)(void *arg);
    void *arg;
    unsigned index;
    enum state state;
    bz_os_word *word;     /* ASLEEP */
    struct thread *joins; /* JOINING */
    bool is_timed_out;
    uint64_t clock; /* now, on this CPU */
    uint64_t began; /* the thread */
    uint64_t since; /* ASLEEP, JOINING, DONE: from when */
    uint64_t slept; /* in all, before that */
    void *self;     /* bz_self_get() of a thread that does not run */
    int holds;      /* bz_self_holds(), likewise */
    int saved_errno;
};

static struct {
    struct bz_os os;
    bool is_inside; /* I1 */
    int cpus;
    struct thread *current; /* NULL: no world runs */
    struct bz_ctx home;
    struct thread *threads[WORLD_THREADS_MAX];
    uint64_t key[WORLD_THREADS_MAX]; /* I2 */
    unsigned count;
    uint64_t horizon;
    uint64_t barrier_free_at, maps_free_at;
    struct bz_rng jitter, entropy;
    uintptr_t tls; /* the thread pointer */
    struct world_sums sums;
    uint64_t mark_at, mark_cpu;
} world;

static const struct line_prices prices = PRICES_OF_LINES;

/* ---- threads in the order of their clocks ----------------------------------------------------- */

static void note_key(unsigned index, uint64_t key)
{
    world.key[index] = key;
    if (key < NEVER - SLACK_PS && key + SLACK_PS < world.horizon)
        world.horizon = key + SLACK_PS;
}

/* The thread with the smallest key but `except`; the count of threads if none has one. */
static unsigned earliest_but(unsigned except)
{
    unsigned best = world.count;
    uint64_t key = NEVER;
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
    world.horizon = next < world.count ? world.key[next] + SLACK_PS : NEVER;
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

static struct thread *enter(void)
{
    BZ_CHECK(world.current != NULL, "a call of the simulated system outside a world");
    world.is_inside = true;
    return world.current;
}

static void spend(struct thread *me, uint64_t ps)
{
    me->clock += ps;
    if (me->clock > world.horizon)
        give_way();
}

/* The same, in the kernel. */
static void spend_in_kernel(struct thread *me, uint64_t ps)
{
    world.sums.kernel_ps += ps;
    spend(me, ps);
}

static void leave(void)
{
    world.is_inside = false;
}

/* ---- accesses --------------------------------------------------------------------------------- */

/* errno and the self slot: all threads have them at one address here. */
static bool is_thread_local(uintptr_t at)
{
    return at - (world.tls - 65536) < 65536 + 4096;
}

static void access_line(struct thread *me, uintptr_t line, bool is_write, uintptr_t pc)
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
        access_line(me, l, kind != WORLD_READ, pc);
    world.is_inside = false;
}

void world_fence(void)
{
    if (world.current == NULL || world.is_inside)
        return;
    spend(enter(), FENCE_PS);
    leave();
}

void world_burn(uint64_t ns)
{
    struct thread *me = enter();
    world.sums.burnt_ps += ns * WORLD_NS;
    spend(me, ns * WORLD_NS);
    leave();
}

/* ---- time and sleep --------------------------------------------------------------------------- */

static uint64_t world_now(const struct bz_os *os)
{
    struct thread *me = enter();
    (void)os;
    spend(me, CLOCK_PS);
    uint64_t ns = me->clock / WORLD_NS;
    leave();
    return ns;
}

static uint64_t cpu_of(const struct thread *t)
{
    return (t->state == CAN_RUN ? t->clock : t->since) - t->began - t->slept;
}

static uint64_t world_cpu_time(const struct bz_os *os)
{
    (void)os;
    return cpu_of(world.current) / WORLD_NS;
}

static int world_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                                 uint64_t *out_ns)
{
    const struct thread *thread = (const struct thread *)t->native;
    (void)os;
    if (thread->state == DONE)
        return -ESRCH;
    *out_ns = cpu_of(thread) / WORLD_NS;
    return 0;
}

static uint64_t ps_of(uint64_t ns)
{
    return ns < NEVER / WORLD_NS / 2 ? ns * WORLD_NS : NEVER;
}

/* Sleep until another thread changes the state, or the deadline. */
static void sleep_as(struct thread *me, enum state state, uint64_t until_ps)
{
    me->since = me->clock;
    me->state = state;
    me->is_timed_out = false;
    world.key[me->index] = until_ps;
    give_way();
}

static int world_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected,
                      uint64_t until_ns)
{
    struct thread *me = enter();
    int err = 0;

    (void)os;
    spend_in_kernel(me, SYSCALL_PS);
    access_line(me, (uintptr_t)word / LINE_BYTES, false, (uintptr_t)world_wait);
    if (atomic_load(word) != expected) { /* lint: allow raw-atomic: the kernel's access */
        err = -EAGAIN;
    } else if (ps_of(until_ns) <= me->clock) {
        err = -ETIMEDOUT;
    } else {
        world.sums.sleeps++;
        me->word = word;
        sleep_as(me, ASLEEP, ps_of(until_ns));
        err = me->is_timed_out ? -ETIMEDOUT : 0;
    }
    leave();
    return err;
}

static void rouse(struct thread *t, uint64_t at)
{
    t->state = CAN_RUN;
    t->clock = at + WAKE_DELAY_PS;
    t->slept += t->clock - t->since;
    note_key(t->index, t->clock);
}

static int world_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    struct thread *me = enter();
    uint32_t roused = 0;

    (void)os;
    spend_in_kernel(me, SYSCALL_PS);
    for (unsigned i = 0; i < world.count && roused < count_max; i++) {
        struct thread *t = world.threads[i];
        if (t->state != ASLEEP || t->word != word)
            continue;
        me->clock += WAKE_PS;
        world.sums.kernel_ps += WAKE_PS;
        rouse(t, me->clock);
        world.sums.wakes++;
        roused++;
    }
    spend(me, 0);
    leave();
    return (int)roused;
}

static void world_relax(const struct bz_os *os, unsigned round)
{
    struct thread *me = enter();
    (void)os;
    uint64_t pauses = UINT64_C(1) << (round < 6 ? round : 6);
    uint64_t ps = PAUSE_PS * pauses + (round >= 10 ? YIELD_PS : 0);
    world.sums.relax_ps += ps;
    spend(me, ps);
    leave();
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
    struct thread *me = enter();
    (void)os;
    world.sums.barriers++;
    unsigned n = interrupt_others(me, INTERRUPT_PS);
    exclusive_call(me, &world.barrier_free_at,
                   n == 0 ? SYSCALL_PS : BARRIER_PS + n * INTERRUPT_EACH_PS);
    leave();
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
    map_cost(enter());
    int err = bz_linux_slab_reserve(os, slab, bytes, align, flags, name);
    leave();
    return err;
}

static void world_release(const struct bz_os *os, struct bz_os_slab *slab)
{
    struct thread *me = enter();
    exclusive_call(me, &world.maps_free_at, shootdown_ps(me));
    bz_linux_slab_release(os, slab);
    leave();
}

static int world_guard(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                       const struct bz_os_guards *where)
{
    map_cost(enter());
    int err = bz_linux_slab_guard(os, slab, how, where);
    leave();
    return err;
}

static int world_discard(const struct bz_os *os, void *start, size_t bytes)
{
    struct thread *me = enter();
    spend_in_kernel(me, shootdown_ps(me)); /* others may do the same meanwhile */
    int err = bz_linux_pages_discard(os, start, bytes);
    leave();
    return err;
}

/* ---- threads ---------------------------------------------------------------------------------- */

static void thread_main(void *arg)
{
    struct thread *me = arg;

    bz_self_set(NULL);
    bz_self_holds_set(0);
    arrive(me);
    leave();
    me->fn(me->arg);
    world.is_inside = true;
    for (unsigned i = 0; i < world.count; i++) {
        if (world.threads[i]->state == JOINING && world.threads[i]->joins == me)
            rouse(world.threads[i], me->clock);
    }
    if (me->index == 0)
        bz_ctx_switch(&me->ctx, &world.home, NULL, NULL);
    sleep_as(me, DONE, NEVER);
    BZ_CHECK(false, "a thread that has ended runs");
}

static struct thread *thread_new(void (*fn)(void *), void *arg, uint64_t clock)
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

static int world_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                              const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg)
{
    struct thread *me = enter();
    (void)os;
    (void)opts;
    spend_in_kernel(me, THREAD_PS);
    struct thread *thread = thread_new(fn, arg, me->clock + WAKE_DELAY_PS);
    *t = (struct bz_os_thread){.fn = fn, .arg = arg, .native = (uintptr_t)thread};
    leave();
    return 0;
}

static int world_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    struct thread *me = enter(), *it = (struct thread *)t->native;
    (void)os;
    if (it->state != DONE) {
        me->joins = it;
        sleep_as(me, JOINING, NEVER);
    }
    leave();
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

static const struct bz_os backend = {
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
    world.os = backend;
    world.cpus = config->cpus;
    world.is_inside = true;
    world.horizon = NEVER;
    world.tls = (uintptr_t)__builtin_thread_pointer();
    bz_rng_init(&seed, config->seed);
    world.jitter = bz_rng_split(&seed);
    world.entropy = bz_rng_split(&seed);
    bz_os_process = &world.os;
    bz_ctx_adopt(&world.home);
    world.current = thread_new(first_main, &first, START_PS);
    bz_ctx_switch(&world.home, &world.current->ctx, NULL, NULL);
    world.current = NULL;
    bz_os_process = &bz_os_linux;
    threads_free();
}

/* ---- measurement ------------------------------------------------------------------------------ */

static uint64_t cpu_of_all(void)
{
    uint64_t ps = 0;
    for (unsigned i = 0; i < world.count; i++)
        ps += cpu_of(world.threads[i]);
    return ps;
}

void world_mark(void)
{
    struct thread *me = enter();
    world.sums = (struct world_sums){0};
    lines_sites_clear();
    world.mark_at = me->clock;
    world.mark_cpu = cpu_of_all();
    leave();
}

struct world_sums world_since_mark(void)
{
    struct thread *me = enter();
    struct world_sums sums = world.sums;
    sums.elapsed_ps = me->clock - world.mark_at;
    sums.cpu_ps = cpu_of_all() - world.mark_cpu;
    leave();
    return sums;
}
