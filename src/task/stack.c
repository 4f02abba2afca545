/*
 * stack.c - caches of warm stacks, and the depth to which stacks were used.
 *
 * A cache is an array per class, last in first out: the top page of the stack returned last is in
 * the CPU's cache. It has one user (the machine that owns it), so take and give are a few
 * instructions. An empty cache takes from the pool one stack and a batch of idle ones, if there are
 * any. A full cache gives its older half to the pool.
 *
 * Depth. A stack that was once used deeply keeps those pages until they are freed. That costs a
 * system call (2 us) and later a page fault for each page used again, more than most uses of a
 * stack. So two questions must be answered cheaply.
 *
 * How deep was the stack used? The stack pointer at a park does not tell, because the deep call has
 * returned by then. So there is a *watermark* in the stack, a few words of a pattern, and a frame
 * that reached it has most likely overwritten it. (A frame may skip it with an array that it never
 * writes; then the pages below stay until the stack is swept. This is an optimization, not an
 * invariant.) The mark must not cost a page: at first it is at the low end of the top page, which
 * is in use anyway. When it is found overwritten, the stack is *wide* from then on, and the mark
 * moves to the low end of the kept zone, four pages deep. Rejected: mincore or pagemap (a system
 * call for the common answer "nothing"), and a mark on every level (each would touch its page).
 *
 * When to free? A stack whose users all go deep should keep its pages. The pages below the kept
 * zone are freed only when the mark was found intact DEEP_USES times in a row: shallow users on a
 * deep stack. A stack that is not among the HOT newest ones of its cache, or goes to the pool, will
 * probably not be used soon: its deep pages are freed at once.
 *
 *     top  +-----------------+
 *          | control block   |
 *          | frames          |  top page: always in use
 *          | mark, at first  |
 *          +-----------------+
 *          |                 |  kept zone: KEPT_PAGES with the top page; kept once used
 *          | mark, when wide |
 *          +-----------------+
 *          |                 |  deep pages: freed
 *     low  | canary, if any  |  (its page stays)
 *          +-----------------+
 *          | guard           |
 *          +-----------------+
 *
 * I1  When the mark is written it is below all live data of the user, by at least SLACK. So neither
 *     the mark nor a discard of the pages below it destroys data.
 * I2  An entry of a cache has bit 0 set if and only if its stack's deep_left is not 0.
 */
#include "task/stack.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "task/stack_pool.h"

enum { MARK_WORDS = 4, CANARY_WORDS = 8, KEPT_PAGES = 4, DEEP_USES = 8, HOT = 8, SLACK = 512 };
enum { SPILL = BZ_STACK_CACHE_MAX / 2 };

/* ---- patterns --------------------------------------------------------------------------------- */

/* Patterns may be in memory that frames of another context have poisoned. */
BZ_NO_SANITIZE static void pattern_plant(const struct bz_stack *s, uint64_t *at, int words)
{
    bz_note_stack_looked_at(at, (size_t)words * sizeof *at, s->note);
    for (int i = 0; i < words; i++)
        at[i] = (uintptr_t)(at + i) ^ UINT64_C(0x9e3779b97f4a7c15);
}

BZ_NO_SANITIZE static bool pattern_is_whole(const struct bz_stack *s, const uint64_t *at, int words)
{
    bz_note_stack_looked_at(at, (size_t)words * sizeof *at, s->note);
    uint64_t difference = 0;
    for (int i = 0; i < words; i++)
        difference |= at[i] ^ (uintptr_t)(at + i) ^ UINT64_C(0x9e3779b97f4a7c15);
    return difference == 0;
}

/* ---- depth ------------------------------------------------------------------------------------ */

static size_t page_of(const struct bz_stack *s)
{
    return s->slab->pool->page;
}

/* The end of the stack's memory, with colour and control block. */
static char *end_of(const struct bz_stack *s)
{
    struct bz_stack_slab *slab = s->slab;
    return bz_stack_slab_low(slab, bz_stack_slab_index(slab, s) + 1);
}

/* I1: true if nothing is live at or below the mark. `sp` is the user's stack pointer, perhaps on
 * another stack. */
static bool is_above_mark(const struct bz_stack *s, const void *sp)
{
    const char *at = sp;
    return at < s->low || at >= (const char *)s || at >= (const char *)s->mark + SLACK;
}

static void deep_pages_discard(struct bz_stack *s)
{
    char *low = s->guard == BZ_STACK_GUARD_CANARY ? s->low + page_of(s) : s->low;
    bz_stack_pool_discard(s->slab->pool, low, (size_t)((char *)s->mark - low));
    s->deep_left = 0;
}

/* The slow path of bz_stack_trim: the stack is wide, or becomes wide. */
static void depth_record(struct bz_stack *s, const void *sp)
{
    bool is_broken = !s->is_wide || !pattern_is_whole(s, s->mark, MARK_WORDS);
    if (!s->is_wide) {
        s->is_wide = true;
        s->mark = (uint64_t *)(void *)(end_of(s) - KEPT_PAGES * page_of(s));
    }
    if (!is_above_mark(s, sp))
        return; /* the user is deep at this moment; a later call handles it */
    if (is_broken) {
        pattern_plant(s, s->mark, MARK_WORDS);
        s->deep_left = DEEP_USES;
    } else if (s->deep_left > 0 && --s->deep_left == 0) {
        deep_pages_discard(s);
    }
}

static void canary_check(const struct bz_stack *s)
{
    BZ_CHECK(pattern_is_whole(s, (const uint64_t *)(const void *)s->low, CANARY_WORDS),
             "stack overflow in fiber \"%s\": the canary at %p is dead", s->name, (void *)s->low);
}

/* If this function runs on `s`, its own frame is below all live data. */
BZ_NOINLINE void bz_stack_trim(struct bz_stack *s)
{
    s->parks_left = s->guard == BZ_STACK_GUARD_CANARY ? 1 : BZ_STACK_SETTLE_EVERY;
    if (s->guard == BZ_STACK_GUARD_CANARY)
        canary_check(s);
    if (s->is_wide || !pattern_is_whole(s, s->mark, MARK_WORDS))
        depth_record(s, __builtin_frame_address(0));
}

/* ---- the control block ------------------------------------------------------------------------ */

static struct bz_stack *stack_make(const struct bz_stack_found *found)
{
    struct bz_stack *s = found->stack;
    struct bz_stack_slab *slab = found->slab;
    uint32_t i = bz_stack_slab_index(slab, s);
    memset(s, 0, sizeof *s);
    s->parks_left = 1;
    s->slab = slab;
    s->class = slab->class;
    s->guard = slab->guard;
    s->low = bz_stack_slab_low(slab, i) + slab->pool->kind[slab->class].guard_bytes;
    s->claim_low = s->low + slab->pool->claim_bytes;
    s->mark = (uint64_t *)(void *)(bz_stack_slab_low(slab, i + 1) - slab->pool->page);
    s->note = bz_note_stack_made(s->low, bz_stack_bytes(s));
    pattern_plant(s, s->mark, MARK_WORDS);
    if (s->guard == BZ_STACK_GUARD_CANARY)
        pattern_plant(s, (uint64_t *)(void *)s->low, CANARY_WORDS);
    return s;
}

void bz_stack_name(struct bz_stack *s, const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;
    if (length >= sizeof s->name)
        length = sizeof s->name - 1;
    memcpy(s->name, name != NULL ? name : "", length);
    s->name[length] = '\0';
}

/* ---- the cache -------------------------------------------------------------------------------- */

static struct bz_stack *entry_stack(uintptr_t entry)
{
    return (void *)(entry & ~(uintptr_t)1);
}

static uintptr_t entry_of(struct bz_stack *s)
{
    return (uintptr_t)s | (s->deep_left != 0); /* I2 */
}

/* The stack is not in use. */
static void entry_trim(uintptr_t *entry)
{
    if (!(*entry & 1))
        return;
    deep_pages_discard(entry_stack(*entry));
    *entry &= ~(uintptr_t)1; /* I2 */
}

/* Give the oldest `n` to the pool. */
static void warm_spill(struct bz_stack_cache *c, enum bz_stack_class class, uint32_t n)
{
    struct bz_stack_warm *warm = &c->warm[class];
    struct bz_chain out;
    bz_chain_init(&out);
    for (uint32_t i = 0; i < n; i++) {
        entry_trim(&warm->entry[i]);
        bz_chain_push_back(&out, &entry_stack(warm->entry[i])->idle);
    }
    warm->count -= n;
    memmove(warm->entry, warm->entry + n, warm->count * sizeof warm->entry[0]);
    bz_stack_pool_give(c->pool, class, &out);
}

/* Take one stack, and a batch of the pool's idle stacks. */
static int warm_refill(struct bz_stack_cache *c, enum bz_stack_class class, struct bz_stack **out)
{
    struct bz_stack_warm *warm = &c->warm[class];
    struct bz_stack_found found;
    struct bz_chain more;
    bz_chain_init(&more);
    int err = bz_stack_pool_take(c->pool, class, &found, &more, SPILL);
    if (err < 0)
        return err;
    for (struct bz_link *l; (l = bz_chain_take_front(&more)) != NULL;)
        warm->entry[warm->count++] = entry_of(BZ_CONTAINER_OF(l, struct bz_stack, idle));
    *out = found.is_fresh ? stack_make(&found) : found.stack;
    return 0;
}

int bz_stack_take(struct bz_stack_cache *c, enum bz_stack_class class, struct bz_stack **out)
{
    if ((unsigned)class >= BZ_STACK_CLASSES)
        return -EINVAL;
    struct bz_stack_warm *warm = &c->warm[class];
    struct bz_stack *s;
    if (warm->count > 0) {
        s = entry_stack(warm->entry[--warm->count]);
    } else {
        int err = warm_refill(c, class, &s);
        if (err < 0)
            return err;
    }
    bz_note_stack_reused(s->low, bz_stack_bytes(s), s->note);
    s->name[0] = '\0';
    *out = s;
    return 0;
}

void bz_stack_give(struct bz_stack_cache *c, struct bz_stack *s)
{
    struct bz_stack_warm *warm = &c->warm[s->class];
    bz_stack_trim(s);
    if (warm->count == BZ_STACK_CACHE_MAX)
        warm_spill(c, (enum bz_stack_class)s->class, SPILL);
    warm->entry[warm->count++] = entry_of(s);
    if (warm->count > HOT)
        entry_trim(&warm->entry[warm->count - 1 - HOT]);
}

void bz_stack_cache_init(struct bz_stack_cache *c, struct bz_stack_pool *p)
{
    memset(c, 0, sizeof *c);
    c->pool = p;
}

void bz_stack_cache_trim(struct bz_stack_cache *c)
{
    for (int class = 0; class < BZ_STACK_CLASSES; class ++)
        for (uint32_t i = 0; i < c->warm[class].count; i++)
            entry_trim(&c->warm[class].entry[i]);
}

void bz_stack_cache_fini(struct bz_stack_cache *c)
{
    for (int class = 0; class < BZ_STACK_CLASSES; class ++)
        if (c->warm[class].count > 0)
            warm_spill(c, (enum bz_stack_class) class, c->warm[class].count);
}
