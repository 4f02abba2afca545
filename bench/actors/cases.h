/*
 * cases.h - the cases of bench-actors, for the programs in C and C++. It knows nothing of blitz. The programs in Erlang and Go
 * do the same with the same numbers.
 *
 * Each figure is for one message, one call, one pair or one life, unless the case says otherwise.
 *
 *   ping-pong     two actors and one message, to and fro
 *   ring          RING actors and one message, around and around
 *   counting      one actor sends to another, which counts
 *   fan-in        SENDERS actors send to one, which counts
 *   big           BIG actors; each sends a ping to a random other one, and the next after the pong
 *   create        an actor creates another and sends it a message; the other handles it and ends
 *   call          an actor calls another, and waits for the reply in its handler
 *   link          an actor links itself with another, and unlinks
 *   monitor       an actor begins to watch another, and stops
 *   restart       a child fails with its first message, and its supervisor starts it again
 *
 *   counting-peak, fan-in-peak    the peak memory of the process in MB, with PEAK messages
 *   idle-64, idle-0               the bytes of an idle actor of IDLE, with a state of 64 bytes and with the smallest
 *
 * An actor does not do all of its work in one message. A sender of counting and fan-in sends BURST messages in a handler, then one
 * to itself. (Erlang preempts its senders, and in Go they wait for room: those need no bursts.) The parent of create makes BATCH
 * children; the last one answers, and the parent makes the next ones.
 */
#ifndef BENCH_ACTORS_CASES_H
#define BENCH_ACTORS_CASES_H

#include "tasks/tasks.h"

enum {
    RING = 100,
    SENDERS = 100,
    BATCH = 100, /* of pairs, and of children */
    BURST = 20,  /* of messages of a sender */
    BIG = 120,
    PEAK = 2000000,
    IDLE = 1000000,
    IDLE_STEP = 1000 /* so many are made, then they run */
};

/* A small generator of random numbers, for the choice of a partner. */
static inline uint64_t cases_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* A partner for actor `me` of `count`: any other one. */
static inline uint64_t cases_partner(uint64_t *seed, uint64_t me, uint64_t count)
{
    uint64_t other = cases_random(seed) % (count - 1);
    return other < me ? other : other + 1;
}

/* The peak memory of the process so far, in MB. */
static inline double cases_peak_mb(void)
{
    return (double)tasks_proc_number("/proc/self/status", "VmHWM:") / 1024;
}

#endif
