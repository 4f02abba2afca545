/*
 * blitz/actor_heap.h - the private heap of an actor.
 *
 * Between two messages an actor has no frames, so its state is the only root. A behaviour that names the type of its state has a
 * heap (blitz/heap.h): handlers allocate and never free. After a message the runtime collects, if enough was allocated. When the
 * actor ends, all objects go at once.
 *
 *     struct doc { const struct doc *next; char *title; };
 *     BLITZ_VALUE_TYPE(doc_type, struct doc, next, title);
 *
 *     struct store { const struct doc *docs; };
 *     BLITZ_TYPE(store_type, struct store, docs);
 *
 *     BLITZ_HANDLER(on_add, struct store, struct title)
 *     {
 *         struct doc doc = {state->docs, blitz_actor_string(data->text)};
 *         state->docs = (const struct doc *)blitz_actor_copy(&doc_type, 0, &doc);
 *         return 0;                      // state->docs may move after this, not before
 *     }
 *
 *     static const blitz_behaviour store = {.state_bytes = sizeof(struct store), .state_type = &store_type, ...};
 *
 * The rules of blitz/heap.h hold. Nothing is collected while a handler runs or waits, except by BLITZ_ACTOR_COLLECT(). Do not send
 * the address of an object to another actor or thread, and do not use the heap in a forked job.
 *
 * An allocation fails at the limit `heap_max`, or for want of memory. It returns NULL, and the actor ends when its handler returns:
 * with code -ENOMEM and the text "no_memory", unless the handler returns another error. Other actors are not affected.
 */
#ifndef BLITZ_ACTOR_HEAP_H
#define BLITZ_ACTOR_HEAP_H

#include "blitz/actor.h"
#include "blitz/heap.h"

BLITZ_BEGIN_DECLS

/*
 * The heap of the calling actor, for the functions of blitz/heap.h. The first call makes it.
 * Owns:     the heap is the actor's: do not give it up.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  the heap; NULL: the caller is no actor, its behaviour has no state_type, or no memory: then the actor ends as above.
 */
BLITZ_API blitz_heap *blitz_actor_heap(void);

/*
 * Allocate in the heap of the calling actor: blitz_heap_alloc(), blitz_heap_alloc_tail(), blitz_heap_copy(), blitz_heap_string().
 * Owns:     the object is the heap's; `from` and `text` stay the caller's.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  as those; NULL also without a heap.
 */
BLITZ_API void *blitz_actor_alloc(blitz_type *type);
BLITZ_API void *blitz_actor_alloc_tail(blitz_type *type, size_t count);
BLITZ_API void *blitz_actor_copy(blitz_type *type, size_t count, const void *from);
BLITZ_API char *blitz_actor_string(const char *text);

/* Collect inside a handler. The roots are the state and these variables: BLITZ_ACTOR_COLLECT(&a, &b). All other pointers to objects
 * dangle afterwards. 0; -ENOMEM: nothing has changed. */
#define BLITZ_ACTOR_COLLECT(...) BLITZ_HEAP_COLLECT(blitz_actor_heap(), __VA_ARGS__)

BLITZ_END_DECLS

#endif
