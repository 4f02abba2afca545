/*
 * names.c - names of actors.
 *
 * One table for each runtime, under its lock: names are looked up when a program starts or a connection is made, not for each
 * message. An actor's names are in its relations as well (BZ_SIGNAL_NAME), so that its end removes them without a walk. The
 * name is in the table before the actor hears of it; if the actor is dead by then, the registering thread removes the name.
 *
 * A spawn takes the name first, without a generation: the name is taken, and not yet found. It is shown once the actor can be
 * found, or a sender would get -ESRCH from a name that it has just looked up. A name that is not found is not taken away either: the
 * spawn would show the name of the next one that took it.
 *
 * blitz_actor_unregister() asks the actor to forget the relation, or an actor with many short names would collect relations. Without
 * memory to ask, the relation stays until the actor's end, and finds nothing to remove.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"

bool bz_name_is_good(const char *text)
{
    return text[0] != '\0' && strnlen(text, BLITZ_NAME_BYTES_MAX) < BLITZ_NAME_BYTES_MAX;
}

/* Under the lock: the place of a name, or of the end of its bucket. */
static struct bz_name **find(struct bz_actors *all, const char *text)
{
    struct bz_name **at = &all->bucket[bz_name_hash(text) % BZ_NAME_BUCKETS];
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

/* Take the name at that place out of the table. Under the lock. */
static struct bz_name *take_out(struct bz_name **at)
{
    struct bz_name *name = *at;
    *at = name->next;
    return name;
}

bool bz_name_remove(struct bz_runtime *rt, const char *text, uint32_t index, uint32_t generation)
{
    struct bz_actors *all = bz_actors_of(rt);
    struct bz_name *name = NULL;
    if (all == NULL)
        return false;
    bz_lock_take(&all->lock, rt->os);
    struct bz_name **at = find(all, text);
    if (*at != NULL && (*at)->index == index && (*at)->generation == generation)
        name = take_out(at);
    bz_lock_drop(&all->lock, rt->os);
    bz_free(&rt->alloc, name, sizeof *name);
    return name != NULL;
}

/* Remove a name that is found. *was is the entry that was removed. */
static bool remove_shown(struct bz_runtime *rt, const char *text, struct bz_name *was)
{
    struct bz_actors *all = bz_actors_of(rt);
    struct bz_name *name = NULL;
    if (all == NULL)
        return false;
    bz_lock_take(&all->lock, rt->os);
    struct bz_name **at = find(all, text);
    if (*at != NULL && (*at)->generation != 0)
        name = take_out(at);
    bz_lock_drop(&all->lock, rt->os);
    if (name == NULL)
        return false;
    *was = *name;
    bz_free(&rt->alloc, name, sizeof *name);
    return true;
}

void bz_names_end(struct bz_runtime *rt, struct bz_actors *all)
{
    for (unsigned i = 0; i < BZ_NAME_BUCKETS; i++)
        for (struct bz_name *n = all->bucket[i], *next; n != NULL; n = next) {
            next = n->next;
            bz_free(&rt->alloc, n, sizeof *n);
        }
    memset(all->bucket, 0, sizeof all->bucket); /* a late caller may look */
}

/* ---- the public face ---- */

static int add_name(const char *name, blitz_actor_id id)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
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

int blitz_actor_register(const char *name, blitz_actor_id id)
{
    if (name == NULL || !bz_name_is_good(name))
        return -EINVAL;
    struct bz_runtime *visited = bz_actor_visit(id);
    int rc = add_name(name, id);
    bz_actor_leave(visited);
    return rc;
}

int blitz_actor_unregister(blitz_runtime *runtime, const char *name)
{
    struct bz_runtime *rt = bz_actor_runtime_or_mine(runtime);
    if (rt == NULL || name == NULL)
        return -EINVAL;
    struct bz_name was;
    if (!remove_shown(rt, name, &was))
        return -ESRCH;
    struct bz_signal *s = bz_signal_new(rt, BZ_SIGNAL_UNNAME);
    if (s == NULL)
        return 0;
    memcpy(s->reason.text, was.text, sizeof was.text);
    if (!bz_signal_send(rt, was.index, was.generation, s))
        bz_letter_free(rt, s);
    return 0;
}

blitz_actor_id blitz_actor_whereis(blitz_runtime *runtime, const char *name)
{
    struct bz_runtime *rt = bz_actor_runtime_or_mine(runtime);
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
