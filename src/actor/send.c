/*
 * send.c - send a message: now, later, from anywhere.
 *
 * A send is a letter from the slabs of the caller's proc, one comparison of generations, one exchange, and if the mailbox was
 * empty a place in the caller's next slot. No reference is counted: mailbox.h says why that is safe.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/send.h"

enum { MAILBOX_MAX = 100000 };

struct bz_letter *bz_letter_new(struct bz_runtime *rt, uint32_t what, const void *data, size_t size)
{
    struct bz_letter *l = bz_letter_alloc(rt, sizeof *l + size);
    if (BZ_UNLIKELY(l == NULL))
        return NULL;
    l->what = what;
    l->size = (uint32_t)size;
    l->reply = (blitz_reply_to){0, 0, 0};
    l->from_index = l->from_generation = 0;
    if (size > 0)
        memcpy(l->data, data, size);
    return l;
}

/* The calling actor is the sender, if it is of the same runtime; and the send counts. */
static BZ_ALWAYS_INLINE void sign(struct bz_letter *l, struct bz_runtime *rt)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL || me->task.rt != rt)
        return;
    l->from_index = me->task.slot.index;
    l->from_generation = bz_actor_generation(me);
    me->task.slot.flags += BZ_SEND_REDUCTIONS * BZ_ACTOR_REDUCTION;
}

static bool is_full(struct bz_actor *a)
{
    /* relaxed: counts, and a bound that several senders may pass by a few */
    uint32_t pairs = bz_load_relaxed(&a->box.added) - bz_load_relaxed(&a->box.removed);
    if (BZ_LIKELY((int32_t)pairs < 1000))
        return false; /* before the behaviour is touched */
    size_t max = bz_actor_behaviour(a)->mailbox_max;
    return pairs >= (max != 0 ? max : MAILBOX_MAX);
}

bool bz_send_is_bad(uint32_t what, const void *data, size_t size)
{
    return size > BLITZ_MSG_BYTES_MAX || what >= BZ_MSG_OURS || (data == NULL && size > 0);
}

int bz_send(blitz_actor_id to, uint32_t what, const void *data, size_t size, blitz_reply_to reply)
{
    struct bz_actor *a = bz_actor_find(to);
    uint32_t behind;
    if (BZ_UNLIKELY(bz_send_is_bad(what, data, size)))
        return -EINVAL;
    if (BZ_UNLIKELY(a == NULL))
        return -ESRCH;
    struct bz_runtime *rt = a->task.rt;
    if (BZ_UNLIKELY(is_full(a)))
        return -EAGAIN;
    struct bz_letter *l = bz_letter_new(rt, what, data, size);
    if (BZ_UNLIKELY(l == NULL))
        return -ENOMEM;
    l->generation = to.generation;
    l->reply = reply;
    sign(l, rt);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (bz_mailbox_push(&a->box, &l->node, &behind))
        bz_actor_place(a);
    if (reply.generation != 0 && !bz_mailbox_is_still_for(&a->box, to.generation))
        bz_ticket_answer(rt, reply, -ESRCH, NULL, 0); /* it may be behind the stub: mailbox.h [G] */
    return 0;
}

int blitz_actor_send(blitz_actor_id to, uint32_t what, const void *data, size_t size)
{
    return bz_send(to, what, data, size, (blitz_reply_to){0, 0, 0});
}

int blitz_actor_send_after(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                           blitz_deadline when, uint64_t *timer)
{
    struct bz_actor *a = bz_actor_find(to);
    if (bz_send_is_bad(what, data, size))
        return -EINVAL;
    if (a == NULL)
        return -ESRCH;
    struct bz_runtime *rt = a->task.rt;
    struct bz_letter *l = bz_letter_new(rt, what, data, size);
    if (l == NULL)
        return -ENOMEM;
    l->generation = to.generation;
    sign(l, rt);
    int err = bz_ticket_send_at(rt, to.index, l, when, timer);
    if (err != 0)
        bz_letter_free(rt, l);
    return err;
}

int blitz_actor_info_get(blitz_actor_id id, blitz_actor_info *out)
{
    struct bz_actor *a = bz_actor_find(id);
    if (a == NULL)
        return -ESRCH;
    bool is_idle = bz_mailq_is_empty(&a->box.queue);
    bool waits = bz_load_relaxed(&a->task.wait) != 0; /* relaxed: a guess */
    out->behaviour = bz_actor_behaviour(a)->name;
    out->mailbox = bz_mailbox_length(&a->box);
    out->state = is_idle ? BLITZ_ACTOR_IDLE : waits ? BLITZ_ACTOR_WAITING : BLITZ_ACTOR_SCHEDULED;
    if (a == bz_actor_self())
        out->state = BLITZ_ACTOR_RUNNING;
    return bz_mailbox_is_for(&a->box, id.generation) ? 0 : -ESRCH;
}
