/*
 * mailbox_model.c - actor/mailbox.h: the queue as the schedule, signals, and death, in every order.
 *
 *   covers: src/actor/mailbox.h src/base/mailq.h
 *
 * A toy worker around the real mailbox. The run queue is one slot: to place an actor that is placed already is an error, and
 * so is a push for which no worker comes (the worker waits for ever). `turns` is a plain field of the actor: two workers at
 * once, or a worker that touches the actor after its rest, are a data race.
 */
#include "actor/mailbox.h"

#include "model.h"

struct mail {
    struct bz_mpsc_node node;
    bz_shared(uint32_t) generation;
    bz_shared(int) value;
};

struct note {
    struct bz_signal_link link;
    bz_shared(int) value;
};

static struct bz_mailbox box;
static bz_atomic(uint32_t) placed; /* 1: in the run queue */
static bz_shared(int) turns;       /* the owner's */
static bz_shared(int) is_done;     /* the owner's: the first node was handled in an earlier turn */
static struct mail mail[4];
static struct note notes[2];

static int got[8], got_count, heard[4], heard_count; /* the owner's, looked at in the end */
static int dropped, refused, silent, late, nodes_to_come;
static bool dies_of_mail;    /* the actor dies of the first message */
static bool dies_of_signals; /* ... or of the first signal */
static uint32_t mine;        /* the generation that the owner handles */

static void place(void)
{
    uint32_t was = bz_xchg_acqrel(&placed, 1);
    m_assert(was == 0); /* never placed twice */
    m_word_wake(&placed, 1);
}

static void clear_results(void)
{
    got_count = heard_count = dropped = refused = silent = late = 0;
    dies_of_mail = dies_of_signals = false;
}

/* A living actor that is idle, as after its first turn. */
static void given_an_idle_actor(void)
{
    bz_mailbox_init(&box);
    mine = bz_mailbox_open(&box);
    bool is_empty = bz_mailq_rest(&box.queue, &box.stub);
    m_assert(is_empty);
    bz_atomic_init(&placed, 0);
    bz_set(&turns, 0);
    bz_set(&is_done, 0);
    clear_results();
}

/* ---- senders ---- */

static void send_if_alive(int i)
{
    uint32_t behind, generation = 1;
    if (!bz_mailbox_is_for(&box, generation)) {
        refused++;
        return;
    }
    bz_set(&mail[i].generation, generation);
    bz_set(&mail[i].value, i);
    if (bz_mailbox_push(&box, &mail[i].node, &behind))
        place();
    late += !bz_mailbox_is_still_for(&box, generation);
}

static void signal_if_alive(int i)
{
    bool is_first;
    bz_set(&notes[i].value, i);
    if (!bz_mailbox_signal(&box, &notes[i].link, &is_first))
        refused++;
    else if (!is_first)
        silent++;
    else if (bz_mailbox_ring(&box))
        place();
}

static void sends_0_and_1(void)
{
    send_if_alive(0);
    send_if_alive(1);
}

static void sends_0(void)
{
    send_if_alive(0);
}

static void sends_2(void)
{
    send_if_alive(2);
}

static void signals_0(void)
{
    signal_if_alive(0);
}

static void signals_1(void)
{
    signal_if_alive(1);
}

static void rings(void)
{
    if (bz_mailbox_ring(&box))
        place();
}

static void rings_twice(void)
{
    rings();
    rings();
}

/* ---- the worker ---- */

static void take_signals(struct bz_signal_link *s)
{
    for (; s != NULL; s = bz_get(&s->next))
        heard[heard_count++] = bz_get(&BZ_CONTAINER_OF(s, struct note, link)->value);
}

/* Handle the first node. False: the actor dies of it. */
static bool handle(struct bz_mpsc_node *node)
{
    if (node == &box.stub)
        return true;
    if (bz_mailbox_is_bell(&box, node)) {
        bz_mailbox_hear(&box, node);
        take_signals(bz_mailbox_take_signals(&box));
        return true;
    }
    struct mail *m = BZ_CONTAINER_OF(node, struct mail, node);
    if (bz_get(&m->generation) != mine) {
        dropped++;
        return true;
    }
    got[got_count++] = bz_get(&m->value);
    return !dies_of_mail;
}

/* Die: drop everything before the stub. */
static void die(struct bz_mpsc_node *first, bool is_handled)
{
    if (!is_handled && bz_mailbox_is_bell(&box, first))
        bz_mailbox_hear(&box, first);
    take_signals(bz_mailbox_close(&box));
    while (first != &box.stub) {
        struct bz_mpsc_node *next = bz_mailbox_step(&box, first);
        if (next == NULL) {
            m_relax(); /* a push in its gap */
            continue;
        }
        first = next;
        if (first != &box.stub) {
            if (bz_mailbox_is_bell(&box, first))
                bz_mailbox_hear(&box, first);
            else
                dropped++;
        }
    }
}

/* One turn. True: the actor is alive. */
static bool run(void)
{
    bz_set(&turns, bz_get(&turns) + 1);
    struct bz_mpsc_node *first = bz_mailq_first(&box.queue);
    m_assert(first != NULL);
    if (first == &box.stub) { /* the first turn: it must not die before */
        while ((first = bz_mailbox_step(&box, &box.stub)) == NULL)
            m_relax();
    }
    bool was_done = bz_get(&is_done);
    bz_set(&is_done, 0);
    for (;;) {
        int heard_before = heard_count;
        if (bz_mailbox_has_signals(&box))
            take_signals(bz_mailbox_take_signals(&box));
        if (dies_of_signals && heard_count > heard_before) {
            die(first, was_done);
            return false;
        }
        if (!was_done && !handle(first)) {
            die(first, true);
            return false;
        }
        was_done = false;
        struct bz_mpsc_node *next = bz_mailbox_step(&box, first);
        if (next == NULL)
            break;
        first = next;
    }
    if (bz_mailq_rest(&box.queue, first))
        return true; /* the actor is not ours any more */
    bz_set(&is_done, 1);
    while (bz_mailq_second(first) == NULL)
        m_relax(); /* the push is in its gap: a real worker comes back when others have run */
    place();
    return true;
}

static void await_turn(void)
{
    while (!bz_xchg_acqrel(&placed, 0))
        m_word_wait(&placed, 0);
}

static void works(void)
{
    bool lives = true;
    while (lives && got_count + heard_count < nodes_to_come) {
        await_turn();
        lives = run();
    }
}

/* After the threads: run what is still placed. */
static void finish(void)
{
    while (bz_xchg_acqrel(&placed, 0) && run())
        ;
}

static void it_is_idle(void)
{
    m_assert(bz_load_relaxed(&placed) == 0);
    m_assert(bz_mailq_is_empty(&box.queue));
    m_assert(bz_load_relaxed(&box.added) == bz_load_relaxed(&box.removed)); /* I5 */
    m_assert(bz_load_relaxed(&box.signals) == NULL);
    m_assert((bz_load_relaxed(&box.ringing) & BZ_RINGING) == 0);
}

static bool was_got(int value)
{
    for (int i = 0; i < got_count; i++)
        if (got[i] == value)
            return true;
    return false;
}

/* ---- the schedule ---- */

/* A message that comes while the actor goes to rest is handled: by the worker that fails to rest, or by the one that the
 * push places. */
MODEL(mailbox, bug_01_a_message_at_rest_is_not_lost)
{
    given_an_idle_actor();
    nodes_to_come = 2;
    m_threads(sends_0_and_1, works);
    m_assert(got_count == 2 && got[0] == 0 && got[1] == 1);
    m_sometimes(bz_get(&turns) == 1);
    m_sometimes(bz_get(&turns) == 2);
    finish();
    m_finally(it_is_idle);
}

MODEL(mailbox, messages_of_two_senders_are_handled_once_and_in_order)
{
    given_an_idle_actor();
    nodes_to_come = 3;
    m_threads(sends_0_and_1, sends_2, works);
    m_assert(got_count == 3 && was_got(0) && was_got(1) && was_got(2));
    m_assert(got[0] != 1); /* behind 0 */
    m_sometimes(got[0] == 2);
    m_sometimes(got[2] == 2);
    finish();
    m_finally(it_is_idle);
}

/* Two workers: the second may begin as soon as the first rests. [C] carries the actor's own memory from one to the other. */
static void works_once(void)
{
    if (bz_xchg_acqrel(&placed, 0))
        (void)run();
}

MODEL(mailbox, bug_04_the_next_worker_sees_what_the_last_one_wrote)
{
    given_an_idle_actor();
    m_threads(sends_0, works_once, works_once);
    finish();
    m_assert(got_count == 1);
    m_finally(it_is_idle);
}

/* ---- signals ---- */

/* [R]: a signal wakes an idle actor, and comes to a running one, at rest as well. */
MODEL(mailbox, bug_01_a_signal_at_rest_is_not_lost)
{
    given_an_idle_actor();
    nodes_to_come = 2;
    m_threads(sends_0, signals_0, works);
    m_assert(got_count == 1 && heard_count == 1);
    finish();
    m_finally(it_is_idle);
}

/* Two signals use one bell, or both in turn. */
MODEL(mailbox, bug_01_two_signals_are_both_heard)
{
    given_an_idle_actor();
    nodes_to_come = 2;
    m_threads(signals_0, signals_1, works);
    m_assert(heard_count == 2 && heard[0] + heard[1] == 1);
    m_sometimes(bz_load_relaxed(&box.ringing) / BZ_BELL == 2); /* both bells */
    finish();
    m_finally(it_is_idle);
}

/* A signal on top of another does not ring. The worker may take both before it comes to the bell of the first, and the first
 * may ring after that. */
MODEL(mailbox, bug_01_a_signal_that_does_not_ring_is_heard)
{
    given_an_idle_actor();
    nodes_to_come = 3;
    m_threads(sends_0, signals_0, signals_1, works);
    m_assert(got_count == 1 && heard_count == 2 && heard[0] + heard[1] == 1);
    m_sometimes(silent == 0);
    m_sometimes(silent == 1);
    finish();
    m_finally(it_is_idle);
}

static void signals_both(void)
{
    signal_if_alive(0);
    signal_if_alive(1);
}

MODEL(mailbox, signals_of_one_sender_keep_their_order)
{
    given_an_idle_actor();
    nodes_to_come = 2;
    m_threads(signals_both, works);
    m_assert(heard_count == 2 && heard[0] == 0 && heard[1] == 1);
    finish();
    m_finally(it_is_idle);
}

/* I2: a bell that is heard and not yet stepped over is not pushed again. */
MODEL(mailbox, bells_that_are_rung_again_and_again_are_in_the_queue_once)
{
    given_an_idle_actor();
    m_threads(rings_twice, rings, works_once);
    finish();
    m_finally(it_is_idle);
}

/* ---- death ---- */

/* No node is left for a dead actor that its sender does not know about, and none of them places it. */
static void nothing_is_lost_at_death(void)
{
    m_assert(bz_load_relaxed(&placed) == 0);
    m_assert(bz_mailq_first(&box.queue) == &box.stub); /* I1 */
}

/* The next actor in the same memory. Its start message is mail[3]. */
static void given_the_next_life(void)
{
    uint32_t behind;
    dies_of_mail = false;
    mine = bz_mailbox_open(&box);
    m_assert(mine == 3);
    bz_set(&mail[3].generation, mine);
    bz_set(&mail[3].value, 3);
    bool is_first = bz_mailbox_push(&box, &mail[3].node, &behind);
    m_assert(!is_first); /* the stub is there: its spawner places it */
    place();
}

/* [G]: a message to a dying actor is dropped by it, or refused, or its sender sees the death. The next actor never gets it. */
MODEL(mailbox, bug_39_a_message_to_the_dead_reaches_no_actor)
{
    given_an_idle_actor();
    nodes_to_come = 9;
    dies_of_mail = true;
    m_threads(sends_0, sends_2, works);
    nothing_is_lost_at_death();
    int left = 2 - got_count - dropped - refused;
    m_assert(got_count == 1);
    m_assert(late >= left);
    m_sometimes(left == 1);
    m_sometimes(dropped == 1);
    m_sometimes(refused == 1);

    given_the_next_life();
    finish();
    m_assert(got_count == 2 && got[1] == 3);
    m_assert(dropped + refused == 1);
    m_finally(it_is_idle);
}

/* [S]: a signal to a dying actor is taken by it, or refused. */
MODEL(mailbox, bug_39_a_signal_to_the_dead_is_taken_or_refused)
{
    given_an_idle_actor();
    nodes_to_come = 9;
    dies_of_mail = true;
    m_threads(sends_0, signals_0, works);
    nothing_is_lost_at_death();
    m_assert(heard_count + refused == 1);
    m_sometimes(heard_count == 1);
    m_sometimes(refused == 1);

    given_the_next_life();
    finish();
    m_assert(got_count == 2 && got[1] == 3);
    m_finally(it_is_idle);
}

/* A ring that comes too late is heard by the next life, and that life can be rung again. */
static void works_next_life(void)
{
    await_turn();
    (void)run();
}

MODEL(mailbox, a_bell_outlives_its_actor)
{
    given_an_idle_actor();
    nodes_to_come = 9;
    dies_of_mail = true;
    m_threads(sends_0, rings, works);
    nothing_is_lost_at_death();
    given_the_next_life();
    works_next_life();
    signal_if_alive(1);
    finish();
    m_assert(heard_count == 1 && heard[0] == 1);
    m_finally(it_is_idle);
}

/* An actor may die of a signal before it has handled its start message. Its stub is out of the queue by then. */
MODEL(mailbox, bug_39_a_newborn_may_die_of_a_signal)
{
    uint32_t behind;
    bz_mailbox_init(&box);
    mine = bz_mailbox_open(&box);
    bz_atomic_init(&placed, 0);
    bz_set(&turns, 0);
    bz_set(&is_done, 0);
    clear_results();
    dies_of_signals = true;
    nodes_to_come = 9;
    bz_set(&mail[1].generation, mine);
    bz_set(&mail[1].value, 1);
    bool is_first = bz_mailbox_push(&box, &mail[1].node, &behind);
    m_assert(!is_first);
    place();
    m_threads(signals_0, works_once);
    finish();
    if (bz_mailbox_is_for(&box, 1)) { /* it has heard the signal with a bell that it handled last */
        m_assert(heard_count == 1);
        m_finally(it_is_idle);
        return;
    }
    nothing_is_lost_at_death();
    m_assert(heard_count == 1);
    m_sometimes(got_count == 0);
    m_sometimes(got_count == 1);
    dies_of_signals = false;
    got_count = 0;
    given_the_next_life();
    finish();
    m_assert(got_count == 1 && got[0] == 3);
    m_finally(it_is_idle);
}

/* The kill mark shares its word with the bells. */
static void kills(void)
{
    bz_mailbox_kill(&box);
}

MODEL(mailbox, a_kill_mark_and_a_ring_do_not_undo_each_other)
{
    given_an_idle_actor();
    m_threads(kills, rings, works_once);
    finish();
    m_assert(bz_mailbox_is_killed(&box));
    m_finally(it_is_idle);
}

MODEL(mailbox, the_next_life_is_not_killed_and_hears_a_late_ring)
{
    given_an_idle_actor();
    bz_mailbox_kill(&box);
    dies_of_mail = true;
    send_if_alive(0);
    finish();
    m_threads(rings, given_the_next_life);
    finish();
    m_assert(!bz_mailbox_is_killed(&box));
    signal_if_alive(1);
    finish();
    m_assert(heard_count == 1);
    m_finally(it_is_idle);
}

/* ---- the reason of the second look ---- */

/* Without the second look a call to the dead would wait for ever: there are messages that no actor will answer. */
MODEL_FAILS(mailbox, every_message_to_the_dead_is_dropped_by_it, "left == 0")
{
    given_an_idle_actor();
    nodes_to_come = 9;
    dies_of_mail = true;
    m_threads(sends_0, sends_2, works);
    int left = 2 - got_count - dropped - refused;
    m_assert(left == 0);
}
