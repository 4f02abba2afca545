/*
 * relations.h - links and monitors between actors of this node and of others: relations.c.
 */
#ifndef BZ_NODE_RELATIONS_H
#define BZ_NODE_RELATIONS_H

#include "actor/far.h"
#include "node/node.h"

/* Start and end the actor that keeps the relations of a node. The end tells all relations that they have no connection. */
BZ_MUST_USE int bz_relations_begin(blitz_node *n);
void bz_relations_end_all(blitz_node *n);
/* The signal with which a connection says that it has gone; NULL: no memory. */
struct bz_signal *bz_relations_farewell(blitz_node *n);
/* A connection has gone, and with it the relations of that serial and before. It takes the signal. */
void bz_relations_lose(struct bz_peer *p, uint32_t serial, struct bz_signal *farewell);
/* A control message of a peer about a relation. 0; -EPROTO, -ENOMEM: the connection must go. */
BZ_MUST_USE int bz_relations_hear(struct bz_session *s, const struct bz_control *c);
/* A peer starts an actor. */
struct bz_their_spawn {
    const blitz_behaviour *behaviour;
    void *state; /* of the node's allocator, state_bytes; the call takes it. NULL: zeroed */
    bool links, watches;
};
/* Start it, relate it to the requester and answer. 0, -ENOMEM. */
BZ_MUST_USE int bz_relations_spawn(struct bz_session *s, const struct bz_control *c,
                                   const struct bz_their_spawn *spawn);
/* Answer that nothing was started. */
BZ_MUST_USE int bz_relations_refuse_spawn(struct bz_session *s, const struct bz_control *c,
                                          const char *error);
/* An actor of a peer, started for ours. */
struct bz_spawned {
    blitz_actor_id ours; /* generation 0: the caller is no actor */
    blitz_actor_id far;
    bool links;
    uint64_t ref; /* of the monitor, whose half our actor has; 0: none */
};
/* Make its relations. 0, -ENOMEM. */
BZ_MUST_USE int bz_relations_spawned(struct bz_session *s, const struct bz_spawned *y);
/* The caller has left, and has no relations: undo those of the peer, which end the process if it is linked. */
void bz_relations_abandon(struct bz_session *s, const struct bz_spawned *y);
/* The number of a monitor, by its reference. False: it is none of ours. */
bool bz_relations_ref(const blitz_node *n, const blitz_term_ref *ref, uint64_t *out);
/* The functions of far.h. */
BZ_MUST_USE int bz_relations_relate(enum bz_far_relation what, blitz_actor_id me,
                                    blitz_actor_id other, uint64_t ref);
void bz_relations_ended(blitz_actor_id me, blitz_actor_id far, const blitz_exit_reason *why);
BZ_MUST_USE int bz_relations_exit(blitz_actor_id me, blitz_actor_id other,
                                  const blitz_exit_reason *why);

/* Reasons as terms, and back: reasons.c. */
void bz_reason_put(blitz_term_out *out, const blitz_exit_reason *why);
void bz_reason_get(blitz_term term, blitz_exit_reason *why);

#endif
