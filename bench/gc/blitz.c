/*
 * Ours. The work is done by an actor with a private heap, which sends itself messages; gc/cases.h says what each case is. Only
 * public headers: what a user can have.
 */
#include "gc/objects.h"
#include "gc/pauses.h"

static const struct tasks_case cases[] = {
    {"alloc-32", TASKS_PACED, case_alloc_32, 0},
    {"tree-10", TASKS_PACED, case_tree_10, 0},
    {"tree-15", TASKS_PACED, case_tree_15, 0},
    {"tree-20", TASKS_PACED, case_tree_20, 0},
    {"tree-10-plain", TASKS_PACED, case_tree_10_plain, 0},
    {"tree-15-plain", TASKS_PACED, case_tree_15_plain, 0},
    {"tree-20-plain", TASKS_PACED, case_tree_20_plain, 0},
    {"update", TASKS_FIXED, case_update, 100000},
    {"update-plain", TASKS_FIXED, case_update_plain, 100000},
    {"map", TASKS_FIXED, case_map, 1000000},
    {"map-pause", TASKS_ONCE, case_map_pause, 1000000},
    {"full-10k", TASKS_ONCE, case_full_10k, 50},
    {"full-1m", TASKS_ONCE, case_full_1m, 3},
    {"pause-10k", TASKS_ONCE, case_pause_10k, 50},
    {"pause-100k", TASKS_ONCE, case_pause_100k, 10},
    {"pause-1m", TASKS_ONCE, case_pause_1m, 3},
    {"beside", TASKS_ONCE, case_beside, 1},
    {"beside-idle", TASKS_ONCE, case_beside_idle, 1},
    {"idle", TASKS_ONCE, case_idle, IDLE},
    {"idle-none", TASKS_ONCE, case_idle_none, IDLE},
};

/* A handler that allocates a tree of two million nodes is logged as one that keeps its heap from being collected. */
static void say_nothing(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx, (void)level, (void)message;
}

int main(int argc, char **argv)
{
    must(blitz_log_set(say_nothing, NULL, BLITZ_LOG_ERROR), "log");
    return tasks_main(argc, argv, cases, sizeof cases / sizeof *cases, ours_start);
}
