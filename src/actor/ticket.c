/*
 * ticket.c - a place for one answer.
 *
 * The caller of an actor waits in its own frame, or in a future that it may drop at any time. So the answer must not go there.
 * It goes to a ticket: an object whose memory stays while the runtime lives, and whose number and generation are the reply
 * token. The answerer takes the ticket's lock, compares the generation, copies the answer and claims the waiter. A token that
 * is answered twice, late, or never, harms no one: it is three numbers.
 *
 * The generation changes when a ticket is opened, under its lock. Between its close and its next open it is over, so that an
 * answer is dropped as well.
 *
 * Rejected: a reference-counted object. A token that is forgotten would leak, and one that is copied would be freed twice.
 *
 * I1  waiter is not NULL only while its owner is in the request, and the ticket is not over.
 * I2  A ticket is free, or has one owner: a caller, or an armed timer.
 * I3  A blocking waiter enters when its stack is left (is_tried), so an answer may claim it as soon as it is in the ticket.
 *
 * [T] more: segment release -> ticket_at: segment acquire   the tickets are initialized
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/send.h"
#include "life/deadlines.h"
#include "park/request.h"

static uint32_t segment_of(uint32_t index)
{
    return 31 - (uint32_t)__builtin_clz(index / BZ_TICKET_FIRST + 1);
}

struct bz_ticket *bz_ticket_at(struct bz_runtime *rt, uint32_t index)
{
    struct bz_actors *all = bz_actors_of(rt);
    uint32_t segment = segment_of(index);
    if (all == NULL || segment >= BZ_TICKET_SEGMENTS)
        return NULL;
    struct bz_ticket *first = bz_load_acquire(&all->segment[segment]); /* [T] */
    return first != NULL ? &first[index + BZ_TICKET_FIRST - (BZ_TICKET_FIRST << segment)] : NULL;
}

/* Make a segment. Under the lock. */
static struct bz_ticket *more(struct bz_runtime *rt, struct bz_actors *all)
{
    uint32_t segment = segment_of(all->made), count = BZ_TICKET_FIRST << segment;
    if (segment >= BZ_TICKET_SEGMENTS)
        return NULL;
    struct bz_ticket *t = bz_alloc(&rt->alloc, count * sizeof *t, _Alignof(max_align_t));
    if (t == NULL)
        return NULL;
    memset(t, 0, count * sizeof *t);
    for (uint32_t i = count; i-- > 0;) {
        bz_lock_init_ranked(&t[i].lock, BZ_RANK_WAIT);
        t[i].index = all->made + i;
        t[i].rt = rt;
        t[i].is_over = true;
        t[i].next = all->free;
        all->free = &t[i];
    }
    all->made += count;
    bz_store_release(&all->segment[segment], t); /* [T] */
    return all->free;
}

struct bz_ticket *bz_ticket_open(struct bz_runtime *rt)
{
    struct bz_actors *all = bz_actors_of(rt);
    if (all == NULL)
        return NULL;
    bz_lock_take(&all->lock, rt->os);
    struct bz_ticket *t = all->free != NULL ? all->free : more(rt, all);
    if (t != NULL)
        all->free = t->next;
    bz_lock_drop(&all->lock, rt->os);
    if (t == NULL)
        return NULL;
    bz_lock_take(&t->lock, rt->os);
    t->generation += t->generation == UINT32_MAX ? 2 : 1; /* 0 is no token */
    t->is_over = false;
    t->waiter = NULL;
    t->letter = NULL;
    bz_lock_drop(&t->lock, rt->os);
    return t;
}

static void give_back(struct bz_ticket *t)
{
    struct bz_actors *all = bz_actors_of(t->rt);
    bz_lock_take(&all->lock, t->rt->os);
    t->next = all->free;
    all->free = t;
    bz_lock_drop(&all->lock, t->rt->os);
}

void bz_ticket_close(struct bz_ticket *t)
{
    bz_lock_take(&t->lock,
                 t->rt->os); /* an answerer has dropped it: it touches nothing after that */
    t->is_over = true;
    t->waiter = NULL;
    bz_lock_drop(&t->lock, t->rt->os);
    give_back(t);
}

blitz_reply_to bz_ticket_token(const struct bz_ticket *t)
{
    return (blitz_reply_to){t->index, t->generation, t->rt->creation};
}

/* Under the lock. */
static void answer(struct bz_ticket *t, int result, const void *data, size_t size,
                   struct bz_wake *wake)
{
    t->is_over = true;
    t->result = result;
    if (size > 0)
        memcpy(t->data, data, size < sizeof t->data ? size : sizeof t->data);
    if (t->waiter != NULL)
        (void)!bz_waiter_claim(t->waiter, 0, wake); /* it has left: it looks under the lock */
    t->waiter = NULL;                               /* I1 */
}

void bz_ticket_answer(struct bz_runtime *rt, blitz_reply_to to, int result, const void *data,
                      size_t size)
{
    struct bz_wake wake = {.kind = BZ_WAKE_NONE};
    struct bz_ticket *t = bz_ticket_at(rt, to.index);
    if (t == NULL)
        return;
    bz_lock_take(&t->lock, rt->os);
    if (t->generation == to.generation && !t->is_over)
        answer(t, result, data, size, &wake);
    bz_lock_drop(&t->lock, rt->os);
    bz_wake_deliver(&wake);
}

/* ---- waiting for it ---- */

static struct bz_ticket *ticket_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_answer, request)->ticket;
}

static void ticket_lock(struct bz_request *r)
{
    bz_lock_take(&ticket_of(r)->lock, ticket_of(r)->rt->os);
}

static void ticket_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes; /* an answer serves no other */
    bz_lock_drop(&ticket_of(r)->lock, ticket_of(r)->rt->os);
}

static bool ticket_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_ticket *t = ticket_of(r);
    (void)wakes;
    t->waiter = t->is_over ? NULL : &r->waiter; /* I1 */
    r->waiter.state = t->is_over ? BZ_WAITER_OUT : BZ_WAITER_QUEUED;
    return t->is_over;
}

static bool ticket_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_ticket *t = ticket_of(r);
    (void)wakes;
    t->waiter = NULL;
    r->waiter.state = t->is_over ? BZ_WAITER_GRANTED : BZ_WAITER_OUT;
    return !t->is_over; /* false: answered all the same */
}

const struct bz_request_ops bz_answering = {.what = "reply of an actor",
                                            .lock = ticket_lock,
                                            .unlock = ticket_unlock,
                                            .enter = ticket_enter,
                                            .leave = ticket_leave,
                                            .is_tried = true}; /* I3 */

/* ---- messages that are sent later ---- */

/* Under the timer's lock. */
static struct bz_wake send_now(struct bz_timer *timer)
{
    struct bz_ticket *t = BZ_CONTAINER_OF(timer, struct bz_ticket, timer);
    struct bz_runtime *rt = t->rt;
    struct bz_letter *l = t->letter;
    struct bz_task *slot = bz_slot_at(&rt->tasks.slots, t->to_index);
    uint32_t behind;
    give_back(t); /* I2; a cancel that comes now finds the timer disarmed */
    if (!bz_mailbox_is_for(&bz_actor_of(slot)->box, l->generation))
        bz_letter_bury(rt, l);
    else if (bz_mailbox_push(&bz_actor_of(slot)->box, &l->node, &behind))
        bz_place(rt, bz_entry_resumed(slot));
    return (struct bz_wake){.kind = BZ_WAKE_NONE};
}

/* The proc of the caller's timers, if it is a machine of that runtime. */
static struct bz_proc *proc_for(struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL && m->rt == rt ? m->last : &rt->procs[0];
}

int bz_ticket_send_at(struct bz_runtime *rt, uint32_t to_index, struct bz_letter *l,
                      blitz_deadline when, uint64_t *timer)
{
    struct bz_ticket *t = bz_ticket_open(rt);
    if (t == NULL)
        return -ENOMEM;
    t->letter = l;
    t->to_index = to_index;
    if (timer != NULL)
        *timer = (uint64_t)t->generation << 32 | t->index;
    struct bz_proc *p = proc_for(rt);
    bz_timer_init(&t->timer, p, send_now);
    bz_timer_arm(&t->timer, when);
    return 0;
}

int blitz_actor_timer_cancel(blitz_actor_id to, uint64_t timer)
{
    struct bz_runtime *rt = bz_actor_runtime(to);
    struct bz_ticket *t = rt != NULL ? bz_ticket_at(rt, (uint32_t)timer) : NULL;
    if (t == NULL)
        return -ESRCH;
    bz_lock_take(&t->lock, rt->os); /* no open while we look: an open takes the lock */
    bool is_ours = t->generation == timer >> 32 && t->letter != NULL && t->timer.proc != NULL &&
                   bz_timer_disarm(&t->timer);
    bz_lock_drop(&t->lock, rt->os);
    if (!is_ours)
        return -ESRCH;
    bz_letter_bury(rt, t->letter);
    give_back(t); /* I2 */
    return 0;
}

/* ---- the end ---- */

void bz_tickets_end(struct bz_runtime *rt, struct bz_actors *all)
{
    for (uint32_t segment = 0; segment < BZ_TICKET_SEGMENTS; segment++) {
        uint32_t count = BZ_TICKET_FIRST << segment;
        struct bz_ticket *t = bz_load_relaxed(&all->segment[segment]); /* relaxed: alone */
        for (uint32_t i = 0; t != NULL && i < count; i++)
            if (t[i].letter != NULL && t[i].timer.proc != NULL && bz_timer_disarm(&t[i].timer))
                bz_letter_free(rt, t[i].letter);
        if (t != NULL)
            bz_free(&rt->alloc, t, count * sizeof *t);
    }
}
