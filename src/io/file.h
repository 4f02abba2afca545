/*
 * file.h - the table of files, and how one is closed while it is used. file.c has the rules.
 */
#ifndef BZ_IO_FILE_H
#define BZ_IO_FILE_H

#include "base/alloc.h"
#include "io/op.h"
#include "os/brief_lock.h"

enum { BZ_FILES_CHUNK = 64, BZ_FILES_CHUNKS = 1 << 14 };

typedef bz_atomic(struct bz_file *) bz_files_chunk;

struct bz_files {
    const struct bz_os *os; /* constant */
    const blitz_allocator *alloc;
    struct bz_lock lock;
    struct bz_file *free_list;         /* guarded by lock, as are the next */
    unsigned chunks;                   /* chunks made */
    unsigned used;                     /* files that are open */
    bz_atomic(bz_files_chunk *) chunk; /* chunk[i]: BZ_FILES_CHUNK files, once made */
    /* Of their backend; both are constant once the polls are made. */
    bool completes;  /* it is one by completion: io/poll.h */
    const char *why; /* it was chosen */
};

void bz_files_init(struct bz_files *files, const struct bz_os *os, const blitz_allocator *alloc);
/* Destroy the table. Files that are still open are leaks of their owners: close their descriptors
 * and return their number. */
unsigned bz_files_fini(struct bz_files *files);

/*
 * Make a file for a non-blocking descriptor.
 * Owns:    takes `fd`, unless BZ_FILE_FOREIGN; on error it is still the caller's.
 * Returns: 0, -ENOMEM, -EMFILE (a million of them).
 */
BZ_MUST_USE int bz_file_open(struct bz_files *files, blitz_fd fd, unsigned flags,
                             struct bz_file **out);

/* Prefetch a file that will be used soon, and then its waiter. */
void bz_file_fetch(struct bz_files *files, uint64_t key);
void bz_file_fetch_waiter(struct bz_files *files, uint64_t key);

/* Under its lock: set the prefetch hints: the operation, its owner's wait at a small distance, and
 * a task; NULL: none. */
static inline void bz_file_say_near(struct bz_file *f, const struct bz_op *op, const void *wait,
                                    const void *task)
{
    uintptr_t at = (uintptr_t)(wait != NULL ? wait : op), lines = ((uintptr_t)op - at) / BZ_FETCHED;
    bz_store_relaxed(&f->near_wait, at);                                  /* relaxed: a hint */
    bz_store_relaxed(&f->near_lines, (uint8_t)(lines < 255 ? lines : 0)); /* relaxed: likewise */
    bz_store_relaxed(&f->near_task, (uintptr_t)task);                     /* relaxed: likewise */
}

/* The place of a backend's key in the table. */
static BZ_ALWAYS_INLINE struct bz_file *bz_file_place(struct bz_files *files, uint64_t key)
{
    bz_files_chunk *chunk = bz_load_acquire(&files->chunk); /* file.c [B] */
    uint32_t at = (uint32_t)key;
    return bz_load_acquire(&chunk[at / BZ_FILES_CHUNK]) + at % BZ_FILES_CHUNK; /* file.c [A] */
}

/* The slow path of bz_file_lock. */
BZ_COLD void bz_file_wait(struct bz_lock *l);
static BZ_ALWAYS_INLINE void bz_file_lock(struct bz_file *f)
{
    bz_brief_take_by(&f->lock, f->files->os, bz_file_wait);
}
/* Try once. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_file_try_lock(struct bz_file *f)
{
    return bz_brief_try(&f->lock, f->files->os);
}
static inline void bz_file_unlock(struct bz_file *f)
{
    bz_brief_drop(&f->lock, f->files->os);
}

/* Find the file of a backend's key, and lock it; NULL if it was closed. */
static BZ_ALWAYS_INLINE struct bz_file *bz_file_find(struct bz_files *files, uint64_t key)
{
    struct bz_file *f = bz_file_place(files, key);
    bz_file_lock(f);
    if (BZ_LIKELY(f->generation == (uint32_t)(key >> 32))) /* then it is open: file.c, I3 */
        return f;
    bz_file_unlock(f);
    return NULL;
}

static inline uint64_t bz_file_key(const struct bz_file *f)
{
    return (uint64_t)f->generation << 32 | f->index;
}

/*
 * Find files of a poll in which an operation waits, from place *at on, for a backend that is told of no event.
 * Returns: how many keys were written. *at is where to go on; 0 after the last file.
 */
size_t bz_files_waited_for(struct bz_files *files, const struct bz_poll *poll, size_t *at,
                           uint64_t *keys, size_t keys_max);

/*
 * Close it. Pending operations end with -EBADF; the descriptor is closed when the last of them has
 * ended. Calls `deliver` for each wake-up, without a lock.
 */
void bz_file_close(struct bz_file *f, void (*deliver)(struct bz_wake *wake, void *arg), void *arg);

/* Under its lock: count an operation in or out. Return false if the file is closing, closed, or in
 * another generation. */
BZ_MUST_USE static inline bool bz_file_enter(struct bz_file *f, struct bz_op *op)
{
    if (op->generation != f->generation && /* the same: it is open (file.c, I3) */
        (op->generation != 0 || bz_file_is_closing(f) || f->users == 0))
        return false;
    f->users += !op->is_in;
    op->is_in = 1;
    return true;
}
/* Close the descriptor after the last user has left. Releases the lock. */
void bz_file_end_unlock(struct bz_file *f);
/* Releases the lock; the file may be freed. */
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
