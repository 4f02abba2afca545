/*
 * ctx_x86_64_windows.h - the switch for x86_64 with the calling convention of Windows. See ctx.h for the contract.
 *
 * The registers are those of ctx_x86_64.h, except in the thunk, which passes arguments by the convention: rcx, rdx, r8, r9, and
 * 32 bytes of room for them on the stack. This convention preserves rsi, rdi and xmm6 to xmm15, too. They are in the list of
 * clobbered registers, so the compiler saves them at a site that uses them.
 *
 * Bounds. Windows keeps the bounds of a thread's stack in the thread block. The base, the high end, is at gs:0x8. The limit, the
 * lowest byte in use, is at gs:0x10. The start of the allocation is at gs:0x1478. Exceptions, longjmp and the growth of a stack read
 * them, and an exception whose frames are elsewhere ends the process. So a switch loads those of the target. It saves only the limit: the
 * stack of a thread grows while the thread runs, and nothing else changes. The bounds change just before the stack pointer; the
 * instructions in between cannot fault.
 *
 * Unwinding: the unwind information of the thunk says that its caller's address is above the room for arguments. There a fresh stack
 * has a 0, which ends every walk.
 */
#ifndef BZ_CTX_X86_64_WINDOWS_H
#define BZ_CTX_X86_64_WINDOWS_H

/* The assembly depends on their place behind sp, fp and pc. */
#define BZ_CTX_BOUNDS  \
    void *stack_base;  \
    void *stack_limit; \
    void *stack_start;

#define BZ_CTX_LOAD_BOUNDS     \
    "movq 24(%%rcx), %%r8\n\t" \
    "movq %%r8, %%gs:0x8\n\t"  \
    "movq 32(%%rcx), %%r8\n\t" \
    "movq %%r8, %%gs:0x10\n\t" \
    "movq 40(%%rcx), %%r8\n\t" \
    "movq %%r8, %%gs:0x1478\n\t"

/* A context on a stack of ours: all of it is in use from the start. */
#define bz_ctx_bounds_set(c, low, top) \
    ((void)((c)->stack_base = (top), (c)->stack_limit = (c)->stack_start = (low)))

/* The context of the calling thread: the bounds that the thread has now. */
#define bz_ctx_bounds_read(c)                 \
    __asm__ volatile("movq %%gs:0x8, %0\n\t"  \
                     "movq %%gs:0x10, %1\n\t" \
                     "movq %%gs:0x1478, %2"   \
                     : "=&r"((c)->stack_base), "=&r"((c)->stack_limit), "=&r"((c)->stack_start))

static BZ_ALWAYS_INLINE void bz_ctx_jump(struct bz_ctx *to, struct bz_ctx_landing *l)
{
    __asm__ volatile("leaq 1f(%%rip), %%r8\n\t"
                     "movq %%rsp, 0(%%rdx)\n\t"
                     "movq %%rbp, 8(%%rdx)\n\t"
                     "movq %%r8, 16(%%rdx)\n\t"
                     "movq %%gs:0x10, %%r8\n\t"
                     "movq %%r8, 32(%%rdx)\n\t" BZ_CTX_LOAD_BOUNDS "movq 16(%%rcx), %%r8\n\t"
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
    __asm__ volatile(BZ_CTX_LOAD_BOUNDS "movq 16(%%rcx), %%r8\n\t"
                                        "movq 0(%%rcx), %%rsp\n\t"
                                        "movq 8(%%rcx), %%rbp\n\t"
                                        "jmp *%%r8"
                     :
                     : "a"(l->hook), "D"(l->arg), "d"(l->left), "c"(to)
                     : "r8", "memory");
    __builtin_unreachable();
}

#define BZ_CTX_FP_BIAS 0
#define BZ_CTX_THUNK                                \
    ".section .text$bz_ctx_thunk,\"x\"\n"           \
    ".p2align 4\n"                                  \
    ".globl bz_ctx_thunk\n"                         \
    ".def bz_ctx_thunk; .scl 2; .type 32; .endef\n" \
    ".seh_proc bz_ctx_thunk\n"                      \
    "bz_ctx_thunk:\n"                               \
    "    subq $32, %rsp\n"                          \
    "    .seh_stackalloc 32\n"                      \
    "    .seh_endprologue\n"                        \
    "    movq %rdx, %r9\n"                          \
    "    movq %rdi, %r8\n"                          \
    "    movq %rax, %rdx\n"                         \
    "    leaq 32(%rsp), %rcx\n"                     \
    "    call *16(%rcx)\n"                          \
    "    ud2\n"                                     \
    "    .seh_endproc\n"                            \
    ".text\n"

#endif
