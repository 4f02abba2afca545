/*
 * blitz/receive.h - a task that receives messages where it wants them, with a choice.
 *
 * An actor has handlers. A task that begins to receive is an actor without handlers: it has an id and a mailbox, and takes a
 * message in the middle of its code. A match function chooses. Messages that it does not want stay, in their order.
 *
 *     static bool is_answer(const blitz_msg *m, void *ctx)
 *     {
 *         return m->what == ANSWER && blitz_actor_id_equal(m->from, *(blitz_actor_id *)ctx);
 *     }
 *
 *     blitz_actor_id me;
 *     const blitz_msg *m;
 *     int rc = blitz_receiver_begin(NULL, &me);
 *     rc = blitz_actor_send(server, QUESTION, NULL, 0);              // m->from is our id
 *     rc = blitz_receive(is_answer, &server, &m, blitz_after(BLITZ_S));
 *
 * Messages of one sender stay in order. Exits that are trapped come as BLITZ_MSG_EXIT (blitz_actor_opts.trap_exit).
 *
 * A mailbox of more than 1000 messages is overload, as an actor's is (BLITZ_OVERLOAD_MUTE): senders are held back until 500 are left.
 * They are not held back while the task waits, for a message that it has not or for something else. A send to a mailbox of 100,000 messages returns
 * -EAGAIN.
 *
 * The end of the task is the end of its id: links and monitors are told, calls in the mailbox get -ESRCH. When the task has ended,
 * so has the id. The reason is BLITZ_EXIT_NORMAL, or BLITZ_EXIT_ERROR if the function of the task returned a negative number. In
 * the other direction, an end of the id (a stop, a kill, the exit of a link) cancels the task: its waits return -ECANCELED.
 * The id ends a moment after that cancel.
 *
 * Forked jobs of the task (blitz/fork.h) send with its id. A job that another worker runs can neither receive nor begin or end the
 * id. The task itself must not begin or end it while such a job is not joined.
 *
 * Such a task links, watches and traps exits as an actor does: blitz_actor_link(), blitz_actor_monitor(), blitz_actor_trap_exit(), a
 * spawn with `link` or `monitor`. News of an end, BLITZ_MSG_DOWN and BLITZ_MSG_EXIT, come to its mailbox like messages.
 * blitz_actor_unlink() and blitz_actor_demonitor() remove that from the mailbox. Without a trap, a failed link ends the id.
 */
#ifndef BLITZ_RECEIVE_H
#define BLITZ_RECEIVE_H

#include <stdbool.h>

#include "blitz/actor.h"
#include "blitz/api.h"
#include "blitz/binary.h"
#include "blitz/future.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/*
 * Give the calling task an id and a mailbox. blitz_actor_self() returns the id from here on, and messages that the task sends
 * carry it.
 * Owns:     borrows the options until return: `name` and `trap_exit` count; the others must be zero. *out is written on 0; NULL:
 *           not wanted.
 * Suspends: never. Call from a task.
 * Returns:  0, -EINVAL (not a task, an actor, or another option), -EEXIST (it receives already, or the name is taken), -EPERM (a
 *           forked job that another worker runs), -ENOMEM, and as blitz_actor_spawn().
 */
BLITZ_API BLITZ_MUST_USE int blitz_receiver_begin(const blitz_actor_opts *opts,
                                                  blitz_actor_id *out);

/*
 * End the id of the calling task before the task ends. Messages in the mailbox are dropped.
 * Owns:     copies *why; NULL: BLITZ_EXIT_NORMAL.
 * Suspends: until the id has ended; a cancel does not end it. Call from a task.
 * Returns:  0, -EINVAL (the task does not receive), -EBUSY (a future of this task receives), -EPERM (a forked job that another
 *           worker runs).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_receiver_end(const blitz_exit_reason *why);

/*
 * Receive the first message that matches. `match` sees each message without its cargo (blitz/binary.h), the oldest first, and each
 * once for a call. It must not wait, and must not receive.
 * A message reaches this mailbox through a small actor of its own. So a receive with a deadline that has passed finds the messages
 * that have arrived. A message that was sent a moment ago, also by this task itself, may need one more turn of a worker.
 * Owns:     *out is valid until the next receive of this task begins, or its id ends. Its cargo is as in a handler.
 * Suspends: until there is such a message, the deadline or a cancel. Call from a task.
 * Returns:  0, -ETIMEDOUT, -ECANCELED (also: the id has ended), -EINVAL (the task does not receive), -EBUSY (a future of this task
 *           receives), -EPERM (a forked job that another worker runs). *out is written only on 0. match NULL: any message.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_receive(bool (*match)(const blitz_msg *m, void *ctx), void *ctx,
                                           const blitz_msg **out, blitz_deadline until);

/* blitz_receive() as a future. Revocable: after a cancel no message was taken. */
typedef struct blitz_receive_future {
    blitz_future future;  /* to be awaited */
    int result;           /* when ready: as blitz_receive() */
    const blitz_msg *msg; /* when ready with 0: the message */
    bool (*match)(const blitz_msg *m, void *ctx);
    void *ctx;
    blitz_sync_future wait;
    void *inside[2];
} blitz_receive_future;

/*
 * Make a future that receives. Only the calling task may poll it, and one of its futures at a time.
 * Owns:     borrows `ctx` until it is ready or cancelled. `msg` is valid as *out of blitz_receive().
 * Suspends: never. Call from a task.
 */
BLITZ_API void blitz_receive_future_init(blitz_receive_future *f,
                                         bool (*match)(const blitz_msg *m, void *ctx), void *ctx);

BLITZ_END_DECLS

#endif
