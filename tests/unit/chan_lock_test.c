/* chan/chan_lock.c: how a thread waits for the lock of a channel. The system counts spins and naps, and the test makes
 * the time. */
#include "harness.h"

#include "chan/chan_lock.h"

enum { STEPS_MAX = 64, HOT_ROUNDS = 24, HOT_RELAX = 6 };

static struct bz_chan_lock lock;
static uint64_t now_ns, nap_ns[STEPS_MAX];
static unsigned spins, spin_round[STEPS_MAX], naps;
static unsigned left; /* spins and naps until the holder drops the lock */

static void step(void)
{
    if (--left == 0)
        bz_store_release(&lock.lock.word, BZ_LOCK_FREE); /* chan_lock.h [A] */
}

static uint64_t tell_time(const struct bz_os *os)
{
    (void)os;
    return now_ns;
}

static void spin(const struct bz_os *os, unsigned round)
{
    (void)os;
    CHECK_LT(spins, (unsigned)STEPS_MAX);
    spin_round[spins++] = round;
    step();
}

static int nap(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns)
{
    (void)os;
    CHECK(word == &lock.lock.word);
    CHECK_EQ(expected, (uint32_t)BZ_LOCK_HELD);
    CHECK_LT(naps, (unsigned)STEPS_MAX);
    nap_ns[naps++] = until_ns - now_ns;
    now_ns = until_ns;
    step();
    return 0;
}

static const struct bz_os os = {.name = "steps", .now = tell_time, .wait = nap, .relax = spin};

static void given_a_free_lock(void)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form has the lock of os/lock.h");
#endif
    bz_chan_lock_init(&lock);
    now_ns = 1000000;
}

/* Take the lock from another holder, who drops it after so many spins and naps. */
static void take_after(unsigned steps)
{
    left = steps;
    spins = naps = 0;
    bz_store_relaxed(&lock.lock.word, BZ_LOCK_HELD); /* relaxed: the test has one thread */
    bz_chan_lock_take(&lock, &os);
    CHECK_EQ(left, 0u);
    bz_chan_lock_drop(&lock, &os);
}

/* A holder that runs is done within the spins. One that has lost its CPU needs milliseconds: the waiter sleeps longer
 * each time, but not so long that it notices the end late. */
TEST(chan_lock, a_waiter_spins_and_then_naps_for_twice_as_long_each_time)
{
    enum { NAPS = 8, NAP_NS = 50000, NAP_MAX_NS = 1600000 };
    given_a_free_lock();
    take_after(1);
    CHECK_EQ(naps, 0u); /* the retry came at once */
    take_after(14 + NAPS);
    CHECK_EQ(spins, 14u);
    for (unsigned i = 0; i < spins; i++)
        CHECK_EQ(spin_round[i], i); /* each pause is longer than the one before */
    CHECK_EQ(naps, (unsigned)NAPS);
    for (uint64_t i = 0, ns = NAP_NS; i < NAPS; i++, ns = 2 * ns < NAP_MAX_NS ? 2 * ns : NAP_MAX_NS)
        CHECK_EQ(nap_ns[i], ns);
}

/* At a hot lock the CPU that has it keeps it for a while. */
TEST(chan_lock, at_a_hot_lock_the_first_retry_comes_later)
{
    given_a_free_lock();
    bz_store_relaxed(&lock.is_hot, 1); /* relaxed: the test has one thread */
    take_after(HOT_ROUNDS + 1);
    CHECK_EQ(spins, HOT_ROUNDS + 1u);
    for (unsigned i = 0; i < HOT_ROUNDS; i++)
        CHECK_EQ(spin_round[i], (unsigned)HOT_RELAX);
    CHECK_EQ(spin_round[HOT_ROUNDS], 0u);
    CHECK_EQ(naps, 0u);
}

static void use(unsigned times, uint64_t ns)
{
    for (unsigned i = 0; i < times; i++) {
        bz_chan_lock_take(&lock, &os);
        bz_chan_lock_drop(&lock, &os);
    }
    now_ns += ns;
}

static bool is_hot(void)
{
    return bz_load_relaxed(&lock.is_hot) != 0; /* relaxed: the test has one thread */
}

/* More than one use in 32 ns, counted since a thread last waited. */
TEST(chan_lock, a_lock_is_hot_while_it_is_held_most_of_the_time)
{
    given_a_free_lock();
    take_after(1);
    CHECK(!is_hot());
    use(100, 1000);
    take_after(1);
    CHECK(is_hot());
    use(30, 1000);
    take_after(HOT_ROUNDS + 1);
    CHECK(!is_hot());
    use(1, 0);
    take_after(1); /* no time has passed: not known */
    CHECK(!is_hot());
}
