/*
 * The context switch (src/arch): what it keeps, what it carries over, where it begins and ends.
 */
#include <fenv.h>
#include <unwind.h>

#include "arch/ctx.h"
#include "harness.h"
#include "support/coro.h"

enum { STACK_BYTES = 64 * 1024 };
struct stack {
    _Alignas(16) char bytes[STACK_BYTES];
};
static struct stack stacks[4];

/* They are not stacks before their first use; Valgrind is told then. */
static char *low_of(int i)
{
    static bool is_told[4];
    if (!is_told[i])
        bz_note_stack_made(stacks[i].bytes, STACK_BYTES);
    is_told[i] = true;
    return stacks[i].bytes;
}
static char *top_of(int i)
{
    return stacks[i].bytes + STACK_BYTES;
}
static bool stands_on(int i, const void *p)
{
    return (const char *)p >= low_of(i) && (const char *)p < top_of(i);
}

/* A suspend site of the tests' own, so that they can look at every part. */
static BZ_NOINLINE void hop(struct bz_ctx *from, struct bz_ctx *to, bz_ctx_hook *hook, void *arg)
{
    bz_ctx_switch(from, to, hook, arg);
}
/* Another one: contexts that stopped at different sites go to one another. */
static BZ_NOINLINE void hop_elsewhere(struct bz_ctx *from, struct bz_ctx *to)
{
    bz_ctx_switch(from, to, NULL, NULL);
    __asm__ volatile("");
}

static struct bz_ctx native, fiber[4];
static int step;
static char story[64];
static void tell(char what)
{
    story[step++] = what;
}

/* ---- beginning -------------------------------------------------------------------------------- */

static void *seen_arg, *seen_frame;
static void note_the_beginning(void *arg)
{
    seen_arg = arg;
    seen_frame = __builtin_frame_address(0);
    _Alignas(16) volatile char vector[16] = {0};
    CHECK_EQ((uintptr_t)vector % 16, (uintptr_t)0); /* holds only if sp was aligned on entry */
    bz_ctx_leave(&native, NULL, NULL);
}

TEST(ctx, a_fresh_stack_is_entered_with_its_argument_aligned_and_at_its_top)
{
    bz_ctx_adopt(&native);
    bz_ctx_init(&fiber[0], low_of(0), top_of(0), note_the_beginning, &step, bz_fpcw_read());

    hop(&native, &fiber[0], NULL, NULL);

    CHECK_EQ(seen_arg, (void *)&step);
    CHECK(stands_on(0, seen_frame));
    CHECK_LT(top_of(0) - (char *)seen_frame, 1024);
    bz_ctx_fini(&fiber[0]);
}

/* printf of a double uses aligned vector stores in most C libraries: the honest alignment test. */
static void print_a_double(void *arg)
{
    snprintf(arg, 32, "%.3f", 0.125 * step);
    bz_ctx_leave(&native, NULL, NULL);
}

TEST(ctx, the_c_library_works_on_a_fresh_stack)
{
    char text[32];
    step = 3;
    bz_ctx_adopt(&native);
    bz_ctx_init(&fiber[0], low_of(0), top_of(0), print_a_double, text, bz_fpcw_read());

    hop(&native, &fiber[0], NULL, NULL);

    CHECK_STR_EQ(text, "0.375");
    bz_ctx_fini(&fiber[0]);
}

static void return_at_once(void *arg)
{
    (void)arg;
}

static void enter_what_returns(void *arg)
{
    (void)arg;
    bz_ctx_adopt(&native);
    bz_ctx_init(&fiber[0], low_of(0), top_of(0), return_at_once, NULL, bz_fpcw_read());
    hop(&native, &fiber[0], NULL, NULL);
}

/* There is no caller to return to; better an abort that says so than a jump to address 0. */
TEST(ctx, an_entry_function_that_returns_aborts_and_says_so)
{
    CHECK_ABORTS(enter_what_returns, NULL, "entry function of a stack returned");
}

/* ---- the hook --------------------------------------------------------------------------------- */

struct seen {
    int on_stack;
    void *left_sp, *left_pc;
};
static struct seen hook_saw;

static void hook_from_native(void *arg)
{
    char here;
    tell('h');
    hook_saw = (struct seen){stands_on(0, &here)   ? 0
                             : stands_on(1, &here) ? 1
                                                   : -1,
                             ((struct bz_ctx *)arg)->sp, ((struct bz_ctx *)arg)->pc};
}

static void tell_and_go_back(void *arg)
{
    (void)arg;
    tell('a');
    hop(&fiber[0], &native, hook_from_native, &fiber[0]);
    tell('b');
    bz_ctx_leave(&native, hook_from_native, &fiber[0]);
}

/* The purpose of the hook: the published context is complete, and its stack is not in use. */
TEST(ctx, the_hook_runs_on_the_target_after_the_save_and_before_anything_else)
{
    bz_ctx_adopt(&native);
    bz_ctx_init(&fiber[0], low_of(0), top_of(0), tell_and_go_back, NULL, bz_fpcw_read());

    hop(&native, &fiber[0], hook_from_native, &native); /* onto a fresh stack */
    tell('1');
    CHECK_STR_EQ(story, "hah1"); /* its hook, it, and our own hook before we went on */
    CHECK_EQ(hook_saw.on_stack, -1);
    CHECK(stands_on(0, hook_saw.left_sp));
    CHECK_NOT_NULL(hook_saw.left_pc);

    hop(&native, &fiber[0], hook_from_native, &native); /* onto a parked one */
    CHECK_STR_EQ(story, "hah1hbh");
    bz_ctx_fini(&fiber[0]);
}

static void look_at_the_native(void *arg)
{
    (void)arg;
    hop(&fiber[0], &native, NULL, NULL);
    hop(&fiber[0], &native, NULL, NULL);
}

TEST(ctx, a_hook_on_a_parked_target_stands_on_the_targets_stack)
{
    bz_ctx_adopt(&native);
    bz_ctx_init(&fiber[0], low_of(0), top_of(0), look_at_the_native, NULL, bz_fpcw_read());
    hop(&native, &fiber[0], hook_from_native, &native);
    CHECK_EQ(hook_saw.on_stack, 0); /* fresh */
    native.sp = NULL;

    hop(&native, &fiber[0], hook_from_native, &native);

    CHECK_EQ(hook_saw.on_stack, 0); /* parked */
    CHECK_NOT_NULL(hook_saw.left_sp);
    bz_ctx_fini(&fiber[0]);
}

/* ---- preserved state
 * ----------------------------------------------------------------------------- */

/* More values live across the switch than there are registers the callee must keep, of both kinds. */
#define MIX(x, k) ((x)*6364136223846793005u + (k))
static BZ_NOINLINE void keep_much_across(struct bz_ctx *me, struct bz_ctx *to, uint64_t seed)
{
    uint64_t a = MIX(seed, 1), b = MIX(a, 2), c = MIX(b, 3), d = MIX(c, 4), e = MIX(d, 5),
             f = MIX(e, 6), g = MIX(f, 7), h = MIX(g, 8), i = MIX(h, 9), j = MIX(i, 10);
    double p = (double)(a >> 12), q = (double)(b >> 12), r = (double)(c >> 12),
           s = (double)(d >> 12), t = (double)(e >> 12), u = (double)(f >> 12),
           v = (double)(g >> 12), w = (double)(h >> 12), x = (double)(i >> 12);
    long double y = (long double)j / 3;

    hop(me, to, NULL, NULL);

    CHECK(a == MIX(seed, 1) && b == MIX(a, 2) && c == MIX(b, 3) && d == MIX(c, 4) &&
          e == MIX(d, 5));
    CHECK(f == MIX(e, 6) && g == MIX(f, 7) && h == MIX(g, 8) && i == MIX(h, 9) && j == MIX(i, 10));
    CHECK(p == (double)(a >> 12) && q == (double)(b >> 12) && r == (double)(c >> 12));
    CHECK(s == (double)(d >> 12) && t == (double)(e >> 12) && u == (double)(f >> 12));
    CHECK(v == (double)(g >> 12) && w == (double)(h >> 12) && x == (double)(i >> 12));
    CHECK(y == (long double)j / 3);
}

static uint64_t keeper_seed[4];
static void keep_for_ever(void *arg)
{
    int i = (int)(intptr_t)arg;
    for (;;)
        keep_much_across(&fiber[i], i == 3 ? &native : &fiber[i + 1], keeper_seed[i]++);
}

TEST(ctx, a_switch_keeps_every_register_the_callee_must)
{
    bz_ctx_adopt(&native);
    for (int i = 0; i < 4; i++) {
        keeper_seed[i] = t_random();
        bz_ctx_init(&fiber[i], low_of(i), top_of(i), keep_for_ever, (void *)(intptr_t)i,
                    bz_fpcw_read());
    }
    uint64_t seed = t_random();
    for (uint64_t i = 0; i < t_scaled(100000); i++)
        keep_much_across(&native, &fiber[0], seed + i);
    for (int i = 0; i < 4; i++)
        bz_ctx_fini(&fiber[i]);
}

#if defined(__x86_64__) && \
    !defined(_WIN32) /* its convention has others: tests/windows/switch_test.c */
/* Every callee-saved register by name, whatever the compiler would have put there. */
static BZ_NOINLINE int registers_survive(struct bz_coro *c)
{
    uint64_t bad;
    __asm__ volatile("movq %%rsp, %%r11\n\t"
                     "subq $128, %%rsp\n\t" /* below the red zone */
                     "andq $-16, %%rsp\n\t"
                     "pushq %%rbp\n\tpushq %%r11\n\t"
                     "movq $0x1b, %%rbx\n\tmovq $0x12, %%r12\n\tmovq $0x13, %%r13\n\t"
                     "movq $0x14, %%r14\n\tmovq $0x15, %%r15\n\tmovq $0x16, %%rbp\n\t"
                     "xorl %%esi, %%esi\n\txorl %%edx, %%edx\n\t"
                     "call *%%rax\n\t"
                     "xorq $0x1b, %%rbx\n\txorq $0x12, %%r12\n\txorq $0x13, %%r13\n\t"
                     "xorq $0x14, %%r14\n\txorq $0x15, %%r15\n\txorq $0x16, %%rbp\n\t"
                     "orq %%rbp, %%rbx\n\torq %%r12, %%rbx\n\torq %%r13, %%rbx\n\t"
                     "orq %%r14, %%rbx\n\torq %%r15, %%rbx\n\tmovq %%rbx, %%rax\n\t"
                     "popq %%r11\n\tpopq %%rbp\n\tmovq %%r11, %%rsp"
                     : "=a"(bad), "+D"(c)
                     : "0"(bz_coro_yield_with)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15");
    return bad == 0;
}
static void yield_with_marked_registers(struct bz_coro *c, void *arg)
{
    *(int *)arg = registers_survive(c);
}
static BZ_NOINLINE void dirty_registers(void)
{
    __asm__ volatile("movq $-1, %%rbx\n\tmovq $-1, %%r12\n\tmovq $-1, %%r13\n\tmovq $-1, %%r14\n\t"
                     "movq $-1, %%r15" ::
                         : "rbx", "r12", "r13", "r14", "r15");
}

TEST(ctx, rbx_rbp_and_r12_to_r15_survive_by_name)
{
    struct bz_coro c;
    int survived = -1;
    bz_coro_init(&c, low_of(0), top_of(0), yield_with_marked_registers, &survived);
    CHECK(bz_coro_resume(&c));
    dirty_registers();
    CHECK(!bz_coro_resume(&c));
    CHECK_EQ(survived, 1);
    bz_coro_fini(&c);
}
#endif

/* A leaf that switches keeps its locals below the stack pointer, where pushes would land. */
static BZ_NOINLINE uint64_t leaf_across(struct bz_ctx *me, struct bz_ctx *to)
{
    volatile uint64_t red[12];
    for (int i = 0; i < 12; i++)
        red[i] = 0x0101010101010101u * (unsigned)i;
    struct bz_ctx_landing l = {NULL, NULL, me};
    bz_ctx_jump(to, &l);
    uint64_t bad = 0;
    for (int i = 0; i < 12; i++)
        bad |= red[i] ^ 0x0101010101010101u * (unsigned)i;
    return bad;
}

static void answer_with_a_leaf(struct bz_coro *c, void *arg)
{
    *(uint64_t *)arg = leaf_across(&c->ctx, &native);
}

TEST(ctx, the_red_zone_of_a_leaf_is_left_alone)
{
    if (BZ_ASAN || BZ_TSAN)
        t_skip("uses the bare jump, which leaves no notes for the sanitizers");
    struct bz_coro c;
    uint64_t there = 1;
    bz_coro_init(&c, low_of(0), top_of(0), answer_with_a_leaf, &there);
    CHECK_EQ(leaf_across(&native, &c.ctx), (uint64_t)0);
    struct bz_coro_caller here = {.has_ended = false};
    c.caller = &here;
    hop(&here.ctx, &c.ctx, NULL, NULL);
    CHECK_EQ(there, (uint64_t)0);
    CHECK(here.has_ended);
}

/* ---- floating point --------------------------------------------------------------------------- */

static void skip_on_valgrind(void)
{
    if (bz_note_on_valgrind())
        t_skip("Valgrind's CPU computes in one mode only");
}

static volatile double one = 1, three = 3;
static void round_upward(struct bz_coro *c, void *arg)
{
    double *third = arg;
    fesetround(FE_UPWARD);
    third[0] = one / three;
    bz_coro_yield(c);
    CHECK_EQ(fegetround(), FE_UPWARD);
    third[1] = one / three;
}

/* As threads do: a rounding mode set by one fiber must not reach the arithmetic of the next. */
TEST(ctx, each_context_keeps_its_rounding_mode)
{
    skip_on_valgrind();
    struct bz_coro c;
    double up[2], nearest = one / three;
    bz_coro_init(&c, low_of(0), top_of(0), round_upward, up);

    CHECK(bz_coro_resume(&c));
    CHECK_EQ(fegetround(), FE_TONEAREST);
    CHECK(one / three == nearest);
    fesetround(FE_DOWNWARD);
    CHECK(!bz_coro_resume(&c));
    CHECK_EQ(fegetround(), FE_DOWNWARD);

    CHECK(up[0] > nearest);
    CHECK(up[1] == up[0]);
    bz_coro_fini(&c);
}

static int round_seen;
static void see_the_rounding(void *arg)
{
    (void)arg;
    round_seen = fegetround();
    bz_ctx_leave(&native, NULL, NULL);
}

TEST(ctx, a_fresh_context_starts_with_the_control_words_it_was_given)
{
    uint64_t plain = bz_fpcw_read();
    fesetround(FE_TOWARDZERO);
    bz_ctx_adopt(&native);
    bz_ctx_init(&fiber[0], low_of(0), top_of(0), see_the_rounding, NULL, plain);

    hop(&native, &fiber[0], NULL, NULL);

    CHECK_EQ(round_seen, FE_TONEAREST);
    CHECK_EQ(fegetround(), FE_TOWARDZERO);
    bz_ctx_fini(&fiber[0]);
}

TEST(ctx, the_default_control_words_are_those_a_program_starts_with)
{
    CHECK_EQ(bz_fpcw_read(), BZ_FPCW_DEFAULT);
}

/* An inexact division sets a sticky flag; that must not look like another control word. */
TEST(ctx, status_flags_are_not_control_words)
{
    skip_on_valgrind();
    feclearexcept(FE_ALL_EXCEPT);
    uint64_t before = bz_fpcw_read();
    volatile double inexact = one / three;
    (void)inexact;
    feraiseexcept(FE_OVERFLOW | FE_DIVBYZERO);
    CHECK(fetestexcept(FE_INEXACT));
    CHECK_EQ(bz_fpcw_read(), before);

    bz_fpcw_load(before);
    CHECK(fetestexcept(FE_INEXACT)); /* and loading control words drops no flag */
}

#if defined(__x86_64__)
/* All that the ABI gives to the callee to keep, x87 precision control and flush-to-zero included. */
TEST(ctx, every_control_bit_is_read_and_loaded)
{
    skip_on_valgrind();
    uint64_t plain = bz_fpcw_read();
    for (int bit = 6; bit < 16; bit++) {
        bz_fpcw_load(plain ^ 1u << bit);
        uint64_t got = bz_fpcw_read();
        bz_fpcw_load(plain);
        CHECK_EQ(got, plain ^ 1u << bit);
    }
    for (int bit = 24; bit < 28; bit++) { /* precision and rounding of the x87 */
        bz_fpcw_load(plain ^ 1u << bit);
        uint64_t got = bz_fpcw_read();
        bz_fpcw_load(plain);
        CHECK_EQ(got, plain ^ 1u << bit);
    }
}
#endif

/* ---- depth and number ------------------------------------------------------------------------- */

static BZ_NOINLINE int dive(struct bz_coro *c, int depth)
{
    volatile int here = depth;
    if (depth > 0)
        CHECK_EQ(dive(c, depth - 1), depth - 1);
    bz_coro_yield(c);
    CHECK_EQ(here, depth);
    return depth;
}
static void dive_200(struct bz_coro *c, void *arg)
{
    (void)arg;
    dive(c, 200);
}

TEST(ctx, a_deep_stack_is_left_and_gone_on_with_at_every_depth)
{
    struct bz_coro a, b;
    bz_coro_init(&a, low_of(0), top_of(0), dive_200, NULL);
    bz_coro_init(&b, low_of(1), top_of(1), dive_200, NULL);
    for (int i = 0; i < 201; i++) {
        CHECK(bz_coro_resume(&a));
        CHECK(bz_coro_resume(&b));
    }
    CHECK(!bz_coro_resume(&a));
    CHECK(!bz_coro_resume(&b));
    bz_coro_fini(&a);
    bz_coro_fini(&b);
}

static void count_for_ever(struct bz_coro *c, void *arg)
{
    for (uint64_t *n = arg;; bz_coro_yield(c))
        (*n)++;
}

TEST(ctx, twenty_million_switches_and_each_of_them_counts)
{
    struct bz_coro c;
    uint64_t count = 0, rounds = t_scaled(10000000);
    bz_coro_init(&c, low_of(0), top_of(0), count_for_ever, &count);
    for (uint64_t i = 0; i < rounds; i++)
        bz_coro_resume(&c);
    CHECK_EQ(count, rounds);
    bz_coro_fini(&c);
}

static void other_site(void *arg)
{
    for (uint64_t *n = arg;; (*n)++)
        hop_elsewhere(&fiber[0], &native);
}

TEST(ctx, contexts_that_stopped_at_different_sites_go_to_one_another)
{
    uint64_t count = 0;
    bz_ctx_adopt(&native);
    bz_ctx_init(&fiber[0], low_of(0), top_of(0), other_site, &count, bz_fpcw_read());
    for (int i = 0; i < 1000; i++)
        hop(&native, &fiber[0], NULL, NULL);
    CHECK_EQ(count, (uint64_t)999);
    bz_ctx_fini(&fiber[0]);
}

/* ---- unwinding -------------------------------------------------------------------------------- */

extern const char bz_ctx_thunk[] BZ_HIDDEN;
static int frames_seen;
static char *frame_last;
static bool ends_at_thunk;
static void *walk_end;
/* Count frames as backtrace() does; musl has none. */
static _Unwind_Reason_Code count_frame(struct _Unwind_Context *frame, void *unused)
{
    (void)unused;
    char *at = (char *)_Unwind_GetIP(frame);
    if (at == NULL || frames_seen == 64)
        return _URC_END_OF_STACK;
    frames_seen++;
    frame_last = at;
    return _URC_NO_REASON;
}
static BZ_NOINLINE void walk(int depth)
{
    if (depth > 0) {
        walk(depth - 1);
        __asm__ volatile("");
        return;
    }
    (void)_Unwind_Backtrace(count_frame, NULL);
    ends_at_thunk = frame_last > bz_ctx_thunk && frame_last < bz_ctx_thunk + 64;
    void **record = (void **)((char *)__builtin_frame_address(0) - BZ_CTX_FP_BIAS);
    for (int i = 0; i < 64 && record != NULL && stands_on(0, record); i++) {
        walk_end = record[1];
        record = record[0] != NULL ? (void **)((char *)record[0] - BZ_CTX_FP_BIAS) : NULL;
    }
}
static void walk_ten(struct bz_coro *c, void *arg)
{
    (void)c, (void)arg;
    walk(10);
}

/* Profilers and crash handlers walk from wherever they are; the walk must end, not run off the top. */
TEST(ctx, backtrace_and_frame_pointers_end_at_the_bottom_of_the_stack)
{
    struct bz_coro c;
    bz_coro_init(&c, low_of(0), top_of(0), walk_ten, NULL);
    CHECK(!bz_coro_resume(&c));
    CHECK_GE(frames_seen, 13); /* eleven walks, coro_run, ctx_main, thunk */
    CHECK_LT(frames_seen, 30);
    CHECK(ends_at_thunk);
    CHECK_NULL(walk_end);
    bz_coro_fini(&c);
}
