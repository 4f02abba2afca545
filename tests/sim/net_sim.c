/*
 * The network on a simulated kernel: the real backends, the driver and the calls of blitz/tcp.h, on
 * seeds, in virtual time. The requirements are the same for every backend: every byte arrives once
 * and in order, every waiter is woken, and nothing is left open.
 */
#include "blitz/combine.h"
#include "support/net_scenes.h"

/* ---- echo ---- */

static int serve(void *arg)
{
    blitz_tcp *t = arg;
    uint8_t data[PIECE];
    int64_t n;
    while ((n = blitz_tcp_read(t, data, sizeof data, BLITZ_FOREVER)) > 0)
        CHECK_EQ(blitz_tcp_write_all(t, data, (size_t)n, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(n, 0);
    blitz_tcp_close(t);
    return 0;
}

struct server {
    blitz_tcp_listener *listener;
    blitz_addr at;
    unsigned count;
};

static int accept_all(void *arg)
{
    struct server *s = arg;
    blitz_task *t[8];
    for (unsigned i = 0; i < s->count; i++) {
        blitz_tcp *c;
        CHECK_EQ(blitz_tcp_accept(s->listener, &c, NULL, BLITZ_FOREVER), 0);
        t[i] = t_spawn(serve, c);
    }
    for (unsigned i = 0; i < s->count; i++)
        t_join(t[i]);
    return 0;
}

static int send_all(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    while (s->sent < s->bytes) {
        size_t n = 1 + net_dice(PIECE);
        n = n < s->bytes - s->sent ? n : (size_t)(s->bytes - s->sent);
        fill_in(data, n, s->id, s->sent);
        CHECK_EQ(blitz_tcp_write_all(s->t, data, n, NULL, BLITZ_FOREVER), 0);
        s->sent += n;
    }
    CHECK_EQ(blitz_tcp_shutdown(s->t, BLITZ_WRITABLE), 0);
    return 0;
}

static int talk(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    int64_t n;
    blitz_task *sender = t_spawn(send_all, s);
    while ((n = blitz_tcp_read(s->t, data, 1 + net_dice(PIECE), BLITZ_FOREVER)) > 0) {
        look_through(data, (size_t)n, s->id, s->got);
        s->got += (uint64_t)n;
    }
    CHECK_EQ(n, 0);
    t_join(sender);
    CHECK_EQ(s->got, s->bytes);
    blitz_tcp_close(s->t);
    return 0;
}

static int connect_and_talk(void *arg)
{
    struct stream s = {.id = net_dice(1000), .bytes = net_dice(300)};
    CHECK_EQ(blitz_tcp_connect(&((struct server *)arg)->at, &s.t, BLITZ_FOREVER), 0);
    return talk(&s);
}

static int echo_of_several(void *arg)
{
    struct server s = {.count = 1 + net_dice(4)};
    blitz_task *client[4];
    (void)arg;
    s.listener = t_listen(&s.at);
    blitz_task *server = t_spawn(accept_all, &s);
    for (unsigned i = 0; i < s.count; i++)
        client[i] = t_spawn(connect_and_talk, &s);
    for (unsigned i = 0; i < s.count; i++)
        t_join(client[i]);
    t_join(server);
    blitz_tcp_listener_close(s.listener);
    return 0;
}

TEST(net, sent_bytes_come_back)
{
    net_on_seeds(echo_of_several, NULL, (struct bz_sim_net_config){0}, 100);
}

/* ---- cancelled at every wait ---- */

/* Until it is done, or cancelled. */
static int send_restlessly(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    while (s->sent < s->bytes) {
        size_t n = 1 + net_dice(PIECE);
        n = n < s->bytes - s->sent ? n : (size_t)(s->bytes - s->sent);
        fill_in(data, n, s->id, s->sent);
        int64_t done = write_some(s, data, n);
        memset(data, 0, sizeof data); /* it is ours again, with any result */
        if (done == -ECANCELED)
            return -ECANCELED;
        CHECK(done > 0 || is_a_pause(done));
        s->sent += done > 0 ? (uint64_t)done : 0;
        if (done < 0)
            blitz_yield();
    }
    return blitz_tcp_shutdown(s->t, BLITZ_WRITABLE);
}

static int receive_restlessly(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    for (;;) {
        int64_t n = read_some(s, data, 1 + net_dice(PIECE));
        if (n == 0 || n == -ECANCELED)
            return (int)n;
        CHECK(n > 0 || is_a_pause(n));
        if (n > 0) {
            look_through(data, (size_t)n, s->id, s->got);
            s->got += (uint64_t)n;
        } else {
            blitz_yield();
        }
    }
}

/* Run it, cancel it, let another go on where it stopped. */
static void insist(int (*fn)(void *), struct stream *s)
{
    for (int rounds = 0, result = -ECANCELED; result != 0; rounds++) {
        blitz_task *t = t_spawn(fn, s);
        if (rounds < 5) {
            CHECK_EQ(blitz_sleep(net_dice(3) * net_dice(100000)), 0);
            blitz_task_cancel(t);
        }
        result = t_join(t);
        CHECK(result == 0 || result == -ECANCELED);
    }
}

static int insist_on_sending(void *s)
{
    insist(send_restlessly, s);
    return 0;
}

static int both_ways_restlessly(void *arg)
{
    blitz_tcp *end[2];
    (void)arg;
    if (net_dice(2) == 0)
        t_tcp_pair(end);
    else
        CHECK_EQ(blitz_unix_pair(end), 0);
    struct stream out = {.t = end[0], .id = 1, .bytes = net_dice(400)}, in = {.t = end[1], .id = 1};
    blitz_task *sender = t_spawn(insist_on_sending, &out);
    insist(receive_restlessly, &in);
    t_join(sender);
    CHECK_EQ(in.got, out.bytes);
    t_close_both(end);
    return 0;
}

TEST(net, bug_21_a_cancelled_or_late_call_reports_its_effect)
{
    net_on_seeds(both_ways_restlessly, NULL, (struct bz_sim_net_config){0}, 100);
}

/* ---- edges ---- */

static int answer(void *arg)
{
    blitz_tcp *t = arg;
    uint8_t ball;
    while (blitz_tcp_read(t, &ball, 1, BLITZ_FOREVER) == 1)
        CHECK_EQ(blitz_tcp_write(t, &ball, 1, BLITZ_FOREVER), 1);
    return 0;
}

static int serve_the_ball(void *arg)
{
    blitz_tcp *t = arg;
    uint8_t ball = 0;
    for (uint8_t i = 0; i < 20; i++) {
        CHECK_EQ(blitz_tcp_write(t, &i, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_tcp_read(t, &ball, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(ball, i);
    }
    return blitz_tcp_shutdown(t, BLITZ_WRITABLE);
}

/* A read that missed its edge would hang: there is no deadline, and no second byte. */
static int ping_pong(void *arg)
{
    blitz_tcp *end[2];
    struct user user[2];
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    user_start(&user[0], serve_the_ball, end[0]);
    user_start(&user[1], answer, end[1]);
    user_join(&user[0]);
    user_join(&user[1]);
    t_close_both(end);
    return 0;
}

TEST(net, bug_13_no_edge_is_lost)
{
    net_on_seeds(ping_pong, NULL, (struct bz_sim_net_config){0}, 120);
}

/* ---- futures ---- */

/* Bytes by futures that race with a nap, with each other, or time out: none is lost by losing. */
static int receive_by_races(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    for (;;) {
        blitz_net_future read;
        blitz_sleep_future nap;
        size_t want = 1 + net_dice(PIECE);
        bool is_exact = net_dice(3) == 0;
        if (is_exact)
            blitz_tcp_read_exact_future_init(&read, s->t, data, want);
        else
            blitz_tcp_read_future_init(&read, s->t, data, want);
        blitz_sleep_until_future_init(&nap, blitz_after(net_dice(2) * net_dice(5000)));
        blitz_child child[] = {{.future = &read.future}, {.future = &nap.future}};
        blitz_race race;
        CHECK_EQ(blitz_race_init(&race, child, 2), 0);
        race.first = net_dice(2);
        int err = blitz_await(&race.future, net_dice(4) == 0 ? some_deadline() : BLITZ_FOREVER);
        CHECK(err != 0 || race.winner < 2);
        bool has_asked = child[0].fate != BLITZ_UNASKED;
        int64_t n = !has_asked ? -ECANCELED : read.result;
        uint64_t done = !has_asked ? 0 : is_exact ? read.done : n > 0 ? (uint64_t)n : 0;
        look_through(data, (size_t)done, s->id, s->got);
        s->got += done;
        if (n == 0 ? !is_exact : n == -ENODATA)
            return 0;
        CHECK(n >= 0 || n == -ECANCELED);
    }
}

static int send_by_timeouts(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    while (s->sent < s->bytes) {
        blitz_net_future write;
        blitz_timeout t;
        size_t n = 1 + net_dice(PIECE);
        bool is_all = net_dice(2) == 0;
        n = n < s->bytes - s->sent ? n : (size_t)(s->bytes - s->sent);
        fill_in(data, n, s->id, s->sent);
        if (is_all)
            blitz_tcp_write_all_future_init(&write, s->t, data, n);
        else
            blitz_tcp_write_future_init(&write, s->t, data, n);
        CHECK_EQ(blitz_timeout_init(&t, &write.future, some_deadline()), 0);
        (void)!blitz_await(&t.future, BLITZ_FOREVER);
        memset(data, 0, sizeof data); /* it is ours again */
        if (t.child.fate == BLITZ_UNASKED)
            continue;
        s->sent += is_all ? write.done : write.result > 0 ? (uint64_t)write.result : 0;
        CHECK(write.result >= 0 || write.result == -ECANCELED);
    }
    return blitz_tcp_shutdown(s->t, BLITZ_WRITABLE);
}

static int bytes_by_futures(void *arg)
{
    blitz_tcp *end[2];
    (void)arg;
    t_tcp_pair(end);
    struct stream out = {.t = end[0], .id = 5, .bytes = net_dice(300)}, in = {.t = end[1], .id = 5};
    blitz_task *sender = t_spawn(send_by_timeouts, &out);
    CHECK_EQ(receive_by_races(&in), 0);
    t_join(sender);
    CHECK_EQ(in.got, out.bytes);
    t_close_both(end);
    return 0;
}

TEST(net, bug_21_a_future_that_loses_its_race_loses_no_byte)
{
    net_on_seeds(bytes_by_futures, NULL, (struct bz_sim_net_config){0}, 120);
}

/* ---- ends ---- */

static int write_and_close(void *arg)
{
    blitz_tcp *t = arg;
    for (unsigned i = net_dice(3); i > 0; i--)
        CHECK_EQ(blitz_tcp_write_all(t, "end", 1 + net_dice(3), NULL, BLITZ_FOREVER), 0);
    blitz_tcp_close(t);
    return 0;
}

static int read_to_the_end(void *arg)
{
    blitz_tcp *t = arg;
    char data[4];
    size_t at_once = 1 + net_dice(sizeof data); /* one that fills it is followed by a try */
    int64_t n;
    do {
        n = blitz_tcp_read(t, data, at_once, BLITZ_FOREVER);
    } while (n > 0);
    CHECK_EQ(n, 0);
    return 0;
}

static int several_read_to_the_end(void *arg)
{
    enum { N = 4 };
    blitz_tcp *end[N][2];
    struct user reader[N], writer[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_unix_pair(end[i]), 0);
        user_start(&reader[i], read_to_the_end, end[i][0]);
        user_start(&writer[i], write_and_close, end[i][1]);
    }
    for (int i = 0; i < N; i++) {
        user_join(&reader[i]);
        user_join(&writer[i]);
        blitz_tcp_close(end[i][0]);
    }
    return 0;
}

/* One edge says both, before, between or after the reads. */
TEST(net, an_end_that_comes_with_the_last_bytes_is_seen)
{
    net_on_seeds(several_read_to_the_end, NULL, (struct bz_sim_net_config){0}, 120);
}

/* ---- the simulation itself ---- */

/* Two runs of a seed are the same run, or no failure could be looked at again. */
TEST(net, a_run_is_a_function_of_its_seed)
{
    for (uint64_t i = 0, n = sim_seeds(30); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct net_scene s = {.scene = {1 + (unsigned)(seed % 4), echo_of_several, NULL, 0},
                              .io = net_keeper(seed)};
        struct bz_sim_result a, b;
        t_watch("simulation seed 0x%llx, %s", (unsigned long long)seed, s.io);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, net_play, &s, &a), 0);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, net_play, &s, &b), 0);
        CHECK_EQ(a.hash, b.hash);
        t_note("%016llx", (unsigned long long)a.hash);
    }
}
