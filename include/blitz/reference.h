/*
 * blitz/reference.h - strong references to actors, and actors that end when they cannot be reached.
 *
 * An id of an actor holds nothing. A reference does: an actor whose behaviour has `end_unreachable` set lives as long as it can be
 * reached, and ends by itself after that. Its reason is BLITZ_EXIT_UNREACHABLE. Nothing has to be stopped by hand.
 *
 *     struct node { BLITZ_REF next; };
 *     BLITZ_TYPE(node_type, struct node, next);
 *
 *     BLITZ_HANDLER(on_next, struct node, void)
 *     {
 *         state->next = blitz_actor_reference(blitz_msg_reference(m));      // the old one goes with the next collection
 *         return state->next != NULL ? 0 : -ENOMEM;
 *     }
 *     static const blitz_behaviour node = {.state_bytes = sizeof(struct node), .state_type = &node_type,
 *                                          .end_unreachable = true, ...};
 *     ...
 *     blitz_reference *a, *b;
 *     int rc = blitz_reference_spawn(&node, NULL, NULL, &a);
 *     rc = blitz_reference_spawn(&node, NULL, NULL, &b);
 *     rc = blitz_actor_send_with(blitz_reference_id(a), NEXT, NULL, 0, &(blitz_cargo){.reference = b});
 *     blitz_reference_unref(b);                                             // a holds it
 *     blitz_reference_unref(a);                                             // both end
 *
 * Such an actor ends when it is idle, its mailbox is empty, and all of these are gone:
 *   - a reference that any program code holds: a task, a thread, the state of an actor
 *   - a reference in a message that is not handled yet, also of blitz_actor_send_after()
 *   - a BLITZ_REF in the heap of an actor that is alive and reachable itself
 *   - a name, a group, a link (so the children of a supervisor stay)
 *   - a message of blitz_actor_send_after() to it, which is not due
 *
 * Ids, monitors, joins and kept reply tokens do not hold it. A message to an id comes too late if the actor has ended: -ESRCH.
 *
 * Actors that hold each other in a circle end as well, if nothing else holds one of them. An actor of the runtime, the detector,
 * looks for such circles, with a few messages to actors that are idle. Nothing is stopped meanwhile. It sees only references of the
 * form BLITZ_REF, and only those of actors with `end_unreachable`: any other one counts as held from outside.
 *
 * An actor that ends takes its circle with it. `exit` of each is called, in no order. A reference that `exit` sends to others then
 * leads to an ended actor.
 */
#ifndef BLITZ_REFERENCE_H
#define BLITZ_REFERENCE_H

#include "blitz/actor.h"
#include "blitz/actor_heap.h"
#include "blitz/binary.h"

BLITZ_BEGIN_DECLS

/*
 * Start an actor, and hold it. Of blitz_actor_spawn() there is no reference: such an actor ends after its `init` and the messages
 * that have come by then, unless it has a name or a link.
 * Owns:     as blitz_actor_spawn(). The reference is the caller's: blitz_reference_unref().
 * Suspends: never. Call from a task, or from any thread with a runtime in the options.
 * Returns:  as blitz_actor_spawn(); -EINVAL also if the behaviour has no `end_unreachable`. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_reference_spawn(const blitz_behaviour *behaviour,
                                                   const void *state, const blitz_actor_opts *opts,
                                                   blitz_reference **out);

/*
 * Make a reference to the calling actor.
 * Owns:     the reference is the caller's.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  the reference; NULL: the caller is no actor, its behaviour has no `end_unreachable`, or it is in `exit` or `drop`.
 */
BLITZ_API blitz_reference *blitz_reference_self(void);

/*
 * Make a reference from an id, if the actor has not ended.
 * Owns:     the reference is the caller's. *out is written only on 0.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH (it has ended), -EOPNOTSUPP (its behaviour has no `end_unreachable`).
 */
BLITZ_API BLITZ_MUST_USE int blitz_reference_of(blitz_actor_id id, blitz_reference **out);

/*
 * Add a reference.
 * Owns:     the result is a reference of its own.
 * Suspends: never. Call from a thread that holds a reference.
 * Returns:  r.
 */
BLITZ_API blitz_reference *blitz_reference_ref(blitz_reference *r);

/*
 * Release a reference. NULL is ignored. It may outlive the actor and its runtime. But a thread that is none of the runtime must not
 * release one while another thread ends the runtime.
 * Owns:     takes the reference.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_reference_unref(blitz_reference *r);

/*
 * The id of the actor, to send to.
 * Owns:     borrows the reference until return.
 * Suspends: never. Call from a thread that holds a reference.
 * Returns:  the id, also after the actor has ended.
 */
BLITZ_API blitz_actor_id blitz_reference_id(const blitz_reference *r);

/*
 * The reference that a message carries, as cargo: blitz_actor_send_with(), `reference` of a blitz_cargo.
 * Owns:     borrowed until the handler returns, or until the next receive. Keep it by blitz_reference_ref() or
 *           blitz_actor_reference().
 * Suspends: never. Call from the owner of the message: its handler, or the task that has received it.
 * Returns:  the reference; NULL: the message has none.
 */
BLITZ_API blitz_reference *blitz_msg_reference(const blitz_msg *m);

/* ---- in a heap ---- */

/* An object of the heap: map the pointer to it. */
typedef struct blitz_held_reference {
    blitz_reference *reference; /* constant. Valid as long as this object */
    uintptr_t inside[3];
} blitz_held_reference;

/* The type of a field that holds an actor. List the field in BLITZ_TYPE(), as any pointer. */
#define BLITZ_REF blitz_held_reference *

/*
 * Refer to an actor from a heap; from the heap of the calling actor. The reference goes when a collection does not find the object, or
 * with the heap. An actor with `end_unreachable` collects for that when it comes to rest; another one when its heap has grown.
 * Owns:     shares the reference. The object is the heap's, as of blitz_heap_alloc().
 * Suspends: never. Call from any thread, one at a time, that holds a reference; blitz_actor_reference(): from a task that is an
 *           actor.
 * Returns:  the object; NULL: r is NULL, no memory, or the limit. Then the reference was not taken.
 */
BLITZ_API blitz_held_reference *blitz_heap_reference(blitz_heap *heap, blitz_reference *r);
BLITZ_API blitz_held_reference *blitz_actor_reference(blitz_reference *r);

BLITZ_END_DECLS

#endif
