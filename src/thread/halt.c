/*
 * halt.c - stop and go: one word between the monitor and a thread.
 *
 *                ask                here, in the handler
 *      RUNS ------------> ASKED ------------------------> STOPPED
 *       ^                   |                                |
 *       +------ go ---------+------------ go, and a wake ----+
 *       +---------------- the thread itself, if its look says so
 *
 * The thread sleeps on the word while it is STOPPED. The steps can cross in these ways:
 *  - go comes before the signal: the handler finds RUNS and returns.
 *  - go comes before the thread sleeps: the word is no longer STOPPED, and the wait returns at once.
 *  - go, then ask again before the thread has woken: the thread finds ASKED and returns. Its next signal,
 *    which is on its way, stops it again. It does not stop at once. So a thread that was let go advances by
 *    at least one instruction, however late it woke.
 *  - the thread returns to the runtime before the signal: the handler finds it in the runtime and does not call
 *    bz_halt_here. The word stays ASKED until a later signal finds the thread in user code, or until go.
 *  - the thread ends while it is asked: the signal reaches no thread, or a thread that was not asked. The next
 *    thread that runs the machine calls go first.
 *
 * A stopped thread looks up from time to time and may decide to go on by itself. So a stop ends even if the
 * asker cannot end it: the asker may wait for a lock that a stopped thread holds (turns.c).
 *
 * The plain form is the same: each step is one atomic operation on one word, and a stop costs two system calls.
 *
 * Rejected: leaving the thread's stack in the handler, for another task. It works for code that spins. In the
 * general case cached thread-locals, the C library's locks and the sanitizers' shadow stacks are in the way.
 * Rejected: SIGSTOP (it stops the process). Rejected: a real-time signal to go on, with sigsuspend in the
 * handler (two signals, and a race between them that the kernel's mask has to close).
 *
 * I1  RUNS -> ASKED is the asker's; ASKED -> STOPPED is the thread's; every step to RUNS is an RMW, and any
 *     thread may take it.
 * I2  A thread sleeps only while the word is STOPPED, and another thread that takes it out of STOPPED wakes it.
 * I3  The word orders nothing but itself. Code that wants something of a stopped machine uses the
 *     handshake that it would use if the machine ran: retake.h.
 */
#include "thread/halt.h"

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
    if (was_stopped)
        bz_os_wake(os, &h->word, 1); /* I2 */
    return was_stopped;
}

/* The thread decides by itself to go on. */
static void go_by_itself(struct bz_halt *h)
{
    uint32_t seen = BZ_HALT_STOPPED;
    (void)bz_cas_strong_rlx_rlx(&h->word, &seen, BZ_HALT_RUNS); /* relaxed: I1, I3 */
}

static void sleep_here(struct bz_halt *h, const struct bz_os *os, uint64_t (*look)(void *ctx),
                       void *ctx)
{
    bz_os_delay(os, BZ_OS_AT_SLEEP);
    while (bz_halt_is_stopped(h)) { /* I2 */
        uint64_t ns = look(ctx);
        if (ns == 0)
            go_by_itself(h);
        else
            bz_os_wait(os, &h->word, BZ_HALT_STOPPED,
                       ns != BZ_OS_FOREVER ? bz_os_now(os) + ns : BZ_OS_FOREVER);
    }
}

bool bz_halt_here(struct bz_halt *h, const struct bz_os *os, uint64_t (*look)(void *ctx), void *ctx)
{
    uint32_t seen = BZ_HALT_ASKED;
    if (!bz_cas_strong_rlx_rlx(&h->word, &seen, BZ_HALT_STOPPED)) /* relaxed: I1, I3 */
        return false;
    bz_os_delay(os, BZ_OS_AT_SLEEP);
    sleep_here(h, os, look, ctx);
    return true;
}
