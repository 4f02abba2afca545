/*
 * blitz/upgrade.h - new code for actors that go on: hot upgrade between two messages.
 *
 * A behaviour that may be upgraded has a name and a version. A library has a later version of it, and for each earlier version a
 * function that makes the new state out of the old:
 *
 *     struct counter { long sum, count; };                  // version 1 had only the sum
 *
 *     static int from_1(void *old_state, uint32_t old_version, void *new_state)
 *     {
 *         const struct counter_1 *old = (const struct counter_1 *)old_state;
 *         *(struct counter *)new_state = (struct counter){.sum = old->sum};
 *         return 0;
 *     }
 *     static const blitz_change changes[] = {{1, from_1}};
 *     static const blitz_behaviour counter = {.name = "counter", .version = 2, .changes = changes, .change_count = 1,
 *                                             .state_bytes = sizeof(struct counter), ...};
 *     BLITZ_LIBRARY(&counter);
 *
 * The program loads it, and every actor of that name changes:
 *
 *     blitz_upgrade_info info;
 *     int rc = blitz_upgrade("counter", "./counter_2.so", NULL, &info);
 *     rc = blitz_upgrade_wait("counter", NULL, &info, blitz_after(BLITZ_S));      // -ETIMEDOUT: info says which are late
 *
 * An actor changes between two messages. It keeps its id, mailbox, names, links, monitors, timers and private heap. An actor that
 * waits in a handler changes when the handler returns. An upgrade back is the same call, with the earlier library and a function
 * in it that takes the later state. If the earlier version is part of the program, the path is NULL.
 *
 * Static variables of a library are not carried over: keep everything in the state. The program must export its symbols to the
 * library (-rdynamic, or the shared libblitz). docs/upgrade.md is the guide, and says what cannot work.
 */
#ifndef BLITZ_UPGRADE_H
#define BLITZ_UPGRADE_H

#include "blitz/actor.h"

BLITZ_BEGIN_DECLS

/* The number of this interface: a library that was built with another one is refused. */
#define BLITZ_LIBRARY_ABI 1u

enum {
    BLITZ_UPGRADE_LATE_MAX = 16,  /* late actors that are named */
    BLITZ_UPGRADE_TEXT_MAX = 160, /* of an error, with the end */
    BLITZ_LIBRARY_MAX = 64        /* behaviours of a library */
};

/* The table of a library, made by BLITZ_LIBRARY(). */
typedef struct blitz_library {
    uint32_t abi;             /* BLITZ_LIBRARY_ABI */
    uint32_t behaviour_bytes; /* sizeof(blitz_behaviour) */
    uint32_t handler_bytes;   /* sizeof(blitz_handler) */
    uint32_t behaviour_count;
    const blitz_behaviour *const *behaviours;
} blitz_library;

/* Define the table of a library, once, at file scope: BLITZ_LIBRARY(&counter, &chat). */
#define BLITZ_LIBRARY(...)                                                                     \
    static const blitz_behaviour *const blitz_library_list_[] = {__VA_ARGS__};                 \
    BLITZ_API extern const blitz_library blitz_library_table;                                  \
    const blitz_library blitz_library_table = {                                                \
        BLITZ_LIBRARY_ABI, (uint32_t)sizeof(blitz_behaviour), (uint32_t)sizeof(blitz_handler), \
        (uint32_t)(sizeof blitz_library_list_ / sizeof blitz_library_list_[0]),                \
        blitz_library_list_}

/* The choice of an actor whose state cannot be changed. */
typedef enum blitz_upgrade_failure {
    BLITZ_UPGRADE_KEEP, /* it keeps its code and its state */
    BLITZ_UPGRADE_EXIT  /* it ends, with the error: `exit` and `drop` of the old code are called */
} blitz_upgrade_failure;

/* The options of an upgrade. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_upgrade_opts {
    blitz_runtime *runtime; /* NULL: the runtime of the caller */
    /* Only the children of this supervisor change, and theirs. New actors, and those that are started again, have the code
     * from before: so a new version that fails is replaced by the old one. Zeroed: all change, and new actors have the new code */
    blitz_actor_id supervisor;
    blitz_upgrade_failure on_failure;
    /* Unload this library when nothing uses it any more. Default: never. The next upgrade, blitz_upgrade_wait() and the end of the
     * runtime do it. docs/upgrade.md says what is seen as a use, and what is not */
    bool unload;
} blitz_upgrade_opts;

/* The state of the upgrades of a behaviour. */
typedef struct blitz_upgrade_info {
    uint32_t version; /* of new actors */
    uint32_t asked;   /* actors that the last upgrade has asked */
    uint32_t changed; /* those that have changed since then */
    uint32_t kept;    /* ... that could not, and go on with their code */
    uint32_t ended;   /* ... that have ended before, or because they could not */
    uint32_t
        late; /* actors that have not answered yet: they wait in a handler, or have work before */
    uint32_t libraries; /* of this runtime that are loaded now, for any behaviour */
    blitz_actor_id late_id[BLITZ_UPGRADE_LATE_MAX]; /* the first of the late ones */
    char text[BLITZ_UPGRADE_TEXT_MAX];              /* why an upgrade was refused; else empty */
} blitz_upgrade_info;

/*
 * Make a behaviour of the program known by its name, so that it can be upgraded and spawned by name. The first spawn does the same.
 * Owns:     copies the behaviour, its tables and its name; the functions stay the program's. NULL: the caller's runtime.
 * Suspends: never. Call from a task, or from any thread with a runtime.
 * Returns:  0 (also if it is known), -EINVAL (no runtime, no name or one that is too long, no version), -ENOMEM, -EEXIST (the
 *           type of its state is registered with another layout).
 */
BLITZ_API int blitz_behaviour_register(blitz_runtime *runtime, const blitz_behaviour *behaviour);

/*
 * Start an actor with the newest version of a behaviour.
 * Owns:     as blitz_actor_spawn(). *state is one of the version that is given. If the newest is another one, its function for
 *           that version makes the first state, in the caller: it must not use the heap of an actor. NULL: zeroes.
 * Suspends: only if that function does. Call from a task, or from any thread with a runtime in the options.
 * Returns:  as blitz_actor_spawn(), or -ENOENT (no such behaviour), -EOPNOTSUPP (no function for that version), or what the
 *           function has returned.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_behaviour_spawn(const char *name, uint32_t version, const void *state,
                      const blitz_actor_opts *opts, blitz_actor_id *out);

/*
 * Load a library and ask every actor of a behaviour to change to its version. On error nothing has changed.
 * Owns:     borrows all arguments until return. The library is copied to a file of its own, so `path` may be replaced at any time.
 *           *out is written in each case; NULL: not wanted.
 * Suspends: until the library is loaded, by a thread of the pool. It does not wait for the actors. A cancel does not end it. Call
 *           from a task, or from any thread with a runtime in the options.
 * Returns:  0; -ENOENT (no such behaviour, file, or earlier version in the program), -EBUSY (another upgrade of it begins),
 *           -ENOEXEC (it cannot be loaded), -EOPNOTSUPP (this program cannot load, or the library has no table, another ABI, or no
 *           function for a version in use), -EINVAL (a bad behaviour, option, or no runtime), -EEXIST (the type of the state is
 *           registered with another layout), -ESRCH (no such supervisor), -ENOMEM, or an error of reading and copying the file.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_upgrade(const char *name, const char *path,
                                                          const blitz_upgrade_opts *opts,
                                                          blitz_upgrade_info *out);

/*
 * Wait until all actors have answered that were asked to change: none of them runs older code than it is to run, unless it could
 * not change. Then close libraries without use.
 * Owns:     borrows the name until return; NULL: the caller's runtime. *out is written on 0 and -ETIMEDOUT; NULL: not wanted.
 * Suspends: until then, the deadline or a cancel, and while libraries are closed. Call from a task, or from any thread with a runtime.
 * Returns:  0, -ETIMEDOUT (out->late are late), -ECANCELED, -ENOENT (no such behaviour), -EINVAL (no runtime), -EDEADLK (the
 *           caller is late itself).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_upgrade_wait(const char *name, blitz_runtime *runtime,
                                                blitz_upgrade_info *out, blitz_deadline until);

BLITZ_END_DECLS

#endif
