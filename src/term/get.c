/*
 * get.c - the reader: values of the kind that is asked for.
 *
 * Each call reads a head from a copy of the position, and moves on only if the value is stored. So a caller may try one kind after
 * another. bz_term_head() has checked the lengths.
 */
#include <math.h>
#include <string.h>

#include "term/head.h"

blitz_term_in blitz_term_in_of(blitz_term bytes)
{
    return (blitz_term_in){bytes.data, bytes.data + bytes.bytes};
}

bool blitz_term_at_end(const blitz_term_in *in)
{
    return in->at == in->end;
}

static int walk_over(const blitz_term_in *in, const unsigned char **after)
{
    return bz_term_walk(in->at, in->end, BLITZ_TERM_DEPTH_MAX, SIZE_MAX, after, NULL);
}

int blitz_term_take(blitz_term_in *in, blitz_term *term)
{
    const unsigned char *after;
    int rc = walk_over(in, &after);
    if (rc != 0)
        return rc;
    *term = (blitz_term){in->at, (size_t)(after - in->at)};
    in->at = after;
    return 0;
}

int blitz_term_skip(blitz_term_in *in)
{
    blitz_term skipped;
    return blitz_term_take(in, &skipped);
}

int blitz_term_next(blitz_term_in *in, blitz_term_item *item)
{
    struct bz_term_head head;
    int rc = bz_term_head(in->at, in->end, &head);
    if (rc == 0 &&
        head.item.kind == BLITZ_TERM_IS_FUN) { /* it is one value: with what it has captured */
        rc = walk_over(in, &head.after);
        if (rc == 0)
            head.item.whole.bytes = (size_t)(head.after - in->at);
    }
    if (rc != 0)
        return rc;
    *item = head.item;
    in->at = head.after;
    return 0;
}

int blitz_term_peek(const blitz_term_in *in, blitz_term_item *item)
{
    blitz_term_in copy = *in;
    return blitz_term_next(&copy, item);
}

/* Read an item of this kind. */
static int next_of(blitz_term_in *in, blitz_term_kind kind, blitz_term_item *item)
{
    blitz_term_in copy = *in;
    int rc = blitz_term_next(&copy, item);
    if (rc != 0)
        return rc;
    if (item->kind != kind)
        return -EINVAL;
    *in = copy;
    return 0;
}

/* ---- numbers ---- */

int blitz_term_get_int(blitz_term_in *in, int64_t *value)
{
    blitz_term_item item = {.kind = BLITZ_TERM_IS_INT};
    int rc = next_of(in, BLITZ_TERM_IS_INT, &item);
    if (rc != 0)
        return rc == -EINVAL && item.kind == BLITZ_TERM_IS_BIG ? -ERANGE : rc;
    *value = item.as.integer;
    return 0;
}

int blitz_term_get_uint(blitz_term_in *in, uint64_t *value)
{
    blitz_term_in copy = *in;
    blitz_term_item item;
    uint64_t sum = 0;
    int rc = blitz_term_next(&copy, &item);
    if (rc != 0)
        return rc;
    if (item.kind == BLITZ_TERM_IS_INT) {
        if (item.as.integer < 0)
            return -ERANGE;
        sum = (uint64_t)item.as.integer;
    } else if (item.kind == BLITZ_TERM_IS_BIG) {
        if (item.as.big.is_negative || item.as.big.bytes > 8)
            return -ERANGE;
        for (uint32_t i = item.as.big.bytes; i-- > 0;)
            sum = sum << 8 | item.as.big.digits[i];
    } else {
        return -EINVAL;
    }
    *value = sum;
    *in = copy;
    return 0;
}

int blitz_term_get_double(blitz_term_in *in, double *value)
{
    blitz_term_in copy = *in;
    blitz_term_item item;
    int rc = blitz_term_next(&copy, &item);
    if (rc != 0)
        return rc;
    if (item.kind == BLITZ_TERM_IS_BIG)
        return -ERANGE;
    if (item.kind == BLITZ_TERM_IS_INT) {
        /* 2^53 and fewer are exact; a larger one may be, and is refused all the same if its low bits are lost. */
        double near = (double)item.as.integer;
        if (near >= 0x1p63 || (int64_t)near != item.as.integer)
            return -ERANGE;
        *value = near;
    } else if (item.kind == BLITZ_TERM_IS_FLOAT) {
        *value = item.as.number;
    } else {
        return -EINVAL;
    }
    *in = copy;
    return 0;
}

/* ---- atoms ---- */

int blitz_term_get_atom(blitz_term_in *in, blitz_term_atom *atom)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_ATOM, &item);
    if (rc == 0)
        *atom = item.as.atom;
    return rc;
}

int blitz_term_get_this_atom(blitz_term_in *in, const char *text)
{
    blitz_term_in copy = *in;
    blitz_term_atom atom;
    int rc = blitz_term_get_atom(&copy, &atom);
    if (rc != 0)
        return rc;
    if (!blitz_term_atom_is(atom, text))
        return -EINVAL;
    *in = copy;
    return 0;
}

int blitz_term_get_bool(blitz_term_in *in, bool *value)
{
    int rc = blitz_term_get_this_atom(in, "true");
    bool is_true = rc == 0;
    if (rc == -EINVAL)
        rc = blitz_term_get_this_atom(in, "false");
    if (rc == 0)
        *value = is_true;
    return rc;
}

/* ---- heads ---- */

int blitz_term_get_tuple(blitz_term_in *in, uint32_t *arity)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_TUPLE, &item);
    if (rc == 0)
        *arity = item.as.count;
    return rc;
}

int blitz_term_get_this_tuple(blitz_term_in *in, uint32_t arity)
{
    blitz_term_in copy = *in;
    uint32_t n;
    int rc = blitz_term_get_tuple(&copy, &n);
    if (rc != 0)
        return rc;
    if (n != arity)
        return -EINVAL;
    *in = copy;
    return 0;
}

int blitz_term_get_nil(blitz_term_in *in)
{
    blitz_term_item item;
    return next_of(in, BLITZ_TERM_IS_NIL, &item);
}

int blitz_term_get_list(blitz_term_in *in, uint32_t *count)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_LIST, &item);
    if (rc == 0)
        *count = item.as.count;
    if (rc == -EINVAL) {
        rc = blitz_term_get_nil(in);
        if (rc == 0)
            *count = 0;
    }
    return rc;
}

int blitz_term_get_map(blitz_term_in *in, uint32_t *count)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_MAP, &item);
    if (rc == 0)
        *count = item.as.count;
    return rc;
}

int blitz_term_map_find(blitz_term map, const char *key, blitz_term *value)
{
    blitz_term_in in = blitz_term_in_of(map);
    uint32_t count;
    int rc = blitz_term_get_map(&in, &count);
    for (; rc == 0 && count > 0; count--) {
        rc = blitz_term_get_this_atom(&in, key);
        if (rc == 0)
            return blitz_term_take(&in, value);
        if (rc == -EINVAL)
            rc = blitz_term_skip(&in);
        if (rc == 0)
            rc = blitz_term_skip(&in);
    }
    return rc == 0 ? -ENOENT : rc;
}

/* ---- bytes and identities ---- */

int blitz_term_get_binary(blitz_term_in *in, blitz_term *bytes)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_BINARY, &item);
    if (rc == 0)
        *bytes = item.as.binary;
    return rc;
}

int blitz_term_get_bits(blitz_term_in *in, blitz_term_bits *bits)
{
    blitz_term_item item = {.kind = BLITZ_TERM_IS_BITS};
    int rc = next_of(in, BLITZ_TERM_IS_BITS, &item);
    if (rc == 0) {
        *bits = item.as.bits;
    } else if (rc == -EINVAL && item.kind == BLITZ_TERM_IS_BINARY) {
        rc = next_of(in, BLITZ_TERM_IS_BINARY, &item);
        *bits = (blitz_term_bits){item.as.binary.data, (uint64_t)item.as.binary.bytes * 8};
    }
    return rc;
}

int blitz_term_get_pid(blitz_term_in *in, blitz_term_pid *pid)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_PID, &item);
    if (rc == 0)
        *pid = item.as.pid;
    return rc;
}

int blitz_term_get_ref(blitz_term_in *in, blitz_term_ref *ref)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_REF, &item);
    if (rc == 0)
        *ref = item.as.ref;
    return rc;
}

int blitz_term_get_port(blitz_term_in *in, blitz_term_port *port)
{
    blitz_term_item item;
    int rc = next_of(in, BLITZ_TERM_IS_PORT, &item);
    if (rc == 0)
        *port = item.as.port;
    return rc;
}
