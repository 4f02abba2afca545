/*
 * actor.h - an actor inside: a task in a slot, with a mailbox and a state behind it. actor.c has the design.
 */
#ifndef BZ_ACTOR_H
#define BZ_ACTOR_H

#include "actor/mailbox.h"
#include "blitz/actor.h"
#include "life/letters.h"
#include "life/slots.h"
#include "proc/place.h"
#include "proc/state.h"

struct bz_signal;

struct bz_actor {
    struct bz_task task; /* first */
    struct bz_mailbox box;
    bz_atomic(const blitz_behaviour *) behaviour; /* written by its spawner, read by any thread */
    struct bz_signal *relations;                  /* links, monitors, names; the owner's */
    /* The state follows, or a pointer to it: BZ_ACTOR_FAR. */
};

/* task.slot.flags: the owner's. The bits from BZ_ACTOR_REDUCTION up count the reductions of this turn. */
enum {
    BZ_ACTOR_DONE = 1,   /* the first node was handled: step over it */
    BZ_ACTOR_BEGUN = 2,  /* init has returned 0 */
    BZ_ACTOR_TRAPS = 4,  /* exit signals of links are messages */
    BZ_ACTOR_FAR = 8,    /* the state is in a block of its own */
    BZ_ACTOR_STOPS = 16, /* blitz_actor_exit() was called: a reason is in the relations */
    BZ_ACTOR_REDUCTION = 256
};

enum { BZ_TURN_MESSAGES = 100, BZ_TURN_REDUCTIONS = 4000, BZ_SEND_REDUCTIONS = 8 };

/* A message: 40 bytes, then the payload. */
struct bz_letter {
    struct bz_mpsc_node node; /* first */
    uint32_t generation;      /* of the receiver; another actor in its memory drops it */
    uint32_t what;
    uint32_t from_index, from_generation; /* generation 0: not an actor */
    blitz_reply_to reply;                 /* generation 0: not a call */
    uint32_t size;
    _Alignas(8) unsigned char data[];
};

/* A message about actors, outside the queue; or a relation in the list of its owner. */
enum bz_signal_kind {
    BZ_SIGNAL_EXIT,      /* `peer` ends you, for `reason` */
    BZ_SIGNAL_LINK_EXIT, /* `peer`, to which you are linked, has ended */
    BZ_SIGNAL_STOP,      /* end, for `reason` */
    BZ_SIGNAL_LINK,      /* `peer` is linked to you. In a list: likewise */
    BZ_SIGNAL_UNLINK,
    BZ_SIGNAL_MONITOR,   /* `peer` watches you under `ref`. In a list: likewise */
    BZ_SIGNAL_AWAIT,     /* the ticket `ref` waits for your end. In a list: likewise */
    BZ_SIGNAL_DEMONITOR, /* `peer` does not watch you under `ref` any more */
    BZ_SIGNAL_DOWN,      /* `peer`, which you watch under `ref`, has ended */
    BZ_SIGNAL_WATCHES,   /* in a list: we watch `peer` under `ref` */
    BZ_SIGNAL_OWES,      /* in a list: we have kept the reply token `ref` */
    BZ_SIGNAL_NAME,      /* you have a name: reason.text. In a list: likewise */
    BZ_SIGNAL_REASON     /* in a list: why we end */
};

struct bz_signal {
    struct bz_signal_link link; /* first; in the lane */
    struct bz_signal *next;     /* in a list of relations */
    uint32_t kind;
    uint32_t generation; /* of the receiver */
    uint32_t peer_index, peer_generation;
    uint64_t ref;
    blitz_exit_reason reason;
};

/* The first message of an actor. */
#define BZ_MSG_START 0xfffffffeu

extern const struct bz_task_ops bz_actor_ops;
extern const struct bz_slot_ops bz_actor_slot_ops;

static BZ_ALWAYS_INLINE struct bz_actor *bz_actor_of(struct bz_task *t)
{
    return BZ_CONTAINER_OF(t, struct bz_actor, task);
}

/* The calling actor, or NULL. */
static BZ_ALWAYS_INLINE struct bz_actor *bz_actor_self(void)
{
    struct bz_task *t = bz_task_self();
    return t != NULL && t->ops == &bz_actor_ops ? bz_actor_of(t) : NULL;
}

static inline const blitz_behaviour *bz_actor_behaviour(struct bz_actor *a)
{
    return bz_load_relaxed(&a->behaviour); /* relaxed: constant while it is alive, else a guess */
}

static inline uint32_t bz_actor_generation(struct bz_actor *a)
{
    return bz_load_relaxed(&a->box.generation); /* relaxed: the owner's, while it is alive */
}

/* The id of a living actor that the caller owns. */
blitz_actor_id bz_actor_id_of(struct bz_actor *a);
blitz_actor_id bz_actor_id_make(struct bz_runtime *rt, uint32_t index, uint32_t generation);

/* The runtime of an id; NULL: it is gone, or the id is of another node. */
struct bz_runtime *bz_actor_runtime(blitz_actor_id id);
/* The slot of an id, if its actor is alive; else NULL. */
struct bz_actor *bz_actor_find(blitz_actor_id id);

/* Put an actor whose queue was empty into a run queue. */
static BZ_ALWAYS_INLINE void bz_actor_place(struct bz_actor *a)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(m != NULL && m->rt == a->task.rt && !bz_is_plain(m->rt)))
        bz_place_by(m, bz_entry_resumed(&a->task));
    else
        bz_place(a->task.rt, bz_entry_resumed(&a->task));
}

/* A new actor was refused before its mailbox was opened: free the slot. */
void bz_actor_abandon(struct bz_actor *a);

/* ---- signals: relate.c ---- */

/* Allocate a signal; NULL if there is no memory. */
struct bz_signal *bz_signal_new(struct bz_runtime *rt, enum bz_signal_kind kind);
/* Send it to that actor of the runtime. False: the actor is dead, and the signal is still the caller's. */
BZ_MUST_USE bool bz_signal_send(struct bz_runtime *rt, uint32_t index, uint32_t generation,
                                struct bz_signal *s);
/* Ring the actor's bell, and wake the actor if it is muted. */
void bz_actor_ring(struct bz_actor *a);
/* Handle the signals of a living actor. False: it must end, and *why says why. *rest are the signals not handled. */
BZ_MUST_USE bool bz_signals_handle(struct bz_actor *a, struct bz_signal_link *s,
                                   struct bz_signal_link **rest, blitz_exit_reason *why);
/* The actor ends: take over what these signals ask for, so that bz_relations_end answers them. */
void bz_signals_bury(struct bz_actor *a, struct bz_signal_link *s);
/* Tell all relations of a dead actor. */
void bz_relations_end(struct bz_actor *a, uint32_t generation, const blitz_exit_reason *why);
/* Note that the owner has kept a reply token. False: no memory. */
BZ_MUST_USE bool bz_relations_owe(struct bz_actor *a, blitz_reply_to to);
/* Take the reason that blitz_actor_exit() has left. */
void bz_relations_take_reason(struct bz_actor *a, blitz_exit_reason *why);

/* ---- messages: actor.c ---- */

/* Call the handler of a message. Returns what it returned; 0 if there is none. */
int bz_actor_handle(struct bz_actor *a, const blitz_msg *m);
/* A letter that no actor handles: answer its call, and free it. */
void bz_letter_bury(struct bz_runtime *rt, struct bz_letter *l);

/* ---- per runtime ---- */

struct bz_actors;
/* Return the part that the actors of a runtime share: actors.h. NULL if there is no memory. */
struct bz_actors *bz_actors_of(struct bz_runtime *rt);

#endif
