/*
 * cases.h - the cases of bench-gc, for the programs in C. It knows nothing of blitz. The programs in Erlang and Go do the same
 * with the same numbers.
 *
 * One actor (Erlang: one process; Go and malloc: one thread) works through messages to itself. A collection that is due comes
 * between two of them in ours, and anywhere in Erlang and Go.
 *
 *   alloc-32       objects of 32 bytes, of which none survives its message; ns an object. A message makes ALLOCS
 *   tree-D         a message builds a tree of depth D, all pairs of pointers, and drops it. The actor keeps another tree of the same
 *                  size. ns a node, with what it costs to free it
 *   update         a search tree of 2^UPDATE_DEPTH - 1 nodes (a million) by path copy; ns an update. A message makes BATCH
 *   map            a table of MAP places, in place: an update puts a new object into a place; ns an update. A message makes BATCH
 *   full-N         ns a live node of a full collection of N live nodes, which are linked in random order before it
 *   pause-N        a full collection of N live nodes in microseconds. The tree was built by recursion and collected before, so a
 *                  moving collector has put it in order. (Erlang has no way to scatter its nodes.)
 *   map-pause      the longest time between two messages in a million updates of that table, in microseconds
 *   idle           the bytes of an idle actor with a heap that is empty, of IDLE
 *   beside         the 99th percentile of the delays of tickers beside an actor that collects a million live nodes again and
 *                  again, divided by that beside an actor that computes as long
 *
 * Suffix -plain: the objects are of a type that may be written at any time; without it they are values where a program would make
 * values. Peers have one form for both.
 */
#ifndef BENCH_GC_CASES_H
#define BENCH_GC_CASES_H

#include "tasks/tasks.h"

enum {
    ALLOCS = 1000,
    BATCH = 100,
    UPDATE_DEPTH = 20,
    MAP = 1 << 20,
    IDLE = 200000,
    IDLE_STEP = 1000 /* so many are made, then they run */
};

/* A small generator of random numbers. */
static inline uint64_t gc_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* The nodes of a tree of that depth; a leaf has depth 0. */
static inline uint64_t gc_nodes(unsigned depth)
{
    return ((uint64_t)2 << depth) - 1;
}

#endif
