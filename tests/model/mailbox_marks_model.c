/*
 * mailbox_marks_model.c - the marks and the count of a mailbox, which several threads change at once.
 *
 *   covers: src/actor/mailbox.h
 */
#include "actor/mailbox.h"

#include "model.h"

static struct bz_mailbox box;

static void given_an_actor(void)
{
    bz_mailbox_init(&box);
    (void)bz_mailbox_open(&box);
}

/* The actor and its task. */
static void sets_and_clears_each_mark(void)
{
    bz_mailbox_set_heap_late(&box, true);
    bz_mailbox_set_heap_late(&box, false);
    (void)bz_mailbox_be_hungry(&box, true);
    (void)bz_mailbox_be_hungry(&box, false);
    (void)bz_mailbox_trap(&box, true);
    (void)bz_mailbox_trap(&box, false);
    bz_mailbox_relieve_long(&box);
}

static void kills(void)
{
    bz_mailbox_kill(&box);
}

/* The marks are in one word, and each has a writer of its own. */
MODEL(mailbox_marks, a_kill_is_not_lost_beside_other_marks)
{
    given_an_actor();
    m_threads(sets_and_clears_each_mark, kills);
    m_assert(bz_mailbox_is_killed(&box));
    m_assert(!bz_mailbox_is_heap_late(&box) && !bz_mailbox_is_hungry(&box));
    m_assert(!bz_mailbox_is_trapping(&box));
}

static void holds_one(void)
{
    bz_mailbox_hold(&box);
}

static void holds_one_and_lets_go(void)
{
    bz_mailbox_hold(&box);
    bz_mailbox_let_go(&box, 1);
}

/* I5: messages that have moved on to the inbox of a task count. */
MODEL(mailbox_marks, messages_that_moved_on_are_counted)
{
    given_an_actor();
    uint32_t before = bz_mailbox_length(&box);
    m_threads(holds_one, holds_one_and_lets_go);
    m_assert(bz_mailbox_length(&box) == before + 1);
}
