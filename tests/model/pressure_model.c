/*
 * pressure_model.c - actor/mailbox.h: mute against unmute, against signals, against overload and against death, in every order.
 *
 *   covers: src/actor/mailbox.h
 *   needs: src/os/lock.c src/os/self.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * Toy workers around real mailboxes, with the steps of src/actor/pressure.c. There are up to three actors. Each of them has a list
 * of those that are muted for it, with one place. One lock guards all lists. The marks are 0 and 1: an actor without a second
 * node has room.
 *
 * The run queue of an actor is one word: to place an actor that is placed already is an error. `turns` is a plain field of the
 * actor: two owners at once are a data race. An actor that stays muted although its receiver has room, is dead, or is muted
 * for it, is found at the end.
 */
#include "actor/mailbox.h"

#include "model.h"
#include "model_os.h"
#include "os/lock.h"

struct actor {
    struct bz_mailbox box;
    bz_shared(struct actor *) muted; /* the one that is muted for this actor; guarded by lock */
    bz_shared(struct actor *) to;    /* the one for which this actor is muted; guarded by lock */
    bz_atomic(uint32_t) placed;      /* 1: in the run queue */
    bz_shared(int) turns;            /* the owner's */
    struct bz_mpsc_node node;        /* its message */
    struct bz_signal_link signal;
};

static struct actor a, b, c;
static struct bz_signal_link second_signal; /* for a */
static struct bz_lock lock;

static void place(struct actor *x)
{
    uint32_t was = bz_xchg_acqrel(&x->placed, 1);
    m_assert(was == 0); /* never placed twice */
}

/* A living actor with a message that it handles now: its worker owns it. */
static void given_a_busy_actor(struct actor *x)
{
    uint32_t behind;
    bz_mailbox_init(&x->box);
    (void)bz_mailbox_open(&x->box);
    bool is_empty = bz_mailq_rest(&x->box.queue, &x->box.stub);
    m_assert(is_empty);
    bool is_first = bz_mailbox_push(&x->box, &x->node, &behind);
    m_assert(is_first);
    bz_set(&x->to, NULL);
    bz_set(&x->muted, NULL);
    bz_atomic_init(&x->placed, 0);
    bz_set(&x->turns, 0);
}

static void given_two(void)
{
    bz_lock_init(&lock);
    given_a_busy_actor(&a);
    given_a_busy_actor(&b);
}

/* ---- the steps of pressure.c ---- */

/* Under the lock. */
static void take_off(struct actor *x)
{
    bz_set(&bz_get(&x->to)->muted, NULL);
    bz_set(&x->to, NULL);
    bz_mailbox_unmute(&x->box);
}

static void unmute(struct actor *x)
{
    bz_lock_take(&lock, &m_os);
    bool is_muted = bz_mailbox_is_muted(&x->box);
    if (is_muted)
        take_off(x);
    bz_lock_drop(&lock, &m_os);
    if (is_muted)
        place(x);
}

static void release(struct actor *to)
{
    bz_lock_take(&lock, &m_os);
    struct actor *x = bz_get(&to->muted);
    if (x != NULL)
        take_off(x);
    bz_mailbox_relieve(&to->box);
    bz_lock_drop(&lock, &m_os);
    if (x != NULL)
        place(x);
}

static void ring(struct actor *to)
{
    if (bz_mailbox_ring(&to->box))
        place(to);
    if (bz_mailbox_is_closed(&to->box))
        release(to);
}

static bool closes_circle(struct actor *x, struct actor *to)
{
    while (to != x && bz_mailbox_is_muted(&to->box))
        to = bz_get(&to->to);
    return to == x;
}

static void mute(struct actor *x, struct actor *to)
{
    bz_set(&x->turns, bz_get(&x->turns) + 1);
    bz_lock_take(&lock, &m_os);
    bool stays = !closes_circle(x, to);
    if (stays) {
        bz_set(&to->muted, x);
        bz_set(&x->to, to);
        bz_mailbox_press(&to->box);
        stays = bz_mailbox_mute(&x->box);
        if (!stays)
            take_off(x);
    }
    bz_lock_drop(&lock, &m_os);
    if (stays)
        ring(to);
    else
        place(x);
}

static void relieve(struct actor *x)
{
    if (bz_mailbox_is_pressed(&x->box))
        release(x);
}

/* The owner handles all nodes, and rests. It has room at the end of each turn. */
static void run(struct actor *x)
{
    struct bz_mpsc_node *first = bz_mailq_first(&x->box.queue);
    bz_set(&x->turns, bz_get(&x->turns) + 1);
    for (;;) {
        struct bz_mpsc_node *next;
        if (bz_mailbox_is_bell(&x->box, first))
            bz_mailbox_hear(&x->box, first);
        while ((next = bz_mailbox_step(&x->box, first)) != NULL) {
            first = next;
            if (bz_mailbox_is_bell(&x->box, first))
                bz_mailbox_hear(&x->box, first);
        }
        relieve(x);
        if (bz_mailq_rest(&x->box.queue, first))
            return;
        while ((next = bz_mailbox_step(&x->box, first)) == NULL)
            m_relax(); /* a push in its gap */
        first = next;
    }
}

static void die(struct actor *x)
{
    struct bz_mpsc_node *first = bz_mailq_first(&x->box.queue), *next;
    (void)bz_mailbox_close(&x->box);
    relieve(x);
    while (first != &x->box.stub) {
        while ((next = bz_mailbox_step(&x->box, first)) == NULL)
            m_relax();
        first = next;
        if (bz_mailbox_is_bell(&x->box, first))
            bz_mailbox_hear(&x->box, first);
    }
}

/* ---- threads ---- */

static void a_is_muted_for_b(void)
{
    mute(&a, &b);
}

static void b_is_muted_for_a(void)
{
    mute(&b, &a);
}

static void b_runs(void)
{
    run(&b);
}

static void b_dies(void)
{
    die(&b);
}

static void signal_a(struct bz_signal_link *signal)
{
    uint32_t was;
    bool is_first;
    bool is_taken = bz_mailbox_signal(&a.box, signal, &is_first);
    m_assert(is_taken);
    if (!is_first)
        return; /* the sender of the first one rings */
    bool is_placed = bz_mailbox_ring_as(&a.box, &was);
    m_assert(!is_placed); /* its node is there */
    if (was & BZ_MUTED)
        unmute(&a);
}

static void a_gets_a_signal(void)
{
    signal_a(&a.signal);
}

static void a_gets_another(void)
{
    signal_a(&second_signal);
}

/* After the threads: give each placed actor its turns, until none is left. */
static bool run_if_placed(struct actor *x)
{
    if (!bz_xchg_acqrel(&x->placed, 0))
        return false;
    run(x);
    return true;
}

/* It has heard each bell. */
static void it_is_idle(struct actor *x)
{
    m_assert(bz_mailq_is_empty(&x->box.queue));
    m_assert((bz_load_relaxed(&x->box.ringing) & BZ_RINGING) == 0);
}

static void it_is_free(struct actor *x)
{
    m_assert(!bz_mailbox_is_muted(&x->box));
}

/* ---- the properties ---- */

/* The bell brings the receiver to the mark: an actor that is muted while its receiver goes to rest is not forgotten. */
MODEL(pressure, bug_01_a_mute_at_rest_is_not_forgotten)
{
    given_two();
    m_threads(a_is_muted_for_b, b_runs);
    (void)run_if_placed(&b);
    it_is_free(&a);
    m_assert(bz_load_relaxed(&a.placed) == 1);
    m_assert(bz_get(&b.muted) == NULL);
}

/* [M]: a stop or a kill reaches a muted actor, or the actor sees it before it is muted. */
MODEL(pressure, bug_01_a_signal_unmutes)
{
    given_two();
    m_threads(a_is_muted_for_b, a_gets_a_signal);
    it_is_free(&a);
    m_assert(bz_load_relaxed(&a.placed) == 1);
    (void)run_if_placed(&a);
    it_is_idle(&a);
}

/* The same with two: one that is pushed on top of another does not ring, and unmutes all the same. */
MODEL(pressure, bug_01_one_of_two_signals_unmutes)
{
    given_two();
    m_threads(a_is_muted_for_b, a_gets_a_signal, a_gets_another);
    it_is_free(&a);
    m_assert(bz_load_relaxed(&a.placed) == 1);
    (void)run_if_placed(&a);
    it_is_idle(&a);
}

/* Two actors that mute each other: one of them goes on, whatever the order. */
MODEL(pressure, bug_39_no_cycle_of_mutes_forms)
{
    given_two();
    m_threads(a_is_muted_for_b, b_is_muted_for_a);
    bool is_a = bz_mailbox_is_muted(&a.box), is_b = bz_mailbox_is_muted(&b.box);
    m_assert(!(is_a && is_b));
    m_sometimes(is_a);
    m_sometimes(is_b);
    while (run_if_placed(&a) || run_if_placed(&b))
        ;
    it_is_free(&a);
    it_is_free(&b);
}

static void b_is_muted_for_c(void)
{
    mute(&b, &c);
}

static void c_is_muted_for_a(void)
{
    mute(&c, &a);
}

MODEL(pressure, bug_39_no_cycle_of_three_mutes_forms)
{
    given_two();
    given_a_busy_actor(&c);
    m_threads(a_is_muted_for_b, b_is_muted_for_c, c_is_muted_for_a);
    int muted =
        bz_mailbox_is_muted(&a.box) + bz_mailbox_is_muted(&b.box) + bz_mailbox_is_muted(&c.box);
    m_assert(muted < 3);
    m_sometimes(muted == 2); /* a chain */
    while (run_if_placed(&a) || run_if_placed(&b) || run_if_placed(&c))
        ;
    it_is_free(&a);
    it_is_free(&b);
    it_is_free(&c);
}

/* [D]: the dying actor sees the mark, or the muted one sees the death. */
MODEL(pressure, bug_39_a_mute_for_the_dead_is_not_forgotten)
{
    given_two();
    m_threads(a_is_muted_for_b, b_dies);
    it_is_free(&a);
    m_assert(bz_load_relaxed(&a.placed) == 1);
    m_assert(bz_get(&b.muted) == NULL);
}

/* A bell of another sender is behind the stub: no push of the presser tells it of the death. */
static void b_gets_a_ring(void)
{
    if (bz_mailbox_ring(&b.box))
        place(&b);
}

MODEL(pressure, bug_39_a_mute_for_the_dead_is_not_forgotten_behind_the_bell_of_another)
{
    given_two();
    m_threads(a_is_muted_for_b, b_dies, b_gets_a_ring);
    it_is_free(&a);
    m_assert(bz_load_relaxed(&a.placed) == 1);
}

/* A signal, the receiver and the mute: the actor is placed once. */
MODEL(pressure, bug_04_an_actor_that_two_events_unmute_is_placed_once)
{
    given_two();
    m_threads(a_is_muted_for_b, a_gets_a_signal, b_runs);
    (void)run_if_placed(&b);
    it_is_free(&a);
    m_assert(bz_load_relaxed(&a.placed) == 1);
    (void)run_if_placed(&a);
    it_is_idle(&a);
}

/* The marks share their word with the bells: a relief does not undo a ring. */
MODEL(pressure, bug_01_a_ring_during_a_relief_is_not_lost)
{
    given_two();
    m_threads(a_is_muted_for_b, b_runs, b_gets_a_ring);
    while (run_if_placed(&b))
        ;
    it_is_free(&a);
    it_is_idle(&b);
}

static void b_is_alarmed(void)
{
    bool is_first = bz_mailbox_alarm(&b.box);
    m_assert(is_first);
}

MODEL(pressure, an_alarm_and_a_ring_do_not_undo_each_other)
{
    given_two();
    m_threads(b_is_alarmed, b_gets_a_ring);
    m_assert(!bz_mailbox_alarm(&b.box));
    run(&b);
    it_is_idle(&b);
}
