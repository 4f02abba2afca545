/*
 * blitz/iter.h - parallel iterators over arrays: one definition, one function.
 *
 *     BLITZ_SUM_DEFINE(weight, double, BLITZ_EACH_AT(const struct item, it), it->mass * g, (double, g));
 *
 * at file scope defines
 *
 *     static int weight(const struct item *it, size_t n, double g, double *out, const blitz_par_opts *opts);
 *
 * which adds up the expression over all elements, on all free workers. Call it from a task, or from any thread. The
 * body is compiled into the loop: there is no call through a pointer for each element. If a compiler vectorizes the
 * plain loop, it vectorizes this one, too.
 *
 * A definition has:
 *   - the operation:
 *
 *       do something with every element         BLITZ_FOR_EACH_DEFINE        iter_map.h
 *       ... that can fail; stop at a failure    BLITZ_TRY_FOR_EACH_DEFINE    iter_find.h
 *       an array from an array (or several)     BLITZ_MAP_DEFINE             iter_map.h
 *       ... in the same place                   BLITZ_MAP_IN_PLACE_DEFINE
 *       ... each to a place of its choice       BLITZ_SCATTER_DEFINE
 *       all elements alike; a copy              blitz_fill, blitz_copy
 *       only some of them                       BLITZ_FILTER_DEFINE          iter_compact.h
 *       ... and something made of each          BLITZ_FILTER_MAP_DEFINE
 *       some first, then the others             BLITZ_PARTITION_DEFINE
 *       many arrays into one                    BLITZ_OFFSETS_DEFINE, BLITZ_FLATTEN_DEFINE
 *       a sum, a dot product, how many          BLITZ_SUM_, BLITZ_DOT_, BLITZ_COUNT_DEFINE   iter_fold.h
 *       the least, the largest value            BLITZ_MIN_, BLITZ_MAX_DEFINE
 *       ... where it is, by a key or by "less"  BLITZ_MIN_BY_KEY_, MAX_BY_KEY_, MIN_BY_, MAX_BY_DEFINE
 *       values combined in a way of your own    BLITZ_REDUCE_DEFINE
 *       ... made by what can fail               BLITZ_TRY_REDUCE_DEFINE      iter_find.h
 *       ... in a large accumulator              BLITZ_FOLD_DEFINE            iter_fold.h
 *       is there one, are all                   BLITZ_ANY_, BLITZ_ALL_DEFINE iter_find.h
 *       where is one, the first, the last       BLITZ_FIND_ANY_, FIND_FIRST_, FIND_LAST_DEFINE
 *       where is this value                     BLITZ_POSITION_DEFINE
 *
 *   - the name of the function, and the type of the result, if there is a choice;
 *   - the source: what it iterates over. One array, from its end (rev) or in steps; two or three side by side (zip), two one
 *     after the other (chain) or in turn (interleave); chunks, windows, or indexes alone: blitz/iter_source.h. Every source works with every operation that does not say
 *     otherwise, so that a map and a sum are one pass;
 *   - the body: an expression (for some operations, a statement). It uses the names of the source, `i`, the index, and
 *     the captures. It has no comma outside of parentheses: put longer code into an inline function;
 *   - the captures, if any: (type, name) each, up to 8. They are parameters of the function, passed by value, and the
 *     body sees them by their names. They may point to const, but may not be const. A captured array is visible as a
 *     whole: with `(const double *, y)`, y[i] is one more array beside those of the source.
 *
 * The parameters of the function are, in this order: those of the source, the captures, the results, and the options
 * (blitz/loop.h; NULL is right). opts->grain counts indexes.
 *
 * Common to all functions:
 *   - Bodies run at the same time, in any order, on any worker; once for each index, unless stated otherwise. They may
 *     do what a job may (blitz/fork.h): wait, lock, call another of these.
 *   - They return 0 (or the documented value) or -errno. A cancel of the calling task ends them with -ECANCELED at the
 *     next chunk. A function allocates only if its comment says so.
 *   - If n is 0, no body is called, results are those of an empty array, and pointers may be NULL.
 *   - Outputs do not overlap inputs, unless stated otherwise.
 *   - In bodies, names that end in an underscore are reserved. The function is static; end the definition with a
 *     semicolon. It works in C and C++; in C++ results and accumulators must be of trivially copyable types.
 */
#ifndef BLITZ_ITER_H
#define BLITZ_ITER_H

#include "blitz/iter_compact.h"
#include "blitz/iter_find.h"
#include "blitz/iter_fold.h"
#include "blitz/iter_map.h"
#include "blitz/iter_source.h"

#endif
