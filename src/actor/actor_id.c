/*
 * actor_id.c - from an id to its actor, and from the calling task to its id.
 *
 * All other files of this folder stand on this one, and it calls none of them. So it knows actors by the address of their kind, and
 * tasks that receive by what is first in their inbox.
 */
#include "actor/actors.h"
#include "blitz/local.h"
#include "life/job.h"

const char bz_actor_kind[] = "actor";
const char bz_receiver_name[] = "receiver";

blitz_actor_id bz_actor_id_of(struct bz_actor *a)
{
    return bz_actor_id_make(a->task.rt, a->task.slot.index, bz_actor_generation(a));
}

struct bz_runtime *bz_actor_runtime(blitz_actor_id id)
{
    if (id.node != 0 || id.generation == 0)
        return NULL;
    struct bz_runtime *rt = bz_actor_runtime_mine(id.creation);
    return BZ_LIKELY(rt != NULL) ? rt : bz_runtimes_find(id.creation);
}

struct bz_runtime *bz_actor_visit_elsewhere(blitz_actor_id id)
{
    return id.node != 0 || id.generation == 0 ? NULL : bz_runtimes_visit(id.creation);
}

struct bz_runtime *bz_actor_runtime_or_mine(blitz_runtime *runtime)
{
    struct bz_machine *m = bz_machine_self();
    return runtime != NULL ? (struct bz_runtime *)runtime : m != NULL ? m->rt : NULL;
}

struct bz_actor *bz_actor_find(blitz_actor_id id)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
    struct bz_task *t = rt != NULL ? bz_slot_at(&rt->tasks.slots, id.index) : NULL;
    if (id.generation % 2 ==
        0) /* that of a mailbox without an actor (mailbox.h I4): the id is forged */
        return NULL;
    if (t == NULL || !bz_mailbox_is_for(&bz_actor_of(t)->box, id.generation))
        return NULL;
    return bz_actor_of(t);
}

struct bz_actors *bz_actors_of(struct bz_runtime *rt)
{
    return bz_load_acquire(&rt->tasks.slots.more); /* life/slots.c [M] */
}

/* ---- tasks that receive ---- */

static void receiver_drop(void *receiver, void *ctx)
{
    struct bz_receiver *r = receiver;
    (void)ctx;
    r->end(r);
}

static const blitz_local_key receiver_key = {receiver_drop, NULL};

struct bz_receiver *bz_receiver_here(void)
{
    return blitz_local_get(&receiver_key);
}

int bz_receiver_set(struct bz_receiver *r)
{
    return blitz_local_set(&receiver_key, r);
}

bool bz_receiver_self(blitz_actor_id *id)
{
    struct bz_receiver *r = bz_receiver_here();
    if (r == NULL)
        return false;
    *id = r->id;
    return true;
}

/* The calling actor; in a forked job, the one whose handler has forked it. That handler has yet to join the job, so the actor keeps
 * its generation meanwhile. NULL: no actor. */
static struct bz_actor *actor_behind(void)
{
    struct bz_task *t = bz_task_self();
    while (t != NULL && bz_job_forker(t) != NULL)
        t = bz_job_forker(t);
    return t != NULL && t->ops->kind == bz_actor_kind ? bz_actor_of(t) : NULL;
}

blitz_actor_id blitz_actor_self(void)
{
    struct bz_actor *a = actor_behind();
    blitz_actor_id id = {0, 0, 0, 0};
    if (a == NULL)
        (void)bz_receiver_self(&id);
    return a != NULL ? bz_actor_id_of(a) : id;
}
