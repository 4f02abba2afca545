/*
 * serve.h - what the raw servers have in common: the listening socket, the line with the port, and the end of
 * an HTTP request.
 */
#ifndef NET_SERVE_H
#define NET_SERVE_H

#include "bench.h"
#include "net/shape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SERVE_BACKLOG = 4096, SERVE_FDS = 65536, SERVE_ANSWERS = 64 };

static inline int serve_listen(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(fd, SERVE_BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        bench_die("listen: %s", strerror(errno));
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static inline void serve_nodelay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* How many requests end in these bytes; *state is how much of an empty line was seen before them. */
static inline unsigned serve_requests(const char *bytes, size_t len, unsigned char *state)
{
    static const char end[4] = {'\r', '\n', '\r', '\n'};
    unsigned count = 0, seen = *state;
    for (size_t i = 0; i < len; i++) {
        seen = bytes[i] == end[seen] ? seen + 1 : bytes[i] == '\r';
        if (seen == sizeof end) {
            count++;
            seen = 0;
        }
    }
    *state = (unsigned char)seen;
    return count;
}

/* SERVE_ANSWERS answers in a row: as many requests of one connection are answered by one send. */
static inline const char *serve_answers(void)
{
    static char text[SERVE_ANSWERS * (sizeof NET_ANSWER - 1) + 1];
    if (text[0] == '\0')
        for (size_t i = 0; i < SERVE_ANSWERS; i++)
            memcpy(text + i * (sizeof NET_ANSWER - 1), NET_ANSWER, sizeof NET_ANSWER - 1);
    return text;
}

#endif
