/*
 * Splits: a network that drops one direction or both, a peer that does not read, a cable that is pulled, a connection that is killed. Each
 * relation over the connection ends once with noconnection, on both sides. Nothing of the connection is delivered after the news of its end. The
 * next connection has no old relations.
 */
#include "harness.h"

#include "base/compiler.h"
#include "support/node_scene.h"
#include "support/valve.h"

enum { TICK_MS = 1000 }; /* a healthy connection outlives a pause of the machine */

/* The messages of the test task, in the order of its inbox. */
struct heard {
    unsigned downs, exits, up[2], down[2];
    int64_t last[2]; /* of each stream */
};

struct scene {
    struct t_nodes w;
    struct t_valve valve;
    blitz_actor_id me, far_me[2]; /* the test: its id, and as each node knows it behind the other */
    blitz_actor_id target[2], far[2]; /* actors, and as each node knows them behind the other */
    uint64_t ref[2];
    struct heard heard;
    bz_atomic(bool) stops;
    blitz_task *stream[2];
    int64_t sent[2]; /* by each stream */
};

/* The id of an actor as that node knows it, behind the other one. */
static blitz_actor_id as_seen_by(struct scene *s, int node, blitz_actor_id id)
{
    blitz_term_pid pid;
    blitz_actor_id far;
    CHECK_EQ(blitz_node_pid_of(s->w.node[!node], id, &pid), 0);
    CHECK_EQ(blitz_node_id_of(s->w.node[node], &pid, &far), 0);
    return far;
}

/* Send numbers from that node until the test says stop. A send may wait for a peer that does not read, and connect again. */
static void stream(struct scene *s, int from)
{
    while (!bz_load_seqcst(&s->stops)) { /* seq_cst: a switch of the test */
        int64_t n = ++s->sent[from];
        (void)!blitz_actor_send_until(s->far_me[from], T_ADD,
                                      &(struct t_add){2 * n + from, {0, 0, 0, 0}},
                                      sizeof(struct t_add), blitz_after(BLITZ_MS));
        if (n % 16 == 0)
            CHECK_EQ(blitz_sleep(BLITZ_MS / 4), 0);
    }
}

static int stream_forth(void *scene)
{
    stream(scene, 0);
    return 0;
}

static int stream_back(void *scene)
{
    stream(scene, 1);
    return 0;
}

static bz_atomic(int64_t) targets_told; /* seq_cst: a count of the test */

BLITZ_HANDLER(on_target_exit, int64_t, blitz_down)
{
    (void)m;
    CHECK_EQ(data->reason.kind, BLITZ_EXIT_NOCONNECTION);
    CHECK_EQ(++*state, 1);
    bz_fetch_add_seqcst(&targets_told, 1);
    return 0;
}

/* An actor behind each node, linked with this task and watched by it. It traps exits. */
static void relate(struct scene *s)
{
    static const blitz_handler handlers[] = {BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_target_exit)};
    static const blitz_behaviour target = {
        .state_bytes = sizeof(int64_t), .handlers = handlers, .handler_count = 1};
    blitz_actor_opts opts = {.trap_exit = true};
    bz_store_seqcst(&targets_told, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_actor_spawn(&target, NULL, &opts, &s->target[i]), 0);
        s->far[i] = as_seen_by(s, i, s->target[i]);
        CHECK_EQ(blitz_actor_monitor(s->far[i], &s->ref[i]), 0);
        CHECK_EQ(blitz_actor_link(s->far[i]), 0);
    }
}

static int of_target(const struct scene *s, blitz_actor_id who)
{
    int i = blitz_actor_id_equal(who, s->far[1]);
    CHECK(blitz_actor_id_equal(who, s->far[i]));
    return i;
}

static void hear_number(struct scene *s, const blitz_msg *m)
{
    blitz_term term;
    struct t_add add = {0, {0, 0, 0, 0}};
    blitz_term_env env = blitz_node_env(s->w.node[0]);
    CHECK_EQ(blitz_term_check(blitz_binary_data(m->binary), blitz_binary_size(m->binary), NULL,
                              &term, NULL),
             0);
    blitz_term_in in = blitz_term_in_of(term);
    CHECK_EQ(blitz_term_get_struct(&in, &t_add_term, &add, &env), 0);
    int from = (int)(add.n % 2), to = !from;
    CHECK_GT(add.n, s->heard.last[from]);         /* in order, and once */
    CHECK_GT(s->heard.up[to], s->heard.down[to]); /* the receiving node is connected */
    s->heard.last[from] = add.n;
}

/* Take one message. False: none came until then. */
static bool hear(struct scene *s, blitz_deadline until, blitz_exit_kind kind)
{
    const blitz_msg *m;
    int rc = blitz_receive(NULL, NULL, &m, until);
    if (rc == -ETIMEDOUT)
        return false;
    CHECK_EQ(rc, 0);
    if (m->what == BLITZ_MSG_TERM) {
        hear_number(s, m);
    } else if (m->what == BLITZ_MSG_NODE) {
        const blitz_node_event *e = m->data;
        int node = e->node == s->far[1].node || e->node == s->far_me[1].node;
        s->heard.up[node] += e->is_up;
        s->heard.down[node] += !e->is_up;
        CHECK_EQ(s->heard.up[node] - s->heard.down[node], (unsigned)e->is_up); /* in turn */
    } else {
        const blitz_down *d = m->data;
        CHECK(m->what == BLITZ_MSG_DOWN || m->what == BLITZ_MSG_EXIT);
        int i = of_target(s, d->who);
        CHECK_EQ(d->reason.kind, kind);
        unsigned *count = m->what == BLITZ_MSG_DOWN ? &s->heard.downs : &s->heard.exits;
        CHECK_EQ(*count >> 8 * i & 0xff, 0u); /* once */
        *count += 1u << 8 * i;
        if (m->what == BLITZ_MSG_DOWN)
            CHECK_EQ(d->ref, s->ref[i]);
    }
    return true;
}

static bool is_all_told(const struct scene *s)
{
    return s->heard.downs == 0x101 && s->heard.exits == 0x101;
}

static void scene_begin(struct scene *s)
{
    memset(s, 0, sizeof *s);
    s->me = t_receiver();
    CHECK(!blitz_actor_trap_exit(true));
    blitz_node_opts opts = {.tick_ns = TICK_MS * BLITZ_MS,
                            .connect_ns = TICK_MS * BLITZ_MS,
                            .queue_high = 1 << 14,
                            .watcher = s->me};
    t_nodes_places(&s->w);
    t_valve_start(&s->valve, s->w.listen[1]);
    s->w.place[1].at = s->valve.at;
    s->w.place[0].at =
        blitz_addr_loopback_v4(1); /* node 1 cannot connect: all goes through the valve */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(t_node_start(&s->w, i, T_COOKIE, opts), 0);
    for (int i = 0; i < 2; i++)
        s->far_me[i] = as_seen_by(s, i, s->me);
    CHECK_EQ(blitz_node_connect(s->w.node[0], t_node_name[1], t_soon()), 0);
}

static void scene_end(struct scene *s)
{
    t_valve_stop(&s->valve);
    t_nodes_stop(&s->w);
}

static void start_streams(struct scene *s)
{
    bz_store_seqcst(&s->stops, false); /* seq_cst: a switch of the test */
    s->stream[0] = t_spawn(stream_forth, s);
    s->stream[1] = t_spawn(stream_back, s);
}

static void stop_streams(struct scene *s)
{
    bz_store_seqcst(&s->stops, true); /* seq_cst: a switch of the test */
    for (int i = 0; i < 2; i++)
        t_join(s->stream[i]);
}

/* One way for a network to fail. */
struct fault {
    const char *title;
    enum t_valve_way way[2];
    bool severs, is_kill;
};

static const struct fault faults[] = {
    {"the way forth drops", {T_DROP, T_PASS}, false, false},
    {"the way back drops", {T_PASS, T_DROP}, false, false},
    {"both drop, and no side hears of the other's close", {T_DROP, T_DROP}, true, false},
    {"one side is not read", {T_STAND, T_PASS}, false, false},
    {"the other side is not read", {T_PASS, T_STAND}, false, false},
    {"nothing is read, and no side hears of a close", {T_STAND, T_STAND}, true, false},
    {"one side hears all, and not that the other has closed", {T_PASS, T_DROP}, true, false},
    {"the connection is killed", {T_PASS, T_PASS}, false, true}};

static void kill_connection(struct scene *s)
{
    struct t_valve_conn *c = &s->valve.conn[s->valve.count - 1];
    for (int i = 0; i < 2; i++)
        blitz_tcp_close(blitz_tcp_ref(c->end[i]));
}

/* Connect again, and hear of it. Behind that nothing old is told. */
static void heal(struct scene *s)
{
    t_valve_sever(&s->valve, false);
    t_valve_set(&s->valve, T_PASS, T_PASS);
    while (blitz_node_connect(s->w.node[0], t_node_name[1], blitz_after(TICK_MS * BLITZ_MS)) != 0)
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    while (s->heard.up[0] == s->heard.down[0] || s->heard.up[1] == s->heard.down[1])
        CHECK(hear(s, t_soon(), BLITZ_EXIT_NOCONNECTION));
}

static void splits_once(struct scene *s, const struct fault *f)
{
    s->heard.downs = s->heard.exits = 0;
    relate(s);
    start_streams(s);
    int64_t was[2] = {s->heard.last[0], s->heard.last[1]};
    while (s->heard.last[0] < was[0] + 40 || s->heard.last[1] < was[1] + 40)
        CHECK(hear(s, t_soon(), BLITZ_EXIT_NOCONNECTION));
    unsigned downs[2] = {s->heard.down[0], s->heard.down[1]};
    t_valve_sever(&s->valve, f->severs);
    t_valve_set(&s->valve, f->way[0], f->way[1]);
    if (f->is_kill)
        kill_connection(s);
    while (!is_all_told(s) || s->heard.down[0] == downs[0] || s->heard.down[1] == downs[1])
        CHECK(hear(s, t_soon(), BLITZ_EXIT_NOCONNECTION));
    stop_streams(s);
    heal(s);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
    CHECK_EQ(bz_load_seqcst(&targets_told), 2); /* the other half of each link */
    /* the new connection has none of the old relations */
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_actor_kill(s->target[i]), 0);
        CHECK_EQ(blitz_actor_unlink(s->far[i]), 0);
        CHECK_EQ(blitz_actor_demonitor(s->ref[i]), -ESRCH);
    }
    CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
    s->heard.downs = s->heard.exits = 0;
    while (hear(s, blitz_after(2 * BLITZ_MS), BLITZ_EXIT_KILLED))
        ;
    CHECK_EQ(s->heard.downs + s->heard.exits, 0u);
    /* and takes new ones */
    relate(s);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_actor_kill(s->far[i]), 0);
    while (!is_all_told(s))
        CHECK(hear(s, t_soon(), BLITZ_EXIT_KILLED));
}

static int splits(void *arg)
{
    struct scene s;
    (void)arg;
    scene_begin(&s);
    for (size_t i = 0; i < BZ_ARRAY_LEN(faults); i++) {
        t_watch("%s", faults[i].title);
        splits_once(&s, &faults[i]);
    }
    CHECK_EQ(t_info(s.w.node[0]).broken + t_info(s.w.node[1]).broken, 0u);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_split, each_relation_ends_once_and_nothing_comes_after_it, 240)
{
    for (unsigned procs = 1; procs <= 3; procs += 2)
        CHECK_EQ(blitz_run(splits, NULL, &(blitz_runtime_opts){.procs = procs}), 0);
}
