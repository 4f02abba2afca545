/*
 * blitz/stream.h - bytes that come and go: readers, writers, and what can be put between them.
 *
 * A reader is anything that gives bytes, a writer anything that takes them: a connection, a file, a
 * pipe, a piece of memory, another one with something in between. Each is two words, passed by value;
 * what stands behind it is the caller's, and outlives it.
 *
 *     char room[4096];
 *     blitz_buffered_reader in;
 *     blitz_buffered_reader_init(&in, blitz_tcp_reader(connection), room, sizeof room);
 *     const char *line;
 *     while ((n = blitz_buffered_line(&in, 1024, &line, until)) >= 0) ...
 *
 *   from a connection      blitz_tcp_reader, blitz_tcp_writer      (also of sockets of the Unix kind)
 *   from a descriptor      blitz_fd_reader, blitz_fd_writer        files, pipes, terminals
 *   from memory            blitz_memory_reader, blitz_memory_writer
 *   to peek and split      blitz_buffered_reader                   peek, lines, until a byte
 *   to gather              blitz_buffered_writer
 *   only so many bytes     blitz_limited_reader
 *   and a copy elsewhere   blitz_tee_reader
 *   all of it              blitz_stream_copy, blitz_stream_copy_both
 *   two ends in memory     blitz_duplex
 *
 * Every call takes a deadline and can be cancelled, and none loses a byte: a read that ends early has
 * read nothing; what was read and not asked for yet is still in the buffer; a write that ends early
 * says how much was written, or keeps the rest.
 */
#ifndef BLITZ_STREAM_H
#define BLITZ_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/tcp.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

struct blitz_shortcuts_; /* how this library moves bytes past memory; not for programs */

/* For those who make readers. What is not set is NULL. */
typedef struct blitz_reader_ops {
    const char *name;
    /* At least a byte, unless it is at its end: 0. An error: nothing was read. */
    int64_t (*read)(void *ctx, void *data, size_t bytes, blitz_deadline until);
    /* NULL, or: 0 and the descriptor of a regular file that is read from where it stands; -EOPNOTSUPP: there is none
     * now. */
    int (*fd)(void *ctx, blitz_fd *out);
    /* NULL, or, of a reader with a descriptor: the most bytes that may be taken from it. NULL: any number. */
    uint64_t (*fd_most)(void *ctx);
    /* NULL, or: so many bytes were taken from the descriptor, past `read`. */
    void (*fd_took)(void *ctx, uint64_t bytes);
    const struct blitz_shortcuts_ *inside; /* NULL in a table of yours */
} blitz_reader_ops;

typedef struct blitz_reader {
    const blitz_reader_ops *ops;
    void *ctx;
} blitz_reader;

/* For those who make writers. What is not set is NULL. */
typedef struct blitz_writer_ops {
    const char *name;
    /* At least a byte. An error: nothing was written. */
    int64_t (*write)(void *ctx, const void *data, size_t bytes, blitz_deadline until);
    /* No more will come: whoever reads at the other end sees an end. NULL: nothing to do. */
    int (*end)(void *ctx, blitz_deadline until);
    const struct blitz_shortcuts_ *inside; /* NULL in a table of yours */
} blitz_writer_ops;

typedef struct blitz_writer {
    const blitz_writer_ops *ops;
    void *ctx;
} blitz_writer;

/* Both directions of one thing. */
typedef struct blitz_stream {
    blitz_reader in;
    blitz_writer out;
} blitz_stream;

/* ---- using them ---- */

/*
 * Read what there is, at least a byte; or exactly so many.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many bytes were read in any case.
 * Suspends: until then, the end, `until`, or a cancel.
 * Returns:  read: how many; 0: the end (or `bytes` is 0). exact: 0; -EPIPE: the end came before. Both:
 *           -ETIMEDOUT, -ECANCELED, -EINVAL; what the stream says.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_reader_read(blitz_reader r, void *data, size_t bytes,
                                                   blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_reader_read_exact(blitz_reader r, void *data, size_t bytes,
                                                     size_t *done, blitz_deadline until);

/*
 * Write some, at least a byte; or all of it.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many were written in any case.
 * Suspends: until there was room, `until`, or a cancel.
 * Returns:  write: how many. all: 0. Both: -ETIMEDOUT, -ECANCELED, -EINVAL; what the stream says.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_writer_write(blitz_writer w, const void *data, size_t bytes,
                                                    blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_writer_write_all(blitz_writer w, const void *data, size_t bytes,
                                                    size_t *done, blitz_deadline until);

/*
 * Nothing more will be written: who reads at the other end sees the end.
 * Suspends: as long as what is kept back takes to be written.
 * Returns:  0, or what the stream says.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_writer_end(blitz_writer w, blitz_deadline until);

/* ---- where they come from ---- */

/*
 * Of a connection. Its end shuts down the sending half; the connection is not closed by any of this.
 * Owns:     borrows the connection for as long as they are used.
 * Suspends: never. Call from any thread.
 * Returns:  the reader, the writer, or both.
 */
BLITZ_API blitz_reader blitz_tcp_reader(blitz_tcp *t);
BLITZ_API blitz_writer blitz_tcp_writer(blitz_tcp *t);
BLITZ_API blitz_stream blitz_tcp_stream(blitz_tcp *t);

/* A descriptor as a stream: of a regular file (read and written on a thread of the pool), or a pipe, a
 * terminal, a socket (waited for; it is told not to block). */
typedef struct blitz_fd_stream {
    blitz_fd fd;
    bool is_disk;
} blitz_fd_stream;

/*
 * Take up a descriptor.
 * Owns:     borrows it until the streams are not used any more; it stays open.
 * Suspends: never. Call from any thread.
 * Returns:  init: 0, -EBADF. Else the reader or the writer.
 */
BLITZ_API int blitz_fd_stream_init(blitz_fd_stream *s, blitz_fd fd);
BLITZ_API blitz_reader blitz_fd_reader(blitz_fd_stream *s);
BLITZ_API blitz_writer blitz_fd_writer(blitz_fd_stream *s);

/* Memory: read from `at` to `bytes`, written from `bytes` to `room`. */
typedef struct blitz_memory {
    char *data;
    size_t at, bytes, room;
    bool is_growing; /* by malloc(): data is the caller's to free() */
} blitz_memory;

/*
 * Memory as a reader of what it holds, and as a writer behind that. A writer without room says
 * -ENOSPC, or -ENOMEM if it grows.
 * Owns:     borrows the struct for as long as they are used.
 * Suspends: never. Call from any thread; not from two at once.
 * Returns:  the reader or the writer.
 */
BLITZ_API blitz_reader blitz_memory_reader(blitz_memory *m);
BLITZ_API blitz_writer blitz_memory_writer(blitz_memory *m);

/* ---- buffered ---- */

typedef struct blitz_buffered_reader {
    blitz_reader from;
    char *room;
    size_t room_bytes;
    size_t at, end; /* what was read and not taken yet */
    bool is_over;   /* the source has said so */
} blitz_buffered_reader;

/*
 * A reader with a buffer, which is the caller's.
 * Owns:     borrows `room` until it is not used any more.
 * Suspends: never.
 * Returns:  0, -EINVAL (no room).
 */
BLITZ_API int blitz_buffered_reader_init(blitz_buffered_reader *b, blitz_reader from, void *room,
                                         size_t bytes);

/*
 * Look at what comes without taking it: at least `want` bytes, if there are so many.
 * Owns:     *data lies in the buffer, and is good until the next call that reads.
 * Suspends: until they are there, the end, `until`, or a cancel.
 * Returns:  how many are there: less than `want` only at the end; -EMSGSIZE (more than the buffer
 *           holds); else as blitz_reader_read(). After an error what came is still there.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_buffered_peek(blitz_buffered_reader *b, size_t want,
                                                     const char **data, blitz_deadline until);

/* What was looked at is taken: `bytes` of it, at most what there is.
 * Owns:     borrows the struct until it returns.
 * Suspends: never. */
BLITZ_API void blitz_buffered_take(blitz_buffered_reader *b, size_t bytes);

/*
 * Take everything up to and including the next `stop`.
 * Owns:     as blitz_buffered_peek().
 * Suspends: likewise.
 * Returns:  how many bytes, with `stop` the last of them; without it: the rest before the end. 0: the
 *           end. -EMSGSIZE: no `stop` in `max` bytes or in a full buffer; nothing is taken. Else as
 *           blitz_reader_read(); nothing is taken.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_buffered_until(blitz_buffered_reader *b, char stop,
                                                      size_t max, const char **data,
                                                      blitz_deadline until);

/*
 * Take a line, without its end: a line feed, or a carriage return and a line feed.
 * Owns:     as blitz_buffered_peek().
 * Suspends: likewise.
 * Returns:  how long it is, 0 for an empty one; -ENODATA: there are no more. Else as
 *           blitz_buffered_until(): `max` counts the line's end, too.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_buffered_line(blitz_buffered_reader *b, size_t max,
                                                     const char **line, blitz_deadline until);

/* Itself as a reader: first what is in the buffer.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the reader. */
BLITZ_API blitz_reader blitz_buffered_as_reader(blitz_buffered_reader *b);

typedef struct blitz_buffered_writer {
    blitz_writer to;
    char *room;
    size_t room_bytes;
    size_t at, end; /* what was taken and not written yet */
} blitz_buffered_writer;

/*
 * A writer with a buffer: what fits is kept until it is full, flushed or ended. After an error nothing of
 * what it keeps is lost: flush again.
 * Owns:     borrows `room` until it is not used any more. What is in it then is lost: flush first.
 * Suspends: never.
 * Returns:  0, -EINVAL (no room).
 */
BLITZ_API int blitz_buffered_writer_init(blitz_buffered_writer *b, blitz_writer to, void *room,
                                         size_t bytes);
/* Owns:     borrows nothing afterwards.
 * Suspends: until all of it is written, `until`, or a cancel.
 * Returns:  0; -ETIMEDOUT, -ECANCELED, what the stream says: the rest is kept. */
BLITZ_API BLITZ_SUSPENDS int blitz_buffered_flush(blitz_buffered_writer *b, blitz_deadline until);
/* Itself as a writer; its end flushes and ends the other.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the writer. */
BLITZ_API blitz_writer blitz_buffered_as_writer(blitz_buffered_writer *b);

/* ---- in between ---- */

typedef struct blitz_limited {
    blitz_reader from;
    uint64_t left;
} blitz_limited;

/* The first l->left bytes of l->from, then the end. A part of a file goes to a connection as a whole file does:
 * past this process's memory.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the reader. */
BLITZ_API blitz_reader blitz_limited_reader(blitz_limited *l);

typedef struct blitz_tee {
    blitz_reader from;
    blitz_writer to;
    char *room; /* for what was read and could not be written there yet */
    size_t room_bytes, at, end;
} blitz_tee;

/*
 * What is read is written to t->to as well, before it is given out. If that fails, the read fails, and
 * what was read is kept in the room and comes with the next one: nothing is lost on either side.
 * Owns:     borrows the struct and its room while it is used; at = end = 0 in the beginning.
 * Suspends: never.
 * Returns:  the reader.
 */
BLITZ_API blitz_reader blitz_tee_reader(blitz_tee *t);

/* ---- all of it ---- */

/*
 * Write what comes from one to the other, until the end; the other is not ended. A file (or a part of one,
 * or what follows in it behind a buffered reader) goes to a connection without coming through this
 * process's memory, where the system can; so do, after the first
 * 256 KiB, large pieces from connection to connection, through a pipe (two descriptors; without them, or
 * with the keeper "uring", through memory).
 * Owns:     *copied (may be NULL) is how many bytes went over in any case. After an error while writing,
 *           what was read and not written is lost: up to 64 KiB.
 * Suspends: until the end, an error, `until`, or a cancel.
 * Returns:  0; -ETIMEDOUT, -ECANCELED, -ENOMEM; what either says.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_stream_copy(blitz_reader from, blitz_writer to, uint64_t *copied,
                                               blitz_deadline until);

/*
 * Both ways at once, until both have ended: the end of one direction is passed on, and the other goes
 * on. The first error ends both. If no byte has gone over in either direction for idle_ns, both end with
 * -ETIMEDOUT (0 or BLITZ_FOREVER: they may be idle as long as they like).
 * Owns:     *to_b, *to_a (may be NULL) are how many bytes went over.
 * Suspends: until then. Call from a task.
 * Returns:  as blitz_stream_copy(); -EAGAIN (no task is to be had).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_stream_copy_both(blitz_stream a, blitz_stream b,
                                                    uint64_t idle_ns, uint64_t *to_b,
                                                    uint64_t *to_a, blitz_deadline until);

/* ---- in memory ---- */

typedef struct blitz_duplex blitz_duplex;

/*
 * Two streams that are each other's other end, with room for `bytes` in each direction: a connection
 * without a socket, for tests and for parts of a program that speak a protocol with each other.
 * Owns:     *out is the caller's: blitz_duplex_unref(), when neither end is used any more.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (no room).
 */
BLITZ_API int blitz_duplex_new(size_t bytes, blitz_stream ends[2], blitz_duplex **out);
/* An end is given up: who reads at the other one sees the end, who writes there -EPIPE.
 * Owns:     borrows it until it returns.
 * Suspends: until others are through with it; never for long. */
BLITZ_API BLITZ_SUSPENDS void blitz_duplex_close(blitz_duplex *d, int end);
/* Owns:     takes it; NULL is ignored.
 * Suspends: never. */
BLITZ_API void blitz_duplex_unref(blitz_duplex *d);

BLITZ_END_DECLS

#endif
