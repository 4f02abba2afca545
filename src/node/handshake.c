/*
 * handshake.c - the messages of the handshake, version 6. Bytes alone: shaking.c sends and receives them.
 *
 *     initiator                              acceptor
 *     N flags creation name            ->
 *                                      <-    s status
 *                                      <-    N flags challenge creation name
 *     r challenge digest               ->
 *                                      <-    a digest
 *
 * Each message has a length of two bytes before it. A digest is MD5 of the cookie and the other side's challenge as decimal text. So
 * each side proves that it knows the cookie, and none sends it.
 *
 * The older handshake (n, version 5) is refused: it comes from nodes before OTP 23, which lack flags that we need.
 *
 * Digests are compared in constant time, so that a peer cannot find one byte after the other by the clock.
 */
#include "node/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "term/wire.h"

static const char *const status_text[] = {
    [BZ_STATUS_OK] = "ok",       [BZ_STATUS_OK_SIMULTANEOUS] = "ok_simultaneous",
    [BZ_STATUS_NOK] = "nok",     [BZ_STATUS_NOT_ALLOWED] = "not_allowed",
    [BZ_STATUS_ALIVE] = "alive", [BZ_STATUS_TRUE] = "true",
    [BZ_STATUS_FALSE] = "false",
};

bool bz_node_name_is_good(const char *name, size_t bytes)
{
    const char *at = bytes > 0 ? memchr(name, '@', bytes) : NULL;
    if (at == NULL || at == name || at == name + bytes - 1 || bytes >= BLITZ_NODE_NAME_MAX)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)name[i] <= ' ' || (unsigned char)name[i] >= 0x7f ||
            (name[i] == '@' && name + i != at))
            return false;
    return true;
}

/* ---- digests ---- */

static void digest_of(const char *cookie, uint32_t challenge, unsigned char digest[BZ_MD5_BYTES])
{
    struct bz_md5 m;
    char text[16];
    int n = snprintf(text, sizeof text, "%u", (unsigned)challenge);
    bz_md5_init(&m);
    bz_md5_add(&m, cookie, strlen(cookie));
    bz_md5_add(&m, text, (size_t)n);
    bz_md5_end(&m, digest);
}

/* Compare in constant time. */
static bool is_digest(const unsigned char *got, const char *cookie, uint32_t challenge)
{
    unsigned char want[BZ_MD5_BYTES];
    unsigned differs = 0;
    digest_of(cookie, challenge, want);
    for (size_t i = 0; i < sizeof want; i++)
        differs |= (unsigned)(got[i] ^ want[i]);
    return differs == 0;
}

/* ---- writing ---- */

static size_t put_length(unsigned char *buf, size_t bytes)
{
    bz_wire16_to(buf, (uint16_t)(bytes - 2));
    return bytes;
}

size_t bz_shake_put_name(unsigned char *buf, const struct bz_hello *me)
{
    buf[2] = 'N';
    bz_wire64_to(buf + 3, me->flags);
    bz_wire32_to(buf + 11, me->creation);
    bz_wire16_to(buf + 15, me->bytes);
    memcpy(buf + 17, me->name, me->bytes);
    return put_length(buf, 17 + (size_t)me->bytes);
}

size_t bz_shake_put_status(unsigned char *buf, enum bz_shake_status status)
{
    size_t bytes = strlen(status_text[status]);
    buf[2] = 's';
    memcpy(buf + 3, status_text[status], bytes);
    return put_length(buf, 3 + bytes);
}

size_t bz_shake_put_challenge(unsigned char *buf, const struct bz_hello *me)
{
    buf[2] = 'N';
    bz_wire64_to(buf + 3, me->flags);
    bz_wire32_to(buf + 11, me->challenge);
    bz_wire32_to(buf + 15, me->creation);
    bz_wire16_to(buf + 19, me->bytes);
    memcpy(buf + 21, me->name, me->bytes);
    return put_length(buf, 21 + (size_t)me->bytes);
}

size_t bz_shake_put_reply(unsigned char *buf, uint32_t challenge, const char *cookie,
                          uint32_t of_peer)
{
    buf[2] = 'r';
    bz_wire32_to(buf + 3, challenge);
    digest_of(cookie, of_peer, buf + 7);
    return put_length(buf, BZ_SHAKE_REPLY);
}

size_t bz_shake_put_ack(unsigned char *buf, const char *cookie, uint32_t of_peer)
{
    buf[2] = 'a';
    digest_of(cookie, of_peer, buf + 3);
    return put_length(buf, BZ_SHAKE_ACK);
}

/* ---- reading ---- */

/* The name at the end of a message: its length in two bytes, then so many. More may follow, for later versions. */
static int get_name(const unsigned char *data, size_t bytes, size_t at, struct bz_hello *peer)
{
    if (bytes < at + 2)
        return -EPROTO;
    size_t length = bz_wire16(data + at);
    if (length > bytes - at - 2 || !bz_node_name_is_good((const char *)data + at + 2, length))
        return -EPROTO;
    memcpy(peer->name, data + at + 2, length);
    peer->name[length] = '\0';
    peer->bytes = (uint16_t)length;
    return 0;
}

int bz_shake_get_name(const unsigned char *data, size_t bytes, struct bz_hello *peer)
{
    if (bytes < 13 || data[0] != 'N')
        return -EPROTO;
    *peer = (struct bz_hello){.flags = bz_wire64(data + 1), .creation = bz_wire32(data + 9)};
    return get_name(data, bytes, 13, peer);
}

int bz_shake_get_challenge(const unsigned char *data, size_t bytes, struct bz_hello *peer)
{
    if (bytes < 17 || data[0] != 'N')
        return -EPROTO;
    *peer = (struct bz_hello){.flags = bz_wire64(data + 1),
                              .challenge = bz_wire32(data + 9),
                              .creation = bz_wire32(data + 13)};
    return get_name(data, bytes, 17, peer);
}

enum bz_shake_status bz_shake_get_status(const unsigned char *data, size_t bytes)
{
    if (bytes < 1 || data[0] != 's')
        return BZ_STATUS_UNKNOWN;
    for (int i = 0; i < BZ_STATUS_UNKNOWN; i++)
        if (bytes - 1 == strlen(status_text[i]) && memcmp(data + 1, status_text[i], bytes - 1) == 0)
            return (enum bz_shake_status)i;
    return BZ_STATUS_UNKNOWN;
}

int bz_shake_get_reply(const unsigned char *data, size_t bytes, const char *cookie, uint32_t ours,
                       uint32_t *of_peer)
{
    if (bytes != BZ_SHAKE_REPLY - 2 || data[0] != 'r')
        return -EPROTO;
    *of_peer = bz_wire32(data + 1);
    return is_digest(data + 5, cookie, ours) ? 0 : -EACCES;
}

int bz_shake_get_ack(const unsigned char *data, size_t bytes, const char *cookie, uint32_t ours)
{
    if (bytes != BZ_SHAKE_ACK - 2 || data[0] != 'a')
        return -EPROTO;
    return is_digest(data + 1, cookie, ours) ? 0 : -EACCES;
}
