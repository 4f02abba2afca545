/*
 * ctx_riscv64.h - the switch for 64-bit RISC-V, the lp64 calling conventions. See ctx.h for the
 * contract.
 *
 * Registers through the switch: a0 hook, a1 its argument, a2 the left context; a4 is the target, t0
 * and t1 scratch. The switch stores sp, s0 (the frame pointer) and the address. gp and tp belong to
 * the program and the thread and stay unchanged. Everything else is listed as clobbered. The vector
 * state is listed where the compiler may use it.
 *
 * The control word is the rounding mode, frm; the flags beside it in fcsr are status and are
 * ignored. A frame record is below the frame pointer here: {fp, ra} at fp - 16.
 */
#ifndef BZ_CTX_RISCV64_H
#define BZ_CTX_RISCV64_H

#if defined(__riscv_flen)
#define BZ_CTX_FLOAT                                                                               \
    , "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10", "ft11", "fs0", \
        "fs1", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "fa0",      \
        "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7"
#else
#define BZ_CTX_FLOAT
#endif

#if defined(__riscv_vector)
#define BZ_CTX_VECTOR                                                                              \
    , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",      \
        "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", \
        "v27", "v28", "v29", "v30", "v31", "vl", "vtype"
#else
#define BZ_CTX_VECTOR
#endif

#define BZ_CTX_CLOBBERED                                                                      \
    "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a3", "a5", "a6", "a7", "s1", "s2", "s3", \
        "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "memory" BZ_CTX_FLOAT BZ_CTX_VECTOR

#define BZ_FPCW_DEFAULT ((uint64_t)0)

#if defined(__riscv_flen)
static BZ_ALWAYS_INLINE uint64_t bz_fpcw_read(void)
{
    uint64_t frm;
    __asm__ volatile("frrm %0" : "=r"(frm));
    return frm;
}

static inline void bz_fpcw_load(uint64_t fpcw)
{
    __asm__ volatile("fsrm %0" ::"r"(fpcw));
}
#else
static BZ_ALWAYS_INLINE uint64_t bz_fpcw_read(void)
{
    return 0;
}
static inline void bz_fpcw_load(uint64_t fpcw)
{
    (void)fpcw;
}
#endif

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
    register bz_ctx_hook *hook __asm__("a0") = l->hook;
    register void *arg __asm__("a1") = l->arg;
    register struct bz_ctx *left __asm__("a2") = l->left;
    register struct bz_ctx *target __asm__("a4") = to;
    __asm__ volatile("lla t0, 1f\n\t"
                     "sd sp, 0(a2)\n\t"
                     "sd s0, 8(a2)\n\t"
                     "sd t0, 16(a2)\n\t"
                     "ld t1, 16(a4)\n\t"
                     "ld sp, 0(a4)\n\t"
                     "ld s0, 8(a4)\n\t"
                     "jr t1\n"
                     "1:\n"
                     : "+r"(hook), "+r"(arg), "+r"(left), "+r"(target)
                     :
                     : BZ_CTX_CLOBBERED);
    *l = (struct bz_ctx_landing){hook, arg, left};
}

BZ_NORETURN static BZ_ALWAYS_INLINE void bz_ctx_jump_last(struct bz_ctx *to,
                                                          struct bz_ctx_landing *l)
{
    register bz_ctx_hook *hook __asm__("a0") = l->hook;
    register void *arg __asm__("a1") = l->arg;
    register struct bz_ctx *left __asm__("a2") = l->left;
    register struct bz_ctx *target __asm__("a4") = to;
    __asm__ volatile("ld t1, 16(a4)\n\t"
                     "ld sp, 0(a4)\n\t"
                     "ld s0, 8(a4)\n\t"
                     "jr t1"
                     :
                     : "r"(hook), "r"(arg), "r"(left), "r"(target)
                     : "t1", "memory");
    __builtin_unreachable();
}

/* The shadow stack extension is not supported either; our compilers do not emit it. */
static inline uint64_t bz_ctx_shadow_stack(void)
{
    return 0;
}

#define BZ_CTX_FP_BIAS 16
#define BZ_CTX_THUNK                                     \
    ".pushsection .text.bz_ctx_thunk,\"ax\",@progbits\n" \
    ".p2align 2\n"                                       \
    ".globl bz_ctx_thunk\n"                              \
    ".hidden bz_ctx_thunk\n"                             \
    ".type bz_ctx_thunk, @function\n"                    \
    "bz_ctx_thunk:\n"                                    \
    "    .cfi_startproc\n"                               \
    "    .cfi_undefined ra\n"                            \
    "    mv a3, a2\n"                                    \
    "    mv a2, a1\n"                                    \
    "    mv a1, a0\n"                                    \
    "    mv a0, sp\n"                                    \
    "    ld t1, 16(a0)\n"                                \
    "    jalr t1\n"                                      \
    "    ebreak\n"                                       \
    "    .cfi_endproc\n"                                 \
    ".size bz_ctx_thunk, . - bz_ctx_thunk\n"             \
    ".popsection\n"

#endif
