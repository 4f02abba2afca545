/*
 * cluster.c - a pool of workers that other nodes use: of Erlang, or of blitz.
 *
 * Without arguments two nodes of this program speak to each other over the loopback, without EPMD. With a name and a cookie the pool
 * joins a cluster of Erlang and waits for work:
 *
 *     epmd -daemon
 *     example_cluster serve worker@localhost monster
 *
 *     $ erl -sname shell@localhost -setcookie monster
 *     1> net_adm:ping('worker@localhost').
 *     pong
 *     2> {primes, 'worker@localhost'} ! {count, 1000000, self()}, receive R -> R end.
 *     {primes,1000000,78498}
 *     3> gen_server:call({primes, 'worker@localhost'}, {count, 100, undefined}).
 *     {primes,100,25}
 *
 *     example_cluster
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

enum { COUNT = 1, PRIMES, WORK };
enum { WORKERS = 4 };

struct count {
    int64_t below;
    blitz_actor_id from; /* gets the answer, wherever it is */
};
struct primes {
    int64_t below, found;
};

/* {count, 1000, Pid} and {primes, 1000, 168} */
BLITZ_TERM_STRUCT(count_term, struct count, "count", BLITZ_TERM_INT(struct count, below),
                  BLITZ_TERM_ID(struct count, from));
BLITZ_TERM_STRUCT(primes_term, struct primes, "primes", BLITZ_TERM_INT(struct primes, below),
                  BLITZ_TERM_INT(struct primes, found));
static const blitz_term_message messages[] = {{COUNT, &count_term, &primes_term},
                                              {PRIMES, &primes_term, NULL}};
enum { MESSAGES = sizeof messages / sizeof *messages };

/* ---- the pool: it does not know where a request comes from ---- */

/* A request, as a worker gets it. The answer goes to a caller by its token, or to the id in the request. */
struct work {
    struct count request;
    blitz_reply_to to;
};

static bool is_prime(int64_t n)
{
    for (int64_t i = 2; i * i <= n; i++)
        if (n % i == 0)
            return false;
    return n > 1;
}

BLITZ_HANDLER(on_work, void, struct work)
{
    struct primes answer = {.below = data->request.below};
    (void)state, (void)m;
    for (int64_t n = 0; n < answer.below; n++)
        answer.found += is_prime(n);
    if (data->to.generation != 0) /* a call */
        return blitz_actor_reply(data->to, &answer, sizeof answer);
    (void)blitz_actor_send(data->request.from, PRIMES, &answer, sizeof answer);
    return 0;
}

static const blitz_handler work_handlers[] = {BLITZ_ON(WORK, struct work, on_work)};
static const blitz_behaviour worker = {
    .name = "worker", .handlers = work_handlers, .handler_count = 1};

/* The actor "primes" passes each request on to the next worker. */
struct pool {
    blitz_actor_id worker[WORKERS];
    unsigned next;
};

/* Its workers end when it does. */
static int pool_init(void *state)
{
    struct pool *p = state;
    int rc = 0;
    for (int i = 0; rc == 0 && i < WORKERS; i++)
        rc = blitz_actor_spawn(&worker, NULL, &(blitz_actor_opts){.link = true}, &p->worker[i]);
    return rc;
}

BLITZ_HANDLER(on_count, struct pool, struct count)
{
    struct work work = {*data, m->reply};
    return blitz_actor_send(state->worker[state->next++ % WORKERS], WORK, &work, sizeof work);
}

static const blitz_handler handlers[] = {BLITZ_ON(COUNT, struct count, on_count)};
static const blitz_behaviour pool = {.name = "primes",
                                     .state_bytes = sizeof(struct pool),
                                     .init = pool_init,
                                     .handlers = handlers,
                                     .handler_count = 1,
                                     .messages = messages,
                                     .message_count = MESSAGES};

static int start_pool(blitz_actor_id *id)
{
    return blitz_actor_spawn(&pool, NULL, &(blitz_actor_opts){.name = "primes"}, id);
}

/* ---- a client, on the other node ---- */

static void print_answer(blitz_node *node, const blitz_msg *m)
{
    struct primes answer;
    blitz_term term;
    const blitz_term_message *row;
    blitz_term_env env = blitz_node_env(node);
    if (blitz_term_check(blitz_binary_data(m->binary), blitz_binary_size(m->binary), NULL, &term,
                         NULL) != 0)
        return;
    blitz_term_in in = blitz_term_in_of(term);
    if (blitz_term_get_message(&in, messages, MESSAGES, &row, &answer, sizeof answer, &env) == 0)
        printf("  %lld primes below %lld\n", (long long)answer.found, (long long)answer.below);
}

/* Ask the pool of another node, by its name. The first message connects. */
static int ask(blitz_node *node, const char *on_node)
{
    struct count request = {0, {0, 0, 0, 0}};
    const blitz_msg *m;
    int rc = blitz_receiver_begin(NULL, &request.from);
    for (request.below = 10; rc == 0 && request.below <= 10000; request.below *= 10) {
        rc = blitz_node_send_name(node, "primes", on_node, COUNT, &request, sizeof request);
        if (rc == 0)
            rc = blitz_receive(NULL, NULL, &m, blitz_after(10 * BLITZ_S));
        if (rc == 0 && m->what == BLITZ_MSG_TERM)
            print_answer(node, m);
    }
    return rc;
}

/* The same by a call. */
static int call(blitz_node *node, const char *on_node)
{
    struct count request = {100000, {0, 0, 0, 0}};
    struct primes answer;
    int rc = blitz_node_call_name(node, "primes", on_node, COUNT, &request, sizeof request, &answer,
                                  sizeof answer, blitz_after(10 * BLITZ_S));
    if (rc >= 0)
        printf("  %lld primes below %lld, by a call\n", (long long)answer.found,
               (long long)answer.below);
    return rc < 0 ? rc : 0;
}

static int two_nodes(void *arg)
{
    blitz_node *server, *client;
    blitz_actor_id id;
    blitz_node_opts opts = {.no_epmd = true, .messages = messages, .message_count = MESSAGES};
    (void)arg;
    int rc = start_pool(&id);
    if (rc == 0)
        rc = blitz_node_start("server@localhost", "monster", &opts, &server);
    if (rc != 0)
        return rc;
    blitz_node_info info;
    blitz_node_info_get(server, &info);
    blitz_node_place place = {"server@localhost", blitz_addr_loopback_v4(info.port)};
    opts.places = &place;
    opts.place_count = 1;
    rc = blitz_node_start("client@localhost", "monster", &opts, &client);
    if (rc == 0) {
        printf("client@localhost asks server@localhost:\n");
        rc = ask(client, "server@localhost");
        if (rc == 0)
            rc = call(client, "server@localhost");
        blitz_node_stop(client);
    }
    blitz_node_stop(server);
    (void)blitz_actor_stop(id);
    return rc;
}

/* ---- in a cluster of Erlang ---- */

static int serve(void *arg)
{
    char **argv = arg;
    blitz_node *node;
    blitz_actor_id id;
    blitz_node_opts opts = {.messages = messages, .message_count = MESSAGES};
    int rc = start_pool(&id);
    if (rc == 0)
        rc = blitz_node_start(argv[2], argv[3], &opts, &node);
    if (rc != 0)
        return rc;
    printf("%s is there\n", argv[2]);
    (void)fflush(stdout);
    rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    blitz_node_stop(node);
    return rc;
}

int main(int argc, char **argv)
{
    bool serves = argc == 4 && strcmp(argv[1], "serve") == 0;
    if (argc > 1 && !serves) {
        (void)fprintf(stderr, "usage: %s [serve NAME COOKIE]\n", argv[0]);
        return 2;
    }
    int rc = blitz_run(serves ? serve : two_nodes, argv, NULL);
    if (rc != 0)
        (void)fprintf(stderr, "%s: %s\n", argv[0], strerror(-rc));
    return rc != 0;
}
