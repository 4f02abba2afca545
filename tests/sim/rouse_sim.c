/*
 * The threads that run tasks woken by I/O, in virtual time: at low load one proc polls for all
 * (proc/gather.c) and keeps a few short tasks to itself (proc/rouse.c). A task that computes for
 * long does not delay the others.
 */
#include "support/net.h"
#include "support/net_sim.h"

enum {
    CONNS = 6,
    WARM_ROUNDS = 60,
    BURN_NS = 20 * 1000 * 1000,
    /* Two looks of the monitor, which may nap for 2 ms, a wake-up, and what the network takes. Far below a burn. */
    HEARD_NS = 6 * 1000 * 1000
};

struct conn {
    blitz_tcp *end[2];
    blitz_task *server;
    uint64_t heard_ns; /* when the server last read something */
};

/* Echo; 'B': burn first. */
static int serve(void *arg)
{
    struct conn *c = arg;
    char byte;
    while (blitz_tcp_read(c->end[1], &byte, 1, BLITZ_FOREVER) == 1) {
        c->heard_ns = blitz_now();
        if (byte == 'B')
            bz_sim_burn(BURN_NS);
        CHECK_EQ(blitz_tcp_write_all(c->end[1], &byte, 1, NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

static void open_all(struct conn c[CONNS])
{
    for (int i = 0; i < CONNS; i++) {
        t_tcp_pair(c[i].end);
        c[i].server = t_spawn(serve, &c[i]);
    }
}

static void close_all(struct conn c[CONNS])
{
    for (int i = 0; i < CONNS; i++) {
        blitz_tcp_close(c[i].end[0]);
        CHECK_EQ(t_join(c[i].server), 0);
        blitz_tcp_close(c[i].end[1]);
    }
}

/* One message on each connection, all on their way at once; `first` on the first. */
static void say_to_all(struct conn c[CONNS], char first)
{
    for (int i = 0; i < CONNS; i++) {
        char byte = i == 0 ? first : 'x';
        CHECK_EQ(blitz_tcp_write_all(c[i].end[0], &byte, 1, NULL, BLITZ_FOREVER), 0);
    }
}

static void hear_from_all(struct conn c[CONNS])
{
    char byte;
    for (int i = 0; i < CONNS; i++)
        CHECK_EQ(blitz_tcp_read(c[i].end[0], &byte, 1, BLITZ_FOREVER), 1);
}

static void talk(struct conn c[CONNS], int rounds)
{
    for (int r = 0; r < rounds; r++) {
        say_to_all(c, 'x');
        hear_from_all(c);
        CHECK_EQ(blitz_sleep(2 * BLITZ_MS), 0);
    }
}

static unsigned polls_in_use(void)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    unsigned count = 0;
    for (unsigned i = 0; i < rt->proc_count; i++)
        count += bz_poll_is_used(&rt->procs[i].poll);
    return count;
}

/* ---- one listens for all ---- */

static struct {
    unsigned runs, gathered;
} seen;

static int low_load(void *arg)
{
    struct conn c[CONNS];
    (void)arg;
    open_all(c);
    talk(c, WARM_ROUNDS);
    const struct bz_poll_ops *ops = bz_machine_self()->rt->procs[0].poll.ops;
    if (ops->moves || ops->completes) {
        seen.runs++;
        seen.gathered += polls_in_use() <= 1;
    }
    close_all(c);
    return 0;
}

/* Every file that has been waited for since the decision is in one poll. */
TEST(rouse, bug_49_at_low_load_one_proc_listens_for_all)
{
#if defined(BZ_PLAIN)
    t_skip("in the plain form each proc listens for itself");
#endif
    seen.runs = seen.gathered = 0;
    net_on_procs(low_load, NULL, (struct bz_sim_net_config){.is_calm = true}, 60, 2, 4);
    t_note("%u of %u runs gathered", seen.gathered, seen.runs);
    CHECK_GE(seen.gathered * 100,
             seen.runs * 75); /* the system may hold up a thread, which ends it */
}

/* ---- until it computes ---- */

static struct {
    unsigned at_home, ended, elsewhere, kept;
} hogs;

static struct bz_proc *home_now(void)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    return bz_gather_home(rt, bz_gather_word(&rt->gather));
}

/* The result is whether one proc still listens for all. A window of gather.c is longer than the burn. */
static int burns_for_half_a_window(void *arg)
{
    (void)arg;
    bz_sim_burn(10 * BLITZ_MS);
    return home_now() != NULL;
}

static int hog_at(unsigned proc)
{
    blitz_task *t;
    int result = -1;
    CHECK_EQ(blitz_spawn(burns_for_half_a_window, NULL,
                         &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(proc)}, &t),
             0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int one_hog(void *arg)
{
    bool is_at_home = *(bool *)arg;
    struct conn c[CONNS];
    open_all(c);
    talk(c, WARM_ROUNDS);
    struct bz_proc *home = home_now();
    if (home != NULL && is_at_home) {
        hogs.at_home++;
        hogs.ended += hog_at(home->index) == 0;
    } else if (home != NULL) {
        hogs.elsewhere++;
        hogs.kept += hog_at((home->index + 1) % bz_machine_self()->rt->proc_count) == 1;
    }
    close_all(c);
    return 0;
}

/* A home that runs one task for long does not poll. Another proc may. */
TEST(rouse, a_long_task_at_the_home_alone_ends_the_time_of_one_listener)
{
    bool is_at_home = true, is_elsewhere = false;
#if defined(BZ_PLAIN)
    t_skip("in the plain form each proc listens for itself");
#endif
    net_on_procs(one_hog, &is_at_home, (struct bz_sim_net_config){.is_calm = true}, 30, 2, 4);
    net_on_procs(one_hog, &is_elsewhere, (struct bz_sim_net_config){.is_calm = true}, 30, 2, 4);
    t_note("ended %u of %u, kept %u of %u", hogs.ended, hogs.at_home, hogs.kept, hogs.elsewhere);
    CHECK_EQ(hogs.ended, hogs.at_home);
    CHECK_GE(hogs.kept * 100,
             hogs.elsewhere * 75); /* the system may hold up a thread, which ends it */
}

/* ---- and holds up none of them ---- */

static uint64_t latest;

static int one_burns(void *arg)
{
    struct conn c[CONNS];
    (void)arg;
    open_all(c);
    talk(c, WARM_ROUNDS);
    for (int r = 0; r < 3; r++) {
        uint64_t began = blitz_now();
        say_to_all(c, 'B');
        hear_from_all(c);
        for (int i = 1; i < CONNS; i++) {
            uint64_t took = c[i].heard_ns - began;
            latest = took > latest ? took : latest;
            CHECK_LT(took, HEARD_NS);
        }
        talk(c, WARM_ROUNDS / 4);
    }
    close_all(c);
    return 0;
}

/* The tasks woken together with a burning one, and those woken while it burns. */
TEST(rouse, a_task_that_burns_holds_up_no_other_that_io_has_woken)
{
    latest = 0;
    net_on_procs(one_burns, NULL, (struct bz_sim_net_config){.is_calm = true}, 100, 2, 4);
    t_note("the latest after %llu us", (unsigned long long)latest / 1000);
}
