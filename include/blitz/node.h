/*
 * blitz/node.h - one node among others: Erlang's distribution protocol.
 *
 * A node joins the nodes of a cluster. To an Erlang node it is a hidden node, and its actors are processes. Two nodes of blitz speak
 * the same protocol, with no Erlang there.
 *
 *     blitz_node *node;
 *     blitz_node_opts opts = {.messages = sent, .message_count = 2};
 *     int rc = blitz_node_start("worker@localhost", cookie, &opts, &node);
 *     rc = blitz_actor_register("adder", adder);                     // Erlang: {adder, worker@localhost} ! {add, 42}
 *     ...
 *     rc = blitz_node_send_name(node, "shell", "erl@localhost", ADDED, &added, sizeof added);
 *     ...
 *     blitz_node_stop(node);
 *
 * Messages to an actor of this node are terms. If the behaviour of the actor has a table (blitz_behaviour.messages), a term that is in it
 * becomes the struct of its row, and the same handler serves senders here and elsewhere. Any other term goes to the handler of
 * BLITZ_MSG_TERM, if there is one: m->binary is the encoded term, with its version byte. Else the message is dropped and counted. Tasks
 * that receive (blitz/receive.h) get BLITZ_MSG_TERM. m->from is zeroed: a sender that wants an answer puts its id into the message.
 *
 * An id of another node is a blitz_actor_id whose `node` is not 0. blitz_actor_send() and its forms send to it: the node finds the
 * term in its own table (blitz_node_opts.messages). The first message to a node connects. A send returns 0 when the message is in the
 * queue of the connection. If that queue is full, a send waits, and its future is pending; blitz_actor_try_send() returns -EAGAIN. Messages
 * from one sender to one receiver arrive in order, or not at all if the connection goes.
 *
 * Calls go both ways. blitz_actor_call() takes ids of other nodes. A call of a peer, as gen_server:call() makes it, comes to the handler with
 * a reply token; the reply is the term of the row, and an error {error, Code}. If the request is in no table, it comes as BLITZ_MSG_TERM with
 * a token: blitz_node_reply_term().
 *
 * Other nodes may start the actors of blitz_node_opts.entries, and blitz_node_spawn() starts processes there.
 *
 * Links, monitors and exit signals (blitz/actor.h) take ids of other nodes, too, of actors in the node's runtime. A lost connection ends each
 * link and each monitor over it with BLITZ_EXIT_NOCONNECTION, once. An id of no node any more is -ESRCH, an actor of another runtime
 * -EOPNOTSUPP.
 *
 * Safe by default. Without a cookie no node starts. A node listens at the loopback unless it is told otherwise. A peer with a wrong cookie,
 * a bad length or an unknown control message loses that connection; others go on. Every length of a peer is bounded, and so is the
 * queue to a peer. Atoms of peers are not kept, but for the names of nodes: BLITZ_NODE_PEERS_MAX at a time. The protocol does not encrypt,
 * and the cookie protects only the connect. Use it in a network that you trust.
 *
 * docs/with-erlang.md is the guide, and says what is missing.
 */
#ifndef BLITZ_NODE_H
#define BLITZ_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/actor.h"
#include "blitz/addr.h"
#include "blitz/api.h"
#include "blitz/term.h"
#include "blitz/term_struct.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

enum {
    BLITZ_NODE_NAME_MAX = 256,   /* bytes of the name of a node, with the end */
    BLITZ_NODE_COOKIE_MAX = 256, /* bytes of a cookie, with the end */
    BLITZ_NODE_PEERS_MAX = 1024, /* other nodes that all nodes of a process know at a time */
    BLITZ_NODE_EPMD_PORT = 4369
};

typedef struct blitz_node blitz_node;

/* A node that is not in EPMD. */
typedef struct blitz_node_place {
    const char *name; /* "name@host" */
    blitz_addr at;
} blitz_node_place;

/* An actor that other nodes may start, as spawn(Node, Module, Function, Arguments) does. */
typedef struct blitz_node_entry {
    const char *module, *function;
    const blitz_behaviour *behaviour;
    const blitz_term_type *
        args; /* the arguments are the parts of the state (BLITZ_TERM_TUPLE); NULL: none, and a zeroed state */
} blitz_node_entry;

/* The options of a node. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_node_opts {
    const blitz_addr *listen; /* where it accepts connections; NULL: the loopback, any port */
    bool no_listen;           /* it accepts none, and is not in EPMD */
    bool no_epmd; /* it does not register, and looks no name up: only `places` are found */
    uint16_t
        epmd_port; /* 0: that of the environment variable ERL_EPMD_PORT, else BLITZ_NODE_EPMD_PORT */
    const blitz_node_place *places; /* asked before EPMD */
    size_t place_count;
    const char *const *
        allowed; /* names of the nodes that may connect to us or be connected to; NULL: all with the cookie */
    size_t allowed_count;
    const blitz_term_message *messages; /* the messages that are sent to other nodes */
    size_t message_count;
    const blitz_node_entry *entries; /* the actors that other nodes may start, and no others */
    size_t entry_count;
    blitz_actor_id
        watcher; /* of the same runtime; gets BLITZ_MSG_NODE when a connection comes or goes */
    uint64_t
        tick_ns; /* a connection that is silent for so long is closed; 0: 60 s, as net_ticktime */
    uint64_t connect_ns; /* for a handshake, and for EPMD; 0: 7 s */
    size_t queue_high;   /* bytes that wait for a connection. Beyond, senders wait; 0: 1 MiB */
    size_t queue_max;    /* beyond, the connection is closed with -EOVERFLOW; 0: 64 MiB */
    size_t message_max;  /* bytes of a message of a peer; 0: 128 MiB */
    uint32_t
        creation; /* without EPMD: which life of the node; 0: random. With EPMD, that says it */
} blitz_node_opts;

/* The data of BLITZ_MSG_NODE. */
typedef struct blitz_node_event {
    uint32_t node; /* its number: blitz_node_name_of() */
    bool is_up;
    int reason; /* of a connection that has gone: a negative errno; 0: by a stop or a disconnect of this side */
} blitz_node_event;

/*
 * Start a node.
 *
 * The part of the name behind the @ is the host, as other nodes write it. blitz looks it up when it connects to a name that is in no
 * `places`. Without a host in the name, "@localhost" is added.
 *
 * With EPMD the node registers before this returns, and again whenever EPMD has restarted. If there is no EPMD, the start fails.
 * Owns:     *out is the caller's: blitz_node_stop(), before its runtime ends. Copies the name, the cookie, the places and the allowed
 *           names. Borrows `messages` and `entries` until the stop.
 * Suspends: until EPMD has answered, or a cancel. Call from a task.
 * Returns:  0; -EINVAL (a name or a cookie that is empty or too long; a name that is no name); -EEXIST (EPMD has a node of that
 *           name); -ECONNREFUSED (no EPMD); -EPROTO (it is no EPMD); -EADDRINUSE, -ETIMEDOUT, -ECANCELED, -ENOMEM, -EOPNOTSUPP (not in
 *           a task), other errors of blitz_tcp_listen(). *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_node_start(const char *name, const char *cookie,
                                                             const blitz_node_opts *opts,
                                                             blitz_node **out);

/*
 * Stop a node: close all its connections and leave EPMD. Messages that are queued are dropped. Ids of its peers are of no node from here
 * on: a send returns -ESRCH. NULL is ignored.
 * Owns:     takes the node.
 * Suspends: until its tasks have ended; a cancel does not end it. Call from a task of its runtime.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_node_stop(blitz_node *node);

/*
 * Connect to a node, or wait until a connect to it that is under way has ended.
 * Owns:     borrows the name until return.
 * Suspends: until it is connected or has failed, the deadline or a cancel. Call from a task.
 * Returns:  0; -EACCES (the cookie is wrong, or the node is not allowed); -ECONNREFUSED, -EHOSTUNREACH (no such node, or none at its
 *           port), -EPROTO (its handshake is none, or it lacks a flag), -ETIMEDOUT, -ECANCELED, -EINVAL (no name of a node, or our own),
 *           -ENOMEM, -ENFILE (too many nodes are known), other errors of a connect.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_node_connect(blitz_node *node, const char *name,
                                                blitz_deadline until);

/*
 * Close the connection to a node. The next send connects again.
 * Owns:     borrows the name until return.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOTCONN.
 */
BLITZ_API int blitz_node_disconnect(blitz_node *node, const char *name);

/*
 * True if there is a connection to that node.
 * Owns:     borrows the name until return.
 * Suspends: never. Call from any thread.
 * Returns:  true if it is; it may have gone on return.
 */
BLITZ_API bool blitz_node_is_connected(blitz_node *node, const char *name);

/*
 * Send a message to a process with a name, on a node with a name: Erlang's {Name, Node} ! Message.
 *   _name: a message of the table blitz_node_opts.messages
 *   _name_term: any term, without its version byte. _term: to an id
 * Owns:     copies the message.
 * Suspends: until there is room in the queue of the connection, the deadline (_name: none) or a cancel. Call from anywhere; a plain
 *           thread sleeps.
 * Returns:  0 (it is in the queue); -EOPNOTSUPP (no row of the table is of that message); -EINVAL (a bad name, a node that is not
 *           allowed, our own name, an id of this process); -ESRCH (an id of no node any more); -EMSGSIZE (larger than queue_max),
 *           -ETIMEDOUT, -ECANCELED, -ENOMEM, -ENFILE as blitz_node_connect().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_node_send_name(blitz_node *node, const char *process,
                                                  const char *on_node, uint32_t what,
                                                  const void *data, size_t size);
BLITZ_API BLITZ_SUSPENDS int blitz_node_send_name_term(blitz_node *node, const char *process,
                                                       const char *on_node, blitz_term message,
                                                       blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_node_send_term(blitz_node *node, blitz_actor_id to,
                                                  blitz_term message, blitz_deadline until);

/*
 * Call a process with a name on another node, or a process by its id, and wait for its answer: Erlang's gen_server:call(). A process
 * of Erlang answers as a gen_server, an actor of blitz with its reply token. blitz_actor_call() and its forms call by id as well.
 *   _name: a message of the table blitz_node_opts.messages. The row says which term the reply is
 *   _name_term, _term: any term, without its version byte
 * Owns:     copies the request; borrows *reply until return. _term: *reply is the caller's, written on 0: the encoded reply, with its
 *           version byte.
 * Suspends: until the answer, the end of the process, the loss of the connection, the deadline or a cancel. Call from anywhere; a
 *           plain thread sleeps.
 * Returns:  _name: the size of the reply, 0 or more; 0 if the row has none, and the reply is the atom ok. _term: 0. -ESRCH (the
 *           process has ended, or there is none; an id of no node any more); -ENOTCONN (the connection has gone, or cannot be made);
 *           -EPROTO (the reply is another term than the row says); the negative Code of a reply {error, Code}, as blitz_actor_reply_error()
 *           sends it (_name); -EAGAIN (queue_max is full); -ETIMEDOUT, -ECANCELED (a later answer is dropped); -EOPNOTSUPP, -EINVAL,
 *           -EMSGSIZE, -ENOMEM, -ENFILE as blitz_node_send_name().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_node_call_name(blitz_node *node, const char *process,
                                                  const char *on_node, uint32_t what,
                                                  const void *data, size_t size, void *reply,
                                                  size_t reply_size, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_node_call_name_term(blitz_node *node, const char *process,
                                                       const char *on_node, blitz_term request,
                                                       blitz_binary **reply, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_node_call_term(blitz_node *node, blitz_actor_id to,
                                                  blitz_term request, blitz_binary **reply,
                                                  blitz_deadline until);

/* The options of a remote spawn. A zero field, or NULL for the whole struct, means no. */
typedef struct blitz_node_spawn_opts {
    bool link;         /* link the process with the calling actor */
    uint64_t *monitor; /* watch it: *monitor is written on 0 */
} blitz_node_spawn_opts;

/*
 * Start a process on another node: a function of Erlang, or an entry of a node of blitz. The relations are there before it runs.
 * Owns:     copies `args`: a list of arguments, without its version byte; data NULL: []. *out is written on 0.
 * Suspends: until the answer, the loss of the connection, the deadline or a cancel. Call from anywhere; with a relation, from an actor
 *           or a task that receives, of the node's runtime. A plain thread sleeps.
 * Returns:  0; -ENOENT (a node of blitz has no such entry); -EINVAL (these are no arguments for it; no list; a relation for a caller
 *           that cannot have one; a bad name); -EAGAIN (that node has no room, or queue_max is full); -EPERM (it refuses for another
 *           reason); -ENOTCONN (the connection has gone, or cannot be made); -ETIMEDOUT, -ECANCELED (it may have been started all the
 *           same; if it was to be linked, it gets an exit signal and ends); -ESRCH (the node stops), -EMSGSIZE, -ENOMEM, -ENFILE.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_node_spawn(blitz_node *node, const char *on_node,
                                              const char *module, const char *function,
                                              blitz_term args, const blitz_node_spawn_opts *opts,
                                              blitz_actor_id *out, blitz_deadline until);

/* A child of a supervisor that is a process of another node: blitz_child_spec.start_ctx (blitz/supervisor.h). */
typedef struct blitz_node_child {
    blitz_node *node;
    const char *on_node, *module, *function; /* as of blitz_node_spawn() */
    blitz_term args;
    blitz_duration within; /* for a start; 0: 5 s */
} blitz_node_child;

/*
 * Start such a child, linked with its caller:
 *
 *     blitz_node_child job = {.node = node, .on_node = "erl@localhost", .module = "jobs", .function = "run"};
 *     blitz_child_spec spec = {.id = "job", .start = blitz_node_child_start, .start_ctx = &job, .shutdown = 10 * BLITZ_S};
 *
 * Give the supervisor's plan a `backoff`. Else a node that has gone is tried as often as the plan allows, at once.
 * Owns:     borrows the blitz_node_child, and what it points to, until return. The node outlives the supervisor. *out is written on 0.
 * Suspends: as blitz_node_spawn(). Call from a task of the node's runtime that is an actor or receives.
 * Returns:  as blitz_node_spawn().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_node_child_start(void *child, blitz_actor_id *out);

/*
 * Answer a call of another node whose request came as BLITZ_MSG_TERM: with a term, without its version byte. A call within the
 * process gets the encoded term as a binary. blitz_actor_reply() answers it with the atom ok.
 * Owns:     copies the term.
 * Suspends: never. Call from anywhere.
 * Returns:  0 (also if the caller has left), -EINVAL (no term), -ENOMEM.
 */
BLITZ_API int blitz_node_reply_term(blitz_reply_to to, blitz_term reply);

/*
 * The pid of an id: of an actor of the node's runtime, or of another node. The id of a pid. _env has both, to read and write ids in
 * structs (blitz/term_struct.h).
 * Owns:     pid->node is a view that is valid while the node is, and for a pid of another node while that is known. _env borrows the
 *           node.
 * Suspends: never. Call from any thread.
 * Returns:  0; -EINVAL (no actor of this runtime; an id that no pid can name), -ESRCH (an id of no node any more; a pid of an earlier
 *           life of this node), -ENFILE (too many nodes are known), -ENOMEM.
 */
BLITZ_API int blitz_node_pid_of(blitz_node *node, blitz_actor_id id, blitz_term_pid *pid);
BLITZ_API int blitz_node_id_of(blitz_node *node, const blitz_term_pid *pid, blitz_actor_id *id);
BLITZ_API blitz_term_env blitz_node_env(blitz_node *node);

/*
 * The name of a node, by the number in an id or an event.
 * Owns:     writes up to `room` bytes of name, with a zero at its end.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ESRCH (no such node, or no more), -ERANGE (no room).
 */
BLITZ_API int blitz_node_name_of(uint32_t number, char *name, size_t room);

/* Numbers of a node, about. */
typedef struct blitz_node_info {
    uint32_t creation; /* which life of the node */
    uint16_t port;     /* at which it listens; 0: it does not */
    uint32_t peers;    /* nodes that it knows */
    uint32_t up;       /* ... and is connected with */
    uint64_t sent;     /* messages that were queued */
    uint64_t received; /* messages that reached a mailbox */
    uint64_t
        dropped;   /* messages of peers that did not: no such actor, no handler, a full mailbox */
    uint64_t lost; /* messages that were queued when their connection went, or was not made */
    uint64_t refused;    /* connections that were closed in their handshake */
    uint64_t broken;     /* connections that were closed for what the peer sent */
    uint64_t registered; /* how often EPMD has registered the node */
} blitz_node_info;

/*
 * Look at a node.
 * Owns:     writes *out.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_node_info_get(blitz_node *node, blitz_node_info *out);

BLITZ_END_DECLS

#endif
