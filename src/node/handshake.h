/*
 * handshake.h - the messages by which two nodes get to know each other: handshake.c.
 */
#ifndef BZ_NODE_HANDSHAKE_H
#define BZ_NODE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "blitz/node.h"
#include "node/md5.h"

/* The abilities of a node. Those of BZ_NODE_NEEDS are those without which Erlang refuses a node: eleven in OTP 25, the last two from 26. From
 * OTP 25 on, MANDATORY_25_DIGEST stands for the eleven. */
#define BZ_FLAG_EXTENDED_REFERENCES 0x4u
#define BZ_FLAG_DIST_MONITOR 0x8u
#define BZ_FLAG_FUN_TAGS 0x10u
#define BZ_FLAG_DIST_MONITOR_NAME 0x20u
#define BZ_FLAG_NEW_FUN_TAGS 0x80u
#define BZ_FLAG_EXTENDED_PIDS_PORTS 0x100u
#define BZ_FLAG_EXPORT_PTR_TAG 0x200u
#define BZ_FLAG_BIT_BINARIES 0x400u
#define BZ_FLAG_NEW_FLOATS 0x800u
#define BZ_FLAG_SMALL_ATOM_TAGS 0x4000u
#define BZ_FLAG_UTF8_ATOMS 0x10000u
#define BZ_FLAG_MAP_TAG 0x20000u
#define BZ_FLAG_BIG_CREATION 0x40000u
#define BZ_FLAG_HANDSHAKE_23 0x1000000u
#define BZ_FLAG_UNLINK_ID 0x2000000u
#define BZ_FLAG_MANDATORY_25_DIGEST 0x4000000u
#define BZ_FLAG_SPAWN ((uint64_t)1 << 32)
#define BZ_FLAG_V4_NC ((uint64_t)1 << 34)
#define BZ_FLAG_ALIAS ((uint64_t)1 << 35)
#define BZ_NODE_NEEDS_25                                                                \
    (BZ_FLAG_EXTENDED_REFERENCES | BZ_FLAG_FUN_TAGS | BZ_FLAG_NEW_FUN_TAGS |            \
     BZ_FLAG_EXTENDED_PIDS_PORTS | BZ_FLAG_EXPORT_PTR_TAG | BZ_FLAG_BIT_BINARIES |      \
     BZ_FLAG_NEW_FLOATS | BZ_FLAG_UTF8_ATOMS | BZ_FLAG_MAP_TAG | BZ_FLAG_BIG_CREATION | \
     BZ_FLAG_HANDSHAKE_23)
#define BZ_NODE_NEEDS (BZ_NODE_NEEDS_25 | BZ_FLAG_V4_NC | BZ_FLAG_UNLINK_ID)
/* Our offer. Not among them: published (so we are hidden), the atom cache, fragments. */
#define BZ_NODE_OFFERS                                                                            \
    (BZ_NODE_NEEDS | BZ_FLAG_DIST_MONITOR | BZ_FLAG_DIST_MONITOR_NAME | BZ_FLAG_SMALL_ATOM_TAGS | \
     BZ_FLAG_ALIAS | BZ_FLAG_SPAWN | BZ_FLAG_MANDATORY_25_DIGEST)

enum {
    BZ_SHAKE_MAX = 2 + 19 + BLITZ_NODE_NAME_MAX, /* the longest message, with its length */
    BZ_SHAKE_REPLY = 2 + 5 + BZ_MD5_BYTES,
    BZ_SHAKE_ACK = 2 + 1 + BZ_MD5_BYTES
};

enum bz_shake_status {
    BZ_STATUS_OK,
    BZ_STATUS_OK_SIMULTANEOUS, /* go on: your own connect will be refused */
    BZ_STATUS_NOK,             /* a connect of mine to you is under way */
    BZ_STATUS_NOT_ALLOWED,
    BZ_STATUS_ALIVE, /* I am connected with you: is that connection gone? */
    BZ_STATUS_TRUE,  /* it is */
    BZ_STATUS_FALSE,
    BZ_STATUS_UNKNOWN
};

/* A node as it presents itself. */
struct bz_hello {
    uint64_t flags;
    uint32_t creation;
    uint32_t challenge; /* of a challenge */
    uint16_t bytes;     /* of the name */
    char name[BLITZ_NODE_NAME_MAX];
};

/* True if these bytes are the name of a node: two parts around one @. */
bool bz_node_name_is_good(const char *name, size_t bytes);

/* Write a message with its length into a buffer of BZ_SHAKE_MAX bytes. Return the size. */
size_t bz_shake_put_name(unsigned char *buf, const struct bz_hello *me);
size_t bz_shake_put_status(unsigned char *buf, enum bz_shake_status status);
size_t bz_shake_put_challenge(unsigned char *buf, const struct bz_hello *me);
size_t bz_shake_put_reply(unsigned char *buf, uint32_t challenge, const char *cookie,
                          uint32_t of_peer);
size_t bz_shake_put_ack(unsigned char *buf, const char *cookie, uint32_t of_peer);

/* Read a message without its length. 0, or -EPROTO; -EACCES: the digest is not that of our cookie and our challenge. */
BZ_MUST_USE int bz_shake_get_name(const unsigned char *data, size_t bytes, struct bz_hello *peer);
enum bz_shake_status bz_shake_get_status(const unsigned char *data, size_t bytes);
BZ_MUST_USE int bz_shake_get_challenge(const unsigned char *data, size_t bytes,
                                       struct bz_hello *peer);
BZ_MUST_USE int bz_shake_get_reply(const unsigned char *data, size_t bytes, const char *cookie,
                                   uint32_t ours, uint32_t *of_peer);
BZ_MUST_USE int bz_shake_get_ack(const unsigned char *data, size_t bytes, const char *cookie,
                                 uint32_t ours);

#endif
