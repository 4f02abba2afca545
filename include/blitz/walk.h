/*
 * blitz/walk.h - every name in a tree of directories.
 *
 *     blitz_walk *w;
 *     blitz_walk_entry e;
 *     int rc = blitz_walk_open(NULL, "src", NULL, &w);
 *     while (rc == 0 && (rc = blitz_walk_next(w, &e, until)) > 0) {
 *         if (e.error != 0)
 *             printf("%s: error %d\n", e.path, -e.error);         // this directory is left out; the walk goes on
 *         else if (e.kind == BLITZ_FILE_DIR && is_hidden(e.name))
 *             blitz_walk_skip(w);
 *         rc = 0;
 *     }
 *     blitz_walk_close(w);
 *
 * The start comes first, then a directory before the names in it. Within a directory there is no order. Each name is
 * looked up in its open directory, so the walk does not leave the tree if parts of it are renamed meanwhile. A symbolic
 * link is a name like any other, and is not followed unless asked for.
 *
 * blitz_walk_each() calls a function for each name, with all workers of the runtime.
 */
#ifndef BLITZ_WALK_H
#define BLITZ_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/dir.h"
#include "blitz/fs_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_walk blitz_walk;

/* A zeroed struct, or NULL: the whole tree, and no links followed. */
typedef struct blitz_walk_opts {
    unsigned
        depth_max; /* names deeper than this are not visited; the start has depth 0. 0: no limit */
    bool
        follows_links; /* enter directories through symbolic links; a cycle is an error of its name: -ELOOP */
    bool is_one_device; /* do not enter directories of other file systems */
} blitz_walk_opts;

/* The pointers hold until the next call for the walk, or until the function returns (blitz_walk_each). */
typedef struct blitz_walk_entry {
    const char *path; /* from the start of the walk, with the path of the start before it */
    const char *name; /* its last part */
    blitz_dir *
        dir; /* its directory, in which `name` is; of the start NULL: `path` begins at `at` of the walk */
    blitz_file_kind kind; /* of a link that was followed: of its target */
    uint64_t inode;
    unsigned depth;
    int error; /* 0; else this is a directory whose names could not be read, or not all: -EACCES, -ELOOP, -EMFILE ... */
} blitz_walk_entry;

/*
 * Begin a walk.
 * Owns:     *out is the caller's: blitz_walk_close(). Copies the path and the options, shares `at`.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -ENAMETOOLONG, -EINVAL. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_walk_open(blitz_dir *at, const char *path,
                                             const blitz_walk_opts *opts, blitz_walk **out);

/*
 * Return the next name. Calls for one walk must not overlap. A directory whose names cannot be read appears a second
 * time, with its error.
 * Owns:     *out is the caller's, written only on 1; what it points to is the walk's.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  1; 0: the end; -ENOMEM, -ETIMEDOUT, -ECANCELED, -EINVAL: the walk is where it was. If the start cannot be
 *           found, the first name has that error.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_walk_next(blitz_walk *w, blitz_walk_entry *out,
                                                            blitz_deadline until);

/*
 * Do not enter the directory that blitz_walk_next() has returned last.
 * Owns:     borrows the walk.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_walk_skip(blitz_walk *w);

/*
 * End a walk. NULL is ignored.
 * Owns:     takes the walk.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_walk_close(blitz_walk *w);

/*
 * blitz_walk_next() as a future. f->result is what the call would return.
 * Owns:     borrows the walk and *out until the future is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_walk_next_future_init(blitz_fs_future *f, blitz_walk *w,
                                           blitz_walk_entry *out);

/* Results of `visit`: go on, or do not enter this directory. A negative errno ends the walk. */
enum { BLITZ_WALK_ON = 0, BLITZ_WALK_SKIP = 1 };

/*
 * Call visit(entry, arg) for each name, on all workers at the same time: `visit` must be safe to run twice at once. It
 * may wait. A plain thread makes all calls itself.
 * Owns:     borrows everything until it returns; opts may be NULL.
 * Suspends: until it is done. At `until`, a cancel or an error of `visit` no further call begins, and those that have
 *           begun are waited for. Call from anywhere.
 * Returns:  0; the first negative result of `visit`; -ENOMEM, -ETIMEDOUT, -ECANCELED, -EINVAL.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_walk_each(blitz_dir *at, const char *path,
                int (*visit)(const blitz_walk_entry *entry, void *arg), void *arg,
                const blitz_walk_opts *opts, blitz_deadline until);

BLITZ_END_DECLS

#endif
