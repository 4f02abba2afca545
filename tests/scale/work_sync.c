/*
 * work_sync.c - what should stay in the cache of one CPU: own mutexes, yields, and memory that
 * another proc frees.
 */
#include "scale/work.h"

struct mine {
    blitz_mutex mutex;
    unsigned rounds;
    blitz_chan *line;
    char own_line[64];
};

static int lock_often(void *arg)
{
    struct mine *m = arg;
    for (unsigned i = 0; i < m->rounds; i++) {
        must(blitz_mutex_lock(&m->mutex, BLITZ_FOREVER), "lock");
        blitz_mutex_unlock(&m->mutex);
    }
    return 0;
}

static int yield_often(void *arg)
{
    for (unsigned i = ((struct mine *)arg)->rounds; i > 0; i--)
        blitz_yield();
    return 0;
}

static uint64_t on_each(const struct work_scene *s, unsigned each_proc, int (*fn)(void *))
{
    unsigned count = s->procs * each_proc;
    struct mine *all = work_array(count, sizeof *all);
    for (unsigned i = 0; i < count; i++) {
        all[i].rounds = s->rounds;
        blitz_mutex_init(&all[i].mutex);
    }
    work_on_each(s, count, fn, all, sizeof *all);
    free(all);
    return (uint64_t)s->rounds * count;
}

static uint64_t run_mutex(const struct work_scene *s)
{
    return on_each(s, 1, lock_often);
}

static uint64_t run_yield(const struct work_scene *s)
{
    return on_each(s, 4, yield_often);
}

/* One mutex that all tasks want. */
struct shared {
    blitz_mutex *mutex;
    unsigned rounds;
    char own_line[128 - sizeof(void *) - sizeof(unsigned)];
};

static int lock_the_one(void *arg)
{
    struct shared *m = arg;
    for (unsigned i = 0; i < m->rounds; i++) {
        must(blitz_mutex_lock(m->mutex, BLITZ_FOREVER), "lock");
        blitz_mutex_unlock(m->mutex);
        world_burn(500);
    }
    return 0;
}

static uint64_t run_one_mutex(const struct work_scene *s)
{
    static blitz_mutex mutex;
    struct shared *all = work_array(s->procs, sizeof *all);
    blitz_mutex_init(&mutex);
    for (unsigned i = 0; i < s->procs; i++)
        all[i] = (struct shared){.mutex = &mutex, .rounds = s->rounds / 4};
    work_on_each(s, s->procs, lock_the_one, all, sizeof *all);
    free(all);
    return (uint64_t)s->rounds / 4 * s->procs;
}

/* ---- memory that another proc frees ----------------------------------------------------------- */

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int reap(void *arg)
{
    struct mine *m = arg;
    blitz_task *t;
    while (blitz_chan_recv(m->line, &t, BLITZ_FOREVER) == 0)
        join(t);
    return 0;
}

static int sow(void *arg)
{
    struct mine *m = arg;
    for (unsigned i = 0; i < m->rounds; i++) {
        blitz_task *t = spawn(nothing, NULL);
        must(blitz_chan_send(m->line, &t, BLITZ_FOREVER), "send");
    }
    blitz_chan_close(m->line);
    return 0;
}

static int sow_or_reap(void *arg)
{
    struct mine *m = arg;
    return m->rounds > 0 ? sow(m) : reap(m);
}

/* Proc 2i spawns, proc 2i+1 joins: the second one frees the headers of the first. */
static uint64_t run_remote(const struct work_scene *s)
{
    unsigned count = s->procs > 1 ? s->procs / 2 * 2 : 2;
    struct mine *all = work_array(count, sizeof *all);
    for (unsigned i = 0; i < count; i += 2) {
        must(blitz_chan_new(sizeof(blitz_task *), 16, NULL, &all[i].line), "chan");
        all[i + 1].line = all[i].line;
        all[i].rounds = s->rounds / 2;
    }
    work_on_each(s, count, sow_or_reap, all, sizeof *all);
    for (unsigned i = 0; i < count; i += 2)
        blitz_chan_unref(all[i].line);
    free(all);
    return (uint64_t)s->rounds / 2 * count / 2;
}

const struct work work_sync[] = {
    {"yield", WORK_CPU, "yield, four tasks a proc", run_yield},
    {"mutex", WORK_CPU, "lock and unlock of an own mutex", run_mutex},
    {"mutex-one", WORK_SHARED, "lock and unlock of one mutex, 500 ns apart", run_one_mutex},
    {"remote-free", WORK_CPU, "task that a partner on another proc joins and frees", run_remote},
    {0},
};
