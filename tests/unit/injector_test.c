/* queue/injector.h: order, shares and the length that is read without the lock. */
#include "harness.h"

#include "os/os.h"
#include "queue/injector.h"
#include "support/death.h"

enum { N = 400 };
static struct bz_injector in;
static struct bz_task tasks[N];
static bz_entry got[N];

static void given_an_injector_of(int count)
{
    bz_injector_init(&in, &bz_os_system);
    for (int i = 0; i < count; i++)
        bz_injector_push(&in, bz_entry_resumed(&tasks[i]));
    bz_injector_check(&in);
}

TEST(injector, an_empty_one_gives_nothing)
{
    given_an_injector_of(0);
    CHECK_EQ(bz_injector_take(&in, got, N, 2), 0u);
    CHECK_EQ(bz_injector_length(&in), 0u);
}

TEST(injector, first_in_is_first_out_over_many_batches)
{
    given_an_injector_of(N);
    int next = 0;
    while (bz_injector_length(&in) > 0) {
        unsigned count = bz_injector_take(&in, got, N, 4);
        CHECK_GT(count, 0u);
        for (unsigned i = 0; i < count; i++)
            CHECK_EQ(got[i], bz_entry_resumed(&tasks[next++]));
        bz_injector_check(&in);
    }
    CHECK_EQ(next, N);
}

/* A share of what is there, but never so little that the lock is not worth it, nor so much that
 * the others go hungry; and no more than the caller has room for. */
TEST(injector, a_proc_takes_its_share_between_4_and_64)
{
    static const struct {
        int length;
        unsigned procs, max, share;
    } rows[] = {{1, 2, N, 1},   {3, 8, N, 3},    {4, 8, N, 4},    {5, 1, N, 5},     {16, 8, N, 4},
                {40, 8, N, 5},  {400, 8, N, 50}, {400, 4, N, 64}, {400, 100, N, 4}, {400, 1, N, 64},
                {10, 0, N, 10}, {400, 4, 8, 8},  {400, 4, 1, 1},  {3, 1, 2, 2},     {400, 4, 0, 0}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(rows); i++) {
        given_an_injector_of(rows[i].length);
        CHECK_EQ(bz_injector_take(&in, got, rows[i].max, rows[i].procs), rows[i].share);
        CHECK_EQ(bz_injector_length(&in), (size_t)rows[i].length - rows[i].share);
        bz_injector_check(&in);
    }
}

static bool is_of_the_first_ten(bz_entry e)
{
    return bz_entry_task(e) < &tasks[10];
}

TEST(injector, tombstones_at_its_front_can_be_removed_alone)
{
    given_an_injector_of(20);
    CHECK_EQ(bz_injector_take_dead(&in, is_of_the_first_ten, got, 4), 4u);
    CHECK_EQ(got[3], bz_entry_resumed(&tasks[3]));
    CHECK_EQ(bz_injector_take_dead(&in, is_of_the_first_ten, got, N), 6u);
    CHECK_EQ(bz_injector_take_dead(&in, is_of_the_first_ten, got, N), 0u);
    CHECK_EQ(bz_injector_length(&in), 10u);
    bz_injector_check(&in);
    CHECK_EQ(bz_injector_take(&in, got, N, 1), 10u);
    CHECK_EQ(got[0], bz_entry_resumed(&tasks[10]));
    CHECK_EQ(bz_injector_take_dead(&in, is_of_the_first_ten, got, N), 0u);
}

TEST(injector, many_go_in_at_once_and_in_order)
{
    bz_entry batch[8];
    given_an_injector_of(2);
    for (int i = 0; i < 8; i++)
        batch[i] = bz_entry_first(&tasks[2 + i]);

    bz_injector_push_all(&in, batch, 8);
    bz_injector_push_all(&in, batch, 0);

    CHECK_EQ(bz_injector_length(&in), 10u);
    CHECK_EQ(bz_injector_take(&in, got, N, 1), 10u);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(bz_entry_task(got[i]), &tasks[i]);
}

/* A claimed child's first entry is still linked when the child parks and is woken: it is in the
 * chain twice, once as its own tombstone. */
TEST(injector, one_task_may_stand_in_it_as_first_and_as_resumed)
{
    for (int order = 0; order < 2; order++) {
        struct {
            bz_entry link;
        } job;
        bz_entry entries[4] = {bz_entry_first(&tasks[0]), bz_entry_resumed(&tasks[0]),
                               bz_entry_of_job(&job), bz_entry_first(&tasks[1])};
        given_an_injector_of(0);
        for (int i = 0; i < 4; i++)
            bz_injector_push(&in, entries[order == 0 ? i : 3 - i]);
        bz_injector_check(&in);
        CHECK_EQ(bz_injector_take(&in, got, N, 1), 4u);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(got[i], entries[order == 0 ? i : 3 - i]);
    }
}

static bz_atomic(uint64_t) taken;
static struct bz_task *many;
static uint64_t each;

static void push_and_take(void *arg, int index)
{
    bz_entry batch[BZ_INJECTOR_BATCH];
    (void)arg;
    for (uint64_t i = 0; i < each; i++) {
        struct bz_task *t = &many[(uint64_t)index * each + i];
        bz_injector_push(&in, i % 2 != 0 ? bz_entry_first(t) : bz_entry_resumed(t));
        if (i % 8 != 7)
            continue;
        unsigned count = bz_injector_take(&in, batch, BZ_INJECTOR_BATCH, 4);
        for (unsigned k = 0; k < count; k++)
            CHECK_EQ(bz_entry_task(batch[k])->id++, 0u);
        bz_fetch_add_relaxed(&taken, count);
    }
}

TEST(injector, four_threads_lose_and_double_nothing)
{
    each = t_scaled(20000);
    CHECK_NOT_NULL(many = calloc(4 * each, sizeof *many));
    bz_injector_init(&in, &bz_os_system);
    t_threads(4, push_and_take, NULL);
    bz_injector_check(&in);
    CHECK_EQ(bz_load_relaxed(&taken) + bz_injector_length(&in), 4 * each);
    free(many);
}

TEST(injector, check_names_a_wrong_length)
{
    given_an_injector_of(3);
    DIES("3 inside, says 7", bz_store_relaxed(&in.length, 7); bz_injector_check(&in));
}

/* A runtime's memory is not cleared before it is made. */
TEST(injector, init_overwrites_all_old_content)
{
    memset(&in, 0xff, sizeof in);
    bz_injector_init(&in, &bz_os_system);
    CHECK_EQ(bz_injector_length(&in), (size_t)0);
    CHECK_EQ(bz_injector_urgent(&in), (size_t)0);
    CHECK_EQ(bz_injector_take(&in, got, N, 1), 0u);
    bz_injector_check(&in);
}

/* ---- the urgent lane ---- */

TEST(injector, an_urgent_entry_is_taken_alone_and_before_all_others)
{
    given_an_injector_of(10);
    bz_injector_push_urgent(&in, bz_entry_resumed(&tasks[20]));
    bz_injector_push_urgent(&in, bz_entry_resumed(&tasks[21]));
    bz_injector_check(&in);
    CHECK_EQ(bz_injector_length(&in), (size_t)12);
    CHECK_EQ(bz_injector_take(&in, got, 0, 1), 0u);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(bz_injector_urgent(&in), (size_t)2 - (size_t)i);
        CHECK_EQ(bz_injector_take(&in, got, N, 1), 1u);
        CHECK_EQ(got[0], bz_entry_resumed(&tasks[20 + i]));
        bz_injector_check(&in);
    }
    CHECK_EQ(bz_injector_take(&in, got, N, 1), 10u);
}

/* Wake-ups that never stop must not starve tasks that have not begun. */
TEST(injector, urgent_entries_leave_the_others_a_turn)
{
    int turns = 0;
    given_an_injector_of(3);
    for (int i = 0; i < 2 * BZ_URGENT_ROW; i++) {
        bz_injector_push_urgent(&in, bz_entry_resumed(&tasks[20 + i]));
        turns += bz_injector_take(&in, got, 1, 1) == 1 && got[0] == bz_entry_resumed(&tasks[0]);
        bz_injector_check(&in);
    }
    CHECK_EQ(turns, 1);
    while (bz_injector_urgent(&in) > 0)
        CHECK_GE(bz_injector_take(&in, got, N, 1), 1u);
    bz_injector_check(&in);
}
