/*
 * winsock_lookup.c - resolve names with the resolver of Windows: io/lookup.h.
 *
 * "localhost" is the loopback interface by definition, as in lookup.c.
 */
#include "io/winsock.h"

#include <errno.h>
#include <string.h>

#include "io/attempt.h"
#include "io/lookup.h"
#include "io/sockaddr.h"

int (*bz_lookup_instead)(const char *host, const char *service, blitz_addr *out, size_t room);

static int meaning_of(int error)
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
    if (length < bytes || _strnicmp(host + length - bytes, name, bytes) != 0)
        return false;
    return length == bytes || (length > bytes + 1 && host[length - bytes - 1] == '.');
}

/* A connect of a datagram socket sends nothing; it fails if there is no route to the address. */
bool bz_has_v6_loopback(void)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    at.sin6_addr.s6_addr[15] = 1;
    SOCKET s = socket(AF_INET6, SOCK_DGRAM, 0);
    if (s == INVALID_SOCKET)
        return false;
    bool has = connect(s, (const struct sockaddr *)&at, sizeof at) == 0;
    closesocket(s);
    return has;
}

int bz_lookup(const char *host, const char *service, blitz_addr *out, size_t room)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    size_t n = 0;
    if (bz_io_fault_of("getaddrinfo") != 0)
        return -EIO;
    if (bz_lookup_instead != NULL)
        return bz_lookup_instead(host, service, out, room);
    int error = getaddrinfo(bz_is_localhost(host) ? NULL : host, service, &want, &found);
    if (error != 0)
        return meaning_of(error);
    for (struct addrinfo *a = found; a != NULL && n < room; a = a->ai_next) {
        struct bz_sockname s;
        if (a->ai_addrlen > sizeof s)
            continue;
        memcpy(&s, a->ai_addr, a->ai_addrlen);
        bz_sockaddr_to(&s, (uint32_t)a->ai_addrlen, &out[n]);
        n += out[n].kind != BLITZ_ADDR_NONE;
    }
    freeaddrinfo(found);
    return n > 0 ? (int)n : -ENOENT;
}
