/*
 * sending.c - from a message to a frame: structs become terms.
 *
 * The term of a message to another node is in the table of the node, since the behaviour of the receiver is not known here.
 */
#include <errno.h>
#include <string.h>

#include "node/node.h"

/* ---- messages ---- */

void bz_outgoing_put_control(blitz_term_out *out, const struct bz_outgoing *o)
{
    blitz_term_put_version(out);
    if (o->to_name == NULL) {
        blitz_term_put_tuple(out, 3);
        blitz_term_put_int(out, BZ_CONTROL_SEND);
        blitz_term_put_atom(out, "");
        blitz_term_put_pid(out, &o->to);
        return;
    }
    blitz_term_pid from = {{o->n->name, o->n->bytes, false}, 0, 0, o->n->creation};
    blitz_term_put_tuple(out, 4);
    blitz_term_put_int(out, BZ_CONTROL_REG_SEND);
    blitz_term_put_pid(out, &from); /* of no actor: Erlang shows it in a trace only */
    blitz_term_put_atom(out, "");
    blitz_term_put_atom(out, o->to_name);
}

int bz_outgoing_put(blitz_term_out *out, const struct bz_outgoing *o)
{
    if (o->term.data != NULL) {
        blitz_term_put_term(out, o->term);
        return 0;
    }
    blitz_term_env env = blitz_node_env(o->n);
    if (o->cargo != NULL)
        env.cargo = (blitz_term){blitz_binary_data(o->cargo), blitz_binary_size(o->cargo)};
    int rc = blitz_term_put_message(out, o->n->opts.messages, o->n->opts.message_count, o->what,
                                    o->data, o->size, &env);
    return rc == -ENOENT ? -EOPNOTSUPP : rc;
}

static int fill(blitz_term_out *out, void *ctx)
{
    const struct bz_outgoing *o = ctx;
    bz_outgoing_put_control(out, o);
    blitz_term_put_version(out);
    return bz_outgoing_put(out, o);
}

static int send_to(struct bz_peer *p, struct bz_outgoing *o, blitz_deadline until)
{
    struct bz_frame *f;
    int rc = bz_frame_make(p->node, fill, o, true, &f);
    return rc == 0 ? bz_peer_send(p, f, until) : rc;
}

int bz_outgoing_address(struct bz_outgoing *o, blitz_actor_id to, const blitz_cargo *cargo,
                        struct bz_peer **out)
{
    if (cargo != NULL && (cargo->move != NULL || cargo->reference != NULL))
        return -EOPNOTSUPP; /* a block and a reference are of this process */
    struct bz_peer *p = bz_peer_find(to.node);
    if (p == NULL)
        return -ESRCH;
    o->cargo = cargo != NULL ? cargo->binary : NULL;
    o->n = p->node;
    o->to = (blitz_term_pid){{p->name, p->bytes, false}, to.index, to.generation - 1, to.creation};
    *out = p;
    return 0;
}

int bz_sending_begin(struct bz_far_sending *s, blitz_actor_id to, uint32_t what, const void *data,
                     size_t size, const blitz_cargo *cargo)
{
    struct bz_outgoing o = {.what = what, .data = data, .size = size};
    struct bz_frame *f;
    struct bz_peer *p;
    int rc = bz_outgoing_address(&o, to, cargo, &p);
    if (rc != 0)
        return rc;
    rc = bz_frame_make(p->node, fill, &o, true, &f);
    if (rc == 0)
        bz_outbox_begin(s, p, f);
    else
        bz_peer_unref(p);
    return rc;
}

int bz_peer_named(blitz_node *n, const char *name, struct bz_peer **out)
{
    size_t bytes = strnlen(name, BLITZ_NODE_NAME_MAX);
    if (!bz_node_name_is_good(name, bytes) || strcmp(name, n->name) == 0 ||
        !bz_node_allows(n, name))
        return -EINVAL;
    return bz_peer_get(n, name, bytes, true, out);
}

static int send_name(blitz_node *n, const char *on_node, struct bz_outgoing *o,
                     blitz_deadline until)
{
    struct bz_peer *p;
    int rc = bz_peer_named(n, on_node, &p);
    if (rc != 0)
        return rc;
    o->n = n;
    rc = send_to(p, o, until);
    bz_peer_unref(p);
    return rc;
}

int blitz_node_send_name(blitz_node *n, const char *process, const char *on_node, uint32_t what,
                         const void *data, size_t size)
{
    struct bz_outgoing o = {.to_name = process, .what = what, .data = data, .size = size};
    return send_name(n, on_node, &o, BLITZ_FOREVER);
}

int blitz_node_send_name_term(blitz_node *n, const char *process, const char *on_node,
                              blitz_term message, blitz_deadline until)
{
    struct bz_outgoing o = {.to_name = process, .term = message};
    if (message.data == NULL || message.bytes == 0)
        return -EINVAL;
    return send_name(n, on_node, &o, until);
}

int blitz_node_send_term(blitz_node *n, blitz_actor_id to, blitz_term message, blitz_deadline until)
{
    struct bz_outgoing o = {.term = message};
    (void)n;
    if (message.data == NULL || message.bytes == 0 || to.node == 0 || to.generation == 0)
        return -EINVAL;
    struct bz_peer *p;
    int rc = bz_outgoing_address(&o, to, NULL, &p);
    if (rc != 0)
        return rc;
    rc = send_to(p, &o, until);
    bz_peer_unref(p);
    return rc;
}

/* ---- connecting by hand ---- */

/* A wait for a connect. */
struct connecting {
    uint32_t attempts; /* how many had ended when it began */
    int rc;
};

static bool is_settled(struct bz_peer *p, void *ctx)
{
    struct connecting *c = ctx;
    c->rc = p->state == BZ_PEER_UP ? 0 : p->error;
    return p->state == BZ_PEER_UP || p->attempts != c->attempts;
}

static int connect_to(struct bz_peer *p, blitz_deadline until)
{
    bz_peer_lock(p);
    struct connecting c = {.attempts = p->attempts};
    bool is_down = p->state == BZ_PEER_DOWN;
    bz_peer_unlock(p);
    int rc = is_down ? p->node->connect(p, NULL) : 0;
    if (rc < 0)
        return rc;
    rc = bz_peer_wait(p, is_settled, &c, until);
    return rc == 0 ? c.rc : rc;
}

int blitz_node_connect(blitz_node *n, const char *name, blitz_deadline until)
{
    struct bz_peer *p;
    int rc = bz_peer_named(n, name, &p);
    if (rc != 0)
        return rc == -EINVAL && !bz_node_allows(n, name) ? -EACCES : rc;
    rc = connect_to(p, until);
    bz_peer_unref(p);
    return rc;
}

int blitz_node_disconnect(blitz_node *n, const char *name)
{
    struct bz_peer *p;
    if (bz_peer_get(n, name, strnlen(name, BLITZ_NODE_NAME_MAX), false, &p) != 0)
        return -ENOTCONN;
    bz_peer_lock(p);
    blitz_task *t = p->state == BZ_PEER_UP ? blitz_task_ref(p->session->task) : NULL;
    bz_peer_unlock(p);
    blitz_task_cancel(t);
    blitz_task_detach(t);
    bz_peer_unref(p);
    return t != NULL ? 0 : -ENOTCONN;
}

bool blitz_node_is_connected(blitz_node *n, const char *name)
{
    struct bz_peer *p;
    if (bz_peer_get(n, name, strnlen(name, BLITZ_NODE_NAME_MAX), false, &p) != 0)
        return false;
    bz_peer_lock(p);
    bool is_up = p->state == BZ_PEER_UP;
    bz_peer_unlock(p);
    bz_peer_unref(p);
    return is_up;
}
