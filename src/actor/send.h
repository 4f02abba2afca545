/*
 * send.h - send a message, inside: send.c.
 */
#ifndef BZ_ACTOR_SEND_H
#define BZ_ACTOR_SEND_H

#include "actor/actor.h"

#define BZ_MSG_OURS 0xffffff00u /* messages from here up are the runtime's */

/* A letter with its payload; NULL if there is no memory. */
struct bz_letter *bz_letter_new(struct bz_runtime *rt, uint32_t what, const void *data,
                                size_t size);
bool bz_send_is_bad(uint32_t what, const void *data, size_t size);
/* As blitz_actor_send(), with a reply token; generation 0: none. On 0 the token will be answered if the actor dies. */
BZ_MUST_USE int bz_send(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                        blitz_reply_to reply);
/* ticket.c: send the letter at that time. On error it is still the caller's. */
BZ_MUST_USE int bz_ticket_send_at(struct bz_runtime *rt, uint32_t to_index, struct bz_letter *l,
                                  blitz_deadline when, uint64_t *timer);

#endif
