/*
 * play.h - play one round: make it from its seed, start the parties, cancel some, wait for all.
 *
 *     mix_play(&round, rt, procs, seed);
 *
 * The caller is a plain thread. BLITZ_MIX_SCENE=NAME plays that scene alone.
 */
#ifndef MIX_PLAY_H
#define MIX_PLAY_H

#include "support/mix/party.h"
#include "support/mix/scenes.h"

/* Errors alone: a stop of a runtime that times out warns of each task that has not ended. */
static void mix_log(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, "blitz: error: %s\n", message);
}

/* ---- parties ---- */

static enum mix_kind mix_choose_kind(struct mix_round *r)
{
    for (;;) {
        enum mix_kind kind = (enum mix_kind)mix_die(&r->dice, MIX_KINDS);
        if (!(r->kinds & 1u << kind))
            continue;
        if (kind == MIX_THREAD && r->threads == 4)
            continue;
        r->threads += kind == MIX_THREAD;
        return kind;
    }
}

static void mix_start(struct mix_party *p)
{
    blitz_spawn_opts opts = {.runtime = p->round->rt, .name = mix_kind_name[p->kind]};
    switch (p->kind) {
    case MIX_FIBER:
        CHECK_EQ(blitz_spawn(mix_fiber, p, &opts, &p->task), 0);
        break;
    case MIX_JOB:
        CHECK_EQ(blitz_spawn(mix_forker, p, &opts, &p->task), 0);
        break;
    case MIX_POLLED:
        CHECK_EQ(blitz_spawn_poll(mix_polled, &p, sizeof p, &opts, &p->task), 0);
        break;
    default:
        mix_thread_start(&p->thread, mix_live, p);
    }
}

static void mix_finish(struct mix_party *p)
{
    if (p->kind == MIX_THREAD)
        mix_thread_join(&p->thread);
    else
        CHECK_EQ(blitz_task_join(p->task, NULL, BLITZ_FOREVER), 0);
}

/* ---- cancels ---- */

struct mix_canceller {
    struct mix_round *round;
    struct t_rng dice;
};

static int mix_cancel_some(void *arg)
{
    struct mix_canceller *c = arg;
    struct mix_round *r = c->round;
    for (unsigned i = 0; i < r->cancels; i++) {
        struct mix_party *p = &r->party[mix_die(&c->dice, r->count)];
        mix_pause_here(mix_die(&c->dice, 3) * mix_die(&c->dice, 20) * BLITZ_US + 1);
        if (p->kind != MIX_THREAD && !p->is_keeper)
            blitz_task_cancel(p->task);
    }
    return 0;
}

/* By a task, or from outside. Returns when all cancels were said. */
static void mix_cancel(struct mix_round *r)
{
    struct mix_canceller c = {r, mix_dice_of(r->seed, 2000)};
    blitz_spawn_opts opts = {.runtime = r->rt, .name = "canceller"};
    blitz_task *task;
    if (r->cancels == 0)
        return;
    if (mix_one_in(&r->dice, 2)) {
        (void)mix_cancel_some(&c);
        return;
    }
    CHECK_EQ(blitz_spawn(mix_cancel_some, &c, &opts, &task), 0);
    CHECK_EQ(blitz_task_join(task, NULL, BLITZ_FOREVER), 0);
}

/* ---- the round ---- */

static const struct mix_scene *mix_choose_scene(struct mix_round *r)
{
    const char *only = getenv("BLITZ_MIX_SCENE");
    unsigned total = 0;
    for (size_t i = 0; i < MIX_SCENES; i++)
        total += mix_scenes[i]->weight;
    uint64_t at =
        mix_die(&r->dice, total); /* in any case: a seed is the same round with and without */
    for (size_t i = 0; i < MIX_SCENES && only != NULL; i++)
        if (strcmp(only, mix_scenes[i]->name) == 0)
            return mix_scenes[i];
    CHECK(only == NULL || *only == '\0'); /* else there is no such scene */
    size_t i = 0;
    while (at >= mix_scenes[i]->weight)
        at -= mix_scenes[i++]->weight;
    return mix_scenes[i];
}

/* Fibers and stackless tasks take part in every other round, threads in every third. */
static unsigned mix_choose_kinds(struct mix_round *r)
{
    unsigned kinds = 0;
    while (kinds == 0)
        kinds = (mix_one_in(&r->dice, 4) ? 0 : 1u << MIX_FIBER) |
                (mix_one_in(&r->dice, 4) ? 0 : 1u << MIX_POLLED) |
                (mix_one_in(&r->dice, 3) ? 1u << MIX_JOB : 0) |
                (mix_one_in(&r->dice, 3) ? 1u << MIX_THREAD : 0);
    return kinds == 1u << MIX_THREAD ? kinds | 1u << MIX_POLLED
                                     : kinds; /* few threads, many parties */
}

/* Sometimes the keepers start late: the others wait, and nothing may happen meanwhile. */
static void mix_choose_late(struct mix_round *r)
{
    if (!mix_one_in(&r->dice, 16))
        return;
    uint64_t late = (1 + mix_die(&r->dice, 6)) * BLITZ_MS;
    mix_say(r, ", late keepers");
    for (unsigned i = 0; i < r->count; i++)
        if (r->party[i].is_keeper)
            r->party[i].late_ns = late;
}

static void mix_make(struct mix_round *r, blitz_runtime *rt, unsigned procs, uint64_t seed)
{
    memset(r, 0, offsetof(struct mix_round, party));
    mix_set(&r->progress, 0);
    mix_set(&r->activity, 0);
    mix_set(&r->boxes, 0);
    r->what[0] = '\0';
    r->rt = rt;
    r->procs = procs;
    r->seed = seed;
    r->dice = mix_dice_of(seed, 3000);
    r->scene = mix_choose_scene(r);
    r->has_deadlines = mix_one_in(&r->dice, 2);
    r->cancels = mix_one_in(&r->dice, 2) ? 1 + (unsigned)mix_die(&r->dice, 6) : 0;
    r->kinds = mix_choose_kinds(r);
    r->scene->make(r);
    for (unsigned i = 0; i < r->count; i++)
        r->party[i].kind = r->party[i].is_thread ? MIX_THREAD : mix_choose_kind(r);
    mix_choose_late(r);
}

static void mix_play(struct mix_round *r, blitz_runtime *rt, unsigned procs, uint64_t seed)
{
    mix_make(r, rt, procs, seed);
    t_watch("round %llu, 0x%llx: %s on %u procs,%s", (unsigned long long)++mix_rounds,
            (unsigned long long)seed, r->scene->name, procs, r->what);
    mix_set(&r->is_live, 1);
    unsigned first = (unsigned)mix_die(&r->dice, r->count);
    for (unsigned i = 0; i < r->count; i++)
        mix_start(&r->party[(first + i) % r->count]);
    mix_cancel(r);
    for (unsigned i = 0; i < r->count; i++)
        mix_finish(&r->party[i]);
    CHECK_EQ(mix_get(&r->boxes), 0); /* else a box was not dropped */
    r->scene->check(r);
    mix_set(&r->is_live, 0);
}

#endif
