/* list.h: doubly linked lists and counted chains. */
#include "harness.h"

#include "base/list.h"
#include "support/death.h"

enum { N = 8 };
struct item {
    int value;
    struct bz_list in;
    struct bz_link link;
};

static void items_init(struct item *items)
{
    for (int i = 0; i < N; i++) {
        items[i] = (struct item){i, {NULL, NULL}, {NULL}};
        bz_list_init(&items[i].in);
    }
}

static int value_of(struct bz_list *node)
{
    return BZ_CONTAINER_OF(node, struct item, in)->value;
}

TEST(list, back_is_a_queue_and_front_is_a_stack)
{
    struct item items[N];
    struct bz_list head;
    items_init(items);
    bz_list_init(&head);

    for (int i = 0; i < N; i++)
        bz_list_push_back(&head, &items[i].in);
    CHECK_EQ(bz_list_check(&head), (size_t)N);
    for (int i = 0; i < N; i++)
        CHECK_EQ(value_of(bz_list_take_front(&head)), i);
    CHECK_NULL(bz_list_take_front(&head));

    for (int i = 0; i < N; i++)
        bz_list_push_front(&head, &items[i].in);
    for (int i = N - 1; i >= 0; i--)
        CHECK_EQ(value_of(bz_list_take_front(&head)), i);
    CHECK(bz_list_is_empty(&head));
}

TEST(list, first_and_last_look_without_taking)
{
    struct item items[N];
    struct bz_list head;
    items_init(items);
    bz_list_init(&head);
    CHECK_NULL(bz_list_first(&head));
    CHECK_NULL(bz_list_last(&head));

    bz_list_push_back(&head, &items[0].in);
    CHECK_EQ(bz_list_first(&head), bz_list_last(&head));
    bz_list_push_back(&head, &items[1].in);
    CHECK_EQ(value_of(bz_list_first(&head)), 0);
    CHECK_EQ(value_of(bz_list_last(&head)), 1);
    CHECK_EQ(bz_list_check(&head), 2u);
}

/* A waiter that is cancelled unlinks itself; a waker that comes later must not trip over it. */
TEST(list, removing_twice_is_harmless)
{
    struct item items[N];
    struct bz_list head;
    items_init(items);
    bz_list_init(&head);
    for (int i = 0; i < 3; i++)
        bz_list_push_back(&head, &items[i].in);

    CHECK(bz_list_is_linked(&items[1].in));
    bz_list_remove(&items[1].in);
    CHECK(!bz_list_is_linked(&items[1].in));
    bz_list_remove(&items[1].in);

    CHECK_EQ(bz_list_check(&head), 2u);
    CHECK_EQ(value_of(bz_list_first(&head)), 0);
    CHECK_EQ(value_of(bz_list_last(&head)), 2);
}

TEST(list, splice_moves_all_in_order_and_empties_the_source)
{
    struct item items[N];
    struct bz_list to, from;
    items_init(items);
    for (int split = 0; split <= N; split++) {
        bz_list_init(&to);
        bz_list_init(&from);
        for (int i = 0; i < N; i++)
            bz_list_push_back(i < split ? &to : &from, &items[i].in);

        bz_list_splice(&to, &from);

        CHECK(bz_list_is_empty(&from));
        CHECK_EQ(bz_list_check(&to), (size_t)N);
        for (int i = 0; i < N; i++)
            CHECK_EQ(value_of(bz_list_take_front(&to)), i);
    }
}

TEST(list, a_safe_walk_survives_removing_where_it_stands)
{
    struct item items[N];
    struct bz_list head;
    items_init(items);
    bz_list_init(&head);
    for (int i = 0; i < N; i++)
        bz_list_push_back(&head, &items[i].in);

    BZ_LIST_FOR_EACH_SAFE (node, &head)
        if (value_of(node) % 2 == 0)
            bz_list_remove(node);

    int odd = 1;
    BZ_LIST_FOR_EACH (node, &head) {
        CHECK_EQ(value_of(node), odd);
        odd += 2;
    }
    CHECK_EQ(odd, N + 1);
}

TEST(list, check_names_a_broken_link)
{
    struct item items[N];
    struct bz_list head;
    items_init(items);
    bz_list_init(&head);
    for (int i = 0; i < 3; i++)
        bz_list_push_back(&head, &items[i].in);

    DIES("but back to", items[1].in.prev = &items[2].in; bz_list_check(&head));
    DIES("has no next", items[1].in.next = NULL; bz_list_check(&head));
}

/* ---- chains ---- */

static int taken(struct bz_chain *c)
{
    struct bz_link *l = bz_chain_take_front(c);
    return l == NULL ? -1 : BZ_CONTAINER_OF(l, struct item, link)->value;
}

static struct bz_chain chain_of(struct item *items, int from, int to)
{
    struct bz_chain c;
    bz_chain_init(&c);
    for (int i = from; i < to; i++)
        bz_chain_push_back(&c, &items[i].link);
    bz_chain_check(&c);
    return c;
}

TEST(chain, gives_back_in_order_and_counts)
{
    struct item items[N];
    items_init(items);
    struct bz_chain c = chain_of(items, 0, N);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(c.count, (size_t)(N - i));
        CHECK_EQ(taken(&c), i);
        bz_chain_check(&c);
    }
    CHECK_EQ(taken(&c), -1);
    CHECK(bz_chain_is_empty(&c));
}

TEST(chain, front_is_a_stack)
{
    struct item items[N];
    struct bz_chain c;
    items_init(items);
    bz_chain_init(&c);
    for (int i = 0; i < N; i++) {
        bz_chain_push_front(&c, &items[i].link);
        bz_chain_check(&c);
    }
    for (int i = N - 1; i >= 0; i--)
        CHECK_EQ(taken(&c), i);
}

TEST(chain, append_joins_any_two_halves)
{
    struct item items[N];
    items_init(items);
    for (int split = 0; split <= N; split++) {
        struct bz_chain to = chain_of(items, 0, split), from = chain_of(items, split, N);

        bz_chain_append(&to, &from);

        bz_chain_check(&to);
        bz_chain_check(&from);
        CHECK(bz_chain_is_empty(&from));
        for (int i = 0; i < N; i++)
            CHECK_EQ(taken(&to), i);
    }
}

TEST(chain, check_reports_each_broken_invariant)
{
    struct item items[N];
    items_init(items);
    struct bz_chain c = chain_of(items, 0, 3);
    DIES("more than its 2", c.count = 2; bz_chain_check(&c));
    DIES("3 links, says 4", c.count = 4; bz_chain_check(&c));
    DIES("ends at", c.last = &items[1].link; bz_chain_check(&c));
}
