/* Actors that another node starts: by an entry of a table, with arguments, links and monitors. */
#include "harness.h"

#include "base/compiler.h"
#include "support/node_scene.h"
#include "support/on_each.h"

struct job {
    int64_t n;
    blitz_actor_id tell; /* gets T_SUM; zeroed: none */
};

BLITZ_TERM_TUPLE(job_args, struct job, BLITZ_TERM_INT(struct job, n),
                 BLITZ_TERM_ID(struct job, tell));

/* Tell, then end: at once if n is not positive, with the code n; else go on. */
static int job_init(void *state)
{
    struct job *j = state;
    struct t_sum sum = {2 * j->n};
    if (j->tell.generation != 0)
        CHECK_EQ(blitz_actor_send(j->tell, T_SUM, &sum, sizeof sum), 0);
    return j->n > 0 ? 0 : j->n == 0 ? BLITZ_ACTOR_STOP : blitz_actor_fail((int)j->n, "by wish");
}

static const blitz_behaviour job = {
    .name = "job", .state_bytes = sizeof(struct job), .init = job_init};
static const blitz_behaviour idle = {.name = "idle", .state_bytes = 8};
static const blitz_node_entry entries[] = {{"jobs", "start", &job, &job_args},
                                           {"jobs", "idle", &idle, NULL}};

struct scene {
    struct t_nodes w;
    blitz_actor_id me, far_me; /* this task, and as node 1 knows it */
};

static void scene_begin(struct scene *s)
{
    blitz_term_pid pid;
    t_nodes_start(&s->w,
                  (blitz_node_opts){.entries = entries, .entry_count = BZ_ARRAY_LEN(entries)});
    s->me = t_receiver();
    CHECK_EQ(blitz_node_pid_of(s->w.node[0], s->me, &pid), 0);
    CHECK_EQ(blitz_node_id_of(s->w.node[1], &pid, &s->far_me), 0);
}

/* [N, Pid], or [N, undefined]. */
static blitz_term args_of(struct scene *s, int64_t n, bool tells, unsigned char *buf, size_t cap)
{
    blitz_term_out out;
    blitz_term_pid pid;
    size_t bytes;
    CHECK_EQ(blitz_node_pid_of(s->w.node[0], s->me, &pid), 0);
    blitz_term_out_init(&out, buf, cap);
    blitz_term_put_list(&out, 2);
    blitz_term_put_int(&out, n);
    if (tells)
        blitz_term_put_pid(&out, &pid);
    else
        blitz_term_put_atom(&out, "undefined");
    blitz_term_put_nil(&out);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return (blitz_term){buf, bytes};
}

static int start(struct scene *s, int64_t n, bool tells, const blitz_node_spawn_opts *opts,
                 blitz_actor_id *out)
{
    unsigned char buf[256];
    return blitz_node_spawn(s->w.node[0], t_node_name[1], "jobs", "start",
                            args_of(s, n, tells, buf, sizeof buf), opts, out, t_soon());
}

static void hears(uint32_t what, blitz_actor_id who, uint64_t ref, blitz_exit_kind kind, int code)
{
    const blitz_msg *m;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
    CHECK_EQ(m->what, what);
    const blitz_down *d = m->data;
    CHECK(blitz_actor_id_equal(d->who, who));
    CHECK_EQ(d->reason.kind, kind);
    CHECK_EQ(d->reason.code, code);
    if (what == BLITZ_MSG_DOWN)
        CHECK_EQ(d->ref, ref);
}

static void hears_nothing(void)
{
    const blitz_msg *m;
    CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, blitz_after(BLITZ_MS)), -ETIMEDOUT);
}

static int starts(void *arg)
{
    static const blitz_term none = {NULL, 0};
    struct scene s;
    blitz_actor_id id;
    unsigned char buf[64];
    uint64_t ref;
    (void)arg;
    scene_begin(&s);
    for (int64_t i = 1; i <= 20; i++) {
        CHECK_EQ(start(&s, i, true, NULL, &id), 0);
        CHECK_EQ(t_receive_sum(s.w.node[0]), 2 * i);
        CHECK_NE(id.node, 0u);
        CHECK_EQ(blitz_actor_kill(id), 0);
    }
    blitz_node *n = s.w.node[0];
    const char *there = t_node_name[1];
    CHECK_EQ(blitz_node_spawn(n, there, "jobs", "idle", none, NULL, &id, t_soon()), 0);
    CHECK_EQ(blitz_actor_kill(id), 0);
    /* nothing else than an entry with its arguments */
    CHECK_EQ(blitz_node_spawn(n, there, "jobs", "stop", none, NULL, &id, t_soon()), -ENOENT);
    CHECK_EQ(blitz_node_spawn(n, there, "os", "start", none, NULL, &id, t_soon()), -ENOENT);
    CHECK_EQ(blitz_node_spawn(n, there, "jobs", "start", none, NULL, &id, t_soon()), -EINVAL);
    CHECK_EQ(blitz_node_spawn(n, there, "jobs", "idle", args_of(&s, 1, false, buf, sizeof buf),
                              NULL, &id, t_soon()),
             -EINVAL);
    CHECK_EQ(blitz_node_spawn(n, there, "jobs", "start",
                              (blitz_term){(const unsigned char *)"k\0\2\1\2", 5}, NULL, &id,
                              t_soon()),
             -EINVAL); /* [1, 2] */
    CHECK_EQ(blitz_node_spawn(n, "c@localhost", "jobs", "idle", none, NULL, &id, t_soon()),
             -ENOTCONN);
    CHECK_EQ(start(&s, -7, false, &(blitz_node_spawn_opts){.monitor = &ref}, &id), 0);
    hears(BLITZ_MSG_DOWN, id, ref, BLITZ_EXIT_ERROR, -7);
    CHECK_EQ(t_info(s.w.node[0]).broken + t_info(s.w.node[1]).broken, 0u);
    t_nodes_stop(&s.w);
    return 0;
}

TEST_LIMIT(node_spawn, a_node_starts_what_another_one_lists_and_nothing_else, 120)
{
    t_on_each(starts, NULL, 0);
}

/* The relations are there before the actor runs: its reason arrives, however short its life. */
static int relates(void *arg)
{
    static const int64_t codes[] = {0, -7};
    struct scene s;
    blitz_actor_id id;
    uint64_t ref;
    (void)arg;
    scene_begin(&s);
    CHECK(!blitz_actor_trap_exit(true));
    for (uint64_t i = 0, n = t_scaled(100); i < n; i++) {
        int64_t code = codes[i % 2];
        blitz_exit_kind kind = code == 0 ? BLITZ_EXIT_NORMAL : BLITZ_EXIT_ERROR;
        CHECK_EQ(start(&s, code, false, &(blitz_node_spawn_opts){.monitor = &ref}, &id), 0);
        hears(BLITZ_MSG_DOWN, id, ref, kind, (int)code);
        CHECK_EQ(start(&s, code, false, &(blitz_node_spawn_opts){.link = true}, &id), 0);
        hears(BLITZ_MSG_EXIT, id, 0, kind, (int)code);
    }
    /* both; an end later; one of them undone */
    CHECK_EQ(start(&s, 1, false, &(blitz_node_spawn_opts){true, &ref}, &id), 0);
    CHECK_EQ(blitz_actor_demonitor(ref), 0);
    CHECK_EQ(blitz_actor_kill(id), 0);
    hears(BLITZ_MSG_EXIT, id, 0, BLITZ_EXIT_KILLED, 0);
    CHECK_EQ(start(&s, 1, false, &(blitz_node_spawn_opts){true, &ref}, &id), 0);
    CHECK_EQ(blitz_actor_unlink(id), 0);
    CHECK_EQ(blitz_actor_kill(id), 0);
    hears(BLITZ_MSG_DOWN, id, ref, BLITZ_EXIT_KILLED, 0);
    hears_nothing();
    CHECK_EQ(start(&s, 1, false, &(blitz_node_spawn_opts){true, &ref}, &id), 0);
    CHECK_EQ(blitz_node_disconnect(s.w.node[0], t_node_name[1]), 0);
    for (int i = 0; i < 2; i++) {
        const blitz_msg *m;
        CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
        CHECK(m->what == BLITZ_MSG_DOWN || m->what == BLITZ_MSG_EXIT);
        CHECK_EQ(((const blitz_down *)m->data)->reason.kind, BLITZ_EXIT_NOCONNECTION);
    }
    hears_nothing();
    t_nodes_stop(&s.w);
    return 0;
}

TEST_LIMIT(node_spawn, a_link_and_a_monitor_are_there_before_it_runs, 120)
{
    t_on_each(relates, NULL, 0);
}
