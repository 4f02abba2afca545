/*
 * Boost.Context: jump_fcontext, the assembly beneath its classes and so its fastest form. It returns
 * the context that was left, which we store where the next hop finds it.
 */
#include <boost/context/detail/fcontext.hpp>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace ctx = boost::context::detail;

struct place {
    ctx::fcontext_t at;
    void (*fn)(void *);
    void *arg;
};

/* `data` is where to store the previous context. */
static inline void place_hop(struct place *from, struct place *to)
{
    ctx::transfer_t t = ctx::jump_fcontext(to->at, &from->at);
    *static_cast<ctx::fcontext_t *>(t.data) = t.fctx;
}
#define place_suspend place_hop /* it is a function already */
static void place_make(struct place *p, void (*fn)(void *), void *arg);
#include "cases.h"

static struct place *beginner; /* whom place_make is making */

static void enter(ctx::transfer_t t)
{
    struct place *me = beginner;
    t = ctx::jump_fcontext(t.fctx,
                           nullptr); /* back to place_make: from now on hops are all alike */
    *static_cast<ctx::fcontext_t *>(t.data) = t.fctx;
    me->fn(me->arg);
}

static void place_make(struct place *p, void (*fn)(void *), void *arg)
{
    std::size_t size = 64 << 10;
    void *stack = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE) != 0)
        bench_die("no stack");
    p->fn = fn;
    p->arg = arg;
    beginner = p;
    p->at = ctx::make_fcontext(static_cast<char *>(stack) + size, size - 4096, enter);
    p->at = ctx::jump_fcontext(p->at, nullptr).fctx;
}
