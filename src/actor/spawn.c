/*
 * spawn.c - a new actor: a slot, a start message, and its first relations.
 *
 * The start message holds the actor in its queue until `init` has returned, as any message does. It is the first of its
 * generation in the queue: what is before it was sent to an actor that had this memory before.
 *
 * Everything that can fail comes before the mailbox is opened. After that the actor is counted, placed, and can be found.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "life/spawn.h"
#include "proc/now.h"

/* The memory of a spawn besides the slot. */
struct parts {
    struct bz_letter *start;
    struct bz_signal *mine[2], *its[2]; /* relations of a link and of a monitor, on both sides */
    struct bz_signal *name;
    void *far;
};

static void drop_parts(struct bz_runtime *rt, const blitz_behaviour *b, struct parts *p)
{
    void *letters[] = {p->start, p->mine[0], p->mine[1], p->its[0], p->its[1], p->name};
    for (size_t i = 0; i < BZ_ARRAY_LEN(letters); i++)
        if (letters[i] != NULL)
            bz_letter_free(rt, letters[i]);
    bz_free(&rt->alloc, p->far, b->state_bytes);
}

static bool is_far(const blitz_behaviour *b)
{
    return sizeof(struct bz_actor) + b->state_bytes > bz_slot_bytes_max();
}

/* Allocate the parts. False: no memory; nothing is held. */
static bool take_parts(struct bz_runtime *rt, const blitz_behaviour *b, const blitz_actor_opts *o,
                       struct parts *p)
{
    *p = (struct parts){.start = bz_letter_alloc(rt, sizeof(struct bz_letter))};
    bool is_ok = p->start != NULL;
    if (o->link) {
        p->mine[0] = bz_signal_new(rt, BZ_SIGNAL_LINK);
        p->its[0] = bz_signal_new(rt, BZ_SIGNAL_LINK);
        is_ok &= p->mine[0] != NULL && p->its[0] != NULL;
    }
    if (o->monitor != NULL) {
        p->mine[1] = bz_signal_new(rt, BZ_SIGNAL_WATCHES);
        p->its[1] = bz_signal_new(rt, BZ_SIGNAL_MONITOR);
        is_ok &= p->mine[1] != NULL && p->its[1] != NULL;
    }
    if (o->name != NULL)
        is_ok &= (p->name = bz_signal_new(rt, BZ_SIGNAL_NAME)) != NULL;
    if (is_far(b))
        is_ok &= (p->far = bz_alloc(&rt->alloc, b->state_bytes, _Alignof(max_align_t))) != NULL;
    if (!is_ok)
        drop_parts(rt, b, p);
    return is_ok;
}

static void relate(struct bz_actor *a, struct bz_signal *s, struct bz_actor *peer,
                   uint32_t peer_generation, uint64_t ref)
{
    s->peer_index = peer->task.slot.index;
    s->peer_generation = peer_generation;
    s->ref = ref;
    s->next = a->relations;
    a->relations = s;
}

/* The first relations of a new actor, and those of its spawner. */
static void relate_all(struct bz_actor *a, uint32_t generation, const blitz_actor_opts *o,
                       struct parts *p)
{
    struct bz_actor *me = bz_actor_self();
    struct bz_actors *all = bz_actors_of(a->task.rt);
    if (o->link) {
        relate(me, p->mine[0], a, generation, 0);
        relate(a, p->its[0], me, bz_actor_generation(me), 0);
    }
    if (o->monitor != NULL) {
        *o->monitor = bz_fetch_add_relaxed(&all->refs, 1) + 1; /* relaxed: uniqueness is enough */
        relate(me, p->mine[1], a, generation, *o->monitor);
        relate(a, p->its[1], me, bz_actor_generation(me), *o->monitor);
    }
    if (p->name != NULL) {
        relate(a, p->name, a, generation, 0);
        memcpy(p->name->reason.text, o->name, strlen(o->name) + 1);
    }
}

static void fill_state(struct bz_actor *a, const blitz_behaviour *b, const void *state, void *far)
{
    void *place = a + 1;
    if (far != NULL) {
        a->task.slot.flags |= BZ_ACTOR_FAR;
        *(void **)place = far;
        place = far;
    }
    if (state != NULL && b->state_bytes > 0)
        memcpy(place, state, b->state_bytes);
    else
        memset(place, 0, b->state_bytes);
}

/* The slot as a task that runs nowhere: its word stays *running*. */
static void fill(struct bz_actor *a, struct bz_runtime *rt, const blitz_behaviour *b,
                 const blitz_actor_opts *o)
{
    struct bz_task *t = &a->task;
    bz_task_init_watch(t);
    t->ops = &bz_actor_ops;
    t->stack = NULL;
    t->stack_class = (uint8_t)rt->stack_class;
    t->locals = NULL;
    bz_atomic_init(&t->wait, 0);
    bz_lock_init_ranked(&t->lock, BZ_RANK_TASK);
    bz_list_init(&t->joiners);
    t->name = b->name;
    t->traits = BZ_TASK_STAYS;
    t->marks = 0;
    t->result = 0;
    t->born = bz_age_here(rt);
    t->slot.flags = o->trap_exit ? BZ_ACTOR_TRAPS : 0;
    bz_store_relaxed(&a->behaviour, b); /* relaxed: its id is given out later */
    a->relations = NULL;
}

/* Count it in, name it, open it and place it. On error the slot is free again; the parts are still the caller's. */
static int start(struct bz_actor *a, const blitz_actor_opts *o, struct parts *p,
                 blitz_actor_id *out)
{
    struct bz_task *t = &a->task;
    struct bz_runtime *rt = t->rt;
    uint32_t generation = bz_load_relaxed(&a->box.generation) + 1; /* relaxed: the slot is ours */
    uint32_t behind;
    int err = p->name != NULL ? bz_name_add(rt, o->name, t->slot.index, 0) : 0;
    if (err != 0) {
        bz_slot_free(t);
        return err;
    }
    bz_word_init(&t->word, BZ_RUNNING, 1); /* from here on a walk finds it */
    err = bz_task_enlist(t);
    if (err != 0) {
        if (p->name != NULL)
            (void)bz_name_remove(rt, o->name, t->slot.index, 0);
        bz_actor_abandon(a);
        return err;
    }
    relate_all(a, generation, o, p);
    generation = bz_mailbox_open(&a->box);
    if (p->name != NULL)
        bz_name_show(rt, o->name, generation);
    if (out != NULL)
        *out = bz_actor_id_make(rt, t->slot.index, generation);
    bz_trace(rt, spawn, t->id, 0, t->name);
    p->start->generation = generation;
    p->start->what = BZ_MSG_START;
    bool is_idle = bz_mailbox_push(&a->box, &p->start->node, &behind);
    BZ_ASSERT(!is_idle); /* behind the stub: mailbox.h I1 */
    (void)is_idle;
    bz_actor_place(a);
    return 0;
}

static bool is_bad(const blitz_behaviour *b, const blitz_actor_opts *o, const struct bz_runtime *rt)
{
    struct bz_actor *me = bz_actor_self();
    if (b->state_bytes > BLITZ_ACTOR_STATE_MAX || (o->name != NULL && !bz_name_is_good(o->name)))
        return true;
    return (o->link || o->monitor != NULL) && (me == NULL || me->task.rt != rt);
}

int blitz_actor_spawn(const blitz_behaviour *behaviour, const void *state,
                      const blitz_actor_opts *opts, blitz_actor_id *out)
{
    static const blitz_actor_opts none;
    const blitz_actor_opts *o = opts != NULL ? opts : &none;
    blitz_spawn_opts where = {.runtime = o->runtime};
    struct bz_runtime *rt = bz_runtime_for(&where);
    struct parts parts;
    if (behaviour == NULL || rt == NULL || is_bad(behaviour, o, rt))
        return -EINVAL;
    if (bz_actors_of(rt) == NULL || !take_parts(rt, behaviour, o, &parts))
        return -ENOMEM;
    size_t inside = parts.far != NULL ? sizeof(void *) : behaviour->state_bytes;
    struct bz_task *t = bz_slot_alloc(rt, sizeof(struct bz_actor) + inside);
    if (t == NULL) {
        drop_parts(rt, behaviour, &parts);
        return -ENOMEM;
    }
    struct bz_actor *a = bz_actor_of(t);
    fill(a, rt, behaviour, o);
    fill_state(a, behaviour, state, parts.far);
    int err = start(a, o, &parts, out);
    if (err != 0)
        drop_parts(rt, behaviour, &parts);
    return err;
}
