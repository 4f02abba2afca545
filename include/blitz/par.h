/*
 * blitz/par.h - parallel computations: everything blitz offers for them.
 *
 *     blitz/fork.h     fork and join, the base of the others
 *     blitz/loop.h     loops, reductions, scans, pipelines
 *     blitz/iter.h     operations on arrays, with the body inlined
 *     blitz/sort.h     sorts
 *
 * Each of these headers is complete in itself and is the manual of one topic.
 */
#ifndef BLITZ_PAR_H
#define BLITZ_PAR_H

#include "blitz/fork.h"
#include "blitz/iter.h"
#include "blitz/loop.h"
#include "blitz/sort.h"

#endif
