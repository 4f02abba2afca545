/*
 * raw.h - read and write foreign descriptors.
 */
#ifndef BZ_IO_RAW_H
#define BZ_IO_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Find the kind of a descriptor; make one that supports waiting non-blocking. Returns 0, -EBADF. */
int bz_raw_take_up(int fd, bool *is_disk);

/* Returns bytes, 0 at the end, -EAGAIN, any other -errno. Repeats interrupted calls; raises no
 * signal. */
int64_t bz_raw_read(int fd, void *data, size_t bytes);
int64_t bz_raw_write(int fd, const void *data, size_t bytes);

/* Make a non-blocking pipe: read fd[0], write fd[1]. Returns 0, -EMFILE, -ENFILE. */
int bz_raw_pipe(int fd[2]);
void bz_raw_close(int fd);

#endif
