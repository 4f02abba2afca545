/*
 * coro.c - see coro.h.
 *
 * The assembly saves what the ABI says a called function must keep, on the stack of the one that
 * leaves, and loads the same from the stack of the one that comes. Floating-point control words are
 * left alone: no model changes them. A fresh stack is laid out as if it had been left just before
 * the first instruction of its entry.
 */
#include "coro.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char *stack_new(size_t size)
{
    const size_t guard = 4096;
    char *memory = mmap(NULL, size + guard, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) {
        perror("model: no memory for a stack");
        exit(2);
    }
    return memory + guard;
}

#if defined(__x86_64__) || defined(__aarch64__)

void m_coro_swap(void **save, void *load);

#if defined(__x86_64__)
#define FRAME_WORDS 8 /* six registers, the entry, and one that keeps the stack aligned */
#define FRAME_ENTRY 6
__asm__(".text\n"
        ".globl m_coro_swap\n"
        ".type m_coro_swap,@function\n"
        "m_coro_swap:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp,(%rdi)\n"
        "  movq %rsi,%rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size m_coro_swap,.-m_coro_swap\n");
#else
#define FRAME_WORDS 20 /* x19-x30 and d8-d15 */
#define FRAME_ENTRY 11 /* x30, the link register */
__asm__(".text\n"
        ".globl m_coro_swap\n"
        ".type m_coro_swap,%function\n"
        "m_coro_swap:\n"
        "  sub sp,sp,#160\n"
        "  stp x19,x20,[sp]\n  stp x21,x22,[sp,#16]\n  stp x23,x24,[sp,#32]\n"
        "  stp x25,x26,[sp,#48]\n  stp x27,x28,[sp,#64]\n  stp x29,x30,[sp,#80]\n"
        "  stp d8,d9,[sp,#96]\n  stp d10,d11,[sp,#112]\n"
        "  stp d12,d13,[sp,#128]\n  stp d14,d15,[sp,#144]\n"
        "  mov x9,sp\n  str x9,[x0]\n  mov sp,x1\n"
        "  ldp x19,x20,[sp]\n  ldp x21,x22,[sp,#16]\n  ldp x23,x24,[sp,#32]\n"
        "  ldp x25,x26,[sp,#48]\n  ldp x27,x28,[sp,#64]\n  ldp x29,x30,[sp,#80]\n"
        "  ldp d8,d9,[sp,#96]\n  ldp d10,d11,[sp,#112]\n"
        "  ldp d12,d13,[sp,#128]\n  ldp d14,d15,[sp,#144]\n"
        "  add sp,sp,#160\n"
        "  ret\n"
        ".size m_coro_swap,.-m_coro_swap\n");
#endif

void m_coro_init(struct m_coro *c, size_t size)
{
    c->size = size;
    c->stack = stack_new(size);
}

void m_coro_prepare(struct m_coro *c, void (*entry)(void))
{
    uintptr_t *frame = (uintptr_t *)(void *)(c->stack + c->size) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    frame[FRAME_ENTRY] = (uintptr_t)entry;
    c->sp = frame;
}

void m_coro_switch(struct m_coro *from, struct m_coro *to)
{
    m_coro_swap(&from->sp, to->sp);
}

#else
#include <ucontext.h>

void m_coro_init(struct m_coro *c, size_t size)
{
    c->size = size;
    c->stack = stack_new(size);
    c->sp = calloc(1, sizeof(ucontext_t));
}

void m_coro_prepare(struct m_coro *c, void (*entry)(void))
{
    ucontext_t *u = c->sp;
    getcontext(u);
    u->uc_stack.ss_sp = c->stack;
    u->uc_stack.ss_size = c->size;
    u->uc_link = NULL;
    makecontext(u, entry, 0);
}

void m_coro_switch(struct m_coro *from, struct m_coro *to)
{
    if (from->sp == NULL)
        from->sp = calloc(1, sizeof(ucontext_t));
    swapcontext(from->sp, to->sp);
}
#endif
