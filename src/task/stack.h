/*
 * stack.h - stacks for code that may wait: large reservations, memory only for touched pages,
 * guards, and reuse while warm.
 *
 *     bz_stack_pool    one per runtime: slabs of stacks, in size classes, behind a lock
 *     bz_stack_cache   one per owner (a machine): a few warm stacks of each class, no lock
 *     struct bz_stack  the control block of one stack, at its own top
 *
 *        one stack of a slab                                       the control block of its neighbour
 *     |guard|  low ........ untouched ........ | kept | frames <- ctl || guard |
 *
 * The control block is on the page that the first frame touches anyway, so a stack in use costs one
 * page of memory, 4 KiB, plus its share of page tables. Touched pages that are no longer needed are
 * freed: see "depth" in stack.c.
 *
 * The kind of guard depends on the system, and every stack knows its kind: page-table markers (any
 * number of them), page protection (thousands) or, when both are exhausted, a canary. A canary is a
 * pattern at the low end that is checked whenever the stack is parked or given back. It detects an
 * overflow afterwards and aborts; it cannot prevent it. With BZ_STACK_GUARDS_REQUIRED a take
 * returns -errno instead of a stack with a canary.
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
    BZ_STACK_8M, /* for libraries with large frames */
    BZ_STACK_CLASSES
};

size_t bz_stack_class_bytes(enum bz_stack_class class);
/* Return the smallest class of that many bytes; BZ_STACK_CLASSES if there is none. */
enum bz_stack_class bz_stack_class_for(uint64_t bytes);

enum bz_stack_guards { BZ_STACK_GUARDS_BEST, BZ_STACK_GUARDS_REQUIRED };

enum bz_stack_guard_kind { /* the first two are results of bz_os_slab_guard */
                           BZ_STACK_GUARD_LIGHT = BZ_OS_GUARD_LIGHT,
                           BZ_STACK_GUARD_PROTECT = BZ_OS_GUARD_PROTECT,
                           BZ_STACK_GUARD_CANARY
};

enum {
    BZ_STACK_NAME_MAX = 32,  /* bytes of a name, the final 0 included */
    BZ_STACK_CACHE_MAX = 64, /* stacks of one class in a cache */
    BZ_STACK_IDLE_MAX = 1024 /* default of `idle_max` */
};

struct bz_stack_slab; /* stack_pool.c */
struct bz_trap;

/* The control block. Only the owner, which took the stack, accesses it. */
struct bz_stack {
    struct bz_ctx ctx;          /* the context on it; used by the owner */
    char *low;                  /* the lowest usable byte; constant */
    char *claim_low;            /* above it there is room for a child: claim.c; constant */
    struct bz_stack_slab *slab; /* constant */
    struct bz_link idle;        /* used only while in the pool; guarded by the pool's lock */
    uint8_t class;              /* enum bz_stack_class; constant */
    uint8_t guard;              /* enum bz_stack_guard_kind; constant */
    uint8_t is_wide;            /* was used below its top page: stack.c, depth */
    uint8_t deep_left;          /* shallow uses until its deep pages are freed; 0: it has none */
    uint8_t parks_left;   /* parks until the next bz_stack_trim, which sets it; used by the owner */
    uint32_t note;        /* Valgrind's id of it */
    uint64_t *mark;       /* the watermark in use: stack.c, depth */
    struct bz_trap *trap; /* where a fault of the code on it lands: actor/trap.c. NULL: nowhere */
    char name[BZ_STACK_NAME_MAX];
};

struct bz_stack_config {
    const struct bz_os *os;       /* NULL: Linux */
    const blitz_allocator *alloc; /* NULL: the C library's. For slabs' descriptors. */
    enum bz_stack_guards guards;
    uint32_t idle_max; /* touched stacks of a class that the pool keeps idle; 0: the default */
};

struct bz_stack_pool {
    const struct bz_os *os;
    blitz_allocator alloc;
    enum bz_stack_guards guards;
    uint32_t idle_max;
    size_t claim_bytes; /* the room that a child is promised: claim.c. 0 until its owner sets it */
    size_t page;
    struct bz_lock lock;
    struct bz_list slabs;   /* all of them; guarded by lock */
    struct bz_list watched; /* used by overflow.c; guarded by its lock */
    struct bz_stack_kind {
        size_t nominal_bytes;      /* nominal size of the class; constant */
        size_t bytes, guard_bytes; /* distance of two stacks, size of a guard; constant */
        struct bz_list open;       /* slabs with available stacks; guarded by lock */
        uint32_t slabs, idle;      /* number of slabs; number of idle stacks; guarded by lock */
    } kind[BZ_STACK_CLASSES];
};

/* The warm stacks of an owner. Bit 0 of an entry: its deep pages may be freed. */
struct bz_stack_cache {
    struct bz_stack_pool *pool;
    struct bz_stack_warm {
        uint32_t count;
        uintptr_t entry[BZ_STACK_CACHE_MAX];
    } warm[BZ_STACK_CLASSES];
};

/*
 * Make a pool. Reserves nothing yet.
 * Owns:    the caller owns the memory and must not move it; copies the config and the allocator.
 * Returns: 0, -EINVAL (an unknown kind of guards).
 */
BZ_MUST_USE int bz_stack_pool_init(struct bz_stack_pool *p, const struct bz_stack_config *config);

/* Destroy a pool; unmap all slabs. Abort if a stack or a cache is still in use. */
void bz_stack_pool_fini(struct bz_stack_pool *p);

/* Free the memory of all idle stacks, and the empty slabs. Any thread. */
void bz_stack_pool_trim(struct bz_stack_pool *p);

/* The number of stacks in caches and in use. Any thread; takes the lock. */
size_t bz_stack_pool_used(struct bz_stack_pool *p);

/* Find the stack that contains `address` (guard, canary or frames), or NULL. Gives up if the
 * lock is not free soon, and accesses no stack: for crash handlers. *out_low is the start of its
 * guard. */
struct bz_stack *bz_stack_pool_find(struct bz_stack_pool *p, const void *address, char **out_low);

/* Check the invariants of stack_pool.c; abort with a message if one is broken. Takes the lock. */
void bz_stack_pool_check(struct bz_stack_pool *p);

/* Owns: the caller owns the cache's memory. One thread at a time may use a cache. */
void bz_stack_cache_init(struct bz_stack_cache *c, struct bz_stack_pool *p);
void bz_stack_cache_fini(struct bz_stack_cache *c); /* its stacks go to the pool */

/* Free the deep pages of all cached stacks, when the owner does not expect to need them soon. */
void bz_stack_cache_trim(struct bz_stack_cache *c);

/*
 * Take a stack of this class, without a name or context.
 * Owns:    the caller owns it until bz_stack_give.
 * Returns: 0, -EINVAL (no such class), -ENOMEM (address space, descriptor, or with
 *          BZ_STACK_GUARDS_REQUIRED the limit on guards), -ENOSYS (guards required, none here).
 */
BZ_MUST_USE int bz_stack_take(struct bz_stack_cache *c, enum bz_stack_class class,
                              struct bz_stack **out);

/*
 * Give a stack back. The caller may still run on it, near its top, if it leaves before the next
 * take from the same cache: the stack given last never goes to the pool. A context on it has ended
 * (bz_ctx_fini) or is about to end.
 */
void bz_stack_give(struct bz_stack_cache *c, struct bz_stack *s);

/*
 * Call before a context parks on `s`: check the canary, and free deep pages of an earlier user.
 * Takes nanoseconds, unless there are pages to free. Abort, with the fiber's name, if the canary is
 * overwritten. Sets parks_left: call this at every park of a stack with a canary, and at every
 * BZ_STACK_SETTLE_EVERYth park of a stack with a guard.
 */
enum { BZ_STACK_SETTLE_EVERY = 8 };
void bz_stack_trim(struct bz_stack *s);

/* Set the name for messages, truncated to BZ_STACK_NAME_MAX - 1 bytes; NULL for none. A give clears
 * it. */
void bz_stack_name(struct bz_stack *s, const char *name);

/* The end of the usable part, which starts at s->low. 16-aligned. */
static inline void *bz_stack_top(struct bz_stack *s)
{
    return (void *)((uintptr_t)s & ~(uintptr_t)15);
}
static inline size_t bz_stack_bytes(struct bz_stack *s)
{
    return (size_t)((char *)bz_stack_top(s) - s->low);
}

#endif
