/*
 * main.c - run workloads on simulated machines and print their costs: `scale --help`.
 *
 * Prints one JSON object a line, one for each workload and number of procs. tools/scale makes the
 * table, and turns code addresses into source lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "runtime/runtime.h"
#include "scale/lines.h"
#include "scale/work.h"

#define SITES_MAX 40u

extern const char __executable_start[]; /* the linker's */

static const struct work *const lists[] = {work_spawn, work_fork, work_chan,
                                           work_time,  work_idle, work_sync};

struct run {
    const struct work *work;
    struct work_scene scene;
    uint64_t ops;
    struct world_sums sums;
    struct line_site sites[SITES_MAX + 1];
    unsigned site_count;
};

void *work_array(size_t count, size_t bytes)
{
    size_t size = (count * bytes + 127) / 128 * 128;
    void *all = aligned_alloc(128, size);
    if (all == NULL)
        must(-1, "memory");
    return memset(all, 0, size);
}

void work_on_each(const struct work_scene *s, unsigned count, int (*fn)(void *), void *args,
                  size_t arg_bytes)
{
    blitz_task **t = work_array(count, sizeof *t);
    for (unsigned i = 0; i < count; i++)
        must(blitz_spawn(fn, (char *)args + i * arg_bytes,
                         &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(i % s->procs)}, &t[i]),
             "spawn");
    for (unsigned i = 0; i < count; i++)
        join(t[i]);
    free(t);
}

/* Twice: the first time starts the threads and fills the caches. */
static int measure(void *arg)
{
    struct run *r = arg;
    (void)r->work->run(&r->scene);
    world_mark();
    r->ops = r->work->run(&r->scene);
    r->sums = world_since_mark();
    r->site_count = lines_sites_top(r->sites, SITES_MAX);
    return 0;
}

static void scene(const struct bz_os *os, void *arg)
{
    struct run *r = arg;
    struct bz_runtime *rt;
    blitz_runtime_opts opts = {.procs = r->scene.procs, .io = "none"};

    must(bz_runtime_new(os, &opts, &rt), "runtime");
    r->scene.os = os;
    r->scene.rt = (blitz_runtime *)rt;
    must(r->work->flags & WORK_OUTSIDE ? measure(r)
                                       : blitz_runtime_block_on(r->scene.rt, measure, r),
         "run");
    must(blitz_runtime_shutdown(r->scene.rt, BLITZ_FOREVER), "shutdown");
    must(blitz_runtime_unref(r->scene.rt), "unref");
}

static double ns_of(uint64_t ps, uint64_t ops)
{
    return (double)ps / WORLD_NS / (double)ops;
}

static double cost_of(const struct run *r)
{
    bool is_span = r->work->flags & WORK_SPAN;
    uint64_t ps = is_span ? r->sums.elapsed_ps * r->scene.procs : r->sums.cpu_ps;
    return ns_of(ps - r->sums.burnt_ps, r->ops);
}

static void print_run(const struct run *r)
{
    const struct world_sums *s = &r->sums;
    printf("{\"work\": \"%s\", \"op\": \"%s\", \"shared\": %s, \"procs\": %u, \"ops\": %llu, ",
           r->work->name, r->work->op, r->work->flags & WORK_SHARED ? "true" : "false",
           r->scene.procs, (unsigned long long)r->ops);
    printf("\"cost_ns\": %.1f, \"span_ns\": %.1f, \"cpu_ns\": %.1f, \"queue_ns\": %.1f, "
           "\"relax_ns\": %.1f, \"kernel_ns\": %.1f, ",
           cost_of(r), ns_of(s->elapsed_ps * r->scene.procs - s->burnt_ps, r->ops),
           ns_of(s->cpu_ps - s->burnt_ps, r->ops), ns_of(s->queue_ps, r->ops),
           ns_of(s->relax_ps, r->ops), ns_of(s->kernel_ps, r->ops));
    double ops = (double)r->ops;
    printf("\"accesses\": %.1f, \"moves\": %.2f, \"wakes\": %.3f, \"sleeps\": %.3f, "
           "\"barriers\": %.4f, \"maps\": %.4f, \"sites\": [",
           (double)s->accesses / ops, (double)s->moves / ops, (double)s->wakes / ops,
           (double)s->sleeps / ops, (double)s->barriers / ops, (double)s->maps / ops);
    for (unsigned i = 0; i < r->site_count; i++) {
        const struct line_site *at = &r->sites[i];
        printf("%s{\"pc\": %llu, \"moves\": %.4f, \"ns\": %.2f, \"one_line\": %.2f}",
               i > 0 ? ", " : "", (unsigned long long)(at->pc - (uintptr_t)__executable_start - 1),
               (double)at->moves / ops, ns_of(at->ps, r->ops),
               (double)at->here / (double)at->moves);
    }
    printf("]}\n");
    fflush(stdout);
}

static void play(const struct work *w, unsigned procs, unsigned rounds, uint64_t seed)
{
    static struct run r;
    r = (struct run){.work = w, .scene = {.procs = procs, .rounds = rounds}};
    world_run(&(struct world_config){.seed = seed, .cpus = (int)procs}, scene, &r);
    print_run(&r);
}

static const struct work *find(const char *name)
{
    for (unsigned i = 0; i < BZ_ARRAY_LEN(lists); i++)
        for (const struct work *w = lists[i]; w->name != NULL; w++)
            if (strcmp(w->name, name) == 0)
                return w;
    fprintf(stderr, "scale: no workload '%s'; --list has their names\n", name);
    exit(2);
}

static int list(void)
{
    for (unsigned i = 0; i < BZ_ARRAY_LEN(lists); i++)
        for (const struct work *w = lists[i]; w->name != NULL; w++)
            printf("%s\n", w->name);
    return 0;
}

/* Addresses must not differ between two runs: a free list by address would make them differ. */
static void fix_addresses(char **argv)
{
    int now = personality(0xffffffff);
    if (now == -1 || now & ADDR_NO_RANDOMIZE || personality(now | ADDR_NO_RANDOMIZE) == -1)
        return;
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc != 5) {
        fprintf(stderr, "usage: scale --list | scale WORKLOAD PROCS ROUNDS SEED\n");
        return 2;
    }
    fix_addresses(argv);
    play(find(argv[1]), (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
         strtoull(argv[4], NULL, 0));
    return 0;
}
