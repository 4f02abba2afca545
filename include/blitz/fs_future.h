/*
 * blitz/fs_future.h - wait for files without a stack.
 *
 * Fibers and plain threads call blitz_file_read(), blitz_fs_rename() and so on, and need none of this. A stackless task
 * (blitz/poll.h) keeps a blitz_fs_future in its state. One of the ..._future_init() functions turns it into that call;
 * the same memory serves one call after the other.
 *
 *     blitz_file_read_at_future_init(&s->io, s->file, s->buffer, sizeof s->buffer, 0);
 *     BLITZ_AWAIT(rc, &s->io.future);
 *     if (rc == 0)
 *         use(s->buffer, s->io.result);                    // bytes, 0 at the end, or -errno
 *
 * A future never blocks in its poll. If the bytes of a read are in memory, it is ready at its first poll. Otherwise a
 * ring (the backend "uring") or a thread of the pool makes the call. Without a runtime, on a plain thread, the poll
 * makes the call itself.
 *
 * Every future here is *pinned*: after a cancel it stays pending until the kernel or the thread is done with your
 * memory. A call that had not begun is withdrawn. A call of many steps (a copy, a removal of a tree) ends after the
 * current step. Then `result` is -ECANCELED if the call did not complete, else its outcome. blitz_await(), BLITZ_AWAIT
 * and the combinators take care of that.
 *
 * The memory is yours, from init until the future is ready; do not move or copy it in between. The same holds for
 * everything that was passed to init: paths, buffers, results, handles. Wrong arguments make a future that is ready with
 * -EINVAL.
 */
#ifndef BLITZ_FS_FUTURE_H
#define BLITZ_FS_FUTURE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_fs_future {
    blitz_future future; /* to be awaited; its output is `result`, or INT_MAX if that is more */
    int64_t result;      /* when ready: what the call would have returned */
    size_t done;         /* read_exact, write_all: the bytes that were done, also on error */
    uint64_t inside[46];
} blitz_fs_future;

BLITZ_END_DECLS

#endif
