/* Binaries and blocks: shared, sliced, moved; and freed with every message that no handler sees. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/counted.h"
#include "support/on_each.h"

enum { SUM, TAKE, LOOK, PASS, GIVE, LATER, HANG, FAIL, ECHO, ODD };

struct holder {
    long sum;
    void *held;
    blitz_reply_to asked;
};

/* Add the bytes of a binary or a block. */
BLITZ_HANDLER(on_sum, struct holder, void)
{
    (void)data;
    const unsigned char *at = m->binary != NULL
                                  ? (const unsigned char *)blitz_binary_data(m->binary)
                                  : (const unsigned char *)m->block;
    size_t size = m->binary != NULL ? blitz_binary_size(m->binary)
                  : at != NULL      ? blitz_msg_size(at)
                                    : 0;
    for (size_t i = 0; i < size; i++)
        state->sum += at[i];
    return 0;
}

BLITZ_HANDLER(on_take, struct holder, void)
{
    (void)data;
    blitz_msg_drop(state->held);
    state->held = blitz_msg_take(m);
    CHECK_EQ(state->held, m->block);
    CHECK_NULL(blitz_msg_take(m)); /* once */
    return 0;
}

BLITZ_HANDLER(on_look, struct holder, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, &state->sum, sizeof state->sum);
}

struct pass {
    blitz_actor_id next;
    int hops;
};

/* Send the block on, with one byte more written. */
BLITZ_HANDLER(on_pass, struct holder, struct pass)
{
    (void)state;
    struct pass on = {data->next, data->hops - 1};
    unsigned char *block = (unsigned char *)blitz_msg_take(m);
    block[on.hops] = (unsigned char)on.hops;
    int rc = blitz_actor_send_with(data->next, on.hops > 0 ? PASS : TAKE, &on,
                                   on.hops > 0 ? sizeof on : 0,
                                   &(blitz_cargo){.move = BLITZ_MOVE(block)});
    CHECK(rc != 0 || block == NULL);
    if (rc != 0)
        blitz_msg_drop(block);
    return 0;
}

BLITZ_HANDLER(on_give, struct holder, void)
{
    (void)data;
    if (state->held == NULL)
        return blitz_actor_reply_error(m->reply, -EAGAIN);
    int rc = blitz_actor_reply_with(m->reply, &state->sum, sizeof state->sum,
                                    &(blitz_cargo){.move = BLITZ_MOVE(state->held)});
    CHECK_NULL(state->held);
    return rc;
}

BLITZ_HANDLER(on_later, struct holder, void)
{
    (void)data;
    state->asked = m->reply;
    return blitz_actor_reply_keep(m->reply);
}

BLITZ_HANDLER(on_hang, struct holder, void)
{
    (void)state, (void)data, (void)m;
    return blitz_sleep_until(BLITZ_FOREVER);
}

BLITZ_HANDLER(on_fail, struct holder, void)
{
    (void)state, (void)data, (void)m;
    return -EIO;
}

/* Answer with the binary that came. */
BLITZ_HANDLER(on_echo, struct holder, void)
{
    (void)data;
    blitz_reply_to to = m->reply.generation != 0 ? m->reply : state->asked;
    return blitz_actor_reply_with(to, NULL, 0, &(blitz_cargo){.binary = m->binary});
}

static void holder_drop(void *state, void *ctx)
{
    (void)ctx;
    blitz_msg_drop(((struct holder *)state)->held);
}

static const blitz_handler handlers[] = {
    BLITZ_ON_EMPTY(SUM, on_sum),   BLITZ_ON_EMPTY(TAKE, on_take),
    BLITZ_ON_EMPTY(LOOK, on_look), BLITZ_ON(PASS, struct pass, on_pass),
    BLITZ_ON_EMPTY(GIVE, on_give), BLITZ_ON_EMPTY(LATER, on_later),
    BLITZ_ON_EMPTY(HANG, on_hang), BLITZ_ON_EMPTY(FAIL, on_fail),
    BLITZ_ON_EMPTY(ECHO, on_echo), BLITZ_ON(ODD, long, on_sum)};
static const blitz_behaviour holder = {.state_bytes = sizeof(struct holder),
                                       .handlers = handlers,
                                       .handler_count = sizeof handlers / sizeof *handlers,
                                       .drop = holder_drop,
                                       .mailbox_max = 1000};

static blitz_actor_id spawn_holder(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&holder, NULL, NULL, &id), 0);
    return id;
}

static long sum_of(blitz_actor_id id)
{
    long sum = -1;
    CHECK_EQ(blitz_actor_call(id, LOOK, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), (int)sizeof sum);
    return sum;
}

static void end(blitz_actor_id id)
{
    int rc = blitz_actor_kill(id);
    CHECK(rc == 0 || rc == -ESRCH);
    rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
}

static blitz_binary *binary_of(size_t size, int byte)
{
    blitz_binary *b;
    CHECK_EQ(blitz_binary_new(size, &b), 0);
    memset(blitz_binary_bytes(b), byte, size);
    return b;
}

static unsigned char *block_of(size_t size, int byte)
{
    unsigned char *block = (unsigned char *)blitz_msg_alloc(size);
    CHECK_NOT_NULL(block);
    memset(block, byte, size);
    return block;
}

static int send_binary(blitz_actor_id to, uint32_t what, blitz_binary *b)
{
    return blitz_actor_send_with(to, what, NULL, 0, &(blitz_cargo){.binary = b});
}

static int send_block(blitz_actor_id to, uint32_t what, unsigned char *block)
{
    int rc = blitz_actor_send_with(to, what, NULL, 0, &(blitz_cargo){.move = BLITZ_MOVE(block)});
    CHECK((rc == 0) == (block == NULL));
    blitz_msg_drop(block); /* if it is still ours */
    return rc;
}

/* ---- binaries alone ---- */

TEST(binary, a_slice_shares_the_bytes_and_keeps_them_alive)
{
    blitz_binary *all, *part, *inner, *none;
    CHECK_EQ(blitz_binary_copy("0123456789", 10, &all), 0);
    CHECK_EQ(blitz_binary_slice(all, 2, 6, &part), 0);
    CHECK_EQ(blitz_binary_slice(part, 1, 3, &inner), 0);
    CHECK_EQ(blitz_binary_slice(part, 6, 0, &none), 0);
    CHECK_EQ(blitz_binary_data(part), (const char *)blitz_binary_data(all) + 2); /* no copy */

    blitz_binary_unref(all);
    blitz_binary_unref(part);

    CHECK_EQ(blitz_binary_size(inner), 3u);
    CHECK_MEM_EQ(blitz_binary_data(inner), "345", 3);
    CHECK_EQ(blitz_binary_size(none), 0u);
    blitz_binary_unref(none);
    blitz_binary_unref(inner);
    blitz_binary_unref(NULL);
}

TEST(binary, only_the_single_holder_of_the_whole_may_write)
{
    blitz_binary *b = binary_of(100, 1), *part;
    CHECK_EQ(blitz_binary_slice(b, 0, 100, &part), 0);
    CHECK_NULL(blitz_binary_bytes(b));
    CHECK_NULL(blitz_binary_bytes(part));
    blitz_binary_unref(part);
    CHECK_NOT_NULL(blitz_binary_bytes(b));
    CHECK_EQ(blitz_binary_ref(b), b);
    CHECK_NULL(blitz_binary_bytes(b));
    blitz_binary_unref(b);
    blitz_binary_unref(b);
}

TEST(binary, bad_sizes_and_slices_are_refused)
{
    blitz_binary *b = binary_of(10, 1), *out = NULL;
    CHECK_EQ(blitz_binary_slice(b, 11, 0, &out), -EINVAL);
    CHECK_EQ(blitz_binary_slice(b, 5, 6, &out), -EINVAL);
    CHECK_EQ(blitz_binary_slice(b, 1, SIZE_MAX, &out), -EINVAL);
    CHECK_EQ(blitz_binary_new(SIZE_MAX, &out), -ENOMEM);
    CHECK_EQ(blitz_binary_copy(NULL, 1, &out), -EINVAL);
    CHECK_NULL(blitz_msg_alloc(SIZE_MAX));
    CHECK_NULL(out);
    CHECK_EQ(blitz_binary_copy(NULL, 0, &out), 0);
    CHECK_EQ(blitz_binary_size(out), 0u);
    blitz_binary_unref(out);
    blitz_binary_unref(b);
}

/* ---- in messages ---- */

static int shares(void *arg)
{
    enum { ACTORS = 20 };
    blitz_actor_id id[ACTORS];
    blitz_binary *b = binary_of(5000, 1), *half;
    (void)arg;
    CHECK_EQ(blitz_binary_slice(b, 1000, 2500, &half), 0);
    for (int i = 0; i < ACTORS; i++) {
        id[i] = spawn_holder();
        CHECK_EQ(send_binary(id[i], SUM, b), 0);
        CHECK_EQ(send_binary(id[i], SUM, half), 0);
    }
    blitz_binary_unref(half);
    for (int i = 0; i < ACTORS; i++) {
        CHECK_EQ(sum_of(id[i]), 7500);
        end(id[i]);
    }
    CHECK_NOT_NULL(blitz_binary_bytes(b)); /* every message has given up its reference */
    blitz_binary_unref(b);
    return 0;
}

TEST(binary, one_binary_is_in_many_messages)
{
    t_on_each(shares, NULL, 0);
}

static int moves(void *arg)
{
    enum { HOPS = 100 };
    blitz_actor_id a = spawn_holder(), b = spawn_holder();
    struct pass pass = {b, HOPS};
    unsigned char *block = block_of(HOPS, 0);
    blitz_arrival got;
    (void)arg;
    CHECK_EQ(blitz_actor_send_with(a, PASS, &pass, sizeof pass,
                                   &(blitz_cargo){.move = BLITZ_MOVE(block)}),
             0);
    CHECK_NULL(block);
    for (block = NULL; block == NULL;) { /* b takes it after the last hop; it passes it to itself */
        int rc = blitz_actor_call_with(b, GIVE, NULL, 0, NULL, NULL, 0, &got, BLITZ_FOREVER);
        block = (unsigned char *)got.block;
        CHECK_EQ(rc, block != NULL ? (int)sizeof(long) : -EAGAIN);
    }
    CHECK_EQ(blitz_msg_size(block), (size_t)HOPS);
    for (int i = 0; i < HOPS; i++)
        CHECK_EQ(block[i], i);
    blitz_msg_drop(block);
    end(a);
    end(b);
    return 0;
}

TEST(binary, a_moved_block_has_one_owner_from_hop_to_hop)
{
    t_on_each(moves, NULL, 0);
}

static int refuses(void *arg)
{
    blitz_actor_id dead = spawn_holder(), id = spawn_holder(), full = spawn_holder();
    blitz_binary *b = binary_of(100, 1);
    unsigned char *block = block_of(100, 1), *none = NULL;
    blitz_cargo both = {.binary = b, .move = BLITZ_MOVE(block)};
    blitz_cargo nothing = {.move = BLITZ_MOVE(none)}, binary = {.binary = b};
    blitz_arrival got;
    (void)arg;
    end(dead);
    CHECK_EQ(send_binary(dead, SUM, b), -ESRCH);
    CHECK_EQ(send_block(dead, SUM, block_of(1, 1)), -ESRCH);
    CHECK_EQ(blitz_actor_send_with(id, SUM, NULL, 0, &both), -EINVAL);
    CHECK_EQ(blitz_actor_send_with(id, SUM, NULL, 0, &nothing), -EINVAL);
    CHECK_EQ(blitz_actor_send_with(id, SUM, b, BLITZ_MSG_BYTES_MAX + 1, &binary), -EINVAL);
    CHECK_EQ(blitz_actor_send_with(id, BLITZ_MSG_DOWN, NULL, 0, &binary), -EINVAL);
    CHECK_EQ(blitz_actor_send_after_with(id, SUM, NULL, 0, &both, blitz_after(1), NULL), -EINVAL);
    CHECK_EQ(blitz_actor_send_after_with(dead, SUM, NULL, 0, &binary, blitz_after(1), NULL),
             -ESRCH);
    CHECK_EQ(blitz_actor_call_with(id, LOOK, NULL, 0, &both, NULL, 0, &got, BLITZ_FOREVER),
             -EINVAL);
    CHECK_EQ(blitz_actor_call_with(dead, LOOK, NULL, 0, &binary, NULL, 0, &got, BLITZ_FOREVER),
             -ESRCH);
    CHECK(got.binary == NULL && got.block == NULL);
    blitz_actor_call_future f;
    blitz_actor_call_with_future_init(&f, id, LOOK, NULL, 0, &nothing, NULL, 0, &got);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, -EINVAL);
    CHECK_EQ(blitz_actor_reply_with((blitz_reply_to){0, 0, 0}, NULL, 0, &both), -EINVAL);
    CHECK_NOT_NULL(block);
    CHECK_EQ(blitz_actor_reply_with((blitz_reply_to){0, 0, 0}, NULL, 0,
                                    &(blitz_cargo){.move = BLITZ_MOVE(block)}),
             0); /* not a call: dropped */
    CHECK_NULL(block);
    /* A full mailbox. */
    CHECK_EQ(blitz_actor_send(full, HANG, NULL, 0), 0);
    int rc = 0;
    for (int i = 0; i < 2000 && rc == 0; i++)
        rc = send_block(full, SUM, block_of(1, 1));
    CHECK_EQ(rc, -EAGAIN);
    CHECK_EQ(send_binary(full, SUM, b), -EAGAIN);
    end(full);
    CHECK_EQ(blitz_actor_send_with(id, SUM, NULL, 0, NULL), 0); /* no cargo at all */
    CHECK_EQ(blitz_actor_send_with(id, SUM, NULL, 0, &(blitz_cargo){NULL, NULL, NULL}), 0);
    CHECK_EQ(sum_of(id), 0);
    CHECK_NOT_NULL(blitz_binary_bytes(b));
    blitz_binary_unref(b);
    return 0;
}

TEST(binary, a_refused_send_leaves_the_cargo_with_its_sender)
{
    CHECK_EQ(t_run_alone(refuses, NULL), 0);
}

/* ---- messages that are never handled ---- */

static blitz_binary *witness; /* it outlives the runtime, and tells if a reference is left */

static void send_both(blitz_actor_id to, uint32_t what)
{
    CHECK_EQ(send_binary(to, what, witness), 0);
    CHECK_EQ(send_block(to, what, block_of(200, 7)), 0);
}

static void send_both_later(blitz_actor_id to, blitz_duration after, uint64_t timer[2])
{
    unsigned char *block = block_of(200, 7);
    CHECK_EQ(blitz_actor_send_after_with(to, SUM, NULL, 0, &(blitz_cargo){.binary = witness},
                                         blitz_after(after), &timer[0]),
             0);
    CHECK_EQ(blitz_actor_send_after_with(to, SUM, NULL, 0,
                                         &(blitz_cargo){.move = BLITZ_MOVE(block)},
                                         blitz_after(after), &timer[1]),
             0);
}

static int loses(void *arg)
{
    uint64_t timer[2];
    (void)arg;
    /* No handler; one of another size; one that fails. */
    blitz_actor_id id = spawn_holder();
    send_both(id, 99);
    send_both(id, ODD);
    CHECK_EQ(sum_of(id), 0);
    CHECK_EQ(send_binary(id, FAIL, witness), 0);
    CHECK_EQ(send_block(id, SUM, block_of(10, 1)), 0);
    CHECK(blitz_actor_join(id, NULL, BLITZ_FOREVER) != -ETIMEDOUT);
    /* In the mailbox of one that is killed, idle or not yet begun. */
    id = spawn_holder();
    send_both(id, HANG);
    send_both(id, SUM);
    blitz_yield();
    end(id);
    id = spawn_holder();
    send_both(id, SUM);
    end(id);
    /* A timer that is cancelled; one whose actor has ended. */
    id = spawn_holder();
    send_both_later(id, 3600 * BLITZ_S, timer);
    CHECK_EQ(blitz_actor_timer_cancel(id, timer[0]), 0);
    CHECK_EQ(blitz_actor_timer_cancel(id, timer[1]), 0);
    send_both_later(id, BLITZ_MS, timer);
    end(id);
    CHECK_EQ(blitz_sleep_until(blitz_after(5 * BLITZ_MS)), 0);
    CHECK_NOT_NULL(blitz_binary_bytes(witness));
    /* The end of the runtime: a mailbox, and a timer that is armed. */
    id = spawn_holder();
    send_both(id, HANG);
    send_both(id, SUM);
    send_both_later(id, 3600 * BLITZ_S, timer);
    blitz_yield();
    return 0;
}

TEST(binary, bug_39_the_cargo_of_a_message_that_is_never_handled_is_freed)
{
    t_hold_procs();
    witness = binary_of(300, 1);
    for (unsigned procs = 1; procs <= 2; procs++) {
        CHECK_EQ(
            blitz_run(loses, NULL, &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
            0);
        CHECK_EQ(counted_blocks(), 0);
        CHECK_NOT_NULL(blitz_binary_bytes(witness)); /* ours is the only reference */
    }
    blitz_binary_unref(witness);
}

/* ---- replies ---- */

static int replies(void *arg)
{
    blitz_actor_id id = spawn_holder();
    blitz_binary *b = binary_of(100, 1);
    blitz_cargo cargo = {.binary = b};
    blitz_arrival got;
    (void)arg;
    CHECK_EQ(blitz_actor_call_with(id, ECHO, NULL, 0, &cargo, NULL, 0, &got, BLITZ_FOREVER), 0);
    CHECK_EQ(got.binary, b);
    blitz_binary_unref(got.binary);
    /* As a future; and by a caller that does not want it. */
    blitz_actor_call_future f;
    blitz_actor_call_with_future_init(&f, id, ECHO, NULL, 0, &cargo, NULL, 0, &got);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(got.binary, b);
    blitz_binary_unref(got.binary);
    CHECK_EQ(blitz_actor_call_with(id, ECHO, NULL, 0, &cargo, NULL, 0, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(send_block(id, TAKE, block_of(10, 1)), 0);
    CHECK_EQ(blitz_actor_call(id, GIVE, NULL, 0, NULL, 0, BLITZ_FOREVER), (int)sizeof(long));
    /* A caller that has left, by its deadline and by a cancel: the answer comes late. */
    CHECK_EQ(
        blitz_actor_call_with(id, LATER, NULL, 0, &cargo, NULL, 0, &got, blitz_after(BLITZ_MS)),
        -ETIMEDOUT);
    CHECK_EQ(send_binary(id, ECHO, b), 0);
    blitz_actor_call_with_future_init(&f, id, LATER, NULL, 0, &cargo, NULL, 0, &got);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(send_binary(id, ECHO, b), 0);
    CHECK_EQ(sum_of(id), 0);
    CHECK(got.binary == NULL && got.block == NULL);
    CHECK_NOT_NULL(blitz_binary_bytes(b));
    blitz_binary_unref(b);
    return 0;
}

TEST(binary, a_reply_carries_cargo_and_a_late_one_is_freed)
{
    t_hold_procs();
    CHECK_EQ(blitz_run(replies, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}), 0);
    CHECK_EQ(counted_blocks(), 0);
}

/* ---- plain threads ---- */

static int just_holder(void *arg)
{
    *(blitz_actor_id *)arg = spawn_holder();
    return 0;
}

TEST(binary, a_plain_thread_sends_and_receives_cargo)
{
    blitz_runtime *rt;
    blitz_actor_id id;
    blitz_task *task;
    blitz_arrival got;
    long sum = 0;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_spawn(just_holder, &id, &(blitz_spawn_opts){.runtime = rt}, &task), 0);
    CHECK_EQ(blitz_task_join(task, NULL, BLITZ_FOREVER), 0);
    blitz_binary *b = binary_of(100, 1);
    CHECK_EQ(send_binary(id, SUM, b), 0);
    CHECK_EQ(send_block(id, SUM, block_of(50, 2)), 0);
    CHECK_EQ(send_block(id, TAKE, block_of(50, 2)), 0);
    CHECK_EQ(blitz_actor_call_with(id, GIVE, NULL, 0, NULL, &sum, sizeof sum, &got, BLITZ_FOREVER),
             (int)sizeof sum);
    CHECK_EQ(sum, 200);
    CHECK_EQ(((unsigned char *)got.block)[49], 2);
    blitz_msg_drop(got.block);
    CHECK_NOT_NULL(blitz_binary_bytes(b));
    blitz_binary_unref(b);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}
