/*
 * Links, monitors and exits between two nodes: each ends once, with its reason. Either side may end it, or the
 * connection.
 */
#include "harness.h"

#include "base/compiler.h"
#include "support/node_scene.h"
#include "support/on_each.h"

enum { RELATE = 1, END, QUIT, LINK_AND_END };

/* An actor that links or watches another, and tells the test of each DOWN and EXIT. */
struct witness {
    blitz_actor_id test;
    uint64_t ref;
};

struct relate {
    blitz_actor_id other;
    bool links, watches, undoes;
};

BLITZ_HANDLER(on_relate, struct witness, struct relate)
{
    int rc = 0;
    if (data->links)
        rc = data->undoes ? blitz_actor_unlink(data->other) : blitz_actor_link(data->other);
    if (rc == 0 && data->watches)
        rc = data->undoes ? blitz_actor_demonitor(state->ref)
                          : blitz_actor_monitor(data->other, &state->ref);
    return rc < 0 ? blitz_actor_reply_error(m->reply, rc) : blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_end, struct witness, int)
{
    (void)state;
    return *data == 0 ? BLITZ_ACTOR_STOP : blitz_actor_fail(*data, "by wish");
}

struct last {
    blitz_actor_id other;
    int code;
};

/* Link, and end in the same handler. */
BLITZ_HANDLER(on_link_and_end, struct witness, struct last)
{
    (void)state;
    CHECK_EQ(blitz_actor_link(data->other), 0);
    return data->code == 0 ? BLITZ_ACTOR_STOP : blitz_actor_fail(data->code, "by wish");
}

/* A summary that fits into a message. */
struct told {
    uint32_t what;
    blitz_exit_kind kind;
    int code;
    blitz_actor_id who;
    char text[8];
};

BLITZ_HANDLER(on_told, struct witness, blitz_down)
{
    struct told t = {.what = m->what, .kind = data->reason.kind, .code = data->reason.code};
    t.who = data->who;
    memcpy(t.text, data->reason.text, sizeof t.text - 1);
    if (m->what == BLITZ_MSG_DOWN)
        CHECK_EQ(data->ref, state->ref);
    CHECK_EQ(blitz_actor_send(state->test, QUIT, &t, sizeof t), 0);
    return 0;
}

static const blitz_handler handlers[] = {
    BLITZ_ON(RELATE, struct relate, on_relate), BLITZ_ON(END, int, on_end),
    BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_told), BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_told),
    BLITZ_ON(LINK_AND_END, struct last, on_link_and_end)};
static const blitz_behaviour behaviour = {
    .state_bytes = sizeof(struct witness), .handlers = handlers, .handler_count = 5};

struct scene {
    struct t_nodes w;
    blitz_actor_id me, ours, theirs; /* of one runtime: ours is of node 0, theirs of node 1 */
    blitz_actor_id far;              /* theirs, as node 0 knows it */
    blitz_actor_id far_ours;         /* ours, as node 1 knows it */
};

static blitz_actor_id as_seen(struct scene *s, int of, blitz_actor_id id)
{
    blitz_term_pid pid;
    blitz_actor_id far;
    CHECK_EQ(blitz_node_pid_of(s->w.node[of], id, &pid), 0);
    CHECK_EQ(blitz_node_id_of(s->w.node[!of], &pid, &far), 0);
    return far;
}

static void spawn_both(struct scene *s, bool traps)
{
    struct witness state = {s->me, 0};
    blitz_actor_opts opts = {.trap_exit = traps};
    CHECK_EQ(blitz_actor_spawn(&behaviour, &state, &opts, &s->ours), 0);
    CHECK_EQ(blitz_actor_spawn(&behaviour, &state, &opts, &s->theirs), 0);
    s->far = as_seen(s, 1, s->theirs);
    s->far_ours = as_seen(s, 0, s->ours);
}

static void scene_init(struct scene *s)
{
    t_nodes_start(&s->w, (blitz_node_opts){.tick_ns = 60 * BLITZ_S});
    s->me = t_receiver();
}

static void relate(blitz_actor_id who, struct relate how)
{
    CHECK_EQ(blitz_actor_call(who, RELATE, &how, sizeof how, NULL, 0, t_soon()), 0);
}

/* The next message that a witness sends. */
static struct told hear(void)
{
    const blitz_msg *m;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
    CHECK_EQ(m->what, QUIT);
    return *(const struct told *)m->data;
}

static void hears_nothing_more(struct scene *s)
{
    const blitz_msg *m;
    for (int i = 0; i < 2; i++) { /* a message each way comes behind all that was sent before */
        CHECK_EQ(
            blitz_actor_send(as_seen(s, i, s->me), T_SUM, &(struct t_sum){i}, sizeof(struct t_sum)),
            0);
        CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
        CHECK_EQ(m->what, BLITZ_MSG_TERM);
    }
    CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, blitz_after(BLITZ_MS)), -ETIMEDOUT);
}

static void end(blitz_actor_id id)
{
    (void)blitz_actor_kill(id);
    int rc = blitz_actor_join(id, NULL, t_soon());
    CHECK(rc == 0 || rc == -ESRCH);
}

/* Each reason arrives as it was, for a monitor and for a link. */
static int reasons(void *arg)
{
    static const int codes[] = {0, 7, -EIO};
    struct scene s;
    (void)arg;
    scene_init(&s);
    for (size_t i = 0; i < BZ_ARRAY_LEN(codes); i++)
        for (int links = 0; links < 2; links++) {
            spawn_both(&s, true);
            relate(s.ours, (struct relate){s.far, links, !links, false});
            CHECK_EQ(blitz_actor_send(s.far, T_UNSENT, NULL, 0), -EOPNOTSUPP);
            hears_nothing_more(&s); /* theirs knows of it */
            CHECK_EQ(blitz_actor_send(s.theirs, END, &codes[i], sizeof(int)), 0);
            struct told t = hear();
            CHECK_EQ(t.what, links ? BLITZ_MSG_EXIT : BLITZ_MSG_DOWN);
            CHECK_EQ(t.kind, codes[i] == 0 ? BLITZ_EXIT_NORMAL : BLITZ_EXIT_ERROR);
            CHECK_EQ(t.code, codes[i]);
            CHECK_STR_EQ(t.text, codes[i] == 0 ? "" : "by wish");
            CHECK(blitz_actor_id_equal(t.who, s.far));
            hears_nothing_more(&s);
            CHECK(blitz_actor_is_alive(s.ours));
            end(s.ours);
        }
    t_nodes_stop(&s.w);
    return 0;
}

TEST(node_relations, a_reason_arrives_as_it_was)
{
    t_on_each(reasons, NULL, 0);
}

static int both_ways(void *arg)
{
    struct scene s;
    struct told t;
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    relate(s.ours, (struct relate){s.far, true, false, false});
    hears_nothing_more(&s);
    CHECK_EQ(blitz_actor_kill(s.ours), 0); /* the side that has linked ends: the other hears */
    t = hear();
    CHECK(t.what == BLITZ_MSG_EXIT && t.kind == BLITZ_EXIT_KILLED);
    CHECK(blitz_actor_id_equal(t.who, s.far_ours));
    hears_nothing_more(&s);
    end(s.theirs);
    /* without trapping the reason ends the other, too */
    spawn_both(&s, false);
    relate(s.ours, (struct relate){s.far, true, false, false});
    hears_nothing_more(&s);
    CHECK_EQ(blitz_actor_send(s.ours, END, &(int){5}, sizeof(int)), 0);
    blitz_exit_reason why;
    int rc = blitz_actor_join(s.theirs, &why, t_soon());
    CHECK(rc == -ESRCH || (rc == 0 && why.kind == BLITZ_EXIT_ERROR && why.code == 5));
    /* to the dead */
    spawn_both(&s, true);
    end(s.theirs);
    relate(s.ours, (struct relate){s.far, true, true, false});
    for (int i = 0; i < 2; i++)
        CHECK_EQ(hear().kind, BLITZ_EXIT_NOPROC);
    hears_nothing_more(&s);
    end(s.ours);
    t_nodes_stop(&s.w);
    return 0;
}

TEST(node_relations, a_link_ends_both_sides_and_the_dead_answer)
{
    t_on_each(both_ways, NULL, 0);
}

static int at_once(void *arg)
{
    struct scene s;
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    CHECK_EQ(blitz_node_connect(s.w.node[0], t_node_name[1], t_soon()), 0);
    for (uint64_t i = 0, n = t_scaled(300); i < n; i++) {
        struct witness state = {s.me, 0};
        struct last last = {s.far, i % 3 == 0 ? 0 : (int)i};
        blitz_actor_id id;
        CHECK_EQ(blitz_actor_spawn(&behaviour, &state, NULL, &id), 0);
        CHECK_EQ(blitz_actor_send(id, LINK_AND_END, &last, sizeof last), 0);
        struct told t = hear();
        CHECK_EQ(t.what, BLITZ_MSG_EXIT);
        CHECK_EQ(t.kind, last.code == 0 ? BLITZ_EXIT_NORMAL : BLITZ_EXIT_ERROR);
        CHECK_EQ(t.code, last.code);
        CHECK(blitz_actor_id_equal(t.who, as_seen(&s, 0, id)));
    }
    hears_nothing_more(&s);
    end(s.ours);
    end(s.theirs);
    t_nodes_stop(&s.w);
    return 0;
}

/* The link was made by an actor that is dead when the node hears of it. Its reason arrives all the same. */
TEST_LIMIT(node_relations, an_actor_that_links_and_ends_at_once_tells_its_reason, 120)
{
    t_on_each(at_once, NULL, 0);
}

/* The same for a task that receives. */
static int link_and_return(void *arg)
{
    struct scene *s = arg;
    (void)t_receiver();
    CHECK_EQ(blitz_actor_link(s->far), 0);
    return -EIO;
}

static int tasks_at_once(void *arg)
{
    struct scene s;
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    for (uint64_t i = 0, n = t_scaled(100); i < n; i++) {
        CHECK_EQ(t_join(t_spawn(link_and_return, &s)), -EIO);
        struct told t = hear();
        CHECK(t.what == BLITZ_MSG_EXIT && t.kind == BLITZ_EXIT_ERROR && t.code == -EIO);
    }
    hears_nothing_more(&s);
    end(s.ours);
    end(s.theirs);
    t_nodes_stop(&s.w);
    return 0;
}

TEST_LIMIT(node_relations, a_task_that_links_and_ends_at_once_tells_its_reason, 120)
{
    t_on_each(tasks_at_once, NULL, 0);
}

static int undone(void *arg)
{
    struct scene s;
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    for (int i = 0; i < 5; i++) {
        relate(s.ours, (struct relate){s.far, true, true, false});
        relate(s.ours, (struct relate){s.far, true, true, true});
    }
    hears_nothing_more(&s);
    end(s.theirs);
    hears_nothing_more(&s);
    end(s.ours);
    /* again after the unlink: it counts */
    spawn_both(&s, true);
    relate(s.ours, (struct relate){s.far, true, false, false});
    relate(s.ours, (struct relate){s.far, true, false, true});
    relate(s.ours, (struct relate){s.far, true, false, false});
    hears_nothing_more(&s);
    end(s.theirs);
    CHECK_EQ(hear().what, BLITZ_MSG_EXIT);
    hears_nothing_more(&s);
    end(s.ours);
    t_nodes_stop(&s.w);
    return 0;
}

TEST(node_relations, nothing_comes_after_an_unlink_or_a_demonitor)
{
    t_on_each(undone, NULL, 0);
}

static int splits(void *arg)
{
    struct scene s;
    (void)arg;
    scene_init(&s);
    for (uint64_t i = 0, n = t_scaled(50); i < n; i++) {
        spawn_both(&s, true);
        relate(s.ours, (struct relate){s.far, true, true, false});
        relate(s.theirs, (struct relate){s.far_ours, false, true, false});
        hears_nothing_more(&s);
        CHECK_EQ(blitz_node_disconnect(s.w.node[i % 2], t_node_name[!(i % 2)]), 0);
        unsigned downs = 0, exits = 0;
        while (downs + exits < 4) {
            struct told t = hear();
            CHECK_EQ(t.kind, BLITZ_EXIT_NOCONNECTION);
            downs += t.what == BLITZ_MSG_DOWN;
            exits += t.what == BLITZ_MSG_EXIT;
        }
        CHECK(downs == 2 && exits == 2);
        hears_nothing_more(&s); /* over the next connection, which has none of these relations */
        end(s.ours);
        end(s.theirs);
        hears_nothing_more(&s);
    }
    t_nodes_stop(&s.w);
    return 0;
}

/* A split tells each link and each monitor once. */
TEST_LIMIT(node_relations, a_lost_connection_ends_each_relation_once, 120)
{
    t_on_each(splits, NULL, 0);
}

static int ends(void *arg)
{
    struct scene s;
    blitz_exit_reason why = {.kind = BLITZ_EXIT_ERROR, .code = 3, .text = "go"};
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    CHECK_EQ(blitz_actor_exit_send(s.far, &why), 0);
    struct told t = hear();
    CHECK(t.what == BLITZ_MSG_EXIT && t.kind == BLITZ_EXIT_ERROR && t.code == 3);
    CHECK_EQ(blitz_actor_kill(s.far), 0);
    CHECK(blitz_actor_join(s.theirs, &why, t_soon()) <= 0);
    CHECK(!blitz_actor_is_alive(s.theirs));
    end(s.ours);
    /* a task that receives has relations, too */
    spawn_both(&s, true);
    uint64_t ref;
    const blitz_msg *m;
    CHECK_EQ(blitz_actor_monitor(s.far, &ref), 0);
    CHECK(!blitz_actor_trap_exit(true));
    CHECK_EQ(blitz_actor_link(s.far), 0);
    hears_nothing_more(&s);
    end(s.theirs);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
        CHECK(m->what == BLITZ_MSG_DOWN || m->what == BLITZ_MSG_EXIT);
        CHECK(blitz_actor_id_equal(((const blitz_down *)m->data)->who, s.far));
        CHECK_EQ(((const blitz_down *)m->data)->reason.kind, BLITZ_EXIT_KILLED);
    }
    CHECK_EQ(blitz_actor_demonitor(ref), -ESRCH);
    hears_nothing_more(&s);
    end(s.ours);
    t_nodes_stop(&s.w);
    return 0;
}

TEST(node_relations, exit_signals_and_tasks_that_receive)
{
    t_on_each(ends, NULL, 0);
}

/* The node stops, and its actors hear of it. */
static int stops(void *arg)
{
    struct scene s;
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    relate(s.ours, (struct relate){s.far, true, true, false});
    hears_nothing_more(&s);
    blitz_node_stop(s.w.node[0]);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hear().kind, BLITZ_EXIT_NOCONNECTION);
    struct relate again = {s.far, true, false, false};
    CHECK_EQ(blitz_actor_call(s.ours, RELATE, &again, sizeof again, NULL, 0, t_soon()), -ESRCH);
    end(s.ours);
    end(s.theirs);
    blitz_node_stop(s.w.node[1]);
    return 0;
}

TEST(node_relations, a_stop_ends_the_relations_of_its_node)
{
    t_on_each(stops, NULL, 0);
}

/* A pid of a node that was started again. The answer must name the pid that was asked for, or the asker does not know it. */
static int is_stale(void *arg)
{
    struct scene s;
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    blitz_node_stop(s.w.node[1]);
    CHECK_EQ(t_node_start(&s.w, 1, T_COOKIE, (blitz_node_opts){.tick_ns = 60 * BLITZ_S}), 0);
    relate(s.ours, (struct relate){s.far, true, true, false});
    for (int i = 0; i < 2; i++) {
        struct told t = hear();
        CHECK_EQ(t.kind, BLITZ_EXIT_NOPROC);
        CHECK(blitz_actor_id_equal(t.who, s.far));
    }
    relate(s.ours, (struct relate){s.far, false, true, false});
    CHECK_EQ(hear().kind, BLITZ_EXIT_NOPROC);
    end(s.ours);
    end(s.theirs);
    t_nodes_stop(&s.w);
    return 0;
}

TEST(node_relations, a_process_of_a_node_that_was_restarted_is_none)
{
    t_on_each(is_stale, NULL, 0);
}

/* ---- links that are made again ---- */

static bool is_of_witness(const blitz_msg *m, void *ctx)
{
    (void)ctx;
    return m->what == QUIT;
}

/* The exit of a link that the connection took is in the inbox when the task links again. It is not of the new link. */
static int task_links_again(void *arg)
{
    struct scene s;
    const blitz_msg *m;
    (void)arg;
    scene_init(&s);
    spawn_both(&s, true);
    CHECK(!blitz_actor_trap_exit(true));
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(blitz_actor_link(s.far), 0);
        CHECK_EQ(blitz_node_connect(s.w.node[0], t_node_name[1], t_soon()), 0);
        hears_nothing_more(&s);
        CHECK_EQ(blitz_node_disconnect(s.w.node[i % 2], t_node_name[!(i % 2)]), 0);
        CHECK_EQ(blitz_receive(is_of_witness, NULL, &m, t_soon()), 0); /* the other side was told */
        CHECK_EQ(((const struct told *)m->data)->kind, BLITZ_EXIT_NOCONNECTION);
        while (t_info(s.w.node[0]).up != 0)
            blitz_yield();
        CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
        if (i % 3 != 0)
            CHECK_EQ(blitz_actor_unlink(s.far), 0);
        CHECK_EQ(blitz_actor_link(s.far), 0);
        hears_nothing_more(&s);
        CHECK_EQ(blitz_actor_unlink(s.far), 0);
        hears_nothing_more(&s);
    }
    CHECK_EQ(blitz_actor_link(s.far), 0);
    hears_nothing_more(&s);
    CHECK_EQ(blitz_actor_send(s.theirs, END, &(int){7}, sizeof(int)), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
    CHECK_EQ(m->what, BLITZ_MSG_EXIT);
    CHECK_EQ(((const blitz_down *)m->data)->reason.code, 7);
    CHECK_EQ(((const blitz_down *)m->data)->ref, 0u);
    hears_nothing_more(&s);
    end(s.ours);
    t_nodes_stop(&s.w);
    return 0;
}

TEST(node_relations, an_exit_of_an_earlier_link_does_not_end_the_next_one)
{
    t_on_each(task_links_again, NULL, 0);
}

/* The same for an actor: the exit waits until its handler returns, which has linked again. */
enum { LINK_AGAIN = 20 };

static struct {
    blitz_event is_waiting, may_go;
} again;

BLITZ_HANDLER(on_link_again, struct witness, blitz_actor_id)
{
    (void)state, (void)m;
    CHECK_EQ(blitz_actor_link(*data), 0);
    blitz_event_set(&again.is_waiting);
    CHECK_EQ(blitz_event_wait(&again.may_go, t_soon()), 0);
    CHECK_EQ(blitz_actor_unlink(*data), 0);
    CHECK_EQ(blitz_actor_link(*data), 0);
    return 0;
}

static int actor_links_again(void *arg)
{
    static const blitz_handler both[] = {BLITZ_ON(LINK_AGAIN, blitz_actor_id, on_link_again),
                                         BLITZ_ON(END, int, on_end),
                                         BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_told)};
    static const blitz_behaviour linker = {
        .state_bytes = sizeof(struct witness), .handlers = both, .handler_count = 3};
    struct scene s;
    blitz_actor_id a;
    (void)arg;
    scene_init(&s);
    for (int i = 0; i < 5; i++) {
        struct witness state = {s.me, 0};
        blitz_event_init(&again.is_waiting);
        blitz_event_init(&again.may_go);
        spawn_both(&s, true);
        relate(s.ours, (struct relate){s.far, true, false, false});
        CHECK_EQ(blitz_actor_spawn(&linker, &state, &(blitz_actor_opts){.trap_exit = true}, &a), 0);
        CHECK_EQ(blitz_actor_send(a, LINK_AGAIN, &s.far, sizeof s.far), 0);
        CHECK_EQ(blitz_event_wait(&again.is_waiting, t_soon()), 0);
        CHECK_EQ(blitz_node_connect(s.w.node[0], t_node_name[1], t_soon()), 0);
        CHECK_EQ(
            blitz_actor_send(as_seen(&s, 1, s.me), T_SUM, &(struct t_sum){0}, sizeof(struct t_sum)),
            0); /* behind the links */
        const blitz_msg *m;
        CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
        CHECK_EQ(blitz_node_disconnect(s.w.node[0], t_node_name[1]), 0);
        for (int k = 0; k < 3; k++) /* ours, and theirs of both links */
            CHECK_EQ(hear().kind, BLITZ_EXIT_NOCONNECTION);
        blitz_event_set(&again.may_go);
        hears_nothing_more(&s);
        CHECK_EQ(blitz_actor_send(a, END, &(int){9}, sizeof(int)), 0);
        struct told t = hear(); /* the new link is whole: the other side hears of its end */
        CHECK_EQ(t.code, 9);
        CHECK(blitz_actor_id_equal(t.who, as_seen(&s, 0, a)));
        hears_nothing_more(&s);
        end(s.ours);
        end(s.theirs);
    }
    t_nodes_stop(&s.w);
    return 0;
}

TEST(node_relations, both_sides_keep_a_link_that_was_made_again_in_a_handler)
{
    t_on_each(actor_links_again, NULL, 0);
}
