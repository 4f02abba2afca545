/*
 * upgrade_library.c - the libraries of a runtime: load one, look into its table, and unload those without use.
 *
 * A library is in the list from its load until it is unloaded. dlopen and dlclose run on a thread of the pool. They call constructors
 * and destructors, take the loader's lock, and need more stack than a fiber has.
 *
 * A library goes only if its upgrade has asked for that. All of this must hold:
 *  - none of its versions has a user. An actor is a user until after its `exit` and `drop`; so is an ask.
 *  - none of its versions is that of new actors.
 *  - no fiber or stackless task began in its code.
 *  - no actor has a behaviour without a version that is in it.
 *  - no registered type has a visit function in it.
 *  - nothing is known that would call it later (os/library.c).
 *
 * A handler that waits has a frame in the library. It is one of an actor, which is a user.
 *
 * The next upgrade and the end of each wait for one look for such libraries. Rejected: the actor that was the last user unloads
 * its library. Destructors would run on its stack, between two of its messages.
 *
 * The walk does not see three things: a fiber of the program that is in a function of the library, an offloaded call, a pointer that the program
 * keeps. docs/upgrade.md says so. The walk over the tasks is no snapshot. It may miss a fiber of the library that starts another one and ends
 * while the walk passes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/upgrading.h"
#include "base/log.h"
#include "blitz/blocking.h"
#include "heap/type.h"

/* ---- unloading ---- */

struct scan {
    const struct bz_loaded *library;
    bool is_used;
};

/* A task that began in the library, or an actor whose behaviour is there without a number. */
static void scan_task(struct bz_task *t, void *ctx)
{
    struct scan *s = ctx;
    const struct bz_image *i = &s->library->image;
    if (t->ops->begun_in != NULL && bz_image_has(i, t->ops->begun_in(t)))
        s->is_used = true;
    if (t->ops->kind == bz_actor_kind &&
        bz_image_has(i, (uintptr_t)bz_actor_behaviour(bz_actor_of(t))))
        s->is_used = true;
}

static bool is_used(struct bz_runtime *rt, const struct bz_loaded *l)
{
    struct scan s = {l, l->image.stays != NULL || bz_types_visit_in(l->image.start, l->image.end)};
    if (!s.is_used)
        bz_tasks_each(rt, scan_task, &s);
    return s.is_used;
}

/* A library that may go by its counts, and comes behind `after` in the list; NULL: none. */
static struct bz_loaded *find_unused(struct bz_runtime *rt, const struct bz_loaded *after)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    bz_versions_lock(rt);
    struct bz_loaded *l = after != NULL ? after->next : all->libraries;
    while (l != NULL && (!l->unloads || l->is_closing || !bz_versions_unused(all, l)))
        l = l->next;
    bz_versions_unlock(rt);
    return l;
}

/* Take it out of the list, if it is still without use. */
static bool take_unused(struct bz_runtime *rt, struct bz_loaded *l)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    bz_versions_lock(rt);
    bool goes = !l->is_closing && bz_versions_unused(all, l);
    if (goes) {
        bz_versions_retire(all, l);
        l->is_closing = true;
    }
    bz_versions_unlock(rt);
    return goes;
}

static void forget(struct bz_runtime *rt, struct bz_loaded *l)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    bz_versions_lock(rt);
    struct bz_loaded **at = &all->libraries;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    bz_versions_unlock(rt);
    bz_free(&rt->alloc, l, sizeof *l);
}

static int close_library(void *library)
{
    struct bz_loaded *l = library;
    if (l->unloads)
        bz_images_watch(&l->image, false);
    bz_loader->close(&l->image);
    return 0;
}

/* Only one task sweeps, so that the library it looks at is not freed. False: another one does. */
static bool sweep_begin(struct bz_runtime *rt)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    bz_versions_lock(rt);
    bool is_first = !all->is_swept;
    all->is_swept = true;
    bz_versions_unlock(rt);
    return is_first;
}

static void sweep_end(struct bz_runtime *rt)
{
    bz_versions_lock(rt);
    bz_actors_of(rt)->versions.is_swept = false;
    bz_versions_unlock(rt);
}

void bz_libraries_sweep(struct bz_runtime *rt)
{
    if (!sweep_begin(rt))
        return;
    struct bz_loaded *l = find_unused(rt, NULL);
    while (l != NULL) {
        if (is_used(rt, l) || !take_unused(rt, l)) {
            l = find_unused(rt, l);
            continue;
        }
        (void)blitz_blocking(close_library, l);
        forget(rt, l);
        l = find_unused(rt, NULL);
    }
    sweep_end(rt);
}

void bz_versions_end(struct bz_runtime *rt, struct bz_versions *all)
{
    for (struct bz_loaded *l = all->libraries, *next; l != NULL; l = next) {
        next = l->next;
        if (l->unloads && l->image.stays == NULL &&
            !bz_types_visit_in(l->image.start, l->image.end))
            (void)close_library(l);
        bz_free(&rt->alloc, l, sizeof *l);
    }
    all->libraries = NULL;
}

/* ---- loading ---- */

struct loading {
    const char *path;
    struct bz_loaded *library;
    char *text;
};

static int load(void *loading)
{
    struct loading *l = loading;
    return bz_loader->open(l->path, &l->library->image, l->text, BLITZ_UPGRADE_TEXT_MAX);
}

/* It is loaded. No sweep takes it before the upgrade has decided. */
static void enlist(struct bz_runtime *rt, struct bz_loaded *l, const char *path)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    if (l->unloads && l->image.stays != NULL)
        bz_log(BLITZ_LOG_WARN, "%s is not going to be unloaded: %s", path, l->image.stays);
    if (l->unloads)
        bz_images_watch(&l->image, true);
    l->is_closing = true;
    bz_versions_lock(rt);
    l->next = all->libraries;
    all->libraries = l;
    bz_versions_unlock(rt);
}

int bz_library_load(struct bz_runtime *rt, const char *path, bool unloads, struct bz_loaded **out,
                    char *text)
{
    struct bz_loaded *l = bz_alloc(&rt->alloc, sizeof *l, _Alignof(struct bz_loaded));
    if (l == NULL)
        return -ENOMEM;
    memset(l, 0, sizeof *l);
    l->unloads = unloads;
    int err = blitz_blocking(load, &(struct loading){path, l, text});
    if (err != 0) {
        bz_free(&rt->alloc, l, sizeof *l);
        return err;
    }
    enlist(rt, l, path);
    *out = l;
    return 0;
}

/* A node reads the table of terms of an actor while it delivers to it, and is not counted as a use: node/deliver.c. */
static void keep_terms(struct bz_loaded *l, const blitz_behaviour *b)
{
    if (b->messages == NULL || !l->unloads || l->image.stays != NULL)
        return;
    l->image.stays = "a behaviour has a table of terms, which nodes read";
    bz_log(BLITZ_LOG_WARN, "the library of \"%s\" is not going to be unloaded: %s", b->name,
           l->image.stays);
}

int bz_library_find(struct bz_loaded *l, const char *name, const blitz_behaviour **out, char *text)
{
    const blitz_library *table = bz_loader->find(&l->image, "blitz_library_table");
    snprintf(text, BLITZ_UPGRADE_TEXT_MAX, "it has no blitz_library_table: BLITZ_LIBRARY()");
    if (table == NULL)
        return -EOPNOTSUPP;
    snprintf(text, BLITZ_UPGRADE_TEXT_MAX, "its ABI is %u (%u, %u bytes), ours is %u (%zu, %zu)",
             table->abi, table->behaviour_bytes, table->handler_bytes, BLITZ_LIBRARY_ABI,
             sizeof(blitz_behaviour), sizeof(blitz_handler));
    if (table->abi != BLITZ_LIBRARY_ABI || table->behaviour_bytes != sizeof(blitz_behaviour) ||
        table->handler_bytes != sizeof(blitz_handler))
        return -EOPNOTSUPP;
    for (uint32_t i = 0; i < table->behaviour_count && i < BLITZ_LIBRARY_MAX; i++) {
        *out = table->behaviours[i];
        if ((*out)->name != NULL && strcmp((*out)->name, name) == 0) {
            keep_terms(l, *out);
            return 0;
        }
    }
    snprintf(text, BLITZ_UPGRADE_TEXT_MAX, "its table has no behaviour \"%s\"", name);
    return -EINVAL;
}

void bz_library_discard(struct bz_runtime *rt, struct bz_loaded *l)
{
    bz_versions_lock(rt);
    bz_versions_retire(&bz_actors_of(rt)->versions, l);
    bz_versions_unlock(rt);
    if (l->image.stays == NULL)
        (void)blitz_blocking(close_library, l);
    forget(rt, l);
}
