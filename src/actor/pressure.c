/*
 * pressure.c - back-pressure: senders are held back while a receiver is overloaded.
 *
 * An actor is overloaded from the moment at which its mailbox is longer than its high mark until it is not longer than its low
 * mark, half of that. By the default policy (overload.c has the others) the sender is held back:
 *
 *     an actor              is *muted*: it ends its message, and handles no other one. It never stops inside a handler
 *     a fiber, a thread     waits in its send; a future is pending
 *
 * An actor is not muted if that would close a circle: if the receiver is muted for an actor that is muted ... for this one. (Then
 * this one goes on, and the others go on when it has room.) All mutes are made under one lock, so the chain can be followed, and
 * no circle forms. A muted actor that becomes overloaded stays muted, and holds its own senders back. So the pressure goes up a
 * chain to its source. A receiver that waits in a handler holds no sender back: it may wait for this very sender. mailbox.h has
 * the protocol between mute, signals and death.
 *
 * A task that receives is overloaded by what is in its mailbox and its inbox together, and rings its porter when it has come down to
 * the low mark. It holds no sender back while it waits: for a message that it has not (BZ_HUNGRY), or elsewhere, which its porter
 * finds when a sender rings.
 *
 * Where they are. A muted actor is in no run queue, and no worker has it. It is linked by a field of its task that actors do
 * not use (joiners), in one of BZ_PRESSURES lists. Fibers, threads and futures are in a second list beside it. The index of the
 * receiver selects the pair of lists. So holding a sender back needs no memory, and an actor has no field for it.
 *
 * They go on by:
 *     the receiver    at the end of a turn, if its mailbox is not longer than the low mark: as many senders as it has room
 *                     for, the first come first. If there are more, it rings its own bell, and comes back to them
 *     its death       all of them
 *     a signal        to a muted actor: that actor
 *     the time        each mute ends after 10 ms, and after twice as long each time, up to 640 ms, until a receiver of the
 *                     list has been below its low mark. A fiber looks again; an actor goes on. This is for a receiver that
 *                     began to wait, or takes long
 *
 * The timer's function must not take the lock, which is outside of the lock of timers. So it asks for a waker to be woken,
 * and the waker is a function of this file.
 *
 * Rejected: that no overloaded actor is muted, and so no circle needs to be looked for. A stage that its source keeps above the
 *           mark then passes everything on, and the mailbox of the next one grows to the hard cap (three stages: 83,600
 *           messages, with a mark of 200). A list in each overloaded actor: 16 bytes more for each idle one, or memory that may
 *           be missing just then, and a sender that is forgotten sleeps for ever. Letting all senders go on at the low mark: a
 *           million of them send a million messages at once.
 *
 * I1  An actor is in `muted` if and only if BZ_MUTED is in its mailbox. Both change under the lock.
 * I2  While a sender is in a list, its receiver is pressed. The sender has rung the receiver's bell after it entered, or is about to.
 * I3  If a sender is in a list, the timer is armed, or `expire` is on its way.
 */
#include "actor/pressure.h"

#include <errno.h>

#include "actor/actors.h"
#include "actor/send.h"
#include "life/deadlines.h"
#include "park/request.h"
#include "task/chain.h"

enum { BOUND_MAX_FACTOR = 64, CHAIN_MAX = 64 };

uint64_t bz_mute_ns = 10000000;

#define ALL UINT32_MAX /* any receiver; any number of senders */

struct bz_pressure *bz_pressure_of(struct bz_runtime *rt, uint32_t index)
{
    return &bz_actors_of(rt)->pressure[index * 2654435761u >> 26]; /* 6 bits: BZ_PRESSURES */
}

static struct bz_actor *actor_at(struct bz_runtime *rt, uint32_t index)
{
    return bz_actor_of(bz_slot_at(&rt->tasks.slots, index));
}

/* ---- letting them go on ---- */

/* Senders that were taken off the lists under the lock. */
struct freed {
    struct bz_entries actors;
    struct bz_wakelist wakes;
};

static uint32_t receiver_of(const struct bz_actor *a)
{
    return (uint32_t)a->task.result;
}

/* Take muted actors off the list. Under the lock. Returns how many. */
static uint32_t take_muted(struct bz_pressure *p, uint32_t index, uint32_t max, struct freed *out)
{
    uint32_t count = 0;
    for (struct bz_list *l = p->muted.next, *next; l != &p->muted && count < max; l = next) {
        struct bz_actor *a = BZ_CONTAINER_OF(l, struct bz_actor, task.joiners);
        next = l->next;
        if (index != ALL && receiver_of(a) != index)
            continue;
        bz_list_remove(l);
        bz_mailbox_unmute(&a->box); /* I1 */
        bz_entries_push(&out->actors, bz_entry_resumed(&a->task));
        count++;
    }
    return count;
}

/* Grant waiters of one receiver; or notify all, so that they look again. Under the lock. Returns how many. */
static uint32_t take_waiting(struct bz_pressure *p, uint32_t index, uint32_t max, struct freed *out)
{
    uint32_t count = 0;
    for (struct bz_list *l = p->waiting.next, *next; l != &p->waiting && count < max; l = next) {
        struct bz_request *r = BZ_CONTAINER_OF(bz_waiter_of(l), struct bz_request, waiter);
        next = l->next;
        if (index == ALL)
            (void)!bz_request_notify(r, &out->wakes);
        else if (BZ_CONTAINER_OF(r, struct bz_sending, request)->index == index)
            (void)!bz_request_grant(r, &out->wakes); /* false: it has left, and uses its room not */
        else
            continue;
        count++;
    }
    return count;
}

static void go_on(struct freed *f)
{
    for (bz_entry e; (e = bz_entries_take(&f->actors)) != 0;)
        bz_actor_place(bz_actor_of(bz_entry_task(e)));
    bz_wakelist_deliver(&f->wakes);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* No sender is in the list any more. Under the lock. */
static void end_press(struct bz_actor *a)
{
    if (BZ_UNLIKELY(bz_actor_is_over_high(a))) /* a task that waits: relieved though it is long */
        bz_mailbox_relieve_long(&a->box);      /* I2 */
    else
        bz_mailbox_relieve(&a->box); /* I2 */
}

/* Let up to `muted` actors and `waiting` other senders of a receiver go on, in small batches. False: there may be more. True: the
 * receiver is not pressed any more. */
static bool release(struct bz_pressure *p, uint32_t index, uint32_t muted, uint32_t waiting)
{
    for (;;) {
        struct freed f;
        bz_entries_init(&f.actors);
        bz_wakelist_init(&f.wakes);
        uint32_t most_muted = smaller(muted, BZ_WAKELIST_MAX);
        uint32_t most_waiting = smaller(waiting, BZ_WAKELIST_MAX);
        bz_lock_take(p->lock, p->rt->os);
        uint32_t m = take_muted(p, index, most_muted, &f);
        uint32_t w = take_waiting(p, index, most_waiting, &f);
        bool no_muted = m < most_muted, no_waiting = w < most_waiting;
        if (no_muted && no_waiting && index != ALL)
            end_press(actor_at(p->rt, index));
        bz_lock_drop(p->lock, p->rt->os);
        go_on(&f);
        muted -= m;
        waiting -= w;
        if ((no_muted || muted == 0) && (no_waiting || waiting == 0))
            return no_muted && no_waiting;
    }
}

/* ---- pressing ---- */

/* The receiver is pressed: bring it to the mark. The sender may be gone. */
static void ring(struct bz_runtime *rt, uint32_t index)
{
    struct bz_actor *a = actor_at(rt, index);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    struct bz_busy_count *mine = bz_busy_mine(rt);
    bz_actor_count_in(rt, mine);
    if (bz_mailbox_ring(&a->box))
        bz_actor_place(a);
    else
        bz_actor_count_out(rt, mine);
    if (bz_mailbox_is_closed(&a->box)) /* it is dead, or its memory waits for the next one */
        (void)release(bz_pressure_of(rt, index), index, ALL, ALL);
}

void bz_actor_press(struct bz_actor *a)
{
    bz_mailbox_press(&a->box);
    ring(a->task.rt, a->task.slot.index);
}

void bz_actor_relieve_all(struct bz_actor *a)
{
    (void)release(bz_pressure_of(a->task.rt, a->task.slot.index), a->task.slot.index, ALL, ALL);
}

/* Half of the room is for muted actors. At least one sender of each kind goes on. */
static void relieve(struct bz_actor *a, uint32_t room)
{
    struct bz_pressure *p = bz_pressure_of(a->task.rt, a->task.slot.index);
    bz_lock_take(p->lock, p->rt->os);
    p->bound_ns = bz_mute_ns;
    bz_lock_drop(p->lock, p->rt->os);
    if (!release(p, a->task.slot.index, (room + 1) / 2, (room + 1) / 2))
        ring(a->task.rt, a->task.slot.index); /* it must not rest before it has come back to them */
}

/* The task for which a porter stands waits for another message, or elsewhere. */
static bool is_away(struct bz_actor *porter)
{
    struct bz_receiver *const *r = (void *)(porter + 1); /* its state: receive.c */
    return bz_mailbox_is_hungry(&porter->box) ||
           bz_load_relaxed(&(*r)->task->wait) != 0; /* relaxed: as bz_actor_is_waiting() */
}

void bz_actor_relieve(struct bz_actor *a)
{
    size_t high = bz_mailbox_high(bz_actor_behaviour(a));
    uint32_t most = high < UINT32_MAX / 2 ? (uint32_t)high : UINT32_MAX / 2;
    uint32_t behind = bz_mailbox_behind(&a->box);
    if (behind <= most / 2)
        relieve(a, most - behind);
    else if (BZ_UNLIKELY(bz_actor_is_porter(a)) && is_away(a))
        bz_actor_relieve_all(a);
}

void bz_actor_ring(struct bz_actor *a)
{
    struct bz_runtime *rt = a->task.rt;
    uint32_t was;
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    struct bz_busy_count *mine = bz_busy_mine(rt);
    bz_actor_count_in(rt, mine);
    if (bz_mailbox_ring_as(&a->box, &was)) {
        bz_actor_place(a);
        return;
    }
    if (BZ_UNLIKELY(was & BZ_MUTED))
        bz_actor_unmute(a);
    bz_actor_count_out(rt, mine);
}

/* ---- the time ---- */

/* Wakers of a timer may be woken by any thread. */
static void expire(void *pressure);
static void nothing(void *pressure)
{
    (void)pressure;
}

static struct bz_wake fire(struct bz_timer *timer)
{
    static const blitz_waker_ops ops = {nothing, expire, expire, nothing};
    struct bz_pressure *p = BZ_CONTAINER_OF(timer, struct bz_pressure, timer);
    return (struct bz_wake){.kind = BZ_WAKE_WAKER, .waker = {&ops, p}};
}

/* Under the lock: I3. */
static void arm(struct bz_pressure *p)
{
    struct bz_machine *m = bz_machine_self();
    if (p->is_armed)
        return;
    p->is_armed = true;
    bz_timer_init(&p->timer, m != NULL && m->rt == p->rt ? m->last : &p->rt->procs[0], fire);
    bz_timer_arm(&p->timer, bz_os_now(p->rt->time) + p->bound_ns);
}

static uint32_t count(const struct bz_list *list)
{
    uint32_t n = 0;
    for (const struct bz_list *l = list->next; l != list; l = l->next)
        n++;
    return n;
}

/* The time of those in the lists is over. One that enters meanwhile has its own. */
static void expire(void *pressure)
{
    struct bz_pressure *p = pressure;
    bz_lock_take(p->lock, p->rt->os);
    uint32_t muted = count(&p->muted), waiting = count(&p->waiting);
    p->is_armed = false;
    if (muted + waiting == 0) {
        p->bound_ns = bz_mute_ns;
    } else {
        p->bound_ns = p->bound_ns < bz_mute_ns * BOUND_MAX_FACTOR ? p->bound_ns * 2 : p->bound_ns;
        arm(p); /* for those that enter before the others have left */
    }
    bz_lock_drop(p->lock, p->rt->os);
    if (muted + waiting > 0)
        (void)release(p, ALL, muted, waiting);
}

/* ---- muting ---- */

/* True if the receiver is muted for an actor that is muted ... for `a`; or if the chain is too long to tell. Under the lock. */
static bool closes_circle(struct bz_actor *a, struct bz_actor *to)
{
    for (int steps = 0; steps < CHAIN_MAX; steps++) {
        if (to == a)
            return true;
        if (!bz_mailbox_is_muted(&to->box))
            return false;
        to = actor_at(a->task.rt, receiver_of(to));
    }
    return true;
}

void bz_actor_mute(struct bz_actor *a)
{
    struct bz_task *t = &a->task;
    struct bz_runtime *rt = t->rt;
    uint32_t index = receiver_of(a);
    struct bz_pressure *p = bz_pressure_of(rt, index);
    if ((t->slot.flags & BZ_ACTOR_NEXT) == 0)
        t->slot.flags |= BZ_ACTOR_DONE; /* its first node stays, and was handled */
    t->slot.flags &= ~(uint32_t)(BZ_ACTOR_MUTES | BZ_ACTOR_NEXT);
    bz_lock_take(p->lock, rt->os);
    bool stays = !closes_circle(a, actor_at(rt, index));
    if (stays) {
        bz_list_push_back(&p->muted, &t->joiners);
        bz_mailbox_press(&actor_at(rt, index)->box);                         /* I2 */
        stays = bz_mailbox_mute(&a->box) && !bz_word_is_cancelled(&t->word); /* I1 */
    }
    if (stays) {
        arm(p); /* I3 */
    } else {
        bz_list_remove(&t->joiners);
        bz_mailbox_unmute(&a->box);
    }
    bz_lock_drop(p->lock, rt->os);
    if (stays)
        ring(rt, index); /* the muted actor may run elsewhere by now */
    else
        bz_place_last(bz_entry_resumed(t));
}

void bz_actor_unmute(struct bz_actor *a)
{
    struct bz_actors *all = bz_actors_of(a->task.rt);
    bz_lock_take(&all->muting, a->task.rt->os);
    bool is_muted = bz_mailbox_is_muted(&a->box); /* else another thread was first */
    if (is_muted) {
        bz_list_remove(&a->task.joiners);
        bz_mailbox_unmute(&a->box);
    }
    bz_lock_drop(&all->muting, a->task.rt->os);
    if (is_muted)
        bz_actor_place(a);
}

/* ---- waiting ---- */

static struct bz_sending *sending_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_sending, request);
}

static void sending_lock(struct bz_request *r)
{
    struct bz_sending *s = sending_of(r);
    bz_lock_take(bz_pressure_of(s->rt, s->index)->lock, s->rt->os);
}

static void sending_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sending *s = sending_of(r);
    struct bz_runtime *rt = s->rt;
    uint32_t index = s->index;
    bool rings = s->rings;
    (void)wakes; /* it serves no other sender */
    s->rings = false;
    bz_lock_drop(bz_pressure_of(rt, index)->lock, rt->os);
    if (rings)
        ring(rt, index);
}

static bool sending_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sending *s = sending_of(r);
    struct bz_actor *a = actor_at(s->rt, s->index);
    (void)wakes;
    r->waiter.state = BZ_WAITER_OUT;
    if (!bz_mailbox_is_for(&a->box, s->generation) || !bz_actor_is_over_high(a) ||
        bz_actor_is_waiting(a))
        return true;           /* the send that follows knows more */
    bz_mailbox_press(&a->box); /* I2 */
    bz_waiter_queue(&r->waiter, &bz_pressure_of(s->rt, s->index)->waiting);
    arm(bz_pressure_of(s->rt, s->index)); /* I3 */
    s->rings = true;
    return false;
}

static bool sending_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes; /* the receiver comes back to the others: relieve() */
    bz_waiter_leave(&r->waiter);
    return true;
}

const struct bz_request_ops bz_sending_ops = {.what = "room in a mailbox",
                                              .lock = sending_lock,
                                              .unlock = sending_unlock,
                                              .enter = sending_enter,
                                              .leave = sending_leave,
                                              .is_tried = true};

/* ---- the whole ---- */

void bz_pressures_init(struct bz_runtime *rt, struct bz_actors *all)
{
    bz_lock_init_ranked(&all->muting, BZ_RANK_WAIT);
    for (unsigned i = 0; i < BZ_PRESSURES; i++) {
        struct bz_pressure *p = &all->pressure[i];
        p->lock = &all->muting;
        bz_list_init(&p->muted);
        bz_list_init(&p->waiting);
        p->bound_ns = bz_mute_ns;
        p->rt = rt;
    }
}

void bz_pressures_end(struct bz_runtime *rt, struct bz_pressure *all)
{
    for (unsigned i = 0; i < BZ_PRESSURES; i++) {
        if (all[i].is_armed)
            (void)bz_timer_disarm(&all[i].timer);
        for (struct bz_dropped *d = all[i].dropped, *next; d != NULL; d = next) {
            next = d->next;
            bz_free(&rt->alloc, d, sizeof *d);
        }
        all[i].dropped = NULL; /* a late sender may look */
    }
}
