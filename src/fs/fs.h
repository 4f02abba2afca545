/*
 * fs.h - what the files of src/fs share: handles, and calls on them.
 */
#ifndef BZ_FS_FS_H
#define BZ_FS_FS_H

#include "base/alloc.h"
#include "fs/fs_call.h"

/* Knowledge about reads from a file. */
enum bz_file_cache {
    BZ_CACHE_TELLS, /* the system reads only cached bytes if asked to; so until proved otherwise */
    BZ_CACHE_IS_MEMORY, /* it does not, and there is no disk behind it */
    BZ_CACHE_UNKNOWN    /* it does not */
};

struct blitz_file {
    bz_atomic(uint32_t) refs;
    int fd;                   /* constant, as are the next */
    bool is_regular;          /* a file of the disk: reads and writes do not wait for a peer */
    bool is_direct;           /* writes wait for the disk */
    bz_atomic(uint8_t) cache; /* enum bz_file_cache; a hint */
};

/* Make a handle of a descriptor. On error the caller still owns it. */
BZ_MUST_USE int bz_file_of(int fd, bool is_direct, blitz_file **out);

struct blitz_dir {
    bz_atomic(uint32_t) refs;
    int fd;                  /* constant */
    bz_atomic(bool) is_read; /* a call reads the stream, and owns the rest */
    uint32_t at, end;        /* of the names in the buffer */
    void *names;             /* made by the first call */
};

/* The descriptor at which a path begins. */
static inline int bz_dir_at(const struct blitz_dir *d)
{
    return d != NULL ? d->fd : BZ_FS_CWD;
}

BZ_MUST_USE int bz_dir_of(int fd, struct blitz_dir **out);
/* listing.c: for a call that owns the stream. Take a name out of the buffer, false: it is empty. Fill the buffer:
 * 1; 0: the end; an error. */
bool bz_dir_take(struct blitz_dir *d, blitz_dir_entry *out);
int64_t bz_dir_more(struct blitz_dir *d);

/* transfer.c: write all bytes at the position. */
int bz_fs_write_all(struct bz_fs_call *c, int fd, const void *data, size_t bytes);

void bz_facts_show(const struct bz_fs_facts *in, blitz_file_facts *out);

/* True for "." and "..", which are in every directory. */
static inline bool bz_is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* A new random number for the name of a temporary file. */
BZ_MUST_USE int bz_fs_random(uint64_t *out);

#endif
