/*
 * Failing connections on a simulated kernel: many acceptors, some of which end; resets, refusals
 * and closes by other tasks at every wait; reused descriptor numbers; threads that end. In every
 * case all waiters are woken, no connection or byte reaches the wrong task, and nothing is left
 * open.
 */
#include "blitz/combine.h"
#include "support/net_scenes.h"

/* ---- many acceptors ---- */

struct herd {
    blitz_tcp_listener *listener;
    blitz_addr at;
    bz_atomic(unsigned) served;
};

/* By a future that is soon cancelled, notified or not. */
static int accept_impatiently(blitz_tcp_listener *l, blitz_tcp **out)
{
    blitz_net_future f;
    blitz_tcp_accept_future_init(&f, l);
    int err = blitz_await(&f.future, blitz_after(1 + net_dice(3000)));
    if (err != 0 && f.result != 0)
        return f.result == -EBADF ? -EBADF : -ETIMEDOUT;
    *out = f.tcp;
    return (int)f.result;
}

static int herd_member(struct herd *h, bool is_patient)
{
    blitz_tcp *c;
    for (;;) {
        int err = is_patient ? blitz_tcp_accept(h->listener, &c, NULL, BLITZ_FOREVER)
                             : accept_impatiently(h->listener, &c);
        if (err == -EBADF)
            return 0;
        if (err == -ETIMEDOUT) {
            CHECK_EQ(blitz_sleep(net_dice(20000)), 0);
            continue;
        }
        CHECK_EQ(err, 0);
        bz_fetch_add_relaxed(&h->served, 1); /* relaxed: a count */
        CHECK_EQ(blitz_tcp_write(c, "!", 1, BLITZ_FOREVER), 1);
        blitz_tcp_close(c);
    }
}

static int accept_patiently_again_and_again(void *arg)
{
    struct herd *h = arg;
    int err = herd_member(h, true);
    blitz_tcp_listener_unref(h->listener);
    return err;
}

static int accept_impatiently_again_and_again(void *arg)
{
    struct herd *h = arg;
    int err = herd_member(h, false);
    blitz_tcp_listener_unref(h->listener);
    return err;
}

static int be_served(void *arg)
{
    struct herd *h = arg;
    blitz_tcp *t;
    char c;
    CHECK_EQ(blitz_sleep(net_dice(2) * net_dice(10000)), 0);
    CHECK_EQ(blitz_tcp_connect(&h->at, &t, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tcp_read(t, &c, 1, BLITZ_FOREVER), 1);
    blitz_tcp_close(t);
    return 0;
}

static int herd_of_acceptors(void *arg)
{
    enum { MOST = 4, CLIENTS = 8 };
    struct herd h = {.listener = NULL};
    blitz_task *acceptor[MOST], *client[CLIENTS];
    unsigned patient = 1 + net_dice(2), all = patient + net_dice(3);
    (void)arg;
    h.listener = t_listen(&h.at);
    for (unsigned i = 0; i < all; i++) {
        (void)blitz_tcp_listener_ref(h.listener);
        acceptor[i] = t_spawn(i < patient ? accept_patiently_again_and_again
                                          : accept_impatiently_again_and_again,
                              &h);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        client[i] = t_spawn(be_served, &h);
    for (unsigned i = 0; i < CLIENTS; i++)
        t_join(client[i]);
    CHECK_EQ(bz_load_relaxed(&h.served), (unsigned)CLIENTS); /* relaxed: they have been joined */
    blitz_tcp_listener_close(h.listener);
    for (unsigned i = 0; i < all; i++)
        t_join(acceptor[i]);
    return 0;
}

/* A connection in the backlog while an acceptor sleeps forever would be a deadlock. */
TEST(net, bug_20_no_connection_waits_beside_a_sleeping_acceptor)
{
    net_on_seeds(herd_of_acceptors, NULL, (struct bz_sim_net_config){0}, 120);
}

static int connect_and_leave(void *arg)
{
    struct herd *h = arg;
    blitz_tcp *t;
    CHECK_EQ(blitz_sleep(1000), 0);
    CHECK_EQ(blitz_tcp_connect(&h->at, &t, BLITZ_FOREVER), 0);
    blitz_tcp_close(t);
    return 0;
}

/* The first waiter leaves when the connection arrives, notified or not; if it has the connection,
 * there is another one. */
static int accept_or_nap(void *arg)
{
    struct herd *h = arg;
    blitz_net_future accept;
    blitz_sleep_future nap;
    blitz_tcp_accept_future_init(&accept, h->listener);
    blitz_sleep_until_future_init(&nap, blitz_after(1000 + net_dice(4000)));
    blitz_child child[] = {{.future = &nap.future}, {.future = &accept.future}};
    blitz_race race;
    CHECK_EQ(blitz_race_init(&race, child, 2), 0);
    CHECK_EQ(blitz_await(&race.future, BLITZ_FOREVER), 0);
    if (child[1].fate != BLITZ_ENDED || accept.result != 0)
        return 0;
    blitz_tcp_close(accept.tcp);
    return connect_and_leave(h);
}

static int tell_one_who_goes(void *arg)
{
    struct herd h = {.listener = NULL};
    (void)arg;
    h.listener = t_listen(&h.at);
    for (int round = 0; round < 6; round++) {
        blitz_tcp *c;
        blitz_task *goes = t_spawn(accept_or_nap, &h);
        CHECK_EQ(blitz_sleep(net_dice(1000)), 0);
        blitz_task *client = t_spawn(connect_and_leave, &h);
        CHECK_EQ(blitz_tcp_accept(h.listener, &c, NULL, BLITZ_FOREVER), 0);
        blitz_tcp_close(c);
        t_join(goes);
        t_join(client);
    }
    blitz_tcp_listener_close(h.listener);
    return 0;
}

TEST(net, bug_22_a_notified_waiter_that_leaves_notifies_the_next)
{
    net_on_seeds(tell_one_who_goes, NULL, (struct bz_sim_net_config){0}, 120);
}

/* ---- trouble ---- */

static bool is_trouble(int64_t n)
{
    return n == -ECONNRESET || n == -EPIPE || n == -EBADF || n == -ENOTCONN || n == -ECANCELED;
}

/* Echo, for as long as it pleases. */
static int serve_rudely(void *arg)
{
    blitz_tcp *t = arg;
    uint8_t data[PIECE];
    unsigned patience = 1 + net_dice(20);
    int64_t n = 1;
    while (patience-- > 0 && (n > 0 || is_a_pause(n))) {
        n = blitz_tcp_read(t, data, sizeof data, some_deadline());
        if (n > 0)
            n = blitz_tcp_write_all(t, data, (size_t)n, NULL, BLITZ_FOREVER);
        CHECK(n >= 0 || is_a_pause(n) || is_trouble(n));
        n = n == 0 ? 1 : n;
        blitz_yield();
    }
    if (net_dice(3) == 0)
        (void)blitz_tcp_set_linger(t, 0);
    blitz_tcp_close(t);
    return 0;
}

struct wild {
    blitz_tcp_listener *listener;
    blitz_addr at;
};

static int accept_the_wild(void *arg)
{
    struct wild *w = arg;
    blitz_tcp *c;
    int err;
    while ((err = blitz_tcp_accept(w->listener, &c, NULL, BLITZ_FOREVER)) == 0)
        CHECK_EQ(blitz_spawn(serve_rudely, c, NULL, NULL), 0);
    CHECK_EQ(err, -EBADF);
    blitz_tcp_listener_unref(w->listener);
    return 0;
}

static int send_wildly(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    int64_t n = 1;
    while (s->sent < s->bytes && (n > 0 || is_a_pause(n))) {
        size_t want = 1 + net_dice(PIECE);
        fill_in(data, want, s->id, s->sent);
        n = write_some(s, data, want);
        CHECK(n > 0 || is_a_pause(n) || is_trouble(n));
        s->sent += n > 0 ? (uint64_t)n : 0;
        blitz_yield();
    }
    if (net_dice(2) == 0)
        (void)blitz_tcp_shutdown(s->t, BLITZ_WRITABLE);
    return 0;
}

static int receive_wildly(void *arg)
{
    struct stream *s = arg;
    uint8_t data[PIECE];
    int64_t n = 1;
    while (n > 0 || is_a_pause(n)) {
        n = read_some(s, data, 1 + net_dice(PIECE));
        CHECK(n >= 0 || is_a_pause(n) || is_trouble(n));
        if (n > 0)
            look_through(data, (size_t)n, s->id, s->got);
        s->got += n > 0 ? (uint64_t)n : 0;
        blitz_yield();
    }
    return 0;
}

/* Close it under its users, or cancel them. */
static int go_wild(void *arg)
{
    const struct wild *w = arg;
    struct stream s = {.id = net_dice(1000), .bytes = net_dice(300)};
    int err = blitz_tcp_connect(&w->at, &s.t, some_deadline());
    if (err != 0) {
        CHECK(err == -ETIMEDOUT || err == -ECONNREFUSED || err == -ECONNRESET);
        return 0;
    }
    (void)blitz_tcp_ref(s.t);
    blitz_task *sender = t_spawn(send_wildly, &s), *receiver = t_spawn(receive_wildly, &s);
    CHECK_EQ(blitz_sleep(net_dice(2) * net_dice(1000000)), 0);
    bool is_closed = net_dice(3) == 0;
    if (is_closed) {
        blitz_tcp_close(s.t);
    } else {
        blitz_task_cancel(sender);
        blitz_task_cancel(receiver);
    }
    t_join(sender);
    t_join(receiver);
    if (!is_closed)
        blitz_tcp_close(s.t);
    blitz_tcp_unref(s.t);
    return 0;
}

static int the_wild(void *arg)
{
    enum { CLIENTS = 5 };
    struct wild w;
    blitz_task *client[CLIENTS];
    (void)arg;
    w.listener = t_listen(&w.at);
    (void)blitz_tcp_listener_ref(w.listener);
    blitz_task *acceptor = t_spawn(accept_the_wild, &w);
    for (unsigned i = 0; i < CLIENTS; i++)
        client[i] = t_spawn(go_wild, &w);
    for (unsigned i = 0; i < CLIENTS; i++)
        t_join(client[i]);
    blitz_tcp_listener_close(w.listener);
    t_join(acceptor);
    return 0;
}

/* In every case the received bytes of a connection are in order, all tasks end and nothing is left
 * open: the counts show it. */
TEST(net, bug_16_resets_closes_and_cancels_at_every_wait_leave_nothing)
{
    struct bz_sim_net_config rough = {.reset_one_in = 20, .refuse_one_in = 5};
    net_on_seeds(the_wild, NULL, rough, 120);
}

/* ---- closed by another ---- */

static int read_until_closed(void *arg)
{
    char c;
    CHECK_EQ(blitz_tcp_read(arg, &c, 1, BLITZ_FOREVER), -EBADF);
    return 0;
}

static int read_until_the_end(void *arg)
{
    char c;
    CHECK_EQ(blitz_tcp_read(arg, &c, 1, BLITZ_FOREVER), 0);
    return 0;
}

static int close_after_a_while(void *arg)
{
    CHECK_EQ(blitz_sleep(net_dice(2) * net_dice(50000)), 0);
    blitz_tcp_close(arg);
    return 0;
}

/* A waiter on either side is woken, and only by the close. */
static int close_under_a_reader(void *arg)
{
    (void)arg;
    for (int round = 0; round < 4; round++) {
        blitz_tcp *end[2];
        struct user user[3];
        CHECK_EQ(blitz_unix_pair(end), 0);
        user_start(&user[0], read_until_closed, blitz_tcp_ref(end[0]));
        user_start(&user[1], read_until_the_end, end[1]);
        user_start(&user[2], close_after_a_while, end[0]);
        for (int i = 0; i < 3; i++)
            user_join(&user[i]);
        blitz_tcp_unref(end[0]);
        blitz_tcp_close(end[1]);
    }
    return 0;
}

TEST(net, bug_16_a_close_under_a_reader_reaches_it_and_the_peer)
{
    net_on_seeds(close_under_a_reader, NULL, (struct bz_sim_net_config){0}, 120);
}

/* ---- numbers that come back ---- */

/* A reader until the close; it must never see a byte of another connection. */
struct tagged {
    blitz_tcp *t;
    uint8_t tag;
};

static int read_the_tag(void *arg)
{
    struct tagged *r = arg;
    uint8_t data[8];
    int64_t n;
    while ((n = blitz_tcp_read(r->t, data, sizeof data, BLITZ_FOREVER)) > 0)
        for (int64_t i = 0; i < n; i++)
            CHECK_EQ(data[i], r->tag);
    CHECK(n == 0 || n == -EBADF || n == -ECONNRESET);
    blitz_tcp_unref(r->t);
    return 0;
}

static int write_the_tag(void *arg)
{
    struct tagged *w = arg;
    uint8_t data[8];
    int64_t n = 1;
    memset(data, w->tag, sizeof data);
    for (unsigned i = net_dice(6); i > 0 && n > 0; i--)
        n = blitz_tcp_write(w->t, data, 1 + net_dice(sizeof data), BLITZ_FOREVER);
    CHECK(n > 0 || n == -EBADF || n == -EPIPE || n == -ECONNRESET);
    blitz_tcp_unref(w->t);
    return 0;
}

/* Pairs that are closed in the middle, one after the other: each gets the numbers of the last. */
static int pairs_in_a_row(void *arg)
{
    for (uint8_t round = 0; round < 6; round++) {
        blitz_tcp *end[2];
        uint8_t tag = (uint8_t)((uintptr_t)arg * 16 + round);
        CHECK_EQ(blitz_unix_pair(end), 0);
        struct tagged r = {blitz_tcp_ref(end[0]), tag}, w = {blitz_tcp_ref(end[1]), tag};
        blitz_task *reader = t_spawn(read_the_tag, &r), *writer = t_spawn(write_the_tag, &w);
        if (net_dice(2) == 0)
            CHECK_EQ(blitz_sleep(net_dice(20000)), 0);
        /* the others only drop their references */
        blitz_tcp_close(blitz_tcp_ref(end[net_dice(2)]));
        uint8_t data;
        int64_t n = blitz_tcp_try_read(end[0], &data, 1);
        CHECK(n <= 0 || data == tag);
        t_close_both(end);
        t_join(reader);
        t_join(writer);
    }
    return 0;
}

static int rows_of_pairs(void *arg)
{
    enum { ROWS = 3 };
    blitz_task *row[ROWS];
    (void)arg;
    for (uintptr_t i = 0; i < ROWS; i++)
        row[i] = t_spawn(pairs_in_a_row, (void *)i);
    for (int i = 0; i < ROWS; i++)
        t_join(row[i]);
    return 0;
}

TEST(net, bug_14_no_event_or_call_reaches_the_next_owner_of_a_number)
{
    net_on_seeds(rows_of_pairs, NULL, (struct bz_sim_net_config){0}, 120);
}

/* ---- procs that change hands ---- */

static int burn_for_long(void *arg)
{
    (void)arg;
    bz_sim_burn(30 * BLITZ_MS);
    return 0;
}

/* Begun on a proc that is then taken from its thread, which ends before the answer comes. */
static int wait_for_an_answer(void *arg)
{
    uint8_t data;
    CHECK_EQ(blitz_tcp_read(arg, &data, 1, BLITZ_FOREVER), 1);
    CHECK_EQ(data, 'x');
    return 0;
}

static int outlive_the_thread(void *arg)
{
    enum { N = 4 };
    blitz_tcp *end[N][2];
    blitz_task *reader[N], *hog[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_unix_pair(end[i]), 0);
        reader[i] = t_spawn(wait_for_an_answer, end[i][0]);
    }
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    for (int i = 0; i < N; i++)
        hog[i] = t_spawn(burn_for_long, NULL);
    CHECK_EQ(blitz_sleep(net_dice(2) * BLITZ_MS), 0);
    for (int i = 0; i < N / 2; i++) /* beside the hogs */
        CHECK_EQ(blitz_tcp_write(end[i][1], "x", 1, BLITZ_FOREVER), 1);
    for (int i = 0; i < N / 2; i++)
        t_join(reader[i]);
    for (int i = 0; i < N; i++)
        t_join(hog[i]);
    CHECK_EQ(blitz_sleep(100 * BLITZ_S), 0); /* threads that are not needed end */
    for (int i = N / 2; i < N; i++)
        CHECK_EQ(blitz_tcp_write(end[i][1], "x", 1, BLITZ_FOREVER), 1);
    for (int i = N / 2; i < N; i++)
        t_join(reader[i]);
    for (int i = 0; i < N; i++)
        t_close_both(end[i]);
    return 0;
}

TEST(net, bug_06_operations_go_on_when_their_proc_is_taken_and_their_thread_ends)
{
    net_on_seeds(outlive_the_thread, NULL, (struct bz_sim_net_config){0}, 100);
}

/* ---- no descriptors left ---- */

static int serve_slowly(void *arg)
{
    blitz_tcp *c = arg;
    CHECK_EQ(blitz_tcp_write(c, "!", 1, BLITZ_FOREVER), 1);
    (void)!blitz_sleep(net_dice(2) * BLITZ_MS); /* the runtime may be ending */
    blitz_tcp_close(c);
    return 0;
}

static int serve_with_few(void *arg)
{
    struct herd *h = arg;
    blitz_tcp *c;
    int err;
    while ((err = blitz_tcp_accept(h->listener, &c, NULL, BLITZ_FOREVER)) == 0)
        CHECK_EQ(blitz_spawn(serve_slowly, c, NULL, NULL), 0);
    CHECK_EQ(err, -EBADF);
    blitz_tcp_listener_unref(h->listener);
    return 0;
}

static int be_served_again(void *arg)
{
    struct herd *h = arg;
    blitz_tcp *t;
    char c;
    for (int i = 0; i < 4; i++) {
        int err;
        while ((err = blitz_tcp_connect(&h->at, &t, BLITZ_FOREVER)) == -EMFILE)
            CHECK_EQ(blitz_sleep(1 + net_dice(1000000)), 0);
        CHECK_EQ(err, 0);
        CHECK_EQ(blitz_tcp_read(t, &c, 1, BLITZ_FOREVER), 1);
        blitz_tcp_close(t);
    }
    return 0;
}

/* Three clients, and descriptors for two of the three at the other end. */
static int three_with_two(void *arg)
{
    enum { CLIENTS = 3 };
    struct herd h = {.listener = NULL};
    blitz_task *client[CLIENTS];
    blitz_tcp *first[2];
    char c;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(first), 0); /* so that the backend has its descriptors */
    CHECK_EQ(blitz_tcp_read(first[0], &c, 1, blitz_after(1000)), -ETIMEDOUT);
    h.listener = t_listen(&h.at);
    (void)blitz_tcp_listener_ref(h.listener);
    blitz_task *server = t_spawn(serve_with_few, &h);
    for (int i = 0; i < CLIENTS; i++)
        client[i] = t_spawn(be_served_again, &h);
    for (int i = 0; i < CLIENTS; i++)
        t_join(client[i]);
    blitz_tcp_listener_close(h.listener);
    t_join(server);
    t_close_both(first);
    return 0;
}

/* An accept without descriptors sleeps and retries; no connection stays in the backlog. */
TEST(net, bug_19_when_descriptors_run_out_every_client_is_served_in_the_end)
{
    net_on_procs(three_with_two, NULL, (struct bz_sim_net_config){.fds = 10}, 60, 1, 1);
}
