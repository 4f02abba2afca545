/*
 * heap_binary.c - binaries that objects of a heap own: holders of src/heap/holder.c.
 */
#include <assert.h>

#include "actor/actor.h"
#include "blitz/heap_binary.h"
#include "heap/heap.h"

static_assert(sizeof(blitz_held_binary) == sizeof(struct bz_holder), "it is a holder");
static_assert(offsetof(blitz_held_binary, binary) == offsetof(struct bz_holder, value),
              "the value of the holder");

static void drop(void *value)
{
    blitz_binary_unref(value);
}

blitz_held_binary *blitz_heap_binary(blitz_heap *heap, blitz_binary *b)
{
    blitz_binary_info info;
    blitz_binary_info_get(b, &info);
    struct bz_holder *o = bz_heap_hold(heap, b, info.whole_bytes, drop);
    if (o != NULL)
        (void)blitz_binary_ref(b);
    return (blitz_held_binary *)(void *)o;
}

blitz_held_binary *blitz_actor_binary(blitz_binary *b)
{
    blitz_heap *heap = blitz_actor_heap();
    blitz_held_binary *held = heap != NULL ? blitz_heap_binary(heap, b) : NULL;
    if (heap != NULL && held == NULL)
        bz_actor_starve();
    return held;
}

/* The report's function behind that of holders. */
struct report {
    void (*fn)(blitz_binary *b, void *ctx);
    void *ctx;
};

static void report_one(void *value, void *ctx)
{
    const struct report *r = ctx;
    r->fn(value, r->ctx);
}

void blitz_heap_binaries(const blitz_heap *heap, void (*fn)(blitz_binary *b, void *ctx), void *ctx)
{
    struct report r = {fn, ctx};
    bz_holders_each_of(heap, drop, report_one, &r);
}
