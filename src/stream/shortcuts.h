/*
 * shortcuts.h - the ways past memory that a reader and a writer of ours may offer to copy.c.
 *
 * They are Linux's (sendfile, splice); another system has others. So the tables of blitz/stream.h, which users fill in,
 * point to this one and do not name its members. Each function may be NULL, and says -EOPNOTSUPP or -EINVAL if it is not
 * to be done this way; then nothing was moved.
 */
#ifndef STREAM_SHORTCUTS_H
#define STREAM_SHORTCUTS_H

#include "blitz/stream.h"

struct blitz_shortcuts_ {
    /* Of a reader: put up to `bytes` of what comes into that pipe, which is empty; as read. */
    int64_t (*to_pipe)(void *ctx, blitz_fd pipe, size_t bytes, blitz_deadline until);
    /* Of a writer: take up to `bytes` out of that pipe, which holds so many; as write. */
    int64_t (*from_pipe)(void *ctx, blitz_fd pipe, size_t bytes, blitz_deadline until);
    /* Of a writer: take up to `bytes` out of that file, from where it stands. */
    int64_t (*take_file)(void *ctx, blitz_fd fd, size_t bytes, blitz_deadline until);
};

static inline bool bz_reader_has_to_pipe(blitz_reader r)
{
    return r.ops->inside != NULL && r.ops->inside->to_pipe != NULL;
}

static inline bool bz_writer_has_from_pipe(blitz_writer w)
{
    return w.ops->inside != NULL && w.ops->inside->from_pipe != NULL;
}

static inline bool bz_writer_takes_files(blitz_writer w)
{
    return w.ops->inside != NULL && w.ops->inside->take_file != NULL;
}

/* The descriptor of the file that the reader stands in now, or BLITZ_NO_FD. */
static inline blitz_fd bz_reader_fd(blitz_reader r)
{
    blitz_fd fd = BLITZ_NO_FD;
    return r.ops->fd != NULL && r.ops->fd(r.ctx, &fd) == 0 ? fd : BLITZ_NO_FD;
}

#endif
