/* mpsc.h: the intrusive queue, step by step. Its races are in tests/stress and tests/model. */
#include "harness.h"

#include "base/mpsc.h"
#include "support/death.h"

enum { N = 6 };
struct item {
    int value;
    struct bz_mpsc_node node;
};

static struct item items[N];
static struct bz_mpsc queue;

static void given_an_empty_queue(void)
{
    bz_mpsc_init(&queue);
    for (int i = 0; i < N; i++)
        items[i].value = i;
}

static int take(void)
{
    struct bz_mpsc_node *n = bz_mpsc_take(&queue);
    return n == NULL ? -1 : BZ_CONTAINER_OF(n, struct item, node)->value;
}

TEST(mpsc, a_new_queue_is_empty)
{
    given_an_empty_queue();
    CHECK(bz_mpsc_is_empty(&queue));
    CHECK_EQ(take(), -1);
    CHECK_EQ(bz_mpsc_check(&queue), 0u);
}

TEST(mpsc, takes_in_the_order_of_pushes)
{
    given_an_empty_queue();
    for (int count = 1; count <= N; count++) {
        for (int i = 0; i < count; i++)
            bz_mpsc_push(&queue, &items[i].node);
        CHECK_EQ(bz_mpsc_check(&queue), (size_t)count);
        for (int i = 0; i < count; i++) {
            CHECK(!bz_mpsc_is_empty(&queue));
            CHECK_EQ(take(), i);
            CHECK_EQ(bz_mpsc_check(&queue), (size_t)(count - 1 - i));
        }
        CHECK(bz_mpsc_is_empty(&queue));
        CHECK_EQ(take(), -1);
    }
}

/* The push that makes the queue non-empty owes the taker a wake-up; the others do not. */
TEST(mpsc, exactly_the_first_push_learns_that_the_queue_was_empty)
{
    given_an_empty_queue();
    for (int round = 0; round < 3; round++) {
        CHECK(bz_mpsc_push(&queue, &items[0].node));
        CHECK(!bz_mpsc_push(&queue, &items[1].node));
        CHECK_EQ(take(), 0);
        CHECK(!bz_mpsc_push(&queue, &items[2].node));
        CHECK_EQ(take(), 1);
        CHECK_EQ(take(), 2);
    }
}

/* The caller owns a taken node: it may be reused, overwritten and pushed again at once. */
TEST(mpsc, a_taken_node_can_be_pushed_again_at_once)
{
    given_an_empty_queue();
    bz_mpsc_push(&queue, &items[0].node);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(take(), 0);
        memset(&items[0].node, 0x5a, sizeof items[0].node);
        CHECK(bz_mpsc_push(&queue, &items[0].node));
        bz_mpsc_check(&queue);
    }
}

TEST(mpsc, any_mix_of_pushes_and_takes_keeps_the_order)
{
    given_an_empty_queue();
    int next_in = 0, next_out = 0, inside = 0;
    for (int step = 0; step < 20000; step++) {
        if (inside < N && (inside == 0 || t_random() % 2)) {
            CHECK_EQ(bz_mpsc_push(&queue, &items[next_in++ % N].node), inside == 0);
            inside++;
        } else {
            CHECK_EQ(take(), next_out++ % N);
            inside--;
        }
        CHECK_EQ(bz_mpsc_check(&queue), (size_t)inside);
    }
}

/* A push stopped between its exchange and its link: built by hand, it must read as "not yet". */
TEST(mpsc, a_push_in_its_gap_hides_but_does_not_lose)
{
    given_an_empty_queue();
    bz_mpsc_push(&queue, &items[0].node);
    bz_store_relaxed(&items[1].node.next, NULL);
    struct bz_mpsc_node *prev = bz_xchg_acqrel(&queue.last, &items[1].node); /* half a push */

    CHECK_EQ(take(), -1);
    CHECK(!bz_mpsc_is_empty(&queue));

    bz_store_release(&prev->next, &items[1].node); /* the other half */
    CHECK_EQ(take(), 0);
    CHECK_EQ(take(), 1);
    CHECK(bz_mpsc_is_empty(&queue));
}

TEST(mpsc, check_names_a_link_that_leads_nowhere)
{
    given_an_empty_queue();
    for (int i = 0; i < 3; i++)
        bz_mpsc_push(&queue, &items[i].node);
    DIES("leads nowhere", bz_store_relaxed(&items[1].node.next, NULL); bz_mpsc_check(&queue));
    DIES("the root is inside", bz_store_relaxed(&items[1].node.next, &queue.root);
         bz_mpsc_check(&queue));
    DIES("is behind the last", bz_store_relaxed(&items[2].node.next, &items[0].node);
         bz_mpsc_check(&queue));
    DIES("leads nowhere", bz_store_relaxed(&queue.root.next, NULL); bz_mpsc_check(&queue));
}

/* A take that runs into a gap puts back what it had begun, as often as it is tried. */
TEST(mpsc, a_take_that_finds_a_gap_leaves_the_queue_as_it_was)
{
    given_an_empty_queue();
    bz_mpsc_push(&queue, &items[0].node);
    bz_store_relaxed(&items[1].node.next, NULL);
    struct bz_mpsc_node *prev = bz_xchg_acqrel(&queue.last, &items[1].node); /* half a push */

    for (int i = 0; i < 3; i++)
        CHECK_EQ(take(), -1);

    CHECK_EQ(bz_load_relaxed(&queue.root.next), &items[0].node);
    bz_store_release(&prev->next, &items[1].node); /* the other half */
    CHECK_EQ(bz_mpsc_check(&queue), 2u);
    CHECK_EQ(take(), 0);
    CHECK(!bz_mpsc_push(&queue, &items[0].node));
    CHECK_EQ(take(), 1);
    CHECK_EQ(take(), 0);
    CHECK(bz_mpsc_is_empty(&queue));
}
