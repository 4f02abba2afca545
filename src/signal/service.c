/*
 * service.c - see service.h.
 *
 * A handler may only ring (os/signals.h). The thread sleeps on the ring, and calls the hearers when it has changed.
 * They take locks and wake tasks of any runtime, and plain threads.
 *
 * Rejected: the poll of a runtime, through a pipe. Signals are of the process: a plain thread may listen without a
 *           runtime, and two runtimes may. A pipe also has an end that is full, and a descriptor for children.
 * Rejected: the monitor of a runtime, for the same reason.
 *
 * The thread unblocks the signals that are watched. So a signal arrives also if the program has blocked it before it
 * started its threads. It looks at the list again after `renewals` has changed.
 *
 * I1  `life` is held while the thread is started or joined, and the count of hearers changes under it. The thread
 *     never takes it.
 * I2  The list changes under `lock`, which the thread holds while it calls a hearer.
 *
 * [S] stop, renew: release -> thread: acquire, after the ring   the thread sees why it was rung
 */
#include "signal/service.h"

#include <errno.h>

#include "base/bz_atomic.h"
#include "os/lock.h"
#include "os/signals.h"

static struct bz_lock life = BZ_LOCK_INIT; /* rank RUNTIME */
static struct bz_lock lock = BZ_LOCK_INIT; /* rank TASK: hearers wake tasks under it */
static struct bz_list hearers;             /* I2 */
static unsigned count;                     /* I1 */
static struct bz_os_thread thread;
static bz_atomic(bool) is_stopping;
static bz_atomic(uint32_t) renewals;

static void call_all(void)
{
    const struct bz_os *os = bz_os_outside();
    bz_lock_take_ranked(&lock, BZ_RANK_TASK, os);
    for (struct bz_list *at = hearers.next; at != &hearers; at = at->next) {
        struct bz_hearer *h = BZ_CONTAINER_OF(at, struct bz_hearer, in);
        h->hear(h);
    }
    bz_lock_drop(&lock, os);
}

/* A deadline, in an hour: a thread that waits for a signal can still act, so it is no deadlock (os/sleepers.c). In a
 * simulation only a simulated thread sends signals, and a deadlock is one. ThreadSanitizer delays a handler until its
 * thread leaves a system call, which may be never: then the hearers must ask without a signal. */
static uint64_t wake_at(const struct bz_os *os)
{
    uint64_t look_ns = BZ_TSAN ? UINT64_C(20000000) : UINT64_C(3600000000000);
    return bz_signal_sys->is_simulated ? BZ_OS_FOREVER : bz_os_now(os) + look_ns;
}

static void run(void *arg)
{
    const struct bz_os *os = bz_os_outside();
    uint32_t renewed = 0;
    (void)arg;
    for (bool is_first = true;; is_first = false) {
        uint32_t ring = bz_signals_rung();
        uint32_t now = bz_load_acquire(&renewals); /* [S] */
        if (bz_load_acquire(&is_stopping))         /* [S] */
            return;
        if (is_first || now != renewed)
            bz_signals_take_here();
        renewed = now;
        call_all();
        (void)bz_os_wait(os, &bz_signals_ring, ring, wake_at(os));
    }
}

/* Under `life`. */
static int start(void)
{
    static const struct bz_os_thread_opts opts = {.name = "blitz-signal", .stack_bytes = 128 << 10};
    bz_list_init(&hearers);
    bz_store_release(&is_stopping, false); /* [S] */
    return bz_os_thread_start(bz_os_outside(), &thread, &opts, run, NULL);
}

/* Under `life`. */
static void stop(void)
{
    bz_store_release(&is_stopping, true); /* [S] */
    bz_signals_ring_now();
    (void)bz_os_thread_join(bz_os_outside(), &thread);
}

int bz_hearer_add(struct bz_hearer *h)
{
    const struct bz_os *os = bz_os_outside();
    bz_lock_take_ranked(&life, BZ_RANK_RUNTIME, os);
    int err = count == 0 ? start() : 0;
    if (err == 0) {
        count++;
        bz_list_init(&h->in);
        bz_lock_take_ranked(&lock, BZ_RANK_TASK, os);
        bz_list_push_back(&hearers, &h->in);
        bz_lock_drop(&lock, os);
    }
    bz_lock_drop(&life, os);
    return err;
}

void bz_hearer_remove(struct bz_hearer *h)
{
    const struct bz_os *os = bz_os_outside();
    bz_lock_take_ranked(&life, BZ_RANK_RUNTIME, os);
    bz_lock_take_ranked(&lock, BZ_RANK_TASK, os);
    bz_list_remove(&h->in);
    bz_lock_drop(&lock, os);
    if (--count == 0)
        stop();
    bz_lock_drop(&life, os);
}

void bz_hearers_renew(void)
{
    bz_fetch_add_release(&renewals, 1); /* [S] */
    bz_signals_ring_now();
}
