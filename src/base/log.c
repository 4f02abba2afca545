/*
 * log.c - one log hook for the process, and the default log.
 *
 * The hook is three words: function, argument, level. They change together, and a message must not
 * see a new function with an old argument. A lock is not possible, because any code may log: a
 * signal handler's epilogue, a thread that holds any of our locks. So the words are in a record
 * published by one pointer. There are two records, and a setter writes the one that is not current.
 * A reader with the old pointer keeps a consistent old record unless two more sets overtake it,
 * which the header rules out ("set it before threads of yours use blitz").
 *
 * [A] set: current release -> log: current acquire   the record is filled before it is used
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bz_atomic.h"

struct log_hook {
    blitz_log_fn fn;
    void *ctx;
    blitz_log_level max;
};

static const char *const level_name[] = {"error", "warning", "info", "debug"};

static void to_stderr(void *ctx, blitz_log_level level, const char *message)
{
    char line[600];
    (void)ctx;
    int n = snprintf(line, sizeof line, "blitz: %s: %s\n", level_name[level], message);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    /* one write, so that lines do not interleave */
    ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored;
}

static struct log_hook record[2] = {{to_stderr, NULL, BLITZ_LOG_WARN},
                                    {to_stderr, NULL, BLITZ_LOG_WARN}};
static bz_atomic(struct log_hook *) current = &record[0];

int blitz_log_set(blitz_log_fn fn, void *ctx, blitz_log_level max)
{
    if ((int)max < BLITZ_LOG_ERROR || (int)max > BLITZ_LOG_DEBUG)
        return -EINVAL;
    struct log_hook *old = bz_load_relaxed(&current); /* relaxed: setters do not run concurrently */
    struct log_hook *next = old == &record[0] ? &record[1] : &record[0];
    next->fn = fn != NULL ? fn : to_stderr;
    next->ctx = fn != NULL ? ctx : NULL;
    next->max = fn != NULL ? max : BLITZ_LOG_WARN;
    bz_store_release(&current, next); /* [A] */
    return 0;
}

void bz_log(blitz_log_level level, const char *format, ...)
{
    struct log_hook *hook = bz_load_acquire(&current); /* [A] */
    if (level > hook->max)
        return;
    char message[512];
    va_list args;
    va_start(args, format);
    if (vsnprintf(message, sizeof message, format, args) < 0)
        message[0] = '\0';
    va_end(args);
    hook->fn(hook->ctx, level, message);
}
