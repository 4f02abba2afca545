/*
 * outbox.c - frames on their way to a peer: made, queued, taken.
 *
 * A sender encodes its message itself, outside of every lock, and puts the frame into the queue of the peer. The writer of the connection
 * takes many frames at a time and writes them with one system call. Without a connection the frames wait for it; if it cannot be made,
 * they are lost, and counted.
 *
 * The queue is bounded twice. Beyond queue_high a sender waits until half of it has gone: a fiber, an actor in its handler, a thread, a
 * future. A sender that must not wait gets -EAGAIN. The frames of the node itself, such as answers, do not wait. If they come to
 * queue_max, the peer does not read, and its connection is closed with -EOVERFLOW.
 *
 * Waiting is a request (park/request.h), so the logic of the call and of the future is the same. Senders get room in the order in which
 * they came, and no new sender passes them. The frame of a sender on a stack is put into the queue by the grant. A future may be
 * cancelled until it is polled, and then nothing must have been sent. So its grant is a promise of so many bytes, which the poll
 * redeems and the cancel gives to the next sender.
 *
 * Without a connection nothing waits: the request is done with the result UNCONNECTED. Its owner begins to connect, outside of
 * the lock, with its frame as the first; or drives the request again if another sender was faster.
 *
 * I1  queued is the sum of the bytes of the frames in the queue. Those that the writer has taken do not count: as many again, at most.
 * I2  A frame is in one queue, or has one owner.
 * I3  promised is the sum of the bytes of the futures whose request is GRANTED.
 * I4  If the first waiter does not fit, the queue has a frame or a promise is open. The writer takes the frame, the future's owner
 *     polls or cancels, and both serve.
 */
#include <errno.h>
#include <string.h>

#include "node/node.h"
#include "park/request.h"
#include "term/wire.h"

enum { QUICK = 512, FRAME_HEAD = 5, PASS_THROUGH = 'p' };

/* ---- frames ---- */

static int encode(blitz_term_out *out, void *buf, size_t cap,
                  int (*fill)(blitz_term_out *out, void *ctx), void *ctx, size_t *bytes)
{
    static const unsigned char head[FRAME_HEAD] = {0, 0, 0, 0, PASS_THROUGH};
    blitz_term_out_init(out, buf, cap);
    blitz_term_put_bytes(out, head, sizeof head);
    int rc = fill(out, ctx);
    int end = blitz_term_out_end(out, bytes);
    return rc != 0 ? rc : end;
}

static struct bz_frame *frame_new(blitz_node *n, size_t bytes, bool is_message)
{
    struct bz_frame *f = bz_alloc(&n->alloc, sizeof *f + bytes, _Alignof(struct bz_frame));
    if (f == NULL)
        return NULL;
    f->next = NULL;
    f->bytes = bytes;
    f->is_message = is_message;
    f->call = NULL;
    return f;
}

size_t bz_frame_split(blitz_term_out *out)
{
    static const unsigned char head[FRAME_HEAD] = {0, 0, 0, 0, PASS_THROUGH};
    size_t at = out->bytes;
    blitz_term_put_bytes(out, head, sizeof head);
    return at;
}

/* Make frames. *split is where the second begins; NULL: there is one. */
static int make(blitz_node *n, int (*fill)(blitz_term_out *out, void *ctx), void *ctx,
                const size_t *split, bool is_message, struct bz_frame **out)
{
    unsigned char quick[QUICK];
    blitz_term_out o;
    size_t bytes;
    int rc = encode(&o, quick, sizeof quick, fill, ctx, &bytes);
    if (rc == -E2BIG || ((rc == 0 || rc == -ENOSPC) && bytes > n->opts.queue_max))
        return -EMSGSIZE;
    if (rc != 0 && rc != -ENOSPC)
        return rc;
    struct bz_frame *f = frame_new(n, bytes, is_message);
    if (f == NULL)
        return -ENOMEM;
    if (rc == 0)
        memcpy(f->data, quick, bytes);
    else if ((rc = encode(&o, f->data, bytes, fill, ctx, &bytes)) != 0) {
        bz_frame_free(n, f);
        return rc;
    }
    size_t first = split != NULL ? *split : bytes;
    bz_wire32_to(f->data, (uint32_t)(first - 4));
    if (split != NULL)
        bz_wire32_to(f->data + first, (uint32_t)(bytes - first - 4));
    *out = f;
    return 0;
}

int bz_frame_make(blitz_node *n, int (*fill)(blitz_term_out *out, void *ctx), void *ctx,
                  bool is_message, struct bz_frame **out)
{
    return make(n, fill, ctx, NULL, is_message, out);
}

int bz_frame_make_two(blitz_node *n, int (*fill)(blitz_term_out *out, void *ctx), void *ctx,
                      const size_t *split, struct bz_frame **out)
{
    return make(n, fill, ctx, split, true, out);
}

void bz_frame_free(blitz_node *n, struct bz_frame *f)
{
    bz_free(&n->alloc, f, sizeof *f + f->bytes);
}

void bz_frames_lose(blitz_node *n, struct bz_frame *first)
{
    while (first != NULL) {
        struct bz_frame *next = first->next;
        if (first->is_message)
            bz_node_count(&n->lost);
        bz_frame_free(n, first);
        first = next;
    }
}

/* ---- the queue ---- */

/* Under the lock: I1. */
static void append(struct bz_peer *p, struct bz_frame *f)
{
    if (f->call != NULL)
        bz_list_push_back(&p->calls, f->call);
    f->call = NULL;
    if (p->first == NULL)
        p->first = f;
    else
        p->last->next = f;
    p->last = f;
    p->queued += f->bytes;
}

void bz_peer_append(struct bz_peer *p, struct bz_frame *f)
{
    append(p, f);
}

enum { QUEUED, UNCONNECTED, FULL };

/* True if there is room for a frame. One that is larger than the bound goes alone. Under the lock. */
static bool fits(const struct bz_peer *p, const struct bz_frame *f)
{
    size_t used = p->queued + p->promised;
    return used == 0 || used + f->bytes <= p->node->opts.queue_high;
}

/* Queue a frame, unless there is no connection. Under the lock. */
static int append_if_connected(struct bz_peer *p, struct bz_frame *f)
{
    if (p->state == BZ_PEER_DOWN)
        return UNCONNECTED;
    append(p, f);
    return QUEUED;
}

/* The same for a sender that has just come. */
static int append_now(struct bz_peer *p, struct bz_frame *f)
{
    if (p->state != BZ_PEER_DOWN && (!bz_list_is_empty(&p->waiters) || !fits(p, f)))
        return FULL;
    return append_if_connected(p, f);
}

/* ---- waiting for room ---- */

static struct bz_far_sending *sending_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_far_sending, request);
}

/* Let the first waiters go on, as long as there is room; without a connection all. Under the lock. */
static void serve(struct bz_peer *p, struct bz_wakelist *wakes)
{
    for (struct bz_waiter *w; (w = bz_waiter_first(&p->waiters)) != NULL;) {
        struct bz_request *r = BZ_CONTAINER_OF(w, struct bz_request, waiter);
        struct bz_frame *f = sending_of(r)->frame;
        bool is_down = p->state == BZ_PEER_DOWN, is_polled = w->is_polled;
        if (!is_down && !fits(p, f))
            return;
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        bool is_granted = is_down ? bz_request_notify(r, wakes) : bz_request_grant(r, wakes);
        if (is_down || !is_granted) /* not granted: it has left */
            continue;
        if (is_polled)
            p->promised += f->bytes; /* I3 */
        else
            append(p, f); /* its sender has the result, and may be gone */
    }
}

void bz_peer_serve(struct bz_peer *p)
{
    struct bz_wakelist wakes;
    do {
        bz_wakelist_init(&wakes);
        bz_peer_lock(p);
        serve(p, &wakes);
        bz_peer_unlock(p);
        bz_wakelist_deliver(&wakes);
    } while (wakes.has_more);
}

static void room_lock(struct bz_request *r)
{
    bz_peer_lock(sending_of(r)->peer);
}

/* has_more: a sender has left, who still has its reference. Others may have room now. */
static void room_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_peer *p = sending_of(r)->peer;
    bool has_more = wakes->has_more;
    bz_peer_unlock(p);
    if (has_more)
        bz_peer_serve(p);
}

static bool room_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_far_sending *s = sending_of(r);
    int rc = append_now(s->peer, s->frame);
    (void)wakes;
    bz_set(&r->waiter.result,
           rc == FULL ? QUEUED : rc); /* that of a grant: it may be driven again */
    if (rc == FULL)
        bz_waiter_queue(&r->waiter, &s->peer->waiters);
    return rc != FULL;
}

/* A promise is redeemed. The connection may have gone since. */
static bool room_check(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_far_sending *s = sending_of(r);
    (void)wakes;
    if (r->waiter.state != BZ_WAITER_GRANTED)
        return false;
    s->peer->promised -= s->frame->bytes; /* I3 */
    bz_set(&r->waiter.result, append_if_connected(s->peer, s->frame));
    return true;
}

static bool room_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_far_sending *s = sending_of(r);
    bool is_granted = r->waiter.state == BZ_WAITER_GRANTED;
    if (is_granted && !r->waiter.is_polled)
        return false; /* before it was parked: its frame is in the queue */
    if (is_granted)
        s->peer->promised -= s->frame->bytes; /* I3 */
    bz_waiter_leave(&r->waiter);
    wakes->has_more = true; /* I4 */
    return true;
}

static const struct bz_request_ops waiting_for_room = {.what = "room in the queue of a node",
                                                       .lock = room_lock,
                                                       .unlock = room_unlock,
                                                       .enter = room_enter,
                                                       .leave = room_leave,
                                                       .check = room_check};

/* ---- a send, in its parts ---- */

void bz_outbox_begin(struct bz_far_sending *s, struct bz_peer *p, struct bz_frame *f)
{
    s->request.ops = &waiting_for_room;
    s->peer = p;
    s->frame = f;
}

/* The frame is in the queue, and may be gone already: I2. */
static int sent(struct bz_far_sending *s)
{
    s->frame = NULL;
    bz_node_count(&s->peer->node->sent);
    blitz_notify_one(&s->peer->work);
    return 0;
}

/* There is no connection: begin one. */
static int connect_with(struct bz_far_sending *s)
{
    int rc = s->peer->node->connect(s->peer, s->frame);
    return rc == 0 ? sent(s) : rc > 0 ? BZ_MET_WAIT : rc;
}

int bz_outbox_next(struct bz_far_sending *s)
{
    return bz_get(&s->request.waiter.result) == QUEUED ? sent(s) : connect_with(s);
}

int bz_outbox_try(struct bz_far_sending *s)
{
    for (;;) {
        bz_peer_lock(s->peer);
        int rc = append_now(s->peer, s->frame);
        bz_peer_unlock(s->peer);
        if (rc != UNCONNECTED)
            return rc == QUEUED ? sent(s) : -EAGAIN;
        rc = connect_with(s);
        if (rc != BZ_MET_WAIT)
            return rc;
    }
}

void bz_outbox_end(struct bz_far_sending *s)
{
    if (s->frame != NULL)
        bz_frame_free(s->peer->node, s->frame);
    bz_peer_unref(s->peer);
}

int bz_peer_send(struct bz_peer *p, struct bz_frame *f, blitz_deadline until)
{
    struct bz_far_sending s;
    bz_outbox_begin(&s, bz_peer_ref(p), f);
    int rc = bz_far_wait(&s, until);
    bz_outbox_end(&s);
    return rc;
}

/* Queue a frame, if it fits into queue_max. */
static int append_up_to_max(struct bz_peer *p, struct bz_frame *f)
{
    bz_peer_lock(p);
    bool is_full = p->queued + f->bytes > p->node->opts.queue_max;
    int rc = is_full ? FULL : append_if_connected(p, f);
    bz_peer_unlock(p);
    return rc;
}

int bz_peer_send_now(struct bz_peer *p, struct bz_frame *f)
{
    int rc;
    do {
        rc = append_up_to_max(p, f);
        if (rc == UNCONNECTED)
            rc = p->node->connect(p, f);
        else
            rc = rc == QUEUED ? 0 : -EAGAIN;
    } while (rc > 0); /* another sender has connected */
    if (rc != 0) {
        bz_frame_free(p->node, f);
        return rc;
    }
    bz_node_count(&p->node->sent);
    blitz_notify_one(&p->work);
    return 0;
}

int bz_peer_connected(struct bz_peer *p, uint32_t *serial)
{
    for (;;) {
        bz_peer_lock(p);
        bool is_there = p->state != BZ_PEER_DOWN;
        *serial = p->serial;
        bz_peer_unlock(p);
        int rc = is_there ? 0 : p->node->connect(p, NULL);
        if (is_there || rc < 0)
            return rc;
    }
}

int bz_peer_send_in(struct bz_peer *p, struct bz_frame *f, uint32_t serial)
{
    bz_peer_lock(p);
    bool is_it = p->serial == serial && p->state != BZ_PEER_DOWN;
    bool is_full = p->queued + f->bytes > p->node->opts.queue_max;
    if (is_it && !is_full)
        append(p, f);
    bz_peer_unlock(p);
    if (!is_it || is_full)
        bz_frames_lose(p->node, f);
    blitz_notify_one(&p->work);
    return !is_it ? -ENOTCONN : is_full ? -EOVERFLOW : 0;
}

void bz_peer_hang_up(struct bz_peer *p, uint32_t serial)
{
    bz_peer_lock(p);
    bool is_it = p->serial == serial && p->session != NULL && p->session->task != NULL;
    blitz_task *t = is_it ? blitz_task_ref(p->session->task) : NULL;
    bz_peer_unlock(p);
    blitz_task_cancel(t);
    blitz_task_detach(t);
}

int bz_session_send(struct bz_session *s, struct bz_frame *f)
{
    struct bz_peer *p = s->peer;
    bz_peer_lock(p);
    bool is_ours = p->session == s && !s->is_over;
    bool is_full = p->queued + f->bytes > s->node->opts.queue_max;
    if (is_ours && !is_full)
        append(p, f);
    bz_peer_unlock(p);
    if (!is_ours || is_full)
        bz_frames_lose(s->node, f);
    blitz_notify_one(&p->work);
    return is_ours && is_full ? -EOVERFLOW : 0;
}

struct bz_frame *bz_session_take(struct bz_session *s, unsigned max)
{
    struct bz_peer *p = s->peer;
    bz_peer_lock(p);
    bool is_ours = p->session == s && !s->is_over;
    struct bz_frame *first = is_ours ? p->first : NULL, *last = first;
    size_t bytes = first != NULL ? first->bytes : 0;
    for (unsigned n = 1; first != NULL && n < max && last->next != NULL; n++) {
        last = last->next;
        bytes += last->bytes;
    }
    if (first != NULL) {
        p->first = last->next;
        last->next = NULL;
        p->queued -= bytes; /* I1 */
    }
    bool serves =
        p->queued <= s->node->opts.queue_high / 2 && !bz_list_is_empty(&p->waiters); /* I4 */
    bz_peer_unlock(p);
    if (serves)
        bz_peer_serve(p);
    return first;
}

void bz_peers_end(blitz_node *n)
{
    uint32_t at = 0;
    for (struct bz_peer *p; (p = bz_peer_take(n, &at)) != NULL;) {
        bz_peer_lock(p);
        struct bz_frame *first = p->first;
        p->first = p->last = NULL;
        bz_peer_unlock(p);
        bz_frames_lose(n, first);
        bz_peer_serve(p);
        bz_peer_changed(p);
        bz_peer_unref(p);
    }
}
