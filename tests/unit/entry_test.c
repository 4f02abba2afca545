/* task/entry.h, task/chain.h: tagged entries, and chains of them. */
#include "harness.h"

#include "support/death.h"
#include "task/chain.h"

static struct bz_task a, b;
static struct job {
    bz_entry link;
    int value;
} job;

TEST(entry, a_tag_says_which_kind_it_is_and_leaves_the_pointer_whole)
{
    CHECK_EQ((int)bz_entry_tag(bz_entry_resumed(&a)), (int)BZ_ENTRY_RESUMED);
    CHECK_EQ((int)bz_entry_tag(bz_entry_first(&a)), (int)BZ_ENTRY_FIRST);
    CHECK_EQ((int)bz_entry_tag(bz_entry_of_job(&job)), (int)BZ_ENTRY_JOB);
    CHECK_EQ(bz_entry_task(bz_entry_resumed(&a)), &a);
    CHECK_EQ(bz_entry_task(bz_entry_first(&a)), &a);
    CHECK_EQ(bz_entry_job(bz_entry_of_job(&job)), (void *)&job);
}

TEST(entry, each_kind_has_a_link_word_of_its_own)
{
    CHECK_EQ(bz_entry_link(bz_entry_resumed(&a)), &a.next);
    CHECK_EQ(bz_entry_link(bz_entry_first(&a)), &a.first_next);
    CHECK_EQ(bz_entry_link(bz_entry_of_job(&job)), &job.link);
}

TEST(entry, a_chain_is_first_in_first_out_for_all_kinds_of_entries)
{
    const bz_entry in[5] = {bz_entry_first(&a), bz_entry_of_job(&job), bz_entry_resumed(&a),
                            bz_entry_first(&b), bz_entry_resumed(&b)};
    struct bz_entries c;
    bz_entries_init(&c);
    CHECK_EQ(bz_entries_take(&c), 0u);
    for (int round = 0; round < 2; round++) {
        CHECK(bz_entries_is_empty(&c));
        for (int i = 0; i < 5; i++)
            bz_entries_push(&c, in[i]);
        bz_entries_check(&c);
        for (int i = 0; i < 5; i++)
            CHECK_EQ(bz_entries_take(&c), in[i]);
        bz_entries_check(&c);
    }
}

TEST(entry, chains_are_joined_in_order_and_the_second_is_empty_then)
{
    struct bz_entries c, d;
    bz_entries_init(&c);
    bz_entries_init(&d);
    bz_entries_append(&c, &d);
    CHECK(bz_entries_is_empty(&c));
    bz_entries_push(&d, bz_entry_first(&a));
    bz_entries_append(&c, &d); /* to an empty one */
    bz_entries_push(&d, bz_entry_resumed(&a));
    bz_entries_push(&d, bz_entry_first(&b));
    bz_entries_append(&c, &d); /* to one that is not */
    CHECK(bz_entries_is_empty(&d));
    bz_entries_check(&d);
    bz_entries_check(&c);
    CHECK_EQ(c.count, 3u);
    CHECK_EQ(bz_entries_take(&c), bz_entry_first(&a));
    CHECK_EQ(bz_entries_take(&c), bz_entry_resumed(&a));
    CHECK_EQ(bz_entries_take(&c), bz_entry_first(&b));
}

static void two_in(struct bz_entries *c)
{
    bz_entries_init(c);
    bz_entries_push(c, bz_entry_first(&a));
    bz_entries_push(c, bz_entry_first(&b));
}

TEST(entry, check_reports_each_broken_invariant_of_a_chain)
{
    struct bz_entries c;
    two_in(&c);
    DIES("more than the 1 it says", c.count = 1; bz_entries_check(&c));
    DIES("2 links, says 3", c.count = 3; bz_entries_check(&c));
    DIES("ends at", c.last = c.first; bz_entries_check(&c));
}
