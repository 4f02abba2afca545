/*
 * reaching.h - actors that end when nothing can reach them: reach.c has their references, reaching.c their rest. reach.h has the
 * count.
 */
#ifndef BZ_ACTOR_REACHING_H
#define BZ_ACTOR_REACHING_H

#include "actor/actor.h"
#include "actor/reach.h"
#include "blitz/reference.h"

struct bz_actors;

/* Actors that hold each other, and that nothing else held when the detector last looked. Its fields are the detector's;
 * members write the last two under bz_actors.reach_lock. */
struct bz_circle {
    uint64_t pass;
    uint32_t first; /* node */
    bool is_done;
    bool is_spared; /* a member woke, or has another holder: the group does not end */
    uint32_t open;  /* members that have not agreed to end */
};

/* The block behind all references to one actor. It outlives the actor, and may outlive the runtime. */
struct blitz_reference {
    struct bz_reach reach;
    struct bz_runtime *rt; /* constant, as the next two; there while the word is open */
    blitz_actor_id id;
    blitz_allocator alloc;
    blitz_reference *next; /* in its bucket of the table; guarded by bz_actors.reach_lock */

    /* Of the actor: its owner's. */
    bool has_run;    /* it has handled a message or a signal since its last report */
    uint64_t agreed; /* the pass in which it has agreed to end; 0: none */
    void (*step)(
        struct bz_actor *a); /* the detector's, for each of its rests; NULL: another actor */

    /* Between the actor and the detector: guarded by bz_actors.reach_lock. */
    bz_atomic(uint32_t)
        is_wanted;            /* one of the next fields is set: the owner looks without the lock */
    bool is_asked;            /* for a report */
    bool is_missed;           /* its report or its answer came too late: it is a suspect again */
    bool is_condemned;        /* it must end */
    bool has_failed;          /* the report lacked memory */
    struct bz_circle *group;  /* asks the actor whether it agrees to end; NULL: none */
    struct bz_report *report; /* for the detector; NULL: something holds the actor */
    blitz_reference *next_suspect, *next_report; /* in the detector's lists */

    uint32_t node; /* the detector's: the number of its node, from 1; 0: none */
};

/* The references that an actor holds: the ids of the actors that they lead to. */
struct bz_edge {
    uint32_t index, generation;
};

struct bz_report {
    uint32_t count;
    struct bz_edge edge[];
};

/* The living references of a runtime, by id. */
struct bz_references {
    blitz_reference *
        *bucket; /* NULL: there was never one. Guarded by bz_actors.reach_lock, as the rest */
    uint32_t buckets, count;             /* buckets: a power of 2 */
    blitz_reference *detector;           /* NULL: none yet */
    blitz_reference *suspects, *reports; /* for the detector: lists */
};

/* The operations of such an actor: as bz_actor_ops, and what is below. */
extern const struct bz_task_ops bz_reaching_ops;

/* Where such an actor has its reference; NULL: it ends. */
static inline blitz_reference **bz_reference_at(struct bz_actor *a)
{
    return (blitz_reference **)bz_actor_room_of(a) + 1;
}

/* ---- birth and death ---- */

/* Make the block of a new actor, with that many references. NULL: no memory. */
blitz_reference *bz_reference_new(struct bz_runtime *rt, uint32_t count);
/* Before that: make room for it in the table. False: no memory. */
BZ_MUST_USE bool bz_references_reserve(struct bz_runtime *rt);
/* The spawn has failed. */
void bz_reference_free(blitz_reference *r);
/* The actor gets its id, and can be found by it from here on. It is not placed yet. */
void bz_reference_show(struct bz_actor *a, blitz_reference *r, blitz_actor_id id);
/* The owner, before the actor dies: no reference can be made from here on. */
void bz_reaching_end(struct bz_actor *a);
void bz_references_end(struct bz_runtime *rt, struct bz_actors *all);

/* ---- life ---- */

/* The owner, before it handles a message or a signal. False: the actor is condemned, and must end. */
BZ_MUST_USE bool bz_reaching_wakes(struct bz_actor *a);

/* The owner, at the end of a turn: `first` was handled, and may be the last node. True: nothing holds the actor, and it must end. */
BZ_MUST_USE bool bz_reaching_rests(struct bz_actor *a, struct bz_mpsc_node *first);

/* A block by its id, or NULL. Under bz_actors.reach_lock. */
blitz_reference *bz_reference_find(struct bz_references *t, blitz_actor_id id);
/* Take a block out of the table. Likewise. */
void bz_reference_hide(struct bz_references *t, const blitz_reference *r);
/* Put a suspect into the list, whose bit is set, and tell the detector. */
void bz_reference_list(blitz_reference *r);
/* Ring the actor of a block that the caller keeps. */
void bz_reference_ring(const blitz_reference *r);
/* Ring the detector, if there is one. */
void bz_detector_ring(struct bz_runtime *rt);
void bz_report_free(struct bz_runtime *rt, struct bz_report *report);

/* heap_reference.c: call fn for each reference that a heap holds; heap NULL: none. */
void bz_heap_references(const blitz_heap *heap, void (*fn)(blitz_reference *r, void *ctx),
                        void *ctx);
/* actor_heap.c: the heap of an actor between two messages, or NULL; behind a full collection. *has_failed: there was no memory for
 * that, and what is dead holds others still. */
blitz_heap *bz_actor_heap_between(struct bz_actor *a, bool collects, bool *has_failed);

/* ---- circles: detector.c ---- */

/* How long the detector waits before a pass, and in a pass for actors that are not idle. Tests change them, before the first actor. 0:
 * not at all; for ever. */
extern uint64_t bz_detect_pause_ns, bz_detect_limit_ns;

/* Make sure that there is a detector for actors of that behaviour. Returns 0 or the error of a spawn. */
BZ_MUST_USE int bz_detector_begin(struct bz_runtime *rt, const blitz_behaviour *b);

#endif
