/*
 * blitz/par.h - parallel computations: everything blitz offers for them.
 *
 *     blitz/fork.h     fork and join, the ground all of it stands on
 *     blitz/loop.h     loops, reductions, scans, pipelines
 *     blitz/iter.h     what is done with arrays, with the body inlined
 *     blitz/sort.h     sorts
 *
 * Each header beneath stands on its own and is the manual of one idea.
 */
#ifndef BLITZ_PAR_H
#define BLITZ_PAR_H

#include "blitz/fork.h"
#include "blitz/iter.h"
#include "blitz/loop.h"
#include "blitz/sort.h"

#endif
