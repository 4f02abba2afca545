/*
 * work_chan.c - channels: pairs of tasks with channels of their own, and all tasks on one channel.
 */
#include "scale/work.h"

struct pair {
    blitz_chan *there, *back;
    uint64_t rounds;
    char own_line[128 - 2 * sizeof(void *) - sizeof(uint64_t)];
};

static int echo(void *arg)
{
    struct pair *p = arg;
    uint64_t v;
    while (blitz_chan_recv(p->there, &v, BLITZ_FOREVER) == 0)
        must(blitz_chan_send(p->back, &v, BLITZ_FOREVER), "send");
    return 0;
}

static int ping(void *arg)
{
    struct pair *p = arg;
    blitz_task *other = spawn(echo, p);
    uint64_t v;
    for (uint64_t i = 0; i < p->rounds; i++) {
        must(blitz_chan_send(p->there, &i, BLITZ_FOREVER), "send");
        must(blitz_chan_recv(p->back, &v, BLITZ_FOREVER), "recv");
    }
    blitz_chan_close(p->there);
    join(other);
    return 0;
}

static uint64_t pairs(const struct work_scene *s, unsigned each_proc, size_t capacity)
{
    unsigned count = each_proc * s->procs;
    struct pair *all = work_array(count, sizeof *all);

    for (unsigned i = 0; i < count; i++) {
        all[i].rounds = s->rounds / each_proc;
        must(blitz_chan_new(sizeof(uint64_t), capacity, NULL, &all[i].there), "chan");
        must(blitz_chan_new(sizeof(uint64_t), capacity, NULL, &all[i].back), "chan");
    }
    work_on_each(s, count, ping, all, sizeof *all);
    for (unsigned i = 0; i < count; i++) {
        blitz_chan_unref(all[i].there);
        blitz_chan_unref(all[i].back);
    }
    uint64_t ops = all[0].rounds * count;
    free(all);
    return ops;
}

static uint64_t run_pairs(const struct work_scene *s)
{
    return pairs(s, 1, 0);
}

static uint64_t run_many_pairs(const struct work_scene *s)
{
    return pairs(s, 4, 1);
}

/* ---- one channel for all ---------------------------------------------------------------------- */

static int produce(void *arg)
{
    struct pair *p = arg;
    for (uint64_t i = 0; i < p->rounds; i++)
        must(blitz_chan_send(p->there, &i, BLITZ_FOREVER), "send");
    return 0;
}

static int consume(void *arg)
{
    struct pair *p = arg;
    uint64_t v;
    for (uint64_t i = 0; i < p->rounds; i++)
        must(blitz_chan_recv(p->there, &v, BLITZ_FOREVER), "recv");
    return 0;
}

static int either(void *arg)
{
    struct pair *p = arg;
    return p->back != NULL ? produce(p) : consume(p);
}

static uint64_t run_mpmc(const struct work_scene *s)
{
    unsigned count = 2 * s->procs;
    struct pair *all = work_array(count, sizeof *all);
    blitz_chan *c;

    must(blitz_chan_new(sizeof(uint64_t), 256, NULL, &c), "chan");
    for (unsigned i = 0; i < count; i++) {
        all[i].rounds = s->rounds / 4;
        all[i].there = c;
        all[i].back = i % 2 == 0 ? c : NULL;
    }
    work_on_each(s, count, either, all, sizeof *all);
    blitz_chan_unref(c);
    free(all);
    return (uint64_t)s->rounds / 4 * s->procs;
}

const struct work work_chan[] = {
    {"chan-pair", WORK_CPU, "round trip of a pair on its own rendezvous channels", run_pairs},
    {"chan-pairs", WORK_CPU, "the same, four pairs a proc, capacity 1", run_many_pairs},
    {"chan-mpmc", WORK_SHARED, "value through one channel that all procs share", run_mpmc},
    {0},
};
