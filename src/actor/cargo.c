/*
 * cargo.c - cargo of messages: into a letter or a ticket, out of it, or freed with it.
 *
 * The sender's reference or block is taken when the letter is made, and given back if the send fails after that. From then on
 * the letter owns it. The handler sees it; at the handler's return it is released, unless the handler took the block. A
 * letter that no handler sees is dropped by bz_letter_drop(), and the cargo with it: a mailbox of a dead actor, a timer that is
 * cancelled, the end of the runtime.
 *
 * A reply goes into the caller's ticket, under its lock. If the ticket is over, the reply is dropped. The caller that leaves
 * without it drops it when it closes the ticket.
 *
 * A reference travels in a parcel. A letter that is pushed to an actor that has just died stays in its mailbox until another actor gets
 * that memory (mailbox.h). A binary can wait there; a reference must not, because it holds an actor. So the sender has a share of the
 * parcel. If it finds the receiver dead behind its push, it takes the reference out. The dying actor may be at the same letter: one
 * of them gets it.
 *
 * [P] empty: reference acq_rel -> empty: reference acq_rel   one party gets the reference
 *
 * I1  A letter with cargo NONE has no pointer behind its payload. Otherwise the pointer is the letter's.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/cargo.h"
#include "actor/send.h"
#include "actor/reaching.h"
#include "actor/shares.h"

static_assert(sizeof(struct bz_letter) + BLITZ_MSG_BYTES_MAX + sizeof(void *) <= BZ_LETTER_LARGE,
              "the largest message with cargo is one letter");

/* ---- parcels ---- */

struct bz_parcel {
    bz_atomic(blitz_reference *) reference; /* NULL: taken out */
    struct bz_shares shares;                /* of the message, and of its sender */
    blitz_allocator alloc;
};

/* NULL: no memory. The allocator is that of the reference, which the sender holds. */
static struct bz_parcel *parcel_new(blitz_reference *r)
{
    struct bz_parcel *p = bz_alloc(&r->alloc, sizeof *p, _Alignof(struct bz_parcel));
    if (p == NULL)
        return NULL;
    bz_atomic_init(&p->reference, blitz_reference_ref(r));
    bz_shares_init(&p->shares, 1);
    p->alloc = r->alloc;
    return p;
}

static void parcel_unref(struct bz_parcel *p)
{
    if (!bz_shares_drop(&p->shares))
        return;
    blitz_allocator from = p->alloc;
    bz_free(&from, p, sizeof *p);
}

/* Take the reference out; NULL: another party has. */
static blitz_reference *parcel_empty(struct bz_parcel *p)
{
    return bz_xchg_acqrel(&p->reference, NULL); /* [P] */
}

/* The message is gone. */
static void parcel_release(struct bz_parcel *p)
{
    blitz_reference_unref(parcel_empty(p));
    parcel_unref(p);
}

void bz_parcel_sent(struct bz_parcel *p, bool is_alive)
{
    if (!is_alive)
        blitz_reference_unref(parcel_empty(p));
    parcel_unref(p);
}

/* ---- one piece ---- */

/* The sender's pointer may be of any type: its bytes are read and written, not its value. */
static void *pointer_at(const void *variable)
{
    void *block;
    memcpy(&block, variable, sizeof block);
    return block;
}

static void pointer_set(void *variable, void *block)
{
    memcpy(variable, &block, sizeof block);
}

bool bz_cargo_is_bad(const blitz_cargo *c)
{
    if (c == NULL || c->move == NULL)
        return c != NULL && c->reference != NULL && c->binary != NULL;
    return c->binary != NULL || c->reference != NULL || pointer_at(c->move) == NULL;
}

void *bz_cargo_load(const blitz_cargo *c, enum bz_cargo_kind *kind)
{
    *kind = BZ_CARGO_NONE;
    if (c == NULL)
        return NULL;
    if (c->binary != NULL) {
        *kind = BZ_CARGO_BINARY;
        return blitz_binary_ref(c->binary);
    }
    if (c->move == NULL) {
        if (c->reference == NULL)
            return NULL;
        *kind = BZ_CARGO_REFERENCE;
        return parcel_new(c->reference);
    }
    void *block = pointer_at(c->move);
    *kind = BZ_CARGO_BLOCK;
    bz_block_send(block);
    pointer_set(c->move, NULL);
    return block;
}

void bz_cargo_unload(const blitz_cargo *c, enum bz_cargo_kind kind, void *what)
{
    if (kind == BZ_CARGO_BLOCK) {
        bz_block_return(what);
        pointer_set(c->move, what);
    } else {
        bz_cargo_release(kind, what);
    }
}

/* A reference to the receiver of a message with other cargo. */
struct hold {
    blitz_reference *reference;
    enum bz_cargo_kind kind;
    void *piece;
    blitz_allocator alloc;
};

static void hold_free(struct hold *h)
{
    blitz_allocator from = h->alloc;
    bz_free(&from, h, sizeof *h);
}

static BZ_NOINLINE void release_reference(enum bz_cargo_kind kind, void *what)
{
    if (kind == BZ_CARGO_HOLD)
        blitz_reference_unref(what);
    else if (kind == BZ_CARGO_REFERENCE && what != NULL)
        parcel_release(what);
    if (kind != BZ_CARGO_HOLD_MORE)
        return;
    struct hold *h = what;
    bz_cargo_release(h->kind, h->piece);
    blitz_reference_unref(h->reference);
    hold_free(h);
}

void bz_cargo_release(enum bz_cargo_kind kind, void *what)
{
    if (kind == BZ_CARGO_BINARY)
        blitz_binary_unref(what);
    else if (kind == BZ_CARGO_BLOCK)
        bz_block_release(what);
    else if (kind != BZ_CARGO_NONE)
        release_reference(kind, what);
}

void bz_cargo_give(enum bz_cargo_kind kind, void *what, blitz_arrival *got)
{
    struct bz_actor *me = bz_actor_self();
    struct bz_block_owner owner = {0, 0};
    if (kind == BZ_CARGO_BINARY)
        got->binary = what;
    if (kind == BZ_CARGO_REFERENCE) {
        got->reference = parcel_empty(what);
        parcel_unref(what);
    }
    if (kind != BZ_CARGO_BLOCK)
        return;
    if (me != NULL)
        owner = (struct bz_block_owner){me->task.slot.index, bz_actor_generation(me)};
    bz_block_arrive(what, owner);
    bz_block_take(what);
    got->block = what;
}

/* ---- of a letter ---- */

/* The cargo that the sender has put into a letter with cargo. */
static void *cargo_of(const struct bz_letter *l, enum bz_cargo_kind *kind)
{
    void *what = *bz_letter_cargo((struct bz_letter *)(uintptr_t)l); /* NOLINT: only read */
    *kind = l->cargo;
    if (BZ_LIKELY(*kind < BZ_CARGO_HOLD))
        return what;
    const struct hold *h = *kind == BZ_CARGO_HOLD_MORE ? what : NULL;
    *kind = h != NULL ? h->kind : BZ_CARGO_NONE;
    return h != NULL ? h->piece : NULL;
}

void bz_letter_show(struct bz_block_owner owner, struct bz_letter *l, blitz_msg *m)
{
    enum bz_cargo_kind kind;
    void *what = cargo_of(l, &kind);
    if (kind == BZ_CARGO_BINARY) {
        m->binary = what;
    } else if (kind == BZ_CARGO_BLOCK) {
        bz_block_arrive(what, owner);
        m->block = what;
    }
}

blitz_reference *bz_letter_reference(const struct bz_letter *l)
{
    enum bz_cargo_kind kind = BZ_CARGO_NONE;
    void *what = l->cargo != BZ_CARGO_NONE ? cargo_of(l, &kind) : NULL;
    /* relaxed: the message was received */
    return kind == BZ_CARGO_REFERENCE ? bz_load_relaxed(&((struct bz_parcel *)what)->reference)
                                      : NULL;
}

struct bz_parcel *bz_letter_parcel(const struct bz_letter *l)
{
    struct bz_parcel *p =
        l->cargo == BZ_CARGO_REFERENCE
            ? *bz_letter_cargo((struct bz_letter *)(uintptr_t)l) /* NOLINT: read */
            : NULL;
    if (p != NULL)
        bz_shares_add(&p->shares);
    return p;
}

blitz_reference *bz_handled_reference(struct bz_actor *me, const blitz_msg *m)
{
    struct bz_mpsc_node *first = bz_mailq_first(&me->box.queue);
    if (first == &me->box.stub || bz_mailbox_is_bell(&me->box, first))
        return NULL;
    const struct bz_letter *l = BZ_CONTAINER_OF(first, struct bz_letter, node);
    return m->data == l->data ? bz_letter_reference(l) : NULL;
}

bool bz_letter_hold(struct bz_runtime *rt, struct bz_letter *l, blitz_reference *r)
{
    if (l->cargo == BZ_CARGO_NONE) {
        l->cargo = BZ_CARGO_HOLD;
        *bz_letter_cargo(l) = r;
        return true;
    }
    struct hold *h = bz_alloc(&rt->alloc, sizeof *h, _Alignof(struct hold));
    if (h == NULL)
        return false;
    *h = (struct hold){r, l->cargo, *bz_letter_cargo(l), rt->alloc};
    l->cargo = BZ_CARGO_HOLD_MORE;
    *bz_letter_cargo(l) = h;
    return true;
}

void bz_letter_unhold(struct bz_letter *l)
{
    void *what = *bz_letter_cargo(l);
    if (l->cargo == BZ_CARGO_HOLD) {
        l->cargo = BZ_CARGO_NONE;
        blitz_reference_unref(what);
        return;
    }
    struct hold *h = what;
    l->cargo = (uint8_t)h->kind;
    *bz_letter_cargo(l) = h->piece;
    blitz_reference_unref(h->reference);
    hold_free(h);
}

void bz_letter_unload(struct bz_letter *l)
{
    enum bz_cargo_kind kind = l->cargo;
    l->cargo = BZ_CARGO_NONE; /* I1 */
    if (kind != BZ_CARGO_NONE)
        bz_cargo_release(kind, *bz_letter_cargo(l));
}

void bz_letter_drop(struct bz_runtime *rt, struct bz_letter *l)
{
    bz_letter_unload(l);
    bz_letter_free(rt, l);
}

void bz_letter_bury(struct bz_runtime *rt, struct bz_letter *l)
{
    if (l->reply.generation != 0)
        bz_ticket_answer(rt, l->reply, -ESRCH, NULL, 0);
    bz_letter_drop(rt, l);
}

/* ---- sending ---- */

int blitz_actor_send_with(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                          const blitz_cargo *cargo)
{
    return bz_cargo_is_bad(cargo) ? -EINVAL
                                  : bz_send_until(to, what, data, size, cargo, BLITZ_FOREVER);
}

void blitz_actor_send_with_future_init(blitz_actor_send_future *f, blitz_actor_id to, uint32_t what,
                                       const void *data, size_t size, const blitz_cargo *cargo)
{
    bz_send_future_init(f, to, what, data, size, cargo);
    if (bz_cargo_is_bad(cargo))
        f->result = -EINVAL;
}

int blitz_actor_send_after_with(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                                const blitz_cargo *cargo, blitz_deadline when, uint64_t *timer)
{
    return bz_cargo_is_bad(cargo) ? -EINVAL
                                  : bz_send_after(to, what, data, size, cargo, when, timer);
}

int blitz_actor_reply_with(blitz_reply_to to, const void *data, size_t size,
                           const blitz_cargo *cargo)
{
    enum bz_cargo_kind kind;
    if (size > BLITZ_MSG_BYTES_MAX || (data == NULL && size > 0) || bz_cargo_is_bad(cargo))
        return -EINVAL;
    bz_actor_check_payload(data, size);
    void *what = bz_cargo_load(cargo, &kind);
    if (what == NULL && kind != BZ_CARGO_NONE)
        return -ENOMEM;
    struct bz_runtime *visited = bz_actor_visit(bz_actor_place_of(to));
    struct bz_runtime *rt = bz_actor_runtime(bz_actor_place_of(to));
    if (rt == NULL || to.generation == 0 ||
        !bz_ticket_answer_with(rt, to, (int)size, data, size, kind, what))
        bz_cargo_release(kind, what);
    bz_actor_leave(visited);
    return 0;
}
