/*
 * set_program.h - random programs over a join set. Tasks, stackless tasks, promises, probes and
 * sleeps are added while a fiber, a stackless task or a plain thread takes them out, with deadlines
 * and perhaps a cancel.
 *
 * Invariants, in any order of events: each member comes out once, with its own key and result; a
 * probe has exactly one end; no waker is kept; no wait is too long.
 *
 *     set_play(os, seed, procs);
 */
#ifndef T_SET_PROGRAM_H
#define T_SET_PROGRAM_H

#include "base/rng.h"
#include "blitz.h"
#include "park/await.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/probe.h"

enum { SP_MEMBERS = 40 };

struct sp_member {
    struct t_probe probe;
    blitz_sleep_future sleep;
    uint64_t delay;
    int kind; /* 0: fiber, 1: stackless, 2: probe, 3: sleep */
    int outs; /* how often it came out; the taker's */
};

struct sp_program {
    const struct bz_os *os;
    struct bz_rng dice;
    unsigned procs;
    blitz_join_set *set;
    struct sp_member member[SP_MEMBERS];
    int taker;           /* 0: fiber, 1: stackless, 2: thread */
    int cancel_at;       /* by the adder, after so many */
    uint64_t late;       /* deadline of each wait of the taker; 0: none */
    bz_atomic(int) done; /* fibers and stackless tasks that have ended */
};

static inline uint32_t sp_die(struct sp_program *p, uint32_t sides)
{
    return bz_rng_below(&p->dice, sides);
}

static struct sp_program *sp_now; /* one program at a time */

static int sp_work(void *arg)
{
    struct sp_member *m = arg;
    int err = blitz_sleep(m->delay);
    bz_fetch_add_relaxed(&sp_now->done, 1); /* relaxed: a count */
    return err != 0 ? err : (int)(m - sp_now->member);
}

struct sp_nap {
    blitz_frame frame;
    blitz_sleep_future nap;
    struct sp_member *m;
};

static blitz_poll sp_nap(void *state, blitz_cx *cx)
{
    struct sp_nap *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    BLITZ_SLEEP(rc, &s->nap, s->m->delay);
    bz_fetch_add_relaxed(&sp_now->done, 1); /* relaxed: a count */
    BLITZ_END(rc != 0 ? rc : (int)(s->m - sp_now->member));
}

static inline void sp_add(struct sp_program *p, struct sp_member *m)
{
    struct sp_nap nap = {.frame = {0, 0}, .m = m};
    switch (m->kind) {
    case 0:
        CHECK_EQ(blitz_join_set_spawn(p->set, sp_work, m, m, NULL), 0);
        break;
    case 1:
        CHECK_EQ(blitz_join_set_spawn_poll(p->set, sp_nap, &nap, sizeof nap, m, NULL), 0);
        break;
    case 2:
        CHECK_EQ(blitz_join_set_add_future(p->set, &m->probe.f, m), 0);
        break;
    default:
        CHECK_EQ(blitz_join_set_add_future(p->set, &m->sleep.future, m), 0);
    }
}

static inline void sp_check_out(struct sp_program *p, const blitz_joined *out)
{
    struct sp_member *m = out->key;
    CHECK_EQ(m->outs++, 0);
    bool is_future = m->kind >= 2;
    CHECK_EQ(out->future != NULL, is_future);
    int want = m->kind == 3 ? 0 : (int)(m - p->member);
    if (out->result != want) {
        CHECK_EQ(out->result, -ECANCELED);
        CHECK_LT(p->cancel_at, SP_MEMBERS);
    }
}

/* Take out what there is, until the set is empty and all were added. */
static inline bool sp_step(struct sp_program *p, int err, const blitz_joined *out,
                           bz_atomic(int) *open)
{
    if (err == 0)
        sp_check_out(p, out);
    else if (err == -ENOENT)
        return bz_load_acquire(open) !=
               0; /* pairs with the adder's release: all were added before */
    else
        CHECK_EQ(err, -ETIMEDOUT);
    return true;
}

struct sp_adder {
    struct sp_program *p;
    bz_atomic(int) is_open, is_taken;
};

static int sp_adds(void *arg)
{
    struct sp_adder *a = arg;
    struct sp_program *p = a->p;
    for (int i = 0; i < SP_MEMBERS; i++) {
        sp_add(p, &p->member[i]);
        if (i % 5 == 4)
            CHECK_EQ(blitz_sleep(20 * BLITZ_US), 0);
        if (i > 0 && p->member[i - 1].kind == 2)
            t_probe_set(&p->member[i - 1].probe, i - 1);
        if (i == p->cancel_at)
            blitz_join_set_cancel(p->set);
    }
    if (p->member[SP_MEMBERS - 1].kind == 2)
        t_probe_set(&p->member[SP_MEMBERS - 1].probe, SP_MEMBERS - 1);
    bz_store_release(&a->is_open, 0); /* pairs with sp_step */
    return 0;
}

struct sp_taker {
    blitz_frame frame;
    blitz_join_set_future next;
    blitz_sleep_future timer;
    struct sp_adder *a;
};

/* Let a thread sleep for a moment. */
static inline void sp_pause(struct sp_program *p)
{
    bz_os_word word = 0;
    bz_os_wait(p->os, &word, 0, bz_os_now(p->os) + 20 * BLITZ_US);
}

static int sp_take(struct sp_adder *a)
{
    struct sp_program *p = a->p;
    blitz_joined out;
    for (bool goes_on = true; goes_on;) {
        blitz_deadline until = p->late == 0 ? BLITZ_FOREVER : bz_os_now(p->os) + p->late;
        int err;
        if (bz_rng_below(&p->dice, 4) == 0) {
            err = blitz_join_set_try_next(p->set, &out);
            err = err == -EAGAIN ? -ETIMEDOUT : err;
        } else {
            blitz_join_set_future f;
            blitz_join_set_next_future_init(&f, p->set);
            err = bz_await(p->os, &f.future, until);
            err = err == 0 ? f.result : err;
            out = f.joined;
        }
        goes_on = sp_step(p, err, &out, &a->is_open);
        if (err != 0 && bz_task_self() != NULL)
            CHECK_EQ(blitz_sleep(20 * BLITZ_US),
                     0); /* a spin would stop the clock of a simulation */
        else if (err != 0)
            sp_pause(p);
    }
    bz_store_release(&a->is_taken, 1); /* pairs with sp_run */
    return 0;
}

static int sp_take_on_fiber(void *arg)
{
    return sp_take(arg);
}

static blitz_poll sp_take_stackless(void *state, blitz_cx *cx)
{
    struct sp_taker *t = state;
    struct sp_program *p = t->a->p;
    int rc;
    bool goes_on;
    BLITZ_BEGIN(&t->frame, cx);
    for (;;) {
        blitz_join_set_next_future_init(&t->next, p->set);
        BLITZ_AWAIT_UNTIL(rc, &t->next.future, &t->timer,
                          p->late == 0 ? BLITZ_FOREVER : bz_os_now(p->os) + p->late);
        rc = rc == 0 ? t->next.result : rc;
        goes_on = sp_step(p, rc, &t->next.joined, &t->a->is_open);
        if (!goes_on)
            break;
        if (rc != 0)
            BLITZ_SLEEP(rc, &t->timer, 20 * BLITZ_US);
    }
    BLITZ_END(0);
}

static void sp_take_on_thread(void *arg)
{
    (void)sp_take(arg);
}

static inline void sp_make(struct sp_program *p)
{
    CHECK_EQ(blitz_join_set_new(&p->set), 0);
    p->taker = (int)sp_die(p, 3);
    p->cancel_at = sp_die(p, 2) ? (int)sp_die(p, SP_MEMBERS) : SP_MEMBERS;
    p->late = sp_die(p, 3) == 0 ? (1 + sp_die(p, 50)) * BLITZ_US : 0;
    for (int i = 0; i < SP_MEMBERS; i++) {
        struct sp_member *m = &p->member[i];
        *m = (struct sp_member){.kind = (int)sp_die(p, 4), .delay = sp_die(p, 200) * BLITZ_US};
        t_probe_init(&m->probe, p->os, (blitz_class)sp_die(p, 3));
        blitz_sleep_until_future_init(&m->sleep, bz_os_now(p->os) + m->delay);
    }
}

static inline void sp_check(struct sp_program *p)
{
    CHECK_EQ(blitz_join_set_count(p->set), 0u);
    for (int i = 0; i < SP_MEMBERS; i++) {
        const struct t_probe *probe = &p->member[i].probe;
        bool was_given_up = probe->cancels > 0 && probe->f.ops->kind != BLITZ_PINNED;
        CHECK_EQ(p->member[i].outs, 1);
        CHECK(probe->waker.ops == NULL);
        CHECK_EQ(probe->told + was_given_up,
                 probe->polls > 0); /* exactly one end, or never begun */
    }
}

/* The adder beside a taker; in the end all members came out, once each. */
static int sp_run(void *arg)
{
    struct sp_program *p = arg;
    struct sp_adder a = {.p = p};
    struct sp_taker state = {.frame = {0, 0}, .a = &a};
    blitz_task *adder, *taker = NULL;
    struct bz_os_thread thread;
    sp_now = p;
    sp_make(p);
    bz_store_relaxed(&a.is_open, 1);  /* relaxed: nothing runs yet */
    bz_store_relaxed(&a.is_taken, 0); /* relaxed: likewise */
    CHECK_EQ(blitz_spawn(sp_adds, &a, NULL, &adder), 0);
    if (p->taker == 0)
        CHECK_EQ(blitz_spawn(sp_take_on_fiber, &a, NULL, &taker), 0);
    else if (p->taker == 1)
        CHECK_EQ(blitz_spawn_poll(sp_take_stackless, &state, sizeof state, NULL, &taker), 0);
    else
        CHECK_EQ(bz_os_thread_start(p->os, &thread, NULL, sp_take_on_thread, &a), 0);
    CHECK_EQ(blitz_task_join(adder, NULL, BLITZ_FOREVER), 0);
    if (taker != NULL) {
        CHECK_EQ(blitz_task_join(taker, NULL, BLITZ_FOREVER), 0);
    } else {
        while (!bz_load_acquire(&a.is_taken)) /* pairs with sp_take */
            CHECK_EQ(blitz_sleep(20 * BLITZ_US), 0);
        CHECK_EQ(bz_os_thread_join(p->os, &thread), 0);
    }
    sp_check(p);
    blitz_join_set_unref(p->set);
    return 0;
}

static inline void set_play(const struct bz_os *os, uint64_t seed, unsigned procs)
{
    struct sp_program *p = calloc(1, sizeof *p);
    struct bz_runtime *rt;
    CHECK_NOT_NULL(p);
    p->os = os;
    bz_rng_init(&p->dice, seed);
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = procs}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, sp_run, p), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    free(p);
}

#endif
