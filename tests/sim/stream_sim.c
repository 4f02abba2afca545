/* Streams in virtual time: what a pair of copies does with its idle time. */
#include "support/sched_sim.h"

enum { IDLE_MS = 100 };

struct proxy {
    blitz_duplex *duplex[2];
    blitz_stream near[2], far[2]; /* near[0] is the client's, far[1] the server's */
    blitz_deadline until;
    uint64_t idle_ns, took_ns, there, back;
};

static int proxies(void *arg)
{
    struct proxy *p = arg;
    uint64_t since = blitz_now();
    int err =
        blitz_stream_copy_both(p->near[1], p->far[0], p->idle_ns, &p->there, &p->back, p->until);
    p->took_ns = blitz_now() - since;
    for (int i = 0; i < 2; i++)
        blitz_duplex_close(p->duplex[i], 1 - i); /* of near the second end, of far the first */
    return err;
}

static void proxy_open(struct proxy *p)
{
    CHECK_EQ(blitz_duplex_new(64, p->near, &p->duplex[0]), 0);
    CHECK_EQ(blitz_duplex_new(64, p->far, &p->duplex[1]), 0);
    p->until = BLITZ_FOREVER;
    p->idle_ns = IDLE_MS * BLITZ_MS;
}

static void proxy_close(struct proxy *p)
{
    for (int i = 0; i < 2; i++)
        blitz_duplex_unref(p->duplex[i]);
}

/* One byte every 3/4 of the idle time, in one direction; the other one is silent. */
static int trickle(void *arg)
{
    struct proxy p;
    blitz_task *t;
    int result;
    char c = 'x';
    (void)arg;
    proxy_open(&p);
    CHECK_EQ(blitz_spawn(proxies, &p, NULL, &t), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(blitz_writer_write(p.near[0].out, &c, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_reader_read(p.far[1].in, &c, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_sleep(IDLE_MS * BLITZ_MS * 3 / 4), 0);
    }
    CHECK(!blitz_task_is_done(t));
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_EQ(p.there, 20u);
    CHECK_GE(p.took_ns, 15 * IDLE_MS * BLITZ_MS);
    CHECK_LE(p.took_ns, 17 * IDLE_MS * BLITZ_MS);
    proxy_close(&p);
    return 0;
}

TEST(stream_sim, a_pair_of_copies_is_idle_only_if_both_directions_are)
{
    sim_on_seeds(trickle, NULL, 0, 30);
}

/* The server reads nothing: what was written fills the room, and then nothing moves. */
static int clogged(void *arg)
{
    struct proxy p;
    blitz_task *t;
    int result;
    char c[64] = "";
    int64_t n;
    (void)arg;
    proxy_open(&p);
    CHECK_EQ(blitz_spawn(proxies, &p, NULL, &t), 0);
    while ((n = blitz_writer_write(p.near[0].out, c, sizeof c, BLITZ_FOREVER)) > 0)
        continue;
    CHECK_EQ(n, -EPIPE); /* the proxy is gone */
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ETIMEDOUT);
    proxy_close(&p);
    return 0;
}

TEST(stream_sim, a_copy_that_cannot_write_is_idle_too)
{
    sim_on_seeds(clogged, NULL, 0, 30);
}

/* Without an idle time the pair waits, and the deadline holds as before. */
static int patient(void *arg)
{
    struct proxy p;
    blitz_task *t;
    int result;
    proxy_open(&p);
    p.idle_ns = arg == NULL ? 0 : BLITZ_FOREVER;
    p.until = blitz_after(50 * IDLE_MS * BLITZ_MS);
    CHECK_EQ(blitz_spawn(proxies, &p, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_GE(p.took_ns, 49 * IDLE_MS * BLITZ_MS);
    proxy_close(&p);
    return 0;
}

TEST(stream_sim, without_an_idle_time_only_the_deadline_counts)
{
    sim_on_seeds(patient, NULL, 0, 10);
    sim_on_seeds(patient, &(char){1}, 0, 10);
}
