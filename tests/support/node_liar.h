/*
 * node_liar.h - a peer of a node that is written by hand, beside an honest one that must not notice.
 */
#ifndef T_NODE_LIAR_H
#define T_NODE_LIAR_H

#include "harness.h"

#include "node/node.h"
#include "support/node_scene.h"
#include "term/wire.h"

/* A node, an honest peer that is connected with it, and the means of a liar. */
struct liar {
    struct t_nodes w;
    struct bz_hello me;
    blitz_tcp *tcp;
    unsigned char buf[BZ_SHAKE_MAX];
    size_t bytes;
};

static inline void liar_init(struct liar *l, blitz_node_opts opts)
{
    memset(l, 0, sizeof *l);
    t_nodes_start(&l->w, opts);
    CHECK_EQ(blitz_node_connect(l->w.node[1], t_node_name[0], t_soon()), 0);
    l->me = (struct bz_hello){.flags = BZ_NODE_OFFERS, .creation = 9, .challenge = 4711};
    l->me.bytes = (uint16_t)snprintf(l->me.name, sizeof l->me.name, "liar@localhost");
}

/* The honest peer is connected as before. */
static inline void liar_fini(struct liar *l)
{
    blitz_term_pid pid;
    blitz_actor_id me = t_receiver(), there;
    CHECK_EQ(t_info(l->w.node[0]).up, 1u);
    CHECK_EQ(blitz_node_pid_of(l->w.node[0], me, &pid), 0);
    CHECK_EQ(blitz_node_id_of(l->w.node[1], &pid, &there), 0);
    CHECK_EQ(blitz_actor_send(there, T_SUM, &(struct t_sum){5}, sizeof(struct t_sum)), 0);
    CHECK_EQ(t_receive_sum(l->w.node[0]), 5);
    CHECK_EQ(t_info(l->w.node[1]).lost, 0u);
    t_nodes_stop(&l->w);
}

static inline void liar_dial(struct liar *l)
{
    CHECK_EQ(blitz_tcp_connect(&l->w.listen[0], &l->tcp, t_soon()), 0);
}

static inline void liar_say(struct liar *l, const void *data, size_t bytes)
{
    (void)!blitz_tcp_write_all(l->tcp, data, bytes, NULL, t_soon()); /* the node may have closed */
}

/* The next message of the handshake. False: the connection is closed. */
static inline bool liar_hear(struct liar *l)
{
    if (blitz_tcp_read_exact(l->tcp, l->buf, 2, NULL, t_soon()) != 0)
        return false;
    l->bytes = bz_wire16(l->buf);
    CHECK_LE(l->bytes, sizeof l->buf);
    return blitz_tcp_read_exact(l->tcp, l->buf, l->bytes, NULL, t_soon()) == 0;
}

static inline void liar_hang_up(struct liar *l)
{
    blitz_tcp_close(l->tcp);
    l->tcp = NULL;
}

/* The node closes the connection, and says nothing more of a handshake. */
static inline void liar_is_closed(struct liar *l)
{
    char rest[256];
    int64_t n;
    while ((n = blitz_tcp_read(l->tcp, rest, sizeof rest, t_soon())) > 0)
        ;
    CHECK(n == 0 || n == -ECONNRESET);
    liar_hang_up(l);
}

/* As an honest peer, up to the challenge of the node. Returns that. */
static inline uint32_t liar_reach_challenge(struct liar *l)
{
    struct bz_hello node;
    liar_dial(l);
    liar_say(l, l->buf, bz_shake_put_name(l->buf, &l->me));
    CHECK(liar_hear(l));
    CHECK_EQ(bz_shake_get_status(l->buf, l->bytes), BZ_STATUS_OK);
    CHECK(liar_hear(l));
    CHECK_EQ(bz_shake_get_challenge(l->buf, l->bytes, &node), 0);
    CHECK_STR_EQ(node.name, t_node_name[0]);
    return node.challenge;
}

static inline void liar_join(struct liar *l)
{
    uint32_t challenge = liar_reach_challenge(l);
    liar_say(l, l->buf, bz_shake_put_reply(l->buf, l->me.challenge, T_COOKIE, challenge));
    CHECK(liar_hear(l));
    CHECK_EQ(bz_shake_get_ack(l->buf, l->bytes, T_COOKIE, l->me.challenge), 0);
}

#endif
