/*
 * The queue of a connection: who waits for room, gets it in order, and sends nothing if it gives up. The second node is behind a gate,
 * which accepts the connection and forwards nothing until the test opens it. So the queue is full for as long as the test wants.
 */
#include "harness.h"

#include <pthread.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "node/node.h"
#include "support/node_scene.h"
#include "support/on_each.h"
#include "wait/waker.h"

/* ---- a gate: a proxy that can be shut ---- */

struct gate {
    blitz_tcp_listener *listener;
    blitz_addr there;
    blitz_event open;
    blitz_task *keeper;
    blitz_tcp *half[2]; /* of the connection that waits or passes: ours, theirs */
    unsigned accepted;
};

struct pump {
    blitz_tcp *from, *to;
};

/* Forward until one side closes, then close both. */
static int pump(void *arg)
{
    struct pump *p = arg;
    char buf[4096];
    for (int64_t n; (n = blitz_tcp_read(p->from, buf, sizeof buf, BLITZ_FOREVER)) > 0;)
        if (blitz_tcp_write_all(p->to, buf, (size_t)n, NULL, BLITZ_FOREVER) != 0)
            break;
    blitz_tcp_close(blitz_tcp_ref(p->from));
    blitz_tcp_close(blitz_tcp_ref(p->to));
    return 0;
}

static void forward(struct gate *g)
{
    struct pump there = {g->half[0], g->half[1]}, back = {g->half[1], g->half[0]};
    blitz_task *t = t_spawn(pump, &there);
    (void)pump(&back);
    blitz_shield();
    t_join(t);
    blitz_unshield();
    blitz_tcp_close(g->half[1]);
}

static int keep_gate(void *arg)
{
    struct gate *g = arg;
    while (blitz_tcp_accept(g->listener, &g->half[0], NULL, BLITZ_FOREVER) == 0) {
        g->accepted++;
        if (blitz_event_wait(&g->open, BLITZ_FOREVER) == 0 &&
            blitz_tcp_connect(&g->there, &g->half[1], t_soon()) == 0)
            forward(g);
        blitz_tcp_close(g->half[0]);
    }
    return 0;
}

/* ---- the scene ---- */

enum { HIGH = 512 };

struct scene {
    struct t_nodes w;
    struct gate gate;
    blitz_actor_id me, there; /* the test, as node 1 knows it, and as node 0 does */
    struct bz_peer *peer;     /* of node 0 */
    int64_t sent;             /* by the test, so far */
};

static void scene_begin(struct scene *s)
{
    blitz_term_pid pid;
    memset(s, 0, sizeof *s);
    blitz_event_init(&s->gate.open);
    s->gate.listener = t_listen(&s->gate.there);
    t_nodes_places(&s->w);
    blitz_addr behind = s->w.listen[1];
    s->w.place[1].at = s->gate.there;
    s->gate.there = behind;
    CHECK_EQ(t_node_start(&s->w, 1, T_COOKIE, (blitz_node_opts){0}), 0);
    CHECK_EQ(t_node_start(&s->w, 0, T_COOKIE,
                          (blitz_node_opts){.queue_high = HIGH, .connect_ns = 60 * BLITZ_S}),
             0);
    s->gate.keeper = t_spawn(keep_gate, &s->gate);
    s->me = t_receiver();
    CHECK_EQ(blitz_node_pid_of(s->w.node[1], s->me, &pid), 0);
    CHECK_EQ(blitz_node_id_of(s->w.node[0], &pid, &s->there), 0);
    s->peer = bz_peer_find(s->there.node);
    CHECK_NOT_NULL(s->peer);
}

static void scene_end(struct scene *s)
{
    bz_peer_unref(s->peer);
    t_nodes_stop(&s->w);
    blitz_task_cancel(s->gate.keeper);
    t_join(s->gate.keeper);
    blitz_tcp_listener_close(s->gate.listener);
}

static size_t waiting(struct scene *s)
{
    size_t n = 0;
    bz_peer_lock(s->peer);
    for (struct bz_list *l = s->peer->waiters.next; l != &s->peer->waiters; l = l->next)
        n++;
    bz_peer_unlock(s->peer);
    return n;
}

static void until_waiting(struct scene *s, size_t n)
{
    while (waiting(s) != n)
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
}

/* Send until the queue is full. */
static void fill(struct scene *s)
{
    struct t_sum sum = {s->sent};
    for (int rc; (rc = blitz_actor_try_send(s->there, T_SUM, &sum, sizeof sum)) != -EAGAIN;) {
        CHECK_EQ(rc, 0);
        sum.n = ++s->sent;
    }
}

/* ---- senders ---- */

enum how { CALL, FUTURE, BY_NAME, TERM, NAME_TERM, BY_THREAD, HOWS };

struct sender {
    struct scene *s;
    enum how how;
    int64_t n;
    blitz_deadline until;
    int rc;
    blitz_task *task;
    pthread_t thread;
};

static blitz_term term_of(int64_t n, unsigned char *buf, size_t cap)
{
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, buf, cap);
    CHECK_EQ(blitz_term_put_struct(&out, &t_sum_term, &(struct t_sum){n}, NULL), 0);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return (blitz_term){buf, bytes};
}

static int send_by_future(struct sender *x)
{
    blitz_actor_send_future f;
    struct t_sum sum = {x->n};
    blitz_actor_send_future_init(&f, x->s->there, T_SUM, &sum, sizeof sum);
    int rc = blitz_await(&f.future, x->until);
    return rc != 0 && f.result == -ECANCELED ? rc : f.result;
}

static int send_one(void *arg)
{
    struct sender *x = arg;
    struct t_sum sum = {x->n};
    unsigned char buf[64];
    blitz_node *n = x->s->w.node[0];
    switch (x->how) {
    case FUTURE:
        x->rc = send_by_future(x);
        break;
    case BY_NAME:
        x->rc = blitz_node_send_name(n, "test", t_node_name[1], T_SUM, &sum, sizeof sum);
        break;
    case TERM:
        x->rc = blitz_node_send_term(n, x->s->there, term_of(x->n, buf, sizeof buf), x->until);
        break;
    case NAME_TERM:
        x->rc = blitz_node_send_name_term(n, "test", t_node_name[1], term_of(x->n, buf, sizeof buf),
                                          x->until);
        break;
    default:
        x->rc = blitz_actor_send_until(x->s->there, T_SUM, &sum, sizeof sum, x->until);
    }
    return 0;
}

static void *send_on_thread(void *arg)
{
    (void)send_one(arg);
    return NULL;
}

static void sender_start(struct scene *s, struct sender *x, enum how how, blitz_deadline until)
{
    *x = (struct sender){.s = s, .how = how, .n = s->sent, .until = until};
    if (how == BY_THREAD)
        CHECK_EQ(pthread_create(&x->thread, NULL, send_on_thread, x), 0);
    else
        x->task = t_spawn(send_one, x);
}

/* Wait for its end. A plain thread is joined without the runtime's help: the others go on. */
static int join_thread(void *arg)
{
    return pthread_join(((struct sender *)arg)->thread, NULL);
}

static int sender_end(struct sender *x)
{
    if (x->how == BY_THREAD)
        CHECK_EQ(blitz_blocking(join_thread, x), 0);
    else
        t_join(x->task);
    return x->rc;
}

/* ---- tests ---- */

static int waits(void *arg)
{
    struct scene s;
    struct sender x[2 * HOWS];
    (void)arg;
    scene_begin(&s);
    CHECK_EQ(blitz_actor_register("test", s.me), 0);
    fill(&s);
    for (int i = 0; i < 2 * HOWS; i++, s.sent++) {
        sender_start(&s, &x[i], (enum how)(i % HOWS), t_soon());
        until_waiting(&s, (size_t)i + 1);
    }
    CHECK_EQ(blitz_actor_try_send(s.there, T_SUM, &(struct t_sum){-1}, sizeof(struct t_sum)),
             -EAGAIN); /* it does not pass those that wait */
    blitz_event_set(&s.gate.open);
    for (int i = 0; i < 2 * HOWS; i++)
        CHECK_EQ(sender_end(&x[i]), 0);
    int64_t first = s.sent - 2 * HOWS;
    for (int64_t i = 0; i < first; i++)
        CHECK_EQ(t_receive_sum(s.w.node[1]), i);
    int64_t last = -1;
    for (uint64_t i = 0, seen = 0; i < 2 * HOWS; i++) {
        int64_t n = t_receive_sum(s.w.node[1]) - first;
        CHECK(n >= 0 && n < 2 * HOWS && (seen >> n & 1) == 0);
        seen |= UINT64_C(1) << n;
        if (n % HOWS == FUTURE)
            continue; /* its message is sent by a poll, which comes later than its turn */
        CHECK_GT(n, last);
        last = n;
    }
    CHECK_EQ(t_info(s.w.node[0]).sent, (uint64_t)s.sent);
    CHECK_EQ(s.peer->promised, 0u);
    scene_end(&s);
    return 0;
}

/* A future, a call, a plain thread and the calls of the node wait alike, and go on in the order in which they came. */
TEST_LIMIT(node_queue, every_form_of_a_send_waits_for_room_in_its_turn, 120)
{
    t_on_each(waits, NULL, 0);
}

static int gives_up(void *arg)
{
    struct scene s;
    struct sender x[HOWS];
    (void)arg;
    scene_begin(&s);
    CHECK_EQ(blitz_actor_register("test", s.me), 0);
    fill(&s);
    for (int i = 0; i < HOWS; i++) { /* a deadline */
        if (i == BY_NAME)
            continue; /* it has none */
        sender_start(&s, &x[i], (enum how)i, blitz_after(BLITZ_MS));
        CHECK_EQ(sender_end(&x[i]), -ETIMEDOUT);
    }
    for (int i = 0; i < HOWS; i++) { /* a cancel */
        if (i == BY_THREAD)
            continue; /* a plain thread cannot be cancelled */
        sender_start(&s, &x[i], (enum how)i, BLITZ_FOREVER);
        until_waiting(&s, 1);
        blitz_task_cancel(x[i].task);
        CHECK_EQ(sender_end(&x[i]), -ECANCELED);
    }
    until_waiting(&s, 0);
    blitz_event_set(&s.gate.open);
    CHECK_EQ(blitz_actor_send(s.there, T_SUM, &(struct t_sum){s.sent++}, sizeof(struct t_sum)), 0);
    for (int64_t i = 0; i < s.sent; i++)
        CHECK_EQ(t_receive_sum(s.w.node[1]), i);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_queue, a_send_that_gives_up_has_sent_nothing, 120)
{
    t_on_each(gives_up, NULL, 0);
}

/* A binary of so many bytes: {blob, N, Binary}. */
struct blob {
    blitz_cargo cargo;
    struct t_sum sum;
    blitz_actor_send_future f;
};

static void blob_init(struct scene *s, struct blob *b, size_t bytes)
{
    *b = (struct blob){.sum = {s->sent}};
    CHECK_EQ(blitz_binary_new(bytes, &b->cargo.binary), 0);
    memset(blitz_binary_bytes(b->cargo.binary), 7, bytes);
    blitz_actor_send_with_future_init(&b->f, s->there, T_BLOB, &b->sum, sizeof b->sum, &b->cargo);
}

static void blob_end(struct blob *b)
{
    blitz_binary_unref(b->cargo.binary);
}

/* A waker that counts its wake-ups. Any thread may wake it. */
static void bell_ring(void *rings)
{
    bz_fetch_add_seqcst((bz_atomic(uint32_t) *)rings, 1); /* seq_cst: a test */
}
static void bell_hold(void *rings)
{
    (void)rings;
}

static blitz_poll poll_blob(struct blob *b, void *rings)
{
    static const blitz_waker_ops ops = {bell_hold, bell_ring, bell_ring, bell_hold};
    blitz_waker w = {&ops, rings};
    return b->f.future.ops->poll(&b->f.future, &w);
}

static void until_rung(bz_atomic(uint32_t) *rings)
{
    while (bz_load_seqcst(rings) == 0) /* seq_cst: a test */
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
}

static void receive_rest(struct scene *s, int64_t first)
{
    for (int64_t i = first; i < s->sent; i++)
        CHECK_EQ(t_receive_sum(s->w.node[1]), i);
}

/* The first waiter is large, the second is small. It goes on when the first has left, though nothing was written. */
static int leaves(void *arg)
{
    bz_atomic(uint32_t) rings;
    struct scene s;
    struct blob b;
    struct sender x;
    (void)arg;
    bz_atomic_init(&rings, 0);
    scene_begin(&s);
    CHECK_EQ(blitz_actor_send(s.there, T_SUM, &(struct t_sum){s.sent++}, sizeof(struct t_sum)), 0);
    blob_init(&s, &b, HIGH);
    CHECK_EQ(poll_blob(&b, &rings), BLITZ_PENDING);
    sender_start(&s, &x, CALL, t_soon());
    s.sent++;
    until_waiting(&s, 2);
    b.f.future.ops->cancel(&b.f.future);
    CHECK_EQ(sender_end(&x), 0); /* the gate is shut */
    blitz_event_set(&s.gate.open);
    receive_rest(&s, 0);
    blob_end(&b);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_queue, a_waiter_that_leaves_lets_the_next_one_go_on, 120)
{
    t_on_each(leaves, NULL, 0);
}

/* A future that was granted room is cancelled before it is polled; or polled late. */
static int grants(void *cancels)
{
    bz_atomic(uint32_t) rings;
    struct scene s;
    struct blob b;
    struct sender x;
    bz_atomic_init(&rings, 0);
    scene_begin(&s);
    fill(&s);
    int64_t first = s.sent;
    blob_init(&s, &b, HIGH);
    CHECK_EQ(poll_blob(&b, &rings), BLITZ_PENDING);
    CHECK_EQ(poll_blob(&b, &rings), BLITZ_PENDING);
    sender_start(&s, &x, CALL, t_soon());
    s.sent++;
    until_waiting(&s, 2);
    blitz_event_set(&s.gate.open);
    until_rung(&rings);
    for (int64_t i = 0; i < first; i++)
        CHECK_EQ(t_receive_sum(s.w.node[1]), i);
    CHECK_EQ(waiting(&s), 1u); /* the promise has the room, and nothing passes it */
    CHECK_NE(s.peer->promised, 0u);
    if (cancels != NULL) {
        b.f.future.ops->cancel(&b.f.future);
        CHECK_EQ(b.f.result, -ECANCELED);
    } else {
        CHECK_EQ(poll_blob(&b, &rings), BLITZ_READY);
        CHECK_EQ(b.f.result, 0);
        CHECK_EQ(poll_blob(&b, &rings), BLITZ_READY);
        _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
        const blitz_msg *m;
        const blitz_term_message *row = t_receive(s.w.node[1], payload, &m);
        CHECK(row != NULL && row->what == T_BLOB);
    }
    CHECK_EQ(sender_end(&x), 0);
    receive_rest(&s, first);
    CHECK_EQ(s.peer->promised, 0u);
    blob_end(&b);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_queue, room_that_a_future_gives_back_goes_to_the_next, 120)
{
    char cancels;
    t_on_each(grants, &cancels, 0);
}

TEST_LIMIT(node_queue, room_that_a_future_was_promised_waits_for_its_poll, 120)
{
    t_on_each(grants, NULL, 0);
}

/* The connection goes while senders wait: what was queued is lost, and they send over the next connection. */
enum { MANY = 24 }; /* more than the queue has room for */

static int reconnects(void *arg)
{
    struct scene s;
    struct sender x[MANY];
    bz_atomic(uint32_t) rings;
    struct blob b;
    (void)arg;
    bz_atomic_init(&rings, 0);
    scene_begin(&s);
    CHECK_EQ(blitz_actor_register("test", s.me), 0);
    fill(&s);
    int64_t first = s.sent;
    for (int i = 0; i < MANY; i++, s.sent++) {
        sender_start(&s, &x[i], (enum how)(i % HOWS), t_soon());
        until_waiting(&s, (size_t)i + 1);
    }
    blob_init(&s, &b, 1);
    CHECK_EQ(poll_blob(&b, &rings), BLITZ_PENDING);
    while (s.gate.accepted == 0)
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    blitz_tcp_close(blitz_tcp_ref(s.gate.half[0]));
    blitz_event_set(&s.gate.open);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(sender_end(&x[i]), 0);
    until_rung(&rings);
    CHECK_EQ(poll_blob(&b, &rings), BLITZ_READY);
    CHECK_EQ(b.f.result, 0);
    uint64_t seen = 0;
    for (int i = 0; i < MANY; i++) { /* which of them connects is open */
        int64_t n = t_receive_sum(s.w.node[1]) - first;
        CHECK(n >= 0 && n < MANY && (seen >> n & 1) == 0);
        seen |= UINT64_C(1) << n;
    }
    CHECK_GE(t_info(s.w.node[0]).lost, (uint64_t)first);
    blob_end(&b);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_queue, a_sender_that_waits_survives_the_connection, 120)
{
    t_on_each(reconnects, NULL, 0);
}

static int open_when_full(void *arg)
{
    struct scene *s = arg;
    until_waiting(s, 1);
    blitz_event_set(&s->gate.open);
    return 0;
}

/* A sender finds no connection. Before it connects others do, and fill the queue. */
static int is_late(void *arg)
{
    struct scene s;
    struct bz_far_sending x;
    struct t_sum sum = {-1};
    (void)arg;
    scene_begin(&s);
    CHECK_EQ(bz_sending_begin(&x, s.there, T_SUM, &sum, sizeof sum, NULL), 0);
    bz_waiter_init(&x.request.waiter, NULL, BZ_WAIT_WOKEN);
    CHECK_EQ(bz_request_wait(&x.request, bz_os_here(), t_soon()), 1); /* unconnected */
    fill(&s);
    CHECK_EQ(bz_outbox_next(&x), BZ_MET_WAIT);
    blitz_task *t = t_spawn(open_when_full, &s);
    CHECK_EQ(bz_request_wait(&x.request, bz_os_here(), t_soon()), 0);
    CHECK_EQ(bz_outbox_next(&x), 0);
    bz_outbox_end(&x);
    t_join(t);
    receive_rest(&s, 0);
    CHECK_EQ(t_receive_sum(s.w.node[1]), -1);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_queue, a_sender_that_was_too_late_to_connect_waits_as_others_do, 120)
{
    t_on_each(is_late, NULL, 0);
}

static int stops(void *arg)
{
    struct scene s;
    struct sender x[HOWS];
    (void)arg;
    scene_begin(&s);
    fill(&s);
    for (int i = 0; i < HOWS; i++)
        sender_start(&s, &x[i], (enum how)i, t_soon());
    until_waiting(&s, HOWS);
    blitz_node_stop(s.w.node[0]);
    s.w.node[0] = NULL;
    for (int i = 0; i < HOWS; i++)
        CHECK_EQ(sender_end(&x[i]), -ESRCH);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_queue, the_stop_of_a_node_ends_the_senders_that_wait, 120)
{
    t_on_each(stops, NULL, 0);
}
