/* trace/tracering.h: the last records of one writer. */
#include "harness.h"

#include "trace/tracering.h"

enum { SIZE = 8 };
static bz_atomic(uint64_t) words[SIZE * BZ_RECORD_WORDS];
static struct bz_tracering ring;

static void given(unsigned written)
{
    bz_tracering_init(&ring, words, SIZE);
    for (uint64_t n = 0; n < written; n++)
        bz_tracering_push(&ring, &(struct bz_record){{n, n + 1, n + 2, n + 3}});
}

static void check_is(const struct bz_record *r, uint64_t n)
{
    for (unsigned i = 0; i < BZ_RECORD_WORDS; i++)
        CHECK_EQ(r->word[i], n + i);
}

TEST(tracering, an_empty_one_gives_nothing)
{
    struct bz_record out[SIZE];
    uint64_t at = 0, lost = 0;
    given(0);
    CHECK_EQ(bz_tracering_read(&ring, &at, out, SIZE, &lost), 0u);
    CHECK_EQ(at, 0u);
    CHECK_EQ(lost, 0u);
}

TEST(tracering, records_are_read_in_order)
{
    struct bz_record out[SIZE];
    uint64_t at = 0, lost = 0;
    given(SIZE - 1);
    CHECK_EQ(bz_tracering_read(&ring, &at, out, SIZE, &lost), SIZE - 1u);
    for (unsigned i = 0; i < SIZE - 1; i++)
        check_is(&out[i], i);
    CHECK_EQ(lost, 0u);
}

TEST(tracering, the_oldest_are_overwritten_and_counted)
{
    struct bz_record out[SIZE];
    uint64_t at = 0, lost = 0;
    given(100);
    CHECK_EQ(bz_tracering_read(&ring, &at, out, SIZE, &lost), SIZE - 1u);
    CHECK_EQ(lost, 100u - (SIZE - 1));
    check_is(&out[0], 100 - (SIZE - 1));
    check_is(&out[SIZE - 2], 99);
    CHECK_EQ(at, 100u);
}

TEST(tracering, a_small_buffer_takes_them_in_pieces)
{
    struct bz_record out[3];
    uint64_t at = 2, lost = 0;
    given(6);
    CHECK_EQ(bz_tracering_read(&ring, &at, out, 3, &lost), 3u);
    check_is(&out[0], 2);
    CHECK_EQ(at, 5u);
    CHECK_EQ(bz_tracering_read(&ring, &at, out, 3, &lost), 1u);
    check_is(&out[0], 5);
    CHECK_EQ(bz_tracering_read(&ring, &at, out, 3, &lost), 0u);
    CHECK_EQ(at, 6u);
    CHECK_EQ(lost, 0u);
}

/* A trace that begins now begins at a number that is not reached yet. */
TEST(tracering, from_a_number_to_come_there_is_nothing)
{
    struct bz_record out[SIZE];
    uint64_t at = 6, lost = 0;
    given(6);
    CHECK_EQ(bz_tracering_read(&ring, &at, out, SIZE, &lost), 0u);
    CHECK_EQ(at, 6u);
    CHECK_EQ(lost, 0u);
}
