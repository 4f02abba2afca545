/* Connects and lookups as futures, on every backend: the first answer, and the effect of a
 * cancel. */
#include "harness.h"

#include <pthread.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/combine.h"
#include "blitz/net.h"
#include "io/lookup.h"
#include "support/keepers.h"
#include "support/net.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

/* Three addresses: one without a listener, one with a listener, one whose backlog is full. */
struct three {
    blitz_tcp_listener *live, *full;
    blitz_addr at[3];
    blitz_tcp *in_line[8];
    int waiting;
    unsigned sockets; /* open now */
};

enum { DEAD, LIVE, FULL };

static void open_three(struct three *w)
{
    const blitz_tcp_listen_opts short_line = {.backlog = 1};
    blitz_tcp_listener *dead = t_listen(&w->at[DEAD]);
    w->live = t_listen(&w->at[LIVE]);
    w->at[FULL] = blitz_addr_loopback_v4(0);
    CHECK_EQ(blitz_tcp_listen(&w->at[FULL], &short_line, &w->full), 0);
    CHECK_EQ(blitz_tcp_listener_local(w->full, &w->at[FULL]), 0);
    w->waiting = t_fill_line(w->full, w->in_line, 8);
    blitz_tcp_listener_close(dead);
    w->sockets = t_open_sockets();
}

/* Nothing is left open but what the test has opened. */
static void close_three(struct three *w)
{
    CHECK_EQ(t_open_sockets(), w->sockets);
    while (w->waiting > 0)
        blitz_tcp_close(w->in_line[--w->waiting]);
    blitz_tcp_listener_close(w->live);
    blitz_tcp_listener_close(w->full);
}

/* The connection is one of the live listener's. */
static void check_live(struct three *w, blitz_tcp *t)
{
    blitz_tcp *end[2] = {t, NULL};
    CHECK_NOT_NULL(t);
    CHECK_EQ(blitz_tcp_accept(w->live, &end[1], NULL, soon()), 0);
    t_close_both(end);
}

/* ---- the first of several ---- */

static int first_that_answers(void *arg)
{
    struct three w;
    blitz_connect_first_future f;
    int errors[3];
    (void)arg;
    open_three(&w);
    blitz_addr to[3] = {w.at[DEAD], w.at[LIVE], w.at[LIVE]};
    blitz_tcp_connect_first_future_init(&f, to, 3, errors, soon());
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, 1);
    CHECK_EQ(errors[0], -ECONNREFUSED);
    CHECK_EQ(errors[1], 0);
    CHECK_EQ(errors[2], -EINPROGRESS);
    check_live(&w, f.tcp);
    blitz_tcp_connect_first_future_init(&f, to, 1, NULL, soon());
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, -ECONNREFUSED);
    CHECK_NULL(f.tcp);

    /* An address that does not answer takes its share of the time, here all of it. On a busy system
     * it may be over before that one is asked. */
    to[1] = w.at[FULL];
    errors[1] = -EINPROGRESS;
    for (uint64_t patience = 5 * BLITZ_MS; errors[1] == -EINPROGRESS; patience *= 2) {
        blitz_tcp_connect_first_future_init(&f, to, 3, errors, blitz_after(patience));
        CHECK_EQ(blitz_await(&f.future, soon()), 0);
        CHECK_EQ(f.result, -ETIMEDOUT);
    }
    CHECK_EQ(errors[1], -ETIMEDOUT);
    CHECK_EQ(errors[2], -EINPROGRESS);
    blitz_tcp_connect_first_future_init(&f, NULL, 1, NULL, soon());
    CHECK_EQ(blitz_await(&f.future, 0), 0);
    CHECK_EQ(f.result, -EINVAL);
    blitz_tcp_connect_first_future_init(&f, to, 0, NULL, soon());
    CHECK_EQ(f.result, -EINVAL);
    close_three(&w);
    return 0;
}

TEST(connect_future, the_first_address_that_answers_is_had)
{
    t_on_keepers(first_that_answers, NULL);
}

struct call {
    blitz_addr to[2];
    int errors[2];
    const char *host; /* NULL: by the addresses */
    blitz_connect_first_future first;
    blitz_connect_host_future named;
    int awaited;
};

static blitz_future *begin(struct call *c)
{
    if (c->host == NULL) {
        blitz_tcp_connect_first_future_init(&c->first, c->to, 2, c->errors, BLITZ_FOREVER);
        return &c->first.future;
    }
    blitz_tcp_connect_host_future_init(&c->named, c->host, "7", BLITZ_FOREVER);
    return &c->named.future;
}

static int result_of(const struct call *c)
{
    CHECK_NULL(c->host == NULL ? c->first.tcp : c->named.tcp);
    return c->host == NULL ? c->first.result : c->named.result;
}

static int awaits(void *arg)
{
    struct call *c = arg;
    c->awaited = blitz_await(begin(c), BLITZ_FOREVER);
    return 0;
}

static void run_into_a_timeout(struct call *c, uint64_t patience_ns)
{
    blitz_timeout limit;
    CHECK_EQ(blitz_timeout_init(&limit, begin(c), blitz_after(patience_ns)), 0);
    CHECK_EQ(blitz_await(&limit.future, soon()), 0);
    CHECK_EQ(limit.result, -ETIMEDOUT);
    CHECK_EQ(result_of(c), -ECANCELED);
}

/* While it waits for an address that does not answer, after one that refused. */
static void give_up(struct call *c)
{
    blitz_ready_future other;
    blitz_task *task = t_spawn(awaits, c);
    t_until_waits(task);
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(c->awaited, -ECANCELED);
    CHECK_EQ(result_of(c), -ECANCELED);

    task = t_spawn(awaits, c);
    blitz_task_cancel(task); /* before it asks */
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(result_of(c), -ECANCELED);

    blitz_ready_future_init(&other, 0);
    CHECK_EQ(BLITZ_FIRST_OF(soon(), begin(c), &other.future), 1);
    CHECK_EQ(result_of(c), -ECANCELED);
    run_into_a_timeout(c, BLITZ_MS);
}

static int given_up(void *arg)
{
    struct three w;
    struct call c = {.host = NULL};
    (void)arg;
    open_three(&w);
    c.to[0] = w.at[DEAD];
    c.to[1] = w.at[FULL];
    give_up(&c);
    for (uint64_t ms = 2; c.errors[0] == -ECANCELED; ms *= 2) /* it was held up at the first */
        run_into_a_timeout(&c, ms * BLITZ_MS);
    CHECK_EQ(c.errors[0], -ECONNREFUSED);
    CHECK_EQ(c.errors[1], -ECANCELED);
    close_three(&w);
    return 0;
}

TEST(connect_future, bug_21_given_up_it_leaves_nothing_open)
{
    t_on_keepers(given_up, NULL);
}

static void *thread_connects(void *arg)
{
    struct call *c = arg;
    CHECK_EQ(blitz_await(begin(c), soon()), 0);
    return NULL;
}

static int on_a_thread(void *arg)
{
    struct three w;
    struct call c = {.host = NULL};
    pthread_t thread;
    (void)arg;
    open_three(&w);
    c.to[0] = c.to[1] = w.at[LIVE];
    CHECK_EQ(pthread_create(&thread, NULL, thread_connects, &c), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(result_of(&c), -EOPNOTSUPP);
    close_three(&w);
    return 0;
}

TEST(connect_future, on_a_plain_thread_it_says_so)
{
    t_on_keepers(on_a_thread, NULL);
}

/* ---- by name ---- */

static blitz_event gate = BLITZ_EVENT_INIT; /* "slow" is answered when it is set */
static blitz_addr answer;
static bz_atomic(uint32_t) slow_calls; /* relaxed: counted */

static int lookup(const char *host, const char *service, blitz_addr *out, size_t room)
{
    (void)service;
    (void)room;
    if (strcmp(host, "slow") == 0) {
        bz_fetch_add_relaxed(&slow_calls, 1); /* relaxed: as above */
        (void)!blitz_event_wait(&gate, BLITZ_FOREVER);
    }
    *out = answer;
    return strcmp(host, "missing") == 0 ? -ENOENT : 1;
}

static int by_name(void *arg)
{
    struct three w;
    blitz_connect_host_future f;
    struct call c = {.host = "full"};
    (void)arg;
    open_three(&w);
    answer = w.at[LIVE];
    blitz_tcp_connect_host_future_init(&f, "live", "7", soon());
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, 0);
    check_live(&w, f.tcp);
    blitz_tcp_connect_host_future_init(&f, "missing", "7", soon());
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, -ENOENT);
    blitz_tcp_connect_host_future_init(&f, "", "7", soon());
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, -EINVAL);
    answer = w.at[FULL];
    blitz_tcp_connect_host_future_init(&f, "full", "7", blitz_after(5 * BLITZ_MS));
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, -ETIMEDOUT);
    give_up(&c); /* in the connect, as a rule */
    close_three(&w);
    return 0;
}

TEST(connect_future, a_host_is_looked_up_and_connected_to)
{
    bz_lookup_instead = lookup;
    t_on_keepers(by_name, NULL);
}

/* ---- a lookup that does not end ---- */

struct names {
    blitz_resolve_future f;
    blitz_addr out[2];
    int awaited;
};

static int resolves(void *arg)
{
    struct names *n = arg;
    blitz_resolve_future_init(&n->f, "slow", "7", n->out, 2);
    n->awaited = blitz_await(&n->f.future, BLITZ_FOREVER);
    return 0;
}

static int left_behind(void *arg)
{
    enum { AT_ONCE = 4 };
    struct call c = {.host = "slow"};
    struct names n, in_line;
    blitz_ready_future other;
    blitz_timeout limit;
    blitz_race race;
    blitz_child child[2] = {{.future = &n.f.future}, {.future = &other.future}};
    (void)arg;
    answer = blitz_addr_loopback_v4(7);
    blitz_task *task = t_spawn(resolves, &n); /* one is left by a cancel, in its call */
    while (bz_load_relaxed(&slow_calls) < 1)  /* relaxed: counted */
        blitz_yield();
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(n.awaited, -ECANCELED);
    CHECK_EQ(n.f.result, -ECANCELED);

    blitz_ready_future_init(&other, 0); /* one by a race */
    blitz_resolve_future_init(&n.f, "slow", "7", n.out, 2);
    CHECK_EQ(blitz_race_init(&race, child, 2), 0);
    CHECK_EQ(blitz_await(&race.future, soon()), 0);
    CHECK_EQ(child[0].fate, BLITZ_LEFT);

    blitz_resolve_future_init(&n.f, "slow", "7", n.out, 2); /* one by a timeout */
    CHECK_EQ(blitz_timeout_init(&limit, &n.f.future, blitz_after(BLITZ_MS)), 0);
    CHECK_EQ(blitz_await(&limit.future, soon()), 0);
    CHECK_EQ(limit.result, -ETIMEDOUT);
    CHECK_EQ(limit.child.fate, BLITZ_LEFT);

    give_up(&c); /* these, with others waiting when the permits are used up */
    task = t_spawn(resolves, &in_line);
    t_until_waits(task);
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(in_line.f.result, -ECANCELED);

    task = t_spawn(resolves, &n); /* and one stays */
    t_until_waits(task);
    blitz_event_set(&gate);
    CHECK_EQ(t_join(task), 0);
    CHECK_EQ(n.f.result, 1);
    CHECK(blitz_addr_is_equal(&n.out[0], &answer));
    for (int i = 0; i < 2 * AT_ONCE; i++) /* every permit has come back */
        CHECK_EQ(blitz_resolve("slow", "7", n.out, 2, soon()), 1);
    return 0;
}

TEST(connect_future, a_lookup_that_is_given_up_is_left_behind)
{
    bz_lookup_instead = lookup;
    CHECK_EQ(blitz_run(left_behind, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* A plain thread looks it up itself. */
TEST(connect_future, a_lookup_serves_a_plain_thread)
{
    struct names n;
    bz_lookup_instead = lookup;
    answer = blitz_addr_loopback_v4(7);
    blitz_resolve_future_init(&n.f, "fast", "7", n.out, 2);
    CHECK_EQ(blitz_await(&n.f.future, soon()), 0);
    CHECK_EQ(n.f.result, 1);
    blitz_resolve_future_init(&n.f, "127.0.0.1", "7", n.out, 2);
    CHECK_EQ(blitz_await(&n.f.future, 0), 0); /* no lookup: no wait */
    CHECK_EQ(n.f.result, 1);
}
