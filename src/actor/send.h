/*
 * send.h - send a message, inside: send.c.
 */
#ifndef BZ_ACTOR_SEND_H
#define BZ_ACTOR_SEND_H

#include "actor/actor.h"
#include "blitz/binary.h"

#define BZ_MSG_OURS 0xffffff00u /* messages from here up are the runtime's */

/* A letter with its payload, which takes the cargo; NULL if there is no memory. */
struct bz_letter *bz_letter_new(struct bz_runtime *rt, uint32_t what, const void *data, size_t size,
                                const blitz_cargo *cargo);
bool bz_send_is_bad(uint32_t what, const void *data, size_t size);
/* As blitz_actor_send_with(), but it never waits, with a reply token; generation 0: none. On 0 the token will be answered if the actor dies. */
BZ_MUST_USE int bz_send(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                        const blitz_cargo *cargo, blitz_reply_to reply);
/* Send a message that may have a number of the runtime's, of no sender, and do not wait: -EAGAIN if the mailbox is full. In the runtime
 * of the actor. */
BZ_MUST_USE int bz_send_ours(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                             const blitz_cargo *cargo);
/* The same for a call, with its token. On 0 the token will be answered if the actor dies. */
BZ_MUST_USE int bz_send_our_call(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                                 const blitz_cargo *cargo, blitz_reply_to reply);
/* As blitz_actor_send_with(), with a deadline. */
BZ_MUST_USE int bz_send_until(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                              const blitz_cargo *cargo, blitz_deadline until);
/* As blitz_actor_send_with_future_init(). */
void bz_send_future_init(blitz_actor_send_future *f, blitz_actor_id to, uint32_t what,
                         const void *data, size_t size, const blitz_cargo *cargo);
/* As blitz_actor_send_after_with(). */
BZ_MUST_USE int bz_send_after(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                              const blitz_cargo *cargo, blitz_deadline when, uint64_t *timer);
/* ticket.c: send the letter at that time. On error it is still the caller's. */
BZ_MUST_USE int bz_ticket_send_at(struct bz_runtime *rt, uint32_t to_index, struct bz_letter *l,
                                  blitz_deadline when, uint64_t *timer);

#endif
