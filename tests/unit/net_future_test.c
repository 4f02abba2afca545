/* Every network call as a future, on every backend: ready, cancelled at each moment, losing a race,
 * closed. */
#include "harness.h"

#include <pthread.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/combine.h"
#include "blitz/net.h"
#include "support/keepers.h"
#include "support/net_ops.h"

struct scene {
    const struct t_net_op *op;
    struct t_net_world w;
    int awaited;        /* the result of an await elsewhere */
    blitz_event waited; /* a thread has waited without success */
};

/* Given: the call has to wait. */
static void open_scene(struct scene *s, const struct t_net_op *op)
{
    t_watch("%s", op->name);
    s->op = op;
    t_net_world_open(&s->w);
    op->given(&s->w);
}

/* It is done, once: now, if it was not done before. Then the scene is over. */
static void close_scene(struct scene *s, bool is_done)
{
    if (!is_done)
        CHECK_EQ(blitz_await(s->op->init(&s->w), t_soon()), 0);
    s->op->check(&s->w);
    t_net_world_close(&s->w);
}

/* Nothing was done; when it may be, it is. */
static void close_undone(struct scene *s)
{
    CHECK_EQ(*s->w.result, -ECANCELED);
    s->op->allow(&s->w);
    close_scene(s, false);
}

static int awaits(void *arg)
{
    struct scene *s = arg;
    s->awaited = blitz_await(s->op->init(&s->w), BLITZ_FOREVER);
    return 0;
}

static blitz_task *spawn_waiter(struct scene *s)
{
    blitz_task *task = t_spawn(awaits, s);
    t_until_waits(task);
    return task;
}

/* ---- it is there already, and it comes ---- */

static void ready_at_once(struct scene *s)
{
    s->op->allow(&s->w);
    close_scene(s, false);
}

static void ready_later(struct scene *s)
{
    blitz_task *task = spawn_waiter(s);
    s->op->allow(&s->w);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(s->awaited, 0);
    close_scene(s, true);
}

/* ---- cancelled ---- */

/* The task was cancelled before it asked. */
static void cancelled_before(struct scene *s)
{
    blitz_task *task = t_spawn(awaits, s);
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(s->awaited, -ECANCELED);
    close_undone(s);
}

static void cancelled_while_it_waits(struct scene *s)
{
    blitz_task *task = spawn_waiter(s);
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(s->awaited, -ECANCELED);
    close_undone(s);
}

/* A waker that remembers. */
static bz_atomic(uint32_t) holders, rung;

static void bell_clone(void *data)
{
    (void)data;
    bz_fetch_add_relaxed(&holders, 1); /* relaxed: counted */
}

static void bell_ring(void *data)
{
    (void)data;
    bz_store_release(&rung, 1); /* release: it is what the test waits for */
}

static void bell_drop(void *data)
{
    (void)data;
    bz_fetch_sub_relaxed(&holders, 1); /* relaxed: counted */
}

static void bell_wake(void *data)
{
    bell_ring(data);
    bell_drop(data);
}

/* It is notified and then cancelled before its next poll: it has an effect and reports it, or
 * none. */
static void cancelled_after_it_was_woken(struct scene *s)
{
    static const blitz_waker_ops ops = {bell_clone, bell_wake, bell_ring, bell_drop};
    const blitz_waker bell = {&ops, NULL};
    bz_store_relaxed(&holders, 0); /* relaxed: no ring yet */
    bz_store_relaxed(&rung, 0);    /* likewise */
    blitz_future *f = s->op->init(&s->w);
    CHECK_EQ(f->ops->poll(f, &bell), BLITZ_PENDING);
    s->op->allow(&s->w);
    while (bz_load_acquire(&rung) == 0) /* acquire: as above */
        blitz_yield();
    f->ops->cancel(f);
    if (f->ops->kind == BLITZ_PINNED)
        while (f->ops->poll(f, &bell) == BLITZ_PENDING)
            blitz_yield();
    bool is_done = *s->w.result != -ECANCELED;
    while (bz_load_relaxed(&holders) != 0) /* relaxed: counted */
        blitz_yield();
    close_scene(s, is_done);
}

/* ---- beside others ---- */

static void loses_a_race(struct scene *s)
{
    blitz_ready_future other;
    blitz_race race;
    blitz_child child[2] = {{.future = s->op->init(&s->w)}, {.future = &other.future}};
    blitz_ready_future_init(&other, 7);
    CHECK_EQ(blitz_race_init(&race, child, 2), 0);
    CHECK_EQ(blitz_await(&race.future, t_soon()), 0);
    CHECK_EQ(race.winner, 1u);
    CHECK_EQ(blitz_future_output(&race.future), 7);
    bool is_pinned = child[0].future->ops->kind == BLITZ_PINNED;
    CHECK_EQ(child[0].fate, is_pinned ? BLITZ_ENDED : BLITZ_REVOKED);
    close_undone(s);
}

static void runs_into_a_timeout(struct scene *s)
{
    blitz_timeout t;
    CHECK_EQ(blitz_timeout_init(&t, s->op->init(&s->w), blitz_after(200 * BLITZ_US)), 0);
    CHECK_EQ(blitz_await(&t.future, BLITZ_FOREVER), 0);
    CHECK_EQ(t.result, -ETIMEDOUT);
    CHECK_EQ(*s->w.result, -ECANCELED);
    s->op->allow(&s->w);
    CHECK_EQ(blitz_timeout_init(&t, s->op->init(&s->w), t_soon()), 0);
    CHECK_EQ(blitz_await(&t.future, BLITZ_FOREVER), 0);
    CHECK_EQ(t.result, *s->w.result);
    CHECK_EQ(t.child.fate, BLITZ_ENDED);
    close_scene(s, true);
}

static void is_closed_under_way(struct scene *s)
{
    if (s->op->close != NULL) {
        blitz_task *task = spawn_waiter(s);
        s->op->close(&s->w);
        CHECK_EQ(t_join(task), 0);
        CHECK_EQ(s->awaited, 0);
        CHECK_EQ(*s->w.result, -EBADF);
        CHECK_EQ(blitz_await(s->op->init(&s->w), t_soon()), 0); /* and for a later caller */
        CHECK_EQ(*s->w.result, -EBADF);
    }
    t_net_world_close(&s->w);
}

/* ---- on a plain thread ---- */

static void *thread_awaits(void *arg)
{
    struct scene *s = arg;
    int err = blitz_await(s->op->init(&s->w), blitz_after(200 * BLITZ_US));
    CHECK_EQ(err, s->op->is_for_tasks ? 0 : -ETIMEDOUT);
    CHECK_EQ(*s->w.result, s->op->is_for_tasks ? -EOPNOTSUPP : -ECANCELED);
    blitz_event_set(&s->waited);
    s->awaited = blitz_await(s->op->init(&s->w), t_soon());
    return NULL;
}

static int join_thread(void *arg)
{
    return pthread_join(*(pthread_t *)arg, NULL);
}

static void serves_a_plain_thread(struct scene *s)
{
    pthread_t thread;
    blitz_event_init(&s->waited);
    CHECK_EQ(pthread_create(&thread, NULL, thread_awaits, s), 0);
    CHECK_EQ(blitz_event_wait(&s->waited, t_soon()), 0);
    if (!s->op->is_for_tasks)
        s->op->allow(&s->w);
    CHECK_EQ(blitz_blocking(join_thread, &thread), 0);
    if (s->op->is_for_tasks)
        s->op->allow(&s->w);
    CHECK_EQ(s->awaited, 0);
    close_scene(s, !s->op->is_for_tasks);
}

/* ---- all of them ---- */

static int on_all(void *arg)
{
    void (*const *play)(struct scene * s) = arg;
    struct scene *s = malloc(sizeof *s);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t_net_ops); i++) {
        open_scene(s, &t_net_ops[i]);
        (*play)(s);
    }
    free(s);
    return 0;
}

static void play_all(void (*play)(struct scene *))
{
    t_on_keepers(on_all, (void *)&play);
}

TEST(net_future, available_bytes_are_returned_at_once)
{
    play_all(ready_at_once);
}

TEST(net_future, arriving_bytes_wake_the_waiter)
{
    play_all(ready_later);
}

TEST(net_future, bug_21_cancelled_before_it_is_asked_it_does_nothing)
{
    play_all(cancelled_before);
}

TEST(net_future, bug_21_cancelled_while_it_waits_it_has_done_nothing)
{
    play_all(cancelled_while_it_waits);
}

TEST(net_future, bug_21_cancelled_after_its_wake_up_it_reports_its_effect)
{
    play_all(cancelled_after_it_was_woken);
}

TEST(net_future, bug_21_losing_a_race_it_has_done_nothing)
{
    play_all(loses_a_race);
}

TEST(net_future, a_timeout_around_it_ends_it_and_nothing_is_lost)
{
    play_all(runs_into_a_timeout);
}

TEST(net_future, bug_16_a_close_ends_it)
{
    play_all(is_closed_under_way);
}

TEST(net_future, a_plain_thread_may_await_it)
{
    play_all(serves_a_plain_thread);
}

/* ---- cases beyond the table ---- */

static int to_and_from(void *arg)
{
    blitz_addr at[2] = {blitz_addr_loopback_v4(0), blitz_addr_loopback_v4(0)}, from;
    blitz_udp *u[2];
    blitz_message_future in, out;
    char data[4];
    (void)arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_udp_bind(&at[i], NULL, &u[i]), 0);
        CHECK_EQ(blitz_udp_local(u[i], &at[i]), 0);
    }
    blitz_udp_send_to_future_init(&out, u[0], "longer", 6, &at[1]);
    blitz_udp_recv_from_future_init(&in, u[1], data, sizeof data, &from);
    CHECK_EQ(BLITZ_ALL_OF(t_soon(), &in.future, &out.future), 0);
    CHECK_EQ(out.result, 6);
    CHECK_EQ(in.result, 6); /* it was truncated, and that is reported */
    CHECK_MEM_EQ(data, "long", 4);
    CHECK(blitz_addr_is_equal(&from, &at[0]));
    blitz_udp_close(u[0]);
    blitz_udp_close(u[1]);
    return 0;
}

TEST(net_future, a_datagram_goes_to_an_address_and_says_where_it_came_from)
{
    t_on_keepers(to_and_from, NULL);
}

/* In the middle of several steps: progress is kept and reported. */
static int awaits_begun(void *arg)
{
    struct scene *s = arg;
    s->awaited = blitz_await(&s->w.f.net.future, BLITZ_FOREVER);
    return 0;
}

static void cancel_begun(blitz_task *task, struct scene *s)
{
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(s->awaited, -ECANCELED);
    CHECK_EQ(s->w.f.net.result, -ECANCELED);
}

static int in_the_middle(void *arg)
{
    enum { MUCH = 4 << 20 };
    struct scene s = {.op = NULL};
    blitz_net_future *f = &s.w.f.net;
    char *much = calloc(1, MUCH), rest[8];
    (void)arg;
    t_net_world_open(&s.w);
    CHECK_EQ(blitz_tcp_write(s.w.t[0], "hel", 3, t_soon()), 3);
    blitz_tcp_read_exact_future_init(f, s.w.t[1], s.w.data, 5);
    blitz_task *task = t_spawn(awaits_begun, &s);
    while (recv(s.w.t[1]->s.file->fd, rest, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
        blitz_yield(); /* until they were taken */
    cancel_begun(task, &s);
    CHECK_EQ(f->done, 3u);
    CHECK_EQ(blitz_tcp_write(s.w.t[0], "lo", 2, t_soon()), 2);
    CHECK_EQ(blitz_tcp_read(s.w.t[1], rest, sizeof rest, t_soon()), 2);
    CHECK_MEM_EQ(s.w.data, "hel", 3);

    blitz_tcp_write_all_future_init(f, s.w.t[0], much, MUCH);
    task = t_spawn(awaits_begun, &s);
    CHECK_EQ(blitz_tcp_peek(s.w.t[1], rest, 1, t_soon()), 1); /* until some were given */
    cancel_begun(task, &s);
    CHECK_GT(f->done, 0u);
    CHECK_LT(f->done, (size_t)MUCH);
    CHECK_EQ(blitz_tcp_shutdown(s.w.t[0], BLITZ_WRITABLE), 0);
    for (size_t left = f->done; left > 0;) {
        int64_t n = blitz_tcp_read(s.w.t[1], much, left, t_soon());
        CHECK_GT(n, 0);
        left -= (size_t)n;
    }
    CHECK_EQ(blitz_tcp_read(s.w.t[1], rest, sizeof rest, t_soon()), 0); /* and no byte more */
    free(much);
    t_net_world_close(&s.w);
    return 0;
}

TEST(net_future, bug_21_cancelled_in_the_middle_it_says_how_far_it_came)
{
    t_on_keepers(in_the_middle, NULL);
}

/* A stackless task, with the memory of its future in its state. */
struct lines {
    blitz_frame frame;
    blitz_tcp *tcp;
    blitz_piece piece[2];
    blitz_pieces_future io;
    int left;
};

static blitz_poll write_lines(void *state, blitz_cx *cx)
{
    static char he[] = "he", llo[] = "llo";
    struct lines *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->left-- > 0) {
        me->piece[0] = (blitz_piece){he, 2};
        me->piece[1] = (blitz_piece){llo, 3};
        blitz_tcp_writev_future_init(&me->io, me->tcp, me->piece, 2);
        BLITZ_AWAIT(rc, &me->io.future);
        CHECK_EQ(rc, 0);
        CHECK_EQ(me->io.result, 5);
    }
    BLITZ_END(0);
}

static int stackless(void *arg)
{
    blitz_tcp *t[2];
    blitz_task *task;
    char data[20];
    (void)arg;
    CHECK_EQ(blitz_unix_pair(t), 0);
    struct lines state = {.tcp = t[0], .left = 4};
    CHECK_EQ(blitz_spawn_poll(write_lines, &state, sizeof state, NULL, &task), 0);
    CHECK_EQ(blitz_tcp_read_exact(t[1], data, sizeof data, NULL, t_soon()), 0);
    CHECK_MEM_EQ(data, "hellohellohellohello", sizeof data);
    CHECK_EQ(t_join(task), 0);
    t_close_both(t);
    return 0;
}

TEST(net_future, a_stackless_task_keeps_it_in_its_state)
{
    t_on_keepers(stackless, NULL);
}

static int bad_input(void *arg)
{
    struct t_net_world w;
    int64_t *const pieces = &w.f.pieces.result, *const message = &w.f.message.result,
                   *const net = &w.f.net.result;
    (void)arg;
    t_net_world_open(&w);
    blitz_tcp_readv_future_init(&w.f.pieces, NULL, w.piece, 1);
    CHECK_EQ(blitz_await(&w.f.pieces.future, 0), 0);
    CHECK_EQ(*pieces, -EINVAL);
    blitz_tcp_writev_future_init(&w.f.pieces, w.t[0], NULL, 1);
    CHECK_EQ(*pieces, -EINVAL);
    blitz_tcp_writev_future_init(&w.f.pieces, w.t[0], w.piece, 2); /* no bytes: done */
    CHECK_EQ(blitz_await(&w.f.pieces.future, 0), 0);
    CHECK_EQ(*pieces, 0);
    blitz_udp_recv_from_future_init(&w.f.message, NULL, w.data, 1, NULL);
    CHECK_EQ(*message, -EINVAL);
    blitz_udp_send_to_future_init(&w.f.message, w.u[0], w.data, 1, NULL);
    CHECK_EQ(*message, -EINVAL);
    blitz_unix_send_fds_future_init(&w.f.message, w.t[0], "x", 1, w.fds, BLITZ_UNIX_FDS_MAX + 1);
    CHECK_EQ(*message, -EINVAL);
    blitz_unix_recv_fds_future_init(&w.f.message, w.t[0], w.data, 0, w.fds, 1);
    CHECK_EQ(*message, -EINVAL);
    blitz_udp_recv_many_future_init(&w.f.net, w.u[0], w.datagram, 0);
    CHECK_EQ(*net, -EINVAL);
    blitz_udp_send_many_future_init(&w.f.net, w.u[0], w.datagram, BLITZ_DATAGRAMS_MAX + 1);
    CHECK_EQ(blitz_await(&w.f.net.future, 0), 0);
    CHECK_EQ(*net, -EINVAL);
    w.datagram[0] = (blitz_datagram){.data = NULL, .bytes = 1};
    blitz_udp_send_many_future_init(&w.f.net, w.u[0], w.datagram, 1);
    CHECK_EQ(blitz_await(&w.f.net.future, 0), 0);
    CHECK_EQ(*net, -EINVAL);
    t_net_world_close(&w);
    return 0;
}

TEST(net_future, bad_input_is_ready_with_an_error)
{
    t_on_keepers(bad_input, NULL);
}
