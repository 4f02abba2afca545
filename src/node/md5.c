/*
 * md5.c - MD5, as RFC 1321 defines it.
 *
 * The handshake of nodes proves the cookie by an MD5 digest of cookie and challenge; the protocol leaves no choice. MD5 is too weak to
 * protect anything else, and nothing else here uses it. libblitz needs no library of cryptography for these 60 lines.
 *
 * The constants are the integer parts of 2^32 * |sin(i + 1)|. They are written out: a table that is computed needs the library of
 * mathematics.
 */
#include "node/md5.h"

#include <string.h>

static const uint32_t sine[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static const unsigned char shift[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t rotate(uint32_t v, unsigned by)
{
    return v << by | v >> (32 - by);
}

static uint32_t little(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void little_to(unsigned char *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

/* The function of step i, and the word that it adds. */
static uint32_t mix(unsigned i, uint32_t b, uint32_t c, uint32_t d, unsigned *word)
{
    switch (i / 16) {
    case 0:
        *word = i;
        return (b & c) | (~b & d);
    case 1:
        *word = (5 * i + 1) % 16;
        return (d & b) | (~d & c);
    case 2:
        *word = (3 * i + 5) % 16;
        return b ^ c ^ d;
    default:
        *word = 7 * i % 16;
        return c ^ (b | ~d);
    }
}

static void add_block(struct bz_md5 *m, const unsigned char *block)
{
    uint32_t a = m->state[0], b = m->state[1], c = m->state[2], d = m->state[3];
    for (unsigned i = 0; i < 64; i++) {
        unsigned word;
        uint32_t sum = mix(i, b, c, d, &word) + a + sine[i];
        sum += little(block + 4 * (size_t)word);
        a = d;
        d = c;
        c = b;
        b += rotate(sum, shift[i / 16][i % 4]);
    }
    m->state[0] += a;
    m->state[1] += b;
    m->state[2] += c;
    m->state[3] += d;
}

void bz_md5_init(struct bz_md5 *m)
{
    *m = (struct bz_md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void bz_md5_add(struct bz_md5 *m, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    while (bytes > 0) {
        size_t used = m->bytes % BZ_MD5_BLOCK, n = BZ_MD5_BLOCK - used;
        n = n < bytes ? n : bytes;
        memcpy(m->block + used, from, n);
        m->bytes += n;
        from += n;
        bytes -= n;
        if (used + n == BZ_MD5_BLOCK)
            add_block(m, m->block);
    }
}

void bz_md5_end(struct bz_md5 *m, unsigned char digest[BZ_MD5_BYTES])
{
    static const unsigned char padding[BZ_MD5_BLOCK] = {0x80};
    unsigned char length[8];
    little_to(length, (uint32_t)(m->bytes << 3));
    little_to(length + 4, (uint32_t)(m->bytes >> 29));
    size_t used = m->bytes % BZ_MD5_BLOCK;
    bz_md5_add(m, padding, used < 56 ? 56 - used : 120 - used);
    bz_md5_add(m, length, sizeof length);
    for (size_t i = 0; i < 4; i++)
        little_to(digest + 4 * i, m->state[i]);
}
