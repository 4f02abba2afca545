/* wheel.c: in virtual time, against a list that is searched from end to end. */
#include "support/wheel_world.h"

#include <time.h>

#include "support/death.h"

/* ---- the simple things ---- */

TEST(wheel, an_empty_wheel_has_nothing_to_do)
{
    struct world o;
    world_init(&o, 5 * DAY);
    world_check(&o);
    CHECK_EQ(world_expire(&o, 6 * DAY), 0u);
    CHECK_EQ(world_expire(&o, UINT64_MAX), 0u);
    CHECK_EQ(o.wheel.count, 0u);
}

TEST(wheel, a_timer_fires_once_at_its_deadline_and_not_a_nanosecond_before)
{
    static const uint64_t spans[] = {1,       999,        MS - 1,    MS,  MS + 1,   30000,
                                     63 * MS, 4 * MS + 7, 5000 * MS, DAY, 13 * DAY, YEAR};
    for (unsigned i = 0; i < sizeof spans / sizeof *spans; i++) {
        struct world o;
        uint64_t start = 77 * DAY + 123456789;
        world_init(&o, start);
        world_arm(&o, 0, start + spans[i]);
        CHECK_EQ(bz_wheel_next(&o.wheel), start + spans[i]);
        CHECK_EQ(world_expire(&o, start + spans[i] - 1), 0u);
        CHECK_EQ(bz_wheel_next(&o.wheel), start + spans[i]);
        CHECK_EQ(world_expire(&o, start + spans[i]), 1u);
        CHECK_EQ(world_expire(&o, start + 2 * spans[i]), 0u);
    }
}

TEST(wheel, a_deadline_in_the_past_fires_at_the_next_expire)
{
    struct world o;
    world_init(&o, 10 * DAY);
    world_arm(&o, 0, 10 * DAY);
    world_arm(&o, 1, 3 * DAY);
    world_arm(&o, 2, 0);
    CHECK_EQ(bz_wheel_next(&o.wheel), 0u);
    CHECK_EQ(world_expire(&o, 10 * DAY), 3u);
}

TEST(wheel, equal_deadlines_fire_in_the_order_of_arming)
{
    const uint64_t spans[] = {0, 10, 7 * MS + 5, 700 * MS, DAY, 20 * DAY};
    for (unsigned s = 0; s < 6; s++) {
        struct world o;
        world_init(&o, DAY);
        for (int i = 0; i < N; i++)
            world_arm(&o, (i * 7) % N, DAY + spans[s]);
        for (int i = 0; i < N; i += 3) /* armed again: behind the others */
            world_arm(&o, i, DAY + spans[s]);
        world_expire(&o, DAY + spans[s] / 2); /* and brought nearer */
        world_expire(&o, DAY + spans[s]);
        CHECK_EQ(world_count(&o), 0u);
    }
}

/* The table in wheel.c, in code: which slot a span belongs to, and its bit in the occupancy word. */
TEST(wheel, a_span_finds_its_level_and_sets_one_bit)
{
    for (unsigned level = 0; level < BZ_WHEEL_LEVELS; level++)
        for (unsigned digit = 1; digit < BZ_WHEEL_SLOTS; digit++) {
            struct world o;
            world_init(&o, 0);
            world_arm(&o, 0, digit * slot_ns(level));
            world_arm(&o, 1, (digit + 1) * slot_ns(level) - 1);
            for (unsigned l = 0; l < BZ_WHEEL_LEVELS; l++)
                CHECK_EQ(o.wheel.occupied[l], l == level ? UINT64_C(1) << digit : 0);
            world_disarm(&o, 0);
            CHECK_EQ(o.wheel.occupied[level], UINT64_C(1) << digit);
            world_disarm(&o, 1);
            CHECK_EQ(o.wheel.occupied[level], 0u);
            world_check(&o);
        }
}

/* Coming into a slot deals its timers out over the levels below. */
TEST(wheel, a_slot_that_is_reached_is_dealt_out_below)
{
    for (unsigned level = 1; level <= BZ_WHEEL_LEVELS; level++) {
        struct world o;
        world_init(&o, 0);
        for (unsigned l = 0; l < level;
             l++) /* one for each level below, seen from the slot's start */
            world_arm(&o, (int)l, slot_ns(level) + 5 * slot_ns(l));
        world_arm(&o, N - 1, slot_ns(level)); /* of the slot's first millisecond */
        for (unsigned l = 0; l < level; l++)
            CHECK_EQ(o.wheel.occupied[l], 0u);
        CHECK_EQ(world_expire(&o, slot_ns(level)), 1u);
        for (unsigned l = 0; l < level; l++)
            CHECK_EQ(o.wheel.occupied[l], UINT64_C(1) << 5);
        if (level < BZ_WHEEL_LEVELS)
            CHECK_EQ(o.wheel.occupied[level], 0u);
        CHECK_EQ(world_run_down(&o), (size_t)level);
    }
}

/* A sleep of an hour must not wake its machine at every level it comes down. */
TEST(wheel, a_lone_timer_needs_one_wake_however_far)
{
    for (unsigned bits = 0; bits < 64; bits++) {
        struct world o;
        world_init(&o, 12345);
        world_arm(&o, 0, 12345 + (UINT64_C(1) << bits));
        CHECK_EQ(world_run_down(&o), 1u);
    }
}

/* A disarmed deadline may be remembered by its slot; that costs one wake a slot at the most. */
TEST(wheel, disarmed_timers_cost_at_most_one_wake_for_nothing_a_slot)
{
    struct world o;
    world_init(&o, 0);
    for (int i = 0; i < N; i++) /* all in one slot of level 2 */
        world_arm(&o, i, slot_ns(2) + (uint64_t)i * 11 * MS);
    for (int i = 0; i < N - 1; i++)
        world_disarm(&o, i);
    CHECK_LE(bz_wheel_next(&o.wheel), o.deadline[N - 1]);
    CHECK_LE(world_run_down(&o), 2u);
}

TEST(wheel, misuse_is_refused_and_named)
{
    struct world o;
    world_init(&o, 0);
    DIES("for ever is not a deadline", bz_wheel_arm(&o.wheel, &o.timer[0], BZ_WHEEL_NEVER));
    world_arm(&o, 0, MS);
    DIES("is armed already", bz_wheel_arm(&o.wheel, &o.timer[0], 2 * MS));
    bz_wheel_expire(&o.wheel, MS, &o.due);
    DIES("is armed already", bz_wheel_arm(&o.wheel, &o.timer[0], 2 * MS));
    CHECK(bz_wheel_timer_is_armed(&o.timer[0]));
    struct bz_wheel_timer fresh;
    bz_wheel_timer_init(&fresh);
    CHECK(!bz_wheel_timer_is_armed(&fresh));
    CHECK(!bz_wheel_disarm(&o.wheel, &fresh));
    bz_list_init(&fresh.in);
    bz_list_push_front(&o.due, &fresh.in);
    DIES("is not due", bz_wheel_take(&o.due));
}

TEST(wheel, check_reports_every_broken_invariant)
{
    struct world o;
    world_init(&o, 0);
    world_arm(&o, 0, 5 * MS);
    world_arm(&o, 1, 70 * MS);
    world_arm(&o, 2, 20 * DAY);
    world_arm(&o, 3, 10);
    struct bz_wheel *w = &o.wheel;
    DIES("the bit of slot 5 lies", w->occupied[0] = 0; bz_wheel_check(w));
    DIES("the bit of slot 64 lies", w->occupied[1] |= 1; bz_wheel_check(w));
    DIES("belongs to", o.timer[0].deadline_ns = 6 * MS; bz_wheel_check(w));
    DIES("belongs to", o.timer[2].deadline_ns = DAY; bz_wheel_check(w));
    DIES("has passed", o.timer[0].deadline_ns = 5; bz_wheel_check(w));
    DIES("belongs to", w->slot[5].first_ns = 4 * MS; bz_wheel_check(w));
    DIES("does not know of it", w->slot[65].first_ns = 71 * MS; bz_wheel_check(w));
    DIES("says", o.timer[1].place++; bz_wheel_check(w));
    DIES("in the heap says", o.timer[3].place++; bz_wheel_check(w));
    DIES("is ahead of tick", o.timer[3].deadline_ns = 2 * MS; bz_wheel_check(w));
    DIES("4 timers, says 5", w->count++; bz_wheel_check(w));
    world_check(&o);
}

/* ---- against the list ---- */

/* A deadline as they come: often soon, at times far, at times a level's edge, give or take one. */
static uint64_t deadline_random(uint64_t now)
{
    uint64_t edge;
    switch (t_random_below(8)) {
    case 0:
        return t_random_below(2) ? now - now / 1000 : now;
    case 1:
        return add(now, span_random(22)); /* up to 4 ms */
    case 2:                               /* the edge of a slot, of any level */
        edge = slot_ns((unsigned)t_random_below(BZ_WHEEL_LEVELS + 2));
        edge = add(now / edge * edge, edge * t_random_below(3));
        return t_random_below(2) ? add(edge, t_random_below(2)) : edge - (edge > 0);
    case 3: /* a few values, so that some are equal */
        return add(now / (5 * MS) * (5 * MS), t_random_below(4) * 5 * MS);
    case 4:
        return BZ_WHEEL_NEVER - 1 - span_random(20);
    default:
        return add(now, span_random(63));
    }
}

static uint64_t jump_random(const struct world *o)
{
    uint64_t next = bz_wheel_next(&o->wheel), edge;
    switch (t_random_below(8)) {
    case 0:
        return o->now;
    case 1:
    case 2:
        return next > o->now && next != BZ_WHEEL_NEVER ? next : add(o->now, 1);
    case 3:
        return next > o->now && next != BZ_WHEEL_NEVER ? next - 1 : add(o->now, 1);
    case 4:
        edge = slot_ns((unsigned)t_random_below(BZ_WHEEL_LEVELS));
        return add(add(o->now / edge * edge, edge), t_random_below(2));
    case 5:
        return add(o->now, span_random(55)); /* up to a year */
    default:
        return add(o->now, span_random(27)); /* up to 134 ms */
    }
}

static void world_step(struct world *o)
{
    int i = (int)t_random_below(N);
    uint64_t what = t_random_below(10);
    if (what < 5)
        world_arm(o, i, deadline_random(o->now));
    else if (what < 7)
        world_disarm(o, i);
    else
        world_expire(o, jump_random(o));
}

static void play(uint64_t start, int steps)
{
    struct world o;
    world_init(&o, start);
    for (int step = 0; step < steps; step++) {
        t_watch("start %llu, step %d", (unsigned long long)start, step);
        world_step(&o);
        if (step % 16 == 0)
            world_check(&o);
    }
    world_run_down(&o);
    CHECK_EQ(o.wheel.count, 0u);
}

TEST(wheel, equals_a_sorted_list)
{
    int rounds = (int)t_scaled(300);
    for (int round = 0; round < rounds; round++)
        play(span_random(61), 1000);
}

/* Time that creeps, by next alone: every wheel position is stood in. */
TEST(wheel, waking_at_next_fires_everything_on_time)
{
    int rounds = (int)t_scaled(200);
    size_t wakes = 0, fired = 0;
    for (int round = 0; round < rounds; round++) {
        struct world o;
        world_init(&o, span_random(50));
        for (int turn = 0; turn < 5; turn++) {
            for (int i = 0; i < N; i++)
                world_arm(&o, i, add(o.now, span_random(10 + (unsigned)t_random_below(42))));
            for (int i = 0; i < N; i += 2)
                world_disarm(&o, i);
            fired += N / 2;
            wakes += world_run_down(&o);
        }
    }
    t_note("%.2f wakes a timer, half of the others disarmed", (double)wakes / (double)fired);
}

/* ---- many ---- */

/* The time this process has had, which says more than the time that passed. */
static double clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Arm all, disarm half, arm that again; the deadlines are drawn beforehand. */
static void crowd_arm(struct bz_wheel *w, struct bz_wheel_timer *t, size_t n, uint64_t span)
{
    uint64_t *deadline = malloc(n * sizeof *deadline);
    CHECK_NOT_NULL(deadline);
    for (size_t i = 0; i < n; i++)
        deadline[i] = DAY + t_random_below(span);
    double start = clock_ns();
    for (size_t i = 0; i < n; i++)
        bz_wheel_arm(w, &t[i], deadline[i]);
    double armed = clock_ns();
    for (size_t i = 0; i < n; i += 2)
        CHECK(bz_wheel_disarm(w, &t[i]));
    double half = clock_ns();
    for (size_t i = 0; i < n; i += 2)
        bz_wheel_arm(w, &t[i], deadline[i]);
    t_note("%zu timers within %.3g ms: arm %.0f ns, disarm %.0f ns each", n,
           (double)span / (double)MS, (armed - start) / (double)n, (half - armed) / (double)n * 2);
    free(deadline);
}

static void crowd_expire(struct bz_wheel *w, size_t n, uint64_t step, uint64_t span)
{
    struct bz_list due;
    uint64_t before = 0, now = DAY;
    size_t fired = 0;
    double start = clock_ns();
    bz_list_init(&due);
    while (fired < n) {
        now += step;
        CHECK_LE(now, DAY + span + step);
        fired += bz_wheel_expire(w, now, &due);
        for (struct bz_wheel_timer *t; (t = bz_wheel_take(&due)) != NULL;) {
            CHECK_LE(t->deadline_ns, now);
            CHECK_GE(t->deadline_ns, before);
            before = t->deadline_ns;
        }
    }
    t_note("expired in steps of %.3g ms: %.0f ns a timer", (double)step / (double)MS,
           (clock_ns() - start) / (double)n);
}

static void crowd(size_t n, uint64_t span, uint64_t step)
{
    struct bz_wheel *w = malloc(sizeof *w);
    struct bz_wheel_timer *t = calloc(n, sizeof *t);
    CHECK_NOT_NULL(w);
    CHECK_NOT_NULL(t);
    bz_wheel_init(w, DAY);
    crowd_arm(w, t, n, span);
    bz_wheel_check(w);
    crowd_expire(w, n, step, span);
    CHECK_EQ(w->count, 0u);
    free(t);
    free(w);
}

TEST_LIMIT(wheel, a_million_timers_fire_in_order_step_by_step, 300)
{
    crowd(t_scaled(1000000), 10000 * MS, MS / 2);
}

TEST_LIMIT(wheel, a_million_timers_fire_in_order_after_a_leap, 300)
{
    crowd(t_scaled(1000000), 20 * DAY, 40 * DAY);
}

/* All in one millisecond, fired in slices of it: the near-heap alone. */
TEST_LIMIT(wheel, a_crowd_of_one_millisecond_fires_in_order, 300)
{
    crowd(t_scaled(200000), MS, 1000);
}
