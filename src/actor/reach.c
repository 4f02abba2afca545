/*
 * reach.c - references to actors that end when nothing holds them: blocks, their table, and the calls of users.
 *
 * A behaviour with `end_unreachable` opts in. Its actors have other operations than the rest (actor.c), and a block beside them
 * with a strong count (reach.h). So other actors pay nothing, neither time nor memory. reaching.c has the side of the actor.
 *
 * A reference is counted wherever it is: with a task, in a message as cargo (cargo.c), in a heap as a holder (src/heap/holder.c). The
 * collector drops those of dead objects. A message that is sent later holds its receiver: it has the reference as cargo.
 *
 * An id leads to the block by a table, under a lock. Only a timer and blitz_reference_of() look there, and births and deaths of
 * such actors.
 *
 * I1  A block is in the table from before its actor is placed until before the actor's `exit`.
 */
#include "actor/reach.h"

#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/reaching.h"

enum { BUCKETS_FIRST = 64 };

/* ---- blocks ---- */

blitz_reference *bz_reference_new(struct bz_runtime *rt, uint32_t count)
{
    blitz_reference *r = bz_alloc(&rt->alloc, sizeof *r, _Alignof(blitz_reference));
    if (r == NULL)
        return NULL;
    memset(r, 0, sizeof *r);
    bz_reach_init(&r->reach, count);
    r->rt = rt;
    r->alloc = rt->alloc;
    return r;
}

void bz_reference_free(blitz_reference *r)
{
    blitz_allocator from = r->alloc;
    bz_free(&from, r, sizeof *r);
}

/* ---- the table ---- */

static blitz_reference **bucket_of(struct bz_references *t, blitz_actor_id id)
{
    uint32_t hash = (id.index ^ id.generation << 8) * 2654435761u;
    return &t->bucket[hash >> 8 & (t->buckets - 1)];
}

/* The place of a block in the table; NULL at that place: it is not there. Under the lock. */
static blitz_reference **find(struct bz_references *t, blitz_actor_id id)
{
    blitz_reference **at = bucket_of(t, id);
    while (*at != NULL && !blitz_actor_id_equal((*at)->id, id))
        at = &(*at)->next;
    return at;
}

blitz_reference *bz_reference_find(struct bz_references *t, blitz_actor_id id)
{
    return t->bucket != NULL ? *find(t, id) : NULL;
}

void bz_reference_hide(struct bz_references *t, const blitz_reference *r)
{
    *find(t, r->id) = r->next; /* I1 */
    t->count--;
}

static void put(struct bz_references *t, blitz_reference *r)
{
    blitz_reference **at = bucket_of(t, r->id);
    r->next = *at;
    *at = r;
}

/* Make the table larger, if it is full and there is memory. Under the lock. */
static void grow(struct bz_runtime *rt, struct bz_references *t)
{
    struct bz_references old = *t;
    size_t buckets = old.bucket != NULL ? (size_t)old.buckets * 2 : BUCKETS_FIRST;
    if ((old.bucket != NULL && old.count < old.buckets) || buckets > UINT32_MAX / 2)
        return;
    blitz_reference **bucket =
        bz_alloc(&rt->alloc, buckets * sizeof(void *), _Alignof(blitz_reference *));
    if (bucket == NULL)
        return;
    memset(bucket, 0, buckets * sizeof(void *));
    t->bucket = bucket;
    t->buckets = (uint32_t)buckets;
    if (old.bucket == NULL)
        return;
    for (uint32_t i = 0; i < old.buckets; i++)
        for (blitz_reference *r = old.bucket[i], *next; r != NULL; r = next) {
            next = r->next;
            put(t, r);
        }
    bz_free(&rt->alloc, old.bucket, old.buckets * sizeof(void *));
}

bool bz_references_reserve(struct bz_runtime *rt)
{
    struct bz_actors *all = bz_actors_of(rt);
    bz_lock_take(&all->reach_lock, rt->os);
    grow(rt, &all->references);
    bool has_table = all->references.bucket != NULL;
    bz_lock_drop(&all->reach_lock, rt->os);
    return has_table;
}

void bz_reference_show(struct bz_actor *a, blitz_reference *r, blitz_actor_id id)
{
    struct bz_actors *all = bz_actors_of(a->task.rt);
    r->id = id;
    *bz_reference_at(a) = r;
    bz_lock_take(&all->reach_lock, a->task.rt->os);
    put(&all->references, r); /* I1 */
    all->references.count++;
    bz_lock_drop(&all->reach_lock, a->task.rt->os);
}

/* Make a reference from an id. NULL: the actor ends, or has ended. */
static blitz_reference *reference_of(struct bz_runtime *rt, blitz_actor_id id)
{
    struct bz_actors *all = bz_actors_of(rt);
    blitz_reference *r;
    bz_lock_take(&all->reach_lock, rt->os);
    r = bz_reference_find(&all->references, id);
    if (r != NULL && (r->is_condemned || !bz_reach_try_add(&r->reach)))
        r = NULL;
    if (r != NULL && r->group != NULL)
        r->group->is_spared = true;
    bz_lock_drop(&all->reach_lock, rt->os);
    return r;
}

void bz_references_end(struct bz_runtime *rt, struct bz_actors *all)
{
    struct bz_references *t = &all->references;
    for (blitz_reference *r = t->suspects, *next; r != NULL; r = next) {
        next = r->next_suspect;
        if (bz_reach_forget(&r->reach, BZ_REACH_SUSPECT))
            bz_reference_free(r);
    }
    t->suspects = NULL;
    blitz_reference_unref(t->detector);
    if (t->bucket != NULL)
        bz_free(&rt->alloc, t->bucket, t->buckets * sizeof(void *));
    t->bucket = NULL;
}

/* ---- bells and lists ---- */

void bz_reference_ring(const blitz_reference *r)
{
    bz_actor_ring(bz_actor_of(bz_slot_at(&r->rt->tasks.slots, r->id.index)));
}

void bz_detector_ring(struct bz_runtime *rt)
{
    struct bz_actors *all = bz_actors_of(rt);
    bz_lock_take(&all->reach_lock, rt->os);
    const blitz_reference *d = all->references.detector;
    bz_lock_drop(&all->reach_lock, rt->os);
    if (d != NULL)
        bz_reference_ring(d); /* it stays while the runtime lives */
}

void bz_reference_list(blitz_reference *r)
{
    struct bz_runtime *rt = r->rt;
    struct bz_actors *all = bz_actors_of(rt);
    bz_lock_take(&all->reach_lock, rt->os);
    bool is_first = all->references.suspects == NULL;
    r->next_suspect = all->references.suspects;
    all->references.suspects = r;
    bz_lock_drop(&all->reach_lock, rt->os);
    if (is_first)
        bz_detector_ring(rt);
}

/* ---- calls of users ---- */

blitz_reference *blitz_reference_self(void)
{
    struct bz_actor *me = bz_actor_self();
    blitz_reference *r =
        me != NULL && bz_actor_behaviour(me)->end_unreachable ? *bz_reference_at(me) : NULL;
    if (r != NULL)
        bz_reach_add(&r->reach);
    return r;
}

static int find_and_hold(blitz_actor_id id, blitz_reference **out)
{
    struct bz_actor *a = bz_actor_find(id);
    if (a == NULL)
        return -ESRCH;
    if (!bz_actor_behaviour(a)->end_unreachable)
        return bz_mailbox_is_for(&a->box, id.generation) ? -EOPNOTSUPP : -ESRCH;
    blitz_reference *r = reference_of(a->task.rt, id);
    if (r == NULL)
        return -ESRCH;
    *out = r;
    return 0;
}

int blitz_reference_of(blitz_actor_id id, blitz_reference **out)
{
    struct bz_runtime *visited = bz_actor_visit(id);
    int rc = find_and_hold(id, out);
    bz_actor_leave(visited);
    return rc;
}

blitz_reference *blitz_reference_ref(blitz_reference *r)
{
    bz_reach_add(&r->reach);
    return r;
}

void blitz_reference_unref(blitz_reference *r)
{
    if (r == NULL)
        return;
    struct bz_runtime *rt = r->rt; /* an actor whose last reference goes may free the block */
    uint32_t index = r->id.index;
    switch (bz_reach_drop(&r->reach)) {
    case BZ_REACH_RING:
        bz_actor_ring(bz_actor_of(bz_slot_at(&rt->tasks.slots, index)));
        break;
    case BZ_REACH_LIST:
        bz_reference_list(r);
        break;
    case BZ_REACH_FREE:
        bz_reference_free(r);
        break;
    case BZ_REACH_NOTHING:
        break;
    }
}

blitz_actor_id blitz_reference_id(const blitz_reference *r)
{
    return r->id;
}
