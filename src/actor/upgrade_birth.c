/*
 * upgrade_birth.c - start actors by the name of their behaviour: blitz_behaviour_spawn().
 *
 * A spawn by name takes the newest version under the lock, starts the actor, and looks again under the lock. An upgrade may have begun in
 * between, and may have looked for actors before this one could be found:
 *
 *     an upgrade begins             the spawn leaves an ask with the family. The upgrade sends it, or frees it if it is refused
 *     another version is newest     the spawn sends the ask itself
 *     else                          the ask is freed
 *
 * The ask is allocated before the spawn, so that nothing fails behind it. The upgrade may have found the actor as well. Then the actor
 * hears two asks, and the second finds nothing to do. A spawn by pointer has the version that it names, also after an
 * upgrade.
 *
 * The state that the caller gives is one of a version that it knows. If the newest is another one, the library's function makes
 * the first state, in the caller: there is no actor yet. The use of the version keeps the library meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/upgrading.h"

struct birth {
    struct bz_runtime *rt;
    struct bz_version *version; /* with a use until the end; the actor has its own */
    struct bz_ask *ask;         /* NULL: it was used */
};

static int birth_begin(struct birth *n, const char *name, uint32_t version, bool has_state,
                       const blitz_change **change)
{
    struct bz_actors *all = bz_actors_of(n->rt);
    *change = NULL;
    if (all == NULL)
        return -ENOENT;
    n->ask = bz_ask_new(n->rt);
    if (n->ask == NULL)
        return -ENOMEM;
    bz_versions_lock(n->rt);
    struct bz_family *f = bz_family_find(&all->versions, name);
    int err = f == NULL ? -ENOENT : 0;
    n->version = err == 0 ? f->newest : NULL;
    if (err == 0 && has_state && n->version->b.version != version &&
        (*change = bz_version_change(n->version, version)) == NULL)
        err = -EOPNOTSUPP;
    if (err == 0)
        n->version->users++;
    bz_versions_unlock(n->rt);
    if (err != 0)
        bz_letter_free(n->rt, n->ask);
    return err;
}

/* The actor is born. An upgrade may have begun since its version was chosen. */
static void birth_end(struct birth *n, blitz_actor_id id)
{
    struct bz_family *f = n->version->family;
    bool sends = false;
    bz_ask_address(n->ask, id.index, id.generation);
    bz_versions_lock(n->rt);
    if (f->is_busy) {
        bz_list_push_back(&f->strays, &n->ask->in); /* I3 */
        n->ask = NULL;
    } else if (f->newest != n->version) {
        bz_ask_post(f, n->ask, f->newest, BLITZ_UPGRADE_KEEP);
        sends = true;
    }
    bz_versions_unlock(n->rt);
    if (sends)
        bz_ask_send(n->rt, n->ask);
    else if (n->ask != NULL)
        bz_letter_free(n->rt, n->ask);
}

/* Make the first state of one of an earlier version. *out is to be freed. */
static int first_state(struct birth *n, const blitz_change *change, const void *old, void **out)
{
    size_t bytes = n->version->b.state_bytes;
    *out = bz_alloc(&n->rt->alloc, bytes > 0 ? bytes : 1, _Alignof(max_align_t));
    if (*out == NULL)
        return -ENOMEM;
    memset(*out, 0, bytes);
    int rc = change->code_change((void *)(uintptr_t)old, change->from, *out);
    return rc > 0 ? -EINVAL : rc;
}

static int birth(struct birth *n, const blitz_change *change, const void *state,
                 const blitz_actor_opts *opts, blitz_actor_id *id)
{
    void *made = NULL;
    size_t bytes = n->version->b.state_bytes;
    int err = change != NULL ? first_state(n, change, state, &made) : 0;
    if (err == 0)
        err = blitz_actor_spawn(&n->version->b, made != NULL ? made : state, opts, id);
    bz_free(&n->rt->alloc, made, bytes > 0 ? bytes : 1);
    return err;
}

int bz_spawn_newest(const char *name, uint32_t version, const void *state,
                    const blitz_actor_opts *opts, blitz_actor_id *out)
{
    struct birth n = {.rt = bz_actor_runtime_or_mine(opts != NULL ? opts->runtime : NULL)};
    const blitz_change *change;
    blitz_actor_id id;
    if (n.rt == NULL || name == NULL)
        return -EINVAL;
    int err = birth_begin(&n, name, version, state != NULL, &change);
    if (err != 0)
        return err;
    err = birth(&n, change, state, opts, &id);
    if (err != 0)
        bz_letter_free(n.rt, n.ask);
    else
        birth_end(&n, id);
    bz_version_leave(n.rt, n.version);
    if (err != 0)
        return err;
    if (out != NULL)
        *out = id;
    return 0;
}

int blitz_behaviour_spawn(const char *name, uint32_t version, const void *state,
                          const blitz_actor_opts *opts, blitz_actor_id *out)
{
    return bz_spawn_newest(name, version, state, opts, out);
}

int blitz_behaviour_register(blitz_runtime *runtime, const blitz_behaviour *behaviour)
{
    struct bz_runtime *rt = bz_actor_runtime_or_mine(runtime);
    struct bz_version *v;
    if (rt == NULL || behaviour == NULL)
        return -EINVAL;
    return bz_actors_make(rt) != NULL ? bz_version_know(rt, behaviour, NULL, &v) : -ENOMEM;
}
