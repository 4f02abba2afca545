/* The linearizability checker itself: histories that are right, and planted ones that are not. */
#include "harness.h"

#include "support/lin.h"

/* One after the other. */
static void alone(struct lin *h, enum lin_kind kind, int value, int result)
{
    int i = lin_call(h, kind, value);
    lin_return(h, i, result, value);
}

TEST(lin, one_after_the_other_is_as_the_model_says)
{
    struct lin h = {.capacity = 2, .senders = 1};
    alone(&h, LIN_SEND, 1, 0);
    alone(&h, LIN_SEND, 2, 0);
    alone(&h, LIN_SEND, 3, -EAGAIN);
    alone(&h, LIN_LEN, 0, 2);
    alone(&h, LIN_RECV, 1, 0);
    alone(&h, LIN_ADD, 0, 0);
    alone(&h, LIN_DROP, 0, 0);
    alone(&h, LIN_IS_CLOSED, 0, 0);
    alone(&h, LIN_DROP, 0, 0);
    alone(&h, LIN_IS_CLOSED, 0, 1);
    alone(&h, LIN_SEND, 4, -EPIPE);
    alone(&h, LIN_ADD, 0, -EPIPE);
    alone(&h, LIN_RECV, 2, 0);
    alone(&h, LIN_RECV, 0, -EPIPE);
    CHECK(lin_is_linearizable(&h));
}

TEST(lin, overlapping_operations_may_be_in_either_order)
{
    struct lin h = {.capacity = 4};
    int a = lin_call(&h, LIN_SEND, 1), b = lin_call(&h, LIN_SEND, 2);
    lin_return(&h, a, 0, 0);
    lin_return(&h, b, 0, 0);
    alone(&h, LIN_RECV, 2, 0);
    alone(&h, LIN_RECV, 1, 0);
    int c = lin_call(&h, LIN_CLOSE, 0), d = lin_call(&h, LIN_SEND, 3);
    lin_return(&h, c, 0, 0);
    lin_return(&h, d, 0, 0);
    alone(&h, LIN_SHUT, 0, 1);
    CHECK(lin_is_linearizable(&h));
}

TEST(lin, a_rendezvous_is_one_moment_of_two)
{
    struct lin h = {.capacity = 0};
    int s = lin_call(&h, LIN_SEND, 1), r = lin_call(&h, LIN_RECV, 0);
    lin_return(&h, r, 0, 1);
    lin_return(&h, s, 0, 0);
    CHECK(lin_is_linearizable(&h));
    h = (struct lin){.capacity = 0};
    alone(&h, LIN_SEND, 1, 0); /* it ended before its receive began */
    alone(&h, LIN_RECV, 1, 0);
    CHECK(!lin_is_linearizable(&h));
}

/* ---- planted ---- */

struct planted {
    const char *what;
    int capacity;
    struct {
        enum lin_kind kind;
        int value, result;
    } op[4];
    int count;
};

static const struct planted planted[] = {
    {"out of order",
     2,
     {{LIN_SEND, 1, 0}, {LIN_SEND, 2, 0}, {LIN_RECV, 2, 0}, {LIN_RECV, 1, 0}},
     4},
    {"twice", 2, {{LIN_SEND, 1, 0}, {LIN_RECV, 1, 0}, {LIN_RECV, 1, 0}}, 3},
    {"out of nowhere", 2, {{LIN_SEND, 1, 0}, {LIN_RECV, 3, 0}}, 2},
    {"lost", 2, {{LIN_SEND, 1, 0}, {LIN_RECV, 0, -EAGAIN}}, 2},
    {"lost at a close", 2, {{LIN_SEND, 1, 0}, {LIN_CLOSE, 0, 0}, {LIN_RECV, 0, -EPIPE}}, 3},
    {"sent after a close", 2, {{LIN_CLOSE, 0, 0}, {LIN_SEND, 1, 0}}, 2},
    {"more than it holds", 1, {{LIN_SEND, 1, 0}, {LIN_SEND, 2, 0}}, 2},
    {"no room where there is", 2, {{LIN_SEND, 1, 0}, {LIN_SEND, 2, -EAGAIN}}, 2},
    {"closed by nobody", 2, {{LIN_SEND, 1, -EPIPE}}, 1},
    {"sent although it timed out", 2, {{LIN_SEND, 1, -ETIMEDOUT}, {LIN_RECV, 1, 0}}, 2},
    {"a wrong count at a shut", 2, {{LIN_SEND, 1, 0}, {LIN_SHUT, 0, 0}}, 2},
    {"received after a shut", 2, {{LIN_SEND, 1, 0}, {LIN_SHUT, 0, 1}, {LIN_RECV, 1, 0}}, 3},
    {"added to what is closed", 2, {{LIN_CLOSE, 0, 0}, {LIN_ADD, 0, 0}}, 2},
    {"the last sender did not close", 2, {{LIN_DROP, 0, 0}, {LIN_IS_CLOSED, 0, 0}}, 2},
    {"a wrong length", 2, {{LIN_SEND, 1, 0}, {LIN_LEN, 0, 0}}, 2},
};

TEST(lin, bug_24_planted_errors_are_found)
{
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        struct lin h = {.capacity = planted[i].capacity, .senders = 1};
        t_watch("planted: %s", planted[i].what);
        for (int k = 0; k < planted[i].count; k++)
            alone(&h, planted[i].op[k].kind, planted[i].op[k].value, planted[i].op[k].result);
        CHECK(!lin_is_linearizable(&h));
    }
}

/* Overlaps do not excuse everything: two receivers, of which the later one got the older value. */
TEST(lin, an_order_that_no_overlap_explains_is_found)
{
    struct lin h = {.capacity = 4};
    alone(&h, LIN_SEND, 1, 0);
    int b = lin_call(&h, LIN_SEND, 2);
    int slow = lin_call(&h, LIN_RECV, 0);
    alone(&h, LIN_RECV, 2, 0);
    lin_return(&h, b, 0, 0);
    lin_return(&h, slow, 0, 1); /* right: it may have come first */
    CHECK(lin_is_linearizable(&h));
    h.op[slow].called = 100; /* after the other had returned */
    h.op[slow].returned = 101;
    CHECK(!lin_is_linearizable(&h));
}

/* ---- waiting for long ---- */

/* An operation that waits from `from` to `until` in vain. */
static int waits_in_vain(struct lin *h, enum lin_kind kind, uint64_t from, uint64_t until)
{
    h->now = from;
    int i = lin_call(h, kind, 0);
    lin_waits_until(h, i, until);
    return i;
}

static void times_out(struct lin *h, int i)
{
    h->now = h->op[i].until_ns;
    lin_return(h, i, -ETIMEDOUT, 0);
}

TEST(lin, a_wait_in_vain_needs_a_reason_to_its_end)
{
    struct lin h = {.capacity = 1};
    alone(&h, LIN_SEND, 1, 0);
    int full = waits_in_vain(&h, LIN_SEND, 10, 1000);
    times_out(&h, full);
    CHECK(lin_is_linearizable(&h) && lin_is_prompt(&h));
    h = (struct lin){.capacity = 1};
    alone(&h, LIN_SEND, 1, 0);
    int missed = waits_in_vain(&h, LIN_SEND, 10, 1000);
    h.now = 20;
    alone(&h, LIN_RECV, 1, 0); /* from now on there is room */
    h.now = 900;
    alone(&h, LIN_LEN, 0, 0);
    times_out(&h, missed);
    CHECK(lin_is_linearizable(&h));
    CHECK(!lin_is_prompt(&h));
    h.at_ns[h.op[missed].called + 1] = h.at_ns[h.op[missed].called + 2] =
        900; /* room at the last moment */
    CHECK(lin_is_prompt(&h));
}

TEST(lin, a_send_and_a_receive_do_not_wait_beside_each_other)
{
    struct lin h = {.capacity = 0};
    int s = waits_in_vain(&h, LIN_SEND, 10, 1010), r = waits_in_vain(&h, LIN_RECV, 20, 1020);
    times_out(&h, s);
    times_out(&h, r);
    CHECK(lin_is_linearizable(&h));
    CHECK(!lin_is_prompt(&h));
    h.op[r].called_ns = 1005; /* the send had all but given up by then */
    h.op[r].until_ns = 2005;
    CHECK(lin_is_prompt(&h));
}
