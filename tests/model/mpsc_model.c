/*
 * mpsc_model.c - base/mpsc.h: pushers and the taker in every order.
 *
 *   covers: src/base/mpsc.h src/base/mpsc.c
 *
 * Letters are the pairings of mpsc.h. A payload is a plain field: if [A] did not bring it along, the
 * taker's look at it would race with the pusher's writing.
 */
#include "base/mpsc.h"

#include "base/check.h"
#include "model.h"

struct item {
    struct bz_mpsc_node node;
    bz_shared(int) payload;
};

static struct bz_mpsc q;
static struct item items[6];
static int taken[6]; /* values taken, in order */
static int taken_count;
static int firsts; /* pushes that were told the queue had been empty */

static void given_an_empty_queue(void)
{
    bz_mpsc_init(&q);
    taken_count = 0;
    firsts = 0;
}

static void push(int i)
{
    bz_set(&items[i].payload, i + 1);
    firsts += bz_mpsc_push(&q, &items[i].node);
}

static bool take(void)
{
    struct bz_mpsc_node *node = bz_mpsc_take(&q);
    if (node == NULL)
        return false;
    struct item *item = BZ_CONTAINER_OF(node, struct item, node);
    taken[taken_count++] = bz_get(&item->payload);
    bz_set(&item->payload, -1); /* it is ours now: to be reused or freed */
    return true;
}

static void take_until(int count)
{
    while (taken_count < count)
        if (!take())
            m_relax();
}

static void pushes_0_and_1(void)
{
    push(0);
    push(1);
}

static void pushes_2(void)
{
    push(2);
}

static void pushes_all_six(void)
{
    for (int i = 0; i < 6; i++)
        push(i);
}

static void takes_six(void)
{
    take_until(6);
}

static void pushes_3(void)
{
    push(3);
}

static void takes_one(void)
{
    take_until(1);
}

static void takes_two(void)
{
    take_until(2);
}

static void takes_three(void)
{
    take_until(3);
}

static void looks_three_times(void)
{
    for (int i = 0; i < 3; i++)
        take();
}

static void it_is_empty(void)
{
    m_assert(bz_mpsc_is_empty(&q));
    m_assert(bz_mpsc_check(&q) == 0);
    m_assert(bz_mpsc_take(&q) == NULL);
}

/* [A]: the node is filled before it can be reached, and one pusher's nodes keep their order. */
MODEL(mpsc, pushes_of_one_thread_are_taken_in_order_and_completely)
{
    given_an_empty_queue();
    m_threads(pushes_0_and_1, takes_two);
    m_assert(taken[0] == 1 && taken[1] == 2);
    m_finally(it_is_empty);
}

/* Every take that comes back empty-handed is found by a later one: nothing is lost in the gap. */
MODEL(mpsc, a_node_missed_by_the_taker_is_still_queued)
{
    given_an_empty_queue();
    m_threads(pushes_0_and_1, looks_three_times);
    size_t left = bz_mpsc_check(&q);
    m_assert(taken_count + (int)left == 2);
    m_sometimes(left == 2);
    m_sometimes(left == 0);
    while (take())
        ;
    m_assert(taken[0] == 1 && taken[1] == 2);
    m_finally(it_is_empty);
}

/* [B]: two pushers meet at last. */
MODEL(mpsc, all_pushes_of_two_threads_are_taken)
{
    given_an_empty_queue();
    m_threads(pushes_2, pushes_3, takes_two);
    m_assert(taken[0] + taken[1] == 7);
    m_sometimes(taken[0] == 3);
    m_sometimes(taken[0] == 4);
    m_finally(it_is_empty);
}

MODEL(mpsc, order_holds_for_each_pusher)
{
    given_an_empty_queue();
    m_threads(pushes_0_and_1, pushes_2, takes_three);
    int at[5] = {0};
    for (int i = 0; i < 3; i++)
        at[taken[i]] = i;
    m_assert(at[1] < at[2]);
    m_assert(taken[0] + taken[1] + taken[2] == 6);
    m_finally(it_is_empty);
}

/* [C]: the queue runs empty between two pushes, and the second links through the root again. */
static void push_0_take_push_again(void)
{
    take_until(1);
    take_until(2);
    it_is_empty();
}

static void pushes_2_then_3(void)
{
    push(2);
    push(3);
}

MODEL(mpsc, it_empties_and_fills_again)
{
    given_an_empty_queue();
    push(0);
    m_threads(push_0_take_push_again, pushes_2);
    m_finally(it_is_empty);
}

/* A taken node is its taker's: the same node goes round. */
static void pushes_back_what_it_takes(void)
{
    take_until(1);
    push(taken[0] - 1);
    take_until(2);
}

MODEL(mpsc, a_node_can_be_pushed_again_at_once)
{
    given_an_empty_queue();
    m_threads(pushes_back_what_it_takes, pushes_2);
    m_assert(taken_count == 2);
    m_finally(it_is_empty);
}

/* Of the pushes since the queue was empty exactly one owes a wake-up. */
MODEL(mpsc, exactly_one_push_learns_that_it_was_the_first)
{
    given_an_empty_queue();
    m_threads(pushes_2, pushes_3);
    m_assert(firsts == 1);
    m_assert(bz_mpsc_check(&q) == 2);
}

/* is_empty is exact for the taker: after it took everything, "empty" means that there was no
 * push. */
static void asks_when_it_has_taken_all(void)
{
    take_until(1);
    if (bz_mpsc_is_empty(&q))
        m_assert(!take() || taken_count == 2);
}

MODEL(mpsc, the_taker_may_ask_whether_it_is_empty)
{
    given_an_empty_queue();
    m_threads(asks_when_it_has_taken_all, pushes_2_then_3);
    while (take())
        ;
    m_assert(taken_count == 2);
}

MODEL(mpsc, takes_one_of_one)
{
    given_an_empty_queue();
    m_threads(pushes_2, takes_one);
    m_finally(it_is_empty);
}

/* The longest of these: about a hundred operations in an execution. */
MODEL(mpsc, six_items_pass_from_one_thread_to_another)
{
    given_an_empty_queue();
    m_threads(pushes_all_six, takes_six);
    for (int i = 0; i < 6; i++)
        m_assert(taken[i] == i + 1);
    m_finally(it_is_empty);
}
