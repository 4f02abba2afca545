/*
 * sockaddr.c - convert our addresses to sockaddr and back.
 *
 * A Unix name ends by its length, not by a 0; an abstract name may contain zeros. The system
 * sometimes appends a 0 to the path of a peer; it is removed here, so that an address reads back as
 * it was written.
 */
#define _GNU_SOURCE 1
#include "io/sockaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

static int of_v4(const blitz_addr *a, struct bz_sockname *out)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    memcpy(&in.sin_addr, a->is.ip, 4);
    memcpy(out, &in, sizeof in);
    return sizeof in;
}

static int of_v6(const blitz_addr *a, struct bz_sockname *out)
{
    struct sockaddr_in6 in = {
        .sin6_family = AF_INET6, .sin6_port = htons(a->port), .sin6_scope_id = a->scope};
    memcpy(&in.sin6_addr, a->is.ip, 16);
    memcpy(out, &in, sizeof in);
    return sizeof in;
}

static int of_unix(const blitz_addr *a, struct bz_sockname *out)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    if (a->bytes == 0 || a->bytes > sizeof un.sun_path)
        return -EINVAL;
    memcpy(un.sun_path, a->is.name, a->bytes);
    memcpy(out, &un, sizeof un);
    return (int)offsetof(struct sockaddr_un, sun_path) + a->bytes;
}

int bz_sockaddr_of(const blitz_addr *a, struct bz_sockname *out)
{
    switch (a->kind) {
    case BLITZ_ADDR_V4:
        return of_v4(a, out);
    case BLITZ_ADDR_V6:
        return of_v6(a, out);
    case BLITZ_ADDR_UNIX:
        return of_unix(a, out);
    default:
        return -EINVAL;
    }
}

int bz_sockaddr_family(const blitz_addr *a)
{
    switch (a->kind) {
    case BLITZ_ADDR_V4:
        return AF_INET;
    case BLITZ_ADDR_V6:
        return AF_INET6;
    case BLITZ_ADDR_UNIX:
        return AF_UNIX;
    default:
        return -EINVAL;
    }
}

static void to_unix(const struct bz_sockname *from, uint32_t bytes, blitz_addr *out)
{
    struct sockaddr_un un;
    size_t head = offsetof(struct sockaddr_un, sun_path);
    size_t length = bytes > head ? bytes - head : 0;
    memcpy(&un, from, sizeof un);
    if (length > sizeof un.sun_path)
        length = sizeof un.sun_path;
    if (length > 0 && un.sun_path[0] != '\0')
        length = strnlen(un.sun_path, length);
    out->kind = BLITZ_ADDR_UNIX;
    out->bytes = (uint8_t)length;
    memcpy(out->is.name, un.sun_path, length);
}

typedef sa_family_t BZ_MAY_ALIAS family_in_bytes;

void bz_sockaddr_to(const struct bz_sockname *from, uint32_t bytes, blitz_addr *out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    /* Behind what a short name has, it is not looked at. */
    const family_in_bytes *family =
        (const void *)&from->bytes[offsetof(struct sockaddr, sa_family)];
    memset(out, 0, sizeof *out);
    if (bytes >= sizeof v4 && *family == AF_INET) {
        memcpy(&v4, from, sizeof v4);
        *out = blitz_addr_v4(0, 0, 0, 0, ntohs(v4.sin_port));
        memcpy(out->is.ip, &v4.sin_addr, 4);
    } else if (bytes >= sizeof v6 && *family == AF_INET6) {
        memcpy(&v6, from, sizeof v6);
        *out = blitz_addr_v6(v6.sin6_addr.s6_addr, ntohs(v6.sin6_port), v6.sin6_scope_id);
    } else if (bytes >= offsetof(struct sockaddr, sa_data) && *family == AF_UNIX) {
        to_unix(from, bytes, out);
    }
}
