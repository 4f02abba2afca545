/*
 * table.h - tables of structs, for those of messages.
 */
#ifndef BZ_TERM_TABLE_H
#define BZ_TERM_TABLE_H

#include "base/compiler.h"
#include "blitz/term_struct.h"

/* The head of a term, read once for all rows of a table. */
struct bz_term_first {
    bool is_tuple, has_atom;
    uint32_t arity;       /* of a tuple */
    blitz_term_atom atom; /* the term, or the first part of the tuple */
};

/* Read the head of the next term. 0, or as blitz_term_peek(). */
BZ_MUST_USE int bz_term_first_get(blitz_term_in in, struct bz_term_first *out);
/* True if that is the head of the table: its tag and its number of parts. A bare table takes any term. */
bool bz_term_table_fits(const struct bz_term_first *first, const blitz_term_type *type);

#endif
