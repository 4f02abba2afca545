/*
 * disk_inner.h - the state of the file system in memory, shared by disk.c (what survives) and disk_calls.c (the calls).
 */
#ifndef BZ_SIM_DISK_INNER_H
#define BZ_SIM_DISK_INNER_H

#include "base/rng.h"
#include "io/fsys.h"
#include "sim/disk.h"

enum {
    BZ_DISK_FIRST_FD = 5000,
    BZ_DISK_FDS = 64,
    BZ_DISK_NAMES = 32,
    BZ_DISK_NAME_BYTES = 48,
    BZ_DISK_LOG = 512,
    BZ_DISK_LOG_BYTES = 1 << 19,
    BZ_DISK_SECTOR = 512,
    BZ_DISK_NONE = -1,
    BZ_DISK_ROOT = 0
};

struct bz_disk_name {
    char text[BZ_DISK_NAME_BYTES]; /* "": free */
    int inode;
};

struct bz_disk_state {
    size_t size;
    char bytes[BZ_DISK_BYTES];                /* of a file */
    struct bz_disk_name names[BZ_DISK_NAMES]; /* of a directory */
};

struct bz_disk_inode {
    bool is_used, is_dir;
    unsigned mode;
    struct bz_disk_state now, kept;
};

enum bz_disk_change { BZ_CHANGE_BYTES, BZ_CHANGE_SIZE, BZ_CHANGE_NAME };

/* One change that is not synced. */
struct bz_disk_entry {
    enum bz_disk_change what;
    int inode;
    size_t at, bytes,
        data; /* BZ_CHANGE_BYTES: `bytes` of the log's data, at `at`. BZ_CHANGE_SIZE: the new size is `at` */
    int dir[2]; /* BZ_CHANGE_NAME: in these directories, BZ_DISK_NONE: no such change */
    char text[2][BZ_DISK_NAME_BYTES];
    int to[2]; /* the inode that has the name; BZ_DISK_NONE: none */
};

struct bz_disk_file {
    bool is_used, appends;
    int inode;
    size_t at; /* of a directory: the number of the next name */
};

struct bz_disk {
    struct bz_disk_config config;
    uint64_t calls;
    uint64_t crash_at; /* the number of that call; 0: none */
    bool is_down;
    struct bz_rng dice;
    struct bz_disk_inode inode[BZ_DISK_INODES];
    struct bz_disk_file file[BZ_DISK_FDS];
    struct bz_disk_entry log[BZ_DISK_LOG];
    unsigned log_count;
    size_t data_used;
    char data[BZ_DISK_LOG_BYTES];
};

extern struct bz_disk bz_disk;
extern const struct bz_fsys bz_disk_table;

/* Each call begins here: -EIO once the system has crashed. */
int bz_disk_begin(void);
/* Change a state: bytes at an offset, the size, or a name (BZ_DISK_NONE: remove it; false: no room). */
void bz_disk_keep_bytes(struct bz_disk_state *s, size_t at, const char *from, size_t bytes);
void bz_disk_keep_size(struct bz_disk_state *s, size_t size);
struct bz_disk_name *bz_disk_find_name(struct bz_disk_state *s, const char *text);

/* Texts, without functions of the C library: ThreadSanitizer intercepts them everywhere (kernel.c). */
bool bz_disk_is_same(const char *a, const char *b);
size_t bz_disk_length(const char *text);
/* Copy at most room - 1 characters, and end the text. */
void bz_disk_text(char *to, const char *from, size_t room);
/* The slash behind the first part of a path, or its end. */
const char *bz_disk_end_of_part(const char *path);
bool bz_disk_set_name(struct bz_disk_state *s, const char *text, int inode);
/* The log: a new entry; an entry of one name or of two; the end of those of an inode. */
struct bz_disk_entry *bz_disk_log_next(void);
void bz_disk_log_name(int dir, const char *text, int to, int dir2, const char *text2, int to2);
void bz_disk_log_sync(int inode);
/* True if the entry changes that inode. */
bool bz_disk_is_of(const struct bz_disk_entry *e, int inode);

#endif
