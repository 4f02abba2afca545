/*
 * Fibers, stackless tasks and plain threads on the same channels, with real threads at 1, 2, 3 and
 * 8 procs. support/chan_mix.h has the operations and the invariants. Oneshots likewise.
 *
 * BLITZ_MIX_ROUNDS=n in the environment: n rounds at each number of procs.
 */
#include "harness.h"

#include <stdlib.h>

#include "support/chan_mix.h"
#include "support/on_each.h"
#include "wait/waker.h"

static uint64_t rounds_of(uint64_t full)
{
    const char *asked = getenv("BLITZ_MIX_ROUNDS");
    return asked != NULL && *asked != '\0' ? strtoull(asked, NULL, 0) : t_scaled(full);
}

static int mixes(void *arg)
{
    static struct mix w;
    (void)arg;
    for (uint64_t i = rounds_of(500); i > 0; i--) {
        memset(&w, 0, sizeof w);
        w.os = bz_os_here();
        w.seed = t_random();
        t_watch("seed 0x%llx", (unsigned long long)w.seed);
        CHECK_EQ(mix_main(&w), 0);
    }
    return 0;
}

TEST_LIMIT(chan_mix_stress, bug_41_parties_of_all_forms_make_progress_and_lose_nothing, 240)
{
    t_on_each(mixes, NULL, 0);
}

/* ---- oneshots ---- */

/* A receiver makes oneshots and gives each to its sender, over a channel that is not what is tested. */
struct pair {
    blitz_chan *shots;
    uint64_t left;
    struct bz_rng rng;
    struct {
        blitz_frame frame;
        blitz_oneshot_future shot;
        blitz_chan_future batch;
        blitz_sleep_future timer;
    } in; /* a stackless receiver's */
    blitz_oneshot *o;
    uint64_t value;
};

static blitz_deadline some_deadline(struct pair *p)
{
    return bz_rng_below(&p->rng, 3) ? BLITZ_FOREVER
                                    : blitz_after(bz_rng_below(&p->rng, 20) * BLITZ_US);
}

/* A receive has ended with rc: the sender may have said no, or a deadline may have passed. */
static void judge(struct pair *p, int rc)
{
    CHECK(rc == 0 || rc == -EPIPE || rc == -ETIMEDOUT);
    CHECK_EQ(p->value, rc == 0 ? 42u : 0u);
    blitz_oneshot_receiver_drop(p->o);
}

static void make(struct pair *p)
{
    p->value = 0;
    CHECK_EQ(blitz_oneshot_new(sizeof p->value, NULL, &p->o), 0);
}

/* Receive, then fill the memory where the wait was: the sender must not write to it any more. */
static int receive_in_a_frame(struct pair *p)
{
    volatile uint64_t mine[64];
    int rc = blitz_oneshot_recv(p->o, &p->value, some_deadline(p));
    for (uint64_t i = 0; i < BZ_ARRAY_LEN(mine); i++)
        mine[i] = i;
    for (uint64_t i = 0; i < BZ_ARRAY_LEN(mine); i++)
        CHECK_EQ(mine[i], i);
    return rc;
}

static int receives(void *arg)
{
    struct pair *p = arg;
    for (; p->left > 0; p->left--) {
        make(p);
        CHECK_EQ(blitz_chan_send(p->shots, &p->o, BLITZ_FOREVER), 0);
        judge(p, receive_in_a_frame(p));
    }
    blitz_chan_close(p->shots);
    return 0;
}

static blitz_poll polls(void *state, blitz_cx *cx)
{
    struct pair *p = *(struct pair **)state;
    int rc;
    BLITZ_BEGIN(&p->in.frame, cx);
    for (; p->left > 0; p->left--) {
        make(p);
        blitz_chan_send_future_init(&p->in.batch, p->shots, &p->o);
        BLITZ_AWAIT(rc, &p->in.batch.future);
        CHECK_EQ(rc, 0);
        blitz_oneshot_recv_future_init(&p->in.shot, p->o, &p->value);
        BLITZ_AWAIT_UNTIL(rc, &p->in.shot.future, &p->in.timer, some_deadline(p));
        judge(p, rc != 0 ? rc : p->in.shot.result);
    }
    blitz_chan_close(p->shots);
    BLITZ_END(0);
}

static int sends(void *arg)
{
    struct pair *p = arg;
    blitz_oneshot *o;
    for (uint64_t i = 0; blitz_chan_recv(p->shots, &o, BLITZ_FOREVER) == 0; i++) {
        for (uint64_t k = i % 4; k > 0; k--)
            blitz_yield(); /* so that the receiver waits, more often than not */
        if (i % 7 == 0)
            blitz_oneshot_sender_drop(o);
        else
            (void)!blitz_oneshot_send(o, &(uint64_t){42});
    }
    return 0;
}

static void receives_on_a_thread(void *p)
{
    (void)receives(p);
}

static void sends_on_a_thread(void *p)
{
    (void)sends(p);
}

/* Each form of receiver meets a sender that is a fiber and one that is a thread. */
static int shoots(void *arg)
{
    enum { PAIRS = 6 };
    static struct pair pair[PAIRS];
    const struct bz_os *os = bz_os_here();
    struct bz_os_thread receiver[PAIRS], sender[PAIRS];
    blitz_task *task[2 * PAIRS];
    int tasks = 0;
    (void)arg;
    for (int i = 0; i < PAIRS; i++) {
        struct pair *p = &pair[i];
        memset(p, 0, sizeof *p);
        p->left = rounds_of(1500);
        bz_rng_init(&p->rng, t_random());
        CHECK_EQ(blitz_chan_new(sizeof(blitz_oneshot *), 1, NULL, &p->shots), 0);
        if (i % 3 == 0)
            CHECK_EQ(bz_os_thread_start(os, &receiver[i], NULL, receives_on_a_thread, p), 0);
        else if (i % 3 == 1)
            CHECK_EQ(blitz_spawn(receives, p, NULL, &task[tasks++]), 0);
        else
            CHECK_EQ(blitz_spawn_poll(polls, &p, sizeof p, NULL, &task[tasks++]), 0);
        if (i < 3)
            CHECK_EQ(bz_os_thread_start(os, &sender[i], NULL, sends_on_a_thread, p), 0);
        else
            CHECK_EQ(blitz_spawn(sends, p, NULL, &task[tasks++]), 0);
    }
    for (int i = 0; i < tasks; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < PAIRS; i++) {
        if (i % 3 == 0)
            bz_os_thread_join(os, &receiver[i]);
        if (i < 3)
            bz_os_thread_join(os, &sender[i]);
        blitz_chan_unref(pair[i].shots);
    }
    return 0;
}

TEST_LIMIT(chan_mix_stress, bug_53_a_oneshot_ends_its_wait_in_every_form_and_touches_no_frame, 240)
{
    t_on_each(shoots, NULL, 0);
}
