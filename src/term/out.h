/*
 * out.h - errors of a writer, for the tables of structs.
 */
#ifndef BZ_TERM_OUT_H
#define BZ_TERM_OUT_H

#include "blitz/term.h"

/* Note an error. The first one counts, but -ENOSPC gives way to any other. */
void bz_term_out_fail(blitz_term_out *out, int error);

#endif
