/*
 * file.c - the table of files.
 *
 * Three things make descriptors hard to close. The number is reused at once, so a late user of the
 * old descriptor would hit the new one. Other threads may have operations in progress, perhaps in a
 * system call. And a backend may hold an event for the file that it has not processed yet.
 *
 * So a descriptor is closed only after the last operation has ended: `users` counts the operations,
 * plus one for the open file. A close sets is_closing, wakes all waiters, asks the kernel to cancel
 * its operations, and drops its own count; the last user closes the descriptor. A backend never has
 * a pointer to a file, only a key: the index in this table and the generation, which grows with
 * each close. The table's memory stays until the runtime is released, so a late key still finds a
 * file, and its generation shows that it is another one. The generation grows when the close begins, not when
 * the last user leaves. So one comparison shows both that a file is the expected one and that it is open.
 *
 * Files are allocated in chunks of 64; the table of chunks is made with the first file. A program
 * without files has neither.
 *
 * With ten thousand files an event leads to a chain of cache misses: the file, the waiting
 * operation and its owner's wait, both on some stack, and the task. So a file has its own cache
 * lines, with the hot fields first. A waiter stores these addresses in the file as hints, so that
 * they can be prefetched while earlier events of the ready list are processed. The memory may
 * already be freed: the hints are only used for prefetches. This saves 2 to 3 % of a message's CPU
 * time with 1000 connections, 1 % with 10,000.
 *
 * I1  fd is not BLITZ_NO_FD exactly while users > 0.
 * I2  Only the lock's holder changes users, is_closing, generation and the halves.
 * I3  Keys and handles are made of the generation of an open file, and a close changes it in the critical section that
 *     sets is_closing. So under the lock, a file that has the generation of a key or a handle is open, is not closing, and
 *     users > 0.
 *
 * [A] open: chunk[i] release -> find: chunk[i] acquire   the files in it are initialized
 * [B] open: chunk release -> find: chunk acquire         the table is there
 */
#include "io/file.h"

#include <errno.h>

#include "base/check.h"
#include "io/attempt.h"
#include "io/poll.h"
#include "io/sys.h"

void bz_files_init(struct bz_files *files, const struct bz_os *os, const blitz_allocator *alloc)
{
    files->os = os;
    files->alloc = alloc;
    bz_lock_init(&files->lock);
    files->free_list = NULL;
    files->chunks = 0;
    files->used = 0;
    bz_atomic_init(&files->chunk, NULL);
    files->completes = false;
    files->why = NULL;
}

void bz_file_wait(struct bz_lock *l)
{
#if !defined(BZ_PLAIN)
    bz_brief_wait(l, BZ_CONTAINER_OF(l, struct bz_file, lock)->files->os);
#else
    (void)l;
#endif
}

/* ---- allocating files ---- */

static void file_init(struct bz_files *files, struct bz_file *f, uint32_t index)
{
    bz_lock_init_ranked(&f->lock, BZ_RANK_WAIT);
    f->files = files;
    f->index = index;
    f->generation = 1;
    f->fd = BLITZ_NO_FD;
    f->users = 0;
    bz_store_relaxed(&f->is_closing, false); /* relaxed: under the lock */
    f->poll = NULL;
    f->gathered = 0;
    bz_atomic_init(&f->near_wait, 0);
    bz_atomic_init(&f->near_lines, 0);
    bz_atomic_init(&f->near_task, 0);
    bz_list_init(&f->flying);
    for (int s = 0; s < BZ_SIDES; s++) {
        bz_atomic_init(&f->half[s].is_ready, false);
        bz_atomic_init(&f->half[s].is_over, false);
        bz_list_init(&f->half[s].waiting);
    }
}

/* Under the table's lock. */
static int add_chunk(struct bz_files *files)
{
    bz_files_chunk *chunk = bz_load_relaxed(&files->chunk); /* relaxed: under the lock */
    if (chunk == NULL) {
        chunk = bz_alloc(files->alloc, BZ_FILES_CHUNKS * sizeof *chunk, _Alignof(bz_files_chunk));
        if (chunk == NULL)
            return -ENOMEM;
        bz_store_release(&files->chunk, chunk); /* [B] */
    }
    if (files->chunks == BZ_FILES_CHUNKS)
        return -EMFILE;
    struct bz_file *f = bz_alloc(files->alloc, BZ_FILES_CHUNK * sizeof *f, BZ_LINE);
    if (f == NULL)
        return -ENOMEM;
    for (unsigned i = BZ_FILES_CHUNK; i-- > 0;) {
        file_init(files, &f[i], files->chunks * BZ_FILES_CHUNK + i);
        f[i].next_free = files->free_list;
        files->free_list = &f[i];
    }
    bz_store_release(&chunk[files->chunks++], f); /* [A] */
    return 0;
}

static int take_free(struct bz_files *files, struct bz_file **out)
{
    bz_lock_take(&files->lock, files->os);
    int err = files->free_list == NULL ? add_chunk(files) : 0;
    if (err == 0) {
        *out = files->free_list;
        files->free_list = (*out)->next_free;
        files->used++;
    }
    bz_lock_drop(&files->lock, files->os);
    return err;
}

static void give_free(struct bz_file *f)
{
    struct bz_files *files = f->files;
    bz_lock_take(&files->lock, files->os);
    f->next_free = files->free_list;
    files->free_list = f;
    files->used--;
    bz_lock_drop(&files->lock, files->os);
}

unsigned bz_files_fini(struct bz_files *files)
{
    unsigned left = files->used;
    for (unsigned i = 0; i < files->chunks; i++) {
        struct bz_file *f = bz_file_place(files, (uint64_t)i * BZ_FILES_CHUNK);
        for (unsigned j = 0; j < BZ_FILES_CHUNK; j++)
            if (f[j].fd != BLITZ_NO_FD && !(f[j].flags & BZ_FILE_FOREIGN))
                bz_sys->close(f[j].fd);
        bz_free(files->alloc, f, BZ_FILES_CHUNK * sizeof *f);
    }
    bz_files_chunk *chunk = bz_load_relaxed(&files->chunk); /* relaxed: no other user is left */
    if (chunk != NULL)
        bz_free(files->alloc, chunk, BZ_FILES_CHUNKS * sizeof *chunk);
    bz_store_relaxed(&files->chunk, NULL); /* relaxed: likewise */
    files->chunks = files->used = 0;
    return left;
}

/* ---- use ---- */

int bz_file_open(struct bz_files *files, blitz_fd fd, unsigned flags, struct bz_file **out)
{
    struct bz_file *f;
    int err = take_free(files, &f);
    if (err != 0)
        return err;
    bz_file_lock(f); /* a thread with a late key may be reading */
    f->fd = fd;
    f->flags = (uint8_t)flags;
    f->users = 1;
    bz_store_relaxed(&f->is_closing, false); /* relaxed: under the lock */
    f->poll = NULL;
    f->kept = 0;
    for (int s = 0; s < BZ_SIDES; s++) {
        /* Readiness is unknown: try. By completion no call is tried for the side out; for the other, see io/uring_submit.c. */
        bz_half_set_ready(&f->half[s], s == BZ_SIDE_IN || !files->completes);
        bz_half_set_over(&f->half[s], false);
        bz_store_relaxed(&f->half[s].overs, 0); /* relaxed: under the lock */
    }
    bz_file_unlock(f);
    *out = f;
    return 0;
}

void bz_file_fetch(struct bz_files *files, uint64_t key)
{
    char *f = (char *)bz_file_place(files, key);
    __builtin_prefetch(f);
    __builtin_prefetch(f + BZ_FETCHED);
}

void bz_file_fetch_waiter(struct bz_files *files, uint64_t key)
{
    struct bz_file *f = bz_file_place(files, key);
    char *wait = (char *)bz_load_relaxed(&f->near_wait);                    /* relaxed: a hint */
    char *op = wait + (size_t)bz_load_relaxed(&f->near_lines) * BZ_FETCHED; /* relaxed: likewise */
    __builtin_prefetch((const void *)bz_load_relaxed(&f->near_task));       /* relaxed: likewise */
    __builtin_prefetch(wait);
    __builtin_prefetch(op);
    __builtin_prefetch(op + BZ_FETCHED);
}

/* Its key, if an operation waits in it for that poll; else 0. */
static uint64_t key_if_waited_for(struct bz_file *f, const struct bz_poll *poll)
{
    bz_file_lock(f);
    bool is_one = f->users > 0 && !bz_file_is_closing(f) && f->poll == poll &&
                  (!bz_list_is_empty(&f->half[BZ_SIDE_IN].waiting) ||
                   !bz_list_is_empty(&f->half[BZ_SIDE_OUT].waiting));
    uint64_t key = is_one ? bz_file_key(f) : 0;
    bz_file_unlock(f);
    return key;
}

size_t bz_files_waited_for(struct bz_files *files, const struct bz_poll *poll, size_t *at,
                           uint64_t *keys, size_t keys_max)
{
    size_t count = 0;
    bz_lock_take(&files->lock, files->os);
    size_t end = (size_t)files->chunks * BZ_FILES_CHUNK;
    bz_lock_drop(&files->lock, files->os);
    for (; *at < end && count < keys_max; (*at)++) {
        uint64_t key = key_if_waited_for(bz_file_place(files, *at), poll);
        if (key != 0)
            keys[count++] = key;
    }
    if (*at >= end)
        *at = 0;
    return count;
}

/* The last user has left. Releases the lock. */
static blitz_fd vacate(struct bz_file *f)
{
    blitz_fd fd = f->fd;
    BZ_ASSERT(bz_list_is_empty(&f->half[BZ_SIDE_IN].waiting));
    BZ_ASSERT(bz_list_is_empty(&f->half[BZ_SIDE_OUT].waiting));
    BZ_ASSERT(bz_list_is_empty(&f->flying));
    f->fd = BLITZ_NO_FD;
    bz_file_unlock(f);
    return fd;
}

void bz_file_end_unlock(struct bz_file *f)
{
    bool is_ours = !(f->flags & BZ_FILE_FOREIGN);
    blitz_fd fd = vacate(f);
    if (is_ours)
        bz_sys->close(fd); /* ignore errors: the number is free in any case */
    give_free(f);
}

/* ---- closing ---- */

/* Claim one waiting operation. Return false if there is none. */
static bool claim_one(struct bz_file *f, struct bz_wake *wake)
{
    for (int s = 0; s < BZ_SIDES; s++) {
        struct bz_list *waiting = &f->half[s].waiting;
        if (bz_list_is_empty(waiting))
            continue;
        struct bz_op *op = bz_op_of(waiting->next);
        op->state = BZ_OP_NOTIFIED;
        (void)!bz_waiter_claim(&op->request.waiter, 0,
                               wake); /* if the waiter has gone there is nothing to deliver */
        return true;
    }
    return false;
}

void bz_file_close(struct bz_file *f, void (*deliver)(struct bz_wake *wake, void *arg), void *arg)
{
    struct bz_wake wake;
    struct bz_op none = {.is_in = 1}; /* the count of the open file */
    bz_file_lock(f);
    BZ_CHECK(f->users > 0 && !bz_file_is_closing(f),
             "a file that is not open is closed: fd %lld, users %u", (long long)f->fd, f->users);
    bz_store_relaxed(&f->is_closing, true); /* relaxed: under the lock */
    if (f->poll != NULL)
        bz_poll_detach(f->poll, f);
    f->generation++; /* I3; behind the detach: a backend makes keys of attached files without the lock */
    for (struct bz_list *l = f->flying.next; l != &f->flying; l = l->next) {
        struct bz_op *op = bz_op_of(l);
        op->poll->ops->cancel(op->poll, op);
    }
    while (claim_one(f, &wake)) {
        bz_file_unlock(f);
        deliver(&wake, arg);
        bz_file_lock(f);
    }
    bz_file_leave_unlock(f, &none);
}
