/*
 * raw.h - a foreign descriptor, read and written as it is.
 */
#ifndef BZ_IO_RAW_H
#define BZ_IO_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What it is; one that can be waited for does not block from here on. 0, -EBADF. */
int bz_raw_take_up(int fd, bool *is_disk);

/* Bytes, 0 at the end, -EAGAIN, any other -errno. An interrupted call is made again; no signal. */
int64_t bz_raw_read(int fd, void *data, size_t bytes);
int64_t bz_raw_write(int fd, const void *data, size_t bytes);

/* A pipe of our own that does not block: read fd[0], written fd[1]. 0, -EMFILE, -ENFILE. */
int bz_raw_pipe(int fd[2]);
void bz_raw_close(int fd);

#endif
