/*
 * Random mixes of fibers, stackless tasks, forked jobs and plain threads, with cancels and
 * deadlines, on every primitive that tasks wait for (support/mix). Each round compares the results
 * of the parties with the state of the object, and must end: a watchdog checks that parties make
 * progress.
 *
 *     BLITZ_MIX_S=600       seconds to play (default 20)
 *     BLITZ_MIX_ROUNDS=n    or that many rounds
 *     BLITZ_MIX_SEED=0x...  the same round again and again, as a failure has printed it
 *     BLITZ_MIX_SCENE=NAME  one scene alone
 *     BLITZ_MIX_TELL=1      a line every ten seconds: rounds, seed, rate, time
 *     BLITZ_MIX_TICKS=n     a round hangs after so many tenths of a second without progress (100)
 *     BLITZ_PROCS=n         that many procs; else 1, 2, 3 or 8, as the seed says
 */
#include <pthread.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

struct mix_thread {
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
};

#define MIX_HAS_NET
#include "support/mix/play.h"

enum { ROUNDS_A_RUNTIME = 40, TICK_MS = 100 };

static struct mix_round mix_now;

static void *mix_thread_main(void *arg)
{
    struct mix_thread *t = arg;
    t->fn(t->arg);
    return NULL;
}

static void mix_thread_start(struct mix_thread *t, void (*fn)(void *arg), void *arg)
{
    t->fn = fn;
    t->arg = arg;
    CHECK_EQ(pthread_create(&t->id, NULL, mix_thread_main, t), 0);
}

static void mix_thread_join(struct mix_thread *t)
{
    CHECK_EQ(pthread_join(t->id, NULL), 0);
}

static blitz_runtime *mix_runtime_new(unsigned procs)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs, .name = "other"}, &rt), 0);
    return rt;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

static void report(void)
{
    if (mix_now.scene == NULL)
        return; /* no round was made: there is no scene of that name */
    mix_report(&mix_now);
    fprintf(stderr, "that round again: BLITZ_MIX_SCENE=%s BLITZ_MIX_SEED=0x%llx stress_mix\n",
            mix_now.scene->name, (unsigned long long)mix_now.seed);
}

/* ---- the watchdog ---- */

static struct {
    pthread_t thread;
    struct mix_count is_over;
    struct mix_count rounds;
    uint64_t began, shown;
} dog;

/* A progress line of a long run. */
static void dog_tells(uint64_t seconds)
{
    uint64_t now = blitz_now();
    if (getenv("BLITZ_MIX_TELL") == NULL || now - dog.shown < 10 * BLITZ_S)
        return;
    dog.shown = now;
    double elapsed = (double)(now - dog.began) / (double)BLITZ_S;
    int64_t rounds = mix_get(&dog.rounds);
    fprintf(stderr, "mix: %lld rounds of seed 0x%llx, %.0f a second, %.0f of %llu s\n",
            (long long)rounds, (unsigned long long)t_seed(), (double)rounds / elapsed, elapsed,
            (unsigned long long)seconds);
}

/* Ticks are counted, not time: a process that gets no CPU gets no ticks either. */
static void *dog_main(void *arg)
{
    int64_t seen = -1;
    unsigned ticks = 0, most = (unsigned)number_of("BLITZ_MIX_TICKS", 100);
    while (!mix_get(&dog.is_over)) {
        usleep(TICK_MS * 1000); /* lint: allow test-sleep: a watchdog looks now and then */
        dog_tells(*(uint64_t *)arg);
        int64_t now = mix_get(&mix_now.progress) + (mix_get(&dog.rounds) << 32);
        ticks = now == seen && mix_get(&mix_now.is_live) ? ticks + 1 : 0;
        seen = now;
        if (ticks < most)
            continue;
        (void)blitz_dump(mix_now.rt, 2, BLITZ_DUMP_FRAMES);
        FAIL("no progress in %u looks, %u ms apart", ticks, TICK_MS);
    }
    return NULL;
}

/* ---- rounds ---- */

static unsigned procs_of(uint64_t seed)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    return (unsigned)number_of("BLITZ_PROCS", procs[seed % 4]);
}

/* A few rounds on one runtime. Their seeds agree in the number of procs. */
static void play_some(uint64_t seed, uint64_t until, uint64_t rounds)
{
    uint64_t again = number_of("BLITZ_MIX_SEED", 0);
    blitz_runtime *rt;
    unsigned procs = procs_of(again != 0 ? again : seed);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
    for (uint64_t i = 0; i < ROUNDS_A_RUNTIME && blitz_now() < until; i++) {
        if ((uint64_t)mix_get(&dog.rounds) == rounds)
            break;
        uint64_t mine = again != 0 ? again : (t_random() & ~UINT64_C(3)) | seed % 4;
        mix_play(&mix_now, rt, procs, mine);
        mix_add(&dog.rounds, 1);
    }
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* Bug classes 41 and 50 to 54. */
TEST_LIMIT(mix, random_parties_lose_nothing_and_go_on, 1200)
{
    uint64_t seconds = number_of("BLITZ_MIX_S", 20);
    uint64_t rounds = number_of("BLITZ_MIX_ROUNDS", UINT64_MAX);
    uint64_t until = blitz_after(seconds * BLITZ_S);
    dog.began = dog.shown = blitz_now();
    t_at_failure(report);
    t_may_leave(T_THREADS); /* the thread of an abandoned call ends a moment after the drop */
    CHECK_EQ(blitz_log_set(mix_log, NULL, BLITZ_LOG_ERROR), 0);
    CHECK_EQ(pthread_create(&dog.thread, NULL, dog_main, &seconds), 0);
    while (blitz_now() < until && (uint64_t)mix_get(&dog.rounds) < rounds)
        play_some(t_random(), until, rounds);
    mix_set(&dog.is_over, 1);
    CHECK_EQ(pthread_join(dog.thread, NULL), 0);
    t_note("%lld rounds", (long long)mix_get(&dog.rounds));
}
