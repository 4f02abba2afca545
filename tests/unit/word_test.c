/* task/word.h: the table, cell by cell, and the fields around it. */
#include "harness.h"

#include "support/death.h"
#include "task/word.h"

static bz_word word;

/* The rows of the table in word.c, brought about by the events that lead there. */
enum row { IDLE, SCHEDULED, RUNNING, NOTIFIED, COMPLETE, ROWS };

static void given(enum row row)
{
    static const enum bz_event way[ROWS][4] = {
        [IDLE] = {BZ_RUN, BZ_PARK, BZ_EVENTS}, [SCHEDULED] = {BZ_EVENTS},
        [RUNNING] = {BZ_RUN, BZ_EVENTS},       [NOTIFIED] = {BZ_RUN, BZ_WAKE, BZ_EVENTS},
        [COMPLETE] = {BZ_RUN, BZ_EVENTS}, /* and an exit */
    };
    bz_word_init(&word, BZ_SCHEDULED, 1);
    for (const enum bz_event *e = way[row]; *e != BZ_EVENTS; e++)
        (void)!bz_word_step(&word, *e);
    if (row == COMPLETE)
        (void)!bz_word_exit(&word, 0);
    bz_word_check(&word);
}

static enum row row_now(void)
{
    static const enum row rows[BZ_LIVES] = {IDLE, SCHEDULED, RUNNING, COMPLETE};
    uint64_t w = bz_load_relaxed(&word);
    return (w & BZ_WORD_NOTIFIED) ? NOTIFIED : rows[w & BZ_WORD_LIFE];
}

struct cell {
    enum row from;
    enum bz_event event;
    enum row to;
    enum bz_owes owes;
};
static const struct cell cells[] = {
    {IDLE, BZ_WAKE, SCHEDULED, BZ_OWES_ENQUEUE},
    {SCHEDULED, BZ_WAKE, SCHEDULED, BZ_OWES_NOTHING},
    {SCHEDULED, BZ_RUN, RUNNING, BZ_OWES_NOTHING},
    {RUNNING, BZ_WAKE, NOTIFIED, BZ_OWES_NOTHING},
    {RUNNING, BZ_YIELD, SCHEDULED, BZ_OWES_ENQUEUE},
    {RUNNING, BZ_PARK, IDLE, BZ_OWES_NOTHING},
    {NOTIFIED, BZ_WAKE, NOTIFIED, BZ_OWES_NOTHING},
    {NOTIFIED, BZ_YIELD, SCHEDULED, BZ_OWES_ENQUEUE},
    {NOTIFIED, BZ_PARK, SCHEDULED, BZ_OWES_ENQUEUE},
    {COMPLETE, BZ_WAKE, COMPLETE, BZ_OWES_NOTHING},
};
enum { CELLS = sizeof cells / sizeof cells[0] };

TEST(word, every_step_of_the_table_leads_where_it_says)
{
    for (int i = 0; i < CELLS; i++) {
        const struct cell *c = &cells[i];
        given(c->from);
        CHECK_EQ((int)bz_word_step(&word, c->event), (int)c->owes);
        CHECK_EQ((int)row_now(), (int)c->to);
        bz_word_check(&word);
    }
}

TEST(word, every_other_step_is_a_bug_that_names_itself)
{
    int bad = 0;
    for (int row = 0; row < ROWS; row++)
        for (int event = 0; event < BZ_EVENTS; event++) {
            bool is_there = false;
            for (int i = 0; i < CELLS; i++)
                is_there |= (int)cells[i].from == row && (int)cells[i].event == event;
            if (is_there)
                continue;
            given((enum row)row);
            DIES(" while ", (void)!bz_word_step(&word, (enum bz_event)event));
            bad++;
        }
    CHECK_EQ(bad, ROWS * BZ_EVENTS - CELLS);
}

/* The steps of life leave the other fields alone, and the other way round. */
TEST(word, fields_do_not_disturb_one_another)
{
    for (int i = 0; i < CELLS; i++) {
        given(cells[i].from);
        bz_word_ref(&word);
        bz_word_ref(&word);
        bz_word_shield(&word);
        CHECK(bz_word_cancel(&word));
        (void)!bz_word_step(&word, cells[i].event);
        CHECK_EQ((int)row_now(), (int)cells[i].to);
        CHECK(!bz_word_is_cancelled(&word));
        bz_word_unshield(&word);
        CHECK(bz_word_is_cancelled(&word));
        CHECK(!bz_word_unref(&word));
        CHECK(!bz_word_unref(&word));
        CHECK_EQ((int)row_now(), (int)cells[i].to);
        CHECK(bz_word_unref(&word));
    }
}

TEST(word, only_the_first_cancel_owes_a_wake)
{
    given(RUNNING);
    CHECK(!bz_word_is_cancelled(&word));
    CHECK(bz_word_cancel(&word));
    CHECK(!bz_word_cancel(&word));
    CHECK(bz_word_is_cancelled(&word));
}

TEST(word, a_cancel_waits_for_the_outermost_shield)
{
    given(RUNNING);
    for (int i = 0; i < 255; i++)
        bz_word_shield(&word);
    CHECK(bz_word_cancel(&word));
    for (int i = 0; i < 255; i++) {
        CHECK(!bz_word_is_cancelled(&word));
        bz_word_unshield(&word);
    }
    CHECK(bz_word_is_cancelled(&word));
}

TEST(word, drop_reports_the_last_reference)
{
    bz_word_init(&word, BZ_SCHEDULED, 3);
    CHECK(!bz_word_unref(&word));
    CHECK(!bz_word_unref(&word));
    CHECK(bz_word_unref(&word));
}

TEST(word, completion_is_seen)
{
    given(RUNNING);
    CHECK(!bz_word_is_complete(&word));
    CHECK_EQ((int)bz_word_life(&word), (int)BZ_RUNNING);
    (void)!bz_word_exit(&word, 0);
    CHECK(bz_word_is_complete(&word));
}

/* ---- the claim ---- */

TEST(word, a_fresh_task_is_claimed_once)
{
    given(SCHEDULED);
    CHECK(bz_word_claim(&word, 0));
    CHECK_EQ((int)row_now(), (int)RUNNING);
    CHECK(!bz_word_claim(&word, 0));
    bz_word_check(&word);
}

TEST(word, a_claim_adds_references_only_if_it_wins)
{
    given(SCHEDULED);
    CHECK(bz_word_claim(&word, 2));
    CHECK(!bz_word_claim(&word, 2));
    CHECK(!bz_word_unref(&word));
    CHECK(!bz_word_unref(&word));
    CHECK(bz_word_unref(&word));
}

TEST(word, a_claimed_or_run_task_stays_started)
{
    given(SCHEDULED);
    CHECK(!bz_word_is_started(&word));
    (void)!bz_word_step(&word, BZ_WAKE);
    CHECK(!bz_word_is_started(&word));
    CHECK(bz_word_claim(&word, 0));
    CHECK(bz_word_is_started(&word));
    for (int row = 0; row < ROWS; row++) {
        given((enum row)row);
        CHECK_EQ(bz_word_is_started(&word), row != SCHEDULED);
    }
}

/* Scheduled for the second time is not fresh, however it came there. */
TEST(word, a_task_that_has_run_cannot_be_claimed)
{
    for (int row = 0; row < ROWS; row++) {
        if (row == SCHEDULED)
            continue;
        given((enum row)row);
        CHECK(!bz_word_claim(&word, 1));
        CHECK_EQ((int)row_now(), row);
    }
    for (int by_claim = 0; by_claim < 2; by_claim++) {
        given(SCHEDULED);
        if (by_claim)
            CHECK(bz_word_claim(&word, 0));
        else
            (void)!bz_word_step(&word, BZ_RUN);
        (void)!bz_word_step(&word, BZ_PARK);
        CHECK_EQ((int)bz_word_step(&word, BZ_WAKE), (int)BZ_OWES_ENQUEUE);
        CHECK_EQ((int)row_now(), (int)SCHEDULED);
        CHECK(!bz_word_claim(&word, 0));
    }
}

/* A wake or a cancel of a task that has not run does not hurry it, and does not start it either. */
TEST(word, a_woken_and_cancelled_fresh_task_is_still_to_be_claimed)
{
    given(SCHEDULED);
    CHECK_EQ((int)bz_word_step(&word, BZ_WAKE), (int)BZ_OWES_NOTHING);
    CHECK(bz_word_cancel(&word));
    CHECK(bz_word_claim(&word, 0));
    CHECK(bz_word_is_cancelled(&word));
}

/* ---- the end ---- */

TEST(word, an_exit_drops_the_given_references)
{
    static const struct {
        unsigned refs, drop;
        enum bz_exit end;
    } rows[] = {{1, 1, BZ_EXIT_LAST},
                {2, 1, BZ_EXIT_DONE},
                {2, 2, BZ_EXIT_LAST},
                {3, 2, BZ_EXIT_DONE},
                {2, 0, BZ_EXIT_DONE}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(rows); i++) {
        bz_word_init(&word, BZ_SCHEDULED, rows[i].refs);
        CHECK(bz_word_claim(&word, 0));
        CHECK_EQ((int)bz_word_exit(&word, rows[i].drop), (int)rows[i].end);
        CHECK(bz_word_is_complete(&word));
        if (rows[i].end == BZ_EXIT_DONE)
            CHECK(bz_word_drop(&word, rows[i].refs - rows[i].drop));
    }
}

TEST(word, an_exit_with_a_joiner_drops_nothing)
{
    given(NOTIFIED);
    CHECK(bz_word_want_join(&word));
    CHECK(bz_word_want_join(&word));
    CHECK_EQ((int)bz_word_exit(&word, 1), (int)BZ_EXIT_TELL);
    CHECK_EQ((int)row_now(), (int)COMPLETE);
    CHECK(!bz_word_want_join(&word));
    CHECK(bz_word_unref(&word));
}

TEST(word, an_exit_leaves_cancel_and_shield_alone)
{
    given(RUNNING);
    bz_word_ref(&word);
    CHECK(bz_word_cancel(&word));
    bz_word_shield(&word);
    CHECK_EQ((int)bz_word_exit(&word, 1), (int)BZ_EXIT_DONE);
    CHECK(!bz_word_is_cancelled(&word));
    bz_word_unshield(&word);
    CHECK(bz_word_is_cancelled(&word));
}

TEST(word, an_exit_of_a_task_that_does_not_run_aborts)
{
    static const enum row rows[] = {IDLE, SCHEDULED, COMPLETE};
    static const char *const says[] = {"exit while idle", "exit while scheduled",
                                       "exit while complete"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(rows); i++) {
        given(rows[i]);
        DIES(says[i], (void)!bz_word_exit(&word, 1));
    }
    given(RUNNING);
    DIES("one reference too few", (void)!bz_word_exit(&word, 2));
}

/* ---- found by its word ---- */

TEST(word, try_ref_succeeds_only_with_an_existing_reference)
{
    bz_word_init(&word, BZ_SCHEDULED, 1);
    CHECK(bz_word_try_ref(&word));
    CHECK(!bz_word_unref(&word));
    CHECK(bz_word_unref(&word));
    CHECK(!bz_word_try_ref(&word));
    CHECK(!bz_word_try_ref(&word));
    bz_store_relaxed(&word, 0); /* memory in which no task was ever made */
    CHECK(!bz_word_try_ref(&word));
}

TEST(word, fields_that_would_overflow_abort_instead)
{
    given(RUNNING);
    DIES("shields too deep", for (int i = 0; i < 256; i++) bz_word_shield(&word));
    DIES("one unshield too many", bz_word_unshield(&word));
    DIES("too many references", bz_store_relaxed(&word, BZ_WORD_REF_MASK); bz_word_ref(&word));
    DIES("too many references", bz_store_relaxed(&word, BZ_WORD_REF_MASK);
         (void)!bz_word_try_ref(&word));
    DIES("a reference to a dead task", bz_store_relaxed(&word, 0); bz_word_ref(&word));
    DIES("one reference too few", bz_store_relaxed(&word, 0); (void)!bz_word_unref(&word));
}

TEST(word, check_reports_each_broken_invariant)
{
    DIES("no such life", bz_store_relaxed(&word, BZ_WORD_REF_ONE | 9); bz_word_check(&word));
    DIES("notified but not running",
         bz_store_relaxed(&word, BZ_WORD_REF_ONE | BZ_WORD_NOTIFIED | BZ_IDLE);
         bz_word_check(&word));
    DIES("nobody's", bz_store_relaxed(&word, BZ_RUNNING); bz_word_check(&word));
    DIES("a field overflowed",
         bz_store_relaxed(&word, UINT64_C(1) << 60 | BZ_WORD_REF_ONE | BZ_RUNNING);
         bz_word_check(&word));
    DIES("task word", bz_store_relaxed(&word, 9); (void)!bz_word_step(&word, BZ_WAKE));
}
