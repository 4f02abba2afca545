/*
 * reach.h - the strong count of an actor that ends when nothing holds it: one word. reach.c has the rest.
 *
 *     bits 0-31    strong references
 *     bit 32       closed: the actor ends
 *     bit 33       suspect: the block is in the list of suspects (detector.c)
 *     bit 34       kept: the detector has the block
 *     bit 35       ended: the actor does not use the block any more
 *     bit 36       holds: the actor may hold others; set and cleared by its owner
 *     bits 37-63   the version: how often a reference was made from an id
 *
 * The word is in a block that outlives the actor. The last holder frees it: the actor, a reference, the list, or the detector.
 *
 * A reference is made from another one, which is a plain addition; by the actor itself; or from an id. Only the last two can leave 0.
 *
 * The end. The owner of the actor reads the word. If the count is 0, it looks at everything else that could hold the actor: its
 * mailbox, its signals, its relations. A holder that has sent a message, and has released its reference after that, is seen: [D].
 * Then the owner closes the word, if it is still the same. A reference that was made from an id meanwhile, and released again, has
 * left a message perhaps; but it has changed the version, and the owner looks again.
 *
 * A release that leaves 0 must ring the actor, which is idle perhaps. The ringer may come too late: then the actor is closed, and a
 * bell in a dead mailbox does nothing.
 *
 * A release that does not leave 0 may leave a circle that nothing else holds, if the actor holds others. Then the same step makes the
 * actor a suspect, and the caller puts the block into the list. The bit keeps the block alive, so the step comes first. `holds` is in
 * the word because of the other case: the actor does not hold others yet. Then the release comes before the bit is set, and so
 * before the rest at which the actor suspects itself: the detector sees the count without it. A releaser that looked at another word
 * before its step could be late for both.
 *
 * Rejected:
 *  - counts in messages, added up by the actor that is counted (deferred counting): no shared word, but each copy of a reference
 *    costs a message, and an end needs all of them;
 *  - a count in the actor: an actor that does not opt in would carry it, and its memory goes to others at its end.
 *
 * I1  The block is freed by the step that leaves a word with the bit ended alone, besides the version and the bit closed.
 * I2  The count of an open word can leave 0 only by the actor itself, or with a new version.
 *
 * [D] drop: word release -> look: word acquire   the owner sees what the holder has sent
 * [F] drop: word release -> the last drop, forget or end: word acquire   no holder reads a freed block
 * [S] keep_suspect: word release -> drop, suspect: word acquire    the detector has read the link in the list before the next
 *                                                                  lister writes it: it walks its list without the lock
 */
#ifndef BZ_ACTOR_REACH_H
#define BZ_ACTOR_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/check.h"

struct bz_reach {
    bz_atomic(uint64_t) word;
};

#define BZ_REACH_COUNT UINT64_C(0xffffffff)
#define BZ_REACH_CLOSED (UINT64_C(1) << 32)
#define BZ_REACH_SUSPECT (UINT64_C(1) << 33)
#define BZ_REACH_KEPT (UINT64_C(1) << 34)
#define BZ_REACH_ENDED (UINT64_C(1) << 35)
#define BZ_REACH_HOLDS (UINT64_C(1) << 36)
#define BZ_REACH_VERSION (UINT64_C(1) << 37)

/* The duty of a caller behind a release: ring the actor, list the block as a suspect, or free it. */
enum bz_reach_owes { BZ_REACH_NOTHING, BZ_REACH_RING, BZ_REACH_LIST, BZ_REACH_FREE };

static inline void bz_reach_init(struct bz_reach *r, uint32_t count)
{
    bz_atomic_init(&r->word, count);
}

static inline uint32_t bz_reach_count(uint64_t word)
{
    return (uint32_t)(word & BZ_REACH_COUNT);
}

/* True if nothing refers to the block any more: I1. */
static inline bool bz_reach_is_last(uint64_t word)
{
    return (word & (BZ_REACH_COUNT | BZ_REACH_SUSPECT | BZ_REACH_KEPT | BZ_REACH_ENDED)) ==
           BZ_REACH_ENDED;
}

/* Add a reference. The caller holds one, or is the actor in its turn. */
static inline void bz_reach_add(struct bz_reach *r)
{
    uint64_t was = bz_fetch_add_relaxed(&r->word, 1); /* relaxed: the caller keeps the block */
    BZ_CHECK(bz_reach_count(was) < UINT32_MAX, "%p: too many references", (void *)r);
}

/* Add a reference that is made from an id. False: the actor ends. The caller knows that the block is there. */
BZ_MUST_USE static inline bool bz_reach_try_add(struct bz_reach *r)
{
    uint64_t word = bz_load_relaxed(&r->word); /* relaxed: a first guess */
    while ((word & BZ_REACH_CLOSED) == 0)
        /* relaxed: the lock of the table has the block, and the holder's drop publishes what it sends; I2 */
        if (bz_cas_weak_rlx_rlx(&r->word, &word, word + BZ_REACH_VERSION + 1))
            return true;
    return false;
}

/* True if the actor may hold others. A hint but for the owner. */
static inline bool bz_reach_holds(struct bz_reach *r)
{
    return bz_load_relaxed(&r->word) & BZ_REACH_HOLDS; /* relaxed: it suspects itself later */
}

/* The owner: the actor may hold others from here on, or does not. */
static inline void bz_reach_set_holds(struct bz_reach *r, bool holds)
{
    if (bz_reach_holds(r) == holds)
        return;
    if (holds)
        bz_fetch_or_relaxed(&r->word, BZ_REACH_HOLDS); /* relaxed: one word has one order */
    else
        bz_fetch_and_relaxed(&r->word, ~BZ_REACH_HOLDS); /* relaxed: likewise */
}

/* Release a reference. */
BZ_MUST_USE static inline enum bz_reach_owes bz_reach_drop(struct bz_reach *r)
{
    uint64_t word = bz_load_relaxed(&r->word), to; /* relaxed: a first guess */
    enum bz_reach_owes owes;
    do {
        BZ_CHECK(bz_reach_count(word) > 0, "%p: released too often", (void *)r);
        to = word - 1;
        if (word & BZ_REACH_CLOSED) {
            owes = bz_reach_is_last(to) ? BZ_REACH_FREE : BZ_REACH_NOTHING;
        } else if (bz_reach_count(to) == 0) {
            owes = BZ_REACH_RING;
        } else if ((word & (BZ_REACH_HOLDS | BZ_REACH_SUSPECT)) == BZ_REACH_HOLDS) {
            to |= BZ_REACH_SUSPECT;
            owes = BZ_REACH_LIST;
        } else {
            owes = BZ_REACH_NOTHING;
        }
    } while (!bz_cas_weak_acqrel_rlx(&r->word, &word, to)); /* [D] [F] [S] */
    return owes;
}

/* The owner suspects its actor. True: the caller lists the block. */
BZ_MUST_USE static inline bool bz_reach_suspect(struct bz_reach *r)
{
    return (bz_fetch_or_acquire(&r->word, BZ_REACH_SUSPECT) & BZ_REACH_SUSPECT) == 0; /* [S] */
}

/* The detector takes a block off the list, and keeps it; or takes one that it knows to be there. */
static inline void bz_reach_keep_suspect(struct bz_reach *r)
{
    uint64_t word = bz_load_relaxed(&r->word); /* relaxed: a first guess */
    while (!bz_cas_weak_rel_rlx(&r->word, &word, (word | BZ_REACH_KEPT) & ~BZ_REACH_SUSPECT))
        ; /* [S] */
}

static inline void bz_reach_keep(struct bz_reach *r)
{
    bz_fetch_or_relaxed(&r->word, BZ_REACH_KEPT); /* relaxed: the lock keeps the block */
}

/* The detector, or the list, gives the block up: clear that bit. True: the caller frees it. */
BZ_MUST_USE static inline bool bz_reach_forget(struct bz_reach *r, uint64_t bit)
{
    return bz_reach_is_last(bz_fetch_and_acqrel(&r->word, ~bit) & ~bit); /* [F] */
}

/* The owner looks at the word before it looks at what else holds the actor. */
static inline uint64_t bz_reach_look(struct bz_reach *r)
{
    return bz_load_acquire(&r->word); /* [D] */
}

/* The owner has found nothing that holds the actor. False: it must look again. */
BZ_MUST_USE static inline bool bz_reach_close_if(struct bz_reach *r, uint64_t word)
{
    /* relaxed: the look has acquired the last drop, [D]; the end follows, [F] */
    return bz_cas_strong_rlx_rlx(&r->word, &word, word | BZ_REACH_CLOSED);
}

/* The actor ends. No reference is made from its id any more. */
static inline void bz_reach_close(struct bz_reach *r)
{
    bz_fetch_or_relaxed(&r->word, BZ_REACH_CLOSED); /* relaxed: the lock of the table */
}

/* The last that the owner does to the block. True: the caller frees it. */
BZ_MUST_USE static inline bool bz_reach_end(struct bz_reach *r)
{
    return bz_reach_is_last(bz_fetch_or_acqrel(&r->word, BZ_REACH_ENDED) |
                            BZ_REACH_ENDED); /* [F] */
}

#endif
