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
#include "actor/relating.h"
#include "actor/send.h"
#include "actor/trap.h"
#include "blitz/heap.h"
#include "life/spawn.h"
#include "proc/now.h"

/* The memory of a spawn besides the slot. */
struct parts {
    struct bz_letter *start;
    struct bz_signal *mine[2], *its[2]; /* relations of a link and of a monitor, on both sides */
    struct bz_signal *name;
    blitz_reference *reference; /* of an actor that ends when it is unreachable */
    void *far;
};

static void drop_parts(struct bz_runtime *rt, const blitz_behaviour *b, struct parts *p)
{
    void *letters[] = {p->start, p->mine[0], p->mine[1], p->its[0], p->its[1], p->name};
    for (size_t i = 0; i < BZ_ARRAY_LEN(letters); i++)
        if (letters[i] != NULL)
            bz_letter_free(rt, letters[i]);
    bz_free(&rt->alloc, p->far, bz_actor_room(b));
    if (p->reference != NULL)
        bz_reference_free(p->reference);
}

static bool is_far(const blitz_behaviour *b)
{
    return sizeof(struct bz_actor) + bz_actor_room(b) > bz_slot_bytes_max();
}

/* Allocate the parts. False: no memory; nothing is held. */
static bool take_parts(struct bz_runtime *rt, const blitz_behaviour *b, const blitz_actor_opts *o,
                       struct parts *p)
{
    *p = (struct parts){.start = bz_letter_new(rt, BZ_MSG_START, NULL, 0, NULL)};
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
        is_ok &= (p->far = bz_alloc(&rt->alloc, bz_actor_room(b), _Alignof(max_align_t))) != NULL;
    if (!is_ok)
        drop_parts(rt, b, p);
    return is_ok;
}

/* Add an entry to the new actor, whose mailbox is not open yet. */
static void keep(struct bz_actor *a, struct bz_signal *s)
{
    s->next = a->relations;
    a->relations = s;
}

/* The new actor's side of a relation with its spawner; and the spawner's, which it adds later. */
static void relate(struct bz_actor *a, uint32_t generation, const struct bz_relating *me,
                   struct bz_signal *mine, struct bz_signal *its, uint64_t ref)
{
    bz_relating_sign(me, its);
    mine->peer_index = a->task.slot.index;
    mine->peer_generation = generation;
    its->ref = mine->ref = ref;
    keep(a, its);
}

/* The first relations of a new actor, on its side. */
static void relate_all(struct bz_actor *a, uint32_t generation, const blitz_actor_opts *o,
                       const struct bz_relating *me, struct parts *p)
{
    struct bz_actors *all = bz_actors_of(a->task.rt);
    if (o->link)
        relate(a, generation, me, p->mine[0], p->its[0], 0);
    if (o->monitor != NULL) {
        *o->monitor = bz_fetch_add_relaxed(&all->refs, 1) + 1; /* relaxed: uniqueness is enough */
        relate(a, generation, me, p->mine[1], p->its[1], *o->monitor);
    }
    if (p->name != NULL) {
        p->name->peer_index = a->task.slot.index;
        p->name->peer_generation = generation;
        memcpy(p->name->reason.text, o->name, strlen(o->name) + 1);
        keep(a, p->name);
    }
}

/* The spawner's side. A spawner that is a task may lose its id at any time: returns a link that has ended already. Otherwise the end
 * of the id tells the new actor, which must have its mailbox open by then. */
static struct bz_signal *relate_spawner(const struct bz_relating *me, struct parts *p)
{
    if (p->mine[1] != NULL && !bz_relating_add(me, p->mine[1]))
        bz_letter_free(me->a->task.rt, p->mine[1]);
    return p->mine[0] != NULL && !bz_relating_add(me, p->mine[0]) ? p->mine[0] : NULL;
}

/* The spawner's id has ended before the link was made: tell the new actor, as a link to the dead does. */
static void end_link(const struct bz_relating *me, uint32_t index, uint32_t generation,
                     struct bz_signal *s)
{
    s->kind = BZ_SIGNAL_LINK_EXIT;
    s->reason = (blitz_exit_reason){.kind = BLITZ_EXIT_NOPROC};
    bz_relating_tell(me, index, generation, s);
}

static void fill_state(struct bz_actor *a, const blitz_behaviour *b, const void *state, void *far)
{
    void *place = a + 1;
    if (state != NULL)
        bz_actor_check_payload(state, b->state_bytes);
    if (far != NULL) {
        a->task.slot.flags |= BZ_ACTOR_FAR;
        *(void **)place = far;
        place = far;
    }
    if (b->state_type != NULL) {
        a->task.slot.flags |= BZ_ACTOR_HEAP;
        *(blitz_heap **)place = NULL; /* it is made by the first allocation */
        place = (char *)place + BZ_HEAP_ROOM;
    }
    if (state != NULL && b->state_bytes > 0)
        memcpy(place, state, b->state_bytes);
    else
        memset(place, 0, b->state_bytes);
}

/* The slot as a task that runs nowhere: its word stays *running*. */
static void fill(struct bz_actor *a, struct bz_runtime *rt, const blitz_behaviour *b)
{
    struct bz_task *t = &a->task;
    bz_task_init_watch(t);
    t->ops = &bz_actor_ops;
    t->stack = NULL;
    t->stack_class = (uint8_t)rt->stack_class;
    t->locals = NULL;
    bz_store_relaxed(&t->wait,
                     0); /* relaxed: a sender with an old id may look at it, and guesses */
    bz_lock_init_ranked(&t->lock, BZ_RANK_TASK);
    bz_list_init(&t->joiners);
    t->name = b->name;
    t->traits = BZ_TASK_STAYS;
    t->marks = 0;
    t->result = 0;
    t->born = bz_age_here(rt);
    t->slot.flags = 0;
    bz_store_relaxed(&t->place, 0);     /* relaxed: of no job yet */
    bz_store_relaxed(&a->behaviour, b); /* relaxed: its id is given out later */
    a->relations = NULL;
}

/* An actor with a property that few have. */
static BZ_NOINLINE void fill_rare(struct bz_actor *a, const blitz_behaviour *b)
{
    if (b->version != 0)
        a->task.slot.flags |= BZ_ACTOR_VERSION;
    if (b->trap_faults) {
        a->task.traits |= BZ_TASK_TRAPS;
        a->task.slot.flags |= BZ_ACTOR_TRAPS;
    }
    if (b->end_unreachable)
        a->task.ops = &bz_reaching_ops;
}

/* Count it in, name it, open it and place it. On error the slot is free again; the parts are still the caller's. */
static int start(struct bz_actor *a, const blitz_actor_opts *o, const struct bz_relating *me,
                 struct parts *p, blitz_actor_id *out)
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
    bz_actor_count_in(rt, bz_busy_mine(rt)); /* before a thread can find it */
    uint32_t index = t->slot.index;
    relate_all(a, generation, o, me, p);
    if (BZ_UNLIKELY(p->reference != NULL))
        bz_reference_show(a, p->reference, bz_actor_id_make(rt, index, generation));
    generation = bz_mailbox_open(&a->box); /* its first turn comes with the start message */
    struct bz_signal *ended = relate_spawner(me, p);
    if (o->trap_exit)
        (void)bz_mailbox_trap(&a->box, true);
    if (p->name != NULL)
        bz_name_show(rt, o->name, generation);
    if (out != NULL)
        *out = bz_actor_id_make(rt, t->slot.index, generation);
    bz_trace(rt, spawn, t->id, 0, t->name);
    p->start->generation = generation;
    bool is_idle = bz_mailbox_push(&a->box, &p->start->node, &behind);
    BZ_ASSERT(!is_idle); /* behind the stub: mailbox.h I1 */
    (void)is_idle;
    bz_actor_place(a);
    if (BZ_UNLIKELY(ended != NULL))
        end_link(me, index, generation, ended);
    return 0;
}

static bool is_bad(const blitz_behaviour *b, const blitz_actor_opts *o)
{
    return b->state_bytes > BLITZ_ACTOR_STATE_MAX ||
           (b->state_type != NULL && b->state_type->size != b->state_bytes) ||
           (b->end_unreachable ? b->state_type == NULL : o->reference != NULL) ||
           (o->name != NULL && !bz_name_is_good(o->name));
}

/* True if the behaviour has a property that few have. */
static inline bool is_rare(const blitz_behaviour *b)
{
    return (b->trap_faults | b->end_unreachable | b->version) != 0;
}

/* Prepare for such an actor. On error nothing is held. */
static BZ_NOINLINE int begin_rare(struct bz_runtime *rt, const blitz_behaviour *b,
                                  const blitz_actor_opts *o, struct parts *p)
{
    int err = b->trap_faults ? bz_traps_begin(rt) : 0;
    if (err != 0 || !b->end_unreachable)
        return err;
    err = bz_detector_begin(rt, b);
    if (err != 0)
        return err;
    p->reference =
        bz_references_reserve(rt) ? bz_reference_new(rt, o->reference != NULL ? 1 : 0) : NULL;
    return p->reference != NULL ? 0 : -ENOMEM;
}

/* Take the parts and start. `me` is the spawner, if it wants a relation. */
static int spawn(struct bz_runtime *rt, const blitz_behaviour *behaviour, bool rare,
                 const void *state, const blitz_actor_opts *o, const struct bz_relating *me,
                 blitz_actor_id *out)
{
    struct parts parts;
    if (bz_actors_make(rt) == NULL)
        return -ENOMEM;
    if (!take_parts(rt, behaviour, o, &parts))
        return -ENOMEM;
    int err = BZ_UNLIKELY(rare) ? begin_rare(rt, behaviour, o, &parts) : 0;
    if (err != 0) {
        drop_parts(rt, behaviour, &parts);
        return err;
    }
    size_t inside = parts.far != NULL ? sizeof(void *) : bz_actor_room(behaviour);
    if (BZ_UNLIKELY(rare) && inside < sizeof(void *))
        inside = sizeof(void *); /* a later version may have its state in a block */
    struct bz_task *t = bz_slot_alloc(rt, sizeof(struct bz_actor) + inside);
    if (t == NULL) {
        drop_parts(rt, behaviour, &parts);
        return -ENOMEM;
    }
    struct bz_actor *a = bz_actor_of(t);
    fill(a, rt, behaviour);
    if (BZ_UNLIKELY(rare))
        fill_rare(a, behaviour);
    fill_state(a, behaviour, state, parts.far);
    blitz_reference *r = parts.reference;
    err = start(a, o, me, &parts, out);
    if (err != 0)
        drop_parts(rt, behaviour, &parts);
    else if (BZ_UNLIKELY(o->reference != NULL))
        *o->reference = r;
    return err;
}

/* A behaviour with a number: the actor has the runtime's copy of it, and is counted. NULL: *err says why. */
static BZ_NOINLINE const blitz_behaviour *take_version(struct bz_runtime *rt,
                                                       const blitz_behaviour *b, int *err)
{
    struct bz_version *v;
    if (b->version == 0)
        return b;
    *err = bz_actors_make(rt) != NULL ? bz_version_take(rt, b, &v) : -ENOMEM;
    return *err == 0 ? &v->b : NULL;
}

/* The actor was not made. */
static BZ_NOINLINE int leave_version(struct bz_runtime *rt, const blitz_behaviour *b, int err)
{
    if (b->version != 0)
        bz_version_leave(rt, bz_version_of(b));
    return err;
}

int blitz_actor_spawn(const blitz_behaviour *behaviour, const void *state,
                      const blitz_actor_opts *opts, blitz_actor_id *out)
{
    static const blitz_actor_opts none;
    const blitz_actor_opts *o = opts != NULL ? opts : &none;
    blitz_spawn_opts where = {.runtime = o->runtime};
    struct bz_runtime *rt = bz_runtime_for(&where);
    struct bz_relating me = {NULL, 0, false};
    if (behaviour == NULL || rt == NULL || is_bad(behaviour, o))
        return -EINVAL;
    bool rare = is_rare(behaviour);
    int err = o->link || o->monitor != NULL ? bz_relating_begin(&me) : 0;
    if (err != 0)
        return err;
    if (BZ_UNLIKELY(rare)) {
        int refused = 0;
        behaviour = take_version(rt, behaviour, &refused);
        if (behaviour == NULL) {
            bz_relating_end(&me);
            return refused;
        }
    }
    err = me.a == NULL || me.a->task.rt == rt ? spawn(rt, behaviour, rare, state, o, &me, out)
                                              : -EINVAL;
    bz_relating_end(&me);
    return BZ_UNLIKELY(rare) && err != 0 ? leave_version(rt, behaviour, err) : err;
}

int blitz_reference_spawn(const blitz_behaviour *behaviour, const void *state,
                          const blitz_actor_opts *opts, blitz_reference **out)
{
    blitz_actor_opts o = opts != NULL ? *opts : (blitz_actor_opts){.runtime = NULL};
    if (out == NULL)
        return -EINVAL;
    o.reference = out;
    return blitz_actor_spawn(behaviour, state, &o, NULL);
}
