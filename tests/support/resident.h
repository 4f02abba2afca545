/*
 * resident.h - the memory that is there, counted page by page.
 *
 * /proc/self/smaps_rollup walks the page tables. statm and status print counters that each CPU, or each
 * thread, keeps a part of to itself: wrong by up to megabytes where there are many CPUs. They are asked where
 * the system has nothing better.
 */
#ifndef T_RESIDENT_H
#define T_RESIDENT_H

#include "harness.h"

#include <sys/prctl.h>
#include <unistd.h>

/* Call before a measurement: with huge pages the resident size says nothing about the touched
 * memory. */
static inline void t_no_huge_pages(void)
{
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

static inline uint64_t t_resident_roughly(void)
{
    unsigned long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK_NOT_NULL(f);
    CHECK_EQ(fscanf(f, "%lu %lu", &all, &resident), 2);
    fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Bytes. */
static inline uint64_t t_resident(void)
{
    char line[256];
    unsigned long kib = 0;
    bool is_there = false;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    if (f == NULL)
        return t_resident_roughly();
    while (!is_there && fgets(line, sizeof line, f) != NULL)
        is_there = sscanf(line, "Rss: %lu kB", &kib) == 1;
    fclose(f);
    return is_there ? (uint64_t)kib * 1024 : t_resident_roughly();
}

#endif
