/*
 * clock_model.c - a clock that is paused, moved and resumed while other threads read it.
 *
 *   covers: src/time/clock.h src/time/clock.c
 *
 * The system's clock is a count: each reading is later than all before it, for all threads. So a virtual clock that
 * went back anywhere would show it.
 */
#include "time/clock.h"

#include "model.h"
#include "model_os.h"

static bz_atomic(uint64_t) ticks; /* the system's time */
static bz_shared(uint64_t) seen;  /* handed from thread to thread */
static bz_atomic(int) is_handed;
static struct bz_clock clock_;
static struct bz_os ticking;

static uint64_t tick(const struct bz_os *os)
{
    (void)os;
    return 100 +
           bz_fetch_add_acqrel(&ticks, 1); /* acq_rel: no reading is earlier than one before */
}

static void given_a_clock(void)
{
    ticking = m_os;
    ticking.now = tick;
    bz_atomic_init(&ticks, 0);
    bz_atomic_init(&is_handed, 0);
    bz_set(&seen, 0);
    bz_clock_init(&clock_, &ticking);
}

static void reads_twice(void)
{
    uint64_t a = bz_clock_now(&clock_), b = bz_clock_now(&clock_);
    m_assert(a <= b);
}

static void reads_and_hands_over(void)
{
    bz_set(&seen, bz_clock_now(&clock_));
    bz_store_release(&is_handed, 1); /* receives_and_reads */
}

static void receives_and_reads(void)
{
    if (bz_load_acquire(&is_handed) == 0) /* reads_and_hands_over */
        return;
    m_assert(bz_get(&seen) <= bz_clock_now(&clock_));
}

static void pauses(void)
{
    uint64_t at = bz_clock_pause(&clock_);
    m_assert(bz_clock_now(&clock_) == at);
}

static void pauses_and_resumes(void)
{
    uint64_t at = bz_clock_pause(&clock_);
    bz_clock_set(&clock_, at + 50);
    bz_clock_resume(&clock_);
    m_assert(bz_clock_now(&clock_) >= at + 50);
}

MODEL(clock, a_reader_beside_a_pause_never_goes_back)
{
    given_a_clock();
    m_threads(reads_twice, pauses);
}

MODEL(clock, two_readers_beside_a_pause_agree_on_the_order)
{
    given_a_clock();
    m_threads(reads_and_hands_over, receives_and_reads, pauses);
}

MODEL(clock, a_reader_beside_a_pause_and_its_end_never_goes_back)
{
    given_a_clock();
    m_threads(reads_twice, pauses_and_resumes);
}
