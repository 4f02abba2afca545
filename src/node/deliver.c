/*
 * deliver.c - a frame of a peer: check it, and hand its message to an actor.
 *
 * The whole frame is checked before anything in it is used. A frame that is none ends the connection. A message for an actor that is not
 * there, or that takes no such message, is dropped and counted, as in Erlang.
 *
 * The reader of the connection delivers, and never waits: other actors get their messages over the same connection, and so do the ticks. So
 * a message to an actor whose mailbox is full is dropped and counted. blitz_behaviour.mailbox_max bounds the memory.
 *
 * Erlang's net_adm:ping() calls the process net_kernel of our node. There is none, so that call is answered here.
 */
#include <errno.h>
#include <string.h>

#include "actor/send.h"
#include "node/relations.h"

/* ---- to an actor ---- */

static bool takes_terms(struct bz_actor *a)
{
    const blitz_behaviour *b = bz_actor_behaviour(a);
    if (bz_actor_is_porter(a))
        return true;
    for (size_t i = 0; i < b->handler_count; i++)
        if (b->handlers[i].what == BLITZ_MSG_TERM)
            return true;
    return false;
}

/* Send a message with a binary, NULL: without, which it takes. */
static int send_with(blitz_actor_id to, uint32_t what, const void *payload, size_t size,
                     blitz_binary *binary, blitz_reply_to reply)
{
    blitz_cargo cargo = {.binary = binary};
    int rc = bz_send_our_call(to, what, payload, size, binary != NULL ? &cargo : NULL, reply);
    blitz_binary_unref(binary);
    return rc;
}

/* A message of the behaviour's table, as a struct. */
struct decoded {
    const blitz_term_message *row;
    blitz_term cargo;
    _Alignas(16) unsigned char payload[BLITZ_MSG_BYTES_MAX];
};

static bool decode(blitz_node *n, const blitz_behaviour *b, blitz_term term, struct decoded *d)
{
    blitz_term_env env = bz_node_env_known(n);
    blitz_term_in in = blitz_term_in_of(term);
    if (b->messages == NULL || blitz_term_get_message(&in, b->messages, b->message_count, &d->row,
                                                      d->payload, sizeof d->payload, &env) != 0)
        return false;
    d->cargo = env.cargo;
    return true;
}

static int send_struct(blitz_actor_id to, const struct decoded *d, blitz_reply_to reply)
{
    blitz_binary *b = NULL;
    int rc = d->cargo.data != NULL ? blitz_binary_copy(d->cargo.data, d->cargo.bytes, &b) : 0;
    return rc == 0 ? send_with(to, d->row->what, d->payload, d->row->payload->size, b, reply) : rc;
}

static int send_term(blitz_actor_id to, blitz_term term, blitz_reply_to reply)
{
    blitz_binary *b;
    int rc = bz_term_to_binary(term, &b);
    return rc == 0 ? send_with(to, BLITZ_MSG_TERM, NULL, 0, b, reply) : rc;
}

/* A call. If its actor does not take it, the answer is an error. If the actor is dead, the caller's monitor tells. */
static int send_call(struct bz_session *s, struct bz_actor *a, blitz_actor_id to,
                     const struct bz_gen_call *call)
{
    struct decoded d;
    blitz_reply_to token;
    bool is_struct = decode(s->node, bz_actor_behaviour(a), call->request, &d);
    int rc = bz_answers_open(s, call, to, is_struct ? d.row : NULL, &token);
    if (rc != 0)
        return rc;
    if (is_struct)
        rc = send_struct(to, &d, token);
    else
        rc = takes_terms(a) ? send_term(to, call->request, token) : -EOPNOTSUPP;
    if (rc != 0)
        bz_ticket_answer(s->node->rt, token, rc, NULL, 0);
    return rc;
}

static int send_message(struct bz_session *s, blitz_actor_id to, blitz_term term)
{
    static const blitz_reply_to none;
    const struct bz_peer *p = s->peer;
    struct bz_actor *a = bz_actor_find(to);
    struct bz_gen_call call;
    struct decoded d;
    if (a == NULL)
        return -ESRCH;
    if (bz_gen_call_get(term, &call) && call.from.node.bytes == p->bytes &&
        memcmp(call.from.node.text, p->name, p->bytes) == 0)
        return send_call(s, a, to, &call);
    if (decode(s->node, bz_actor_behaviour(a), term, &d))
        return send_struct(to, &d, none);
    return takes_terms(a) ? send_term(to, term, none) : -ENOENT;
}

/* ---- net_kernel ---- */

/* The answer {Tag, yes} to a process. */
struct answer {
    blitz_term_pid to;
    blitz_term tag;
};

static int fill_answer(blitz_term_out *out, void *ctx)
{
    const struct answer *a = ctx;
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 3);
    blitz_term_put_int(out, BZ_CONTROL_SEND);
    blitz_term_put_atom(out, "");
    blitz_term_put_pid(out, &a->to);
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 2);
    blitz_term_put_term(out, a->tag);
    blitz_term_put_atom(out, "yes");
    return 0;
}

/* {'$gen_call', {Pid, Tag}, {is_auth, Node}} */
static bool is_ping(blitz_term term, struct answer *a)
{
    blitz_term_in in = blitz_term_in_of(term);
    return blitz_term_get_this_tuple(&in, 3) == 0 &&
           blitz_term_get_this_atom(&in, "$gen_call") == 0 &&
           blitz_term_get_this_tuple(&in, 2) == 0 && blitz_term_get_pid(&in, &a->to) == 0 &&
           blitz_term_take(&in, &a->tag) == 0 && blitz_term_get_this_tuple(&in, 2) == 0 &&
           blitz_term_get_this_atom(&in, "is_auth") == 0;
}

/* Answer a call of net_kernel. */
static int call_kernel(struct bz_session *s, blitz_term term)
{
    struct answer a;
    struct bz_frame *f;
    if (!is_ping(term, &a)) {
        bz_node_count(&s->node->dropped);
        return 0;
    }
    int rc = bz_frame_make(s->node, fill_answer, &a, false, &f);
    return rc == 0 ? bz_session_send(s, f) : rc;
}

/* ---- frames ---- */

static blitz_actor_id named(blitz_node *n, blitz_term_atom atom)
{
    char name[BLITZ_NAME_BYTES_MAX];
    static const blitz_actor_id none;
    if (blitz_term_atom_copy(atom, name, sizeof name) <= 0)
        return none;
    return blitz_actor_whereis((blitz_runtime *)n->rt, name);
}

static int deliver(struct bz_session *s, const struct bz_control *c, blitz_term term)
{
    blitz_node *n = s->node;
    blitz_actor_id to = {0, 0, 0, 0};
    blitz_reply_to token;
    if (!c->to_is_name && bz_calls_is_answer(n, term, &token)) {
        bz_calls_answer(n, token, term);
        return 0;
    }
    if (c->to_is_name && blitz_term_atom_is(c->to_name, "net_kernel"))
        return call_kernel(s, term);
    if (c->to_is_name)
        to = named(n, c->to_name);
    else if (bz_node_id_of(n, &c->to, false, &to) != 0 || to.node != 0)
        to.generation = 0;
    int rc = to.generation != 0 ? send_message(s, to, term) : -ESRCH;
    bz_node_count(rc == 0 ? &n->received : &n->dropped);
    return 0;
}

/* A message to one of our references: only calls have one. */
static int deliver_to_alias(struct bz_session *s, const struct bz_control *c, blitz_term term)
{
    blitz_reply_to token;
    if (bz_calls_token(s->node, &c->ref, &token))
        bz_calls_answer(s->node, token, term);
    else
        bz_node_count(&s->node->dropped);
    return 0;
}

/* The process that we call has ended. False: the monitor is another one. */
static bool ends_call(struct bz_session *s, const struct bz_control *c)
{
    blitz_reply_to token;
    if (c->op != BZ_CONTROL_MONITOR_EXIT || !bz_calls_token(s->node, &c->ref, &token) ||
        !bz_ticket_is_far(s->node->rt, token)) /* it may be the monitor of a spawn */
        return false;
    bz_calls_ended(s->node, token, c->reason);
    return true;
}

static int handle_control(struct bz_session *s, const struct bz_control *c, blitz_term payload)
{
    switch (c->op) {
    case BZ_CONTROL_ALIAS_SEND:
    case BZ_CONTROL_ALIAS_SEND_TT:
        return deliver_to_alias(s, c, payload);
    case BZ_CONTROL_SPAWN_REQUEST:
    case BZ_CONTROL_SPAWN_REQUEST_TT:
        return bz_spawning_hear(s, c, payload);
    case BZ_CONTROL_SPAWN_REPLY:
    case BZ_CONTROL_SPAWN_REPLY_TT:
        return bz_spawning_hear_reply(s, c);
    case BZ_CONTROL_SEND:
    case BZ_CONTROL_SEND_TT:
    case BZ_CONTROL_REG_SEND:
    case BZ_CONTROL_REG_SEND_TT:
    case BZ_CONTROL_SEND_SENDER:
    case BZ_CONTROL_SEND_SENDER_TT:
        return deliver(s, c, payload);
    case BZ_CONTROL_LINK:
    case BZ_CONTROL_EXIT:
    case BZ_CONTROL_EXIT_TT:
    case BZ_CONTROL_EXIT2:
    case BZ_CONTROL_EXIT2_TT:
    case BZ_CONTROL_MONITOR:
    case BZ_CONTROL_DEMONITOR:
    case BZ_CONTROL_MONITOR_EXIT:
    case BZ_CONTROL_UNLINK_ID:
    case BZ_CONTROL_UNLINK_ID_ACK:
        if (c->op == BZ_CONTROL_DEMONITOR)
            bz_answers_forget(s->peer, &c->ref);
        return ends_call(s, c) ? 0 : bz_relations_hear(s, c);
    case BZ_CONTROL_UNLINK: /* a peer with UNLINK_ID sends none */
        return -EPROTO;
    case BZ_CONTROL_NODE_LINK: /* of no effect here */
    case BZ_CONTROL_GROUP_LEADER:
        break;
    }
    return 0;
}

int bz_session_handle(struct bz_session *s, const unsigned char *data, size_t bytes)
{
    struct bz_control c;
    blitz_term control, payload = {NULL, 0};
    size_t used, more = 0;
    if (bytes < 1 || data[0] != 'p' ||
        blitz_term_check(data + 1, bytes - 1, NULL, &control, &used) != 0 ||
        bz_control_get(control, &c) != 0)
        return -EPROTO;
    data += 1 + used;
    bytes -= 1 + used;
    if (c.has_payload && blitz_term_check(data, bytes, NULL, &payload, &more) != 0)
        return -EPROTO;
    if (bytes != more)
        return -EPROTO;
    return handle_control(s, &c, payload);
}
