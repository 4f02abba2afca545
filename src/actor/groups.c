/*
 * groups.c - groups of actors.
 *
 * One table for each runtime, under the lock of names. A group is an array of members. An actor's memberships are in its
 * relations as well (BZ_SIGNAL_GROUP), so that its end removes them without a walk over all groups: as names (names.c).
 *
 * A membership has a number, its ref. A leave removes the member from the table and asks the actor to forget the relation with that
 * ref, or an actor that joins and leaves for ever would collect relations. If there is no memory to ask, or the request overtakes
 * the join's, the relation stays until the actor's end and finds nothing to remove.
 *
 * A send copies the members first: no message is sent under the lock. So a member that leaves meanwhile may still get it.
 *
 * I1  A group in the table has at least one member, except under the lock.
 * I2  A member of the table is alive, or its end (or the join that added it) is about to remove it.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/send.h"
#include "blitz/group.h"

enum { FIRST_ROOM = 4, ON_STACK = 64 };

struct member {
    uint32_t index, generation;
    uint64_t ref;
};

struct bz_group {
    struct bz_group *next; /* in its bucket; guarded by bz_actors.lock, as the rest */
    struct member *member;
    size_t count, room;
    char text[BLITZ_NAME_BYTES_MAX];
};

/* ---- the table: under the lock ---- */

static struct bz_group **find(struct bz_actors *all, const char *text)
{
    struct bz_group **at = &all->group[bz_name_hash(text) % BZ_GROUP_BUCKETS];
    while (*at != NULL && strcmp((*at)->text, text) != 0)
        at = &(*at)->next;
    return at;
}

static struct member *member_of(struct bz_group *g, uint32_t index, uint32_t generation)
{
    for (size_t i = 0; g != NULL && i < g->count; i++)
        if (g->member[i].index == index && g->member[i].generation == generation)
            return &g->member[i];
    return NULL;
}

static void group_free(struct bz_runtime *rt, struct bz_group *g)
{
    bz_free(&rt->alloc, g->member, g->room * sizeof *g->member);
    bz_free(&rt->alloc, g, sizeof *g);
}

static struct bz_group *group_new(struct bz_runtime *rt, const char *text)
{
    struct bz_group *g = bz_alloc(&rt->alloc, sizeof *g, _Alignof(struct bz_group));
    if (g == NULL)
        return NULL;
    *g = (struct bz_group){.next = NULL};
    memcpy(g->text, text, strlen(text) + 1);
    return g;
}

static bool group_grow(struct bz_runtime *rt, struct bz_group *g)
{
    size_t room = g->room > 0 ? 2 * g->room : FIRST_ROOM;
    struct member *more = bz_alloc(&rt->alloc, room * sizeof *more, _Alignof(struct member));
    if (more == NULL)
        return false;
    if (g->count > 0)
        memcpy(more, g->member, g->count * sizeof *more);
    bz_free(&rt->alloc, g->member, g->room * sizeof *g->member);
    g->member = more;
    g->room = room;
    return true;
}

static int add(struct bz_runtime *rt, struct bz_actors *all, const char *text, struct member m)
{
    struct bz_group **at = find(all, text), *g = *at;
    if (member_of(g, m.index, m.generation) != NULL)
        return -EEXIST;
    if (g == NULL)
        g = group_new(rt, text);
    if (g == NULL)
        return -ENOMEM;
    if (g->count == g->room && !group_grow(rt, g)) {
        if (g->count == 0)
            group_free(rt, g);
        return -ENOMEM;
    }
    g->member[g->count++] = m;
    *at = g; /* I1 */
    return 0;
}

/* Returns the ref of the membership; 0: it is no member. */
static uint64_t take_out(struct bz_runtime *rt, struct bz_actors *all, const char *text,
                         uint32_t index, uint32_t generation)
{
    struct bz_group **at = find(all, text), *g = *at;
    struct member *m = member_of(g, index, generation);
    if (m == NULL)
        return 0;
    uint64_t ref = m->ref;
    *m = g->member[--g->count];
    if (g->count == 0) { /* I1 */
        *at = g->next;
        group_free(rt, g);
    }
    return ref;
}

/* ---- with the lock ---- */

uint64_t bz_group_remove(struct bz_runtime *rt, const char *text, uint32_t index,
                         uint32_t generation)
{
    struct bz_actors *all = bz_actors_of(rt);
    if (all == NULL)
        return 0;
    bz_lock_take(&all->lock, rt->os);
    uint64_t ref = take_out(rt, all, text, index, generation);
    bz_lock_drop(&all->lock, rt->os);
    return ref;
}

void bz_groups_end(struct bz_runtime *rt, struct bz_actors *all)
{
    for (unsigned i = 0; i < BZ_GROUP_BUCKETS; i++)
        for (struct bz_group *g = all->group[i], *next; g != NULL; g = next) {
            next = g->next;
            group_free(rt, g);
        }
    memset(all->group, 0, sizeof all->group); /* a late caller may look */
}

/* Copy up to `max` members, and return how many there are. */
static size_t list(struct bz_runtime *rt, struct bz_actors *all, const char *text, size_t max,
                   struct member *out)
{
    bz_lock_take(&all->lock, rt->os);
    struct bz_group *g = *find(all, text);
    size_t count = g != NULL ? g->count : 0;
    if (count > 0 && max > 0)
        memcpy(out, g->member, (count < max ? count : max) * sizeof *out);
    bz_lock_drop(&all->lock, rt->os);
    return count;
}

/* ---- joining and leaving ---- */

static int join(const char *group, blitz_actor_id id)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
    if (rt == NULL || bz_actor_find(id) == NULL)
        return -ESRCH;
    struct bz_actors *all = bz_actors_of(rt);
    struct bz_signal *s = bz_signal_new(rt, BZ_SIGNAL_GROUP);
    if (s == NULL)
        return -ENOMEM;
    s->ref = bz_fetch_add_relaxed(&all->refs, 1) + 1; /* relaxed: uniqueness is enough */
    memcpy(s->reason.text, group, strlen(group) + 1);
    bz_lock_take(&all->lock, rt->os);
    int err = add(rt, all, group, (struct member){id.index, id.generation, s->ref});
    bz_lock_drop(&all->lock, rt->os);
    if (err == 0 && bz_signal_send(rt, id.index, id.generation, s))
        return 0;
    if (err == 0)
        (void)bz_group_remove(rt, group, id.index, id.generation); /* I2 */
    bz_letter_free(rt, s);
    return err != 0 ? err : -ESRCH;
}

int blitz_group_join(const char *group, blitz_actor_id id)
{
    if (group == NULL || !bz_name_is_good(group))
        return -EINVAL;
    struct bz_runtime *visited = bz_actor_visit(id);
    int rc = join(group, id);
    bz_actor_leave(visited);
    return rc;
}

static int leave(const char *group, blitz_actor_id id)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
    uint64_t ref = rt != NULL ? bz_group_remove(rt, group, id.index, id.generation) : 0;
    if (ref == 0)
        return -ESRCH;
    struct bz_signal *s = bz_signal_new(rt, BZ_SIGNAL_UNGROUP);
    if (s == NULL)
        return 0;
    s->ref = ref;
    if (!bz_signal_send(rt, id.index, id.generation, s))
        bz_letter_free(rt, s);
    return 0;
}

int blitz_group_leave(const char *group, blitz_actor_id id)
{
    if (group == NULL)
        return -EINVAL;
    struct bz_runtime *visited = bz_actor_visit(id);
    int rc = leave(group, id);
    bz_actor_leave(visited);
    return rc;
}

/* ---- members ---- */

/* A copy of the members of a group: on the stack, or in a block. */
struct crowd {
    struct member few[ON_STACK];
    struct member *all;
    size_t count, room;
};

static void crowd_drop(struct bz_runtime *rt, struct crowd *c)
{
    if (c->all != c->few)
        bz_free(&rt->alloc, c->all, c->room * sizeof *c->all);
}

/* False: no memory. */
static bool crowd_take(struct bz_runtime *rt, const char *text, struct crowd *c)
{
    struct bz_actors *all = bz_actors_of(rt);
    c->all = c->few;
    c->room = ON_STACK;
    c->count = 0;
    if (all == NULL)
        return true; /* there was never an actor */
    while ((c->count = list(rt, all, text, c->room, c->all)) > c->room) {
        size_t room = c->count + c->count / 4; /* more may join meanwhile */
        crowd_drop(rt, c);
        c->room = room;
        c->all = bz_alloc(&rt->alloc, room * sizeof *c->all, _Alignof(struct member));
        if (c->all == NULL)
            return false;
    }
    return true;
}

int blitz_group_members(blitz_runtime *runtime, const char *group, size_t max, blitz_actor_id *out)
{
    struct bz_runtime *rt = bz_actor_runtime_or_mine(runtime);
    struct bz_actors *all = rt != NULL ? bz_actors_of(rt) : NULL;
    if (rt == NULL || group == NULL)
        return -EINVAL;
    if (all == NULL)
        return 0; /* there was never an actor */
    bz_lock_take(&all->lock, rt->os);
    struct bz_group *g = *find(all, group);
    size_t count = g != NULL ? g->count : 0;
    for (size_t i = 0; i < count && i < max; i++)
        out[i] = bz_actor_id_make(rt, g->member[i].index, g->member[i].generation);
    bz_lock_drop(&all->lock, rt->os);
    return (int)count;
}

int blitz_group_send(blitz_runtime *runtime, const char *group, uint32_t what, const void *data,
                     size_t size)
{
    return blitz_group_send_with(runtime, group, what, data, size, NULL);
}

int blitz_group_send_with(blitz_runtime *runtime, const char *group, uint32_t what,
                          const void *data, size_t size, const blitz_cargo *cargo)
{
    static const blitz_reply_to none;
    struct bz_runtime *rt = bz_actor_runtime_or_mine(runtime);
    struct crowd crowd;
    int reached = 0;
    if (rt == NULL || group == NULL || bz_send_is_bad(what, data, size) ||
        (cargo != NULL && cargo->move != NULL))
        return -EINVAL;
    if (!crowd_take(rt, group, &crowd))
        return -ENOMEM;
    for (size_t i = 0; i < crowd.count; i++) {
        blitz_actor_id id = bz_actor_id_make(rt, crowd.all[i].index, crowd.all[i].generation);
        reached += bz_send(id, what, data, size, cargo, none) == 0;
    }
    crowd_drop(rt, &crowd);
    return reached;
}
