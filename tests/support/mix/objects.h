/*
 * objects.h - the scene of an object pool: no object is used by two parties, and none is lost.
 *
 * Some makes fail, some objects are discarded. A waiter that is not woken waits beside an idle object.
 */
#ifndef MIX_OBJECTS_H
#define MIX_OBJECTS_H

#include "support/mix/round.h"

static struct {
    blitz_object_pool *pool;
    struct mix_count made, dropped, tries;
} objects;

struct mix_object {
    struct mix_count users;
};

static int objects_make_one(void **out, void *ctx)
{
    (void)ctx;
    if (mix_add(&objects.tries, 1) % 5 == 0)
        return -EIO;
    *out = calloc(1, sizeof(struct mix_object));
    CHECK_NOT_NULL(*out);
    mix_add(&objects.made, 1);
    return 0;
}

static void objects_drop_one(void *object, void *ctx)
{
    (void)ctx;
    CHECK_EQ(mix_get(&((struct mix_object *)object)->users), 0);
    mix_add(&objects.dropped, 1);
    free(object);
}

static int mix_object_take_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_object_pool_acquire(op->of, &op->pointer, until);
}
static blitz_future *mix_object_take_future(struct mix_op *op)
{
    blitz_object_pool_acquire_future_init(&op->f.pool, op->of);
    return &op->f.pool.future;
}
static int mix_object_take_result(struct mix_op *op, int rc)
{
    op->pointer = op->f.pool.object;
    return rc == 0 ? op->f.pool.result : rc;
}
static const struct mix_verb mix_object_take = {
    "object", mix_object_take_call, mix_object_take_future, mix_object_take_result, 0, 0};

static void objects_make(struct mix_round *r)
{
    memset(&objects, 0, sizeof objects);
    blitz_object_pool_opts opts = {.make = objects_make_one, .drop = objects_drop_one};
    opts.objects_max = 1 + mix_die(&r->dice, 3);
    opts.idle_max = 1 + mix_die(&r->dice, 3);
    CHECK_EQ(blitz_object_pool_new(&opts, &objects.pool), 0);
    for (uint64_t n = 2 + mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, 0, mix_one_in(&r->dice, 3))->left = 1 + (unsigned)mix_die(&r->dice, 12);
    mix_say(r, " %zu objects", opts.objects_max);
}

/* p->scratch[0]: the object that the party has. */
static struct mix_object *objects_held(struct mix_party *p)
{
    return (struct mix_object *)(uintptr_t)p->scratch[0]; /* NOLINT: a pointer in a number */
}

static bool objects_next(struct mix_party *p)
{
    if (objects_held(p) == NULL && p->left == 0)
        return false;
    p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 15) * BLITZ_US;
    mix_begin(p, objects_held(p) != NULL ? &mix_pause : &mix_object_take, objects.pool);
    return true;
}

static void objects_give_back(struct mix_party *p)
{
    struct mix_object *o = objects_held(p);
    if (o == NULL)
        return;
    p->scratch[0] = 0;
    CHECK_EQ(mix_add(&o->users, -1), 0);
    if (mix_one_in(&p->dice, 4))
        blitz_object_pool_discard(objects.pool, o);
    else
        blitz_object_pool_release(objects.pool, o);
}

static void objects_done(struct mix_party *p, int rc)
{
    if (objects_held(p) != NULL) {
        objects_give_back(p);
        return;
    }
    p->left--;
    CHECK(rc == 0 || rc == -EIO || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc != 0)
        return;
    p->scratch[0] = (uintptr_t)p->op.pointer;
    CHECK_EQ(mix_add(&objects_held(p)->users, 1), 1);
}

static void objects_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(blitz_object_pool_used(objects.pool), 0u);
    blitz_object_pool_unref(objects.pool);
    CHECK_EQ(mix_get(&objects.made), mix_get(&objects.dropped));
}

static const struct mix_scene mix_scene_objects = {
    "objects", 2, objects_make, objects_next, objects_done, objects_give_back, objects_check};

#endif
