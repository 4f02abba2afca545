/*
 * disk.h - a file system in memory that forgets at a crash: for tests of programs that must survive one.
 *
 *     bz_disk_open(NULL);
 *     ... calls of blitz/fs.h ...
 *     bz_disk_crash_in(n);
 *     ... more calls: from the n-th system call on, all return -EIO and do nothing ...
 *     bz_disk_recover(seed);
 *     ... the state after the crash, as the seed has it ...
 *     bz_disk_close();
 *
 * Rules of a crash, those of POSIX and no kinder:
 *   - The content of a file is as it was at its last sync. Each write or resize since then may be there, may be lost, or
 *     (a write) may be there in part, by sectors of 512 bytes in any order.
 *   - The names of a directory are as they were at its last sync. Each change since then may be there or lost,
 *     independently of the others. A rename is one change.
 *   - A sync of a file says nothing about its name; a sync of a directory says nothing about the content of its files.
 *
 * Limits: BZ_DISK_INODES files and directories of BZ_DISK_BYTES each; no links; one thread at a time, as the simulator
 * runs them. The descriptors are none of the system's.
 */
#ifndef BZ_SIM_DISK_H
#define BZ_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BZ_DISK_INODES = 48, BZ_DISK_BYTES = 16384 };

struct bz_disk_config {
    uint64_t short_seed; /* not 0: writes and reads are short by chance */
};

/* Make an empty file system, and use it instead of the real one. config may be NULL. */
void bz_disk_open(const struct bz_disk_config *config);
/* Crash before the n-th call from now, from 1. */
void bz_disk_crash_in(uint64_t n);
/* Crash if that has not happened, and come up again: the state is chosen by the seed. No crash follows. */
void bz_disk_recover(uint64_t seed);
/* Use the real file system again. Returns the number of descriptors that were left open and did not end in a crash. */
unsigned bz_disk_close(void);

/* Calls made so far; true if the crash has come. */
uint64_t bz_disk_calls(void);
bool bz_disk_has_crashed(void);

#endif
