/*
 * nodes.h - the scene of two nodes: senders wait for room in the queue of a connection.
 *
 * Parties send numbers from one node to an actor behind the other, by its id and by its name, as messages and as terms, and call it. The queue has
 * room for a few messages. A number whose send succeeded arrives once, those of one party in order, and a send that gave up has
 * sent nothing. In some rounds a party closes the connection: then numbers may be lost, and still none arrives that was not sent.
 *
 * They also start actors behind the other node. An actor that ends by itself is started once if the call succeeded, and at most once if not. A
 * fiber may be linked with its actor, which does not end by itself: it ends by a kill of its caller, by the loss of the connection, or because
 * the caller has given up. A linked caller hears its end once. So no actor lives when the round ends.
 */
#ifndef MIX_NODES_H
#define MIX_NODES_H

#include "support/mix/ledger.h"

enum { NODES_VALUE = 1, NODES_ASK };
enum { NODES_HIGH = 512, NODES_WHAT_MAX = 200 };
enum { NODES_SEND, NODES_CUT };

BLITZ_TERM_STRUCT(nodes_value_term, struct mix_value, "value",
                  BLITZ_TERM_UINT(struct mix_value, id), BLITZ_TERM_UINT(struct mix_value, twin),
                  BLITZ_TERM_UINT(struct mix_value, id_again));
BLITZ_TERM_STRUCT(nodes_ask_term, uint64_t, "ask", BLITZ_TERM_WHOLE_UINT(uint64_t));
static const blitz_term_message nodes_messages[] = {{NODES_VALUE, &nodes_value_term, NULL},
                                                    {NODES_ASK, &nodes_ask_term, &nodes_ask_term}};

static const char *const nodes_name[2] = {"one@localhost", "two@localhost"};

/* An actor that the other node starts. */
struct nodes_job {
    uint64_t id, stays;
    bool has_begun; /* one that is killed at once does not */
};
BLITZ_TERM_TUPLE(nodes_job_args, struct nodes_job, BLITZ_TERM_UINT(struct nodes_job, id),
                 BLITZ_TERM_UINT(struct nodes_job, stays));

static struct {
    blitz_node *node[2];
    struct mix_count jobs; /* that live */
    struct mix_count started[MIX_PARTIES][MIX_IDS];
    bool is_started[MIX_PARTIES][MIX_IDS]; /* their caller has the id, and does not kill them */
    uint64_t next_job[MIX_PARTIES];
    blitz_actor_id sink, far; /* as it is, and as the first node knows it */
    struct mix_count sent, arrived;
    struct mix_count cuts_begun, cuts; /* of the connection, which a call may see in between */
} nodes;

/* ---- the actor ---- */

struct nodes_sink {
    uint64_t last[MIX_PARTIES];
};

BLITZ_HANDLER(nodes_on_value, struct nodes_sink, struct mix_value)
{
    uint64_t *last = &state->last[data->id >> 32 < MIX_PARTIES ? data->id >> 32 : 0];
    (void)m;
    mix_ledger_gone(data, sizeof *data);
    CHECK_GT(data->id & 0xffffffff, *last);
    *last = data->id & 0xffffffff;
    mix_add(&nodes.arrived, 1);
    return 0;
}

BLITZ_HANDLER(nodes_on_ask, struct nodes_sink, uint64_t)
{
    (void)state;
    return blitz_actor_reply(m->reply, &(uint64_t){~*data}, sizeof(uint64_t));
}

static const blitz_handler nodes_handlers[] = {
    BLITZ_ON(NODES_VALUE, struct mix_value, nodes_on_value),
    BLITZ_ON(NODES_ASK, uint64_t, nodes_on_ask)};
static const blitz_behaviour nodes_behaviour = {.name = "mix sink",
                                                .state_bytes = sizeof(struct nodes_sink),
                                                .handlers = nodes_handlers,
                                                .handler_count = 2,
                                                .messages = nodes_messages,
                                                .message_count = 2};

/* ---- verbs: the value is in op->value ---- */

static int mix_node_send_call(struct mix_op *op, blitz_deadline until)
{
    return until == BLITZ_FOREVER && op->is_biased
               ? blitz_actor_send(nodes.far, NODES_VALUE, op->value, sizeof op->value[0])
               : blitz_actor_send_until(nodes.far, NODES_VALUE, op->value, sizeof op->value[0],
                                        until);
}
static blitz_future *mix_node_send_future(struct mix_op *op)
{
    blitz_actor_send_future_init(&op->f.actor_send, nodes.far, NODES_VALUE, op->value,
                                 sizeof op->value[0]);
    return &op->f.actor_send.future;
}
static int mix_node_send_result(struct mix_op *op, int rc)
{
    return rc == 0 || op->f.actor_send.result == 0 ? op->f.actor_send.result : rc;
}
static const struct mix_verb mix_node_send = {
    "node send", mix_node_send_call, mix_node_send_future, mix_node_send_result, 0, 0};

static int mix_node_name_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    return blitz_node_send_name(nodes.node[0], "sink", nodes_name[1], NODES_VALUE, op->value,
                                sizeof op->value[0]);
}
static const struct mix_verb mix_node_name = {
    "node send name", mix_node_name_call, NULL, NULL, 0, 0};

static blitz_term nodes_term(struct mix_op *op)
{
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, op->bytes, NODES_WHAT_MAX);
    CHECK_EQ(blitz_term_put_struct(&out, &nodes_value_term, op->value, NULL), 0);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return (blitz_term){op->bytes, bytes};
}
static int mix_node_term_call(struct mix_op *op, blitz_deadline until)
{
    return op->is_biased ? blitz_node_send_term(nodes.node[0], nodes.far, nodes_term(op), until)
                         : blitz_node_send_name_term(nodes.node[0], "sink", nodes_name[1],
                                                     nodes_term(op), until);
}
static const struct mix_verb mix_node_term = {
    "node send term", mix_node_term_call, NULL, NULL, 0, 0};

static int mix_node_connect_call(struct mix_op *op, blitz_deadline until)
{
    (void)op;
    return blitz_node_connect(nodes.node[0], nodes_name[1], until);
}
static const struct mix_verb mix_node_connect = {
    "node connect", mix_node_connect_call, NULL, NULL, 0, 0};

/* Calls: the question is in op->value[0].id, the answer in op->n. */
static int nodes_answer(int rc)
{
    return rc == (int)sizeof(uint64_t) ? 0 : rc;
}
static int mix_node_call_call(struct mix_op *op, blitz_deadline until)
{
    const void *asked = &op->value[0].id;
    return nodes_answer(
        op->is_biased ? blitz_actor_call(nodes.far, NODES_ASK, asked, sizeof(uint64_t), &op->n,
                                         sizeof op->n, until)
                      : blitz_node_call_name(nodes.node[0], "sink", nodes_name[1], NODES_ASK, asked,
                                             sizeof(uint64_t), &op->n, sizeof op->n, until));
}
static blitz_future *mix_node_call_future(struct mix_op *op)
{
    blitz_actor_call_future_init(&op->f.actor_call, nodes.far, NODES_ASK, &op->value[0].id,
                                 sizeof(uint64_t), &op->n, sizeof op->n);
    return &op->f.actor_call.future;
}
static int mix_node_call_result(struct mix_op *op, int rc)
{
    return rc == 0 ? nodes_answer(op->f.actor_call.result) : rc;
}
static const struct mix_verb mix_node_call = {
    "node call", mix_node_call_call, mix_node_call_future, mix_node_call_result, 0, 0};

static int mix_node_call_term_call(struct mix_op *op, blitz_deadline until)
{
    blitz_term_out out;
    size_t bytes;
    blitz_binary *reply;
    blitz_term answer;
    blitz_term_out_init(&out, op->bytes, NODES_WHAT_MAX);
    CHECK_EQ(blitz_term_put_struct(&out, &nodes_ask_term, &op->value[0].id, NULL), 0);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    blitz_term ask = {op->bytes, bytes};
    int rc = op->is_biased ? blitz_node_call_term(nodes.node[0], nodes.far, ask, &reply, until)
                           : blitz_node_call_name_term(nodes.node[0], "sink", nodes_name[1], ask,
                                                       &reply, until);
    if (rc != 0)
        return rc;
    CHECK_EQ(
        blitz_term_check(blitz_binary_data(reply), blitz_binary_size(reply), NULL, &answer, NULL),
        0);
    blitz_term_in in = blitz_term_in_of(answer);
    CHECK_EQ(blitz_term_get_struct(&in, &nodes_ask_term, &op->n, NULL), 0);
    blitz_binary_unref(reply);
    return 0;
}
static const struct mix_verb mix_node_call_term = {
    "node call term", mix_node_call_term_call, NULL, NULL, 0, 0};

/* A spawn: the number of the actor is in op->value[0].id, and whether the caller is linked in op->is_held. */
static int nodes_job_init(void *state)
{
    struct nodes_job *j = state;
    j->has_begun = true;
    mix_add(&nodes.jobs, 1);
    CHECK_EQ(mix_add(&nodes.started[j->id >> 32][j->id & 0xffffffff], 1), 1);
    return j->stays != 0 ? 0 : BLITZ_ACTOR_STOP;
}
static void nodes_job_drop(void *state, void *ctx)
{
    const struct nodes_job *j = state;
    (void)ctx;
    mix_add(&nodes.jobs, -(int64_t)j->has_begun);
}
static const blitz_behaviour nodes_job_behaviour = {.name = "mix job",
                                                    .state_bytes = sizeof(struct nodes_job),
                                                    .init = nodes_job_init,
                                                    .drop = nodes_job_drop};
static const blitz_node_entry nodes_entries[] = {
    {"mix", "job", &nodes_job_behaviour, &nodes_job_args}};

static int nodes_spawn(struct mix_op *op, const blitz_node_spawn_opts *opts, blitz_actor_id *out,
                       blitz_deadline until)
{
    blitz_term_out args;
    size_t bytes;
    blitz_term_out_init(&args, op->bytes, NODES_WHAT_MAX);
    blitz_term_put_list(&args, 2);
    blitz_term_put_uint(&args, op->value[0].id);
    blitz_term_put_uint(&args, opts != NULL);
    blitz_term_put_nil(&args);
    CHECK_EQ(blitz_term_out_end(&args, &bytes), 0);
    return blitz_node_spawn(nodes.node[0], nodes_name[1], "mix", "job",
                            (blitz_term){op->bytes, bytes}, opts, out, until);
}

/* Hear the end of that actor: once by the link, and once by the monitor. */
static int nodes_hear_end(blitz_actor_id id, uint64_t monitor, blitz_deadline until)
{
    const blitz_msg *m;
    for (unsigned seen = 0; seen != 3;) {
        int rc = blitz_receive(NULL, NULL, &m, until);
        if (rc != 0)
            return rc;
        const blitz_down *d = m->data;
        unsigned bit = m->what == BLITZ_MSG_EXIT ? 1 : 2;
        CHECK(m->what == BLITZ_MSG_EXIT || (m->what == BLITZ_MSG_DOWN && d->ref == monitor));
        CHECK(blitz_actor_id_equal(d->who, id));
        CHECK_EQ(seen & bit, 0u);
        seen |= bit;
    }
    return 0;
}

static int nodes_spawn_linked(struct mix_op *op, blitz_deadline until)
{
    blitz_actor_id id;
    uint64_t monitor;
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), 0);
    CHECK(!blitz_actor_trap_exit(true));
    int rc = nodes_spawn(op, &(blitz_node_spawn_opts){true, &monitor}, &id, until);
    op->moved = rc == 0;
    if (rc == 0 && (rc = blitz_actor_kill(id)) == 0)
        rc = nodes_hear_end(id, monitor, until);
    CHECK_EQ(blitz_receiver_end(NULL), 0);
    return rc;
}

static int mix_node_spawn_call(struct mix_op *op, blitz_deadline until)
{
    blitz_actor_id id;
    if (op->is_held)
        return nodes_spawn_linked(op, until);
    int rc = nodes_spawn(op, NULL, &id, until);
    op->moved = rc == 0;
    return rc;
}
static const struct mix_verb mix_node_spawn = {"node spawn", mix_node_spawn_call, NULL, NULL, 0, 0};

/* ---- the scene ---- */

static int nodes_open(void *round)
{
    blitz_node_opts opts = {.no_epmd = true, .messages = nodes_messages, .message_count = 2};
    blitz_node_info info;
    blitz_term_pid pid;
    (void)round;
    CHECK_EQ(
        blitz_actor_spawn(&nodes_behaviour, NULL, &(blitz_actor_opts){.name = "sink"}, &nodes.sink),
        0);
    opts.entries = nodes_entries;
    opts.entry_count = 1;
    CHECK_EQ(blitz_node_start(nodes_name[1], "mix", &opts, &nodes.node[1]), 0);
    blitz_node_info_get(nodes.node[1], &info);
    blitz_node_place place = {nodes_name[1], blitz_addr_loopback_v4(info.port)};
    opts.places = &place;
    opts.place_count = 1;
    opts.queue_high = NODES_HIGH;
    CHECK_EQ(blitz_node_start(nodes_name[0], "mix", &opts, &nodes.node[0]), 0);
    CHECK_EQ(blitz_node_pid_of(nodes.node[1], nodes.sink, &pid), 0);
    CHECK_EQ(blitz_node_id_of(nodes.node[0], &pid, &nodes.far), 0);
    return 0;
}

static void nodes_make(struct mix_round *r)
{
    memset(&nodes, 0, sizeof nodes);
    mix_ledger_clear();
    CHECK_EQ(blitz_runtime_block_on(r->rt, nodes_open, r), 0);
    for (uint64_t n = 2 + mix_die(&r->dice, 12); n > 0; n--)
        mix_join_in(r, NODES_SEND, mix_one_in(&r->dice, 3))->left =
            1 + (unsigned)mix_die(&r->dice, 100);
    if (mix_one_in(&r->dice, 4)) {
        mix_join_in(r, NODES_CUT, false)->left = 1 + (unsigned)mix_die(&r->dice, 5);
        mix_say(r, " cuts");
    }
}

static bool nodes_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->left--;
    if (p->role == NODES_CUT) {
        mix_add(&nodes.cuts_begun, 1);
        if (blitz_node_disconnect(nodes.node[0], nodes_name[1]) == 0)
            mix_add(&nodes.cuts, 1);
        p->op.n = mix_die(&p->dice, 20) * BLITZ_US * 100;
        mix_begin(p, &mix_pause, NULL);
        return true;
    }
    uint64_t dice = mix_die(&p->dice, 20);
    p->op.is_biased = dice % 2 == 0;
    if (dice >= 16) {
        p->op.value[0].id = (uint64_t)p->index << 32 | ++nodes.next_job[p->index];
        p->op.is_held = p->kind == MIX_FIBER && mix_one_in(&p->dice, 2);
        p->op.moved = 0;
        mix_begin(p, &mix_node_spawn, NULL);
        return true;
    }
    if (dice == 15 && p->kind != MIX_THREAD) {
        mix_begin(p, &mix_node_connect, NULL);
        return true;
    }
    if (dice >= 12 && dice < 14) {
        p->op.value[0].id = mix_die(&p->dice, UINT64_C(1) << 60);
        mix_begin(p, mix_one_in(&p->dice, 3) ? &mix_node_call_term : &mix_node_call, NULL);
        return true;
    }
    mix_ledger_offer(p, p->op.value);
    mix_begin(p, dice < 9 ? &mix_node_send : dice < 12 ? &mix_node_name : &mix_node_term, NULL);
    return true;
}

static void nodes_done(struct mix_party *p, int rc)
{
    bool is_call = p->op.verb == &mix_node_call || p->op.verb == &mix_node_call_term;
    bool is_spawn = p->op.verb == &mix_node_spawn;
    bool is_send =
        p->role == NODES_SEND && !is_call && !is_spawn && p->op.verb != &mix_node_connect;
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED ||
          (!is_send && mix_get(&nodes.cuts_begun)));
    if (rc == 0 && is_send) {
        mix_ledger_sent(p->op.value);
        mix_add(&nodes.sent, 1);
    }
    if (rc == 0 && is_call)
        CHECK_EQ(p->op.n, ~p->op.value[0].id);
    if (is_spawn && p->op.moved && !p->op.is_held)
        nodes.is_started[p->index][p->op.value[0].id & 0xffffffff] = true;
}

/* Each request was handled: those of one connection in order, and the next connection begins behind its end. */
static void nodes_come_behind_all(void)
{
    static const blitz_term none = {NULL, 0};
    blitz_actor_id id;
    int rc;
    do {
        rc = blitz_node_spawn(nodes.node[0], nodes_name[1], "mix", "none", none, NULL, &id,
                              BLITZ_FOREVER);
        CHECK(rc == -ENOENT || (rc == -ENOTCONN && mix_get(&nodes.cuts) > 0));
    } while (rc != -ENOENT);
}

static int nodes_close(void *round)
{
    (void)round;
    if (mix_get(&nodes.cuts) == 0)
        while (mix_get(&nodes.arrived) < mix_get(&nodes.sent))
            CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    nodes_come_behind_all();
    for (unsigned i = 0; i < MIX_PARTIES; i++)
        for (uint64_t n = 1; n <= nodes.next_job[i]; n++)
            while (nodes.is_started[i][n] && mix_get(&nodes.started[i][n]) == 0)
                CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    while (mix_get(&nodes.jobs) > 0)
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    blitz_node_stop(nodes.node[0]);
    blitz_node_stop(nodes.node[1]);
    CHECK_EQ(blitz_actor_stop(nodes.sink), 0);
    int rc = blitz_actor_join(nodes.sink, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    return 0;
}

/* A number that was not sent has not arrived. One that was sent has, unless the connection was cut. */
static void nodes_check(struct mix_round *r)
{
    CHECK_EQ(blitz_runtime_block_on(r->rt, nodes_close, r), 0);
    if (mix_get(&nodes.cuts) == 0) {
        mix_ledger_check(r);
        return;
    }
    for (unsigned i = 0; i < r->count; i++)
        for (uint64_t n = 1; n <= mix_ledger.next[i]; n++)
            CHECK_LE(mix_get(&mix_ledger.gone[i][n]), (int64_t)mix_ledger.is_sent[i][n]);
}

static const struct mix_scene mix_scene_nodes = {"nodes",    2,    nodes_make, nodes_next,
                                                 nodes_done, NULL, nodes_check};

#endif
