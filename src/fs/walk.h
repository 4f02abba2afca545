/*
 * walk.h - the places of a walk, shared by walk.c (one name at a time) and walk_each.c (all workers).
 *
 * A place is an open directory on the way, with its path. Places are counted: a place is open while a walk is in it, or
 * has directories of it still to enter.
 */
#ifndef BZ_FS_WALK_H
#define BZ_FS_WALK_H

#include "blitz/walk.h"
#include "fs/fs.h"

struct bz_place {
    bz_atomic(uint32_t) refs;
    struct bz_place *up; /* constant, as is the rest; a reference; NULL: the start */
    blitz_dir *dir;
    uint64_t device, inode; /* if the walk needs them, else 0 */
    unsigned depth;
    size_t length;
    char path[];
};

/*
 * Enter a directory: `name` in the place `up`; with up NULL, the start of the walk below `at`.
 * Returns: 0; -ELOOP (it is above itself, or a symbolic link), -ENOMEM, errors of the system. -EXDEV: it belongs to
 *          another file system, and the walk does not want it.
 */
BZ_MUST_USE int bz_place_enter(struct bz_place *up, struct blitz_dir *at, const char *name,
                               const blitz_walk_opts *opts, struct bz_place **out);
struct bz_place *bz_place_ref(struct bz_place *p);
void bz_place_unref(struct bz_place *p);

/* Write the path of a name in the place, or of the start, and return where its last part begins. -ENAMETOOLONG. */
BZ_MUST_USE int bz_place_path(const struct bz_place *p, const char *name, char *out, size_t room);

/* Find the kind of a name that the listing did not tell, or of the target of a link that is followed. */
void bz_place_look(const struct bz_place *p, const blitz_walk_opts *opts, blitz_dir_entry *e);
/* True if it must be looked up. */
bool bz_place_must_look(const blitz_walk_opts *opts, const blitz_dir_entry *e);

/* Find the start of the walk. */
BZ_MUST_USE int bz_place_start(struct blitz_dir *at, const char *path, const blitz_walk_opts *opts,
                               blitz_file_kind *kind, uint64_t *inode);

/* True if names in a directory of this depth are visited. */
static inline bool bz_walk_goes_below(const blitz_walk_opts *opts, unsigned depth)
{
    return opts->depth_max == 0 || depth < opts->depth_max;
}

#endif
