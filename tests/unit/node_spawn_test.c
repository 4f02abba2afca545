/* Actors that another node starts: by an entry of a table, with arguments, links and monitors. */
#include "harness.h"

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "support/node_liar.h"
#include "support/on_each.h"

struct job {
    int64_t n;
    blitz_actor_id tell; /* gets T_SUM; zeroed: none */
    int64_t has_begun;   /* one that is killed at once does not */
};

BLITZ_TERM_TUPLE(job_args, struct job, BLITZ_TERM_INT(struct job, n),
                 BLITZ_TERM_ID(struct job, tell));

static bz_atomic(int64_t) jobs; /* that live */

static int64_t jobs_alive(void)
{
    return bz_load_seqcst(&jobs); /* seq_cst: a count for the test */
}

static void job_drop(void *state, void *ctx)
{
    (void)ctx;
    bz_fetch_add_seqcst(&jobs, -((struct job *)state)->has_begun); /* seq_cst: as above */
}

/* Tell, then end: at once if n is not positive, with the code n; else go on. */
static int job_init(void *state)
{
    struct job *j = state;
    j->has_begun = 1;
    bz_fetch_add_seqcst(&jobs, 1); /* seq_cst: as above */
    struct t_sum sum = {2 * j->n};
    if (j->tell.generation != 0)
        CHECK_EQ(blitz_actor_send(j->tell, T_SUM, &sum, sizeof sum), 0);
    return j->n > 0 ? 0 : j->n == 0 ? BLITZ_ACTOR_STOP : blitz_actor_fail((int)j->n, "by wish");
}

static const blitz_behaviour job = {
    .name = "job", .state_bytes = sizeof(struct job), .init = job_init, .drop = job_drop};
static int counted_init(void *state)
{
    *(int64_t *)state = 1;
    bz_fetch_add_seqcst(&jobs, 1); /* seq_cst: as above */
    return 0;
}

static void counted_drop(void *state, void *ctx)
{
    (void)ctx;
    bz_fetch_add_seqcst(&jobs, -*(int64_t *)state); /* seq_cst: as above */
}

static const blitz_behaviour counted = {
    .name = "counted", .state_bytes = sizeof(int64_t), .init = counted_init, .drop = counted_drop};
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

/* ---- callers that do not wait for the answer ---- */

/* A linked process whose caller has given up would have no one above it. It ends, and the caller has no link with it. */
static int abandons(void *arg)
{
    struct scene s;
    unsigned char buf[256];
    blitz_actor_id id;
    uint64_t ref;
    (void)arg;
    scene_begin(&s);
    CHECK(!blitz_actor_trap_exit(true));
    for (uint64_t i = 0, n = t_scaled(200); i < n; i++) {
        blitz_node_spawn_opts opts = {.link = true, .monitor = i % 2 == 0 ? &ref : NULL};
        int rc = blitz_node_spawn(s.w.node[0], t_node_name[1], "jobs", "start",
                                  args_of(&s, 1, false, buf, sizeof buf), &opts, &id,
                                  blitz_after(t_random_below(400) * BLITZ_US));
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        if (rc != 0)
            continue;
        CHECK_EQ(blitz_actor_kill(id), 0);
        const blitz_msg *m;
        for (unsigned left = 1 + (opts.monitor != NULL); left > 0; left--) {
            CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
            CHECK(m->what == BLITZ_MSG_EXIT || (m->what == BLITZ_MSG_DOWN && opts.monitor != NULL));
            CHECK(blitz_actor_id_equal(((const blitz_down *)m->data)->who, id));
        }
    }
    /* behind all requests */
    CHECK_EQ(blitz_node_spawn(s.w.node[0], t_node_name[1], "jobs", "idle", (blitz_term){NULL, 0},
                              NULL, &id, t_soon()),
             0);
    CHECK_EQ(blitz_actor_kill(id), 0);
    while (jobs_alive() > 0)
        blitz_yield();
    hears_nothing();
    CHECK_EQ(t_info(s.w.node[0]).broken + t_info(s.w.node[1]).broken, 0u);
    t_nodes_stop(&s.w);
    return 0;
}

TEST_LIMIT(node_spawn, a_linked_process_whose_caller_gave_up_ends, 120)
{
    t_on_each(abandons, NULL, 0);
}

/* The next frame that is no tick. */
static void hear_control(struct liar *l, struct bz_control *c)
{
    static unsigned char frame[1024];
    blitz_term control;
    size_t size, used;
    do {
        CHECK_EQ(blitz_tcp_read_exact(l->tcp, frame, 4, NULL, t_soon()), 0);
        size = bz_wire32(frame);
    } while (size == 0);
    CHECK_LE(size, sizeof frame);
    CHECK_EQ(blitz_tcp_read_exact(l->tcp, frame, size, NULL, t_soon()), 0);
    CHECK_EQ(blitz_term_check(frame + 1, size - 1, NULL, &control, &used), 0);
    CHECK_EQ(bz_control_get(control, c), 0);
}

/* {SPAWN_REPLY, Ref, To, linked and watched, Pid} or {EXIT, Pid, To, bye} */
static void say_control(struct liar *l, int op, const struct bz_control *request,
                        const blitz_term_pid *pid)
{
    unsigned char frame[256];
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, frame + 5, sizeof frame - 5);
    blitz_term_put_version(&out);
    blitz_term_put_tuple(&out, op == BZ_CONTROL_EXIT ? 4 : 5);
    blitz_term_put_int(&out, op);
    if (op == BZ_CONTROL_EXIT) {
        blitz_term_put_pid(&out, pid);
        blitz_term_put_pid(&out, &request->from);
        blitz_term_put_atom(&out, "bye");
    } else {
        blitz_term_put_ref(&out, &request->ref);
        blitz_term_put_pid(&out, &request->from);
        blitz_term_put_int(&out, 3);
        blitz_term_put_pid(&out, pid);
    }
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    bz_wire32_to(frame, (uint32_t)bytes + 1);
    frame[4] = 'p';
    liar_say(l, frame, 5 + bytes);
}

/* A peer that answers a request when its caller has left: it is told to end the process, and to forget the monitor. */
static int late(void *arg)
{
    struct liar l;
    struct bz_control request, heard;
    blitz_actor_id id;
    blitz_term_pid pid = {blitz_term_atom_of("liar@localhost"), 77, 0, 9};
    uint64_t ref;
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    liar_join(&l);
    (void)t_receiver();
    CHECK_EQ(blitz_node_spawn(l.w.node[0], "liar@localhost", "jobs", "start", (blitz_term){NULL, 0},
                              &(blitz_node_spawn_opts){true, &ref}, &id, blitz_after(BLITZ_MS)),
             -ETIMEDOUT);
    hear_control(&l, &request);
    CHECK_EQ(request.op, BZ_CONTROL_SPAWN_REQUEST);
    say_control(&l, BZ_CONTROL_SPAWN_REPLY, &request, &pid);
    bool has_exit = false, has_demonitor = false;
    while (!has_exit || !has_demonitor) {
        hear_control(&l, &heard);
        CHECK_EQ(heard.to.id, 77u);
        CHECK_EQ(heard.from.id, request.from.id);
        if (heard.op == BZ_CONTROL_DEMONITOR)
            CHECK_EQ(memcmp(heard.ref.id, request.ref.id, sizeof heard.ref.id), 0);
        has_exit |= heard.op == BZ_CONTROL_EXIT;
        has_demonitor |= heard.op == BZ_CONTROL_DEMONITOR;
    }
    say_control(&l, BZ_CONTROL_EXIT, &request, &pid); /* this task has no such link */
    hears_nothing();
    CHECK_EQ(blitz_receiver_end(NULL), 0);
    liar_hang_up(&l);
    while (t_info(l.w.node[0]).up != 1)
        blitz_yield();
    liar_fini(&l);
    return 0;
}

TEST(node_spawn, an_answer_that_comes_too_late_ends_the_process_and_its_monitor)
{
    t_on_each(late, NULL, 0);
}

/* ---- a connection that is replaced ---- */

enum { REQUESTS = 300 };

/* One write of many requests to start an idle actor, linked. */
static void say_requests(struct liar *l)
{
    static unsigned char frames[REQUESTS * 160];
    blitz_term_pid me = {blitz_term_atom_of("liar@localhost"), 5, 0, 9};
    blitz_term_ref ref = {me.node, 9, 3, {0, 1, 1, 0, 0}};
    size_t at = 0, bytes;
    for (ref.id[0] = 1; ref.id[0] <= REQUESTS; ref.id[0]++) {
        blitz_term_out out;
        blitz_term_out_init(&out, frames + at + 5, 155);
        blitz_term_put_version(&out);
        blitz_term_put_tuple(&out, 6);
        blitz_term_put_int(&out, BZ_CONTROL_SPAWN_REQUEST);
        blitz_term_put_ref(&out, &ref);
        blitz_term_put_pid(&out, &me);
        blitz_term_put_pid(&out, &me);
        blitz_term_put_tuple(&out, 3);
        blitz_term_put_atom(&out, "jobs");
        blitz_term_put_atom(&out, "counted");
        blitz_term_put_int(&out, 0);
        blitz_term_put_list(&out, 1);
        blitz_term_put_atom(&out, "link");
        blitz_term_put_nil(&out);
        blitz_term_put_version(&out);
        blitz_term_put_nil(&out);
        CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
        bz_wire32_to(frames + at, (uint32_t)bytes + 1);
        frames[at + 4] = 'p';
        at += 5 + bytes;
    }
    liar_say(l, frames, at);
}

/* The peer connects again while its first connection has requests that are not handled. */
static void replaces_once(struct liar *l)
{
    static const unsigned char add[] = "\0\0\0\x53p\x83h\4a\6"
                                       "Xw\x0eliar@localhost\0\0\0\5\0\0\0\0\0\0\0\x09"
                                       "w\0w\5adder\x83h\3w\3adda\1"
                                       "Xw\x0eliar@localhost\0\0\0\5\0\0\0\0\0\0\0\x09";
    struct bz_hello node;
    struct bz_control c;
    liar_join(l);
    blitz_tcp *first = l->tcp;
    liar_dial(l);
    liar_say(l, l->buf, bz_shake_put_name(l->buf, &l->me));
    CHECK(liar_hear(l));
    CHECK_EQ(bz_shake_get_status(l->buf, l->bytes), BZ_STATUS_ALIVE);
    liar_say(l, l->buf, bz_shake_put_status(l->buf, BZ_STATUS_TRUE));
    CHECK(liar_hear(l));
    CHECK_EQ(bz_shake_get_challenge(l->buf, l->bytes, &node), 0);
    blitz_tcp *second = l->tcp;
    l->tcp = first;
    say_requests(l);
    l->tcp = second;
    liar_say(l, l->buf, bz_shake_put_reply(l->buf, l->me.challenge, T_COOKIE, node.challenge));
    CHECK(liar_hear(l));
    liar_say(l, add, sizeof add - 1);
    hear_control(l, &c);
    CHECK_EQ(c.op, BZ_CONTROL_SEND); /* and no answer to a request of the first */
    while (jobs_alive() > 0)
        blitz_yield(); /* their links ended with the first */
    liar_hang_up(l);
    l->tcp = first;
    liar_hang_up(l);
    while (t_info(l->w.node[0]).up != 1)
        blitz_yield();
}

static int replaces(void *arg)
{
    static const blitz_node_entry counted_entries[] = {{"jobs", "counted", &counted, NULL}};
    struct liar l;
    (void)arg;
    liar_init(&l, (blitz_node_opts){.entries = counted_entries, .entry_count = 1});
    blitz_actor_id adder = t_adder("adder");
    for (uint64_t i = 0, n = t_scaled(10); i < n; i++)
        replaces_once(&l);
    CHECK_EQ(blitz_actor_stop(adder), 0);
    liar_fini(&l);
    return 0;
}

TEST_LIMIT(node_spawn, a_new_connection_gets_no_answers_to_requests_of_the_one_before, 120)
{
    t_on_each(replaces, NULL, 0);
}
