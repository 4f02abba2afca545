/*
 * sigquit.c - see sigquit.h.
 *
 * The handler may run on any thread at any moment, also during a watch or unwatch on the same
 * thread. So it takes no lock: it increments `inside`, calls the watchers in a fixed array of
 * slots, and decrements `inside`. unwatch empties its slot and waits until `inside` is 0.
 *
 *      handler                        unwatch
 *      1  inside + 1                  1  empty the slot
 *      2  load the slot               2  inside is 0? else wait
 *
 * The store-buffer pattern: either the handler finds the slot empty, or unwatch sees the handler
 * inside [H]. A handler that interrupts unwatch itself returns before unwatch continues, so unwatch
 * waits only for other threads.
 *
 * I1  A slot is filled and emptied under the lock; its ctx is written before its fn.
 * I2  `previous` is written before the handler that reads it is installed.
 *
 * [W] watch: fn release -> handler: fn seq_cst   ctx is written before it is used
 * [H] handler: inside, fn -> unwatch: fn, inside   all seq_cst, see above
 */
#include "os/sigquit.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "base/bz_atomic.h"
#include "os/lock.h"

typedef void watcher_fn(void *ctx);

static struct {
    bz_atomic(watcher_fn *) fn; /* NULL: empty */
    void *ctx;
} place[BZ_SIGQUIT_MAX];
static bz_atomic(uint32_t) inside;
static struct bz_lock lock = BZ_LOCK_INIT; /* guards everything the handler does not access */
static unsigned watchers;
static struct sigaction previous; /* I2 */

static void call_earlier_handler(int signal, siginfo_t *info, void *context)
{
    if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)
        return;
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(signal, info, context);
    else
        previous.sa_handler(signal);
}

static void on_quit(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    bz_fetch_add_seqcst(&inside, 1); /* [H] */
    for (int i = 0; i < BZ_SIGQUIT_MAX; i++) {
        watcher_fn *fn = bz_load_seqcst(&place[i].fn); /* [W] [H] */
        if (fn != NULL)
            fn(place[i].ctx);
    }
    bz_fetch_sub_seqcst(&inside, 1); /* [H] */
    call_earlier_handler(signal, info, context);
    errno = saved;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_quit;
}

/* Install the handler for the first watcher. Under the lock. */
static int handler_install(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, was;
    ours.sa_sigaction = on_quit;
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGQUIT, NULL, &was) != 0)
        return -errno;
    if (is_ours(&was))
        return 0;   /* our handler is still installed from an earlier watch */
    previous = was; /* I2 */
    return sigaction(SIGQUIT, &ours, NULL) == 0 ? 0 : -errno;
}

/* Restore the previous handler after the last watcher. Under the lock. */
static void handler_remove(void)
{
    struct sigaction now;
    if (sigaction(SIGQUIT, NULL, &now) == 0 && is_ours(&now))
        sigaction(SIGQUIT, &previous, NULL);
}

static int watch_locked(watcher_fn *fn, void *ctx)
{
    int free = 0;
    while (free < BZ_SIGQUIT_MAX && bz_load_relaxed(&place[free].fn) != NULL) /* relaxed: I1 */
        free++;
    if (free == BZ_SIGQUIT_MAX)
        return -EAGAIN;
    int err = watchers == 0 ? handler_install() : 0;
    if (err != 0)
        return err;
    watchers++;
    place[free].ctx = ctx;
    bz_store_release(&place[free].fn, fn); /* [W] */
    return 0;
}

int bz_sigquit_watch(void (*fn)(void *ctx), void *ctx)
{
    bz_lock_take(&lock, &bz_os_system);
    int err = watch_locked(fn, ctx);
    bz_lock_drop(&lock, &bz_os_system);
    return err;
}

/* Under the lock. */
static void leave(int i)
{
    bz_store_seqcst(&place[i].fn, NULL);                            /* [H] */
    for (unsigned round = 0; bz_load_seqcst(&inside) != 0; round++) /* [H] */
        bz_os_relax(&bz_os_system, round);
    if (--watchers == 0)
        handler_remove();
}

void bz_sigquit_unwatch(void *ctx)
{
    bz_lock_take(&lock, &bz_os_system);
    for (int i = 0; i < BZ_SIGQUIT_MAX; i++)
        if (bz_load_relaxed(&place[i].fn) != NULL && place[i].ctx == ctx) { /* relaxed: I1 */
            leave(i);
            break;
        }
    bz_lock_drop(&lock, &bz_os_system);
}
