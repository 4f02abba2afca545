/*
 * wire.h - the tags of the external term format, and numbers in network order.
 */
#ifndef BZ_TERM_WIRE_H
#define BZ_TERM_WIRE_H

#include <stdint.h>

enum bz_term_tag {
    BZ_TAG_NEW_FLOAT = 70,
    BZ_TAG_BIT_BINARY = 77,
    BZ_TAG_NEW_PID = 88,
    BZ_TAG_NEW_PORT = 89,
    BZ_TAG_NEWER_REFERENCE = 90,
    BZ_TAG_SMALL_INTEGER = 97,
    BZ_TAG_INTEGER = 98,
    BZ_TAG_ATOM = 100,      /* Latin-1: old */
    BZ_TAG_REFERENCE = 101, /* old */
    BZ_TAG_PORT = 102,      /* old */
    BZ_TAG_PID = 103,       /* old */
    BZ_TAG_SMALL_TUPLE = 104,
    BZ_TAG_LARGE_TUPLE = 105,
    BZ_TAG_NIL = 106,
    BZ_TAG_STRING = 107,
    BZ_TAG_LIST = 108,
    BZ_TAG_BINARY = 109,
    BZ_TAG_SMALL_BIG = 110,
    BZ_TAG_LARGE_BIG = 111,
    BZ_TAG_NEW_FUN = 112,
    BZ_TAG_EXPORT = 113,
    BZ_TAG_NEW_REFERENCE = 114, /* old */
    BZ_TAG_SMALL_ATOM = 115,    /* Latin-1: old */
    BZ_TAG_MAP = 116,
    BZ_TAG_ATOM_UTF8 = 118,
    BZ_TAG_SMALL_ATOM_UTF8 = 119,
    BZ_TAG_V4_PORT = 120
};

static inline uint16_t bz_wire16(const unsigned char *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t bz_wire32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t bz_wire64(const unsigned char *p)
{
    return (uint64_t)bz_wire32(p) << 32 | bz_wire32(p + 4);
}

static inline void bz_wire16_to(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
}

static inline void bz_wire32_to(unsigned char *p, uint32_t v)
{
    bz_wire16_to(p, (uint16_t)(v >> 16));
    bz_wire16_to(p + 2, (uint16_t)v);
}

static inline void bz_wire64_to(unsigned char *p, uint64_t v)
{
    bz_wire32_to(p, (uint32_t)(v >> 32));
    bz_wire32_to(p + 4, (uint32_t)v);
}

#endif
