/*
 * fault.c - the fault-injecting OS backend. The reasons are in fault.h.
 *
 * Each function that can fail calls `strikes(f, kind)` first. If that returns true, the function
 * returns an error from the contract of os.h without calling the wrapped backend: a failed call has
 * no effect. Functions that cannot fail call the wrapped backend directly.
 *
 * I1  A bz_fault fails exactly one call: the one that makes `calls` reach nth. If the plan says so,
 *     it also fails all later calls. While the backend is shut it fails every call of the plan's kind.
 * I2  The balance counts successful acquisitions, so a failed call does not change it.
 *
 * Every atomic here is relaxed: the counters order nothing. The reader of the balance has joined
 * the threads that wrote it.
 */
#include "sim/fault.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/rng.h"

static struct bz_fault *fault_of(const struct bz_os *os)
{
    return BZ_CONTAINER_OF(os, struct bz_fault, os);
}

static bool strikes(struct bz_fault *f, enum bz_fault_kind kind)
{
    if (f->plan.kind != kind && f->plan.kind != BZ_FAULT_ANY)
        return false;
    uint64_t call = bz_fetch_add_relaxed(&f->calls, 1) + 1; /* relaxed: a counter, I1 */
    bool is_late = f->plan.for_good && f->plan.nth != 0 && call > f->plan.nth;
    if (call != f->plan.nth && !is_late && !bz_load_relaxed(&f->is_shut)) /* relaxed: as above */
        return false;
    bz_store_relaxed(&f->failed, (int)kind); /* relaxed: read after the scenario */
    return true;
}

/* ---- hot -------------------------------------------------------------------------------------- */

static uint64_t fault_now(const struct bz_os *os)
{
    const struct bz_os *under = fault_of(os)->under;
    return under->now(under);
}

static int fault_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected,
                      uint64_t until_ns)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_WAIT))
        return 0;
    return f->under->wait(f->under, word, expected, until_ns);
}

static void fault_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    const struct bz_os *under = fault_of(os)->under;
    under->wake(under, word, count_max);
}

static void fault_relax(const struct bz_os *os, unsigned round)
{
    const struct bz_os *under = fault_of(os)->under;
    under->relax(under, round);
}

static void fault_delay(const struct bz_os *os, enum bz_os_point at)
{
    struct bz_fault *f = fault_of(os);
    struct bz_rng dice;

    bz_os_delay_here(f->under, at);
    if (f->plan.delay_one_in == 0)
        return;
    /* relaxed: every point only needs a unique number */
    bz_rng_init(&dice, f->plan.seed + bz_fetch_add_relaxed(&f->delays, 1));
    if (bz_rng_below(&dice, f->plan.delay_one_in) != 0 || f->plan.delay_ns_max == 0)
        return;
    uint64_t until = f->under->now(f->under) + bz_rng_below(&dice, f->plan.delay_ns_max);
    while (f->under->now(f->under) < until)
        f->under->relax(f->under, 0);
}

static int fault_barrier(const struct bz_os *os)
{
    struct bz_fault *f = fault_of(os);
    if (bz_load_relaxed(&f->has_no_barrier)) /* relaxed: set before the first push */
        return -ENOSYS;
    return f->under->barrier(f->under);
}

static int fault_barrier_register(const struct bz_os *os)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_BARRIER)) {
        bz_store_relaxed(&f->has_no_barrier, true); /* relaxed: as above */
        return -ENOSYS;
    }
    return f->under->barrier_register(f->under);
}

/* ---- threads ---------------------------------------------------------------------------------- */

static int fault_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                              const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_THREAD))
        return -EAGAIN;
    int err = f->under->thread_start(f->under, t, opts, fn, arg);
    if (err == 0)
        bz_fetch_add_relaxed(&f->threads, 1); /* relaxed: balance, I2 */
    return err;
}

static int fault_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    struct bz_fault *f = fault_of(os);
    int err = f->under->thread_join(f->under, t);
    if (err == 0)
        bz_fetch_sub_relaxed(&f->threads, 1); /* relaxed: balance, I2 */
    return err;
}

static void fault_thread_detach(const struct bz_os *os, struct bz_os_thread *t)
{
    struct bz_fault *f = fault_of(os);
    f->under->thread_detach(f->under, t);
    bz_fetch_sub_relaxed(&f->threads, 1); /* relaxed: balance, I2 */
}

static void fault_thread_quit(const struct bz_os *os, struct bz_os_thread *t)
{
    const struct bz_os *under = fault_of(os)->under;
    under->thread_quit(under, t);
}

static uint64_t fault_cpu_time(const struct bz_os *os)
{
    const struct bz_os *under = fault_of(os)->under;
    return under->cpu_time(under);
}

static int fault_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                                 uint64_t *out_ns)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_CPU_TIME))
        return -ESRCH;
    return f->under->thread_cpu_time(f->under, t, out_ns);
}

static uint32_t fault_thread_id(const struct bz_os *os)
{
    return bz_os_thread_id(fault_of(os)->under);
}

static int fault_thread_sleeps(const struct bz_os *os, uint32_t id)
{
    return bz_os_thread_sleeps(fault_of(os)->under, id);
}

static int fault_interrupt_watch(const struct bz_os *os, bz_os_interrupted_fn *fn)
{
    struct bz_fault *f = fault_of(os);
    return strikes(f, BZ_FAULT_INTERRUPT) ? -EAGAIN : bz_os_interrupt_watch(f->under, fn);
}

static void fault_interrupt_unwatch(const struct bz_os *os)
{
    bz_os_interrupt_unwatch(fault_of(os)->under);
}

static int fault_thread_interrupt(const struct bz_os *os, uint32_t id)
{
    struct bz_fault *f = fault_of(os);
    return strikes(f, BZ_FAULT_INTERRUPT) ? -EAGAIN : bz_os_thread_interrupt(f->under, id);
}

/* ---- pages ------------------------------------------------------------------------------------ */

static size_t fault_page_bytes(const struct bz_os *os)
{
    const struct bz_os *under = fault_of(os)->under;
    return under->page_bytes(under);
}

static int fault_slab_reserve(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes,
                              size_t align, enum bz_os_slab_flags flags, const char *name)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_RESERVE))
        return -ENOMEM;
    int err = f->under->slab_reserve(f->under, slab, bytes, align, flags, name);
    if (err == 0)
        bz_fetch_add_relaxed(&f->slabs, 1); /* relaxed: balance, I2 */
    return err;
}

static void fault_slab_release(const struct bz_os *os, struct bz_os_slab *slab)
{
    struct bz_fault *f = fault_of(os);
    f->under->slab_release(f->under, slab);
    bz_fetch_sub_relaxed(&f->slabs, 1); /* relaxed: balance, I2 */
}

static int fault_slab_guard(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                            const struct bz_os_guards *where)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_GUARD))
        return -ENOMEM;
    return f->under->slab_guard(f->under, slab, how, where);
}

static int fault_pages_discard(const struct bz_os *os, void *start, size_t bytes)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_DISCARD))
        return -ENOMEM;
    return f->under->pages_discard(f->under, start, bytes);
}

/* ---- the rest --------------------------------------------------------------------------------- */

static int fault_cpus(const struct bz_os *os)
{
    const struct bz_os *under = fault_of(os)->under;
    return under->cpus(under);
}

static int fault_others(const struct bz_os *os)
{
    const struct bz_os *under = fault_of(os)->under;
    return under->others(under);
}

static int fault_entropy(const struct bz_os *os, void *out, size_t bytes)
{
    struct bz_fault *f = fault_of(os);
    if (strikes(f, BZ_FAULT_ENTROPY))
        return -EIO;
    return f->under->entropy(f->under, out, bytes);
}

static void *fault_alloc(void *ctx, size_t size, size_t align)
{
    struct bz_fault *f = ctx;
    if (strikes(f, BZ_FAULT_MEMORY))
        return NULL;
    void *memory = f->memory->alloc(f->memory->ctx, size, align);
    if (memory != NULL)
        bz_fetch_add_relaxed(&f->blocks, 1); /* relaxed: balance, I2 */
    return memory;
}

static void fault_free(void *ctx, void *memory, size_t size)
{
    struct bz_fault *f = ctx;
    f->memory->free(f->memory->ctx, memory, size);
    bz_fetch_sub_relaxed(&f->blocks, 1); /* relaxed: balance, I2 */
}

static void fault_interrupt_again(const struct bz_os *os, uint64_t ns)
{
    bz_os_interrupt_again(fault_of(os)->under, ns);
}

static const struct bz_os table = {
    .name = "fault",
    .now = fault_now,
    .wait = fault_wait,
    .wake = fault_wake,
    .relax = fault_relax,
    .delay = fault_delay,
    .barrier = fault_barrier,
    .barrier_register = fault_barrier_register,
    .thread_start = fault_thread_start,
    .thread_join = fault_thread_join,
    .thread_detach = fault_thread_detach,
    .thread_quit = fault_thread_quit,
    .cpu_time = fault_cpu_time,
    .thread_cpu_time = fault_thread_cpu_time,
    .thread_id = fault_thread_id,
    .thread_sleeps = fault_thread_sleeps,
    .interrupt_watch = fault_interrupt_watch,
    .interrupt_unwatch = fault_interrupt_unwatch,
    .thread_interrupt = fault_thread_interrupt,
    .interrupt_again = fault_interrupt_again,
    .page_bytes = fault_page_bytes,
    .slab_reserve = fault_slab_reserve,
    .slab_release = fault_slab_release,
    .slab_guard = fault_slab_guard,
    .pages_discard = fault_pages_discard,
    .cpus = fault_cpus,
    .others = fault_others,
    .entropy = fault_entropy,
};

void bz_fault_init(struct bz_fault *f, const struct bz_os *under, const blitz_allocator *memory,
                   const struct bz_fault_plan *plan)
{
    *f = (struct bz_fault){.os = table, .under = under, .plan = *plan};
    if (under->thread_detach == NULL)
        f->os.thread_detach = NULL;
    f->memory = memory != NULL ? memory : &bz_allocator_libc;
    f->allocator = (blitz_allocator){fault_alloc, fault_free, f};
}

void bz_fault_shut(struct bz_fault *f, bool is_shut)
{
    bz_store_relaxed(&f->is_shut, is_shut); /* relaxed: a switch, it orders nothing */
}

enum bz_fault_kind bz_fault_failed(struct bz_fault *f)
{
    return (enum bz_fault_kind)bz_load_relaxed(&f->failed); /* relaxed: written by joined threads */
}

struct bz_fault_books bz_fault_books(struct bz_fault *f)
{
    return (struct bz_fault_books){
        .threads = bz_load_relaxed(&f->threads), /* relaxed: written by joined threads, as below */
        .slabs = bz_load_relaxed(&f->slabs),     /* relaxed */
        .blocks = bz_load_relaxed(&f->blocks),   /* relaxed */
    };
}

const char *bz_fault_name(enum bz_fault_kind kind)
{
    static const char *const names[] = {"none",      "thread",  "reserve", "guard",
                                        "discard",   "wait",    "barrier", "cpu time",
                                        "interrupt", "entropy", "memory"};
    return (unsigned)kind < BZ_ARRAY_LEN(names) ? names[kind] : "any";
}
