/*
 * upgrade_change.c - one actor changes from one version of its behaviour to another.
 *
 * It is the owner that does it, between two messages, when it hears the ask (relate.c). So no handler of the actor has a frame. The
 * new state is made in a block of its own. The old one stays whole until the function has succeeded, and is the state again
 * if not. Then the new state goes to the slot if it fits there. The block is its place otherwise, as for any large state.
 *
 *     from == to                  nothing to do: it was born with it, or asked twice
 *     to is of an older upgrade   nothing to do: a later one overtook it
 *     the same number             the state stays where it is, and only the code changes: sizes and types must be equal
 *     else                        code_change(old, number of the old, new)
 *
 * With a private heap the new state is the root from then on. Objects stay where they are. Objects that only the old state
 * referred to are garbage.
 * The words before the state (the heap, the reference) move along.
 *
 * A failure leaves the actor as it was: a reason that the function has left by blitz_actor_fail() is dropped, unless the actor is to
 * end of it. An allocation in the heap that failed is a failure of the function, whatever it returns.
 *
 * I1  The behaviour of a living actor is changed by its owner alone; others read a version, which is never freed.
 *
 * [V] change: behaviour release -> actor.h, any thread: behaviour acquire   the version is filled in
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/upgrading.h"
#include "heap/heap.h"

/* ---- where the state is ---- */

static size_t head_bytes(const blitz_behaviour *b)
{
    return b->state_type != NULL ? BZ_HEAP_ROOM : 0;
}

/* The bytes of a block for a new state, which is never empty. */
static size_t block_bytes(const blitz_behaviour *b)
{
    size_t bytes = bz_actor_room(b);
    return bytes > 0 ? bytes : 1;
}

/* True if the state fits in the slot of the actor. */
static bool is_near(struct bz_actor *a, const blitz_behaviour *b)
{
    uint32_t kind = a->task.slot.index % (1u << BZ_SLOT_KIND_BITS);
    return sizeof *a + bz_actor_room(b) <= a->task.rt->tasks.slots.kind[kind].size;
}

/* The block `room` is the new state, with what is before it. The old one is given up. */
static void move_in(struct bz_actor *a, const blitz_behaviour *from, const blitz_behaviour *to,
                    void *room)
{
    const blitz_allocator *alloc = &a->task.rt->alloc;
    if (a->task.slot.flags & BZ_ACTOR_FAR)
        bz_free(alloc, bz_actor_room_of(a), bz_actor_room(from));
    if (is_near(a, to)) {
        memcpy(a + 1, room, bz_actor_room(to));
        bz_free(alloc, room, block_bytes(to));
        a->task.slot.flags &= ~(uint32_t)BZ_ACTOR_FAR;
    } else {
        *(void **)(a + 1) = room;
        a->task.slot.flags |= BZ_ACTOR_FAR;
    }
}

/* ---- the change ---- */

static int call_change(struct bz_actor *a, const blitz_change *change, uint32_t from, void *state)
{
    int rc = change->code_change(bz_actor_state(a), from, state);
    if (rc == 0 && (a->task.slot.flags & BZ_ACTOR_STARVED))
        rc = -ENOMEM;
    return rc > 0 ? -EINVAL : rc;
}

/* Make the new state, and move to it. */
static int convert(struct bz_actor *a, const blitz_behaviour *from, const struct bz_version *to)
{
    const blitz_change *change = bz_version_change(to, from->version);
    size_t head = head_bytes(&to->b);
    if (change == NULL)
        return -EOPNOTSUPP;
    char *room = bz_alloc(&a->task.rt->alloc, block_bytes(&to->b), _Alignof(max_align_t));
    if (room == NULL)
        return -ENOMEM;
    memcpy(room, bz_actor_room_of(a), head);
    memset(room + head, 0, to->b.state_bytes);
    int rc = call_change(a, change, from->version, room + head);
    if (rc == 0)
        move_in(a, from, &to->b, room);
    else
        bz_free(&a->task.rt->alloc, room, block_bytes(&to->b));
    return rc;
}

static bool is_same_state(const blitz_behaviour *a, const blitz_behaviour *b)
{
    uint32_t x = a->state_type != NULL ? a->state_type->index : 0;
    uint32_t y = b->state_type != NULL ? b->state_type->index : 0;
    return a->state_bytes == b->state_bytes && x == y;
}

static int change(struct bz_actor *a, const blitz_behaviour *from, struct bz_version *to)
{
    int rc;
    if (from->version != to->b.version)
        rc = convert(a, from, to);
    else
        rc = is_same_state(from, &to->b) ? 0 : -EINVAL;
    if (rc != 0)
        return rc;
    bz_store_release(&a->behaviour, &to->b); /* [V] */
    if (a->task.slot.flags & BZ_ACTOR_HEAP)
        bz_actor_heap_follow(a);
    return 0;
}

/* True if the actor has that version, or one of a later upgrade. */
static bool is_there(struct bz_actor *a, const struct bz_version *from, const struct bz_version *to)
{
    struct bz_versions *all = &bz_actors_of(a->task.rt)->versions;
    bz_lock_take(&all->lock, a->task.rt->os);
    bool is_later = from == to || to->epoch < from->epoch;
    bz_lock_drop(&all->lock, a->task.rt->os);
    return is_later;
}

/* The change has failed, and the actor goes on. */
static void forget_failure(struct bz_actor *a)
{
    blitz_exit_reason reason;
    if (a->task.slot.flags & BZ_ACTOR_STOPS)
        bz_relations_take_reason(a, &reason);
    a->task.slot.flags &= ~(uint32_t)(BZ_ACTOR_STOPS | BZ_ACTOR_STARVED);
}

int bz_upgrade_hear(struct bz_actor *a, struct bz_signal *s)
{
    struct bz_ask *ask = bz_ask_of(s);
    struct bz_version *to = bz_ask_target(ask), *from = bz_version_of(bz_actor_behaviour(a));
    bool ends = s->reason.code == BLITZ_UPGRADE_EXIT;
    if (is_there(a, from, to)) {
        bz_ask_answer(a->task.rt, ask, BZ_ASK_CHANGED, to);
        return 0;
    }
    int rc = change(a, &from->b, to);
    if (rc != 0 && !ends)
        forget_failure(a);
    if (rc == 0)
        bz_ask_answer(a->task.rt, ask, BZ_ASK_CHANGED, from);
    else
        bz_ask_answer(a->task.rt, ask, ends ? BZ_ASK_ENDED : BZ_ASK_KEPT, to);
    return ends ? rc : 0;
}
