/*
 * shaking.c - the handshake of a session: each side asks, answers and decides.
 *
 * The initiator names itself, and the acceptor answers with a status. That is where two connects that cross are resolved. If the acceptor is
 * connecting to the same node, one of the two connections must go: the one from the node with the smaller name. So both sides refuse
 * the same one, each with what it knows. If the acceptor believes that it is connected already, it asks ("alive"). The initiator has no
 * such connection, so it answers "true", and the acceptor closes the old one when the handshake is done. Not before: so far any
 * process may have sent the name.
 *
 * A peer learns nothing before its digest is right but our name, flags and creation, as in Erlang. A name of a peer is not kept before
 * that.
 *
 * The whole handshake has one deadline, and no message is longer than BZ_SHAKE_MAX. So a peer that says nothing, or one byte a second,
 * costs a task and a buffer for connect_ns.
 */
#include <errno.h>
#include <string.h>

#include "node/node.h"
#include "term/wire.h"

/* The memory of a handshake. */
struct shake {
    struct bz_session *s;
    blitz_deadline until;
    struct bz_hello me; /* with our challenge */
    unsigned char buf[BZ_SHAKE_MAX];
    size_t bytes; /* of the message in buf, without its length */
};

static int out(struct shake *k, size_t bytes)
{
    return blitz_tcp_write_all(k->s->tcp, k->buf, bytes, NULL, k->until);
}

/* Read one message, without its length. */
static int in(struct shake *k)
{
    int rc = blitz_tcp_read_exact(k->s->tcp, k->buf, 2, NULL, k->until);
    if (rc != 0)
        return rc == -ENODATA ? -ECONNRESET : rc;
    k->bytes = bz_wire16(k->buf);
    if (k->bytes == 0 || k->bytes > sizeof k->buf)
        return -EPROTO;
    rc = blitz_tcp_read_exact(k->s->tcp, k->buf, k->bytes, NULL, k->until);
    return rc == -ENODATA ? -ECONNRESET : rc;
}

static bool can_all(const struct bz_hello *peer)
{
    uint64_t flags = peer->flags;
    if ((flags & BZ_FLAG_MANDATORY_25_DIGEST) != 0)
        flags |= BZ_NODE_NEEDS_25;
    return (flags & BZ_NODE_NEEDS) == BZ_NODE_NEEDS;
}

/* ---- the initiator ---- */

/* The peer believes that it is connected with us. If its connection has come up meanwhile, ours must go. */
static int answer_alive(struct shake *k)
{
    struct bz_session *s = k->s;
    bz_peer_lock(s->peer);
    bool is_alone = s->peer->session == s && !s->gives_way;
    bz_peer_unlock(s->peer);
    int rc = out(k, bz_shake_put_status(k->buf, is_alone ? BZ_STATUS_TRUE : BZ_STATUS_FALSE));
    return rc == 0 && !is_alone ? -EALREADY : rc;
}

static int hear_status(struct shake *k)
{
    int rc = in(k);
    if (rc != 0)
        return rc;
    switch (bz_shake_get_status(k->buf, k->bytes)) {
    case BZ_STATUS_OK:
    case BZ_STATUS_OK_SIMULTANEOUS:
        return 0;
    case BZ_STATUS_ALIVE:
        return answer_alive(k);
    case BZ_STATUS_NOK:
        return -EALREADY;
    case BZ_STATUS_NOT_ALLOWED:
        return -EACCES;
    default:
        return -EPROTO;
    }
}

static int hear_challenge(struct shake *k)
{
    struct bz_hello *peer = &k->s->hello;
    int rc = in(k);
    if (rc == 0)
        rc = bz_shake_get_challenge(k->buf, k->bytes, peer);
    if (rc == 0 && (strcmp(peer->name, k->s->peer->name) != 0 || !can_all(peer)))
        rc = -EPROTO;
    return rc;
}

/* Our digest is about to be sent. -EALREADY: another connection has come up. */
static int commit(struct bz_session *s)
{
    bz_peer_lock(s->peer);
    s->is_committed = !s->is_over;
    bool is_over = s->is_over;
    bz_peer_unlock(s->peer);
    return is_over ? -EALREADY : 0;
}

static int initiate(struct shake *k)
{
    const char *cookie = k->s->node->cookie;
    int rc = out(k, bz_shake_put_name(k->buf, &k->me));
    if (rc == 0)
        rc = hear_status(k);
    if (rc == 0)
        rc = hear_challenge(k);
    if (rc == 0)
        rc = commit(k->s);
    if (rc == 0)
        rc = out(k, bz_shake_put_reply(k->buf, k->me.challenge, cookie, k->s->hello.challenge));
    if (rc != 0)
        return rc;
    rc = in(k);
    if (rc == -ECONNRESET)
        return -EACCES; /* that is how a node refuses a digest */
    return rc == 0 ? bz_shake_get_ack(k->buf, k->bytes, cookie, k->me.challenge) : rc;
}

/* ---- the acceptor ---- */

/* The answer to a name. */
static enum bz_shake_status status_for(const struct bz_session *s)
{
    struct bz_peer *p;
    enum bz_shake_status status = BZ_STATUS_OK;
    if (!bz_node_allows(s->node, s->hello.name) || !can_all(&s->hello) ||
        strcmp(s->hello.name, s->node->name) == 0)
        return BZ_STATUS_NOT_ALLOWED;
    if (bz_peer_get(s->node, s->hello.name, s->hello.bytes, false, &p) != 0)
        return BZ_STATUS_OK;
    bz_peer_lock(p);
    if (p->state == BZ_PEER_UP) {
        status = BZ_STATUS_ALIVE;
    } else if (p->state == BZ_PEER_PENDING) {
        p->session->gives_way = strcmp(s->node->name, s->hello.name) < 0;
        status = p->session->gives_way ? BZ_STATUS_OK_SIMULTANEOUS : BZ_STATUS_NOK;
    }
    bz_peer_unlock(p);
    bz_peer_unref(p);
    return status;
}

/* Send the status, and hear the answer to the question that it may be. */
static int answer_name(struct shake *k, enum bz_shake_status status)
{
    int rc = out(k, bz_shake_put_status(k->buf, status));
    if (rc != 0)
        return rc;
    if (status == BZ_STATUS_NOT_ALLOWED)
        return -EACCES;
    if (status == BZ_STATUS_NOK)
        return -EALREADY;
    if (status != BZ_STATUS_ALIVE)
        return 0;
    rc = in(k);
    if (rc != 0)
        return rc;
    enum bz_shake_status answer = bz_shake_get_status(k->buf, k->bytes);
    k->s->replaces = answer == BZ_STATUS_TRUE;
    return answer == BZ_STATUS_TRUE ? 0 : answer == BZ_STATUS_FALSE ? -EALREADY : -EPROTO;
}

static int accept_peer(struct shake *k)
{
    struct bz_session *s = k->s;
    const char *cookie = s->node->cookie;
    uint32_t of_peer;
    int rc = in(k);
    if (rc == 0)
        rc = bz_shake_get_name(k->buf, k->bytes, &s->hello);
    if (rc == 0)
        rc = answer_name(k, status_for(s));
    if (rc == 0)
        rc = out(k, bz_shake_put_challenge(k->buf, &k->me));
    if (rc == 0)
        rc = in(k);
    if (rc == 0)
        rc = bz_shake_get_reply(k->buf, k->bytes, cookie, k->me.challenge, &of_peer);
    if (rc == 0)
        rc = bz_peer_get(s->node, s->hello.name, s->hello.bytes, true, &s->peer);
    if (rc == 0)
        rc = bz_session_attach(s);
    return rc == 0 ? out(k, bz_shake_put_ack(k->buf, cookie, of_peer)) : rc;
}

int bz_session_shake(struct bz_session *s, blitz_deadline until)
{
    blitz_node *n = s->node;
    struct shake k = {.s = s, .until = until};
    k.me = (struct bz_hello){.flags = BZ_NODE_OFFERS, .creation = n->creation, .bytes = n->bytes};
    memcpy(k.me.name, n->name, n->bytes);
    int rc = bz_os_entropy(bz_os_here(), &k.me.challenge, sizeof k.me.challenge);
    if (rc != 0)
        return rc;
    return s->is_ours ? initiate(&k) : accept_peer(&k);
}
