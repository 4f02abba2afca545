/*
 * file.h - the table of files, and how one is closed while it is used. file.c has the rules.
 */
#ifndef BZ_IO_FILE_H
#define BZ_IO_FILE_H

#include "base/alloc.h"
#include "io/op.h"

enum { BZ_FILES_CHUNK = 64, BZ_FILES_CHUNKS = 1 << 14 };

typedef bz_atomic(struct bz_file *) bz_files_chunk;

struct bz_files {
    const struct bz_os *os; /* constant */
    const blitz_allocator *alloc;
    struct bz_lock lock;
    struct bz_file *free_list;         /* guarded by lock, as are the next */
    unsigned chunks;                   /* made */
    unsigned used;                     /* files that are open */
    bz_atomic(bz_files_chunk *) chunk; /* chunk[i]: BZ_FILES_CHUNK files, once made */
};

void bz_files_init(struct bz_files *files, const struct bz_os *os, const blitz_allocator *alloc);
/* All files are closed, or their owners leak them: their descriptors are closed. Returns how many. */
unsigned bz_files_fini(struct bz_files *files);

/*
 * Take up a descriptor that does not block.
 * Owns:    takes `fd`, unless BZ_FILE_FOREIGN; on error it is still the caller's.
 * Returns: 0, -ENOMEM, -EMFILE (a million of them).
 */
BZ_MUST_USE int bz_file_open(struct bz_files *files, int fd, unsigned flags, struct bz_file **out);

/* One that will be asked for soon, and then who waits there: have the CPU fetch them. */
void bz_file_fetch(struct bz_files *files, uint64_t key);
void bz_file_fetch_waiter(struct bz_files *files, uint64_t key);

/* Under its lock: where who waits stands in memory, for whoever tells it: the operation, its owner's
 * wait somewhere below it, and a task; NULL: none. */
static inline void bz_file_say_near(struct bz_file *f, const struct bz_op *op, const void *wait,
                                    const void *task)
{
    uintptr_t at = (uintptr_t)(wait != NULL ? wait : op), lines = ((uintptr_t)op - at) / BZ_FETCHED;
    bz_store_relaxed(&f->near_wait, at);                                  /* relaxed: a hint */
    bz_store_relaxed(&f->near_lines, (uint8_t)(lines < 255 ? lines : 0)); /* relaxed: likewise */
    bz_store_relaxed(&f->near_task, (uintptr_t)task);                     /* relaxed: likewise */
}

/* The file a keeper's key names, locked, or NULL if that one is gone. */
struct bz_file *bz_file_find(struct bz_files *files, uint64_t key);
static inline uint64_t bz_file_key(const struct bz_file *f)
{
    return (uint64_t)f->generation << 32 | f->index;
}

/*
 * Close it. Operations under way end with -EBADF; the descriptor is closed when the last of them
 * has gone. Calls `deliver` for each wake-up, without a lock.
 */
void bz_file_close(struct bz_file *f, void (*deliver)(struct bz_wake *wake, void *arg), void *arg);
/* The same, but the descriptor stays open and is the caller's again. For a file nobody uses. */
int bz_file_release(struct bz_file *f);

static inline void bz_file_lock(struct bz_file *f)
{
    bz_lock_take(&f->lock, f->files->os);
}
static inline void bz_file_unlock(struct bz_file *f)
{
    bz_lock_drop(&f->lock, f->files->os);
}

/* Under its lock: an operation begins, or ends. False: it is closing, gone, or another use of it. */
BZ_MUST_USE static inline bool bz_file_enter(struct bz_file *f, struct bz_op *op)
{
    bool is_meant = op->generation == 0 || op->generation == f->generation;
    if (f->is_closing || f->users == 0 || !is_meant)
        return false;
    f->users += !op->is_in;
    op->is_in = 1;
    return true;
}
/* The last one has left: close the descriptor. The lock is dropped. */
void bz_file_end_unlock(struct bz_file *f);
/* The lock is dropped, and the file perhaps gone. */
static inline void bz_file_leave_unlock(struct bz_file *f, struct bz_op *op)
{
    f->users -= op->is_in;
    op->is_in = 0;
    if (BZ_UNLIKELY(f->users == 0))
        bz_file_end_unlock(f);
    else
        bz_file_unlock(f);
}

#endif
