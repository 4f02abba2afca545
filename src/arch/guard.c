/*
 * guard.c - see guard.h.
 *
 * Stack of bz_guard_enter: the return address, the frame pointer, five registers, eight bytes that align it.
 */
#include "arch/guard.h"

#if defined(__x86_64__) && defined(__ELF__)

#define BZ_GUARD_CODE                                      \
    ".pushsection .text.bz_guard_enter,\"ax\",@progbits\n" \
    ".p2align 4\n"                                         \
    ".globl bz_guard_enter\n"                              \
    ".hidden bz_guard_enter\n"                             \
    ".type bz_guard_enter, @function\n"                    \
    "bz_guard_enter:\n"                                    \
    "    .cfi_startproc\n"                                 \
    "    " BZ_CTX_LANDING_PAD "\n"                         \
    "    pushq %rbp\n"                                     \
    "    .cfi_def_cfa_offset 16\n"                         \
    "    .cfi_offset rbp, -16\n"                           \
    "    movq %rsp, %rbp\n"                                \
    "    .cfi_def_cfa_register rbp\n"                      \
    "    pushq %rbx\n"                                     \
    "    .cfi_offset rbx, -24\n"                           \
    "    pushq %r12\n"                                     \
    "    .cfi_offset r12, -32\n"                           \
    "    pushq %r13\n"                                     \
    "    .cfi_offset r13, -40\n"                           \
    "    pushq %r14\n"                                     \
    "    .cfi_offset r14, -48\n"                           \
    "    pushq %r15\n"                                     \
    "    .cfi_offset r15, -56\n"                           \
    "    subq $8, %rsp\n"                                  \
    "    movq %rsp, 0(%rdi)\n"                             \
    "    movq %rsi, %rax\n"                                \
    "    movq %rdx, %rdi\n"                                \
    "    movq %rcx, %rsi\n"                                \
    "    call *%rax\n"                                     \
    ".globl bz_guard_land\n"                               \
    ".hidden bz_guard_land\n"                              \
    "bz_guard_land:\n"                                     \
    "    .cfi_def_cfa rsp, 64\n"                           \
    "    addq $8, %rsp\n"                                  \
    "    .cfi_def_cfa_offset 56\n"                         \
    "    popq %r15\n"                                      \
    "    .cfi_def_cfa_offset 48\n"                         \
    "    popq %r14\n"                                      \
    "    .cfi_def_cfa_offset 40\n"                         \
    "    popq %r13\n"                                      \
    "    .cfi_def_cfa_offset 32\n"                         \
    "    popq %r12\n"                                      \
    "    .cfi_def_cfa_offset 24\n"                         \
    "    popq %rbx\n"                                      \
    "    .cfi_def_cfa_offset 16\n"                         \
    "    popq %rbp\n"                                      \
    "    .cfi_def_cfa_offset 8\n"                          \
    "    ret\n"                                            \
    "    .cfi_endproc\n"                                   \
    ".size bz_guard_enter, . - bz_guard_enter\n"           \
    ".popsection\n"

__asm__(BZ_GUARD_CODE);
int bz_guard_enter(struct bz_guard *g, bz_guard_fn *fn, void *a, const void *b) BZ_HIDDEN;
extern const char bz_guard_land[] BZ_HIDDEN;

uintptr_t bz_guard_landing(void)
{
    return (uintptr_t)bz_guard_land;
}

/* Clear the x87 stack, and an exception that waits there: the next instruction of it would raise it. */
static void float_reset(void)
{
    __asm__ volatile("fninit");
}

#else

uintptr_t bz_guard_landing(void)
{
    return 0;
}

static int bz_guard_enter(struct bz_guard *g, bz_guard_fn *fn, void *a, const void *b)
{
    g->sp = NULL;
    return fn(a, b);
}

static void float_reset(void) {}

#endif

#if BZ_TSAN

static BZ_ALWAYS_INLINE void fiber_begin(struct bz_guard *g)
{
    g->fiber = g->stack->notes.fiber;
    g->stack->notes.fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(g->stack->notes.fiber, 0);
}

static BZ_ALWAYS_INLINE void fiber_end(struct bz_guard *g)
{
    void *spent = g->stack->notes.fiber;
    g->stack->notes.fiber = g->fiber;
    __tsan_switch_to_fiber(g->fiber, 0);
    __tsan_destroy_fiber(spent);
}

#else

static BZ_ALWAYS_INLINE void fiber_begin(struct bz_guard *g)
{
    (void)g;
}

static BZ_ALWAYS_INLINE void fiber_end(struct bz_guard *g)
{
    (void)g;
}

#endif

int bz_guard_call(struct bz_guard *g, bz_guard_fn *fn, void *a, const void *b)
{
    fiber_begin(g);
    int rc = bz_guard_enter(g, fn, a, b);
    fiber_end(g);
    return rc;
}

void bz_guard_landed(struct bz_guard *g, uintptr_t sp)
{
#if BZ_ASAN
    __asan_unpoison_memory_region((void *)sp, (uintptr_t)g->sp - sp);
#else
    (void)sp;
#endif
    float_reset();
    bz_fpcw_load(g->fpcw);
    if (bz_eh_is_used())
        bz_eh_exchange(NULL, NULL);
}
