/* sched/injector.h: order, shares and the length that is read without the lock. */
#include "harness.h"

#include "os/os.h"
#include "sched/injector.h"
#include "support/death.h"

enum { N = 400 };
static struct bz_injector in;
static struct item {
    struct bz_link link;
    int value;
} items[N];

static void given_an_injector_of(int count)
{
    bz_injector_init(&in, &bz_os_linux);
    for (int i = 0; i < count; i++) {
        items[i].value = i;
        bz_injector_push(&in, &items[i].link);
    }
    bz_injector_check(&in);
}

static int value_of(struct bz_link *l)
{
    return BZ_CONTAINER_OF(l, struct item, link)->value;
}

TEST(injector, an_empty_one_gives_nothing)
{
    given_an_injector_of(0);
    struct bz_chain got = bz_injector_take(&in, 2);
    CHECK(bz_chain_is_empty(&got));
    CHECK_EQ(bz_injector_length(&in), 0u);
}

TEST(injector, first_in_is_first_out_over_many_batches)
{
    given_an_injector_of(N);
    int next = 0;
    while (bz_injector_length(&in) > 0) {
        struct bz_chain got = bz_injector_take(&in, 4);
        CHECK(!bz_chain_is_empty(&got));
        for (struct bz_link *l; (l = bz_chain_take_front(&got)) != NULL;)
            CHECK_EQ(value_of(l), next++);
        bz_injector_check(&in);
    }
    CHECK_EQ(next, N);
}

/* A share of what is there, but never so little that the lock is not worth it, nor so much that
 * the others go hungry. */
TEST(injector, a_proc_takes_its_share_between_4_and_64)
{
    static const struct {
        int length;
        unsigned procs;
        size_t share;
    } rows[] = {{1, 2, 1},    {3, 8, 3},    {4, 8, 4},    {5, 1, 5},     {16, 8, 4},   {40, 8, 5},
                {100, 2, 50}, {128, 2, 64}, {400, 2, 64}, {400, 100, 4}, {400, 1, 64}, {10, 0, 10}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(rows); i++) {
        given_an_injector_of(rows[i].length);
        struct bz_chain got = bz_injector_take(&in, rows[i].procs);
        CHECK_EQ(got.count, rows[i].share);
        CHECK_EQ(bz_injector_length(&in), (size_t)rows[i].length - rows[i].share);
    }
}

TEST(injector, a_whole_chain_goes_in_at_once_and_in_order)
{
    struct bz_chain batch;
    given_an_injector_of(2);
    bz_chain_init(&batch);
    for (int i = 2; i < 10; i++) {
        items[i].value = i;
        bz_chain_push_back(&batch, &items[i].link);
    }

    bz_injector_push_all(&in, &batch);

    CHECK(bz_chain_is_empty(&batch));
    struct bz_chain got = bz_injector_take(&in, 1);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(value_of(bz_chain_take_front(&got)), i);
}

static bz_atomic(uint64_t) taken;
static struct item *many;
static uint64_t each;

static void push_and_take(void *arg, int index)
{
    (void)arg;
    for (uint64_t i = 0; i < each; i++) {
        struct item *it = &many[(uint64_t)index * each + i];
        bz_injector_push(&in, &it->link);
        if (i % 8 == 7) {
            struct bz_chain got = bz_injector_take(&in, 4);
            for (struct bz_link *l; (l = bz_chain_take_front(&got)) != NULL;) {
                CHECK_EQ(BZ_CONTAINER_OF(l, struct item, link)->value++, 0);
                bz_fetch_add_relaxed(&taken, 1);
            }
        }
    }
}

TEST(injector, four_threads_lose_and_double_nothing)
{
    each = t_scaled(20000);
    CHECK_NOT_NULL(many = calloc(4 * each, sizeof *many));
    bz_injector_init(&in, &bz_os_linux);
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
