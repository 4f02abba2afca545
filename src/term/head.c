/*
 * head.c - read one term, or the head of a term with parts.
 *
 * All bytes of a peer pass here. The rule: no byte is read before `left()` or `take()` has said that it is there, and no length is used
 * before it was compared with what is left. A struct `rest` is what is left; take() shortens it.
 */
#include "term/head.h"

#include <math.h>
#include <string.h>

#include "term/utf8.h"
#include "term/wire.h"

struct rest {
    const unsigned char *at, *end;
};

static uint64_t left(const struct rest *r)
{
    return (uint64_t)(r->end - r->at);
}

/* Take n bytes. NULL: there are fewer. */
static const unsigned char *take(struct rest *r, uint64_t n)
{
    const unsigned char *p = r->at;
    if (n > left(r))
        return NULL;
    r->at += n;
    return p;
}

static bool take8(struct rest *r, uint32_t *value)
{
    const unsigned char *p = take(r, 1);
    *value = p == NULL ? 0 : p[0];
    return p != NULL;
}

static bool take16(struct rest *r, uint32_t *value)
{
    const unsigned char *p = take(r, 2);
    *value = p == NULL ? 0 : bz_wire16(p);
    return p != NULL;
}

static bool take32(struct rest *r, uint32_t *value)
{
    const unsigned char *p = take(r, 4);
    *value = p == NULL ? 0 : bz_wire32(p);
    return p != NULL;
}

/* ---- atoms, and what names a node ---- */

/* Old tags are Latin-1, where every byte is a character. */
static bool take_atom_text(struct rest *r, uint32_t tag, blitz_term_atom *atom)
{
    uint32_t bytes;
    bool is_short = tag == BZ_TAG_SMALL_ATOM || tag == BZ_TAG_SMALL_ATOM_UTF8;
    bool is_latin1 = tag == BZ_TAG_SMALL_ATOM || tag == BZ_TAG_ATOM;
    if (!is_short && !is_latin1 && tag != BZ_TAG_ATOM_UTF8)
        return false;
    if (!(is_short ? take8(r, &bytes) : take16(r, &bytes)))
        return false;
    const char *text = (const char *)take(r, bytes);
    if (text == NULL)
        return false;
    *atom = (blitz_term_atom){text, (uint16_t)bytes, is_latin1};
    return is_latin1 ? bytes <= BLITZ_TERM_ATOM_CHARS_MAX
                     : bz_utf8_is(text, bytes, BLITZ_TERM_ATOM_CHARS_MAX);
}

static bool take_atom(struct rest *r, blitz_term_atom *atom)
{
    uint32_t tag;
    return take8(r, &tag) && take_atom_text(r, tag, atom);
}

/* Old tags have a creation of 8 bits. */
static bool take_creation(struct rest *r, bool is_old, uint32_t *creation)
{
    return is_old ? take8(r, creation) : take32(r, creation);
}

static bool take_pid(struct rest *r, uint32_t tag, blitz_term_pid *pid)
{
    return (tag == BZ_TAG_NEW_PID || tag == BZ_TAG_PID) && take_atom(r, &pid->node) &&
           take32(r, &pid->id) && take32(r, &pid->serial) &&
           take_creation(r, tag == BZ_TAG_PID, &pid->creation);
}

static bool take_port(struct rest *r, uint32_t tag, blitz_term_port *port)
{
    uint32_t high = 0, low;
    if (!take_atom(r, &port->node) || (tag == BZ_TAG_V4_PORT && !take32(r, &high)) ||
        !take32(r, &low))
        return false;
    port->id = (uint64_t)high << 32 | low;
    return take_creation(r, tag == BZ_TAG_PORT, &port->creation);
}

static bool take_ref(struct rest *r, uint32_t tag, blitz_term_ref *ref)
{
    memset(ref, 0, sizeof *ref);
    ref->words = 1;
    if (tag == BZ_TAG_REFERENCE)
        return take_atom(r, &ref->node) && take32(r, &ref->id[0]) &&
               take_creation(r, true, &ref->creation);
    if (!take16(r, &ref->words) || ref->words == 0 ||
        ref->words > sizeof ref->id / sizeof ref->id[0])
        return false;
    if (!take_atom(r, &ref->node) || !take_creation(r, tag == BZ_TAG_NEW_REFERENCE, &ref->creation))
        return false;
    for (uint32_t i = 0; i < ref->words; i++)
        if (!take32(r, &ref->id[i]))
            return false;
    return true;
}

/* ---- funs ---- */

static bool take_export(struct rest *r, blitz_term_export *fun)
{
    uint32_t tag, arity;
    if (!take_atom(r, &fun->module) || !take_atom(r, &fun->function) || !take8(r, &tag) ||
        tag != BZ_TAG_SMALL_INTEGER || !take8(r, &arity))
        return false;
    fun->arity = (uint8_t)arity;
    return true;
}

static bool take_small(struct rest *r)
{
    uint32_t tag, value;
    if (!take8(r, &tag))
        return false;
    return tag == BZ_TAG_SMALL_INTEGER ? take8(r, &value)
                                       : tag == BZ_TAG_INTEGER && take32(r, &value);
}

/* A fun is not understood here, but it is checked: an Erlang node to which it is passed on would close its connection with us. */
static bool take_fun(struct rest *r, struct bz_term_head *head)
{
    const unsigned char *start = r->at;
    uint32_t size, arity, index, captured, tag;
    blitz_term_pid pid;
    if (!take32(r, &size) || size > (uint64_t)(r->end - start))
        return false;
    struct rest inside = {r->at, start + size};
    if (size < 4 || !take8(&inside, &arity) || take(&inside, 16) == NULL ||
        !take32(&inside, &index) || !take32(&inside, &captured))
        return false;
    if (!take_atom(&inside, &head->item.as.fun.module) || !take_small(&inside) ||
        !take_small(&inside) || !take8(&inside, &tag) || !take_pid(&inside, tag, &pid))
        return false;
    head->item.as.fun.function = (blitz_term_atom){"", 0, false};
    head->item.as.fun.arity = (uint8_t)arity;
    head->parts = captured;
    head->end = inside.end;
    r->at = inside.at;
    return captured <= left(&inside) && (captured > 0 || left(&inside) == 0);
}

/* ---- numbers ---- */

/* An integer of digits that fits int64_t is an INT: peers may send small ones so. */
static bool take_big(struct rest *r, uint32_t tag, blitz_term_item *item)
{
    uint32_t bytes, sign;
    if (!(tag == BZ_TAG_SMALL_BIG ? take8(r, &bytes) : take32(r, &bytes)) || !take8(r, &sign))
        return false;
    const unsigned char *digits = take(r, bytes);
    if (digits == NULL)
        return false;
    while (bytes > 0 && digits[bytes - 1] == 0)
        bytes--;
    item->kind = BLITZ_TERM_IS_BIG;
    item->as.big = (blitz_term_big){digits, bytes, sign != 0};
    if (bytes > 8)
        return true;
    uint64_t magnitude = 0;
    for (uint32_t i = bytes; i-- > 0;)
        magnitude = magnitude << 8 | digits[i];
    if (magnitude > (uint64_t)INT64_MAX + (sign != 0))
        return true;
    item->kind = BLITZ_TERM_IS_INT;
    item->as.integer = (int64_t)(sign != 0 ? 0 - magnitude : magnitude);
    return true;
}

static bool take_double(struct rest *r, double *value)
{
    const unsigned char *p = take(r, 8);
    if (p == NULL)
        return false;
    uint64_t bits = bz_wire64(p);
    memcpy(value, &bits, sizeof bits);
    return isfinite(*value);
}

/* ---- bytes ---- */

static bool take_bytes(struct rest *r, bool is_string, blitz_term *bytes)
{
    uint32_t n;
    if (!(is_string ? take16(r, &n) : take32(r, &n)))
        return false;
    bytes->data = take(r, n);
    bytes->bytes = n;
    return bytes->data != NULL;
}

static bool take_bits(struct rest *r, blitz_term_item *item)
{
    uint32_t bytes, rest;
    if (!take32(r, &bytes) || !take8(r, &rest) || rest > 8 || (rest == 0) != (bytes == 0))
        return false;
    const unsigned char *data = take(r, bytes);
    if (data == NULL)
        return false;
    if (rest == 8 || bytes == 0) {
        item->kind = BLITZ_TERM_IS_BINARY;
        item->as.binary = (blitz_term){data, bytes};
    } else {
        item->as.bits = (blitz_term_bits){data, (uint64_t)(bytes - 1) * 8 + rest};
    }
    return true;
}

/* A list of no elements is [], for which there is a tag. Nothing sends it as LIST. */
static bool take_parts(struct rest *r, uint32_t tag, struct bz_term_head *head)
{
    uint32_t *count = &head->item.as.count;
    if (!(tag == BZ_TAG_SMALL_TUPLE ? take8(r, count) : take32(r, count)))
        return false;
    head->parts = tag == BZ_TAG_LIST  ? (uint64_t)*count + 1
                  : tag == BZ_TAG_MAP ? 2 * (uint64_t)*count
                                      : *count;
    return head->parts <= left(r) && (tag != BZ_TAG_LIST || *count > 0);
}

/* The kind of each tag, plus 1; 0: no tag of ours. */
static const unsigned char kind_of[256] = {
    [BZ_TAG_NEW_FLOAT] = BLITZ_TERM_IS_FLOAT + 1,
    [BZ_TAG_BIT_BINARY] = BLITZ_TERM_IS_BITS + 1,
    [BZ_TAG_NEW_PID] = BLITZ_TERM_IS_PID + 1,
    [BZ_TAG_NEW_PORT] = BLITZ_TERM_IS_PORT + 1,
    [BZ_TAG_NEWER_REFERENCE] = BLITZ_TERM_IS_REF + 1,
    [BZ_TAG_SMALL_INTEGER] = BLITZ_TERM_IS_INT + 1,
    [BZ_TAG_INTEGER] = BLITZ_TERM_IS_INT + 1,
    [BZ_TAG_ATOM] = BLITZ_TERM_IS_ATOM + 1,
    [BZ_TAG_REFERENCE] = BLITZ_TERM_IS_REF + 1,
    [BZ_TAG_PORT] = BLITZ_TERM_IS_PORT + 1,
    [BZ_TAG_PID] = BLITZ_TERM_IS_PID + 1,
    [BZ_TAG_SMALL_TUPLE] = BLITZ_TERM_IS_TUPLE + 1,
    [BZ_TAG_LARGE_TUPLE] = BLITZ_TERM_IS_TUPLE + 1,
    [BZ_TAG_NIL] = BLITZ_TERM_IS_NIL + 1,
    [BZ_TAG_STRING] = BLITZ_TERM_IS_STRING + 1,
    [BZ_TAG_LIST] = BLITZ_TERM_IS_LIST + 1,
    [BZ_TAG_BINARY] = BLITZ_TERM_IS_BINARY + 1,
    [BZ_TAG_SMALL_BIG] = BLITZ_TERM_IS_BIG + 1,
    [BZ_TAG_LARGE_BIG] = BLITZ_TERM_IS_BIG + 1,
    [BZ_TAG_NEW_FUN] = BLITZ_TERM_IS_FUN + 1,
    [BZ_TAG_EXPORT] = BLITZ_TERM_IS_EXPORT + 1,
    [BZ_TAG_NEW_REFERENCE] = BLITZ_TERM_IS_REF + 1,
    [BZ_TAG_SMALL_ATOM] = BLITZ_TERM_IS_ATOM + 1,
    [BZ_TAG_MAP] = BLITZ_TERM_IS_MAP + 1,
    [BZ_TAG_ATOM_UTF8] = BLITZ_TERM_IS_ATOM + 1,
    [BZ_TAG_SMALL_ATOM_UTF8] = BLITZ_TERM_IS_ATOM + 1,
    [BZ_TAG_V4_PORT] = BLITZ_TERM_IS_PORT + 1,
};

static bool take_int(struct rest *r, uint32_t tag, int64_t *value)
{
    uint32_t word;
    if (!(tag == BZ_TAG_SMALL_INTEGER ? take8(r, &word) : take32(r, &word)))
        return false;
    *value = tag == BZ_TAG_SMALL_INTEGER ? (int64_t)word : (int32_t)word;
    return true;
}

static bool take_value(struct rest *r, uint32_t tag, struct bz_term_head *head)
{
    blitz_term_item *item = &head->item;
    switch (item->kind) {
    case BLITZ_TERM_IS_INT:
        return take_int(r, tag, &item->as.integer);
    case BLITZ_TERM_IS_BIG:
        return take_big(r, tag, item);
    case BLITZ_TERM_IS_FLOAT:
        return take_double(r, &item->as.number);
    case BLITZ_TERM_IS_ATOM:
        return take_atom_text(r, tag, &item->as.atom);
    case BLITZ_TERM_IS_NIL:
        return true;
    case BLITZ_TERM_IS_TUPLE:
    case BLITZ_TERM_IS_LIST:
    case BLITZ_TERM_IS_MAP:
        return take_parts(r, tag, head);
    case BLITZ_TERM_IS_STRING:
    case BLITZ_TERM_IS_BINARY:
        return take_bytes(r, tag == BZ_TAG_STRING, &item->as.binary);
    case BLITZ_TERM_IS_BITS:
        return take_bits(r, item);
    case BLITZ_TERM_IS_PID:
        return take_pid(r, tag, &item->as.pid);
    case BLITZ_TERM_IS_REF:
        return take_ref(r, tag, &item->as.ref);
    case BLITZ_TERM_IS_PORT:
        return take_port(r, tag, &item->as.port);
    case BLITZ_TERM_IS_EXPORT:
        return take_export(r, &item->as.fun);
    case BLITZ_TERM_IS_FUN:
        return take_fun(r, head);
    }
    return false;
}

int bz_term_head(const unsigned char *at, const unsigned char *end, struct bz_term_head *head)
{
    struct rest r = {at, end};
    uint32_t tag;
    if (!take8(&r, &tag) || kind_of[tag] == 0)
        return -EPROTO;
    head->item.kind = (blitz_term_kind)(kind_of[tag] - 1);
    head->parts = 0;
    head->end = NULL;
    if (!take_value(&r, tag, head))
        return -EPROTO;
    head->after = r.at;
    head->item.whole = (blitz_term){at, (size_t)(r.at - at)};
    return 0;
}
