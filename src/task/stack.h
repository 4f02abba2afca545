/*
 * stack.h - stacks for whatever must be able to wait: reserved wide, paid for by the touched page,
 * guarded, and reused while warm.
 *
 *     bz_stack_pool    one per runtime: slabs of stacks, in size classes, behind a lock
 *     bz_stack_cache   one per owner (a machine): a few warm stacks of each class, no lock
 *     struct bz_stack  the control block of one stack, at its own top
 *
 *        one stack of a slab                                       its neighbour's control block
 *     |guard|  low ........ untouched ........ | kept | frames <- ctl || guard |
 *
 * The control block lies on the page the first frame touches anyway, so a stack in use costs one
 * page of memory, 4 KiB, plus its share of page tables. A touched page that nobody needs any more
 * is given back: see "depth" in stack.c.
 *
 * What guards a stack depends on the system, and every stack knows what it got: page-table markers
 * (any number of them), page protection (thousands), or, when both are exhausted, a canary: a
 * pattern at the low end that is looked at whenever the stack is parked or given back. That finds
 * an overflow after the fact and aborts; it cannot prevent it. Whoever will not have that asks for
 * BZ_STACK_GUARDS_REQUIRED and gets -errno instead.
 */
#ifndef BZ_STACK_H
#define BZ_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/ctx.h"
#include "base/list.h"
#include "blitz/hooks.h"
#include "os/lock.h"
#include "os/os.h"

/* Nominal sizes, guard and control block included; on systems with large pages at least 4 pages. */
enum bz_stack_class {
    BZ_STACK_64K,
    BZ_STACK_256K, /* the default of a runtime */
    BZ_STACK_1M,
    BZ_STACK_8M, /* for hungry libraries */
    BZ_STACK_CLASSES
};

enum bz_stack_guards { BZ_STACK_GUARDS_BEST, BZ_STACK_GUARDS_REQUIRED };

enum bz_stack_guard_kind { /* the first two are what bz_os_slab_guard says */
                           BZ_STACK_GUARD_LIGHT = BZ_OS_GUARD_LIGHT,
                           BZ_STACK_GUARD_PROTECT = BZ_OS_GUARD_PROTECT,
                           BZ_STACK_GUARD_CANARY
};

enum {
    BZ_STACK_NAME_MAX = 32,  /* bytes of a name, the final 0 included */
    BZ_STACK_CACHE_MAX = 64, /* stacks of one class an owner keeps */
    BZ_STACK_IDLE_MAX = 1024 /* default of `idle_max` */
};

struct bz_stack_slab; /* stack_pool.c */

/* The control block. Its owner is whoever took the stack; nobody else touches it. */
struct bz_stack {
    struct bz_ctx ctx;          /* the context that stands on it; its owner's to use */
    char *low;                  /* the lowest usable byte; constant */
    struct bz_stack_slab *slab; /* constant */
    struct bz_link idle;        /* in the pool's hands only; guarded by the pool's lock */
    uint8_t class;              /* enum bz_stack_class; constant */
    uint8_t guard;              /* enum bz_stack_guard_kind; constant */
    uint8_t is_wide;            /* has been below its top page: stack.c, depth */
    uint8_t deep_left;          /* shallow uses until its deep pages go back; 0: it has none */
    uint8_t parks_left;         /* parks until the next bz_stack_settle; its user's, set there */
    uint32_t note;              /* Valgrind's id of it */
    uint64_t *mark;             /* the watermark in use: stack.c, depth */
    char name[BZ_STACK_NAME_MAX];
};

struct bz_stack_config {
    const struct bz_os *os;       /* NULL: Linux */
    const blitz_allocator *alloc; /* NULL: the C library's. For slabs' descriptors. */
    enum bz_stack_guards guards;
    uint32_t idle_max; /* touched stacks of a class the pool keeps idle; 0: the default */
};

struct bz_stack_pool {
    const struct bz_os *os;
    blitz_allocator alloc;
    enum bz_stack_guards guards;
    uint32_t idle_max;
    size_t page;
    struct bz_lock lock;
    struct bz_list slabs;   /* all of them; guarded by lock */
    struct bz_list watched; /* overflow.c's; guarded by its lock */
    struct bz_stack_kind {
        size_t nominal_bytes;      /* as the class says; constant */
        size_t bytes, guard_bytes; /* from one stack to the next, and of its guard; constant */
        struct bz_list open;       /* slabs with a stack to give; guarded by lock */
        uint32_t slabs, idle;      /* slabs; touched stacks in our hands; guarded by lock */
    } kind[BZ_STACK_CLASSES];
};

/* What an owner keeps warm: bit 0 of an entry says that deep pages are to be given back. */
struct bz_stack_cache {
    struct bz_stack_pool *pool;
    struct bz_stack_warm {
        uint32_t count;
        uintptr_t entry[BZ_STACK_CACHE_MAX];
    } warm[BZ_STACK_CLASSES];
};

/*
 * Make a pool. Reserves nothing yet.
 * Owns:    the memory is the caller's and must stay put; copies the config and the allocator.
 * Returns: 0, -EINVAL (an unknown kind of guards).
 */
BZ_MUST_USE int bz_stack_pool_init(struct bz_stack_pool *p, const struct bz_stack_config *config);

/* Every stack has come back and every cache is gone; aborts otherwise. Unmaps all slabs. */
void bz_stack_pool_fini(struct bz_stack_pool *p);

/* Give back the memory of all idle stacks, and the slabs that are empty. Any thread. */
void bz_stack_pool_trim(struct bz_stack_pool *p);

/* How many stacks are in the hands of caches and users. Any thread; takes the lock. */
size_t bz_stack_pool_used(struct bz_stack_pool *p);

/* The stack whose guard, canary or frames `address` lies in, or NULL. Takes the lock only if it is
 * free soon, and touches no stack: for crash handlers. *out_low is where its guard begins. */
struct bz_stack *bz_stack_pool_find(struct bz_stack_pool *p, const void *address, char **out_low);

/* The invariants of stack_pool.c; aborts with what it saw. Takes the lock. */
void bz_stack_pool_check(struct bz_stack_pool *p);

/* Owns: the cache's memory is the caller's. One thread at a time may use a cache. */
void bz_stack_cache_init(struct bz_stack_cache *c, struct bz_stack_pool *p);
void bz_stack_cache_fini(struct bz_stack_cache *c); /* its stacks go to the pool */

/* The owner expects not to need them soon: deep pages of all cached stacks go back. */
void bz_stack_cache_trim(struct bz_stack_cache *c);

/*
 * A stack of that class, unnamed, with no context made on it.
 * Owns:    the caller, until bz_stack_give.
 * Returns: 0, -EINVAL (no such class), -ENOMEM (address space, descriptor, or with
 *          BZ_STACK_GUARDS_REQUIRED the limit on guards), -ENOSYS (guards required, none here).
 */
BZ_MUST_USE int bz_stack_take(struct bz_stack_cache *c, enum bz_stack_class class,
                              struct bz_stack **out);

/*
 * Give a stack back. The caller may still stand on it, near its top, if it leaves before anybody
 * can take from the same cache: what was given last is never what is passed on to the pool.
 * A context made on it was ended (bz_ctx_fini) or is about to be left for good.
 */
void bz_stack_give(struct bz_stack_cache *c, struct bz_stack *s);

/*
 * Whoever stands on `s` is about to park there: the canary is looked at, and deep pages an earlier
 * user left go back. Nanoseconds, unless there is something to do. Aborts if the canary is dead,
 * with the fiber's name. Sets parks_left: a stack with a canary is to be settled at every park, one
 * with a guard at every BZ_STACK_SETTLE_EVERYth.
 */
enum { BZ_STACK_SETTLE_EVERY = 8 };
void bz_stack_settle(struct bz_stack *s);

/* For messages. Cut to BZ_STACK_NAME_MAX - 1 bytes; NULL for none. Not kept when it is given back. */
void bz_stack_name(struct bz_stack *s, const char *name);

/* The usable part: from s->low to here. 16-aligned. */
static inline void *bz_stack_top(struct bz_stack *s)
{
    return (void *)((uintptr_t)s & ~(uintptr_t)15);
}
static inline size_t bz_stack_bytes(struct bz_stack *s)
{
    return (size_t)((char *)bz_stack_top(s) - s->low);
}

#endif
