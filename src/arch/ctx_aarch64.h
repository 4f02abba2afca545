/*
 * ctx_aarch64.h - the switch for 64-bit Arm, AAPCS64. See ctx.h for the contract.
 *
 * Registers through the switch: x0 hook, x1 its argument, x2 the left context; x4 is the target,
 * x9-x11 scratch. The switch stores sp, x29 and the address. Everything else is listed as
 * clobbered, also the link register (the return address is then in the frame). x18 is an ordinary
 * register on Linux; elsewhere the platform owns it. With SVE the predicates are listed as well.
 *
 * FPCR holds only control bits (the status is in FPSR), so no mask is needed. Branch target
 * identification: the jump targets begin with `bti j` (the thunk with `bti jc`), written as hints
 * that any assembler accepts. Pointer authentication: a return address is signed with the stack
 * pointer of its frame, which is the same after a switch and back.
 */
#ifndef BZ_CTX_AARCH64_H
#define BZ_CTX_AARCH64_H

#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define BZ_CTX_BTI_J "hint #36\n\t"
#define BZ_CTX_BTI_JC "hint #38\n\t"
#else
#define BZ_CTX_BTI_J ""
#define BZ_CTX_BTI_JC ""
#endif

#if defined(__linux__)
#define BZ_CTX_X18 , "x18"
#else
#define BZ_CTX_X18
#endif

#if defined(__ARM_FEATURE_SVE)
#define BZ_CTX_SVE                                                                            \
    , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", \
        "p14", "p15"
#else
#define BZ_CTX_SVE
#endif

#define BZ_CTX_CLOBBERED                                                                           \
    "x3", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",    \
        "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1",   \
        "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",  \
        "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", \
        "v29", "v30", "v31", "cc", "memory" BZ_CTX_X18 BZ_CTX_SVE

#define BZ_FPCW_DEFAULT ((uint64_t)0)

static BZ_ALWAYS_INLINE uint64_t bz_fpcw_read(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}

static inline void bz_fpcw_load(uint64_t fpcw)
{
    __asm__ volatile("msr fpcr, %0" ::"r"(fpcw));
}

struct bz_fpcw {
    uint64_t word;
};

static BZ_ALWAYS_INLINE void bz_fpcw_save(struct bz_fpcw *w)
{
    w->word = bz_fpcw_read();
}

static BZ_ALWAYS_INLINE void bz_fpcw_restore(const struct bz_fpcw *w)
{
    bz_fpcw_load(w->word);
}

static BZ_ALWAYS_INLINE bool bz_fpcw_is_same(const struct bz_fpcw *a, const struct bz_fpcw *b)
{
    return BZ_LIKELY(a->word == b->word);
}

static inline struct bz_fpcw bz_fpcw_of(uint64_t fpcw)
{
    return (struct bz_fpcw){fpcw};
}

static BZ_ALWAYS_INLINE void bz_ctx_jump(struct bz_ctx *to, struct bz_ctx_landing *l)
{
    register bz_ctx_hook *hook __asm__("x0") = l->hook;
    register void *arg __asm__("x1") = l->arg;
    register struct bz_ctx *left __asm__("x2") = l->left;
    register struct bz_ctx *target __asm__("x4") = to;
    __asm__ volatile("adr x9, 1f\n\t"
                     "mov x10, sp\n\t"
                     "stp x10, x29, [x2]\n\t"
                     "str x9, [x2, #16]\n\t"
                     "ldp x10, x29, [x4]\n\t"
                     "ldr x11, [x4, #16]\n\t"
                     "mov sp, x10\n\t"
                     "br x11\n"
                     "1:\n\t" BZ_CTX_BTI_J
                     : "+r"(hook), "+r"(arg), "+r"(left), "+r"(target)
                     :
                     : BZ_CTX_CLOBBERED);
    *l = (struct bz_ctx_landing){hook, arg, left};
}

BZ_NORETURN static BZ_ALWAYS_INLINE void bz_ctx_jump_last(struct bz_ctx *to,
                                                          struct bz_ctx_landing *l)
{
    register bz_ctx_hook *hook __asm__("x0") = l->hook;
    register void *arg __asm__("x1") = l->arg;
    register struct bz_ctx *left __asm__("x2") = l->left;
    register struct bz_ctx *target __asm__("x4") = to;
    __asm__ volatile("ldp x10, x29, [x4]\n\t"
                     "ldr x11, [x4, #16]\n\t"
                     "mov sp, x10\n\t"
                     "br x11"
                     :
                     : "r"(hook), "r"(arg), "r"(left), "r"(target)
                     : "x10", "x11", "memory");
    __builtin_unreachable();
}

/* The guarded control stack of newer CPUs is not supported either; our compilers do not emit it. */
static inline uint64_t bz_ctx_shadow_stack(void)
{
    return 0;
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
    "    .cfi_undefined x30\n"                           \
    "    " BZ_CTX_BTI_JC "\n"                            \
    "    mov x3, x2\n"                                   \
    "    mov x2, x1\n"                                   \
    "    mov x1, x0\n"                                   \
    "    mov x0, sp\n"                                   \
    "    ldr x9, [x0, #16]\n"                            \
    "    blr x9\n"                                       \
    "    brk #1\n"                                       \
    "    .cfi_endproc\n"                                 \
    ".size bz_ctx_thunk, . - bz_ctx_thunk\n"             \
    ".popsection\n"

#endif
