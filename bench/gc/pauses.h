/*
 * pauses.h - ours: what a full collection takes, what others notice of it, and what a heap costs that is not used.
 */
#ifndef BENCH_GC_PAUSES_H
#define BENCH_GC_PAUSES_H

#include "gc/objects.h"

/* ---- full collections ---- */

/* Make a tree of these n nodes in random order. Returns its root. */
static struct entry *scatter(struct entry **place, uint64_t n, uint64_t *seed)
{
    for (uint64_t i = n; i > 1; i--) {
        uint64_t k = gc_random(seed) % i;
        struct entry *swapped = place[k];
        place[k] = place[i - 1];
        place[i - 1] = swapped;
    }
    for (uint64_t i = 0; i < n; i++) {
        place[i]->left = 2 * i + 1 < n ? place[2 * i + 1] : NULL;
        place[i]->right = 2 * i + 2 < n ? place[2 * i + 2] : NULL;
    }
    return place[0];
}

static struct entry **places(uint64_t n)
{
    struct entry **place = (struct entry **)malloc(n * sizeof *place);
    if (place == NULL)
        bench_die("out of memory");
    return place;
}

/* The root of a tree of n nodes that lie in random order. */
static struct entry *make_scattered(blitz_heap *heap, uint64_t n, uint64_t *seed)
{
    struct entry **place = places(n);
    for (uint64_t i = 0; i < n; i++)
        place[i] = (struct entry *)made(blitz_heap_alloc(heap, &gc_entry));
    struct entry *root = scatter(place, n, seed);
    free(place);
    return root;
}

/* The same with the nodes of a tree: a collection has put them in order. */
static struct entry *scatter_again(struct entry *root, uint64_t n, uint64_t *seed)
{
    struct entry **place = places(n);
    uint64_t count = 0;
    place[count++] = root;
    for (uint64_t i = 0; i < count; i++) {
        if (place[i]->left != NULL)
            place[count++] = (struct entry *)(uintptr_t)place[i]->left;
        if (place[i]->right != NULL)
            place[count++] = (struct entry *)(uintptr_t)place[i]->right;
    }
    if (count != n)
        bench_die("%llu nodes", (unsigned long long)count);
    root = scatter(place, n, seed);
    free(place);
    return root;
}

static double full_ns; /* of the fastest collection */

static void *collect_timed(blitz_heap *heap, void *live)
{
    uint64_t began = bench_thread_ns();
    must(BLITZ_HEAP_COLLECT(heap, &live), "collect");
    double ns = (double)(bench_thread_ns() - began);
    full_ns = full_ns == 0 || ns < full_ns ? ns : full_ns;
    return live;
}

static void begin_full(struct worker *w, blitz_heap *heap)
{
    w->live = make_scattered(heap, w->size, &w->seed);
}

static void step_full(struct worker *w, blitz_heap *heap)
{
    w->live = scatter_again((struct entry *)w->live, w->size, &w->seed);
    w->live = collect_timed(heap, w->live);
}

/* Node i of n, with its subtrees. */
static const struct entry *make_heap_tree(blitz_heap *heap, uint64_t i, uint64_t n)
{
    if (i > n)
        return NULL;
    struct entry e = {make_heap_tree(heap, 2 * i, n), make_heap_tree(heap, 2 * i + 1, n), i, 0};
    return make_entry(heap, &gc_value_entry, &e);
}

static void begin_settled(struct worker *w, blitz_heap *heap)
{
    w->live = (void *)make_heap_tree(heap, 1, w->size);
}

static void step_settled(struct worker *w, blitz_heap *heap)
{
    w->live = collect_timed(heap, w->live);
}

/* The best of a few, in nanoseconds. */
static double collections_of(const struct job *job, uint64_t nodes, uint64_t count)
{
    full_ns = 0;
    (void)work(job, nodes, count, NULL);
    return full_ns;
}

static double full(uint64_t nodes, uint64_t count)
{
    static const struct job job = {begin_full, step_full};
    return collections_of(&job, nodes, count) / (double)nodes;
}

static double pause_of(uint64_t nodes, uint64_t count)
{
    static const struct job job = {begin_settled, step_settled};
    return collections_of(&job, nodes, count) / 1000;
}

static double case_full_10k(uint64_t ops)
{
    return full(10000, ops);
}

static double case_full_1m(uint64_t ops)
{
    return full(1000000, ops);
}

static double case_pause_10k(uint64_t ops)
{
    return pause_of(10000, ops);
}

static double case_pause_100k(uint64_t ops)
{
    return pause_of(100000, ops);
}

static double case_pause_1m(uint64_t ops)
{
    return pause_of(1000000, ops);
}

/* ---- others beside it ---- */

enum { TICKERS = 100, TICK_NS = 5000000, SLICE_NS = 100000000, SLICES = 20, DELAYS_MAX = 1 << 20 };

enum load { NOTHING, COMPUTES, COLLECTS };

static struct {
    enum load load; /* atomic: what the busy actor does now */
    unsigned slot;  /* atomic: where delays go */
    uint32_t at[2];
    uint32_t us[2][DELAYS_MAX]; /* delays */
} beside;

struct ticker {
    uint64_t due;
};

BLITZ_HANDLER(on_tick, struct ticker, void)
{
    (void)data, (void)m;
    uint64_t now = blitz_now();
    unsigned slot = __atomic_load_n(&beside.slot, __ATOMIC_RELAXED);
    uint32_t at = __atomic_fetch_add(&beside.at[slot], 1, __ATOMIC_RELAXED);
    if (at < DELAYS_MAX)
        beside.us[slot][at] = (uint32_t)((now - state->due) / 1000);
    state->due = state->due + TICK_NS > now ? state->due + TICK_NS : now;
    return blitz_actor_send_after(blitz_actor_self(), 0, NULL, 0, state->due, NULL);
}

static const blitz_handler ticker_handlers[] = {BLITZ_ON_EMPTY(0, on_tick)};
static const blitz_behaviour ticker = {.name = "ticker",
                                       .state_bytes = sizeof(struct ticker),
                                       .handlers = ticker_handlers,
                                       .handler_count = 1};

static void begin_busy(struct worker *w, blitz_heap *heap)
{
    w->live = make_scattered(heap, w->size, &w->seed);
}

/* As long as a collection of a million nodes takes. */
static void compute(uint64_t *seed)
{
    uint64_t until = bench_thread_ns() + 15000000;
    while (bench_thread_ns() < until)
        for (unsigned i = 0; i < 1000; i++)
            (void)gc_random(seed);
}

/* The collection is made as the runtime makes it: at the end of the handler, with the state as root. */
static void step_busy(struct worker *w, blitz_heap *heap)
{
    enum load load = __atomic_load_n(&beside.load, __ATOMIC_RELAXED);
    void *live = w->live;
    if (load == COLLECTS)
        must(BLITZ_HEAP_COLLECT(heap, &live), "collect");
    else if (load == COMPUTES)
        compute(&w->seed);
    else
        must(blitz_sleep(SLICE_NS / 10), "sleep");
}

static int by_delay(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double p99_us(unsigned slot)
{
    uint32_t n = beside.at[slot] < DELAYS_MAX ? beside.at[slot] : DELAYS_MAX;
    if (n < 1000)
        bench_die("%u ticks", n);
    qsort(beside.us[slot], n, sizeof beside.us[slot][0], by_delay);
    return (double)beside.us[slot][n - 1 - n / 100];
}

/* Slices of both loads in turn. Returns p99 beside collections / p99 beside `other`. */
static double beside_of(enum load other)
{
    static const struct job job = {begin_busy, step_busy};
    struct worker w = {
        .job = &job, .size = 1000000, .left = UINT64_MAX, .seed = 88172645463325252u};
    blitz_actor_id busy, ticking[TICKERS];
    beside.load = other;
    beside.slot = 0;
    beside.at[0] = beside.at[1] = 0;
    must(blitz_actor_spawn(&worker, &w, NULL, &busy), "spawn");
    must(blitz_actor_send(busy, BEGIN, NULL, 0), "send");
    done_wait();
    must(blitz_actor_send(busy, STEP, NULL, 0), "send");
    for (unsigned i = 0; i < TICKERS; i++) {
        struct ticker t = {blitz_now() + TICK_NS * (uint64_t)i / TICKERS};
        must(blitz_actor_spawn(&ticker, &t, NULL, &ticking[i]), "spawn");
        must(blitz_actor_send_after(ticking[i], 0, NULL, 0, t.due, NULL), "send");
    }
    for (unsigned i = 0; i < 2 * SLICES; i++) {
        __atomic_store_n(&beside.load, i % 2 != 0 ? COLLECTS : other, __ATOMIC_RELAXED);
        must(blitz_sleep(SLICE_NS / 2), "sleep"); /* the step in progress has ended */
        __atomic_store_n(&beside.slot, i % 2, __ATOMIC_RELAXED);
        must(blitz_sleep(SLICE_NS), "sleep");
    }
    for (unsigned i = 0; i < TICKERS; i++)
        must(blitz_actor_stop(ticking[i]), "stop");
    must(blitz_actor_stop(busy), "stop");
    double without = p99_us(0), with = p99_us(1);
    printf("# p99 %.0f us beside collections, %.0f us without\n", with, without);
    return with / (without > 1 ? without : 1);
}

static double case_beside(uint64_t ops)
{
    (void)ops;
    return beside_of(COMPUTES);
}

static double case_beside_idle(uint64_t ops)
{
    (void)ops;
    return beside_of(NOTHING);
}

/* ---- idle actors ---- */

struct idler {
    void *object;
};
BLITZ_TYPE(gc_idler, struct idler, object);

static uint64_t born; /* atomic */

static int idler_init(void *state)
{
    (void)state;
    __atomic_add_fetch(&born, 1, __ATOMIC_RELAXED);
    return 0;
}

/* The end of the runtime ends them all. */
static double idle(uint64_t count, blitz_type *type)
{
    static blitz_behaviour idler = {
        .name = "idler", .init = idler_init, .state_bytes = sizeof(struct idler)};
    blitz_actor_id id;
    idler.state_type = type;
    must(blitz_actor_spawn(&idler, NULL, NULL, &id),
         "spawn"); /* it makes the part that all share */
    uint64_t before = tasks_memory();
    for (uint64_t i = 1; i <= count; i++) {
        must(blitz_actor_spawn(&idler, NULL, NULL, &id), "spawn");
        while (i % IDLE_STEP == 0 && __atomic_load_n(&born, __ATOMIC_RELAXED) <= i)
            blitz_yield();
    }
    return (double)(tasks_memory() - before) / (double)count;
}

static double case_idle(uint64_t ops)
{
    return idle(ops, &gc_idler);
}

static double case_idle_none(uint64_t ops)
{
    return idle(ops, NULL);
}

#endif
