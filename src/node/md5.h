/*
 * md5.h - MD5, for the handshake of nodes.
 */
#ifndef BZ_NODE_MD5_H
#define BZ_NODE_MD5_H

#include <stddef.h>
#include <stdint.h>

enum { BZ_MD5_BYTES = 16, BZ_MD5_BLOCK = 64 };

struct bz_md5 {
    uint32_t state[4];
    uint64_t bytes;
    unsigned char block[BZ_MD5_BLOCK];
};

void bz_md5_init(struct bz_md5 *m);
void bz_md5_add(struct bz_md5 *m, const void *data, size_t bytes);
void bz_md5_end(struct bz_md5 *m, unsigned char digest[BZ_MD5_BYTES]);

#endif
