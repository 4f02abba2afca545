/*
 * blitz/heap_binary.h - binaries that objects of a heap own.
 *
 * A binary (blitz/binary.h) is counted, and the objects of a heap (blitz/heap.h) have no destructor. So an object refers to a
 * binary through a small object of the heap, a *held binary*. It has a reference of its own, which is released when a collection does
 * not find it, and at the end of the heap. A pinned one (blitz/pin.h) keeps its reference until its last pin is given up.
 *
 *     struct page { struct page *next; blitz_held_binary *text; };
 *     BLITZ_VALUE_TYPE(page_type, struct page, next, text);
 *
 *     BLITZ_HANDLER(on_page, struct book, void)
 *     {
 *         struct page page = {state->first, blitz_actor_binary(m->binary)};      // text->binary stays as long as the page
 *         state->first = (struct page *)blitz_actor_copy(&page_type, 0, &page);
 *         return 0;
 *     }
 *
 * The bytes of held binaries count as allocated ones when a collection is due. They do not count against the limit of the heap.
 */
#ifndef BLITZ_HEAP_BINARY_H
#define BLITZ_HEAP_BINARY_H

#include "blitz/actor_heap.h"
#include "blitz/binary.h"

BLITZ_BEGIN_DECLS

/* An object of the heap: map the pointer to it. */
typedef struct blitz_held_binary {
    blitz_binary *binary; /* constant. It is alive as long as this object */
    uintptr_t inside[3];
} blitz_held_binary;

/*
 * Refer to a binary from a heap; from the heap of the calling actor.
 * Owns:     shares the binary. The object is the heap's, as of blitz_heap_alloc().
 * Suspends: never. Call from any thread, one at a time, that holds a reference; blitz_actor_binary(): from a task that is an actor.
 * Returns:  the object; NULL: no memory, or the limit. Then the reference was not taken.
 */
BLITZ_API blitz_held_binary *blitz_heap_binary(blitz_heap *heap, blitz_binary *b);
BLITZ_API blitz_held_binary *blitz_actor_binary(blitz_binary *b);

/*
 * Report which binaries a heap holds: call fn for each reference. Between two collections that includes dead ones.
 * Owns:     fn borrows the binary until it returns. It must not use the heap.
 * Suspends: never. Call from any thread, one at a time.
 */
BLITZ_API void blitz_heap_binaries(const blitz_heap *heap, void (*fn)(blitz_binary *b, void *ctx),
                                   void *ctx);

BLITZ_END_DECLS

#endif
