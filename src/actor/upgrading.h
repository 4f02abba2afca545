/*
 * upgrading.h - versions of behaviours, inside: versions.c, upgrade.c, upgrade_birth.c, upgrade_change.c and upgrade_library.c. upgrade.c has the design.
 */
#ifndef BZ_ACTOR_UPGRADING_H
#define BZ_ACTOR_UPGRADING_H

#include "actor/actor.h"
#include "base/list.h"
#include "blitz/upgrade.h"
#include "blitz/wait_group.h"
#include "os/library.h"

/* A library that is loaded. */
struct bz_loaded {
    struct bz_loaded *next; /* in bz_versions.libraries; guarded by the lock */
    struct bz_image image;  /* constant, as the next one */
    bool unloads;           /* it is to be unloaded when nothing uses it */
    bool is_closing;        /* it is not to be looked at: it comes or goes. Guarded by the lock */
};

/* A version of a behaviour, with copies of all that is no function. upgrade.c I1. */
struct bz_version {
    blitz_behaviour b; /* first: the behaviour of its actors */
    struct bz_version *next;
    struct bz_family *family;      /* constant */
    struct bz_loaded *library;     /* NULL: the program. Guarded by the lock, as the rest */
    const blitz_behaviour *source; /* that it is a copy of; NULL: retired, its library is gone */
    uint64_t epoch;                /* of the last upgrade to it; 0: none */
    uint64_t users;                /* actors that have it, and asks to change to it */
    uint64_t specs;                /* children of supervisors with a first state of it */
    size_t bytes;                  /* of this block; constant */
    blitz_type type;               /* b.state_type; constant */
};

enum bz_ask_outcome { BZ_ASK_CHANGED, BZ_ASK_KEPT, BZ_ASK_ENDED, BZ_ASK_OUTCOMES };

/* All versions of one name in one runtime. */
struct bz_family {
    struct bz_family *next;
    struct bz_version *versions;
    struct bz_version *newest; /* of new actors by name */
    bool is_busy;              /* an upgrade begins */
    struct bz_list pending;    /* asks that are not answered */
    struct bz_list strays;     /* asks of actors that were born while an upgrade begins */
    uint32_t late;             /* entries of pending */
    uint32_t asked, answers[BZ_ASK_OUTCOMES]; /* since the last upgrade */
    blitz_wait_group left;                    /* of pending */
    char name[BLITZ_NAME_BYTES_MAX];          /* constant */
};

/* An ask to change: the signal, and an entry of its family. signal.ref is the version, with a use; signal.peer_index and
 * peer_generation are the actor. */
struct bz_ask {
    struct bz_signal signal; /* first */
    struct bz_list in;       /* pending or strays; guarded by the lock */
};

static inline struct bz_ask *bz_ask_of(struct bz_signal *s)
{
    return BZ_CONTAINER_OF(s, struct bz_ask, signal);
}

static inline struct bz_version *bz_ask_target(const struct bz_ask *ask)
{
    return (struct bz_version *)(uintptr_t)ask->signal.ref;
}

static inline struct bz_version *bz_version_of(const blitz_behaviour *b)
{
    return BZ_CONTAINER_OF(b, struct bz_version, b);
}

/* Debug builds: abort if a payload has an address in a library that may be unloaded. */
static inline void bz_payload_check(const void *data, size_t size)
{
#if defined(BZ_DEBUG)
    BZ_CHECK(!bz_images_point(data, size),
             "a payload holds an address in a library that may be unloaded");
#else
    (void)data, (void)size;
#endif
}

/* Of a runtime. */
struct bz_versions {
    struct bz_lock
        lock; /* guards the rest, and all that is reached from here and is not constant */
    struct bz_family *families;
    struct bz_loaded *libraries;
    uint64_t epochs; /* upgrades so far */
    bool is_swept;   /* a task looks for libraries without use */
};

/* ---- versions.c ---- */

/* The runtime has struct bz_actors, for these and all that follow: bz_actors_make(). */
void bz_versions_lock(struct bz_runtime *rt);
void bz_versions_unlock(struct bz_runtime *rt);

/* Find the version that is this behaviour, or make it. `library` is the one that is being loaded, or NULL. Returns 0, -EINVAL, -ENOMEM,
 * -EEXIST. It is never freed while the runtime exists. */
BZ_MUST_USE int bz_version_know(struct bz_runtime *rt, const blitz_behaviour *b,
                                struct bz_loaded *library, struct bz_version **out);
/* The same for an actor that is about to be made: it is counted. */
BZ_MUST_USE int bz_version_take(struct bz_runtime *rt, const blitz_behaviour *b,
                                struct bz_version **out);
/* An actor of it is gone, or was not made. */
void bz_version_leave(struct bz_runtime *rt, struct bz_version *v);
/* Under the lock. NULL: no such family. */
struct bz_family *bz_family_find(const struct bz_versions *all, const char *name);
/* The function that changes a state of that version; NULL: none. */
const blitz_change *bz_version_change(const struct bz_version *to, uint32_t from);
/* A library is to go: its versions are retired. Under the lock. */
void bz_versions_retire(struct bz_versions *all, const struct bz_loaded *library);
/* A supervisor keeps a first state of that version, or does not any more. */
void bz_version_keep(struct bz_runtime *rt, const blitz_behaviour *b, bool is_kept);
/* True if none of its versions is used, or new actors' own. Under the lock. */
bool bz_versions_unused(const struct bz_versions *all, const struct bz_loaded *library);

void bz_versions_init(struct bz_versions *all);
/* upgrade_library.c: the runtime ends. Unload what may be. */
void bz_versions_end(struct bz_runtime *rt, struct bz_versions *all);
/* Free the memory: no thread uses it any more. */
void bz_versions_fini(struct bz_runtime *rt, struct bz_versions *all);

/* ---- upgrade_library.c ---- */

/* Load a library; *text says why not. No sweep takes it while is_closing. */
BZ_MUST_USE int bz_library_load(struct bz_runtime *rt, const char *path, bool unloads,
                                struct bz_loaded **out, char *text);
/* Find a behaviour in its table. A library whose behaviour has terms stays. Returns 0, -EOPNOTSUPP (no table, another ABI), -EINVAL; *text says why. */
BZ_MUST_USE int bz_library_find(struct bz_loaded *l, const char *name, const blitz_behaviour **out,
                                char *text);
/* Its upgrade was refused: unload it. */
void bz_library_discard(struct bz_runtime *rt, struct bz_loaded *l);
/* Unload the libraries without use. May suspend. */
void bz_libraries_sweep(struct bz_runtime *rt);

/* ---- upgrade.c ---- */

/* Make an ask; NULL: no memory. */
struct bz_ask *bz_ask_new(struct bz_runtime *rt);
/* It is for that actor. */
void bz_ask_address(struct bz_ask *ask, uint32_t index, uint32_t generation);
/* It asks for that version, and is pending. Under the lock. */
void bz_ask_post(struct bz_family *f, struct bz_ask *ask, struct bz_version *to,
                 blitz_upgrade_failure failure);
/* Send a pending one, behind the lock. */
void bz_ask_send(struct bz_runtime *rt, struct bz_ask *ask);
/* An ask has its outcome: free it, and wake the tasks that wait for it. `left` is the version that has one user less: the one that was
 * asked for, unless the actor has moved to it. */
void bz_ask_answer(struct bz_runtime *rt, struct bz_ask *ask, enum bz_ask_outcome outcome,
                   struct bz_version *left);
/* upgrade_birth.c: blitz_behaviour_spawn(). */
BZ_MUST_USE int bz_spawn_newest(const char *name, uint32_t version, const void *state,
                                const blitz_actor_opts *opts, blitz_actor_id *out);

/* ---- upgrade_change.c ---- */

/* The owner hears the ask, between two messages. Frees it. 0: the actor goes on, changed or not; else it ends with that result. */
BZ_MUST_USE int bz_upgrade_hear(struct bz_actor *a, struct bz_signal *s);

#endif
