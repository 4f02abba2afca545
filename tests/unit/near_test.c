/* near.c and timer.c: the heap of the current millisecond, and lists sorted by deadline. */
#include "harness.h"

#include "support/death.h"
#include "time/near.h"

enum { N = 300 };

/* n timers; deadlines below `spread` by chance, so that a small one makes many of them equal. */
static void timers_make(struct bz_wheel_timer *t, size_t n, uint64_t spread)
{
    for (size_t i = 0; i < n; i++)
        t[i] = (struct bz_wheel_timer){.deadline_ns = t_random_below(spread), .order = i};
}

static struct bz_wheel_timer *heap_of(struct bz_wheel_timer *t, size_t n)
{
    struct bz_wheel_timer *root = NULL;
    for (size_t i = 0; i < n; i++)
        bz_near_push(&root, &t[i]);
    return root;
}

/* Take the root until there is none: in order, and as many as there should be. */
static void check_drains(struct bz_wheel_timer *root, size_t want)
{
    struct bz_wheel_timer *before = NULL;
    size_t count = 0;
    while (root != NULL) {
        CHECK_EQ(bz_near_check(root), want - count);
        struct bz_wheel_timer *t = root;
        bz_near_remove(&root, t);
        if (before != NULL)
            CHECK(bz_wheel_timer_before(before, t));
        before = t;
        count++;
    }
    CHECK_EQ(count, want);
}

TEST(near, gives_back_in_the_order_of_deadlines_and_of_arming)
{
    struct bz_wheel_timer t[N];
    const uint64_t spreads[] = {1, 3, N, UINT64_MAX};
    for (unsigned s = 0; s < 4; s++)
        for (size_t n = 0; n <= N; n = n * 2 + 1) {
            timers_make(t, n, spreads[s]);
            check_drains(heap_of(t, n), n);
        }
}

/* Ascending and descending pushes make the flattest and the deepest of heaps: nothing recurses. */
TEST(near, takes_timers_in_order_for_sorted_input_either_way)
{
    size_t n = t_scaled(200000);
    struct bz_wheel_timer *t = calloc(n, sizeof *t);
    CHECK_NOT_NULL(t);
    for (int down = 0; down < 2; down++) {
        for (size_t i = 0; i < n; i++)
            t[i] = (struct bz_wheel_timer){.deadline_ns = down ? n - i : i, .order = i};
        struct bz_wheel_timer *root = heap_of(t, n);
        CHECK_EQ(bz_near_check(root), n);
        for (size_t i = 0; i < n; i++) {
            CHECK_EQ(root, &t[down ? n - 1 - i : i]);
            bz_near_remove(&root, root);
        }
        CHECK_NULL(root);
    }
    free(t);
}

/* A sleep that is cancelled leaves from the middle: the root, a first child, a last one, a leaf. */
TEST(near, any_timer_can_leave_at_any_time)
{
    struct bz_wheel_timer t[N];
    for (int round = 0; round < 50; round++) {
        size_t n = 1 + t_random_below(N), left = n;
        bool is_in[N];
        timers_make(t, n, 1 + t_random_below(n));
        struct bz_wheel_timer *root = heap_of(t, n);
        for (size_t i = 0; i < n; i++)
            is_in[i] = true;
        for (size_t i = 0; i < n; i++) {
            size_t leaves = t_random_below(n);
            if (i % 5 == 0) /* makes the heap deep */
                leaves = (size_t)(root - t);
            if (!is_in[leaves])
                continue;
            bz_near_remove(&root, &t[leaves]);
            is_in[leaves] = false;
            left--;
            CHECK_EQ(bz_near_check(root), left);
            if (root == NULL)
                break;
        }
        check_drains(root, left);
    }
}

TEST(near, check_reports_every_broken_invariant)
{
    struct bz_wheel_timer t[3];
    for (unsigned i = 0; i < 3; i++)
        t[i] = (struct bz_wheel_timer){.deadline_ns = i, .order = i};
    struct bz_wheel_timer *root = heap_of(t, 3); /* 0 over 2, 1 */

    DIES("fires before its parent", t[1].deadline_ns = 0; t[1].order = 0; t[0].order = 9;
         bz_near_check(root));
    DIES("has kin", root->kin.next = &t[1]; bz_near_check(root));
    DIES("is a child of", root->child->kin.prev = &t[1]; bz_near_check(root));
    DIES("is behind", t[1].kin.prev = &t[1]; bz_near_check(root));
}

/* ---- sorting ---- */

static void list_of(struct bz_list *list, struct bz_wheel_timer *t, size_t n)
{
    bz_list_init(list);
    for (size_t i = 0; i < n; i++) {
        bz_list_init(&t[i].in);
        bz_list_push_back(list, &t[i].in);
    }
}

static void check_sorts(struct bz_wheel_timer *t, size_t n)
{
    struct bz_list list;
    struct bz_wheel_timer *before = NULL;
    list_of(&list, t, n);
    bz_wheel_timers_sort(&list);
    CHECK_EQ(bz_list_check(&list), n);
    BZ_LIST_FOR_EACH (in, &list) {
        struct bz_wheel_timer *now = bz_wheel_timer_of(in);
        if (before != NULL)
            CHECK(bz_wheel_timer_before(before, now));
        before = now;
    }
}

TEST(timer, a_list_is_sorted_by_deadline_and_equal_ones_by_arming)
{
    struct bz_wheel_timer t[N];
    const uint64_t spreads[] = {1, 3, N, UINT64_MAX};
    for (unsigned s = 0; s < 4; s++)
        for (size_t n = 0; n < N; n++) {
            timers_make(t, n, spreads[s]);
            check_sorts(t, n);
        }
}

/* Sorted already, backwards, sorted but for one, two sorted halves: cut and joined in other places. */
TEST(timer, lists_with_long_runs_are_sorted_too)
{
    struct bz_wheel_timer t[N];
    for (size_t n = 1; n < N; n++)
        for (int shape = 0; shape < 4; shape++) {
            for (size_t i = 0; i < n; i++) {
                uint64_t at[] = {i, n - i, i == n / 3 ? 2 * n : i, 2 * i % n};
                t[i] = (struct bz_wheel_timer){.deadline_ns = at[shape], .order = i};
            }
            check_sorts(t, n);
        }
}
