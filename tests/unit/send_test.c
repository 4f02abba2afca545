/* A send in all its forms: what arrives is what was sent, with the name of its sender. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/counted.h"
#include "support/on_each.h"

enum { TAKE, FORWARD };

struct order {
    blitz_actor_id to;
    uint32_t size;
};

static struct {
    uint32_t what, size;
    unsigned char data[BLITZ_MSG_BYTES_MAX];
    blitz_actor_id from;
} last;
static atomic_int taken;

static void fill(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i + size + 1);
}

static int on_take(void *state, const blitz_msg *m)
{
    (void)state;
    last.what = m->what;
    last.size = m->size;
    last.from = m->from;
    memcpy(last.data, m->data, m->size);
    taken++;
    return 0;
}

/* An actor sends a message of that size. */
BLITZ_HANDLER(on_forward, void, struct order)
{
    unsigned char bytes[BLITZ_MSG_BYTES_MAX];
    (void)state, (void)m;
    fill(bytes, data->size);
    return blitz_actor_send(data->to, TAKE, data->size > 0 ? bytes : NULL, data->size);
}

static const blitz_handler handlers[] = {{TAKE, BLITZ_ANY_SIZE, on_take},
                                         BLITZ_ON(FORWARD, struct order, on_forward)};
static const blitz_behaviour party = {.name = "party", .handlers = handlers, .handler_count = 2};

static void await_message(int count)
{
    while (taken < count)
        blitz_yield();
}

static void check_last(size_t size, blitz_actor_id from)
{
    unsigned char bytes[BLITZ_MSG_BYTES_MAX];
    fill(bytes, size);
    CHECK_EQ(last.what, TAKE);
    CHECK_EQ(last.size, size);
    CHECK_MEM_EQ(last.data, bytes, size);
    CHECK(blitz_actor_id_equal(last.from, from));
}

static int all_sizes(void *arg)
{
    static const blitz_actor_id none;
    unsigned char bytes[BLITZ_MSG_BYTES_MAX + 1];
    blitz_actor_id to, by;
    (void)arg;
    taken = 0;
    CHECK_EQ(blitz_actor_spawn(&party, NULL, NULL, &to), 0);
    CHECK_EQ(blitz_actor_spawn(&party, NULL, NULL, &by), 0);
    for (uint32_t size = 0; size <= BLITZ_MSG_BYTES_MAX; size++) {
        fill(bytes, size);
        CHECK_EQ(blitz_actor_send(to, TAKE, size > 0 ? bytes : NULL, size), 0);
        await_message(taken + 1);
        check_last(size, none);
        CHECK_EQ(blitz_actor_send(by, FORWARD, &(struct order){to, size}, sizeof(struct order)), 0);
        await_message(taken + 1);
        check_last(size, by);
    }
    CHECK_EQ(blitz_actor_send(to, TAKE, bytes, sizeof bytes), -EINVAL);
    CHECK_EQ(blitz_actor_send(to, TAKE, NULL, 1), -EINVAL);
    CHECK_EQ(blitz_actor_send(to, BLITZ_MSG_DOWN, NULL, 0), -EINVAL);
    CHECK_EQ(taken, 2 * (BLITZ_MSG_BYTES_MAX + 1));
    return 0;
}

/* Small payloads are copied in a way of their own. */
TEST(send, a_payload_of_any_size_arrives_whole_with_its_sender)
{
    CHECK_EQ(t_run_alone(all_sizes, NULL), 0);
}

static int receiver_sends(void *arg)
{
    static const blitz_actor_id none;
    blitz_actor_id to, me;
    uint64_t word = 1;
    (void)arg;
    taken = 0;
    CHECK_EQ(blitz_actor_spawn(&party, NULL, NULL, &to), 0);
    CHECK_EQ(blitz_receiver_begin(NULL, &me), 0);
    CHECK_EQ(blitz_actor_send(to, TAKE, &word, sizeof word), 0);
    await_message(1);
    CHECK(blitz_actor_id_equal(last.from, me));
    CHECK_EQ(blitz_receiver_end(NULL), 0);
    CHECK_EQ(blitz_actor_send(to, TAKE, &word, sizeof word), 0);
    await_message(2);
    CHECK(blitz_actor_id_equal(last.from, none));
    return 0;
}

/* A task that receives has an id, and its messages carry it. */
TEST(send, a_message_of_a_task_that_receives_carries_its_id)
{
    CHECK_EQ(t_run_alone(receiver_sends, NULL), 0);
}

static int wrong_ids(void *arg)
{
    blitz_actor_id to, other;
    uint64_t word = 1;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&party, NULL, NULL, &to), 0);
    other = (blitz_actor_id){0, 0, 0, 0};
    CHECK_EQ(blitz_actor_send(other, TAKE, &word, sizeof word), -ESRCH);
    other = to;
    other.node = 1;
    CHECK_EQ(blitz_actor_send(other, TAKE, &word, sizeof word), -ESRCH);
    other = to;
    other.generation += 2;
    CHECK_EQ(blitz_actor_send(other, TAKE, &word, sizeof word), -ESRCH);
    other = to;
    other.creation += 100;
    CHECK_EQ(blitz_actor_send(other, TAKE, &word, sizeof word), -ESRCH);
    other = to;
    other.index = UINT32_MAX;
    CHECK_EQ(blitz_actor_send(other, TAKE, &word, sizeof word), -ESRCH);
    other.index =
        to.index + 4; /* the same kind of slot, which was never used; generation 0 is none */
    other.generation = 0;
    CHECK_EQ(blitz_actor_send(other, TAKE, &word, sizeof word), -ESRCH);
    return 0;
}

TEST(send, an_id_that_is_wrong_in_any_part_is_refused)
{
    t_on_each(wrong_ids, NULL, 0);
}

/* ---- memory that goes around ---- */

enum { ROUNDS = 300 }; /* the last bursts are more than a proc keeps of either kind */

static int bursts(void *arg)
{
    unsigned char bytes[BLITZ_MSG_BYTES_MAX];
    blitz_actor_id to;
    (void)arg;
    taken = 0;
    fill(bytes, sizeof bytes);
    CHECK_EQ(blitz_actor_spawn(&party, NULL, NULL, &to), 0);
    int sent = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i <= round; i++, sent++)
            CHECK_EQ(blitz_actor_send(to, TAKE, bytes, (size_t)(i % (BLITZ_MSG_BYTES_MAX + 1))), 0);
        await_message(sent);
    }
    return 0;
}

/* Letters of both sizes are kept, used again and given back. The runtime frees its memory when the last one is back. */
TEST(send, letters_that_are_kept_are_given_back_at_the_end)
{
    t_hold_procs();
    for (unsigned procs = 1; procs <= 2; procs++) {
        blitz_runtime_opts opts = {.procs = procs, .allocator = &counted};
        CHECK_EQ(blitz_run(bursts, NULL, &opts), 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}
