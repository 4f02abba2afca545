/*
 * spot_own.c - the switch of the simulator in a few instructions. See spot.h.
 *
 * The switch is a called function: it pushes what such a function must preserve, exchanges the stack pointers and pops.
 * Rejected: the switch of src/arch. Its tests run in simulation; with one switch for both, a bug of it would look like a bug
 * of the simulator. Rejected as well: the C library's setjmp and longjmp, which cannot begin on a fresh stack.
 *
 * A fresh stack is laid out as if it had been left just before the first instruction of `bz_sim_spot_first`, which calls
 * main(arg). Its frame pointer is zero, so that a walk along the frames ends there, and its unwind information says "no
 * caller". The signal mask stays the thread's: no simulated thread changes it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/compiler.h"
#include "sim/spot.h"

void bz_sim_spot_swap(void **from_sp, void *to_sp);
extern const char bz_sim_spot_first[] BZ_HIDDEN;

/* Assembly in groups of instructions. */
/* clang-format off */
#define BEGIN(name, mark) \
    ".text\n.p2align 4\n.globl " name "\n.hidden " name "\n.type " name "," mark "function\n" name ":\n"
#define END(name) ".size " name ",.-" name "\n"

#if defined(__x86_64__)
/* Control words; r15 r14 r13 r12 rbx rbp; the address. main is in r12, its argument in r13. */
enum { WORDS = 8, AT_CONTROL = 0, AT_ARG = 3, AT_MAIN = 4, AT_FIRST = 7 };
__asm__(BEGIN("bz_sim_spot_swap", "@")
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  subq $8,%rsp\n  stmxcsr (%rsp)\n  fnstcw 4(%rsp)\n"
        "  movq %rsp,(%rdi)\n  movq %rsi,%rsp\n"
        "  ldmxcsr (%rsp)\n  fldcw 4(%rsp)\n  addq $8,%rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        END("bz_sim_spot_swap")
        BEGIN("bz_sim_spot_first", "@")
        "  .cfi_startproc\n  .cfi_undefined rip\n"
        "  movq %r13,%rdi\n  call *%r12\n  ud2\n"
        "  .cfi_endproc\n"
        END("bz_sim_spot_first"));
static uintptr_t control_now(void)
{
    uint32_t mxcsr;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uintptr_t)x87 << 32 | mxcsr;
}
#elif defined(__aarch64__)
/* x19 to x30; d8 to d15; fpcr and a word that keeps the stack aligned. main is in x19, its argument in x20. */
enum { WORDS = 22, AT_MAIN = 0, AT_ARG = 1, AT_FIRST = 11, AT_CONTROL = 20 };
__asm__(BEGIN("bz_sim_spot_swap", "%")
        "  sub sp,sp,#176\n"
        "  stp x19,x20,[sp]\n  stp x21,x22,[sp,#16]\n  stp x23,x24,[sp,#32]\n"
        "  stp x25,x26,[sp,#48]\n  stp x27,x28,[sp,#64]\n  stp x29,x30,[sp,#80]\n"
        "  stp d8,d9,[sp,#96]\n  stp d10,d11,[sp,#112]\n  stp d12,d13,[sp,#128]\n  stp d14,d15,[sp,#144]\n"
        "  mrs x9,fpcr\n  str x9,[sp,#160]\n"
        "  mov x9,sp\n  str x9,[x0]\n  mov sp,x1\n"
        "  ldr x9,[sp,#160]\n  msr fpcr,x9\n"
        "  ldp x19,x20,[sp]\n  ldp x21,x22,[sp,#16]\n  ldp x23,x24,[sp,#32]\n"
        "  ldp x25,x26,[sp,#48]\n  ldp x27,x28,[sp,#64]\n  ldp x29,x30,[sp,#80]\n"
        "  ldp d8,d9,[sp,#96]\n  ldp d10,d11,[sp,#112]\n  ldp d12,d13,[sp,#128]\n  ldp d14,d15,[sp,#144]\n"
        "  add sp,sp,#176\n  ret\n"
        END("bz_sim_spot_swap")
        BEGIN("bz_sim_spot_first", "%")
        "  .cfi_startproc\n  .cfi_undefined x30\n"
        "  mov x0,x20\n  blr x19\n  brk #1\n"
        "  .cfi_endproc\n"
        END("bz_sim_spot_first"));
static uintptr_t control_now(void)
{
    uintptr_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}
#elif defined(__riscv) && __riscv_xlen == 64 && defined(__riscv_flen)
/* ra; s0 to s11; fs0 to fs11; frm. main is in s1, its argument in s2. */
enum { WORDS = 26, AT_FIRST = 0, AT_MAIN = 2, AT_ARG = 3, AT_CONTROL = 25 };
__asm__(BEGIN("bz_sim_spot_swap", "@")
        "  addi sp,sp,-208\n"
        "  sd ra,0(sp)\n  sd s0,8(sp)\n  sd s1,16(sp)\n  sd s2,24(sp)\n  sd s3,32(sp)\n  sd s4,40(sp)\n"
        "  sd s5,48(sp)\n  sd s6,56(sp)\n  sd s7,64(sp)\n  sd s8,72(sp)\n  sd s9,80(sp)\n  sd s10,88(sp)\n"
        "  sd s11,96(sp)\n  fsd fs0,104(sp)\n  fsd fs1,112(sp)\n  fsd fs2,120(sp)\n  fsd fs3,128(sp)\n"
        "  fsd fs4,136(sp)\n  fsd fs5,144(sp)\n  fsd fs6,152(sp)\n  fsd fs7,160(sp)\n  fsd fs8,168(sp)\n"
        "  fsd fs9,176(sp)\n  fsd fs10,184(sp)\n  fsd fs11,192(sp)\n  frrm t0\n  sd t0,200(sp)\n"
        "  sd sp,0(a0)\n  mv sp,a1\n"
        "  ld ra,0(sp)\n  ld s0,8(sp)\n  ld s1,16(sp)\n  ld s2,24(sp)\n  ld s3,32(sp)\n  ld s4,40(sp)\n"
        "  ld s5,48(sp)\n  ld s6,56(sp)\n  ld s7,64(sp)\n  ld s8,72(sp)\n  ld s9,80(sp)\n  ld s10,88(sp)\n"
        "  ld s11,96(sp)\n  fld fs0,104(sp)\n  fld fs1,112(sp)\n  fld fs2,120(sp)\n  fld fs3,128(sp)\n"
        "  fld fs4,136(sp)\n  fld fs5,144(sp)\n  fld fs6,152(sp)\n  fld fs7,160(sp)\n  fld fs8,168(sp)\n"
        "  fld fs9,176(sp)\n  fld fs10,184(sp)\n  fld fs11,192(sp)\n  ld t0,200(sp)\n  fsrm t0\n"
        "  addi sp,sp,208\n  ret\n"
        END("bz_sim_spot_swap")
        BEGIN("bz_sim_spot_first", "@")
        "  .cfi_startproc\n  .cfi_undefined ra\n"
        "  mv a0,s2\n  jalr s1\n  ebreak\n"
        "  .cfi_endproc\n"
        END("bz_sim_spot_first"));
static uintptr_t control_now(void)
{
    uintptr_t frm;
    __asm__ volatile("frrm %0" : "=r"(frm));
    return frm;
}
#else
#error "the simulator has no switch for this CPU: see spot_own.c"
#endif
/* clang-format on */

void bz_sim_spot_init(struct sim_spot *p, void *stack, size_t stack_bytes, void (*main)(void *),
                      void *arg)
{
    uintptr_t top = ((uintptr_t)stack + stack_bytes) & ~(uintptr_t)15;
    uintptr_t *word = (uintptr_t *)top - WORDS;
    BZ_CHECK(stack_bytes >= (WORDS + 2) * sizeof *word, "a stack of %zu bytes", stack_bytes);
    memset(word, 0, WORDS * sizeof *word);
    word[AT_MAIN] = (uintptr_t)main;
    word[AT_ARG] = (uintptr_t)arg;
    word[AT_FIRST] = (uintptr_t)bz_sim_spot_first;
    word[AT_CONTROL] = control_now();
    p->sp = word;
}

BZ_NOINLINE void bz_sim_spot_switch(struct sim_spot *from, const struct sim_spot *to)
{
    bz_sim_spot_swap(&from->sp, to->sp);
}
