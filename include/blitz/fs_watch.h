/*
 * blitz/fs_watch.h - changes in the file system, as they happen.
 *
 *     blitz_fs_watch *w;
 *     blitz_fs_event e;
 *     int id, rc = blitz_fs_watch_new(&w);
 *     rc = blitz_fs_watch_add(w, NULL, "conf.d", BLITZ_FS_WRITTEN | BLITZ_FS_MOVED_IN | BLITZ_FS_REMOVED, &id, until);
 *     while ((rc = blitz_fs_watch_next(w, &e, BLITZ_FOREVER)) == 0) {
 *         if (e.what & BLITZ_FS_OVERFLOW)
 *             read_all_again();                           // events were lost: look at everything
 *         else
 *             reload(e.name);
 *     }
 *     blitz_fs_watch_unref(w);
 *
 * A watch is a queue of events for any number of files and directories. A directory's events name the file in it; trees
 * are not watched as a whole: add each directory. The system's queue is limited (inotify(7)). If it overflows, events are
 * lost, and one event says so.
 *
 * Watch the directory rather than a file that is replaced (blitz_fs_write_file(), editors): the new file is another one.
 */
#ifndef BLITZ_FS_WATCH_H
#define BLITZ_FS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/dir.h"
#include "blitz/fs_future.h"
#include "blitz/net_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_fs_watch blitz_fs_watch;

/* Kinds of changes. The last three are reported without being asked for. */
enum {
    BLITZ_FS_CREATED = 1,  /* a name was made in the directory */
    BLITZ_FS_REMOVED = 2,  /* a name was removed from it */
    BLITZ_FS_MODIFIED = 4, /* bytes were written, or the size has changed */
    BLITZ_FS_WRITTEN = 8,  /* a file that was opened to write was closed */
    BLITZ_FS_MOVED_OUT =
        16, /* a name was renamed: its old name, and its new one, with the same `move` */
    BLITZ_FS_MOVED_IN = 32,
    BLITZ_FS_FACTS = 64, /* permissions, times or owner have changed */
    BLITZ_FS_SELF = 128, /* the watched file or directory was itself removed or renamed */
    BLITZ_FS_ANY = 255,
    BLITZ_FS_OVERFLOW = 256, /* events were lost; id is -1 */
    BLITZ_FS_GONE =
        512, /* the last event of this id: removed, unmounted, or blitz_fs_watch_remove() */
    BLITZ_FS_UNMOUNTED = 1024
};

typedef struct blitz_fs_event {
    uint32_t what; /* of the list above */
    int id;        /* of blitz_fs_watch_add() */
    uint32_t move; /* joins MOVED_OUT and MOVED_IN of one rename; else 0 */
    bool is_dir;   /* it happened to a directory */
    char name
        [BLITZ_NAME_ROOM]; /* in the watched directory; empty: the watched file or directory itself */
} blitz_fs_event;

/*
 * Make a watch of nothing yet.
 * Owns:     the caller holds the first reference: blitz_fs_watch_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EMFILE (also: the user's limit of watches), -ENFILE, -ENOMEM, -EINVAL. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_fs_watch_new(blitz_fs_watch **out);

/*
 * Add a reference; release one. The last release ends the watch. ref returns its argument; unref ignores NULL.
 * Owns:     ref: the result is a reference of its own. unref takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the watch.
 */
BLITZ_API blitz_fs_watch *blitz_fs_watch_ref(blitz_fs_watch *w);
BLITZ_API void blitz_fs_watch_unref(blitz_fs_watch *w);

/*
 * Watch a file or a directory for some of the events. If it is watched already, under any name, the events replace
 * those of before and the id is the same.
 * Owns:     borrows the path until it returns. *id is the caller's, written only on 0.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0, -ENOENT, -ENOTDIR, -EACCES, -ELOOP, -ENAMETOOLONG, -ENOSPC (the user's limit), -ENOMEM, -EINVAL, -ETIMEDOUT,
 *           -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_watch_add(blitz_fs_watch *w, blitz_dir *at,
                                                               const char *path, uint32_t what,
                                                               int *id, blitz_deadline until);

/*
 * Stop watching. Events that are in the queue still come; the last one is BLITZ_FS_GONE.
 * Owns:     borrows the watch.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no such id).
 */
BLITZ_API int blitz_fs_watch_remove(blitz_fs_watch *w, int id);

/*
 * Take the next event. Several tasks may wait; each event goes to one of them.
 * Owns:     *out is the caller's, written only on 0.
 * Suspends: until there is one, `until`, or a cancel. Call from anywhere; a plain thread sleeps.
 * Returns:  0; -ETIMEDOUT, -ECANCELED: none was taken; -ENOMEM, -EMFILE, -EINVAL.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_fs_watch_next(blitz_fs_watch *w, blitz_fs_event *out, blitz_deadline until);

typedef struct blitz_fs_watch_future {
    blitz_future future; /* to be awaited; its output is `result` */
    int result;          /* when ready: what the call would have returned */
    blitz_fs_watch *watch;
    blitz_fs_event *out;
    uint64_t inside[2];
    blitz_net_future ready;
} blitz_fs_watch_future;

/*
 * blitz_fs_watch_next() as a future. Pinned, but ends at once except with the backend "uring"; after a cancel no event
 * was taken.
 * Owns:     borrows the watch and *out until the future is ready.
 * Suspends: never. Call from any thread; poll it in a task.
 */
BLITZ_API void blitz_fs_watch_next_future_init(blitz_fs_watch_future *f, blitz_fs_watch *w,
                                               blitz_fs_event *out);

/*
 * blitz_fs_watch_add() as a future: blitz/fs_future.h.
 * Owns:     borrows everything until the future is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_fs_watch_add_future_init(blitz_fs_future *f, blitz_fs_watch *w, blitz_dir *at,
                                              const char *path, uint32_t what, int *id);

BLITZ_END_DECLS

#endif
