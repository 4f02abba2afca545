/*
 * inotify.h - the system's queue of changes in the file system: inotify.c.
 */
#ifndef BZ_IO_INOTIFY_H
#define BZ_IO_INOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/fs_watch.h"

/* Make a queue: a non-blocking descriptor, or an error. Close it with bz_raw_close. */
int bz_inotify_open(void);
/* Returns the id, or an error. */
int bz_inotify_add(int fd, int at, const char *path, uint32_t what);
int bz_inotify_remove(int fd, int id);
/* Read events, as many as fit. Returns bytes; -EAGAIN: none. */
int64_t bz_inotify_read(int fd, void *events, size_t bytes);
/* Translate the event at `events`. Returns its length. *out has what 0 if there is nothing to report. */
size_t bz_inotify_event(const void *events, blitz_fs_event *out);
/* Sleep on a plain thread until there is an event, or for `ms` at most. */
void bz_inotify_sleep(int fd, int ms);

#endif
