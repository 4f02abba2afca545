/* Tasks that receive: matching, order, deadlines, cancels, ends in both directions. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/counted.h"
#include "support/on_each.h"
#include "support/refuse_each.h"

enum { ONE, TWO, ASK, LINK, WATCH, TOLD };

static bool is_what(const blitz_msg *m, void *what)
{
    return m->what == *(uint32_t *)what;
}

static bool is_from(const blitz_msg *m, void *id)
{
    return blitz_actor_id_equal(m->from, *(blitz_actor_id *)id);
}

static blitz_actor_id begin(void)
{
    blitz_actor_id me;
    CHECK_EQ(blitz_receiver_begin(NULL, &me), 0);
    CHECK(blitz_actor_id_equal(blitz_actor_self(), me));
    return me;
}

static void send_long(blitz_actor_id to, uint32_t what, long value)
{
    CHECK_EQ(blitz_actor_send(to, what, &value, sizeof value), 0);
}

static long value_of(const blitz_msg *m)
{
    CHECK_EQ(m->size, sizeof(long));
    return *(const long *)m->data;
}

/* ---- matching ---- */

static int chooses(void *arg)
{
    blitz_actor_id me = begin();
    const blitz_msg *m;
    uint32_t one = ONE, two = TWO;
    (void)arg;
    for (long i = 0; i < 10; i++)
        send_long(me, i % 2 == 0 ? ONE : TWO, i);
    for (long i = 1; i < 10; i += 2) {
        CHECK_EQ(blitz_receive(is_what, &two, &m, BLITZ_FOREVER), 0);
        CHECK_EQ(value_of(m), i);
        CHECK(blitz_actor_id_equal(m->from, me));
    }
    CHECK_EQ(blitz_receive(is_what, &two, &m, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    send_long(me, TWO, 11);
    CHECK_EQ(blitz_receive(is_what, &one, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(value_of(m), 0); /* those that were left are in order */
    CHECK_EQ(blitz_receive(is_what, &two, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(value_of(m), 11); /* the last of the list was taken */
    send_long(me, ONE, 12);
    for (long i = 2; i <= 8; i += 2) {
        CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
        CHECK_EQ(value_of(m), i);
    }
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(value_of(m), 12);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, blitz_after(0)), -ETIMEDOUT);
    return 0;
}

TEST(receive, unmatched_messages_stay_in_order)
{
    t_on_each(chooses, NULL, 0);
}

static int sends_many(void *to)
{
    (void)begin();
    for (long i = 1; i <= 500; i++)
        send_long(*(blitz_actor_id *)to, ONE, i);
    return 0;
}

static int is_many(void *arg)
{
    enum { SENDERS = 4 };
    blitz_actor_id me = begin(), from[SENDERS];
    blitz_task *task[SENDERS];
    const blitz_msg *m;
    long last[SENDERS] = {0};
    (void)arg;
    memset(from, 0, sizeof from);
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(blitz_spawn(sends_many, &me, NULL, &task[i]), 0);
    for (int i = 0; i < SENDERS; i++) { /* all of one, then all of the next */
        CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
        from[i] = m->from;
        last[i] = value_of(m);
        CHECK_EQ(last[i], 1);
        while (last[i] < 500) {
            CHECK_EQ(blitz_receive(is_from, &from[i], &m, BLITZ_FOREVER), 0);
            CHECK_EQ(value_of(m), ++last[i]);
        }
    }
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(receive, messages_of_one_sender_are_in_order)
{
    t_on_each(is_many, NULL, 0);
}

/* ---- a full inbox ---- */

/* Send to ourselves until the mailbox is full. Returns the number of messages. */
static long fill(blitz_actor_id me)
{
    long sent = 0;
    blitz_actor_info info;
    for (int i = 0; i < 3; i++) { /* about: messages that the small actor is at count twice */
        while (blitz_actor_send(me, ONE, &sent, sizeof sent) == 0)
            sent++;
        CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0); /* all are in the inbox */
        CHECK_EQ(blitz_actor_info_get(me, &info), 0);
        CHECK_EQ(info.mailbox, sent); /* and still count */
    }
    return sent;
}

static int overflows(void *arg)
{
    blitz_actor_id me = begin();
    const blitz_msg *m;
    (void)arg;
    long sent = fill(me);
    CHECK(sent >= 100000 && sent <= 100010);
    for (long i = 0; i < sent; i++) {
        CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
        CHECK_EQ(value_of(m), i);
    }
    (void)fill(me);
    return 0; /* its end does not wait for room */
}

TEST(receive, a_full_inbox_refuses_senders_and_loses_nothing)
{
    t_hold_procs();
    CHECK_EQ(blitz_run(overflows, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
             0);
    CHECK_EQ(counted_blocks(), 0);
}

/* ---- calls, cargo, futures ---- */

static int serves(void *arg)
{
    const blitz_msg *m;
    (void)arg;
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "server"}, NULL), 0);
    while (blitz_receive(NULL, NULL, &m, BLITZ_FOREVER) == 0)
        if (m->what == ASK) {
            long answer = m->binary != NULL ? (long)blitz_binary_size(m->binary) : 7;
            CHECK_EQ(blitz_actor_reply(m->reply, &answer, sizeof answer), 0);
        }
    return 0;
}

static int is_called(void *arg)
{
    blitz_actor_id server, me = begin();
    blitz_task *task;
    blitz_binary *b;
    const blitz_msg *m;
    long answer = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(serves, NULL, NULL, &task), 0);
    while ((server = blitz_actor_whereis(NULL, "server")).generation == 0)
        blitz_yield();
    CHECK_EQ(blitz_actor_call(server, ASK, NULL, 0, &answer, sizeof answer, BLITZ_FOREVER),
             (int)sizeof answer);
    CHECK_EQ(answer, 7);
    CHECK_EQ(blitz_binary_new(1234, &b), 0);
    CHECK_EQ(blitz_actor_call_with(server, ASK, NULL, 0, &(blitz_cargo){.binary = b}, &answer,
                                   sizeof answer, NULL, BLITZ_FOREVER),
             (int)sizeof answer);
    CHECK_EQ(answer, 1234);
    /* A block: taken from the message, or freed by the next receive. */
    for (int i = 0; i < 3; i++) {
        void *block = blitz_msg_alloc(100);
        memset(block, i, 100);
        CHECK_EQ(blitz_actor_send_with(me, ONE, NULL, 0, &(blitz_cargo){.move = BLITZ_MOVE(block)}),
                 0);
        CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
        CHECK_EQ(((unsigned char *)m->block)[99], i);
        if (i == 1)
            blitz_msg_drop(blitz_msg_take(m));
    }
    CHECK_EQ(blitz_actor_send_with(me, ONE, NULL, 0, &(blitz_cargo){.binary = b}), 0); /* left */
    CHECK_EQ(blitz_actor_stop(server), 0);
    CHECK_EQ(blitz_task_join(task, NULL, BLITZ_FOREVER), 0);
    CHECK(!blitz_actor_is_alive(server));
    CHECK_EQ(blitz_receiver_end(NULL), 0);
    CHECK_EQ(blitz_actor_self().generation, 0u);
    CHECK_NOT_NULL(blitz_binary_bytes(b));
    blitz_binary_unref(b);
    return 0;
}

TEST(receive, answers_calls_and_gets_cargo)
{
    for (unsigned procs = 1; procs <= 3; procs++) {
        CHECK_EQ(blitz_run(is_called, NULL,
                           &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}

static void do_nothing(void *data)
{
    (void)data;
}

static const blitz_waker_ops none_ops = {do_nothing, do_nothing, do_nothing, do_nothing};
static const blitz_waker no_waker = {&none_ops, NULL};

static int awaits(void *arg)
{
    blitz_actor_id me = begin();
    blitz_receive_future f, other;
    const blitz_msg *m;
    uint32_t two = TWO;
    (void)arg;
    send_long(me, ONE, 1);
    blitz_receive_future_init(&f, is_what, &two);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT); /* cancelled */
    CHECK_EQ(f.result, -ECANCELED);
    blitz_receive_future_init(&f, is_what, &two);
    CHECK_EQ(f.future.ops->poll(&f.future, &no_waker), BLITZ_PENDING);
    blitz_receive_future_init(&other, NULL, NULL);
    CHECK_EQ(blitz_await(&other.future, BLITZ_FOREVER), 0);
    CHECK_EQ(other.result, -EBUSY);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), -EBUSY);
    CHECK_EQ(blitz_receiver_end(NULL), -EBUSY);
    f.future.ops->cancel(&f.future);
    blitz_receive_future_init(&f, is_what, &two);
    send_long(me, TWO, 2);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(value_of(f.msg), 2);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0); /* no message was lost */
    CHECK_EQ(value_of(m), 1);
    return 0;
}

TEST(receive, a_future_takes_one_message_or_none)
{
    CHECK_EQ(t_run_alone(awaits, NULL), 0);
}

/* A stackless task receives, too. */
struct stackless {
    int step;
    blitz_receive_future f;
    blitz_actor_id *out;
    atomic_long *sum;
};

static blitz_poll stackless_poll(void *state, blitz_cx *cx)
{
    struct stackless *s = state;
    if (s->step == 0) {
        CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "stackless"}, s->out), 0);
        blitz_receive_future_init(&s->f, NULL, NULL);
        s->step = 1;
    }
    while (s->f.future.ops->poll(&s->f.future, cx->waker) == BLITZ_READY) {
        if (s->f.result != 0 || s->f.msg->what == TWO) {
            cx->result = -EIO;
            return BLITZ_READY;
        }
        *s->sum += value_of(s->f.msg);
        blitz_receive_future_init(&s->f, NULL, NULL);
    }
    return BLITZ_PENDING;
}

static int polls(void *arg)
{
    blitz_actor_id id = {0, 0, 0, 0}, none = id;
    atomic_long sum = 0;
    blitz_task *task;
    (void)arg;
    struct stackless s = {.out = &none, .sum = &sum};
    CHECK_EQ(blitz_spawn_poll(stackless_poll, &s, sizeof s, NULL, &task), 0);
    while ((id = blitz_actor_whereis(NULL, "stackless")).generation == 0)
        blitz_yield();
    for (long i = 1; i <= 100; i++)
        send_long(id, ONE, i);
    blitz_exit_reason why;
    blitz_actor_join_future end;
    blitz_actor_join_future_init(&end, id, &why);
    CHECK_EQ(end.future.ops->poll(&end.future, &no_waker), BLITZ_PENDING);
    CHECK_EQ(blitz_actor_send(id, TWO, NULL, 0), 0);
    CHECK_EQ(blitz_task_join(task, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(sum, 5050);
    CHECK(!blitz_actor_is_alive(id));
    CHECK_EQ(blitz_await(&end.future, BLITZ_FOREVER), 0);
    CHECK_EQ(why.kind, BLITZ_EXIT_ERROR); /* as that of a fiber */
    CHECK_EQ(why.code, -EIO);
    return 0;
}

TEST(receive, a_stackless_task_receives_by_futures)
{
    t_on_each(polls, NULL, 0);
}

static int of_a_scope(void *arg)
{
    blitz_actor_id *id = arg;
    return blitz_receiver_begin(&(blitz_actor_opts){.name = "member"}, id);
}

static int in_scopes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        blitz_scope s;
        blitz_actor_id id;
        CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_scope_spawn(&s, of_a_scope, &id, NULL), 0); /* the name is free again */
        CHECK_EQ(blitz_scope_close(&s), 0);
        CHECK(!blitz_actor_is_alive(id));
    }
    return 0;
}

TEST(receive, the_id_of_a_task_ends_before_its_scope)
{
    t_on_each(in_scopes, NULL, 0);
}

/* ---- ends ---- */

struct watcher {
    blitz_reply_to asked;
};

BLITZ_HANDLER(on_watch, struct watcher, blitz_actor_id)
{
    uint64_t ref;
    state->asked = m->reply;
    CHECK_EQ(blitz_actor_reply_keep(m->reply), 0);
    CHECK_EQ(blitz_actor_monitor(*data, &ref), 0);
    (void)blitz_actor_send(*data, TOLD, NULL, 0); /* it is watched; or has ended */
    return 0;
}

BLITZ_HANDLER(on_down, struct watcher, blitz_down)
{
    (void)m;
    long said = (long)data->reason.kind * 1000 - data->reason.code;
    return blitz_actor_reply(state->asked, &said, sizeof said);
}

BLITZ_HANDLER(on_link, struct watcher, blitz_actor_id)
{
    (void)state, (void)m;
    int rc = blitz_actor_link(*data);
    return rc != 0 ? rc : -EIO; /* and fails */
}

static const blitz_handler watcher_handlers[] = {BLITZ_ON(WATCH, blitz_actor_id, on_watch),
                                                 BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_down),
                                                 BLITZ_ON(LINK, blitz_actor_id, on_link)};
static const blitz_behaviour watcher = {
    .state_bytes = sizeof(struct watcher), .handlers = watcher_handlers, .handler_count = 3};

struct mortal {
    blitz_actor_id id;
    int result, got;
    bool traps, hangs;
    atomic_bool is_begun, is_told;
};

/* Begin, say so, wait until a watcher is there, then end with `result`; or wait for the end. */
static int mortal(void *arg)
{
    struct mortal *x = arg;
    const blitz_msg *m;
    uint32_t told = TOLD, last = x->traps ? BLITZ_MSG_EXIT : 99; /* which never comes */
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.trap_exit = x->traps}, &x->id), 0);
    x->is_begun = true;
    CHECK_EQ(blitz_receive(is_what, &told, &m, BLITZ_FOREVER), 0);
    x->is_told = true;
    if (!x->hangs)
        return x->result;
    x->got = blitz_receive(is_what, &last, &m, BLITZ_FOREVER);
    if (x->traps) {
        CHECK_EQ(x->got, 0);
        CHECK_EQ(((const blitz_down *)m->data)->reason.code, -EIO);
    } else {
        CHECK_EQ(blitz_sleep_until(BLITZ_FOREVER), -ECANCELED); /* as all its waits */
        CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), -ECANCELED);
    }
    return 0;
}

/* Returns what the watcher was told. */
static long watch_end(struct mortal *x, int (*end_it)(struct mortal *x))
{
    blitz_actor_id w;
    blitz_task *task;
    blitz_actor_call_future f;
    long said = -1;
    CHECK_EQ(blitz_actor_spawn(&watcher, NULL, NULL, &w), 0);
    CHECK_EQ(blitz_spawn(mortal, x, NULL, &task), 0);
    while (!x->is_begun)
        blitz_yield();
    blitz_actor_call_future_init(&f, w, WATCH, &x->id, sizeof x->id, &said, sizeof said);
    if (end_it != NULL)
        CHECK_EQ(end_it(x), 0);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, (int)sizeof said);
    CHECK_EQ(blitz_task_join(task, NULL, BLITZ_FOREVER), 0);
    CHECK(!blitz_actor_is_alive(x->id)); /* when the task has ended, so has the id */
    CHECK_EQ(blitz_actor_send(x->id, ONE, NULL, 0), -ESRCH);
    CHECK_EQ(blitz_actor_kill(w), 0);
    return said;
}

static void tell(struct mortal *x)
{
    CHECK_EQ(blitz_actor_send(x->id, TOLD, NULL, 0), 0);
    while (!x->is_told)
        blitz_yield();
}

static int kill_late(struct mortal *x)
{
    tell(x);
    return blitz_actor_kill(x->id);
}

static int link_fails(struct mortal *x)
{
    blitz_actor_id other;
    tell(x);
    CHECK_EQ(blitz_actor_spawn(&watcher, NULL, NULL, &other), 0);
    return blitz_actor_send(other, LINK, &x->id, sizeof x->id);
}

static int ends(void *arg)
{
    (void)arg;
    struct mortal normal = {.result = 5}, error = {.result = -EIO}, killed = {.hangs = true};
    struct mortal linked = {.hangs = true}, traps = {.hangs = true, .traps = true};
    CHECK_EQ(watch_end(&normal, NULL), BLITZ_EXIT_NORMAL * 1000);
    CHECK_EQ(watch_end(&error, NULL), BLITZ_EXIT_ERROR * 1000 + EIO);
    (void)watch_end(&killed, kill_late);
    CHECK_EQ(killed.got, -ECANCELED);
    (void)watch_end(&linked, link_fails);
    CHECK_EQ(linked.got, -ECANCELED);
    (void)watch_end(&traps, link_fails);
    CHECK_EQ(traps.got, 0);
    return 0;
}

TEST(receive, the_end_of_the_task_and_the_end_of_the_id_are_one)
{
    t_hold_procs();
    for (unsigned procs = 1; procs <= 3; procs++) {
        CHECK_EQ(
            blitz_run(ends, NULL, &(blitz_runtime_opts){.procs = procs, .allocator = &counted}), 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}

static int waits_for_ever(void *out)
{
    const blitz_msg *m;
    uint32_t two = TWO;
    *(blitz_actor_id *)out = begin();
    int rc = blitz_receive(is_what, &two, &m, BLITZ_FOREVER);
    CHECK_EQ(rc, -ECANCELED);
    return rc;
}

static int calls_unheard(void *id)
{
    return blitz_actor_call(*(blitz_actor_id *)id, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER);
}

/* A cancel of the task; calls in its inbox are answered. And one that is left to the end of the runtime. */
static int is_cancelled(void *arg)
{
    static blitz_actor_id left;
    blitz_actor_id id = {0, 0, 0, 0};
    blitz_task *task, *caller;
    int rc;
    (void)arg;
    CHECK_EQ(blitz_spawn(waits_for_ever, &id, NULL, &task), 0);
    for (int i = 0; i < 5; i++)
        blitz_yield();
    CHECK_EQ(blitz_spawn(calls_unheard, &id, NULL, &caller), 0);
    for (int i = 0; i < 5; i++)
        blitz_yield();
    blitz_task_cancel(task);
    CHECK_EQ(blitz_task_join(caller, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, -ESRCH);
    CHECK_EQ(blitz_task_join(task, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, -ECANCELED);
    CHECK_EQ(blitz_spawn(waits_for_ever, &left, NULL, NULL), 0);
    for (int i = 0; i < 5; i++)
        blitz_yield();
    send_long(left, ONE, 1);
    return 0;
}

TEST(receive, a_cancel_ends_it_and_answers_its_calls)
{
    t_hold_procs();
    CHECK_EQ(
        blitz_run(is_cancelled, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}), 0);
    CHECK_EQ(counted_blocks(), 0);
}

/* ---- misuse ---- */

static int misuses(void *arg)
{
    const blitz_msg *m;
    uint64_t ref;
    (void)arg;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_receiver_end(NULL), -EINVAL);
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.link = true}, NULL), -EINVAL);
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.monitor = &ref}, NULL), -EINVAL);
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "me"}, NULL), 0);
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), -EEXIST);
    CHECK(blitz_actor_id_equal(blitz_actor_whereis(NULL, "me"), blitz_actor_self()));
    CHECK_EQ(blitz_receiver_end(&(blitz_exit_reason){.kind = BLITZ_EXIT_SHUTDOWN}), 0);
    CHECK_EQ(blitz_actor_whereis(NULL, "me").generation, 0u);
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "me"}, NULL), 0); /* again */
    return 0;
}

TEST(receive, is_for_tasks_that_have_begun)
{
    const blitz_msg *m;
    CHECK_EQ(t_run_alone(misuses, NULL), 0);
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), -EINVAL);
}

/* Each allocation refused in turn. Without memory for a message the receiver ends, and says so. */
static int is_scarce(void *arg)
{
    blitz_actor_id me;
    const blitz_msg *m;
    (void)arg;
    int rc = blitz_receiver_begin(&(blitz_actor_opts){.name = "me"}, &me);
    if (rc == 0)
        rc = blitz_actor_send(me, ONE, NULL, 0);
    if (rc == 0)
        rc = blitz_receive(NULL, NULL, &m, BLITZ_FOREVER);
    return rc == -ECANCELED ? -ENOMEM : rc;
}

TEST(receive, each_refused_allocation_is_an_error_and_no_leak)
{
    t_hold_procs();
    for (int all = 0; all < 2; all++)
        t_refuse_each(is_scarce, NULL, all);
}

/* ---- futures that were made before the id ended ---- */

static int polls_late(void *arg)
{
    blitz_receive_future first, second, third;
    blitz_actor_id id;
    (void)arg;
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), 0);
    blitz_receive_future_init(&first, NULL, NULL);
    blitz_receive_future_init(&second, NULL, NULL);
    blitz_receive_future_init(&third, NULL, NULL);
    CHECK_EQ(blitz_receiver_end(NULL), 0); /* none of them receives yet */
    CHECK_EQ(blitz_await(&first.future, BLITZ_FOREVER), 0);
    CHECK_EQ(first.result, -EINVAL);
    second.future.ops->cancel(&second.future);
    CHECK_EQ(second.result, -ECANCELED);
    CHECK_EQ(blitz_receiver_begin(NULL, &id), 0);
    CHECK_EQ(blitz_actor_send(id, 1, NULL, 0), 0);
    CHECK_EQ(blitz_await(&third.future, BLITZ_FOREVER), 0);
    CHECK_EQ(third.result, 0); /* of the id that the task has now */
    CHECK_EQ(third.msg->what, 1u);
    return 0;
}

/* They had the address of an inbox that was freed. */
TEST(receive, a_future_that_is_polled_first_after_the_end_of_the_id_receives_nothing)
{
    t_on_each(polls_late, NULL, 0);
}

/* ---- an end without memory ---- */

enum { TAKE_ALL, WATCH_IT };
static atomic_bool is_held;
static atomic_int heard; /* the kind of the reason, plus 1 */

BLITZ_HANDLER(on_take_all, void, void)
{
    (void)state, (void)data, (void)m;
    while (is_held)
        blitz_yield();
    return 0;
}

BLITZ_HANDLER(on_watch_it, void, blitz_actor_id)
{
    uint64_t ref;
    (void)state, (void)m;
    return blitz_actor_monitor(*data, &ref);
}

BLITZ_HANDLER(on_its_end, void, blitz_down)
{
    (void)state, (void)m;
    heard = (int)data->reason.kind + 1;
    return 0;
}

static const blitz_handler takers[] = {{TAKE_ALL, BLITZ_ANY_SIZE, on_take_all},
                                       BLITZ_ON(WATCH_IT, blitz_actor_id, on_watch_it),
                                       BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_its_end)};
static const blitz_behaviour taker = {
    .name = "taker", .handlers = takers, .handler_count = 3, .mailbox_high = 100000};

static int ends_without_memory(void *arg)
{
    static const char payload[BLITZ_MSG_BYTES_MAX];
    blitz_actor_id id, watching, hoard;
    (void)arg;
    CHECK_EQ(blitz_receiver_begin(NULL, &id), 0);
    CHECK_EQ(blitz_actor_spawn(&taker, NULL, NULL, &watching), 0);
    CHECK_EQ(blitz_actor_spawn(&taker, NULL, NULL, &hoard), 0);
    CHECK_EQ(blitz_actor_send(watching, WATCH_IT, &id, sizeof id), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    is_held = true;
    counted_refuse(1, true);
    while (blitz_actor_send(hoard, TAKE_ALL, payload, sizeof payload) == 0)
        ;
    CHECK_EQ(blitz_receiver_end(NULL), 0);
    CHECK(!blitz_actor_is_alive(id)); /* it was not, without a join */
    counted_refuse(0, false);
    is_held = false;
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(heard, (int)BLITZ_EXIT_NORMAL + 1); /* it was a kill */
    return 0;
}

/* An end that needs memory for its own reason would fail the links of a task that ends well. */
TEST(receive, a_task_ends_its_id_with_its_reason_without_memory)
{
    CHECK_EQ(blitz_run(ends_without_memory, NULL,
                       &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
             0);
    CHECK_EQ(counted_blocks(), 0);
}

/* ---- forked jobs ---- */

static const blitz_local_key probe;

/* The task waits in the join meanwhile, or goes on: two would receive from one mailbox at a time. */
static int job_receives(void *arg)
{
    blitz_exit_reason why = {
        .kind = BLITZ_EXIT_ERROR, .code = -EIO, .text = "of a frame that has gone"};
    const blitz_msg *m;
    blitz_receive_future f;
    int value = 0;
    if (blitz_local_set(&probe, &value) == 0) { /* it was called by the join: it is the task */
        CHECK_EQ(blitz_local_set(&probe, NULL), 0);
        return 0;
    }
    CHECK_EQ(blitz_receive(NULL, NULL, &m, 0), -EPERM);
    blitz_receive_future_init(&f, NULL, NULL);
    CHECK_EQ(blitz_await(&f.future, 0), 0);
    CHECK_EQ(f.result, -EPERM);
    CHECK_EQ(blitz_receiver_end(&why), -EPERM);
    *(int *)arg = 1;
    return 0;
}

static int forks_and_leaves(void *arg)
{
    blitz_job job;
    int has_run = 0;
    const blitz_msg *m;
    blitz_actor_id me = begin();
    (void)arg;
    send_long(me, ONE, 7);
    for (int round = 0; round < 100 && !has_run; round++) {
        blitz_fork(&job, job_receives, &has_run);
        CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0); /* leaves the frame: the job goes to the queues */
        blitz_join(&job);
    }
    CHECK(has_run);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, 0), 0); /* it is still there */
    CHECK_EQ(value_of(m), 7);
    return 0;
}

static int forker_ends_well(void *arg)
{
    blitz_task *t;
    int result;
    (void)arg;
    CHECK_EQ(blitz_spawn(forks_and_leaves, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(receive, a_forked_job_elsewhere_neither_receives_nor_ends_the_id)
{
    t_on_each(forker_ends_well, NULL, 0);
}
