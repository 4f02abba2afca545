/*
 * blitz/actor.h - actors: state that only its messages touch.
 *
 * An actor has a state, a behaviour and a mailbox. It handles one message at a time, so its state needs no lock. A handler may
 * wait like any fiber; the mailbox waits with it.
 *
 *     enum { ADD, GET };
 *     struct counter { long sum; };
 *
 *     BLITZ_HANDLER(on_add, struct counter, int)
 *     {
 *         state->sum += *data;
 *         return 0;
 *     }
 *     BLITZ_HANDLER(on_get, struct counter, void)
 *     {
 *         return blitz_actor_reply(m->reply, &state->sum, sizeof state->sum);
 *     }
 *     static const blitz_handler handlers[] = {BLITZ_ON(ADD, int, on_add), BLITZ_ON_EMPTY(GET, on_get)};
 *     static const blitz_behaviour counter = {.name = "counter", .state_bytes = sizeof(struct counter),
 *                                             .handlers = handlers, .handler_count = 2};
 *     ...
 *     blitz_actor_id id;
 *     int rc = blitz_actor_spawn(&counter, NULL, NULL, &id);
 *     rc = blitz_actor_send(id, ADD, &(int){42}, sizeof(int));
 *     rc = blitz_actor_call(id, GET, NULL, 0, &sum, sizeof sum, blitz_after(BLITZ_S));
 *
 * Messages from one sender to one receiver arrive in order. They arrive once, or not at all if the receiver ends first.
 * Signals (exit, down, stop) overtake messages.
 *
 * An actor ends when a handler returns something else than 0, when it is stopped or killed, or when an actor that it is linked
 * to fails. Links and monitors tell others. docs/actors.md is the guide.
 *
 * | state     | the actor                                        | leaves by                        |
 * |-----------|--------------------------------------------------|----------------------------------|
 * | idle      | has no message                                   | a message, a signal              |
 * | scheduled | is in a run queue                                | its turn                         |
 * | running   | handles a message                                | the end of its turn, a wait      |
 * | waiting   | waits in a handler                               | the event, a deadline, a kill    |
 * | exiting   | calls `exit` and tells its links and monitors    | that is done                     |
 * | dead      | is gone: -ESRCH                                  | never                            |
 */
#ifndef BLITZ_ACTOR_H
#define BLITZ_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/runtime.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

enum {
    BLITZ_MSG_BYTES_MAX = 64,       /* the largest payload; it is copied */
    BLITZ_EXIT_TEXT_MAX = 48,       /* of an exit reason, with the end */
    BLITZ_NAME_BYTES_MAX = 32,      /* of a name or a group, with the end */
    BLITZ_ACTOR_STOP = 1,           /* a handler returns it: the actor ends, normally */
    BLITZ_ACTOR_STATE_MAX = 1 << 20 /* the largest state */
};

/* Messages of the runtime. Programs use smaller numbers. */
#define BLITZ_MSG_DOWN 0xffffff01u /* data is a blitz_down */
#define BLITZ_MSG_EXIT \
    0xffffff02u /* data is a blitz_down, without a ref: a link has ended, and is trapped */

/* The size of a message that a handler takes in any size. */
#define BLITZ_ANY_SIZE 0xffffffffu

/*
 * The id of an actor. Copy it freely: it holds no reference. A zeroed id is no actor. Ids of ended actors are never used again.
 */
typedef struct blitz_actor_id {
    uint32_t index, generation;
    uint32_t node;     /* 0: this process */
    uint32_t creation; /* which runtime of this process, or which life of the node */
} blitz_actor_id;

/* Where the reply to a call goes. Copy it freely; it may be answered later, by another actor or by any thread, once. */
typedef struct blitz_reply_to {
    uint32_t index, generation, creation; /* generation 0: not a call */
} blitz_reply_to;

/* A message, for its handler. Valid until the handler returns. */
typedef struct blitz_msg {
    uint32_t what;
    uint32_t size;
    const void *data;     /* aligned for any type */
    blitz_actor_id from;  /* the actor that sent it; zeroed: no actor */
    blitz_reply_to reply; /* of a call */
} blitz_msg;

/* ---- reasons ---- */

typedef enum blitz_exit_kind {
    BLITZ_EXIT_NORMAL, /* a handler returned BLITZ_ACTOR_STOP */
    BLITZ_EXIT_SHUTDOWN, /* it was asked to end: blitz_actor_stop(), a supervisor, the end of the runtime */
    BLITZ_EXIT_KILLED, /* blitz_actor_kill() */
    BLITZ_EXIT_ERROR,  /* a handler or `init` failed, with `code` */
    BLITZ_EXIT_NOPROC  /* there was no such actor */
} blitz_exit_kind;

typedef struct blitz_exit_reason {
    blitz_exit_kind kind;
    int code; /* of an error: a negative errno, or a number of the program's */
    char text[BLITZ_EXIT_TEXT_MAX]; /* of an error; may be empty */
} blitz_exit_reason;

/* The data of BLITZ_MSG_DOWN and BLITZ_MSG_EXIT. */
typedef struct blitz_down {
    uint64_t ref;       /* of the monitor */
    blitz_actor_id who; /* the actor that has ended */
    blitz_exit_reason reason;
} blitz_down;

/* ---- behaviours ---- */

/* A handler. 0: go on. BLITZ_ACTOR_STOP: end. Negative: fail with that code. */
typedef struct blitz_handler {
    uint32_t what;
    uint32_t size; /* of the payload; BLITZ_ANY_SIZE: any. A message of another size is dropped */
    int (*fn)(void *state, const blitz_msg *m);
} blitz_handler;

/* Constant while an actor of it is alive. A zero field means the default. */
typedef struct blitz_behaviour {
    const char *name; /* for dumps */
    size_t state_bytes;
    int (*init)(void *state); /* the first that the actor does; returns as a handler; or NULL */
    const blitz_handler *handlers;
    size_t handler_count;
    /* The last that the actor does, if init returned 0; or NULL. */
    void (*exit)(void *state, const blitz_exit_reason *why);
    /* Free what the state holds: after exit, and also if init failed; or NULL. */
    void (*drop)(void *value, void *ctx);
    void *ctx;          /* for drop */
    size_t mailbox_max; /* a send to a longer mailbox returns -EAGAIN; 0: 100,000 */
} blitz_behaviour;

/* Begin a handler NAME for messages of a type: a function body follows, with `state`, `data` and `m`. */
#define BLITZ_HANDLER(name, state_type, data_type)                                       \
    static int name##_of_(state_type *state, data_type const *data, const blitz_msg *m); \
    static int name(void *state, const blitz_msg *m)                                     \
    {                                                                                    \
        return name##_of_((state_type *)state, (data_type const *)m->data, m);           \
    }                                                                                    \
    static int name##_of_(state_type *state, data_type const *data, const blitz_msg *m)

/* An entry of the table of handlers: for a type; without a payload; for the runtime's own messages. */
#define BLITZ_ON(what, data_type, fn) \
    {                                 \
        what, sizeof(data_type), fn   \
    }
#define BLITZ_ON_EMPTY(what, fn) \
    {                            \
        what, 0, fn              \
    }

/* The options of a spawn. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_actor_opts {
    blitz_runtime *runtime; /* NULL: the runtime of the caller */
    const char *name;       /* registered before the actor runs; copied; NULL: none */
    bool link;              /* link the calling actor with the new one */
    bool trap_exit;         /* exits of links are messages */
    uint64_t *monitor;      /* the calling actor watches the new one; the ref is stored here */
} blitz_actor_opts;

/*
 * Start an actor.
 * Owns:     copies *state, state_bytes of it; NULL: zeroes. Borrows the behaviour while ids of the actor are
 *           used, the options until return.
 * Suspends: never. Call from a task, or from any thread with a runtime in the options.
 * Returns:  0, -EINVAL (no runtime; a state or a name too large; link or monitor outside an actor), -ENOMEM, -EEXIST (the name
 *           is taken), -ESHUTDOWN, -EAGAIN (the limit on tasks). *out is written only on 0; NULL: not wanted.
 */
BLITZ_API BLITZ_MUST_USE int blitz_actor_spawn(const blitz_behaviour *behaviour, const void *state,
                                               const blitz_actor_opts *opts, blitz_actor_id *out);

/*
 * The id of the calling actor.
 * Suspends: never. Call from anywhere.
 * Returns:  the id; zeroed if the caller is not an actor.
 */
BLITZ_API blitz_actor_id blitz_actor_self(void);

/*
 * True if the actor has not ended.
 * Suspends: never. Call from anywhere.
 * Returns:  true if it is alive; it may have ended on return.
 */
BLITZ_API bool blitz_actor_is_alive(blitz_actor_id id);

/*
 * True if two ids name the same actor.
 * Suspends: never. Call from anywhere.
 * Returns:  true if they do.
 */
static inline bool blitz_actor_id_equal(blitz_actor_id a, blitz_actor_id b)
{
    return a.index == b.index && a.generation == b.generation && a.node == b.node &&
           a.creation == b.creation;
}

/* ---- sending ---- */

/*
 * Send a message.
 * Owns:     copies `size` bytes of *data.
 * Suspends: never. Call from anywhere.
 * Returns:  0 (it is in the mailbox), -ESRCH (the actor has ended), -EAGAIN (its mailbox is full), -EINVAL (size is over
 *           BLITZ_MSG_BYTES_MAX, or `what` is the runtime's), -ENOMEM.
 */
BLITZ_API int blitz_actor_send(blitz_actor_id to, uint32_t what, const void *data, size_t size);

/*
 * Send a message at a point in time.
 * Owns:     copies `size` bytes of *data. *timer is written on 0; NULL: not wanted.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH, -EINVAL, -ENOMEM, as blitz_actor_send().
 */
BLITZ_API int blitz_actor_send_after(blitz_actor_id to, uint32_t what, const void *data,
                                     size_t size, blitz_deadline when, uint64_t *timer);

/*
 * Cancel a message of blitz_actor_send_after().
 * Suspends: never. Call from anywhere.
 * Returns:  0: it will not be sent. -ESRCH: it was sent or cancelled before.
 */
BLITZ_API int blitz_actor_timer_cancel(blitz_actor_id to, uint64_t timer);

/*
 * Send a message and wait for its reply.
 * Owns:     copies `size` bytes of *data; borrows *reply until return.
 * Suspends: until the reply, the end of the actor, the deadline or a cancel. Call from anywhere.
 * Returns:  the size of the reply, 0 or more, of which at most reply_size bytes are in *reply; -ESRCH (the actor has ended),
 *           -ETIMEDOUT, -ECANCELED (a later reply is dropped), -EAGAIN, -EINVAL, -ENOMEM as blitz_actor_send(); or the negative
 *           number of blitz_actor_reply_error().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_actor_call(blitz_actor_id to, uint32_t what, const void *data,
                                              size_t size, void *reply, size_t reply_size,
                                              blitz_deadline until);

/* blitz_actor_call() as a future. Revocable: after a cancel a later reply is dropped. */
typedef struct blitz_actor_call_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: as blitz_actor_call() */
    void *inside[20];
} blitz_actor_call_future;

/*
 * Make a future that calls. The message is sent by the first poll.
 * Owns:     borrows *data until the first poll, *reply until the future is ready or cancelled.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_actor_call_future_init(blitz_actor_call_future *f, blitz_actor_id to,
                                            uint32_t what, const void *data, size_t size,
                                            void *reply, size_t reply_size);

/*
 * Answer a call.
 * Owns:     copies `size` bytes of *data.
 * Suspends: never. Call from anywhere.
 * Returns:  0 (also if the caller has left: the reply is dropped), -EINVAL (size is over BLITZ_MSG_BYTES_MAX).
 */
BLITZ_API int blitz_actor_reply(blitz_reply_to to, const void *data, size_t size);

/*
 * Answer a call with an error.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EINVAL (error is not negative).
 */
BLITZ_API int blitz_actor_reply_error(blitz_reply_to to, int error);

/*
 * Keep a reply token beyond the handler. If the calling actor ends before the answer, the caller gets -ESRCH.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  0, -EINVAL (not an actor, or not a call), -ENOMEM.
 */
BLITZ_API int blitz_actor_reply_keep(blitz_reply_to to);

/* ---- ending ---- */

/*
 * Ask an actor to end, with reason BLITZ_EXIT_SHUTDOWN. It ends between two messages, before those in its mailbox.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH, -ENOMEM.
 */
BLITZ_API int blitz_actor_stop(blitz_actor_id id);

/*
 * End an actor, also one that waits: its waits return -ECANCELED. No handler runs after the current one, and exits are not
 * trapped.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH.
 */
BLITZ_API int blitz_actor_kill(blitz_actor_id id);

/*
 * Send an exit signal. A reason other than BLITZ_EXIT_NORMAL ends the actor, unless it traps exits; then it is a message. The
 * kind BLITZ_EXIT_KILLED is blitz_actor_kill().
 * Owns:     copies *why.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH, -ENOMEM.
 */
BLITZ_API int blitz_actor_exit_send(blitz_actor_id id, const blitz_exit_reason *why);

/*
 * Say why the calling actor ends, and end it: `return blitz_actor_exit(&why);` in a handler.
 * Owns:     copies *why.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  BLITZ_ACTOR_STOP; or a negative number, for the handler to return as well.
 */
BLITZ_API int blitz_actor_exit(const blitz_exit_reason *why);

/*
 * Fail with a code and a text: `return blitz_actor_fail(-EIO, "disk gone");` in a handler.
 * Owns:     copies the text.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  as blitz_actor_exit().
 */
BLITZ_API int blitz_actor_fail(int code, const char *text);

/*
 * Wait until an actor has ended.
 * Owns:     *why is written on 0; NULL: not wanted.
 * Suspends: until its end, the deadline or a cancel. Call from anywhere.
 * Returns:  0; -ESRCH (it had ended before, and its reason is not known), -ETIMEDOUT, -ECANCELED, -ENOMEM.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_actor_join(blitz_actor_id id, blitz_exit_reason *why,
                                              blitz_deadline until);

/* blitz_actor_join() as a future. Revocable. */
typedef struct blitz_actor_join_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: as blitz_actor_join() */
    void *inside[20];
} blitz_actor_join_future;

/*
 * Make a future that waits for the end of an actor.
 * Owns:     borrows *why until it is ready or cancelled; NULL: not wanted.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_actor_join_future_init(blitz_actor_join_future *f, blitz_actor_id id,
                                            blitz_exit_reason *why);

/* ---- links and monitors: for actors ---- */

/*
 * Link the calling actor with another. When one of them ends, the other gets an exit signal with the same reason. If there is
 * no such actor, the caller gets the signal, with BLITZ_EXIT_NOPROC.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  0, -EINVAL (not an actor, or itself), -ENOMEM.
 */
BLITZ_API int blitz_actor_link(blitz_actor_id other);

/*
 * End a link. No exit signal of the other comes after it.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  0 (also if there was no link), -EINVAL (not an actor), -ENOMEM.
 */
BLITZ_API int blitz_actor_unlink(blitz_actor_id other);

/*
 * Turn exit signals of links into messages BLITZ_MSG_EXIT, or back.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  what it was before; false if the caller is not an actor.
 */
BLITZ_API bool blitz_actor_trap_exit(bool traps);

/*
 * Watch an actor: when it ends, the caller gets one BLITZ_MSG_DOWN. If there is no such actor, it gets one at once.
 * Owns:     *ref is written on 0.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  0, -EINVAL (not an actor), -ENOMEM.
 */
BLITZ_API int blitz_actor_monitor(blitz_actor_id other, uint64_t *ref);

/*
 * Stop watching. No BLITZ_MSG_DOWN of this monitor comes after it.
 * Suspends: never. Call from a task that is an actor.
 * Returns:  0, -ESRCH (there is no such monitor: its message has come), -EINVAL (not an actor).
 */
BLITZ_API int blitz_actor_demonitor(uint64_t ref);

/* ---- names ---- */

/*
 * Give an actor a name. An actor may have several; they end with it.
 * Owns:     copies the name.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EEXIST (the name is taken), -ESRCH, -EINVAL (empty or too long), -ENOMEM.
 */
BLITZ_API int blitz_actor_register(const char *name, blitz_actor_id id);

/*
 * Take a name away.
 * Owns:     borrows the name until return, and the runtime; NULL: the caller's.
 * Suspends: never. Call from a task, or from any thread with a runtime.
 * Returns:  0, -ESRCH (there is no such name), -EINVAL (no runtime).
 */
BLITZ_API int blitz_actor_unregister(blitz_runtime *runtime, const char *name);

/*
 * Find the actor with a name.
 * Owns:     borrows the name until return, and the runtime; NULL: the caller's.
 * Suspends: never. Call from a task, or from any thread with a runtime.
 * Returns:  its id; zeroed if there is none.
 */
BLITZ_API blitz_actor_id blitz_actor_whereis(blitz_runtime *runtime, const char *name);

/* ---- looking ---- */

typedef enum blitz_actor_state {
    BLITZ_ACTOR_IDLE,
    BLITZ_ACTOR_SCHEDULED,
    BLITZ_ACTOR_RUNNING,
    BLITZ_ACTOR_WAITING,
    BLITZ_ACTOR_DEAD
} blitz_actor_state;

typedef struct blitz_actor_info {
    blitz_actor_state state; /* about: it may have changed */
    const char *behaviour;   /* its name; NULL: none */
    uint32_t mailbox;        /* messages that wait, about */
} blitz_actor_info;

/*
 * Look at an actor. Nothing in it is stopped or walked.
 * Owns:     *out is written on 0.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH.
 */
BLITZ_API int blitz_actor_info_get(blitz_actor_id id, blitz_actor_info *out);

BLITZ_END_DECLS

#endif
