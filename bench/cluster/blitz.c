/*
 * Our node beside another one: messages of 64 bytes over the loopback.
 *
 *     bench_cluster blitz CASE ...                another node of blitz, a process of its own
 *     bench_cluster to-erlang FOLDER CASE ...     a node of Erlang, which reads; FOLDER has the compiled module
 *     bench_cluster from-erlang FOLDER CASE ...   a node of Erlang, which sends
 *     bench_cluster alone CASE ...                no node, for local-send
 *     bench_cluster listens CASE ...              no node, but a task that waits at a socket
 *
 * send         messages to one actor of the other node, until that says that it has all: ns a message
 * round-trip   one message there and back: ns
 * local-send   one message between two actors of this process: ns of CPU time
 *
 * Each node has one worker. There is no EPMD: the places are fixed, and Erlang is told the port of its own.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <blitz.h>
#include <blitz/node.h>
#include <blitz/tcp.h>

enum { HELLO = 1, AT, MESSAGE, LAST, DONE, GO, TOKEN, NEXT };
enum {
    BYTES = 64,
    TOKEN_BYTES = 40
}; /* with its id and its count a token has 64, the most of a message */

struct with_id {
    blitz_actor_id id;
};

struct go {
    int64_t count;
    blitz_actor_id to;
};

struct message {
    char data[BYTES];
};

/* A message that goes to and fro. */
struct token {
    blitz_actor_id back;
    int64_t left;
    char data[TOKEN_BYTES];
};

BLITZ_TERM_STRUCT(hello_term, struct with_id, "hello", BLITZ_TERM_ID(struct with_id, id));
BLITZ_TERM_STRUCT(at_term, struct with_id, "at", BLITZ_TERM_ID(struct with_id, id));
BLITZ_TERM_STRUCT(last_term, struct with_id, "last", BLITZ_TERM_ID(struct with_id, id));
BLITZ_TERM_EMPTY(done_term, "done");
BLITZ_TERM_STRUCT(message_term, struct message, "m", BLITZ_TERM_FIXED(struct message, data));
BLITZ_TERM_STRUCT(go_term, struct go, "go", BLITZ_TERM_INT(struct go, count),
                  BLITZ_TERM_ID(struct go, to));
BLITZ_TERM_STRUCT(token_term, struct token, "token", BLITZ_TERM_ID(struct token, back),
                  BLITZ_TERM_INT(struct token, left), BLITZ_TERM_FIXED(struct token, data));

static const blitz_term_message messages[] = {
    {HELLO, &hello_term, NULL}, {AT, &at_term, NULL},     {MESSAGE, &message_term, NULL},
    {LAST, &last_term, NULL},   {DONE, &done_term, NULL}, {GO, &go_term, NULL},
    {TOKEN, &token_term, NULL}};
enum { MESSAGES = sizeof messages / sizeof *messages };

static void must(int rc, const char *what)
{
    if (rc < 0)
        bench_die("%s: error %d", what, rc);
}

/* ---- the actor at each end ---- */

static blitz_notify done = BLITZ_NOTIFY_INIT;
static blitz_actor_id me, far; /* far: the one at the other end */

BLITZ_HANDLER(on_hello, void, struct with_id)
{
    (void)state, (void)m;
    return blitz_actor_send(data->id, AT, &(struct with_id){me}, sizeof(struct with_id));
}

BLITZ_HANDLER(on_at, void, struct with_id)
{
    (void)state, (void)m;
    far = data->id;
    blitz_notify_one(&done);
    return 0;
}

BLITZ_HANDLER(on_message, void, struct message)
{
    (void)state, (void)m, (void)data;
    return 0;
}

/* From the other end, or from Erlang's sender, which asks for no answer. */
BLITZ_HANDLER(on_last, void, struct with_id)
{
    (void)state, (void)m;
    if (data->id.node == 0)
        blitz_notify_one(&done);
    else
        must(blitz_actor_send(data->id, DONE, NULL, 0), "done");
    return 0;
}

BLITZ_HANDLER(on_done, void, void)
{
    (void)state, (void)m, (void)data;
    blitz_notify_one(&done);
    return 0;
}

BLITZ_HANDLER(on_token, void, struct token)
{
    struct token t = *data;
    (void)state, (void)m;
    if (t.left == 0) {
        blitz_notify_one(&done);
        return 0;
    }
    blitz_actor_id to = t.back;
    t.back = me;
    t.left--;
    must(blitz_actor_send(to, TOKEN, &t, sizeof t), "token");
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON(HELLO, struct with_id, on_hello),
                                         BLITZ_ON(AT, struct with_id, on_at),
                                         BLITZ_ON(MESSAGE, struct message, on_message),
                                         BLITZ_ON(LAST, struct with_id, on_last),
                                         BLITZ_ON_EMPTY(DONE, on_done),
                                         BLITZ_ON(TOKEN, struct token, on_token)};

static void start_actor(void)
{
    static const blitz_behaviour b = {.name = "bench",
                                      .handlers = handlers,
                                      .handler_count = 6,
                                      .messages = messages,
                                      .message_count = MESSAGES,
                                      .mailbox_high = 1 << 30,
                                      .mailbox_max = 1 << 30};
    must(blitz_actor_spawn(&b, NULL, &(blitz_actor_opts){.name = "bench"}, &me), "spawn");
}

/* ---- the other node ---- */

static blitz_node_place places[2] = {{.name = "ours@localhost"}, {.name = "other@localhost"}};
static blitz_node *node;

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&at, bytes) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
        bench_die("no port");
    close(fd);
    return ntohs(at.sin_port);
}

static void start_node(int which)
{
    blitz_node_opts opts = {.listen = &places[which].at,
                            .no_epmd = true,
                            .places = places,
                            .place_count = 2,
                            .messages = messages,
                            .message_count = MESSAGES};
    must(blitz_node_start(places[which].name, "bench", &opts, &node), "node");
}

static int be_other(void *arg)
{
    (void)arg;
    start_actor();
    start_node(1);
    return blitz_sleep(3600 * BLITZ_S); /* until it is killed */
}

static blitz_runtime *runtime(void)
{
    blitz_runtime *rt;
    must(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), "runtime");
    return rt;
}

static void exec_erlang(const char *folder)
{
    char port[16];
    snprintf(port, sizeof port, "%u", (unsigned)blitz_addr_port(&places[1].at));
    execlp("erl", "erl", "+S", "1:1", "-noinput", "-kernel", "logger_level", "none", "-start_epmd",
           "false", "-erl_epmd_port", port, "-kernel", "inet_dist_use_interface", "{127,0,0,1}",
           "-sname", "other@localhost", "-setcookie", "bench", "-hidden", "-pa", folder, "-s",
           "bench_cluster", "serve", (char *)NULL);
    bench_die("no erl");
}

static pid_t other;

static void start_other(const char *folder)
{
    for (int i = 0; i < 2; i++)
        places[i].at = blitz_addr_loopback_v4(free_port());
    other = fork();
    if (other != 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (folder != NULL)
        exec_erlang(folder);
    _exit(blitz_runtime_block_on(runtime(), be_other, NULL) != 0);
}

static void end_other(void)
{
    if (other <= 0)
        return;
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
}

/* Connect, when it is there, and ask for the id of its actor. */
static void meet(void)
{
    int rc = -1;
    start_node(0);
    for (int i = 0; i < 500 && rc != 0; i++)
        if ((rc = blitz_node_connect(node, places[1].name, blitz_after(BLITZ_S))) != 0)
            (void)!blitz_sleep(20 * BLITZ_MS);
    must(rc, "connect");
    for (int i = 0; i < 500 && far.generation == 0; i++) {
        must(blitz_node_send_name(node, "bench", places[1].name, HELLO, &(struct with_id){me},
                                  sizeof(struct with_id)),
             "hello");
        (void)!blitz_notify_wait(&done, blitz_after(20 * BLITZ_MS));
    }
    if (far.generation == 0)
        bench_die("no answer");
    (void)!blitz_notify_wait(&done, blitz_after(100 * BLITZ_MS)); /* of a second hello */
}

/* ---- the cases ---- */

static blitz_runtime *rt;
static bool has_other, is_from_erlang, only_listens;
static double result_ns;

/* As a server does that has no connection. */
static int wait_at_socket(void *arg)
{
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp_listener *l;
    blitz_tcp *t;
    (void)arg;
    must(blitz_tcp_listen(&at, NULL, &l), "listen");
    return blitz_tcp_accept(l, &t, NULL,
                            blitz_after(3600 * BLITZ_S)); /* as a connection has its ticks */
}

static int prepare(void *arg)
{
    (void)arg;
    start_actor();
    if (has_other)
        meet();
    if (only_listens) {
        must(blitz_spawn(wait_at_socket, NULL, NULL, NULL), "spawn");
        must(blitz_sleep(BLITZ_MS), "sleep");
    }
    return 0;
}

static int send_all(void *arg)
{
    uint64_t ops = *(uint64_t *)arg, began = bench_now_ns();
    struct message m = {{0}};
    if (is_from_erlang) {
        must(blitz_actor_send(far, GO, &(struct go){(int64_t)ops, me}, sizeof(struct go)), "go");
    } else {
        for (uint64_t i = 0; i < ops; i++)
            must(blitz_actor_send(far, MESSAGE, &m, sizeof m), "send");
        must(blitz_actor_send(far, LAST, &(struct with_id){me}, sizeof(struct with_id)), "last");
    }
    must(blitz_notify_wait(&done, BLITZ_FOREVER), "wait");
    result_ns = (double)(bench_now_ns() - began) / (double)ops;
    return 0;
}

static int go_to_and_fro(void *arg)
{
    uint64_t ops = *(uint64_t *)arg, began = bench_now_ns();
    struct token t = {me, 2 * (int64_t)ops - 1, {0}};
    must(blitz_actor_send(far, TOKEN, &t, sizeof t), "token");
    must(blitz_notify_wait(&done, BLITZ_FOREVER), "wait");
    result_ns = (double)(bench_now_ns() - began) / (double)ops;
    return 0;
}

BLITZ_HANDLER(on_hop, const blitz_actor_id, struct token)
{
    struct token t = *data;
    (void)m;
    if (t.left-- == 0) {
        blitz_notify_one(&done);
        return 0;
    }
    return blitz_actor_send(t.back.generation != 0 ? t.back : *state, TOKEN, &t, sizeof t);
}

BLITZ_HANDLER(on_next, blitz_actor_id, blitz_actor_id)
{
    (void)m;
    *state = *data;
    return 0;
}

/* Between two actors of this process. */
static int stay_here(void *arg)
{
    static const blitz_handler hops[] = {BLITZ_ON(TOKEN, struct token, on_hop),
                                         BLITZ_ON(NEXT, blitz_actor_id, on_next)};
    static const blitz_behaviour b = {.name = "here",
                                      .state_bytes = sizeof(blitz_actor_id),
                                      .handlers = hops,
                                      .handler_count = 2};
    uint64_t ops = *(uint64_t *)arg;
    blitz_actor_id id[2];
    struct token t = {{0, 0, 0, 0}, (int64_t)ops, {0}};
    must(blitz_actor_spawn(&b, NULL, NULL, &id[0]), "spawn");
    must(blitz_actor_spawn(&b, &id[0], NULL, &id[1]), "spawn");
    must(blitz_actor_send(id[0], NEXT, &id[1], sizeof *id), "next");
    uint64_t began = bench_thread_ns();
    must(blitz_actor_send(id[0], TOKEN, &t, sizeof t), "token");
    must(blitz_notify_wait(&done, BLITZ_FOREVER), "wait");
    result_ns = (double)(bench_thread_ns() - began) / (double)ops;
    for (int i = 0; i < 2; i++)
        (void)blitz_actor_stop(id[i]);
    return 0;
}

static double measure(int (*fn)(void *), uint64_t ops)
{
    if (rt == NULL) {
        rt = runtime();
        must(blitz_runtime_block_on(rt, prepare, NULL), "prepare");
    }
    must(blitz_runtime_block_on(rt, fn, &ops), "run");
    return result_ns;
}

static double case_send(uint64_t ops)
{
    return measure(send_all, ops);
}

static double case_round_trip(uint64_t ops)
{
    return measure(go_to_and_fro, ops);
}

static double case_local_send(uint64_t ops)
{
    return measure(stay_here, ops);
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        {"send", case_send}, {"round-trip", case_round_trip}, {"local-send", case_local_send}};
    const char *folder = NULL;
    if (argc < 3)
        return bench_usage(argv[0]);
    only_listens = strcmp(argv[1], "listens") == 0;
    has_other = strcmp(argv[1], "alone") != 0 && !only_listens;
    is_from_erlang = strcmp(argv[1], "from-erlang") == 0;
    int used = 1;
    if (has_other && strcmp(argv[1], "blitz") != 0)
        folder = argv[++used];
    if (argc - used < 2)
        return bench_usage(argv[0]);
    if (has_other && strcmp(argv[used + 1], "--list") != 0)
        start_other(folder);
    int status = bench_main(argc - used, argv + used, cases, 3);
    fflush(stdout);
    end_other();
    return status;
}
