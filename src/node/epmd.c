/*
 * epmd.c - Erlang's port mapper: register a node, find another one.
 *
 * EPMD is one process for each host. A node registers on a connection that it keeps: when that closes, the name is free. The answer has
 * the creation of the node, a number that tells one life of a name from the next. A lookup is a connection of its own: one request, one
 * answer, and EPMD closes it.
 *
 * We register as a hidden node with version 6 of the handshake as the highest and the lowest. So a peer never begins with an older one.
 *
 * A host with IPv4 addresses is asked there first, as Erlang does, since a node listens at IPv4 unless told otherwise.
 *
 * The answers are read by functions without I/O, which bound every length. A mapper that lies costs one failed connect.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "blitz/resolve.h"
#include "node/node.h"
#include "term/wire.h"

enum {
    ALIVE2 = 120,
    ALIVE2_ANSWER = 121,
    ALIVE2_X_ANSWER = 118, /* with a creation of 4 bytes */
    PORT2 = 122,
    PORT2_ANSWER = 119,
    ANSWER_MAX = 1024,
    ADDRESSES = 8
};

/* ---- the answers ---- */

int bz_epmd_read_alive(const unsigned char *data, size_t bytes, uint32_t *creation, size_t *used)
{
    *used = 0;
    if (bytes > 0 && data[0] != ALIVE2_ANSWER && data[0] != ALIVE2_X_ANSWER)
        return -EPROTO;
    size_t whole = bytes > 0 && data[0] == ALIVE2_X_ANSWER ? 6 : 4;
    if (bytes < whole)
        return 0;
    if (data[1] != 0)
        return -EEXIST;
    *creation = whole == 6 ? bz_wire32(data + 2) : bz_wire16(data + 2);
    *used = whole;
    return 0;
}

int bz_epmd_read_port(const unsigned char *data, size_t bytes, uint16_t *port, size_t *used)
{
    *used = 0;
    if (bytes > 0 && data[0] != PORT2_ANSWER)
        return -EPROTO;
    if (bytes < 2)
        return 0;
    if (data[1] != 0)
        return -EHOSTUNREACH; /* no such node */
    if (bytes < 10)
        return 0;
    *port = bz_wire16(data + 2);
    if (*port == 0 || bz_wire16(data + 6) < BZ_EPMD_VERSION)
        return -EPROTO;
    *used = 10; /* the name and more follow, which we do not need */
    return 0;
}

/* ---- I/O ---- */

/* The first of the addresses, of IPv4 or not, that answers. rc: without such an address. */
static int reach_one(const blitz_addr *all, int count, bool is_v4, int rc, blitz_addr *at,
                     blitz_tcp **out, blitz_deadline until)
{
    for (int i = 0; i < count && rc != 0 && rc != -ECANCELED; i++)
        if (blitz_addr_is_v4(&all[i]) == is_v4) {
            *at = all[i];
            rc = blitz_tcp_connect(at, out, until);
        }
    return rc;
}

/* Connect to EPMD on that host, IPv4 first. *at is its address. */
static int reach(blitz_node *n, const char *host, blitz_addr *at, blitz_tcp **out,
                 blitz_deadline until)
{
    blitz_addr all[ADDRESSES];
    char port[8];
    (void)snprintf(port, sizeof port, "%u", (unsigned)n->opts.epmd_port);
    int count = blitz_resolve(host, port, all, ADDRESSES, until);
    if (count < 0)
        return count;
    count = count < ADDRESSES ? count : ADDRESSES;
    int rc = reach_one(all, count, true, -EHOSTUNREACH, at, out, until);
    return reach_one(all, count, false, rc, at, out, until);
}

/* Ask, and read until `read` says that the answer is complete. */
static int ask(blitz_tcp *t, const unsigned char *request, size_t bytes,
               int (*read)(const unsigned char *data, size_t bytes, void *out, size_t *used),
               void *out, blitz_deadline until)
{
    unsigned char answer[ANSWER_MAX];
    size_t have = 0, used = 0;
    int rc = blitz_tcp_write_all(t, request, bytes, NULL, until);
    while (rc == 0 && used == 0) {
        int64_t n = have < sizeof answer
                        ? blitz_tcp_read(t, answer + have, sizeof answer - have, until)
                        : -EPROTO;
        if (n <= 0)
            return n == 0 ? -EPROTO : (int)n;
        have += (size_t)n;
        rc = read(answer, have, out, &used);
    }
    return rc;
}

static int read_alive(const unsigned char *data, size_t bytes, void *out, size_t *used)
{
    return bz_epmd_read_alive(data, bytes, out, used);
}

static int read_port(const unsigned char *data, size_t bytes, void *out, size_t *used)
{
    return bz_epmd_read_port(data, bytes, out, used);
}

int bz_epmd_register(blitz_node *n, blitz_tcp **out, uint32_t *creation, blitz_deadline until)
{
    unsigned char request[2 + 13 + BLITZ_NODE_NAME_MAX];
    size_t alive = strcspn(n->name, "@");
    blitz_addr at = blitz_addr_loopback_v4(n->opts.epmd_port);
    blitz_tcp *t;
    bz_wire16_to(request, (uint16_t)(13 + alive));
    request[2] = ALIVE2;
    bz_wire16_to(request + 3, n->port);
    request[5] = BZ_EPMD_HIDDEN;
    request[6] = 0; /* TCP */
    bz_wire16_to(request + 7, BZ_EPMD_VERSION);
    bz_wire16_to(request + 9, BZ_EPMD_VERSION);
    bz_wire16_to(request + 11, (uint16_t)alive);
    memcpy(request + 13, n->name, alive);
    bz_wire16_to(request + 13 + alive, 0); /* nothing extra */
    int rc = blitz_tcp_connect(&at, &t, until);
    if (rc != 0)
        return rc;
    rc = ask(t, request, 15 + alive, read_alive, creation, until);
    if (rc != 0)
        blitz_tcp_close(t);
    else
        *out = t;
    return rc;
}

int bz_epmd_find(blitz_node *n, const char *name, blitz_addr *out, blitz_deadline until)
{
    unsigned char request[3 + BLITZ_NODE_NAME_MAX];
    size_t alive = strcspn(name, "@");
    uint16_t port = 0;
    blitz_tcp *t;
    int rc = reach(n, name + alive + 1, out, &t, until);
    if (rc != 0)
        return rc;
    bz_wire16_to(request, (uint16_t)(1 + alive));
    request[2] = PORT2;
    memcpy(request + 3, name, alive);
    rc = ask(t, request, 3 + alive, read_port, &port, until);
    blitz_tcp_close(t);
    return rc == 0 ? blitz_addr_set_port(out, port) : rc;
}
