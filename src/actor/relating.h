/*
 * relating.h - the relations of the caller: an actor's own, or those of a task that receives. relate.c has the rules.
 */
#ifndef BZ_ACTOR_RELATING_H
#define BZ_ACTOR_RELATING_H

#include "actor/actor.h"

/* The caller as one side of a relation. */
struct bz_relating {
    struct bz_actor *a; /* itself, or its porter with a reference */
    uint32_t generation;
    bool is_task; /* the caller is the task behind that porter, which may end at any time */
};

/* 0; -EINVAL: the caller is neither; -ECANCELED: it is a task whose id has ended. On 0 an end must follow. */
BZ_MUST_USE int bz_relating_begin(struct bz_relating *r);
void bz_relating_end(struct bz_relating *r);
blitz_actor_id bz_relating_id(const struct bz_relating *r);

/* True if the id has not ended. All that the caller did before comes before what the end of the id does later. */
bool bz_relating_is_alive(const struct bz_relating *r);
/* Add an entry to the list. False: the id has ended, and the entry is still the caller's. */
BZ_MUST_USE bool bz_relating_add(const struct bz_relating *r, struct bz_signal *s);
/* The same for a reply token that is kept. */
BZ_MUST_USE bool bz_relating_owe(const struct bz_relating *r, struct bz_signal *s);
/* Take an entry out; NULL: there is none, or the id has ended. Of a WATCHES entry the ref alone counts. */
struct bz_signal *bz_relating_take(const struct bz_relating *r, uint32_t kind, blitz_actor_id peer,
                                   uint64_t ref);
/* The entry of that monitor is about another actor. */
void bz_relating_aim(const struct bz_relating *r, uint64_t ref, blitz_actor_id far);
bool bz_relating_has(const struct bz_relating *r, uint32_t kind, blitz_actor_id peer, uint64_t ref);

/* Write the caller into a signal, which is about to be sent; so it counts as a send. */
void bz_relating_sign(const struct bz_relating *r, struct bz_signal *s);
/* Send a request to the other; if it is dead, the answer comes to the caller's id. */
void bz_relating_ask(const struct bz_relating *r, blitz_actor_id other, struct bz_signal *s);
/* Withdraw the request of an entry that was taken out. False: the other has heard it, or it cannot be withdrawn. */
BZ_MUST_USE bool bz_relating_withdraw(const struct bz_relating *r, const struct bz_signal *mine);
/* Send a signal of the caller, or free it if there is no such actor. */
void bz_relating_tell(const struct bz_relating *r, uint32_t index, uint32_t generation,
                      struct bz_signal *s);

#endif
