/*
 * scene_pipeline.c - a pipeline of channels: a source, two stages of workers, a sink.
 *
 * Every stage is a handful of fibers that receive, work a little and send; the channels between
 * them hold 64 values, so the slowest stage sets the pace and memory use is bounded. The sink waits
 * in a select for a result, for the next tick, and for a timeout of a second. Half-way a waiting
 * stage is cancelled, and no value is lost: a cancelled call has no effect.
 */
#include <blitz.h>

#include "demo.h"

enum { WORKERS = 4, CAPACITY = 64, STAGES = 2 };

struct pipeline {
    blitz_chan *c[STAGES + 1];
    uint64_t count;
    _Atomic uint64_t done;
    uint64_t sum, ticks, idle;
    blitz_task *spare; /* a worker that is cancelled half-way */
    bool has_cancelled;
    int spare_result;
};

struct stage {
    blitz_chan *in, *out;
};

static int source(void *arg)
{
    struct pipeline *p = arg;
    for (uint64_t i = 1; i <= p->count; i++)
        if (blitz_chan_send(p->c[0], &i, BLITZ_FOREVER) != 0)
            break;
    blitz_chan_close(p->c[0]);
    return 0;
}

/* Receive, work, send. The last worker of a stage closes its output channel. */
static int worker(void *arg)
{
    struct stage *s = arg;
    uint64_t value;
    int rc;
    while ((rc = blitz_chan_recv(s->in, &value, BLITZ_FOREVER)) == 0) {
        value *= 2;
        blitz_shield(); /* a received value is passed on even after a cancel */
        rc = blitz_chan_send(s->out, &value, BLITZ_FOREVER);
        blitz_unshield();
        if (rc != 0)
            break;
    }
    blitz_chan_sender_drop(s->out);
    return rc;
}

static void sink(struct pipeline *p)
{
    int error = 0;
    while (error == 0) {
        uint64_t value = 0;
        blitz_select(blitz_after(BLITZ_S))
        {
            blitz_on_recv(p->c[STAGES], &value, &error)
            {
                p->done += error == 0;
            }
            blitz_on_time(blitz_after(5 * BLITZ_MS))
            {
                p->ticks++;
            }
            blitz_on_timeout
            {
                p->idle++;
            }
        }
        p->sum += value;
        if (!p->has_cancelled && p->done > p->count / 2) {
            blitz_task_cancel(p->spare); /* and not joined here: it may wait for us to receive */
            p->has_cancelled = true;
        }
    }
}

static int run(void *arg)
{
    struct pipeline *p = arg;
    struct stage stage[STAGES];
    for (int k = 0; k <= STAGES; k++)
        if (blitz_chan_new(sizeof(uint64_t), CAPACITY, NULL, &p->c[k]) != 0)
            return 1;
    for (int k = 0; k < STAGES; k++) {
        stage[k] = (struct stage){p->c[k], p->c[k + 1]};
        for (int i = 0; i < WORKERS; i++) {
            blitz_task **out = k == 0 && i == 0 ? &p->spare : NULL;
            blitz_chan_sender_add(p->c[k + 1]);
            if (blitz_spawn(worker, &stage[k], NULL, out) != 0)
                return 1;
        }
    }
    if (blitz_spawn(source, p, NULL, NULL) != 0)
        return 1;
    sink(p);
    blitz_task_join(p->spare, &p->spare_result, BLITZ_FOREVER);
    for (int k = 0; k <= STAGES; k++)
        blitz_chan_unref(p->c[k]);
    return 0;
}

static void play(struct demo *d)
{
    static struct pipeline p;
    p = (struct pipeline){.count = demo_scaled(d, 1000000)};
    double start = demo_seconds();
    int rc = blitz_run(run, &p, NULL);
    double ns = (demo_seconds() - start) * 1e9 / (double)p.count;
    demo_claim(d, rc == 0, "the pipeline did not start");
    demo_claim(d, p.done == p.count, "%s values came out", demo_count(p.done));
    demo_claim(d, p.sum == p.count * (p.count + 1) * 2, "their sum is wrong");
    demo_result(d, "%s values through %d channels and %d workers, %.0f ns each, sum as it must be",
                demo_count(p.count), STAGES + 1, STAGES * WORKERS, ns);
    demo_result(d, "one worker was cancelled half-way (error %d) and took nothing with it",
                -p.spare_result);
}

const struct demo_scene scene_pipeline = {"pipeline", "A pipeline of channels",
                                          "A source, two stages of workers and a sink that waits "
                                          "in a select, with a cancel in the middle.",
                                          play};
