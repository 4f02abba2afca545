/*
 * node.c - a node from start to stop.
 *
 * A node is a name, a cookie, a listener, and a list of connections to peers. Its tasks are fibers of one runtime, and use the public calls
 * for TCP: one task accepts, one keeps the name in EPMD, and each connection has two (session.c).
 *
 * | file        | part                                                              |
 * |-------------|-------------------------------------------------------------------|
 * | handshake.c | the messages of the handshake, without I/O                        |
 * | control.c   | control messages, read by a table                                 |
 * | peers.c     | other nodes by number and by name                                 |
 * | outbox.c    | the queue of a peer                                               |
 * | epmd.c      | register, look up                                                 |
 * | shaking.c   | the handshake of a connection                                     |
 * | session.c   | a connection: connect, read, write, tick, end                     |
 * | change.c    | waiting until a connection has changed                            |
 * | deliver.c   | from a frame to an actor                                          |
 * | relations.c | links, monitors and exits over connections                        |
 * | reasons.c   | reasons of an end as terms                                        |
 * | sending.c   | from an actor to a frame                                          |
 * | calling.c   | our calls of actors elsewhere                                     |
 * | spawning.c  | actors that peers start, and the reverse                          |
 * | answers.c   | calls of peers, and their answers                                 |
 * | ids.c       | ids and pids                                                      |
 * | node.c      | start, stop, accept, keep the name                                |
 *
 * The node is part of libblitz and not a library of its own. blitz_actor_send() must find it for ids of other nodes, messages of peers
 * go to mailboxes with numbers that programs must not use, and links need the signals of actors. None of these are public calls, and they
 * should not be. It needs no other library, so nothing is gained by leaving it out; a static program that uses no node links none of it
 * but far.c.
 *
 * EPMD forgets a node when the connection to it closes. So the keeper reads there. If EPMD has ended, the keeper registers again, at first
 * after 100 ms and then more slowly, until there is an EPMD. The creation stays: pids of this node are still valid.
 *
 * The stop cancels all tasks of the node and waits until they have ended. Threads that are inside a send hold a reference of a peer, and so
 * the memory stays until they leave. Their message is dropped.
 *
 * I1  Once is_stopping is set no session begins: session.c, admit().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/relations.h"

/* ---- options ---- */

static size_t size_of_copies(const blitz_node_opts *o)
{
    size_t bytes = o->place_count * sizeof *o->places + o->allowed_count * sizeof *o->allowed;
    for (size_t i = 0; i < o->place_count; i++)
        bytes += strlen(o->places[i].name) + 1;
    for (size_t i = 0; i < o->allowed_count; i++)
        bytes += strlen(o->allowed[i]) + 1;
    return bytes;
}

static const char *copy_text(char **at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = memcpy(*at, text, bytes);
    *at += bytes;
    return copy;
}

/* Copy the places and the allowed names into one block. False: no memory. */
static bool copy_lists(blitz_node *n)
{
    blitz_node_opts *o = &n->opts;
    n->copies_bytes = size_of_copies(o);
    if (n->copies_bytes == 0)
        return true;
    n->copies = bz_alloc(&n->alloc, n->copies_bytes, _Alignof(blitz_node_place));
    if (n->copies == NULL)
        return false;
    blitz_node_place *places = n->copies;
    const char **allowed = (const char **)(void *)(places + o->place_count);
    char *text = (char *)(allowed + o->allowed_count);
    for (size_t i = 0; i < o->place_count; i++)
        places[i] = (blitz_node_place){copy_text(&text, o->places[i].name), o->places[i].at};
    for (size_t i = 0; i < o->allowed_count; i++)
        allowed[i] = copy_text(&text, o->allowed[i]);
    o->places = places;
    o->allowed = o->allowed != NULL ? allowed : NULL;
    return true;
}

static uint16_t usual_epmd_port(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent setenv cannot be prevented */
    const char *text = getenv("ERL_EPMD_PORT");
    long port = text != NULL ? strtol(text, NULL, 10) : 0;
    return port > 0 && port < 65536 ? (uint16_t)port : BLITZ_NODE_EPMD_PORT;
}

static void complete(blitz_node_opts *o)
{
    o->epmd_port = o->epmd_port != 0 ? o->epmd_port : usual_epmd_port();
    o->tick_ns = o->tick_ns != 0 ? o->tick_ns : 60 * BLITZ_S;
    o->connect_ns = o->connect_ns != 0 ? o->connect_ns : 7 * BLITZ_S;
    o->queue_high = o->queue_high != 0 ? o->queue_high : (size_t)1 << 20;
    o->queue_max = o->queue_max != 0 ? o->queue_max : (size_t)64 << 20;
    o->message_max = o->message_max != 0 ? o->message_max : (size_t)128 << 20;
    if (o->queue_max < o->queue_high)
        o->queue_max = o->queue_high;
}

/* The name, with a host. */
static int set_name(blitz_node *n, const char *name)
{
    static const char host[] = "@localhost";
    size_t bytes = strnlen(name, BLITZ_NODE_NAME_MAX);
    bool is_short = memchr(name, '@', bytes) == NULL;
    size_t whole = bytes + (is_short ? sizeof host - 1 : 0);
    if (whole >= sizeof n->name)
        return -EINVAL;
    memcpy(n->name, name, bytes);
    if (is_short)
        memcpy(n->name + bytes, host, sizeof host);
    n->name[whole] = '\0';
    n->bytes = (uint16_t)whole;
    return bz_node_name_is_good(n->name, whole) ? 0 : -EINVAL;
}

static int set_cookie(blitz_node *n, const char *cookie)
{
    size_t bytes = cookie != NULL ? strnlen(cookie, sizeof n->cookie) : 0;
    if (bytes == 0 || bytes == sizeof n->cookie)
        return -EINVAL;
    memcpy(n->cookie, cookie, bytes + 1);
    return 0;
}

/* ---- tasks ---- */

static int accept_all(void *arg)
{
    blitz_node *n = arg;
    blitz_tcp *t;
    int rc;
    while ((rc = blitz_tcp_accept(n->listener, &t, NULL, BLITZ_FOREVER)) == 0 || rc == -ENOMEM)
        if (rc == 0)
            bz_session_accept(n, t);
    return rc;
}

/* Wait until EPMD closes the connection. It sends nothing more. */
static int watch(blitz_tcp *t)
{
    char byte;
    return blitz_tcp_read(t, &byte, 1, BLITZ_FOREVER) == -ECANCELED ? -ECANCELED : 0;
}

static int keep_name(void *arg)
{
    blitz_node *n = arg;
    uint64_t delay = 100 * BLITZ_MS;
    for (int rc = 0; rc != -ECANCELED;) {
        uint32_t creation;
        if (n->epmd != NULL) {
            rc = watch(n->epmd);
            blitz_tcp_close(n->epmd);
            n->epmd = NULL;
            delay = 100 * BLITZ_MS;
            continue;
        }
        rc = blitz_sleep(delay);
        delay = delay < 4 * BLITZ_S ? 2 * delay : delay;
        if (rc == 0)
            rc = bz_epmd_register(n, &n->epmd, &creation, blitz_after(n->opts.connect_ns));
        if (rc == 0)
            bz_node_count(&n->registered);
    }
    return 0;
}

static void end_task(blitz_task *t)
{
    if (t == NULL)
        return;
    blitz_task_cancel(t);
    (void)blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* A session that is not cancelled yet, as its task; NULL: there is none. */
static blitz_task *next_to_cancel(blitz_node *n)
{
    blitz_task *t = NULL;
    bz_lock_take(&n->lock, bz_os_here());
    for (struct bz_list *l = n->sessions.next; l != &n->sessions && t == NULL; l = l->next) {
        struct bz_session *s = BZ_CONTAINER_OF(l, struct bz_session, all);
        if (!s->is_cancelled)
            t = blitz_task_ref(s->task);
        s->is_cancelled = true;
    }
    bz_lock_drop(&n->lock, bz_os_here());
    return t;
}

static void end_sessions(blitz_node *n)
{
    bz_lock_take(&n->lock, bz_os_here());
    n->is_stopping = true; /* I1 */
    bool has_any = n->running > 0;
    bz_lock_drop(&n->lock, bz_os_here());
    for (blitz_task *t; (t = next_to_cancel(n)) != NULL;) {
        blitz_task_cancel(t);
        blitz_task_detach(t);
    }
    if (has_any)
        (void)!blitz_event_wait(&n->idle, BLITZ_FOREVER);
}

/* ---- start and stop ---- */

static int begin_to_listen(blitz_node *n)
{
    blitz_addr at = n->opts.listen != NULL ? *n->opts.listen : blitz_addr_loopback_v4(0);
    if (n->opts.no_listen)
        return 0;
    int rc = blitz_tcp_listen(&at, NULL, &n->listener);
    if (rc == 0)
        rc = blitz_tcp_listener_local(n->listener, &at);
    if (rc == 0)
        n->port = blitz_addr_port(&at);
    n->opts.listen = NULL;
    return rc;
}

/* The creation: of EPMD, of the options, or random. */
static int enter_cluster(blitz_node *n)
{
    int rc = bz_os_entropy(bz_os_here(), &n->creation, sizeof n->creation);
    n->creation |= 4; /* smaller numbers are those of the protocol before */
    if (n->opts.creation != 0)
        n->creation = n->opts.creation;
    if (rc == 0 && !n->opts.no_epmd && !n->opts.no_listen)
        rc = bz_epmd_register(n, &n->epmd, &n->creation, blitz_after(n->opts.connect_ns));
    if (n->epmd != NULL)
        bz_node_count(&n->registered);
    return rc;
}

static int start_tasks(blitz_node *n)
{
    static const blitz_spawn_opts accepts = {.name = "node acceptor"},
                                  keeps = {.name = "node name"};
    int rc = n->listener != NULL ? blitz_spawn(accept_all, n, &accepts, &n->acceptor) : 0;
    if (rc == 0 && n->epmd != NULL)
        rc = blitz_spawn(keep_name, n, &keeps, &n->keeper);
    return rc;
}

static int start(blitz_node *n, const char *name, const char *cookie)
{
    int rc = set_name(n, name);
    if (rc == 0)
        rc = set_cookie(n, cookie);
    if (rc == 0 && !copy_lists(n))
        rc = -ENOMEM;
    if (rc == 0)
        rc = bz_relations_begin(n);
    if (rc == 0)
        rc = begin_to_listen(n);
    if (rc == 0)
        rc = enter_cluster(n);
    if (rc == 0)
        rc = start_tasks(n);
    return rc;
}

static blitz_node *node_new(struct bz_runtime *rt, const blitz_node_opts *opts)
{
    blitz_node *n = bz_alloc(&rt->alloc, sizeof *n, _Alignof(blitz_node));
    if (n == NULL)
        return NULL;
    *n = (blitz_node){.refs = 1, .rt = rt, .alloc = rt->alloc, .connect = bz_session_connect};
    if (opts != NULL)
        n->opts = *opts;
    complete(&n->opts);
    bz_lock_init(&n->lock);
    bz_list_init(&n->sessions);
    blitz_event_init(&n->idle);
    return n;
}

int blitz_node_start(const char *name, const char *cookie, const blitz_node_opts *opts,
                     blitz_node **out)
{
    static const struct bz_far_ops ops = {.begin = bz_sending_begin,
                                          .next = bz_outbox_next,
                                          .try_now = bz_outbox_try,
                                          .end = bz_outbox_end,
                                          .begin_call = bz_calls_begin,
                                          .end_call = bz_calls_end,
                                          .begin_join = bz_joins_begin,
                                          .end_join = bz_joins_end,
                                          .relate = bz_relations_relate,
                                          .ended = bz_relations_ended,
                                          .exit = bz_relations_exit};
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || blitz_task_current() == NULL)
        return -EOPNOTSUPP;
    if (name == NULL || out == NULL || (opts != NULL && bz_spawning_is_bad(opts)))
        return -EINVAL;
    blitz_node *n = node_new(m->rt, opts);
    if (n == NULL)
        return -ENOMEM;
    bz_far_set(&ops);
    int rc = start(n, name, cookie);
    if (rc != 0) {
        blitz_node_stop(n);
        return rc;
    }
    *out = n;
    return 0;
}

void blitz_node_stop(blitz_node *n)
{
    if (n == NULL)
        return;
    blitz_shield();
    end_task(n->acceptor);
    end_task(n->keeper);
    blitz_tcp_listener_close(n->listener);
    blitz_tcp_close(n->epmd);
    end_sessions(n);
    bz_relations_end_all(n);
    bz_peers_end(n);
    blitz_unshield();
    bz_node_unref(n);
}

void blitz_node_info_get(blitz_node *n, blitz_node_info *out)
{
    *out = (blitz_node_info){.creation = n->creation, .port = n->port};
    out->peers = bz_peers_count(n, &out->up);
    out->sent = bz_load_relaxed(&n->sent);             /* relaxed: statistics, as the next ones */
    out->received = bz_load_relaxed(&n->received);     /* relaxed: likewise */
    out->dropped = bz_load_relaxed(&n->dropped);       /* relaxed: likewise */
    out->lost = bz_load_relaxed(&n->lost);             /* relaxed: likewise */
    out->refused = bz_load_relaxed(&n->refused);       /* relaxed: likewise */
    out->broken = bz_load_relaxed(&n->broken);         /* relaxed: likewise */
    out->registered = bz_load_relaxed(&n->registered); /* relaxed: likewise */
}
