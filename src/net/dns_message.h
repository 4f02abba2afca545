/*
 * dns_message.h - questions to and answers of name servers, as bytes. dns_message.c has the rules.
 *
 * Nothing here waits, allocates or calls the system. Every byte of an answer is untrusted.
 */
#ifndef BZ_NET_DNS_MESSAGE_H
#define BZ_NET_DNS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "blitz/addr.h"

enum bz_dns_type { BZ_DNS_A = 1, BZ_DNS_CNAME = 5, BZ_DNS_SOA = 6, BZ_DNS_AAAA = 28 };

enum {
    BZ_DNS_NAME_MAX =
        255, /* bytes of a name as text, with the 0 at its end, without the dot of the root */
    BZ_DNS_LABEL_MAX = 63,     /* bytes of a label */
    BZ_DNS_QUESTION_MAX = 300, /* bytes of the longest question */
    BZ_DNS_UDP_MAX =
        1232, /* bytes of an answer over UDP that we announce: it fits into every path's packets */
    BZ_DNS_MESSAGE_MAX = 65535, /* bytes of any message */
    BZ_DNS_CHAIN_MAX = 12,      /* aliases from the name in the question to the addresses */
    BZ_DNS_FOUND_MAX = 32       /* addresses kept of one answer */
};

/* A question: one name, one type. */
struct bz_dns_question {
    char name[BZ_DNS_NAME_MAX]; /* lower case, without the dot at its end */
    uint16_t type;              /* enum bz_dns_type */
    uint16_t id;                /* random for each attempt */
};

enum bz_dns_verdict {
    BZ_DNS_FOUND,     /* addresses */
    BZ_DNS_NO_NAME,   /* there is no such name */
    BZ_DNS_NO_DATA,   /* the name has no address of this type */
    BZ_DNS_TRUNCATED, /* the answer did not fit: ask over TCP */
    BZ_DNS_REFUSES,   /* the server fails or refuses: ask another one */
    BZ_DNS_NO_EDNS,   /* the server does not know EDNS0: ask again without it */
    BZ_DNS_FOREIGN    /* not an answer to this question: go on waiting */
};

struct bz_dns_answer {
    uint32_t ttl_s;                   /* how long it may be kept; 0: not at all */
    uint16_t count;                   /* FOUND: addresses */
    uint8_t ip[BZ_DNS_FOUND_MAX][16]; /* of the question's type: 4 or 16 bytes each */
};

/*
 * Copy a name in lower case, without the dot at its end.
 * Returns: its length; -EINVAL: a label is empty or too long, the name is too long, or it has a byte that is not a
 *          letter, a digit, '-' or '_'. *out is written only on success.
 */
BZ_MUST_USE int bz_dns_name(const char *text, size_t bytes, char out[BZ_DNS_NAME_MAX]);

/* Write a question. Returns its length. The question's name was made by bz_dns_name(). */
BZ_MUST_USE size_t bz_dns_write(const struct bz_dns_question *q, bool has_edns,
                                uint8_t out[BZ_DNS_QUESTION_MAX]);

/* Read the answer to a question. *out is written for FOUND, NO_NAME and NO_DATA. */
BZ_MUST_USE enum bz_dns_verdict bz_dns_read(const struct bz_dns_question *q, const uint8_t *data,
                                            size_t bytes, struct bz_dns_answer *out);

/*
 * Read a name that begins at *at, and move *at behind it. Pointers are followed.
 * Returns: 0; -EIO: the name leaves the message, is too long, or a pointer does not point backwards.
 */
BZ_MUST_USE int bz_dns_read_name(const uint8_t *data, size_t bytes, size_t *at,
                                 char out[BZ_DNS_NAME_MAX]);

#endif
