/*
 * node_scene.h - nodes to test with: in one process, at the loopback, without EPMD.
 */
#ifndef T_NODE_SCENE_H
#define T_NODE_SCENE_H

#include "harness.h"

#include <string.h>
#include <unistd.h>

#include "blitz.h"
#include "blitz/event.h"
#include "support/net.h"

#define T_COOKIE "monster"
#ifndef T_SOON_S
#define T_SOON_S 30
#endif

enum { T_ADD = 1, T_SUM, T_BLOB, T_UNSENT };

struct t_add {
    int64_t n;
    blitz_actor_id from; /* gets T_SUM; zeroed: none */
};

struct t_sum {
    int64_t n;
};

BLITZ_TERM_STRUCT(t_add_term, struct t_add, "add", BLITZ_TERM_INT(struct t_add, n),
                  BLITZ_TERM_ID(struct t_add, from));
BLITZ_TERM_STRUCT(t_sum_term, struct t_sum, "sum", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(t_blob_term, struct t_sum, "blob", BLITZ_TERM_INT(struct t_sum, n),
                  BLITZ_TERM_CARGO());

static const blitz_term_message t_messages[] = {
    {T_ADD, &t_add_term, NULL}, {T_SUM, &t_sum_term, NULL}, {T_BLOB, &t_blob_term, NULL}};

static inline blitz_deadline t_soon(void)
{
    return blitz_after(T_SOON_S * BLITZ_S); /* a test that waits so long has failed */
}

/* An adder: it answers each T_ADD that has an id with its sum. */
BLITZ_HANDLER(t_on_add, struct t_sum, struct t_add)
{
    state->n += data->n;
    if (data->from.generation != 0)
        (void)blitz_actor_send(data->from, T_SUM, state, sizeof *state);
    return 0;
}

static inline blitz_actor_id t_adder(const char *name)
{
    static const blitz_handler handlers[] = {BLITZ_ON(T_ADD, struct t_add, t_on_add)};
    static const blitz_behaviour adder = {.name = "adder",
                                          .state_bytes = sizeof(struct t_sum),
                                          .handlers = handlers,
                                          .handler_count = 1,
                                          .messages = t_messages,
                                          .message_count = BZ_ARRAY_LEN(t_messages)};
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&adder, NULL, &(blitz_actor_opts){.name = name}, &id), 0);
    return id;
}

/* An address of this process alone, one of four in turn: a client's port is never of it, and tests with the same seed have others. */
static inline blitz_addr t_own_addr(void)
{
    static unsigned count;
    unsigned pid = (unsigned)getpid();
    return blitz_addr_v4(127, (uint8_t)(1 + (pid >> 16) % 128), (uint8_t)(pid >> 8), (uint8_t)pid,
                         (uint16_t)(20000 + 4 * t_random_below(2500) + count++ % 4));
}

/* Two nodes that know each other's address. */
struct t_nodes {
    blitz_node *node[2];
    blitz_node_place place[2];
    blitz_addr listen[2];
};

static const char *const t_node_name[2] = {"a@localhost", "b@localhost"};

static inline void t_nodes_places(struct t_nodes *w)
{
    for (int i = 0; i < 2; i++) {
        w->listen[i] = t_own_addr();
        w->place[i] = (blitz_node_place){t_node_name[i], w->listen[i]};
        w->node[i] = NULL;
    }
}

static inline int t_node_start(struct t_nodes *w, int i, const char *cookie, blitz_node_opts opts)
{
    opts.listen = opts.listen != NULL ? opts.listen : &w->listen[i];
    opts.no_epmd = true;
    opts.places = w->place;
    opts.place_count = 2;
    if (opts.messages == NULL) {
        opts.messages = t_messages;
        opts.message_count = BZ_ARRAY_LEN(t_messages);
    }
    return blitz_node_start(t_node_name[i], cookie, &opts, &w->node[i]);
}

static inline void t_nodes_start(struct t_nodes *w, blitz_node_opts opts)
{
    t_nodes_places(w);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(t_node_start(w, i, T_COOKIE, opts), 0);
}

static inline void t_nodes_stop(struct t_nodes *w)
{
    blitz_node_stop(w->node[0]);
    blitz_node_stop(w->node[1]);
}

static inline blitz_node_info t_info(blitz_node *n)
{
    blitz_node_info info;
    blitz_node_info_get(n, &info);
    return info;
}

/* Receive a term of another node as a message of the table. Returns its row; NULL: not of the table. */
static inline const blitz_term_message *t_receive(blitz_node *n, void *payload, const blitz_msg **m)
{
    const blitz_term_message *row;
    blitz_term term;
    CHECK_EQ(blitz_receive(NULL, NULL, m, t_soon()), 0);
    CHECK_EQ((*m)->what, BLITZ_MSG_TERM);
    CHECK_EQ(blitz_term_check(blitz_binary_data((*m)->binary), blitz_binary_size((*m)->binary),
                              NULL, &term, NULL),
             0);
    blitz_term_in in = blitz_term_in_of(term);
    blitz_term_env env = blitz_node_env(n);
    int rc = blitz_term_get_message(&in, t_messages, BZ_ARRAY_LEN(t_messages), &row, payload,
                                    BLITZ_MSG_BYTES_MAX, &env);
    return rc == 0 ? row : NULL;
}

/* The next message is {sum, N}. Returns N. */
static inline int64_t t_receive_sum(blitz_node *n)
{
    _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
    struct t_sum sum;
    const blitz_msg *m;
    const blitz_term_message *row = t_receive(n, payload, &m);
    CHECK_NOT_NULL(row);
    CHECK_EQ(row->what, T_SUM);
    memcpy(&sum, payload, sizeof sum);
    return sum.n;
}

/* The next message is about a node. */
static inline blitz_node_event t_receive_event(void)
{
    const blitz_msg *m;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
    CHECK_EQ(m->what, BLITZ_MSG_NODE);
    CHECK_EQ(m->size, sizeof(blitz_node_event));
    return *(const blitz_node_event *)m->data;
}

static inline blitz_actor_id t_receiver(void)
{
    blitz_actor_id me;
    CHECK_EQ(blitz_receiver_begin(NULL, &me), 0);
    return me;
}

#endif
