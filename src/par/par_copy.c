/*
 * par_copy.c - parallel copy and fill.
 *
 * Large copies are limited by memory bandwidth, and one core seldom uses all of it. A chunk is a
 * memcpy(). A fill is one as well: the value is doubled up to a pattern of about a KiB at the start
 * of the chunk. The pattern, which is then in the L1 cache, is copied repeatedly.
 *
 * A chunk below a few KiB costs more than it gains, so a few KiB is the default grain.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "blitz/iter_map.h"

enum { PIECE = 8192, PATTERN = 1024 };

struct copy {
    char *to;
    const char *from; /* elements, or the fill value */
    size_t bytes;
};

/* The caller's options, with a grain of at least a few KiB. */
static blitz_par_opts advice(size_t bytes, const blitz_par_opts *opts)
{
    blitz_par_opts o = opts != NULL ? *opts : (blitz_par_opts){0};
    if (o.grain == 0)
        o.grain = bytes < PIECE ? PIECE / bytes : 1;
    return o;
}

static int is_sane(size_t n, size_t bytes)
{
    return bytes > 0 && n <= SIZE_MAX / bytes;
}

static int copy_chunk(size_t from, size_t to, void *arg)
{
    const struct copy *c = arg;
    memcpy(c->to + from * c->bytes, c->from + from * c->bytes, (to - from) * c->bytes);
    return 0;
}

int blitz_copy(void *to, const void *from, size_t n, size_t bytes, const blitz_par_opts *opts)
{
    struct copy c = {to, from, bytes};
    if (!is_sane(n, bytes))
        return -EINVAL;
    blitz_par_opts o = advice(bytes, opts);
    return blitz_for(n, copy_chunk, &c, &o);
}

static int fill_chunk(size_t from, size_t to, void *arg)
{
    const struct copy *c = arg;
    char *at = c->to + from * c->bytes;
    size_t whole = (to - from) * c->bytes, done = c->bytes, piece = done;
    memcpy(at, c->from, c->bytes);
    while (done < whole) {
        piece = done < PATTERN ? done : piece;
        size_t next = whole - done < piece ? whole - done : piece;
        memcpy(at + done, at, next);
        done += next;
    }
    return 0;
}

int blitz_fill(void *to, size_t n, const void *value, size_t bytes, const blitz_par_opts *opts)
{
    struct copy c = {to, value, bytes};
    if (!is_sane(n, bytes))
        return -EINVAL;
    blitz_par_opts o = advice(bytes, opts);
    return blitz_for(n, fill_chunk, &c, &o);
}
