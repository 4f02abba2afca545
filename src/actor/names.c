/*
 * names.c - names of actors.
 *
 * One table for each runtime, under its lock: names are looked up when a program starts or a connection is made, not for each
 * message. An actor's names are in its relations as well (BZ_SIGNAL_NAME), so that its end removes them without a walk. The
 * name is in the table before the actor hears of it; if the actor is dead by then, the registering thread removes the name.
 *
 * A spawn takes the name first, without a generation: the name is taken, and not yet found. It is shown once the actor can be
 * found, or a sender would get -ESRCH from a name that it has just looked up.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"

bool bz_name_is_good(const char *text)
{
    return text[0] != '\0' && strnlen(text, BLITZ_NAME_BYTES_MAX) < BLITZ_NAME_BYTES_MAX;
}

static struct bz_name **bucket_of(struct bz_actors *all, const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return &all->bucket[hash % BZ_NAME_BUCKETS];
}

/* Under the lock: the place of a name, or of the end of its bucket. */
static struct bz_name **find(struct bz_actors *all, const char *text)
{
    struct bz_name **at = bucket_of(all, text);
    while (*at != NULL && strcmp((*at)->text, text) != 0)
        at = &(*at)->next;
    return at;
}

int bz_name_add(struct bz_runtime *rt, const char *text, uint32_t index, uint32_t generation)
{
    struct bz_actors *all = bz_actors_of(rt);
    struct bz_name *name =
        all != NULL ? bz_alloc(&rt->alloc, sizeof *name, _Alignof(struct bz_name)) : NULL;
    if (name == NULL)
        return -ENOMEM;
    *name = (struct bz_name){.index = index, .generation = generation};
    memcpy(name->text, text, strlen(text) + 1);
    bz_lock_take(&all->lock, rt->os);
    struct bz_name **at = find(all, text);
    bool is_free = *at == NULL;
    if (is_free)
        *at = name;
    bz_lock_drop(&all->lock, rt->os);
    if (!is_free)
        bz_free(&rt->alloc, name, sizeof *name);
    return is_free ? 0 : -EEXIST;
}

void bz_name_show(struct bz_runtime *rt, const char *text, uint32_t generation)
{
    struct bz_actors *all = bz_actors_of(rt);
    bz_lock_take(&all->lock, rt->os);
    struct bz_name *name = *find(all, text);
    if (name != NULL && name->generation == 0)
        name->generation = generation;
    bz_lock_drop(&all->lock, rt->os);
}

bool bz_name_remove(struct bz_runtime *rt, const char *text, uint32_t index, uint32_t generation)
{
    struct bz_actors *all = bz_actors_of(rt);
    if (all == NULL)
        return false;
    bz_lock_take(&all->lock, rt->os);
    struct bz_name **at = find(all, text), *name = *at;
    bool is_it = name != NULL &&
                 (generation == 0 || (name->index == index && name->generation == generation));
    if (is_it)
        *at = name->next;
    bz_lock_drop(&all->lock, rt->os);
    if (is_it)
        bz_free(&rt->alloc, name, sizeof *name);
    return is_it;
}

void bz_names_end(struct bz_runtime *rt, struct bz_actors *all)
{
    for (unsigned i = 0; i < BZ_NAME_BUCKETS; i++)
        for (struct bz_name *n = all->bucket[i], *next; n != NULL; n = next) {
            next = n->next;
            bz_free(&rt->alloc, n, sizeof *n);
        }
}

/* ---- the public face ---- */

int blitz_actor_register(const char *name, blitz_actor_id id)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
    if (name == NULL || !bz_name_is_good(name))
        return -EINVAL;
    if (rt == NULL || bz_actor_find(id) == NULL)
        return -ESRCH;
    struct bz_signal *s = bz_signal_new(rt, BZ_SIGNAL_NAME);
    if (s == NULL)
        return -ENOMEM;
    memcpy(s->reason.text, name, strlen(name) + 1);
    int err = bz_name_add(rt, name, id.index, id.generation);
    if (err == 0 && bz_signal_send(rt, id.index, id.generation, s))
        return 0;
    if (err == 0)
        (void)bz_name_remove(rt, name, id.index, id.generation);
    bz_letter_free(rt, s);
    return err != 0 ? err : -ESRCH;
}

static struct bz_runtime *runtime_or_mine(blitz_runtime *runtime)
{
    struct bz_machine *m = bz_machine_self();
    return runtime != NULL ? (struct bz_runtime *)runtime : m != NULL ? m->rt : NULL;
}

int blitz_actor_unregister(blitz_runtime *runtime, const char *name)
{
    struct bz_runtime *rt = runtime_or_mine(runtime);
    if (rt == NULL || name == NULL)
        return -EINVAL;
    return bz_name_remove(rt, name, 0, 0) ? 0 : -ESRCH;
}

blitz_actor_id blitz_actor_whereis(blitz_runtime *runtime, const char *name)
{
    struct bz_runtime *rt = runtime_or_mine(runtime);
    struct bz_actors *all = rt != NULL ? bz_actors_of(rt) : NULL;
    blitz_actor_id id = {0, 0, 0, 0};
    if (all == NULL || name == NULL)
        return id;
    bz_lock_take(&all->lock, rt->os);
    struct bz_name *found = *find(all, name);
    if (found != NULL && found->generation != 0)
        id = bz_actor_id_make(rt, found->index, found->generation);
    bz_lock_drop(&all->lock, rt->os);
    return id;
}
