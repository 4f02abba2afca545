/*
 * stack_pool.c - slabs of stacks, and the pool that owns them.
 *
 * A slab is one mapping that holds many stacks, so that a million stacks are a few mappings, and
 * one system call places a thousand guards. The first slab of a class is 2 MiB (32 stacks of 64
 * KiB); each further one doubles up to 64 MiB. So a small program pays for the guards and page
 * tables of a small slab, and a large one makes a thousand stacks at a time.
 *
 * The distance of two stacks is a page more than the nominal size, an odd number of pages. CPUs
 * index the TLB by the low bits of the page number. With a power of two as distance, the top pages
 * of a thousand stacks would share a few TLB sets, and every switch touches one of them. (Yield
 * among 1000 fibers on stacks of 256 KiB: 39 ns, with the odd page 28.)
 *
 * A stack in the pool is *clean* (without memory: never used, or its pages were freed) or *idle*
 * (at least its top page has memory). Clean stacks are a bitmap in the slab's descriptor, because a
 * list through them would touch them; idle stacks are linked through their control blocks. A take
 * prefers idle stacks, newest first. The pool keeps at most idle_max idle stacks of a class. If
 * there are more, it sweeps the slab that got a stack back longest ago, neighbours in one call,
 * until there are few enough. An empty slab is then unmapped, unless it is the only slab of its
 * class with stacks available: otherwise a program at the limit would map and unmap it repeatedly.
 *
 * There is one lock, never held over a system call: while slabs are mapped or unmapped and pages
 * freed, no other thread can reach the stacks in question. They count as used, or their slab is not
 * listed yet or no longer. Rejected: a lock-free pool or per-class locks (every access is already
 * the slow path of a cache, and a page fault of 1.7 us follows). Also sizes as a parameter (classes
 * keep stacks interchangeable, and one bitmap width).
 *
 * I1  For each slab: used + idle + clean == count.
 * I2  A slab is in kind->open if and only if idle + clean > 0.
 * I3  kind->idle is the sum of its slabs' idle, kind->slabs their number.
 * I4  No outside reference to a stack of an empty slab exists: `used` counts all of them.
 */
#include "task/stack_pool.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/log.h"

#define SLAB_BYTES_FIRST ((size_t)2 << 20)
#define SLAB_BYTES_MAX ((size_t)64 << 20)

static const struct {
    size_t bytes;
    const char *name; /* as /proc/self/maps shows it */
} class_of[BZ_STACK_CLASSES] = {
    [BZ_STACK_64K] = {(size_t)64 << 10, "blitz stacks 64K"},
    [BZ_STACK_256K] = {(size_t)256 << 10, "blitz stacks 256K"},
    [BZ_STACK_1M] = {(size_t)1 << 20, "blitz stacks 1M"},
    [BZ_STACK_8M] = {(size_t)8 << 20, "blitz stacks 8M"},
};

size_t bz_stack_class_bytes(enum bz_stack_class class)
{
    return class_of[class].bytes;
}

enum bz_stack_class bz_stack_class_for(uint64_t bytes)
{
    int class = 0;
    while (class < BZ_STACK_CLASSES && bytes > class_of[class].bytes)
        class ++;
    return (enum bz_stack_class) class;
}

static struct bz_stack_slab *slab_of_all(struct bz_list *node)
{
    return BZ_CONTAINER_OF(node, struct bz_stack_slab, all);
}

static struct bz_stack_slab *slab_of_open(struct bz_list *node)
{
    return BZ_CONTAINER_OF(node, struct bz_stack_slab, open);
}

static struct bz_stack *stack_of(struct bz_link *idle)
{
    return BZ_CONTAINER_OF(idle, struct bz_stack, idle);
}

/* ---- slabs ------------------------------------------------------------------------------------ */

/* Place the guard or canary at the low end of each stack. Return 0 or -errno. */
static int slab_guard(struct bz_stack_pool *p, struct bz_stack_slab *slab)
{
    const struct bz_stack_kind *kind = &p->kind[slab->class];
    struct bz_os_guards where = {0, kind->bytes, kind->guard_bytes, slab->count};
    int placed = bz_os_slab_guard(p->os, &slab->pages, BZ_OS_GUARD_BEST, &where);
    if (placed < 0) {
        if (p->guards == BZ_STACK_GUARDS_REQUIRED)
            return placed;
        bz_log_once(BLITZ_LOG_WARN,
                    "no guard pages for more stacks (error %d): from now on an overflow is found "
                    "by a canary when the fiber parks, not when it happens; see vm.max_map_count",
                    -placed);
        placed = BZ_STACK_GUARD_CANARY;
    }
    slab->guard = (uint8_t)placed;
    return 0;
}

static size_t slab_bytes(const struct bz_stack_kind *kind, uint32_t slabs)
{
    size_t bytes = SLAB_BYTES_FIRST << (slabs < 5 ? slabs : 5), each = kind->nominal_bytes;
    if (bytes < 4 * each)
        bytes = 4 * each;
    return (bytes < SLAB_BYTES_MAX ? bytes : SLAB_BYTES_MAX) / each * kind->bytes;
}

/* Make a slab that is in no list yet. Without the lock. */
static int slab_new(struct bz_stack_pool *p, enum bz_stack_class class, uint32_t slabs,
                    struct bz_stack_slab **out)
{
    const struct bz_stack_kind *kind = &p->kind[class];
    struct bz_stack_slab *slab = bz_alloc(&p->alloc, sizeof *slab, _Alignof(struct bz_stack_slab));
    if (slab == NULL)
        return -ENOMEM;
    memset(slab, 0, sizeof *slab);
    slab->pool = p;
    slab->class = (uint8_t) class;
    int err = bz_os_slab_reserve(p->os, &slab->pages, slab_bytes(kind, slabs), 0,
                                 BZ_OS_SLAB_SMALL_PAGES, class_of[class].name);
    if (err < 0)
        goto free_slab;
    slab->count = (uint32_t)(slab->pages.bytes / kind->bytes);
    if (slab->count > BZ_STACK_SLAB_MAX)
        slab->count = BZ_STACK_SLAB_MAX;
    err = slab_guard(p, slab);
    if (err < 0)
        goto release_pages;
    for (uint32_t i = 0; i < slab->count; i++)
        bz_bitset_add(slab->clean, i);
    bz_list_init(&slab->all);
    bz_list_init(&slab->open);
    *out = slab;
    return 0;

release_pages:
    bz_os_slab_release(p->os, &slab->pages);
free_slab:
    bz_free(&p->alloc, slab, sizeof *slab);
    return err;
}

static void stack_forget(struct bz_stack *s)
{
    bz_note_stack_gone(s->low, bz_stack_bytes(s), s->note);
}

/* Destroy an empty slab that is in no list any more. Without the lock. */
static void slab_unref(struct bz_stack_pool *p, struct bz_stack_slab *slab)
{
    for (struct bz_link *l = slab->idle.first; l != NULL; l = l->next)
        stack_forget(stack_of(l));
    bz_os_slab_release(p->os, &slab->pages);
    bz_free(&p->alloc, slab, sizeof *slab);
}

static bool slab_has_clean(const struct bz_stack_slab *slab)
{
    return slab->used + slab->idle.count < slab->count; /* I1 */
}

/* Under the lock: restore I2 for the slab; put it in front if it has idle stacks. */
static void slab_place(struct bz_stack_pool *p, struct bz_stack_slab *slab)
{
    struct bz_stack_kind *kind = &p->kind[slab->class];
    bz_list_remove(&slab->open);
    if (slab->idle.count > 0)
        bz_list_push_front(&kind->open, &slab->open);
    else if (slab_has_clean(slab))
        bz_list_push_back(&kind->open, &slab->open);
}

/* Under the lock: if the slab is empty and another slab has stacks available, unlink it and return
 * true. */
static bool slab_retire(struct bz_stack_pool *p, struct bz_stack_slab *slab)
{
    struct bz_stack_kind *kind = &p->kind[slab->class];
    bool is_only_one = kind->open.next == &slab->open && kind->open.prev == &slab->open;
    if (slab->used > 0 || is_only_one)
        return false;
    kind->slabs--;
    kind->idle -= (uint32_t)slab->idle.count;
    bz_list_remove(&slab->open);
    bz_list_remove(&slab->all);
    return true;
}

/* ---- sweeping --------------------------------------------------------------------------------- */

/* An optimization: pages that cannot be freed (locked ones, for example) stay, and nothing depends
 * on it. In particular a clean stack is initialised again when it is taken. */
void bz_stack_pool_discard(struct bz_stack_pool *p, char *low, size_t bytes)
{
    int err = bz_os_pages_discard(p->os, low, bytes);
    if (err < 0)
        bz_log_once(BLITZ_LOG_WARN, "pages of idle stacks cannot be given back (error %d)", -err);
}

/* Without the lock: free the pages of these stacks, all of one slab and counted as used. */
static void discard_stacks(struct bz_stack_pool *p, struct bz_stack_slab *slab,
                           struct bz_chain *stacks, uint64_t *set)
{
    size_t bytes = p->kind[slab->class].bytes;
    for (struct bz_link *l = stacks->first, *next; l != NULL; l = next) {
        next = l->next;
        bz_bitset_add(set, bz_stack_slab_index(slab, l));
        stack_forget(stack_of(l));
    }
    for (uint32_t i = 0, run; i < slab->count; i += run + 1) {
        for (run = 0; i + run < slab->count && bz_bitset_has(set, i + run); run++)
            ;
        if (run > 0) /* the guards between them stay */
            bz_stack_pool_discard(p, bz_stack_slab_low(slab, i), run * bytes);
    }
}

/* Under the lock, which is released meanwhile: make all idle stacks of the slab clean. Return true
 * if the slab is empty and the caller must unref it. */
static bool slab_sweep(struct bz_stack_pool *p, struct bz_stack_slab *slab)
{
    struct bz_chain stacks = slab->idle;
    uint32_t count = (uint32_t)stacks.count;
    uint64_t set[BZ_STACK_SLAB_MAX / 64] = {0};

    if (slab_retire(p, slab))
        return true; /* unmapping is cheaper */
    bz_chain_init(&slab->idle);
    slab->used += count; /* I1, I4: the slab cannot be retired meanwhile */
    p->kind[slab->class].idle -= count;
    slab_place(p, slab);
    bz_lock_drop(&p->lock, p->os);

    discard_stacks(p, slab, &stacks, set);

    bz_lock_take(&p->lock, p->os);
    for (unsigned w = 0; w < BZ_ARRAY_LEN(set); w++)
        slab->clean[w] |= set[w];
    slab->used -= count;
    slab_place(p, slab);
    return slab_retire(p, slab);
}

/* Under the lock, which is released meanwhile: sweep until no more than `idle_max` stacks of the
 * class are idle. After unlock the caller unrefs the slabs in `gone`. */
static void kind_sweep(struct bz_stack_pool *p, struct bz_stack_kind *kind, uint32_t idle_max,
                       struct bz_list *gone)
{
    while (kind->idle > idle_max) {
        struct bz_list *node = kind->open.prev;
        while (slab_of_open(node)->idle.count == 0) /* slabs with idle stacks are in front */
            node = node->prev;
        struct bz_stack_slab *slab = slab_of_open(node);
        if (slab_sweep(p, slab))
            bz_list_push_back(gone, &slab->all);
    }
}

static void slabs_unref(struct bz_stack_pool *p, struct bz_list *gone)
{
    for (struct bz_list *node; (node = bz_list_take_front(gone)) != NULL;)
        slab_unref(p, slab_of_all(node));
}

/* ---- take and give ---------------------------------------------------------------------------- */

/* Under the lock. */
static struct bz_stack *take_idle(struct bz_stack_pool *p, struct bz_stack_slab *slab)
{
    struct bz_link *l = bz_chain_take_front(&slab->idle);
    slab->used++;
    p->kind[slab->class].idle--;
    if (slab->idle.count == 0)
        slab_place(p, slab);
    return stack_of(l);
}

/* Under the lock. */
static struct bz_stack *take_clean(struct bz_stack_pool *p, struct bz_stack_slab *slab)
{
    int i = bz_bitset_lowest(slab->clean, BZ_STACK_SLAB_MAX / 64);
    BZ_CHECK(i >= 0, "slab %p has no clean stack", (void *)slab);
    bz_bitset_remove(slab->clean, (unsigned)i);
    slab->used++;
    if (!slab_has_clean(slab))
        slab_place(p, slab);
    return bz_stack_slab_at(slab, (uint32_t)i);
}

/* Under the lock: false if every slab of the class is full. */
static bool take_some(struct bz_stack_pool *p, enum bz_stack_class class,
                      struct bz_stack_found *out, struct bz_chain *more, uint32_t more_max)
{
    struct bz_stack_kind *kind = &p->kind[class];
    struct bz_list *first = bz_list_first(&kind->open);
    if (first == NULL)
        return false;
    out->slab = slab_of_open(first);
    out->is_fresh = out->slab->idle.count == 0;
    out->stack = out->is_fresh ? take_clean(p, out->slab) : take_idle(p, out->slab);
    while (more->count < more_max && kind->idle > 0) {
        struct bz_stack_slab *slab = slab_of_open(bz_list_first(&kind->open)); /* idle in front */
        bz_chain_push_back(more, &take_idle(p, slab)->idle);
    }
    return true;
}

int bz_stack_pool_take(struct bz_stack_pool *p, enum bz_stack_class class,
                       struct bz_stack_found *out, struct bz_chain *more, uint32_t more_max)
{
    struct bz_stack_kind *kind = &p->kind[class];
    struct bz_stack_slab *slab;

    bz_lock_take(&p->lock, p->os);
    while (!take_some(p, class, out, more, more_max)) {
        uint32_t slabs = kind->slabs;
        bz_lock_drop(&p->lock, p->os);
        int err = slab_new(p, class, slabs, &slab);
        if (err < 0)
            return err;
        bz_lock_take(&p->lock, p->os);
        kind->slabs++;
        bz_list_push_back(&p->slabs, &slab->all);
        slab_place(p, slab);
    }
    bz_lock_drop(&p->lock, p->os);
    return 0;
}

void bz_stack_pool_give(struct bz_stack_pool *p, enum bz_stack_class class, struct bz_chain *stacks)
{
    struct bz_stack_kind *kind = &p->kind[class];
    struct bz_list gone;
    struct bz_link *l;

    bz_list_init(&gone);
    bz_lock_take(&p->lock, p->os);
    while ((l = bz_chain_take_front(stacks)) != NULL) {
        struct bz_stack_slab *slab = stack_of(l)->slab;
        bz_chain_push_front(&slab->idle, l);
        slab->used--;
        kind->idle++;
        slab_place(p, slab);
    }
    kind_sweep(p, kind, p->idle_max, &gone);
    bz_lock_drop(&p->lock, p->os);
    slabs_unref(p, &gone);
}

/* ---- the pool --------------------------------------------------------------------------------- */

int bz_stack_pool_init(struct bz_stack_pool *p, const struct bz_stack_config *config)
{
    if ((unsigned)config->guards > BZ_STACK_GUARDS_REQUIRED)
        return -EINVAL;
    memset(p, 0, sizeof *p);
    p->os = config->os != NULL ? config->os : &bz_os_system;
    p->alloc = config->alloc != NULL ? *config->alloc : bz_allocator_libc;
    p->guards = config->guards;
    p->idle_max = config->idle_max != 0 ? config->idle_max : BZ_STACK_IDLE_MAX;
    p->page = bz_os_page_bytes(p->os);
    bz_lock_init_ranked(&p->lock, BZ_RANK_STACKS);
    bz_list_init(&p->slabs);
    bz_list_init(&p->watched);
    for (int i = 0; i < BZ_STACK_CLASSES; i++) {
        struct bz_stack_kind *kind = &p->kind[i];
        kind->nominal_bytes = class_of[i].bytes < 8 * p->page ? 8 * p->page : class_of[i].bytes;
        kind->bytes = kind->nominal_bytes + p->page; /* an odd number of pages: see the essay */
        kind->guard_bytes = bz_align_up(kind->nominal_bytes / 16, p->page);
        if (kind->guard_bytes > (size_t)64 << 10 && p->page < (size_t)64 << 10)
            kind->guard_bytes = (size_t)64 << 10;
        bz_list_init(&kind->open);
    }
    return 0;
}

void bz_stack_pool_trim(struct bz_stack_pool *p)
{
    struct bz_list gone;
    bz_list_init(&gone);
    bz_lock_take(&p->lock, p->os);
    for (int i = 0; i < BZ_STACK_CLASSES; i++)
        kind_sweep(p, &p->kind[i], 0, &gone);
    bz_lock_drop(&p->lock, p->os);
    slabs_unref(p, &gone);
}

void bz_stack_pool_fini(struct bz_stack_pool *p)
{
    BZ_CHECK(!bz_list_is_linked(&p->watched), "a pool ends while its overflows are watched");
    for (struct bz_list *node; (node = bz_list_take_front(&p->slabs)) != NULL;) {
        struct bz_stack_slab *slab = slab_of_all(node);
        BZ_CHECK(slab->used == 0, "%u stacks of class %d are still in use", slab->used,
                 slab->class);
        slab_unref(p, slab);
    }
}

/* A crash handler must not wait for a lock that the crashing thread may hold. */
static bool lock_soon(struct bz_stack_pool *p)
{
    for (unsigned round = 0; round < 10000; round++) {
        if (bz_lock_try(&p->lock))
            return true;
        bz_os_relax(p->os, round);
    }
    return false;
}

struct bz_stack *bz_stack_pool_find(struct bz_stack_pool *p, const void *address, char **out_low)
{
    const char *at = address;
    struct bz_stack *found = NULL;
    if (!lock_soon(p))
        return NULL;
    BZ_LIST_FOR_EACH (node, &p->slabs) {
        struct bz_stack_slab *slab = slab_of_all(node);
        if (at < slab->pages.base || at >= bz_stack_slab_low(slab, slab->count))
            continue;
        uint32_t i = bz_stack_slab_index(slab, at);
        *out_low = bz_stack_slab_low(slab, i);
        found = bz_bitset_has(slab->clean, i) ? NULL : bz_stack_slab_at(slab, i);
        break;
    }
    bz_lock_drop(&p->lock, p->os);
    return found;
}

/* ---- invariants ------------------------------------------------------------------------------- */

static void slab_check(struct bz_stack_slab *slab)
{
    uint32_t clean = 0;
    for (unsigned w = 0; w < BZ_STACK_SLAB_MAX / 64; w++)
        clean += bz_bits_count(slab->clean[w]);
    bz_chain_check(&slab->idle);
    BZ_CHECK(slab->used + slab->idle.count + clean == slab->count, "I1: %u + %zu + %u != %u",
             slab->used, slab->idle.count, clean, slab->count);
    BZ_CHECK(bz_list_is_linked(&slab->open) == (slab->idle.count + clean > 0), "I2: slab %p",
             (void *)slab);
    for (struct bz_link *l = slab->idle.first; l != NULL; l = l->next)
        BZ_CHECK(stack_of(l)->slab == slab, "stack %p of another slab", (void *)stack_of(l));
}

size_t bz_stack_pool_used(struct bz_stack_pool *p)
{
    size_t used = 0;
    bz_lock_take(&p->lock, p->os);
    BZ_LIST_FOR_EACH (node, &p->slabs)
        used += slab_of_all(node)->used;
    bz_lock_drop(&p->lock, p->os);
    return used;
}

void bz_stack_pool_check(struct bz_stack_pool *p)
{
    uint32_t slabs[BZ_STACK_CLASSES] = {0};
    size_t idle[BZ_STACK_CLASSES] = {0};
    bz_lock_take(&p->lock, p->os);
    bz_list_check(&p->slabs);
    BZ_LIST_FOR_EACH (node, &p->slabs) {
        struct bz_stack_slab *slab = slab_of_all(node);
        slab_check(slab);
        slabs[slab->class]++;
        idle[slab->class] += slab->idle.count;
    }
    for (int i = 0; i < BZ_STACK_CLASSES; i++) {
        BZ_CHECK(slabs[i] == p->kind[i].slabs, "I3: %u slabs, not %u", slabs[i], p->kind[i].slabs);
        BZ_CHECK(idle[i] == p->kind[i].idle, "I3: %zu idle, not %u", idle[i], p->kind[i].idle);
    }
    bz_lock_drop(&p->lock, p->os);
}
