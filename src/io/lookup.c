/*
 * lookup.c - resolve names with the system's resolver.
 *
 * It uses getaddrinfo only: its sources (hosts file, name servers) and its order are configured by
 * the administrator, and our own resolver would get this wrong. The query is for streams, so that
 * each address comes once.
 *
 * "localhost" is the exception: it is the loopback interface by definition (RFC 6761), so only the
 * service is looked up, without a host.
 */
#define _GNU_SOURCE 1
#include "io/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/attempt.h"
#include "io/sockaddr.h"

int (*bz_lookup_instead)(const char *host, const char *service, blitz_addr *out, size_t room);

static int meaning_of(int error, int err)
{
    switch (error) {
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_FAIL:
        return -EIO;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SERVICE:
    case EAI_BADFLAGS:
        return -EINVAL;
    case EAI_SYSTEM:
        return err != 0 ? -err : -EIO;
    default: /* no such name, or no address of a kind we know */
        return -ENOENT;
    }
}

bool bz_is_localhost(const char *host)
{
    static const char name[] = "localhost";
    const size_t bytes = sizeof name - 1;
    size_t length = strlen(host);
    if (length > 0 && host[length - 1] == '.')
        length--;
    if (length < bytes || strncasecmp(host + length - bytes, name, bytes) != 0)
        return false;
    return length == bytes || (length > bytes + 1 && host[length - bytes - 1] == '.');
}

/* A connect of a datagram socket sends nothing; it fails if there is no route to the address. */
bool bz_has_v6_loopback(void)
{
    struct sockaddr_in6 at = {
        .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool has = connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    (void)close(fd);
    return has;
}

int bz_lookup(const char *host, const char *service, blitz_addr *out, size_t room)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    size_t n = 0;
    int fault = bz_io_fault_of("getaddrinfo");
    if (bz_lookup_instead != NULL)
        return bz_lookup_instead(host, service, out, room);
    int error = fault != 0
                    ? EAI_SYSTEM
                    : getaddrinfo(bz_is_localhost(host) ? NULL : host, service, &want, &found);
    if (error != 0)
        return meaning_of(error, fault != 0 ? fault : errno);
    for (struct addrinfo *a = found; a != NULL && n < room; a = a->ai_next) {
        struct bz_sockname s;
        if (a->ai_addrlen > sizeof s)
            continue;
        memcpy(&s, a->ai_addr, a->ai_addrlen);
        bz_sockaddr_to(&s, a->ai_addrlen, &out[n]);
        n += out[n].kind != BLITZ_ADDR_NONE;
    }
    freeaddrinfo(found);
    return n > 0 ? (int)n : -ENOENT;
}
