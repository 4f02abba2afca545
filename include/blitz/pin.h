/*
 * blitz/pin.h - objects of a heap that do not move, and outlive it.
 *
 * A collection moves objects, and an actor that ends frees all of them at once. So the kernel, another thread or a foreign library
 * must not have the address of an object of blitz/heap.h, unless the object is pinned:
 *
 *     struct buffer *b = (struct buffer *)blitz_actor_alloc(&buffer_type);
 *     blitz_pin *pin;
 *     int rc = blitz_pin_new(blitz_actor_heap(), b, &pin);
 *     ...
 *     start_transfer(b->bytes, sizeof b->bytes, pin);       // foreign code; at its end: blitz_pin_unref(pin), on any thread
 *
 * As long as it is pinned, an object stays where it is, and a collection finds it without a root. Its pointers are kept right by
 * each collection, so other threads must not follow them. If the heap goes first, because its actor is killed or its owner gives it
 * up, the memory of the object stays until the pin is given up. Release all pins before the runtime of the actor ends.
 *
 * A pin costs a small record, and the free memory of the object's chunk: up to a mebibyte that nothing else uses, from the next
 * full collection on. So pin for an operation, not for ever. A call of blitz that borrows memory until it returns, as
 * blitz_tcp_read() does, needs no pin: nothing is collected while a handler waits.
 */
#ifndef BLITZ_PIN_H
#define BLITZ_PIN_H

#include "blitz/api.h"
#include "blitz/heap.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_pin blitz_pin;

/*
 * Pin an object. It may have several pins.
 * Owns:     the caller holds the pin; give it up with blitz_pin_unref().
 * Suspends: never. Call from any thread, one at a time, as all calls of that heap.
 * Returns:  0, -EINVAL (it is no object of this heap; an aligned address in the middle of one is not found out), -ENOMEM. *out is
 *           written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_pin_new(blitz_heap *heap, void *object, blitz_pin **out);

/*
 * Give a pin up. NULL is ignored. Without another pin the object may move, or go, in the next collection. If its heap has gone,
 * the last pin frees the memory.
 * Owns:     takes the pin.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_pin_unref(blitz_pin *pin);

BLITZ_END_DECLS

#endif
