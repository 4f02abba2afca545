/*
 * replace.h - a file under construction that takes the place of another in one step: replace.c.
 */
#ifndef BZ_FS_REPLACE_H
#define BZ_FS_REPLACE_H

#include "fs/fs.h"

/* Flags of blitz_fs_write_opts. */
enum { BZ_REPLACE_IS_NEW = 1, BZ_REPLACE_NO_SYNC = 2 };

struct bz_replacement {
    int dir, fd;      /* of the directory and of the temporary file */
    const char *name; /* in the directory: the last part of the path */
    char temp[32];    /* the name of the temporary file */
    unsigned flags;
};

/*
 * Make the temporary file. permissions 0: those of the file that has the name.
 * Owns:    borrows the path. On 0, end it with bz_replace_finish or bz_replace_abandon.
 * Returns: 0, or an error: nothing is left.
 */
BZ_MUST_USE int bz_replace_begin(struct bz_replacement *r, int at, const char *path,
                                 uint32_t permissions, unsigned flags);
/* Put it in place. On error it is abandoned. */
BZ_MUST_USE int bz_replace_finish(struct bz_replacement *r);
void bz_replace_abandon(struct bz_replacement *r);

#endif
