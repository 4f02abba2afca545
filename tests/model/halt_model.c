/*
 * halt_model.c - thread/halt.h: a stopped thread is released, in every order of events.
 *
 *   covers: src/thread/halt.h src/thread/halt.c
 *
 * The signal is a call: the thread comes by its handler at any point of its own. A stop that never
 * ends is a thread that sleeps forever, which the checker reports.
 */
#include "thread/halt.h"

#include "model.h"
#include "model_os.h"

static struct bz_halt h;
static int stops;
static bool wants_out;

static uint64_t look(void *ctx)
{
    (void)ctx;
    return wants_out ? 0 : BZ_OS_FOREVER;
}

static void given(void)
{
    bz_halt_init(&h);
    stops = 0;
    wants_out = false;
}

static void comes_by(void)
{
    stops += bz_halt_here(&h, &m_os, look, NULL);
}

static void comes_by_twice(void)
{
    comes_by();
    comes_by();
}

static void asks_and_lets_go(void)
{
    bz_halt_ask(&h);
    bz_halt_go(&h, &m_os);
}

/* halt.c I2: go before the signal, before the sleep, and in it. */
MODEL(halt, a_go_reaches_the_thread_wherever_it_is)
{
    given();
    m_threads(asks_and_lets_go, comes_by);
    m_assert(bz_load_relaxed(&h.word) == BZ_HALT_RUNS);
    m_sometimes(stops == 1);
    m_sometimes(stops == 0);
}

static void asks_and_lets_go_twice(void)
{
    asks_and_lets_go();
    asks_and_lets_go();
}

/* Asked again before it has woken: it goes on once, and stops again, or not at all. */
MODEL(halt, a_second_stop_ends_as_well)
{
    given();
    m_threads(asks_and_lets_go_twice, comes_by_twice);
    m_assert(bz_load_relaxed(&h.word) == BZ_HALT_RUNS);
    m_sometimes(stops == 2);
    m_sometimes(stops == 1);
    m_sometimes(stops == 0);
}

static void asks(void)
{
    bz_halt_ask(&h);
}

/* A cancelled task must unwind, also if no thread releases it. */
MODEL(halt, a_thread_whose_stop_is_over_goes_on_by_itself)
{
    given();
    wants_out = true;
    m_threads(asks, comes_by);
    m_assert(!bz_halt_is_stopped(&h));
    m_sometimes(stops == 1);
    m_sometimes(bz_halt_is_requested(&h)); /* it came by too early */
}

/* Both end the stop: one of them does. */
MODEL(halt, an_end_of_its_own_and_a_go_may_cross)
{
    given();
    wants_out = true;
    m_threads(asks_and_lets_go_twice, comes_by);
    m_assert(bz_load_relaxed(&h.word) == BZ_HALT_RUNS);
}

static bool had_stopped;

static void asks_lets_go_and_asks(void)
{
    bz_halt_ask(&h);
    had_stopped = bz_halt_go(&h, &m_os);
    bz_halt_ask(&h);
}

/* A thread that ends its stop a moment after a go must not take the next question for the last. */
MODEL(halt, an_end_of_its_own_swallows_no_later_question)
{
    given();
    wants_out = true;
    m_threads(asks_lets_go_and_asks, comes_by);
    m_assert(!had_stopped || bz_halt_is_requested(&h));
    m_sometimes(had_stopped);
}

static void lets_go(void)
{
    bz_halt_go(&h, &m_os);
}

/* turns.c, watch_monitor: a stopped thread lets the others go while the monitor does so, too. */
MODEL(halt, two_may_let_it_go_at_once)
{
    given();
    m_threads(asks_and_lets_go, lets_go, comes_by);
    m_assert(bz_load_relaxed(&h.word) == BZ_HALT_RUNS);
    m_sometimes(stops == 1);
}

static void ends_and_begins(void)
{
    comes_by();            /* the last signal of the old thread */
    bz_halt_go(&h, &m_os); /* the next thread of the machine forgets what was asked */
    comes_by();            /* a signal for the old one may reach it */
}

/* halt.c: the thread ends while it is asked. Its successor is not stopped for ever. */
MODEL(halt, a_thread_that_ends_while_it_is_asked_leaves_nothing_behind)
{
    given();
    m_threads(asks_and_lets_go, ends_and_begins);
    m_assert(bz_load_relaxed(&h.word) == BZ_HALT_RUNS);
}

static int in_runtime; /* the handler reads the thread's own `where` */

static void enters_the_runtime(void)
{
    comes_by();
    in_runtime = 1;
    if (!in_runtime) /* the handler refuses here: the word stays as it is */
        comes_by();
    in_runtime = 0;
    comes_by();
}

/* halt.c: a thread that returns to the runtime before the signal is not stopped there, and a go ends the question. */
MODEL(halt, a_thread_that_returns_to_the_runtime_is_let_be)
{
    given();
    in_runtime = 0;
    m_threads(asks_and_lets_go_twice, enters_the_runtime);
    m_assert(bz_load_relaxed(&h.word) == BZ_HALT_RUNS);
    m_sometimes(stops == 0);
    m_sometimes(stops == 2);
}

static void lets_go_without_a_wake(void)
{
    bz_halt_ask(&h);
    bz_store_relaxed(&h.word, BZ_HALT_RUNS);
}

MODEL_FAILS(halt, a_go_without_a_wake_leaves_it_asleep, "lost wakeup")
{
    given();
    m_threads(lets_go_without_a_wake, comes_by);
}
