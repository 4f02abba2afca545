/*
 * blitz/par.h - parallel computations: everything blitz offers for them.
 *
 *     blitz/fork.h     fork and join, the ground all of it stands on
 *
 * Each header beneath stands on its own and is the manual of one idea.
 */
#ifndef BLITZ_PAR_H
#define BLITZ_PAR_H

#include "blitz/fork.h"

#endif
