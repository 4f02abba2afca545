/*
 * poll_toy.h - a thread of the model checker that polls a future until it is ready.
 *
 *     toy_await(&f.future);
 *
 * As blitz_await() on a plain thread: the waker sets a word, and the thread polls again when it is set.
 */
#ifndef MODEL_POLL_TOY_H
#define MODEL_POLL_TOY_H

#include "model_os.h"
#include "waker_toy.h"

/* One a thread: its word is 1 when a waker was used since the last poll. */
static bz_os_word toy_rung[8];

static void toy_bell_clone(void *word)
{
    (void)word;
}

static void toy_bell_wake(void *word)
{
    bz_os_word *w = word;
    bz_store_release(w, 1);
    m_word_wake(w, 1);
}

/* The waker of a thread of the model. */
static blitz_waker toy_bell_of(int thread)
{
    static const blitz_waker_ops ops = {toy_bell_clone, toy_bell_wake, toy_bell_wake,
                                        toy_bell_clone};
    return (blitz_waker){&ops, (void *)&toy_rung[thread]};
}

static void given_bells(void)
{
    for (int i = 0; i < 8; i++)
        bz_atomic_init(&toy_rung[i], 0);
}

static blitz_poll toy_poll(blitz_future *f)
{
    blitz_waker w = toy_bell_of(m_self());
    return f->ops->poll(f, &w);
}

/* Wait until the waker of this thread was used. */
static void toy_wait(void)
{
    bz_os_word *rung = &toy_rung[m_self()];
    while (bz_load_acquire(rung) == 0)
        m_word_wait(rung, 0);
    bz_store_relaxed(rung, 0); /* relaxed: the next poll takes the lock of what it asks */
}

static void toy_await(blitz_future *f)
{
    while (toy_poll(f) == BLITZ_PENDING)
        toy_wait();
}

#endif
