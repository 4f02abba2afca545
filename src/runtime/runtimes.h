/*
 * runtimes.h - the list of this process's runtimes, for debuggers and for ids of actors.
 */
#ifndef BZ_RUNTIMES_H
#define BZ_RUNTIMES_H

#include <stdint.h>

struct bz_runtime;

/* Add a complete runtime to the list; remove one before it is taken apart, and wait until its visitors have left. Any thread. */
void bz_runtimes_add(struct bz_runtime *rt);
void bz_runtimes_remove(struct bz_runtime *rt);

/* The runtime with that number (rt->creation); NULL: there is none any more. The caller knows that it stays, or visits it. Any thread. */
struct bz_runtime *bz_runtimes_find(uint32_t creation);

/*
 * Visit the runtime with that number: it is not taken apart before bz_runtimes_leave(), which must come soon. NULL: there is none
 * any more. A visitor that wants to wait calls bz_task_stay() before it leaves. Any thread.
 */
struct bz_runtime *bz_runtimes_visit(uint32_t creation);
void bz_runtimes_leave(struct bz_runtime *rt);

#endif
