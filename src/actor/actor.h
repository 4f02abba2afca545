/*
 * actor.h - an actor inside: a task in a slot, with a mailbox and a state behind it. actor.c has the design.
 */
#ifndef BZ_ACTOR_H
#define BZ_ACTOR_H

#include "actor/hearing.h"
#include "actor/mailbox.h"
#include "blitz/actor.h"
#include "life/letters.h"
#include "life/slots.h"
#include "proc/place.h"
#include "proc/state.h"
#include "runtime/runtimes.h"

struct bz_signal;

struct bz_actor {
    struct bz_task task; /* first */
    struct bz_mailbox box;
    /* Written by its spawner and by its owner, read by any thread */
    bz_atomic(const blitz_behaviour *) behaviour;
    struct bz_signal *relations; /* links, monitors, names, groups; the owner's */
    /* The state follows, or a pointer to it: BZ_ACTOR_FAR. */
};

/* task.slot.flags: the owner's. The bits from BZ_ACTOR_REDUCTION up count the reductions of this turn. */
enum {
    BZ_ACTOR_DONE = 1,    /* the first node was handled: step over it */
    BZ_ACTOR_BEGUN = 2,   /* init has returned 0 */
    BZ_ACTOR_STARVED = 4, /* an allocation in its heap has failed: it ends */
    BZ_ACTOR_FAR = 8,     /* the state is in a block of its own */
    BZ_ACTOR_STOPS = 16,  /* blitz_actor_exit() was called: a reason is in the relations */
    BZ_ACTOR_MUTES =
        32, /* it is to be muted before its next message: task.result is the receiver's index */
    BZ_ACTOR_NEXT = 64,     /* ... and its first node was not handled */
    BZ_ACTOR_HEAP = 128,    /* its state has a type: its heap is named before it (actor_heap.c) */
    BZ_ACTOR_TRAPS = 256,   /* its behaviour is called by trap.c */
    BZ_ACTOR_VERSION = 512, /* its behaviour is a struct bz_version: upgrade.c */
    BZ_ACTOR_REDUCTION = 1024
};

enum { BZ_TURN_MESSAGES = 100, BZ_TURN_REDUCTIONS = 4000, BZ_SEND_REDUCTIONS = 8 };

/* A message: 40 bytes, then the payload. */
struct bz_letter {
    struct bz_mpsc_node node; /* first */
    uint32_t generation;      /* of the receiver; another actor in its memory drops it */
    uint32_t what;
    uint32_t from_index, from_generation; /* generation 0: not an actor */
    blitz_reply_to reply;                 /* generation 0: not a call */
    uint16_t size;
    uint8_t cargo; /* enum bz_cargo_kind; if it has one, a pointer is behind the payload: cargo.h */
    uint8_t kind;  /* of its memory: 1 is BZ_LETTER_LARGE */
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
    BZ_SIGNAL_UNNAME,    /* you have not the name reason.text any more */
    BZ_SIGNAL_GROUP,     /* you are in a group, reason.text, under `ref`. In a list: likewise */
    BZ_SIGNAL_UNGROUP,   /* you are not in a group under `ref` any more */
    BZ_SIGNAL_UPGRADE,   /* change to another version of your behaviour: upgrade.c */
    BZ_SIGNAL_REASON,    /* in a list: why we end */
    /* Of actors of other nodes: `peer` with far_node and far_creation. */
    BZ_SIGNAL_FAR_LINK, /* `peer` is linked to you. In a list: likewise */
    BZ_SIGNAL_FAR_UNLINK,
    BZ_SIGNAL_FAR_EXIT,   /* `peer`, to which you are linked, has ended */
    BZ_SIGNAL_FAR_ENDS,   /* `peer` ends you, for `reason` */
    BZ_SIGNAL_FAR_DOWN,   /* `peer`, which you watch under `ref`, has ended */
    BZ_SIGNAL_FAR_WATCHES /* in a list: we watch `peer` under `ref` */
};

/* The two ends of an ask to change to another version: upgrade.c. A table, so that relate.c does not call that file. */
struct bz_ask_ops {
    /* The owner hears the ask, between two messages. Frees it. 0: the actor goes on; else it ends with that result. */
    int (*hear)(struct bz_actor *a, struct bz_signal *s);
    /* The actor has ended before it has heard the ask. Frees it. */
    void (*bury)(struct bz_runtime *rt, struct bz_signal *s);
};

struct bz_signal {
    struct bz_signal_link link; /* first; in the lane */
    struct bz_signal *next;     /* in a list of relations */
    uint32_t kind;
    uint32_t generation; /* of the receiver */
    uint32_t peer_index, peer_generation;
    uint64_t ref;
    union {
        struct bz_signal
            *its; /* of LINK and WATCHES in a list: the request. NULL: it cannot be withdrawn */
        struct {
            uint32_t owed, owed_max; /* of BZ_SIGNAL_OWES in a list: relate.c */
        };
        struct {
            uint32_t far_node, far_creation; /* of BZ_SIGNAL_FAR_... */
        };
        const struct bz_ask_ops *ask; /* of BZ_SIGNAL_UPGRADE */
    };
    struct bz_hearing hearing; /* of a request */
    blitz_exit_reason reason;
};

/* The first message of an actor. */
#define BZ_MSG_START 0xfffffffeu
/* In a table of handlers: any message. */
#define BZ_MSG_ANY 0xfffffffdu
/* To a porter: a link has ended, and is trapped. Its task gets BLITZ_MSG_EXIT, unless it has unlinked since. */
#define BZ_MSG_LINK_EXIT 0xfffffffcu

extern const struct bz_task_ops bz_actor_ops;
extern const char bz_actor_kind[]; /* of these operations */
extern const struct bz_slot_ops bz_actor_slot_ops;

static BZ_ALWAYS_INLINE struct bz_actor *bz_actor_of(struct bz_task *t)
{
    return BZ_CONTAINER_OF(t, struct bz_actor, task);
}

/* ---- the state ---- */

/* Before a state that has a type: a pointer to the heap, or NULL. Behind it, if the actor ends when it is unreachable, a pointer to
 * its reference (reach.c). */
enum { BZ_HEAP_ROOM = 16 };

/* The bytes of a state, with that room. */
static inline size_t bz_actor_room(const blitz_behaviour *b)
{
    return b->state_bytes + (b->state_type != NULL ? BZ_HEAP_ROOM : 0);
}

/* Where the room begins. */
static inline void *bz_actor_room_of(struct bz_actor *a)
{
    return a->task.slot.flags & BZ_ACTOR_FAR ? *(void **)(a + 1) : a + 1;
}

static BZ_ALWAYS_INLINE void *bz_actor_state(struct bz_actor *a)
{
    if (BZ_LIKELY(!(a->task.slot.flags & (BZ_ACTOR_FAR | BZ_ACTOR_HEAP))))
        return a + 1;
    return (char *)bz_actor_room_of(a) + (a->task.slot.flags & BZ_ACTOR_HEAP ? BZ_HEAP_ROOM : 0);
}

/* actor_heap.c: a message was handled. Collect if enough was allocated. False: an allocation has failed. */
BZ_MUST_USE bool bz_actor_tidy(struct bz_actor *a);
/* An allocation of the calling actor has failed: it ends behind its handler. */
void bz_actor_starve(void);
/* The actor has got another state: it is the root of its heap. */
void bz_actor_heap_follow(struct bz_actor *a);
/* The actor ends: free its heap. */
void bz_actor_heap_end(struct bz_actor *a);

/*
 * In debug builds, if the heap of the calling actor is checked (heap_verify): abort if what it sends has a pointer into that heap.
 * Other heaps are not looked at: a struct that was not filled wholly has old words of the stack.
 */
#if defined(BZ_DEBUG)
void bz_actor_check_payload(const void *data, size_t size);
#else
static inline void bz_actor_check_payload(const void *data, size_t size)
{
    (void)data, (void)size;
}
#endif

/* The calling actor, or NULL. */
static BZ_ALWAYS_INLINE struct bz_actor *bz_actor_self(void)
{
    struct bz_task *t = bz_task_self();
    return t != NULL && t->ops->kind == bz_actor_kind ? bz_actor_of(t) : NULL;
}

static inline const blitz_behaviour *bz_actor_behaviour(struct bz_actor *a)
{
    return bz_load_acquire(&a->behaviour); /* upgrade_change.c [V]. Of a dead actor it is a guess */
}

/* The same for the owner, or the spawner. */
static BZ_ALWAYS_INLINE const blitz_behaviour *bz_actor_own_behaviour(struct bz_actor *a)
{
    return bz_load_relaxed(&a->behaviour); /* relaxed: written by the owner */
}

static inline uint32_t bz_actor_generation(struct bz_actor *a)
{
    return bz_load_relaxed(&a->box.generation); /* relaxed: the owner's, while it is alive */
}

static inline blitz_actor_id bz_actor_id_make(struct bz_runtime *rt, uint32_t index,
                                              uint32_t generation)
{
    return (blitz_actor_id){index, generation, 0, rt->creation};
}

/* The id of a living actor that the caller owns. */
blitz_actor_id bz_actor_id_of(struct bz_actor *a);

/* The runtime of an id; NULL: it is gone, or the id is of another node. */
struct bz_runtime *bz_actor_runtime(blitz_actor_id id);
/* The runtime with that number, if the caller is a task of it; else NULL. */
static BZ_ALWAYS_INLINE struct bz_runtime *bz_actor_runtime_mine(uint32_t creation)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL && m->rt->creation == creation ? m->rt : NULL;
}
/* The runtime that a call names; NULL: that of the caller, or NULL without one. */
struct bz_runtime *bz_actor_runtime_or_mine(blitz_runtime *runtime);
/* True if the caller is no task of that runtime, so that its user may release it meanwhile. */
static inline bool bz_actor_is_outside(const struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    return m == NULL || m->rt != rt;
}

/*
 * The runtime of an id does not go until the leave, which takes the result. A visit is brief (runtime/runtimes.h), and begins before
 * the calls below, which may not find the runtime any more: its end has begun. NULL: the caller is a task of that runtime, and needs
 * no visit; or there is no such runtime.
 */
struct bz_runtime *bz_actor_visit_elsewhere(blitz_actor_id id);
static BZ_ALWAYS_INLINE struct bz_runtime *bz_actor_visit(blitz_actor_id id)
{
    return BZ_LIKELY(bz_actor_runtime_mine(id.creation) != NULL) ? NULL
                                                                 : bz_actor_visit_elsewhere(id);
}

static BZ_ALWAYS_INLINE void bz_actor_leave(struct bz_runtime *visited)
{
    if (BZ_UNLIKELY(visited != NULL))
        bz_runtimes_leave(visited);
}

/* The same for a reply token. */
static inline blitz_actor_id bz_actor_place_of(blitz_reply_to to)
{
    return (blitz_actor_id){0, to.generation, 0, to.creation};
}

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
/* A signal of an actor of another node; NULL: no memory. */
struct bz_signal *bz_signal_new_far(struct bz_runtime *rt, enum bz_signal_kind kind,
                                    blitz_actor_id far);
/* Handle the signals of a living actor. False: it must end, and *why says why, unless it is cancelled. *rest are the signals not
 * handled. */
BZ_MUST_USE bool bz_signals_handle(struct bz_actor *a, struct bz_signal_link *s,
                                   struct bz_signal_link **rest, blitz_exit_reason *why);
/* The actor ends: take over what these signals ask for, so that bz_relations_end answers them. */
void bz_signals_bury(struct bz_actor *a, struct bz_signal_link *s);
/* Take the names and groups of an actor away: it is about to die. So they are free when its id is found dead. */
void bz_relations_unname(struct bz_actor *a);
/* Tell all relations of a dead actor. has_late: signals were buried, names may be among them. */
void bz_relations_end(struct bz_actor *a, uint32_t generation, const blitz_exit_reason *why,
                      bool has_late);
/* True if a name, a group or a link holds the actor, which is no porter: its list has no lock. */
static inline bool bz_relations_hold(const struct bz_actor *a)
{
    const struct bz_signal *s = a->relations;
    while (s != NULL && s->kind != BZ_SIGNAL_NAME && s->kind != BZ_SIGNAL_GROUP &&
           s->kind != BZ_SIGNAL_LINK && s->kind != BZ_SIGNAL_FAR_LINK)
        s = s->next;
    return s != NULL;
}
/* Take the reason that blitz_actor_exit() has left. */
void bz_relations_take_reason(struct bz_actor *a, blitz_exit_reason *why);

/* ---- messages: actor.c ---- */

/* Call the handler of a message. Returns what it returned; 0 if there is none. */
int bz_actor_handle(struct bz_actor *a, const blitz_msg *m);
/* Free a letter and its cargo. Each path that discards a message ends here: cargo.c. */
void bz_letter_drop(struct bz_runtime *rt, struct bz_letter *l);
/* A letter that no actor handles: answer its call, and drop it. */
void bz_letter_bury(struct bz_runtime *rt, struct bz_letter *l);

/* End an actor between two messages, for that reason; as blitz_actor_stop(). */
int bz_actor_end(blitz_actor_id id, const blitz_exit_reason *why);

/* ---- tasks that receive: actor_id.c; receive.c has the rest ---- */

/* The first part of an inbox. */
struct bz_receiver {
    blitz_actor_id id;
    struct bz_task *task;               /* with a reference */
    void (*end)(struct bz_receiver *r); /* the task has ended, or has given its id up */
};

/* The id of the calling task, if it receives. */
bool bz_receiver_self(blitz_actor_id *id);
extern const char bz_receiver_name[]; /* of the behaviour of porters: the actors behind such ids */
/* True if the actor is a porter. Any thread, while it lives. */
static inline bool bz_actor_is_porter(struct bz_actor *a)
{
    return bz_actor_behaviour(a)->name == bz_receiver_name;
}
/* The inbox of the calling task; NULL: it does not receive. */
struct bz_receiver *bz_receiver_here(void);
/* The message that the calling task has received last; NULL: none. */
const struct bz_letter *bz_receiver_current(void);
/* Set it; NULL ends the one that is there. As blitz_local_set(). */
BZ_MUST_USE int bz_receiver_set(struct bz_receiver *r);

/* ---- per runtime ---- */

struct bz_actors;
/* Return the part that the actors of a runtime share: actors.h. NULL: there was never an actor. */
struct bz_actors *bz_actors_of(struct bz_runtime *rt);
/* The same for the first actor. NULL: no memory. */
struct bz_actors *bz_actors_make(struct bz_runtime *rt);

#endif
