/*
 * upgrade.c - new code for actors that go on.
 *
 * Where code is referred to. An actor has one pointer to code: its behaviour, with its handlers. Messages, timers, names, reasons
 * and relations have none: a handler is found by number, and texts are copied. Types of heap objects are copied at registration
 * (heap/type.c). A supervisor keeps the behaviour of a child, to start it again. So to change the code of an actor is to change one
 * pointer between two messages, and its state with it. The runtime must not use memory of the old library after that. So a
 * behaviour with a number is copied when it is first used (versions.c). Actors and supervisors point to the copy.
 *
 * An upgrade:
 *
 *     load      a thread of the pool copies the file and loads it (os/library.c)
 *     check     its table, its ABI, and that it has a function for each version in use
 *     collect   an ask for each actor of the name: a signal and an entry, in one piece of memory. All memory is taken here
 *     decide    under the lock: new actors by name are of the new version, and the asks are pending
 *     send      each ask goes to the signals of its actor, which hears it between two messages (upgrade_change.c)
 *     answer    changed, kept its code, or ended. The last answer wakes the tasks in blitz_upgrade_wait()
 *
 * Until `decide` nothing has changed, and each error undoes all. After it nothing can fail but the change of an actor.
 *
 * Two upgrades of one name do not begin at the same time: -EBUSY. One may begin while actors of the last are late. Their asks may be heard
 * in any order; each upgrade has a number, and an actor does not go back to the version of an earlier one.
 *
 * A subset. The supervisor walks over its children in its own handler, and asks the supervisors among them to do the same. New
 * actors still get the old version. So a child that fails with the new version is started again with the old one.
 *
 * Debug builds abort when a payload holds an address in a library that may be unloaded.
 *
 * Other files: versions.c keeps the versions, upgrade_change.c changes an actor, upgrade_birth.c starts actors by name,
 * upgrade_library.c loads and unloads.
 *
 * Rejected:
 *  - a pointer to the newest behaviour that each message reads: two loads for every message, and no moment to change the state
 *  - to stop all actors, then change: one that waits would stop all others
 *  - one list of actors for each version: two pointers and a lock for every spawn, for a walk that is rare
 *  - a count of uses in the actor's header: programs that never upgrade would pay
 *  - to free a version when its library goes: a sender may be reading its limits
 *
 * I1  A version is never freed before the runtime. Its numbers, limits, handlers but their functions, and name never change.
 * I2  An ask has one use of its version until it is answered; the answer moves it to the actor, or gives it up.
 * I3  An ask in `pending` was sent, or is about to be; one in `strays` was not.
 * I4  family.left counts the entries of `pending`.
 * I5  A library whose version has a user or is the newest is loaded.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/supervised.h"
#include "actor/upgrading.h"

static_assert(sizeof(struct bz_ask) <= BZ_LETTER_LARGE, "an ask is allocated as a letter");

/* ---- asks ---- */

static void ask_bury(struct bz_runtime *rt, struct bz_signal *s)
{
    bz_ask_answer(rt, bz_ask_of(s), BZ_ASK_ENDED, bz_ask_target(bz_ask_of(s)));
}

static const struct bz_ask_ops ask_ops = {.hear = bz_upgrade_hear, .bury = ask_bury};

struct bz_ask *bz_ask_new(struct bz_runtime *rt)
{
    struct bz_ask *ask = bz_letter_alloc(rt, sizeof *ask);
    if (ask == NULL)
        return NULL;
    memset(ask, 0, sizeof *ask);
    ask->signal.kind = BZ_SIGNAL_UPGRADE;
    ask->signal.ask = &ask_ops;
    bz_list_init(&ask->in);
    return ask;
}

void bz_ask_address(struct bz_ask *ask, uint32_t index, uint32_t generation)
{
    ask->signal.peer_index = index;
    ask->signal.peer_generation = generation; /* for look(), which the send must not disturb */
}

/* I2, I4 */
void bz_ask_post(struct bz_family *f, struct bz_ask *ask, struct bz_version *to,
                 blitz_upgrade_failure failure)
{
    ask->signal.ref = (uintptr_t)to;
    ask->signal.reason.code = (int)failure;
    to->users++;
    bz_list_push_back(&f->pending, &ask->in);
    f->late++;
    f->asked++;
    (void)blitz_wait_group_add(&f->left, 1);
}

void bz_ask_send(struct bz_runtime *rt, struct bz_ask *ask)
{
    if (!bz_signal_send(rt, ask->signal.peer_index, ask->signal.peer_generation, &ask->signal))
        bz_ask_answer(rt, ask, BZ_ASK_ENDED, bz_ask_target(ask));
}

void bz_ask_answer(struct bz_runtime *rt, struct bz_ask *ask, enum bz_ask_outcome outcome,
                   struct bz_version *left)
{
    struct bz_family *f = left->family;
    bz_versions_lock(rt);
    bz_list_remove(&ask->in);
    f->late--;
    f->answers[outcome]++;
    BZ_CHECK(left->users > 0, "the version %u of \"%s\" has no user", left->b.version, f->name);
    left->users--;
    bz_versions_unlock(rt);
    bz_letter_free(rt, ask);
    (void)blitz_wait_group_done(&f->left);
}

/* ---- an upgrade while it begins ---- */

struct upgrade {
    struct bz_runtime *rt;
    const char *name, *path;
    const blitz_upgrade_opts *opts;
    struct bz_family *family;
    struct bz_loaded *library; /* NULL: the program */
    struct bz_version *to;
    struct bz_signal *asks; /* collected, linked by `next` */
    uint32_t count;
    bool is_out_of_memory;
    char text[BLITZ_UPGRADE_TEXT_MAX]; /* why it is refused */
};

static int refuse(struct upgrade *u, int err, const char *text)
{
    snprintf(u->text, sizeof u->text, "%s", text);
    return err;
}

/* Load the library of the path. */
static int load_library(struct upgrade *u)
{
    const blitz_behaviour *b;
    int err = bz_library_load(u->rt, u->path, u->opts->unload, &u->library, u->text);
    if (err == 0)
        err = bz_library_find(u->library, u->name, &b, u->text);
    if (err == 0 && (err = bz_version_know(u->rt, b, u->library, &u->to)) != 0)
        return refuse(u, err,
                      err == -EEXIST ? "the type of its state has another layout"
                                     : "its behaviour is refused");
    return err;
}

/* The version of the program with the highest number. */
static int find_own(struct upgrade *u)
{
    bz_versions_lock(u->rt);
    for (struct bz_version *v = u->family->versions; v != NULL; v = v->next)
        if (v->source != NULL && v->library == NULL &&
            (u->to == NULL || v->b.version > u->to->b.version))
            u->to = v;
    bz_versions_unlock(u->rt);
    return u->to != NULL ? 0 : refuse(u, -ENOENT, "the program has no version of it");
}

/* ---- checks ---- */

static bool has_other_traits(const blitz_behaviour *a, const blitz_behaviour *b)
{
    return a->trap_faults != b->trap_faults || a->end_unreachable != b->end_unreachable ||
           (a->state_type != NULL) != (b->state_type != NULL);
}

/* Under the lock. */
static int check_against(struct upgrade *u, const struct bz_version *v)
{
    const blitz_behaviour *to = &u->to->b;
    if (has_other_traits(&v->b, to))
        return refuse(u, -EINVAL,
                      "trap_faults, end_unreachable or the use of a heap is another one");
    if (v->b.version == to->version ? v->b.state_bytes == to->state_bytes
                                    : bz_version_change(u->to, v->b.version) != NULL)
        return 0;
    snprintf(u->text, sizeof u->text,
             v->b.version == to->version
                 ? "version %u is in use with another size of the state"
                 : "it cannot change a state of version %u, which is in use",
             v->b.version);
    return -EOPNOTSUPP;
}

/* The new version takes each version in use. */
static int check(struct upgrade *u)
{
    int err = 0;
    bz_versions_lock(u->rt);
    for (const struct bz_version *v = u->family->versions; v != NULL && err == 0; v = v->next)
        if (v != u->to && (v->users > 0 || v->specs > 0 || v == u->family->newest))
            err = check_against(u, v);
    bz_versions_unlock(u->rt);
    return err;
}

/* ---- collecting ---- */

static void collect(struct upgrade *u, struct bz_actor *a)
{
    uint32_t generation = bz_actor_generation(a);
    const blitz_behaviour *b = bz_actor_behaviour(a);
    /* One that has the new version already is asked as well: it may be on its way to another. */
    if (generation % 2 == 0 || b->version == 0 || bz_version_of(b)->family != u->family)
        return;
    struct bz_ask *ask = bz_ask_new(u->rt);
    if (ask == NULL) {
        u->is_out_of_memory = true;
        return;
    }
    bz_ask_address(ask, a->task.slot.index, generation);
    ask->signal.next = u->asks;
    u->asks = &ask->signal;
    u->count++;
}

static void collect_task(struct bz_task *t, void *ctx)
{
    if (t->ops->kind == bz_actor_kind)
        collect(ctx, bz_actor_of(t));
}

/* A child of the supervisor, in the supervisor. */
static void collect_child(blitz_actor_id id, void *ctx)
{
    struct bz_actor *a = bz_actor_find(id);
    if (a != NULL)
        collect(ctx, a);
}

static int collect_all(struct upgrade *u)
{
    int err = 0;
    if (u->opts->supervisor.generation == 0)
        bz_slots_each(&u->rt->tasks.slots, collect_task, u);
    else
        err = bz_supervisor_each(u->opts->supervisor, collect_child, u);
    if (err != 0)
        return refuse(u, err, "the supervisor does not answer");
    return u->is_out_of_memory ? refuse(u, -ENOMEM, "no memory to ask the actors") : 0;
}

static void drop_asks(struct bz_runtime *rt, struct bz_signal *asks)
{
    while (asks != NULL) {
        struct bz_signal *s = asks;
        asks = s->next;
        bz_letter_free(rt, s);
    }
}

/* ---- the upgrade ---- */

/* Begin: from here on new actors leave an ask. */
static int begin(struct upgrade *u)
{
    struct bz_actors *all = bz_actors_of(u->rt);
    int err = 0;
    if (all == NULL)
        return refuse(u, -ENOENT, "there is no behaviour of that name");
    bz_versions_lock(u->rt);
    u->family = bz_family_find(&all->versions, u->name);
    if (u->family == NULL)
        err = -ENOENT;
    else if (u->family->is_busy)
        err = -EBUSY;
    else
        u->family->is_busy = true;
    bz_versions_unlock(u->rt);
    return err != 0 ? refuse(u, err,
                             err == -EBUSY ? "another upgrade of it begins"
                                           : "there is no behaviour of that name")
                    : 0;
}

/* The asks of actors that were born meanwhile. Under the lock. */
static void take_strays(struct bz_family *f, struct bz_signal **to)
{
    struct bz_list *in;
    while ((in = bz_list_take_front(&f->strays)) != NULL) {
        struct bz_ask *ask = BZ_CONTAINER_OF(in, struct bz_ask, in);
        ask->signal.next = *to;
        *to = &ask->signal;
    }
}

static void decide(struct upgrade *u)
{
    struct bz_family *f = u->family;
    struct bz_signal *strays = NULL;
    bool is_whole = u->opts->supervisor.generation == 0;
    bz_versions_lock(u->rt);
    u->to->epoch = ++bz_actors_of(u->rt)->versions.epochs;
    f->asked = 0;
    memset(f->answers, 0, sizeof f->answers);
    if (u->library != NULL)
        u->library->is_closing = false;
    u->to->users++; /* until all is sent: the first answer may be the last */
    if (is_whole)
        f->newest = u->to;
    /* Those that were born meanwhile change as well; in an upgrade of a subset they are as they should be. */
    take_strays(f, is_whole ? &u->asks : &strays);
    for (struct bz_signal *s = u->asks; s != NULL; s = s->next)
        bz_ask_post(f, bz_ask_of(s), u->to, u->opts->on_failure);
    f->is_busy = false;
    bz_versions_unlock(u->rt);
    drop_asks(u->rt, strays);
}

static void send_all(struct upgrade *u)
{
    while (u->asks != NULL) {
        struct bz_ask *ask = bz_ask_of(u->asks);
        u->asks = u->asks->next; /* before it is another's */
        bz_ask_send(u->rt, ask);
    }
    bz_version_leave(u->rt, u->to);
}

/* It was refused: nothing has changed. */
static void give_up(struct upgrade *u)
{
    bz_versions_lock(u->rt);
    take_strays(u->family, &u->asks); /* their actors have the version that stays the newest */
    u->family->is_busy = false;
    bz_versions_unlock(u->rt);
    drop_asks(u->rt, u->asks);
    if (u->library != NULL)
        bz_library_discard(u->rt, u->library);
}

static int prepare(struct upgrade *u)
{
    bz_libraries_sweep(u->rt);
    int err = u->path != NULL ? load_library(u) : find_own(u);
    if (err == 0)
        err = check(u);
    return err == 0 ? collect_all(u) : err;
}

static int upgrade(struct upgrade *u)
{
    int err = begin(u);
    if (err != 0)
        return err;
    err = prepare(u);
    if (err != 0) {
        give_up(u);
        return err;
    }
    decide(u);
    send_all(u);
    return 0;
}

/* ---- looking ---- */

/* Under the lock. */
static void look(const struct bz_versions *all, const struct bz_family *f, struct bz_runtime *rt,
                 blitz_upgrade_info *out)
{
    out->version = f->newest->b.version;
    out->asked = f->asked;
    out->changed = f->answers[BZ_ASK_CHANGED];
    out->kept = f->answers[BZ_ASK_KEPT];
    out->ended = f->answers[BZ_ASK_ENDED];
    out->late = f->late;
    uint32_t n = 0;
    for (struct bz_list *in = f->pending.next; in != &f->pending && n < BLITZ_UPGRADE_LATE_MAX;
         in = in->next) {
        const struct bz_ask *ask = BZ_CONTAINER_OF(in, struct bz_ask, in);
        out->late_id[n++] =
            bz_actor_id_make(rt, ask->signal.peer_index, ask->signal.peer_generation);
    }
    for (const struct bz_loaded *l = all->libraries; l != NULL; l = l->next)
        out->libraries++;
}

/* Returns the family; NULL: there is none. *mine: the caller is late. */
static struct bz_family *look_at(struct bz_runtime *rt, const char *name, blitz_upgrade_info *out,
                                 bool *mine)
{
    struct bz_actors *all = bz_actors_of(rt);
    const struct bz_actor *me = bz_actor_self();
    *out = (blitz_upgrade_info){.version = 0};
    *mine = false;
    if (all == NULL)
        return NULL;
    bz_versions_lock(rt);
    struct bz_family *f = bz_family_find(&all->versions, name);
    if (f != NULL)
        look(&all->versions, f, rt, out);
    for (struct bz_list *in = f != NULL ? f->pending.next : NULL;
         in != NULL && in != &f->pending && me != NULL && me->task.rt == rt; in = in->next)
        *mine |= BZ_CONTAINER_OF(in, struct bz_ask, in)->signal.peer_index == me->task.slot.index;
    bz_versions_unlock(rt);
    return f;
}

int blitz_upgrade(const char *name, const char *path, const blitz_upgrade_opts *opts,
                  blitz_upgrade_info *out)
{
    static const blitz_upgrade_opts none;
    struct upgrade u = {.name = name, .path = path, .opts = opts != NULL ? opts : &none};
    blitz_upgrade_info info = {.version = 0};
    bool mine;
    u.rt = bz_actor_runtime_or_mine(u.opts->runtime);
    int err = u.rt == NULL || name == NULL || (unsigned)u.opts->on_failure > BLITZ_UPGRADE_EXIT
                  ? refuse(&u, -EINVAL, "no runtime, no name or a bad option")
                  : upgrade(&u);
    if (u.rt != NULL && name != NULL)
        (void)look_at(u.rt, name, &info, &mine);
    if (out != NULL)
        *out = info;
    if (out != NULL && err != 0)
        memcpy(out->text, u.text, sizeof out->text);
    return err;
}

int blitz_upgrade_wait(const char *name, blitz_runtime *runtime, blitz_upgrade_info *out,
                       blitz_deadline until)
{
    struct bz_runtime *rt = bz_actor_runtime_or_mine(runtime);
    blitz_upgrade_info info;
    bool mine;
    if (rt == NULL || name == NULL)
        return -EINVAL;
    struct bz_family *f = look_at(rt, name, &info, &mine);
    if (f == NULL || mine)
        return f == NULL ? -ENOENT : -EDEADLK;
    int rc = blitz_wait_group_wait(&f->left, until);
    if (rc == -ECANCELED)
        return rc;
    bz_libraries_sweep(rt);
    (void)look_at(rt, name, &info, &mine);
    if (out != NULL)
        *out = info;
    return rc;
}
