/*
 * cargo.h - what a message carries besides its payload: a counted binary, a block that moves, or a reference to an actor. binary.c,
 * reach.c and cargo.c.
 *
 * A letter with cargo has a pointer behind its payload, and says in `cargo` what it points to. A ticket has the same for a
 * reply. The holder of such a pair releases it with bz_cargo_release(). Each path that discards a message comes there by
 * bz_letter_drop().
 */
#ifndef BZ_ACTOR_CARGO_H
#define BZ_ACTOR_CARGO_H

#include "actor/actor.h"
#include "blitz/binary.h"

enum bz_cargo_kind {
    BZ_CARGO_NONE,
    BZ_CARGO_BINARY,
    BZ_CARGO_BLOCK,
    BZ_CARGO_REFERENCE, /* a parcel: cargo.c */
    BZ_CARGO_HOLD, /* a reference to the receiver, which is not shown: the message is sent later */
    BZ_CARGO_HOLD_MORE /* the same, and other cargo: a struct of cargo.c */
};

/* The owner of a block: an actor, or any party that is none (generation 0). */
struct bz_block_owner {
    uint32_t index, generation;
};

/* ---- blocks: binary.c ---- */

/* The caller gives its block to a message. Abort if it is not the caller's. */
void bz_block_send(void *block);
/* The message was not sent: the block is the caller's again. */
void bz_block_return(void *block);
/* The block is with its receiver, and belongs to the message until it is taken. */
void bz_block_arrive(void *block, struct bz_block_owner owner);
/* The receiver takes it from the message. */
void bz_block_take(void *block);
/* Free the block of a message. */
void bz_block_release(void *block);

/* ---- cargo: cargo.c ---- */

bool bz_cargo_is_bad(const blitz_cargo *c);
/* The letter, whose sender gave it that cargo, holds the actor r until it is handled. It takes the reference. False: no memory. The
 * letter has room for cargo. */
BZ_MUST_USE bool bz_letter_hold(struct bz_runtime *rt, struct bz_letter *l, blitz_reference *r);
/* Undo that. */
void bz_letter_unhold(struct bz_letter *l);
/* The reference that the sender has put into a letter; NULL: none. */
blitz_reference *bz_letter_reference(const struct bz_letter *l);
/* The same for the message that the calling actor handles. A message about the end of another actor has none. */
blitz_reference *bz_handled_reference(struct bz_actor *me, const blitz_msg *m);
/* Take what it names; NULL: nothing, or no memory for a parcel, if *kind is not NONE. *kind says what the result points to. */
void *bz_cargo_load(const blitz_cargo *c, enum bz_cargo_kind *kind);
/* Undo that: a block goes back to the pointer that it came from. */
void bz_cargo_unload(const blitz_cargo *c, enum bz_cargo_kind kind, void *what);
void bz_cargo_release(enum bz_cargo_kind kind, void *what);
/* The parcel of a letter that is about to be sent, for bz_parcel_sent(); NULL: it has none. */
struct bz_parcel *bz_letter_parcel(const struct bz_letter *l);
/* It was pushed. If its receiver has ended, no owner may ever see the letter: take the reference back. */
void bz_parcel_sent(struct bz_parcel *p, bool is_alive);
/* Hand it to a caller: the reference or the block is the caller's. */
void bz_cargo_give(enum bz_cargo_kind kind, void *what, blitz_arrival *got);

/* Show the cargo of a letter to its receiver. */
void bz_letter_show(struct bz_block_owner owner, struct bz_letter *l, blitz_msg *m);
/* Release the cargo of a letter, if it has one and no handler took it. */
void bz_letter_unload(struct bz_letter *l);

/* The bytes of a payload, so that a pointer behind it is aligned. */
static inline size_t bz_letter_room(size_t size)
{
    return (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

/* Where a letter with cargo has its pointer. */
static inline void **bz_letter_cargo(struct bz_letter *l)
{
    return (void **)(void *)(l->data + bz_letter_room(l->size));
}

#endif
