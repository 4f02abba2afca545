/*
 * blitz/piece.h - a piece of memory among several, for calls that read or write many at once.
 */
#ifndef BLITZ_PIECE_H
#define BLITZ_PIECE_H

#include <stddef.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_piece {
    void *data;
    size_t bytes;
} blitz_piece;

/* The most pieces in one call. */
#define BLITZ_PIECES_MAX 64

BLITZ_END_DECLS

#endif
