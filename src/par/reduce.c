/*
 * reduce.c - parallel reductions: map and combine.
 *
 * There are two ways. By default (split.c) each stack adds its chunks to one accumulator, from left
 * to right, and a new accumulator is made only for a part that another worker takes. The
 * combinations then depend on the steals. An associative function gives the same result, but
 * floating-point sums are not associative.
 *
 * In ordered mode the tree is fixed: n and the grain determine the chunks and how they are halved.
 * Each chunk has its own accumulator, and each node combines two. It costs one more init and
 * combine for each chunk. Chunk times are not measured, so there are many chunks of a fixed size: n
 * / 1024.
 *
 * Rejected: ordered sums by an array of accumulators of all chunks, combined at the end. It needs
 *           memory for each chunk; the tree needs one accumulator for each level.
 *
 * I1  A node's accumulator is complete before its join returns. The frame that forked the node
 *     combines it when the left one is complete.
 */
#include <errno.h>

#include "blitz/par.h"
#include "blitz/task.h"
#include "par/split.h"

enum { LEAVES = 1024 };

/* ---- unordered ---- */

static int map_chunk(const struct bz_loop *loop, const struct bz_span *s, void *acc)
{
    return loop->how->map(acc, s->from, s->to, loop->arg);
}

/* ---- ordered ---- */

/* The indexes [from, to), in the frame of the forking function. */
struct node {
    blitz_job job;
    struct bz_loop *loop; /* its grain is the size of a leaf */
    size_t from, to;
    void *acc; /* the result, uninitialised before */
};

static int reduce_leaf(struct node *n)
{
    const struct bz_loop *loop = n->loop;
    int err;
    loop->how->init(n->acc, loop->arg);
    if (!bz_loop_may_continue(n->loop, &err))
        return err;
    err = loop->how->map(n->acc, n->from, n->to, loop->arg);
    if (err != 0)
        bz_loop_stop(n->loop);
    bz_par_checkpoint(false, false);
    return err;
}

static int reduce_node(struct node *n);

/* Another worker runs it, and is not under the caller's shield. */
static int node_main(void *arg)
{
    struct node *n = arg;
    bool is_ours = bz_loop_shield(n->loop);
    int err = reduce_node(n);
    if (is_ours)
        blitz_unshield();
    return err;
}

/* Compute both halves, then combine the right one into the left one. */
static int reduce_halves(struct node *n, size_t middle)
{
    const blitz_reduction *how = n->loop->how;
    struct bz_acc acc;
    if (!bz_acc_begin(&acc, how->bytes)) {
        bz_loop_stop(n->loop);
        how->init(n->acc, n->loop->arg);
        return -ENOMEM;
    }
    struct node left = {.loop = n->loop, .from = n->from, .to = middle, .acc = n->acc};
    struct node right = {.loop = n->loop, .from = middle, .to = n->to, .acc = acc.at};
    blitz_fork(&right.job, node_main, &right);
    int err = reduce_node(&left);
    int its = blitz_join(&right.job);
    if (err == 0 && its == 0)
        bz_acc_add(how, n->acc, acc.at, n->loop->arg); /* I1 */
    bz_acc_end(&acc, how->bytes);
    return err != 0 ? err : its;
}

static int reduce_node(struct node *n)
{
    size_t leaf = n->loop->grain, leaves = (n->to - n->from) / leaf;
    if (leaves < 2 || bz_loop_is_stopped(n->loop))
        return reduce_leaf(n);
    return reduce_halves(n, n->from + leaves / 2 * leaf);
}

static int reduce_in_order(struct bz_loop *loop, size_t n, void *result)
{
    struct node root = {.loop = loop, .from = 0, .to = n, .acc = result};
    if (n / LEAVES > loop->grain)
        loop->grain = n / LEAVES;
    return reduce_node(&root);
}

/* ---- both ---- */

struct call {
    size_t n;
    const blitz_reduction *how;
    void *arg;
    void *result;
    const blitz_par_opts *opts;
};

static int reduce_inside(void *call)
{
    const struct call *c = call;
    struct bz_loop loop = {.chunk = map_chunk, .arg = c->arg, .how = c->how};
    bz_loop_init(&loop, c->n, c->opts);
    if (c->opts != NULL && c->opts->is_ordered)
        return reduce_in_order(&loop, c->n, c->result);
    c->how->init(c->result, c->arg);
    return bz_loop_run(&loop, &(struct bz_span){0, c->n, 0, 1}, c->result);
}

int blitz_reduce(size_t n, const blitz_reduction *how, void *arg, void *result,
                 const blitz_par_opts *opts)
{
    if (how == NULL || how->init == NULL || how->map == NULL || how->combine == NULL ||
        how->bytes == 0 || result == NULL)
        return -EINVAL;
    if (n == 0) {
        how->init(result, arg);
        return 0;
    }
    return blitz_par_call_(reduce_inside, &(struct call){n, how, arg, result, opts});
}
