/*
 * blitz/heap_type.h - where the pointers of a struct are: the types of objects in a heap (blitz/heap.h).
 *
 * A collector that moves objects must know each pointer in them. A type says it once, at file scope:
 *
 *     struct node { struct node *left, *right; long key; };
 *     BLITZ_TYPE(node_type, struct node, left, right);
 *
 * The macro makes a word of bits at compile time. A struct of more than 64 words gets a table. It does not compile if a field is
 * no pointer, is not aligned as one, or is not in the struct. A field may be a path: `at.next`, `kids[2]`.
 *
 *     BLITZ_PLAIN_TYPE(point_type, struct point);                 no pointers
 *     BLITZ_VALUE_TYPE(pair_type, struct pair, head, tail);       never written after its birth: see blitz_heap_copy()
 *     BLITZ_TYPE_PARTS(table_type, struct table,                  arrays, inline structs, a flexible array
 *                      BLITZ_POINTER(struct table, name), BLITZ_ARRAY(struct table, kids),
 *                      BLITZ_INLINE(struct table, root, node_type), BLITZ_TAIL(struct table, slots));
 *     BLITZ_TYPE_VISIT(shape_type, struct shape, visit_shape);    a function shows the pointers: tagged unions
 *
 * A heap does not keep a pointer to such a variable. It registers a copy by the name of the variable, for the whole process. Two
 * libraries may have a type of the same name if the layouts are equal. Another layout is an error, which is logged. Types of
 * BLITZ_TYPE_VISIT() with one name and different functions are different types.
 */
#ifndef BLITZ_HEAP_TYPE_H
#define BLITZ_HEAP_TYPE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_visitor blitz_visitor;

/* Show each pointer of an object: blitz_visit(v, &o->field). It must not allocate, and must not follow a pointer. */
typedef void (*blitz_visit_fn)(void *object, blitz_visitor *v);

/* A part of a struct, made by one of the macros below. */
typedef struct blitz_type_part {
    uint32_t kind, offset;
    uint32_t count, stride;      /* how many elements, and their distance in bytes */
    const struct blitz_type *of; /* the type of an element; NULL: a pointer, or bytes */
} blitz_type_part;

/* A type, made by one of the macros below. The fields are not yours. */
typedef struct blitz_type {
    const char *name;
    uint32_t size;  /* of the struct */
    uint32_t flags; /* BLITZ_TYPE_..._ */
    uint64_t map;   /* bit i: word i is a pointer */
    uint32_t index; /* of the registered copy; 0: not yet */
    uint32_t n;     /* how many offsets or parts */
    const uint32_t *offsets;
    const blitz_type_part *parts;
    blitz_visit_fn visit;
} blitz_type;

enum { BLITZ_TYPE_VALUE_ = 1 };
enum { BLITZ_PART_POINTERS_, BLITZ_PART_INLINE_, BLITZ_PART_TAIL_ };

/*
 * Register a type now. The first allocation of an object does the same.
 * Owns:     copies the type.
 * Suspends: never. Call from any thread.
 * Returns:  0 (also if it was registered before), -EEXIST (the name has another layout, which is logged), -EINVAL (no type of
 *           these macros, or types that contain each other), -ENOMEM, -ENOSPC (16,383 types are registered).
 */
BLITZ_API int blitz_type_register(blitz_type *type);

/*
 * Show a pointer to the collector, which may change it.
 * Owns:     borrows *slot, a pointer variable of the object, until return.
 * Suspends: never. Call from any thread, in a function of BLITZ_TYPE_VISIT().
 */
BLITZ_API void blitz_visit(blitz_visitor *v, void *slot);

/* ---- the macros ---- */

#if defined(__cplusplus)
#define BLITZ_TYPE_ASSERT_(cond, words) static_assert(cond, words)
#define BLITZ_TYPE_ALIGN_(s) alignof(s)
#else
#define BLITZ_TYPE_ASSERT_(cond, words) _Static_assert(cond, words)
#define BLITZ_TYPE_ALIGN_(s) _Alignof(s)
#endif

/* 1 if the field is a pointer. An array is refused by the cast: arrays are BLITZ_ARRAY(). */
#if defined(__GNUC__)
#define BLITZ_IS_POINTER_(s, f) (__builtin_classify_type((__typeof__(((s *)0)->f))0) == 5)
#else
#define BLITZ_IS_POINTER_(s, f) (sizeof(((s *)0)->f) == sizeof(void *))
#endif
#define BLITZ_IS_ALIGNED_(s, f) (offsetof(s, f) % sizeof(void *) == 0)

#define BLITZ_FIELD_CHECK_(s, f)                                                          \
    BLITZ_TYPE_ASSERT_(BLITZ_IS_POINTER_(s, f), #f ": a mapped field must be a pointer"); \
    BLITZ_TYPE_ASSERT_(BLITZ_IS_ALIGNED_(s, f), #f ": a mapped field must be aligned");
#define BLITZ_FIELD_BIT_(s, f)                                     \
    | (offsetof(s, f) / sizeof(void *) < 64                        \
           ? (uint64_t)1 << (offsetof(s, f) / sizeof(void *) % 64) \
           : 0)
#define BLITZ_FIELD_OFFSET_(s, f) (uint32_t) offsetof(s, f),

#define BLITZ_STRUCT_CHECK_(s)                                                          \
    BLITZ_TYPE_ASSERT_(BLITZ_TYPE_ALIGN_(s) <= 8, #s ": aligned to more than 8 bytes"); \
    BLITZ_TYPE_ASSERT_(sizeof(s) < (1u << 30), #s ": too large")

/* Apply a macro to a struct and each of up to 16 fields. */
#define BLITZ_FIELDS_EACH_1_(m, s, f) m(s, f)
#define BLITZ_FIELDS_EACH_2_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_1_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_3_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_2_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_4_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_3_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_5_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_4_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_6_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_5_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_7_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_6_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_8_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_7_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_9_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_8_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_10_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_9_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_11_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_10_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_12_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_11_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_13_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_12_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_14_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_13_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_15_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_14_(m, s, __VA_ARGS__)
#define BLITZ_FIELDS_EACH_16_(m, s, f, ...) m(s, f) BLITZ_FIELDS_EACH_15_(m, s, __VA_ARGS__)
#define BLITZ_FIELD_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, name, ...) name
#define BLITZ_FIELDS_EACH_(macro, s, ...)                                                  \
    BLITZ_FIELD_PICK_(__VA_ARGS__, BLITZ_FIELDS_EACH_16_, BLITZ_FIELDS_EACH_15_,           \
                      BLITZ_FIELDS_EACH_14_, BLITZ_FIELDS_EACH_13_, BLITZ_FIELDS_EACH_12_, \
                      BLITZ_FIELDS_EACH_11_, BLITZ_FIELDS_EACH_10_, BLITZ_FIELDS_EACH_9_,  \
                      BLITZ_FIELDS_EACH_8_, BLITZ_FIELDS_EACH_7_, BLITZ_FIELDS_EACH_6_,    \
                      BLITZ_FIELDS_EACH_5_, BLITZ_FIELDS_EACH_4_, BLITZ_FIELDS_EACH_3_,    \
                      BLITZ_FIELDS_EACH_2_, BLITZ_FIELDS_EACH_1_, )                        \
    (macro, s, __VA_ARGS__)

#define BLITZ_TYPE_FIELDS_(name, s, flags, ...)                                       \
    BLITZ_STRUCT_CHECK_(s);                                                           \
    BLITZ_FIELDS_EACH_(BLITZ_FIELD_CHECK_, s, __VA_ARGS__)                            \
    static const uint32_t name##_offsets_[] = {                                       \
        BLITZ_FIELDS_EACH_(BLITZ_FIELD_OFFSET_, s, __VA_ARGS__)};                     \
    static blitz_type name = {#name,                                                  \
                              (uint32_t)sizeof(s),                                    \
                              flags,                                                  \
                              0 BLITZ_FIELDS_EACH_(BLITZ_FIELD_BIT_, s, __VA_ARGS__), \
                              0,                                                      \
                              (uint32_t)(sizeof name##_offsets_ / sizeof(uint32_t)),  \
                              name##_offsets_,                                        \
                              NULL,                                                   \
                              NULL}

#define BLITZ_TYPE_PARTS_(name, s, flags, ...)                                                   \
    BLITZ_STRUCT_CHECK_(s);                                                                      \
    static const blitz_type_part name##_parts_[] = {__VA_ARGS__};                                \
    static blitz_type name = {#name, (uint32_t)sizeof(s),                                        \
                              flags, 0,                                                          \
                              0,     (uint32_t)(sizeof name##_parts_ / sizeof(blitz_type_part)), \
                              NULL,  name##_parts_,                                              \
                              NULL}

/* Define a type `name`: a static variable. Write a semicolon behind it. Up to 16 fields; BLITZ_TYPE_PARTS() has no limit. */
#define BLITZ_TYPE(name, s, ...) BLITZ_TYPE_FIELDS_(name, s, 0, __VA_ARGS__)
#define BLITZ_VALUE_TYPE(name, s, ...) BLITZ_TYPE_FIELDS_(name, s, BLITZ_TYPE_VALUE_, __VA_ARGS__)
#define BLITZ_TYPE_PARTS(name, s, ...) BLITZ_TYPE_PARTS_(name, s, 0, __VA_ARGS__)
#define BLITZ_VALUE_TYPE_PARTS(name, s, ...) \
    BLITZ_TYPE_PARTS_(name, s, BLITZ_TYPE_VALUE_, __VA_ARGS__)
#define BLITZ_PLAIN_TYPE(name, s) \
    BLITZ_STRUCT_CHECK_(s);       \
    static blitz_type name = {#name, (uint32_t)sizeof(s), 0, 0, 0, 0, NULL, NULL, NULL}
#define BLITZ_TYPE_VISIT(name, s, fn) \
    BLITZ_STRUCT_CHECK_(s);           \
    static blitz_type name = {#name, (uint32_t)sizeof(s), 0, 0, 0, 0, NULL, NULL, fn}

/* 0, or an array of negative size: not what the macro says. */
#define BLITZ_PART_CHECK_(cond) (0 * sizeof(char[(cond) ? 1 : -1]))
#define BLITZ_PART_AT_(s, f) \
    ((uint32_t)(offsetof(s, f) + BLITZ_PART_CHECK_(BLITZ_IS_ALIGNED_(s, f))))

/* A pointer; an array of pointers. */
#define BLITZ_POINTER(s, f)                                                                   \
    {                                                                                         \
        BLITZ_PART_POINTERS_,                                                                 \
            (uint32_t)(BLITZ_PART_AT_(s, f) + BLITZ_PART_CHECK_(BLITZ_IS_POINTER_(s, f))), 1, \
            sizeof(void *), NULL                                                              \
    }
#define BLITZ_ARRAY(s, f)                                                                     \
    {                                                                                         \
        BLITZ_PART_POINTERS_,                                                                 \
            (uint32_t)(BLITZ_PART_AT_(s, f) + BLITZ_PART_CHECK_(BLITZ_IS_POINTER_(s, f[0]))), \
            (uint32_t)(sizeof(((s *)0)->f) / sizeof(void *)), sizeof(void *), NULL            \
    }
/* A struct inside the struct, or an array of structs, with a type of its own. */
#define BLITZ_INLINE(s, f, type)                                                          \
    {                                                                                     \
        BLITZ_PART_INLINE_, BLITZ_PART_AT_(s, f), (uint32_t)sizeof(((s *)0)->f), 0, &type \
    }
/* The flexible array at the end: of pointers; of structs with a type; of anything without pointers. */
#define BLITZ_TAIL(s, f)                                                                         \
    {                                                                                            \
        BLITZ_PART_TAIL_,                                                                        \
            (uint32_t)(BLITZ_PART_AT_(s, f) + BLITZ_PART_CHECK_(BLITZ_IS_POINTER_(s, f[0]))), 1, \
            sizeof(void *), NULL                                                                 \
    }
#define BLITZ_TAIL_OF(s, f, type)                                                          \
    {                                                                                      \
        BLITZ_PART_TAIL_, BLITZ_PART_AT_(s, f), 0, (uint32_t)sizeof(((s *)0)->f[0]), &type \
    }
#define BLITZ_TAIL_PLAIN(s, f)                                                                \
    {                                                                                         \
        BLITZ_PART_TAIL_, (uint32_t)offsetof(s, f), 0, (uint32_t)sizeof(((s *)0)->f[0]), NULL \
    }

BLITZ_END_DECLS

#endif
