/*
 * struct.c - structs to terms and back, by a table.
 *
 * The program writes the tables; only the terms are a peer's. So nesting is bounded by the tables, and a call for a nested table is no
 * recursion that a peer controls. NESTED_MAX catches a table that contains itself.
 *
 * A struct is read by memcpy: the fields have all widths, and the caller's bytes may be part of a larger message.
 */
#include "blitz/term_struct.h"

#include <string.h>

#include "term/out.h"
#include "term/table.h"
#include "term/utf8.h"

enum { NESTED_MAX = 8 };

static bool is_bare(const blitz_term_type *type)
{
    return (type->flags & BLITZ_TERM_TYPE_BARE_) != 0;
}

/* ---- integers of any width ---- */

static int64_t load_signed(const unsigned char *from, uint32_t size)
{
    int8_t v8;
    int16_t v16;
    int32_t v32;
    int64_t v64;
    switch (size) {
    case 1:
        memcpy(&v8, from, sizeof v8);
        return v8;
    case 2:
        memcpy(&v16, from, sizeof v16);
        return v16;
    case 4:
        memcpy(&v32, from, sizeof v32);
        return v32;
    default:
        memcpy(&v64, from, sizeof v64);
        return v64;
    }
}

static uint64_t load_unsigned(const unsigned char *from, uint32_t size)
{
    uint64_t value = (uint64_t)load_signed(from, size);
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

static void store(unsigned char *to, uint32_t size, uint64_t value)
{
    uint8_t v8 = (uint8_t)value;
    uint16_t v16 = (uint16_t)value;
    uint32_t v32 = (uint32_t)value;
    switch (size) {
    case 1:
        memcpy(to, &v8, sizeof v8);
        break;
    case 2:
        memcpy(to, &v16, sizeof v16);
        break;
    case 4:
        memcpy(to, &v32, sizeof v32);
        break;
    default:
        memcpy(to, &value, sizeof value);
    }
}

static uint64_t unsigned_max(uint32_t size)
{
    return size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
}

/* ---- to a term ---- */

/* The length of a C string in an array, or -EINVAL: it has no end. */
static int64_t length_of(const unsigned char *from, uint32_t size)
{
    const void *end = memchr(from, 0, size);
    return end == NULL ? -EINVAL : (int64_t)((const unsigned char *)end - from);
}

/* A string of characters above 255 is a list of integers, as in Erlang. */
static int put_characters(blitz_term_out *out, const char *text, size_t bytes)
{
    uint32_t count = 0, largest = 0, c = 0;
    for (size_t at = 0; at < bytes; count++) {
        unsigned n = bz_utf8_get(text + at, bytes - at, &c);
        if (n == 0)
            return -EINVAL;
        largest = c > largest ? c : largest;
        at += n;
    }
    if (largest < 0x80) {
        blitz_term_put_string(out, text, bytes);
        return 0;
    }
    blitz_term_put_list(out, count);
    for (size_t at = 0; at < bytes;) {
        at += bz_utf8_get(text + at, bytes - at, &c);
        blitz_term_put_int(out, c);
    }
    blitz_term_put_nil(out);
    return 0;
}

static int put_c_string(blitz_term_out *out, const blitz_term_part *part, const unsigned char *from)
{
    int64_t bytes = length_of(from, part->size);
    if (bytes < 0)
        return (int)bytes;
    if (part->kind == BLITZ_TERM_PART_STRING_)
        return put_characters(out, (const char *)from, (size_t)bytes);
    if (part->kind == BLITZ_TERM_PART_ATOM_)
        blitz_term_put_atom_n(out, (const char *)from, (size_t)bytes);
    else
        blitz_term_put_binary(out, from, (size_t)bytes);
    return 0;
}

static int put_id(blitz_term_out *out, const unsigned char *from, blitz_term_env *env)
{
    blitz_actor_id id, none = {0, 0, 0, 0};
    blitz_term_pid pid;
    memcpy(&id, from, sizeof id);
    if (memcmp(&id, &none, sizeof id) == 0) {
        blitz_term_put_atom(out, "undefined");
        return 0;
    }
    if (env == NULL || env->pid_of == NULL)
        return -EOPNOTSUPP;
    int rc = env->pid_of(env->ctx, id, &pid);
    if (rc == 0)
        blitz_term_put_pid(out, &pid);
    return rc;
}

static int put_struct(blitz_term_out *out, const blitz_term_type *type, const unsigned char *value,
                      blitz_term_env *env, unsigned depth);

static int put_part(blitz_term_out *out, const blitz_term_part *part, const unsigned char *value,
                    blitz_term_env *env, unsigned depth)
{
    const unsigned char *from = value + part->offset;
    blitz_term cargo = env == NULL ? (blitz_term){NULL, 0} : env->cargo;
    uint64_t used;
    double number;
    switch (part->kind) {
    case BLITZ_TERM_PART_INT_:
        blitz_term_put_int(out, load_signed(from, part->size));
        return 0;
    case BLITZ_TERM_PART_UINT_:
        blitz_term_put_uint(out, load_unsigned(from, part->size));
        return 0;
    case BLITZ_TERM_PART_BOOL_:
        blitz_term_put_bool(out, *from != 0);
        return 0;
    case BLITZ_TERM_PART_DOUBLE_:
        memcpy(&number, from, sizeof number);
        blitz_term_put_double(out, number);
        return 0;
    case BLITZ_TERM_PART_ATOM_:
    case BLITZ_TERM_PART_TEXT_:
    case BLITZ_TERM_PART_STRING_:
        return put_c_string(out, part, from);
    case BLITZ_TERM_PART_BYTES_:
        used = load_unsigned(value + part->size_offset, part->size_size);
        if (used > part->size)
            return -EINVAL;
        blitz_term_put_binary(out, from, (size_t)used);
        return 0;
    case BLITZ_TERM_PART_FIXED_:
        blitz_term_put_binary(out, from, part->size);
        return 0;
    case BLITZ_TERM_PART_ID_:
        return put_id(out, from, env);
    case BLITZ_TERM_PART_NESTED_:
        return put_struct(out, part->of, from, env, depth + 1);
    case BLITZ_TERM_PART_CARGO_:
        blitz_term_put_binary(out, cargo.data, cargo.data == NULL ? 0 : cargo.bytes);
        return 0;
    }
    return -EINVAL;
}

static int put_struct(blitz_term_out *out, const blitz_term_type *type, const unsigned char *value,
                      blitz_term_env *env, unsigned depth)
{
    if (depth >= NESTED_MAX)
        return -EINVAL;
    if (type->count == 0) {
        blitz_term_put_atom(out, type->tag);
        return 0;
    }
    if (!is_bare(type))
        blitz_term_put_tuple(out, type->count + (type->tag != NULL));
    if (!is_bare(type) && type->tag != NULL)
        blitz_term_put_atom(out, type->tag);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < type->count; i++)
        rc = put_part(out, &type->parts[i], value, env, depth);
    return rc;
}

int blitz_term_put_struct(blitz_term_out *out, const blitz_term_type *type, const void *value,
                          blitz_term_env *env)
{
    int rc = put_struct(out, type, (const unsigned char *)value, env, 0);
    if (rc != 0)
        bz_term_out_fail(out, rc);
    return rc;
}

/* ---- from a term ---- */

static int get_int(blitz_term_in *in, const blitz_term_part *part, unsigned char *to)
{
    uint64_t max = unsigned_max(part->size), sum = 0;
    int64_t value = 0;
    int rc;
    if (part->kind == BLITZ_TERM_PART_UINT_) {
        rc = blitz_term_get_uint(in, &sum);
        if (rc == 0 && sum > max)
            rc = -ERANGE;
    } else {
        rc = blitz_term_get_int(in, &value);
        if (rc == 0 && (value > (int64_t)(max / 2) || value < -(int64_t)(max / 2) - 1))
            rc = -ERANGE;
        sum = (uint64_t)value;
    }
    if (rc == 0)
        store(to, part->size, sum);
    return rc;
}

/* A C string ends at its first zero: text with a zero inside is refused, and not cut. */
static int get_c_string(blitz_term_in *in, const blitz_term_part *part, unsigned char *to)
{
    size_t bytes = 0;
    int rc;
    if (part->kind == BLITZ_TERM_PART_ATOM_) {
        blitz_term_atom atom;
        rc = blitz_term_get_atom(in, &atom);
        if (rc == 0) {
            int n = blitz_term_atom_copy(atom, (char *)to, part->size);
            bytes = n < 0 ? 0 : (size_t)n;
            rc = n < 0 ? n : 0;
        }
    } else {
        rc = blitz_term_get_text(in, (char *)to, part->size, &bytes);
    }
    return rc == 0 && memchr(to, 0, bytes) != NULL ? -EINVAL : rc;
}

static int get_bytes(blitz_term_in *in, const blitz_term_part *part, unsigned char *value)
{
    blitz_term bytes;
    int rc = blitz_term_get_binary(in, &bytes);
    if (rc != 0)
        return rc;
    if (part->kind == BLITZ_TERM_PART_FIXED_) {
        if (bytes.bytes != part->size)
            return -EINVAL;
    } else {
        if (bytes.bytes > part->size || bytes.bytes > unsigned_max(part->size_size))
            return -ERANGE;
        store(value + part->size_offset, part->size_size, bytes.bytes);
    }
    if (bytes.bytes > 0)
        memcpy(value + part->offset, bytes.data, bytes.bytes);
    return 0;
}

static int get_id(blitz_term_in *in, unsigned char *to, blitz_term_env *env)
{
    blitz_actor_id id = {0, 0, 0, 0};
    blitz_term_pid pid;
    int rc = blitz_term_get_this_atom(in, "undefined");
    if (rc == -EINVAL) {
        rc = blitz_term_get_pid(in, &pid);
        if (rc == 0)
            rc = env == NULL || env->id_of == NULL ? -EOPNOTSUPP : env->id_of(env->ctx, &pid, &id);
    }
    if (rc == 0)
        memcpy(to, &id, sizeof id);
    return rc;
}

static int get_struct(blitz_term_in *in, const blitz_term_type *type, unsigned char *value,
                      blitz_term_env *env, unsigned depth);

static int get_part(blitz_term_in *in, const blitz_term_part *part, unsigned char *value,
                    blitz_term_env *env, unsigned depth)
{
    unsigned char *to = value + part->offset;
    blitz_term cargo;
    double number;
    bool flag;
    int rc;
    switch (part->kind) {
    case BLITZ_TERM_PART_INT_:
    case BLITZ_TERM_PART_UINT_:
        return get_int(in, part, to);
    case BLITZ_TERM_PART_BOOL_:
        rc = blitz_term_get_bool(in, &flag);
        if (rc == 0)
            memcpy(to, &flag, sizeof flag);
        return rc;
    case BLITZ_TERM_PART_DOUBLE_:
        rc = blitz_term_get_double(in, &number);
        if (rc == 0)
            memcpy(to, &number, sizeof number);
        return rc;
    case BLITZ_TERM_PART_ATOM_:
    case BLITZ_TERM_PART_TEXT_:
    case BLITZ_TERM_PART_STRING_:
        return get_c_string(in, part, to);
    case BLITZ_TERM_PART_BYTES_:
    case BLITZ_TERM_PART_FIXED_:
        return get_bytes(in, part, value);
    case BLITZ_TERM_PART_ID_:
        return get_id(in, to, env);
    case BLITZ_TERM_PART_NESTED_:
        return get_struct(in, part->of, to, env, depth + 1);
    case BLITZ_TERM_PART_CARGO_:
        rc = blitz_term_get_binary(in, &cargo);
        if (rc == 0 && env != NULL)
            env->cargo = cargo;
        return rc == 0 && env == NULL ? -EOPNOTSUPP : rc;
    }
    return -EINVAL;
}

static int get_struct(blitz_term_in *in, const blitz_term_type *type, unsigned char *value,
                      blitz_term_env *env, unsigned depth)
{
    int rc = 0;
    if (depth >= NESTED_MAX)
        return -EINVAL;
    if (type->count == 0)
        return blitz_term_get_this_atom(in, type->tag);
    if (!is_bare(type))
        rc = blitz_term_get_this_tuple(in, type->count + (type->tag != NULL));
    if (rc == 0 && !is_bare(type) && type->tag != NULL)
        rc = blitz_term_get_this_atom(in, type->tag);
    for (uint32_t i = 0; rc == 0 && i < type->count; i++)
        rc = get_part(in, &type->parts[i], value, env, depth);
    return rc;
}

int blitz_term_get_struct(blitz_term_in *in, const blitz_term_type *type, void *value,
                          blitz_term_env *env)
{
    blitz_term_in copy = *in;
    if (type->size > 0)
        memset(value, 0, type->size);
    int rc = get_struct(&copy, type, (unsigned char *)value, env, 0);
    if (rc == 0)
        *in = copy;
    return rc;
}

int bz_term_first_get(blitz_term_in in, struct bz_term_first *out)
{
    blitz_term_item item;
    int rc = blitz_term_next(&in, &item);
    if (rc != 0)
        return rc;
    *out = (struct bz_term_first){.is_tuple = item.kind == BLITZ_TERM_IS_TUPLE};
    if (out->is_tuple) {
        out->arity = item.as.count;
        if (out->arity == 0 || blitz_term_next(&in, &item) != 0)
            return 0;
    }
    out->has_atom = item.kind == BLITZ_TERM_IS_ATOM;
    if (out->has_atom)
        out->atom = item.as.atom;
    return 0;
}

bool bz_term_table_fits(const struct bz_term_first *first, const blitz_term_type *type)
{
    bool has_tag = type->tag != NULL;
    if (is_bare(type))
        return true;
    if (first->is_tuple != (type->count > 0) ||
        (first->is_tuple && first->arity != type->count + has_tag))
        return false;
    return !has_tag || (first->has_atom && blitz_term_atom_is(first->atom, type->tag));
}
