/*
 * calling.c - calls of actors and processes of other nodes, as gen_server:call() makes them.
 *
 *     MONITOR relay -> To, Ref                   } one frame in the queue, so that nothing comes between
 *     SEND {'$gen_call', {Pid, [alias | Ref]}, Request}
 *                             <-  ALIAS_SEND Ref, {[alias | Ref], Reply}       or SEND to Pid, by hand
 *                             <-  or MONITOR_EXIT Ref, Reason: it has ended, or there is none
 *     DEMONITOR Ref
 *
 * The answer goes to a ticket, as that of a call within the process (actor/ticket.c). Ref names the ticket: its index and generation. So an
 * answer finds it without a table, and a late or second answer finds another generation and is dropped. Any process that knows Ref may answer.
 *
 * The ticket is of the node's runtime, wherever the caller is. The answer is copied as a term into a binary, and the caller decodes
 * it: the reader of the connection does not know the table's row, and has other things to do.
 *
 * A call waits in a list of its peer while the connection is that over which it was sent. The connection's end takes the list and fails each
 * call with -ENOTCONN. The call is listed with its frame, in one critical section (outbox.c). Its owner takes it out. If it is still there,
 * the peer still monitors for us, and is told to stop.
 *
 * Pid is the calling actor's, or that of the relay for other callers. Erlang's servers may look at it, and some watch it.
 *
 * Rejected: calls as entries of the relay. It would hear of each call twice, and search its list.
 *
 * I1  A call in p->calls has an open ticket, or one that is answered, and its peer has not been told to stop.
 * I2  A peer answers only tickets that were opened for another node. Its reference may be a guess, and name a call within the process, or a
 *     timer. An answer that is promised comes from the reader alone.
 */
#include <errno.h>
#include <string.h>

#include "blitz/binary.h"
#include "node/relations.h"

/* ---- references ---- */

void bz_calls_ref(const blitz_node *n, blitz_reply_to token, blitz_term_ref *ref)
{
    *ref = (blitz_term_ref){{n->name, n->bytes, false}, n->creation, 3, {0, 0, 0, 0, 0}};
    ref->id[0] = token.index & 0x3ffff; /* Erlang's first word has 18 bits */
    ref->id[1] = token.generation;
    ref->id[2] = BZ_REF_OF_A_CALL | token.index >> 18;
}

bool bz_calls_token(const blitz_node *n, const blitz_term_ref *ref, blitz_reply_to *token)
{
    if (ref->words != 3 || ref->creation != n->creation ||
        (ref->id[2] & BZ_REF_OF_A_CALL) != BZ_REF_OF_A_CALL || ref->node.bytes != n->bytes ||
        memcmp(ref->node.text, n->name, n->bytes) != 0)
        return false;
    *token = (blitz_reply_to){(ref->id[0] & 0x3ffff) | (ref->id[2] & 0x1fff) << 18, ref->id[1],
                              n->rt->creation};
    return true;
}

/* ---- frames ---- */

struct calling {
    const struct bz_outgoing *o;
    blitz_term_ref ref;
    blitz_term_pid relay, me;
    size_t split;
};

/* {MONITOR or DEMONITOR, Pid, To, Ref} */
static void put_watch(blitz_term_out *out, const struct calling *c, int op)
{
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 4);
    blitz_term_put_int(out, op);
    blitz_term_put_pid(out, &c->relay);
    if (c->o->to_name != NULL)
        blitz_term_put_atom(out, c->o->to_name);
    else
        blitz_term_put_pid(out, &c->o->to);
    blitz_term_put_ref(out, &c->ref);
}

static int fill_call(blitz_term_out *out, void *ctx)
{
    struct calling *c = ctx;
    put_watch(out, c, BZ_CONTROL_MONITOR);
    c->split = bz_frame_split(out);
    bz_outgoing_put_control(out, c->o);
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 3);
    blitz_term_put_atom(out, "$gen_call");
    blitz_term_put_tuple(out, 2);
    blitz_term_put_pid(out, &c->me);
    blitz_term_put_list(out, 1);
    blitz_term_put_atom(out, "alias");
    blitz_term_put_ref(out, &c->ref);
    return bz_outgoing_put(out, c->o);
}

static int fill_monitor(blitz_term_out *out, void *ctx)
{
    put_watch(out, ctx, BZ_CONTROL_MONITOR);
    return 0;
}

static int fill_demonitor(blitz_term_out *out, void *ctx)
{
    put_watch(out, ctx, BZ_CONTROL_DEMONITOR);
    return 0;
}

static int calling_init(struct calling *c, const struct bz_outgoing *o, const struct bz_ticket *t)
{
    blitz_actor_id me = blitz_actor_self();
    c->o = o;
    bz_calls_ref(o->n, bz_ticket_token(t), &c->ref);
    int rc = blitz_node_pid_of(o->n, o->n->relay, &c->relay);
    c->me = c->relay;
    if (rc == 0 && me.generation != 0 && me.creation == o->n->rt->creation)
        rc = blitz_node_pid_of(o->n, me, &c->me);
    return rc;
}

/* ---- begin and end ---- */

/* Send the call of an open ticket; a join is the monitor of a call alone. */
static int send_call(struct bz_far_call *c, const struct bz_outgoing *o, bool is_join)
{
    struct calling calling;
    struct bz_frame *f;
    int rc = calling_init(&calling, o, c->ticket);
    if (rc == 0)
        rc = is_join ? bz_frame_make(o->n, fill_monitor, &calling, false, &f)
                     : bz_frame_make_two(o->n, fill_call, &calling, &calling.split, &f);
    if (rc != 0)
        return rc;
    f->call = &c->in;
    return bz_peer_send_now(c->peer, f);
}

/* It takes the reference. */
static int begin(struct bz_far_call *c, struct bz_peer *p, const struct bz_outgoing *o,
                 bool is_join)
{
    blitz_node *n = p->node;
    int rc = -ESRCH;
    bz_list_init(&c->in);
    c->peer = p;
    if (bz_node_enter(n)) { /* so its runtime is there */
        c->ticket = bz_ticket_open_far(n->rt);
        bz_node_leave(n);
        rc = c->ticket != NULL ? send_call(c, o, is_join) : -ENOMEM;
        if (rc != 0 && c->ticket != NULL)
            bz_ticket_close(c->ticket);
    }
    if (rc != 0)
        bz_peer_unref(p);
    return rc;
}

/* Take the call out of its list. True: it was there, and the peer watches for it on the connection *serial. */
static bool unlist(struct bz_far_call *c, uint32_t *serial)
{
    bz_peer_lock(c->peer);
    bool was_there = bz_list_is_linked(&c->in); /* I1 */
    bz_list_remove(&c->in);
    *serial = c->peer->serial;
    bz_peer_unlock(c->peer);
    return was_there;
}

static void end(struct bz_far_call *c, const struct bz_outgoing *o)
{
    struct calling calling;
    struct bz_frame *f;
    uint32_t serial;
    if (unlist(c, &serial)) {
        int rc = calling_init(&calling, o, c->ticket);
        if (rc == 0)
            rc = bz_frame_make(o->n, fill_demonitor, &calling, false, &f);
        if (rc == 0)
            rc = bz_peer_send_in(c->peer, f, serial);
        if (rc == -ENOMEM || rc == -EOVERFLOW)
            bz_peer_hang_up(c->peer, serial); /* it would watch for ever */
    }
    bz_ticket_close(c->ticket);
    bz_peer_unref(c->peer);
}

/* ---- answers ---- */

void bz_calls_fail(blitz_node *n, blitz_reply_to token, int error)
{
    if (bz_ticket_is_far(n->rt, token)) /* I2 */
        bz_ticket_answer(n->rt, token, error, NULL, 0);
}

void bz_calls_ended(blitz_node *n, blitz_reply_to token, blitz_term reason)
{
    blitz_exit_reason why;
    bz_reason_get(reason, &why);
    bz_ticket_answer(n->rt, token, -ESRCH, &why, sizeof why);
}

int bz_term_to_binary(blitz_term term, blitz_binary **out)
{
    int rc = blitz_binary_new(term.bytes + 1, out);
    if (rc != 0)
        return rc;
    unsigned char *bytes = blitz_binary_bytes(*out);
    bytes[0] = BLITZ_TERM_VERSION;
    memcpy(bytes + 1, term.data, term.bytes);
    return 0;
}

void bz_calls_answer(blitz_node *n, blitz_reply_to token, blitz_term message)
{
    blitz_term_in in = blitz_term_in_of(message);
    blitz_term reply;
    blitz_binary *b = NULL;
    if (blitz_term_get_this_tuple(&in, 2) != 0 || blitz_term_skip(&in) != 0 ||
        blitz_term_take(&in, &reply) != 0) {
        bz_node_count(&n->dropped);
        return;
    }
    if (!bz_ticket_is_far(n->rt, token)) { /* I2, or it comes too late */
        bz_node_count(&n->dropped);
        return;
    }
    int rc = bz_term_to_binary(reply, &b);
    if (bz_ticket_answer_with(n->rt, token, rc, NULL, 0, rc == 0 ? BZ_CARGO_BINARY : BZ_CARGO_NONE,
                              b)) {
        bz_node_count(&n->received);
        return;
    }
    blitz_binary_unref(b); /* it comes too late */
    bz_node_count(&n->dropped);
}

/* [alias | Ref] */
static bool get_alias(blitz_term_in *in, blitz_term_ref *ref)
{
    uint32_t count;
    return blitz_term_get_list(in, &count) == 0 && count == 1 &&
           blitz_term_get_this_atom(in, "alias") == 0 && blitz_term_get_ref(in, ref) == 0;
}

bool bz_calls_is_answer(const blitz_node *n, blitz_term message, blitz_reply_to *token)
{
    blitz_term_in in = blitz_term_in_of(message);
    blitz_term_ref ref;
    return blitz_term_get_this_tuple(&in, 2) == 0 && get_alias(&in, &ref) &&
           bz_calls_token(n, &ref, token);
}

void bz_calls_lose(struct bz_peer *p, struct bz_list *lost)
{
    for (;;) {
        bz_peer_lock(p);
        struct bz_list *l = bz_list_take_front(lost);
        blitz_reply_to token = {0, 0, 0};
        if (l != NULL)
            token = bz_ticket_token(BZ_CONTAINER_OF(l, struct bz_far_call, in)->ticket); /* I1 */
        bz_peer_unlock(p);
        if (l == NULL)
            return;
        bz_calls_fail(p->node, token, -ENOTCONN);
    }
}

/* The answer of a ticket, as a term; or an error. */
static int answer_of(struct bz_ticket *t, blitz_term *term)
{
    if (t->result < 0)
        return t->result;
    if (t->cargo != BZ_CARGO_BINARY)
        return -EPROTO;
    *term = (blitz_term){(const unsigned char *)blitz_binary_data(t->piece) + 1,
                         blitz_binary_size(t->piece) - 1};
    return 0;
}

/* {error, Code}, as an actor of blitz answers with an error; 0: it is another term. */
static int error_in(blitz_term term)
{
    blitz_term_in in = blitz_term_in_of(term);
    int64_t code;
    if (blitz_term_get_this_tuple(&in, 2) != 0 || blitz_term_get_this_atom(&in, "error") != 0 ||
        blitz_term_get_int(&in, &code) != 0 || code >= 0 || code < INT32_MIN)
        return 0;
    return (int)code;
}

static const blitz_term_type *reply_type(const blitz_node *n, uint32_t what)
{
    for (size_t i = 0; i < n->opts.message_count; i++)
        if (n->opts.messages[i].what == what)
            return n->opts.messages[i].reply;
    return NULL;
}

/* A reply that is in the table: the struct, and a binary of the answer. -EPROTO: it is another term. */
static int take_struct(blitz_node *n, const blitz_term_type *type, blitz_term term,
                       blitz_binary *whole, void *reply, size_t reply_size, blitz_arrival *got)
{
    _Alignas(16) unsigned char payload[BLITZ_MSG_BYTES_MAX];
    blitz_term_env env = blitz_node_env(n);
    blitz_term_in in = blitz_term_in_of(term);
    if (type->size > sizeof payload || blitz_term_get_struct(&in, type, payload, &env) != 0)
        return -EPROTO;
    if (got != NULL && env.cargo.data != NULL) {
        size_t at = (size_t)(env.cargo.data - (const unsigned char *)blitz_binary_data(whole));
        int rc = blitz_binary_slice(whole, at, env.cargo.bytes, &got->binary);
        if (rc != 0)
            return rc;
    }
    if (reply_size > 0)
        memcpy(reply, payload, type->size < reply_size ? type->size : reply_size);
    return (int)type->size;
}

/* As blitz_actor_call_with() returns it. */
static int take_reply(blitz_node *n, uint32_t what, struct bz_ticket *t, void *reply,
                      size_t reply_size, blitz_arrival *got)
{
    const blitz_term_type *type = reply_type(n, what);
    blitz_term term;
    int rc = answer_of(t, &term);
    if (rc != 0)
        return rc;
    blitz_term_in in = blitz_term_in_of(term);
    if (type != NULL)
        rc = take_struct(n, type, term, t->piece, reply, reply_size, got);
    else
        rc = blitz_term_get_this_atom(&in, "ok") == 0 ? 0 : -EPROTO;
    int error = rc == -EPROTO ? error_in(term) : 0;
    return error != 0 ? error : rc;
}

/* ---- calls by messages of the table ---- */

int bz_calls_begin(struct bz_far_call *c, blitz_actor_id to, uint32_t what, const void *data,
                   size_t size, const blitz_cargo *cargo)
{
    struct bz_outgoing o = {.what = what, .data = data, .size = size};
    struct bz_peer *p;
    int rc = bz_outgoing_address(&o, to, cargo, &p);
    return rc == 0 ? begin(c, p, &o, false) : rc;
}

int bz_calls_end(struct bz_far_call *c, blitz_actor_id to, uint32_t what, int rc, void *reply,
                 size_t reply_size, blitz_arrival *got)
{
    struct bz_peer *p = c->peer;
    struct bz_outgoing o = {.n = p->node};
    o.to = (blitz_term_pid){{p->name, p->bytes, false}, to.index, to.generation - 1, to.creation};
    if (rc == 0)
        rc = take_reply(p->node, what, c->ticket, reply, reply_size, got);
    end(c, &o);
    return rc;
}

int blitz_node_call_name(blitz_node *n, const char *process, const char *on_node, uint32_t what,
                         const void *data, size_t size, void *reply, size_t reply_size,
                         blitz_deadline until)
{
    struct bz_outgoing o = {.n = n, .to_name = process, .what = what, .data = data, .size = size};
    struct bz_far_call c;
    struct bz_peer *p;
    int rc = bz_peer_named(n, on_node, &p);
    if (rc == 0)
        rc = begin(&c, p, &o, false);
    if (rc != 0)
        return rc;
    rc = bz_ticket_wait(c.ticket, until);
    if (rc == 0)
        rc = take_reply(n, what, c.ticket, reply, reply_size, NULL);
    end(&c, &o);
    return rc;
}

/* ---- joins ---- */

int bz_joins_begin(struct bz_far_call *c, blitz_actor_id to)
{
    struct bz_outgoing o = {.n = NULL};
    struct bz_peer *p;
    int rc = bz_outgoing_address(&o, to, NULL, &p);
    return rc == 0 ? begin(c, p, &o, true) : rc;
}

/* The reason in an answered ticket. A connection that goes is an end, as for a monitor. */
static int take_reason(const struct bz_ticket *t, blitz_exit_reason *why)
{
    blitz_exit_reason reason = {.kind = BLITZ_EXIT_NOCONNECTION};
    if (t->result != -ESRCH && t->result != -ENOTCONN)
        return t->result < 0 ? t->result : -EPROTO; /* no peer answers a join */
    if (t->result == -ESRCH)
        reason = t->reason;
    if (reason.kind == BLITZ_EXIT_NOPROC)
        return -ESRCH;
    if (why != NULL)
        *why = reason;
    return 0;
}

int bz_joins_end(struct bz_far_call *c, blitz_actor_id to, int rc, blitz_exit_reason *why)
{
    struct bz_peer *p = c->peer;
    struct bz_outgoing o = {.n = p->node};
    o.to = (blitz_term_pid){{p->name, p->bytes, false}, to.index, to.generation - 1, to.creation};
    if (rc == 0)
        rc = take_reason(c->ticket, why);
    end(c, &o);
    return rc;
}

/* ---- calls by terms ---- */

/* It takes the reference. */
static int call_term(struct bz_peer *p, struct bz_outgoing *o, blitz_binary **reply,
                     blitz_deadline until)
{
    struct bz_far_call c;
    blitz_term term;
    int rc = begin(&c, p, o, false);
    if (rc != 0)
        return rc;
    rc = bz_ticket_wait(c.ticket, until);
    if (rc == 0)
        rc = answer_of(c.ticket, &term);
    if (rc == 0)
        *reply = blitz_binary_ref(c.ticket->piece);
    end(&c, o);
    return rc;
}

int blitz_node_call_term(blitz_node *n, blitz_actor_id to, blitz_term request, blitz_binary **reply,
                         blitz_deadline until)
{
    struct bz_outgoing o = {.term = request};
    struct bz_peer *p;
    (void)n;
    if (request.data == NULL || request.bytes == 0 || to.node == 0 || to.generation == 0)
        return -EINVAL;
    int rc = bz_outgoing_address(&o, to, NULL, &p);
    return rc == 0 ? call_term(p, &o, reply, until) : rc;
}

int blitz_node_call_name_term(blitz_node *n, const char *process, const char *on_node,
                              blitz_term request, blitz_binary **reply, blitz_deadline until)
{
    struct bz_outgoing o = {.n = n, .to_name = process, .term = request};
    struct bz_peer *p;
    if (request.data == NULL || request.bytes == 0)
        return -EINVAL;
    int rc = bz_peer_named(n, on_node, &p);
    return rc == 0 ? call_term(p, &o, reply, until) : rc;
}
