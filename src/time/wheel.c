/*
 * wheel.c - the timer wheel: arm and disarm in O(1), whatever there is.
 *
 * Most timers are timeouts that never fire, so what counts is to arm and disarm them. A moment,
 * counted in milliseconds (a tick), is a number with five digits of six bits, above them the rest.
 * Level L has a slot for each value of digit L. A timer goes to the level of the highest digit in
 * which its tick differs from the current one, there to the slot of its own digit:
 *
 *     level   slots of   spans         holds what differs from now in
 *     near    -          1 ms          nothing: the current millisecond, or the past
 *     0       1 ms       64 ms         the last digit
 *     1       64 ms      4.1 s         the last but one, and perhaps below
 *     2       4.1 s      4.4 min       ...
 *     3       4.4 min    4.7 h
 *     4       4.7 h      12.4 days
 *     far     -          for ever      the rest
 *
 * So level by level, and slot by slot in a level, is the order of time, and no slot holds two laps.
 * The first occupied slot of the first occupied level has the earliest timer: two bit operations.
 *
 * When time moves on, the highest digit that changed tells it all. Every slot of the levels below it,
 * and the slots in its own level that were passed, are due as a whole: their lists are taken as they
 * are. The one slot we have come to stand in is dealt out again, below. Nothing else is touched, be
 * it a millisecond or a month that has passed. A slot holds no order; it is sorted when it is due
 * (timer.c).
 *
 * A slot is a millisecond, but deadlines are nanoseconds. The slot of the current millisecond is a
 * heap (near.c), so a sleep of 30 µs is exact. Every other slot remembers the earliest deadline that
 * was put into it, so the moment to wake at is exact without opening the slot: an hour's sleep wakes
 * its machine once, and not at each level it comes down. A deadline that was disarmed is still
 * remembered while its slot has others; that costs at most one wake for nothing, for it opens the
 * slot, whose timers are then dealt out with deadlines that are exact.
 *
 * Whoever holds a lock meanwhile expires in bits (expire_some): from one first deadline to the next,
 * through the heap, which sorts no more than it is asked for. A bit costs what it fires and the slots
 * that are dealt out on the way to it, once each.
 *
 * Rejected: one heap for all (a disarm costs O(log n) and its cache misses, 1M timers deep); firing
 * whole slots, as wheels without the heap do (a millisecond late, or early); a heap for the next few
 * milliseconds, as was planned (the remembered deadlines make slots as exact, and O(1)); three more
 * levels instead of the overflow list, which would span all 64 bits (4.6 KiB a wheel, for timers
 * past 12 days); waking at the edge of each slot in order to cascade.
 *
 * I1  An armed timer is in one place, and `place` tells which; count is their number.
 * I2  near holds ticks <= w->tick. Slot s of level L holds ticks > w->tick that are equal to it above
 *     digit L and have s as digit L. far holds ticks > w->tick that differ above the last level.
 * I3  Bit s of occupied[L] is set if and only if slot s of level L has timers.
 * I4  first_ns of a slot with timers is not later than any deadline in it, and lies where a timer of
 *     this slot may lie: whoever expires at it opens the slot.
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

/* The level of the highest digit in which two ticks differ; they do. Past the last level: far. */
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

void bz_wheel_fini(struct bz_wheel *w)
{
    BZ_CHECK(w->count == 0, "wheel %p: %zu timers are armed at its end", (void *)w, w->count);
}

/* ---- in and out ---- */

static void slot_put(struct bz_wheel_slot *s, struct bz_wheel_timer *t)
{
    if (bz_list_is_empty(&s->timers) || t->deadline_ns < s->first_ns)
        s->first_ns = t->deadline_ns; /* I4 */
    bz_list_init(&t->in);
    bz_list_push_back(&s->timers, &t->in);
}

/* Where it belongs, as seen from w->tick: I2. */
static void wheel_put(struct bz_wheel *w, struct bz_wheel_timer *t)
{
    uint64_t tick = tick_of(t->deadline_ns);
    if (tick <= w->tick) {
        t->place = PLACE_NEAR;
        bz_near_push(&w->near, t);
        return;
    }
    unsigned level = level_of(tick, w->tick);
    if (BZ_BROKEN(62) && level >= BZ_WHEEL_LEVELS)
        level = BZ_WHEEL_LEVELS - 1;
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
    case PLACE_DUE: /* it does not count any more */
        if (BZ_BROKEN(61))
            return false;
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

bool bz_wheel_rearm(struct bz_wheel *w, struct bz_wheel_timer *t, uint64_t deadline_ns)
{
    bool was_armed = bz_wheel_disarm(w, t);
    bz_wheel_arm(w, t, deadline_ns);
    return was_armed;
}

/* ---- time moves on ---- */

uint64_t bz_wheel_next(const struct bz_wheel *w)
{
    if (w->near != NULL)
        return w->near->deadline_ns;
    int index = bz_bitset_lowest(w->occupied, BZ_WHEEL_LEVELS);
    if (index >= 0)
        return w->slot[index].first_ns;
    return bz_list_is_empty(&w->far.timers) ? BZ_WHEEL_NEVER : w->far.first_ns;
}

/* A timer leaves the wheel for a list of due ones. */
static void due_put(struct bz_wheel *w, struct bz_wheel_timer *t, struct bz_list *due)
{
    t->place = PLACE_DUE;
    w->count--;
    bz_list_init(&t->in);
    bz_list_push_back(due, &t->in);
}

/* Returns how many, `limit` at most. */
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

/* The slots of `mask` are due as a whole. Slot by slot is sorted, so `passed` stays sorted. */
static void slots_pass(struct bz_wheel *w, unsigned level, uint64_t mask, struct bz_list *passed)
{
    BZ_BITS_FOR_EACH (digit, w->occupied[level] & mask) {
        struct bz_list *timers = &w->slot[level * BZ_WHEEL_SLOTS + digit].timers;
        bz_wheel_timers_sort(timers);
        bz_list_splice(passed, timers);
    }
    w->occupied[level] &= ~mask;
}

/* We stand in this slot now: what is due has passed, the rest is put below. */
static void slot_deal(struct bz_wheel *w, struct bz_wheel_slot *s, uint64_t now_ns,
                      struct bz_list *passed)
{
    struct bz_list timers, due; /* off the slot first: one of far may go back to far */
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

/* The overflow list, once its first comes within reach of the last level. */
static void far_deal(struct bz_wheel *w, uint64_t now_ns, struct bz_list *passed)
{
    unsigned reach = BZ_WHEEL_LEVELS * BZ_WHEEL_BITS;
    if (bz_list_is_empty(&w->far.timers) || tick_of(w->far.first_ns) >> reach > w->tick >> reach)
        return;
    slot_deal(w, &w->far, now_ns, passed);
}

/* From w->tick to `tick`, which is later; near is empty. Slots pass in the order of time; of the one
 * we come to stand in, what is due at now_ns passes. */
static void wheel_turn(struct bz_wheel *w, uint64_t tick, uint64_t now_ns, struct bz_list *passed)
{
    unsigned top = level_of(tick, w->tick);
    w->tick = tick;
    for (unsigned level = 0; level < top && level < BZ_WHEEL_LEVELS && !BZ_BROKEN(60); level++)
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

/* To the millisecond of the first deadline, or to now_ns if that is earlier: nothing is passed as a
 * whole, because there is nothing before the first, and what is due comes out of near. */
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

/* I1, I2 and I4 for one timer or moment in the slot `place`. */
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
