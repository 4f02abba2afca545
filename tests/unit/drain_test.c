/* No connection is left in a listener's backlog: with slow acceptors, and with acceptors replaced
 * under load. */
#include "harness.h"

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/net.h"
#include "support/keepers.h"
#include "support/net.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

/* ---- a line of connections, and slow acceptors ---- */

enum { ACCEPTORS = 3, BURSTS = 4, BURST = 40 };

static bz_atomic(uint32_t) taken; /* relaxed: counted */

/* Takes one, is busy elsewhere for a while, takes the next. */
static int accepts_slowly(void *arg)
{
    blitz_tcp *t;
    unsigned seed = 1;
    while (blitz_tcp_accept(arg, &t, NULL, BLITZ_FOREVER) == 0) {
        bz_fetch_add_relaxed(&taken, 1); /* relaxed: as above */
        blitz_tcp_close(t);
        seed = seed * 1103515245 + 12345;
        for (unsigned i = seed >> 16 & 7; i > 0; i--)
            blitz_yield();
        if ((seed >> 20 & 7) == 0 && blitz_sleep(100 * BLITZ_US) != 0)
            break;
    }
    blitz_tcp_listener_unref(arg);
    return 0;
}

/* All at once; then it is quiet until each of them was taken. If one accept consumes an edge
 * without passing it on, the rest stays in the backlog forever. */
static int bursts(void *arg)
{
    blitz_task *task[ACCEPTORS];
    blitz_tcp *client[BURST];
    blitz_addr at;
    blitz_tcp_listener *l = t_listen(&at);
    char c;
    (void)arg;
    bz_store_relaxed(&taken, 0); /* relaxed: before the spawns */
    for (int i = 0; i < ACCEPTORS; i++)
        task[i] = t_spawn(accepts_slowly, blitz_tcp_listener_ref(l));
    for (int burst = 0; burst < BURSTS; burst++) {
        for (int i = 0; i < BURST; i++)
            CHECK_EQ(blitz_tcp_connect(&at, &client[i], soon()), 0);
        for (int i = 0; i < BURST; i++) {
            CHECK_EQ(blitz_tcp_read(client[i], &c, 1, soon()), 0); /* it was taken, and closed */
            blitz_tcp_close(client[i]);
        }
        CHECK_EQ(bz_load_relaxed(&taken), (unsigned)(burst + 1) * BURST); /* relaxed: as above */
    }
    blitz_tcp_listener_close(l);
    for (int i = 0; i < ACCEPTORS; i++)
        CHECK_EQ(t_join(task[i]), 0);
    return 0;
}

/* envoy#15818: connections stay in the backlog while acceptors sleep. */
TEST(drain, bug_20_a_burst_is_taken_to_the_last_by_slow_acceptors)
{
    t_on_keepers(bursts, NULL);
}

/* ---- a change of acceptors, under load ---- */

enum { GENERATIONS = 12, CLIENTS = 4 };

static bz_atomic(uint32_t) is_over; /* relaxed: a flag */

/* Serves until told to stop; accepted connections are served to the end. */
static int generation(void *arg)
{
    blitz_tcp *t;
    int err;
    while ((err = blitz_tcp_accept(arg, &t, NULL, BLITZ_FOREVER)) == 0) {
        blitz_shield();
        CHECK_EQ(blitz_tcp_write(t, "x", 1, soon()), 1);
        blitz_unshield();
        blitz_tcp_close(t);
    }
    blitz_tcp_listener_unref(arg);
    return err;
}

static int comes_again(void *arg)
{
    int served = 0;
    while (bz_load_relaxed(&is_over) == 0) { /* relaxed: a flag */
        blitz_tcp *t;
        char c = 0;
        CHECK_EQ(blitz_tcp_connect(arg, &t, soon()), 0);
        CHECK_EQ(blitz_tcp_read(t, &c, 1, soon()), 1); /* no reset, no wait for ever */
        CHECK_EQ(blitz_tcp_read(t, &c, 1, soon()), 0);
        blitz_tcp_close(t);
        served++;
    }
    return served;
}

static int reloads(void *arg)
{
    blitz_task *client[CLIENTS], *old[2] = {NULL, NULL}, *new[2];
    blitz_addr at;
    blitz_tcp_listener *l = t_listen(&at);
    int served = 0;
    (void)arg;
    bz_store_relaxed(&is_over, 0); /* relaxed: before the spawns */
    for (int i = 0; i < CLIENTS; i++)
        client[i] = t_spawn(comes_again, &at);
    for (int g = 0; g < GENERATIONS; g++) {
        for (int i = 0; i < 2; i++)
            new[i] = t_spawn(generation, blitz_tcp_listener_ref(l));
        for (int i = 0; i < 2 && old[i] != NULL; i++) {
            blitz_task_cancel(old[i]);
            CHECK_EQ(t_join(old[i]), -ECANCELED);
        }
        memcpy(old, new, sizeof old);
        for (unsigned turns = (unsigned)t_random_below(30); turns > 0; turns--)
            blitz_yield();
    }
    bz_store_relaxed(&is_over, 1); /* relaxed: a flag */
    for (int i = 0; i < CLIENTS; i++)
        served += t_join(client[i]);
    CHECK_GT(served, 0);
    blitz_tcp_listener_close(l);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(t_join(old[i]), -EBADF);
    return 0;
}

/* A cancelled acceptor that was notified of a connection passes the notification on. A connection
 * that a ring accepted for it is served or returned, and not dropped. */
TEST(drain, bug_20_a_reload_under_load_resets_and_loses_no_connection)
{
    t_on_keepers(reloads, NULL);
}
