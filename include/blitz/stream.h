/*
 * blitz/stream.h - streams of bytes: readers, writers, and adapters between them.
 *
 * A reader is a source of bytes, a writer is a sink: a connection, a file, a pipe, memory, or an adapter around another
 * one. Each is two words, passed by value. The object behind it is the caller's, and must outlive it.
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
 *   a limited part         blitz_limited_reader, blitz_limited_writer
 *   with a copy            blitz_tee_reader, blitz_tee_writer
 *   with a count           blitz_counted_reader, blitz_counted_writer
 *   nothing at all         blitz_null_reader, blitz_null_writer
 *   compressed             blitz/compress.h, in a library of its own
 *   all of it              blitz_stream_copy, blitz_stream_copy_both
 *   two ends in memory     blitz_duplex
 *
 * Every call takes a deadline and can be cancelled, and none loses a byte. A read that ends early has read nothing.
 * Bytes that were read and not yet requested are still in the buffer. A write that ends early returns how much was
 * written, or keeps the rest.
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

struct blitz_shortcuts_; /* copies that bypass user memory; not for programs */

/* The functions of a kind of reader. Set the unused ones to NULL. */
typedef struct blitz_reader_ops {
    const char *name;
    /* Read at least a byte; 0 at the end. On error nothing was read. */
    int64_t (*read)(void *ctx, void *data, size_t bytes, blitz_deadline until);
    /* NULL, or: return 0 and the descriptor of a regular file that is read from its current position; -EOPNOTSUPP:
     * there is none now. */
    int (*fd)(void *ctx, blitz_fd *out);
    /* For a reader with a descriptor: return the most bytes that may be taken from it. NULL: any number. */
    uint64_t (*fd_most)(void *ctx);
    /* NULL, or: `bytes` bytes were taken from the descriptor, without `read`. */
    void (*fd_took)(void *ctx, uint64_t bytes);
    const struct blitz_shortcuts_ *inside; /* NULL in a table of yours */
} blitz_reader_ops;

typedef struct blitz_reader {
    const blitz_reader_ops *ops;
    void *ctx;
} blitz_reader;

/* The functions of a kind of writer. Set the unused ones to NULL. */
typedef struct blitz_writer_ops {
    const char *name;
    /* Write at least a byte. On error nothing was written. */
    int64_t (*write)(void *ctx, const void *data, size_t bytes, blitz_deadline until);
    /* End the stream: the reader at the other end sees the end. NULL: nothing to do. */
    int (*end)(void *ctx, blitz_deadline until);
    const struct blitz_shortcuts_ *inside; /* NULL in a table of yours */
} blitz_writer_ops;

typedef struct blitz_writer {
    const blitz_writer_ops *ops;
    void *ctx;
} blitz_writer;

/* Both directions of one object. */
typedef struct blitz_stream {
    blitz_reader in;
    blitz_writer out;
} blitz_stream;

/* ---- using them ---- */

/*
 * Read the bytes that are there, at least one; or exactly `bytes` bytes.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many bytes were read in any case.
 * Suspends: until then, the end, `until`, or a cancel.
 * Returns:  read: the number of bytes; 0: the end (or `bytes` is 0). exact: 0; -EPIPE: the end came before. Both:
 *           -ETIMEDOUT, -ECANCELED, -EINVAL; errors of the stream.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_reader_read(blitz_reader r, void *data, size_t bytes,
                                                   blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_reader_read_exact(blitz_reader r, void *data, size_t bytes,
                                                     size_t *done, blitz_deadline until);

/*
 * Write some bytes, at least one; or all of them.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many were written in any case.
 * Suspends: until there was room, `until`, or a cancel.
 * Returns:  write: the number of bytes. all: 0. Both: -ETIMEDOUT, -ECANCELED, -EINVAL; errors of the stream.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_writer_write(blitz_writer w, const void *data, size_t bytes,
                                                    blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_writer_write_all(blitz_writer w, const void *data, size_t bytes,
                                                    size_t *done, blitz_deadline until);

/*
 * End the stream: the reader at the other end sees the end.
 * Suspends: until the buffered bytes are written.
 * Returns:  0, or an error of the stream.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_writer_end(blitz_writer w, blitz_deadline until);

/* ---- where they come from ---- */

/*
 * Make streams of a connection. Ending the writer shuts down the sending half. None of this closes the connection.
 * Owns:     borrows the connection for as long as they are used.
 * Suspends: never. Call from any thread.
 * Returns:  the reader, the writer, or both.
 */
BLITZ_API blitz_reader blitz_tcp_reader(blitz_tcp *t);
BLITZ_API blitz_writer blitz_tcp_writer(blitz_tcp *t);
BLITZ_API blitz_stream blitz_tcp_stream(blitz_tcp *t);

/* A descriptor as a stream. A regular file is read and written on a thread of the pool. For a pipe, a terminal or a
 * socket the task waits; the descriptor is made non-blocking. */
typedef struct blitz_fd_stream {
    blitz_fd fd;
    bool is_disk;
} blitz_fd_stream;

/*
 * Make streams of a descriptor.
 * Owns:     borrows it until the streams are no longer used; it stays open.
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
 * Make a reader of the bytes in memory, or a writer that appends to them. A writer without room returns -ENOSPC, or
 * -ENOMEM if it grows.
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
    size_t at, end; /* the bytes that were read and not taken yet */
    bool is_over;   /* the source is at its end */
} blitz_buffered_reader;

/*
 * Make a reader with a buffer, which is the caller's.
 * Owns:     borrows `room` until the reader is no longer used.
 * Suspends: never.
 * Returns:  0, -EINVAL (no room).
 */
BLITZ_API int blitz_buffered_reader_init(blitz_buffered_reader *b, blitz_reader from, void *room,
                                         size_t bytes);

/*
 * Peek at the next bytes without taking them: at least `want`, if there are so many.
 * Owns:     *data lies in the buffer, and is valid until the next call that reads.
 * Suspends: until they are there, the end, `until`, or a cancel.
 * Returns:  the number of bytes: less than `want` only at the end; -EMSGSIZE (more than the buffer holds); else as
 *           blitz_reader_read(). After an error the bytes that came are still there.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_buffered_peek(blitz_buffered_reader *b, size_t want,
                                                     const char **data, blitz_deadline until);

/* Take `bytes` bytes out of the buffer, at most as many as there are.
 * Owns:     borrows the struct until it returns.
 * Suspends: never. */
BLITZ_API void blitz_buffered_take(blitz_buffered_reader *b, size_t bytes);

/*
 * Take everything up to and including the next `stop`.
 * Owns:     as blitz_buffered_peek().
 * Suspends: as blitz_buffered_peek().
 * Returns:  the number of bytes, of which `stop` is the last. If the end comes first: the bytes before it. 0: the end.
 *           -EMSGSIZE: no `stop` in `max` bytes or in a full buffer; nothing is taken. Else as blitz_reader_read();
 *           nothing is taken.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_buffered_until(blitz_buffered_reader *b, char stop,
                                                      size_t max, const char **data,
                                                      blitz_deadline until);

/*
 * Take a line, without its end: a line feed, or a carriage return and a line feed.
 * Owns:     as blitz_buffered_peek().
 * Suspends: as blitz_buffered_peek().
 * Returns:  its length, 0 for an empty line; -ENODATA: there are no more lines. Else as
 *           blitz_buffered_until(): `max` counts the line's end, too.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_buffered_line(blitz_buffered_reader *b, size_t max,
                                                     const char **line, blitz_deadline until);

/*
 * Take everything up to the next delimiter of several bytes ("\r\n\r\n", a MIME boundary), and the delimiter itself.
 * Owns:     borrows the delimiter until it returns. *data as blitz_buffered_peek().
 * Suspends: as blitz_buffered_peek().
 * Returns:  the number of bytes before the delimiter; at the end of the source the bytes that are left. -ENODATA: there
 *           is nothing more. -EMSGSIZE: no delimiter in `max` bytes, itself included, or in a full buffer; nothing is
 *           taken. -EINVAL (no delimiter). Else as blitz_reader_read(); nothing is taken.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_buffered_split(blitz_buffered_reader *b, const void *stop,
                                                      size_t stop_bytes, size_t max,
                                                      const char **data, blitz_deadline until);

/*
 * Throw away everything up to and including the next `stop`, however far it is: the rest of a line that was too long
 * (-EMSGSIZE).
 * Owns:     *skipped (may be NULL) is how many bytes were thrown away in any case.
 * Suspends: as blitz_buffered_peek().
 * Returns:  0; -ENODATA: the end came first. Else as blitz_reader_read(): call it again to go on.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_buffered_skip(blitz_buffered_reader *b, char stop,
                                                 uint64_t *skipped, blitz_deadline until);

/* Return the buffered reader as a reader: first the bytes in the buffer.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the reader. */
BLITZ_API blitz_reader blitz_buffered_as_reader(blitz_buffered_reader *b);

typedef struct blitz_buffered_writer {
    blitz_writer to;
    char *room;
    size_t room_bytes;
    size_t at, end; /* the bytes that were taken and not written yet */
} blitz_buffered_writer;

/*
 * Make a writer with a buffer. It keeps bytes until the buffer is full, flushed or ended. After an error the bytes it
 * keeps are not lost: flush again.
 * Owns:     borrows `room` until the writer is no longer used. Flush first, or the bytes in it are lost.
 * Suspends: never.
 * Returns:  0, -EINVAL (no room).
 */
BLITZ_API int blitz_buffered_writer_init(blitz_buffered_writer *b, blitz_writer to, void *room,
                                         size_t bytes);
/* Owns:     borrows nothing afterwards.
 * Suspends: until all of it is written, `until`, or a cancel.
 * Returns:  0; -ETIMEDOUT, -ECANCELED, an error of the stream: the rest is kept. */
BLITZ_API BLITZ_SUSPENDS int blitz_buffered_flush(blitz_buffered_writer *b, blitz_deadline until);
/* Return the buffered writer as a writer; its end flushes and ends the other.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the writer. */
BLITZ_API blitz_writer blitz_buffered_as_writer(blitz_buffered_writer *b);

/* ---- in between ---- */

typedef struct blitz_limited {
    blitz_reader from;
    uint64_t left;
} blitz_limited;

/* Return a reader of the first l->left bytes of l->from, then the end. Like a whole file, a part of a file is copied to
 * a connection without user memory.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the reader. */
BLITZ_API blitz_reader blitz_limited_reader(blitz_limited *l);

typedef struct blitz_tee {
    blitz_reader from;
    blitz_writer to;
    char *room; /* for bytes that were read and are not written there yet */
    size_t room_bytes, at, end;
} blitz_tee;

/*
 * Return a reader that also writes all bytes to t->to, before it returns them. If that write fails, the read fails. The
 * bytes are kept in the room and come with the next read: nothing is lost on either side.
 * Owns:     borrows the struct and its room while it is used; set at = end = 0 before.
 * Suspends: never.
 * Returns:  the reader.
 */
BLITZ_API blitz_reader blitz_tee_reader(blitz_tee *t);

typedef struct blitz_limited_out {
    blitz_writer to;
    uint64_t left;
} blitz_limited_out;

/* Return a writer of at most l->left bytes to l->to. A write beyond returns -ENOSPC. Its end ends the other.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the writer. */
BLITZ_API blitz_writer blitz_limited_writer(blitz_limited_out *l);

typedef struct blitz_tee_out {
    blitz_writer to[2];
    char *room; /* for bytes that were taken and that one of the two does not have yet */
    size_t room_bytes, at[2], end;
} blitz_tee_out;

/*
 * Return a writer that writes all bytes to both others. A write that one of them refuses keeps the bytes in the room,
 * and returns how many it has taken. The next write or the end tries again, and fails if it is refused again: then no
 * byte was taken. So neither side loses a byte or gets one twice. Its end writes the rest and ends both.
 * Owns:     borrows the struct and its room while it is used; set at[0] = at[1] = end = 0 before.
 * Suspends: never.
 * Returns:  the writer.
 */
BLITZ_API blitz_writer blitz_tee_writer(blitz_tee_out *t);

typedef struct blitz_counted {
    blitz_reader from;
    uint64_t bytes; /* that were read */
} blitz_counted;

typedef struct blitz_counted_out {
    blitz_writer to;
    uint64_t bytes; /* that were written */
} blitz_counted_out;

/* Return a reader or a writer that counts its bytes. A file behind the reader is still copied without user memory.
 * Owns:     borrows the struct while it is used.
 * Suspends: never.
 * Returns:  the reader or the writer. */
BLITZ_API blitz_reader blitz_counted_reader(blitz_counted *c);
BLITZ_API blitz_writer blitz_counted_writer(blitz_counted_out *c);

/* Return a reader that is at its end, or a writer that takes all bytes and keeps none.
 * Suspends: never.
 * Returns:  the reader or the writer. */
BLITZ_API blitz_reader blitz_null_reader(void);
BLITZ_API blitz_writer blitz_null_writer(void);

/* ---- all of it ---- */

/*
 * Copy all bytes from one to the other, until the end; the other is not ended. Some copies do not pass through this
 * process's memory, if the system supports that:
 *   - a file, a part of a file, or the rest of a file behind a buffered reader, to a connection;
 *   - large pieces from connection to connection, after the first 256 KiB, through a pipe. It needs two descriptors.
 *     Without them, or with the backend "uring", they pass through memory.
 * Owns:     *copied (may be NULL) is how many bytes were copied in any case. After a write error, bytes that were read
 *           and not written are lost: up to 64 KiB.
 * Suspends: until the end, an error, `until`, or a cancel.
 * Returns:  0; -ETIMEDOUT, -ECANCELED, -ENOMEM; errors of either stream.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_stream_copy(blitz_reader from, blitz_writer to, uint64_t *copied,
                                               blitz_deadline until);

/*
 * Copy in both directions at once, until both have ended. The end of one direction is passed on, and the other
 * direction continues. The first error ends both. If no byte was copied in either direction for idle_ns, both end with
 * -ETIMEDOUT (0 or BLITZ_FOREVER: no limit).
 * Owns:     *to_b, *to_a (may be NULL) are how many bytes were copied.
 * Suspends: until then. Call from a task.
 * Returns:  as blitz_stream_copy(); -EAGAIN (no task could be started).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_stream_copy_both(blitz_stream a, blitz_stream b,
                                                    uint64_t idle_ns, uint64_t *to_b,
                                                    uint64_t *to_a, blitz_deadline until);

/* ---- in memory ---- */

typedef struct blitz_duplex blitz_duplex;

/*
 * Make two connected streams in memory, with room for `bytes` in each direction: a connection without a socket. For
 * tests, and for parts of a program that speak a protocol with each other.
 * Owns:     *out is the caller's: blitz_duplex_unref(), when neither end is used any more.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (no room).
 */
BLITZ_API int blitz_duplex_new(size_t bytes, blitz_stream ends[2], blitz_duplex **out);
/* Close an end: a reader at the other end sees the end, a writer there gets -EPIPE.
 * Owns:     borrows it until it returns.
 * Suspends: until other calls have left its lock; never for long. */
BLITZ_API BLITZ_SUSPENDS void blitz_duplex_close(blitz_duplex *d, int end);
/* Owns:     takes it; NULL is ignored.
 * Suspends: never. */
BLITZ_API void blitz_duplex_unref(blitz_duplex *d);

BLITZ_END_DECLS

#endif
