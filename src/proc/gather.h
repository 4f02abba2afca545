/*
 * gather.h - at low load one proc listens for all: gather.c has the policy and its reasons.
 *
 * The current decision is one word: a number that counts the decisions, and the proc that listens for all, its
 * *home*, or none. A file keeps the number of the decision under which it was attached. A wait for that file
 * compares the two, and moves the file only if there was another decision since.
 */
#ifndef BZ_SCHED_GATHER_H
#define BZ_SCHED_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

struct bz_poll;
struct bz_proc;
struct bz_runtime;

/* The low bits: 0: each proc listens for itself; n: proc n - 1 listens for all. */
enum { BZ_GATHER_HOME_BITS = 11, BZ_GATHER_HOME = (1 << BZ_GATHER_HOME_BITS) - 1 };

struct bz_gather {
    BZ_OWN_LINE bz_atomic(uint32_t) word;
    /* The rest is the monitor's own. */
    uint64_t began_ns; /* when the current window began; 0: there is none */
    uint64_t busy_ns;  /* the time that all procs had worked by then */
    uint64_t since_ns; /* when the last decision was made */
    uint64_t hold_ns;  /* how long the mode stays after a spread */
    unsigned calm;     /* windows in a row in which one proc could have done everything */
};

void bz_gather_init(struct bz_gather *g);

/* Return the proc that listens for all, or NULL. */
struct bz_proc *bz_gather_home(struct bz_runtime *rt, uint32_t word);

static inline uint32_t bz_gather_word(struct bz_gather *g)
{
    return bz_load_relaxed(&g->word); /* relaxed: a hint */
}

/* Return the number of the decision, for a file to keep. It repeats after 256 decisions; a file that did not move by
 * then does so at the next decision. */
static inline uint8_t bz_gather_number(uint32_t word)
{
    return (uint8_t)(word >> BZ_GATHER_HOME_BITS);
}

/* For the monitor, at each look. */
void bz_gather_review(struct bz_runtime *rt, uint64_t now_ns);
/* For the monitor, when it has seen a proc at one task for long. */
void bz_gather_end(struct bz_runtime *rt, uint64_t now_ns);

#endif
