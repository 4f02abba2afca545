/*
 * heap_reference.c - references to actors that objects of a heap own: holders of src/heap/holder.c.
 */
#include <assert.h>

#include "actor/reaching.h"
#include "blitz/reference.h"
#include "heap/heap.h"

static_assert(sizeof(blitz_held_reference) == sizeof(struct bz_holder), "it is a holder");
static_assert(offsetof(blitz_held_reference, reference) == offsetof(struct bz_holder, value),
              "the value of the holder");

static void drop(void *value)
{
    blitz_reference_unref(value);
}

/* The actor of that heap, if it is one that ends when it is unreachable, may be in a circle from here on. */
static void note_holder(const blitz_heap *heap)
{
    struct bz_task *t = heap->owner;
    if (t == NULL || t->ops->kind != bz_actor_kind ||
        !bz_actor_behaviour(bz_actor_of(t))->end_unreachable)
        return;
    blitz_reference *mine = *bz_reference_at(bz_actor_of(t));
    if (mine != NULL)
        bz_reach_set_holds(&mine->reach, true); /* its rest lists it after that */
}

blitz_held_reference *blitz_heap_reference(blitz_heap *heap, blitz_reference *r)
{
    struct bz_holder *o = r != NULL ? bz_heap_hold(heap, r, 0, drop) : NULL;
    if (o == NULL)
        return NULL;
    (void)blitz_reference_ref(r);
    note_holder(heap);
    return (blitz_held_reference *)(void *)o;
}

/* The caller's function behind that of holders. */
struct visit {
    void (*fn)(blitz_reference *r, void *ctx);
    void *ctx;
};

static void visit(void *value, void *ctx)
{
    const struct visit *v = ctx;
    v->fn(value, v->ctx);
}

void bz_heap_references(const blitz_heap *heap, void (*fn)(blitz_reference *r, void *ctx),
                        void *ctx)
{
    struct visit v = {fn, ctx};
    if (heap != NULL)
        bz_holders_each_of(heap, drop, visit, &v);
}

blitz_held_reference *blitz_actor_reference(blitz_reference *r)
{
    blitz_heap *heap = r != NULL ? blitz_actor_heap() : NULL;
    blitz_held_reference *held = heap != NULL ? blitz_heap_reference(heap, r) : NULL;
    if (heap != NULL && held == NULL)
        bz_actor_starve();
    return held;
}
