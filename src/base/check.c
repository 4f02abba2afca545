/*
 * check.c - how a broken invariant ends the process.
 *
 * The message goes out with one write(2), composed on the stack: the failing thread may hold
 * malloc's or stdio's lock, or run on a fiber's small stack (so the buffer is only half a KiB). In
 * a model build the model checker handles the failure instead, so that it can draw the interleaving
 * that led here.
 */
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(BZ_MODEL)
#include "model_atomic.h"
#endif

void bz_fail(const char *file, int line, const char *cond, const char *format, ...)
{
    char text[512];
    size_t room = sizeof text - 1; /* one byte for the newline */
    int used = snprintf(text, room, "blitz: %s:%d: broken: %s", file, line, cond);
    if (used < 0)
        used = 0;
    if ((size_t)used < room && format[0] != '\0') {
        va_list args;
        va_start(args, format);
        used += snprintf(text + used, room - (size_t)used, ": ");
        if ((size_t)used < room) {
            int more = vsnprintf(text + used, room - (size_t)used, format, args);
            used += more < 0 ? 0 : more;
        }
        va_end(args);
    }
    size_t length = (size_t)used < room ? (size_t)used : room - 1;
#if defined(BZ_MODEL)
    text[length] = '\0';
    bz_model_fail(text);
#endif
    text[length++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, text, length);
    (void)ignored;
    abort();
}
