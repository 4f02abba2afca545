/*
 * ctx_x86_64.h - the switch for x86_64, System V calling convention. See ctx.h for the contract. Windows has the same
 * registers and control words; its switch and its thunk are in ctx_x86_64_windows.h.
 *
 * Registers through the switch: rax hook, rdi its argument, rdx the left context; rcx is the
 * target, r8 scratch. So the landing calls the hook without a move. rsp, rbp and the address are stored; everything else is listed as clobbered.
 * The vector and mask registers of AVX-512 and the upper sixteen general registers of APX are
 * listed only where the compiler may use them.
 *
 * Control-flow protection: with indirect-branch tracking the targets of `jmp *reg` begin with
 * endbr64 (a no-op on other CPUs, and omitted if the compiler does not use it). Shadow stacks are
 * not supported: a switch would have to change the shadow stack as well, which needs one for every
 * stack, and none of our machines can run that. cmake/BlitzCet.cmake marks our objects accordingly,
 * so that the loader leaves shadow stacks off; bz_ctx_init checks it.
 */
#ifndef BZ_CTX_X86_64_H
#define BZ_CTX_X86_64_H

#if defined(__CET__) && (__CET__ & 1)
#define BZ_CTX_LANDING_PAD "endbr64\n\t"
#else
#define BZ_CTX_LANDING_PAD ""
#endif

#if defined(__AVX512F__)
#define BZ_CTX_AVX512                                                                             \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", \
        "k7"
#else
#define BZ_CTX_AVX512
#endif

#if defined(__APX_F__)
#define BZ_CTX_APX                                                                               \
    , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", \
        "r29", "r30", "r31"
#else
#define BZ_CTX_APX
#endif

#define BZ_CTX_CLOBBERED                                                                        \
    "rbx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", \
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",      \
        "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",  \
        "st(7)", "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "cc",                  \
        "memory" BZ_CTX_AVX512 BZ_CTX_APX

/*
 * Floating point. Every switch stores MXCSR; then CPUs differ (times in ns):
 *                                     Xeon         EPYC
 *   stmxcsr                           1-2          4.2
 *   and reading the stored word     little       2.8 more
 *   ldmxcsr, same control bits        2-70 (70 if a sticky flag differs)     0.5
 * So the control words are compared before they are loaded, except on CPUs that rename MXCSR
 * (BZ_CTX_LOADS_FPCW). There the comparison is the expensive part, and they are always loaded.
 * The two words are compared one by one: a load of both would not be forwarded from the two stores
 * just before it.
 */
struct bz_fpcw {
    uint32_t mxcsr;
    uint16_t x87;
    uint16_t unused;
};
#define BZ_FPCW_MXCSR_CONTROL 0xffc0u /* all but the six status bits */
#define BZ_FPCW_DEFAULT ((uint64_t)0x037f << 16 | 0x1f80)

static BZ_ALWAYS_INLINE void bz_fpcw_save(struct bz_fpcw *w)
{
    __asm__ volatile("fnstcw %0" : "=m"(w->x87));
    __asm__ volatile("stmxcsr %0" : "=m"(w->mxcsr));
}

static BZ_ALWAYS_INLINE void bz_fpcw_restore(const struct bz_fpcw *w)
{
    __asm__ volatile("ldmxcsr %0" ::"m"(w->mxcsr));
    __asm__ volatile("fldcw %0" ::"m"(w->x87));
}

static BZ_ALWAYS_INLINE bool bz_fpcw_is_same(const struct bz_fpcw *a, const struct bz_fpcw *b)
{
    return BZ_LIKELY(((a->mxcsr ^ b->mxcsr) & BZ_FPCW_MXCSR_CONTROL) == 0) &&
           BZ_LIKELY(a->x87 == b->x87);
}

/* One number: MXCSR without its status bits, the x87 control word above it. */
static inline uint64_t bz_fpcw_read(void)
{
    struct bz_fpcw now;
    bz_fpcw_save(&now);
    return (now.mxcsr & BZ_FPCW_MXCSR_CONTROL) | (uint64_t)now.x87 << 16;
}

static inline struct bz_fpcw bz_fpcw_of(uint64_t fpcw)
{
    return (struct bz_fpcw){(uint32_t)(fpcw & BZ_FPCW_MXCSR_CONTROL), (uint16_t)(fpcw >> 16), 0};
}

static inline void bz_fpcw_load(uint64_t fpcw)
{
    struct bz_fpcw now, wanted = bz_fpcw_of(fpcw);
    bz_fpcw_save(&now);
    wanted.mxcsr |= now.mxcsr & ~BZ_FPCW_MXCSR_CONTROL; /* the status flags stay */
    bz_fpcw_restore(&wanted);
}

/* The shadow stack pointer: 0 if there is none (the instruction is then a no-op). */
static inline uint64_t bz_ctx_shadow_stack(void)
{
    uint64_t ssp = 0;
    __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(ssp)); /* rdsspq %rax */
    return ssp;
}

#if defined(_WIN32)
#include "arch/ctx_x86_64_windows.h"
#else

static BZ_ALWAYS_INLINE void bz_ctx_jump(struct bz_ctx *to, struct bz_ctx_landing *l)
{
    __asm__ volatile("leaq 1f(%%rip), %%r8\n\t"
                     "movq %%rsp, 0(%%rdx)\n\t"
                     "movq %%rbp, 8(%%rdx)\n\t"
                     "movq %%r8, 16(%%rdx)\n\t"
                     "movq 16(%%rcx), %%r8\n\t"
                     "movq 0(%%rcx), %%rsp\n\t"
                     "movq 8(%%rcx), %%rbp\n\t"
                     "jmp *%%r8\n"
                     "1:\n\t" BZ_CTX_LANDING_PAD
                     : "+a"(l->hook), "+D"(l->arg), "+d"(l->left), "+c"(to)
                     :
                     : BZ_CTX_CLOBBERED);
}

BZ_NORETURN static BZ_ALWAYS_INLINE void bz_ctx_jump_last(struct bz_ctx *to,
                                                          struct bz_ctx_landing *l)
{
    __asm__ volatile("movq 16(%%rcx), %%r8\n\t"
                     "movq 0(%%rcx), %%rsp\n\t"
                     "movq 8(%%rcx), %%rbp\n\t"
                     "jmp *%%r8"
                     :
                     : "a"(l->hook), "D"(l->arg), "d"(l->left), "c"(to)
                     : "r8", "memory");
    __builtin_unreachable();
}

#define BZ_CTX_FP_BIAS 0
#define BZ_CTX_THUNK                                     \
    ".pushsection .text.bz_ctx_thunk,\"ax\",@progbits\n" \
    ".p2align 4\n"                                       \
    ".globl bz_ctx_thunk\n"                              \
    ".hidden bz_ctx_thunk\n"                             \
    ".type bz_ctx_thunk, @function\n"                    \
    "bz_ctx_thunk:\n"                                    \
    "    .cfi_startproc\n"                               \
    "    .cfi_undefined rip\n"                           \
    "    " BZ_CTX_LANDING_PAD "\n"                       \
    "    movq %rdx, %rcx\n"                              \
    "    movq %rdi, %rdx\n"                              \
    "    movq %rax, %rsi\n"                              \
    "    movq %rsp, %rdi\n"                              \
    "    call *16(%rdi)\n"                               \
    "    ud2\n"                                          \
    "    .cfi_endproc\n"                                 \
    ".size bz_ctx_thunk, . - bz_ctx_thunk\n"             \
    ".popsection\n"

#endif
#endif
