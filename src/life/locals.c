/*
 * locals.c - task-local storage: a small table in which a task finds its values by their keys.
 *
 * The table holds pairs of key and value in the order in which they were first set. A look-up goes
 * through them one by one. Tasks have a handful of locals or none, and a hash would cost more. The table
 * is allocated when the first value is set and grows by doubling.
 *
 * Only the task itself touches it, between its start and its end: no lock. A claimed child has a
 * table of its own, because `current` is the child while it runs.
 *
 * A forked job that another machine runs sees the table of the task that forked it, and must not set
 * values. The forking task must not set values until it has joined; only the program can ensure that. If that task has no table, the
 * job has an empty one. So a task without a table is no such job: a send to an actor checks nothing else on its fast path, and signs
 * the messages of all others by a look (actor/send.c).
 *
 * A task that is spawned with opts.inherits gets copies of those values that were set with a copy function. The spawner
 * makes them in its own context, before the new task is counted or queued. So the table of the new task is still private,
 * and a spawn that fails destroys it there. Rejected: inheriting at every spawn. The common spawn would have to look at the
 * table of its caller, for values that most programs do not have.
 *
 * At the end the values are destroyed newest first. Each value is taken out before its destructor is
 * called, since the destructor may read other values and set them again. So this goes on until the table
 * is empty. A destructor that sets its own value for ever is a bug of the program, and aborts.
 *
 * I1  Every slot below count has a key that no other slot has. A slot whose value is NULL is free for
 *     its key alone.
 */
#include "blitz/local.h"

#include <errno.h>
#include <string.h>

#include "life/spawn.h"
#include "proc/state.h"

enum { FIRST_ROOM = 4, ROUNDS_MAX = 1000 };

struct slot {
    const blitz_local_key *key;
    void *value;
    blitz_local_copy copy; /* NULL: not inherited */
};

struct bz_locals {
    unsigned count, room;
    struct slot slot[];
};

static size_t bytes_for(unsigned room)
{
    return sizeof(struct bz_locals) + room * sizeof(struct slot);
}

static struct slot *slot_of(struct bz_locals *l, const blitz_local_key *key)
{
    for (unsigned i = 0; l != NULL && i < l->count; i++)
        if (l->slot[i].key == key)
            return &l->slot[i];
    return NULL;
}

/* Double the room, or allocate the first table. */
static bool grow(struct bz_task *t)
{
    struct bz_locals *old = t->locals;
    unsigned room = old != NULL ? 2 * old->room : FIRST_ROOM;
    struct bz_locals *l = bz_alloc(&t->rt->alloc, bytes_for(room), _Alignof(struct bz_locals));
    if (l == NULL)
        return false;
    l->count = 0;
    if (old != NULL) {
        memcpy(l, old, bytes_for(old->count));
        bz_free(&t->rt->alloc, old, bytes_for(old->room));
    }
    l->room = room;
    t->locals = l;
    return true;
}

static struct slot *slot_new(struct bz_task *t, const blitz_local_key *key)
{
    if ((t->locals == NULL || t->locals->count == t->locals->room) && !grow(t))
        return NULL;
    struct slot *s = &t->locals->slot[t->locals->count++];
    *s = (struct slot){.key = key};
    return s;
}

static void destroy(const blitz_local_key *key, void *value)
{
    if (value != NULL && key->drop != NULL)
        key->drop(value, key->ctx);
}

struct bz_locals *bz_locals_of_job(const struct bz_task *forker)
{
    static struct bz_locals none; /* never written: blitz_local_set() refuses a job */
    return forker->locals != NULL ? forker->locals : &none;
}

void *blitz_local_get(const blitz_local_key *key)
{
    struct bz_task *t = bz_task_self();
    struct slot *s = t != NULL ? slot_of(t->locals, key) : NULL;
    return s != NULL ? s->value : NULL;
}

int blitz_local_set(const blitz_local_key *key, void *value)
{
    return blitz_local_set_inherited(key, value, NULL);
}

int blitz_local_set_inherited(const blitz_local_key *key, void *value, blitz_local_copy copy)
{
    struct bz_task *t = bz_task_self();
    if (t == NULL || key == NULL)
        return -EINVAL;
    if (t->traits & BZ_TASK_ANONYMOUS)
        return -EPERM;
    struct slot *s = slot_of(t->locals, key);
    if (s == NULL && value == NULL)
        return 0;
    if (s == NULL)
        s = slot_new(t, key);
    if (s == NULL)
        return -ENOMEM;
    void *old = s->value;
    s->value = value;
    s->copy = copy;
    if (old != value)
        destroy(key, old);
    return 0;
}

int bz_locals_inherit(struct bz_task *child)
{
    struct bz_task *me = bz_task_self();
    for (unsigned i = 0; me != NULL && me->locals != NULL && i < me->locals->count; i++) {
        struct slot s = me->locals->slot[i]; /* a copy: the function below may set locals */
        if (s.value == NULL || s.copy == NULL)
            continue;
        struct slot *to = slot_new(child, s.key);
        if (to == NULL)
            return -ENOMEM;
        to->value = s.copy(s.value, s.key->ctx);
        to->copy = s.copy;
    }
    return 0;
}

void bz_locals_destroy(struct bz_task *t)
{
    for (unsigned rounds = 0; t->locals->count > 0; rounds++) {
        BZ_CHECK(rounds < ROUNDS_MAX + t->locals->room,
                 "task %llu: a destructor of a local sets it again and again",
                 (unsigned long long)t->id);
        struct slot last = t->locals->slot[--t->locals->count];
        destroy(last.key, last.value);
    }
    bz_free(&t->rt->alloc, t->locals, bytes_for(t->locals->room));
    t->locals = NULL;
}
