/*
 * resize.h - the number of procs that run tasks. sched/retire.c has the rules.
 */
#ifndef BZ_RUNTIME_RESIZE_H
#define BZ_RUNTIME_RESIZE_H

struct bz_runtime;

/* A new runtime: retire the procs beyond the number that its options ask for. No thread runs yet. */
void bz_resize_init(struct bz_runtime *rt);

#endif
