/*
 * A node of blitz beside nodes of Erlang. Each test has an EPMD of its own, so that tests run side by side.
 */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>

#include "base/compiler.h"
#define T_SOON_S 90 /* an Erlang that starts on a busy machine */
#include "support/node_scene.h"
#include "support/valve.h"
#include "term/wire.h"

/* An EPMD, and a node of ours that is registered there. */
struct world {
    char port[8];
    uint16_t epmd_port;
    blitz_process *epmd;
    blitz_node *node;
    char erlang[32]; /* the name of the node of Erlang */
};

static const char blitz_name[] = "blitz@localhost";

static void needs_erlang(void)
{
    if (system("command -v escript >/dev/null 2>&1 && command -v epmd >/dev/null 2>&1") != 0)
        t_skip("escript or epmd is not installed (erlang-base)");
}

/* A port of this process alone. A node of Erlang listens at all addresses, so no other test may listen at its port: t_own_addr()
 * is below 30000, and the system's own choices begin at 32768. */
enum own_port { EPMD_PORT, PEER_PORT, OWN_PORTS };
static uint16_t own_port(enum own_port which)
{
    return (uint16_t)(30000 + ((unsigned)getpid() * OWN_PORTS + which) % 2700);
}

static blitz_process *start_program(const char *program, const char *const *args,
                                    const struct world *w, bool is_quiet)
{
    blitz_command *c;
    blitz_process *p;
    CHECK_EQ(blitz_command_new(program, &c), 0);
    blitz_command_args(c, args);
    blitz_command_env(c, "ERL_EPMD_PORT", w->port);
    if (is_quiet)
        blitz_command_stdio(c, 2, BLITZ_STDIO_NULL);
    CHECK_EQ(blitz_command_start(c, NULL, &p), 0);
    blitz_command_unref(c);
    return p;
}

static void start_epmd(struct world *w)
{
    const char *const args[] = {"-port", w->port, "-address", "127.0.0.1", NULL};
    blitz_addr at = blitz_addr_loopback_v4(w->epmd_port);
    blitz_tcp *t;
    w->epmd = start_program("epmd", args, w, true);
    while (blitz_tcp_connect(&at, &t, t_soon()) != 0)
        CHECK_EQ(blitz_sleep(10 * BLITZ_MS), 0);
    blitz_tcp_close(t);
}

static void stop_epmd(struct world *w)
{
    blitz_exit e;
    CHECK_EQ(blitz_process_kill(w->epmd), 0);
    CHECK_EQ(blitz_process_wait(w->epmd, &e, t_soon()), 0);
    blitz_process_unref(w->epmd);
}

static int start_node(struct world *w, const char *name, blitz_node_opts opts, blitz_node **out)
{
    opts.epmd_port = w->epmd_port;
    if (opts.messages == NULL) {
        opts.messages = t_messages;
        opts.message_count = BZ_ARRAY_LEN(t_messages);
    }
    return blitz_node_start(name, T_COOKIE, &opts, out);
}

/* erlang: the name of its node */
static void world_start_as(struct world *w, const char *erlang, blitz_node_opts opts)
{
    w->epmd_port = own_port(EPMD_PORT);
    (void)snprintf(w->port, sizeof w->port, "%u", (unsigned)w->epmd_port);
    (void)snprintf(w->erlang, sizeof w->erlang, "%s", erlang);
    start_epmd(w);
    CHECK_EQ(start_node(w, blitz_name, opts, &w->node), 0);
}

static void world_start(struct world *w, blitz_node_opts opts)
{
    char erlang[32];
    (void)snprintf(erlang, sizeof erlang, "erl%u@localhost", (unsigned)t_random_below(100000));
    world_start_as(w, erlang, opts);
}

static void world_start_with(struct world *w, const blitz_term_message *messages, size_t count)
{
    world_start(w, (blitz_node_opts){.messages = messages, .message_count = count});
}

static void world_stop(struct world *w)
{
    blitz_node_stop(w->node);
    stop_epmd(w);
}

static blitz_process *start_erlang(struct world *w, const char *what)
{
    const char *const args[] = {PEER_ESCRIPT, what, w->erlang, blitz_name, NULL};
    return start_program("escript", args, w, false);
}

static void end_erlang(blitz_process *p)
{
    blitz_exit e;
    CHECK_EQ(blitz_process_wait(p, &e, blitz_after(120 * BLITZ_S)), 0);
    CHECK_EQ(e.signal, 0);
    CHECK_EQ(e.code, 0);
    blitz_process_unref(p);
}

static int pings(void *arg)
{
    struct world w;
    world_start(&w, (blitz_node_opts){0});
    end_erlang(start_erlang(&w, arg));
    CHECK_EQ(t_info(w.node).broken, 0u);
    world_stop(&w);
    return 0;
}

static void run(int (*fn)(void *), void *arg)
{
    needs_erlang();
    CHECK_EQ(blitz_run(fn, arg, NULL), 0);
}

TEST_LIMIT(node_erlang, net_adm_ping_answers_pong_and_the_node_is_hidden, 120)
{
    char what[] = "ping";
    run(pings, what);
}

TEST_LIMIT(node_erlang, a_wrong_cookie_is_refused_and_the_right_one_is_not, 120)
{
    char what[] = "wrong";
    run(pings, what);
}

static int adds(void *arg)
{
    struct world w;
    (void)arg;
    world_start(&w, (blitz_node_opts){0});
    blitz_actor_id adder = t_adder("adder");
    end_erlang(start_erlang(&w, "add"));
    CHECK_EQ(t_info(w.node).dropped, 2u);
    CHECK_EQ(t_info(w.node).broken, 0u);
    CHECK_EQ(blitz_actor_stop(adder), 0);
    world_stop(&w);
    return 0;
}

/* The same handler serves Erlang's terms, and answers to the pid in them. */
TEST_LIMIT(node_erlang, an_actor_with_a_table_serves_processes_in_order, 120)
{
    run(adds, NULL);
}

static int blobs(void *arg)
{
    struct world w;
    blitz_process *p;
    _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
    const blitz_msg *m;
    (void)arg;
    world_start(&w, (blitz_node_opts){0});
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "tester"}, NULL), 0);
    p = start_erlang(&w, "blob");
    for (int i = 0; i < 6; i++) {
        const blitz_term_message *row = t_receive(w.node, payload, &m);
        CHECK(row != NULL && row->what == T_BLOB);
        struct t_sum sum = {(int64_t)blitz_binary_size(m->binary)};
        row = t_receive(w.node, payload, &m);
        CHECK(row != NULL && row->what == T_ADD);
        struct t_add add;
        memcpy(&add, payload, sizeof add);
        /* the binary of the message is the whole term: version, tuple, atom, integer, and the head of the binary */
        sum.n -= 1 + 2 + 6 + 2 + 5;
        CHECK_EQ(blitz_actor_send(add.from, T_SUM, &sum, sizeof sum), 0);
    }
    end_erlang(p);
    world_stop(&w);
    return 0;
}

TEST_LIMIT(node_erlang, binaries_up_to_64_megabytes_arrive, 240)
{
    run(blobs, NULL);
}

static int echoes(void *arg)
{
    struct world w;
    blitz_process *p;
    _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
    const blitz_msg *m;
    blitz_actor_id me;
    struct t_add add;
    int64_t sum = 0;
    (void)arg;
    world_start(&w, (blitz_node_opts){.queue_max = 160 << 20});
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "tester"}, &me), 0);
    p = start_erlang(&w, "echo");
    const blitz_term_message *row = t_receive(w.node, payload, &m);
    CHECK(row != NULL && row->what == T_ADD);
    memcpy(&add, payload, sizeof add);
    blitz_actor_id there = add.from;
    add.from = me;
    for (add.n = 1; add.n <= 200; add.n++) {
        sum += add.n;
        CHECK_EQ(add.n % 2 != 0
                     ? blitz_actor_send(there, T_ADD, &add, sizeof add)
                     : blitz_node_send_name(w.node, "echo", w.erlang, T_ADD, &add, sizeof add),
                 0);
        CHECK_EQ(t_receive_sum(w.node), sum);
    }
    /* large ones, and more than the queue has room for */
    blitz_cargo cargo = {NULL, NULL, NULL};
    CHECK_EQ(blitz_binary_new(3 << 20, &cargo.binary), 0);
    memset(blitz_binary_bytes(cargo.binary), 1, 3 << 20);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(
            blitz_actor_send_with(there, T_BLOB, &(struct t_sum){0}, sizeof(struct t_sum), &cargo),
            0);
    add.n = 0;
    CHECK_EQ(blitz_actor_send(there, T_ADD, &add, sizeof add), 0);
    sum += 10 * (3 << 20);
    CHECK_EQ(t_receive_sum(w.node), sum);
    blitz_binary_unref(cargo.binary);
    for (size_t size = 1 << 20; size <= 64 << 20; size *= 64) { /* 1 MB and 64 MB */
        CHECK_EQ(blitz_binary_new(size, &cargo.binary), 0);
        memset(blitz_binary_bytes(cargo.binary), 1, size);
        CHECK_EQ(
            blitz_actor_send_with(there, T_BLOB, &(struct t_sum){0}, sizeof(struct t_sum), &cargo),
            0);
        CHECK_EQ(blitz_actor_send(there, T_ADD, &add, sizeof add), 0);
        sum += (int64_t)size;
        CHECK_EQ(t_receive_sum(w.node), sum);
        blitz_binary_unref(cargo.binary);
    }
    CHECK_EQ(blitz_actor_send(there, T_SUM, &(struct t_sum){-1}, sizeof(struct t_sum)), 0);
    end_erlang(p);
    world_stop(&w);
    return 0;
}

TEST_LIMIT(node_erlang, a_process_gets_messages_by_pid_and_by_name, 120)
{
    run(echoes, NULL);
}

static int ticks(void *arg)
{
    struct world w;
    (void)arg;
    world_start(&w, (blitz_node_opts){.tick_ns = 4 * BLITZ_S});
    end_erlang(start_erlang(&w, "ticks"));
    world_stop(&w);
    return 0;
}

/* Both sides say nothing for three times the time after which each would end a silent connection. */
TEST_LIMIT(node_erlang, ticks_keep_a_silent_connection, 120)
{
    run(ticks, NULL);
}

static int restarts(void *arg)
{
    struct world w;
    blitz_node *other;
    (void)arg;
    world_start(&w, (blitz_node_opts){0});
    CHECK_EQ(start_node(&w, blitz_name, (blitz_node_opts){0}, &other), -EEXIST);
    uint32_t creation = t_info(w.node).creation;
    stop_epmd(&w);
    CHECK_EQ(start_node(&w, "other@localhost", (blitz_node_opts){0}, &other), -ECONNREFUSED);
    start_epmd(&w);
    while (t_info(w.node).registered < 2)
        CHECK_EQ(blitz_sleep(10 * BLITZ_MS), 0);
    CHECK_EQ(t_info(w.node).creation, creation);
    CHECK_EQ(start_node(&w, "other@localhost", (blitz_node_opts){0}, &other), 0);
    CHECK_EQ(blitz_node_connect(other, blitz_name, t_soon()), 0);
    CHECK_EQ(blitz_node_connect(other, "nobody@localhost", t_soon()), -EHOSTUNREACH);
    blitz_node_stop(other);
    world_stop(&w);
    return 0;
}

TEST_LIMIT(node_erlang, a_node_registers_again_when_epmd_restarts, 120)
{
    run(restarts, NULL);
}

/* ---- links and monitors ---- */

enum { MAKE = 1, MADE, FINISH, WATCH, WATCHING, TOLD };

struct one_id {
    blitz_actor_id id;
};
struct watch {
    blitz_actor_id whom, tell;
};
struct told {
    int64_t kind;
    char text[BLITZ_EXIT_TEXT_MAX];
};

BLITZ_TERM_STRUCT(make_term, struct one_id, "make", BLITZ_TERM_ID(struct one_id, id));
BLITZ_TERM_STRUCT(made_term, struct one_id, "made", BLITZ_TERM_ID(struct one_id, id));
BLITZ_TERM_STRUCT(finish_term, struct t_sum, "finish", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(watch_term, struct watch, "watch", BLITZ_TERM_ID(struct watch, whom),
                  BLITZ_TERM_ID(struct watch, tell));
BLITZ_TERM_STRUCT(watching_term, struct t_sum, "watching", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(told_term, struct told, "told", BLITZ_TERM_INT(struct told, kind),
                  BLITZ_TERM_TEXT(struct told, text));
static const blitz_term_message relate_messages[] = {
    {MAKE, &make_term, NULL},   {MADE, &made_term, NULL},         {FINISH, &finish_term, NULL},
    {WATCH, &watch_term, NULL}, {WATCHING, &watching_term, NULL}, {TOLD, &told_term, NULL}};

BLITZ_HANDLER(on_finish, struct watch, struct t_sum)
{
    (void)state;
    return data->n == 0 ? BLITZ_ACTOR_STOP : blitz_actor_fail((int)data->n, "by wish");
}

BLITZ_HANDLER(on_watch, struct watch, struct watch)
{
    uint64_t ref;
    struct t_sum rc = {blitz_actor_monitor(data->whom, &ref)};
    *state = *data;
    CHECK_EQ(blitz_actor_send(data->tell, WATCHING, &rc, sizeof rc), 0);
    return 0;
}

BLITZ_HANDLER(on_down, struct watch, blitz_down)
{
    struct told t = {.kind = data->reason.kind};
    memcpy(t.text, data->reason.text, sizeof t.text);
    CHECK(blitz_actor_id_equal(data->who, state->whom));
    CHECK_EQ(blitz_actor_send(state->tell, TOLD, &t, sizeof t), 0);
    return 0;
}

BLITZ_HANDLER(on_make, struct watch, struct one_id)
{
    static const blitz_handler handlers[] = {BLITZ_ON(FINISH, struct t_sum, on_finish),
                                             BLITZ_ON(WATCH, struct watch, on_watch),
                                             BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_down)};
    static const blitz_behaviour victim = {.name = "victim",
                                           .state_bytes = sizeof(struct watch),
                                           .handlers = handlers,
                                           .handler_count = 3,
                                           .messages = relate_messages,
                                           .message_count = BZ_ARRAY_LEN(relate_messages)};
    struct one_id made;
    (void)state;
    (void)blitz_actor_unregister(NULL, "victim");
    CHECK_EQ(blitz_actor_spawn(&victim, NULL, &(blitz_actor_opts){.name = "victim"}, &made.id), 0);
    CHECK_EQ(blitz_actor_send(data->id, MADE, &made, sizeof made), 0);
    return 0;
}

static int relates(void *arg)
{
    static const blitz_handler handlers[] = {BLITZ_ON(MAKE, struct one_id, on_make)};
    static const blitz_behaviour maker = {.state_bytes = sizeof(struct watch),
                                          .handlers = handlers,
                                          .handler_count = 1,
                                          .messages = relate_messages,
                                          .message_count = BZ_ARRAY_LEN(relate_messages)};
    struct world w;
    blitz_actor_id id;
    (void)arg;
    world_start_with(&w, relate_messages, BZ_ARRAY_LEN(relate_messages));
    CHECK_EQ(blitz_actor_spawn(&maker, NULL, &(blitz_actor_opts){.name = "maker"}, &id), 0);
    end_erlang(start_erlang(&w, "relate"));
    CHECK_EQ(t_info(w.node).broken, 0u);
    CHECK_EQ(blitz_actor_stop(id), 0);
    world_stop(&w);
    return 0;
}

TEST_LIMIT(node_erlang, links_monitors_and_exits_work_both_ways_with_their_reasons, 120)
{
    run(relates, NULL);
}

/* ---- calls ---- */

enum { ASK = 20, FLUSH, ASK_HELPER, LEAVE };

struct ask {
    int64_t n, how;
};
struct leave {
    char node[32];
};

BLITZ_TERM_STRUCT(ask_term, struct ask, "ask", BLITZ_TERM_INT(struct ask, n),
                  BLITZ_TERM_INT(struct ask, how));
BLITZ_TERM_EMPTY(flush_term, "flush");
BLITZ_TERM_STRUCT(answer_term, struct t_sum, "answer", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(leave_term, struct leave, "leave", BLITZ_TERM_ATOM(struct leave, node));
static const blitz_term_message call_messages[] = {
    {ASK, &ask_term, &answer_term}, {FLUSH, &flush_term, NULL}, {LEAVE, &leave_term, NULL}};

enum { KEPT_MAX = 64 };

struct server {
    blitz_actor_id helper;
    unsigned kept;
    blitz_reply_to to[KEPT_MAX];
    int64_t n[KEPT_MAX];
};
struct help {
    blitz_reply_to to;
    int64_t n;
};

static int answer(blitz_reply_to to, int64_t n)
{
    return blitz_actor_reply(to, &(struct t_sum){2 * n}, sizeof(struct t_sum));
}

BLITZ_HANDLER(on_help, void, struct help)
{
    (void)state, (void)m;
    return answer(data->to, data->n);
}

/* The same ways as those of the gen_server in peer.escript. */
BLITZ_HANDLER(on_ask, struct server, struct ask)
{
    struct help help = {m->reply, data->n};
    switch (data->how) {
    case 1: /* at the next flush */
        CHECK_LT(state->kept, KEPT_MAX);
        state->to[state->kept] = m->reply;
        state->n[state->kept++] = data->n;
        return blitz_actor_reply_keep(m->reply);
    case 2:
        return blitz_actor_send(state->helper, ASK_HELPER, &help, sizeof help);
    case 3:
        return blitz_actor_reply_error(m->reply, -EBUSY);
    case 4:
        return blitz_actor_fail(7, "by wish");
    case 5:
        return 0;
    default:
        return answer(m->reply, data->n);
    }
}

BLITZ_HANDLER(on_flush, struct server, void)
{
    for (unsigned i = 0; i < state->kept; i++)
        CHECK_EQ(answer(state->to[i], state->n[i]), 0);
    state->kept = 0;
    return blitz_actor_reply(m->reply, NULL, 0);
}

static const blitz_handler helper_handlers[] = {BLITZ_ON(ASK_HELPER, struct help, on_help)};
static const blitz_behaviour helper = {.handlers = helper_handlers, .handler_count = 1};
static const blitz_handler server_handlers[] = {BLITZ_ON(ASK, struct ask, on_ask),
                                                BLITZ_ON_EMPTY(FLUSH, on_flush)};
static const blitz_behaviour server = {.name = "server",
                                       .state_bytes = sizeof(struct server),
                                       .handlers = server_handlers,
                                       .handler_count = 2,
                                       .messages = call_messages,
                                       .message_count = BZ_ARRAY_LEN(call_messages)};

static blitz_actor_id start_server(blitz_actor_id helps)
{
    struct server state = {.helper = helps};
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&server, &state, &(blitz_actor_opts){.name = "server"}, &id), 0);
    return id;
}

/* {double, N}: any term, answered with a term. */
BLITZ_HANDLER(on_any, void, void)
{
    blitz_term term;
    int64_t n = 0;
    unsigned char buf[64];
    size_t bytes;
    blitz_term_out out;
    (void)state;
    CHECK_EQ(blitz_term_check(blitz_binary_data(m->binary), blitz_binary_size(m->binary), NULL,
                              &term, NULL),
             0);
    blitz_term_in in = blitz_term_in_of(term);
    CHECK_EQ(blitz_term_get_this_tuple(&in, 2), 0);
    CHECK_EQ(blitz_term_skip(&in), 0);
    CHECK_EQ(blitz_term_get_int(&in, &n), 0);
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_tuple(&out, 2);
    blitz_term_put_atom(&out, "double");
    blitz_term_put_int(&out, 2 * n);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return blitz_node_reply_term(m->reply, (blitz_term){buf, bytes});
}

static int ask_erlang(blitz_actor_id to, int64_t n, int64_t how, int64_t *got, blitz_deadline until)
{
    struct ask ask = {n, how};
    struct t_sum a = {-1};
    int rc = blitz_actor_call(to, ASK, &ask, sizeof ask, &a, sizeof a, until);
    *got = a.n;
    return rc;
}

struct crowd {
    blitz_actor_id to;
    int64_t n;
};

static int ask_later(void *arg)
{
    struct crowd *c = arg;
    int64_t got;
    CHECK_EQ(ask_erlang(c->to, c->n, 1, &got, t_soon()), (int)sizeof(struct t_sum));
    CHECK_EQ(got, 2 * c->n);
    return 0;
}

/* Call the gen_server in each way, and end it in a call. */
static void call_erlang(struct world *w, blitz_actor_id to)
{
    int64_t got;
    static const int64_t ways[] = {0, 1, 2, 6};
    struct t_sum sum;
    for (int64_t i = 0; i < 40; i++) {
        CHECK_EQ(ask_erlang(to, i, ways[i % 4], &got, t_soon()), (int)sizeof(struct t_sum));
        CHECK_EQ(got, 2 * i);
    }
    struct crowd c[20];
    blitz_task *t[20];
    for (int64_t i = 0; i < 20; i++) {
        c[i] = (struct crowd){to, i};
        t[i] = t_spawn(ask_later, &c[i]);
    }
    for (int i = 0; i < 20; i++)
        t_join(t[i]);
    CHECK_EQ(ask_erlang(to, 0, 3, &got, t_soon()), -EBUSY);
    CHECK_EQ(ask_erlang(to, 0, 7, &got, t_soon()), -EPROTO);
    CHECK_EQ(ask_erlang(to, 0, 5, &got, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    struct ask ask = {4, 0};
    CHECK_EQ(blitz_node_call_name(w->node, "calc", w->erlang, ASK, &ask, sizeof ask, &sum,
                                  sizeof sum, t_soon()),
             (int)sizeof sum);
    CHECK_EQ(sum.n, 8);
    CHECK_EQ(blitz_node_call_name(w->node, "nobody", w->erlang, ASK, &ask, sizeof ask, &sum,
                                  sizeof sum, t_soon()),
             -ESRCH);
    CHECK_EQ(blitz_node_call_name(w->node, "calc", w->erlang, FLUSH, NULL, 0, NULL, 0, t_soon()),
             0);
    /* the monitor of each call is gone but that of this one */
    CHECK_EQ(ask_erlang(to, 0, 8, &got, t_soon()), (int)sizeof(struct t_sum));
    CHECK_EQ(got, 1);
    CHECK_EQ(ask_erlang(to, 0, 4, &got, t_soon()), -ESRCH);
    CHECK_EQ(ask_erlang(to, 0, 0, &got, t_soon()), -ESRCH);
}

/* Start the server again when it has died, and answer ok. */
BLITZ_HANDLER(on_restart, blitz_actor_id, void)
{
    while (blitz_actor_whereis(NULL, "server").generation != 0)
        blitz_yield();
    (void)start_server(*state);
    return blitz_actor_reply(m->reply, NULL, 0);
}

static int calls(void *arg)
{
    static const blitz_handler any_handlers[] = {BLITZ_ON_EMPTY(BLITZ_MSG_TERM, on_any)};
    static const blitz_behaviour any = {.handlers = any_handlers, .handler_count = 1};
    static const blitz_handler restart_handlers[] = {BLITZ_ON_EMPTY(BLITZ_MSG_TERM, on_restart)};
    static const blitz_behaviour restart = {
        .state_bytes = sizeof(blitz_actor_id), .handlers = restart_handlers, .handler_count = 1};
    struct world w;
    blitz_actor_id ids[3];
    _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
    const blitz_msg *m;
    struct t_add add;
    (void)arg;
    world_start_with(&w, call_messages, BZ_ARRAY_LEN(call_messages));
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "tester"}, NULL), 0);
    CHECK_EQ(blitz_actor_spawn(&helper, NULL, NULL, &ids[0]), 0);
    CHECK_EQ(blitz_actor_spawn(&any, NULL, &(blitz_actor_opts){.name = "any"}, &ids[1]), 0);
    CHECK_EQ(blitz_actor_spawn(&restart, &ids[0], &(blitz_actor_opts){.name = "restart"}, &ids[2]),
             0);
    (void)start_server(ids[0]);
    blitz_process *p = start_erlang(&w, "call");
    const blitz_term_message *row = t_receive(w.node, payload, &m);
    CHECK(row != NULL && row->what == T_ADD);
    memcpy(&add, payload, sizeof add);
    call_erlang(&w, add.from);
    /* the connection goes in the call */
    row = t_receive(w.node, payload, &m);
    CHECK(row != NULL && row->what == T_ADD);
    memcpy(&add, payload, sizeof add);
    struct leave leave = {"blitz@localhost"};
    CHECK_EQ(blitz_actor_call(add.from, LEAVE, &leave, sizeof leave, NULL, 0, t_soon()), -ENOTCONN);
    CHECK_EQ(blitz_actor_kill(add.from), 0);
    end_erlang(p);
    CHECK_EQ(t_info(w.node).broken, 0u);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_actor_stop(ids[i]), 0);
    CHECK_EQ(blitz_actor_stop(blitz_actor_whereis(NULL, "server")), 0);
    world_stop(&w);
    return 0;
}

/* gen_server:call to our actors, and our calls of a gen_server: answers at once, later and by others, errors, ends, timeouts, splits. */
TEST_LIMIT(node_erlang, calls_go_both_ways_as_those_of_gen_server, 120)
{
    run(calls, NULL);
}

/* ---- spawns ---- */

struct job {
    int64_t n;
    blitz_actor_id tell;
};

BLITZ_TERM_TUPLE(job_args, struct job, BLITZ_TERM_INT(struct job, n),
                 BLITZ_TERM_ID(struct job, tell));

static int job_init(void *state)
{
    struct job *j = state;
    struct t_sum sum = {2 * j->n};
    if (j->tell.generation != 0)
        CHECK_EQ(blitz_actor_send(j->tell, T_SUM, &sum, sizeof sum), 0);
    return j->n > 0 ? 0 : blitz_actor_fail((int)j->n, "by wish");
}

static const blitz_behaviour job = {
    .name = "job", .state_bytes = sizeof(struct job), .init = job_init};
static const blitz_node_entry entries[] = {{"jobs", "start", &job, &job_args}};

static void hears_bye(uint32_t what, blitz_actor_id who)
{
    const blitz_msg *m;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
    CHECK_EQ(m->what, what);
    const blitz_down *d = m->data;
    CHECK(blitz_actor_id_equal(d->who, who));
    CHECK_STR_EQ(d->reason.text, "bye");
}

/* erlang:send(Me, {sum, 5}), and erlang:exit(bye) with a monitor and with a link. */
static void spawn_there(struct world *w, blitz_actor_id me)
{
    unsigned char buf[128];
    blitz_term_out out;
    blitz_term_pid pid;
    blitz_actor_id id;
    size_t bytes;
    uint64_t ref;
    CHECK_EQ(blitz_node_pid_of(w->node, me, &pid), 0);
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_list(&out, 2);
    blitz_term_put_pid(&out, &pid);
    CHECK_EQ(blitz_term_put_struct(&out, &t_sum_term, &(struct t_sum){5}, NULL), 0);
    blitz_term_put_nil(&out);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    CHECK_EQ(blitz_node_spawn(w->node, w->erlang, "erlang", "send", (blitz_term){buf, bytes}, NULL,
                              &id, t_soon()),
             0);
    CHECK_EQ(t_receive_sum(w->node), 5);
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_list(&out, 1);
    blitz_term_put_atom(&out, "bye");
    blitz_term_put_nil(&out);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    CHECK_EQ(blitz_node_spawn(w->node, w->erlang, "erlang", "exit", (blitz_term){buf, bytes},
                              &(blitz_node_spawn_opts){.monitor = &ref}, &id, t_soon()),
             0);
    hears_bye(BLITZ_MSG_DOWN, id);
    CHECK(!blitz_actor_trap_exit(true));
    CHECK_EQ(blitz_node_spawn(w->node, w->erlang, "erlang", "exit", (blitz_term){buf, bytes},
                              &(blitz_node_spawn_opts){.link = true}, &id, t_soon()),
             0);
    hears_bye(BLITZ_MSG_EXIT, id);
}

static int spawns(void *arg)
{
    struct world w;
    _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
    blitz_actor_id me;
    const blitz_msg *m;
    struct t_add add;
    (void)arg;
    world_start(&w, (blitz_node_opts){.entries = entries, .entry_count = 1});
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "tester"}, &me), 0);
    blitz_process *p = start_erlang(&w, "spawn");
    const blitz_term_message *row = t_receive(w.node, payload, &m);
    CHECK(row != NULL && row->what == T_ADD);
    memcpy(&add, payload, sizeof add);
    spawn_there(&w, me);
    CHECK_EQ(blitz_actor_send(add.from, T_SUM, &(struct t_sum){-1}, sizeof(struct t_sum)), 0);
    end_erlang(p);
    CHECK_EQ(t_info(w.node).broken, 0u);
    world_stop(&w);
    return 0;
}

/* spawn, spawn_link, spawn_monitor and spawn_request of our entries, and our spawns of Erlang's functions. */
TEST_LIMIT(node_erlang, spawns_go_both_ways_with_links_and_monitors, 120)
{
    run(spawns, NULL);
}

static int supervised(void *arg)
{
    struct world w;
    (void)arg;
    world_start(&w, (blitz_node_opts){.entries = entries, .entry_count = 1});
    end_erlang(start_erlang(&w, "supervise"));
    CHECK_EQ(t_info(w.node).broken, 0u);
    world_stop(&w);
    return 0;
}

/* A supervisor of OTP starts our actor, again whenever it ends, and ends it at last. */
TEST_LIMIT(node_erlang, a_supervisor_of_otp_restarts_our_actor, 120)
{
    run(supervised, NULL);
}

/* ---- our supervisor above a process ---- */

/* The news of the keeper at the peer: a birth, and ends. */
enum { BORN, BY_SHUTDOWN, BY_KILL, BY_NOCONNECTION, BY_ITSELF, NORMALLY, READY = 100 };

static blitz_actor_id child_of(blitz_actor_id sup)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_supervisor_which(sup, "job", &id), 0);
    return id;
}

static void job_is_told(blitz_actor_id id, int64_t n)
{
    CHECK_EQ(blitz_actor_send(id, T_SUM, &(struct t_sum){n}, sizeof(struct t_sum)), 0);
}

static void hears(struct world *w, int64_t what)
{
    t_watch("until %lld is told", (long long)what);
    CHECK_EQ(t_receive_sum(w->node), what);
}

static void supervise_willing(struct world *w, blitz_child_spec *spec)
{
    blitz_supervisor_plan plan = {
        .children = spec, .child_count = 1, .intensity = 100, .backoff = BLITZ_MS};
    blitz_actor_id sup;
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    hears(w, BORN);
    CHECK_EQ(blitz_actor_kill(child_of(sup)), 0);
    hears(w, BY_KILL);
    hears(w, BORN);
    job_is_told(child_of(sup), 9);
    hears(w, BY_ITSELF);
    hears(w, BORN);
    job_is_told(child_of(sup), 8); /* it is permanent */
    hears(w, NORMALLY);
    hears(w, BORN);
    CHECK_EQ(blitz_node_disconnect(w->node, w->erlang), 0);
    int64_t both[2] = {t_receive_sum(w->node), t_receive_sum(w->node)};
    CHECK(both[0] + both[1] == BORN + BY_NOCONNECTION); /* two processes tell: in any order */
    CHECK_EQ(blitz_supervisor_terminate(sup, "job"), 0);
    hears(w, BY_SHUTDOWN);
    CHECK_EQ(blitz_supervisor_restart(sup, "job"), 0);
    hears(w, BORN);
    CHECK_EQ(blitz_actor_stop(sup), 0);
    hears(w, BY_SHUTDOWN);
}

static void supervise_stubborn(struct world *w, blitz_child_spec *spec)
{
    blitz_supervisor_plan plan = {.children = spec, .child_count = 1};
    blitz_actor_id sup;
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    hears(w, BORN);
    CHECK_EQ(blitz_supervisor_terminate(sup, "job"), 0);
    hears(w, BY_KILL);
    CHECK_EQ(blitz_actor_stop(sup), 0);
}

static int supervises(void *arg)
{
    static const unsigned char willing[] = "l\0\0\0\1w\7willingj",
                               stubborn[] = "l\0\0\0\1w\x08stubbornj";
    struct world w;
    blitz_exit_reason why;
    blitz_actor_id id;
    (void)arg;
    world_start(&w, (blitz_node_opts){0});
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "tester"}, NULL), 0);
    blitz_process *p = start_erlang(&w, "supervised");
    CHECK_EQ(t_receive_sum(w.node), READY);
    blitz_node_child child = {.node = w.node,
                              .on_node = w.erlang,
                              .module = "blitz_peer",
                              .function = "job",
                              .args = {willing, sizeof willing - 1}};
    blitz_child_spec spec = {.id = "job",
                             .start = blitz_node_child_start,
                             .start_ctx = &child,
                             .shutdown = 10 * BLITZ_S};
    supervise_willing(&w, &spec);
    child.args = (blitz_term){stubborn, sizeof stubborn - 1};
    spec.shutdown = 50 * BLITZ_MS;
    supervise_stubborn(&w, &spec);
    /* a join hears the reason */
    CHECK_EQ(
        blitz_node_spawn(w.node, w.erlang, "blitz_peer", "job", child.args, NULL, &id, t_soon()),
        0);
    CHECK_EQ(t_receive_sum(w.node), BORN);
    CHECK_EQ(blitz_actor_join(id, &why, 0), -ETIMEDOUT);
    job_is_told(id, 9);
    int rc = blitz_actor_join(id, &why, t_soon());
    CHECK(rc == -ESRCH || (rc == 0 && strcmp(why.text, "{bad,1}") == 0));
    CHECK_EQ(t_receive_sum(w.node), BY_ITSELF);
    CHECK_EQ(blitz_actor_join(id, &why, t_soon()), -ESRCH);
    struct t_sum leave = {-1};
    CHECK_EQ(blitz_node_send_name(w.node, "keeper", w.erlang, T_SUM, &leave, sizeof leave), 0);
    end_erlang(p);
    CHECK_EQ(t_info(w.node).broken, 0u);
    world_stop(&w);
    return 0;
}

TEST_LIMIT(node_erlang, our_supervisor_restarts_and_ends_a_process, 120)
{
    run(supervises, NULL);
}

/* ---- splits ---- */

enum { HELLO = 40, RELATE_TO, RELATED, CHECK_ALL, CHECKED, FINISH_IT, LEAVE_IT };

BLITZ_TERM_STRUCT(hello_term, struct one_id, "hello", BLITZ_TERM_ID(struct one_id, id));
BLITZ_TERM_STRUCT(relate_term, struct one_id, "relate", BLITZ_TERM_ID(struct one_id, id));
BLITZ_TERM_STRUCT(related_term, struct t_sum, "related", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(check_term, struct t_sum, "check", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(checked_term, struct t_sum, "checked", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(end_it_term, struct t_sum, "finish", BLITZ_TERM_INT(struct t_sum, n));
BLITZ_TERM_STRUCT(leave_it_term, struct t_sum, "leave", BLITZ_TERM_INT(struct t_sum, n));
static const blitz_term_message split_messages[] = {
    {HELLO, &hello_term, NULL},       {RELATE_TO, &relate_term, NULL},
    {RELATED, &related_term, NULL},   {CHECK_ALL, &check_term, NULL},
    {CHECKED, &checked_term, NULL},   {FINISH_IT, &end_it_term, NULL},
    {LEAVE_IT, &leave_it_term, NULL}, {T_ADD, &t_add_term, NULL},
    {T_SUM, &t_sum_term, NULL},       {T_BLOB, &t_blob_term, NULL},
    {ASK, &ask_term, &answer_term}};

/* A node of Erlang that is split from us, behind a valve, and one that is not. */
struct split {
    struct world w;
    struct t_valve valve;
    blitz_process *peer, *other;
    blitz_actor_id me, far, server; /* server: of the node that is not split */
    blitz_actor_id victim;          /* ours, to which the peer has relations */
    uint64_t ref;
    uint32_t number; /* of the peer */
    /* messages and events so far */
    unsigned downs, exits, up, down, told;
    int64_t last;    /* of the stream */
    int64_t checked; /* the last answer of the peer */
    bool is_related;
};

/* Our actor hears of the end of its link once, too. */
BLITZ_HANDLER(on_victim_exit, blitz_actor_id, blitz_down)
{
    struct t_sum sum = {data->reason.kind};
    (void)m;
    CHECK_EQ(blitz_actor_send(*state, TOLD, &sum, sizeof sum), 0);
    return 0;
}

static void hear_term(struct split *s, const blitz_msg *m)
{
    _Alignas(16) unsigned char payload[BLITZ_MSG_BYTES_MAX];
    const blitz_term_message *row;
    blitz_term term;
    struct t_sum sum;
    CHECK_EQ(blitz_term_check(blitz_binary_data(m->binary), blitz_binary_size(m->binary), NULL,
                              &term, NULL),
             0);
    blitz_term_in in = blitz_term_in_of(term);
    blitz_term_env env = blitz_node_env(s->w.node);
    CHECK_EQ(blitz_term_get_message(&in, split_messages, BZ_ARRAY_LEN(split_messages), &row,
                                    payload, sizeof payload, &env),
             0);
    if (row->what == T_ADD) {
        struct t_add add;
        memcpy(&add, payload, sizeof add);
        *(add.n == 0 ? &s->far : &s->server) = add.from;
        return;
    }
    memcpy(&sum, payload, sizeof sum);
    CHECK_GT(s->up, s->down); /* nothing comes between two connections */
    if (row->what == T_SUM) {
        CHECK_GT(sum.n, s->last);
        s->last = sum.n;
    } else if (row->what == CHECKED) {
        s->checked = sum.n;
    } else {
        CHECK_EQ(row->what, RELATED);
        s->is_related = true;
    }
}

/* Take one message. False: none came until then. */
static bool hear_one(struct split *s, blitz_deadline until)
{
    const blitz_msg *m;
    int rc = blitz_receive(NULL, NULL, &m, until);
    if (rc == -ETIMEDOUT)
        return false;
    CHECK_EQ(rc, 0);
    if (m->what == BLITZ_MSG_TERM) {
        hear_term(s, m);
    } else if (m->what == BLITZ_MSG_NODE) {
        const blitz_node_event *e = m->data;
        if (e->node != s->number && s->number != 0)
            return true; /* the other node */
        s->up += e->is_up;
        s->down += !e->is_up;
    } else if (m->what == TOLD) {
        CHECK_EQ(((const struct t_sum *)m->data)->n, BLITZ_EXIT_NOCONNECTION);
        s->told++;
    } else {
        const blitz_down *d = m->data;
        CHECK(m->what == BLITZ_MSG_DOWN || m->what == BLITZ_MSG_EXIT);
        CHECK(blitz_actor_id_equal(d->who, s->far));
        CHECK_EQ(d->reason.kind, BLITZ_EXIT_NOCONNECTION);
        s->downs += m->what == BLITZ_MSG_DOWN;
        s->exits += m->what == BLITZ_MSG_EXIT;
    }
    return true;
}

/* The other node of Erlang notices nothing. */
static void other_goes_on(struct split *s)
{
    struct ask ask = {21, 0};
    struct t_sum sum;
    CHECK_EQ(blitz_actor_call(s->server, ASK, &ask, sizeof ask, &sum, sizeof sum, t_soon()),
             (int)sizeof sum);
    CHECK_EQ(sum.n, 42);
}

static void until_connected(struct split *s)
{
    while (blitz_node_connect(s->w.node, s->w.erlang, blitz_after(2 * BLITZ_S)) != 0)
        CHECK_EQ(blitz_sleep(10 * BLITZ_MS), 0);
    while (s->up == s->down)
        CHECK(hear_one(s, t_soon()));
}

static void split_begin(struct split *s)
{
    char port[8];
    blitz_addr listen = blitz_addr_loopback_v4(own_port(PEER_PORT));
    memset(s, 0, sizeof *s);
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "tester", .trap_exit = true}, &s->me),
             0);
    /* the port of the peer is fixed, so that the valve leads there; our node finds it by the valve alone */
    t_valve_start(&s->valve, listen);
    (void)snprintf(s->w.erlang, sizeof s->w.erlang, "split%u@localhost", (unsigned)getpid());
    blitz_node_place place = {s->w.erlang, s->valve.at};
    char name[32];
    memcpy(name, s->w.erlang, sizeof name);
    world_start_as(&s->w, name,
                   (blitz_node_opts){.messages = split_messages,
                                     .message_count = BZ_ARRAY_LEN(split_messages),
                                     .places = &place,
                                     .place_count = 1,
                                     .tick_ns = 2 * BLITZ_S,
                                     .connect_ns = 2 * BLITZ_S,
                                     .queue_high = 1 << 16,
                                     .watcher = s->me});
    (void)snprintf(port, sizeof port, "%u", (unsigned)blitz_addr_port(&listen));
    const char *const args[] = {PEER_ESCRIPT, "split", s->w.erlang, blitz_name, port, NULL};
    s->peer = start_program("escript", args, &s->w, false);
    const char *const others[] = {PEER_ESCRIPT, "bystander", "bystander@localhost", blitz_name,
                                  NULL};
    s->other = start_program("escript", others, &s->w, false);
    while (s->server.generation == 0)
        CHECK(hear_one(s, t_soon()));
    s->up = s->down = 0;
    /* the peer, through the valve */
    blitz_term_pid pid = {blitz_term_atom_of(s->w.erlang), 1, 0, 1};
    blitz_actor_id some;
    CHECK_EQ(blitz_node_id_of(s->w.node, &pid, &some), 0);
    s->number = some.node;
    until_connected(s);
    while (s->far.generation == 0) { /* until it has registered */
        struct one_id hello = {s->me};
        CHECK_EQ(blitz_node_send_name(s->w.node, "split", s->w.erlang, HELLO, &hello, sizeof hello),
                 0);
        (void)hear_one(s, blitz_after(100 * BLITZ_MS));
    }
}

static void to_peer(struct split *s, uint32_t what, const void *data, size_t size)
{
    CHECK_EQ(blitz_node_send_name(s->w.node, "split", s->w.erlang, what, data, size), 0);
}

static void split_end(struct split *s)
{
    to_peer(s, LEAVE_IT, &(struct t_sum){0}, sizeof(struct t_sum));
    CHECK_EQ(blitz_actor_kill(s->server), 0);
    end_erlang(s->peer);
    end_erlang(s->other);
    CHECK_EQ(t_info(s->w.node).broken, 0u);
    t_valve_stop(&s->valve);
    world_stop(&s->w);
}

/* Links and monitors in both directions, over a connection that is there. */
static void split_relate(struct split *s)
{
    static const blitz_handler handlers[] = {BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_victim_exit)};
    static const blitz_behaviour behaviour = {
        .state_bytes = sizeof(blitz_actor_id), .handlers = handlers, .handler_count = 1};
    s->downs = s->exits = s->told = 0;
    s->is_related = false;
    CHECK_EQ(
        blitz_actor_spawn(&behaviour, &s->me, &(blitz_actor_opts){.trap_exit = true}, &s->victim),
        0);
    CHECK_EQ(blitz_actor_monitor(s->far, &s->ref), 0);
    CHECK_EQ(blitz_actor_link(s->far), 0);
    to_peer(s, RELATE_TO, &(struct one_id){s->victim}, sizeof(struct one_id));
    int64_t last = s->last;
    while (!s->is_related || s->last < last + 20)
        CHECK(hear_one(s, t_soon()));
    CHECK_EQ(s->downs + s->exits + s->told, 0u);
}

/* Each relation is told once. Behind that nothing comes until the next connection, which has none of them. */
static void split_heals(struct split *s, unsigned down)
{
    while (s->downs == 0 || s->exits == 0 || s->told == 0 || s->down == down)
        CHECK(hear_one(s, t_soon()));
    other_goes_on(s);
}

static void split_has_healed(struct split *s)
{
    static int64_t number;
    until_connected(s);
    CHECK_EQ(blitz_actor_kill(s->victim), 0);
    number++;
    do {
        to_peer(s, CHECK_ALL, &(struct t_sum){number}, sizeof(struct t_sum));
        (void)hear_one(s, blitz_after(100 * BLITZ_MS));
    } while (s->checked < number);
    CHECK_EQ(blitz_actor_unlink(s->far), 0);
    CHECK_EQ(blitz_actor_demonitor(s->ref), -ESRCH);
    CHECK_EQ(s->downs, 1u);
    CHECK_EQ(s->exits, 1u);
    CHECK_EQ(s->told, 1u);
}

/* Fill the connection with a peer that does not read. Returns when a sender waits in vain. */
static void fill_peer(struct split *s)
{
    enum { TERM = 1 << 15 };
    unsigned char *term = calloc(1, TERM); /* a binary of zeros */
    int rc;
    CHECK_NOT_NULL(term);
    term[0] = 'm';
    bz_wire32_to(term + 1, TERM - 5);
    while ((rc = blitz_node_send_term(s->w.node, s->far, (blitz_term){term, TERM},
                                      blitz_after(20 * BLITZ_MS))) == 0)
        ;
    CHECK_EQ(rc, -ETIMEDOUT);
    while ((rc = blitz_actor_try_send(s->far, T_SUM, &(struct t_sum){1}, sizeof(struct t_sum))) ==
           0)
        ;
    CHECK_EQ(rc, -EAGAIN);
    free(term);
}

static int stopped(void *arg)
{
    struct split s;
    (void)arg;
    split_begin(&s);
    for (int i = 0; i < 2; i++) {
        split_relate(&s);
        unsigned down = s.down;
        CHECK_EQ(blitz_process_signal(s.peer, SIGSTOP), 0);
        if (i == 1)
            fill_peer(&s); /* it does not read */
        other_goes_on(&s);
        split_heals(&s, down);
        CHECK_EQ(blitz_process_signal(s.peer, SIGCONT), 0);
        split_has_healed(&s);
    }
    split_end(&s);
    return 0;
}

/* Two nodes of Erlang. One is stopped, the other goes on. */
TEST_LIMIT(node_erlang, a_peer_that_is_stopped_ends_each_relation_once, 240)
{
    run(stopped, NULL);
}

static int dropped(void *arg)
{
    static const enum t_valve_way ways[][2] = {
        {T_DROP, T_PASS}, {T_PASS, T_DROP}, {T_STAND, T_PASS}, {T_PASS, T_STAND}};
    struct split s;
    (void)arg;
    split_begin(&s);
    for (size_t i = 0; i < BZ_ARRAY_LEN(ways); i++) {
        t_watch("ways %d and %d", (int)ways[i][0], (int)ways[i][1]);
        split_relate(&s);
        unsigned down = s.down;
        t_valve_set(&s.valve, ways[i][0], ways[i][1]);
        split_heals(&s, down);
        t_valve_set(&s.valve, T_PASS, T_PASS);
        split_has_healed(&s);
    }
    split_end(&s);
    return 0;
}

/* Two nodes of Erlang. The way to one of them drops, or is not read, in one direction. */
TEST_LIMIT(node_erlang, a_proxy_that_drops_one_direction_ends_each_relation_once, 240)
{
    run(dropped, NULL);
}
