/*
 * The network beside hogs, in virtual time: as many tasks that compute without end as there are
 * procs, and a conversation over the simulated network. Computation takes no time here, so the
 * delay of an answer is the scheduler's: no machine checked the poll, or none was free to run the
 * woken task.
 */
#include "blitz/unix.h"
#include "support/net.h"
#include "support/net_sim.h"

enum {
    ROUNDS = 30,
    HOGS_MAX = 6,
    /* Two wakes a round, the server's and the client's. Each waits for the monitor, which checks at
     * least every 10 ms, and if no other proc is live, for a proc to be moved. */
    ROUND_NS = 2 * 30 * 1000 * 1000
};

static bz_atomic(int) is_over; /* atomic for readers: one thread runs at a time */

static int hog(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++) {
        if (bz_load_relaxed(&is_over)) /* relaxed: a flag */
            return 0;
        bz_sim_burn(BLITZ_MS);
    }
    return 1; /* no task completed beside it */
}

static int echo(void *arg)
{
    blitz_tcp *t = arg;
    char data[16];
    int64_t n;
    while ((n = blitz_tcp_read(t, data, sizeof data, BLITZ_FOREVER)) > 0)
        CHECK_EQ(blitz_tcp_write_all(t, data, (size_t)n, NULL, BLITZ_FOREVER), 0);
    blitz_tcp_close(t);
    return 0;
}

/* How long the slowest round took. */
static uint64_t converse(blitz_tcp *t)
{
    uint64_t worst = 0;
    char byte = 'x';
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t began = blitz_now();
        CHECK_EQ(blitz_tcp_write_all(t, &byte, 1, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_tcp_read(t, &byte, 1, BLITZ_FOREVER), 1);
        uint64_t took = blitz_now() - began;
        worst = took > worst ? took : worst;
        CHECK_EQ(blitz_sleep(net_dice(3) * BLITZ_MS), 0);
    }
    return worst;
}

static int converse_beside_hogs(void *arg)
{
    uint64_t *worst = arg;
    unsigned hogs = bz_machine_self()->rt->proc_count;
    blitz_task *burning[HOGS_MAX];
    blitz_tcp *end[2];
    bz_store_relaxed(&is_over, 0); /* relaxed: before the spawns */
    t_tcp_pair(end);
    blitz_task *server = t_spawn(echo, end[1]);
    for (unsigned i = 0; i < hogs; i++)
        burning[i] = t_spawn(hog, NULL);
    CHECK_EQ(blitz_sleep(50 * BLITZ_MS), 0); /* they are known for what they are */
    uint64_t took = converse(end[0]);
    *worst = took > *worst ? took : *worst;
    CHECK_LE(took, ROUND_NS);
    bz_store_relaxed(&is_over, 1); /* relaxed: a flag */
    blitz_tcp_close(end[0]);
    t_join(server);
    for (unsigned i = 0; i < hogs; i++)
        CHECK_EQ(t_join(burning[i]), 0);
    return 0;
}

/* On every backend, on one to four procs. */
TEST(net_fair, bug_06_beside_a_hog_for_every_proc_answers_come_in_time)
{
    uint64_t worst = 0;
    net_on_seeds(converse_beside_hogs, &worst, (struct bz_sim_net_config){0}, 60);
    t_note("the slowest round took %llu us", (unsigned long long)(worst / 1000));
}

/* ---- a crowd of hogs ---- */

enum { CROWD = 60, CROWD_ROUND_NS = 30 * 1000 * 1000 };

static int converse_beside_a_crowd(void *arg)
{
    uint64_t *worst = arg;
    blitz_task *burning[CROWD];
    blitz_tcp *end[2];
    bz_store_relaxed(&is_over, 0); /* relaxed: before the spawns */
    t_tcp_pair(end);
    blitz_task *server = t_spawn(echo, end[1]);
    (void)converse(end[0]);
    for (unsigned i = 0; i < CROWD; i++)
        burning[i] = t_spawn(hog, NULL);
    CHECK_EQ(blitz_sleep(15 * BLITZ_MS), 0); /* the first are known for what they are */
    uint64_t took = converse(end[0]);
    *worst = took > *worst ? took : *worst;
    CHECK_LE(took, CROWD_ROUND_NS);
    bz_store_relaxed(&is_over, 1); /* relaxed: a flag */
    blitz_tcp_close(end[0]);
    t_join(server);
    for (unsigned i = 0; i < CROWD; i++)
        CHECK_EQ(t_join(burning[i]), 0);
    return 0;
}

/* The procs get from hog to hog, each of which takes milliseconds. Before each one they ask the poll, and tasks that have
 * waited for it run before hogs that have not begun. */
TEST(net_fair, bug_06_while_a_crowd_of_hogs_arrives_answers_come_in_time)
{
    uint64_t worst = 0;
    net_on_procs(converse_beside_a_crowd, &worst, (struct bz_sim_net_config){.is_calm = true}, 20,
                 1, 4);
    t_note("the slowest round took %llu us", (unsigned long long)(worst / 1000));
}
