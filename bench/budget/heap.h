/*
 * heap.h - objects of a heap, and messages to an actor whose faults are trapped.
 */
#ifndef BENCH_BUDGET_HEAP_H
#define BENCH_BUDGET_HEAP_H

#include "budget/actors.h"

struct heap_node {
    const struct heap_node *next, *other;
    uint64_t key, value;
};
BLITZ_TYPE(budget_node, struct heap_node, next, other);
BLITZ_VALUE_TYPE(budget_value, struct heap_node, next, other);

/* A round is an object that dies young. A thousand between two collections. */
static void heap_allocs(uint64_t rounds)
{
    blitz_heap *h;
    must(blitz_heap_new(NULL, &h), "heap");
    for (uint64_t i = 1; i <= rounds; i++) {
        if (blitz_heap_alloc(h, &budget_node) == NULL)
            budget_die("no memory");
        if (i % 1000 == 0)
            must(blitz_heap_tidy(h, NULL, 0), "tidy");
    }
    blitz_heap_unref(h);
}

enum { OLD_NODES = 20000, YOUNG_NODES = 1000 };

static const struct heap_node *push_value(blitz_heap *h, const struct heap_node *next)
{
    struct heap_node n = {next, NULL, 1, 2};
    const struct heap_node *made =
        (const struct heap_node *)blitz_heap_copy(h, &budget_value, 0, &n);
    if (made == NULL)
        budget_die("no memory");
    return made;
}

/*
 * A round is a node that is made and survives a minor collection. A thousand between two, beside twenty thousand old ones. The list of
 * each thousand is dropped by the next one, so some collections are full: the old part doubles.
 */
static void heap_survivors(uint64_t rounds)
{
    blitz_heap *h;
    blitz_heap_info info;
    const struct heap_node *old = NULL, *list = NULL;
    must(blitz_heap_new(&(blitz_heap_opts){.young_bytes = 1}, &h), "heap");
    for (unsigned i = 0; i < OLD_NODES; i++)
        old = push_value(h, old);
    must(BLITZ_HEAP_COLLECT(h, &old), "collect");
    for (uint64_t i = 1; i <= rounds; i++) {
        list = push_value(h, list);
        if (i % YOUNG_NODES == 0) {
            must(BLITZ_HEAP_TIDY(h, &old, &list), "tidy");
            list = NULL;
        }
    }
    blitz_heap_info_get(h, &info);
    if (info.minor == 0)
        budget_die("no minor collection");
    blitz_heap_unref(h);
}

static const blitz_behaviour sturdy_adder = {.name = "sturdy adder",
                                             .state_bytes = sizeof(uint64_t),
                                             .handlers = adder_handlers,
                                             .handler_count = 4,
                                             .trap_faults = true};

/* As actor_sends(), to an actor whose faults are trapped: the guard is around each message. */
static void trapped_sends(uint64_t rounds)
{
    send_to(&sturdy_adder, rounds);
}

#define BUDGET_HEAP                                                                   \
    {"heap allocation, 32 bytes", heap_allocs}, {"heap, a survivor", heap_survivors}, \
    {                                                                                 \
        "actor send, trapped, 100 a turn", trapped_sends                              \
    }

#endif
