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
 * A handler may fork jobs (blitz/fork.h). They send and call with the actor's id. A job that another worker runs is no actor otherwise:
 * it waits where the actor would be muted, and what is to be called from an actor returns -EINVAL there. The order of messages from
 * several jobs is not defined.
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
 * | muted     | has sent to an overloaded actor                  | room there, a signal, the time   |
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
#include "blitz/heap_type.h"
#include "blitz/runtime.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

enum {
    BLITZ_MSG_BYTES_MAX = 64,  /* the largest payload that is copied; blitz/binary.h has more */
    BLITZ_EXIT_TEXT_MAX = 48,  /* of an exit reason, with the end */
    BLITZ_NAME_BYTES_MAX = 32, /* of a name or a group, with the end */
    BLITZ_ACTOR_STOP = 1,      /* a handler returns it: the actor ends, normally */
    BLITZ_ACTOR_STATE_MAX = 1 << 20 /* the largest state */
};

/* Messages of the runtime. Programs use smaller numbers. */
#define BLITZ_MSG_DOWN 0xffffff01u /* data is a blitz_down */
#define BLITZ_MSG_EXIT \
    0xffffff02u /* data is a blitz_down, without a ref: a link has ended, and is trapped */
#define BLITZ_MSG_TERM 0xffffff03u /* binary is a term of another node: blitz/node.h */
#define BLITZ_MSG_NODE 0xffffff04u /* data is a blitz_node_event: blitz/node.h */

/* The size of a message that a handler takes in any size. */
#define BLITZ_ANY_SIZE 0xffffffffu

/*
 * The id of an actor. Copy it freely: it holds no reference. A zeroed id is no actor. Ids of ended actors are never used again.
 * Any thread may use an id at any time, also while the runtime of the actor is shut down and released, and later: -ESRCH.
 */
typedef struct blitz_actor_id {
    uint32_t index, generation;
    uint32_t node;     /* 0: this process; else a number of blitz/node.h */
    uint32_t creation; /* which runtime of this process, or which life of the node */
} blitz_actor_id;

/* Where the reply to a call goes. Copy it freely; it may be answered later, by another actor or by any thread, once. */
typedef struct blitz_reply_to {
    uint32_t index, generation, creation; /* generation 0: not a call */
} blitz_reply_to;

typedef struct blitz_binary blitz_binary;       /* blitz/binary.h */
typedef struct blitz_reference blitz_reference; /* blitz/reference.h */

/* A message, for its handler. Valid until the handler returns. */
typedef struct blitz_msg {
    uint32_t what;
    uint32_t size;
    const void *data;     /* aligned for any type */
    blitz_actor_id from;  /* the actor that sent it; zeroed: no actor */
    blitz_reply_to reply; /* of a call */
    blitz_binary *binary; /* that it carries; NULL: none. Shared: do not write to it */
    void *block;          /* that was moved to this actor; NULL: none. See blitz_msg_take() */
} blitz_msg;

/* ---- reasons ---- */

typedef enum blitz_exit_kind {
    BLITZ_EXIT_NORMAL, /* a handler returned BLITZ_ACTOR_STOP */
    BLITZ_EXIT_SHUTDOWN, /* it was asked to end: blitz_actor_stop(), a supervisor, the end of the runtime */
    BLITZ_EXIT_KILLED,      /* blitz_actor_kill() */
    BLITZ_EXIT_ERROR,       /* a handler or `init` failed, with `code` */
    BLITZ_EXIT_NOPROC,      /* there was no such actor */
    BLITZ_EXIT_UNREACHABLE, /* nothing held it any more: blitz/reference.h */
    BLITZ_EXIT_NOCONNECTION /* the connection to its node has gone: blitz/node.h */
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
    uint32_t
        size; /* of the payload; BLITZ_ANY_SIZE: any. A message of another size is dropped; a call returns -EOPNOTSUPP */
    int (*fn)(void *state, const blitz_msg *m);
} blitz_handler;

/* The policies of an actor that is overloaded: its mailbox is longer than `mailbox_high`. */
typedef enum blitz_overload {
    /* Hold the sender back until the mailbox has half that length. An actor that sends is muted: it handles no further
     * message meanwhile. Other senders wait */
    BLITZ_OVERLOAD_MUTE,
    BLITZ_OVERLOAD_DROP_NEWEST, /* drop the message. A call returns -EAGAIN */
    BLITZ_OVERLOAD_DROP_OLDEST, /* the actor drops its oldest messages, after each turn. Their calls return -EAGAIN */
    BLITZ_OVERLOAD_FAIL /* the send returns -EAGAIN */
} blitz_overload;

/* A change from an earlier version of a behaviour: blitz/upgrade.h. */
typedef struct blitz_change {
    uint32_t from;
    /* Make *new_state, which is zeroed, of *old_state. 0: what the old state owned is the new one's now, and `drop` is not called
     * for the old one. Else the old state must be as it was, and nothing frees what *new_state holds. Its faults are not trapped. */
    int (*code_change)(void *old_state, uint32_t old_version, void *new_state);
} blitz_change;

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
    size_t
        mailbox_high; /* a longer mailbox is overload; 0: 1000. Up to 16 messages are never too many */
    blitz_overload policy;
    /* The type of the state: the actor has a private heap, and the pointers of its state are the roots (blitz/actor_heap.h) */
    blitz_type *state_type;
    size_t heap_max; /* the bytes of its objects; past them it ends with "no_memory"; 0: no limit */
    /* Check the heap after each message, and collect; for tests. The debug library also aborts on a pointer into the heap in a
     * message, a reply or the state of a new actor. */
    bool heap_verify;
    /*
     * A fault inside init or a handler ends the actor and not the process: SIGSEGV, SIGBUS, SIGFPE, SIGILL, or an overflow of the
     * stack. Its reason has the code -EFAULT, and a text with the signal, the address and the instruction; the log has the
     * callers. Links, monitors and supervisors act as for any other error, and the private heap is freed.
     *
     * A fault is trapped only if it is in code of the program, and so are all callers up to the handler, each with unwind tables.
     * Else the process dies of it, as without this field:
     *   - in the C library, the loader, an allocator or blitz, and in a callback of theirs;
     *   - while a fork, a scope or a wait of the actor is open, or it holds a mutex or an rwlock of blitz;
     *   - between blitz_preempt_pause() and blitz_preempt_resume();
     *   - in a forked job that another worker runs, and in other tasks.
     *
     * The runtime cannot see these. You have to answer for them:
     *   - A mutex of the C library or of another library that the handler held stays locked.
     *   - Memory of malloc(), descriptors and references that only its frames knew are lost.
     *   - A task, thread or operation that the handler has begun and not awaited may still use the handler's frames.
     *   - The fault may come late: a wild write before it may have damaged the state of others.
     *
     * `exit` and `drop` are called behind a fault. They find the state as the fault has left it, perhaps half-changed. A fault in
     * them is trapped as well: it ends the function, and becomes the reason if there was no fault before.
     *
     * The handlers of these signals are installed by the first spawn of such a behaviour, until its runtime ends. They call those
     * that the program had installed before, for all faults that are not trapped. A program that installs its own later must
     * call the earlier ones. A message costs a few tens of instructions more. On x86_64 only: elsewhere, and in a static program without the
     * unwinder of its compiler (docs/actors.md), a spawn returns -EOPNOTSUPP.
     */
    bool trap_faults;
    /* The actor ends when nothing can reach it: blitz/reference.h. It needs a state_type. */
    bool end_unreachable;
    /* The messages that have a term (blitz/term_struct.h). A term of another node that is one of them becomes that message. */
    const struct blitz_term_message *messages;
    size_t message_count;
    /* Not 0: its actors can be upgraded to another behaviour of this name (blitz/upgrade.h). The runtime then uses a copy */
    uint32_t version;
    const blitz_change *changes; /* one for each earlier version that an actor may have */
    size_t change_count;
} blitz_behaviour;

/* Begin a handler NAME for messages of a type: a function body follows, with `state`, `data` and `m`. It need not use them. */
#define BLITZ_HANDLER(name, state_type, data_type)                                       \
    static int name##_of_(state_type *state, data_type const *data, const blitz_msg *m); \
    static int name(void *state, const blitz_msg *m)                                     \
    {                                                                                    \
        return name##_of_((state_type *)state, (data_type const *)m->data, m);           \
    }                                                                                    \
    static int name##_of_(BLITZ_MAYBE_UNUSED state_type *state,                          \
                          BLITZ_MAYBE_UNUSED data_type const *data,                      \
                          BLITZ_MAYBE_UNUSED const blitz_msg *m)

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
    bool link;         /* link the calling actor, or the task that receives, with the new one */
    bool trap_exit;    /* exits of links are messages */
    uint64_t *monitor; /* the caller, likewise, watches the new one; the ref is stored here */
    blitz_reference **reference; /* a reference to the new one is stored here: blitz/reference.h */
} blitz_actor_opts;

/*
 * Start an actor.
 * Owns:     copies *state, state_bytes of it; NULL: zeroes. Borrows the behaviour while ids of the actor are
 *           used, the options until return.
 * Suspends: never. Call from a task, or from any thread with a runtime in the options.
 * Returns:  0, -EINVAL (no runtime; a state or a name too large; a state_type of another size than the state; link or monitor outside
 *           an actor; a reference without end_unreachable, or that without a state_type), -ENOMEM, -EEXIST (the name is taken),
 *           -ESHUTDOWN, -EAGAIN (the limit on tasks), -EOPNOTSUPP (trap_faults), -ECANCELED (link or monitor by a task whose id has
 *           ended). *out is written only on 0; NULL: not wanted.
 */
BLITZ_API BLITZ_MUST_USE int blitz_actor_spawn(const blitz_behaviour *behaviour, const void *state,
                                               const blitz_actor_opts *opts, blitz_actor_id *out);

/*
 * The id of the calling actor, or of the calling task if it receives (blitz/receive.h). Their forked jobs have the same one.
 * Suspends: never. Call from anywhere.
 * Returns:  the id; zeroed if the caller is neither.
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
 * Suspends: not in an actor, which may be muted after its handler (BLITZ_OVERLOAD_MUTE). Other callers wait while the receiver
 *           is overloaded and does not itself wait in a handler, or until a cancel. Call from anywhere.
 * Returns:  0 (it is in the mailbox, or was dropped as the policy says), -ESRCH (the actor has ended), -EAGAIN (its mailbox is
 *           full, or BLITZ_OVERLOAD_FAIL), -EINVAL (size is over BLITZ_MSG_BYTES_MAX, or `what` is the runtime's), -ENOMEM,
 *           -ECANCELED (nothing was sent).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_actor_send(blitz_actor_id to, uint32_t what, const void *data,
                                              size_t size);

/*
 * Send a message, and wait no longer than until a deadline.
 * Owns:     copies `size` bytes of *data.
 * Suspends: as blitz_actor_send(), or until the deadline. Call from anywhere.
 * Returns:  as blitz_actor_send(), or -ETIMEDOUT (nothing was sent).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_actor_send_until(blitz_actor_id to, uint32_t what,
                                                    const void *data, size_t size,
                                                    blitz_deadline until);

/* blitz_actor_send() as a future. Revocable: nothing was sent. */
typedef struct blitz_actor_send_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: as blitz_actor_send() */
    void *inside[20];
} blitz_actor_send_future;

/*
 * Make a future that sends. The message is sent by a poll, the first if the receiver is not overloaded.
 * Owns:     borrows *data until the future is ready or cancelled.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_actor_send_future_init(blitz_actor_send_future *f, blitz_actor_id to,
                                            uint32_t what, const void *data, size_t size);

/*
 * Send a message, if the receiver is not overloaded. The calling actor is not muted.
 * Owns:     copies `size` bytes of *data.
 * Suspends: never. Call from anywhere.
 * Returns:  as blitz_actor_send(); -EAGAIN also if that would wait or mute.
 */
BLITZ_API BLITZ_MUST_USE int blitz_actor_try_send(blitz_actor_id to, uint32_t what,
                                                  const void *data, size_t size);

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
 * Send a message and wait for its reply. A handler may return without a reply, so that another actor or thread replies later. From
 * then on the end of the actor ends the call only if the handler has called blitz_actor_reply_keep(). Otherwise a call without a reply
 * waits until its deadline.
 * Owns:     copies `size` bytes of *data; borrows *reply until return.
 * Suspends: until the reply, the end of the actor, the deadline or a cancel. Call from anywhere.
 * Returns:  the size of the reply, 0 or more, of which at most reply_size bytes are in *reply; -ESRCH (the actor has ended),
 *           -EOPNOTSUPP (it has no handler for such a message), -ETIMEDOUT, -ECANCELED (a later reply is dropped), -EAGAIN, -EINVAL,
 *           -ENOMEM as blitz_actor_send(); or the negative number of blitz_actor_reply_error(). Of an actor of another node also
 *           -ENOTCONN and -EPROTO: blitz_node_call_name() says when.
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
 * Keep a reply token beyond the handler, or beyond the next receive. If the calling actor ends before the answer, the caller gets
 * -ESRCH.
 * Suspends: never. Call from a task that is an actor or receives.
 * Returns:  0, -EINVAL (not an actor, or not a call), -ECANCELED (the id of the task has ended), -ENOMEM.
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
 * Returns:  0; -ESRCH (it had ended before, and its reason is not known), -ETIMEDOUT, -ECANCELED, -ENOMEM. Of an actor of another node:
 *           0 with BLITZ_EXIT_NOCONNECTION if the connection goes or cannot be made; -EAGAIN (too much waits for that connection).
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

/* ---- links and monitors: for actors, and for tasks that receive (blitz/receive.h) ---- */

/*
 * Link the calling actor with another. When one of them ends, the other gets an exit signal with the same reason. If there is
 * no such actor, the caller gets the signal, with BLITZ_EXIT_NOPROC.
 * Suspends: never. Call from a task that is an actor or receives.
 * Returns:  0, -EINVAL (not an actor, or itself), -ECANCELED (the id of the task has ended), -ENOMEM.
 */
BLITZ_API int blitz_actor_link(blitz_actor_id other);

/*
 * End a link. No exit signal of the other comes after it.
 * Suspends: never. Call from a task that is an actor or receives.
 * Returns:  0 (also if there was no link), -EINVAL (not an actor), -ECANCELED (the id of the task has ended).
 */
BLITZ_API int blitz_actor_unlink(blitz_actor_id other);

/*
 * Turn exit signals of links into messages BLITZ_MSG_EXIT, or back.
 * Suspends: never. Call from a task that is an actor or receives.
 * Returns:  what it was before; false if the caller is not an actor.
 */
BLITZ_API bool blitz_actor_trap_exit(bool traps);

/*
 * Watch an actor: when it ends, the caller gets one BLITZ_MSG_DOWN. If there is no such actor, it gets one at once.
 * Owns:     *ref is written on 0.
 * Suspends: never. Call from a task that is an actor or receives.
 * Returns:  0, -EINVAL (not an actor), -ECANCELED (the id of the task has ended), -ENOMEM.
 */
BLITZ_API int blitz_actor_monitor(blitz_actor_id other, uint64_t *ref);

/*
 * Stop watching. No BLITZ_MSG_DOWN of this monitor comes after it.
 * Suspends: never. Call from a task that is an actor or receives.
 * Returns:  0, -ESRCH (there is no such monitor: its message was handled or received), -EINVAL (not an actor), -ECANCELED (the id
 *           of the task has ended).
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
    BLITZ_ACTOR_MUTED,
    BLITZ_ACTOR_DEAD
} blitz_actor_state;

typedef struct blitz_actor_info {
    blitz_actor_state state; /* about: it may have changed */
    const char *behaviour;   /* its name; NULL: none */
    uint32_t mailbox;        /* messages that wait, about */
    uint64_t dropped;  /* messages that its policy has dropped. Without memory for the count: 0 */
    bool heap_is_late; /* a handler has allocated much and has not returned: nothing is collected */
} blitz_actor_info;

/*
 * Look at an actor. Nothing in it is stopped or walked.
 * Owns:     *out is written on 0.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH.
 */
BLITZ_API int blitz_actor_info_get(blitz_actor_id id, blitz_actor_info *out);

/* ---- quiet ---- */

/*
 * Wait until the actors of a runtime are quiet: at one moment during this call every actor was idle or dead. None was scheduled,
 * running, waiting in a handler, or muted; no message, signal or `init` was left to handle. So messages that the caller sent
 * before the call have been handled, and so have all messages that followed from them.
 *
 * These do not count: messages of blitz_actor_send_after() that are not due; messages that a task has in its inbox
 * (blitz/receive.h); fibers and threads that will send. If other threads send, the actors may be at work again on return.
 * Owns:     borrows the runtime; NULL: the caller's.
 * Suspends: until the actors are quiet, the deadline or a cancel. While a caller waits, each actor that comes to rest looks at
 *           one count for each thread of the runtime. Call from anywhere with a runtime, or from a task.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EDEADLK (the caller is an actor of that runtime), -EINVAL (no runtime).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_actors_wait_quiet(blitz_runtime *runtime, blitz_deadline until);

/* blitz_actors_wait_quiet() as a future. Revocable. */
typedef struct blitz_actors_wait_quiet_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: as blitz_actors_wait_quiet() */
    void *inside[10];
} blitz_actors_wait_quiet_future;

/*
 * Make a future that waits until the actors of a runtime are quiet, at a moment after its first poll.
 * Owns:     borrows the runtime until it is ready or cancelled; NULL: the caller's.
 * Suspends: never. Call from a task, or from any thread with a runtime.
 */
BLITZ_API void blitz_actors_wait_quiet_future_init(blitz_actors_wait_quiet_future *f,
                                                   blitz_runtime *runtime);

BLITZ_END_DECLS

#endif
