/*
 * overdue.h - the tasks that a shutdown waits for, by name and place, in the log.
 */
#ifndef BZ_OVERDUE_H
#define BZ_OVERDUE_H

#include <stdint.h>

struct bz_runtime;

/* A shutdown logs the tasks it waits for after this time, and then again every
 * BZ_OVERDUE_AGAIN_NS. */
#define BZ_OVERDUE_FIRST_NS UINT64_C(1000000000)
#define BZ_OVERDUE_AGAIN_NS UINT64_C(10000000000)

/* Log the tasks of rt that have not ended, up to a few of them; `waited_ns`: how long the shutdown
 * has waited. Any thread. */
void bz_overdue_say(struct bz_runtime *rt, uint64_t waited_ns);

#endif
