/*
 * wheel.c - the timer wheel: arm and disarm in O(1).
 *
 * Most timers are timeouts that never fire, so arm and disarm must be fast. A time in milliseconds
 * (a tick) is a number of five digits of six bits, and the rest above them. Level L has a slot for
 * each value of digit L. A timer goes to the level of the highest digit in which its tick differs
 * from the current tick, into the slot of its own digit:
 *
 *     level   slots of   spans         differs from now in
 *     near    -          1 ms          nothing: the current millisecond, or the past
 *     0       1 ms       64 ms         the last digit
 *     1       64 ms      4.1 s         the last but one, and perhaps below
 *     2       4.1 s      4.4 min       ...
 *     3       4.4 min    4.7 h
 *     4       4.7 h      12.4 days
 *     far     -          for ever      the rest
 *
 * So levels, and slots within a level, are in time order, and no slot holds timers of two rounds.
 * The first occupied slot of the first occupied level has the earliest timer: two bit operations.
 *
 * When time advances, the highest changed digit decides. All slots of the levels below it, and the
 * passed slots of its own level, are due as a whole: their lists are taken unchanged. The timers of
 * the new current slot are distributed to the levels below. Nothing else is touched, whether a
 * millisecond or a month has passed. A slot is unsorted; it is sorted when it is due (timer.c).
 *
 * A slot is a millisecond, but deadlines are nanoseconds. The slot of the current millisecond is a
 * heap (near.c), so a sleep of 30 µs is exact. Every other slot records its earliest deadline, so
 * the next wake-up time is exact without opening the slot: a sleep of an hour wakes its machine
 * once, and not at each level. A disarmed deadline stays recorded while its slot has other timers.
 * That costs at most one spurious wake-up, because it opens the slot and distributes the timers
 * with exact deadlines.
 *
 * A caller that holds a lock expires in parts (expire_some): from one earliest deadline to the
 * next, through the heap, which sorts only the timers that are taken. A part costs the timers it
 * fires and the slots it distributes, once each.
 *
 * Rejected: one heap for all (a disarm costs O(log n) with cache misses at 1M timers). Firing whole
 *           slots, as wheels without a heap do (a millisecond late, or early). A heap for the next
 *           few milliseconds (the recorded deadlines make slots as exact, in O(1)). Three more
 *           levels instead of the overflow list, to cover all 64 bits (4.6 KiB a wheel, for timers
 *           past 12 days). Waking at the edge of each slot to cascade.
 *
 * I1  An armed timer is in exactly one place, given by `place`; count is the number of armed
 *     timers.
 * I2  near holds ticks <= w->tick. Slot s of level L holds ticks > w->tick that are equal to it
 *     above
 *     digit L and have s as digit L. far holds ticks > w->tick that differ above the last level.
 * I3  Bit s of occupied[L] is set if and only if slot s of level L has timers.
 * I4  first_ns of a slot with timers is not later than any deadline in it, and is within the slot's
 *     range: an expire at first_ns opens the slot.
 */
#include "time/wheel.h"

#include "base/bits.h"
#include "time/near.h"

enum {
    SLOTS_ALL = BZ_WHEEL_LEVELS * BZ_WHEEL_SLOTS,
    PLACE_NONE = 0, /* zeroed memory is a timer that is not armed */
    PLACE_DUE,
    PLACE_NEAR,
    PLACE_FAR,
    PLACE_SLOT, /* + level * BZ_WHEEL_SLOTS + slot */
};
_Static_assert(PLACE_SLOT + SLOTS_ALL <= UINT16_MAX, "a place fits into its field");
_Static_assert(BZ_WHEEL_SLOTS == 64, "a word of occupancy a level");

static uint64_t tick_of(uint64_t ns)
{
    return ns / BZ_WHEEL_TICK_NS;
}

/* The level of the highest digit in which two different ticks differ. Past the last level: far. */
static unsigned level_of(uint64_t a, uint64_t b)
{
    return bz_bits_highest(a ^ b) / BZ_WHEEL_BITS;
}

static unsigned digit_of(uint64_t tick, unsigned level)
{
    return (unsigned)(tick >> (level * BZ_WHEEL_BITS)) % BZ_WHEEL_SLOTS;
}

static void slot_init(struct bz_wheel_slot *s)
{
    bz_list_init(&s->timers);
    s->first_ns = BZ_WHEEL_NEVER;
}

void bz_wheel_init(struct bz_wheel *w, uint64_t now_ns)
{
    *w = (struct bz_wheel){.tick = tick_of(now_ns)};
    for (unsigned i = 0; i < SLOTS_ALL; i++)
        slot_init(&w->slot[i]);
    slot_init(&w->far);
}

/* ---- arm and disarm ---- */

static void slot_put(struct bz_wheel_slot *s, struct bz_wheel_timer *t)
{
    if (bz_list_is_empty(&s->timers) || t->deadline_ns < s->first_ns)
        s->first_ns = t->deadline_ns; /* I4 */
    bz_list_init(&t->in);
    bz_list_push_back(&s->timers, &t->in);
}

/* Link a timer in its place relative to w->tick: I2. */
static void wheel_put(struct bz_wheel *w, struct bz_wheel_timer *t)
{
    uint64_t tick = tick_of(t->deadline_ns);
    if (tick <= w->tick) {
        t->place = PLACE_NEAR;
        bz_near_push(&w->near, t);
        return;
    }
    unsigned level = level_of(tick, w->tick);
    if (level >= BZ_WHEEL_LEVELS) {
        t->place = PLACE_FAR;
        slot_put(&w->far, t);
        return;
    }
    unsigned index = level * BZ_WHEEL_SLOTS + digit_of(tick, level);
    t->place = (uint16_t)(PLACE_SLOT + index);
    slot_put(&w->slot[index], t);
    bz_bitset_add(w->occupied, index); /* I3 */
}

void bz_wheel_arm(struct bz_wheel *w, struct bz_wheel_timer *t, uint64_t deadline_ns)
{
    BZ_CHECK(t->place == PLACE_NONE, "timer %p is armed already", (void *)t);
    BZ_CHECK(deadline_ns != BZ_WHEEL_NEVER, "timer %p: for ever is not a deadline", (void *)t);
    t->deadline_ns = deadline_ns;
    t->order = w->armings++;
    wheel_put(w, t);
    w->count++;
}

static void slot_remove(struct bz_wheel *w, struct bz_wheel_timer *t)
{
    unsigned index = (unsigned)t->place - PLACE_SLOT;
    bz_list_remove(&t->in);
    if (bz_list_is_empty(&w->slot[index].timers))
        bz_bitset_remove(w->occupied, index); /* I3 */
}

bool bz_wheel_disarm(struct bz_wheel *w, struct bz_wheel_timer *t)
{
    switch (t->place) {
    case PLACE_NONE:
        return false;
    case PLACE_DUE: /* no longer counted */
        bz_list_remove(&t->in);
        t->place = PLACE_NONE;
        return true;
    case PLACE_NEAR:
        bz_near_remove(&w->near, t);
        break;
    case PLACE_FAR:
        bz_list_remove(&t->in);
        break;
    default:
        slot_remove(w, t);
    }
    t->place = PLACE_NONE;
    w->count--;
    return true;
}

/* ---- expiry ---- */

uint64_t bz_wheel_next(const struct bz_wheel *w)
{
    if (w->near != NULL)
        return w->near->deadline_ns;
    int index = bz_bitset_lowest(w->occupied, BZ_WHEEL_LEVELS);
    if (index >= 0)
        return w->slot[index].first_ns;
    return bz_list_is_empty(&w->far.timers) ? BZ_WHEEL_NEVER : w->far.first_ns;
}

/* Move a timer from the wheel to a list of due timers. */
static void due_put(struct bz_wheel *w, struct bz_wheel_timer *t, struct bz_list *due)
{
    t->place = PLACE_DUE;
    w->count--;
    bz_list_init(&t->in);
    bz_list_push_back(due, &t->in);
}

/* Return the number of timers moved, at most `limit`. */
static size_t near_expire(struct bz_wheel *w, uint64_t now_ns, struct bz_list *due, size_t limit)
{
    size_t moved = 0;
    struct bz_wheel_timer *t;
    for (; moved < limit && (t = w->near) != NULL && t->deadline_ns <= now_ns; moved++) {
        bz_near_remove(&w->near, t);
        due_put(w, t, due);
    }
    return moved;
}

/* Expire the slots of `mask` as a whole. Each slot is sorted in turn, so `passed` stays sorted. */
static void slots_pass(struct bz_wheel *w, unsigned level, uint64_t mask, struct bz_list *passed)
{
    BZ_BITS_FOR_EACH (digit, w->occupied[level] & mask) {
        struct bz_list *timers = &w->slot[level * BZ_WHEEL_SLOTS + digit].timers;
        bz_wheel_timers_sort(timers);
        bz_list_splice(passed, timers);
    }
    w->occupied[level] &= ~mask;
}

/* This is the current slot now: expire the due timers, and distribute the rest to the levels
 * below. */
static void slot_deal(struct bz_wheel *w, struct bz_wheel_slot *s, uint64_t now_ns,
                      struct bz_list *passed)
{
    struct bz_list timers, due; /* empty the slot first: a timer of far may go back to far */
    bz_list_init(&timers);
    bz_list_init(&due);
    bz_list_splice(&timers, &s->timers);
    for (struct bz_list *in; (in = bz_list_take_front(&timers)) != NULL;) {
        struct bz_wheel_timer *t = bz_wheel_timer_of(in);
        if (t->deadline_ns <= now_ns)
            bz_list_push_back(&due, in);
        else
            wheel_put(w, t);
    }
    bz_wheel_timers_sort(&due);
    bz_list_splice(passed, &due);
}

/* Distribute the overflow list when its first timer comes within the last level. */
static void far_deal(struct bz_wheel *w, uint64_t now_ns, struct bz_list *passed)
{
    unsigned reach = BZ_WHEEL_LEVELS * BZ_WHEEL_BITS;
    if (bz_list_is_empty(&w->far.timers) || tick_of(w->far.first_ns) >> reach > w->tick >> reach)
        return;
    slot_deal(w, &w->far, now_ns, passed);
}

/* Advance from w->tick to `tick`, which is later; near is empty. Passed slots expire in time order;
 * of the new current slot the timers due at now_ns expire. */
static void wheel_turn(struct bz_wheel *w, uint64_t tick, uint64_t now_ns, struct bz_list *passed)
{
    unsigned top = level_of(tick, w->tick);
    w->tick = tick;
    for (unsigned level = 0; level < top && level < BZ_WHEEL_LEVELS; level++)
        slots_pass(w, level, UINT64_MAX, passed);
    if (top >= BZ_WHEEL_LEVELS) {
        far_deal(w, now_ns, passed);
        return;
    }
    unsigned digit = digit_of(tick, top), index = top * BZ_WHEEL_SLOTS + digit;
    slots_pass(w, top, (UINT64_C(1) << digit) - 1, passed);
    slot_deal(w, &w->slot[index], now_ns, passed);
    bz_bitset_remove(w->occupied, index); /* I3 */
}

size_t bz_wheel_expire(struct bz_wheel *w, uint64_t now_ns, struct bz_list *due)
{
    size_t count = w->count;
    near_expire(w, now_ns, due, SIZE_MAX);
    if (tick_of(now_ns) > w->tick) {
        struct bz_list passed;
        bz_list_init(&passed);
        wheel_turn(w, tick_of(now_ns), now_ns, &passed); /* near is empty: all were due, I2 */
        for (struct bz_list *in; (in = bz_list_take_front(&passed)) != NULL;)
            due_put(w, bz_wheel_timer_of(in), due);
    }
    return count - w->count;
}

/* Advance to the millisecond of the first deadline, or to now_ns if that is earlier. No slot
 * expires as a whole, because there is no timer before the first; due timers come out of near. */
static void wheel_advance(struct bz_wheel *w, uint64_t now_ns)
{
    struct bz_list passed;
    uint64_t first = bz_wheel_next(w), to = first < now_ns ? first : now_ns;
    bz_list_init(&passed);
    wheel_turn(w, tick_of(to), 0, &passed);
    BZ_ASSERT(bz_list_is_empty(&passed));
}

size_t bz_wheel_expire_some(struct bz_wheel *w, uint64_t now_ns, struct bz_list *due, size_t limit)
{
    size_t moved = near_expire(w, now_ns, due, limit);
    while (moved < limit && tick_of(now_ns) > w->tick) {
        wheel_advance(w, now_ns); /* near is empty: all in it were due, I2 */
        moved += near_expire(w, now_ns, due, limit - moved);
    }
    return moved;
}

struct bz_wheel_timer *bz_wheel_take(struct bz_list *due)
{
    struct bz_list *in = bz_list_take_front(due);
    if (in == NULL)
        return NULL;
    struct bz_wheel_timer *t = bz_wheel_timer_of(in);
    BZ_CHECK(t->place == PLACE_DUE, "timer %p is not due, its place is %u", (void *)t, t->place);
    t->place = PLACE_NONE;
    return t;
}

/* ---- the validator ---- */

/* Check I1, I2 and I4 for one timer or deadline in the slot `place`. */
static void check_place(struct bz_wheel *w, unsigned place, uint64_t ns, const char *what)
{
    uint64_t tick = tick_of(ns);
    BZ_CHECK(tick > w->tick, "wheel %p: %s %llu in place %u has passed, tick %llu", (void *)w, what,
             (unsigned long long)ns, place, (unsigned long long)w->tick);
    unsigned level = level_of(tick, w->tick), belongs = PLACE_FAR;
    if (level < BZ_WHEEL_LEVELS)
        belongs = PLACE_SLOT + level * BZ_WHEEL_SLOTS + digit_of(tick, level);
    BZ_CHECK(place == belongs, "wheel %p: %s %llu in place %u belongs to %u, tick %llu", (void *)w,
             what, (unsigned long long)ns, place, belongs, (unsigned long long)w->tick);
}

static size_t check_slot(struct bz_wheel *w, struct bz_wheel_slot *s, unsigned place)
{
    BZ_LIST_FOR_EACH (in, &s->timers) {
        struct bz_wheel_timer *t = bz_wheel_timer_of(in);
        BZ_CHECK(t->place == place, "timer %p in place %u says %u", (void *)t, place, t->place);
        check_place(w, place, t->deadline_ns, "the deadline");
        BZ_CHECK(s->first_ns <= t->deadline_ns, "timer %p: its place %u does not know of it",
                 (void *)t, place); /* I4 */
    }
    if (!bz_list_is_empty(&s->timers))
        check_place(w, place, s->first_ns, "the first");
    return bz_list_check(&s->timers);
}

static size_t check_near(struct bz_wheel *w)
{
    size_t count = bz_near_check(w->near);
    for (struct bz_wheel_timer *t = w->near; t != NULL; t = bz_near_walk(t)) {
        BZ_CHECK(t->place == PLACE_NEAR, "timer %p in the heap says %u", (void *)t, t->place);
        BZ_CHECK(tick_of(t->deadline_ns) <= w->tick, "timer %p in the heap is ahead of tick %llu",
                 (void *)t, (unsigned long long)w->tick); /* I2 */
    }
    return count;
}

void bz_wheel_check(struct bz_wheel *w)
{
    size_t count = check_near(w) + check_slot(w, &w->far, PLACE_FAR);
    for (unsigned i = 0; i < SLOTS_ALL; i++) {
        bool has_timers = !bz_list_is_empty(&w->slot[i].timers);
        BZ_CHECK(bz_bitset_has(w->occupied, i) == has_timers, "wheel %p: the bit of slot %u lies",
                 (void *)w, i); /* I3 */
        count += check_slot(w, &w->slot[i], PLACE_SLOT + i);
    }
    BZ_CHECK(count == w->count, "wheel %p: %zu timers, says %zu", (void *)w, count, w->count);
}
