/*
 * retry.c - pauses between tries: doubled, with a random part left out.
 *
 * A pause is between half of its length and all of it. Half is enough to spread callers that failed together, and
 * the other half keeps the promise that pauses grow. (All of it random: a third of the first pauses would be shorter
 * than a third of the length.)
 */
#include "blitz/retry.h"

#include <errno.h>

#include "base/rng.h"
#include "os/os.h"
#include "wait/waker.h"

#define FIRST (100 * BLITZ_MS)
#define MOST (30 * BLITZ_S)

static blitz_duration longer(blitz_duration a, blitz_duration b)
{
    return a > b ? a : b;
}

static uint64_t seed(void)
{
    const struct bz_os *os = bz_os_here();
    uint64_t x;
    return bz_os_entropy(os, &x, sizeof x) == 0 ? x : bz_os_now(os);
}

void blitz_backoff_init(blitz_backoff *b, const blitz_backoff_opts *opts)
{
    *b = (blitz_backoff){.random = seed()};
    if (opts != NULL)
        b->opts = *opts;
    if (b->opts.first == 0)
        b->opts.first = FIRST;
    b->opts.most = longer(b->opts.most != 0 ? b->opts.most : MOST, b->opts.first);
}

void blitz_backoff_reset(blitz_backoff *b)
{
    b->tries = 0;
}

static blitz_duration length_of(const blitz_backoff *b)
{
    unsigned doublings = b->tries - 1;
    bool is_past = doublings >= 63 || b->opts.first > b->opts.most >> doublings;
    return is_past ? b->opts.most : b->opts.first << doublings;
}

blitz_duration blitz_backoff_next(blitz_backoff *b)
{
    if (b->tries < UINT32_MAX)
        b->tries++;
    if (b->opts.tries_max != 0 && b->tries >= b->opts.tries_max)
        return BLITZ_FOREVER;
    blitz_duration length = length_of(b);
    struct bz_rng rng = {b->random};
    uint64_t less = b->opts.is_exact ? 0 : bz_rng_next(&rng) % (length / 2 + 1);
    b->random = rng.state;
    return length - less;
}

int blitz_backoff_wait(blitz_backoff *b, blitz_deadline until)
{
    blitz_duration pause = blitz_backoff_next(b);
    blitz_deadline next = pause == BLITZ_FOREVER ? BLITZ_FOREVER : blitz_after(pause);
    if (next == BLITZ_FOREVER || next > until)
        return -ETIMEDOUT;
    return blitz_sleep_until(next);
}

static bool is_worth(const blitz_backoff *b, int rc, void *arg)
{
    if (b->opts.is_worth != NULL)
        return b->opts.is_worth(rc, arg);
    return rc < 0 && rc != -ECANCELED && rc != -EINVAL;
}

int blitz_retry(int (*fn)(void *arg), void *arg, const blitz_backoff_opts *opts,
                blitz_deadline until)
{
    blitz_backoff b;
    blitz_backoff_init(&b, opts);
    for (;;) {
        int rc = fn(arg);
        if (rc >= 0 || !is_worth(&b, rc, arg))
            return rc;
        int pause = blitz_backoff_wait(&b, until);
        if (pause != 0)
            return pause == -ETIMEDOUT ? rc : pause;
    }
}
