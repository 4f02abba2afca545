/*
 * out.c - the writer: terms into a buffer, or into pieces.
 *
 * The external format is a prefix notation: the head of a tuple or a list says how many terms follow. So one count is enough to
 * know when a term is complete: `owed`, the terms that are still to come. A term takes one away and adds its parts.
 *
 * I1  data[0, min(bytes, cap)) is written. Past cap the writer only counts, so that blitz_term_out_end() knows the needed size.
 * I2  An error but -ENOSPC ends the writing: the state of the term is unknown then.
 * I3  pieces[0, piece_count) cover total bytes without data[piece_from, bytes), in order.
 *
 * Rejected: growing a buffer (the caller knows its memory), and puts that return an error (every caller would have to check each).
 */
#include "term/out.h"

#include <math.h>
#include <string.h>

#include "term/utf8.h"
#include "term/wire.h"

enum { FRESH, VERSIONED, BEGUN, DONE }; /* out->state */

void blitz_term_out_init(blitz_term_out *out, void *buf, size_t cap)
{
    *out = (blitz_term_out){
        .data = (unsigned char *)buf, .cap = buf == NULL ? 0 : cap, .state = FRESH};
}

void blitz_term_out_pieces(blitz_term_out *out, void *buf, size_t cap, blitz_piece *pieces,
                           uint32_t piece_max, size_t borrow_min)
{
    blitz_term_out_init(out, buf, cap);
    out->pieces = pieces;
    out->piece_max = piece_max;
    out->borrow_min = borrow_min;
}

void bz_term_out_fail(blitz_term_out *out, int error)
{
    if (out->error == 0 || out->error == -ENOSPC)
        out->error = error;
}

/* Take room for n bytes. NULL: there is none; they are counted. */
static unsigned char *room(blitz_term_out *out, size_t n)
{
    if (out->error != 0 && out->error != -ENOSPC)
        return NULL;
    if (n > SIZE_MAX - out->total) {
        bz_term_out_fail(out, -E2BIG);
        return NULL;
    }
    size_t at = out->bytes;
    out->bytes += n;
    out->total += n;
    if (out->error == 0 && n <= out->cap - at)
        return out->data + at;
    out->error = -ENOSPC;
    return NULL;
}

static void copy(blitz_term_out *out, const void *data, size_t n)
{
    unsigned char *to = n == 0 ? NULL : room(out, n);
    if (to != NULL)
        memcpy(to, data, n);
}

static void byte(blitz_term_out *out, unsigned value)
{
    copy(out, &(unsigned char){(unsigned char)value}, 1);
}

static void word(blitz_term_out *out, uint32_t value)
{
    unsigned char text[4];
    bz_wire32_to(text, value);
    copy(out, text, sizeof text);
}

/* Close the piece that the buffer has filled so far. */
static void close_piece(blitz_term_out *out)
{
    if (out->bytes == out->piece_from)
        return;
    if (out->error == 0)
        out->pieces[out->piece_count] =
            (blitz_piece){out->data + out->piece_from, out->bytes - out->piece_from};
    out->piece_count++;
    out->piece_from = out->bytes;
}

/* Copy the bytes, or let a piece refer to them. A piece must stay free for what follows in the buffer. */
static void copy_or_borrow(blitz_term_out *out, const void *data, size_t n)
{
    bool fits =
        out->pieces != NULL && out->piece_max >= 3 && out->piece_count <= out->piece_max - 3;
    if (!fits || n < out->borrow_min || n == 0) {
        copy(out, data, n);
        return;
    }
    if (n > SIZE_MAX - out->total)
        bz_term_out_fail(out, -E2BIG);
    if (out->error != 0 && out->error != -ENOSPC)
        return;
    close_piece(out);
    out->pieces[out->piece_count++] = (blitz_piece){(void *)(uintptr_t)data, n};
    out->total += n;
}

/* Begin a term that has so many parts. */
static void begin(blitz_term_out *out, uint64_t parts)
{
    if (out->state == DONE)
        bz_term_out_fail(out, -EINVAL);
    if (out->state != BEGUN)
        out->owed = 1;
    out->owed += parts - 1;
    out->state = out->owed == 0 ? DONE : BEGUN;
}

int blitz_term_out_end(blitz_term_out *out, size_t *bytes)
{
    if (out->state != DONE)
        bz_term_out_fail(out, -EINVAL);
    if ((uint64_t)out->total > UINT32_MAX)
        bz_term_out_fail(out, -E2BIG);
    if (out->pieces != NULL && (out->error == 0 || out->error == -ENOSPC)) {
        if (out->piece_count < out->piece_max)
            close_piece(out);
        else if (out->bytes != out->piece_from)
            bz_term_out_fail(out, -ENOSPC);
    }
    if (bytes != NULL)
        *bytes = out->bytes;
    return out->error;
}

void blitz_term_put_version(blitz_term_out *out)
{
    if (out->state == VERSIONED || out->state == BEGUN)
        bz_term_out_fail(out, -EINVAL);
    byte(out, BLITZ_TERM_VERSION);
    out->state = VERSIONED;
}

void blitz_term_put_bytes(blitz_term_out *out, const void *data, size_t bytes)
{
    if (out->state == VERSIONED || out->state == BEGUN)
        bz_term_out_fail(out, -EINVAL);
    copy(out, data, bytes);
}

/* ---- numbers ---- */

void blitz_term_put_int(blitz_term_out *out, int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX) {
        unsigned char digits[8];
        uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        for (unsigned i = 0; i < 8; i++)
            digits[i] = (unsigned char)(magnitude >> 8 * i);
        blitz_term_put_big(out, (blitz_term_big){digits, 8, value < 0});
        return;
    }
    begin(out, 0);
    if (value >= 0 && value <= UINT8_MAX) {
        byte(out, BZ_TAG_SMALL_INTEGER);
        byte(out, (unsigned)value);
    } else {
        byte(out, BZ_TAG_INTEGER);
        word(out, (uint32_t)value);
    }
}

void blitz_term_put_uint(blitz_term_out *out, uint64_t value)
{
    if (value <= INT32_MAX) {
        blitz_term_put_int(out, (int64_t)value);
        return;
    }
    unsigned char digits[8];
    for (unsigned i = 0; i < 8; i++)
        digits[i] = (unsigned char)(value >> 8 * i);
    blitz_term_put_big(out, (blitz_term_big){digits, 8, false});
}

/* Erlang writes an integer in the first of these forms that holds it: 1 byte, 4 bytes, digits. So do we. */
void blitz_term_put_big(blitz_term_out *out, blitz_term_big value)
{
    while (value.bytes > 0 && value.digits[value.bytes - 1] == 0)
        value.bytes--;
    if (value.bytes <= 4) {
        int64_t small = 0;
        for (unsigned i = value.bytes; i-- > 0;)
            small = small << 8 | value.digits[i];
        small = value.is_negative ? -small : small;
        if (small >= INT32_MIN && small <= INT32_MAX) {
            blitz_term_put_int(out, small);
            return;
        }
    }
    begin(out, 0);
    if (value.bytes <= UINT8_MAX) {
        byte(out, BZ_TAG_SMALL_BIG);
        byte(out, value.bytes);
    } else {
        byte(out, BZ_TAG_LARGE_BIG);
        word(out, value.bytes);
    }
    byte(out, value.is_negative);
    copy(out, value.digits, value.bytes);
}

void blitz_term_put_double(blitz_term_out *out, double value)
{
    uint64_t bits;
    unsigned char text[8];
    memcpy(&bits, &value, sizeof bits);
    if (!isfinite(value))
        bz_term_out_fail(out, -EINVAL);
    begin(out, 0);
    byte(out, BZ_TAG_NEW_FLOAT);
    bz_wire64_to(text, bits);
    copy(out, text, sizeof text);
}

/* ---- atoms ---- */

static void put_atom_text(blitz_term_out *out, const char *text, size_t bytes)
{
    if (bytes > UINT16_MAX || !bz_utf8_is(text, bytes, BLITZ_TERM_ATOM_CHARS_MAX)) {
        bz_term_out_fail(out, -EINVAL);
    } else if (bytes <= UINT8_MAX) {
        byte(out, BZ_TAG_SMALL_ATOM_UTF8);
        byte(out, (unsigned)bytes);
    } else {
        byte(out, BZ_TAG_ATOM_UTF8);
        byte(out, (unsigned)(bytes >> 8));
        byte(out, (unsigned)bytes);
    }
    copy(out, text, bytes);
}

/* The name of a node and the like, inside another term. */
static void put_atom_inside(blitz_term_out *out, blitz_term_atom atom)
{
    char utf8[4 * BLITZ_TERM_ATOM_CHARS_MAX + 1];
    if (!atom.is_latin1) {
        put_atom_text(out, atom.text, atom.bytes);
        return;
    }
    int bytes = blitz_term_atom_copy(atom, utf8, sizeof utf8);
    if (bytes < 0)
        bz_term_out_fail(out, -EINVAL);
    else
        put_atom_text(out, utf8, (size_t)bytes);
}

void blitz_term_put_atom_n(blitz_term_out *out, const char *text, size_t bytes)
{
    begin(out, 0);
    put_atom_text(out, text, bytes);
}

void blitz_term_put_atom(blitz_term_out *out, const char *text)
{
    blitz_term_put_atom_n(out, text, strlen(text));
}

void blitz_term_put_atom_view(blitz_term_out *out, blitz_term_atom atom)
{
    begin(out, 0);
    put_atom_inside(out, atom);
}

void blitz_term_put_bool(blitz_term_out *out, bool value)
{
    blitz_term_put_atom(out, value ? "true" : "false");
}

/* ---- containers ---- */

void blitz_term_put_tuple(blitz_term_out *out, uint32_t arity)
{
    begin(out, arity);
    if (arity <= UINT8_MAX) {
        byte(out, BZ_TAG_SMALL_TUPLE);
        byte(out, arity);
    } else {
        byte(out, BZ_TAG_LARGE_TUPLE);
        word(out, arity);
    }
}

void blitz_term_put_list(blitz_term_out *out, uint32_t count)
{
    if (count == 0) {
        blitz_term_put_nil(out);
        return;
    }
    begin(out, (uint64_t)count + 1);
    byte(out, BZ_TAG_LIST);
    word(out, count);
}

void blitz_term_put_nil(blitz_term_out *out)
{
    begin(out, 0);
    byte(out, BZ_TAG_NIL);
}

void blitz_term_put_map(blitz_term_out *out, uint32_t count)
{
    begin(out, 2 * (uint64_t)count);
    byte(out, BZ_TAG_MAP);
    word(out, count);
}

/* ---- bytes ---- */

/* A string has a length of 16 bits. Erlang writes a longer list of bytes as a list of integers. */
void blitz_term_put_string(blitz_term_out *out, const void *data, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)data;
    if ((uint64_t)bytes > UINT32_MAX) {
        bz_term_out_fail(out, -E2BIG);
    } else if (bytes == 0) {
        blitz_term_put_nil(out);
    } else if (bytes <= UINT16_MAX) {
        begin(out, 0);
        byte(out, BZ_TAG_STRING);
        byte(out, (unsigned)(bytes >> 8));
        byte(out, (unsigned)bytes);
        copy(out, data, bytes);
    } else {
        blitz_term_put_list(out, (uint32_t)bytes);
        for (size_t i = 0; i < bytes; i++)
            blitz_term_put_int(out, at[i]);
        blitz_term_put_nil(out);
    }
}

void blitz_term_put_binary(blitz_term_out *out, const void *data, size_t bytes)
{
    if ((uint64_t)bytes > UINT32_MAX) {
        bz_term_out_fail(out, -E2BIG);
        return;
    }
    begin(out, 0);
    byte(out, BZ_TAG_BINARY);
    word(out, (uint32_t)bytes);
    copy_or_borrow(out, data, bytes);
}

void blitz_term_put_bits(blitz_term_out *out, blitz_term_bits bits)
{
    unsigned rest = bits.bits % 8;
    uint64_t bytes = bits.bits / 8;
    if (bytes >= UINT32_MAX) {
        bz_term_out_fail(out, -E2BIG);
        return;
    }
    if (rest == 0) {
        blitz_term_put_binary(out, bits.data, (size_t)bytes);
        return;
    }
    begin(out, 0);
    byte(out, BZ_TAG_BIT_BINARY);
    word(out, (uint32_t)bytes + 1);
    byte(out, rest);
    copy_or_borrow(out, bits.data, (size_t)bytes);
    byte(out, bits.data[bytes] & (0xff00u >> rest)); /* the unused bits are 0 */
}

/* ---- identities ---- */

void blitz_term_put_pid(blitz_term_out *out, const blitz_term_pid *pid)
{
    begin(out, 0);
    byte(out, BZ_TAG_NEW_PID);
    put_atom_inside(out, pid->node);
    word(out, pid->id);
    word(out, pid->serial);
    word(out, pid->creation);
}

void blitz_term_put_ref(blitz_term_out *out, const blitz_term_ref *ref)
{
    if (ref->words == 0 || ref->words > sizeof ref->id / sizeof ref->id[0]) {
        bz_term_out_fail(out, -EINVAL);
        return;
    }
    begin(out, 0);
    byte(out, BZ_TAG_NEWER_REFERENCE);
    byte(out, 0);
    byte(out, ref->words);
    put_atom_inside(out, ref->node);
    word(out, ref->creation);
    for (uint32_t i = 0; i < ref->words; i++)
        word(out, ref->id[i]);
}

/* Erlang uses the older form while the number has 28 bits, which every peer reads. */
void blitz_term_put_port(blitz_term_out *out, const blitz_term_port *port)
{
    bool is_small = port->id < 1u << 28;
    begin(out, 0);
    byte(out, is_small ? BZ_TAG_NEW_PORT : BZ_TAG_V4_PORT);
    put_atom_inside(out, port->node);
    if (!is_small)
        word(out, (uint32_t)(port->id >> 32));
    word(out, (uint32_t)port->id);
    word(out, port->creation);
}

void blitz_term_put_export(blitz_term_out *out, const blitz_term_export *fun)
{
    begin(out, 0);
    byte(out, BZ_TAG_EXPORT);
    put_atom_inside(out, fun->module);
    put_atom_inside(out, fun->function);
    byte(out, BZ_TAG_SMALL_INTEGER);
    byte(out, fun->arity);
}

void blitz_term_put_term(blitz_term_out *out, blitz_term term)
{
    if (term.bytes == 0)
        bz_term_out_fail(out, -EINVAL);
    begin(out, 0);
    copy_or_borrow(out, term.data, term.bytes);
}
