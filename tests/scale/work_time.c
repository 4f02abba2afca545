/*
 * work_time.c - timers: deadlines that do not pass, and sleeps that do.
 */
#include "scale/work.h"

struct sleeper {
    uint64_t rounds;
    uint64_t ns;
    char own_line[128 - 2 * sizeof(uint64_t)];
};

/* A wait with a deadline arms a timer; the value that comes first disarms it. */
static int answer(void *arg)
{
    blitz_chan **c = arg;
    uint64_t v;
    while (blitz_chan_recv(c[0], &v, blitz_after(1000000000)) == 0)
        must(blitz_chan_send(c[1], &v, blitz_after(1000000000)), "send");
    return 0;
}

static int ask(void *arg)
{
    struct sleeper *s = arg;
    blitz_chan *c[2];
    must(blitz_chan_new(sizeof(uint64_t), 0, NULL, &c[0]), "chan");
    must(blitz_chan_new(sizeof(uint64_t), 0, NULL, &c[1]), "chan");
    blitz_task *other = spawn(answer, c);
    for (uint64_t i = 0, v; i < s->rounds; i++) {
        must(blitz_chan_send(c[0], &i, blitz_after(1000000000)), "send");
        must(blitz_chan_recv(c[1], &v, blitz_after(1000000000)), "recv");
    }
    blitz_chan_close(c[0]);
    join(other);
    blitz_chan_unref(c[0]);
    blitz_chan_unref(c[1]);
    return 0;
}

static int sleep_often(void *arg)
{
    struct sleeper *s = arg;
    for (uint64_t i = 0; i < s->rounds; i++)
        must(blitz_sleep(s->ns), "sleep");
    return 0;
}

static uint64_t sleepers(const struct work_scene *s, int (*fn)(void *), unsigned each_proc)
{
    unsigned count = each_proc * s->procs;
    struct sleeper *all = work_array(count, sizeof *all);
    uint64_t rounds = s->rounds / each_proc;

    for (unsigned i = 0; i < count; i++)
        all[i] = (struct sleeper){.rounds = rounds, .ns = 40000 + i % 32 * 1000};
    work_on_each(s, count, fn, all, sizeof *all);
    free(all);
    return rounds * count;
}

static uint64_t run_deadline(const struct work_scene *s)
{
    return sleepers(s, ask, 1);
}

static uint64_t run_sleep(const struct work_scene *s)
{
    return sleepers(s, sleep_often, 10);
}

const struct work work_time[] = {
    {"deadline", WORK_CPU, "round trip of a pair, each wait with a deadline", run_deadline},
    {"sleep", WORK_CPU, "sleep of 40 to 70 µs, ten tasks a proc", run_sleep},
    {0},
};
