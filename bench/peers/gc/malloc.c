/*
 * malloc and free of the C library, one thread. What a message of ours drops is freed piece by piece where the message ends. A
 * tree has no owner but its root, so it is freed by a walk. An update by path copy frees the nodes that it has replaced: it
 * may, since nothing else holds them. The map is the same table.
 */
#include "gc/cases.h"

struct four {
    uint64_t word[4];
};

static void *made(size_t size)
{
    void *at = malloc(size);
    if (at == NULL)
        bench_die("out of memory");
    return at;
}

static double case_alloc_32(uint64_t ops)
{
    static struct four *all[ALLOCS];
    uint64_t messages = ops / ALLOCS + 1, began = tasks_now_ns();
    for (uint64_t k = 0; k < messages; k++) {
        for (unsigned i = 0; i < ALLOCS; i++) {
            all[i] = made(sizeof *all[i]);
            *all[i] = (struct four){{k, 0, 0, 0}}; /* ours are zeroed */
        }
        for (unsigned i = 0; i < ALLOCS; i++)
            free(all[i]);
    }
    return (double)(tasks_now_ns() - began) / (double)(messages * ALLOCS) * (double)ops;
}

/* ---- trees ---- */

struct tree {
    struct tree *left, *right;
};

static struct tree *make_tree(unsigned depth)
{
    struct tree *t = made(sizeof *t);
    t->left = depth > 0 ? make_tree(depth - 1) : NULL;
    t->right = depth > 0 ? make_tree(depth - 1) : NULL;
    return t;
}

static void free_tree(struct tree *t)
{
    if (t->left != NULL) {
        free_tree(t->left);
        free_tree(t->right);
    }
    free(t);
}

static void check_depth(const struct tree *t, uint64_t depth)
{
    uint64_t found = 0;
    for (; t->left != NULL; t = t->left)
        found++;
    if (found != depth)
        bench_die("a tree of depth %llu", (unsigned long long)found);
}

static double trees(unsigned depth, uint64_t ops)
{
    struct tree *live = make_tree(depth);
    uint64_t messages = (ops + gc_nodes(depth) - 1) / gc_nodes(depth), began = tasks_now_ns();
    for (uint64_t k = 0; k < messages; k++) {
        struct tree *t = make_tree(depth);
        check_depth(t, depth);
        free_tree(t);
    }
    double ns = (double)(tasks_now_ns() - began);
    free_tree(live);
    return ns / (double)(messages * gc_nodes(depth)) * (double)ops;
}

static double case_tree_10(uint64_t ops)
{
    return trees(10, ops);
}

static double case_tree_15(uint64_t ops)
{
    return trees(15, ops);
}

static double case_tree_20(uint64_t ops)
{
    return trees(20, ops);
}

/* ---- updates by path copy ---- */

struct entry {
    struct entry *left, *right;
    uint64_t key, value;
};

static struct entry *make_entries(uint64_t from, unsigned depth)
{
    if (depth == 0)
        return NULL;
    uint64_t half = ((uint64_t)1 << (depth - 1)) - 1;
    struct entry *e = made(sizeof *e);
    *e = (struct entry){make_entries(from, depth - 1), make_entries(from + half + 1, depth - 1),
                        from + half, 0};
    return e;
}

static void free_entries(struct entry *e)
{
    if (e == NULL)
        return;
    free_entries(e->left);
    free_entries(e->right);
    free(e);
}

static struct entry *updated(struct entry *old, uint64_t key)
{
    struct entry *e = made(sizeof *e);
    *e = *old;
    if (key < e->key)
        e->left = updated(e->left, key);
    else if (key > e->key)
        e->right = updated(e->right, key);
    else
        e->value++;
    free(old);
    return e;
}

static double case_update(uint64_t ops)
{
    uint64_t seed = 88172645463325252u;
    struct entry *live = make_entries(0, UPDATE_DEPTH);
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        live = updated(live, gc_random(&seed) % (((uint64_t)1 << UPDATE_DEPTH) - 1));
    double ns = (double)(tasks_now_ns() - began);
    free_entries(live);
    return ns;
}

/* ---- a map, in place ---- */

struct cell {
    uint64_t key, value, more[2];
};

static struct cell *make_cell(uint64_t key, uint64_t value)
{
    struct cell *c = made(sizeof *c);
    *c = (struct cell){key, value, {0, 0}};
    return c;
}

static double case_map(uint64_t ops)
{
    uint64_t seed = 88172645463325252u;
    struct cell **at = made(MAP * sizeof *at);
    for (uint64_t i = 0; i < MAP; i++)
        at[i] = make_cell(i, 0);
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint64_t key = gc_random(&seed) % MAP;
        struct cell *c = make_cell(key, at[key]->value + 1);
        free(at[key]);
        at[key] = c;
    }
    double ns = (double)(tasks_now_ns() - began);
    for (uint64_t i = 0; i < MAP; i++)
        free(at[i]);
    free(at);
    return ns;
}

static const struct tasks_case cases[] = {
    {"alloc-32", TASKS_PACED, case_alloc_32, 0},
    {"tree-10", TASKS_PACED, case_tree_10, 0},
    {"tree-15", TASKS_PACED, case_tree_15, 0},
    {"tree-20", TASKS_PACED, case_tree_20, 0},
    {"tree-10-plain", TASKS_PACED, case_tree_10, 0},
    {"tree-15-plain", TASKS_PACED, case_tree_15, 0},
    {"tree-20-plain", TASKS_PACED, case_tree_20, 0},
    {"update", TASKS_FIXED, case_update, 100000},
    {"update-plain", TASKS_FIXED, case_update, 100000},
    {"map", TASKS_FIXED, case_map, 1000000},
};

static void start(const struct tasks_case *c, const char *name)
{
    tasks_measure(c, name);
}

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], start);
}
