/*
 * once_model.c - a value is made once, seen whole, and made by the next if the first one fails; and a
 * notification is for one who hears it, or kept.
 *
 *   covers: src/sync/once.c src/sync/notify.c src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1
 */
#include "sync_toy.h"

/* ---- once ---- */

static blitz_once once;
static bz_shared(int) data;
static int attempts, made, failed;
static int fails; /* how many attempts do */

static int makes(void *arg, void **value)
{
    (void)arg;
    if (attempts++ < fails) {
        failed++;
        return -EIO;
    }
    made++;
    bz_set(&data, 7);
    *value = &made;
    return 0;
}

static void gets(void)
{
    void *value = NULL;
    int err = blitz_once_get(&once, makes, NULL, &value, BLITZ_FOREVER);
    if (err == 0)
        m_assert(value == &made && bz_get(&data) == 7);
    else
        m_assert(err == -EIO);
}

static void looks(void)
{
    void *value = NULL;
    if (blitz_once_try_get(&once, &value) == 0)
        m_assert(value == &made && bz_get(&data) == 7);
}

static void given_once(int failures)
{
    blitz_once_init(&once);
    bz_set(&data, 0);
    attempts = made = failed = 0;
    fails = failures;
}

/* [V]. */
MODEL(once, a_value_is_made_once_and_seen_whole)
{
    given_once(0);
    m_threads(gets, gets, looks);
    m_assert(made == 1);
}

MODEL(once, a_failure_lets_the_next_try)
{
    given_once(1);
    m_threads(gets, gets);
    m_assert(failed == 1 && made == 1);
}

static void gets_until(void)
{
    void *value = NULL;
    int err = blitz_once_get(&once, makes, NULL, &value, 1000);
    if (err == 0)
        m_assert(value == &made && bz_get(&data) == 7);
    else
        m_assert(err == -EIO || err == -ETIMEDOUT);
}

/* Bug class 22: the turn of one who has gone is the next one's. */
MODEL(once, bug_22_the_turn_of_a_cancelled_waiter_is_not_lost)
{
    given_once(1);
    m_threads(gets, gets_until);
    m_assert(failed == 1 && made <= 1);
    m_sometimes(made == 0); /* the second one had gone */
}

/* ---- notify ---- */

static blitz_notify notify;
static int heard;

static void notifies(void)
{
    bz_set(&data, 7);
    blitz_notify_one(&notify);
}

static void hears(void)
{
    if (blitz_notify_wait(&notify, BLITZ_FOREVER) == 0)
        m_assert(bz_get(&data) == 7);
}

static void hears_until(void)
{
    if (blitz_notify_wait(&notify, 1000) == 0) {
        m_assert(bz_get(&data) == 7);
        heard++;
    }
}

static void given_notify(void)
{
    blitz_notify_init(&notify);
    bz_set(&data, 0);
    heard = 0;
}

MODEL(notify, a_notification_is_heard_whenever_it_comes)
{
    given_notify();
    m_threads(hears, notifies);
    m_assert(blitz_notify_try_wait(&notify) == -EAGAIN);
}

/* Bug class 22. */
MODEL(notify, bug_22_a_notification_for_a_waiter_that_left_is_kept)
{
    given_notify();
    m_threads(hears_until, notifies);
    m_assert((blitz_notify_try_wait(&notify) == 0) == (heard == 0));
    m_sometimes(heard == 0);
    m_sometimes(heard == 1);
}

static void notifies_all(void)
{
    bz_set(&data, 7);
    blitz_notify_all(&notify);
}

static void hears_all_or_gives_up(void)
{
    if (blitz_notify_wait(&notify, 1000) == 0)
        heard++;
}

MODEL(notify, a_notification_for_all_is_not_kept)
{
    given_notify();
    m_threads(hears_all_or_gives_up, notifies_all);
    m_assert(blitz_notify_try_wait(&notify) == -EAGAIN);
    m_sometimes(heard == 1);
}
