/*
 * Coroutines (tests/support/coro.c): resume and yield, and misuse.
 */
#include "support/coro.h"

#include "harness.h"

enum { STACK_BYTES = 64 * 1024 };
static struct {
    _Alignas(16) char bytes[STACK_BYTES];
} stacks[3];

/* They are not stacks before their first use; Valgrind is told then. */
static char *low_of(int i)
{
    static bool is_told[3];
    if (!is_told[i])
        bz_note_stack_made(stacks[i].bytes, STACK_BYTES);
    is_told[i] = true;
    return stacks[i].bytes;
}
static char *top_of(int i)
{
    return stacks[i].bytes + STACK_BYTES;
}

static int step;
static char story[64];
static void tell(char what)
{
    story[step++] = what;
}

static void nothing(struct bz_coro *c, void *arg)
{
    (void)c, (void)arg;
}

static void resume_another(struct bz_coro *c, void *arg)
{
    struct bz_coro *inner = arg;
    tell('o');
    while (bz_coro_resume(inner)) {
        tell('x');
        bz_coro_yield(c);
    }
    tell('e');
}
static void yield_twice(struct bz_coro *c, void *arg)
{
    (void)arg;
    tell('1');
    bz_coro_yield(c);
    tell('2');
    bz_coro_yield(c);
    tell('3');
}

TEST(coro, one_may_resume_another_and_yields_go_to_the_nearest_resumer)
{
    struct bz_coro outer, inner;
    bz_coro_init(&inner, low_of(1), top_of(1), yield_twice, NULL);
    bz_coro_init(&outer, low_of(0), top_of(0), resume_another, &inner);
    CHECK(bz_coro_resume(&outer));
    tell('-');
    CHECK(bz_coro_resume(&outer));
    CHECK(!bz_coro_resume(&outer));
    CHECK_STR_EQ(story, "o1x-2x3e");
    bz_coro_fini(&outer);
    bz_coro_fini(&inner);
}

static struct bz_coro ring[3];
static void pass_along(struct bz_coro *c, void *arg)
{
    int i = (int)(intptr_t)arg;
    for (int round = 0; round < 3; round++) {
        tell((char)('a' + i));
        bz_coro_pass(c, &ring[(i + 1) % 3]);
    }
    bz_coro_yield(c);
}

TEST(coro, passing_goes_straight_to_the_next_and_the_last_one_yields_to_the_resumer)
{
    for (int i = 0; i < 3; i++)
        bz_coro_init(&ring[i], low_of(i), top_of(i), pass_along, (void *)(intptr_t)i);
    CHECK(bz_coro_resume(&ring[0]));
    CHECK_STR_EQ(story, "abcabcabc");
    for (int i = 0; i < 3; i++)
        bz_coro_fini(&ring[i]);
}

TEST(coro, one_that_was_never_resumed_is_simply_dropped)
{
    struct bz_coro c;
    bz_coro_init(&c, low_of(0), top_of(0), nothing, NULL);
    bz_coro_fini(&c);
}

static void resume_a_done_one(void *arg)
{
    (void)arg;
    struct bz_coro c;
    bz_coro_init(&c, low_of(0), top_of(0), nothing, NULL);
    bz_coro_resume(&c);
    bz_coro_resume(&c);
}
static void resume_itself(struct bz_coro *c, void *arg)
{
    (void)arg;
    bz_coro_resume(c);
}
static void resume_a_running_one(void *arg)
{
    (void)arg;
    struct bz_coro c;
    bz_coro_init(&c, low_of(0), top_of(0), resume_itself, NULL);
    bz_coro_resume(&c);
}
static void yield_outside(void *arg)
{
    (void)arg;
    struct bz_coro c;
    bz_coro_init(&c, low_of(0), top_of(0), nothing, NULL);
    bz_coro_yield(&c);
}

TEST(coro, misuse_aborts_instead_of_jumping_somewhere)
{
    CHECK_ABORTS(resume_a_done_one, NULL, "is done");
    CHECK_ABORTS(resume_a_running_one, NULL, "is running already");
    CHECK_ABORTS(yield_outside, NULL, "does not run");
}

#if BZ_TSAN
/* Stress finds a TSan that follows the wrong fiber only mostly; asking it finds it always. */
static void ask_tsan(struct bz_coro *c, void *arg)
{
    void *outside = arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(__tsan_get_current_fiber(), c->ctx.notes.fiber);
        CHECK_NE(__tsan_get_current_fiber(), outside);
        bz_coro_yield(c);
    }
}

TEST(coro, tsan_is_told_which_fiber_runs)
{
    struct bz_coro c;
    void *outside = __tsan_get_current_fiber();
    bz_coro_init(&c, low_of(0), top_of(0), ask_tsan, outside);
    while (bz_coro_resume(&c))
        CHECK_EQ(__tsan_get_current_fiber(), outside);
    CHECK_EQ(__tsan_get_current_fiber(), outside);
    bz_coro_fini(&c);
}
#endif
