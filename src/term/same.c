/*
 * same.c - are two terms equal?
 *
 * The walk goes through both terms at once, with levels in an array of fixed size, as in span.c. Three kinds of levels:
 *
 *   PARTS   tuples: so many pairs of parts are left
 *   LIST    each side counts its own elements, since the sides may be cut into LIST and STRING differently
 *   MAP     for each key of `a` the walk tries the keys of `b`, beginning behind the last one found. Maps of one writer have the same
 *           order, and then the first try is right
 *
 * A pair that differs ends the walk, unless it is a key of a map or inside one: then the next key of `b` is tried. Keys of a map differ,
 * so a found key decides: its values must be equal. A map with many keys in another order costs the product of the sizes, and maps as
 * keys of maps more. `steps` bounds that: what the first look at each byte does not explain must be less than STEPS_MAX.
 *
 * Offsets have 32 bits, to keep the levels small: a longer term is refused.
 */
#include <string.h>

#include "term/head.h"

enum { STEPS_MAX = 1 << 24 };
enum { PARTS, LIST, MAP };

struct level {
    unsigned char kind;
    bool is_value;                 /* MAP: the value of a found key is compared */
    bool a_is_string, b_is_string; /* LIST */
    uint32_t a_left, b_left;       /* PARTS: a_left; LIST: elements; MAP: a_left, keys */
    uint32_t a_key, b_key;         /* MAP: where the two keys begin */
    uint32_t b_first, b_index;     /* MAP: the first key, and the number of the tried one */
    uint32_t count, tries;         /* MAP: keys; those of `b` that were tried for this key of `a` */
};

struct walk {
    blitz_term_in a, b;
    const unsigned char *a_start, *b_start;
    struct level levels[BLITZ_TERM_DEPTH_MAX + 1];
    struct level *l;
    uint64_t steps, steps_max;
    bool has_searched; /* a key was not at the first place */
};

/* Of a part: it differs, is equal, or is a level that was entered. Of a level: ENDED, all its parts are equal. */
enum { DIFFER, EQUAL, ENTERED, ENDED };

/* ---- leaves ---- */

static bool same_bytes(blitz_term a, blitz_term b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static bool same_bits(blitz_term_bits a, blitz_term_bits b)
{
    size_t whole = (size_t)(a.bits / 8);
    unsigned rest = a.bits % 8;
    return a.bits == b.bits && (whole == 0 || memcmp(a.data, b.data, whole) == 0) &&
           (rest == 0 || ((a.data[whole] ^ b.data[whole]) & (0xff00u >> rest) & 0xff) == 0);
}

static bool same_ref(const blitz_term_ref *a, const blitz_term_ref *b)
{
    return blitz_term_atom_equal(a->node, b->node) && a->creation == b->creation &&
           a->words == b->words && memcmp(a->id, b->id, sizeof a->id) == 0;
}

static bool same_leaf(const blitz_term_item *a, const blitz_term_item *b)
{
    switch (a->kind) {
    case BLITZ_TERM_IS_INT:
        return a->as.integer == b->as.integer;
    case BLITZ_TERM_IS_BIG:
        return a->as.big.is_negative == b->as.big.is_negative &&
               same_bytes((blitz_term){a->as.big.digits, a->as.big.bytes},
                          (blitz_term){b->as.big.digits, b->as.big.bytes});
    case BLITZ_TERM_IS_FLOAT:
        return a->as.number == b->as.number;
    case BLITZ_TERM_IS_ATOM:
        return blitz_term_atom_equal(a->as.atom, b->as.atom);
    case BLITZ_TERM_IS_BINARY:
        return same_bytes(a->as.binary, b->as.binary);
    case BLITZ_TERM_IS_BITS:
        return same_bits(a->as.bits, b->as.bits);
    case BLITZ_TERM_IS_PID:
        return blitz_term_atom_equal(a->as.pid.node, b->as.pid.node) &&
               a->as.pid.id == b->as.pid.id && a->as.pid.serial == b->as.pid.serial &&
               a->as.pid.creation == b->as.pid.creation;
    case BLITZ_TERM_IS_REF:
        return same_ref(&a->as.ref, &b->as.ref);
    case BLITZ_TERM_IS_PORT:
        return blitz_term_atom_equal(a->as.port.node, b->as.port.node) &&
               a->as.port.id == b->as.port.id && a->as.port.creation == b->as.port.creation;
    case BLITZ_TERM_IS_EXPORT:
        return blitz_term_atom_equal(a->as.fun.module, b->as.fun.module) &&
               blitz_term_atom_equal(a->as.fun.function, b->as.fun.function) &&
               a->as.fun.arity == b->as.fun.arity;
    case BLITZ_TERM_IS_FUN:
        return same_bytes(a->whole, b->whole);
    default:
        return false; /* heads */
    }
}

/* ---- levels ---- */

static bool is_list(blitz_term_kind kind)
{
    return kind == BLITZ_TERM_IS_LIST || kind == BLITZ_TERM_IS_NIL || kind == BLITZ_TERM_IS_STRING;
}

/* The elements of a STRING; of NIL, none. */
static blitz_term bytes_of(const blitz_term_item *item)
{
    return item->kind == BLITZ_TERM_IS_STRING ? item->as.binary : (blitz_term){NULL, 0};
}

static int enter(struct walk *w, struct level level)
{
    if (w->l == w->levels + BLITZ_TERM_DEPTH_MAX)
        return -E2BIG;
    *++w->l = level;
    return ENTERED;
}

/* Compare the next terms of both sides, or enter them. */
static int compare(struct walk *w)
{
    blitz_term_in a = w->a, b = w->b;
    blitz_term_item x, y;
    int rc = blitz_term_next(&a, &x);
    if (rc == 0)
        rc = blitz_term_next(&b, &y);
    if (rc != 0)
        return rc;
    if (x.kind == BLITZ_TERM_IS_LIST ? is_list(y.kind)
                                     : y.kind == BLITZ_TERM_IS_LIST && is_list(x.kind))
        return enter(
            w, (struct level){.kind = LIST}); /* the level reads both heads, as it reads tails */
    w->a = a;
    w->b = b;
    w->steps += 1 + x.whole.bytes / 64;
    if (w->steps > w->steps_max)
        return -E2BIG;
    if (is_list(x.kind) && is_list(y.kind)) /* of bytes, or empty */
        return same_bytes(bytes_of(&x), bytes_of(&y)) ? EQUAL : DIFFER;
    if (x.kind != y.kind)
        return DIFFER;
    if (x.kind != BLITZ_TERM_IS_TUPLE && x.kind != BLITZ_TERM_IS_MAP)
        return same_leaf(&x, &y) ? EQUAL : DIFFER;
    if (x.as.count != y.as.count)
        return DIFFER;
    if (x.as.count == 0) /* no level: a term without parts may be as deep as any */
        return EQUAL;
    if (x.kind == BLITZ_TERM_IS_TUPLE)
        return enter(w, (struct level){.kind = PARTS, .a_left = x.as.count});
    uint32_t a_key = (uint32_t)(a.at - w->a_start), b_key = (uint32_t)(b.at - w->b_start);
    return enter(w, (struct level){.kind = MAP,
                                   .a_left = x.as.count,
                                   .count = x.as.count,
                                   .a_key = a_key,
                                   .b_key = b_key,
                                   .b_first = b_key});
}

/* Step over a term of `b`. */
static int step_over(struct walk *w)
{
    const unsigned char *after;
    int rc = bz_term_walk(w->b.at, w->b.end, BLITZ_TERM_DEPTH_MAX, SIZE_MAX, &after, &w->steps);
    if (rc == 0)
        w->b.at = after;
    return rc == 0 && w->steps > w->steps_max ? -E2BIG : rc;
}

/* Step over a key of `b` and its value. */
static int step_over_pair(struct walk *w)
{
    int rc = step_over(w);
    return rc == 0 ? step_over(w) : rc;
}

/* ---- lists ---- */

/* Read a tail. 1: more elements; 0: the end; 2: the tail of an improper list. */
static int read_tail(blitz_term_in *in, uint32_t *left, bool *is_string)
{
    blitz_term_in copy = *in;
    blitz_term_item item;
    if (*is_string) /* a string has no tail: its end is the end of the list */
        return 0;
    int rc = blitz_term_next(&copy, &item);
    if (rc != 0)
        return rc;
    if (!is_list(item.kind))
        return 2;
    *in = copy;
    *is_string = item.kind == BLITZ_TERM_IS_STRING;
    *left = item.kind == BLITZ_TERM_IS_LIST ? item.as.count : 0;
    if (*is_string) {
        *left = (uint32_t)item.as.binary.bytes;
        in->at = item.as.binary.data;
    }
    return *left > 0;
}

/* Compare a byte of a string with an element of a list. */
static int compare_byte(blitz_term_in *string, blitz_term_in *list)
{
    blitz_term_in copy = *list;
    blitz_term_item item;
    int rc = blitz_term_next(&copy, &item);
    if (rc != 0)
        return rc;
    if (item.kind != BLITZ_TERM_IS_INT || item.as.integer != *string->at)
        return DIFFER;
    string->at++;
    *list = copy;
    return EQUAL;
}

static bool same_byte(struct walk *w)
{
    unsigned char a = *w->a.at++, b = *w->b.at++;
    return a == b;
}

/* Go on in a list. */
static int next_elements(struct walk *w)
{
    struct level *l = w->l;
    for (;;) {
        int a = l->a_left > 0 ? 1 : read_tail(&w->a, &l->a_left, &l->a_is_string);
        int b = l->b_left > 0 ? 1 : a < 0 ? a : read_tail(&w->b, &l->b_left, &l->b_is_string);
        if (a < 0 || b < 0)
            return a < 0 ? a : b;
        if (a != b)
            return DIFFER;
        if (a == 0)
            return ENDED;
        if (a == 2) { /* the tails are the last parts */
            *l = (struct level){.kind = PARTS, .a_left = 0};
            return compare(w);
        }
        l->a_left--;
        l->b_left--;
        int rc = EQUAL;
        if (l->a_is_string && l->b_is_string)
            rc = same_byte(w) ? EQUAL : DIFFER;
        else if (l->a_is_string)
            rc = compare_byte(&w->a, &w->b);
        else if (l->b_is_string)
            rc = compare_byte(&w->b, &w->a);
        else
            rc = compare(w);
        if (rc != EQUAL)
            return rc;
    }
}

/* ---- maps ---- */

/* Let b stand at the first key again if it is behind the last one. */
static void wrap(struct walk *w)
{
    struct level *l = w->l;
    if (l->b_index == l->count) {
        l->b_index = 0;
        w->b.at = w->b_start + l->b_first;
    }
}

/* Both values are equal: go on to the next key, or leave the map with b behind its last value. */
static int next_key(struct walk *w)
{
    struct level *l = w->l;
    l->is_value = false;
    l->a_left--;
    l->b_index++;
    l->tries = 0;
    if (l->a_left == 0) {
        int rc = 0;
        for (; rc == 0 && l->b_index < l->count; l->b_index++)
            rc = step_over_pair(w);
        return rc == 0 ? ENDED : rc;
    }
    wrap(w);
    l->a_key = (uint32_t)(w->a.at - w->a_start);
    l->b_key = (uint32_t)(w->b.at - w->b_start);
    return compare(w);
}

/* The tried key is another: try the next one. */
static int try_next_key(struct walk *w)
{
    struct level *l = w->l;
    l->tries++;
    w->has_searched = true;
    w->a.at = w->a_start + l->a_key;
    w->b.at = w->b_start + l->b_key;
    int rc = step_over_pair(w);
    if (rc != 0)
        return rc;
    l->b_index++;
    wrap(w);
    l->b_key = (uint32_t)(w->b.at - w->b_start);
    return compare(w);
}

/* ---- the walk ---- */

/* Go on in the current level after a part of it was equal, or at its start. */
static int go_on(struct walk *w, bool is_start)
{
    struct level *l = w->l;
    switch (l->kind) {
    case PARTS:
        if (l->a_left == 0)
            return ENDED;
        l->a_left--;
        return compare(w);
    case LIST:
        return next_elements(w);
    default:
        if (is_start)
            return compare(w);
        if (l->is_value)
            return next_key(w);
        l->is_value = true;
        return compare(w);
    }
}

/* A pair differs. Leave levels until one can try another key. */
static int retry(struct walk *w)
{
    while (w->l > w->levels) {
        struct level *l = w->l;
        if (l->kind != MAP || l->is_value || l->tries + 1 >= l->count) {
            w->l--;
            continue;
        }
        int rc = try_next_key(w);
        if (rc != DIFFER)
            return rc;
    }
    return DIFFER;
}

static int equal(blitz_term a, blitz_term b, bool *has_searched)
{
    struct walk w = {.a = blitz_term_in_of(a),
                     .b = blitz_term_in_of(b),
                     .a_start = a.data,
                     .b_start = b.data,
                     .steps_max = 2 * (uint64_t)a.bytes + STEPS_MAX};
    if ((uint64_t)a.bytes > UINT32_MAX || (uint64_t)b.bytes > UINT32_MAX)
        return -E2BIG;
    w.l = w.levels;
    int rc = compare(&w);
    while (rc >= 0) {
        if (rc == DIFFER) {
            rc = retry(&w);
            if (rc == DIFFER)
                return 0;
        } else if (rc == ENDED) {
            w.l--;
            rc = EQUAL;
        } else if (rc == EQUAL && w.l == w.levels) {
            *has_searched = w.has_searched;
            return 1;
        } else {
            rc = go_on(&w, rc == ENTERED);
        }
    }
    return rc;
}

/* A hostile map may have a key twice, and then each key of `a` may be in `b` while a key of `b` is not in `a`. */
int blitz_term_equal(blitz_term a, blitz_term b)
{
    bool has_searched = false;
    int rc = equal(a, b, &has_searched);
    return rc == 1 && has_searched ? equal(b, a, &has_searched) : rc;
}
