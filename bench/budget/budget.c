/*
 * budget.c - run one of the operations of `make budget`: OPERATION ROUNDS, or --list.
 */
#include <string.h>

#include "budget/actors.h"
#include "budget/chan.h"
#include "budget/fs.h"
#include "budget/heap.h"
#include "budget/net.h"
#include "budget/nodes.h"
#include "budget/sync.h"
#include "budget/tasks.h"
#include "budget/workers.h"

static const struct budget_op ops[] = {BUDGET_TASKS,  BUDGET_CHAN,    BUDGET_SYNC,
                                       BUDGET_NET,    BUDGET_WORKERS, BUDGET_FS,
                                       BUDGET_ACTORS, BUDGET_HEAP,    BUDGET_NODES};

struct order {
    const struct budget_op *op;
    uint64_t rounds;
};

static int perform(void *arg)
{
    const struct order *o = arg;
    o->op->run(o->rounds);
    return 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: budget OPERATION ROUNDS | --list\n");
    return 2;
}

int main(int argc, char **argv)
{
    blitz_runtime_opts config = {.procs = 1};
    size_t count = sizeof ops / sizeof *ops;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(ops[i].name);
        return 0;
    }
    if (argc != 3)
        return usage();
    char *end;
    struct order o = {NULL, strtoull(argv[2], &end, 10)};
    for (size_t i = 0; i < count; i++)
        if (strcmp(ops[i].name, argv[1]) == 0)
            o.op = &ops[i];
    if (o.op == NULL || *end != '\0')
        return usage();
    return blitz_run(perform, &o, &config);
}
