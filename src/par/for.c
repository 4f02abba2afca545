/*
 * for.c - parallel loops: chunks, single indexes, tiles.
 *
 * split.c splits the loops; this file defines the chunks of each kind. A loop over single indexes
 * is a loop over chunks with our own inner loop, which checks for an error between two calls. A
 * loop over tiles is the same with two-dimensional spans.
 *
 * The loop stores function pointers as one type and converts them back to their own type before a
 * call, as C requires.
 */
#include <errno.h>

#include "par/split.h"

/* ---- chunks ---- */

static int range_chunk(const struct bz_loop *loop, const struct bz_span *s, void *acc)
{
    (void)acc;
    return ((blitz_range_fn *)loop->body)(s->from, s->to, loop->arg);
}

static int index_chunk(const struct bz_loop *loop, const struct bz_span *s, void *acc)
{
    blitz_index_fn *body = (blitz_index_fn *)loop->body;
    (void)acc;
    for (size_t i = s->from; i < s->to; i++) {
        int err = body(i, loop->arg);
        if (err != 0)
            return err;
    }
    return 0;
}

static int tile_chunk(const struct bz_loop *loop, const struct bz_span *s, void *acc)
{
    (void)acc;
    return ((blitz_tile_fn *)loop->body)(s->from, s->to, s->left, s->right, loop->arg);
}

/* ---- loops ---- */

/* The arguments of a loop. */
struct call {
    bz_chunk_fn *chunk;
    void (*body)(void);
    void *arg;
    struct bz_span whole;
    bool is_tiled;
    const blitz_par_opts *opts;
};

static int run_inside(void *call)
{
    const struct call *c = call;
    struct bz_loop loop = {
        .chunk = c->chunk, .body = c->body, .arg = c->arg, .is_tiled = c->is_tiled};
    bz_loop_init(&loop, bz_span_cells(&c->whole), c->opts);
    return bz_loop_run(&loop, &c->whole, NULL);
}

static int run(struct call c)
{
    if (c.body == NULL)
        return -EINVAL;
    if (c.whole.from == c.whole.to || c.whole.left == c.whole.right)
        return 0;
    return blitz_par_call_(run_inside, &c);
}

int blitz_for(size_t n, blitz_range_fn *body, void *arg, const blitz_par_opts *opts)
{
    return run((struct call){range_chunk, (void (*)(void))body, arg, {0, n, 0, 1}, false, opts});
}

int blitz_for_each(size_t n, blitz_index_fn *body, void *arg, const blitz_par_opts *opts)
{
    return run((struct call){index_chunk, (void (*)(void))body, arg, {0, n, 0, 1}, false, opts});
}

int blitz_for_2d(size_t rows, size_t columns, blitz_tile_fn *body, void *arg,
                 const blitz_par_opts *opts)
{
    if (columns > 0 && rows > SIZE_MAX / columns)
        return -EINVAL;
    return run(
        (struct call){tile_chunk, (void (*)(void))body, arg, {0, rows, 0, columns}, true, opts});
}
