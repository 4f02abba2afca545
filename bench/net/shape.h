/*
 * shape.h - what the names of the cases mean, for the load generator and for every server written in C.
 *
 * A server is started as `SERVER [WORDS] CASE` and listens on 127.0.0.1, on a port of the system's
 * choice, which it prints as a line `port N`. It echoes; if the name of the case begins with "http"
 * it answers each request with NET_ANSWER instead. A server with a buffer for each connection uses
 * NET_BUFFER bytes, or two messages if one message would fill it (a read that fills its buffer must
 * be followed by another). All servers do the same, because memory for each connection is one of
 * the figures.
 */
#ifndef NET_SHAPE_H
#define NET_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { NET_BUFFER = 4096, NET_DEPTH_MAX = 64, NET_BYTES_MAX = 65536, NET_IDLE = 10000 };

#define NET_BODY "hello, world\n"
#define NET_ANSWER                                                                         \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 13\r\n" \
    "\r\n" NET_BODY

struct net_shape {
    const char *name;
    unsigned conns; /* connections */
    unsigned depth; /* messages on their way at a time, on each */
    size_t bytes;   /* of a message */
};

/* The shape of a case; any other is written as echo-CONNSxDEPTHxBYTES. False: no such case. */
static inline bool net_shape_of(const char *name, struct net_shape *out)
{
    static const struct net_shape known[] = {
        {"echo-64", 64, 1, 64},         {"echo-1000", 1000, 1, 64}, {"echo-10000", 10000, 1, 64},
        {"echo-depth16", 64, 16, 64},   {"echo-16k", 16, 1, 16384}, {"idle", NET_IDLE, 1, 64},
        {"idle-task", NET_IDLE, 1, 64}, {"http-64", 64, 1, 64},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            *out = known[i];
            return true;
        }
    out->name = name;
    if (sscanf(name, "echo-%ux%ux%zu", &out->conns, &out->depth, &out->bytes) != 3)
        return false;
    return out->conns > 0 && out->depth > 0 && out->depth <= NET_DEPTH_MAX && out->bytes >= 16 &&
           out->bytes <= NET_BYTES_MAX;
}

static inline bool net_is_http(const char *name)
{
    return strncmp(name, "http", 4) == 0;
}

static inline size_t net_buffer_of(const char *name)
{
    struct net_shape shape;
    return net_shape_of(name, &shape) && shape.bytes >= NET_BUFFER ? 2 * shape.bytes : NET_BUFFER;
}

#endif
