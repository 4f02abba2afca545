/*
 * control.h - control messages: the first term of a frame between two nodes. control.c.
 */
#ifndef BZ_NODE_CONTROL_H
#define BZ_NODE_CONTROL_H

#include "base/compiler.h"
#include "blitz/term.h"

enum bz_control_op {
    BZ_CONTROL_LINK = 1,
    BZ_CONTROL_SEND = 2,
    BZ_CONTROL_EXIT = 3,
    BZ_CONTROL_UNLINK = 4, /* of nodes without UNLINK_ID, which we refuse */
    BZ_CONTROL_NODE_LINK = 5,
    BZ_CONTROL_REG_SEND = 6,
    BZ_CONTROL_GROUP_LEADER = 7,
    BZ_CONTROL_EXIT2 = 8,
    BZ_CONTROL_SEND_TT = 12, /* TT: with a token of a trace */
    BZ_CONTROL_EXIT_TT = 13,
    BZ_CONTROL_REG_SEND_TT = 16,
    BZ_CONTROL_EXIT2_TT = 18,
    BZ_CONTROL_MONITOR = 19,
    BZ_CONTROL_DEMONITOR = 20,
    BZ_CONTROL_MONITOR_EXIT = 21,
    BZ_CONTROL_SEND_SENDER = 22,
    BZ_CONTROL_SEND_SENDER_TT = 23,
    BZ_CONTROL_SPAWN_REQUEST = 29,
    BZ_CONTROL_SPAWN_REQUEST_TT = 30,
    BZ_CONTROL_SPAWN_REPLY = 31, /* id: the flags. reason: a pid, or an error */
    BZ_CONTROL_SPAWN_REPLY_TT = 32,
    BZ_CONTROL_ALIAS_SEND = 33, /* to the reference `ref` */
    BZ_CONTROL_ALIAS_SEND_TT = 34,
    BZ_CONTROL_UNLINK_ID = 35,
    BZ_CONTROL_UNLINK_ID_ACK = 36
};

/* A control message. Its atoms are views of the frame. */
struct bz_control {
    enum bz_control_op op;
    bool has_payload;  /* a second term follows */
    bool to_is_name;   /* ... in to_name; else in to */
    bool from_is_name; /* of a process that was watched by its name */
    blitz_term_pid from, to;
    blitz_term_atom to_name, from_name;
    blitz_term_ref ref;
    blitz_term reason;
    blitz_term function, options; /* of a spawn: {Module, Function, Arity}, and a list */
    uint64_t id;
};

/* Read a control message, without its version byte. 0; -EPROTO: it is none, or none that we know. */
BZ_MUST_USE int bz_control_get(blitz_term term, struct bz_control *out);

#endif
