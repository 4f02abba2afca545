/*
 * terms.h - random Erlang terms, and copies of terms item by item.
 */
#ifndef T_TERMS_H
#define T_TERMS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "blitz/term.h"
#include "harness.h"

/* The parts that a generated term may have. */
enum {
    T_TERM_FUNS = 1,  /* closures: they belong to a module that no node has */
    T_TERM_BIGS = 2,  /* integers above 64 bits */
    T_TERM_WIDE = 4,  /* integers from 2^27 to 2^31, which libei writes in another form */
    T_TERM_NODES = 8, /* pids, ports, references */
    T_TERM_MAPS = 16,
    T_TERM_ALL = 31
};

static const char *const t_atoms[] = {"ok",       "error",    "undefined",
                                      "a b",      "Upper",    "it's",
                                      "after",    "\xc3\xbc", "\xe6\x97\xa5\xe6\x9c\xac",
                                      "x@y",      "",         "true",
                                      "new\nline"};

static inline const char *t_any_atom(struct t_rng *r)
{
    return t_atoms[t_rng_below(r, sizeof t_atoms / sizeof *t_atoms)];
}

static inline int64_t t_any_int(struct t_rng *r, unsigned with)
{
    int64_t value = (int64_t)(t_rng_next(r) >> t_rng_below(r, 64));
    value = t_rng_below(r, 2) == 0 ? value : -(value / 2);
    bool is_wide = value >= -(INT64_C(1) << 32) && value < INT64_C(1) << 32 &&
                   (value < -(INT64_C(1) << 27) || value >= (INT64_C(1) << 27) - 1);
    return is_wide && (with & T_TERM_WIDE) == 0 ? 7 : value;
}

static inline void t_put_any_big(struct t_rng *r, blitz_term_out *out)
{
    unsigned char digits[300] = {0};
    uint32_t bytes = 9 + (uint32_t)t_rng_below(r, t_rng_below(r, 8) == 0 ? 280 : 8);
    for (uint32_t i = 0; i < bytes; i++)
        digits[i] = (unsigned char)t_rng_next(r);
    digits[bytes - 1] |= 1;
    blitz_term_put_big(out, (blitz_term_big){digits, bytes, t_rng_below(r, 2) == 0});
}

static inline void t_put_any_bytes(struct t_rng *r, blitz_term_out *out)
{
    unsigned char bytes[40];
    size_t n = t_rng_below(r, sizeof bytes);
    bool is_text = t_rng_below(r, 2) == 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(is_text ? ' ' + t_rng_below(r, 95) : t_rng_next(r));
    switch (t_rng_below(r, 3)) {
    case 0:
        blitz_term_put_string(out, bytes, n);
        break;
    case 1:
        blitz_term_put_binary(out, bytes, n);
        break;
    default:
        blitz_term_put_bits(out, (blitz_term_bits){bytes, n * 8 + t_rng_below(r, 8)});
    }
}

static inline void t_put_any_identity(struct t_rng *r, blitz_term_out *out)
{
    blitz_term_atom node = blitz_term_atom_of(t_rng_below(r, 2) == 0 ? "a@b" : "other@host");
    uint32_t id = (uint32_t)t_rng_below(r, 1 << 15),
             creation = 4 + (uint32_t)t_rng_below(r, 1 << 30);
    blitz_term_ref ref = {
        node, creation, 3, {id, (uint32_t)t_rng_next(r), (uint32_t)t_rng_next(r)}};
    uint64_t port = t_rng_below(r, 2) == 0 ? id : (uint64_t)id << 30 | 1u << 28;
    switch (t_rng_below(r, 3)) {
    case 0:
        blitz_term_put_pid(
            out, &(blitz_term_pid){node, id, (uint32_t)t_rng_below(r, 1 << 13), creation});
        break;
    case 1:
        blitz_term_put_port(out, &(blitz_term_port){node, port, creation});
        break;
    default:
        blitz_term_put_ref(out, &ref);
    }
}

/* A fun that has captured an integer or nothing: m:index 3, of arity 2. */
static inline void t_put_any_fun(struct t_rng *r, blitz_term_out *out)
{
    unsigned char fun[100] = {112, 0, 0, 0, 0, 2};
    bool captures = t_rng_below(r, 2) == 0;
    size_t at = 6 + 16;
    const unsigned char head[] = {0,  0, 0, 3, 0, 0,  0,   captures, 119, 1,   'm', 97, 3,
                                  98, 0, 1, 2, 3, 88, 119, 3,        'a', '@', 'b', 0,  0,
                                  0,  5, 0, 0, 0, 0,  0,   0,        0,   9,   97,  42};
    memcpy(fun + at, head, sizeof head);
    at += sizeof head - (captures ? 0 : 2);
    fun[4] = (unsigned char)(at - 1);
    blitz_term_put_term(out, (blitz_term){fun, at});
}

static inline void t_put_any_leaf(struct t_rng *r, blitz_term_out *out, unsigned with)
{
    blitz_term_export fun = {blitz_term_atom_of("lists"), blitz_term_atom_of("map"), 2};
    switch (t_rng_below(r, 10)) {
    case 0:
    case 1:
        blitz_term_put_atom(out, t_any_atom(r));
        return;
    case 2:
        blitz_term_put_double(out, (double)t_any_int(r, with) / 1024.0);
        return;
    case 3:
    case 4:
        t_put_any_bytes(r, out);
        return;
    case 5:
        if ((with & T_TERM_NODES) != 0) {
            t_put_any_identity(r, out);
            return;
        }
        break;
    case 6:
        if ((with & T_TERM_BIGS) != 0) {
            t_put_any_big(r, out);
            return;
        }
        blitz_term_put_uint(out, UINT64_MAX - t_rng_below(r, 100));
        return;
    case 7:
        if ((with & T_TERM_FUNS) != 0)
            t_put_any_fun(r, out);
        else
            blitz_term_put_export(out, &fun);
        return;
    default:
        break;
    }
    blitz_term_put_int(out, t_any_int(r, with));
}

/* Put a random term, without a version byte. Keys of maps differ. */
static inline void t_put_any_term(struct t_rng *r, blitz_term_out *out, unsigned depth,
                                  unsigned with)
{
    uint32_t n = (uint32_t)t_rng_below(r, 5);
    uint64_t kind = depth == 0 ? 9 : t_rng_below(r, 8);
    if (kind == 0) {
        blitz_term_put_tuple(out, n);
        for (uint32_t i = 0; i < n; i++)
            t_put_any_term(r, out, depth - 1, with);
    } else if (kind == 1) {
        blitz_term_put_list(out, n);
        for (uint32_t i = 0; i < n; i++) /* no list of bytes alone: Erlang would write a string */
            i == 0 ? blitz_term_put_atom(out, t_any_atom(r))
                   : t_put_any_term(r, out, depth - 1, with);
        if (n > 0 && t_rng_below(r, 4) == 0)
            blitz_term_put_atom(out, "tail");
        else if (n > 0)
            blitz_term_put_nil(out);
    } else if (kind == 2 && (with & T_TERM_MAPS) != 0) {
        blitz_term_put_map(out, n);
        for (uint32_t i = 0; i < n; i++) {
            blitz_term_put_tuple(out, 2);
            blitz_term_put_int(out, i);
            t_put_any_term(r, out, depth - 1, with);
            t_put_any_term(r, out, depth - 1, with);
        }
    } else {
        t_put_any_leaf(r, out, with);
    }
}

/* Put an item that was read. Returns the number of terms that belong to it and follow. */
static inline uint64_t t_put_item(blitz_term_out *out, const blitz_term_item *item)
{
    switch (item->kind) {
    case BLITZ_TERM_IS_INT:
        blitz_term_put_int(out, item->as.integer);
        return 0;
    case BLITZ_TERM_IS_BIG:
        blitz_term_put_big(out, item->as.big);
        return 0;
    case BLITZ_TERM_IS_FLOAT:
        blitz_term_put_double(out, item->as.number);
        return 0;
    case BLITZ_TERM_IS_ATOM:
        blitz_term_put_atom_view(out, item->as.atom);
        return 0;
    case BLITZ_TERM_IS_TUPLE:
        blitz_term_put_tuple(out, item->as.count);
        return item->as.count;
    case BLITZ_TERM_IS_NIL:
        blitz_term_put_nil(out);
        return 0;
    case BLITZ_TERM_IS_LIST:
        blitz_term_put_list(out, item->as.count);
        return (uint64_t)item->as.count + 1;
    case BLITZ_TERM_IS_STRING:
        blitz_term_put_string(out, item->as.binary.data, item->as.binary.bytes);
        return 0;
    case BLITZ_TERM_IS_MAP:
        blitz_term_put_map(out, item->as.count);
        return 2 * (uint64_t)item->as.count;
    case BLITZ_TERM_IS_BINARY:
        blitz_term_put_binary(out, item->as.binary.data, item->as.binary.bytes);
        return 0;
    case BLITZ_TERM_IS_BITS:
        blitz_term_put_bits(out, item->as.bits);
        return 0;
    case BLITZ_TERM_IS_PID:
        blitz_term_put_pid(out, &item->as.pid);
        return 0;
    case BLITZ_TERM_IS_REF:
        blitz_term_put_ref(out, &item->as.ref);
        return 0;
    case BLITZ_TERM_IS_PORT:
        blitz_term_put_port(out, &item->as.port);
        return 0;
    case BLITZ_TERM_IS_EXPORT:
        blitz_term_put_export(out, &item->as.fun);
        return 0;
    case BLITZ_TERM_IS_FUN:
        blitz_term_put_term(out, item->whole);
        return 0;
    }
    return 0;
}

/* Read a term item by item, and put each. Returns 0 or the error of the reader. */
static inline int t_copy_term(blitz_term term, blitz_term_out *out)
{
    blitz_term_in in = blitz_term_in_of(term);
    blitz_term_item item;
    uint64_t owed = 1;
    while (owed > 0) {
        int rc = blitz_term_next(&in, &item);
        if (rc != 0)
            return rc;
        owed += t_put_item(out, &item) - 1;
    }
    return 0;
}

/* The bytes in memory of exactly their size, so that AddressSanitizer sees each access beyond. Free them. */
static inline unsigned char *t_exactly(const void *data, size_t bytes)
{
    unsigned char *copy = (unsigned char *)malloc(bytes + (bytes == 0));
    CHECK_NOT_NULL(copy);
    memcpy(copy, data, bytes);
    return copy;
}

/* Make a term of bytes: T_TERM(97, 42). */
#define T_TERM(...)                                     \
    ((blitz_term){(const unsigned char[]){__VA_ARGS__}, \
                  sizeof((const unsigned char[]){__VA_ARGS__})})

#endif
