/* Actors that end when nothing can reach them: holders of an actor, and others that hold nothing. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "blitz.h"
#include "actor/reaching.h"
#include "support/counted.h"
#include "support/on_each.h"
#include "support/refuse_each.h"

enum { HOLD, LET_GO, ASK, LATER, FAIL_NOW, WAIT, PIN, PASS_ON, WATCH };

/* ---- a node: an actor that holds others ---- */

struct node {
    BLITZ_REF next;
    BLITZ_REF other;
    long handled;
};
BLITZ_TYPE(unreachable_node, struct node, next, other);

static atomic_int ended, unreachable, handled; /* actors, and messages */

static void node_exit(void *state, const blitz_exit_reason *why)
{
    (void)state;
    ended++;
    unreachable += why->kind == BLITZ_EXIT_UNREACHABLE;
    CHECK_NULL(blitz_reference_self());
}

BLITZ_HANDLER(on_hold, struct node, void)
{
    (void)data;
    state->handled++;
    state->next = blitz_actor_reference(blitz_msg_reference(m));
    return state->next != NULL ? 0 : -ENOMEM;
}

BLITZ_HANDLER(on_let_go, struct node, void)
{
    (void)data, (void)m;
    void *none = NULL;
    state->next = NULL;
    return BLITZ_ACTOR_COLLECT(&none);
}

BLITZ_HANDLER(on_ask, struct node, void)
{
    (void)data;
    handled++;
    blitz_reference *me = blitz_reference_self();
    int rc = blitz_actor_reply_with(m->reply, &state->handled, sizeof state->handled,
                                    &(blitz_cargo){.reference = me});
    blitz_reference_unref(me);
    return rc;
}

BLITZ_HANDLER(on_later, struct node, uint64_t)
{
    (void)m, (void)state;
    return blitz_actor_send_after(blitz_actor_self(), ASK, NULL, 0, blitz_after(*data), NULL);
}

BLITZ_HANDLER(on_fail, struct node, void)
{
    (void)data, (void)m, (void)state;
    return -EIO;
}

BLITZ_HANDLER(on_wait, struct node, uint64_t)
{
    (void)m, (void)state;
    return blitz_sleep(*data);
}

BLITZ_HANDLER(on_pin, struct node, blitz_pin **)
{
    struct node *n = (struct node *)blitz_actor_alloc(&unreachable_node);
    void *none = NULL;
    n->next = blitz_actor_reference(blitz_msg_reference(m));
    (void)state;
    CHECK_EQ(blitz_pin_new(blitz_actor_heap(), n, *data), 0);
    return BLITZ_ACTOR_COLLECT(&none);
}

/* Send the reference on, to the actor in the payload. */
BLITZ_HANDLER(on_pass_on, struct node, blitz_actor_id)
{
    (void)state;
    (void)blitz_actor_send_with(*data, HOLD, NULL, 0,
                                &(blitz_cargo){.reference = blitz_msg_reference(m)});
    return 0;
}

BLITZ_HANDLER(on_watch, struct node, blitz_actor_id)
{
    (void)state, (void)m;
    uint64_t ref;
    return blitz_actor_monitor(*data, &ref);
}

static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(HOLD, on_hold),
                                         BLITZ_ON_EMPTY(LET_GO, on_let_go),
                                         BLITZ_ON_EMPTY(ASK, on_ask),
                                         BLITZ_ON(LATER, uint64_t, on_later),
                                         BLITZ_ON_EMPTY(FAIL_NOW, on_fail),
                                         BLITZ_ON(WAIT, uint64_t, on_wait),
                                         BLITZ_ON(PIN, blitz_pin **, on_pin),
                                         BLITZ_ON(PASS_ON, blitz_actor_id, on_pass_on),
                                         BLITZ_ON(WATCH, blitz_actor_id, on_watch)};

static const blitz_behaviour node = {.name = "node",
                                     .state_bytes = sizeof(struct node),
                                     .state_type = &unreachable_node,
                                     .handlers = handlers,
                                     .handler_count = BZ_ARRAY_LEN(handlers),
                                     .exit = node_exit,
                                     .heap_verify = true,
                                     .end_unreachable = true};

/* The same without the opt-in. */
static const blitz_behaviour other = {.name = "other",
                                      .state_bytes = sizeof(struct node),
                                      .state_type = &unreachable_node,
                                      .handlers = handlers,
                                      .handler_count = BZ_ARRAY_LEN(handlers),
                                      .heap_verify = true};

static blitz_reference *node_new(void)
{
    blitz_reference *r = NULL;
    CHECK_EQ(blitz_reference_spawn(&node, NULL, NULL, &r), 0);
    return r;
}

static void quiet(void)
{
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
}

static int hold(blitz_actor_id holder, blitz_reference *r)
{
    return blitz_actor_send_with(holder, HOLD, NULL, 0, &(blitz_cargo){.reference = r});
}

static bool is_alive(blitz_actor_id id)
{
    quiet();
    return blitz_actor_is_alive(id);
}

static void begin(void)
{
    ended = unreachable = handled = 0;
}

/* ---- holders ---- */

static int released(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new(), *same = blitz_reference_ref(a);
    blitz_actor_id id = blitz_reference_id(a);
    CHECK(is_alive(id));
    blitz_reference_unref(a);
    CHECK(is_alive(id));
    blitz_reference_unref(same);
    CHECK(!is_alive(id));
    CHECK_EQ(unreachable, 1);
    return 0;
}

TEST(unreachable, an_actor_ends_when_its_last_reference_is_released)
{
    t_on_each(released, NULL, 0);
}

/* A message that was sent before the release is handled. */
static int sent_first(void *arg)
{
    (void)arg;
    begin();
    for (int i = 0; i < 200; i++) {
        blitz_reference *a = node_new();
        CHECK_EQ(blitz_actor_send(blitz_reference_id(a), ASK, NULL, 0), 0);
        blitz_reference_unref(a);
    }
    quiet();
    CHECK_EQ(handled, 200);
    CHECK_EQ(unreachable, 200);
    return 0;
}

TEST(unreachable, messages_that_came_before_the_release_are_handled)
{
    t_on_each(sent_first, NULL, 0);
}

static int no_reference(void *arg)
{
    (void)arg;
    begin();
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&node, NULL, NULL, &id), 0);
    CHECK(!is_alive(id));
    CHECK_EQ(blitz_actor_spawn(&node, NULL, &(blitz_actor_opts){.name = "named"}, &id), 0);
    CHECK(is_alive(id));
    CHECK_EQ(blitz_actor_unregister(NULL, "named"), 0);
    CHECK(!is_alive(id));
    CHECK_EQ(unreachable, 2);
    return 0;
}

TEST(unreachable, a_name_holds_and_an_id_does_not)
{
    t_on_each(no_reference, NULL, 0);
}

static int relations(void *arg)
{
    (void)arg;
    begin();
    blitz_actor_id id, watcher;
    blitz_reference *a = node_new();
    uint64_t ref;
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), 0);
    id = blitz_reference_id(a);
    CHECK_EQ(blitz_actor_link(id), 0);
    blitz_reference_unref(a);
    CHECK(is_alive(id));
    CHECK_EQ(blitz_actor_monitor(id, &ref), 0);
    CHECK_EQ(blitz_actor_unlink(id), 0);
    const blitz_msg *m;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(m->what, BLITZ_MSG_DOWN);
    CHECK_NULL(blitz_msg_reference(m));
    CHECK_EQ(((const blitz_down *)m->data)->reason.kind, BLITZ_EXIT_UNREACHABLE);
    a = node_new();
    id = blitz_reference_id(a);
    CHECK_EQ(blitz_group_join("group", id), 0);
    blitz_reference_unref(a);
    CHECK(is_alive(id));
    CHECK_EQ(blitz_group_leave("group", id), 0);
    CHECK(!is_alive(id));
    a = node_new(); /* a watch is not held, and holds not */
    blitz_reference *b = node_new();
    watcher = blitz_reference_id(b);
    id = blitz_reference_id(a);
    CHECK_EQ(blitz_actor_send(watcher, WATCH, &id, sizeof id), 0);
    blitz_reference_unref(b);
    CHECK(!is_alive(watcher));
    blitz_reference_unref(a);
    CHECK(!is_alive(id));
    return blitz_receiver_end(NULL);
}

TEST(unreachable, links_and_groups_hold_and_monitors_do_not)
{
    t_on_each(relations, NULL, 0);
}

static int supervised(void *arg)
{
    (void)arg;
    static const blitz_child_spec child = {.id = "node", .behaviour = &node};
    static const blitz_supervisor_plan plan = {.children = &child, .child_count = 1};
    blitz_actor_id s, id;
    begin();
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &s), 0);
    quiet();
    CHECK_EQ(ended, 0);
    CHECK_EQ(blitz_supervisor_which(s, "node", &id), 0);
    CHECK(is_alive(id));
    CHECK_EQ(blitz_actor_stop(s), 0);
    (void)blitz_actor_join(s, NULL, BLITZ_FOREVER);
    quiet();
    CHECK_EQ(ended, 1);
    CHECK_EQ(unreachable, 0);
    return 0;
}

TEST(unreachable, a_supervisor_holds_its_children)
{
    t_on_each(supervised, NULL, 0);
}

/* ---- timers ---- */

static int timers(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new();
    blitz_actor_id id = blitz_reference_id(a);
    uint64_t timer;
    CHECK_EQ(blitz_actor_send_after(id, ASK, NULL, 0, BLITZ_FOREVER, &timer), 0);
    blitz_reference_unref(a);
    CHECK(is_alive(id));
    CHECK_EQ(blitz_actor_timer_cancel(id, timer), 0);
    CHECK(!is_alive(id));
    CHECK_EQ(handled, 0);

    a = node_new(); /* the message comes, with other cargo, and is the last hold */
    id = blitz_reference_id(a);
    blitz_binary *b;
    CHECK_EQ(blitz_binary_copy("text", 4, &b), 0);
    CHECK_EQ(blitz_actor_send_after_with(id, ASK, NULL, 0, &(blitz_cargo){.binary = b},
                                         blitz_after(BLITZ_MS), NULL),
             0);
    blitz_reference_unref(a);
    (void)blitz_actor_join(id, NULL, BLITZ_FOREVER);
    blitz_binary_info info;
    blitz_binary_info_get(b, &info);
    CHECK_EQ(info.refs, 1);
    CHECK_EQ(handled, 1);
    blitz_binary_unref(b);
    CHECK_EQ(blitz_actor_send_after(id, ASK, NULL, 0, BLITZ_FOREVER, NULL), -ESRCH);

    a = node_new(); /* a timer of its own */
    id = blitz_reference_id(a);
    CHECK_EQ(blitz_actor_send(id, LATER, &(uint64_t){BLITZ_MS}, sizeof(uint64_t)), 0);
    blitz_reference_unref(a);
    (void)blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK_EQ(handled, 2);
    CHECK_EQ(unreachable, 3);

    a = node_new(); /* one that is never due: the end of the runtime frees it */
    CHECK_EQ(blitz_actor_send_after(blitz_reference_id(a), ASK, NULL, 0, BLITZ_FOREVER, NULL), 0);
    blitz_reference_unref(a);
    return 0;
}

TEST(unreachable, a_message_that_is_sent_later_holds_its_receiver)
{
    t_on_each(timers, NULL, 0);
}

/* ---- references in messages ---- */

static int in_messages(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new(), *b = node_new(), *c = node_new();
    blitz_actor_id ida = blitz_reference_id(a), idb = blitz_reference_id(b),
                   idc = blitz_reference_id(c);
    CHECK_EQ(hold(ida, b), 0);
    CHECK_EQ(hold(idb, c), 0);
    blitz_reference_unref(b);
    blitz_reference_unref(c);
    CHECK(is_alive(idb) && is_alive(idc));
    CHECK_EQ(blitz_actor_send(ida, LET_GO, NULL, 0), 0);
    CHECK(!is_alive(idb)); /* the collection has dropped it, and its end the next */
    CHECK(!is_alive(idc));
    CHECK(is_alive(ida));
    b = node_new(); /* in the mailbox of one that fails first */
    idb = blitz_reference_id(b);
    CHECK_EQ(blitz_actor_send(ida, FAIL_NOW, NULL, 0), 0);
    (void)hold(ida, b);
    blitz_reference_unref(b);
    CHECK(!is_alive(idb));
    CHECK_EQ(hold(ida, a), -ESRCH);
    blitz_reference_unref(a);
    CHECK_EQ(ended, 4);
    CHECK_EQ(unreachable, 3);
    return 0;
}

TEST(unreachable, references_in_messages_and_heaps_hold)
{
    t_on_each(in_messages, NULL, 0);
}

/* An actor that did not opt in may hold references. */
static int held_by_others(void *arg)
{
    (void)arg;
    begin();
    blitz_actor_id id, o;
    blitz_reference *a = node_new(), *r = NULL;
    id = blitz_reference_id(a);
    CHECK_EQ(blitz_actor_spawn(&other, NULL, NULL, &o), 0);
    CHECK_EQ(hold(o, a), 0);
    blitz_reference_unref(a);
    CHECK(is_alive(id));
    CHECK_EQ(blitz_reference_of(o, &r), -EOPNOTSUPP);
    CHECK_EQ(blitz_reference_of(id, &r), 0);
    CHECK_EQ(blitz_actor_kill(o), 0);
    CHECK(is_alive(id));
    blitz_reference_unref(r);
    CHECK(!is_alive(id));
    CHECK_EQ(blitz_reference_of(id, &r), -ESRCH);
    CHECK_EQ(blitz_reference_of(o, &r), -ESRCH);
    CHECK_EQ(blitz_reference_spawn(&other, NULL, NULL, &r), -EINVAL);
    CHECK_NULL(blitz_reference_self());
    return 0;
}

TEST(unreachable, actors_that_do_not_opt_in_hold_references)
{
    t_on_each(held_by_others, NULL, 0);
}

/* A reply carries a reference; a caller without room for it drops it. */
static int in_replies(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new();
    blitz_actor_id id = blitz_reference_id(a);
    blitz_arrival got;
    CHECK_EQ(blitz_actor_call_with(id, ASK, NULL, 0, NULL, NULL, 0, &got, BLITZ_FOREVER),
             (int)sizeof(long));
    CHECK_EQ(got.reference, a);
    blitz_reference_unref(a);
    CHECK(is_alive(id));
    CHECK_EQ(blitz_actor_call(id, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER), (int)sizeof(long));
    blitz_reference_unref(got.reference);
    CHECK(!is_alive(id));
    blitz_binary *b;
    CHECK_EQ(blitz_binary_copy("x", 1, &b), 0);
    CHECK_EQ(blitz_actor_send_with(id, ASK, NULL, 0, &(blitz_cargo){b, NULL, a}), -EINVAL);
    blitz_binary_unref(b);
    return 0;
}

TEST(unreachable, replies_carry_references)
{
    t_on_each(in_replies, NULL, 0);
}

/* ---- tasks and threads ---- */

static bool is_hold(const blitz_msg *m, void *ctx)
{
    (void)ctx;
    return m->what == HOLD;
}

static int in_an_inbox(void *arg)
{
    (void)arg;
    begin();
    blitz_actor_id me;
    const blitz_msg *m;
    blitz_reference *a = node_new(), *b = node_new();
    blitz_actor_id ida = blitz_reference_id(a), idb = blitz_reference_id(b);
    CHECK_EQ(blitz_receiver_begin(NULL, &me), 0);
    CHECK_EQ(blitz_actor_send_with(me, LET_GO, NULL, 0, &(blitz_cargo){.reference = a}), 0);
    CHECK_EQ(hold(me, b), 0);
    blitz_reference_unref(a);
    blitz_reference_unref(b);
    CHECK(is_alive(ida) && is_alive(idb));
    CHECK_EQ(blitz_receive(is_hold, NULL, &m, BLITZ_FOREVER), 0); /* out of order */
    CHECK_EQ(blitz_msg_reference(m), b);
    CHECK(is_alive(ida) && is_alive(idb));
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_msg_reference(m), a);
    CHECK(!is_alive(idb)); /* its message went with the next receive */
    CHECK(is_alive(ida));
    b = node_new(); /* in the inbox at the end of the id */
    idb = blitz_reference_id(b);
    CHECK_EQ(hold(me, b), 0);
    blitz_reference_unref(b);
    CHECK(is_alive(idb));
    CHECK_EQ(blitz_receiver_end(NULL), 0);
    CHECK(!is_alive(ida));
    CHECK(!is_alive(idb));
    return 0;
}

TEST(unreachable, a_reference_in_an_inbox_holds_until_the_next_receive)
{
    t_on_each(in_an_inbox, NULL, 0);
}

struct threads {
    blitz_reference *a;
    blitz_actor_id sink;
};

static void *sends(void *arg)
{
    struct threads *t = arg;
    for (int i = 0; i < 1000; i++) {
        blitz_reference *r = blitz_reference_ref(t->a);
        CHECK_EQ(blitz_actor_send_with(t->sink, ASK, NULL, 0, &(blitz_cargo){.reference = r}), 0);
        blitz_reference_unref(r);
    }
    blitz_reference_unref(t->a);
    return NULL;
}

static int from_threads(void *arg)
{
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    blitz_reference *s = node_new();
    struct threads t = {node_new(), blitz_reference_id(s)};
    (void)arg;
    begin();
    blitz_actor_id id = blitz_reference_id(t.a);
    for (int i = 0; i < THREADS; i++) {
        (void)blitz_reference_ref(t.a);
        CHECK_EQ(pthread_create(&thread[i], NULL, sends, &t), 0);
    }
    blitz_reference_unref(t.a);
    (void)blitz_actor_join(id, NULL, BLITZ_FOREVER);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(unreachable, 1);
    blitz_reference_unref(s);
    quiet();
    CHECK_EQ(handled, 3000);
    CHECK_EQ(unreachable, 2);
    return 0;
}

TEST(unreachable, plain_threads_send_and_release)
{
    t_on_each(from_threads, NULL, 0);
}

/* ---- waits, pins, mutes ---- */

static int waits(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new();
    blitz_actor_id id = blitz_reference_id(a);
    CHECK_EQ(blitz_actor_send(id, WAIT, &(uint64_t){BLITZ_MS}, sizeof(uint64_t)), 0);
    CHECK_EQ(blitz_actor_send(id, ASK, NULL, 0), 0);
    blitz_reference_unref(a);
    (void)blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK_EQ(handled, 1);
    CHECK_EQ(unreachable, 1);
    return 0;
}

TEST(unreachable, an_actor_that_waits_in_a_handler_is_not_idle)
{
    t_on_each(waits, NULL, 0);
}

/* A pinned object holds what it refers to, until the pin is given up and its heap is collected; or until the actor ends. */
static int pinned(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new(), *b = node_new();
    blitz_actor_id ida = blitz_reference_id(a), idb = blitz_reference_id(b);
    blitz_pin *pin = NULL, **at = &pin;
    CHECK_EQ(blitz_actor_send_with(ida, PIN, &at, sizeof at, &(blitz_cargo){.reference = b}), 0);
    blitz_reference_unref(b);
    CHECK(is_alive(idb));
    blitz_reference_unref(a);
    CHECK(!is_alive(ida)); /* a pin does not hold its actor */
    CHECK(!is_alive(idb));
    blitz_pin_unref(pin);
    return 0;
}

TEST(unreachable, a_pinned_object_holds_until_its_actor_ends)
{
    t_on_each(pinned, NULL, 0);
}

/* ---- the end of the runtime, and memory ---- */

static blitz_reference *outlives;

static int leaves_all(void *arg)
{
    blitz_reference *a = node_new(), *b = node_new();
    CHECK_EQ(hold(blitz_reference_id(a), b), 0);
    CHECK_EQ(hold(blitz_reference_id(b), a), 0); /* a circle */
    if (arg != NULL)
        quiet();
    outlives = a;
    blitz_reference_unref(b);
    return 0;
}

TEST(unreachable, a_reference_outlives_its_runtime)
{
    for (int i = 0; i < 20; i++) {
        counted_refuse(0, false);
        CHECK_EQ(blitz_run(leaves_all, i % 2 ? &outlives : NULL,
                           &(blitz_runtime_opts){.allocator = &counted}),
                 0);
        CHECK(!blitz_actor_is_alive(blitz_reference_id(outlives)));
        CHECK_EQ(counted_blocks(), 1);
        blitz_reference_unref(blitz_reference_ref(outlives));
        blitz_reference_unref(outlives);
        CHECK_EQ(counted_blocks(), 0);
    }
}

TEST(unreachable, an_abandoned_runtime_frees_all)
{
    for (int i = 0; i < 20; i++) {
        blitz_runtime *rt;
        counted_refuse(0, false);
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.allocator = &counted}, &rt), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, leaves_all, NULL), 0);
        CHECK_EQ(blitz_runtime_abandon(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        blitz_reference_unref(outlives);
        CHECK_EQ(counted_blocks(), 0);
    }
}

/* Any allocation may fail: an error, and nothing is lost or ended too early. */
static int without_memory(void *arg)
{
    (void)arg;
    blitz_reference *a = NULL, *b = NULL;
    int rc = blitz_reference_spawn(&node, NULL, NULL, &a);
    if (rc == 0)
        rc = blitz_reference_spawn(&node, NULL, NULL, &b);
    if (rc == 0)
        rc = hold(blitz_reference_id(a), b);
    if (rc == 0)
        rc = blitz_actor_send_after_with(blitz_reference_id(b), HOLD, NULL, 0,
                                         &(blitz_cargo){.reference = a}, blitz_after(BLITZ_US),
                                         NULL);
    blitz_reference_unref(b);
    blitz_reference_unref(a);
    return rc == -ESRCH ? -ENOMEM : rc; /* the holder has failed, without memory */
}

TEST(unreachable, allocations_may_fail)
{
    begin();
    for (int all = 0; all < 2; all++)
        t_refuse_each(without_memory, NULL, all);
}

/* ---- circles ---- */

static int circles(void *arg)
{
    enum { LENGTH = 7 };
    blitz_reference *r[LENGTH];
    blitz_actor_id id[LENGTH];
    (void)arg;
    for (int length = 1; length <= LENGTH; length++) {
        begin();
        for (int i = 0; i < length; i++) {
            r[i] = node_new();
            id[i] = blitz_reference_id(r[i]);
        }
        for (int i = 0; i < length; i++)
            CHECK_EQ(hold(id[i], r[(i + 1) % length]), 0);
        for (int i = 1; i < length; i++)
            blitz_reference_unref(r[i]);
        for (int i = 0; i < length; i++)
            CHECK(is_alive(id[i]));
        blitz_reference_unref(r[0]);
        for (int i = 0; i < length; i++)
            CHECK(!is_alive(id[i]));
        CHECK_EQ(unreachable, length);
    }
    return 0;
}

TEST(unreachable, a_circle_ends_when_nothing_else_holds_it)
{
    bz_detect_pause_ns = bz_detect_limit_ns = 0;
    t_on_each(circles, NULL, 0);
}

/* One member of a circle is held: by a name, by a link, by an actor that did not opt in, by a message that is not handled. */
static int held_circles(void *arg)
{
    (void)arg;
    for (int how = 0; how < 4; how++) {
        begin();
        blitz_reference *a = node_new(), *b = node_new();
        blitz_actor_id ida = blitz_reference_id(a), idb = blitz_reference_id(b), o;
        CHECK_EQ(blitz_actor_spawn(&other, NULL, NULL, &o), 0);
        CHECK_EQ(hold(ida, b), 0);
        CHECK_EQ(hold(idb, a), 0);
        if (how == 0)
            CHECK_EQ(blitz_actor_register("circle", ida), 0);
        if (how == 1)
            CHECK_EQ(blitz_receiver_begin(NULL, NULL) + blitz_actor_link(ida), 0);
        if (how == 2)
            CHECK_EQ(hold(o, a), 0);
        uint64_t timer = 0;
        if (how == 3)
            CHECK_EQ(blitz_actor_send_after_with(o, HOLD, NULL, 0, &(blitz_cargo){.reference = a},
                                                 BLITZ_FOREVER, &timer),
                     0);
        blitz_reference_unref(a);
        blitz_reference_unref(b);
        CHECK(is_alive(ida) && is_alive(idb));
        CHECK_EQ(how == 0   ? blitz_actor_unregister(NULL, "circle")
                 : how == 1 ? blitz_actor_unlink(ida)
                 : how == 2 ? blitz_actor_send(o, LET_GO, NULL, 0)
                            : blitz_actor_timer_cancel(o, timer),
                 0);
        CHECK(!is_alive(ida) && !is_alive(idb));
        CHECK_EQ(unreachable, 2);
        if (how == 1)
            CHECK_EQ(blitz_receiver_end(NULL), 0);
        CHECK_EQ(blitz_actor_kill(o), 0);
    }
    return 0;
}

TEST(unreachable, a_circle_lives_while_a_member_is_held)
{
    bz_detect_pause_ns = bz_detect_limit_ns = 0;
    t_on_each(held_circles, NULL, 0);
}

/* With the pauses of programs, and a member that waits. */
static int patient(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new(), *b = node_new();
    blitz_actor_id ida = blitz_reference_id(a), idb = blitz_reference_id(b);
    CHECK_EQ(hold(ida, b), 0);
    CHECK_EQ(hold(idb, a), 0);
    CHECK_EQ(blitz_actor_send(ida, WAIT, &(uint64_t){30 * BLITZ_MS}, sizeof(uint64_t)), 0);
    blitz_reference_unref(a);
    blitz_reference_unref(b);
    (void)blitz_actor_join(ida, NULL, BLITZ_FOREVER);
    (void)blitz_actor_join(idb, NULL, BLITZ_FOREVER);
    CHECK_EQ(unreachable, 2);
    return 0;
}

TEST(unreachable, a_circle_ends_after_the_detectors_pause)
{
    bz_detect_limit_ns = BLITZ_MS;
    t_on_each(patient, NULL, 0);
}

/* A pass that lacks memory is made again. */
static int scarce(void *arg)
{
    (void)arg;
    begin();
    blitz_reference *a = node_new(), *b = node_new();
    blitz_actor_id ida = blitz_reference_id(a), idb = blitz_reference_id(b);
    CHECK_EQ(hold(ida, b), 0);
    CHECK_EQ(hold(idb, a), 0);
    quiet();
    counted_refuse(1, true);
    blitz_reference_unref(a);
    blitz_reference_unref(b);
    CHECK_EQ(blitz_sleep(3 * BLITZ_MS), 0);
    CHECK(blitz_actor_is_alive(ida) && blitz_actor_is_alive(idb));
    counted_refuse(0, false);
    (void)blitz_actor_join(ida, NULL, BLITZ_FOREVER);
    (void)blitz_actor_join(idb, NULL, BLITZ_FOREVER);
    CHECK_EQ(unreachable, 2);
    return 0;
}

TEST(unreachable, a_pass_without_memory_is_made_again)
{
    bz_detect_pause_ns = bz_detect_limit_ns = 0;
    CHECK_EQ(blitz_run(scarce, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}), 0);
    CHECK_EQ(counted_blocks(), 0);
}

/* A suspect does not answer. Beside it a circle, some timers, and an allocation that is refused. */
struct refusal {
    int timers;
    long nth;
};

static int beside_a_busy_suspect(void *arg)
{
    const struct refusal *f = arg;
    begin();
    blitz_reference *busy = node_new(), *held = node_new();
    blitz_reference *a = node_new(), *b = node_new();
    blitz_actor_id idb = blitz_reference_id(busy);
    CHECK_EQ(hold(idb, held), 0);
    CHECK_EQ(hold(blitz_reference_id(a), b), 0);
    CHECK_EQ(hold(blitz_reference_id(b), a), 0);
    quiet();
    CHECK_EQ(blitz_actor_send(idb, WAIT, &(uint64_t){BLITZ_S * 3600}, sizeof(uint64_t)), 0);
    for (int i = 0; i < f->timers; i++)
        CHECK_EQ(
            blitz_actor_send_after(blitz_reference_id(held), ASK, NULL, 0, BLITZ_FOREVER, NULL), 0);
    counted_refuse(f->nth, false);
    blitz_reference_unref(blitz_reference_ref(busy)); /* it holds another: a suspect */
    blitz_reference_unref(a);
    blitz_reference_unref(b);
    while (unreachable < 2)
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    counted_refuse(0, false);
    CHECK(blitz_actor_is_alive(idb));
    CHECK_EQ(blitz_actor_kill(idb), 0);
    blitz_reference_unref(busy);
    blitz_reference_unref(held);
    return 0;
}

/* The tick that ends a pass takes memory, too, when the timers have used up a block. Without the tick the pass would wait for ever. */
TEST(unreachable, a_pass_without_memory_for_its_limit_ends)
{
    bz_detect_pause_ns = 0;
    bz_detect_limit_ns = BLITZ_MS;
    for (int i = 0; i < 48 * 3; i++) {
        struct refusal f = {i / 3, i % 3 + 1};
        t_watch("%d timers, allocation %ld", f.timers, f.nth);
        CHECK_EQ(blitz_run(beside_a_busy_suspect, &f,
                           &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}

/* ---- a dead holder, and no memory to collect it ---- */

/* The actor holds the other one no more. From here on the nth allocation is refused. */
BLITZ_HANDLER(on_forget, struct node, long)
{
    (void)m;
    state->next = NULL;
    counted_refuse(*data, false);
    return 0;
}

static const blitz_handler lazy_handlers[] = {BLITZ_ON_EMPTY(HOLD, on_hold),
                                              BLITZ_ON(LET_GO, long, on_forget)};
static const blitz_behaviour lazy = {.name = "lazy",
                                     .state_bytes = sizeof(struct node),
                                     .state_type = &unreachable_node,
                                     .handlers = lazy_handlers,
                                     .handler_count = BZ_ARRAY_LEN(lazy_handlers),
                                     .end_unreachable = true};

static int forgets(void *arg)
{
    long nth = *(long *)arg;
    blitz_reference *a, *b = node_new();
    blitz_actor_id ida, idb = blitz_reference_id(b);
    CHECK_EQ(blitz_reference_spawn(&lazy, NULL, NULL, &a), 0);
    ida = blitz_reference_id(a);
    CHECK_EQ(hold(ida, b), 0);
    blitz_reference_unref(b);
    CHECK_EQ(blitz_actor_send(ida, LET_GO, &nth, sizeof nth), 0);
    int rc = blitz_actor_join(idb, NULL, blitz_after(20 * BLITZ_S));
    CHECK(rc == 0 || rc == -ESRCH || rc == -ENOMEM);
    while (rc == -ENOMEM && blitz_actor_is_alive(idb)) /* the join itself was refused */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    counted_refuse(0, false);
    CHECK(blitz_actor_is_alive(ida));
    blitz_reference_unref(a);
    return 0;
}

/* The actor that has let go is idle, so it does not collect by itself again. */
TEST(unreachable, a_dead_holder_is_collected_although_memory_was_refused_once)
{
    bz_detect_pause_ns = bz_detect_limit_ns = 0;
    for (long nth = 1; nth <= 12; nth++) {
        t_watch("allocation %ld", nth);
        CHECK_EQ(blitz_run(forgets, &nth, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}
