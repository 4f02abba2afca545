/*
 * pipeline.c - items through stages, several at a time.
 *
 * A *token* carries one item at a time: it takes the next item from the source, calls one stage
 * after the other with it, and returns for another. There are as many tokens as items may be in
 * flight, so the bound needs no counting, and an item stays in the cache of its worker. Tokens are
 * forked jobs: if no worker is free, a token starts only at its join, and finds that the source has
 * ended. A token that waits for its turn suspends, and its worker runs other work.
 *
 * Turns. Items are numbered in the order of the source. An ordered stage has an array of
 * semaphores, one for each token: item i waits for semaphore i modulo their count, and then gives a
 * permit to the next. Among the items that have not passed the stage, the lowest is in flight, and
 * so are all items between it and any waiting item. Those are at most as many as there are tokens,
 * so two items never wait for one semaphore (I1). The lowest item of all never waits, so the
 * pipeline makes progress.
 *
 * An item that a stage has consumed still passes its turns on, without calls of its later stages.
 *
 * Stopping: the first reason is kept and the semaphores are closed, which ends all waits. Every
 * token drops its item and ends. The holders of the mutexes of serial stages unlock them.
 *
 * Rejected: a queue between each two stages, with separate tasks for each stage (a switch or a wake
 *           for every stage and item, and a bound for each queue). Also a buffer in the stage for
 *           items that are out of turn, as in TBB, whose tasks cannot wait. Ours can, so a token is
 *           straight-line code.
 *
 * I1  At most one item waits for a semaphore, and a semaphore has at most one permit.
 * I2  One token owns an item, until a stage has consumed it or it is dropped.
 */
#include <errno.h>

#include "blitz/mutex.h"
#include "blitz/par.h"
#include "blitz/semaphore.h"
#include "blitz/task.h"
#include "par/split.h"

struct pipe {
    struct bz_loop loop; /* for its flag and its shield */
    int (*source)(void **item, void *arg);
    void *arg;
    const blitz_stage *stages;
    size_t count;
    size_t tokens;
    blitz_pipeline_opts opts;
    blitz_mutex at_source;
    uint64_t next;         /* the number of the next item; guarded by at_source, like */
    bool has_ended;        /* the source has ended */
    bz_atomic(int) error;  /* the first reason to stop, or 0 */
    blitz_mutex *alone;    /* of each stage, if it is serial */
    blitz_semaphore *turn; /* of each stage, one for each token, if it is ordered */
};

struct token {
    blitz_job job;
    struct pipe *pipe;
};

static blitz_semaphore *turn_of(struct pipe *p, size_t stage, uint64_t number)
{
    return &p->turn[stage * p->tokens + number % p->tokens];
}

/* ---- stopping ---- */

static void stop(struct pipe *p, int why)
{
    int none = 0;
    if (!bz_cas_strong_rlx_rlx(&p->error, &none, why)) /* relaxed: read after all joins */
        return;
    bz_loop_stop(&p->loop);
    for (size_t i = 0; i < p->count * p->tokens; i++)
        blitz_semaphore_close(&p->turn[i]);
}

static void drop(struct pipe *p, void *item)
{
    if (item != NULL && p->opts.drop != NULL)
        p->opts.drop(item, p->opts.ctx);
}

/* Between two stages: true if the token should continue. */
static bool may_go_on(struct pipe *p)
{
    int err;
    bz_par_checkpoint(false, false);
    bool may = bz_loop_may_continue(&p->loop, &err);
    if (err != 0)
        stop(p, err);
    return may;
}

/* ---- a token ---- */

/* Take the next item and its number. */
static bool take(struct pipe *p, void **item, uint64_t *number)
{
    int err = blitz_mutex_lock(&p->at_source, BLITZ_FOREVER);
    *item = NULL;
    if (err == 0) {
        if (!p->has_ended && !bz_loop_is_stopped(&p->loop))
            err = p->source(item, p->arg);
        p->has_ended |= *item == NULL || err != 0;
        *number = p->next++;
        blitz_mutex_unlock(&p->at_source);
    }
    if (err == 0)
        return *item != NULL;
    stop(p, err);
    drop(p, *item);
    return false;
}

static int call(const blitz_stage *stage, void **item)
{
    return *item != NULL ? stage->fn(item, stage->arg) : 0;
}

static int call_in_turn(struct pipe *p, size_t i, void **item, uint64_t number)
{
    int err = blitz_semaphore_acquire(turn_of(p, i, number), 1, BLITZ_FOREVER);
    if (err == 0)
        err = call(&p->stages[i], item);
    if (err == 0)
        (void)!blitz_semaphore_release(turn_of(p, i, number + 1), 1);
    return err;
}

static int call_alone(struct pipe *p, size_t i, void **item)
{
    int err = blitz_mutex_lock(&p->alone[i], BLITZ_FOREVER);
    if (err != 0)
        return err;
    if (!bz_loop_is_stopped(&p->loop))
        err = call(&p->stages[i], item);
    blitz_mutex_unlock(&p->alone[i]);
    return err;
}

static int call_stage(struct pipe *p, size_t i, void **item, uint64_t number)
{
    switch (p->stages[i].kind) {
    case BLITZ_STAGE_ORDERED:
        return call_in_turn(p, i, item, number);
    case BLITZ_STAGE_SERIAL:
        return call_alone(p, i, item);
    default:
        return call(&p->stages[i], item);
    }
}

static void carry(struct pipe *p, void *item, uint64_t number)
{
    for (size_t i = 0; i < p->count && may_go_on(p); i++) {
        int err = call_stage(p, i, &item, number);
        if (err != 0)
            stop(p, err); /* ended with -EPIPE: there is a reason already */
    }
    drop(p, item);
}

static int token_main(void *arg)
{
    struct pipe *p = ((struct token *)arg)->pipe;
    bool is_ours = bz_loop_shield(&p->loop);
    uint64_t number;
    void *item;
    while (may_go_on(p) && take(p, &item, &number))
        carry(p, item, number);
    if (is_ours)
        blitz_unshield();
    return 0;
}

/* ---- the whole ---- */

/* Join in the reverse order of the forks. */
static void run_tokens(struct pipe *p, struct token *tokens)
{
    struct token mine = {.pipe = p};
    for (size_t i = 1; i < p->tokens; i++) {
        tokens[i].pipe = p;
        blitz_fork(&tokens[i].job, token_main, &tokens[i]);
    }
    (void)!token_main(&mine);
    for (size_t i = p->tokens; i-- > 1;)
        (void)!blitz_join(&tokens[i].job);
}

static void init_stages(struct pipe *p)
{
    for (size_t i = 0; i < p->count; i++) {
        blitz_mutex_init(&p->alone[i]);
        for (size_t k = 0; k < p->tokens; k++)
            blitz_semaphore_init(turn_of(p, i, k), k == 0 ? 1 : 0);
    }
}

/* The size of one allocation: tokens, semaphores, mutexes. 0 on overflow. */
static size_t bytes_for(const struct pipe *p)
{
    size_t each = sizeof(struct token) + sizeof(blitz_semaphore) * (p->count + 1);
    if (p->count > SIZE_MAX / 1024 || p->tokens > SIZE_MAX / 2 / each)
        return 0;
    return p->tokens * each + p->count * sizeof(blitz_mutex);
}

static int run_inside(void *arg)
{
    struct pipe *p = arg;
    bz_loop_init(&p->loop, 1, NULL);
    p->tokens = p->opts.in_flight > 0 ? p->opts.in_flight : 4 * (size_t)blitz_worker_count();
    size_t bytes = bytes_for(p);
    struct token *tokens = bytes > 0 ? bz_par_alloc(bytes) : NULL;
    if (tokens == NULL)
        return -ENOMEM;
    p->turn = (blitz_semaphore *)(tokens + p->tokens);
    p->alone = (blitz_mutex *)(p->turn + p->tokens * p->count);
    blitz_mutex_init(&p->at_source);
    init_stages(p);
    run_tokens(p, tokens);
    bz_par_free(tokens, bytes);
    return bz_load_relaxed(&p->error); /* relaxed: all tokens are joined */
}

static bool is_bad(const blitz_stage *stages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (stages[i].fn == NULL || (unsigned)stages[i].kind > BLITZ_STAGE_SERIAL)
            return true;
    return false;
}

int blitz_pipeline(int (*source)(void **item, void *arg), void *arg, const blitz_stage *stages,
                   size_t count, const blitz_pipeline_opts *opts)
{
    struct pipe p = {.source = source, .arg = arg, .stages = stages, .count = count};
    if (source == NULL || (count > 0 && stages == NULL) || is_bad(stages, count))
        return -EINVAL;
    bz_atomic_init(&p.error, 0);
    if (opts != NULL)
        p.opts = *opts;
    return blitz_par_call_(run_inside, &p);
}
