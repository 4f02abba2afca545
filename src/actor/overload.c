/*
 * overload.c - what becomes of a message to an overloaded actor: the policies.
 *
 *     mute           hold the sender back: pressure.c
 *     drop newest    the sender drops it, and counts it
 *     drop oldest    only the owner can take messages out. So the sender pushes its message and presses the receiver, which
 *                    drops its oldest messages at the end of each turn. Until then the mailbox may grow up to the hard cap
 *     fail           the sender is told
 *
 * A mailbox of ten times the mark is logged, once for each overload. The hard cap is looked at in each of them. The counts of dropped messages are in the lists of pressure.c, by the index of the
 * actor: an actor has no room for a number that is nearly always 0.
 */
#include <errno.h>

#include "actor/actors.h"
#include "actor/cargo.h"
#include "actor/send.h"
#include "base/log.h"

/* Find the count of a slot. Under the lock. */
static struct bz_dropped *dropped_at(struct bz_pressure *p, uint32_t index)
{
    struct bz_dropped *d = p->dropped;
    while (d != NULL && d->index != index)
        d = d->next;
    return d;
}

/* Count what was dropped. Without memory for the count it is not counted. */
static void count_dropped(struct bz_actor *a, uint32_t n)
{
    struct bz_runtime *rt = a->task.rt;
    uint32_t index = a->task.slot.index, generation = bz_actor_generation(a);
    struct bz_pressure *p = bz_pressure_of(rt, index);
    bz_lock_take(p->lock, rt->os);
    struct bz_dropped *d = dropped_at(p, index);
    if (d == NULL && (d = bz_alloc(&rt->alloc, sizeof *d, _Alignof(max_align_t))) != NULL) {
        *d = (struct bz_dropped){p->dropped, index, generation, 0};
        p->dropped = d;
    }
    if (d != NULL) {
        d->count = (d->generation == generation ? d->count : 0) + n;
        d->generation = generation;
    }
    bz_lock_drop(p->lock, rt->os);
}

uint64_t bz_dropped_get(struct bz_actor *a, uint32_t generation)
{
    struct bz_runtime *rt = a->task.rt;
    struct bz_pressure *p = bz_pressure_of(rt, a->task.slot.index);
    bz_lock_take(p->lock, rt->os);
    struct bz_dropped *d = dropped_at(p, a->task.slot.index);
    uint64_t count = d != NULL && d->generation == generation ? d->count : 0;
    bz_lock_drop(p->lock, rt->os);
    return count;
}

/* True if the first node is a message that may be dropped: not a bell, the stub, or the start of the actor. */
static bool is_droppable(struct bz_actor *a, struct bz_mpsc_node *first)
{
    return first != &a->box.stub && !bz_mailbox_is_bell(&a->box, first) &&
           BZ_CONTAINER_OF(first, struct bz_letter, node)->what != BZ_MSG_START;
}

void bz_actor_drop_oldest(struct bz_actor *a)
{
    if (bz_actor_behaviour(a)->policy != BLITZ_OVERLOAD_DROP_OLDEST)
        return;
    struct bz_mpsc_node *first = bz_mailq_first(&a->box.queue), *next;
    uint32_t n = 0;
    while (bz_actor_is_over_high(a) && is_droppable(a, first) &&
           (next = bz_mailbox_step(&a->box, first)) != NULL) {
        struct bz_letter *l = BZ_CONTAINER_OF(first, struct bz_letter, node);
        if (l->reply.generation != 0)
            bz_ticket_answer(a->task.rt, l->reply, -EAGAIN, NULL, 0);
        bz_letter_drop(a->task.rt, l);
        n++;
        first = next;
    }
    if (n > 0)
        count_dropped(a, n);
}

/* The actor has sent to an overloaded one: it is muted when its handler has returned. */
static void ask_for_mute(struct bz_actor *me, uint32_t index)
{
    struct bz_task *t = &me->task;
    if (t->slot.flags & BZ_ACTOR_MUTES)
        return;
    t->result = (int)index;
    t->slot.flags |= BZ_ACTOR_MUTES;
    t->slot.flags += (uint32_t)BZ_TURN_REDUCTIONS * BZ_ACTOR_REDUCTION; /* its turn is over */
}

/* True if the calling task receives from this mailbox: it would wait for itself. */
static bool is_own(struct bz_actor *a)
{
    blitz_actor_id me;
    return bz_receiver_self(&me) && me.creation == a->task.rt->creation &&
           me.index == a->task.slot.index;
}

/* A sender meets the default policy. */
static int hold_back(struct bz_actor *a, enum bz_send_how how)
{
    struct bz_actor *me = bz_actor_self();
    if (how == BZ_SEND_TRIES)
        return -EAGAIN;
    if (how != BZ_SEND_WAITS || bz_actor_is_waiting(a))
        return BZ_MET_PUSH;
    if (me == NULL || me->task.rt != a->task.rt)
        return is_own(a) ? BZ_MET_PUSH : BZ_MET_WAIT;
    ask_for_mute(me, a->task.slot.index);
    return BZ_MET_PUSH;
}

/* The mailbox is far above its mark: the receiver waits in a handler, or senders come from everywhere. Report it once, until it
 * has been below the low mark. */
static void sound_alarm(struct bz_actor *a, const blitz_behaviour *b, uint32_t behind)
{
    if (!bz_mailbox_alarm(&a->box))
        return;
    bz_actor_press(a); /* its owner ends the alarm */
    bz_log(BLITZ_LOG_WARN, "actor %u.%u (%s): %u messages in its mailbox, the mark is %zu",
           a->task.slot.index, bz_actor_generation(a), b->name != NULL ? b->name : "no name",
           behind, bz_mailbox_high(b));
}

BZ_NOINLINE int bz_pressure_meet(struct bz_actor *a, enum bz_send_how how)
{
    const blitz_behaviour *b = bz_actor_behaviour(a);
    uint32_t behind = bz_mailbox_behind(&a->box);
    bool is_full = behind >= bz_mailbox_max(b);
    if (BZ_UNLIKELY(behind / BZ_MAILBOX_ALARM >= bz_mailbox_high(b)))
        sound_alarm(a, b, behind);
    switch (b->policy) {
    case BLITZ_OVERLOAD_DROP_NEWEST:
        if (how == BZ_SEND_CALLS)
            return -EAGAIN; /* its caller is told */
        count_dropped(a, 1);
        return BZ_MET_DROP;
    case BLITZ_OVERLOAD_DROP_OLDEST:
        if (!bz_mailbox_is_pressed(&a->box))
            bz_actor_press(a); /* the owner drops them */
        return is_full ? -EAGAIN : BZ_MET_PUSH;
    case BLITZ_OVERLOAD_FAIL:
        return -EAGAIN;
    case BLITZ_OVERLOAD_MUTE:
        break;
    }
    return is_full ? -EAGAIN : hold_back(a, how);
}
