/*
 * call.c - calls and joins: send, and wait for one answer.
 *
 * Both open a ticket (ticket.c), send its token, and wait for the ticket. A call sends a message, a join a signal. The wait is a
 * request (park/request.h), so the logic of the blocking form and of the future is the same.
 *
 * Three parties may answer. The handler does, or an actor that got the token. The receiver's death does, for messages in its
 * mailbox and for tokens that it has kept. And the sender itself does, if it finds that the receiver died around its push. A
 * second answer finds the ticket over.
 *
 * A caller that is no task of the receiver's runtime may be in its call when that runtime is released. It visits the runtime while it
 * sends, and keeps its memory while it waits (ticket.c I4).
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/far.h"
#include "actor/send.h"
#include "park/request.h"
#include "wait/waker.h"

/* ---- the answer ---- */

static int take_reply(struct bz_ticket *t, void *reply, size_t reply_size)
{
    int result = t->result;
    size_t size = result > 0 ? (size_t)result : 0;
    if (size > 0 && reply_size > 0)
        memcpy(reply, t->data, size < reply_size ? size : reply_size);
    return result;
}

/* The cargo of the reply; what is not wanted is released with the ticket. */
static void take_cargo(struct bz_ticket *t, blitz_arrival *got)
{
    if (got == NULL)
        return;
    bz_cargo_give(t->cargo, t->piece, got);
    t->cargo = BZ_CARGO_NONE;
}

static void answer_init(struct bz_answer *w, struct bz_ticket *t)
{
    *w = (struct bz_answer){.request.ops = &bz_answering, .ticket = t};
}

int bz_ticket_wait(struct bz_ticket *t, blitz_deadline until)
{
    struct bz_answer w;
    answer_init(&w, t);
    bz_waiter_init(&w.request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait(&w.request, bz_os_here(), until);
}

int blitz_actor_call(blitz_actor_id to, uint32_t what, const void *data, size_t size, void *reply,
                     size_t reply_size, blitz_deadline until)
{
    return blitz_actor_call_with(to, what, data, size, NULL, reply, reply_size, NULL, until);
}

/* The runtime of an id, if it has had actors; else NULL. */
static struct bz_runtime *runtime_of(blitz_actor_id id)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
    return rt != NULL && bz_actors_of(rt) != NULL ? rt : NULL;
}

/* Open a ticket and send its token, in a task of the runtime or on a visit. NULL: there is no such runtime. 0: *out is the
 * ticket. */
static int send_call(struct bz_runtime *rt, blitz_actor_id to, uint32_t what, const void *data,
                     size_t size, const blitz_cargo *cargo, struct bz_ticket **out)
{
    struct bz_ticket *t =
        rt != NULL && bz_actors_of(rt) != NULL ? bz_ticket_open_to_wait(rt) : NULL;
    if (t == NULL)
        return rt == NULL || bz_actors_of(rt) == NULL ? -ESRCH : -ENOMEM;
    int err = bz_send(to, what, data, size, cargo, bz_ticket_token(t));
    if (err != 0)
        bz_ticket_close(t);
    else
        *out = t;
    return err;
}

/* A call of an actor of another node. */
static int call_far(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                    const blitz_cargo *cargo, void *reply, size_t reply_size, blitz_arrival *got,
                    blitz_deadline until)
{
    struct bz_far_call c;
    int rc = bz_send_is_bad(what, data, size) ? -EINVAL
                                              : bz_far_begin_call(&c, to, what, data, size, cargo);
    if (rc != 0)
        return rc;
    rc = bz_ticket_wait(c.ticket, until);
    return bz_far_end_call(&c, to, what, rc, reply, reply_size, got);
}

static int begin_call(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                      const blitz_cargo *cargo, struct bz_ticket **out)
{
    if (bz_cargo_is_bad(cargo))
        return -EINVAL;
    struct bz_runtime *rt = bz_actor_runtime_mine(to.creation);
    if (BZ_LIKELY(rt != NULL))
        return send_call(rt, to, what, data, size, cargo, out);
    struct bz_runtime *visited = bz_actor_visit(to);
    int err = send_call(bz_actor_runtime(to), to, what, data, size, cargo, out);
    bz_actor_leave(visited);
    return err;
}

int blitz_actor_call_with(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                          const blitz_cargo *cargo, void *reply, size_t reply_size,
                          blitz_arrival *got, blitz_deadline until)
{
    struct bz_ticket *t;
    if (got != NULL)
        *got = (blitz_arrival){NULL, NULL, NULL};
    if (BZ_UNLIKELY(to.node != 0))
        return call_far(to, what, data, size, cargo, reply, reply_size, got, until);
    int rc = begin_call(to, what, data, size, cargo, &t);
    if (rc != 0)
        return rc;
    rc = bz_ticket_wait(t, until);
    if (rc == 0) {
        take_cargo(t, got);
        rc = take_reply(t, reply, reply_size);
    }
    bz_ticket_close(t);
    return rc;
}

static BZ_NOINLINE void answer_elsewhere(blitz_reply_to to, int result, const void *data,
                                         size_t size)
{
    struct bz_runtime *visited = bz_actor_visit(bz_actor_place_of(to));
    struct bz_runtime *rt = bz_actor_runtime(bz_actor_place_of(to));
    if (rt != NULL)
        bz_ticket_answer(rt, to, result, data, size);
    bz_actor_leave(visited);
}

static BZ_ALWAYS_INLINE void answer(blitz_reply_to to, int result, const void *data, size_t size)
{
    struct bz_runtime *rt = bz_actor_runtime_mine(to.creation);
    bz_actor_check_payload(data, size);
    if (BZ_LIKELY(rt != NULL && to.generation != 0))
        bz_ticket_answer(rt, to, result, data, size);
    else
        answer_elsewhere(to, result, data, size);
}

int blitz_actor_reply(blitz_reply_to to, const void *data, size_t size)
{
    if (size > BLITZ_MSG_BYTES_MAX || (data == NULL && size > 0))
        return -EINVAL;
    answer(to, (int)size, data, size);
    return 0;
}

int blitz_actor_reply_error(blitz_reply_to to, int error)
{
    if (error >= 0)
        return -EINVAL;
    answer(to, error, NULL, 0);
    return 0;
}

/* ---- a call as a future ---- */

struct call {
    struct bz_answer wait; /* ticket NULL: not sent yet */
    blitz_actor_id to;
    union {
        struct {
            const void *data;
            const blitz_cargo *cargo;
        };
        struct bz_far_call far; /* once it is sent, if to.node is not 0 */
    };
    void *reply;
    blitz_arrival *got;
    uint32_t what;
    uint8_t size;
    size_t reply_size;
};

static_assert(sizeof(struct call) <= sizeof(((blitz_actor_call_future *)NULL)->inside),
              "it has room");

static struct call *call_of(blitz_future *f)
{
    return (struct call *)BZ_CONTAINER_OF(f, blitz_actor_call_future, future)->inside;
}

static int call_begin(struct call *c)
{
    const void *data = c->data;
    const blitz_cargo *cargo = c->cargo;
    if (c->to.node == 0)
        return begin_call(c->to, c->what, data, c->size, cargo, &c->wait.ticket);
    int rc = bz_far_begin_call(&c->far, c->to, c->what, data, c->size, cargo);
    if (rc == 0)
        c->wait.ticket = c->far.ticket;
    return rc;
}

/* rc 0: it is answered; else the caller leaves. */
static int call_end(struct call *c, int rc)
{
    struct bz_ticket *t = c->wait.ticket;
    if (c->to.node != 0)
        return bz_far_end_call(&c->far, c->to, c->what, rc, c->reply, c->reply_size, c->got);
    if (rc == 0) {
        take_cargo(t, c->got);
        rc = take_reply(t, c->reply, c->reply_size);
    }
    bz_ticket_close(t);
    return rc;
}

static blitz_poll call_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_actor_call_future *f = BZ_CONTAINER_OF(future, blitz_actor_call_future, future);
    struct call *c = call_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    int err = c->wait.ticket == NULL ? call_begin(c) : 0;
    if (err == 0 && !bz_request_poll(&c->wait.request, waker))
        return BLITZ_PENDING;
    f->result = err != 0 ? err : call_end(c, 0);
    return BLITZ_READY;
}

static void call_cancel(blitz_future *future)
{
    blitz_actor_call_future *f = BZ_CONTAINER_OF(future, blitz_actor_call_future, future);
    struct call *c = call_of(future);
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    if (c->wait.ticket == NULL)
        return;
    (void)bz_request_cancel(&c->wait.request);
    (void)call_end(c, -ECANCELED);
}

static int call_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_actor_call_future, future)->result;
}

void blitz_actor_call_future_init(blitz_actor_call_future *f, blitz_actor_id to, uint32_t what,
                                  const void *data, size_t size, void *reply, size_t reply_size)
{
    blitz_actor_call_with_future_init(f, to, what, data, size, NULL, reply, reply_size, NULL);
}

void blitz_actor_call_with_future_init(blitz_actor_call_future *f, blitz_actor_id to, uint32_t what,
                                       const void *data, size_t size, const blitz_cargo *cargo,
                                       void *reply, size_t reply_size, blitz_arrival *got)
{
    static const blitz_future_ops ops = {"actor call", BLITZ_REVOCABLE, call_poll, call_cancel,
                                         call_output};
    struct call *c = call_of(&f->future);
    f->future.ops = &ops;
    f->result = bz_send_is_bad(what, data, size) ? -EINVAL : -EINPROGRESS;
    if (got != NULL)
        *got = (blitz_arrival){NULL, NULL, NULL};
    *c = (struct call){.to = to,
                       .data = data,
                       .cargo = cargo,
                       .reply = reply,
                       .got = got,
                       .what = what,
                       .size = (uint8_t)size,
                       .reply_size = reply_size};
    answer_init(&c->wait, NULL);
    bz_waiter_init_polled(&c->wait.request.waiter);
}

/* ---- joins ---- */

/* Ask the actor to answer the ticket when it ends. */
static int ask(struct bz_runtime *rt, blitz_actor_id id, struct bz_ticket *t)
{
    if (bz_actor_find(id) == NULL)
        return -ESRCH; /* before an allocation in a runtime that may be about to end */
    struct bz_signal *s = bz_signal_new(rt, BZ_SIGNAL_AWAIT);
    if (s == NULL)
        return -ENOMEM;
    s->peer_index = t->index;
    s->ref = t->generation;
    if (bz_signal_send(rt, id.index, id.generation, s))
        return 0;
    bz_letter_free(rt, s);
    return -ESRCH;
}

/* Open a ticket and ask, on a visit. 0: *out is the ticket. */
static int send_join(blitz_actor_id id, struct bz_ticket **out)
{
    struct bz_runtime *rt = runtime_of(id);
    struct bz_ticket *t = rt != NULL ? bz_ticket_open_to_wait(rt) : NULL;
    if (t == NULL)
        return rt == NULL ? -ESRCH : -ENOMEM;
    int err = ask(rt, id, t);
    if (err != 0)
        bz_ticket_close(t);
    else
        *out = t;
    return err;
}

static int join_begin(blitz_actor_id id, struct bz_ticket **out)
{
    struct bz_runtime *visited = bz_actor_visit(id);
    int err = send_join(id, out);
    bz_actor_leave(visited);
    return err;
}

/* The owner of a join has left: the actor forgets it. Without memory it forgets it at its end. */
static void tell_actor(blitz_actor_id id, const struct bz_ticket *t)
{
    struct bz_actor *a = bz_actor_find(id);
    struct bz_runtime *rt = t->rt;
    struct bz_signal *s = a != NULL ? bz_signal_new(rt, BZ_SIGNAL_DEMONITOR) : NULL;
    if (s == NULL)
        return;
    s->peer_index = t->index;
    s->ref = t->generation;
    if (!bz_signal_send(rt, id.index, id.generation, s))
        bz_letter_free(rt, s);
}

static void join_undo(blitz_actor_id id, const struct bz_ticket *t)
{
    struct bz_runtime *visited = bz_actor_visit(id);
    tell_actor(id, t);
    bz_actor_leave(visited);
}

static int take_reason(struct bz_ticket *t, blitz_exit_reason *why)
{
    if (t->result >= 0 && why != NULL)
        *why = t->reason;
    return t->result < 0 ? t->result : 0;
}

/* The same for an actor of another node. */
static int join_far(blitz_actor_id id, blitz_exit_reason *why, blitz_deadline until)
{
    struct bz_far_call c;
    int rc = bz_far_begin_join(&c, id);
    if (rc != 0)
        return rc;
    rc = bz_ticket_wait(c.ticket, until);
    return bz_far_end_join(&c, id, rc, why);
}

int blitz_actor_join(blitz_actor_id id, blitz_exit_reason *why, blitz_deadline until)
{
    struct bz_ticket *t;
    if (BZ_UNLIKELY(id.node != 0))
        return join_far(id, why, until);
    int rc = join_begin(id, &t);
    if (rc != 0)
        return rc;
    rc = bz_ticket_wait(t, until);
    if (rc != 0)
        join_undo(id, t);
    else
        rc = take_reason(t, why);
    bz_ticket_close(t);
    return rc;
}

struct join {
    struct bz_answer wait; /* ticket NULL: not asked yet */
    blitz_actor_id id;
    blitz_exit_reason *why;
    struct bz_far_call far; /* to another node: its ticket is wait.ticket */
};

static_assert(sizeof(struct join) <= sizeof(((blitz_actor_join_future *)NULL)->inside),
              "it has room");

static struct join *join_of(blitz_future *f)
{
    return (struct join *)BZ_CONTAINER_OF(f, blitz_actor_join_future, future)->inside;
}

/* Ask. 0: the ticket is in j->wait. */
static int join_ask(struct join *j)
{
    if (j->id.node == 0)
        return join_begin(j->id, &j->wait.ticket);
    int err = bz_far_begin_join(&j->far, j->id);
    if (err == 0)
        j->wait.ticket = j->far.ticket;
    return err;
}

/* Close the ticket. rc 0: it is answered; else the owner has left. */
static int join_end(struct join *j, int rc)
{
    if (j->id.node != 0)
        return bz_far_end_join(&j->far, j->id, rc, j->why);
    if (rc == 0)
        rc = take_reason(j->wait.ticket, j->why);
    else
        join_undo(j->id, j->wait.ticket);
    bz_ticket_close(j->wait.ticket);
    return rc;
}

static blitz_poll join_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_actor_join_future *f = BZ_CONTAINER_OF(future, blitz_actor_join_future, future);
    struct join *j = join_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    int err = j->wait.ticket == NULL ? join_ask(j) : 0;
    if (err == 0 && !bz_request_poll(&j->wait.request, waker))
        return BLITZ_PENDING;
    f->result = err != 0 ? err : join_end(j, 0);
    return BLITZ_READY;
}

static void join_cancel(blitz_future *future)
{
    blitz_actor_join_future *f = BZ_CONTAINER_OF(future, blitz_actor_join_future, future);
    struct join *j = join_of(future);
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    if (j->wait.ticket == NULL)
        return;
    (void)bz_request_cancel(&j->wait.request);
    (void)join_end(j, -ECANCELED);
}

static int join_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_actor_join_future, future)->result;
}

void blitz_actor_join_future_init(blitz_actor_join_future *f, blitz_actor_id id,
                                  blitz_exit_reason *why)
{
    static const blitz_future_ops ops = {"actor join", BLITZ_REVOCABLE, join_poll, join_cancel,
                                         join_output};
    struct join *j = join_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    *j = (struct join){.id = id, .why = why};
    answer_init(&j->wait, NULL);
    bz_waiter_init_polled(&j->wait.request.waiter);
}
