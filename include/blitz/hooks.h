/*
 * blitz/hooks.h - replace the allocator and the log.
 *
 * A library owns neither malloc nor stderr of the program it is part of. Both can be replaced here.
 *
 * An allocator is a value: two functions and your pointer. An object that takes an allocator copies it. Release the
 * object before the data behind the pointer goes away.
 *
 * There is one log per process. blitz logs only events that an operator should know (a fallback, a limit that was
 * reached), never ordinary events. Without a hook, warnings and errors go to standard error, one line each, and the
 * rest nowhere.
 */
#ifndef BLITZ_HOOKS_H
#define BLITZ_HOOKS_H

#include <stddef.h>
#include <stdlib.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

/*
 * alloc: return `size` bytes (more than 0) aligned to `align` (a power of two), or NULL. The bytes need
 *        not be zero.
 * free:  gets the pointer and the size that was requested. Never called with NULL.
 * Both may be called from any thread, several at once, and must not call back into blitz.
 */
typedef struct blitz_allocator {
    void *(*alloc)(void *ctx, size_t size, size_t align);
    void (*free)(void *ctx, void *memory, size_t size);
    void *ctx;
} blitz_allocator;

/*
 * Free a value of malloc(). All functions that drop a value have one form: void (*drop)(void *value, void *ctx). They
 * get the value and the `ctx` beside them in the options; NULL: nothing is done. This one calls free(), inline, so that
 * it is the free() of the caller's C library.
 * Owns:     takes the value; NULL is ignored.
 * Suspends: never. Call from any thread.
 */
static inline void blitz_drop_free(void *value, void *ctx)
{
    (void)ctx;
    free(value); /* lint: allow allocator: the caller's own memory */
}

typedef enum blitz_log_level {
    BLITZ_LOG_ERROR = 0, /* a request failed, and no return value could report it */
    BLITZ_LOG_WARN = 1,  /* done, but in a worse way than expected */
    BLITZ_LOG_INFO = 2,  /* findings and choices of blitz */
    BLITZ_LOG_DEBUG = 3  /* for developers of blitz */
} blitz_log_level;

/*
 * Receives one message without a newline, valid until the function returns. It may be called from any thread,
 * several at once, and must not call back into blitz.
 */
typedef void (*blitz_log_fn)(void *ctx, blitz_log_level level, const char *message);

/*
 * Send the process's log to `fn`: messages up to and including level `max`. A NULL `fn` restores the
 * default: warnings and errors to standard error.
 * Owns:     `ctx` is yours and is used until another hook is set and every call has returned.
 * Suspends: never. Call from any thread; set it before threads of yours use blitz, because a
 *           message in progress may still reach the old hook.
 * Returns:  0, -EINVAL (`max` is not a level; nothing was changed).
 */
BLITZ_API int blitz_log_set(blitz_log_fn fn, void *ctx, blitz_log_level max);

BLITZ_END_DECLS

#endif
