/*
 * session.c - a connection between two nodes, from its first byte to its end.
 *
 * A session has two tasks. The first connects or was accepted, shakes hands, and then reads. The second writes: it takes frames from the
 * queue of the peer, and sends a tick when it has sent nothing for a quarter of tick_ns. The reader ends the session if nothing has
 * come for tick_ns, and whenever the peer breaks a rule. Only the first task closes the connection, and it waits for the second. So
 * each of the two may use the connection without a lock.
 *
 * A frame may be large, and its length comes first. The buffer grows only as bytes arrive, so a length that lies costs no memory. A
 * frame is handled where it lies.
 *
 * Two nodes may connect to each other at the same time. The protocol resolves that by names (shaking.c). It leaves a gap: an acceptor that is
 * not connecting yet says ok, and then begins to connect. So the attach has the same rule: of two connections that are not up for
 * long, both sides keep the one that the node with the greater name has begun. An acceptor attaches before its last message. So an
 * initiator never finds itself connected with a node that does not know it. An initiator that has not sent its digest is bound to nothing, and
 * goes for any connection of the peer. From then on (is_committed) the peer may have attached it.
 *
 * A session ends in one place, with a reason: a negative errno, or 0 if this side has cancelled it. The frames that are still in the
 * queue are lost. The next send begins a new session.
 *
 * I1  A peer that is not DOWN has a session, whose first task will end that state.
 * I2  s->is_over is set before the writer is told to end. The writer passes a notification on that may be for the next session.
 * I3  A session is counted in n->running while it may use the runtime, and holds a reference of the node.
 * I4  s->task is set before the session is in the list of the node, and under the lock of the peer that has the session. So both locks
 *     guard a look at it.
 * I5  A session that was the connection tells its end itself, when its reader has ended. A new connection begins behind that. So nothing of
 *     the old one comes after the news of its end, and the watcher hears of both in turn.
 */
#include <errno.h>
#include <string.h>

#include "actor/send.h"
#include "node/node.h"
#include "node/relations.h"
#include "term/wire.h"

enum { BUFFER = 1 << 16, PIECES = 64 };

/* ---- up and down ---- */

static void tell(struct bz_peer *p, bool is_up, int reason)
{
    blitz_node *n = p->node;
    blitz_node_event event = {.node = p->number, .is_up = is_up, .reason = reason};
    if (n->opts.watcher.generation != 0 && n->opts.watcher.creation == n->rt->creation)
        (void)!bz_send_ours(n->opts.watcher, BLITZ_MSG_NODE, &event, sizeof event, NULL);
}

/* Wake all that wait for this peer. */
static void settle(struct bz_peer *p)
{
    bz_peer_changed(p);
    bz_peer_serve(p);
    blitz_notify_one(&p->work);
}

static void cancel_task(blitz_task *t)
{
    blitz_task_cancel(t);
    blitz_task_detach(t);
}

/* True if s may take the place of the session before. Both sides decide alike. Under the lock. */
static bool wins(const struct bz_session *s, const struct bz_session *before)
{
    return before == NULL || before == s || before->gives_way || !before->is_committed ||
           s->replaces || s->is_ours == (strcmp(s->node->name, s->peer->name) > 0);
}

/* The frames and calls of a connection that has gone. Taken under the lock of the peer, told without. */
struct remains {
    struct bz_frame *frames;
    struct bz_list calls, answers;
};

static void remains_take(struct bz_peer *p, struct remains *r)
{
    bz_list_init(&r->calls);
    bz_list_init(&r->answers);
    r->frames = p->first;
    p->first = p->last = NULL;
    p->queued = 0;
    bz_list_splice(&r->calls, &p->calls);
    for (unsigned i = 0; i < BZ_ANSWER_LISTS; i++)
        bz_list_splice(&r->answers, &p->answers[i]);
    p->answer_count = 0;
}

static void remains_tell(struct bz_peer *p, struct remains *r)
{
    bz_calls_lose(p, &r->calls);
    bz_answers_lose(p, &r->answers);
    bz_frames_lose(p->node, r->frames);
}

/* True if s is the only session that has told of itself, or is over. */
static bool is_alone(struct bz_peer *p, void *ctx)
{
    const struct bz_session *s = ctx;
    return p->attached == 1 || s->is_over;
}

/* The connections before have gone, and that was told. Only then does this one begin. I5 */
static int wait_for_others(struct bz_session *s)
{
    int rc = bz_peer_wait(s->peer, is_alone, s, BLITZ_FOREVER);
    if (rc != 0)
        return rc;
    bz_peer_lock(s->peer);
    bool is_over = s->is_over;
    bz_peer_unlock(s->peer);
    return is_over ? -EALREADY : 0;
}

int bz_session_attach(struct bz_session *s)
{
    struct bz_peer *p = s->peer;
    struct remains remains;
    blitz_task *old = NULL;
    bz_peer_lock(p);
    bool was_up = p->state == BZ_PEER_UP;
    if (s->is_over || !wins(s, p->session)) {
        bz_peer_unlock(p);
        return -EALREADY;
    }
    if (p->session != NULL && p->session != s) {
        p->session->is_over = true;
        if (was_up) {
            remains_take(p, &remains);
            p->serial++;
        }
        old = p->session->task != NULL ? blitz_task_ref(p->session->task) : NULL;
    }
    p->session = s;
    s->is_committed = s->is_attached = true;
    s->serial = p->serial;
    p->attached++;
    p->state = BZ_PEER_UP;
    p->error = 0;
    bz_peer_unlock(p);
    if (old != NULL)
        cancel_task(old);
    if (was_up)
        remains_tell(p, &remains);
    int rc = wait_for_others(s);
    if (rc != 0)
        return rc;
    tell(p, true, 0);
    s->is_told = true;
    settle(p);
    return 0;
}

/* The session ends, or was not made. If it is still the peer's, the peer is down. Its reader has ended. */
static void detach(struct bz_session *s, int reason)
{
    struct bz_peer *p = s->peer;
    struct remains remains;
    if (p == NULL)
        return;
    bz_peer_lock(p);
    bool is_its = p->session == s;
    s->is_over = true;
    if (is_its) {
        remains_take(p, &remains);
        p->session = NULL;
        p->state = BZ_PEER_DOWN;
        p->error = reason != 0 ? reason : -ECANCELED;
        p->attempts++;
        s->serial = p->serial++;
    }
    struct bz_signal *farewell = is_its || s->is_attached ? s->farewell : NULL;
    s->farewell = farewell != NULL ? NULL : s->farewell;
    bz_peer_unlock(p);
    if (farewell != NULL)
        bz_relations_lose(p, s->serial, farewell);
    if (is_its)
        remains_tell(p, &remains);
    if (s->is_told)
        tell(p, false, is_its ? reason : -ECONNRESET);
    bz_peer_lock(p);
    p->attached -= s->is_attached; /* I5 */
    bz_peer_unlock(p);
    settle(p);
}

/* ---- the writer ---- */

/* Write these pieces. */
static int write_all(blitz_tcp *t, blitz_piece *piece, size_t count)
{
    while (count > 0) {
        int64_t n = blitz_tcp_writev(t, piece, count, BLITZ_FOREVER);
        if (n < 0)
            return (int)n;
        for (; count > 0 && (size_t)n >= piece->bytes; piece++, count--)
            n -= (int64_t)piece->bytes;
        if (count > 0) {
            piece->data = (char *)piece->data + n;
            piece->bytes -= (size_t)n;
        }
    }
    return 0;
}

static int write_frames(struct bz_session *s, struct bz_frame *first)
{
    blitz_piece pieces[PIECES];
    size_t count = 0;
    for (struct bz_frame *f = first; f != NULL; f = f->next)
        pieces[count++] = (blitz_piece){f->data, f->bytes};
    int rc = write_all(s->tcp, pieces, count);
    if (rc != 0) {
        bz_frames_lose(s->node, first);
        return rc;
    }
    while (first != NULL) {
        struct bz_frame *next = first->next;
        bz_frame_free(s->node, first);
        first = next;
    }
    return 0;
}

static bool is_over(struct bz_session *s)
{
    bz_peer_lock(s->peer);
    bool is_over = s->is_over;
    bz_peer_unlock(s->peer);
    return is_over;
}

/* Wait for frames; write a tick if none come for long. */
static int wait_or_tick(struct bz_session *s, blitz_deadline *tick)
{
    static char zeros[4];
    int rc = blitz_notify_wait(&s->peer->work, *tick);
    if (rc != -ETIMEDOUT)
        return rc;
    *tick = blitz_after(s->node->opts.tick_ns / 4);
    return write_all(s->tcp, &(blitz_piece){zeros, sizeof zeros}, 1);
}

static int writer(void *arg)
{
    struct bz_session *s = arg;
    blitz_deadline tick = blitz_after(s->node->opts.tick_ns / 4);
    int rc = 0;
    while (rc == 0 && !is_over(s)) {
        struct bz_frame *first = bz_session_take(s, PIECES);
        if (first == NULL) {
            rc = wait_or_tick(s, &tick);
            continue;
        }
        rc = write_frames(s, first);
        tick = blitz_after(s->node->opts.tick_ns / 4);
    }
    blitz_tcp_close(blitz_tcp_ref(s->tcp)); /* the reader ends, too */
    blitz_notify_one(&s->peer->work);       /* I2 */
    return rc;
}

/* ---- the reader ---- */

struct input {
    unsigned char *data;
    size_t at, end, room;
};

/* Handle all whole frames. *need: bytes that the next one has in all. */
static int handle_all(struct bz_session *s, struct input *in, size_t *need)
{
    for (;;) {
        size_t left = in->end - in->at;
        *need = 4;
        if (left < 4)
            return 0;
        size_t bytes = bz_wire32(in->data + in->at);
        if (bytes > s->node->opts.message_max)
            return -EPROTO;
        *need = 4 + bytes;
        if (left < *need)
            return 0;
        int rc = bytes > 0 ? bz_session_handle(s, in->data + in->at + 4, bytes) : 0;
        if (rc != 0)
            return rc;
        in->at += *need;
    }
}

/* Move what is left to the front, and make room: twice what is there, up to what the frame needs. A large buffer is given back. */
static int make_space(blitz_node *n, struct input *in, size_t need)
{
    size_t left = in->end - in->at, room = 2 * left > BUFFER ? 2 * left : BUFFER;
    if (need <= BUFFER || room < need)
        room = need <= BUFFER ? BUFFER : room;
    else
        room = need;
    if (room != in->room) {
        unsigned char *data = bz_alloc(&n->alloc, room, 16);
        if (data == NULL)
            return -ENOMEM;
        if (left > 0 && in->data != NULL)
            memcpy(data, in->data + in->at, left);
        bz_free(&n->alloc, in->data, in->room);
        in->data = data;
        in->room = room;
    } else if (left > 0 && in->at > 0) {
        memmove(in->data, in->data + in->at, left);
    }
    in->at = 0;
    in->end = left;
    return 0;
}

static int read_frames(struct bz_session *s, struct input *in)
{
    for (;;) {
        size_t need;
        int rc = handle_all(s, in, &need);
        if (rc == 0)
            rc = make_space(s->node, in, need);
        if (rc != 0)
            return rc;
        int64_t n = blitz_tcp_read(s->tcp, in->data + in->end, in->room - in->end,
                                   blitz_after(s->node->opts.tick_ns));
        if (n <= 0)
            return n == 0 ? -ECONNRESET : (int)n;
        in->end += (size_t)n;
    }
}

/* The reason of an end that the writer has seen first. */
static int reason_of(int read, int written)
{
    if (read == -EBADF && written != 0)
        return written;
    return read == -EBADF || read == -ECANCELED ? 0 : read;
}

/* The connection is up: read and write until it ends. Returns why. */
static int serve(struct bz_session *s)
{
    static const blitz_spawn_opts named = {.name = "node writer"};
    struct input in = {NULL, 0, 0, 0};
    blitz_task *t;
    int written = 0, rc = blitz_spawn(writer, s, &named, &t);
    if (rc != 0)
        return rc;
    rc = read_frames(s, &in);
    if (rc == -EPROTO)
        bz_node_count(&s->node->broken);
    bz_free(&s->node->alloc, in.data, in.room);
    blitz_shield();
    bz_peer_lock(s->peer);
    s->is_over = true; /* I2 */
    bz_peer_unlock(s->peer);
    blitz_tcp_close(blitz_tcp_ref(s->tcp));
    blitz_notify_all(&s->peer->work);
    blitz_notify_one(&s->peer->work);
    (void)blitz_task_join(t, &written, BLITZ_FOREVER);
    blitz_unshield();
    return reason_of(rc, written);
}

/* ---- a session ---- */

static int find(struct bz_session *s, blitz_addr *at, blitz_deadline until)
{
    blitz_node *n = s->node;
    const struct bz_peer *peer = s->peer;
    BZ_ASSUME(peer != NULL); /* ours: it was made for this peer */
    for (size_t i = 0; i < n->opts.place_count; i++)
        if (strcmp(n->opts.places[i].name, peer->name) == 0) {
            *at = n->opts.places[i].at;
            return 0;
        }
    return n->opts.no_epmd ? -EHOSTUNREACH : bz_epmd_find(n, peer->name, at, until);
}

static int open_session(struct bz_session *s, blitz_deadline until)
{
    blitz_addr at;
    int rc = s->is_ours ? find(s, &at, until) : 0;
    if (rc == 0 && s->is_ours)
        rc = blitz_tcp_connect(&at, &s->tcp, until);
    if (rc == 0)
        (void)blitz_tcp_set_nodelay(s->tcp, true);
    return rc;
}

/* A connect of ours that has failed while the peer's connect to us is under way: wait for that, whose attach cancels us. */
static int give_way(struct bz_session *s, int rc, blitz_deadline until)
{
    if (!s->is_ours)
        return rc;
    bz_peer_lock(s->peer);
    bool gives_way = rc == -EALREADY || s->gives_way;
    bz_peer_unlock(s->peer);
    if (gives_way && rc != -ECANCELED)
        (void)!blitz_sleep_until(until); /* or the cancel */
    return gives_way && rc == -EALREADY ? -ETIMEDOUT : rc;
}

/* Connect and shake hands, then serve. */
static int run(struct bz_session *s)
{
    blitz_deadline until = blitz_after(s->node->opts.connect_ns);
    int rc = open_session(s, until);
    if (rc == 0) {
        rc = bz_session_shake(s, until);
        if (rc != 0 && rc != -EALREADY)
            bz_node_count(&s->node->refused);
    }
    if (rc == 0 && s->is_ours)
        rc = bz_session_attach(s);
    return rc != 0 ? give_way(s, rc, until) : serve(s);
}

/* Enter the list of the node. False: the node stops. */
static bool enter(struct bz_session *s)
{
    blitz_node *n = s->node;
    blitz_task *t = blitz_task_ref(blitz_task_current());
    if (s->peer != NULL)
        bz_peer_lock(s->peer);
    s->task = t; /* I4 */
    if (s->peer != NULL)
        bz_peer_unlock(s->peer);
    bz_lock_take(&n->lock, bz_os_here());
    bz_list_push_back(&n->sessions, &s->all);
    bool may = !n->is_stopping;
    bz_lock_drop(&n->lock, bz_os_here());
    return may;
}

/* It is in no list, and no peer has it. */
static void session_free(struct bz_session *s)
{
    blitz_node *n = s->node;
    if (s->farewell != NULL)
        bz_letter_free(n->rt, s->farewell);
    blitz_tcp_close(s->tcp);
    blitz_task_detach(s->task);
    bz_peer_unref(s->peer);
    bz_free(&n->alloc, s, sizeof *s);
    bz_node_leave(n);
    bz_node_unref(n);
}

/* NULL: no memory, or the node stops: then *rc is -ESRCH. */
static struct bz_session *session_new(blitz_node *n, int *rc)
{
    struct bz_session *s = bz_alloc(&n->alloc, sizeof *s, _Alignof(struct bz_session));
    *rc = s == NULL ? -ENOMEM : !bz_node_enter(n) ? -ESRCH : 0;
    if (*rc != 0) {
        bz_free(&n->alloc, s, sizeof *s);
        return NULL;
    }
    bz_node_ref(n); /* I3 */
    *s = (struct bz_session){.node = n, .farewell = bz_relations_farewell(n)};
    bz_list_init(&s->all);
    if (s->farewell != NULL)
        return s;
    session_free(s);
    *rc = -ENOMEM;
    return NULL;
}

static int session_main(void *arg)
{
    struct bz_session *s = arg;
    int rc = enter(s) ? run(s) : -ECANCELED;
    detach(s, rc);
    bz_lock_take(&s->node->lock, bz_os_here());
    bz_list_remove(&s->all);
    bz_lock_drop(&s->node->lock, bz_os_here());
    session_free(s);
    return rc;
}

static int start(struct bz_session *s)
{
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)s->node->rt, .name = "node session"};
    return blitz_spawn(session_main, s, &opts, NULL);
}

int bz_session_connect(struct bz_peer *p, struct bz_frame *f)
{
    int rc = bz_node_allows(p->node, p->name) ? 0 : -EACCES;
    struct bz_session *s = rc == 0 ? session_new(p->node, &rc) : NULL;
    if (s == NULL)
        return rc;
    s->is_ours = true;
    s->peer = bz_peer_ref(p);
    bz_peer_lock(p);
    bool is_first = p->state == BZ_PEER_DOWN;
    if (is_first) {
        p->state = BZ_PEER_PENDING; /* I1 */
        p->session = s;
        if (f != NULL)
            bz_peer_append(p, f);
    }
    bz_peer_unlock(p);
    rc = is_first ? start(s) : 1;
    if (is_first && rc == 0)
        return 0;
    if (is_first)
        detach(s, rc); /* the frame is lost */
    session_free(s);
    return is_first ? 0 : 1;
}

void bz_session_accept(blitz_node *n, blitz_tcp *t)
{
    int rc;
    struct bz_session *s = session_new(n, &rc);
    if (s == NULL) {
        blitz_tcp_close(t);
        return;
    }
    s->tcp = t;
    if (start(s) != 0)
        session_free(s);
}
