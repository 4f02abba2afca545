/*
 * counter.h - the behaviours of the upgrade tests: their messages, and the states of each version.
 *
 * The library is counter.c with -DVERSION=n. The program has version 1 as well: it includes counter.c with IN_PROGRAM.
 */
#ifndef T_COUNTER_H
#define T_COUNTER_H

#include "blitz.h"

enum { ADD, GET, WAIT, FAIL, TAKE_NAME, START_FIBER, POINT, FAULT, SPAWN_PLAIN, NOTE, NOTES };

/* Version 1; 2 counts as well; 3 has a state that is larger than any slot. */
struct counter_1 {
    long sum;
    long next; /* the number of the next ADD */
    long broken;
};

struct counter_2 {
    long sum;
    long next;
    long broken;
    long count;
};

struct counter_3 {
    long filler[200];
    long sum;
    long next;
    long broken;
    long count;
};

/* The answer to GET. */
struct counted_by {
    long version, sum, broken, count;
    long calls; /* of the handler of ADD in this library: a static variable */
};

/* WAIT, START_FIBER: until it is set. */
struct waiting {
    blitz_event *until;
    blitz_event *begun; /* set before; NULL: not wanted */
};

#endif
