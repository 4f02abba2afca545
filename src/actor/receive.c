/*
 * receive.c - tasks that receive: an inbox between an actor and a task.
 *
 * The id belongs to a small actor, the porter. Its one handler puts each message into the inbox of the task. So ids, links,
 * monitors, names and timers are those of every actor, and senders do not know the difference. The price is a second hop for each
 * message; a program that counts nanoseconds writes handlers.
 *
 * The inbox has two lists. The porter appends to `fresh`, under the lock. The task moves fresh messages to `kept`, which is its
 * own, and looks through it without a lock: the match function is the user's. A receive looks at each message once. If none
 * matches, it waits for a notification of the porter (blitz/notify.h), which is kept if it comes in between. One receive waits at a
 * time, so no notification goes to the wrong one.
 *
 * Overload. A message in the inbox counts as one in the porter's mailbox, until it is received. So the marks and the cap of an
 * actor hold for both together, and pressure.c holds senders back. The task rings the porter when it has come down to the low
 * mark. While it waits for a message that it has not, it says so (BZ_HUNGRY): the sender of that message must not be held back.
 *
 * Links and monitors of the task are those of the porter: relate.c. The porter puts news of an end into the inbox, behind the
 * messages that are there. The task may unlink or demonitor before it receives that, so the message is dropped unless the relation
 * is still there (is_stale), and takes the relation with it.
 *
 * The end. If the task ends first, it closes the inbox, stops the porter with the task's reason, and waits for its end. If the
 * porter ends first, it closes the inbox and cancels the task. Both hold a reference on the inbox, and the inbox holds one on the
 * task, so that the porter may cancel a task that is about to end.
 *
 * Rejected: a receive from the actor's own queue. The message that is handled stays in that queue, and a push to a queue that is
 * not empty wakes no task (mailbox.h). Each send would have to look for a future that waits.
 *
 * I1  A letter is in one list, or is `current`, or is being matched.
 * I2  `active` is the future that receives, from its first poll until it is ready or cancelled.
 */
#include "blitz/receive.h"

#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/cargo.h"
#include "actor/relating.h"
#include "actor/send.h"
#include "actor/shares.h"
#include "blitz/notify.h"
#include "blitz/task.h"
#include "life/handle.h"

struct letters {
    struct bz_mpsc_node *first, *last; /* last: undefined if first is NULL */
};

struct inbox {
    struct bz_receiver me; /* first */
    struct bz_shares refs; /* of the task and the porter */
    struct bz_runtime *rt; /* constant */
    struct bz_lock lock;
    struct letters fresh; /* guarded by lock, as are the next three */
    uint32_t count;       /* of messages in both lists. While it is open they are held: mailbox.h */
    bool is_closed;       /* the task or the porter has ended */
    bool is_ended_by_task;        /* the task needs no cancel */
    blitz_notify arrived;         /* of a message */
    struct letters kept;          /* the task's, as the rest */
    struct bz_letter *current;    /* the message that was received last */
    blitz_msg msg;                /* ... for the user */
    blitz_receive_future *active; /* I2 */
    bool is_hungry;               /* the mark is set */
    const blitz_exit_reason *why; /* of blitz_receiver_end(); NULL: the task's result */
    struct bz_signal *stop;       /* for the porter, so that the end needs no memory */
};

/* ---- lists ---- */

static struct bz_mpsc_node *next_of(struct bz_mpsc_node *n)
{
    return bz_load_relaxed(&n->next); /* relaxed: the lock or the owner orders it */
}

static void append(struct letters *to, struct bz_mpsc_node *n)
{
    bz_store_relaxed(&n->next, NULL); /* relaxed: as next_of() */
    if (to->first == NULL)
        to->first = n;
    else
        bz_store_relaxed(&to->last->next, n); /* relaxed: as next_of() */
    to->last = n;
}

static void append_all(struct letters *to, struct letters *from)
{
    if (from->first == NULL)
        return;
    if (to->first == NULL)
        to->first = from->first;
    else
        bz_store_relaxed(&to->last->next, from->first); /* relaxed: as next_of() */
    to->last = from->last;
    from->first = NULL;
}

/* Take the node behind `before` out; NULL: the first. */
static void take_out(struct letters *of, struct bz_mpsc_node *before, struct bz_mpsc_node *n)
{
    if (before == NULL)
        of->first = next_of(n);
    else
        bz_store_relaxed(&before->next, next_of(n)); /* relaxed: as next_of() */
    if (of->last == n)
        of->last = before;
}

static void bury_all(struct bz_runtime *rt, struct letters *of)
{
    for (struct bz_mpsc_node *n = of->first, *next; n != NULL; n = next) {
        next = next_of(n);
        bz_letter_bury(rt, BZ_CONTAINER_OF(n, struct bz_letter, node));
    }
    of->first = NULL;
}

/* ---- the inbox ---- */

/* The memory of the porter. It is the porter while the inbox is open, which it closes before its end. */
static struct bz_actor *porter_of(struct inbox *in)
{
    return bz_actor_of(bz_slot_at(&in->rt->tasks.slots, in->me.id.index));
}

static void inbox_unref(struct inbox *in)
{
    if (!bz_shares_drop(&in->refs))
        return;
    blitz_allocator from = in->rt->alloc;
    if (in->stop != NULL)
        bz_letter_free(in->rt, in->stop);
    bz_task_unref(in->me.task);
    bz_free(&from, in, sizeof *in);
}

/* No message comes any more. Those that the task has not seen are dropped. Returns true if the task has ended its id. */
static bool inbox_close(struct inbox *in, bool by_task)
{
    bz_lock_take(&in->lock, in->rt->os);
    struct letters fresh = in->fresh;
    in->fresh.first = NULL;
    if (!in->is_closed) {
        bz_mailbox_let_go(&porter_of(in)->box, in->count);
        (void)bz_mailbox_be_hungry(&porter_of(in)->box, false);
    }
    in->is_closed = true;
    in->is_ended_by_task |= by_task;
    by_task = in->is_ended_by_task;
    bz_lock_drop(&in->lock, in->rt->os);
    bury_all(in->rt, &fresh);
    return by_task;
}

/* False: it is closed, and the letter is still the caller's. */
static bool inbox_put(struct inbox *in, struct bz_letter *l)
{
    bz_lock_take(&in->lock, in->rt->os);
    bool is_open = !in->is_closed;
    if (is_open) {
        append(&in->fresh, &l->node);
        in->count++;
        bz_mailbox_hold(&porter_of(in)->box);
    }
    bz_lock_drop(&in->lock, in->rt->os);
    return is_open;
}

/* ---- the porter ---- */

/* A letter of its own for the message: the other is freed behind its handler. NULL: no memory. */
static struct bz_letter *copy_of(struct bz_runtime *rt, const blitz_msg *m)
{
    void *block = blitz_msg_take(m);
    blitz_reference *r = bz_handled_reference(bz_actor_self(), m);
    blitz_cargo cargo = {
        .binary = m->binary, .move = block != NULL ? BLITZ_MOVE(block) : NULL, .reference = r};
    bool has_cargo = m->binary != NULL || block != NULL || r != NULL;
    struct bz_letter *l = bz_letter_new(rt, m->what, m->data, m->size, has_cargo ? &cargo : NULL);
    if (l == NULL) {
        blitz_msg_drop(block);
        return NULL;
    }
    l->reply = m->reply;
    l->from_index = m->from.index;
    l->from_generation = m->from.generation;
    return l;
}

/* Any message. Without memory the porter fails, and the task with it: a message is not lost in silence. */
static int porter_put(void *state, const blitz_msg *m)
{
    struct inbox *in = *(struct inbox **)state;
    struct bz_letter *l = copy_of(in->rt, m);
    if (l == NULL)
        return -ENOMEM;
    if (inbox_put(in, l))
        blitz_notify_one(&in->arrived);
    else
        bz_letter_bury(in->rt, l);
    return 0;
}

static void porter_drop(void *state, void *ctx)
{
    struct inbox *in = *(struct inbox **)state;
    (void)ctx;
    bool is_ended_by_task = inbox_close(in, false);
    blitz_notify_one(&in->arrived);
    if (!is_ended_by_task)
        bz_task_cancel(in->me.task);
    inbox_unref(in);
}

static const blitz_handler porter_handlers[] = {{BZ_MSG_ANY, BLITZ_ANY_SIZE, porter_put}};
static const blitz_behaviour porter = {.name = bz_receiver_name,
                                       .state_bytes = sizeof(struct inbox *),
                                       .handlers = porter_handlers,
                                       .handler_count = 1,
                                       .drop = porter_drop};

/* ---- the task ---- */

static void drop_current(struct inbox *in)
{
    if (in->current != NULL)
        bz_letter_drop(in->rt, in->current);
    in->current = NULL;
}

/* Stop the porter with that reason. The signal is there: a kill instead would fail the links of a task that ends well. */
static void stop_porter(struct inbox *in, const blitz_exit_reason *why)
{
    struct bz_signal *s = in->stop;
    in->stop = NULL;
    s->reason = *why;
    s->reason.text[BLITZ_EXIT_TEXT_MAX - 1] = '\0';
    if (!bz_signal_send(in->rt, in->me.id.index, in->me.id.generation, s))
        bz_letter_free(in->rt, s);
}

/* Wait for the end of the porter. The join may lack memory, the end does not. */
static void await_porter(struct inbox *in)
{
    blitz_shield();
    if (blitz_actor_join(in->me.id, NULL, BLITZ_FOREVER) == -ENOMEM)
        while (blitz_actor_is_alive(in->me.id))
            blitz_yield();
    blitz_unshield();
}

/* The task gives its id up. */
static void end_now(struct inbox *in, const blitz_exit_reason *why)
{
    (void)inbox_close(in, true);
    bury_all(in->rt, &in->kept);
    if (in->current != NULL) /* an unanswered call is answered, as in the handler of an actor */
        bz_letter_bury(in->rt, in->current);
    in->current = NULL;
    stop_porter(in, why);
    await_porter(in);
    inbox_unref(in);
}

/* The task has ended, or has given its id up. */
static void end(struct bz_receiver *me)
{
    struct inbox *in = BZ_CONTAINER_OF(me, struct inbox, me);
    int result = in->me.task->marks & BZ_MARK_POINTER ? 0 : in->me.task->result;
    blitz_exit_reason why = {.kind = result < 0 ? BLITZ_EXIT_ERROR : BLITZ_EXIT_NORMAL,
                             .code = result < 0 ? result : 0};
    end_now(in, in->why != NULL ? in->why : &why);
}

static struct inbox *mine(void)
{
    struct bz_receiver *me = bz_receiver_here();
    return me != NULL ? BZ_CONTAINER_OF(me, struct inbox, me) : NULL;
}

/* True in a forked job that another worker runs. It sees the inbox of its task, which only the task itself may use. */
static bool is_elsewhere(void)
{
    const struct bz_task *me = bz_task_self();
    return me != NULL && (me->traits & BZ_TASK_ANONYMOUS);
}

static struct inbox *inbox_new(struct bz_task *me)
{
    struct inbox *in = bz_alloc(&me->rt->alloc, sizeof *in, _Alignof(struct inbox));
    if (in == NULL)
        return NULL;
    struct bz_signal *stop = bz_signal_new(me->rt, BZ_SIGNAL_STOP);
    if (stop == NULL) {
        bz_free(&me->rt->alloc, in, sizeof *in);
        return NULL;
    }
    *in = (struct inbox){.me = {.end = end, .task = me}, .rt = me->rt, .stop = stop};
    bz_shares_init(&in->refs, 2);
    bz_lock_init(&in->lock);
    blitz_notify_init(&in->arrived);
    return in;
}

static bool is_bad(const blitz_actor_opts *o)
{
    return o != NULL && (o->runtime != NULL || o->link || o->monitor != NULL);
}

int blitz_receiver_begin(const blitz_actor_opts *opts, blitz_actor_id *out)
{
    struct bz_task *me = bz_task_self();
    if (me == NULL || bz_actor_self() != NULL || is_bad(opts))
        return -EINVAL;
    if (is_elsewhere())
        return -EPERM;
    if (mine() != NULL)
        return -EEXIST;
    struct inbox *in = inbox_new(me);
    if (in == NULL)
        return -ENOMEM;
    bool is_held = bz_word_try_ref(&me->word);
    BZ_ASSERT(is_held);
    (void)is_held;
    int err = blitz_actor_spawn(&porter, &in, opts, &in->me.id);
    if (err != 0) {
        bz_shares_init(&in->refs, 1);
        inbox_unref(in);
        return err;
    }
    err = bz_receiver_set(&in->me);
    if (err != 0) {
        (void)inbox_close(in, true);
        (void)blitz_actor_kill(in->me.id);
        inbox_unref(in);
        return err;
    }
    if (out != NULL)
        *out = in->me.id;
    return 0;
}

int blitz_receiver_end(const blitz_exit_reason *why)
{
    static const blitz_exit_reason normal = {.kind = BLITZ_EXIT_NORMAL};
    struct inbox *in = mine();
    if (in == NULL || is_elsewhere())
        return in == NULL ? -EINVAL : -EPERM;
    if (in->active != NULL)
        return -EBUSY;
    in->why = why != NULL ? why : &normal;
    return bz_receiver_set(NULL); /* end() */
}

const struct bz_letter *bz_receiver_current(void)
{
    struct inbox *in = mine();
    return in != NULL ? in->current : NULL;
}

/* ---- receiving ---- */

/* The future's place in `kept`: the last letter that it has seen; NULL: none. */
static struct bz_mpsc_node *seen_of(const blitz_receive_future *f)
{
    return f->inside[1];
}

/* The inbox, which stays while this future receives: I2. NULL: it does not. */
static struct inbox *inbox_of(const blitz_receive_future *f)
{
    return f->inside[0];
}

static void message_of(struct inbox *in, const struct bz_letter *l, blitz_msg *m)
{
    *m = (blitz_msg){.what = l->what, .size = l->size, .data = l->data, .reply = l->reply};
    if (l->what == BZ_MSG_LINK_EXIT)
        m->what = BLITZ_MSG_EXIT;
    if (l->from_generation != 0)
        m->from = bz_actor_id_make(in->rt, l->from_index, l->from_generation);
}

/* Move the fresh messages to those that the task keeps. Returns whether more may come. */
static bool fetch(struct inbox *in)
{
    bz_lock_take(&in->lock, in->rt->os);
    append_all(&in->kept, &in->fresh);
    bool is_open = !in->is_closed;
    bz_lock_drop(&in->lock, in->rt->os);
    return is_open;
}

/* True if the messages are not more than the low mark. About. */
static bool is_low(struct inbox *in)
{
    return bz_mailbox_behind(&porter_of(in)->box) <= bz_mailbox_high(&porter) / 2;
}

/* A message has left the inbox. If senders are held back, the porter lets some go on at the low mark. */
static void count_out(struct inbox *in)
{
    bool rings = false;
    bz_lock_take(&in->lock, in->rt->os);
    in->count--;
    if (!in->is_closed) {
        bz_mailbox_let_go(&porter_of(in)->box, 1);
        rings = bz_mailbox_is_pressed(&porter_of(in)->box) && is_low(in);
    }
    bz_lock_drop(&in->lock, in->rt->os);
    if (rings)
        bz_actor_ring(porter_of(in)); /* harmless, if it has died since */
}

/* The task has looked at many messages and waits for another one; or not any more. */
static void set_hungry(struct inbox *in, bool is_hungry)
{
    bool rings = false;
    if (BZ_LIKELY(in->is_hungry == is_hungry))
        return;
    bz_lock_take(&in->lock, in->rt->os);
    if (!in->is_closed)
        rings = bz_mailbox_be_hungry(&porter_of(in)->box, is_hungry);
    bz_lock_drop(&in->lock, in->rt->os);
    in->is_hungry = is_hungry;
    if (is_hungry && rings)
        bz_actor_ring(porter_of(in)); /* it lets all senders go on: pressure.c */
}

/* The relation that a message tells the end of. False: it is another message. */
static bool relation_of(const struct bz_letter *l, uint32_t *kind, const blitz_down **down)
{
    *down = (const blitz_down *)(const void *)l->data;
    bool is_end = l->what == BLITZ_MSG_DOWN || l->what == BZ_MSG_LINK_EXIT;
    if (is_end && (*down)->who.node != 0)
        *kind = l->what == BLITZ_MSG_DOWN ? BZ_SIGNAL_FAR_WATCHES : BZ_SIGNAL_FAR_LINK;
    else
        *kind = l->what == BLITZ_MSG_DOWN ? BZ_SIGNAL_WATCHES : BZ_SIGNAL_LINK;
    return l->what == BLITZ_MSG_DOWN || l->what == BZ_MSG_LINK_EXIT;
}

/* True if the message tells of a link or a monitor that the task has given up since, or was told of before. */
static bool is_stale(const struct bz_letter *l)
{
    uint32_t kind;
    const blitz_down *down;
    struct bz_relating me;
    if (!relation_of(l, &kind, &down))
        return false;
    if (bz_relating_begin(&me) != 0)
        return true; /* the id has ended, and so have its relations */
    bool has = bz_relating_has(&me, kind, down->who, down->ref);
    bz_relating_end(&me);
    return !has;
}

/* The message that tells of a relation is received: the relation is over. */
static void end_relation(struct inbox *in, const struct bz_letter *l)
{
    uint32_t kind;
    const blitz_down *down;
    struct bz_relating me;
    if (!relation_of(l, &kind, &down) || bz_relating_begin(&me) != 0)
        return;
    struct bz_signal *s = bz_relating_take(&me, kind, down->who, down->ref);
    if (s != NULL)
        bz_letter_free(in->rt, s);
    bz_relating_end(&me);
}

/* The message is the user's. */
static void deliver(struct inbox *in, struct bz_letter *l)
{
    count_out(in);
    end_relation(in, l);
    if (l->what == BZ_MSG_LINK_EXIT)
        ((blitz_down *)(void *)l->data)->ref = 0; /* the number of the link is ours */
    in->current = l;
    message_of(in, l, &in->msg);
    if (l->cargo != BZ_CARGO_NONE)
        bz_letter_show((struct bz_block_owner){0, 0}, l, &in->msg);
}

/* Look at the messages that this receive has not seen. True: one matches, and was delivered. */
static bool look(struct inbox *in, blitz_receive_future *f)
{
    struct bz_mpsc_node *before = seen_of(f),
                        *n = before != NULL ? next_of(before) : in->kept.first;
    for (struct bz_mpsc_node *next; n != NULL; n = next) {
        struct bz_letter *l = BZ_CONTAINER_OF(n, struct bz_letter, node);
        blitz_msg m;
        next = next_of(n);
        if (is_stale(l)) {
            take_out(&in->kept, before, n);
            count_out(in);
            bz_letter_drop(in->rt, l);
            continue;
        }
        message_of(in, l, &m);
        if (f->match == NULL || f->match(&m, f->ctx)) {
            take_out(&in->kept, before, n);
            deliver(in, l);
            return true;
        }
        before = n;
    }
    f->inside[1] = before;
    return false;
}

/* The message may have been seen before its notification came: the wait may still be queued. */
static blitz_poll finish(struct inbox *in, blitz_receive_future *f, int result)
{
    f->wait.future.ops->cancel(&f->wait.future);
    set_hungry(in, false);
    f->result = result;
    f->msg = result == 0 ? &in->msg : NULL;
    in->active = NULL; /* I2 */
    f->inside[0] = NULL;
    return BLITZ_READY;
}

/* The first poll: the id may have ended since the future was made, and the inbox with it. 0: the future receives. */
static int receive_begin(blitz_receive_future *f)
{
    struct inbox *in = mine();
    if (in == NULL || is_elsewhere())
        return in == NULL ? -EINVAL : -EPERM;
    if (in->active != NULL)
        return -EBUSY;
    drop_current(in);
    blitz_notify_wait_future_init(&f->wait, &in->arrived);
    f->inside[0] = in;
    in->active = f; /* I2 */
    return 0;
}

static blitz_receive_future *future_of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_receive_future, future);
}

static blitz_poll receive_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_receive_future *f = future_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    int err = inbox_of(f) == NULL ? receive_begin(f) : 0;
    if (err != 0) {
        f->result = err;
        return BLITZ_READY;
    }
    struct inbox *in = inbox_of(f);
    for (;;) {
        if (!fetch(in))
            break;
        if (look(in, f))
            return finish(in, f, 0);
        if (f->wait.future.ops->poll(&f->wait.future, waker) != BLITZ_READY) {
            if (BZ_UNLIKELY(!is_low(in)))
                set_hungry(in, true);
            return BLITZ_PENDING;
        }
        blitz_notify_wait_future_init(&f->wait, &in->arrived);
    }
    return finish(in, f, -ECANCELED);
}

static void receive_cancel(blitz_future *future)
{
    blitz_receive_future *f = future_of(future);
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    if (inbox_of(f) == NULL)
        return;
    inbox_of(f)->active = NULL; /* I2 */
    set_hungry(inbox_of(f), false);
    f->inside[0] = NULL;
    f->wait.future.ops->cancel(&f->wait.future);
}

static int receive_output(blitz_future *future)
{
    return future_of(future)->result;
}

void blitz_receive_future_init(blitz_receive_future *f,
                               bool (*match)(const blitz_msg *m, void *ctx), void *ctx)
{
    static const blitz_future_ops ops = {"message", BLITZ_REVOCABLE, receive_poll, receive_cancel,
                                         receive_output};
    *f = (blitz_receive_future){.future.ops = &ops, .match = match, .ctx = ctx};
    f->result = mine() == NULL ? -EINVAL : -EINPROGRESS;
}

int blitz_receive(bool (*match)(const blitz_msg *m, void *ctx), void *ctx, const blitz_msg **out,
                  blitz_deadline until)
{
    blitz_receive_future f;
    blitz_receive_future_init(&f, match, ctx);
    int rc = blitz_await(&f.future, until);
    if (rc == 0)
        rc = f.result;
    if (rc == 0)
        *out = f.msg;
    return rc;
}
