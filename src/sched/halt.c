/*
 * halt.c - stop and go: one word between the monitor and a thread.
 *
 *                ask                here, in the handler
 *      RUNS ------------> ASKED ------------------------> STOPPED
 *       ^                   |                                |
 *       +------ go ---------+------------ go, and a wake ----+
 *       +------------------------ the thread itself, when it is over
 *
 * The thread sleeps on the word while it is STOPPED. What can cross:
 *  - go before the signal has come: the handler finds RUNS and returns.
 *  - go before the thread sleeps: the word is not STOPPED any more, and the sleep refuses.
 *  - go, and asked again before the thread has woken: it finds ASKED, returns, and its next signal,
 *    which is on its way, stops it again. It does not stop at once, so that a thread that was told to
 *    go on gets on by an instruction at least, however late it woke.
 *  - the thread comes back into the runtime meanwhile, or its machine ends: it is nobody's concern.
 *    A handler that finds the wrong place refuses, and the word stays ASKED until the next try or a go.
 *
 * A thread may end its stop by itself: when its task is cancelled (it has to unwind), and after
 * BZ_HALT_MAX_NS in any case. So what a stopped thread holds, and should not (a lock of a foreign
 * library, taken around a callback), keeps others waiting for a second, not for ever; the monitor itself
 * among them, which may need malloc to start a thread.
 *
 * Rejected: leaving the thread's stack in the handler, for another task (it works for code that
 * spins; in the general case cached thread-locals, the C library's locks and the sanitizers' shadow
 * stacks are in the way); SIGSTOP (stops the process); a real-time signal to go on, sigsuspend in
 * the handler (two signals, and a race between them that the kernel's mask has to close).
 *
 * I1  RUNS -> ASKED and ASKED -> RUNS are the asker's; ASKED -> STOPPED is the thread's; STOPPED ->
 *     RUNS is either's, by an RMW.
 * I2  A thread sleeps only while the word is STOPPED, and whoever takes it out of STOPPED from
 *     outside wakes it.
 * I3  The word orders nothing but itself. Whoever wants something of a stopped machine uses the
 *     handshake he would use if it ran: retake.h.
 */
#include "sched/halt.h"

void bz_halt_init(struct bz_halt *h)
{
    bz_atomic_init(&h->word, BZ_HALT_RUNS);
}

void bz_halt_ask(struct bz_halt *h)
{
    if (bz_load_relaxed(&h->word) == BZ_HALT_RUNS) /* relaxed: only we take it from there, I1 */
        bz_store_relaxed(&h->word, BZ_HALT_ASKED); /* relaxed: I3 */
}

bool bz_halt_go(struct bz_halt *h, const struct bz_os *os)
{
    bool was_stopped = bz_xchg_relaxed(&h->word, BZ_HALT_RUNS) == BZ_HALT_STOPPED; /* relaxed: I3 */
    if (was_stopped && !BZ_BROKEN(105))
        bz_os_wake(os, &h->word, 1); /* I2 */
    return was_stopped;
}

/* Its own decision: it goes on. */
static void go_by_itself(struct bz_halt *h)
{
    uint32_t seen = BZ_HALT_STOPPED;
    (void)bz_cas_strong_rlx_rlx(&h->word, &seen, BZ_HALT_RUNS); /* relaxed: I1, I3 */
}

static void sleep_here(struct bz_halt *h, const struct bz_os *os, bool (*is_over)(void *ctx),
                       void *ctx)
{
    uint64_t now = bz_os_now(os), end = now + BZ_HALT_MAX_NS;
    bz_os_delay(os, BZ_OS_AT_SLEEP);
    while (bz_halt_is_stopped(h)) { /* I2 */
        if (now >= end || is_over(ctx))
            go_by_itself(h);
        else
            bz_os_wait(os, &h->word, BZ_HALT_STOPPED,
                       BZ_HALT_LOOK_NS != BZ_OS_FOREVER ? now + BZ_HALT_LOOK_NS : BZ_OS_FOREVER);
        now = bz_os_now(os);
    }
}

bool bz_halt_here(struct bz_halt *h, const struct bz_os *os, bool (*is_over)(void *ctx), void *ctx)
{
    uint32_t seen = BZ_HALT_ASKED;
    if (!bz_cas_strong_rlx_rlx(&h->word, &seen, BZ_HALT_STOPPED)) /* relaxed: I1, I3 */
        return false;
    bz_os_delay(os, BZ_OS_AT_SLEEP);
    sleep_here(h, os, is_over, ctx);
    return true;
}
