/*
 * sched.c - the choice of the next thread, and the virtual clock.
 *
 * There are two modes. The random walk picks any runnable thread with equal probability, but
 * continues the current one k times of 8; k comes from the seed. Walks with many switches find
 * races between neighbouring steps; walks with few find races that need one thread to get far. The
 * priority mode follows probabilistic concurrency testing: threads have random priorities and the
 * highest runnable one runs. At random points (one in N steps, N from the seed) the running thread
 * falls below all others. An order that needs d such changes is found with a probability that does
 * not depend on the length of the run. A thread that relaxes or yields also falls, or a spinner
 * with the highest priority would starve the thread it waits for.
 *
 * The clock moves in two places: when no thread can run, to the next deadline or end of burning;
 * and by a few nanoseconds when it is read. If b threads burn on c CPUs and b > c, each gets c/b of
 * the time. Shares are rounded down and the jump is rounded up, so that the thread that should
 * finish first has finished.
 *
 * I1  A thread is READY whenever it runs, and while it is in bz_sim_step and may be chosen.
 * I2  now_ns never goes back and stays below BZ_OS_FOREVER.
 * I3  No decision depends on an address, or two processes would differ: threads are counted in the
 *     order of their starts.
 */
#include "sim/inner.h"

#include <errno.h>

#define STEPS_MAX_DEFAULT UINT64_C(10000000)

void bz_sim_sched_init(struct bz_sim *sim)
{
    static const unsigned stays[] = {0, 0, 4, 6, 7};
    struct bz_rng seed;

    bz_rng_init(&seed, sim->config.seed);
    sim->choices = bz_rng_split(&seed);
    sim->entropy = bz_rng_split(&seed);
    uint32_t dice = bz_rng_below(&seed, 3);
    sim->mode = sim->config.mode;
    if (sim->mode == BZ_SIM_BY_SEED)
        sim->mode = dice == 0 ? BZ_SIM_PRIORITY : BZ_SIM_RANDOM;
    sim->stay_in_8 = stays[bz_rng_below(&seed, BZ_ARRAY_LEN(stays))];
    sim->demote_one_in = 4u << bz_rng_below(&seed, 8); /* 4 to 512 */
    sim->priority_lowest = UINT32_MAX;
    sim->result.hash = sim->config.seed;
    if (sim->config.steps_max == 0)
        sim->config.steps_max = STEPS_MAX_DEFAULT;
}

bool bz_sim_coin(struct bz_sim *sim, uint32_t n)
{
    return bz_rng_below(&sim->choices, n) == 0;
}

void bz_sim_mix(struct bz_sim *sim, enum sim_event what, uint64_t value)
{
    struct bz_rng mixer;
    uint64_t who = sim->current->id;

    bz_rng_init(&mixer, sim->result.hash ^ (uint64_t)what << 56 ^ who << 40 ^ value);
    sim->result.hash = bz_rng_next(&mixer);
}

/* ---- the clock -------------------------------------------------------------------------------- */

static uint32_t count_in(const struct bz_sim *sim, enum sim_state state)
{
    uint32_t count = 0;
    BZ_LIST_FOR_EACH (node, &sim->threads)
        count += SIM_THREAD_OF(node)->state == state;
    return count;
}

/* CPU time that each of `burners` gets while the clock moves by ns. */
static uint64_t share_down(uint64_t ns, uint64_t burners, uint64_t cpus)
{
    BZ_CHECK(cpus > 0, "a simulation without CPUs");
    if (burners <= cpus)
        return ns;
    return ns / burners * cpus + ns % burners * cpus / burners;
}

/* The time when each of `burners` will have used at least ns more; at most the end of time. */
static uint64_t burnt_at(uint64_t now, uint64_t ns, uint64_t burners, uint64_t cpus)
{
    uint64_t whole, at;

    BZ_CHECK(cpus > 0, "a simulation without CPUs");
    if (burners <= cpus)
        burners = cpus = 1;
    uint64_t rest = (ns % cpus * burners + cpus - 1) / cpus;
    if (__builtin_mul_overflow(ns / cpus, burners, &whole) ||
        __builtin_add_overflow(whole, rest, &at) || __builtin_add_overflow(at, now, &at))
        return BZ_OS_FOREVER - 1;
    return at < BZ_OS_FOREVER ? at : BZ_OS_FOREVER - 1;
}

static void burn_some(struct sim_thread *t, uint64_t share_ns)
{
    uint64_t had = t->burn_ns < share_ns ? t->burn_ns : share_ns;
    t->burn_ns -= had;
    t->cpu_ns += t->lingers ? 0 : had;
    if (t->burn_ns == 0)
        t->state = SIM_READY;
}

void bz_sim_clock_move(struct bz_sim *sim, uint64_t to_ns)
{
    if (to_ns < sim->now_ns || to_ns == BZ_OS_FOREVER)
        to_ns = BZ_OS_FOREVER - 1; /* I2: the end of time */
    uint64_t share =
        share_down(to_ns - sim->now_ns, count_in(sim, SIM_BURNING), (uint64_t)sim->config.cpus);
    if (to_ns == BZ_OS_FOREVER - 1)
        share = UINT64_MAX; /* the end of time ends everything */
    sim->now_ns = to_ns;
    BZ_LIST_FOR_EACH (node, &sim->threads) {
        struct sim_thread *t = SIM_THREAD_OF(node);
        if (t->state == SIM_BURNING) {
            burn_some(t, share);
        } else if (t->state == SIM_ASLEEP && t->until_ns <= to_ns) {
            t->state = SIM_READY;
            t->result = -ETIMEDOUT;
        }
    }
}

/* No thread can run: advance the clock to the next event. Return false if there is none. */
static bool clock_jump(struct bz_sim *sim)
{
    uint32_t burners = count_in(sim, SIM_BURNING);
    uint64_t next = BZ_OS_FOREVER;

    BZ_LIST_FOR_EACH (node, &sim->threads) {
        struct sim_thread *t = SIM_THREAD_OF(node);
        uint64_t at = BZ_OS_FOREVER;
        if (t->state == SIM_ASLEEP)
            at = t->until_ns;
        if (t->state == SIM_BURNING)
            at = burnt_at(sim->now_ns, t->burn_ns, burners, (uint64_t)sim->config.cpus);
        next = at < next ? at : next;
    }
    if (next == BZ_OS_FOREVER)
        return false;
    bz_sim_clock_move(sim, next);
    bz_sim_mix(sim, SIM_EV_CLOCK, sim->now_ns);
    return true;
}

/* ---- the next thread
 * ------------------------------------------------------------------------------ */

static struct sim_thread *choose_random(struct bz_sim *sim, uint32_t ready)
{
    bool stays = bz_rng_below(&sim->choices, 8) < sim->stay_in_8;
    uint32_t pick = bz_rng_below(&sim->choices, ready);

    if (stays && sim->current->state == SIM_READY)
        return sim->current;
    BZ_LIST_FOR_EACH (node, &sim->threads) {
        if (SIM_THREAD_OF(node)->state == SIM_READY && pick-- == 0)
            return SIM_THREAD_OF(node);
    }
    return NULL;
}

static struct sim_thread *choose_highest(struct bz_sim *sim)
{
    struct sim_thread *best = NULL;

    if (bz_sim_coin(sim, sim->demote_one_in))
        sim->current->priority = sim->priority_lowest--;
    BZ_LIST_FOR_EACH (node, &sim->threads) {
        struct sim_thread *t = SIM_THREAD_OF(node);
        if (t->state == SIM_READY && (best == NULL || t->priority > best->priority))
            best = t;
    }
    return best;
}

static struct sim_thread *choose(struct bz_sim *sim)
{
    uint32_t ready;

    while ((ready = count_in(sim, SIM_READY)) == 0) {
        if (!clock_jump(sim))
            return NULL;
    }
    struct sim_thread *next =
        sim->mode == BZ_SIM_PRIORITY ? choose_highest(sim) : choose_random(sim, ready);
    BZ_CHECK(next != NULL, "%u threads can run and none was chosen", ready);
    bz_sim_mix(sim, SIM_EV_CHOICE, next->id);
    return next;
}

/* ---- decision points ------------------------------------------------------------------------- */

void bz_sim_end(struct bz_sim *sim, int err)
{
    sim->end = err;
    bz_sim_coro_switch(&sim->current->coro, &sim->home, SIM_NEVER_COMES_BACK, &sim->home);
    BZ_CHECK(false, "a simulation that had ended was resumed");
    __builtin_unreachable();
}

/* At the configured decision point, set the word. Return its sleeper, which runs next; NULL if no
 * thread sleeps on it. */
static struct sim_thread *poke(struct bz_sim *sim)
{
    bz_store_release(sim->config.poke, 1); /* os.h, sleep words: a waker changes the word first */
    BZ_LIST_FOR_EACH (node, &sim->threads) {
        struct sim_thread *t = SIM_THREAD_OF(node);
        if (t->state == SIM_ASLEEP && t->word == sim->config.poke) {
            t->state = SIM_READY;
            t->result = 0;
            bz_sim_mix(sim, SIM_EV_WAKE, t->id);
            return t;
        }
    }
    return NULL;
}

static struct sim_thread *next_thread(struct bz_sim *sim)
{
    struct sim_thread *poked = NULL;
    if (sim->config.poke != NULL && sim->result.steps == sim->config.poke_at)
        poked = poke(sim);
    return poked != NULL ? poked : choose(sim);
}

/* An interrupt reaches its thread at any decision point after it was sent, at once or later. */
static void interrupt(struct bz_sim *sim)
{
    struct sim_thread *me = sim->current;
    bz_os_interrupted_fn *fn = sim->interrupted;
    if (me->is_interrupted || fn == NULL || !bz_sim_coin(sim, 2))
        return;
    uint64_t left = me->burn_ns;
    uint32_t spins = me->spins;
    int result = me->result;
    me->has_interrupt = false;
    me->is_interrupted = true;
    bz_sim_mix(sim, SIM_EV_URGE, me->id);
    fn(0);
    me->is_interrupted = false;
    me->burn_ns = left;
    me->spins = spins;
    me->result = result;
}

static void step(struct bz_sim *sim, enum sim_event what, uint64_t value)
{
    struct sim_thread *from = sim->current;

    bz_sim_mix(sim, what, value);
    if (++sim->result.steps > sim->config.steps_max)
        bz_sim_end(sim, -ETIME);
    struct sim_thread *to = next_thread(sim);
    if (to == NULL)
        bz_sim_end(sim, -EDEADLK);
    if (to == from)
        return;
    sim->result.switches++;
    sim->current = to;
    bz_sim_coro_switch(&from->coro, &to->coro, SIM_COMES_BACK, &sim->home);
}

void bz_sim_step(struct bz_sim *sim, enum sim_event what, uint64_t value)
{
    step(sim, what, value);
    if (sim->current->has_interrupt)
        interrupt(sim);
}

void bz_sim_leave(struct bz_sim *sim)
{
    struct sim_thread *from = sim->current, *to = choose(sim);

    if (to == NULL)
        bz_sim_end(sim, -EDEADLK);
    sim->result.switches++;
    sim->current = to;
    bz_sim_coro_switch(&from->coro, &to->coro, SIM_NEVER_COMES_BACK, &sim->home);
    BZ_CHECK(false, "thread %u was resumed after its end", from->id);
    __builtin_unreachable();
}
