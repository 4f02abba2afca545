/*
 * connect_race.c - connection attempts side by side (RFC 8305, section 5).
 *
 * The attempts begin in the order of the addresses. The next one begins when the last one has had its delay, or at once
 * when no attempt is left that could still succeed. So a dead address costs a quarter of a second, and a live one that is
 * a little slower is not raced by needless connections.
 *
 * The attempts are futures of single connects, all polled with the waker of this one: a wake-up polls up to eight of
 * them, which is cheaper than a ready list for so few. The first that connects stops the others. They are pinned, so the
 * race is over when the last of them has ended; one that connects in that time is closed.
 *
 * I1  one[i] is polled while is_live[i], and never after.
 * I2  At most one connection leaves the race: that of `winner`.
 */
#include "net/connect_race.h"

#include <errno.h>

#include "base/compiler.h"

static struct bz_race *race_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct bz_race, future);
}

static bool has_live(const struct bz_race *r)
{
    for (unsigned i = 0; i < r->begun; i++)
        if (r->is_live[i])
            return true;
    return false;
}

static void drop_nap(struct bz_race *r)
{
    if (r->has_nap)
        r->nap.future.ops->cancel(&r->nap.future);
    r->has_nap = false;
}

/* Begin no attempt any more, and ask those that run to stop. */
static void stop(struct bz_race *r)
{
    r->is_stopping = true;
    drop_nap(r);
    for (unsigned i = 0; i < r->begun; i++)
        if (r->is_live[i])
            r->one[i].future.ops->cancel(&r->one[i].future); /* pinned: it is polled further */
}

static void begin_next(struct bz_race *r)
{
    unsigned i = r->begun++;
    uint64_t delay_ns = r->opts != NULL ? r->opts->delay_ns : 0;
    blitz_tcp_connect_with_future_init(&r->one[i], &r->to[i], r->opts);
    r->is_live[i] = true;
    drop_nap(r);
    if (r->begun == r->count)
        return;
    blitz_sleep_until_future_init(
        &r->nap, blitz_after(delay_ns != 0 ? delay_ns : BZ_RACE_DELAY_MS * BLITZ_MS));
    r->has_nap = true;
}

/* An attempt has ended. */
static void ended(struct bz_race *r, unsigned i)
{
    int err = (int)r->one[i].result;
    r->is_live[i] = false;
    if (err != 0) {
        r->first_error = r->first_error == 0 ? err : r->first_error;
        return;
    }
    if (r->winner >= 0) {
        blitz_tcp_close(r->one[i].tcp); /* I2 */
        return;
    }
    r->winner = (int8_t)i;
    r->tcp = r->one[i].tcp;
    if (!r->is_stopping)
        stop(r);
}

static void poll_live(struct bz_race *r, const blitz_waker *waker)
{
    for (unsigned i = 0; i < r->begun; i++) {
        blitz_future *f = &r->one[i].future;
        if (r->is_live[i] && f->ops->poll(f, waker) == BLITZ_READY) /* I1 */
            ended(r, i);
    }
}

static void over(struct bz_race *r)
{
    r->result = r->winner >= 0 ? r->winner : r->is_cancelled ? -ECANCELED : r->first_error;
    r->is_over = true;
}

/* Return true if another attempt is due. */
static bool is_next_due(struct bz_race *r, const blitz_waker *waker)
{
    if (r->is_stopping || r->begun == r->count)
        return false;
    if (!has_live(r))
        return true;
    if (r->has_nap && r->nap.future.ops->poll(&r->nap.future, waker) == BLITZ_PENDING)
        return false;
    r->has_nap = false;
    return true;
}

static blitz_poll race_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_race *r = race_of(future);
    while (!r->is_over) {
        bool was_stopping = r->is_stopping;
        poll_live(r, waker);
        if (is_next_due(r, waker))
            begin_next(r); /* and poll it */
        else if (!has_live(r))
            over(r);
        else if (was_stopping == r->is_stopping)
            return BLITZ_PENDING; /* else the stopped ones may have ended */
    }
    return BLITZ_READY;
}

static void race_cancel(blitz_future *future)
{
    struct bz_race *r = race_of(future);
    if (r->is_over || r->is_stopping)
        return;
    r->is_cancelled = true;
    stop(r);
    if (!has_live(r))
        over(r);
}

static int race_output(blitz_future *future)
{
    return race_of(future)->result;
}

void bz_race_init(struct bz_race *r, const blitz_addr *to, size_t count,
                  const blitz_connect_opts *opts)
{
    static const blitz_future_ops ops = {"connect", BLITZ_PINNED, race_poll, race_cancel,
                                         race_output};
    r->future.ops = &ops;
    r->result = -ECANCELED;
    r->tcp = NULL;
    r->to = to;
    r->opts = opts;
    r->first_error = 0;
    r->count = (uint8_t)(count < BZ_RACE_MAX ? count : BZ_RACE_MAX);
    r->begun = 0;
    r->is_over = r->is_stopping = r->is_cancelled = r->has_nap = false;
    r->winner = -1;
}
