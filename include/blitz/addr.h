/*
 * blitz/addr.h - IPv4, IPv6 and Unix addresses as plain values.
 *
 *     blitz_addr at;
 *     int err = blitz_addr_parse("127.0.0.1:8080", &at);
 *     char text[BLITZ_ADDR_TEXT_MAX];
 *     blitz_addr_print(&at, text, sizeof text);
 *
 * The text forms:
 *     127.0.0.1:80        IPv4 and a port
 *     [::1]:80            IPv6 and a port; [fe80::1%3]:80 with the number of an interface
 *     :80                 every address of this host: [::]:80, which takes IPv4, too (blitz/tcp.h)
 *     unix:name           a socket in the file system: the rest is its path
 *     unix:@name          a socket in Linux's abstract name space
 *
 * An address is a value of fixed size without pointers: copy it, keep it, send it. Host names are not addresses:
 * blitz/resolve.h looks them up. Parsing is strict: no blanks, no signs, no leading zeros, no short forms of IPv4.
 *
 * None of these functions waits or calls the system. Any thread may call them.
 */
#ifndef BLITZ_ADDR_H
#define BLITZ_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

typedef enum blitz_addr_kind {
    BLITZ_ADDR_NONE = 0, /* zeroed memory */
    BLITZ_ADDR_V4 = 1,
    BLITZ_ADDR_V6 = 2,
    BLITZ_ADDR_UNIX = 3
} blitz_addr_kind;

#define BLITZ_ADDR_NAME_MAX 108

typedef struct blitz_addr {
    uint8_t kind;   /* a blitz_addr_kind */
    uint8_t bytes;  /* of `name`; 0: a Unix socket that has none */
    uint16_t port;  /* as a number, in host byte order */
    uint32_t scope; /* IPv6: the interface of a link-local address; else 0 */
    union {
        uint8_t ip[16];                 /* IPv4: the first four */
        char name[BLITZ_ADDR_NAME_MAX]; /* Unix; an abstract one begins with a 0 */
    } is;
} blitz_addr;

/* Room for any address as text, with the 0 at its end. */
#define BLITZ_ADDR_TEXT_MAX 464

/*
 * Parse an address.
 * Owns:     copies the text. *out is written only on success.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (not one of the forms above), -ENAMETOOLONG (a Unix name that does not
 *           fit).
 */
BLITZ_API int blitz_addr_parse(const char *text, blitz_addr *out);

/*
 * Parse an IP address without a port: "127.0.0.1", "::1", "fe80::1%3".
 * Owns:     copies the text. *out is written only on success.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL.
 */
BLITZ_API int blitz_addr_parse_ip(const char *text, uint16_t port, blitz_addr *out);

/*
 * Write the text of an address, as blitz_addr_parse() reads it. In an abstract name, bytes that do not print are
 * written as \xNN, which is for people only.
 * Owns:     writes up to `room` bytes at `text`, with a 0 at the end.
 * Suspends: never. Call from any thread.
 * Returns:  the length, without the 0; -ENOSPC (nothing was written), -EINVAL (no address).
 */
BLITZ_API int blitz_addr_print(const blitz_addr *a, char *text, size_t room);

/*
 * Make an address from numbers: any IPv4 or IPv6 address, the loopback address of either, or "every address of this
 * host", to listen at.
 * Owns:     copies its arguments.
 * Suspends: never. Call from any thread.
 * Returns:  the address.
 */
BLITZ_API blitz_addr blitz_addr_v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port);
BLITZ_API blitz_addr blitz_addr_v6(const uint8_t ip[16], uint16_t port, uint32_t scope);
BLITZ_API blitz_addr blitz_addr_loopback_v4(uint16_t port);
BLITZ_API blitz_addr blitz_addr_loopback_v6(uint16_t port);
BLITZ_API blitz_addr blitz_addr_any_v4(uint16_t port);
BLITZ_API blitz_addr blitz_addr_any_v6(uint16_t port);

/*
 * Make a Unix address: a path, or a name of the abstract name space, which may hold any bytes.
 * Owns:     copies the name. *out is written only on success.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (none, or empty), -ENAMETOOLONG (over 107 bytes).
 */
BLITZ_API int blitz_addr_unix(const char *path, blitz_addr *out);
BLITZ_API int blitz_addr_abstract(const void *name, size_t bytes, blitz_addr *out);

/*
 * Get or set the port.
 * Owns:     borrows the address until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  port: the number, 0 of a Unix address. set_port: 0, -EINVAL (not an IP address).
 */
BLITZ_API uint16_t blitz_addr_port(const blitz_addr *a);
BLITZ_API int blitz_addr_set_port(blitz_addr *a, uint16_t port);

/*
 * Test an address. An IPv4 address in IPv6 form (::ffff:...) is tested as the IPv4 address. Only is_v4 and is_v6 go by
 * the form.
 * Owns:     borrows the address until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  true if it is:
 *             loopback     this host (127/8, ::1), or a Unix address
 *             any          every address of this host
 *             multicast    a group
 *             link_local   of one link only (169.254/16, fe80::/10)
 *             private      not routed in the world (10/8, 172.16/12, 192.168/16, fc00::/7)
 *             v4_mapped    an IPv4 address as IPv6
 *             abstract     a Unix address without a file
 */
BLITZ_API bool blitz_addr_is_v4(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_v6(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_unix(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_abstract(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_loopback(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_any(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_multicast(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_link_local(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_private(const blitz_addr *a);
BLITZ_API bool blitz_addr_is_v4_mapped(const blitz_addr *a);

/*
 * Return the IPv4 address inside ::ffff:a.b.c.d, the form in which a listener for both families sees its peers.
 * Owns:     borrows the address until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  that address; any other address unchanged.
 */
BLITZ_API blitz_addr blitz_addr_unmap(const blitz_addr *a);

/*
 * Test two addresses for equality, or compare them in an order that is the same everywhere: by kind, by address, by
 * port. A v4-mapped address is not equal to the IPv4 one: unmap first.
 * Owns:     borrows both until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  is_equal: true if they are equal. compare: less than, equal to or greater than 0.
 */
BLITZ_API bool blitz_addr_is_equal(const blitz_addr *a, const blitz_addr *b);
BLITZ_API int blitz_addr_compare(const blitz_addr *a, const blitz_addr *b);

BLITZ_END_DECLS

#endif
