/*
 * blitz/supervisor.h - actors that start other actors, and start them again when they fail.
 *
 *     blitz_child_spec children[] = {
 *         {.id = "store", .behaviour = &store, .restart = BLITZ_PERMANENT},
 *         {.id = "worker", .behaviour = &worker, .restart = BLITZ_TRANSIENT},
 *     };
 *     blitz_supervisor_plan opts = {.strategy = BLITZ_REST_FOR_ONE, .children = children, .child_count = 2};
 *     blitz_actor_id sup;
 *     int rc = blitz_supervisor_spawn(&opts, NULL, &sup);
 *
 * A supervisor starts its children in order and ends them in reverse order. It is linked to each. When a child ends, its restart
 * type says whether it is started again, and the strategy says which others are. A supervisor that restarts too often within a
 * period gives up: it ends its children and itself, and its own supervisor sees that. A child may be a supervisor itself, so
 * supervisors form trees.
 *
 * A child may be a process of another node: of Erlang, or an actor of blitz. If the connection to it goes, it has failed with
 * BLITZ_EXIT_NOCONNECTION, and may still run there until that side notices. To end it, the supervisor sends the exit signal `shutdown`,
 * and `kill` after its deadline, and waits for its end or the loss of the connection.
 *
 * A supervisor ends after its children, whatever ends it. One that is killed kills them. One that was started with
 * blitz_actor_opts.link ends when the actor that has started it fails; it drops other exit signals.
 */
#ifndef BLITZ_SUPERVISOR_H
#define BLITZ_SUPERVISOR_H

#include "blitz/actor.h"
#include "blitz/dump.h"

BLITZ_BEGIN_DECLS

typedef enum blitz_strategy {
    BLITZ_ONE_FOR_ONE,  /* restart the child that ended */
    BLITZ_ONE_FOR_ALL,  /* end all others, then restart all */
    BLITZ_REST_FOR_ONE, /* end those started after it, then restart it and those */
    BLITZ_DYNAMIC       /* as BLITZ_ONE_FOR_ONE; children come and go, and end without an order */
} blitz_strategy;

typedef enum blitz_restart {
    BLITZ_PERMANENT, /* always */
    BLITZ_TRANSIENT, /* after a failure: not after BLITZ_EXIT_NORMAL or BLITZ_EXIT_SHUTDOWN */
    BLITZ_TEMPORARY  /* never: the child is forgotten */
} blitz_restart;

/* A child. A zero field means the default. */
typedef struct blitz_child_spec {
    const char *
        id; /* its name within the supervisor, shorter than BLITZ_NAME_BYTES_MAX; copied; unique, unless the supervisor is dynamic */
    const blitz_behaviour
        *behaviour; /* outlives the supervisor; NULL: the child is a supervisor, or has `start` */
    /* The plan of a child that is a supervisor. It outlives the parent, with all that it points to; or NULL. */
    const struct blitz_supervisor_plan *supervisor;
    const void *state; /* copied: each start begins with it; NULL: zeroes */
    const char *name;  /* registered at each start; copied; NULL: none */
    blitz_restart restart;
    blitz_duration
        shutdown; /* from the request to end until the kill; 0: 5 s, of a supervisor for ever */
    /*
     * Instead of a behaviour: a function that starts the child and links it with its caller, the supervisor. It returns 0 with the id
     * in *out, or a negative error. It may suspend; the supervisor's mailbox waits. A restart that it refuses counts as a failure of
     * the child: it is tried again after the pause of the plan, as long as there are not too many. blitz_node_child_start()
     * (blitz/node.h) starts a process of another node. No `state` and no `name`.
     */
    int (*start)(void *start_ctx, blitz_actor_id *out);
    void *start_ctx; /* outlives the supervisor */
} blitz_child_spec;

typedef struct blitz_supervisor_plan {
    blitz_strategy strategy;
    unsigned intensity;    /* restarts within `period` that are not too many; 0: 5; at most 1000 */
    blitz_duration period; /* 0: 10 s */
    /* The pause before a restart. It doubles while a child fails within `period` after the last one. 0: none. All children that the
     * strategy restarts wait for its end, except those that are ended or started by hand meanwhile */
    blitz_duration backoff;
    blitz_duration backoff_max;       /* the longest pause; 0: 30 s */
    const blitz_child_spec *children; /* started in this order; copied */
    size_t child_count;
} blitz_supervisor_plan;

/*
 * Start a supervisor and its children.
 * Owns:     copies *plan and the children; borrows their behaviours for its life, the options until return.
 * Suspends: never. Call from a task, or from any thread with a runtime in the options.
 * Returns:  0, -EINVAL (a bad child, or two with one id), and as blitz_actor_spawn(). A child whose `init` fails is a child that
 *           has failed. If a `start` fails, the supervisor ends. *out is written only on 0; NULL: not wanted.
 */
BLITZ_API BLITZ_MUST_USE int blitz_supervisor_spawn(const blitz_supervisor_plan *plan,
                                                    const blitz_actor_opts *opts,
                                                    blitz_actor_id *out);

/*
 * Add a child and start it.
 * Owns:     copies *child. *out is written on 0; NULL: not wanted.
 * Suspends: until the supervisor has answered, or until a cancel. Call from anywhere. A child that waits here when its supervisor
 *           ends it is killed at its `shutdown` deadline: do not call it from the `exit` of a child.
 * Returns:  0, -EEXIST (there is a child with that id), -EINVAL (a bad child), -ENOMEM, -ESRCH (no such supervisor), -EOPNOTSUPP (it
 *           is no supervisor), -EAGAIN (its mailbox is full, or the limit on tasks), -ESHUTDOWN, -ECANCELED (the supervisor may still
 *           do it), an error of the child's `start`.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_supervisor_start(blitz_actor_id supervisor,
                                                    const blitz_child_spec *child,
                                                    blitz_actor_id *out);

/*
 * End a child, without a restart. It is kept, and can be restarted; a temporary or dynamic one is forgotten. A child that calls it
 * for itself gets its answer first, and ends when its handler returns.
 * Owns:     borrows the id until return.
 * Suspends: as blitz_supervisor_start().
 * Returns:  0, -ENOENT (no such child), and as blitz_supervisor_start().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_supervisor_terminate(blitz_actor_id supervisor, const char *id);

/*
 * Start a child again that was ended by blitz_supervisor_terminate(), or that ended without a restart.
 * Owns:     borrows the id until return.
 * Suspends: as blitz_supervisor_start().
 * Returns:  0, -EBUSY (it runs), -ENOENT (no such child), and as blitz_supervisor_start().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_supervisor_restart(blitz_actor_id supervisor, const char *id);

/*
 * Forget a child that does not run.
 * Owns:     borrows the id until return.
 * Suspends: as blitz_supervisor_start().
 * Returns:  0, -EBUSY (it runs), -ENOENT (no such child), and as blitz_supervisor_start().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_supervisor_forget(blitz_actor_id supervisor, const char *id);

/*
 * Find a child.
 * Owns:     borrows the id until return. *out is written on 0.
 * Suspends: as blitz_supervisor_start().
 * Returns:  0 (the id is zeroed if the child does not run), -ENOENT (no such child), and as blitz_supervisor_start().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_supervisor_which(blitz_actor_id supervisor, const char *id,
                                                    blitz_actor_id *out);

typedef struct blitz_supervisor_counts {
    uint32_t children, active;
    uint64_t restarts; /* of its whole life */
} blitz_supervisor_counts;

/*
 * Count the children.
 * Owns:     *out is written on 0.
 * Suspends: as blitz_supervisor_start().
 * Returns:  0, and as blitz_supervisor_start().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_supervisor_count(blitz_actor_id supervisor,
                                                    blitz_supervisor_counts *out);

/*
 * Print a supervisor, its children, and theirs if they are supervisors.
 *
 *     supervisor one_for_one, 2 restarts
 *       store: "store" 12.3, idle, 0 messages, permanent
 *       pool: "supervisor" 16.1, waiting, 1 messages, permanent
 *         supervisor dynamic, 0 restarts
 *           worker: does not run, transient
 *
 * Owns:     borrows `ctx` until return. `print` gets each line as in blitz/dump.h, and must not call a supervisor. It runs in the
 *           supervisors.
 * Suspends: until the supervisors have answered; a cancel does not end it. Call from anywhere but an actor below the supervisor.
 * Returns:  0, -EINVAL (no `print`), -ESRCH (no such supervisor), or the negative number that `print` has returned.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_supervisor_print(blitz_actor_id supervisor, blitz_dump_fn print,
                                                    void *ctx);

BLITZ_END_DECLS

#endif
