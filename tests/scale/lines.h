/*
 * lines.h - the coherence model: which caches hold a line, and what an access costs.
 *
 * A line of 64 bytes is cold (no cache has it), shared (some caches have a copy) or owned (one
 * cache has it, and may have changed it). Caches are endless: a line leaves a cache only if
 * another CPU writes to it.
 *
 *   access            state of the line               price
 *   read, write       own copy, or owned              hit
 *   write             in no other cache               hit
 *   read              cold                            cold
 *   read              owned or shared elsewhere       move
 *   write             owned or shared elsewhere       move + invalidate x other sharers
 *   atomic RMW        as write                        + locked
 *
 * A line is in one place at a time: while it moves, the next CPU that wants it waits. Reads of a
 * line that is shared already overlap: each occupies the line only for `share`.
 *
 * Sites. Each move is counted at the code address that caused it. A site also knows the line that
 * caused most of its moves, by a majority vote: so a report can tell one hot line from many.
 */
#ifndef SCALE_LINES_H
#define SCALE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#define LINE_BYTES 64u
#define LINE_SHARER_WORDS 4u /* 256 CPUs */

/* In picoseconds. docs/scaling.md has their sources. */
struct line_prices {
    uint64_t hit;
    uint64_t cold;
    uint64_t move;
    uint64_t invalidate; /* for each other sharer */
    uint64_t share;
    uint64_t locked;
};

struct line_cost {
    uint64_t price_ps; /* without the wait */
    uint64_t wait_ps;  /* for the line itself */
    bool is_move;
};

/* Forget all lines and sites. */
void lines_reset(void);
/* Change the state for an access by `cpu` at time `now_ps` and return its cost. */
struct line_cost lines_access(uintptr_t line, unsigned cpu, bool is_write, uint64_t now_ps,
                              const struct line_prices *prices);

struct line_site {
    uintptr_t pc; /* 0: unused */
    uint64_t moves, ps, wait_ps;
    uintptr_t line; /* the candidate of the majority vote */
    uint64_t votes; /* its lead over all other lines */
    uint64_t here;  /* moves of it since it became the candidate */
};

void lines_site(uintptr_t pc, uintptr_t line, const struct line_cost *cost);
void lines_sites_clear(void);
/* The `count` sites with the largest ps, the largest first. Returns how many there are. */
unsigned lines_sites_top(struct line_site *out, unsigned count);

#endif
