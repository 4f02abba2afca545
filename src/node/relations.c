/*
 * relations.c - links and monitors over connections.
 *
 * A relation with a process elsewhere has two halves. An actor of ours keeps its half in its own list, as for any relation
 * (actor/relate.c). The other half is kept by one actor of the node, the relay, which stands for all processes elsewhere:
 *
 *     our actor links R         FAR_LINK in its list; an entry at the relay; LINK is sent
 *     our actor ends            its end sends EXIT; the relay watches it, and removes its entry
 *     R ends                    EXIT comes; the relay removes its entry and sends FAR_EXIT to our actor, which acts if it has the link
 *     our actor watches R       FAR_WATCHES in its list; an entry; MONITOR is sent. MONITOR_EXIT becomes FAR_DOWN
 *     R watches our actor       an entry; the relay watches the actor, and sends MONITOR_EXIT
 *     the connection goes       the relay takes all entries of it, and tells our side `noconnection`
 *
 * A reader waits until the relay has handled its event. So a message that a peer sends behind a link or a monitor does not overtake it. The relay
 * waits for nothing.
 *
 * The relay handles one event at a time. So each entry ends once, by the first of these, and our side is told once. A late EXIT or a second
 * loss finds no entry.
 *
 * The EXIT of our actor comes from its own end (bz_relations_ended), not from the relay. An actor that links and ends at once is dead when
 * the relay hears of the link, and then nothing knows its reason. Such an EXIT may find no link there, if the connection has changed. It is
 * of no effect then, as in Erlang.
 *
 * Events reach the relay as blocks, and an event that makes an entry is the entry: it is moved, kept and freed. The signal for our
 * actor is allocated with it. So the relay needs no memory to tell our side. If it has none for a frame to the peer, it ends that
 * connection, and then both sides know.
 *
 * An entry belongs to one connection. A peer counts its connections (serial). Our actor's call reads the serial, sends the event, and queues
 * the frame if the serial is still that. If it is not, the connection has gone in between, and the relay sees that by the serial as well.
 * The loss of a connection is a signal, which was allocated with the session. It may overtake events, which then find their serial old.
 *
 * A link has a number, which our actor's half has as well. Our actor may link again while an exit of the earlier link is on its way to it, after
 * a lost connection. That exit has the earlier number, and is dropped. Else it would end the new link on one side, and the other would never
 * hear of our actor's end. The protocol has no such number. It needs none: an EXIT of a peer is the end of a process, which comes once, and its
 * connections come one after the other.
 *
 * UNLINK_ID: after our unlink the entry stays until the peer has acknowledged it, and a LINK of the peer that crosses it is ignored.
 * Otherwise we would have a link that the peer has not.
 *
 * A peer speaks for its own processes. A control message from a pid of another node ends the connection.
 *
 * Entries are in one list, so an event costs their number. Thousands are fine. Rejected so far: a table, until a program needs it.
 *
 * I1  An entry is in n->relay's list, or an event on its way, or freed.
 * I2  An entry with `watch` is one whose actor the relay watches.
 * I3  Out of memory for the peer's half: the connection ends. For our half: nothing was begun.
 */
#include <errno.h>
#include <string.h>

#include "actor/send.h"
#include "blitz/binary.h"
#include "node/relations.h"

enum event_kind {
    LINK,         /* in the list: a link */
    UNLINKING,    /* in the list: our unlink is not acknowledged */
    WATCHES,      /* in the list: our actor watches */
    WATCHED,      /* in the list: our actor is watched */
    UNLINK,       /* by our actor; `ref` is the id */
    DEMONITOR,    /* likewise */
    THEIR_LINK,   /* the peer's controls */
    THEIR_UNLINK, /* `ref` is the id */
    THEIR_ACK,    /* likewise */
    THEIR_EXIT,
    THEIR_DEMONITOR,
    THEIR_DOWN,
    THEIR_END, /* exit/2 */
    THEIR_SPAWN,
    END /* the node stops */
};

struct event {
    struct event *next; /* in the list */
    enum event_kind kind;
    uint32_t peer, serial;
    blitz_actor_id ours, far;
    uint64_t ref;             /* of our monitor, or an id of an unlink */
    uint64_t watch;           /* I2; 0: none */
    blitz_event *handled;     /* set behind the handling, for the reader; or NULL */
    struct bz_signal *signal; /* for our actor, allocated before it is needed; or NULL */
    uint32_t words, creation; /* of the peer's reference */
    uint32_t id[5];
    bool
        is_stale; /* `ours` is the peer's pid of no actor: index and generation are number and serial */
    struct bz_their_spawn spawn; /* of THEIR_SPAWN */
    bool
        is_late; /* of a LINK by a spawn: the actor had ended before it had its half, so we tell its reason */
    bool is_kill; /* of THEIR_END: it cannot be trapped */
    bool is_by_name;
    char name[BLITZ_NAME_BYTES_MAX]; /* of our actor, by which it is watched */
    blitz_exit_reason reason;
};

struct relay {
    blitz_node *node;
    struct event *first;
};

enum { EVENT = 1 };

/* ---- events ---- */

static struct event *event_new(enum event_kind kind, const struct bz_peer *p, uint32_t serial)
{
    struct event *e = blitz_msg_alloc(sizeof *e);
    if (e != NULL)
        *e = (struct event){.kind = kind, .peer = p->number, .serial = serial};
    return e;
}

/* Free the arguments of a spawn. */
static void drop_state(blitz_node *n, struct event *e)
{
    if (e->spawn.state != NULL)
        bz_free(&n->alloc, e->spawn.state, e->spawn.behaviour->state_bytes);
    e->spawn.state = NULL;
}

static void event_free(blitz_node *n, struct event *e)
{
    if (e != NULL && e->signal != NULL)
        bz_letter_free(n->rt, e->signal);
    if (e != NULL)
        drop_state(n, e);
    blitz_msg_drop(e);
}

/* Send it to the relay. It takes the event. */
static int post(blitz_node *n, struct event *e)
{
    void *block = e;
    int rc = bz_send_ours(n->relay, EVENT, NULL, 0, &(blitz_cargo){.move = BLITZ_MOVE(block)});
    if (rc != 0)
        event_free(n, e);
    return rc;
}

static uint32_t serial_of(struct bz_peer *p)
{
    bz_peer_lock(p);
    uint32_t serial = p->serial;
    bz_peer_unlock(p);
    return serial;
}

/* ---- frames ---- */

static int fill(blitz_term_out *out, const struct event *e, blitz_node *n, int op)
{
    blitz_term_pid ours, far;
    blitz_term_ref ref = {{n->name, n->bytes, false}, n->creation, 3, {0, 0, 0, 0, 0}};
    ref.id[0] = (uint32_t)e->ref & 0x3ffff;
    ref.id[1] = (uint32_t)(e->ref >> 18);
    ref.id[2] = (uint32_t)(e->ref >> 50) | (e->ref >> 63 != 0 ? BZ_REF_OF_A_CALL : 0);
    int rc = blitz_node_pid_of(n, e->far, &far);
    if (e->ours.generation == 0 && !e->is_stale) /* the caller is no actor */
        ours = (blitz_term_pid){{n->name, n->bytes, false}, 0, 0, n->creation};
    else if (e->is_stale) /* the peer's own words: it would not know another pid */
        ours = (blitz_term_pid){
            {n->name, n->bytes, false}, e->ours.index, e->ours.generation, e->ours.creation};
    else if (rc == 0)
        rc = blitz_node_pid_of(n, e->ours, &ours);
    if (rc != 0)
        return rc;
    bool has_id = op == BZ_CONTROL_UNLINK_ID || op == BZ_CONTROL_UNLINK_ID_ACK;
    bool has_ref =
        op == BZ_CONTROL_MONITOR || op == BZ_CONTROL_DEMONITOR || op == BZ_CONTROL_MONITOR_EXIT;
    bool has_reason =
        op == BZ_CONTROL_EXIT || op == BZ_CONTROL_EXIT2 || op == BZ_CONTROL_MONITOR_EXIT;
    if (op == BZ_CONTROL_MONITOR_EXIT) { /* with the peer's reference */
        ref = (blitz_term_ref){far.node, e->creation, e->words, {0, 0, 0, 0, 0}};
        memcpy(ref.id, e->id, sizeof ref.id);
    }
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 3u + has_id + has_ref + has_reason);
    blitz_term_put_int(out, op);
    if (has_id)
        blitz_term_put_uint(out, e->ref);
    if (e->is_by_name)
        blitz_term_put_atom(out, e->name);
    else
        blitz_term_put_pid(out, &ours);
    blitz_term_put_pid(out, &far);
    if (has_ref)
        blitz_term_put_ref(out, &ref);
    if (op == BZ_CONTROL_EXIT2 && e->reason.kind == BLITZ_EXIT_KILLED)
        blitz_term_put_atom(out, "kill"); /* `killed` may be trapped */
    else if (has_reason)
        bz_reason_put(out, &e->reason);
    return 0;
}

struct control_of {
    blitz_node *n;
    const struct event *e;
    int op;
};

static int fill_control(blitz_term_out *out, void *ctx)
{
    const struct control_of *c = ctx;
    return fill(out, c->e, c->n, c->op);
}

static int make_frame(blitz_node *n, const struct event *e, int op, struct bz_frame **out)
{
    struct control_of c = {n, e, op};
    return bz_frame_make(n, fill_control, &c, false, out);
}

/* Tell the peer, if the connection of that entry is still there. I3 */
static void tell_peer(blitz_node *n, const struct event *e, int op)
{
    struct bz_frame *f;
    struct bz_peer *p = bz_peer_find(e->peer);
    if (p == NULL)
        return;
    int rc = make_frame(n, e, op, &f);
    if (rc == 0)
        rc = bz_peer_send_in(p, f, e->serial);
    if (rc == -ENOMEM || rc == -EOVERFLOW)
        bz_peer_hang_up(p, e->serial);
    bz_peer_unref(p);
}

/* ---- our actors ---- */

/* Send our actor a signal. It was allocated with the entry. */
static void tell_ours(blitz_node *n, struct event *e, enum bz_signal_kind kind,
                      const blitz_exit_reason *why)
{
    struct bz_signal *s = e->signal;
    if (s == NULL)
        return;
    e->signal = NULL;
    s->kind = kind;
    s->peer_index = e->far.index;
    s->peer_generation = e->far.generation;
    s->far_node = e->far.node;
    s->far_creation = e->far.creation;
    s->ref = e->ref;
    s->reason = *why;
    if (!bz_signal_send(n->rt, e->ours.index, e->ours.generation, s))
        bz_letter_free(n->rt, s);
}

/* An entry ends for our side. */
static void end_ours(blitz_node *n, struct event *e, const blitz_exit_reason *why)
{
    if (e->kind == LINK)
        tell_ours(n, e, BZ_SIGNAL_FAR_EXIT, why);
    else if (e->kind == WATCHES)
        tell_ours(n, e, BZ_SIGNAL_FAR_DOWN, why);
}

/* ---- the list of the relay ---- */

static bool is_ref(const struct event *e, const struct event *of)
{
    return e->creation == of->creation && memcmp(e->id, of->id, sizeof e->id) == 0;
}

/* True if e is the entry that an event is about. */
static bool is_of(const struct event *e, const struct event *of, enum event_kind kind)
{
    if (e->kind != kind || e->peer != of->peer)
        return false;
    switch (kind) {
    case WATCHES:
        return e->ref == of->ref;
    case WATCHED:
        return is_ref(e, of) && blitz_actor_id_equal(e->far, of->far);
    default:
        return blitz_actor_id_equal(e->ours, of->ours) && blitz_actor_id_equal(e->far, of->far);
    }
}

static struct event *find(struct relay *r, const struct event *of, enum event_kind kind)
{
    struct event *e = r->first;
    while (e != NULL && !is_of(e, of, kind))
        e = e->next;
    return e;
}

/* A link and a monitor by one spawn share their watch. */
static void unwatch(struct relay *r, struct event *e)
{
    const struct event *other = r->first;
    while (other != NULL && (other == e || other->watch != e->watch))
        other = other->next;
    if (e->watch != 0 && other == NULL)
        (void)blitz_actor_demonitor(e->watch); /* I2 */
    e->watch = 0;
}

static void unlist(struct relay *r, struct event *e)
{
    struct event **at = &r->first;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unwatch(r, e);
}

static void list(struct relay *r, struct event *e, enum event_kind kind)
{
    e->kind = kind;
    e->next = r->first;
    r->first = e;
}

/* Keep an event as an entry. I1 */
static void keep(struct relay *r, struct event *e, enum event_kind kind)
{
    struct bz_peer *p = bz_peer_find(e->peer);
    list(r, e, kind);
    if (blitz_actor_monitor(e->ours, &e->watch) != 0 && p != NULL)
        bz_peer_hang_up(p, e->serial); /* I3 */
    bz_peer_unref(p);
}

/* ---- events, handled ---- */

static const blitz_exit_reason no_connection = {.kind = BLITZ_EXIT_NOCONNECTION};

/* True if the connection of an event has gone. */
static bool is_lost(const struct event *e)
{
    struct bz_peer *p = bz_peer_find(e->peer);
    bool is_lost = p == NULL || serial_of(p) != e->serial;
    bz_peer_unref(p);
    return is_lost;
}

static void free_entry(struct relay *r, struct event *e)
{
    unlist(r, e);
    event_free(r->node, e);
}

/* Our actor has begun a relation. Returns whether the event is kept. */
static bool begin_ours(struct relay *r, struct event *e)
{
    enum event_kind kind = e->kind;
    struct event *old = kind == LINK ? find(r, e, UNLINKING) : NULL;
    if (old != NULL)
        free_entry(r, old);
    if (is_lost(e)) {
        end_ours(r->node, e, &no_connection);
        return false;
    }
    old = kind == LINK ? find(r, e, LINK) : NULL;
    if (old != NULL && old->serial == e->serial) {
        old->ref = e->ref;
        return false;
    }
    if (old != NULL)
        free_entry(r, old); /* its connection has gone, and our actor has linked again */
    keep(r, e, kind);
    return true;
}

/* The number of a link that a peer has begun. Those of our actors are small. */
static uint64_t number_of_link(blitz_node *n)
{
    /* relaxed: uniqueness is enough */
    return UINT64_C(1) << 63 | bz_fetch_add_relaxed(&n->unlinks, 1);
}

static bool begin_their_link(struct relay *r, struct event *e)
{
    if (find(r, e, UNLINKING) != NULL || find(r, e, LINK) != NULL)
        return false;
    e->ref = number_of_link(r->node);
    struct bz_signal *s = bz_signal_new_far(r->node->rt, BZ_SIGNAL_FAR_LINK, e->far);
    if (s != NULL)
        s->ref = e->ref;
    if (s == NULL) {
        struct bz_peer *p = bz_peer_find(e->peer);
        if (p != NULL)
            bz_peer_hang_up(p, e->serial);
        bz_peer_unref(p);
        return false;
    }
    if (bz_signal_send(r->node->rt, e->ours.index, e->ours.generation, s)) {
        keep(r, e, LINK);
        return true; /* from here on its end tells */
    }
    bz_letter_free(r->node->rt, s);
    e->reason = (blitz_exit_reason){.kind = BLITZ_EXIT_NOPROC};
    tell_peer(r->node, e, BZ_CONTROL_EXIT);
    return false;
}

/* The peer watches an actor, by its pid or by its name. */
static bool begin_watched(struct relay *r, struct event *e)
{
    if (is_lost(e))
        return false;
    if (e->is_by_name)
        e->ours = blitz_actor_whereis((blitz_runtime *)r->node->rt, e->name);
    if (e->ours.generation == 0) {
        e->reason = (blitz_exit_reason){.kind = BLITZ_EXIT_NOPROC};
        tell_peer(r->node, e, BZ_CONTROL_MONITOR_EXIT);
        return false;
    }
    keep(r, e, WATCHED);
    return true;
}

/* ---- actors that peers start ---- */

enum { SPAWN_LINKED = 1, SPAWN_WATCHED = 2 };

struct spawn_reply {
    const struct event *e;
    blitz_node *n;
    const char *error; /* NULL: it is e->ours */
};

/* {SPAWN_REPLY, ReqId, To, Flags, Pid or Error} */
static int fill_spawn_reply(blitz_term_out *out, void *ctx)
{
    const struct spawn_reply *y = ctx;
    const struct event *e = y->e;
    blitz_term_pid far, ours;
    int rc = blitz_node_pid_of(y->n, e->far, &far);
    if (rc == 0 && y->error == NULL)
        rc = blitz_node_pid_of(y->n, e->ours, &ours);
    if (rc != 0)
        return rc;
    blitz_term_ref ref = {far.node, e->creation, e->words, {0, 0, 0, 0, 0}};
    memcpy(ref.id, e->id, sizeof ref.id);
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 5);
    blitz_term_put_int(out, BZ_CONTROL_SPAWN_REPLY);
    blitz_term_put_ref(out, &ref);
    blitz_term_put_pid(out, &far);
    blitz_term_put_int(out, y->error != NULL ? 0
                                             : (e->spawn.links ? SPAWN_LINKED : 0) |
                                                   (e->spawn.watches ? SPAWN_WATCHED : 0));
    if (y->error != NULL)
        blitz_term_put_atom(out, y->error);
    else
        blitz_term_put_pid(out, &ours);
    return 0;
}

static void send_spawn_reply(blitz_node *n, const struct event *e, const char *error)
{
    struct spawn_reply y = {e, n, error};
    struct bz_frame *f;
    struct bz_peer *p = bz_peer_find(e->peer);
    if (p == NULL)
        return;
    int rc = bz_frame_make(n, fill_spawn_reply, &y, false, &f);
    if (rc == 0)
        rc = bz_peer_send_in(p, f, e->serial);
    if (rc == -ENOMEM || rc == -EOVERFLOW)
        bz_peer_hang_up(p, e->serial);
    bz_peer_unref(p);
}

/* The new actor gets its half of a link. If it has ended already, its end has told no other node: the relay does, when its reason comes. */
static bool link_child(struct relay *r, struct event *e)
{
    struct bz_runtime *rt = r->node->rt;
    struct bz_signal *s = bz_signal_new_far(rt, BZ_SIGNAL_FAR_LINK, e->far);
    e->ref = number_of_link(r->node);
    if (s != NULL)
        s->ref = e->ref;
    e->signal = bz_signal_new(rt, BZ_SIGNAL_FAR_EXIT);
    if (s == NULL || e->signal == NULL) {
        if (s != NULL)
            bz_letter_free(rt, s);
        return false;
    }
    e->is_late = !bz_signal_send(rt, e->ours.index, e->ours.generation, s);
    if (e->is_late)
        bz_letter_free(rt, s);
    return true;
}

static void hang_up(const struct event *e)
{
    struct bz_peer *p = bz_peer_find(e->peer);
    if (p != NULL)
        bz_peer_hang_up(p, e->serial);
    bz_peer_unref(p);
}

/* The entries of its relations. The reply is on its way, so what they send comes behind it. Returns whether e is one of them. */
static bool relate_child(struct relay *r, struct event *e)
{
    struct event *link = e;
    if (e->spawn.links && e->spawn.watches) {
        link = blitz_msg_alloc(sizeof *link);
        if (link != NULL)
            *link = *e;
    }
    if (e->spawn.links && (link == NULL || !link_child(r, link))) {
        if (link != e)
            event_free(r->node, link);
        hang_up(e); /* I3 */
        link = NULL;
    }
    if (e->spawn.links && link != NULL)
        list(r, link, LINK);
    if (e->spawn.watches)
        list(r, e, WATCHED);
    return e->spawn.watches || (e->spawn.links && link == e);
}

/* The relay is the spawner, so its watch is there before the actor runs: the reason of a short life is known. */
static bool spawn_theirs(struct relay *r, struct event *e)
{
    blitz_actor_opts opts = {.monitor = e->spawn.links || e->spawn.watches ? &e->watch : NULL};
    int rc = is_lost(e) ? -ENOTCONN
                        : blitz_actor_spawn(e->spawn.behaviour, e->spawn.state, &opts, &e->ours);
    drop_state(r->node, e);
    if (rc != 0) {
        e->watch = 0;
        send_spawn_reply(r->node, e, "system_limit");
        return false;
    }
    send_spawn_reply(r->node, e, NULL);
    if (relate_child(r, e))
        return true;
    if (e->watch != 0)
        (void)blitz_actor_demonitor(e->watch);
    return false;
}

static void unlink_ours(struct relay *r, const struct event *e)
{
    struct event *old = find(r, e, LINK);
    if (old == NULL)
        return;
    unwatch(r, old);
    old->kind = UNLINKING;
    old->ref = e->ref;
}

static void unlink_theirs(struct relay *r, struct event *e)
{
    struct event *old = find(r, e, LINK);
    if (old != NULL) {
        tell_ours(r->node, old, BZ_SIGNAL_FAR_UNLINK, &no_connection);
        free_entry(r, old);
    }
    tell_peer(r->node, e, BZ_CONTROL_UNLINK_ID_ACK);
}

static void acknowledged(struct relay *r, const struct event *e)
{
    struct event *old = find(r, e, UNLINKING);
    if (old != NULL && old->ref == e->ref)
        free_entry(r, old);
}

/* The entry of that kind ends, and our side hears why; NULL: it has ended it itself. */
static void end_entry(struct relay *r, const struct event *e, enum event_kind kind,
                      const blitz_exit_reason *why)
{
    struct event *old = find(r, e, kind);
    if (old == NULL)
        return;
    if (why != NULL)
        end_ours(r->node, old, why);
    free_entry(r, old);
}

/* A connection has gone; peer 0: all have. */
static void lose(struct relay *r, uint32_t peer, uint32_t serial)
{
    struct event **at = &r->first;
    for (struct event *e; (e = *at) != NULL;) {
        if (peer != 0 && (e->peer != peer || (int32_t)(e->serial - serial) > 0)) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        unwatch(r, e);
        end_ours(r->node, e, &no_connection);
        event_free(r->node, e);
    }
}

/* exit/2. */
static void end_ours_now(blitz_node *n, struct event *e)
{
    if (e->is_kill)
        (void)blitz_actor_kill(e->ours);
    else
        tell_ours(n, e, BZ_SIGNAL_FAR_ENDS, &e->reason);
}

/* The peer speaks to a process of an earlier life of this node. */
static void answer_stale(struct relay *r, struct event *e)
{
    e->reason = (blitz_exit_reason){.kind = BLITZ_EXIT_NOPROC};
    if (e->kind == THEIR_LINK)
        tell_peer(r->node, e, BZ_CONTROL_EXIT);
    else if (e->kind == WATCHED)
        tell_peer(r->node, e, BZ_CONTROL_MONITOR_EXIT);
    else if (e->kind == THEIR_UNLINK)
        tell_peer(r->node, e, BZ_CONTROL_UNLINK_ID_ACK);
}

/* Returns whether the event is kept as an entry. */
static bool handle(struct relay *r, struct event *e)
{
    bool is_of_peer = e->kind >= THEIR_LINK && e->kind <= THEIR_END;
    if (is_of_peer && is_lost(e))
        return false; /* a relation of the next connection is not meant */
    if (e->is_stale) {
        answer_stale(r, e);
        return false;
    }
    switch (e->kind) {
    case LINK:
    case WATCHES:
        return begin_ours(r, e);
    case THEIR_LINK:
        return begin_their_link(r, e);
    case WATCHED:
        return begin_watched(r, e);
    case THEIR_SPAWN:
        return spawn_theirs(r, e);
    case UNLINK:
        unlink_ours(r, e);
        return false;
    case DEMONITOR:
        end_entry(r, e, WATCHES, NULL);
        return false;
    case THEIR_UNLINK:
        unlink_theirs(r, e);
        return false;
    case THEIR_ACK:
        acknowledged(r, e);
        return false;
    case THEIR_EXIT:
        end_entry(r, e, LINK, &e->reason);
        return false;
    case THEIR_END:
        end_ours_now(r->node, e);
        return false;
    case THEIR_DEMONITOR:
        end_entry(r, e, WATCHED, NULL);
        return false;
    case THEIR_DOWN:
        end_entry(r, e, WATCHES, &e->reason);
        return false;
    case END:
        lose(r, 0, 0);
        return false;
    case UNLINKING:
        break;
    }
    BZ_CHECK(0, "event %u at the relay", (unsigned)e->kind);
    return false;
}

BLITZ_HANDLER(on_event, struct relay, void)
{
    struct event *e = m->block;
    bool ends = e->kind == END;
    blitz_event *handled = e->handled;
    if (handle(state, e))
        (void)blitz_msg_take(m);
    else if (e->signal != NULL) {
        bz_letter_free(state->node->rt, e->signal);
        e->signal = NULL;
    }
    if (handled != NULL)
        blitz_event_set(handled);
    return ends ? BLITZ_ACTOR_STOP : 0;
}

/* One of our actors has ended: tell the peer of the entry. */
static void tell_end(struct relay *r, struct event *e, const blitz_exit_reason *why)
{
    e->reason = *why;
    if (e->kind == WATCHES)
        tell_peer(r->node, e, BZ_CONTROL_DEMONITOR);
    else if (e->kind == WATCHED)
        tell_peer(r->node, e, BZ_CONTROL_MONITOR_EXIT);
    else if (e->is_late) /* else its own end tells */
        tell_peer(r->node, e, BZ_CONTROL_EXIT);
}

/* Each entry of that watch ends. */
BLITZ_HANDLER(on_down, struct relay, blitz_down)
{
    struct event **at = &state->first;
    for (struct event *e; (e = *at) != NULL;) {
        if (e->watch != data->ref) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        tell_end(state, e, &data->reason);
        event_free(state->node, e);
    }
    return 0;
}

/* A connection has gone: `who` has the peer and the serial. */
BLITZ_HANDLER(on_loss, struct relay, blitz_down)
{
    (void)m;
    lose(state, data->who.node, data->who.index);
    return 0;
}

/* The relay ends, perhaps before its first event. */
static void drop_relay(void *state, void *ctx)
{
    struct relay *r = state;
    (void)ctx;
    lose(r, 0, 0);
    blitz_event_set(&r->node->is_alone); /* the last use of the node */
}

int bz_relations_begin(blitz_node *n)
{
    static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(EVENT, on_event),
                                             BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_down),
                                             BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_loss)};
    static const blitz_behaviour relay = {.name = "node relay",
                                          .state_bytes = sizeof(struct relay),
                                          .drop = drop_relay,
                                          .handlers = handlers,
                                          .handler_count = 3,
                                          .mailbox_high = 1 << 30,
                                          .mailbox_max = 1 << 30};
    struct relay state = {n, NULL};
    blitz_event_init(&n->is_alone);
    n->last = bz_signal_new(n->rt, BZ_SIGNAL_STOP);
    if (n->last == NULL)
        return -ENOMEM;
    n->last->reason = (blitz_exit_reason){.kind = BLITZ_EXIT_SHUTDOWN};
    return blitz_actor_spawn(&relay, &state, &(blitz_actor_opts){.trap_exit = true}, &n->relay);
}

void bz_relations_end_all(blitz_node *n)
{
    bool is_alive = n->relay.generation != 0;
    struct event *e = is_alive ? blitz_msg_alloc(sizeof *e) : NULL;
    if (e != NULL)
        *e = (struct event){.kind = END};
    bool is_posted = e != NULL && post(n, e) == 0;
    bool is_sent = is_alive && !is_posted &&
                   bz_signal_send(n->rt, n->relay.index, n->relay.generation, n->last);
    if (!is_sent && n->last != NULL)
        bz_letter_free(n->rt, n->last);
    if (is_posted || is_sent)
        (void)!blitz_event_wait(&n->is_alone, BLITZ_FOREVER);
}

struct bz_signal *bz_relations_farewell(blitz_node *n)
{
    return bz_signal_new(n->rt, BZ_SIGNAL_FAR_ENDS);
}

void bz_relations_lose(struct bz_peer *p, uint32_t serial, struct bz_signal *farewell)
{
    blitz_node *n = p->node;
    farewell->peer_index = serial;
    farewell->peer_generation = 1;
    farewell->far_node = p->number;
    farewell->far_creation = 0;
    farewell->reason = no_connection;
    if (!bz_signal_send(n->rt, n->relay.index, n->relay.generation, farewell))
        bz_letter_free(n->rt, farewell);
}

/* ---- of our actors ---- */

/* An event of a call of our actor, with the signal for it. */
static struct event *our_event(struct bz_peer *p, enum event_kind kind, uint32_t serial)
{
    struct event *e = event_new(kind, p, serial);
    if (e != NULL && (kind == LINK || kind == WATCHES) &&
        (e->signal = bz_signal_new(p->node->rt, BZ_SIGNAL_FAR_EXIT)) == NULL) {
        event_free(p->node, e);
        return NULL;
    }
    return e;
}

static const struct {
    enum event_kind kind;
    int op;
} relations[] = {[BZ_FAR_LINK] = {LINK, BZ_CONTROL_LINK},
                 [BZ_FAR_UNLINK] = {UNLINK, BZ_CONTROL_UNLINK_ID},
                 [BZ_FAR_MONITOR] = {WATCHES, BZ_CONTROL_MONITOR},
                 [BZ_FAR_DEMONITOR] = {DEMONITOR, BZ_CONTROL_DEMONITOR}};

/* Post the event, then queue the frame on the same connection. */
static int relate(struct bz_peer *p, enum bz_far_relation what, blitz_actor_id me,
                  blitz_actor_id other, uint64_t ref)
{
    blitz_node *n = p->node;
    struct bz_frame *f;
    uint32_t serial;
    bool begins = what == BZ_FAR_LINK || what == BZ_FAR_MONITOR;
    int rc = begins ? bz_peer_connected(p, &serial) : 0;
    if (rc != 0)
        return rc;
    if (!begins)
        serial = serial_of(p);
    struct event *e = our_event(p, relations[what].kind, serial);
    if (e == NULL)
        return -ENOMEM;
    e->ours = me;
    e->far = other;
    /* relaxed: uniqueness is enough */
    e->ref = what == BZ_FAR_UNLINK ? bz_fetch_add_relaxed(&n->unlinks, 1) + 1 : ref;
    rc = make_frame(n, e, relations[what].op, &f);
    if (rc != 0) {
        event_free(n, e);
        return rc;
    }
    rc = post(n, e);
    if (rc != 0) {
        bz_frame_free(n, f);
        return rc;
    }
    if (bz_peer_send_in(p, f, serial) == -EOVERFLOW)
        bz_peer_hang_up(p, serial); /* the relay tells us */
    return 0;
}

int bz_relations_relate(enum bz_far_relation what, blitz_actor_id me, blitz_actor_id other,
                        uint64_t ref)
{
    struct bz_peer *p = bz_peer_find(other.node);
    if (p == NULL)
        return -ESRCH;
    int rc = me.creation != p->node->rt->creation ? -EOPNOTSUPP : relate(p, what, me, other, ref);
    bz_peer_unref(p);
    return rc;
}

void bz_relations_ended(blitz_actor_id me, blitz_actor_id far, const blitz_exit_reason *why)
{
    struct bz_peer *p = bz_peer_find(far.node);
    if (p == NULL)
        return;
    struct event e = {.peer = p->number, .serial = serial_of(p), .ours = me, .far = far};
    e.reason = *why;
    tell_peer(p->node, &e, BZ_CONTROL_EXIT);
    bz_peer_unref(p);
}

int bz_relations_exit(blitz_actor_id me, blitz_actor_id other, const blitz_exit_reason *why)
{
    struct bz_frame *f;
    struct bz_peer *p = bz_peer_find(other.node);
    uint32_t serial;
    if (p == NULL)
        return -ESRCH;
    struct event e = {.ours = me, .far = other, .reason = *why};
    if (me.creation != p->node->rt->creation)
        e.ours = (blitz_actor_id){0, 0, 0, 0};
    int rc = bz_peer_connected(p, &serial);
    if (rc == 0)
        rc = make_frame(p->node, &e, BZ_CONTROL_EXIT2, &f);
    if (rc == 0 && bz_peer_send_in(p, f, serial) == -EOVERFLOW)
        rc = -ENOMEM;
    bz_peer_unref(p);
    return rc;
}

/* ---- of a peer ---- */

/* The reference of one of our monitors, as fill_control() writes it. */
bool bz_relations_ref(const blitz_node *n, const blitz_term_ref *ref, uint64_t *out)
{
    *out = ref->id[0] | (uint64_t)ref->id[1] << 18 | (uint64_t)ref->id[2] << 50;
    return ref->words == 3 && ref->creation == n->creation;
}

static enum event_kind kind_of(enum bz_control_op op)
{
    switch (op) {
    case BZ_CONTROL_LINK:
        return THEIR_LINK;
    case BZ_CONTROL_UNLINK_ID:
        return THEIR_UNLINK;
    case BZ_CONTROL_UNLINK_ID_ACK:
        return THEIR_ACK;
    case BZ_CONTROL_MONITOR:
        return WATCHED;
    case BZ_CONTROL_DEMONITOR:
        return THEIR_DEMONITOR;
    case BZ_CONTROL_MONITOR_EXIT:
        return THEIR_DOWN;
    case BZ_CONTROL_EXIT2:
    case BZ_CONTROL_EXIT2_TT:
        return THEIR_END;
    default:
        return THEIR_EXIT;
    }
}

/* The parts of a control message, for the relay. 0: it is about no actor of ours, and of no effect. */
static int fill_event(struct bz_session *s, const struct bz_control *c, struct event *e)
{
    blitz_node *n = s->node;
    if (!c->from_is_name && bz_node_id_of(n, &c->from, false, &e->far) != 0)
        return 0;
    e->is_by_name = c->op == BZ_CONTROL_MONITOR && c->to_is_name;
    if (c->to_is_name) {
        if (blitz_term_atom_copy(c->to_name, e->name, sizeof e->name) <= 0)
            e->name[0] = '\0'; /* no actor has that name */
    } else if (bz_node_id_of(n, &c->to, false, &e->ours) != 0 || e->ours.node != 0) {
        e->ours = (blitz_actor_id){c->to.id, c->to.serial, 0, c->to.creation};
        e->is_stale = true; /* of an earlier life of this node */
    }
    e->ref = c->id;
    e->words = c->ref.words;
    e->creation = c->ref.creation;
    memcpy(e->id, c->ref.id, sizeof e->id);
    if (c->op == BZ_CONTROL_MONITOR_EXIT && !bz_relations_ref(n, &c->ref, &e->ref))
        return 0;
    if (c->reason.data != NULL) {
        blitz_term_in in = blitz_term_in_of(c->reason);
        e->is_kill = blitz_term_get_this_atom(&in, "kill") == 0;
        bz_reason_get(c->reason, &e->reason);
    }
    return 1;
}

/* Post an event of a peer, and wait until it is handled. */
static int post_and_wait(blitz_node *n, struct event *e)
{
    blitz_event handled;
    blitz_event_init(&handled);
    e->handled = &handled;
    int rc = post(n, e);
    if (rc != 0)
        return rc;
    blitz_shield(); /* the relay uses the event */
    rc = blitz_event_wait(&handled, BLITZ_FOREVER);
    blitz_unshield();
    return rc;
}

int bz_relations_hear(struct bz_session *s, const struct bz_control *c)
{
    struct bz_peer *p = s->peer;
    if (!c->from_is_name &&
        !(c->from.node.bytes == p->bytes && memcmp(c->from.node.text, p->name, p->bytes) == 0))
        return -EPROTO;
    if (c->to_is_name && blitz_term_atom_is(c->to_name, "net_kernel"))
        return 0;                                              /* it never ends */
    struct event *e = event_new(kind_of(c->op), p, s->serial); /* the session may be over */
    if (e == NULL)
        return -ENOMEM;
    if (fill_event(s, c, e) == 0) {
        event_free(s->node, e);
        return 0;
    }
    if ((e->kind == THEIR_LINK || e->kind == THEIR_END) &&
        (e->signal = bz_signal_new(s->node->rt, BZ_SIGNAL_FAR_EXIT)) == NULL) {
        event_free(s->node, e);
        return -ENOMEM;
    }
    return post_and_wait(s->node, e);
}

/* An event about the sender of a control message with a request. NULL: no memory, or an id that is none. */
static struct event *request_event(struct bz_session *s, const struct bz_control *c)
{
    struct event *e = event_new(THEIR_SPAWN, s->peer, s->serial);
    if (e == NULL)
        return NULL;
    if (bz_node_id_of(s->node, &c->from, false, &e->far) != 0) {
        event_free(s->node, e);
        return NULL;
    }
    e->words = c->ref.words;
    e->creation = c->ref.creation;
    memcpy(e->id, c->ref.id, sizeof e->id);
    return e;
}

int bz_relations_spawn(struct bz_session *s, const struct bz_control *c,
                       const struct bz_their_spawn *spawn)
{
    struct event *e = request_event(s, c);
    if (e == NULL) {
        bz_free(&s->node->alloc, spawn->state, spawn->behaviour->state_bytes);
        return -ENOMEM;
    }
    e->spawn = *spawn;
    return post_and_wait(s->node, e);
}

int bz_relations_refuse_spawn(struct bz_session *s, const struct bz_control *c, const char *error)
{
    struct event *e = request_event(s, c);
    if (e == NULL)
        return -ENOMEM;
    send_spawn_reply(s->node, e, error);
    event_free(s->node, e);
    return 0;
}

int bz_relations_spawned(struct bz_session *s, const struct bz_spawned *y)
{
    static const enum event_kind kinds[] = {THEIR_LINK, WATCHES};
    const bool wants[] = {y->links, y->ref != 0};
    for (size_t i = 0; i < BZ_ARRAY_LEN(kinds); i++) {
        struct event *e = wants[i] ? event_new(kinds[i], s->peer, s->serial) : NULL;
        if (!wants[i])
            continue;
        if (e == NULL || (e->signal = bz_signal_new(s->node->rt, BZ_SIGNAL_FAR_EXIT)) == NULL) {
            event_free(s->node, e);
            return -ENOMEM;
        }
        e->ours = y->ours;
        e->far = y->far;
        e->ref = y->ref;
        int rc = post_and_wait(s->node, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

void bz_relations_abandon(struct bz_session *s, const struct bz_spawned *y)
{
    struct event e = {.peer = s->peer->number, .serial = s->serial, .ours = y->ours, .far = y->far};
    e.ref = y->ref;
    e.reason =
        (blitz_exit_reason){.kind = BLITZ_EXIT_ERROR, .code = -ECANCELED, .text = "abandoned"};
    if (y->ref != 0)
        tell_peer(s->node, &e, BZ_CONTROL_DEMONITOR);
    if (y->links)
        tell_peer(s->node, &e, BZ_CONTROL_EXIT);
}
