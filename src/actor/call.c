/*
 * call.c - calls and joins: send, and wait for one answer.
 *
 * Both open a ticket (ticket.c), send its token, and wait for the ticket. A call sends a message, a join a signal. The wait is a
 * request (park/request.h), so the logic of the blocking form and of the future is the same.
 *
 * Three parties may answer. The handler does, or an actor that got the token. The receiver's death does, for messages in its
 * mailbox and for tokens that it has kept. And the sender itself does, if it finds that the receiver died around its push. A
 * second answer finds the ticket over.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
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

static void answer_init(struct bz_answer *w, struct bz_ticket *t)
{
    *w = (struct bz_answer){.request.ops = &bz_answering, .ticket = t};
}

/* Wait on a stack. 0: the ticket has the answer. */
static int wait_for(struct bz_ticket *t, blitz_deadline until)
{
    struct bz_answer w;
    answer_init(&w, t);
    bz_waiter_init(&w.request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait(&w.request, bz_os_here(), until);
}

int blitz_actor_call(blitz_actor_id to, uint32_t what, const void *data, size_t size, void *reply,
                     size_t reply_size, blitz_deadline until)
{
    struct bz_runtime *rt = bz_actor_runtime(to);
    if (rt == NULL)
        return -ESRCH;
    struct bz_ticket *t = bz_ticket_open(rt);
    if (t == NULL)
        return -ENOMEM;
    int rc = bz_send(to, what, data, size, bz_ticket_token(t));
    if (rc == 0)
        rc = wait_for(t, until);
    if (rc == 0)
        rc = take_reply(t, reply, reply_size);
    bz_ticket_close(t);
    return rc;
}

int blitz_actor_reply(blitz_reply_to to, const void *data, size_t size)
{
    struct bz_runtime *rt = bz_actor_runtime((blitz_actor_id){0, 1, 0, to.creation});
    if (size > BLITZ_MSG_BYTES_MAX || (data == NULL && size > 0))
        return -EINVAL;
    if (rt != NULL && to.generation != 0)
        bz_ticket_answer(rt, to, (int)size, data, size);
    return 0;
}

int blitz_actor_reply_error(blitz_reply_to to, int error)
{
    struct bz_runtime *rt = bz_actor_runtime((blitz_actor_id){0, 1, 0, to.creation});
    if (error >= 0)
        return -EINVAL;
    if (rt != NULL && to.generation != 0)
        bz_ticket_answer(rt, to, error, NULL, 0);
    return 0;
}

int blitz_actor_reply_keep(blitz_reply_to to)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL || to.generation == 0)
        return -EINVAL;
    return bz_relations_owe(me, to) ? 0 : -ENOMEM;
}

/* ---- a call as a future ---- */

struct call {
    struct bz_answer wait; /* ticket NULL: not sent yet */
    blitz_actor_id to;
    const void *data;
    void *reply;
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

/* Open the ticket and send. 0, or the result of the future. */
static int call_begin(struct call *c)
{
    struct bz_runtime *rt = bz_actor_runtime(c->to);
    struct bz_ticket *t = rt != NULL ? bz_ticket_open(rt) : NULL;
    if (t == NULL)
        return rt == NULL ? -ESRCH : -ENOMEM;
    int err = bz_send(c->to, c->what, c->data, c->size, bz_ticket_token(t));
    if (err != 0) {
        bz_ticket_close(t);
        return err;
    }
    c->wait.ticket = t;
    return 0;
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
    f->result = err != 0 ? err : take_reply(c->wait.ticket, c->reply, c->reply_size);
    if (err == 0)
        bz_ticket_close(c->wait.ticket);
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
    bz_ticket_close(c->wait.ticket);
}

static int call_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_actor_call_future, future)->result;
}

void blitz_actor_call_future_init(blitz_actor_call_future *f, blitz_actor_id to, uint32_t what,
                                  const void *data, size_t size, void *reply, size_t reply_size)
{
    static const blitz_future_ops ops = {"actor call", BLITZ_REVOCABLE, call_poll, call_cancel,
                                         call_output};
    struct call *c = call_of(&f->future);
    f->future.ops = &ops;
    f->result = bz_send_is_bad(what, data, size) ? -EINVAL : -EINPROGRESS;
    *c = (struct call){.to = to,
                       .data = data,
                       .reply = reply,
                       .what = what,
                       .size = (uint8_t)size,
                       .reply_size = reply_size};
    answer_init(&c->wait, NULL);
    bz_waiter_init_polled(&c->wait.request.waiter);
}

/* ---- joins ---- */

/* Ask the actor to answer the ticket when it ends. */
static int join_begin(struct bz_runtime *rt, blitz_actor_id id, struct bz_ticket *t)
{
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

/* The owner of a join has left: the actor forgets it. Without memory it forgets it at its end. */
static void join_undo(struct bz_runtime *rt, blitz_actor_id id, struct bz_ticket *t)
{
    struct bz_signal *s = bz_signal_new(rt, BZ_SIGNAL_DEMONITOR);
    if (s == NULL)
        return;
    s->peer_index = t->index;
    s->ref = t->generation;
    if (!bz_signal_send(rt, id.index, id.generation, s))
        bz_letter_free(rt, s);
}

static int take_reason(struct bz_ticket *t, blitz_exit_reason *why)
{
    if (t->result >= 0 && why != NULL)
        *why = t->reason;
    return t->result < 0 ? t->result : 0;
}

int blitz_actor_join(blitz_actor_id id, blitz_exit_reason *why, blitz_deadline until)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
    if (rt == NULL)
        return -ESRCH;
    struct bz_ticket *t = bz_ticket_open(rt);
    if (t == NULL)
        return -ENOMEM;
    int rc = join_begin(rt, id, t);
    if (rc == 0) {
        rc = wait_for(t, until);
        if (rc != 0)
            join_undo(rt, id, t);
        else
            rc = take_reason(t, why);
    }
    bz_ticket_close(t);
    return rc;
}

struct join {
    struct bz_answer wait; /* ticket NULL: not asked yet */
    blitz_actor_id id;
    blitz_exit_reason *why;
};

static_assert(sizeof(struct join) <= sizeof(((blitz_actor_join_future *)NULL)->inside),
              "it has room");

static struct join *join_of(blitz_future *f)
{
    return (struct join *)BZ_CONTAINER_OF(f, blitz_actor_join_future, future)->inside;
}

static int join_open(struct join *j)
{
    struct bz_runtime *rt = bz_actor_runtime(j->id);
    struct bz_ticket *t = rt != NULL ? bz_ticket_open(rt) : NULL;
    if (t == NULL)
        return rt == NULL ? -ESRCH : -ENOMEM;
    int err = join_begin(rt, j->id, t);
    if (err != 0) {
        bz_ticket_close(t);
        return err;
    }
    j->wait.ticket = t;
    return 0;
}

static blitz_poll join_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_actor_join_future *f = BZ_CONTAINER_OF(future, blitz_actor_join_future, future);
    struct join *j = join_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    int err = j->wait.ticket == NULL ? join_open(j) : 0;
    if (err == 0 && !bz_request_poll(&j->wait.request, waker))
        return BLITZ_PENDING;
    f->result = err != 0 ? err : take_reason(j->wait.ticket, j->why);
    if (err == 0)
        bz_ticket_close(j->wait.ticket);
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
    join_undo(j->wait.ticket->rt, j->id, j->wait.ticket);
    bz_ticket_close(j->wait.ticket);
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
