/*
 * The switch on Windows keeps what its calling convention and its thread block ask for (arch/ctx_x86_64_windows.h).
 */
#include <windows.h>

#include <setjmp.h>
#include <stdatomic.h>

#include "arch/ctx.h"
#include "blitz.h"
#include "harness.h"
#include "support/coro.h"

enum { STACK_BYTES = 64 << 10, STACKS = 2 };
static struct {
    _Alignas(16) char bytes[STACK_BYTES];
} stacks[STACKS];

static char *low_of(int i)
{
    return stacks[i].bytes;
}

static char *top_of(int i)
{
    return stacks[i].bytes + STACK_BYTES;
}

/* ---- registers ---- */

struct marks {
    uint64_t rbx, rsi, rdi, r12, r13, r14, r15;
    uint64_t xmm[10][2];
};

/* Load every register that a called function must preserve, call, and store what came back. */
static BZ_NOINLINE void call_with(const struct marks *in, struct marks *out, void (*fn)(void *),
                                  void *arg)
{
    register void (*called)(void *) __asm__("r8") = fn;
    __asm__ volatile("pushq %%rbp\n\t"
                     "movq %%rsp, %%rbp\n\t"
                     "andq $-16, %%rsp\n\t"
                     "pushq %%rdx\n\t" /* out */
                     "subq $40, %%rsp\n\t"
                     "movq 0(%%rax), %%rbx\n\tmovq 8(%%rax), %%rsi\n\tmovq 16(%%rax), %%rdi\n\t"
                     "movq 24(%%rax), %%r12\n\tmovq 32(%%rax), %%r13\n\tmovq 40(%%rax), %%r14\n\t"
                     "movq 48(%%rax), %%r15\n\t"
                     "movups 56(%%rax), %%xmm6\n\tmovups 72(%%rax), %%xmm7\n\t"
                     "movups 88(%%rax), %%xmm8\n\tmovups 104(%%rax), %%xmm9\n\t"
                     "movups 120(%%rax), %%xmm10\n\tmovups 136(%%rax), %%xmm11\n\t"
                     "movups 152(%%rax), %%xmm12\n\tmovups 168(%%rax), %%xmm13\n\t"
                     "movups 184(%%rax), %%xmm14\n\tmovups 200(%%rax), %%xmm15\n\t"
                     "call *%%r8\n\t"
                     "addq $40, %%rsp\n\t"
                     "popq %%rax\n\t"
                     "movq %%rbp, %%rsp\n\t"
                     "popq %%rbp\n\t"
                     "movq %%rbx, 0(%%rax)\n\tmovq %%rsi, 8(%%rax)\n\tmovq %%rdi, 16(%%rax)\n\t"
                     "movq %%r12, 24(%%rax)\n\tmovq %%r13, 32(%%rax)\n\tmovq %%r14, 40(%%rax)\n\t"
                     "movq %%r15, 48(%%rax)\n\t"
                     "movups %%xmm6, 56(%%rax)\n\tmovups %%xmm7, 72(%%rax)\n\t"
                     "movups %%xmm8, 88(%%rax)\n\tmovups %%xmm9, 104(%%rax)\n\t"
                     "movups %%xmm10, 120(%%rax)\n\tmovups %%xmm11, 136(%%rax)\n\t"
                     "movups %%xmm12, 152(%%rax)\n\tmovups %%xmm13, 168(%%rax)\n\t"
                     "movups %%xmm14, 184(%%rax)\n\tmovups %%xmm15, 200(%%rax)"
                     : "+a"(in), "+d"(out), "+c"(arg), "+r"(called)
                     :
                     : "rbx", "rsi", "rdi", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
                       "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
}

static void yield_in(void *c)
{
    bz_coro_yield(c);
}

static struct marks marks_of(uint64_t seed)
{
    struct marks m;
    uint64_t *word = (uint64_t *)&m;
    for (size_t i = 0; i < sizeof m / sizeof *word; i++)
        word[i] = seed * 1000 + i;
    return m;
}

static void yield_with_marks(struct bz_coro *c, void *result)
{
    struct marks in = marks_of(7), out;
    call_with(&in, &out, yield_in, c);
    *(int *)result = memcmp(&in, &out, sizeof in);
}

static void resume_it(void *c)
{
    (void)bz_coro_resume(c);
}

/* Both sides hold values of their own in all of them. */
TEST(windows_switch, every_register_that_the_convention_preserves_survives)
{
    struct bz_coro c;
    struct marks in = marks_of(3), out;
    int differs = -1;
    bz_coro_init(&c, low_of(0), top_of(0), yield_with_marks, &differs);
    call_with(&in, &out, resume_it, &c);
    CHECK_MEM_EQ(&out, &in, sizeof in);
    in = marks_of(5);
    call_with(&in, &out, resume_it, &c);
    CHECK_MEM_EQ(&out, &in, sizeof in);
    CHECK_EQ(differs, 0);
    bz_coro_fini(&c);
}

/* ---- the bounds of the stack ---- */

struct bounds {
    char *base, *limit, *start;
};

static struct bounds bounds_now(void)
{
    struct bounds b;
    __asm__ volatile("movq %%gs:0x8, %0\n\tmovq %%gs:0x10, %1\n\tmovq %%gs:0x1478, %2"
                     : "=&r"(b.base), "=&r"(b.limit), "=&r"(b.start));
    return b;
}

static void check_bounds(struct bz_coro *c, void *arg)
{
    int i = *(int *)arg;
    for (int round = 0; round < 3; round++) {
        struct bounds b = bounds_now();
        CHECK_EQ((void *)b.base, (void *)top_of(i));
        CHECK_EQ((void *)b.limit, (void *)low_of(i));
        CHECK_EQ((void *)b.start, (void *)low_of(i));
        bz_coro_yield(c);
    }
}

TEST(windows_switch, the_thread_block_has_the_bounds_of_the_stack_that_runs)
{
    struct bz_coro c[STACKS];
    int index[STACKS] = {0, 1};
    struct bounds before = bounds_now();
    for (int i = 0; i < STACKS; i++)
        bz_coro_init(&c[i], low_of(i), top_of(i), check_bounds, &index[i]);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < STACKS; i++)
            (void)bz_coro_resume(&c[i]);
        struct bounds now = bounds_now();
        CHECK_EQ((void *)now.base, (void *)before.base);
        CHECK_EQ((void *)now.start, (void *)before.start);
    }
    for (int i = 0; i < STACKS; i++)
        bz_coro_fini(&c[i]);
}

static BZ_NOINLINE int use_much_stack(int depth)
{
    volatile char room[3000];
    room[0] = (char)depth;
    return depth == 0 ? 0 : use_much_stack(depth - 1) + 1 + 0 * room[0];
}

static void yield_often(struct bz_coro *c, void *arg)
{
    (void)arg;
    for (;;)
        bz_coro_yield(c);
}

/* The stack of a thread grows while the thread runs: a switch back must not take that back. */
TEST(windows_switch, the_stack_of_a_thread_grows_between_switches)
{
    struct bz_coro c;
    bz_coro_init(&c, low_of(0), top_of(0), yield_often, NULL);
    for (int depth = 10; depth < 300; depth += 20) {
        (void)bz_coro_resume(&c);
        CHECK_EQ(use_much_stack(depth), depth);
    }
    bz_coro_fini(&c);
}

/* ---- exceptions, longjmp and depth, in tasks that migrate ---- */

static atomic_int handled;
static char *no_page;

/* Skip the load that faults: `movb (%rax), %al` has two bytes. */
static LONG CALLBACK skip_load(EXCEPTION_POINTERS *what)
{
    if (what->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION)
        return EXCEPTION_CONTINUE_SEARCH;
    atomic_fetch_add(&handled, 1);
    what->ContextRecord->Rip += 2;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static void fault_once(void)
{
    char *at = no_page;
    __asm__ volatile(".byte 0x8a, 0x00" : "+a"(at)::"memory"); /* movb (%rax), %al */
}

static BZ_NOINLINE void jump_out(jmp_buf *to, int depth)
{
    volatile char room[100];
    room[0] = (char)depth;
    if (depth > 0)
        jump_out(to, depth - 1);
    if (room[0] == 0) /* the innermost */
        longjmp(*to, 1);
}

enum { TASKS = 20, TURNS = 50 };

static BZ_NOINLINE void jump_and_return(void)
{
    jmp_buf here;
    if (setjmp(here) == 0)
        jump_out(&here, 20);
}

static int trouble(void *arg)
{
    (void)arg;
    for (int i = 0; i < (int)t_scaled(TURNS); i++) {
        fault_once();
        blitz_yield();
        jump_and_return();
        blitz_yield();
        CHECK_EQ(use_much_stack(15), 15);
        struct bounds b = bounds_now();
        CHECK((char *)&b > b.limit && (char *)&b < b.base);
    }
    return 0;
}

static int many_in_trouble(void *arg)
{
    blitz_task *t[TASKS];
    (void)arg;
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(blitz_spawn(trouble, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* The system looks for handlers and unwinds only between the bounds in the thread block. */
TEST(windows_switch, exceptions_and_longjmp_work_in_tasks_that_migrate)
{
    no_page = VirtualAlloc(NULL, 4096, MEM_RESERVE, PAGE_NOACCESS);
    void *handler = AddVectoredExceptionHandler(1, skip_load);
    CHECK_EQ(blitz_run(many_in_trouble, NULL, &(blitz_runtime_opts){.procs = 4}), 0);
    RemoveVectoredExceptionHandler(handler);
    CHECK_EQ(atomic_load(&handled), TASKS * (int)t_scaled(TURNS));
}
