/*
 * stack.c - the stacks an owner keeps warm, and how deep they have been.
 *
 * A cache is an array per class, last in first out: the stack given back last has its top page in
 * the CPU's cache. It has one user (the machine that owns it), so taking and giving are a handful of
 * instructions. An empty cache asks the pool for one stack and a batch of idle ones if there are
 * any; a full one passes its older half on.
 *
 * Depth. A stack that was once used deeply keeps those pages for ever unless somebody gives them
 * back, and giving them back costs a system call (2 us) and a page fault for each page used again:
 * doing it after every use would be dearer than the use. Two questions have to be answered cheaply.
 *
 * How deep has it been? Nobody can tell from the stack pointer at a park; the deep call has returned
 * by then. So a *watermark*, a few words of a pattern, lies in the stack's way, and a frame that
 * reached it has most likely written over it. (A frame may step over it with an array it never
 * writes; then the pages below stay until the stack is swept. It is an economy, not an invariant.)
 * The mark must not cost a page: at first it lies at the low end of the top page, which is in use
 * anyway. When it is found broken the stack is *wide* from then on and the mark moves to the low end
 * of the kept zone, four pages deep. Rejected: asking the kernel (mincore, pagemap: a system call for
 * the common answer "nothing"), and a mark on every level (each would touch its page).
 *
 * Is it worth it? A stack whose users all go deep should keep its pages. Only when the mark was found
 * whole DEEP_USES times in a row since it was last broken (so: shallow users on a deep stack) are the
 * pages below the kept zone given back. A stack that sinks below the HOT newest ones of its cache, or
 * goes to the pool, is not expected to be used soon: its deep pages go back at once.
 *
 *     top  +-----------------+
 *          | control block   |
 *          | frames          |  top page: in use, always
 *          | mark, at first  |
 *          +-----------------+
 *          |                 |  kept zone: KEPT_PAGES with the top page; kept once it was used
 *          | mark, when wide |
 *          +-----------------+
 *          |                 |  deep pages: go back
 *     low  | canary, if any  |  (its page stays, of course)
 *          +-----------------+
 *          | guard           |
 *          +-----------------+
 *
 * I1  The mark lies below everything its user has live when it is planted (with SLACK to spare), so
 *     planting destroys nothing and discarding the pages below it destroys nothing either.
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

/* They lie where frames of another context may have poisoned redzones. */
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

/* Where the stack's own memory ends, colour and control block included. */
static char *end_of(const struct bz_stack *s)
{
    struct bz_stack_slab *slab = s->slab;
    return bz_stack_slab_low(slab, bz_stack_slab_index(slab, s) + 1);
}

/* I1: is nothing live at or below the mark? `sp` is where the user stands, perhaps elsewhere. */
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

/* The rare part of settling: the stack is wide, or is found to be. */
static void depth_settle(struct bz_stack *s, const void *sp)
{
    bool is_broken = !s->is_wide || !pattern_is_whole(s, s->mark, MARK_WORDS);
    if (!s->is_wide) {
        s->is_wide = true;
        s->mark = (uint64_t *)(void *)(end_of(s) - KEPT_PAGES * page_of(s));
    }
    if (!is_above_mark(s, sp))
        return; /* in the deep as we speak; somebody will settle when it has come up */
    if (is_broken) {
        pattern_plant(s, s->mark, MARK_WORDS);
        s->deep_left = DEEP_USES;
    } else if (s->deep_left > 0 && --s->deep_left == 0 && !BZ_BROKEN(44)) {
        deep_pages_discard(s);
    }
}

static void canary_check(const struct bz_stack *s)
{
    BZ_CHECK(pattern_is_whole(s, (const uint64_t *)(const void *)s->low, CANARY_WORDS),
             "stack overflow in fiber \"%s\": the canary at %p is dead", s->name, (void *)s->low);
}

/* Its own frame, if it stands on `s`, is below all that is live there. */
BZ_NOINLINE void bz_stack_settle(struct bz_stack *s)
{
    s->parks_left = s->guard == BZ_STACK_GUARD_CANARY ? 1 : BZ_STACK_SETTLE_EVERY;
    if (s->guard == BZ_STACK_GUARD_CANARY && !BZ_BROKEN(43))
        canary_check(s);
    if (s->is_wide || !pattern_is_whole(s, s->mark, MARK_WORDS))
        depth_settle(s, __builtin_frame_address(0));
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

/* Nobody stands on it. */
static void entry_trim(uintptr_t *entry)
{
    if (!(*entry & 1))
        return;
    deep_pages_discard(entry_stack(*entry));
    *entry &= ~(uintptr_t)1; /* I2 */
}

/* The oldest `n` go to the pool. */
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

/* One stack for now, and what the pool has idle for later. */
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
    bz_stack_settle(s);
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
