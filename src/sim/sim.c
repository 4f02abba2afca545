/*
 * sim.c - the simulated OS backend: the table, and the run around it.
 *
 * Each operation is first a decision point (bz_sim_step: other threads may run before it), then its
 * effect, which is not interrupted. So all events between the caller's last instruction and the
 * operation are explored, and the operation itself is atomic, as in the real system. Another
 * decision point follows a wake, or the roused thread could never overtake its waker.
 *
 * Waits return spuriously one time in SPURIOUS_ONE_IN, as the contract allows. The seed chooses
 * which sleeper a wake rouses, because the contract promises no order.
 *
 * Half of the relax calls take the time of a pause, so that time passes when all threads spin. The
 * other half take no time, so that a spinner can check between two steps of another thread. A delay
 * point sometimes delays the thread for a random time.
 *
 * A thread is one mapping: a guard page, the stack, and its record at the top. Nothing is allocated
 * elsewhere, so an abandoned run is cleaned up by unmapping.
 *
 * A detached thread runs to its end: when the scenario has returned, the run joins each of them. So a
 * detached thread that never ends is a deadlock.
 *
 * I1  `running` is the one simulation of the process, set while its threads run. bz_os_process is then
 *     its table.
 * I2  A thread's mapping is released by its joiner, or by the run's end: never by itself.
 */
#include "sim/sim.h"

#include <errno.h>
#include <string.h>

#include "sim/inner.h"

#define CPUS_DEFAULT 4
#define SPINS_MAX_DEFAULT 100000
#define STACK_BYTES_DEFAULT ((size_t)256 << 10)
#define START_NS (UINT64_C(1000) * 1000000000) /* code must not rely on a clock that starts at 0 */
#define NOW_COST_NS 20
#define PAUSE_COST_NS 30
#define SPURIOUS_ONE_IN 32
#define LINGER_ONE_IN 16
#define LINGER_NS_MAX 20000

static bz_atomic(int) is_taken;
static struct bz_sim *running; /* I1 */

static struct bz_sim *sim_of(const struct bz_os *os)
{
    struct bz_sim *sim = BZ_CONTAINER_OF(os, struct bz_sim, os);
    BZ_CHECK(sim == running, "the simulated keeper is used outside its simulation");
    return sim;
}

/* ---- time ------------------------------------------------------------------------------------- */

static uint64_t sim_now(const struct bz_os *os)
{
    struct bz_sim *sim = sim_of(os);
    uint64_t now = sim->now_ns;
    bz_sim_clock_move(sim, now + NOW_COST_NS);
    return now;
}

static uint64_t sim_cpu_time(const struct bz_os *os)
{
    return sim_of(os)->current->cpu_ns;
}

static int sim_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                               uint64_t *out_ns)
{
    const struct sim_thread *thread = (const struct sim_thread *)t->native;
    (void)sim_of(os);
    if (thread->state == SIM_DONE)
        return -ESRCH;
    *out_ns = thread->cpu_ns;
    return 0;
}

static void burn(struct bz_sim *sim, enum sim_event what, uint64_t ns)
{
    struct sim_thread *me = sim->current;
    if (ns > 0) {
        me->state = SIM_BURNING;
        me->burn_ns = ns;
        me->since_ns = sim->now_ns;
    }
    bz_sim_step(sim, what, ns);
    while (me->burn_ns > 0) { /* an interrupt ended it */
        me->state = SIM_BURNING;
        bz_sim_step(sim, what, me->burn_ns);
    }
}

void bz_sim_burn(uint64_t ns)
{
    BZ_CHECK(running != NULL, "bz_sim_burn outside a simulation");
    running->current->spins = 0;
    burn(running, SIM_EV_BURN, ns);
}

void bz_sim_trace(uint64_t what)
{
    BZ_CHECK(running != NULL, "bz_sim_trace outside a simulation");
    bz_sim_mix(running, SIM_EV_USER, what);
}

uint32_t bz_sim_thread(void)
{
    BZ_CHECK(running != NULL, "bz_sim_thread outside a simulation");
    return running->current->id;
}

void bz_sim_at_thread_end(void (*fn)(uint32_t thread))
{
    BZ_CHECK(running != NULL, "bz_sim_at_thread_end outside a simulation");
    running->at_thread_end = fn;
}

bool bz_sim_is_running(void)
{
    return running != NULL;
}

/* ---- sleep words ------------------------------------------------------------------------------ */

static int sim_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns)
{
    struct bz_sim *sim = sim_of(os);
    struct sim_thread *me = sim->current;

    me->spins = 0;
    bz_sim_step(sim, SIM_EV_WAIT, until_ns);
    if (bz_load_relaxed(word) != expected) /* relaxed: os.h, a wait orders nothing */
        return -EAGAIN;
    if (until_ns <= sim->now_ns)
        return -ETIMEDOUT;
    if (!sim->config.has_no_spurious && bz_sim_coin(sim, SPURIOUS_ONE_IN))
        return 0;
    me->state = SIM_ASLEEP;
    me->word = word;
    me->until_ns = until_ns;
    me->since_ns = sim->now_ns;
    me->result = 0;
    bz_sim_step(sim, SIM_EV_WAIT, 0);
    return me->result;
}

static struct sim_thread *sleeper_on(struct bz_sim *sim, const bz_os_word *word)
{
    struct sim_thread *picked = NULL;
    uint32_t seen = 0;

    BZ_LIST_FOR_EACH (node, &sim->threads) { /* each of the k seen so far with probability 1/k */
        struct sim_thread *t = SIM_THREAD_OF(node);
        if (t->state == SIM_ASLEEP && t->word == word && bz_sim_coin(sim, ++seen))
            picked = t;
    }
    return picked;
}

static void sim_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    struct bz_sim *sim = sim_of(os);
    struct sim_thread *t;
    uint32_t roused = 0;

    sim->current->spins = 0;
    bz_sim_step(sim, SIM_EV_WAKE, count_max);
    for (; roused < count_max && (t = sleeper_on(sim, word)) != NULL; roused++)
        t->state = SIM_READY; /* its result is 0 already */
    if (roused > 0)
        bz_sim_step(sim, SIM_EV_WAKE, roused);
}

static void sim_relax(const struct bz_os *os, unsigned round)
{
    struct bz_sim *sim = sim_of(os);
    struct sim_thread *me = sim->current;

    if (++me->spins > sim->config.spins_max)
        bz_sim_end(sim, -ELOOP);
    if (sim->mode == BZ_SIM_PRIORITY)
        me->priority = sim->priority_lowest--;
    uint64_t cost = (uint64_t)PAUSE_COST_NS << (round < 6 ? round : 6);
    burn(sim, SIM_EV_RELAX, bz_sim_coin(sim, 2) ? cost : 0);
}

static void sim_delay(const struct bz_os *os, enum bz_os_point at)
{
    struct bz_sim *sim = sim_of(os);
    struct sim_thread *me = sim->current;
    me->lingers = bz_sim_coin(sim, LINGER_ONE_IN);
    bz_sim_mix(sim, SIM_EV_DELAY, at);
    burn(sim, SIM_EV_DELAY, me->lingers ? bz_rng_below(&sim->choices, LINGER_NS_MAX) : 0);
    me->lingers = false;
}

static int sim_barrier(const struct bz_os *os)
{
    struct bz_sim *sim = sim_of(os);
    bz_sim_step(sim, SIM_EV_BARRIER, 0);
    return sim->config.has_no_barrier ? -ENOSYS : 0;
}

/* ---- threads ---------------------------------------------------------------------------------- */

static void thread_main(void *arg)
{
    struct sim_thread *me = arg;
    me->fn(me->arg);
    if (me->sim->at_thread_end != NULL)
        me->sim->at_thread_end(me->id);
    bz_sim_step(me->sim, SIM_EV_END, 0); /* events after the last instruction may come first */
    me->state = SIM_DONE;
    BZ_LIST_FOR_EACH (node, &me->sim->threads) {
        if (SIM_THREAD_OF(node)->joins == me)
            SIM_THREAD_OF(node)->state = SIM_READY;
    }
    bz_sim_leave(me->sim);
}

static int thread_new(struct bz_sim *sim, size_t stack_bytes, const char *name,
                      struct sim_thread **out)
{
    size_t page = bz_linux_page_bytes(NULL);
    size_t record = (sizeof(struct sim_thread) + page - 1) / page * page;
    struct bz_os_guards guard = {.bytes = page, .count = 1};
    struct bz_os_slab slab;

    if (stack_bytes > SIZE_MAX / 2)
        return -EINVAL;
    stack_bytes = (stack_bytes + page - 1) / page * page;
    int err = bz_linux_slab_reserve(NULL, &slab, page + stack_bytes + record, 0,
                                    BZ_OS_SLAB_SMALL_PAGES, "blitz-sim-stack");
    if (err != 0)
        return err;
    /* The simulation also works without a guard. */
    (void)!bz_linux_slab_guard(NULL, &slab, BZ_OS_GUARD_BEST, &guard);
    struct sim_thread *t = (struct sim_thread *)(void *)(slab.base + page + stack_bytes);
    t->slab = slab;
    t->sim = sim;
    t->id = sim->result.threads++;
    t->priority = (bz_rng_next(&sim->choices) >> 1) | UINT64_C(1) << 62;
    bz_list_init(&t->link);
    bz_list_push_back(&sim->threads, &t->link);
    memcpy(t->name, name, strnlen(name, BZ_OS_NAME_MAX - 1));
    bz_sim_coro_init(&t->coro, slab.base + page, stack_bytes, thread_main, t);
    *out = t;
    return 0;
}

static void thread_free(struct sim_thread *t)
{
    struct bz_os_slab slab = t->slab; /* this also unmaps the record */
    bz_list_remove(&t->link);
    bz_sim_coro_fini(&t->coro);
    bz_linux_slab_release(NULL, &slab);
}

static bool affinity_has_cpu(const struct bz_os_thread_opts *opts, int cpus)
{
    for (int c = 0; c < cpus && (size_t)c / 64 < opts->affinity_words; c++) {
        if (opts->affinity[c / 64] >> (c % 64) & 1)
            return true;
    }
    return false;
}

static int sim_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                            const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg)
{
    static const struct bz_os_thread_opts defaults;
    struct bz_sim *sim = sim_of(os);
    struct sim_thread *thread;

    if (opts == NULL)
        opts = &defaults;
    if (opts->affinity != NULL && !affinity_has_cpu(opts, sim->config.cpus))
        return -EINVAL;
    size_t stack =
        opts->stack_bytes > sim->config.stack_bytes ? opts->stack_bytes : sim->config.stack_bytes;
    int err = thread_new(sim, stack, opts->name != NULL ? opts->name : sim->current->name, &thread);
    if (err != 0)
        return err;
    thread->fn = fn;
    thread->arg = arg;
    *t = (struct bz_os_thread){.fn = fn, .arg = arg, .native = (uintptr_t)thread};
    memcpy(t->name, thread->name, sizeof t->name);
    sim->current->spins = 0;
    bz_sim_step(sim, SIM_EV_START, thread->id);
    return 0;
}

/* Wait for the end of a thread, and release it. */
static void join_thread(struct bz_sim *sim, struct sim_thread *it)
{
    struct sim_thread *me = sim->current;
    me->spins = 0;
    bz_sim_step(sim, SIM_EV_JOIN, it->id);
    if (it->state != SIM_DONE) {
        me->state = SIM_JOINING;
        me->joins = it;
        me->since_ns = sim->now_ns;
        bz_sim_step(sim, SIM_EV_JOIN, it->id);
        me->joins = NULL;
    }
    thread_free(it); /* I2 */
}

static int sim_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    struct bz_sim *sim = sim_of(os);
    struct sim_thread *it = (struct sim_thread *)t->native;
    if (it == sim->current)
        return -EDEADLK;
    join_thread(sim, it);
    return 0;
}

static void sim_thread_detach(const struct bz_os *os, struct bz_os_thread *t)
{
    (void)os;
    ((struct sim_thread *)t->native)->is_detached = true;
}

/* The run's end releases the thread. */
static void sim_thread_quit(const struct bz_os *os, struct bz_os_thread *t)
{
    (void)os;
    (void)t;
}

static struct sim_thread *next_detached(struct bz_sim *sim)
{
    BZ_LIST_FOR_EACH (node, &sim->threads) {
        if (SIM_THREAD_OF(node)->is_detached)
            return SIM_THREAD_OF(node);
    }
    return NULL;
}

/* ---- interrupts ------------------------------------------------------------------------------- */

static uint32_t sim_thread_id(const struct bz_os *os)
{
    return sim_of(os)->current->id + 1;
}

static struct sim_thread *thread_of(struct bz_sim *sim, uint32_t id)
{
    BZ_LIST_FOR_EACH (node, &sim->threads)
        if (SIM_THREAD_OF(node)->id + 1 == id && SIM_THREAD_OF(node)->state != SIM_DONE)
            return SIM_THREAD_OF(node);
    return NULL;
}

static int sim_thread_sleeps(const struct bz_os *os, uint32_t id)
{
    struct sim_thread *t = thread_of(sim_of(os), id);
    if (t == NULL)
        return -ESRCH;
    return t->state == SIM_ASLEEP || t->state == SIM_JOINING;
}

static int sim_interrupt_watch(const struct bz_os *os, bz_os_interrupted_fn *fn)
{
    struct bz_sim *sim = sim_of(os);
    if (sim->config.has_no_interrupt)
        return -ENOSYS;
    sim->interrupted = fn;
    sim->interrupt_users++;
    return 0;
}

static void sim_interrupt_unwatch(const struct bz_os *os)
{
    struct bz_sim *sim = sim_of(os);
    if (--sim->interrupt_users == 0)
        sim->interrupted = NULL;
}

/* A burning thread is interrupted at once; a sleeping thread when it wakes. */
static int sim_thread_interrupt(const struct bz_os *os, uint32_t id)
{
    struct bz_sim *sim = sim_of(os);
    bz_sim_step(sim, SIM_EV_URGE, id);
    struct sim_thread *t = thread_of(sim, id);
    if (t == NULL)
        return -ESRCH;
    t->has_interrupt = true;
    if (t->state == SIM_BURNING)
        t->state = SIM_READY;
    return 0;
}

static void sim_interrupt_again(const struct bz_os *os, uint64_t ns)
{
    (void)ns;
    sim_of(os)->current->has_interrupt = true;
}

/* ---- the rest --------------------------------------------------------------------------------- */

static int sim_cpus(const struct bz_os *os)
{
    return sim_of(os)->config.cpus;
}

/* A woken thread is not ASLEEP any more, so the words need no check. */
static int sim_others(const struct bz_os *os)
{
    struct bz_sim *sim = sim_of(os);
    int count = 0;
    BZ_LIST_FOR_EACH (node, &sim->threads) {
        struct sim_thread *t = SIM_THREAD_OF(node);
        count += t != sim->current && t->state != SIM_DONE &&
                 !(t->state == SIM_ASLEEP && t->until_ns == BZ_OS_FOREVER);
    }
    return count;
}

static int sim_entropy(const struct bz_os *os, void *out, size_t bytes)
{
    struct bz_sim *sim = sim_of(os);
    unsigned char *at = out;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(bz_rng_next(&sim->entropy) >> 32);
    return 0;
}

static const struct bz_os table = {
    .name = "sim",
    .now = sim_now,
    .wait = sim_wait,
    .wake = sim_wake,
    .relax = sim_relax,
    .delay = sim_delay,
    .barrier = sim_barrier,
    .barrier_register = sim_barrier,
    .thread_start = sim_thread_start,
    .thread_join = sim_thread_join,
    .thread_detach = sim_thread_detach,
    .thread_quit = sim_thread_quit,
    .cpu_time = sim_cpu_time,
    .thread_cpu_time = sim_thread_cpu_time,
    .thread_id = sim_thread_id,
    .thread_sleeps = sim_thread_sleeps,
    .interrupt_watch = sim_interrupt_watch,
    .interrupt_unwatch = sim_interrupt_unwatch,
    .thread_interrupt = sim_thread_interrupt,
    .interrupt_again = sim_interrupt_again,
    .page_bytes = bz_linux_page_bytes,
    .slab_reserve = bz_linux_slab_reserve,
    .slab_release = bz_linux_slab_release,
    .slab_guard = bz_linux_slab_guard,
    .pages_discard = bz_linux_pages_discard,
    .cpus = sim_cpus,
    .others = sim_others,
    .entropy = sim_entropy,
};

/* ---- the run ---------------------------------------------------------------------------------- */

struct first {
    void (*fn)(const struct bz_os *os, void *arg);
    void *arg;
    struct bz_sim *sim;
};

static void first_main(void *arg)
{
    struct first *first = arg;
    first->fn(&first->sim->os, first->arg);
    for (struct sim_thread *t; (t = next_detached(first->sim)) != NULL;)
        join_thread(first->sim, t);
    bool is_alone = first->sim->threads.next == first->sim->threads.prev;
    bz_sim_mix(first->sim, SIM_EV_END, first->sim->now_ns);
    bz_sim_end(first->sim, is_alone ? 0 : -ECHILD);
}

static int config_take(struct bz_sim *sim, const struct bz_sim_config *config)
{
    sim->config = *config;
    if (config->cpus < 0 || (int)config->mode < BZ_SIM_BY_SEED || config->mode > BZ_SIM_PRIORITY)
        return -EINVAL;
    if (config->cpus == 0)
        sim->config.cpus = CPUS_DEFAULT;
    if (config->spins_max == 0)
        sim->config.spins_max = SPINS_MAX_DEFAULT;
    if (config->stack_bytes == 0)
        sim->config.stack_bytes = STACK_BYTES_DEFAULT;
    sim->os = table;
    sim->now_ns = sim->start_ns = START_NS;
    bz_list_init(&sim->threads);
    bz_sim_sched_init(sim);
    return 0;
}

static int run(struct bz_sim *sim, struct first *first)
{
    int err = thread_new(sim, sim->config.stack_bytes, "main", &sim->current);
    if (err != 0)
        return err;
    sim->current->fn = first_main;
    sim->current->arg = first;
    running = sim;
    bz_os_process = &sim->os;
    bz_sim_coro_init_home(&sim->home);
    bz_sim_coro_switch(&sim->home, &sim->current->coro, SIM_COMES_BACK, &sim->home);
    running = NULL;
    bz_os_process = &bz_os_system;
    if (sim->end != 0)
        bz_sim_report(sim);
    BZ_LIST_FOR_EACH_SAFE (node, &sim->threads)
        thread_free(SIM_THREAD_OF(node)); /* I2 */
    return sim->end;
}

int bz_sim_run(const struct bz_sim_config *config, void (*fn)(const struct bz_os *os, void *arg),
               void *arg, struct bz_sim_result *out)
{
    struct bz_sim sim = {0};
    struct first first = {.fn = fn, .arg = arg, .sim = &sim};
    int err = config_take(&sim, config);

    if (err == 0 && bz_xchg_acquire(&is_taken, 1)) /* a lock that is only used by try-lock */
        err = -EBUSY;
    if (err == 0) {
        err = run(&sim, &first);
        bz_store_release(&is_taken, 0); /* with the acquire above: `running` is ours in between */
    }
    sim.result.ns = sim.now_ns - sim.start_ns;
    if (out != NULL)
        *out = sim.result;
    return err;
}
