/* The deque of forked jobs by hand: order, and whose a job is. What thieves see is in model_deque. */
#include "harness.h"

#include "queue/deque.h"

static struct bz_deque deque;
static int p, c, e; /* tasks: addresses */

static void fork_here(struct blitz_job *job)
{
    (void)blitz_push_(&deque.ends, job);
}

/* Take everything out for `task`, oldest first. */
static void check_order(struct blitz_job *jobs, int from, int to, void *task)
{
    for (int i = from; i < to; i++)
        CHECK(bz_deque_take_oldest(&deque, task) == &jobs[i]);
    CHECK_NULL(bz_deque_take_oldest(&deque, task));
    CHECK(bz_deque_is_empty(&deque));
    bz_deque_check(&deque);
}

/* More than the shelf holds, several times over. */
TEST(deque, jobs_leave_in_the_order_of_their_forks)
{
    enum { N = 5 * BZ_DEQUE_SHELF + 3 };
    static struct blitz_job jobs[N];
    bz_deque_init(&deque, false);
    for (int i = 0; i < N; i++)
        fork_here(&jobs[i]);
    check_order(jobs, 0, N, &p);
    for (int i = 0; i < N; i++)
        CHECK(jobs[i].task_ == &p);
}

TEST(deque, a_join_from_the_middle_leaves_the_others_in_order)
{
    enum { N = 2 * BZ_DEQUE_SHELF };
    static struct blitz_job jobs[N];
    bz_deque_init(&deque, false);
    for (int i = 0; i < N; i++)
        fork_here(&jobs[i]);
    CHECK(bz_deque_take_oldest(&deque, &p) == &jobs[0]); /* now some are on the shelf */
    CHECK(bz_deque_take_back(&deque, &jobs[3]));
    CHECK(bz_deque_take_back(&deque, &jobs[N - 3]));
    CHECK(!bz_deque_take_back(&deque, &jobs[0]));
    for (int i = 1; i < N; i++)
        if (i != 3 && i != N - 3)
            CHECK(bz_deque_take_oldest(&deque, &p) == &jobs[i]);
    CHECK(bz_deque_is_empty(&deque));
}

/* A child's jobs above the joiner's. */
TEST(deque, marked_jobs_are_the_markers)
{
    struct blitz_job jobs[4];
    bz_deque_init(&deque, false);
    fork_here(&jobs[0]);
    fork_here(&jobs[1]);
    struct bz_deque_mark mark = bz_deque_mark(&deque, &p);
    fork_here(&jobs[2]);
    fork_here(&jobs[3]);
    bz_deque_check(&deque);
    check_order(jobs, 0, 4, &c);
    CHECK(jobs[0].task_ == &p && jobs[1].task_ == &p);
    CHECK(jobs[2].task_ == &c && jobs[3].task_ == &c);
    bz_deque_unmark(&deque, &mark);
    bz_deque_check(&deque);
}

/* The joiner's job is taken while a child of the child runs: its mark is void when the child has
 * its own again, and what the child forks then is the child's. */
TEST(deque, a_mark_whose_job_has_left_marks_nothing)
{
    struct blitz_job outer, inner, later;
    bz_deque_init(&deque, false);
    later.task_ = &e; /* arbitrary content */
    fork_here(&outer);
    struct bz_deque_mark by_p = bz_deque_mark(&deque, &p);
    fork_here(&inner);
    struct bz_deque_mark by_c = bz_deque_mark(&deque, &c);
    CHECK(bz_deque_take_oldest(&deque, &e) == &outer);
    CHECK(outer.task_ == &p);
    bz_deque_unmark(&deque, &by_c);
    bz_deque_check(&deque);
    CHECK(blitz_pop_(&deque.ends, &inner) || bz_deque_take_back(&deque, &inner));
    fork_here(&later);
    CHECK(bz_deque_take_oldest(&deque, &c) == &later);
    CHECK(later.task_ == &c);
    bz_deque_unmark(&deque, &by_p);
    bz_deque_check(&deque);
}

/* An exposed job leaves the deque, and its forker can take it back once. */
TEST(deque, an_exposed_job_can_be_had_back_once)
{
    struct blitz_job jobs[2];
    bz_deque_init(&deque, false);
    fork_here(&jobs[0]);
    CHECK_EQ(bz_deque_share(&deque, &p), BZ_SHARED_NOW);
    fork_here(&jobs[1]);
    CHECK_EQ(bz_deque_share(&deque, &p), BZ_SHARED_BEFORE);
    CHECK(jobs[0].task_ == &p);
    CHECK(bz_deque_take_back(&deque, &jobs[0]));
    CHECK_NULL(bz_deque_steal(&deque));
    CHECK_EQ(bz_deque_share(&deque, &p), BZ_SHARED_NOW);
    CHECK(bz_deque_steal(&deque) == &jobs[1]);
    CHECK(!bz_deque_take_back(&deque, &jobs[1]));
    CHECK_EQ(bz_deque_share(&deque, &p), BZ_SHARED_NOTHING);
}

/* While a job is exposed, forks take the fast path. A thief that takes it asks the owner to look. */
TEST(deque, forks_look_for_thieves_only_while_no_job_is_exposed)
{
    struct blitz_job jobs[3];
    bz_deque_init(&deque, false);
    CHECK(!blitz_push_(&deque.ends, &jobs[0]));
    CHECK_EQ(bz_deque_share(&deque, &p), BZ_SHARED_NOW);
    CHECK(blitz_push_(&deque.ends, &jobs[1]));
    CHECK(bz_deque_steal(&deque) == &jobs[0]);
    CHECK(!blitz_push_(&deque.ends, &jobs[2]));
    check_order(jobs, 1, 3, &p);
}

/* The older half of a long list goes to the queues once: then it is not long until it is walked again. */
TEST(deque, a_list_is_long_until_its_older_half_was_taken)
{
    enum { N = 2 * BZ_DEQUE_LONG + BZ_DEQUE_SHELF, LEFT = N - BZ_DEQUE_SHELF };
    static struct blitz_job jobs[N];
    bz_deque_init(&deque, false);
    for (int i = 0; i < N; i++)
        fork_here(&jobs[i]);
    CHECK_EQ(bz_deque_share(&deque, &p), BZ_SHARED_NOW); /* the shelf has the others */
    CHECK(deque.is_long);
    struct blitz_job *older = bz_deque_take_older(&deque, &p);
    for (int i = N - LEFT; i < N - LEFT / 2; i++) {
        CHECK(older == &jobs[i]);
        older = (struct blitz_job *)older->link_;
    }
    CHECK_NULL(older);
    CHECK(!deque.is_long);
    CHECK_NULL(bz_deque_take_older(&deque, &p)); /* the rest is short enough */
}
