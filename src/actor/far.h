/*
 * far.h - actors of other nodes. This folder sends to them by functions of src/node, which stands on it.
 */
#ifndef BZ_ACTOR_FAR_H
#define BZ_ACTOR_FAR_H

#include "actor/pressure.h"
#include "blitz/binary.h"
#include "park/request.h"

enum bz_far_relation { BZ_FAR_LINK, BZ_FAR_UNLINK, BZ_FAR_MONITOR, BZ_FAR_DEMONITOR };

struct bz_peer;
struct bz_frame;

/* A send to another node, which may wait for room in the queue of its connection: a request, and what it sends. */
struct bz_far_sending {
    struct bz_request request;
    struct bz_peer *peer;   /* with a reference; constant */
    struct bz_frame *frame; /* NULL: it is in the queue */
};

struct bz_ticket;

/* A call of an actor of another node, in the memory of its caller. */
struct bz_far_call {
    struct bz_list
        in; /* of the peer's connection, which ends the call if it goes; guarded by the peer's lock */
    struct bz_ticket *ticket; /* constant, as the next one */
    struct bz_peer *peer;     /* with a reference */
};

struct bz_far_ops {
    /* Make the frame of a message. Of the cargo it shares the binary. 0: the caller initializes the waiter and drives the request; each
     * time that is done, `next` says whether the send is; then `end`. Else -ESRCH (no such node any more), -EOPNOTSUPP (a message
     * without a term), -EMSGSIZE, -ENOMEM. */
    int (*begin)(struct bz_far_sending *s, blitz_actor_id to, uint32_t what, const void *data,
                 size_t size, const blitz_cargo *cargo);
    /* The request is done. 0: it is sent. BZ_MET_WAIT: drive the request again. Else it cannot be sent. */
    int (*next)(struct bz_far_sending *s);
    /* The same for a caller that does not wait, instead of the request. 0, -EAGAIN (no room), or as `next`. */
    int (*try_now)(struct bz_far_sending *s);
    void (*end)(struct bz_far_sending *s);
    /* Open a ticket and send a call. It does not wait for room. 0: the caller waits for c->ticket; then `end_call`. Else as `begin`,
     * -EAGAIN (too much waits for that connection). */
    int (*begin_call)(struct bz_far_call *c, blitz_actor_id to, uint32_t what, const void *data,
                      size_t size, const blitz_cargo *cargo);
    /* rc 0: the ticket is answered. Take the answer, as blitz_actor_call_with() returns it. Else the caller has left; returns rc. Closes
     * the ticket. */
    int (*end_call)(struct bz_far_call *c, blitz_actor_id to, uint32_t what, int rc, void *reply,
                    size_t reply_size, blitz_arrival *got);
    /* Open a ticket and ask to be told of the end of an actor. As begin_call; then `end_join`: rc 0: the ticket is answered. Writes *why and
     * returns 0, or -ESRCH (it had ended before). Else the caller has left; returns rc. */
    int (*begin_join)(struct bz_far_call *c, blitz_actor_id to);
    int (*end_join)(struct bz_far_call *c, blitz_actor_id to, int rc, blitz_exit_reason *why);
    /* `me`, of this process, has begun or ended its side of a relation. 0; on an error there is none: -ESRCH, -ENOMEM, -EOPNOTSUPP (me
     * is of another runtime than the node). */
    int (*relate)(enum bz_far_relation what, blitz_actor_id me, blitz_actor_id other, uint64_t ref);
    /* `me`, which is linked to `far`, has ended: tell it why. */
    void (*ended)(blitz_actor_id me, blitz_actor_id far, const blitz_exit_reason *why);
    /* Send an exit signal. */
    int (*exit)(blitz_actor_id me, blitz_actor_id other, const blitz_exit_reason *why);
};

/* The first node of the process sets the functions; they stay. */
void bz_far_set(const struct bz_far_ops *ops);

/* Send to an actor of another node: id.node is not 0. As bz_send(), or BZ_MET_WAIT. */
BZ_MUST_USE int bz_far_push(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                            const blitz_cargo *cargo, blitz_reply_to reply, enum bz_send_how how);
/* The same, and wait for room until then. */
BZ_MUST_USE int bz_far_send(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                            const blitz_cargo *cargo, blitz_deadline until);
/* The same for a future, as the functions above. After a `begin` that returned 0 an `end` must follow. */
BZ_MUST_USE int bz_far_begin(struct bz_far_sending *s, blitz_actor_id to, uint32_t what,
                             const void *data, size_t size, const blitz_cargo *cargo);
/* Poll it. True: *rc is the result. */
BZ_MUST_USE bool bz_far_poll(struct bz_far_sending *s, const blitz_waker *waker, int *rc);
void bz_far_end_send(struct bz_far_sending *s);
/* Wait for it on a stack. It initializes the waiter. */
BZ_MUST_USE int bz_far_wait(struct bz_far_sending *s, blitz_deadline until);

/* As the functions above. -ESRCH: there was never a node. */
BZ_MUST_USE int bz_far_begin_call(struct bz_far_call *c, blitz_actor_id to, uint32_t what,
                                  const void *data, size_t size, const blitz_cargo *cargo);
int bz_far_end_call(struct bz_far_call *c, blitz_actor_id to, uint32_t what, int rc, void *reply,
                    size_t reply_size, blitz_arrival *got);
BZ_MUST_USE int bz_far_begin_join(struct bz_far_call *c, blitz_actor_id to);
int bz_far_end_join(struct bz_far_call *c, blitz_actor_id to, int rc, blitz_exit_reason *why);
BZ_MUST_USE int bz_far_relate(enum bz_far_relation what, blitz_actor_id me, blitz_actor_id other,
                              uint64_t ref);
void bz_far_ended(blitz_actor_id me, blitz_actor_id other, const blitz_exit_reason *why);
BZ_MUST_USE int bz_far_end(blitz_actor_id me, blitz_actor_id other, const blitz_exit_reason *why);

#endif
