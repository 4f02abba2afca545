/*
 * ticket.c - a place for one answer.
 *
 * The caller of an actor waits in its own frame, or in a future that it may drop at any time. So the answer must not go there.
 * It goes to a ticket: an object whose memory stays while the runtime lives, and whose number and generation are the reply
 * token. The answerer takes the ticket's lock, compares the generation, copies the answer and claims the waiter. A token that
 * is answered twice, late, or never, harms no one: it is three numbers.
 *
 * The generation changes when a ticket is closed, under its lock. So no token fits a free ticket, and its next owner opens it
 * without the lock: a late answerer takes the lock, finds another generation, and looks at nothing else. A timer that fires holds a
 * lock that comes after the ticket's. So it cannot change the generation; the next open does.
 *
 * Each proc has a few free tickets, so that a call takes no lock that others share. The memory stays, so no proc has to give
 * them back.
 *
 * Rejected: a reference-counted object. A token that is forgotten would leak, and one that is copied would be freed twice.
 *
 * I1  waiter is not NULL only while its owner is in the request, and the ticket is not over.
 * I2  A ticket is free, or has one owner: a caller, or an armed timer.
 * I3  A blocking waiter enters when its stack is left (is_tried), so an answer may claim it as soon as it is in the ticket.
 * I4  An owner that is no task of the runtime may wait when the runtime is released. Its end has answered the ticket, and the owner has
 *     kept the memory of the runtime: it closes the ticket before it gives that up.
 *
 * [T] more: segment release -> ticket_at: segment acquire   the tickets are initialized
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/send.h"
#include "life/deadlines.h"
#include "park/request.h"
#include "proc/enter.h"

enum { KEEP = 16 }; /* free tickets of a proc */

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
        t[i].generation = 1; /* 0 is no token */
        t[i].is_over = true;
        t[i].next = all->free;
        all->free = &t[i];
    }
    all->made += count;
    bz_store_release(&all->segment[segment], t); /* [T] */
    return all->free;
}

/* ---- free ones ---- */

/* A free ticket of the calling proc, or NULL. */
static struct bz_ticket *take_near(struct bz_runtime *rt)
{
    uint32_t was;
    (void)!bz_enter(&was);
    struct bz_machine *m = bz_machine_in(rt);
    struct bz_task_home *h = m != NULL ? &m->proc->tasks : NULL;
    struct bz_ticket *t = h != NULL ? h->tickets : NULL;
    if (BZ_LIKELY(t != NULL)) {
        h->tickets = t->next;
        h->ticket_count--;
    }
    bz_leave(was);
    return t;
}

static bool give_near(struct bz_ticket *t)
{
    uint32_t was;
    (void)!bz_enter(&was);
    struct bz_machine *m = bz_machine_in(t->rt);
    bool is_kept = BZ_LIKELY(m != NULL && m->proc->tasks.ticket_count < KEEP);
    if (is_kept) {
        t->next = m->proc->tasks.tickets;
        m->proc->tasks.tickets = t;
        m->proc->tasks.ticket_count++;
    }
    bz_leave(was);
    return is_kept;
}

static struct bz_ticket *take_common(struct bz_runtime *rt)
{
    struct bz_actors *all = bz_actors_of(rt);
    if (all == NULL)
        return NULL;
    bz_lock_take(&all->lock, rt->os);
    struct bz_ticket *t = all->free != NULL ? all->free : more(rt, all);
    if (t != NULL)
        all->free = t->next;
    bz_lock_drop(&all->lock, rt->os);
    return t;
}

static void give_back(struct bz_ticket *t)
{
    if (BZ_LIKELY(give_near(t)))
        return;
    struct bz_actors *all = bz_actors_of(t->rt);
    bz_lock_take(&all->lock, t->rt->os);
    t->next = all->free;
    all->free = t;
    bz_lock_drop(&all->lock, t->rt->os);
}

/* ---- one owner ---- */

/* Make all tokens of the ticket old. Under its lock. */
static void outdate(struct bz_ticket *t)
{
    t->generation += t->generation == UINT32_MAX ? 2 : 1; /* 0 is no token */
}

struct bz_ticket *bz_ticket_open(struct bz_runtime *rt)
{
    struct bz_ticket *t = take_near(rt);
    if (BZ_UNLIKELY(t == NULL) && (t = take_common(rt)) == NULL)
        return NULL;
    if (BZ_UNLIKELY(t->is_spent)) {
        bz_lock_take(&t->lock, rt->os);
        outdate(t);
        bz_lock_drop(&t->lock, rt->os);
        t->is_spent = false;
    }
    t->is_over = false; /* without the lock: no token fits */
    t->waiter = NULL;
    t->letter = NULL;
    t->cargo = BZ_CARGO_NONE;
    t->is_outside = false;
    t->far = BZ_TICKET_NEAR;
    return t;
}

struct bz_ticket *bz_ticket_open_to_wait(struct bz_runtime *rt)
{
    struct bz_ticket *t = bz_ticket_open(rt);
    if (t != NULL && bz_actor_is_outside(rt)) {
        t->is_outside = true; /* I4 */
        bz_task_stay(rt);
    }
    return t;
}

struct bz_ticket *bz_ticket_open_far(struct bz_runtime *rt)
{
    struct bz_ticket *t = bz_ticket_open_to_wait(rt);
    if (t != NULL)
        t->far = BZ_TICKET_FAR; /* no token of it is known yet */
    return t;
}

void bz_ticket_close(struct bz_ticket *t)
{
    struct bz_runtime *rt = t->rt;
    bool is_outside = t->is_outside;
    bz_lock_take(&t->lock,
                 t->rt->os); /* an answerer has dropped it: it touches nothing after that */
    outdate(t);
    t->is_over = true;
    t->waiter = NULL;
    bz_lock_drop(&t->lock, t->rt->os);
    if (BZ_UNLIKELY(t->cargo != BZ_CARGO_NONE)) /* ours: no answer comes to a ticket that is over */
        bz_cargo_release(t->cargo, t->piece);
    give_back(t);
    if (BZ_UNLIKELY(is_outside))
        bz_task_left(rt); /* I4 */
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

bool bz_ticket_answer_with(struct bz_runtime *rt, blitz_reply_to to, int result, const void *data,
                           size_t size, enum bz_cargo_kind kind, void *piece)
{
    struct bz_wake wake = {.kind = BZ_WAKE_NONE};
    struct bz_ticket *t = bz_ticket_at(rt, to.index);
    bz_payload_check(data, size);
    if (t == NULL)
        return false;
    bz_lock_take(&t->lock, rt->os);
    bool is_open = t->generation == to.generation && !t->is_over;
    if (is_open) {
        t->cargo = kind;
        t->piece = piece;
        answer(t, result, data, size, &wake);
    }
    bz_lock_drop(&t->lock, rt->os);
    bz_wake_deliver(&wake);
    return is_open;
}

void bz_ticket_answer(struct bz_runtime *rt, blitz_reply_to to, int result, const void *data,
                      size_t size)
{
    (void)!bz_ticket_answer_with(rt, to, result, data, size, BZ_CARGO_NONE, NULL);
}

bool bz_ticket_is_open(struct bz_runtime *rt, blitz_reply_to to)
{
    struct bz_ticket *t = bz_ticket_at(rt, to.index);
    if (t == NULL)
        return false;
    bz_lock_take(&t->lock, rt->os);
    bool is_open = t->generation == to.generation && !t->is_over;
    bz_lock_drop(&t->lock, rt->os);
    return is_open;
}

/* If the ticket is open and far, let it be `next`. Returns whether it was. */
static bool pass_far(struct bz_runtime *rt, blitz_reply_to to, enum bz_ticket_far next)
{
    struct bz_ticket *t = bz_ticket_at(rt, to.index);
    if (t == NULL)
        return false;
    bz_lock_take(&t->lock, rt->os);
    bool is_far = t->generation == to.generation && !t->is_over && t->far == BZ_TICKET_FAR;
    if (is_far)
        t->far = (uint8_t)next;
    bz_lock_drop(&t->lock, rt->os);
    return is_far;
}

bool bz_ticket_is_far(struct bz_runtime *rt, blitz_reply_to to)
{
    return pass_far(rt, to, BZ_TICKET_FAR);
}

bool bz_ticket_promise(struct bz_runtime *rt, blitz_reply_to to)
{
    return pass_far(rt, to, BZ_TICKET_PROMISED);
}

bool bz_ticket_give_up(struct bz_ticket *t)
{
    bz_lock_take(&t->lock, t->rt->os);
    bool may = !t->is_over && t->far != BZ_TICKET_PROMISED;
    t->is_over |= may;
    bz_lock_drop(&t->lock, t->rt->os);
    return may;
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
    t->is_spent = true;
    give_back(t); /* I2; a cancel that comes now finds the timer disarmed */
    struct bz_wake none = {.kind = BZ_WAKE_NONE};
    if (!bz_mailbox_is_for(&bz_actor_of(slot)->box, l->generation)) {
        bz_letter_bury(rt, l);
        return none;
    }
    bz_actor_count_in(rt, bz_busy_mine(rt));
    if (bz_mailbox_push(&bz_actor_of(slot)->box, &l->node, &behind)) {
        bz_place(rt, bz_entry_resumed(slot));
        return none;
    }
    return bz_busy_rest(&rt->busy, bz_busy_mine(rt)) ? bz_quiet_wake(rt) : none;
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
    t->is_never = when == BLITZ_FOREVER; /* which is no deadline of a timer */
    if (BZ_UNLIKELY(t->is_never))
        return 0;
    struct bz_proc *p = proc_for(rt);
    bz_timer_init(&t->timer, p, send_now);
    bz_timer_arm(&t->timer, when);
    return 0;
}

/* Take the letter from the timer. False: it was sent, or there is none. Under the lock of the ticket, or alone. */
static bool stop_timer(struct bz_ticket *t)
{
    if (t->letter == NULL)
        return false;
    if (BZ_LIKELY(!t->is_never))
        return t->timer.proc != NULL && bz_timer_disarm(&t->timer);
    t->is_never = false;
    return true;
}

static int timer_cancel(struct bz_runtime *rt, uint64_t timer)
{
    struct bz_ticket *t = bz_ticket_at(rt, (uint32_t)timer);
    if (t == NULL)
        return -ESRCH;
    bz_lock_take(&t->lock, rt->os); /* if its timer fires now, the next open waits for us */
    bool is_ours = t->generation == timer >> 32 && stop_timer(t);
    if (is_ours)
        outdate(t);
    bz_lock_drop(&t->lock, rt->os);
    if (!is_ours)
        return -ESRCH;
    bz_letter_bury(rt, t->letter);
    give_back(t); /* I2 */
    return 0;
}

int blitz_actor_timer_cancel(blitz_actor_id to, uint64_t timer)
{
    struct bz_runtime *visited = bz_actor_visit(to), *rt = bz_actor_runtime(to);
    int rc = rt != NULL ? timer_cancel(rt, timer) : -ESRCH;
    bz_actor_leave(visited);
    return rc;
}

/* ---- the end ---- */

void bz_tickets_end(struct bz_runtime *rt, struct bz_actors *all)
{
    for (uint32_t segment = 0; segment < BZ_TICKET_SEGMENTS; segment++) {
        uint32_t count = BZ_TICKET_FIRST << segment;
        struct bz_ticket *t = bz_load_relaxed(&all->segment[segment]); /* relaxed: alone */
        for (uint32_t i = 0; t != NULL && i < count; i++)
            if (stop_timer(&t[i]))
                bz_letter_drop(rt, t[i].letter);
    }
}

void bz_tickets_fini(struct bz_runtime *rt, void *actors)
{
    struct bz_actors *all = actors;
    for (uint32_t segment = 0; segment < BZ_TICKET_SEGMENTS; segment++) {
        uint32_t count = BZ_TICKET_FIRST << segment;
        struct bz_ticket *t = bz_load_relaxed(&all->segment[segment]); /* relaxed: alone */
        if (t != NULL)
            bz_free(&rt->alloc, t, count * sizeof *t);
    }
}
