/*
 * head.h - one term, or the head of a term with parts; and whole terms.
 */
#ifndef BZ_TERM_HEAD_H
#define BZ_TERM_HEAD_H

#include "blitz/term.h"

struct bz_term_head {
    blitz_term_item item;
    uint64_t parts;             /* terms that follow, and belong to it */
    const unsigned char *after; /* the first byte behind the head */
    const unsigned char *end;   /* of a FUN: where its parts must end; else NULL */
};

/*
 * Read the head at `at`. Return 0, or -EPROTO. Each part has at least one byte, so a head with more parts than bytes behind it is
 * refused: no caller counts to 2^32 for 5 bytes.
 *
 * Of a FUN, as.fun.module is its module, and the parts are the terms that it has captured.
 */
int bz_term_head(const unsigned char *at, const unsigned char *end, struct bz_term_head *head);

/*
 * Walk over a whole term. Return 0 and its end, -EPROTO, or -E2BIG: deeper than `depth` (at most BLITZ_TERM_DEPTH_MAX), or more than
 * `bytes_max` bytes. *heads, unless NULL, grows by the number of heads.
 */
int bz_term_walk(const unsigned char *at, const unsigned char *end, uint32_t depth,
                 size_t bytes_max, const unsigned char **after, uint64_t *heads);

#endif
