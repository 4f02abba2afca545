/*
 * A server whose acceptors are replaced while clients connect: a new one starts before the old one
 * has ended. At the end pending connections are accepted before the listener is closed, and every
 * client is served.
 */
#include "harness.h"

#include "base/bz_atomic.h"
#include "io/ring.h"
#include "support/net.h"

enum { CLIENTS = 6, GENERATIONS = 15 };

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S); /* a client that waits so long was forgotten */
}

struct server {
    blitz_addr at;
    blitz_tcp_listener *listener;
    bz_atomic(unsigned) taken, served;
    bz_atomic(int) is_over; /* clients stop */
};

/* ---- clients ---- */

static int ask_once(struct server *s)
{
    blitz_tcp *t;
    char byte = 'q';
    int err = blitz_tcp_connect(&s->at, &t, soon());
    if (err != 0)
        return err;
    err = blitz_tcp_write_all(t, &byte, 1, NULL, soon());
    if (err == 0)
        err = blitz_tcp_read_exact(t, &byte, 1, NULL, soon());
    blitz_tcp_close(t);
    return err;
}

static int client(void *arg)
{
    struct server *s = arg;
    while (!bz_load_relaxed(&s->is_over)) {  /* relaxed: a flag */
        CHECK_EQ(ask_once(s), 0);            /* not refused, not reset, not forgotten */
        bz_fetch_add_relaxed(&s->served, 1); /* relaxed: a count */
    }
    return 0;
}

/* ---- servers ---- */

static int answer(void *arg)
{
    blitz_tcp *t = arg;
    char byte;
    CHECK_EQ(blitz_tcp_read_exact(t, &byte, 1, NULL, soon()), 0);
    CHECK_EQ(blitz_tcp_write_all(t, &byte, 1, NULL, soon()), 0);
    (void)!blitz_tcp_read(t, &byte, 1, soon()); /* it has what it asked for, and goes, or we do */
    blitz_tcp_close(t);
    return 0;
}

static int accept_until(struct server *s, blitz_deadline until)
{
    blitz_tcp *t;
    int err;
    while ((err = blitz_tcp_accept(s->listener, &t, NULL, until)) == 0) {
        bz_fetch_add_relaxed(&s->taken, 1); /* relaxed: a count */
        CHECK_EQ(blitz_spawn(answer, t, NULL, NULL), 0);
    }
    return err;
}

static int accept_all(void *arg)
{
    return accept_until(arg, BLITZ_FOREVER);
}

static blitz_task *generation(struct server *s)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(accept_all, s, NULL, &t), 0);
    return t;
}

static void retire(blitz_task *old)
{
    int result = 0;
    blitz_task_cancel(old);
    CHECK_EQ(blitz_task_join(old, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
}

/* Repeatedly a new one starts, then the old one ends, at any point. */
static void replace_them(struct server *s)
{
    blitz_task *now = generation(s);
    for (unsigned i = 0; i < GENERATIONS; i++) {
        unsigned until =
            bz_load_relaxed(&s->served) + 1 + (unsigned)t_random_below(4); /* relaxed */
        while (bz_load_relaxed(&s->served) < until)                        /* relaxed: a count */
            CHECK_EQ(blitz_sleep(20 * BLITZ_US), 0);
        blitz_task *next = generation(s);
        retire(now);
        now = next;
    }
    bz_store_relaxed(&s->is_over, 1); /* relaxed: a flag */
    retire(now);
}

static int reloads(void *arg)
{
    struct server s = {.is_over = 0};
    blitz_task *t[CLIENTS];
    (void)arg;
    s.listener = t_listen(&s.at);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(blitz_spawn(client, &s, NULL, &t[i]), 0);
    replace_them(&s);
    for (int i = 0; i < CLIENTS; i++) /* pending connections are accepted */
        do
            CHECK_EQ(accept_until(&s, 0), -ETIMEDOUT);
        while (blitz_task_join(t[i], NULL, blitz_after(BLITZ_MS)) == -ETIMEDOUT);
    blitz_tcp_listener_close(s.listener);
    CHECK_EQ(bz_load_relaxed(&s.taken), bz_load_relaxed(&s.served)); /* relaxed: all were joined */
    t_note("%u connections", bz_load_relaxed(&s.served));            /* relaxed: likewise */
    return 0;
}

static bool has_rings(void)
{
    struct bz_ring r;
    if (bz_ring_open(&r, 2, 4) != 0)
        return false;
    bz_ring_close(&r);
    return true;
}

TEST(reload, bug_20_acceptors_are_replaced_under_load_and_no_client_is_reset)
{
    const char *keepers[] = {"epoll", "poll", "uring"};
    for (int i = 0; i < (has_rings() ? 3 : 2); i++)
        for (unsigned procs = 1; procs <= 2; procs++) {
            t_watch("%s, %u procs", keepers[i], procs);
            CHECK_EQ(
                blitz_run(reloads, NULL, &(blitz_runtime_opts){.procs = procs, .io = keepers[i]}),
                0);
        }
}
