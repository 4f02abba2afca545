/*
 * ledger.h - which values were sent, and what became of each.
 *
 * A value is named by its sender and a number, so no two sends offer the same one. At the end every
 * value whose send succeeded was received or dropped exactly once, and no other value was.
 */
#ifndef MIX_LEDGER_H
#define MIX_LEDGER_H

#include "support/mix/round.h"

enum { MIX_IDS = 256, MIX_CHANS = 3 };

#define MIX_NO_VALUE UINT64_C(0xdeadbeefdeadbeef)

static struct {
    uint64_t next[MIX_PARTIES];                  /* the next number of each sender */
    uint8_t is_sent[MIX_PARTIES][MIX_IDS];       /* written by the sender */
    struct mix_count gone[MIX_PARTIES][MIX_IDS]; /* received or dropped */
    uint64_t last[MIX_PARTIES][MIX_CHANS]
                 [MIX_PARTIES]; /* by receiver, channel, sender: the last number */
} mix_ledger;

static void mix_ledger_clear(void)
{
    memset(&mix_ledger, 0, sizeof mix_ledger);
}

/* Offer a new value. It counts as sent after mix_ledger_sent(). */
static void mix_ledger_offer(struct mix_party *p, struct mix_value *v)
{
    uint64_t number = ++mix_ledger.next[p->index];
    CHECK_LT(number, MIX_IDS);
    v->id = (uint64_t)p->index << 32 | number;
    v->twin = ~v->id;
    v->id_again = v->id;
}

static void mix_ledger_sent(const struct mix_value *v)
{
    mix_ledger.is_sent[v->id >> 32][v->id & 0xffffffff] = 1;
}

static void mix_ledger_gone(const struct mix_value *v, size_t bytes)
{
    uint64_t sender = v->id >> 32, number = v->id & 0xffffffff;
    CHECK_LT(sender, MIX_PARTIES);
    CHECK_LT(number, MIX_IDS);
    if (bytes == sizeof *v) {
        CHECK_EQ(v->twin, ~v->id);
        CHECK_EQ(v->id_again, v->id);
    }
    CHECK_EQ(mix_add(&mix_ledger.gone[sender][number], 1), 1); /* else it came twice */
}

/* A receiver got it. One sender's values come to one receiver in the order of their sends. */
static void mix_ledger_received(struct mix_party *p, unsigned chan, const struct mix_value *v,
                                size_t bytes)
{
    mix_ledger_gone(v, bytes);
    uint64_t *last = &mix_ledger.last[p->index][chan][v->id >> 32];
    CHECK_GT(v->id & 0xffffffff, *last);
    *last = v->id & 0xffffffff;
}

static void mix_ledger_check(struct mix_round *r)
{
    for (unsigned i = 0; i < r->count; i++)
        for (uint64_t n = 1; n <= mix_ledger.next[i]; n++) {
            int64_t gone = mix_get(&mix_ledger.gone[i][n]);
            if (gone == mix_ledger.is_sent[i][n])
                continue;
            FAIL("value %llu of party %u: %s, and came out %lld times", (unsigned long long)n, i,
                 mix_ledger.is_sent[i][n] ? "was sent" : "was not sent", (long long)gone);
        }
}

#endif
