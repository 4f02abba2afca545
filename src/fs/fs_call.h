/*
 * fs_call.h - one call on files: its arguments, and how it is made. fs_call.c has the design.
 *
 * A call is written once, as a verb:
 *
 *     static int64_t run_mkdir(struct bz_fs_call *c)
 *     {
 *         int err;
 *         bz_fs_again(err, bz_fsys->mkdir(bz_dir_at(c->args.at), c->args.path, mode));
 *         return err;
 *     }
 *     static const struct bz_fs_verb verb_mkdir = BZ_FS_VERB("mkdir", run_mkdir);
 *
 * bz_fs_do() makes it for a caller that waits, bz_fs_future_begin() makes a future of it.
 */
#ifndef BZ_FS_CALL_H
#define BZ_FS_CALL_H

#include "base/bz_atomic.h"
#include "blitz/dir.h"
#include "blitz/file.h"
#include "blitz/fs_future.h"
#include "io/fsys.h"
#include "proc/state.h"

/* A flag of any call: if it fails after some bytes, its result is their number. */
enum { BZ_FS_PARTIAL = 0x8000 };

/* The arguments of any call. Their meaning is the verb's. */
struct bz_fs_args {
    union {
        blitz_file *file;
        struct blitz_dir *at;
    };
    struct blitz_dir *to_at;
    const char *path, *to;
    blitz_piece memory; /* a buffer; a transfer moves it on */
    const blitz_piece *vector;
    int64_t number[2]; /* an offset, a size, times */
    void *out, *out_too;
    uint32_t mode;
    uint16_t flags; /* of the verb, and BZ_FS_PARTIAL */
    uint16_t count; /* pieces of `vector` */
    size_t done;    /* of a transfer */
};

struct bz_fs_call {
    struct bz_fs_args args;
    blitz_deadline until;     /* of a call in place; else the waiter keeps it */
    struct bz_task *task;     /* the task that makes the call in place; NULL: another thread */
    bz_atomic(bool) is_asked; /* to stop: set by the owner of a future */
};

struct bz_fs_verb {
    blitz_future_ops ops; /* of its future; the name is the verb's, too */
    /* Make the call; it may block. */
    int64_t (*run)(struct bz_fs_call *c);
    /* Make it only if it does not block: -EAGAIN if it would. NULL: it always may. */
    int64_t (*attempt)(struct bz_fs_call *c);
    /* True if it is better made on a thread of the pool, or by a ring. NULL: no. */
    bool (*is_slow)(const struct bz_fs_call *c);
    /* NULL, or: fill in the operation of a ring. False: not this call. */
    bool (*for_ring)(struct bz_fs_call *c, struct bz_op *op);
    /* The ring has done the operation. True: the call is over, with *result. */
    bool (*landed)(struct bz_fs_call *c, int64_t *result);
    bool naps; /* if the attempt says -EAGAIN, try again later; `run` is not used */
};

blitz_poll bz_fs_poll(blitz_future *f, const blitz_waker *waker);
void bz_fs_cancel(blitz_future *f);
int bz_fs_output(blitz_future *f);

#define BZ_FS_VERB(name_, run_, ...)     \
    {                                    \
        .ops = {.name = (name_),         \
                .kind = BLITZ_PINNED,    \
                .poll = bz_fs_poll,      \
                .cancel = bz_fs_cancel,  \
                .output = bz_fs_output}, \
        .run = (run_), __VA_ARGS__       \
    }

/*
 * Make the call.
 * Owns:     borrows the call, and all that its arguments lead to, until it returns.
 * Suspends: until it is done. At a deadline or a cancel it is asked to stop, and waited for.
 * Returns:  its result; -ETIMEDOUT, -ECANCELED: it did not complete.
 */
int64_t bz_fs_do(const struct bz_fs_verb *verb, struct bz_fs_call *c, blitz_deadline until);

/* The same for a verb whose result is 0 or an error. */
static inline int bz_fs_do_int(const struct bz_fs_verb *verb, struct bz_fs_call *c,
                               blitz_deadline until)
{
    return (int)bz_fs_do(verb, c, until);
}

/* Make a future of it; or one that is ready with an error. Copies the arguments. */
void bz_fs_future_begin(blitz_fs_future *future, const struct bz_fs_verb *verb,
                        const struct bz_fs_args *args);
void bz_fs_future_fail(blitz_fs_future *future, int err);

/* For `run` of a call of many steps, between two of them: 0, or the reason to stop. */
int bz_fs_stopped(struct bz_fs_call *c);

/* A verb for any call that always may block and is made in place by a waiting caller. */
bool bz_fs_is_slow(const struct bz_fs_call *c); /* true */

#endif
