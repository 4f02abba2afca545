/*
 * answers.c - calls of peers: gen_server:call() of Erlang, and calls of other nodes of blitz.
 *
 * A call is the message {'$gen_call', {Pid, Tag}, Request}. The actor gets the request as a message with a reply token, which it
 * answers as any other: at once, later, or by another actor. The token is that of a ticket, whose owner is the object here. It waits
 * for the ticket as a future does. Its waker sends the answer, on the thread of the replier: {Tag, Reply}, to the alias in the tag or to
 * Pid. So actors know nothing of nodes.
 *
 * The reply is the term of the row that the request has in the table of the behaviour. If the request came as BLITZ_MSG_TERM, the reply is a
 * term as well: blitz_node_reply_term(). An error is {error, Code}. If the called actor has ended, nothing is sent: the monitor of
 * the caller says that, with its reason.
 *
 * An answer that is owed is in a list of its peer, by the hash of the caller's alias. It leaves the list by one of these:
 *     the answer          the waker sends it
 *     DEMONITOR           the caller has left
 *     the connection      it has gone, and the caller knows it
 * The party that takes it out of the list closes the ticket, so a later reply is dropped. A token that is forgotten costs the memory
 * of its object until then. A peer has BZ_ANSWERS_MAX of them at most; further calls are dropped and counted.
 *
 * I1  refs counts the list, and a waker that the ticket has. Guarded by the lock of the peer.
 * I2  The ticket is open or answered while the object is in the list.
 * I3  Once the object is in the list, the loss of the connection on another thread may free it. So the reader that has opened
 *     it does not touch it any more.
 */
#include <errno.h>
#include <string.h>

#include "actor/cargo.h"
#include "blitz/binary.h"
#include "node/node.h"
#include "park/request.h"

struct bz_answer_owed {
    struct bz_answer wait;
    struct bz_list in;    /* guarded by the lock of the peer, as the next one */
    uint32_t refs;        /* I1 */
    struct bz_peer *peer; /* with a reference; constant, as the rest */
    uint32_t serial;
    blitz_actor_id called;
    bool is_struct;              /* the request was in the table */
    const blitz_term_type *type; /* ... and this is the reply's; NULL: ok */
    blitz_term_pid from;         /* its atom is the peer's name */
    bool has_alias;
    uint32_t words, creation; /* of the alias, whose atom is the peer's name */
    uint32_t id[5];
    size_t tag_bytes;
    unsigned char tag[];
};

/* ---- calls ---- */

static bool get_alias(blitz_term_in *in, blitz_term_ref *ref)
{
    uint32_t count;
    return blitz_term_get_list(in, &count) == 0 && count == 1 &&
           blitz_term_get_this_atom(in, "alias") == 0 && blitz_term_get_ref(in, ref) == 0;
}

/* The alias in a tag: [alias | Ref], or [[alias | Ref] | More]. */
static bool find_alias(blitz_term tag, blitz_term_ref *ref)
{
    blitz_term_in in = blitz_term_in_of(tag);
    uint32_t count;
    if (get_alias(&in, ref))
        return true;
    in = blitz_term_in_of(tag);
    return blitz_term_get_list(&in, &count) == 0 && count >= 1 && get_alias(&in, ref);
}

bool bz_gen_call_get(blitz_term term, struct bz_gen_call *call)
{
    blitz_term_in in = blitz_term_in_of(term);
    if (blitz_term_get_this_tuple(&in, 3) != 0 || blitz_term_get_this_atom(&in, "$gen_call") != 0 ||
        blitz_term_get_this_tuple(&in, 2) != 0 || blitz_term_get_pid(&in, &call->from) != 0 ||
        blitz_term_take(&in, &call->tag) != 0 || blitz_term_take(&in, &call->request) != 0)
        return false;
    call->has_alias = find_alias(call->tag, &call->alias);
    return true;
}

/* ---- references and lists ---- */

static void unref(struct bz_answer_owed *x)
{
    struct bz_peer *p = x->peer;
    bz_peer_lock(p);
    bool is_last = --x->refs == 0;
    bz_peer_unlock(p);
    if (!is_last)
        return;
    bz_free(&p->node->alloc, x, sizeof *x + x->tag_bytes);
    bz_peer_unref(p);
}

static struct bz_list *list_of(struct bz_peer *p, const uint32_t *id)
{
    return &p->answers[((id[0] ^ id[1]) * 2654435761u) >> 28]; /* 4 bits: BZ_ANSWER_LISTS */
}

/* Take it out. False: another party has. */
static bool unlist(struct bz_answer_owed *x)
{
    bz_peer_lock(x->peer);
    bool is_mine = bz_list_is_linked(&x->in);
    bz_list_remove(&x->in);
    x->peer->answer_count -= is_mine && x->peer->serial == x->serial;
    bz_peer_unlock(x->peer);
    return is_mine;
}

/* It was taken out, and no caller waits for the answer. */
static void drop(struct bz_answer_owed *x)
{
    (void)bz_request_cancel(&x->wait.request);
    bz_ticket_close(x->wait.ticket);
    unref(x);
}

/* ---- the answer ---- */

/* The reply: a struct of the table, or a term. */
static int put_reply(blitz_term_out *out, const struct bz_answer_owed *x)
{
    const struct bz_ticket *t = x->wait.ticket;
    blitz_term_env env = blitz_node_env(x->peer->node);
    blitz_term term;
    if (t->result < 0)
        return t->result;
    if (t->cargo != BZ_CARGO_NONE && t->cargo != BZ_CARGO_BINARY)
        return -EOPNOTSUPP; /* a block and a reference are of this process */
    const blitz_binary *cargo = t->cargo == BZ_CARGO_BINARY ? t->piece : NULL;
    if (x->type != NULL) {
        if (cargo != NULL)
            env.cargo = (blitz_term){blitz_binary_data(cargo), blitz_binary_size(cargo)};
        return (uint32_t)t->result == x->type->size
                   ? blitz_term_put_struct(out, x->type, t->data, &env)
                   : -EINVAL;
    }
    if (x->is_struct || cargo == NULL) {
        blitz_term_put_atom(out, "ok");
        return 0;
    }
    if (blitz_term_check(blitz_binary_data(cargo), blitz_binary_size(cargo), NULL, &term, NULL) !=
        0)
        return -EINVAL;
    blitz_term_put_term(out, term);
    return 0;
}

struct answering {
    const struct bz_answer_owed *x;
    int error; /* 0: the reply */
};

/* {Tag, Reply}, or {Tag, {error, Code}} */
static int fill_answer(blitz_term_out *out, void *ctx)
{
    const struct answering *a = ctx;
    const struct bz_answer_owed *x = a->x;
    const blitz_node *n = x->peer->node;
    blitz_term_pid me = {
        {n->name, n->bytes, false}, x->called.index, x->called.generation, n->creation};
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 3);
    blitz_term_put_int(out, x->has_alias ? BZ_CONTROL_ALIAS_SEND : BZ_CONTROL_SEND);
    if (x->has_alias) {
        blitz_term_ref ref = {x->from.node, x->creation, x->words, {0, 0, 0, 0, 0}};
        memcpy(ref.id, x->id, sizeof ref.id);
        blitz_term_put_pid(out, &me);
        blitz_term_put_ref(out, &ref);
    } else {
        blitz_term_put_atom(out, "");
        blitz_term_put_pid(out, &x->from);
    }
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 2);
    blitz_term_put_term(out, (blitz_term){x->tag, x->tag_bytes});
    if (a->error == 0)
        return put_reply(out, x);
    blitz_term_put_tuple(out, 2);
    blitz_term_put_atom(out, "error");
    blitz_term_put_int(out, a->error);
    return 0;
}

/* The answer is in the ticket: send it. The frames of a node do not wait. */
static void send_answer(struct bz_answer_owed *x)
{
    struct bz_peer *p = x->peer;
    struct answering a = {x, 0};
    struct bz_frame *f;
    if (x->wait.ticket->result == -ESRCH && !blitz_actor_is_alive(x->called))
        return; /* the caller's monitor tells, with the reason */
    int rc = bz_frame_make(p->node, fill_answer, &a, false, &f);
    if (rc != 0 && rc != -ENOMEM) {
        a.error = rc;
        rc = bz_frame_make(p->node, fill_answer, &a, false, &f);
    }
    if (rc == 0)
        rc = bz_peer_send_in(p, f, x->serial);
    if (rc == -ENOMEM || rc == -EOVERFLOW)
        bz_peer_hang_up(p, x->serial); /* the caller would wait for ever */
}

/* ---- the waker of an answer ---- */

static void owed_clone(void *owed)
{
    struct bz_answer_owed *x = owed;
    bz_peer_lock(x->peer);
    x->refs++;
    bz_peer_unlock(x->peer);
}

static void owed_drop(void *owed)
{
    unref(owed);
}

/* The ticket is answered, by the calling thread. */
static void owed_wake_by_ref(void *owed)
{
    struct bz_answer_owed *x = owed;
    if (!unlist(x))
        return;
    send_answer(x);
    drop(x);
}

static void owed_wake(void *owed)
{
    owed_wake_by_ref(owed);
    unref(owed);
}

static const blitz_waker_ops owed_ops = {owed_clone, owed_wake, owed_wake_by_ref, owed_drop};

/* ---- opening ---- */

static struct bz_answer_owed *owed_new(struct bz_session *s, const struct bz_gen_call *call,
                                       blitz_actor_id called)
{
    blitz_node *n = s->node;
    struct bz_answer_owed *x =
        bz_alloc(&n->alloc, sizeof *x + call->tag.bytes, _Alignof(struct bz_answer_owed));
    if (x == NULL)
        return NULL;
    *x = (struct bz_answer_owed){.refs = 1, .called = called, .from = call->from};
    bz_list_init(&x->in);
    x->peer = bz_peer_ref(s->peer);
    x->from.node = (blitz_term_atom){s->peer->name, s->peer->bytes, false};
    x->has_alias = call->has_alias;
    if (call->has_alias) {
        x->words = call->alias.words;
        x->creation = call->alias.creation;
        memcpy(x->id, call->alias.id, sizeof x->id);
    }
    x->tag_bytes = call->tag.bytes;
    memcpy(x->tag, call->tag.data, call->tag.bytes);
    x->wait.request.ops = &bz_answering;
    bz_waiter_init_polled(&x->wait.request.waiter);
    x->wait.ticket = bz_ticket_open(n->rt);
    if (x->wait.ticket != NULL)
        return x;
    unref(x);
    return NULL;
}

/* Enter the list, if the connection of the call is still there. */
static int enlist(struct bz_session *s, struct bz_answer_owed *x)
{
    struct bz_peer *p = s->peer;
    bz_peer_lock(p);
    bool is_there = p->session == s && !s->is_over;
    bool is_full = p->answer_count >= BZ_ANSWERS_MAX;
    if (is_there && !is_full) {
        x->serial = p->serial;
        p->answer_count++;
        bz_list_push_back(list_of(p, x->id), &x->in);
    }
    bz_peer_unlock(p);
    return !is_there ? -ESRCH : is_full ? -EAGAIN : 0;
}

int bz_answers_open(struct bz_session *s, const struct bz_gen_call *call, blitz_actor_id called,
                    const blitz_term_message *row, blitz_reply_to *token)
{
    struct bz_answer_owed *x = owed_new(s, call, called);
    if (x == NULL)
        return -ENOMEM;
    x->is_struct = row != NULL;
    x->type = row != NULL ? row->reply : NULL;
    blitz_waker waker = {&owed_ops, x};
    *token = bz_ticket_token(x->wait.ticket);
    bool is_answered = bz_request_poll(&x->wait.request, &waker);
    BZ_ASSERT(!is_answered); /* no actor has the token yet */
    (void)is_answered;
    int rc = enlist(s, x);
    if (rc != 0)
        drop(x); /* else it is another party's by now, I3 */
    return rc;
}

/* ---- callers that leave ---- */

void bz_answers_forget(struct bz_peer *p, const blitz_term_ref *ref)
{
    struct bz_answer_owed *found = NULL;
    bz_peer_lock(p);
    struct bz_list *list = list_of(p, ref->id);
    for (struct bz_list *l = list->next; l != list && found == NULL; l = l->next) {
        struct bz_answer_owed *x = BZ_CONTAINER_OF(l, struct bz_answer_owed, in);
        if (x->has_alias && x->creation == ref->creation &&
            memcmp(x->id, ref->id, sizeof x->id) == 0)
            found = x;
    }
    if (found != NULL) {
        bz_list_remove(&found->in);
        p->answer_count--;
    }
    bz_peer_unlock(p);
    if (found != NULL)
        drop(found);
}

void bz_answers_lose(struct bz_peer *p, struct bz_list *lost)
{
    for (;;) {
        bz_peer_lock(p);
        struct bz_list *l = bz_list_take_front(lost);
        bz_peer_unlock(p);
        if (l == NULL)
            return;
        drop(BZ_CONTAINER_OF(l, struct bz_answer_owed, in));
    }
}

/* ---- answers that are terms ---- */

int blitz_node_reply_term(blitz_reply_to to, blitz_term reply)
{
    blitz_cargo cargo = {NULL, NULL, NULL};
    if (reply.data == NULL || reply.bytes == 0)
        return -EINVAL;
    int rc = bz_term_to_binary(reply, &cargo.binary);
    if (rc != 0)
        return rc;
    rc = blitz_actor_reply_with(to, NULL, 0, &cargo);
    blitz_binary_unref(cargo.binary);
    return rc;
}
