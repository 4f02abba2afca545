/*
 * cluster_model.h - what processes on several nodes may see of each other: the shadow of a cluster_scene.h.
 *
 * A *life* is one actor, or one task that receives, from its start to its end. Its *player* does things and checks what it hears:
 *
 * - Messages of one life to another come in the order of their sends, and each once at most. So do its exit signals.
 * - A monitor is told once, unless it was given up. Its reason is the end of that actor, or that there is no connection.
 * - An exit of a link has a link before it, of one side or the other. Nothing of it comes after an unlink.
 * - Nothing of a connection is delivered after `noconnection` of a monitor or a link made over it. That news is a signal, which overtakes
 *   messages in a mailbox. So the player sends itself a message (C_GONE): what was delivered before lies before it.
 * - To a watcher nodes go up and down in turn. The messages of a connection come between the news of its beginning and of its end.
 *
 * A connection is known by the port of the side that has connected. A message is of a connection if that was up before and after the
 * send. If it was not, the message is checked for its order alone.
 */
#ifndef T_CLUSTER_MODEL_H
#define T_CLUSTER_MODEL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "blitz.h"
#include "blitz/rwlock.h"
#include "harness.h"
#include "node/node.h"

enum {
    C_NODES = 3,
    C_ACTORS = 2, /* of a node; the slot behind them is its task */
    C_SLOTS = C_ACTORS + 1,
    C_LIVES = 40,
    C_OPEN = 16,
    C_SENDS = 96, /* of a life */
    C_PORTS = 512,
    C_FIRST_PORT = 40000,
    C_LISTEN_PORT = 30000
};

enum { C_STEP = 1, C_HELLO, C_CHECK, C_GONE };

/* Codes of reasons: of the end of a life, and of an exit signal with its number. */
enum { C_END_CODE = 1000, C_SIGNAL_CODE = 100000 };

struct c_hello {
    int64_t life, seq, is_last;
};

struct c_scene;

/* A monitor or a link that is not told of. */
struct c_open {
    uint64_t ref; /* 0: a link */
    blitz_actor_id far;
    unsigned life, port; /* the port of the connection; 0: not known */
};

/* A node as the watcher of another knows it. */
struct c_seen {
    uint32_t number; /* 0: none */
    unsigned node;
    bool is_up;
    uint32_t period; /* counts the times that any node came up */
};

struct c_player {
    struct c_scene *scene;
    unsigned life, node, slot;
    struct bz_rng rng;
    uint32_t steps;
    int64_t seq, signals;
    int64_t heard[C_LIVES], signalled[C_LIVES];
    unsigned exits[C_LIVES]; /* for links that the other has made */
    struct c_open open[C_OPEN];
    int opens;
    blitz_actor_id known[C_LIVES]; /* as it was known first: a node may have been started again */
    bool is_over[C_PORTS];         /* connections whose loss was told */
    /* of a task */
    struct c_seen seen[4 * C_NODES];
    uint32_t ups;
    uint32_t period[C_PORTS]; /* in which a connection has carried something; 0: in none */
};

struct c_life {
    blitz_actor_id id;
    unsigned node, slot;
    atomic_bool is_known, is_doomed;
    atomic_uint links[C_LIVES];    /* calls of blitz_actor_link() */
    atomic_uint port[C_SENDS];     /* of the connection of each send */
    atomic_bool has_last[C_NODES]; /* the last hello of that node's task has come */
    atomic_bool is_told;           /* a task: all has been told */
    struct c_player player;
};

struct c_scene {
    uint64_t seed;
    unsigned nodes;
    uint32_t steps, lives_of_a_slot;
    bool is_one_way; /* of two nodes the first makes and ends the links */
    bool restarts, ends_first;
    blitz_node *node[C_NODES]; /* guarded by gate */
    blitz_rwlock gate;
    blitz_node_place place[C_NODES];
    blitz_node_opts opts;
    atomic_uint count;                     /* lives */
    atomic_uint current[C_NODES][C_SLOTS]; /* the life + 1; 0: none */
    atomic_uint ready, acted, settled, phase;
    atomic_uint downs, losses, exits, hellos, of_port, noprocs; /* heard */
    struct c_life life[C_LIVES];
};

static const char *const c_node_name[C_NODES] = {"a@localhost", "b@localhost", "c@localhost"};

BLITZ_TERM_STRUCT(c_hello_term, struct c_hello, "hello", BLITZ_TERM_INT(struct c_hello, life),
                  BLITZ_TERM_INT(struct c_hello, seq), BLITZ_TERM_INT(struct c_hello, is_last));
static const blitz_term_message c_messages[] = {{C_HELLO, &c_hello_term, NULL}};

static inline uint32_t c_dice(struct c_player *p, uint32_t n)
{
    return bz_rng_below(&p->rng, n);
}

static inline void c_name(char *out, size_t room, unsigned node, unsigned slot)
{
    snprintf(out, room, "%u.%u", node, slot);
}

/* ---- ids and connections ---- */

/* A life of another node as that of the player knows it, or knew it. False: one of the nodes is not there. */
static inline bool c_far(struct c_player *p, unsigned life, blitz_actor_id *far)
{
    struct c_scene *s = p->scene;
    const struct c_life *l = &s->life[life];
    blitz_term_pid pid;
    *far = p->known[life];
    if (s->restarts && far->generation != 0 && c_dice(p, 2) == 0)
        return true;
    if (blitz_rwlock_read(&s->gate, BLITZ_FOREVER) != 0)
        return false;
    blitz_node *mine = s->node[p->node], *its = s->node[l->node];
    bool is_there = mine != NULL && its != NULL && blitz_node_pid_of(its, l->id, &pid) == 0 &&
                    blitz_node_id_of(mine, &pid, far) == 0;
    blitz_rwlock_read_unlock(&s->gate);
    if (is_there && p->known[life].generation == 0)
        p->known[life] = *far;
    return is_there;
}

/* The life that an id of another node is of. */
static inline unsigned c_life_of(struct c_player *p, blitz_actor_id far)
{
    unsigned count = atomic_load(&p->scene->count);
    for (unsigned i = 0; i < count && i < C_LIVES; i++) {
        const struct c_life *l = &p->scene->life[i];
        if (atomic_load(&l->is_known) && l->id.index == far.index &&
            l->id.generation + 1 == far.generation)
            return i;
    }
    FAIL("an id %u.%u of no life", far.index, far.generation);
}

/* The port of the connection to the node of an id; 0: there is none. */
static inline unsigned c_port(blitz_actor_id far)
{
    struct bz_peer *peer = bz_peer_find(far.node);
    blitz_tcp *t = NULL;
    bool is_ours = false;
    blitz_addr at;
    if (peer == NULL)
        return 0;
    bz_peer_lock(peer);
    if (peer->state == BZ_PEER_UP) {
        t = blitz_tcp_ref(peer->session->tcp);
        is_ours = peer->session->is_ours;
    }
    bz_peer_unlock(peer);
    bz_peer_unref(peer);
    if (t == NULL)
        return 0;
    int rc = is_ours ? blitz_tcp_local(t, &at) : blitz_tcp_peer(t, &at);
    blitz_tcp_unref(t);
    unsigned port = rc == 0 ? blitz_addr_port(&at) : 0;
    return port >= C_FIRST_PORT && port < C_FIRST_PORT + C_PORTS ? port : 0;
}

static inline bool c_is_task(const struct c_player *p)
{
    return p->slot == C_ACTORS;
}

/* ---- relations ---- */

static inline int c_find_open(const struct c_player *p, uint64_t ref, blitz_actor_id far)
{
    for (int i = 0; i < p->opens; i++)
        if (p->open[i].ref == ref && (ref != 0 || blitz_actor_id_equal(p->open[i].far, far)))
            return i;
    return -1;
}

static inline void c_close(struct c_player *p, int i)
{
    p->open[i] = p->open[--p->opens];
}

static inline void c_opened(struct c_player *p, struct c_open o, unsigned port_after)
{
    if (o.port != port_after)
        o.port = 0;
    p->open[p->opens++] = o;
}

/*
 * True if that is the only link of the two so far. An exit of an earlier one may be on its way while the actor links again, and then it ends
 * the new one. So it says nothing of the new one's connection.
 */
static inline bool c_is_only_link(struct c_player *p, unsigned life)
{
    struct c_life *its = p->scene->life;
    return atomic_load(&its[p->life].links[life]) == 1 &&
           atomic_load(&its[life].links[p->life]) == 0;
}

static inline void c_lost(struct c_player *p, const struct c_open *o)
{
    if (o->port != 0 && (o->ref != 0 || c_is_only_link(p, o->life)))
        (void)!blitz_actor_send(blitz_actor_self(), C_GONE, &o->port, sizeof o->port);
    atomic_fetch_add(&p->scene->losses, 1);
}

/* The reason is one that this life may have. */
static inline void c_check_reason(struct c_player *p, unsigned life, const blitz_exit_reason *why)
{
    struct c_life *l = &p->scene->life[life];
    switch (why->kind) {
    case BLITZ_EXIT_NOCONNECTION:
        return;
    case BLITZ_EXIT_NOPROC:
        atomic_fetch_add(&p->scene->noprocs, 1);
        CHECK(atomic_load(&l->is_doomed) || p->scene->restarts); /* or a pid of an earlier node */
        return;
    case BLITZ_EXIT_KILLED:
        CHECK(atomic_load(&l->is_doomed));
        return;
    case BLITZ_EXIT_ERROR:
        CHECK(atomic_load(&l->is_doomed));
        CHECK_EQ(why->code, C_END_CODE + (int)life);
        return;
    default:
        FAIL("a reason of kind %d", (int)why->kind);
    }
}

static inline void c_on_down(struct c_player *p, const blitz_down *d)
{
    int i = c_find_open(p, d->ref, d->who);
    CHECK_GE(i, 0); /* once, and not after it was given up */
    CHECK(blitz_actor_id_equal(p->open[i].far, d->who));
    c_check_reason(p, p->open[i].life, &d->reason);
    if (d->reason.kind == BLITZ_EXIT_NOCONNECTION)
        c_lost(p, &p->open[i]);
    c_close(p, i);
    atomic_fetch_add(&p->scene->downs, 1);
}

static inline void c_on_exit(struct c_player *p, const blitz_down *d)
{
    unsigned life = c_life_of(p, d->who);
    if (d->reason.kind == BLITZ_EXIT_ERROR && d->reason.code >= C_SIGNAL_CODE) {
        int64_t number = d->reason.code - C_SIGNAL_CODE;
        CHECK_GT(number, p->signalled[life]); /* in order, each once */
        p->signalled[life] = number;
        return;
    }
    int i = c_find_open(p, 0, d->who);
    c_check_reason(p, life, &d->reason);
    if (i >= 0) {
        if (d->reason.kind == BLITZ_EXIT_NOCONNECTION)
            c_lost(p, &p->open[i]);
        c_close(p, i);
    } else {
        CHECK_LT(p->exits[life], atomic_load(&p->scene->life[life].links[p->life]));
        p->exits[life]++;
    }
    atomic_fetch_add(&p->scene->exits, 1);
}

/* ---- nodes and messages ---- */

static inline unsigned c_node_of(uint32_t number)
{
    char name[BLITZ_NODE_NAME_MAX];
    if (blitz_node_name_of(number, name, sizeof name) == 0)
        for (unsigned i = 0; i < C_NODES; i++)
            if (strcmp(name, c_node_name[i]) == 0)
                return i;
    return C_NODES; /* our node was restarted meanwhile */
}

static inline struct c_seen *c_seen(struct c_player *p, uint32_t number)
{
    size_t i = 0;
    while (i < BZ_ARRAY_LEN(p->seen) && p->seen[i].number != number && p->seen[i].number != 0)
        i++;
    CHECK_LT(i, BZ_ARRAY_LEN(p->seen));
    if (p->seen[i].number == 0)
        p->seen[i] = (struct c_seen){number, c_node_of(number), false, 0};
    return &p->seen[i];
}

static inline void c_on_node(struct c_player *p, const blitz_node_event *e)
{
    struct c_seen *n = c_seen(p, e->node);
    CHECK_NE(n->is_up, e->is_up); /* in turn */
    n->is_up = e->is_up;
    p->ups += e->is_up;
    n->period = p->ups;
}

/* A message of a connection comes to a watcher. */
static inline void c_on_watched(struct c_player *p, unsigned port, unsigned node)
{
    const struct c_seen *up = NULL;
    for (size_t i = 0; i < BZ_ARRAY_LEN(p->seen); i++)
        if (p->seen[i].is_up && (p->seen[i].node == node || p->seen[i].node == C_NODES))
            up = &p->seen[i];
    CHECK_NOT_NULL(up);
    if (up->node == C_NODES)
        return;
    uint32_t *period = &p->period[port - C_FIRST_PORT];
    CHECK(*period == 0 || *period == up->period);
    *period = up->period;
}

/* A message of a connection comes. */
static inline void c_on_port(struct c_player *p, unsigned port, unsigned node)
{
    atomic_fetch_add(&p->scene->of_port, 1);
    CHECK(!p->is_over[port - C_FIRST_PORT]); /* its loss was told */
    if (c_is_task(p))
        c_on_watched(p, port, node);
}

static inline void c_on_gone(struct c_player *p, unsigned port)
{
    p->is_over[port - C_FIRST_PORT] = true;
}

static inline void c_on_hello(struct c_player *p, const struct c_hello *h)
{
    CHECK(h->life >= 0 && h->life < C_LIVES);
    CHECK(h->seq > 0 && h->seq < C_SENDS);
    struct c_life *from = &p->scene->life[h->life];
    unsigned port = atomic_load(&from->port[h->seq]);
    CHECK_GT(h->seq, p->heard[h->life]); /* in order, each once */
    p->heard[h->life] = h->seq;
    if (port != 0)
        c_on_port(p, port, from->node);
    if (h->is_last != 0)
        atomic_store(&p->scene->life[p->life].has_last[from->node], true);
    atomic_fetch_add(&p->scene->hellos, 1);
}

/* ---- the steps of a player ---- */

/* True if this is a result of a call on an actor that may be gone. */
static inline bool c_is_usual(int rc)
{
    return rc == 0 || rc == -ESRCH || rc == -ECANCELED;
}

/* The same, of a signal, which is beyond queue_max. */
static inline bool c_may_overflow(const struct c_player *p, int rc)
{
    return c_is_usual(rc) || (rc == -ENOMEM && p->scene->opts.queue_max != 0);
}

static inline void c_send(struct c_player *p, unsigned life, bool is_last)
{
    struct c_scene *s = p->scene;
    const struct c_life *to = &s->life[life];
    char name[16];
    blitz_actor_id far;
    if (p->seq + 1 == C_SENDS || !c_far(p, life, &far))
        return;
    struct c_hello h = {(int64_t)p->life, ++p->seq, is_last};
    unsigned before = c_port(far), how = is_last ? 0 : c_dice(p, 4);
    int rc;
    if (how == 0) {
        c_name(name, sizeof name, to->node, to->slot);
        if (blitz_rwlock_read(&s->gate, BLITZ_FOREVER) != 0)
            return;
        rc = s->node[p->node] == NULL
                 ? -ESRCH
                 : blitz_node_send_name(s->node[p->node], name, c_node_name[to->node], C_HELLO, &h,
                                        sizeof h);
        blitz_rwlock_read_unlock(&s->gate);
    } else if (how == 1) {
        rc = blitz_actor_try_send(far, C_HELLO, &h, sizeof h);
    } else {
        rc = blitz_actor_send(far, C_HELLO, &h, sizeof h);
    }
    CHECK(c_is_usual(rc) || (rc == -EAGAIN && how == 1));
    if (before == c_port(far))
        atomic_store(&s->life[p->life].port[p->seq], before);
}

/* True if the player makes links with that life. */
static inline bool c_links(const struct c_player *p, unsigned life)
{
    return !p->scene->is_one_way || p->node < p->scene->life[life].node;
}

static inline void c_link(struct c_player *p, unsigned life)
{
    struct c_open o = {.life = life};
    if (p->opens == C_OPEN || !c_links(p, life) || !c_far(p, life, &o.far))
        return;
    o.port = c_port(o.far);
    atomic_fetch_add(&p->scene->life[p->life].links[life], 1);
    int rc = blitz_actor_link(o.far);
    CHECK(c_is_usual(rc));
    if (rc == 0 && c_find_open(p, 0, o.far) < 0)
        c_opened(p, o, c_port(o.far));
}

static inline void c_unlink(struct c_player *p, unsigned life)
{
    blitz_actor_id far;
    if (!c_links(p, life) || !c_far(p, life, &far))
        return;
    int rc = blitz_actor_unlink(far), i = c_find_open(p, 0, far);
    CHECK(c_is_usual(rc));
    if (rc == 0 && i >= 0)
        c_close(p, i);
}

static inline void c_monitor(struct c_player *p, unsigned life)
{
    struct c_open o = {.life = life};
    if (p->opens == C_OPEN || !c_far(p, life, &o.far))
        return;
    o.port = c_port(o.far);
    int rc = blitz_actor_monitor(o.far, &o.ref);
    CHECK(c_is_usual(rc));
    if (rc == 0)
        c_opened(p, o, c_port(o.far));
}

static inline void c_demonitor(struct c_player *p)
{
    if (p->opens == 0)
        return;
    int i = (int)c_dice(p, (uint32_t)p->opens);
    if (p->open[i].ref == 0)
        return;
    int rc = blitz_actor_demonitor(p->open[i].ref);
    CHECK(rc == 0 || rc == -ECANCELED);
    c_close(p, i);
}

static inline void c_signal(struct c_player *p, unsigned life)
{
    blitz_actor_id far;
    blitz_exit_reason why = {.kind = BLITZ_EXIT_ERROR,
                             .code = C_SIGNAL_CODE + (int)(p->signals + 1)};
    if (!c_far(p, life, &far))
        return;
    p->signals++;
    CHECK(c_may_overflow(p, blitz_actor_exit_send(far, &why)));
}

static inline void c_kill(struct c_player *p, unsigned life)
{
    blitz_actor_id far;
    if (p->scene->life[life].slot == C_ACTORS || !c_far(p, life, &far))
        return;
    atomic_store(&p->scene->life[life].is_doomed, true);
    CHECK(c_may_overflow(p, blitz_actor_kill(far)));
}

/* A life of another node; C_LIVES: none. */
static inline unsigned c_other(struct c_player *p)
{
    struct c_scene *s = p->scene;
    unsigned node = (p->node + 1 + c_dice(p, s->nodes - 1)) % s->nodes;
    if (c_dice(p, 8) == 0) { /* any, perhaps a dead one */
        unsigned count = atomic_load(&s->count),
                 life = c_dice(p, count < C_LIVES ? count : C_LIVES);
        return atomic_load(&s->life[life].is_known) && s->life[life].node != p->node ? life
                                                                                     : C_LIVES;
    }
    unsigned life = atomic_load(&s->current[node][c_dice(p, C_SLOTS)]);
    return life != 0 ? life - 1 : C_LIVES;
}

static inline void c_do(struct c_player *p)
{
    uint32_t dice = c_dice(p, 32);
    unsigned life = c_other(p);
    if (life == C_LIVES)
        return;
    if (dice < 12)
        c_send(p, life, false);
    else if (dice < 16)
        c_link(p, life);
    else if (dice < 18)
        c_unlink(p, life);
    else if (dice < 25)
        c_monitor(p, life);
    else if (dice < 28)
        c_demonitor(p);
    else if (dice < 31)
        c_signal(p, life);
    else
        c_kill(p, life);
}

/* All that was open is told. Of links only if the other side ends none. */
static inline bool c_is_settled(const struct c_player *p, bool of_actors_only)
{
    for (int i = 0; i < p->opens; i++) {
        bool is_of_task = p->scene->life[p->open[i].life].slot == C_ACTORS;
        if ((p->open[i].ref != 0 || p->scene->is_one_way) && !(of_actors_only && is_of_task))
            return false;
    }
    return true;
}

#endif
