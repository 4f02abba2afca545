/*
 * node.h - a node inside: its peers, their queues and connections. node.c has the design.
 */
#ifndef BZ_NODE_H
#define BZ_NODE_H

#include "actor/actors.h"
#include "actor/far.h"
#include "base/alloc.h"
#include "base/list.h"
#include "blitz/event.h"
#include "blitz/node.h"
#include "blitz/notify.h"
#include "blitz/task.h"
#include "blitz/tcp.h"
#include "node/control.h"
#include "node/handshake.h"
#include "os/lock.h"
#include "wait/waker.h"

struct bz_session;

/* Bytes on their way to a peer: a frame with its length. */
struct bz_frame {
    struct bz_frame *next;
    size_t bytes;
    bool is_message; /* it counts as sent or lost */
    struct bz_list
        *call; /* of struct bz_far_call: it enters the list of the peer with this frame; or NULL */
    unsigned char data[];
};

enum { BZ_ANSWER_LISTS = 16, BZ_ANSWERS_MAX = 1 << 16 };

enum bz_peer_state {
    BZ_PEER_DOWN,    /* no connection */
    BZ_PEER_PENDING, /* we connect: session is that */
    BZ_PEER_UP       /* session is the connection */
};

/* Another node that a node of this process knows. It stays until the node stops: peers.c. */
struct bz_peer {
    blitz_node *node;
    uint32_t number; /* constant, as the next ones */
    uint32_t hash;
    uint16_t bytes;
    char name[BLITZ_NODE_NAME_MAX];
    uint32_t refs; /* guarded by the lock of peers.c */
    struct bz_lock lock;
    enum bz_peer_state state; /* guarded by lock, as the next ones */
    struct bz_session *session;
    uint32_t attempts; /* connects that have ended */
    uint32_t serial;   /* connections that have ended, or were not made */
    int error;         /* of the last one */
    struct bz_frame *first, *last;
    size_t queued;          /* bytes in the queue */
    size_t promised;        /* bytes of futures that were granted room and have not been polled */
    struct bz_list waiters; /* senders that wait for room: struct bz_far_sending */
    blitz_notify work;      /* for the writer: the queue has a frame, or its session is over */
    struct bz_list changes; /* for those that wait for a change of the connection: change.c */
    uint32_t attached;      /* sessions that were the connection, and have not told their end */
    /* Of the connection that is there: its end takes them. Guarded by lock. */
    struct bz_list calls; /* our calls that wait for an answer: struct bz_far_call */
    struct bz_list answers[BZ_ANSWER_LISTS]; /* answers that we owe: answers.c */
    uint32_t answer_count;
};

/* One connection, from its first byte to its end: a task that reads, and one that writes. */
struct bz_session {
    struct bz_list all;   /* of its node; guarded by the node's lock */
    blitz_task *task;     /* that reads; a handle: session.c I4 */
    blitz_node *node;     /* constant */
    struct bz_peer *peer; /* NULL: not known yet; with a reference */
    blitz_tcp *tcp;       /* its task's; constant while the writer runs */
    bool is_ours;         /* we have connected; constant */
    bool replaces;        /* the peer says that the connection before is gone; its task's */
    bool is_over;         /* guarded by the lock of the peer */
    bool gives_way; /* the peer's connect to us goes on instead; guarded by the lock of the peer */
    bool is_committed;          /* the peer may believe that it is up; likewise */
    bool is_attached;           /* it is or was the connection; likewise */
    bool is_told;               /* the watcher knows of it; its task's */
    uint32_t serial;            /* of the connection, once attached; its task's */
    bool is_cancelled;          /* by the stop of the node; guarded by its lock */
    struct bz_signal *farewell; /* to the relay; guarded by the lock of the peer, once it has one */
    struct bz_hello hello;      /* the peer's; its task's */
};

struct blitz_node {
    uint32_t refs;         /* of its user, and of each peer; guarded by the lock of peers.c */
    struct bz_runtime *rt; /* constant, as the next ones */
    blitz_allocator alloc;
    blitz_node_opts opts; /* complete: no zero fields but NULL pointers */
    void *copies;         /* the places and names of opts, in one block */
    size_t copies_bytes;
    uint16_t bytes;
    char name[BLITZ_NODE_NAME_MAX];
    char cookie[BLITZ_NODE_COOKIE_MAX];
    uint32_t creation; /* written before the listener accepts; constant */
    uint16_t port;
    /* bz_session_connect(): the queue and the senders are below sessions, and call them by this alone. */
    int (*connect)(struct bz_peer *p, struct bz_frame *f);
    blitz_tcp_listener *listener;
    blitz_tcp *epmd; /* the connection that keeps our name there; the keeper's */
    blitz_task *acceptor, *keeper;
    struct bz_lock lock;
    bool is_stopping;        /* guarded by lock */
    struct bz_list sessions; /* guarded by lock */
    blitz_actor_id relay;    /* relations.c; constant */
    blitz_event is_alone;    /* the relay has ended */
    struct bz_signal *last;  /* ends the relay, if there is no memory for a message */
    bz_atomic(uint64_t) unlinks;
    uint32_t running; /* their tasks; guarded by lock */
    blitz_event idle; /* set when the node stops and none is running */
    bz_atomic(uint64_t) sent, received, dropped, lost, refused, broken, registered;
};

/* Count an event of a node, for blitz_node_info. */
static inline void bz_node_count(bz_atomic(uint64_t) *what)
{
    bz_fetch_add_relaxed(what, 1); /* relaxed: statistics */
}

static inline void bz_peer_lock(struct bz_peer *p)
{
    bz_lock_take(&p->lock, bz_os_here());
}

static inline void bz_peer_unlock(struct bz_peer *p)
{
    bz_lock_drop(&p->lock, bz_os_here());
}

/* ---- peers.c ---- */

/* Add a reference, or release one. The last one frees the node. */
void bz_node_ref(blitz_node *n);
void bz_node_unref(blitz_node *n);
/* Use the runtime of the node for a moment: the stop waits for the leave. False: the node stops. */
BZ_MUST_USE bool bz_node_enter(blitz_node *n);
void bz_node_leave(blitz_node *n);
/* True if the node may connect to one of that name, and accept it. */
bool bz_node_allows(const blitz_node *n, const char *name);

/* The peer with that number, with a reference; NULL: none any more. */
struct bz_peer *bz_peer_find(uint32_t number);
/* The peer with that name, with a reference; makes one if `makes`. 0, -ESRCH, -ENFILE, -ENOMEM. */
BZ_MUST_USE int bz_peer_get(blitz_node *n, const char *name, size_t bytes, bool makes,
                            struct bz_peer **out);
struct bz_peer *bz_peer_ref(struct bz_peer *p);
/* NULL is ignored. */
void bz_peer_unref(struct bz_peer *p);
/* Take a peer of the node out of the table, with the reference of its place; NULL: there is none from *at on. */
struct bz_peer *bz_peer_take(const blitz_node *n, uint32_t *at);
uint32_t bz_peers_count(blitz_node *n, uint32_t *up);

/* ---- outbox.c: the queue of a peer ---- */

/* Make a frame: `fill` puts the control message and the payload, each with its version byte, and may be called twice. */
BZ_MUST_USE int bz_frame_make(blitz_node *n, int (*fill)(blitz_term_out *out, void *ctx), void *ctx,
                              bool is_message, struct bz_frame **out);
/* The same for two frames in one: `fill` calls bz_frame_split() between them, whose result is in *split. */
BZ_MUST_USE int bz_frame_make_two(blitz_node *n, int (*fill)(blitz_term_out *out, void *ctx),
                                  void *ctx, const size_t *split, struct bz_frame **out);
size_t bz_frame_split(blitz_term_out *out);
void bz_frame_free(blitz_node *n, struct bz_frame *f);
/*
 * Queue a frame, connect if there is no connection, and wait for room. It takes the frame in any case. 0, -ETIMEDOUT, -ECANCELED; -ESRCH
 * (the node stops); an error of a session that cannot be started.
 */
BZ_MUST_USE int bz_peer_send(struct bz_peer *p, struct bz_frame *f, blitz_deadline until);
/* The parts of such a send: far.h. The first takes the reference and the frame. */
void bz_outbox_begin(struct bz_far_sending *s, struct bz_peer *p, struct bz_frame *f);
BZ_MUST_USE int bz_outbox_next(struct bz_far_sending *s);
BZ_MUST_USE int bz_outbox_try(struct bz_far_sending *s);
void bz_outbox_end(struct bz_far_sending *s);
/* The queue is short, or gone: let senders go on. Under no lock. */
void bz_peer_serve(struct bz_peer *p);
/* Queue a message, connect if there is no connection, and do not wait: there is room up to queue_max. It takes the frame. 0, -EAGAIN, or
 * as bz_peer_send(). */
BZ_MUST_USE int bz_peer_send_now(struct bz_peer *p, struct bz_frame *f);
/* Connect if there is no connection, and say which one it is. It does not wait. 0, or as bz_session_connect(). */
BZ_MUST_USE int bz_peer_connected(struct bz_peer *p, uint32_t *serial);
/* Queue a frame of the node's own for that connection alone. It takes the frame. 0, -ENOTCONN, -EOVERFLOW. */
BZ_MUST_USE int bz_peer_send_in(struct bz_peer *p, struct bz_frame *f, uint32_t serial);
/* End that connection, if it is still there. */
void bz_peer_hang_up(struct bz_peer *p, uint32_t serial);
/* Queue a frame of the node's own for the session's peer, beyond every bound but the last: -EOVERFLOW. It takes the frame. */
BZ_MUST_USE int bz_session_send(struct bz_session *s, struct bz_frame *f);
/* The writer of a session takes up to `max` frames, NULL: there are none. */
struct bz_frame *bz_session_take(struct bz_session *s, unsigned max);
/* Append under the lock of the peer. */
void bz_peer_append(struct bz_peer *p, struct bz_frame *f);
/* Forget all peers of a node, which has no session. Those in use stay until their last reference. */
void bz_peers_end(blitz_node *n);
/* Free all frames; they are lost. Under no lock. */
void bz_frames_lose(blitz_node *n, struct bz_frame *first);

/* ---- change.c ---- */

/* Wait until is_done, which is called under the lock of the peer. 0, -ETIMEDOUT, -ECANCELED. */
BZ_MUST_USE int bz_peer_wait(struct bz_peer *p, bool (*is_done)(struct bz_peer *p, void *ctx),
                             void *ctx, blitz_deadline until);
/* The connection has changed: those that wait look again. Under no lock. */
void bz_peer_changed(struct bz_peer *p);

/* ---- session.c ---- */

/* Begin to connect to the peer, with f as the first frame; NULL: none. It does not wait. 0: it took the frame, which is lost if no task
 * can be started; 1: the peer is not DOWN any more; -ENOMEM, -ESRCH (the node stops), -EACCES (not allowed). */
BZ_MUST_USE int bz_session_connect(struct bz_peer *p, struct bz_frame *f);
/* The handshake is done: s is the connection of its peer. -EALREADY: another one is. */
BZ_MUST_USE int bz_session_attach(struct bz_session *s);
/* A connection was accepted. It takes the connection. */
void bz_session_accept(blitz_node *n, blitz_tcp *t);

/* ---- shaking.c ---- */

/* The handshake of a session, of either side. It sets the peer of an accepted one. 0, -EPROTO, -EACCES, -EALREADY (the other direction wins), errors of the connection. */
BZ_MUST_USE int bz_session_shake(struct bz_session *s, blitz_deadline until);

/* ---- deliver.c ---- */

/* Handle a frame without its length. 0; -EPROTO: the peer sends what no node sends. */
BZ_MUST_USE int bz_session_handle(struct bz_session *s, const unsigned char *data, size_t bytes);

/* ---- sending.c ---- */

/* A message on its way into a frame. */
struct bz_outgoing {
    blitz_node *n;
    const char *to_name; /* NULL: to a pid */
    blitz_term_pid to;
    blitz_term term; /* data NULL: a struct */
    uint32_t what;
    const void *data;
    size_t size;
    const blitz_binary *cargo;
};

/* Put the control message of a send, with its version byte; the message, without. */
void bz_outgoing_put_control(blitz_term_out *out, const struct bz_outgoing *o);
BZ_MUST_USE int bz_outgoing_put(blitz_term_out *out, const struct bz_outgoing *o);
/* Address it to an id of another node, and add the cargo. The peer has a reference. 0, -ESRCH, -EOPNOTSUPP. */
BZ_MUST_USE int bz_outgoing_address(struct bz_outgoing *o, blitz_actor_id to,
                                    const blitz_cargo *cargo, struct bz_peer **out);
/* The peer with that name; it becomes known. 0, -EINVAL, and as bz_peer_get(). */
BZ_MUST_USE int bz_peer_named(blitz_node *n, const char *name, struct bz_peer **out);

/* As struct bz_far_ops says. */
BZ_MUST_USE int bz_sending_begin(struct bz_far_sending *s, blitz_actor_id to, uint32_t what,
                                 const void *data, size_t size, const blitz_cargo *cargo);

/* ---- calling.c: our calls ---- */

/* As struct bz_far_ops says. */
BZ_MUST_USE int bz_calls_begin(struct bz_far_call *c, blitz_actor_id to, uint32_t what,
                               const void *data, size_t size, const blitz_cargo *cargo);
int bz_calls_end(struct bz_far_call *c, blitz_actor_id to, uint32_t what, int rc, void *reply,
                 size_t reply_size, blitz_arrival *got);
BZ_MUST_USE int bz_joins_begin(struct bz_far_call *c, blitz_actor_id to);
int bz_joins_end(struct bz_far_call *c, blitz_actor_id to, int rc, blitz_exit_reason *why);
#define BZ_REF_OF_A_CALL \
    0x80002000u /* in the third word of a ticket's reference; a monitor's has it not */
/* The reference of a ticket. */
void bz_calls_ref(const blitz_node *n, blitz_reply_to token, blitz_term_ref *ref);
/* The token of a reference that we have put into a call. False: it is another reference. */
BZ_MUST_USE bool bz_calls_token(const blitz_node *n, const blitz_term_ref *ref,
                                blitz_reply_to *token);
/* A term as a binary, with a version byte. */
BZ_MUST_USE int bz_term_to_binary(blitz_term term, blitz_binary **out);
/* The connection of a call has ended, or its request was refused: answer with that error. */
void bz_calls_fail(blitz_node *n, blitz_reply_to token, int error);
/* The process that is called, or joined, has ended with that reason. */
void bz_calls_ended(blitz_node *n, blitz_reply_to token, blitz_term reason);
/* A message {Tag, Reply} to one of our references. */
void bz_calls_answer(blitz_node *n, blitz_reply_to token, blitz_term message);
/* True if a message to a pid is such an answer. */
BZ_MUST_USE bool bz_calls_is_answer(const blitz_node *n, blitz_term message, blitz_reply_to *token);
/* These calls have lost their connection. The list is guarded by the lock of the peer. */
void bz_calls_lose(struct bz_peer *p, struct bz_list *lost);

/* ---- answers.c: calls of peers ---- */

/* The parts of a call: {'$gen_call', {Pid, Tag}, Request}. */
struct bz_gen_call {
    blitz_term_pid from;
    blitz_term tag, request;
    bool has_alias;
    blitz_term_ref alias;
};
BZ_MUST_USE bool bz_gen_call_get(blitz_term term, struct bz_gen_call *call);

/* Owe an answer to a call: *token is for the actor `called`. row: of the request, which names the type of the answer; NULL: both are
 * terms. 0, -ENOMEM, -ESRCH (the caller's connection has gone), -EAGAIN. */
BZ_MUST_USE int bz_answers_open(struct bz_session *s, const struct bz_gen_call *call,
                                blitz_actor_id called, const blitz_term_message *row,
                                blitz_reply_to *token);
/* The caller with that reference has left. */
void bz_answers_forget(struct bz_peer *p, const blitz_term_ref *ref);
/* The connection has gone. */
void bz_answers_lose(struct bz_peer *p, struct bz_list *lost);

/* ---- spawning.c ---- */

/* A request of a peer, or the answer to ours. 0, or an error that ends the connection. */
BZ_MUST_USE int bz_spawning_hear(struct bz_session *s, const struct bz_control *c, blitz_term args);
bool bz_spawning_is_bad(const blitz_node_opts *opts);
BZ_MUST_USE int bz_spawning_hear_reply(struct bz_session *s, const struct bz_control *c);

/* ---- ids.c ---- */

/* The id of a pid, and the reverse. makes: the node of the pid becomes known. */
int bz_node_id_of(blitz_node *n, const blitz_term_pid *pid, bool makes, blitz_actor_id *id);
/* As blitz_node_env(), but for pids of unknown nodes: -ESRCH. */
blitz_term_env bz_node_env_known(blitz_node *n);

/* ---- epmd.c ---- */

enum { BZ_EPMD_VERSION = 6, BZ_EPMD_HIDDEN = 72 };
/* Register, on a connection that stays open. */
BZ_MUST_USE int bz_epmd_register(blitz_node *n, blitz_tcp **out, uint32_t *creation,
                                 blitz_deadline until);
/* Find the address of a node. */
BZ_MUST_USE int bz_epmd_find(blitz_node *n, const char *name, blitz_addr *out,
                             blitz_deadline until);
/* Read the answers. *used: the bytes of it; 0: it is not complete. Pure. */
BZ_MUST_USE int bz_epmd_read_alive(const unsigned char *data, size_t bytes, uint32_t *creation,
                                   size_t *used);
BZ_MUST_USE int bz_epmd_read_port(const unsigned char *data, size_t bytes, uint16_t *port,
                                  size_t *used);

#endif
