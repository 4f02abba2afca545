/*
 * blitz/hooks.h - where blitz gets its memory and where it says what it has to say.
 *
 * A library inside somebody's program owns neither malloc nor stderr. Both can be replaced here.
 *
 * An allocator is a value: two functions and your pointer. Whatever takes one copies it, and must
 * be finished with before what the pointer leads to goes away.
 *
 * The log is one per process. blitz is quiet: it logs what a person should know (a fallback that
 * was taken, a limit that was reached), never the course of ordinary events. Without a hook,
 * warnings and errors go to standard error, one line each, and the rest nowhere.
 */
#ifndef BLITZ_HOOKS_H
#define BLITZ_HOOKS_H

#include <stddef.h>
#include <stdlib.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

/*
 * alloc: `size` bytes (more than 0) aligned to `align` (a power of two), or NULL. The bytes need
 *        not be zero.
 * free:  gets the pointer and the very size that was asked for. Never called with NULL.
 * Both may be called from any thread, several at once, and must not call back into blitz.
 */
typedef struct blitz_allocator {
    void *(*alloc)(void *ctx, size_t size, size_t align);
    void (*free)(void *ctx, void *memory, size_t size);
    void *ctx;
} blitz_allocator;

/*
 * What ends a value has one form everywhere: void (*drop)(void *value, void *ctx). It gets the value and the
 * `ctx` that stands beside it in the options; NULL: nothing is done. This one is for values of malloc(): it calls
 * free(), inline, so that it is that of the caller's C library.
 * Owns:     takes the value; NULL is ignored.
 * Suspends: never. Call from any thread.
 */
static inline void blitz_drop_free(void *value, void *ctx)
{
    (void)ctx;
    free(value); /* lint: allow allocator: the caller's own memory */
}

typedef enum blitz_log_level {
    BLITZ_LOG_ERROR = 0, /* something asked for was not done, and no return value could say so */
    BLITZ_LOG_WARN = 1,  /* done, but not as well as it should be */
    BLITZ_LOG_INFO = 2,  /* what was found or chosen */
    BLITZ_LOG_DEBUG = 3  /* for whoever works on blitz */
} blitz_log_level;

/*
 * Gets one message without a newline, valid until it returns. May be called from any thread,
 * several at once, and must not call back into blitz.
 */
typedef void (*blitz_log_fn)(void *ctx, blitz_log_level level, const char *message);

/*
 * Send the process's log to `fn`, messages up to and including `max`. A NULL `fn` restores the
 * default: warnings and errors to standard error.
 * Owns:     `ctx` is yours and is used until another hook is set and every call has returned.
 * Suspends: never. Call from any thread; set it before threads of yours use blitz, because a
 *           message under way may still reach the old hook.
 * Returns:  0, -EINVAL (`max` is not a level; nothing was changed).
 */
BLITZ_API int blitz_log_set(blitz_log_fn fn, void *ctx, blitz_log_level max);

BLITZ_END_DECLS

#endif
