/*
 * queue/runq.c with two slots and indices of three bits, which wrap after eight: bug class 2. Millions
 * of laps, every operation beside every phase of a thief, against queues that are plain arrays.
 */
#define BZ_RUNQ_LOG2 1
#define BZ_RUNQ_BITS 3

#include "queue/runq.c" /* NOLINT(bugprone-suspicious-include): a twin with other sizes */

#include "harness.h"

enum { RINGS = 2 };
static struct bz_runq ring[RINGS];
static struct bz_entry_list {
    bz_entry e[BZ_RUNQ_CAP];
    unsigned count;
} want[RINGS];        /* the expected content of each */
static bz_entry last; /* entries are numbers */

/* A thief in the middle of ring 0: what it has claimed and not released. */
static struct bz_entry_list claimed;
static uint64_t claimed_first;
static unsigned
    held; /* slots of ring 0 that may not be filled: those, and what was taken behind them */

static bz_entry want_oldest(struct bz_entry_list *l)
{
    bz_entry e = l->e[0];
    for (unsigned i = 1; i < l->count; i++)
        l->e[i - 1] = l->e[i];
    l->count--;
    return e;
}

static unsigned held_of(unsigned r)
{
    return r == 0 ? held : 0;
}

/* The owner takes its oldest; behind a thief, the slot is not free yet. */
static bz_entry want_taken(unsigned r)
{
    if (r == 0 && claimed.count > 0)
        held++;
    return want_oldest(&want[r]);
}

static void do_push(unsigned r)
{
    bz_entry e = ++last;
    bool has_room = want[r].count + held_of(r) < BZ_RUNQ_CAP;
    CHECK_EQ(bz_runq_try_push(&ring[r], e), has_room);
    if (has_room)
        want[r].e[want[r].count++] = e;
}

static void do_take(unsigned r)
{
    bz_entry e = bz_runq_take(&ring[r]);
    CHECK_EQ(e, want[r].count > 0 ? want_taken(r) : 0);
}

static void do_take_some(unsigned r)
{
    bz_entry out[BZ_RUNQ_CAP];
    unsigned before = want[r].count, count = bz_runq_take_some(&ring[r], out, BZ_RUNQ_CAP);
    CHECK_EQ(count, before > 0 ? before / 2 + 1 : 0);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(out[i], want_taken(r));
}

/* The phases of a thief of ring 0, one at a time. */
static void do_thief(void)
{
    if (claimed.count == 0) {
        unsigned count = claim_half(&ring[0], &claimed_first);
        CHECK_EQ(count, want[0].count - want[0].count / 2);
        for (; claimed.count < count; claimed.count++)
            claimed.e[claimed.count] = want_oldest(&want[0]);
        held = count;
        return;
    }
    CHECK_EQ(claim_half(&ring[0], &claimed_first), 0u); /* a second one goes elsewhere */
    for (unsigned i = 0; i < claimed.count; i++)
        CHECK_EQ(bz_get(bz_runq_slot(&ring[0], claimed_first + i)), claimed.e[i]);
    release_claim(&ring[0]);
    claimed.count = held = 0;
}

static void do_steal(unsigned from)
{
    unsigned to = 1 - from;
    bz_entry e = bz_runq_steal(&ring[from], &ring[to]);
    bool is_full = want[to].count + held_of(to) > BZ_RUNQ_CAP / 2;
    bool is_busy = from == 0 && claimed.count > 0;
    if (is_full || is_busy || want[from].count == 0)
        CHECK_EQ(e, 0u);
    else
        CHECK_EQ(e, want_oldest(&want[from])); /* half of two is one, and that is in hand */
}

static void counts_are_right(void)
{
    for (unsigned r = 0; r < RINGS; r++)
        CHECK_EQ(bz_runq_count(&ring[r]), want[r].count);
}

static void do_any(void)
{
    unsigned r = (unsigned)t_random_below(RINGS);
    switch (t_random_below(12)) {
    case 0:
        do_take_some(r);
        break;
    case 1:
        do_thief();
        break;
    case 2:
        do_steal(r);
        break;
    case 3:
    case 4:
    case 5:
        do_take(r);
        break;
    default:
        do_push(r);
        break;
    }
}

TEST(runq_tiny, bug_02_indices_that_wrap_a_million_times_lose_nothing)
{
    uint64_t laps = 0, rounds = t_scaled(30000000), seen[RINGS] = {0};
    for (unsigned r = 0; r < RINGS; r++)
        bz_runq_init(&ring[r], false);
    for (uint64_t i = 0; i < rounds; i++) {
        do_any();
        counts_are_right();
        for (unsigned r = 0; r < RINGS; r++) {
            uint64_t tail = bz_load_relaxed(&ring[r].tail);
            laps += tail < seen[r];
            seen[r] = tail;
        }
    }
    t_note("%llu laps", (unsigned long long)laps);
    CHECK_GT(laps, rounds / 50);
}
