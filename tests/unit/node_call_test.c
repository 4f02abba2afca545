/*
 * Calls between two nodes: the answer, its error, no answer, and what ends a call without one.
 */
#include "harness.h"

#include <pthread.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "node/node.h"
#include "support/node_scene.h"
#include "support/on_each.h"
#include "support/refuse_each.h"

/* ---- a server ---- */

enum { ASK = 1, FLUSH, BLOB, PLAIN, HELPED };
enum how { NOW, LATER, BY_ANOTHER, WITH_ERROR, DIES, NEVER, WAITS, TWICE };

struct ask {
    int64_t n, how;
};
struct number {
    int64_t n;
};

BLITZ_TERM_STRUCT(ask_term, struct ask, "ask", BLITZ_TERM_INT(struct ask, n),
                  BLITZ_TERM_INT(struct ask, how));
BLITZ_TERM_EMPTY(flush_term, "flush");
BLITZ_TERM_STRUCT(blob_term, struct number, "blob", BLITZ_TERM_INT(struct number, n));
BLITZ_TERM_STRUCT(plain_term, struct number, "plain", BLITZ_TERM_INT(struct number, n));
BLITZ_TERM_STRUCT(answer_term, struct number, "answer", BLITZ_TERM_INT(struct number, n));
BLITZ_TERM_STRUCT(bytes_term, struct number, "bytes", BLITZ_TERM_INT(struct number, n),
                  BLITZ_TERM_CARGO());
static const blitz_term_message messages[] = {{ASK, &ask_term, &answer_term},
                                              {FLUSH, &flush_term, NULL},
                                              {BLOB, &blob_term, &bytes_term},
                                              {PLAIN, &plain_term, NULL}};

enum { KEPT_MAX = 64 };

struct server {
    blitz_actor_id helper;
    unsigned kept;
    blitz_reply_to to[KEPT_MAX];
    int64_t n[KEPT_MAX];
};

static int answer(blitz_reply_to to, int64_t n)
{
    return blitz_actor_reply(to, &(struct number){2 * n}, sizeof(struct number));
}

struct help {
    blitz_reply_to to;
    int64_t n;
};

BLITZ_HANDLER(on_help, void, struct help)
{
    (void)state, (void)m;
    return answer(data->to, data->n);
}

BLITZ_HANDLER(on_ask, struct server, struct ask)
{
    struct help help = {m->reply, data->n};
    switch ((enum how)data->how) {
    case LATER:
        CHECK_LT(state->kept, KEPT_MAX);
        CHECK_EQ(blitz_actor_reply_keep(m->reply), 0);
        state->to[state->kept] = m->reply;
        state->n[state->kept++] = data->n;
        return 0;
    case BY_ANOTHER:
        return blitz_actor_send(state->helper, HELPED, &help, sizeof help);
    case WITH_ERROR:
        return blitz_actor_reply_error(m->reply, -EBUSY);
    case DIES:
        return blitz_actor_fail(7, "by wish");
    case NEVER:
        return 0;
    case WAITS:
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
        return answer(m->reply, data->n);
    case TWICE:
        CHECK_EQ(answer(m->reply, data->n), 0);
        return answer(m->reply, -1);
    case NOW:
        break;
    }
    return answer(m->reply, data->n);
}

BLITZ_HANDLER(on_flush, struct server, void)
{
    for (unsigned i = 0; i < state->kept; i++)
        CHECK_EQ(answer(state->to[i], state->n[i]), 0);
    state->kept = 0;
    return blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_blob, struct server, struct number)
{
    blitz_cargo cargo = {NULL, NULL, NULL};
    (void)state;
    CHECK_EQ(blitz_binary_new((size_t)data->n, &cargo.binary), 0);
    memset(blitz_binary_bytes(cargo.binary), 5, (size_t)data->n);
    CHECK_EQ(blitz_actor_reply_with(m->reply, data, sizeof *data, &cargo), 0);
    blitz_binary_unref(cargo.binary);
    return 0;
}

static const blitz_handler helper_handlers[] = {BLITZ_ON(HELPED, struct help, on_help)};
static const blitz_behaviour helper = {.handlers = helper_handlers, .handler_count = 1};
static const blitz_handler server_handlers[] = {BLITZ_ON(ASK, struct ask, on_ask),
                                                BLITZ_ON_EMPTY(FLUSH, on_flush),
                                                BLITZ_ON(BLOB, struct number, on_blob)};
static const blitz_behaviour server = {.name = "server",
                                       .state_bytes = sizeof(struct server),
                                       .handlers = server_handlers,
                                       .handler_count = 3,
                                       .messages = messages,
                                       .message_count = BZ_ARRAY_LEN(messages)};

struct scene {
    struct t_nodes w;
    blitz_actor_id helper, server; /* behind node 1 */
    blitz_actor_id far;            /* the server, as node 0 knows it */
};

static blitz_actor_id as_seen(struct scene *s, blitz_actor_id id)
{
    blitz_term_pid pid;
    blitz_actor_id far;
    CHECK_EQ(blitz_node_pid_of(s->w.node[1], id, &pid), 0);
    CHECK_EQ(blitz_node_id_of(s->w.node[0], &pid, &far), 0);
    return far;
}

static void serve(struct scene *s)
{
    struct server state = {.helper = s->helper};
    CHECK_EQ(blitz_actor_spawn(&server, &state, &(blitz_actor_opts){.name = "server"}, &s->server),
             0);
    s->far = as_seen(s, s->server);
}

static blitz_node_opts opts(void)
{
    return (blitz_node_opts){.messages = messages, .message_count = BZ_ARRAY_LEN(messages)};
}

static void scene_begin(struct scene *s)
{
    t_nodes_start(&s->w, opts());
    CHECK_EQ(blitz_actor_spawn(&helper, NULL, NULL, &s->helper), 0);
    serve(s);
}

static void end(blitz_actor_id id)
{
    (void)blitz_actor_kill(id);
    int rc = blitz_actor_join(id, NULL, t_soon());
    CHECK(rc == 0 || rc == -ESRCH);
}

static void scene_end(struct scene *s)
{
    for (int i = 0; i < 2; i++)
        if (s->w.node[i] != NULL)
            CHECK_EQ(t_info(s->w.node[i]).broken, 0u);
    t_nodes_stop(&s->w);
    end(s->server);
    end(s->helper);
}

static int ask_until(blitz_actor_id to, int64_t n, enum how how, int64_t *got, blitz_deadline until)
{
    struct ask ask = {n, how};
    struct number a = {-1};
    int rc = blitz_actor_call(to, ASK, &ask, sizeof ask, &a, sizeof a, until);
    *got = a.n;
    return rc;
}

static void ask_well(blitz_actor_id to, int64_t n, enum how how)
{
    int64_t got;
    CHECK_EQ(ask_until(to, n, how, &got, t_soon()), (int)sizeof(struct number));
    CHECK_EQ(got, 2 * n);
}

static int ask_badly(blitz_actor_id to, enum how how, blitz_deadline until)
{
    int64_t got;
    int rc = ask_until(to, 1, how, &got, until);
    CHECK_EQ(got, -1);
    return rc;
}

/* ---- answers ---- */

struct later {
    struct scene *s;
    int64_t n;
    enum how how;
};

static int ask_one(void *arg)
{
    struct later *l = arg;
    ask_well(l->s->far, l->n, l->how);
    return 0;
}

static void *ask_on_thread(void *arg)
{
    (void)ask_one(arg);
    return NULL;
}

static int join_thread(void *arg)
{
    return pthread_join(*(pthread_t *)arg, NULL);
}

static size_t owed(struct scene *s, blitz_node *n, const char *by)
{
    struct bz_peer *p;
    (void)s;
    if (bz_peer_get(n, by, strlen(by), false, &p) != 0)
        return 0; /* it has not shaken hands yet */
    bz_peer_lock(p);
    size_t count = p->answer_count;
    bz_peer_unlock(p);
    bz_peer_unref(p);
    return count;
}

static void until_owed(struct scene *s, size_t n)
{
    blitz_deadline until = t_soon();
    while (owed(s, s->w.node[1], t_node_name[0]) != n) {
        CHECK_LT(blitz_now(), until);
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    }
}

static int answers(void *arg)
{
    struct scene s;
    struct number n = {3};
    (void)arg;
    scene_begin(&s);
    for (int64_t i = 0; i < 100; i++)
        ask_well(s.far, i, i % 3 == 0 ? NOW : i % 3 == 1 ? BY_ANOTHER : WAITS);
    ask_well(s.far, 5, TWICE);
    CHECK_EQ(ask_badly(s.far, WITH_ERROR, t_soon()), -EBUSY);
    CHECK_EQ(blitz_actor_call(s.far, FLUSH, NULL, 0, NULL, 0, t_soon()), 0);
    CHECK_EQ(blitz_actor_call(s.far, PLAIN, &n, sizeof n, NULL, 0, t_soon()), -EOPNOTSUPP);
    CHECK_EQ(blitz_actor_call(s.far, HELPED, &n, sizeof n, NULL, 0, t_soon()), -EOPNOTSUPP);
    /* by name */
    struct ask ask = {8, NOW};
    CHECK_EQ(blitz_node_call_name(s.w.node[0], "server", t_node_name[1], ASK, &ask, sizeof ask, &n,
                                  sizeof n, t_soon()),
             (int)sizeof n);
    CHECK_EQ(n.n, 16);
    CHECK_EQ(blitz_node_call_name(s.w.node[0], "nobody", t_node_name[1], ASK, &ask, sizeof ask, &n,
                                  sizeof n, t_soon()),
             -ESRCH);
    /* later: several wait at once, and a plain thread with them */
    struct later l[10];
    blitz_task *t[9];
    pthread_t thread;
    for (int i = 0; i < 10; i++) {
        l[i] = (struct later){&s, 100 + i, LATER};
        if (i < 9)
            t[i] = t_spawn(ask_one, &l[i]);
    }
    CHECK_EQ(pthread_create(&thread, NULL, ask_on_thread, &l[9]), 0);
    until_owed(&s, 10);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
    CHECK_EQ(blitz_actor_call(s.server, FLUSH, NULL, 0, NULL, 0, t_soon()), 0);
    for (int i = 0; i < 9; i++)
        t_join(t[i]);
    CHECK_EQ(blitz_blocking(join_thread, &thread), 0);
    until_owed(&s, 0);
    scene_end(&s);
    return 0;
}

/* At once, later, by another actor, twice, with an error, by name, from tasks and threads. */
TEST_LIMIT(node_call, an_actor_of_another_node_answers, 120)
{
    t_on_each(answers, NULL, 0);
}

static int blobs(void *arg)
{
    static const int64_t sizes[] = {0, 1, 1000, 3 << 20};
    struct scene s;
    (void)arg;
    scene_begin(&s);
    for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++) {
        struct number n = {sizes[i]}, got = {-1};
        blitz_arrival a;
        CHECK_EQ(
            blitz_actor_call_with(s.far, BLOB, &n, sizeof n, NULL, &got, sizeof got, &a, t_soon()),
            (int)sizeof got);
        CHECK_EQ(got.n, n.n);
        CHECK_NOT_NULL(a.binary);
        CHECK_EQ(blitz_binary_size(a.binary), (size_t)n.n);
        const unsigned char *bytes = blitz_binary_data(a.binary);
        CHECK(n.n == 0 || (bytes[0] == 5 && bytes[n.n - 1] == 5));
        blitz_binary_unref(a.binary);
        CHECK_EQ(blitz_actor_call(s.far, BLOB, &n, sizeof n, &got, sizeof got, t_soon()),
                 (int)sizeof got);
    }
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_call, an_answer_carries_a_binary, 120)
{
    t_on_each(blobs, NULL, 0);
}

/* An actor calls in its handler, and by a future. */
BLITZ_HANDLER(on_relay, struct scene *, struct ask)
{
    struct number n = {-1};
    int rc = blitz_actor_call((*state)->far, ASK, data, sizeof *data, &n, sizeof n, t_soon());
    CHECK_EQ(rc, (int)sizeof n);
    blitz_actor_call_future f;
    struct ask again = {n.n, NOW};
    blitz_actor_call_future_init(&f, (*state)->far, ASK, &again, sizeof again, &n, sizeof n);
    CHECK_EQ(blitz_await(&f.future, t_soon()), 0);
    CHECK_EQ(f.result, (int)sizeof n);
    return blitz_actor_reply(m->reply, &n, sizeof n);
}

static int relays(void *arg)
{
    static const blitz_handler handlers[] = {BLITZ_ON(ASK, struct ask, on_relay)};
    static const blitz_behaviour relay = {
        .state_bytes = sizeof(struct scene *), .handlers = handlers, .handler_count = 1};
    struct scene s, *state = &s;
    blitz_actor_id id[8];
    (void)arg;
    scene_begin(&s);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(blitz_actor_spawn(&relay, &state, NULL, &id[i]), 0);
    for (int64_t i = 0; i < 80; i++) {
        struct ask ask = {i, i % 2 == 0 ? NOW : BY_ANOTHER};
        struct number n;
        CHECK_EQ(blitz_actor_call(id[i % 8], ASK, &ask, sizeof ask, &n, sizeof n, t_soon()),
                 (int)sizeof n);
        CHECK_EQ(n.n, 4 * i);
    }
    for (int i = 0; i < 8; i++)
        end(id[i]);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_call, an_actor_calls_in_its_handler_and_by_a_future, 120)
{
    t_on_each(relays, NULL, 0);
}

/* ---- no answer ---- */

static size_t pending(struct scene *s)
{
    size_t n = 0;
    struct bz_peer *p = bz_peer_find(s->far.node);
    CHECK_NOT_NULL(p);
    bz_peer_lock(p);
    for (struct bz_list *l = p->calls.next; l != &p->calls; l = l->next)
        n++;
    bz_peer_unlock(p);
    bz_peer_unref(p);
    return n;
}

struct caller {
    struct scene *s;
    enum how how;
    blitz_task *task;
    int rc;
};

static int call_now(void *arg)
{
    struct caller *c = arg;
    c->rc = ask_badly(c->s->far, c->how, BLITZ_FOREVER);
    return 0;
}

static int call_by_future(void *arg)
{
    struct caller *c = arg;
    blitz_actor_call_future f;
    struct ask ask = {1, c->how};
    struct number n;
    blitz_actor_call_future_init(&f, c->s->far, ASK, &ask, sizeof ask, &n, sizeof n);
    int rc = blitz_await(&f.future, BLITZ_FOREVER);
    c->rc = rc != 0 ? rc : f.result;
    return 0;
}

static void begin_callers(struct scene *s, struct caller *c, int count, enum how how)
{
    for (int i = 0; i < count; i++) {
        c[i] = (struct caller){.s = s, .how = how};
        c[i].task = t_spawn(i % 2 == 0 ? call_now : call_by_future, &c[i]);
    }
    until_owed(s, (size_t)count);
    CHECK_EQ(pending(s), (size_t)count);
}

static void end_callers(struct caller *c, int count, int want)
{
    for (int i = 0; i < count; i++) {
        t_join(c[i].task);
        CHECK_EQ(c[i].rc, want);
    }
}

static int unanswered(void *arg)
{
    struct scene s;
    struct caller c[6];
    (void)arg;
    scene_begin(&s);
    /* the server ends in the call; it is dead before; others wait in its mailbox */
    CHECK_EQ(ask_badly(s.far, DIES, t_soon()), -ESRCH);
    CHECK_EQ(ask_badly(s.far, NOW, t_soon()), -ESRCH);
    end(s.server);
    serve(&s);
    begin_callers(&s, c, 6, LATER);
    CHECK_EQ(blitz_actor_kill(s.server), 0);
    end_callers(c, 6, -ESRCH);
    until_owed(&s, 0);
    /* a deadline and a cancel; then the server owes nothing more */
    serve(&s);
    CHECK_EQ(ask_badly(s.far, NEVER, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    begin_callers(&s, c, 6, NEVER);
    for (int i = 0; i < 6; i++)
        blitz_task_cancel(c[i].task);
    end_callers(c, 6, -ECANCELED);
    until_owed(&s, 0);
    CHECK_EQ(pending(&s), 0u);
    ask_well(s.far, 9, NOW);
    /* the connection */
    for (int i = 0; i < 2; i++) {
        begin_callers(&s, c, 6, LATER);
        CHECK_EQ(blitz_node_disconnect(s.w.node[i], t_node_name[!i]), 0);
        end_callers(c, 6, -ENOTCONN);
        until_owed(&s, 0);
        CHECK_EQ(blitz_actor_call(s.server, FLUSH, NULL, 0, NULL, 0, t_soon()), 0); /* too late */
        ask_well(s.far, 10, NOW);
    }
    begin_callers(&s, c, 6, LATER);
    blitz_node_stop(s.w.node[1]);
    s.w.node[1] = NULL;
    end_callers(c, 6, -ENOTCONN);
    CHECK_EQ(ask_badly(s.far, NOW, t_soon()), -ENOTCONN);
    scene_end(&s);
    return 0;
}

/* The end of the process, a deadline, a cancel, a lost connection and the stop of a node. */
TEST_LIMIT(node_call, a_call_ends_without_an_answer_in_each_way, 120)
{
    t_on_each(unanswered, NULL, 0);
}

static int stopped(void *arg)
{
    struct scene s;
    struct caller c[6];
    (void)arg;
    scene_begin(&s);
    begin_callers(&s, c, 6, NEVER);
    blitz_node_stop(s.w.node[0]);
    s.w.node[0] = NULL;
    end_callers(c, 6, -ENOTCONN);
    CHECK_EQ(ask_badly(s.far, NOW, t_soon()), -ESRCH);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_call, the_stop_of_a_node_ends_its_calls, 120)
{
    t_on_each(stopped, NULL, 0);
}

/* An answer that comes after the deadline is dropped, and the next call gets its own. */
static int late(void *arg)
{
    struct scene s;
    (void)arg;
    scene_begin(&s);
    for (int64_t i = 0, n = (int64_t)t_scaled(300); i < n; i++) {
        int64_t got;
        int rc = ask_until(s.far, i, WAITS, &got, blitz_after((uint64_t)(i % 20) * BLITZ_MS / 10));
        CHECK(rc == -ETIMEDOUT || (rc == (int)sizeof(struct number) && got == 2 * i));
        ask_well(s.far, 1000 + i, NOW);
    }
    until_owed(&s, 0);
    CHECK_EQ(pending(&s), 0u);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_call, a_late_answer_is_dropped, 120)
{
    t_on_each(late, NULL, 0);
}

/* ---- terms ---- */

static blitz_term term_of(int64_t n, unsigned char *buf, size_t cap)
{
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, buf, cap);
    blitz_term_put_tuple(&out, 2);
    blitz_term_put_atom(&out, "double");
    blitz_term_put_int(&out, n);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return (blitz_term){buf, bytes};
}

BLITZ_HANDLER(on_term, void, void)
{
    blitz_term term;
    int64_t n = 0;
    unsigned char buf[64];
    (void)state;
    CHECK_EQ(blitz_term_check(blitz_binary_data(m->binary), blitz_binary_size(m->binary), NULL,
                              &term, NULL),
             0);
    blitz_term_in in = blitz_term_in_of(term);
    CHECK(m->reply.generation != 0);
    if (blitz_term_get_this_tuple(&in, 2) != 0 || blitz_term_skip(&in) != 0 ||
        blitz_term_get_int(&in, &n) != 0)
        return blitz_actor_reply(m->reply, NULL, 0);
    return blitz_node_reply_term(m->reply, term_of(2 * n, buf, sizeof buf));
}

static int terms(void *arg)
{
    static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(BLITZ_MSG_TERM, on_term)};
    static const blitz_behaviour any = {.handlers = handlers, .handler_count = 1};
    struct scene s;
    blitz_actor_id id;
    blitz_binary *reply;
    unsigned char buf[64], want[64];
    (void)arg;
    scene_begin(&s);
    CHECK_EQ(blitz_actor_spawn(&any, NULL, &(blitz_actor_opts){.name = "any"}, &id), 0);
    for (int64_t i = 0; i < 20; i++) {
        blitz_term request = term_of(i, buf, sizeof buf),
                   expected = term_of(2 * i, want, sizeof want);
        int rc = i % 2 == 0 ? blitz_node_call_name_term(s.w.node[0], "any", t_node_name[1], request,
                                                        &reply, t_soon())
                            : blitz_node_call_term(s.w.node[0], as_seen(&s, id), request, &reply,
                                                   t_soon());
        CHECK_EQ(rc, 0);
        CHECK_EQ(blitz_binary_size(reply), expected.bytes + 1);
        CHECK_MEM_EQ((const unsigned char *)blitz_binary_data(reply) + 1, expected.data,
                     expected.bytes);
        blitz_binary_unref(reply);
    }
    /* a reply that the row does not know */
    struct ask ask = {1, NOW};
    CHECK_EQ(blitz_actor_call(as_seen(&s, id), ASK, &ask, sizeof ask, NULL, 0, t_soon()), -EPROTO);
    end(id);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_call, requests_and_replies_may_be_any_terms, 120)
{
    t_on_each(terms, NULL, 0);
}

/* ---- many ---- */

static int ask_many(void *arg)
{
    struct scene *s = arg;
    for (int64_t i = 0, n = (int64_t)t_scaled(100); i < n; i++)
        ask_well(s->far, i, i % 2 == 0 ? NOW : BY_ANOTHER);
    return 0;
}

static int crowds(void *arg)
{
    struct scene s;
    blitz_task *t[50];
    (void)arg;
    scene_begin(&s);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        t[i] = t_spawn(ask_many, &s);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        t_join(t[i]);
    until_owed(&s, 0);
    CHECK_EQ(pending(&s), 0u);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_call, a_crowd_of_callers_gets_each_its_own_answer, 120)
{
    t_on_each(crowds, NULL, 0);
}

/* ---- without memory ---- */

static int life(void *arg)
{
    struct t_nodes w;
    struct ask ask = {4, NOW};
    struct number n = {0};
    blitz_node_opts o = opts();
    blitz_actor_id id;
    (void)arg;
    o.connect_ns = 500 * BLITZ_MS;
    t_nodes_places(&w);
    int rc = blitz_actor_spawn(&server, NULL, &(blitz_actor_opts){.name = "server"}, &id);
    if (rc != 0)
        return rc;
    rc = t_node_start(&w, 0, T_COOKIE, o);
    if (rc == 0)
        rc = t_node_start(&w, 1, T_COOKIE, o);
    if (rc == 0)
        rc = blitz_node_call_name(w.node[0], "server", t_node_name[1], ASK, &ask, sizeof ask, &n,
                                  sizeof n, blitz_after(500 * BLITZ_MS));
    if (rc > 0)
        CHECK_EQ(n.n, 8);
    t_nodes_stop(&w);
    (void)blitz_actor_kill(id);
    while (blitz_actor_is_alive(id))
        blitz_yield();
    return rc > 0 ? 0 : -ENOMEM;
}

/* A call without memory fails, or times out if it is the other side that has none. */
TEST_LIMIT(node_call, without_memory_a_call_fails_and_leaves_nothing, 240)
{
    t_refuse_each(life, NULL, false);
    t_refuse_each(life, NULL, true);
}
