/*
 * lookup.c - addresses by name, from the system's resolver.
 *
 * getaddrinfo and nothing else: what it reads (hosts, name servers, whatever was configured) and in
 * what order it sorts is the administrator's business, and a resolver of ours would get it wrong.
 * It is asked for streams, so that each address comes once.
 */
#define _GNU_SOURCE 1
#include "io/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

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

int bz_lookup(const char *host, const char *service, blitz_addr *out, size_t room)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    size_t n = 0;
    int fault = bz_io_fault_of("getaddrinfo");
    if (bz_lookup_instead != NULL)
        return bz_lookup_instead(host, service, out, room);
    int error = fault != 0 ? EAI_SYSTEM : getaddrinfo(host, service, &want, &found);
    if (error != 0)
        return meaning_of(error, fault != 0 ? fault : errno);
    for (struct addrinfo *a = found; a != NULL && n < room; a = a->ai_next) {
        struct sockaddr_storage s;
        if (a->ai_addrlen > sizeof s)
            continue;
        memcpy(&s, a->ai_addr, a->ai_addrlen);
        bz_sockaddr_to(&s, a->ai_addrlen, &out[n]);
        n += out[n].kind != BLITZ_ADDR_NONE;
    }
    freeaddrinfo(found);
    return n > 0 ? (int)n : -ENOENT;
}
