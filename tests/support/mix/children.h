/*
 * children.h - the scene of processes: all waiters hear of the end of one child.
 *
 * The child is `cat`, which ends when its input is closed. A keeper closes it, or stops the child, after a pause. The
 * others wait until then. A wake-up that is lost leaves a waiter beside a process that has ended.
 */
#ifndef MIX_CHILDREN_H
#define MIX_CHILDREN_H

#include "support/mix/round.h"

enum { CHILDREN_WAIT, CHILDREN_CLOSE, CHILDREN_STOP };

static struct {
    blitz_process *process;
    unsigned end; /* the role of the party that ends it */
} children;

static int children_start(void *arg)
{
    blitz_command *c;
    (void)arg;
    CHECK_EQ(blitz_command_new("cat", &c), 0);
    blitz_command_stdio(c, 0, BLITZ_STDIO_TO_CHILD);
    CHECK_EQ(blitz_command_start(c, NULL, &children.process), 0);
    blitz_command_unref(c);
    return 0;
}

static void children_make(struct mix_round *r)
{
    children.end = mix_one_in(&r->dice, 2) ? CHILDREN_CLOSE : CHILDREN_STOP;
    CHECK_EQ(blitz_runtime_block_on(r->rt, children_start, NULL), 0);
    mix_join_in(r, children.end, true)->left = 2;
    for (uint64_t n = 1 + mix_die(&r->dice, 9); n > 0; n--)
        mix_join_in(r, CHILDREN_WAIT, mix_one_in(&r->dice, 2))->left = 1;
    mix_say(r, " ended by %s", children.end == CHILDREN_STOP ? "a stop" : "a close");
}

static bool children_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    if (p->role == CHILDREN_WAIT || p->left == 1)
        mix_begin(p, p->role == CHILDREN_STOP ? &mix_process_stop : &mix_process_wait,
                  children.process);
    else {
        p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 30) * BLITZ_US;
        mix_begin(p, &mix_pause, NULL);
    }
    return true;
}

static void children_done(struct mix_party *p, int rc)
{
    bool is_pause = p->role != CHILDREN_WAIT && p->left == 2;
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (is_pause && p->role == CHILDREN_CLOSE)
        blitz_process_close(children.process, 0);
    if (is_pause || rc == 0)
        p->left--;
    if (!is_pause && rc == 0)
        CHECK_EQ(p->op.n, children.end == CHILDREN_STOP ? SIGTERM : 0);
}

static void children_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(blitz_process_try_wait(children.process, NULL), 0);
    blitz_process_unref(children.process);
}

static const struct mix_scene mix_scene_children = {
    "children", 1, children_make, children_next, children_done, NULL, children_check};

#endif
