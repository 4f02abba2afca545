/*
 * The C library's swapcontext, which saves the signal mask with a system call: that is what it is
 * known for, and there is no supported way without.
 */
#include <sys/mman.h>
#include <ucontext.h>

#include <stddef.h>
#include <stdint.h>

struct place {
    ucontext_t uc;
};

static inline void place_hop(struct place *from, struct place *to)
{
    swapcontext(&from->uc, &to->uc);
}
#define place_suspend place_hop /* it is a function already */
static void place_make(struct place *p, void (*fn)(void *), void *arg);
#include "cases.h"

static void enter(unsigned fn_high, unsigned fn_low, unsigned arg_high, unsigned arg_low)
{
    void (*fn)(void *) = (void (*)(void *))((uintptr_t)fn_high << 32 | fn_low);
    fn((void *)((uintptr_t)arg_high << 32 | arg_low));
}

static void place_make(struct place *p, void (*fn)(void *), void *arg)
{
    size_t size = 64 << 10;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE) != 0)
        bench_die("no stack");
    getcontext(&p->uc);
    p->uc.uc_stack.ss_sp = stack;
    p->uc.uc_stack.ss_size = size;
    p->uc.uc_link = NULL;
    makecontext(&p->uc, (void (*)(void))enter, 4, (unsigned)((uintptr_t)fn >> 32),
                (unsigned)(uintptr_t)fn, (unsigned)((uintptr_t)arg >> 32),
                (unsigned)(uintptr_t)arg);
}
