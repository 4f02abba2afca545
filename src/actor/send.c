/*
 * send.c - send a message: now, later, from anywhere.
 *
 * A send is a letter from the slabs of the caller's proc, one comparison of generations, one exchange, and if the mailbox was
 * empty a place in the caller's next slot. No reference is counted: mailbox.h says why that is safe. A long mailbox is
 * looked at before the letter is made: pressure.c says what becomes of the message.
 *
 * The common send has a way of its own: a small message without cargo, from a task of the same runtime, to a short mailbox, or of
 * an actor that is to be muted already. It enters the runtime once for the letter and the place, and calls no function. In any
 * other case it does nothing, and the long way finds out why.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/cargo.h"
#include "actor/far.h"
#include "actor/send.h"
#include "park/request.h"
#include "wait/waker.h"

/* False: no memory for it. */
static BZ_NOINLINE bool load(struct bz_letter *l, const blitz_cargo *cargo)
{
    enum bz_cargo_kind kind;
    void *piece = bz_cargo_load(cargo, &kind);
    l->cargo = (uint8_t)kind;
    if (kind != BZ_CARGO_NONE)
        *bz_letter_cargo(l) = piece;
    return kind == BZ_CARGO_NONE || piece != NULL;
}

/* Of no sender, and not a call. Most payloads have one or two words. */
static BZ_ALWAYS_INLINE void fill(struct bz_letter *l, uint32_t what, const void *data, size_t size)
{
    bz_actor_check_payload(data, size);
    bz_payload_check(data, size);
    l->what = what;
    l->size = (uint16_t)size;
    l->cargo = BZ_CARGO_NONE;
    l->reply = (blitz_reply_to){0, 0, 0};
    l->from_index = l->from_generation = 0;
    if (size == sizeof(uint64_t))
        memcpy(l->data, data, sizeof(uint64_t));
    else if (size == 2 * sizeof(uint64_t))
        memcpy(l->data, data, 2 * sizeof(uint64_t));
    else if (size > 0)
        memcpy(l->data, data, size);
}

struct bz_letter *bz_letter_new(struct bz_runtime *rt, uint32_t what, const void *data, size_t size,
                                const blitz_cargo *cargo)
{
    size_t room = cargo != NULL ? bz_letter_room(size) + sizeof(void *) : size;
    struct bz_letter *l = bz_letter_alloc(rt, sizeof *l + room);
    if (BZ_UNLIKELY(l == NULL))
        return NULL;
    fill(l, what, data, size);
    l->kind = sizeof *l + room > BZ_LETTER_SMALL;
    if (BZ_UNLIKELY(cargo != NULL) && !load(l, cargo)) {
        bz_letter_free(rt, l);
        return NULL;
    }
    return l;
}

/* The calling task may receive, and so have an id. A forked job that another worker runs sends for its task or actor. Both have
 * locals (life/locals.c). */
static BZ_NOINLINE void sign_as_task(struct bz_letter *l, const struct bz_runtime *rt)
{
    const struct bz_task *t = bz_task_self();
    if (t == NULL || t->rt != rt || t->locals == NULL)
        return;
    blitz_actor_id me = blitz_actor_self(); /* zeroed: neither */
    l->from_index = me.index;
    l->from_generation = me.generation;
}

/* The calling actor is the sender, if it is of the same runtime; and the send counts. Returns whether it is. */
static BZ_ALWAYS_INLINE bool sign(struct bz_letter *l, struct bz_runtime *rt)
{
    struct bz_actor *me = bz_actor_self();
    if (BZ_UNLIKELY(me == NULL || me->task.rt != rt)) {
        sign_as_task(l, rt);
        return false;
    }
    l->from_index = me->task.slot.index;
    l->from_generation = bz_actor_generation(me);
    me->task.slot.flags += BZ_SEND_REDUCTIONS * BZ_ACTOR_REDUCTION;
    return true;
}

/* Push the letter, and place an actor that was idle. A sender that is an actor is counted itself, so it counts only those that it
 * places; another sender counts first (queue/busy.c). */
static BZ_ALWAYS_INLINE void post(struct bz_actor *a, struct bz_letter *l, bool by_actor)
{
    struct bz_runtime *rt = a->task.rt;
    uint32_t behind;
    if (BZ_LIKELY(by_actor)) {
        if (!bz_mailbox_push(&a->box, &l->node, &behind))
            return;
        bz_actor_count_in(rt, bz_busy_here());
        bz_actor_place(a);
        return;
    }
    struct bz_busy_count *mine = bz_busy_mine(rt);
    bz_actor_count_in(rt, mine);
    if (bz_mailbox_push(&a->box, &l->node, &behind))
        bz_actor_place(a);
    else
        bz_actor_count_out(rt, mine);
}

bool bz_send_is_bad(uint32_t what, const void *data, size_t size)
{
    return size > BLITZ_MSG_BYTES_MAX || what >= BZ_MSG_OURS || (data == NULL && size > 0);
}

/* A message is dropped before it is made. Its cargo is taken from the sender, as if it had been sent. */
static BZ_NOINLINE int drop(const blitz_cargo *cargo)
{
    enum bz_cargo_kind kind;
    void *piece = bz_cargo_load(cargo, &kind);
    bz_cargo_release(kind, piece);
    return 0;
}

/* Send it. BZ_MET_WAIT: the caller must wait first; only if it says BZ_SEND_WAITS. */
static BZ_ALWAYS_INLINE int push(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                                 const blitz_cargo *cargo, blitz_reply_to reply,
                                 enum bz_send_how how)
{
    struct bz_actor *a = bz_actor_find(to);
    if (BZ_UNLIKELY(bz_send_is_bad(what, data, size)))
        return -EINVAL;
    if (BZ_UNLIKELY(a == NULL))
        return to.node == 0 ? -ESRCH : bz_far_push(to, what, data, size, cargo, reply, how);
    struct bz_runtime *rt = a->task.rt;
    if (BZ_UNLIKELY(bz_actor_is_long(a))) {
        int met = bz_pressure_meet(a, how);
        if (met != BZ_MET_PUSH)
            return met == BZ_MET_DROP ? drop(cargo) : met;
    }
    struct bz_letter *l = bz_letter_new(rt, what, data, size, cargo);
    if (BZ_UNLIKELY(l == NULL))
        return -ENOMEM;
    l->generation = to.generation;
    l->reply = reply;
    bool by_actor = sign(l, rt);
    struct bz_parcel *parcel = BZ_UNLIKELY(cargo != NULL) ? bz_letter_parcel(l) : NULL;
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    post(a, l, by_actor);
    if (BZ_UNLIKELY(parcel != NULL))
        bz_parcel_sent(parcel, bz_mailbox_is_still_for(&a->box, to.generation));
    if (reply.generation != 0 && !bz_mailbox_is_still_for(&a->box, to.generation))
        bz_ticket_answer(rt, reply, -ESRCH, NULL, 0); /* it may be behind the stub: mailbox.h [G] */
    return 0;
}

int bz_send_our_call(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                     const blitz_cargo *cargo, blitz_reply_to reply)
{
    struct bz_actor *a = bz_actor_find(to);
    if (a == NULL)
        return -ESRCH;
    if (bz_actor_is_long(a)) {
        int met = bz_pressure_meet(a, BZ_SEND_CALLS);
        if (met != BZ_MET_PUSH)
            return met == BZ_MET_DROP ? drop(cargo) : met;
    }
    struct bz_letter *l = bz_letter_new(a->task.rt, what, data, size, cargo);
    if (l == NULL)
        return -ENOMEM;
    l->generation = to.generation;
    l->reply = reply;
    post(a, l, false);
    if (reply.generation != 0 && !bz_mailbox_is_still_for(&a->box, to.generation))
        bz_ticket_answer(a->task.rt, reply, -ESRCH, NULL, 0); /* as in push() */
    return 0;
}

int bz_send_ours(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                 const blitz_cargo *cargo)
{
    return bz_send_our_call(to, what, data, size, cargo, (blitz_reply_to){0, 0, 0});
}

int bz_send(blitz_actor_id to, uint32_t what, const void *data, size_t size,
            const blitz_cargo *cargo, blitz_reply_to reply)
{
    return push(to, what, data, size, cargo, reply, BZ_SEND_CALLS);
}

/* ---- waiting for room ---- */

/* The receiver is overloaded, and the caller is not an actor. False: there is no such runtime any more. The caller may wait longer than
 * the runtime exists, whose end lets it go on. */
static bool begin_to_wait(struct bz_sending *s, blitz_actor_id to)
{
    struct bz_runtime *visited = bz_actor_visit(to);
    struct bz_runtime *rt = visited != NULL ? visited : bz_actor_runtime(to);
    s->rt = rt;
    s->stays = visited != NULL;
    if (s->stays)
        bz_task_stay(rt);
    bz_actor_leave(visited);
    return rt != NULL;
}

static void end_wait(struct bz_sending *s)
{
    if (s->stays)
        bz_task_left(s->rt);
    s->stays = false;
}

/* The forms of a send that are not on the hot path. */
static BZ_NOINLINE int push_as(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                               const blitz_cargo *cargo, enum bz_send_how how)
{
    struct bz_runtime *visited = bz_actor_visit(to);
    int rc = push(to, what, data, size, cargo, (blitz_reply_to){0, 0, 0}, how);
    bz_actor_leave(visited);
    return rc;
}

int blitz_actor_try_send(blitz_actor_id to, uint32_t what, const void *data, size_t size)
{
    return push_as(to, what, data, size, NULL, BZ_SEND_TRIES);
}

/* Wait, then send. */
static BZ_NOINLINE int wait_and_push(blitz_actor_id to, uint32_t what, const void *data,
                                     size_t size, const blitz_cargo *cargo, blitz_deadline until)
{
    struct bz_sending s;
    if (to.node != 0)
        return bz_far_send(to, what, data, size, cargo, until);
    bz_sending_init(&s, to);
    if (!begin_to_wait(&s, to))
        return -ESRCH;
    bz_waiter_init(&s.request.waiter, NULL, BZ_WAIT_WOKEN);
    int err = bz_request_wait(&s.request, bz_os_here(), until);
    end_wait(&s);
    return err != 0 ? err : push_as(to, what, data, size, cargo, BZ_SEND_GRANTED);
}

/* ---- the common send ---- */

enum { SMALL = BZ_LETTER_SMALL - sizeof(struct bz_letter) }; /* the payload of a small letter */

static bool is_actor(const struct bz_task *t)
{
    return t->ops->kind == bz_actor_kind;
}

/* The living actor of an id of m's runtime, if its mailbox has room for a message of `me`; else NULL. */
static BZ_ALWAYS_INLINE struct bz_actor *find_near(struct bz_machine *m, struct bz_task *me,
                                                   blitz_actor_id to)
{
    uint64_t place = (uint64_t)to.creation << 32 | to.node; /* both in one register */
    if (BZ_UNLIKELY(place != (uint64_t)m->rt->creation << 32 || to.generation % 2 == 0))
        return NULL;
    struct bz_task *t = bz_slot_at(&m->rt->tasks.slots, to.index);
    if (BZ_UNLIKELY(t == NULL || !bz_mailbox_is_for(&bz_actor_of(t)->box, to.generation)))
        return NULL;
    struct bz_actor *a = bz_actor_of(t);
    if (BZ_LIKELY(!bz_actor_is_long(a)))
        return a;
    return is_actor(me) && !bz_actor_is_too_long(bz_actor_of(me), a) ? a : NULL;
}

/* Push a small message of the task `me`, in the runtime, on a machine with a proc. False: no memory. */
static BZ_ALWAYS_INLINE bool push_in(struct bz_machine *m, struct bz_task *me, struct bz_actor *a,
                                     uint32_t generation, uint32_t what, const void *data,
                                     size_t size)
{
    struct bz_proc *p = m->proc;
    struct bz_letter *l = bz_letter_take(&p->tasks, 0);
    uint32_t behind;
    if (BZ_UNLIKELY(l == NULL))
        return false;
    fill(l, what, data, size);
    l->kind = 0;
    l->generation = generation;
    bool by_actor = is_actor(me); /* as in post() */
    if (BZ_LIKELY(by_actor)) {
        l->from_index = me->slot.index;
        l->from_generation = bz_actor_generation(bz_actor_of(me));
        me->slot.flags += BZ_SEND_REDUCTIONS * BZ_ACTOR_REDUCTION;
    } else {
        bz_busy_begin(&m->rt->busy, &m->busy);
    }
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    if (!bz_mailbox_push(&a->box, &l->node, &behind)) {
        if (!by_actor)
            bz_actor_count_out(m->rt, &m->busy);
        return true;
    }
    if (by_actor)
        bz_busy_begin(&m->rt->busy, &m->busy);
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bz_entry old = bz_load_relaxed(&p->next);               /* relaxed: ours to touch */
    bz_store_relaxed(&p->next, bz_entry_resumed(&a->task)); /* relaxed: likewise */
    if (BZ_UNLIKELY(old != 0))
        bz_place_evicted(m, old);
    return true;
}

/* The common send. False: nothing was done. */
static BZ_ALWAYS_INLINE bool push_quickly(blitz_actor_id to, uint32_t what, const void *data,
                                          size_t size)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_UNLIKELY(m == NULL || size > SMALL || what >= BZ_MSG_OURS ||
                    (data == NULL && size > 0) || !bz_retake_is_away(&m->taken)))
        return false;
    struct bz_task *me = m->current;
    if (BZ_UNLIKELY(me == NULL ||
                    (me->locals != NULL && !is_actor(me)))) /* it may have an id: sign_as_task() */
        return false;
    struct bz_actor *a = find_near(m, me, to);
    if (BZ_UNLIKELY(a == NULL))
        return false;
    bool is_in = bz_retake_enter_usual(&m->taken);
    bool is_sent = BZ_LIKELY(is_in && m->proc != NULL && !bz_monitor_is_down(m->rt)) &&
                   push_in(m, me, a, to.generation, what, data, size);
    bz_leave_on(m, BZ_IN_USER);
    return is_sent;
}

int blitz_actor_send(blitz_actor_id to, uint32_t what, const void *data, size_t size)
{
    if (BZ_LIKELY(push_quickly(to, what, data, size)))
        return 0;
    int rc = push_as(to, what, data, size, NULL, BZ_SEND_WAITS);
    return BZ_LIKELY(rc != BZ_MET_WAIT) ? rc
                                        : wait_and_push(to, what, data, size, NULL, BLITZ_FOREVER);
}

int bz_send_until(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                  const blitz_cargo *cargo, blitz_deadline until)
{
    int rc = push_as(to, what, data, size, cargo, BZ_SEND_WAITS);
    return rc != BZ_MET_WAIT ? rc : wait_and_push(to, what, data, size, cargo, until);
}

int blitz_actor_send_until(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                           blitz_deadline until)
{
    return bz_send_until(to, what, data, size, NULL, until);
}

/* ---- a send as a future ---- */

struct sending {
    union {
        struct bz_sending wait;
        struct bz_far_sending far; /* to.node is not 0 */
    };
    blitz_actor_id to;
    const void *data;
    const blitz_cargo *cargo;
    uint32_t what;
    uint8_t size;
    bool is_waiting; /* the request is in use */
};

static_assert(sizeof(struct sending) <= sizeof(((blitz_actor_send_future *)NULL)->inside),
              "it has room");

static struct sending *sending_of(blitz_future *f)
{
    return (struct sending *)BZ_CONTAINER_OF(f, blitz_actor_send_future, future)->inside;
}

/* A send to another node. False: it waits. */
static bool far_poll(struct sending *s, const blitz_waker *waker, int *rc)
{
    if (!s->is_waiting) {
        *rc = bz_far_begin(&s->far, s->to, s->what, s->data, s->size, s->cargo);
        if (*rc != 0)
            return true;
        bz_waiter_init_polled(&s->far.request.waiter);
    }
    s->is_waiting = true;
    if (!bz_far_poll(&s->far, waker, rc))
        return false;
    bz_far_end_send(&s->far);
    return true;
}

static blitz_poll send_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_actor_send_future *f = BZ_CONTAINER_OF(future, blitz_actor_send_future, future);
    struct sending *s = sending_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    int rc = s->is_waiting ? BZ_MET_WAIT
                           : push_as(s->to, s->what, s->data, s->size, s->cargo, BZ_SEND_WAITS);
    if (rc == BZ_MET_WAIT && s->to.node != 0) {
        if (!far_poll(s, waker, &rc))
            return BLITZ_PENDING;
    } else if (rc == BZ_MET_WAIT && !s->is_waiting && !begin_to_wait(&s->wait, s->to)) {
        rc = -ESRCH;
    } else if (rc == BZ_MET_WAIT) {
        s->is_waiting = true;
        if (!bz_request_poll(&s->wait.request, waker))
            return BLITZ_PENDING;
        end_wait(&s->wait);
        rc = push_as(s->to, s->what, s->data, s->size, s->cargo, BZ_SEND_GRANTED);
    }
    f->result = rc;
    return BLITZ_READY;
}

static void send_cancel(blitz_future *future)
{
    blitz_actor_send_future *f = BZ_CONTAINER_OF(future, blitz_actor_send_future, future);
    struct sending *s = sending_of(future);
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    if (!s->is_waiting)
        return;
    if (s->to.node != 0) {
        (void)bz_request_cancel(&s->far.request);
        bz_far_end_send(&s->far);
        return;
    }
    (void)bz_request_cancel(&s->wait.request);
    end_wait(&s->wait);
}

static int send_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_actor_send_future, future)->result;
}

void bz_send_future_init(blitz_actor_send_future *f, blitz_actor_id to, uint32_t what,
                         const void *data, size_t size, const blitz_cargo *cargo)
{
    static const blitz_future_ops ops = {"actor send", BLITZ_REVOCABLE, send_poll, send_cancel,
                                         send_output};
    struct sending *s = sending_of(&f->future);
    f->future.ops = &ops;
    f->result = bz_send_is_bad(what, data, size) ? -EINVAL : -EINPROGRESS;
    *s = (struct sending){
        .to = to, .data = data, .cargo = cargo, .what = what, .size = (uint8_t)size};
    bz_sending_init(&s->wait, to);
    bz_waiter_init_polled(&s->wait.request.waiter);
}

void blitz_actor_send_future_init(blitz_actor_send_future *f, blitz_actor_id to, uint32_t what,
                                  const void *data, size_t size)
{
    bz_send_future_init(f, to, what, data, size, NULL);
}

/* ---- later ---- */

/* A message that is sent later holds its receiver, if that ends when it is unreachable. */
static BZ_NOINLINE int hold(struct bz_letter *l, blitz_actor_id to)
{
    blitz_reference *r;
    int err = blitz_reference_of(to, &r);
    if (err != 0)
        return -ESRCH; /* it has ended since */
    if (bz_letter_hold(r->rt, l, r))
        return 0;
    blitz_reference_unref(r);
    return -ENOMEM;
}

static int push_later(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                      const blitz_cargo *cargo, blitz_deadline when, uint64_t *timer)
{
    static const blitz_cargo none;
    struct bz_actor *a = bz_actor_find(to);
    if (a == NULL)
        return -ESRCH;
    struct bz_runtime *rt = a->task.rt;
    bool is_held = bz_actor_behaviour(a)->end_unreachable;
    struct bz_letter *l =
        bz_letter_new(rt, what, data, size, is_held && cargo == NULL ? &none : cargo);
    if (l == NULL)
        return -ENOMEM;
    l->generation = to.generation;
    sign(l, rt);
    int err = BZ_UNLIKELY(is_held) ? hold(l, to) : 0;
    if (err == 0 && (err = bz_ticket_send_at(rt, to.index, l, when, timer)) != 0 && is_held)
        bz_letter_unhold(l);
    if (err != 0) {
        if (l->cargo != BZ_CARGO_NONE)
            bz_cargo_unload(cargo, l->cargo, *bz_letter_cargo(l));
        bz_letter_free(rt, l);
    }
    return err;
}

int bz_send_after(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                  const blitz_cargo *cargo, blitz_deadline when, uint64_t *timer)
{
    if (bz_send_is_bad(what, data, size))
        return -EINVAL;
    struct bz_runtime *visited = bz_actor_visit(to);
    int err = push_later(to, what, data, size, cargo, when, timer);
    bz_actor_leave(visited);
    return err;
}

int blitz_actor_send_after(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                           blitz_deadline when, uint64_t *timer)
{
    return bz_send_after(to, what, data, size, NULL, when, timer);
}

static int look_at(blitz_actor_id id, blitz_actor_info *out)
{
    struct bz_actor *a = bz_actor_find(id);
    if (a == NULL)
        return -ESRCH;
    bool is_idle = bz_mailq_is_empty(&a->box.queue);
    bool waits = bz_load_relaxed(&a->task.wait) != 0; /* relaxed: a guess */
    bool is_muted = bz_mailbox_is_muted(&a->box);
    out->behaviour = bz_actor_behaviour(a)->name;
    out->mailbox =
        is_idle && bz_actor_is_porter(a) ? bz_mailbox_behind(&a->box) : bz_mailbox_length(&a->box);
    out->dropped = bz_dropped_get(a, id.generation);
    out->state = is_idle    ? BLITZ_ACTOR_IDLE
                 : is_muted ? BLITZ_ACTOR_MUTED
                 : waits    ? BLITZ_ACTOR_WAITING
                            : BLITZ_ACTOR_SCHEDULED;
    out->heap_is_late = bz_mailbox_is_heap_late(&a->box);
    if (a == bz_actor_self())
        out->state = BLITZ_ACTOR_RUNNING;
    return bz_mailbox_is_for(&a->box, id.generation) ? 0 : -ESRCH;
}

int blitz_actor_info_get(blitz_actor_id id, blitz_actor_info *out)
{
    struct bz_runtime *visited = bz_actor_visit(id);
    int rc = look_at(id, out);
    bz_actor_leave(visited);
    return rc;
}
