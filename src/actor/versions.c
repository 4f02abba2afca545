/*
 * versions.c - the versions of behaviours that a runtime knows. upgrade.c has the design.
 *
 * A family is all versions of one name. It is made by the first spawn, or by blitz_behaviour_register(). A version is a copy of a
 * behaviour with its handlers, its changes and the type of its state. Any thread reads limits and the policy of an actor's behaviour
 * without a lock (pressure.h). So a version is not freed before its runtime. When its library is gone it is *retired*. A later
 * library with the same shape takes it again: the same version, handlers and limits. Only functions are written then, which
 * only the actors' owners read, and there is none. So a program that goes to and fro between two versions needs two of them.
 *
 * All is guarded by one lock for each runtime. Spawns and ends of actors with a version take it.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/upgrading.h"
#include "heap/type.h"

/* ---- the copy ---- */

void bz_versions_lock(struct bz_runtime *rt)
{
    bz_lock_take(&bz_actors_of(rt)->versions.lock, rt->os);
}

void bz_versions_unlock(struct bz_runtime *rt)
{
    bz_lock_drop(&bz_actors_of(rt)->versions.lock, rt->os);
}

static blitz_handler *handlers_of(struct bz_version *v)
{
    return (blitz_handler *)(v + 1);
}

static size_t version_bytes(const blitz_behaviour *b)
{
    return sizeof(struct bz_version) + b->handler_count * sizeof(blitz_handler) +
           b->change_count * sizeof(blitz_change);
}

/* Write what is a library's: functions. The rest is equal already if the version was retired. */
static void fill_functions(struct bz_version *v, const blitz_behaviour *b)
{
    for (size_t i = 0; i < b->handler_count; i++)
        handlers_of(v)[i].fn = b->handlers[i].fn;
    blitz_change *changes = (blitz_change *)(handlers_of(v) + b->handler_count);
    for (size_t i = 0; i < b->change_count; i++)
        changes[i] = b->changes[i];
    v->b.init = b->init;
    v->b.exit = b->exit;
    v->b.drop = b->drop;
    v->b.ctx = b->ctx;
}

/* The type was registered: its number is enough, and the rest may be a library's. */
static void fill_type(struct bz_version *v, const blitz_type *t)
{
    if (t == NULL)
        return;
    v->type = (blitz_type){.size = t->size, .flags = t->flags, .map = t->map, .index = t->index};
    v->type.name = bz_types[t->index]->name;
    v->b.state_type = &v->type;
}

static struct bz_version *version_new(struct bz_runtime *rt, const blitz_behaviour *b)
{
    struct bz_version *v = bz_alloc(&rt->alloc, version_bytes(b), _Alignof(max_align_t));
    if (v == NULL)
        return NULL;
    *v = (struct bz_version){.b = *b, .bytes = version_bytes(b)};
    for (size_t i = 0; i < b->handler_count; i++)
        handlers_of(v)[i] = b->handlers[i];
    v->b.handlers = handlers_of(v);
    v->b.changes = (blitz_change *)(handlers_of(v) + b->handler_count);
    fill_functions(v, b);
    fill_type(v, b->state_type);
    return v;
}

static bool has_same_handlers(const blitz_behaviour *a, const blitz_behaviour *b)
{
    if (a->handler_count != b->handler_count || a->change_count != b->change_count)
        return false;
    for (size_t i = 0; i < a->handler_count; i++)
        if (a->handlers[i].what != b->handlers[i].what ||
            a->handlers[i].size != b->handlers[i].size)
            return false;
    return true;
}

static uint32_t type_index(const blitz_type *t)
{
    return t != NULL ? t->index : 0;
}

/* True if all but the functions is the same. A table of terms stays with its library, which never goes. */
static bool has_same_shape(const blitz_behaviour *a, const blitz_behaviour *b)
{
    return a->version == b->version && a->state_bytes == b->state_bytes &&
           type_index(a->state_type) == type_index(b->state_type) &&
           a->mailbox_max == b->mailbox_max && a->mailbox_high == b->mailbox_high &&
           a->policy == b->policy && a->heap_max == b->heap_max &&
           a->heap_verify == b->heap_verify && a->trap_faults == b->trap_faults &&
           a->end_unreachable == b->end_unreachable && a->messages == b->messages &&
           has_same_handlers(a, b);
}

/* ---- families ---- */

struct bz_family *bz_family_find(const struct bz_versions *all, const char *name)
{
    struct bz_family *f = all->families;
    while (f != NULL && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}

static struct bz_family *family_new(struct bz_runtime *rt, const char *name)
{
    struct bz_family *f = bz_alloc(&rt->alloc, sizeof *f, _Alignof(struct bz_family));
    if (f == NULL)
        return NULL;
    memset(f, 0, sizeof *f);
    bz_list_init(&f->pending);
    bz_list_init(&f->strays);
    blitz_wait_group_init(&f->left);
    memcpy(f->name, name, strlen(name) + 1);
    return f;
}

/* The version that is a copy of b, or b itself; NULL: none. */
static struct bz_version *known_as(const struct bz_family *f, const blitz_behaviour *b)
{
    struct bz_version *v = f->versions;
    while (v != NULL && v->source != b && &v->b != b)
        v = v->next;
    return v;
}

static struct bz_version *retired_like(const struct bz_family *f, const blitz_behaviour *b)
{
    struct bz_version *v = f->versions;
    while (v != NULL && (v->source != NULL || v->users > 0 || !has_same_shape(&v->b, b)))
        v = v->next;
    return v;
}

static struct bz_loaded *library_of(const struct bz_versions *all, const blitz_behaviour *b)
{
    struct bz_loaded *l = all->libraries;
    while (l != NULL && !bz_image_has(&l->image, (uintptr_t)b))
        l = l->next;
    return l;
}

/* A behaviour that is to be known. */
struct knowing {
    const blitz_behaviour *b;
    struct bz_loaded
        *library; /* that is being loaded; NULL: the one in whose memory it is, or the program */
    bool counts;  /* it gets a user */
    struct bz_family *family; /* new ones, NULL if there are none, or they were used */
    struct bz_version *version;
};

/* The behaviour has got a version of the family. Until the first upgrade the highest version of the program is for new actors. */
static struct bz_version *take_in(struct bz_versions *all, struct bz_family *f,
                                  struct bz_version *v, const struct knowing *k)
{
    v->source = k->b;
    v->library = k->library != NULL ? k->library : library_of(all, k->b);
    v->epoch = 0;
    if (f->newest == NULL ||
        (f->newest->epoch == 0 && v->library == NULL && k->b->version > f->newest->b.version))
        f->newest = v;
    return v;
}

/* Find it, or a retired one, or use the new ones. NULL: there is none, and no new one. */
static struct bz_version *find_or_add(struct bz_versions *all, struct knowing *k)
{
    struct bz_family *f = bz_family_find(all, k->b->name);
    struct bz_version *v = f != NULL ? known_as(f, k->b) : NULL;
    if (v != NULL)
        return v;
    if (f != NULL && (v = retired_like(f, k->b)) != NULL) {
        fill_functions(v, k->b);
        return take_in(all, f, v, k);
    }
    if (k->version == NULL)
        return NULL;
    if (f == NULL) {
        f = k->family;
        k->family = NULL;
        f->next = all->families;
        all->families = f;
    }
    v = k->version;
    k->version = NULL;
    v->family = f;
    v->b.name = f->name;
    v->next = f->versions;
    f->versions = v;
    return take_in(all, f, v, k);
}

static bool is_bad(const blitz_behaviour *b)
{
    return b->version == 0 || b->name == NULL || b->name[0] == '\0' ||
           strlen(b->name) >= BLITZ_NAME_BYTES_MAX || b->state_bytes > BLITZ_ACTOR_STATE_MAX ||
           (b->state_type != NULL && b->state_type->size != b->state_bytes) ||
           (b->handler_count > 0 && b->handlers == NULL) ||
           (b->change_count > 0 && b->changes == NULL);
}

static struct bz_version *look_up(struct bz_runtime *rt, struct knowing *k)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    bz_lock_take(&all->lock, rt->os);
    struct bz_version *v = find_or_add(all, k);
    if (v != NULL && k->counts)
        v->users++;
    bz_lock_drop(&all->lock, rt->os);
    return v;
}

static int know(struct bz_runtime *rt, struct knowing *k, struct bz_version **out)
{
    const blitz_behaviour *b = k->b;
    if (is_bad(b))
        return -EINVAL;
    int err = b->state_type != NULL ? blitz_type_register(b->state_type) : 0;
    if (err != 0)
        return err;
    *out = look_up(rt, k);
    if (*out != NULL)
        return 0;
    k->family = family_new(rt, b->name);
    k->version = version_new(rt, b);
    if (k->family != NULL && k->version != NULL)
        *out = look_up(rt, k);
    bz_free(&rt->alloc, k->family, sizeof *k->family);
    bz_free(&rt->alloc, k->version, version_bytes(b));
    return *out != NULL ? 0 : -ENOMEM;
}

int bz_version_know(struct bz_runtime *rt, const blitz_behaviour *b, struct bz_loaded *library,
                    struct bz_version **out)
{
    return know(rt, &(struct knowing){.b = b, .library = library}, out);
}

int bz_version_take(struct bz_runtime *rt, const blitz_behaviour *b, struct bz_version **out)
{
    return know(rt, &(struct knowing){.b = b, .counts = true}, out);
}

void bz_version_leave(struct bz_runtime *rt, struct bz_version *v)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    bz_lock_take(&all->lock, rt->os);
    BZ_CHECK(v->users > 0, "the version %u of \"%s\" has no user", v->b.version, v->b.name);
    v->users--;
    bz_lock_drop(&all->lock, rt->os);
}

void bz_version_keep(struct bz_runtime *rt, const blitz_behaviour *b, bool is_kept)
{
    struct bz_versions *all = &bz_actors_of(rt)->versions;
    bz_lock_take(&all->lock, rt->os);
    bz_version_of(b)->specs += is_kept ? 1 : UINT64_MAX;
    bz_lock_drop(&all->lock, rt->os);
}

const blitz_change *bz_version_change(const struct bz_version *to, uint32_t from)
{
    for (size_t i = 0; i < to->b.change_count; i++)
        if (to->b.changes[i].from == from && to->b.changes[i].code_change != NULL)
            return &to->b.changes[i];
    return NULL;
}

/* ---- libraries ---- */

bool bz_versions_unused(const struct bz_versions *all, const struct bz_loaded *library)
{
    for (const struct bz_family *f = all->families; f != NULL; f = f->next)
        for (const struct bz_version *v = f->versions; v != NULL; v = v->next)
            if (v->library == library && v->source != NULL && (v->users > 0 || f->newest == v))
                return false;
    return true;
}

void bz_versions_retire(struct bz_versions *all, const struct bz_loaded *library)
{
    for (struct bz_family *f = all->families; f != NULL; f = f->next)
        for (struct bz_version *v = f->versions; v != NULL; v = v->next)
            if (v->library == library && v->source != NULL) {
                v->source = NULL;
                v->library = NULL;
            }
}

/* ---- per runtime ---- */

void bz_versions_init(struct bz_versions *all)
{
    memset(all, 0, sizeof *all);
    bz_lock_init(&all->lock);
}

void bz_versions_fini(struct bz_runtime *rt, struct bz_versions *all)
{
    for (struct bz_family *f = all->families, *next; f != NULL; f = next) {
        next = f->next;
        for (struct bz_version *v = f->versions, *after; v != NULL; v = after) {
            after = v->next;
            bz_free(&rt->alloc, v, v->bytes);
        }
        bz_free(&rt->alloc, f, sizeof *f);
    }
    all->families = NULL;
}
