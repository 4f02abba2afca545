/*
 * pressure.h - overloaded actors and the senders that are held back for them. pressure.c has the design.
 */
#ifndef BZ_ACTOR_PRESSURE_H
#define BZ_ACTOR_PRESSURE_H

#include "actor/actor.h"
#include "proc/proc_timer.h"
#include "wait/waiter.h"

enum {
    BZ_MAILBOX_SHORT = 16,  /* a shorter mailbox is never overloaded, whatever its behaviour says */
    BZ_MAILBOX_HIGH = 1000, /* the default of mailbox_high */
    BZ_MAILBOX_MAX = 100000, /* the default of mailbox_max */
    BZ_MAILBOX_ALARM = 10,   /* times mailbox_high: a longer one is logged */
    BZ_PRESSURES = 64        /* 2^6: pressure.c */
};

/* How long the first mute of an overload lasts at most. Tests change it, before the first actor. */
extern uint64_t bz_mute_ns;

/* The count of messages that were dropped for the actors of one slot. It stays while the runtime lives. */
struct bz_dropped {
    struct bz_dropped *next;
    uint32_t index, generation; /* another generation: the count is that of an actor that is dead */
    uint64_t count;
};

/* The senders that are held back for some of the receivers: those whose index leads here. */
struct bz_pressure {
    struct bz_lock *lock; /* one for all lists; constant */
    bool is_armed; /* guarded by lock, as the rest: the timer, or what it wakes, is on its way */
    struct bz_list muted;   /* actors, by task.joiners; task.result is the index of the receiver */
    struct bz_list waiting; /* waiters of struct bz_sending */
    struct bz_dropped *dropped;
    uint64_t bound_ns; /* how long the next mute lasts at most */
    struct bz_timer timer;
    struct bz_runtime *rt; /* constant */
};

/* A wait in blitz_actor_send(), as a request: park/request.h. */
struct bz_sending {
    struct bz_request request;
    struct bz_runtime *rt;
    uint32_t index, generation; /* of the receiver */
    bool rings; /* it has entered the list, and rings after the lock; guarded by the lock */
    bool stays; /* it keeps the memory of the runtime: life/tasks.h */
};
extern const struct bz_request_ops bz_sending_ops;

static inline void bz_sending_init(struct bz_sending *s, blitz_actor_id to)
{
    *s = (struct bz_sending){
        .request.ops = &bz_sending_ops, .index = to.index, .generation = to.generation};
}

/* The nodes behind the first one, about. Any thread. */
static BZ_ALWAYS_INLINE uint32_t bz_mailbox_behind(struct bz_mailbox *b)
{
    uint32_t pairs =
        bz_load_relaxed(&b->added) - bz_load_relaxed(&b->removed); /* relaxed: counts */
    return (int32_t)pairs > 0 ? pairs : 0; /* a pair may be removed before it is counted */
}

static inline size_t bz_mailbox_high(const blitz_behaviour *b)
{
    return b->mailbox_high != 0 ? b->mailbox_high : BZ_MAILBOX_HIGH;
}

static inline size_t bz_mailbox_max(const blitz_behaviour *b)
{
    return b->mailbox_max != 0 ? b->mailbox_max : BZ_MAILBOX_MAX;
}

static inline bool bz_actor_is_over_high(struct bz_actor *a)
{
    return bz_mailbox_behind(&a->box) >= bz_mailbox_high(bz_actor_behaviour(a));
}

/* True if the actor waits in a handler, or its task for a message that it has not. */
static inline bool bz_actor_is_waiting(struct bz_actor *a)
{
    /* relaxed: a guess; the time bounds what it misses */
    return bz_load_relaxed(&a->task.wait) != 0 || bz_mailbox_is_hungry(&a->box);
}

/* True if a send to the actor must ask bz_pressure_meet() first. */
static BZ_ALWAYS_INLINE bool bz_actor_is_long(struct bz_actor *a)
{
    uint32_t behind = bz_mailbox_behind(&a->box);
    if (BZ_LIKELY(behind < BZ_MAILBOX_SHORT))
        return false; /* before the behaviour is touched */
    const blitz_behaviour *b = bz_actor_behaviour(a);
    return behind >= bz_mailbox_high(b) || behind >= bz_mailbox_max(b);
}

/* The same for a message of the actor `me`, which is to be muted already: it asks again only far above the mark. */
static inline bool bz_actor_is_too_long(const struct bz_actor *me, struct bz_actor *a)
{
    const blitz_behaviour *b = bz_actor_behaviour(a);
    uint32_t behind = bz_mailbox_behind(&a->box);
    return (me->task.slot.flags & BZ_ACTOR_MUTES) == 0 || b->policy != BLITZ_OVERLOAD_MUTE ||
           behind >= bz_mailbox_max(b) || behind / BZ_MAILBOX_ALARM >= bz_mailbox_high(b);
}

/* How a message is sent. */
enum bz_send_how {
    BZ_SEND_WAITS,  /* a fiber or a thread waits, an actor is muted later */
    BZ_SEND_TRIES,  /* the caller wants neither */
    BZ_SEND_CALLS,  /* the caller waits for the reply anyway */
    BZ_SEND_GRANTED /* it has waited */
};

/* ---- policies: overload.c ---- */

/* The fate of a message to an actor with a long mailbox; or -EAGAIN. */
enum { BZ_MET_PUSH = 0, BZ_MET_DROP = 1, BZ_MET_WAIT = 2 };
int bz_pressure_meet(struct bz_actor *a, enum bz_send_how how);
/* The owner, at the end of a turn, before its first node is handled: if its policy says so, drop messages. */
void bz_actor_drop_oldest(struct bz_actor *a);
uint64_t bz_dropped_get(struct bz_actor *a, uint32_t generation);

/* ---- holding senders back: pressure.c ---- */

/* The owner, in its rest: mute the actor, which has asked for it. It may run elsewhere on return. */
void bz_actor_mute(struct bz_actor *a);
/* A muted actor has a signal: it goes on. Any thread. */
void bz_actor_unmute(struct bz_actor *a);
/* The owner, at the end of a turn: senders are held back. Let some go on if the mailbox is short enough. */
void bz_actor_relieve(struct bz_actor *a);
/* The owner's actor has died: let all senders go on. */
void bz_actor_relieve_all(struct bz_actor *a);

/* The actor has more to drop or to let go on: it looks at the end of its turn. Any thread. */
void bz_actor_press(struct bz_actor *a);
/* The lists of a receiver. */
struct bz_pressure *bz_pressure_of(struct bz_runtime *rt, uint32_t index);

struct bz_actors;
void bz_pressures_init(struct bz_runtime *rt, struct bz_actors *all);
/* The runtime ends. */
void bz_pressures_end(struct bz_runtime *rt, struct bz_pressure *all);

#endif
