/*
 * blitz/term_struct.h - payload structs as Erlang terms.
 *
 * A table says which term a struct is. So one behaviour serves senders in this process, which send the struct, and senders elsewhere,
 * which send the term.
 *
 *     enum { ADD, GET };
 *     struct add { int32_t n; char note[16]; };
 *
 *     BLITZ_TERM_STRUCT(add_term, struct add, "add",          // {add, 42, <<"note">>}
 *                       BLITZ_TERM_INT(struct add, n), BLITZ_TERM_TEXT(struct add, note));
 *     BLITZ_TERM_EMPTY(get_term, "get");                      // get
 *     BLITZ_TERM_BARE(sum_term, int64_t, BLITZ_TERM_WHOLE_INT(int64_t));   // 42
 *
 *     static const blitz_term_message counter_messages[] = {{ADD, &add_term, NULL}, {GET, &get_term, &sum_term}};
 *
 * | part of a table      | field                                 | term                                                       |
 * |----------------------|---------------------------------------|------------------------------------------------------------|
 * | BLITZ_TERM_INT       | signed integer of 1, 2, 4, 8 bytes    | integer. Out of range: -ERANGE                             |
 * | BLITZ_TERM_UINT      | unsigned integer of the same sizes    | integer                                                    |
 * | BLITZ_TERM_BOOL      | bool                                  | true, false                                                |
 * | BLITZ_TERM_DOUBLE    | double                                | float; an integer is read, too                             |
 * | BLITZ_TERM_ATOM      | char array, C string                  | atom                                                       |
 * | BLITZ_TERM_TEXT      | char array, C string                  | binary; a list of characters is read, too                  |
 * | BLITZ_TERM_STRING    | char array, C string                  | list of characters; a binary is read, too                  |
 * | BLITZ_TERM_BYTES     | array, and an unsigned field with the | binary                                                     |
 * |                      | number of bytes in use                |                                                            |
 * | BLITZ_TERM_FIXED     | array of bytes, always all of it      | binary of that size                                        |
 * | BLITZ_TERM_ID        | blitz_actor_id                        | pid; the atom undefined for a zeroed id. See blitz_term_env |
 * | BLITZ_TERM_NESTED    | struct with a table                   | its term                                                   |
 * | BLITZ_TERM_CARGO     | none                                  | binary: the one that the message carries                   |
 *
 * With a tag, the term is a tuple that begins with that atom. Without parts, the term is the tag alone. A bare table has one part, and
 * the term is that of the part.
 */
#ifndef BLITZ_TERM_STRUCT_H
#define BLITZ_TERM_STRUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/actor.h"
#include "blitz/api.h"
#include "blitz/term.h"

BLITZ_BEGIN_DECLS

typedef enum blitz_term_part_kind {
    BLITZ_TERM_PART_INT_,
    BLITZ_TERM_PART_UINT_,
    BLITZ_TERM_PART_BOOL_,
    BLITZ_TERM_PART_DOUBLE_,
    BLITZ_TERM_PART_ATOM_,
    BLITZ_TERM_PART_TEXT_,
    BLITZ_TERM_PART_STRING_,
    BLITZ_TERM_PART_BYTES_,
    BLITZ_TERM_PART_FIXED_,
    BLITZ_TERM_PART_ID_,
    BLITZ_TERM_PART_NESTED_,
    BLITZ_TERM_PART_CARGO_
} blitz_term_part_kind;

/* A part of a table, made by one of the macros below. */
typedef struct blitz_term_part {
    blitz_term_part_kind kind;
    uint32_t offset, size;            /* of the field */
    uint32_t size_offset, size_size;  /* of BYTES: the field with the number of bytes */
    const struct blitz_term_type *of; /* of NESTED */
} blitz_term_part;

/* A table, made by one of the macros below. The fields are not yours, but for reading `size` and `tag`. */
typedef struct blitz_term_type {
    const char *tag; /* NULL: none */
    uint32_t size;   /* of the struct; 0: no struct */
    uint32_t flags;  /* BLITZ_TERM_TYPE_..._ */
    uint32_t count;
    const blitz_term_part *parts;
} blitz_term_type;

enum { BLITZ_TERM_TYPE_BARE_ = 1 };

/* A message of a behaviour. */
typedef struct blitz_term_message {
    uint32_t what;
    const blitz_term_type
        *payload; /* two messages of a table must differ in tag or in number of parts */
    const blitz_term_type *reply; /* of a call; NULL: the reply is the atom ok */
} blitz_term_message;

/*
 * The meaning of ids, and the binary that a message carries. The functions return 0 or -errno, which fails the encoding or decoding. A
 * node gives its own; NULL: -EOPNOTSUPP.
 */
typedef struct blitz_term_env {
    int (*pid_of)(void *ctx, blitz_actor_id id, blitz_term_pid *pid);
    int (*id_of)(void *ctx, const blitz_term_pid *pid, blitz_actor_id *id);
    void *ctx;
    blitz_term
        cargo; /* its bytes: read when a struct is put, written when one is got; data NULL: none */
} blitz_term_env;

/*
 * Put a struct as a term.
 * Owns:     copies the struct; a large cargo may be borrowed (blitz_term_out_pieces()). env may be NULL.
 * Suspends: never. Call from anywhere, unless the functions of env say otherwise.
 * Returns:  0; -EINVAL (a char array without an end, a count of bytes beyond its array, tables nested more than 8 deep); an error of env.
 *           The writer has this error as well. Errors of the writer are those of blitz_term_out_end().
 */
BLITZ_API int blitz_term_put_struct(blitz_term_out *out, const blitz_term_type *type,
                                    const void *value, blitz_term_env *env);

/*
 * Read a term into a struct. Bytes of the struct that are no field become 0.
 * Owns:     writes type->size bytes of *value. env may be NULL. env->cargo becomes a view.
 * Suspends: never. Call from anywhere, unless the functions of env say otherwise.
 * Returns:  0, -EPROTO, -EINVAL (another term), -ERANGE (a field is too small for it), -E2BIG, an error of env. On an error nothing is
 *           read, and *value is undefined.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_get_struct(blitz_term_in *in, const blitz_term_type *type,
                                                   void *value, blitz_term_env *env);

/*
 * Put a message of a behaviour: the term for `what` and its payload.
 * Owns:     copies the payload, as blitz_term_put_struct().
 * Suspends: never. Call from anywhere, unless the functions of env say otherwise.
 * Returns:  0, -ENOENT (the table has no such message), -EINVAL (also: size is not that of the payload), an error of env.
 */
BLITZ_API int blitz_term_put_message(blitz_term_out *out, const blitz_term_message *table,
                                     size_t count, uint32_t what, const void *payload, size_t size,
                                     blitz_term_env *env);

/*
 * Read a term as a message of a behaviour. The first row whose tag and number of parts are those of the term is the message.
 * Owns:     writes up to `cap` bytes of payload. *row is of the table. env may be NULL.
 * Suspends: never. Call from anywhere, unless the functions of env say otherwise.
 * Returns:  0, -ENOENT (no message of the table), -ERANGE (also: the payload is larger than cap), and the errors of
 *           blitz_term_get_struct(). On an error nothing is read.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_get_message(blitz_term_in *in,
                                                    const blitz_term_message *table, size_t count,
                                                    const blitz_term_message **row, void *payload,
                                                    size_t cap, blitz_term_env *env);

/* ---- the macros ---- */

/* 0, or an error of the compiler. */
#define BLITZ_TERM_CHECK_(cond) ((uint32_t)(sizeof(char[(cond) ? 1 : -1]) - 1))
#define BLITZ_TERM_WIDTH_(n) ((n) == 1 || (n) == 2 || (n) == 4 || (n) == 8)
#if defined(__cplusplus)
#define BLITZ_TERM_FIELD_TYPE_(s, f) decltype(((s *)0)->f)
#define BLITZ_TERM_SIGNED_(t) ((t)-1 < (t)1)
#define BLITZ_TERM_UNSIGNED_(t) (!((t)-1 < (t)1) && (t)2 != (t)1)
#elif defined(__GNUC__)
#define BLITZ_TERM_FIELD_TYPE_(s, f) __typeof__(((s *)0)->f)
#define BLITZ_TERM_SIGNED_(t) ((t)-1 < (t)1)
#define BLITZ_TERM_UNSIGNED_(t) (!((t)-1 < (t)1) && (t)2 != (t)1)
#else /* such a compiler does not check the sign */
#define BLITZ_TERM_FIELD_TYPE_(s, f) int
#define BLITZ_TERM_SIGNED_(t) 1
#define BLITZ_TERM_UNSIGNED_(t) 1
#endif
#define BLITZ_TERM_SIZE_(s, f) (uint32_t)sizeof(((s *)0)->f)
#define BLITZ_TERM_PART_(s, f, kind, cond)                                                      \
    {                                                                                           \
        kind, (uint32_t)offsetof(s, f), BLITZ_TERM_SIZE_(s, f) + BLITZ_TERM_CHECK_(cond), 0, 0, \
            NULL                                                                                \
    }
#define BLITZ_TERM_WHOLE_(t, kind, cond)                                   \
    {                                                                      \
        kind, 0, (uint32_t)sizeof(t) + BLITZ_TERM_CHECK_(cond), 0, 0, NULL \
    }
#define BLITZ_TERM_CHARS_(s, f) (sizeof(((s *)0)->f[0]) == 1)

/* The parts: fields of a struct. */
#define BLITZ_TERM_INT(s, f)                                      \
    BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_INT_,                  \
                     BLITZ_TERM_WIDTH_(BLITZ_TERM_SIZE_(s, f)) && \
                         BLITZ_TERM_SIGNED_(BLITZ_TERM_FIELD_TYPE_(s, f)))
#define BLITZ_TERM_UINT(s, f)                                     \
    BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_UINT_,                 \
                     BLITZ_TERM_WIDTH_(BLITZ_TERM_SIZE_(s, f)) && \
                         BLITZ_TERM_UNSIGNED_(BLITZ_TERM_FIELD_TYPE_(s, f)))
#define BLITZ_TERM_BOOL(s, f) \
    BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_BOOL_, BLITZ_TERM_SIZE_(s, f) == sizeof(bool))
#define BLITZ_TERM_DOUBLE(s, f) \
    BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_DOUBLE_, BLITZ_TERM_SIZE_(s, f) == sizeof(double))
#define BLITZ_TERM_ATOM(s, f) BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_ATOM_, BLITZ_TERM_CHARS_(s, f))
#define BLITZ_TERM_TEXT(s, f) BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_TEXT_, BLITZ_TERM_CHARS_(s, f))
#define BLITZ_TERM_STRING(s, f) \
    BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_STRING_, BLITZ_TERM_CHARS_(s, f))
#define BLITZ_TERM_FIXED(s, f) \
    BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_FIXED_, BLITZ_TERM_CHARS_(s, f))
#define BLITZ_TERM_BYTES(s, f, used)                                                      \
    {                                                                                     \
        BLITZ_TERM_PART_BYTES_, (uint32_t)offsetof(s, f),                                 \
            BLITZ_TERM_SIZE_(s, f) + BLITZ_TERM_CHECK_(BLITZ_TERM_CHARS_(s, f)),          \
            (uint32_t)offsetof(s, used),                                                  \
            BLITZ_TERM_SIZE_(s, used) +                                                   \
                BLITZ_TERM_CHECK_(BLITZ_TERM_WIDTH_(BLITZ_TERM_SIZE_(s, used)) &&         \
                                  BLITZ_TERM_UNSIGNED_(BLITZ_TERM_FIELD_TYPE_(s, used))), \
            NULL                                                                          \
    }
#define BLITZ_TERM_ID(s, f) \
    BLITZ_TERM_PART_(s, f, BLITZ_TERM_PART_ID_, BLITZ_TERM_SIZE_(s, f) == sizeof(blitz_actor_id))
#define BLITZ_TERM_NESTED(s, f, type)                                                            \
    {                                                                                            \
        BLITZ_TERM_PART_NESTED_, (uint32_t)offsetof(s, f), BLITZ_TERM_SIZE_(s, f), 0, 0, &(type) \
    }
#define BLITZ_TERM_CARGO()                       \
    {                                            \
        BLITZ_TERM_PART_CARGO_, 0, 0, 0, 0, NULL \
    }

/* The part of a payload that is no struct: the whole value. */
#define BLITZ_TERM_WHOLE_INT(t)                \
    BLITZ_TERM_WHOLE_(t, BLITZ_TERM_PART_INT_, \
                      BLITZ_TERM_WIDTH_(sizeof(t)) && BLITZ_TERM_SIGNED_(t))
#define BLITZ_TERM_WHOLE_UINT(t)                \
    BLITZ_TERM_WHOLE_(t, BLITZ_TERM_PART_UINT_, \
                      BLITZ_TERM_WIDTH_(sizeof(t)) && BLITZ_TERM_UNSIGNED_(t))
#define BLITZ_TERM_WHOLE_BOOL() BLITZ_TERM_WHOLE_(bool, BLITZ_TERM_PART_BOOL_, 1)
#define BLITZ_TERM_WHOLE_DOUBLE() BLITZ_TERM_WHOLE_(double, BLITZ_TERM_PART_DOUBLE_, 1)
#define BLITZ_TERM_WHOLE_ID() BLITZ_TERM_WHOLE_(blitz_actor_id, BLITZ_TERM_PART_ID_, 1)

#define BLITZ_TERM_TABLE_(name, tag, size, flags, ...)            \
    static const blitz_term_part name##_parts_[] = {__VA_ARGS__}; \
    BLITZ_MAYBE_UNUSED static const blitz_term_type name = {      \
        tag, size, flags, (uint32_t)(sizeof name##_parts_ / sizeof *name##_parts_), name##_parts_}

/* A tuple {tag, part, ...}; a tuple {part, ...}; the term of the one part; the atom tag. At file scope. */
#define BLITZ_TERM_STRUCT(name, s, tag, ...) \
    BLITZ_TERM_TABLE_(name, tag, (uint32_t)sizeof(s), 0, __VA_ARGS__)
#define BLITZ_TERM_TUPLE(name, s, ...) \
    BLITZ_TERM_TABLE_(name, NULL, (uint32_t)sizeof(s), 0, __VA_ARGS__)
#define BLITZ_TERM_BARE(name, t, part) \
    BLITZ_TERM_TABLE_(name, NULL, (uint32_t)sizeof(t), BLITZ_TERM_TYPE_BARE_, part)
#define BLITZ_TERM_EMPTY(name, tag) \
    BLITZ_MAYBE_UNUSED static const blitz_term_type name = {tag, 0, 0, 0, NULL}
/* {tag, <<...>>}: no payload, and the binary that the message carries. */
#define BLITZ_TERM_CARGO_ONLY(name, tag) BLITZ_TERM_TABLE_(name, tag, 0, 0, BLITZ_TERM_CARGO())

BLITZ_END_DECLS

#endif
