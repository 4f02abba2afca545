/*
 * dumped.h - a dump in memory, and checks of its text.
 *
 *     struct t_dumped d;
 *     t_dump(&d, rt, BLITZ_DUMP_FRAMES);
 *     CHECK(t_dump_has(&d, "task 7 \"main\""));
 */
#ifndef T_DUMPED_H
#define T_DUMPED_H

#include "blitz.h"
#include "harness.h"
#include "support/sanitizers.h"

struct t_dumped {
    unsigned lines;
    size_t used;
    char text[1 << 18]; /* bytes that do not fit are counted and dropped */
};

static inline int t_dump_add(void *ctx, const char *line, size_t length)
{
    struct t_dumped *d = ctx;
    CHECK_EQ(line[length - 1], '\n');
    d->lines++;
    if (d->used + length < sizeof d->text) {
        memcpy(d->text + d->used, line, length);
        d->used += length;
        d->text[d->used] = '\0';
    }
    return 0;
}

static inline void t_dump(struct t_dumped *d, blitz_runtime *rt, unsigned flags)
{
    d->lines = 0;
    d->used = 0;
    d->text[0] = '\0';
    CHECK_EQ(blitz_dump_to(rt, t_dump_add, d, flags), 0);
}

static inline bool t_dump_has(const struct t_dumped *d, const char *text)
{
    bool has = strstr(d->text, text) != NULL;
    if (!has)
        t_skip_if_memory_is_hidden();
    if (!has)
        t_note("no \"%s\" in:\n%s", text, d->text);
    return has;
}

/* The line that a text begins in, or the test fails. */
static inline const char *t_dump_line(const struct t_dumped *d, const char *text)
{
    CHECK(t_dump_has(d, text));
    const char *at = strstr(d->text, text);
    while (at > d->text && at[-1] != '\n')
        at--;
    return at;
}

#endif
