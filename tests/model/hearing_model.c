/*
 * hearing_model.c - a request that its sender takes back while its receiver hears it, and while one of them ends.
 *
 *   covers: src/actor/hearing.h src/actor/mailbox.h
 */
#include "model.h"

#include "actor/hearing.h"
#include "actor/mailbox.h"

struct request {
    struct bz_signal_link link;
    struct bz_hearing hearing;
    bz_shared(int) text;
};

static struct request *request;
static bz_atomic(int) second; /* the signal that ends what was heard */
static int freed, dropped;

static struct bz_mailbox box; /* of the sender */
static bz_atomic(int) is_dead;
static struct bz_mpsc_node first;

static void given_a_request(void)
{
    request = m_alloc(sizeof *request);
    bz_hearing_init(&request->hearing);
    bz_set(&request->text, 7);
    bz_atomic_init(&second, 0);
    freed = dropped = 0;
}

static void is_over(void)
{
    bz_set(&request->text, 0); /* a race, if the sender still looks at it */
    m_free(request);
    freed++;
}

static void sender(void)
{
    if (!bz_hearing_try_withdraw(&request->hearing))
        bz_store_release(&second, 1);
}

static void receiver(void)
{
    if (!bz_hearing_try_hear(&request->hearing)) {
        dropped++;
        is_over();
        return;
    }
    m_assert(bz_get(&request->text) == 7);
    while (bz_load_acquire(&second) == 0)
        m_yield();
    is_over();
}

/* hearing.h [W]: one of the two ends it, and the memory is freed when the sender has left it. */
MODEL(hearing, a_request_that_is_taken_back_ends_once)
{
    given_a_request();
    m_threads(sender, receiver);
    m_assert(freed == 1);
    m_sometimes(dropped == 1);
    m_sometimes(dropped == 0);
}

/* ---- both end ---- */

/* It has handled its start message, and handles another: I1 of mailbox.h. */
static void given_a_sender_that_runs(void)
{
    uint32_t behind;
    bz_mailbox_init(&box);
    (void)bz_mailbox_open(&box);
    bool is_empty = bz_mailq_rest(&box.queue, &box.stub);
    m_assert(is_empty);
    bool is_placed = bz_mailbox_push(&box, &first, &behind);
    m_assert(is_placed);
    bz_atomic_init(&is_dead, 0);
}

/* The sender looks at its request for the last time, and ends. Signals that it has not seen are freed. */
static void sender_ends(void)
{
    (void)!bz_hearing_try_withdraw(&request->hearing);
    if (bz_mailbox_close(&box) != NULL)
        is_over();
    bz_store_release(&is_dead, 1);
}

/* The receiver ends. It sends what it has heard back, and frees it if the sender is gone. */
static void receiver_ends(void)
{
    bool is_first;
    if (!bz_hearing_try_hear(&request->hearing)) {
        dropped++;
        is_over();
        return;
    }
    if (!bz_mailbox_takes_signals(&box, 1) || !bz_mailbox_signal(&box, &request->link, &is_first))
        is_over();
}

/* Another actor is born in the memory of the sender. */
static void next_life(void)
{
    if (bz_load_acquire(&is_dead) != 0)
        (void)bz_mailbox_open(&box);
}

static void it_is_freed_once(void)
{
    if (bz_load_relaxed(&box.signals) ==
        &request->link) /* relaxed: the end. The next life drops it */
        is_over();
    m_assert(freed == 1);
}

/* mailbox.h [H]: a receiver that is refused frees the request after the sender's last look. */
MODEL(hearing, a_request_is_freed_after_the_last_look_of_a_sender_that_ends)
{
    given_a_request();
    given_a_sender_that_runs();
    m_threads(sender_ends, receiver_ends, next_life);
    it_is_freed_once();
    m_sometimes(dropped == 1);
    m_sometimes(dropped == 0);
}
