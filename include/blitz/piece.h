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

/* The most pieces that one call transfers. A call with more transfers some of the first ones, as if there were no room
 * for the rest. */
#define BLITZ_PIECES_MAX 1024

BLITZ_END_DECLS

#endif
