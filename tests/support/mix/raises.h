/*
 * raises.h - the scene of signals: every listener receives every signal.
 *
 * A raiser sends the next signal when every keeper has received the one before. So a receiver that was not woken waits
 * beside a signal, and the round hangs.
 */
#ifndef MIX_RAISES_H
#define MIX_RAISES_H

#include <signal.h>

#include "os/signals.h"
#include "sim/sim_signals.h"
#include "support/mix/round.h"

enum { RAISES_SEND, RAISES_RECV };

static struct {
    blitz_signal *listener[MIX_PARTIES];
    int64_t keepers, total;
    struct mix_count debt; /* signals that keepers have not received yet */
} raises;

static void raises_make(struct mix_round *r)
{
    memset(&raises, 0, sizeof raises);
    raises.total = 1 + (int64_t)mix_die(&r->dice, 8);
    mix_join_in(r, RAISES_SEND, true);
    mix_join_in(r, RAISES_RECV, true);
    for (uint64_t n = mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, RAISES_RECV, mix_one_in(&r->dice, 2));
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        p->left =
            p->role == RAISES_SEND ? (unsigned)raises.total : 1 + (unsigned)mix_die(&r->dice, 6);
        raises.keepers += p->role == RAISES_RECV && p->is_keeper;
        if (p->role == RAISES_RECV)
            CHECK_EQ(blitz_signal_listen((int[]){SIGUSR2, SIGUSR1}, 2, NULL, &raises.listener[i]),
                     0);
    }
    mix_say(r, " %d signals", (int)raises.total);
}

static bool raises_next(struct mix_party *p)
{
    if (p->role == RAISES_SEND) {
        p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 15) * BLITZ_US;
        p->is_idle = mix_get(&raises.debt) > 0;
        mix_begin(p, &mix_pause, NULL);
        return p->left > 0;
    }
    if ((int64_t)p->scratch[0] == raises.total || (!p->is_keeper && p->left-- == 0))
        return false;
    mix_begin(p, &mix_signal, raises.listener[p->index]);
    return true;
}

static void raises_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (p->role == RAISES_RECV && rc == 0) {
        CHECK_GE(p->op.n, 1);
        p->scratch[0] += p->op.n;
        CHECK_LE(p->scratch[0], raises.total);
        if (p->is_keeper)
            mix_add(&raises.debt, -(int64_t)p->op.n);
    } else if (p->role == RAISES_SEND && mix_get(&raises.debt) == 0) {
        p->left--;
        mix_add(&raises.debt, raises.keepers);
        if (bz_signal_sys->is_simulated)
            CHECK_EQ(bz_sim_raise(SIGUSR2), 1);
        else
            CHECK_EQ(raise(SIGUSR2), 0);
    }
}

static void raises_leave(struct mix_party *p)
{
    blitz_signal_unref(raises.listener[p->index]);
}

static void raises_check(struct mix_round *r)
{
    for (unsigned i = 0; i < r->count; i++)
        if (r->party[i].role == RAISES_RECV && r->party[i].is_keeper)
            CHECK_EQ(r->party[i].scratch[0], raises.total);
    CHECK_EQ(mix_get(&raises.debt), 0);
}

static const struct mix_scene mix_scene_raises = {
    "raises", 2, raises_make, raises_next, raises_done, raises_leave, raises_check};

#endif
