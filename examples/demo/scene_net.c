/*
 * scene_net.c - ten thousand connections, open at the same time, both ends in this process.
 *
 * Twenty thousand fibers: one at each end of each connection. The clients connect, a few hundred at
 * a time so that no connect must be repeated. When the last one is connected, all of them send at
 * once, and each checks the echo.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <blitz.h>

#include "demo.h"

enum { CONNECTIONS = 10000, ROUNDS = 2, BYTES = 64, AT_ONCE = 500, FILES_BESIDE = 100 };

struct net {
    blitz_tcp_listener *listener;
    blitz_addr at;
    uint64_t count;
    blitz_semaphore turns; /* to connect */
    blitz_latch arrived;   /* opens when all clients are connected */
    _Atomic uint64_t connected, failed, said, wrong;
    _Atomic bool is_done;
    _Atomic int error; /* the first with which a connect, a spawn or the accept loop failed */
    const char *_Atomic what; /* that call */
};

static void note_error(struct net *net, const char *what, int error)
{
    int none = 0;
    if (error != 0 && atomic_compare_exchange_strong(&net->error, &none, error))
        net->what = what;
}

static int echo(void *arg)
{
    blitz_tcp *t = arg;
    char buffer[BYTES];
    int64_t n;
    while ((n = blitz_tcp_read(t, buffer, sizeof buffer, BLITZ_FOREVER)) > 0)
        if (blitz_tcp_write_all(t, buffer, (size_t)n, NULL, BLITZ_FOREVER) != 0)
            break;
    blitz_tcp_close(t);
    return 0;
}

static int accept_all(void *arg)
{
    struct net *net = arg;
    blitz_tcp *t;
    int rc;
    while ((rc = blitz_tcp_accept(net->listener, &t, NULL, BLITZ_FOREVER)) == 0)
        if ((rc = blitz_spawn(echo, t, NULL, NULL)) != 0) {
            note_error(net, "a spawn", rc);
            blitz_tcp_close(t);
        }
    if (!net->is_done)
        note_error(net, "accept", rc);
    blitz_tcp_listener_unref(net->listener); /* its own reference: the other is closed meanwhile */
    return 0;
}

static bool say(blitz_tcp *t, uint64_t number)
{
    uint64_t said[BYTES / sizeof(uint64_t)], heard[BYTES / sizeof(uint64_t)];
    for (size_t i = 0; i < BYTES / sizeof(uint64_t); i++)
        said[i] = number + i;
    return blitz_tcp_write_all(t, said, sizeof said, NULL, BLITZ_FOREVER) == 0 &&
           blitz_tcp_read_exact(t, heard, sizeof heard, NULL, BLITZ_FOREVER) == 0 &&
           memcmp(said, heard, sizeof said) == 0;
}

static int client(void *arg)
{
    struct net *net = arg;
    blitz_tcp *t = NULL;
    int turn = blitz_semaphore_acquire(&net->turns, 1, BLITZ_FOREVER);
    int rc = turn == 0 ? blitz_tcp_connect(&net->at, &t, BLITZ_FOREVER) : turn;
    note_error(net, "connect", rc);
    bool is_there = rc == 0 && say(t, 0); /* served, not merely connected */
    if (turn == 0)
        blitz_semaphore_release(&net->turns, 1);
    /* before `connected`: the task that waits for all clients reads it then */
    net->failed += !is_there;
    uint64_t number = atomic_fetch_add(&net->connected, 1);
    blitz_latch_count_down(&net->arrived, 1);
    is_there = blitz_latch_wait(&net->arrived, BLITZ_FOREVER) == 0 && is_there;
    for (int i = 0; is_there && i < ROUNDS; i++) {
        net->wrong += !say(t, number << 16 | (uint64_t)i);
        net->said++;
    }
    if (rc == 0) {
        blitz_tcp_set_linger(t, 0); /* a reset: nothing of this is to linger */
        blitz_tcp_close(t);
    }
    return 0;
}

/* As many connections as there may be open files; this process has both ends. */
static uint64_t connections_of(struct demo *d)
{
    struct rlimit files;
    uint64_t count = demo_scaled(d, CONNECTIONS);
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < 2 * CONNECTIONS + FILES_BESIDE) {
        struct rlimit more = {2 * CONNECTIONS + FILES_BESIDE, 2 * CONNECTIONS + FILES_BESIDE};
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            files = more;
    }
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
    uint64_t room = files.rlim_cur > FILES_BESIDE ? (files.rlim_cur - FILES_BESIDE) / 2 : 1;
    if (count <= room)
        return count;
    demo_result(d, "only %s connections: this process may have %s open files", demo_count(room),
                demo_count(files.rlim_cur));
    return room;
}

struct seat {
    blitz_task *task; /* NULL: none */
};

static int run(void *arg)
{
    struct net *net = arg;
    blitz_task *accepts;
    struct seat *clients = calloc(net->count, sizeof *clients);
    int rc = clients == NULL ? -1 : blitz_tcp_listen(&net->at, NULL, &net->listener);
    if (rc == 0)
        blitz_tcp_listener_ref(net->listener); /* for accept_all */
    if (rc != 0 || (rc = blitz_tcp_listener_local(net->listener, &net->at)) != 0 ||
        (rc = blitz_spawn(accept_all, net, NULL, &accepts)) != 0) {
        free(clients);
        net->failed += net->count; /* before `connected`, which lets the others continue */
        net->connected += net->count;
        return rc;
    }
    for (uint64_t i = 0; i < net->count; i++)
        if (blitz_spawn(client, net, NULL, &clients[i].task) != 0) {
            net->failed++;
            net->connected++;
            blitz_latch_count_down(&net->arrived, 1);
        }
    for (uint64_t i = 0; i < net->count; i++)
        if (clients[i].task != NULL)
            blitz_task_join(clients[i].task, NULL, BLITZ_FOREVER);
    net->is_done = true;
    blitz_tcp_listener_close(net->listener);
    blitz_task_join(accepts, NULL, BLITZ_FOREVER);
    free(clients);
    return 0;
}

static void report(struct demo *d, struct net *net, double connect_s, double talk_s)
{
    uint64_t said = net->said;
    demo_claim(d, net->failed == 0, "%s connections failed, the first error: %s by %s",
               demo_count(net->failed), strerror(-net->error),
               net->what != NULL ? net->what : "a peer");
    demo_claim(d, net->wrong == 0, "%s messages came back wrong", demo_count(net->wrong));
    demo_result(d, "%s connections, %s fibers: open within %.2f s", demo_count(net->count),
                demo_count(2 * net->count), connect_s);
    demo_result(d, "%s messages there and back, %.1f us each", demo_count(said),
                said == 0 ? 0 : talk_s * 1e6 / (double)said);
}

static void play(struct demo *d)
{
    struct net net = {.at = blitz_addr_loopback_v4(0), .count = connections_of(d)};
    blitz_runtime *rt;
    blitz_task *t;
    int rc = 0;
    blitz_semaphore_init(&net.turns, AT_ONCE);
    blitz_latch_init(&net.arrived, (uint32_t)net.count);
    if (blitz_runtime_new(NULL, &rt) != 0) {
        demo_claim(d, false, "no runtime");
        return;
    }
    double began = demo_seconds();
    blitz_spawn_opts opts = {.runtime = rt};
    if (blitz_spawn(run, &net, &opts, &t) == 0) {
        demo_watch(d, &net.connected, net.count, "connections");
        double connected = demo_seconds();
        demo_watch(d, &net.said, (net.count - net.failed) * ROUNDS, "messages");
        double ended = demo_seconds();
        blitz_task_join(t, &rc, BLITZ_FOREVER);
        demo_claim(d, rc == 0, "no server: error %d", -rc);
        report(d, &net, connected - began, ended - connected);
    }
    blitz_runtime_shutdown(rt, BLITZ_FOREVER);
    (void)!blitz_runtime_unref(rt); /* it was shut down */
}

const struct demo_scene scene_net = {
    "net", "Ten thousand connections",
    "A fiber at each end of each, all of them open and talking at the same time.", play};
