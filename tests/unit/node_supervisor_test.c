/*
 * A supervisor above actors of another node: restarts, refusals, splits, ends by exit and by kill. And blitz_actor_join() of actors elsewhere.
 */
#include "harness.h"

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "support/node_scene.h"
#include "support/on_each.h"
#include "support/refuse_each.h"

enum { FAIL_NOW = 1, QUIT_NOW };

/* The actors that node 1 starts, and how the last of them ended. */
static bz_atomic(int64_t) alive, births, last_end;

struct job {
    int64_t is_stubborn; /* it ignores requests to end */
    bool has_begun;      /* one that is killed at once does not */
};
BLITZ_TERM_TUPLE(job_args, struct job, BLITZ_TERM_INT(struct job, is_stubborn));

/* seq_cst, here and below: counts of a test */
static int job_init(void *state)
{
    struct job *j = state;
    j->has_begun = true;
    bz_fetch_add_seqcst(&alive, 1);
    bz_fetch_add_seqcst(&births, 1);
    blitz_actor_trap_exit(j->is_stubborn != 0);
    return 0;
}

static void job_exit(void *state, const blitz_exit_reason *why)
{
    (void)state;
    bz_store_seqcst(&last_end, (int64_t)why->kind);
}

static void job_drop(void *state, void *ctx)
{
    const struct job *j = state;
    (void)ctx;
    bz_fetch_add_seqcst(&alive, -(int64_t)j->has_begun);
}

BLITZ_HANDLER(on_fail_now, struct job, void)
{
    (void)state;
    return m->what == QUIT_NOW ? BLITZ_ACTOR_STOP : blitz_actor_fail(-EIO, "by wish");
}

BLITZ_HANDLER(on_ignored, struct job, blitz_down)
{
    (void)state, (void)data, (void)m;
    return 0;
}

BLITZ_TERM_EMPTY(fail_term, "fail");
BLITZ_TERM_EMPTY(quit_term, "quit");
static const blitz_term_message messages[] = {{FAIL_NOW, &fail_term, NULL},
                                              {QUIT_NOW, &quit_term, NULL}};
static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(FAIL_NOW, on_fail_now),
                                         BLITZ_ON_EMPTY(QUIT_NOW, on_fail_now),
                                         BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_ignored)};
static const blitz_behaviour job = {.name = "job",
                                    .state_bytes = sizeof(struct job),
                                    .init = job_init,
                                    .handlers = handlers,
                                    .handler_count = BZ_ARRAY_LEN(handlers),
                                    .messages = messages,
                                    .message_count = BZ_ARRAY_LEN(messages),
                                    .exit = job_exit,
                                    .drop = job_drop};
static const blitz_node_entry entries[] = {{"jobs", "start", &job, &job_args}};

/* [0] and [1] as lists of arguments */
static const unsigned char willing[] = {'k', 0, 1, 0}, stubborn[] = {'k', 0, 1, 1};

struct scene {
    struct t_nodes w;
    blitz_node_child child;
    blitz_child_spec spec;
    blitz_supervisor_plan plan;
    blitz_actor_id sup;
};

static int start_node(struct scene *s, int i)
{
    return t_node_start(&s->w, i, T_COOKIE,
                        (blitz_node_opts){.entries = entries,
                                          .entry_count = 1,
                                          .messages = messages,
                                          .message_count = BZ_ARRAY_LEN(messages)});
}

static void scene_begin(struct scene *s, const unsigned char *args, blitz_restart restart)
{
    memset(s, 0, sizeof *s);
    bz_store_seqcst(&births, 0);
    t_nodes_places(&s->w);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(start_node(s, i), 0);
    s->child = (blitz_node_child){.node = s->w.node[0],
                                  .on_node = t_node_name[1],
                                  .module = "jobs",
                                  .function = "start",
                                  .args = {args, sizeof willing}};
    s->spec = (blitz_child_spec){.id = "job",
                                 .start = blitz_node_child_start,
                                 .start_ctx = &s->child,
                                 .restart = restart,
                                 .shutdown = 20 * BLITZ_MS};
    s->plan = (blitz_supervisor_plan){.children = &s->spec,
                                      .child_count = 1,
                                      .intensity = 1000,
                                      .backoff = BLITZ_MS,
                                      .backoff_max = 4 * BLITZ_MS};
}

static void supervise(struct scene *s)
{
    CHECK_EQ(blitz_supervisor_spawn(&s->plan, NULL, &s->sup), 0);
}

static void scene_end(struct scene *s)
{
    if (blitz_actor_is_alive(s->sup)) {
        CHECK_EQ(blitz_actor_stop(s->sup), 0);
        int rc = blitz_actor_join(s->sup, NULL, t_soon());
        CHECK(rc == 0 || rc == -ESRCH);
    }
    while (bz_load_seqcst(&alive) > 0)
        blitz_yield();
    t_nodes_stop(&s->w);
}

/* The child that runs, once it is another one than `old`. */
static blitz_actor_id other_child(struct scene *s, blitz_actor_id old)
{
    blitz_actor_id id;
    for (;;) {
        CHECK_EQ(blitz_supervisor_which(s->sup, "job", &id), 0);
        if (id.generation != 0 && !blitz_actor_id_equal(id, old))
            return id;
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    }
}

static void until_alive(int64_t n)
{
    while (bz_load_seqcst(&alive) != n)
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
}

/* ---- restarts ---- */

static int restarts(void *arg)
{
    static const blitz_actor_id none;
    struct scene s;
    blitz_supervisor_counts counts;
    (void)arg;
    scene_begin(&s, willing, BLITZ_PERMANENT);
    supervise(&s);
    blitz_actor_id id = other_child(&s, none);
    CHECK_NE(id.node, 0u);
    for (int i = 0; i < 10; i++) {
        if (i % 3 == 0)
            CHECK_EQ(blitz_actor_kill(id), 0);
        else
            CHECK_EQ(blitz_actor_send(id, i % 3 == 1 ? FAIL_NOW : QUIT_NOW, NULL, 0), 0);
        id = other_child(&s, id);
    }
    until_alive(1);
    CHECK_EQ(blitz_supervisor_count(s.sup, &counts), 0);
    CHECK_EQ(counts.restarts, 10u);
    CHECK_EQ(counts.active, 1u);
    scene_end(&s);
    return 0;
}

TEST(node_supervisor, a_child_of_another_node_is_started_again)
{
    t_on_each(restarts, NULL, 0);
}

/* A transient child that ends normally stays as it is; one that fails does not. */
static int transient(void *arg)
{
    static const blitz_actor_id none;
    struct scene s;
    (void)arg;
    scene_begin(&s, willing, BLITZ_TRANSIENT);
    supervise(&s);
    blitz_actor_id id = other_child(&s, none);
    CHECK_EQ(blitz_actor_send(id, FAIL_NOW, NULL, 0), 0);
    id = other_child(&s, id);
    CHECK_EQ(blitz_actor_send(id, QUIT_NOW, NULL, 0), 0);
    do
        CHECK_EQ(blitz_supervisor_which(s.sup, "job", &id), 0);
    while (id.generation != 0);
    CHECK_EQ(bz_load_seqcst(&births), 2);
    CHECK_EQ(blitz_supervisor_restart(s.sup, "job"), 0);
    until_alive(1);
    scene_end(&s);
    return 0;
}

TEST(node_supervisor, the_reason_of_its_end_says_whether_it_is)
{
    t_on_each(transient, NULL, 0);
}

/* ---- splits ---- */

static int splits(void *arg)
{
    static const blitz_actor_id none;
    struct scene s;
    (void)arg;
    scene_begin(&s, willing, BLITZ_PERMANENT);
    supervise(&s);
    blitz_actor_id id = other_child(&s, none);
    for (int i = 0; i < 5; i++) { /* the child ends of the split, too */
        CHECK_EQ(blitz_node_disconnect(s.w.node[i % 2], t_node_name[!(i % 2)]), 0);
        id = other_child(&s, id);
        until_alive(1);
    }
    /* the node goes: starts are refused, and tried again */
    blitz_node_stop(s.w.node[1]);
    until_alive(0);
    blitz_supervisor_counts counts = {0};
    while (counts.restarts < 10)
        CHECK_EQ(blitz_supervisor_count(s.sup, &counts), 0);
    CHECK_EQ(start_node(&s, 1), 0);
    (void)other_child(&s, id);
    until_alive(1);
    scene_end(&s);
    return 0;
}

TEST_LIMIT(node_supervisor, it_is_started_again_when_its_node_is_there_again, 120)
{
    t_on_each(splits, NULL, 0);
}

/* Stop the node of the children, and wait for the end of the supervisor. It may come first, so a monitor tells it. */
static void stop_and_hear(struct scene *s, blitz_exit_reason *why)
{
    const blitz_msg *m;
    uint64_t ref;
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), 0);
    CHECK_EQ(blitz_actor_monitor(s->sup, &ref), 0);
    blitz_node_stop(s->w.node[1]);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, t_soon()), 0);
    CHECK_EQ(m->what, BLITZ_MSG_DOWN);
    *why = ((const blitz_down *)m->data)->reason;
    CHECK_EQ(blitz_receiver_end(NULL), 0);
}

static int gives_up(void *arg)
{
    struct scene s;
    blitz_exit_reason why;
    (void)arg;
    scene_begin(&s, willing, BLITZ_PERMANENT);
    s.plan.intensity = 3;
    s.plan.backoff = 0;
    supervise(&s);
    until_alive(1);
    stop_and_hear(&s, &why);
    CHECK_EQ(why.code, -ELOOP);
    CHECK_STR_EQ(why.text, "too many restarts");
    CHECK_EQ(start_node(&s, 1), 0);
    /* a start that is refused at first ends the supervisor, and is an error of one that is added */
    s.child.function = "nothing";
    CHECK_EQ(blitz_supervisor_spawn(&s.plan, NULL, &s.sup), 0);
    int rc = blitz_actor_join(s.sup, &why, t_soon());
    CHECK(rc == -ESRCH || (rc == 0 && why.code == -ELOOP));
    s.plan.child_count = 0;
    CHECK_EQ(blitz_supervisor_spawn(&s.plan, NULL, &s.sup), 0);
    CHECK_EQ(blitz_supervisor_start(s.sup, &s.spec, NULL), -ENOENT);
    s.spec.name = "name";
    CHECK_EQ(blitz_supervisor_start(s.sup, &s.spec, NULL), -EINVAL);
    s.spec.name = NULL;
    s.spec.behaviour = &job;
    CHECK_EQ(blitz_supervisor_start(s.sup, &s.spec, NULL), -EINVAL);
    s.spec.behaviour = NULL;
    s.spec.state = &s;
    CHECK_EQ(blitz_supervisor_start(s.sup, &s.spec, NULL), -EINVAL);
    scene_end(&s);
    return 0;
}

TEST(node_supervisor, refusals_are_counted_and_too_many_end_it)
{
    t_on_each(gives_up, NULL, 0);
}

/* ---- ends ---- */

static int print_line(void *ctx, const char *line, size_t bytes)
{
    char *text = ctx;
    (void)strncat(text, line, bytes);
    return 0;
}

static int ends(void *arg)
{
    static const blitz_actor_id none;
    char text[256] = "";
    struct scene s;
    (void)arg;
    for (int is_stubborn = 0; is_stubborn < 2; is_stubborn++) {
        blitz_exit_kind want = is_stubborn ? BLITZ_EXIT_KILLED : BLITZ_EXIT_SHUTDOWN;
        scene_begin(&s, is_stubborn ? stubborn : willing, BLITZ_PERMANENT);
        supervise(&s);
        blitz_actor_id id = other_child(&s, none);
        until_alive(1);
        CHECK_EQ(blitz_supervisor_terminate(s.sup, "job"), 0); /* a kill follows its deadline */
        until_alive(0);
        CHECK_EQ(bz_load_seqcst(&last_end), (int64_t)want);
        CHECK_EQ(blitz_supervisor_restart(s.sup, "job"), 0);
        id = other_child(&s, id);
        text[0] = '\0';
        CHECK_EQ(blitz_supervisor_print(s.sup, print_line, text), 0);
        CHECK_NOT_NULL(strstr(text, "of node"));
        until_alive(1);
        CHECK_EQ(blitz_actor_stop(s.sup), 0); /* its end waits for that of the child */
        int rc = blitz_actor_join(s.sup, NULL, t_soon());
        CHECK(rc == 0 || rc == -ESRCH); /* it may have ended before */
        until_alive(0);
        CHECK_EQ(bz_load_seqcst(&last_end), (int64_t)want);
        /* one that is killed kills it */
        supervise(&s);
        (void)other_child(&s, id);
        until_alive(1);
        CHECK_EQ(blitz_actor_kill(s.sup), 0);
        until_alive(0);
        CHECK(bz_load_seqcst(&last_end) == (int64_t)want ||
              bz_load_seqcst(&last_end) == BLITZ_EXIT_KILLED);
        scene_end(&s);
    }
    return 0;
}

TEST_LIMIT(node_supervisor, it_ends_its_child_by_an_exit_and_then_by_a_kill, 120)
{
    t_on_each(ends, NULL, 0);
}

/* ---- joins ---- */

struct waiting {
    blitz_actor_id id;
    blitz_deadline until;
    blitz_exit_reason why;
    int rc;
};

static int waits(void *arg)
{
    struct waiting *w = arg;
    w->rc = blitz_actor_join(w->id, &w->why, w->until);
    return 0;
}

static blitz_actor_id start_job(struct scene *s)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_node_spawn(s->w.node[0], t_node_name[1], "jobs", "start", s->child.args, NULL,
                              &id, t_soon()),
             0);
    return id;
}

static int joins(void *arg)
{
    struct scene s;
    blitz_actor_join_future f;
    blitz_exit_reason why;
    (void)arg;
    scene_begin(&s, willing, BLITZ_PERMANENT);
    for (int i = 0; i < 20; i++) {
        struct waiting w = {.id = start_job(&s),
                            .until = i % 4 == 1 ? blitz_after(100 * BLITZ_MS) : t_soon()};
        CHECK_EQ(blitz_actor_join(w.id, NULL, 0), -ETIMEDOUT);
        blitz_task *t = t_spawn(waits, &w);
        if (i % 2 == 0)
            CHECK_EQ(blitz_actor_send(w.id, FAIL_NOW, NULL, 0), 0);
        else if (i % 4 == 1)
            CHECK_EQ(blitz_node_disconnect(s.w.node[0], t_node_name[1]), 0);
        else
            blitz_task_cancel(t);
        t_join(t);
        if (i % 2 == 0) {
            CHECK(w.rc == 0 || w.rc == -ESRCH);
            CHECK(w.rc != 0 || (w.why.code == -EIO && w.why.kind == BLITZ_EXIT_ERROR));
            CHECK_EQ(blitz_actor_join(w.id, &why, t_soon()), -ESRCH);
            continue;
        }
        if (i % 4 == 1)
            CHECK(w.rc == -ETIMEDOUT || /* it began behind the loss: the next connection had it */
                  (w.rc == 0 && w.why.kind == BLITZ_EXIT_NOCONNECTION));
        else
            CHECK(w.rc == -ECANCELED);
        blitz_actor_join_future_init(&f, w.id, &why);
        CHECK_EQ(blitz_actor_kill(w.id), 0);
        CHECK_EQ(blitz_await(&f.future, t_soon()), 0);
        CHECK(f.result == -ESRCH || (f.result == 0 && why.kind == BLITZ_EXIT_KILLED));
        blitz_actor_join_future_init(&f, w.id, &why);
        CHECK_EQ(blitz_await(&f.future, t_soon()), 0);
        CHECK_EQ(f.result, -ESRCH);
    }
    /* a future that is dropped */
    blitz_actor_id id = start_job(&s);
    blitz_actor_join_future_init(&f, id, &why);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_actor_kill(id), 0);
    CHECK_EQ(t_info(s.w.node[0]).broken + t_info(s.w.node[1]).broken, 0u);
    scene_end(&s);
    return 0;
}

TEST(node_supervisor, a_join_hears_the_reason_of_an_actor_elsewhere)
{
    t_on_each(joins, NULL, 0);
}

/* ---- without memory ---- */

static int life(void *arg)
{
    struct t_nodes w;
    blitz_node_opts o = {.entries = entries,
                         .entry_count = 1,
                         .messages = messages,
                         .message_count = BZ_ARRAY_LEN(messages),
                         .connect_ns = 200 * BLITZ_MS};
    blitz_node_child child = {.on_node = t_node_name[1],
                              .module = "jobs",
                              .function = "start",
                              .args = {willing, sizeof willing},
                              .within = 200 * BLITZ_MS};
    blitz_child_spec spec = {.id = "job",
                             .start = blitz_node_child_start,
                             .start_ctx = &child,
                             .shutdown = 100 * BLITZ_MS};
    blitz_supervisor_plan plan = {.children = &spec, .child_count = 1, .intensity = 1};
    blitz_actor_id sup = {0, 0, 0, 0}, id = {0, 0, 0, 0};
    (void)arg;
    t_nodes_places(&w);
    int rc = t_node_start(&w, 0, T_COOKIE, o);
    if (rc == 0)
        rc = t_node_start(&w, 1, T_COOKIE, o);
    child.node = w.node[0];
    if (rc == 0)
        rc = blitz_supervisor_spawn(&plan, NULL, &sup);
    bool has_child = rc == 0 && blitz_supervisor_which(sup, "job", &id) == 0 && id.generation != 0;
    if (rc == 0) {
        while (blitz_actor_stop(sup) == -ENOMEM)
            ;
        while (blitz_actor_is_alive(sup))
            CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    }
    t_nodes_stop(&w);
    while (bz_load_seqcst(&alive) > 0) /* of the exit, or of the lost connection */
        CHECK_EQ(blitz_sleep(BLITZ_MS / 10), 0);
    return rc == 0 && has_child ? 0 : -ENOMEM;
}

TEST_LIMIT(node_supervisor, without_memory_it_leaves_no_child, 240)
{
    t_refuse_each(life, NULL, false);
    t_refuse_each(life, NULL, true);
}
