/*
 * slots.c - task headers with a number, in memory that stays.
 *
 * Slots come in three sizes. Each size has segments, and each segment is twice as large as the one before it. So the
 * address of a slot follows from its number with one load, no table grows, and no slot moves. Memory of a large segment is
 * touched slot by slot, in order of numbers, so what was never used costs address space alone.
 *
 * Each proc has a list of free slots, the last freed first: its memory is in the cache. The lists exchange batches with one
 * common list under a lock. Threads without a proc use the common list.
 *
 * The slot's index says its size, too: the low bits are the kind.
 *
 * Rejected: slabs (base/slab.h): a free object holds links of the slab, and its memory goes back. A table of pointers: one
 *           more load for each message. One size: an actor with a small state would pay for large ones.
 *
 * I1  The word of every slot below `made` is valid. A free slot has no references in it.
 * I2  A slot is used, or in one home's list, or in the common list.
 *
 * [S] more: segment release -> slot_at: segment acquire   the segment is as it was allocated
 * [M] make, more: release -> slot_at, each, more: acquire   the word of the slot is valid, I1, and its segment exists; so is
 *                                                          the shared part
 */
#include "life/slots.h"

#include "base/check.h"
#include "life/tasks.h"
#include "proc/enter.h"
#include "proc/state.h"

/* Behind a header: the least that an actor needs, and room for a state of 64 and of 320 bytes. */
static const size_t behind[BZ_SLOT_KINDS] = {80, 144, 400};

static size_t bytes_of(unsigned kind)
{
    size_t bytes = sizeof(struct bz_task) + behind[kind];
    return (bytes + BZ_TASK_ALIGN - 1) / BZ_TASK_ALIGN * BZ_TASK_ALIGN;
}

size_t bz_slot_bytes_max(void)
{
    return bytes_of(BZ_SLOT_KINDS - 1);
}

void bz_slots_init(struct bz_slots *s)
{
    bz_lock_init(&s->lock);
    s->is_closed = false;
    s->ops = NULL;
    bz_atomic_init(&s->more, NULL);
    for (unsigned k = 0; k < 1 << BZ_SLOT_KIND_BITS; k++) {
        s->kind[k].size = k < BZ_SLOT_KINDS ? bytes_of(k) : 0;
        s->kind[k].free = NULL;
        s->kind[k].free_count = 0;
        bz_atomic_init(&s->kind[k].made, 0);
        for (unsigned i = 0; i < BZ_SLOT_SEGMENTS; i++)
            bz_atomic_init(&s->kind[k].segment[i], NULL);
    }
}

void bz_slot_home_init(struct bz_slot_home *h)
{
    for (unsigned k = 0; k < BZ_SLOT_KINDS; k++) {
        h->free[k] = NULL;
        h->count[k] = 0;
    }
}

static unsigned kind_of(const struct bz_task *t)
{
    return t->slot.index & ((1u << BZ_SLOT_KIND_BITS) - 1);
}

/* ---- making ---- */

void *bz_slots_more(struct bz_runtime *rt, const struct bz_slot_ops *ops)
{
    struct bz_slots *s = &rt->tasks.slots;
    void *more = bz_load_acquire(&s->more); /* [M] */
    if (BZ_LIKELY(more != NULL))
        return more;
    bz_lock_take(&s->lock, rt->os);
    more = bz_load_relaxed(&s->more); /* relaxed: written under the lock */
    if (more == NULL && (more = bz_alloc(&rt->alloc, ops->more_bytes, BZ_LINE)) != NULL) {
        ops->begin(rt, more);
        s->ops = ops;
        bz_store_release(&s->more, more); /* [M] */
    }
    bz_lock_drop(&s->lock, rt->os);
    return more;
}

/* Make one more slot. Under the lock. NULL: no memory, or too many. */
static struct bz_task *make(struct bz_runtime *rt, unsigned kind)
{
    struct bz_slots *s = &rt->tasks.slots;
    struct bz_slot_kind *k = &s->kind[kind];
    uint32_t at = bz_load_relaxed(&k->made); /* relaxed: written under the lock */
    uint32_t segment = bz_slot_segment(at);
    if (segment >= BZ_SLOT_SEGMENTS)
        return NULL;
    char *first = bz_load_relaxed(&k->segment[segment]); /* relaxed: likewise */
    if (first == NULL) {
        first = bz_alloc(&rt->alloc, (size_t)(BZ_SLOT_FIRST << segment) * k->size, BZ_TASK_ALIGN);
        if (first == NULL)
            return NULL;
        bz_store_release(&k->segment[segment], first); /* [S] */
    }
    struct bz_task *t = (void *)(first + bz_slot_offset(at, segment) * k->size);
    bz_atomic_init(&t->word, BZ_COMPLETE); /* I1 */
    t->rt = rt;
    t->slot.index = at << BZ_SLOT_KIND_BITS | kind;
    s->ops->make(t);
    bz_store_release(&k->made, at + 1); /* [M] */
    return t;
}

static struct bz_task *take_common(struct bz_runtime *rt, unsigned kind)
{
    struct bz_slot_kind *k = &rt->tasks.slots.kind[kind];
    struct bz_task *t = k->free;
    if (t == NULL)
        return make(rt, kind);
    k->free = t->pointer;
    k->free_count--;
    return t;
}

static void give_common(struct bz_slot_kind *k, struct bz_task *t)
{
    t->pointer = k->free;
    k->free = t;
    k->free_count++;
}

/* ---- the list of a proc ---- */

static void keep(struct bz_slot_home *h, unsigned kind, struct bz_task *t)
{
    t->pointer = h->free[kind];
    h->free[kind] = t;
    h->count[kind]++;
}

static struct bz_task *unkeep(struct bz_slot_home *h, unsigned kind)
{
    struct bz_task *t = h->free[kind];
    if (t != NULL) {
        h->free[kind] = t->pointer;
        h->count[kind]--;
    }
    return t;
}

/* The home is empty: take a slot, and a batch of those that were used before. New slots are made one by one. */
static struct bz_task *refill(struct bz_runtime *rt, struct bz_slot_home *h, unsigned kind)
{
    struct bz_slots *s = &rt->tasks.slots;
    bz_lock_take(&s->lock, rt->os);
    struct bz_task *first = take_common(rt, kind);
    for (unsigned n = 0; h != NULL && n < BZ_SLOT_BATCH && s->kind[kind].free_count > 0; n++)
        keep(h, kind, take_common(rt, kind));
    bz_lock_drop(&s->lock, rt->os);
    return first;
}

struct bz_task *bz_slot_alloc(struct bz_runtime *rt, size_t bytes)
{
    unsigned kind = 0;
    uint32_t was;
    while (kind < BZ_SLOT_KINDS && bytes > rt->tasks.slots.kind[kind].size)
        kind++;
    if (kind == BZ_SLOT_KINDS)
        return NULL;
    (void)!bz_enter(&was);
    struct bz_machine *m = bz_machine_in(rt);
    struct bz_slot_home *h = m != NULL ? &m->proc->tasks.slots : NULL;
    struct bz_task *t = h != NULL ? unkeep(h, kind) : NULL;
    if (BZ_UNLIKELY(t == NULL))
        t = refill(rt, h, kind);
    if (t != NULL)
        t->id = bz_task_id_next(rt, m);
    bz_leave(was);
    return t;
}

static void give_back(struct bz_slots *s, struct bz_slot_home *h, unsigned kind,
                      unsigned keep_count, const struct bz_os *os)
{
    bz_lock_take(&s->lock, os);
    while (h->count[kind] > keep_count)
        give_common(&s->kind[kind], unkeep(h, kind));
    bz_lock_drop(&s->lock, os);
}

/* False: the runtime has ended, and was told how many slots were in use. */
static bool free_outside(struct bz_runtime *rt, struct bz_task *t)
{
    struct bz_slots *s = &rt->tasks.slots;
    bz_lock_take(&s->lock, rt->os);
    bool is_open = !s->is_closed;
    give_common(&s->kind[kind_of(t)], t);
    bz_lock_drop(&s->lock, rt->os);
    return is_open;
}

void bz_slot_free(struct bz_task *t)
{
    struct bz_runtime *rt = t->rt;
    unsigned kind = kind_of(t);
    uint32_t was;
    (void)!bz_enter(&was);
    struct bz_machine *m = bz_machine_in(rt);
    if (BZ_LIKELY(m != NULL)) {
        struct bz_slot_home *h = &m->proc->tasks.slots;
        keep(h, kind, t);
        if (h->count[kind] > BZ_SLOT_KEEP)
            give_back(&rt->tasks.slots, h, kind, BZ_SLOT_KEEP - BZ_SLOT_BATCH, rt->os);
    } else if (!free_outside(rt, t)) {
        bz_task_left(rt);
    }
    bz_leave(was);
}

void bz_slots_rest(struct bz_slots *s, struct bz_slot_home *h, const struct bz_os *os)
{
    for (unsigned k = 0; k < BZ_SLOT_KINDS; k++)
        if (h->count[k] > 0)
            give_back(s, h, k, 0, os);
}

/* ---- finding them all ---- */

static void each_made(struct bz_slots *s, void (*fn)(struct bz_task *t, void *ctx), void *ctx)
{
    for (uint32_t k = 0; k < BZ_SLOT_KINDS; k++) {
        uint32_t made = bz_load_acquire(&s->kind[k].made); /* [M] */
        for (uint32_t at = 0; at < made; at++)
            fn(bz_slot_at(s, at << BZ_SLOT_KIND_BITS | k), ctx);
    }
}

struct visit {
    void (*fn)(struct bz_task *t, void *ctx);
    void *ctx;
};

static void visit(struct bz_task *t, void *ctx)
{
    struct visit *v = ctx;
    if (!bz_word_try_ref(&t->word))
        return;
    v->fn(t, v->ctx);
    bz_task_unref(t);
}

void bz_slots_each(struct bz_slots *s, void (*fn)(struct bz_task *t, void *ctx), void *ctx)
{
    struct visit v = {fn, ctx};
    each_made(s, visit, &v);
}

uint64_t bz_slots_bytes(struct bz_slots *s)
{
    uint64_t bytes = 0;
    for (unsigned k = 0; k < BZ_SLOT_KINDS; k++)
        bytes +=
            bz_load_relaxed(&s->kind[k].made) * (uint64_t)s->kind[k].size; /* relaxed: a guess */
    return bytes;
}

/* ---- the end ---- */

static uint64_t in_use(struct bz_slots *s)
{
    uint64_t count = 0;
    for (unsigned k = 0; k < BZ_SLOT_KINDS; k++)
        count += bz_load_relaxed(&s->kind[k].made) - s->kind[k].free_count; /* relaxed: the lock */
    return count;
}

uint64_t bz_slots_out(struct bz_slots *s, const struct bz_os *os)
{
    bz_lock_take(&s->lock, os);
    uint64_t count = in_use(s);
    bz_lock_drop(&s->lock, os);
    return count;
}

static void reclaim(struct bz_task *t, void *slots)
{
    ((struct bz_slots *)slots)->ops->reclaim(t);
}

uint64_t bz_slots_close(struct bz_runtime *rt)
{
    struct bz_slots *s = &rt->tasks.slots;
    void *more =
        bz_load_relaxed(&s->more); /* relaxed: machines have ended; a sender is late, or waits */
    if (more != NULL) {
        each_made(s, reclaim, s);
        s->ops->end(rt, more);
    }
    bz_lock_take(&s->lock, rt->os);
    s->is_closed = true;
    uint64_t count = in_use(s);
    bz_lock_drop(&s->lock, rt->os);
    return count;
}

void bz_slots_fini(struct bz_runtime *rt)
{
    struct bz_slots *s = &rt->tasks.slots;
    void *more = bz_load_relaxed(&s->more); /* relaxed: no other thread */
    if (more != NULL) {
        s->ops->fini(rt, more);
        bz_free(&rt->alloc, more, s->ops->more_bytes);
    }
    for (unsigned k = 0; k < BZ_SLOT_KINDS; k++)
        for (unsigned i = 0; i < BZ_SLOT_SEGMENTS; i++) {
            struct bz_slot_kind *kind = &rt->tasks.slots.kind[k];
            char *segment = bz_load_relaxed(&kind->segment[i]); /* relaxed: no other thread */
            if (segment != NULL)
                bz_free(&rt->alloc, segment, (size_t)(BZ_SLOT_FIRST << i) * kind->size);
        }
}
