/*
 * type.h - a registered type, and the header of an object. type.c has the registry.
 *
 * An object is a header of 8 bytes and the struct. The header is a word:
 *
 *     bit 0       forwarded: the rest of the word is the address of the copy
 *     bit 1       large: a struct bz_large is before the object
 *     bit 2       old: it has survived a collection
 *     bit 3       colour: flipped by each full collection, so that a copy is told from an object not yet moved
 *     bits 4-17   the type
 *     bits 18-63  the number of elements of its flexible array
 */
#ifndef BZ_HEAP_TYPE_H
#define BZ_HEAP_TYPE_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/bz_atomic.h"
#include "blitz/heap_type.h"

enum { BZ_TYPES_MAX = 1 << 14, BZ_TYPE_SHIFT = 4, BZ_COUNT_SHIFT = 18 };

#define BZ_FORWARDED UINT64_C(1)
#define BZ_IS_LARGE UINT64_C(2)
#define BZ_IS_OLD UINT64_C(4)
#define BZ_COLOUR UINT64_C(8)
#define BZ_COUNT_MAX ((UINT64_C(1) << 45) - 1)

/* A pointer in an object of any type, and a word of it. */
typedef void *__attribute__((may_alias)) bz_slot;
typedef uint64_t __attribute__((may_alias)) bz_heap_word;

/* The pointers of a struct: a map if all are in the first 64 words, else a table of offsets. */
struct bz_layout {
    uint64_t map;
    uint32_t bytes; /* of the struct, or of an element */
    uint32_t n;     /* offsets; 0: the map has all */
    const uint32_t *offsets;
};

enum { BZ_SMALL_MAX = 2048 }; /* bytes of an object in a chunk, with its header */

/* Constant. Never freed: an object may outlive the library that has defined its type. */
struct bz_type {
    struct bz_layout fixed, tail; /* tail.bytes 0: no flexible array */
    uint64_t header;              /* of an object without elements */
    uint32_t bytes;               /* of such an object, with its header */
    uint32_t small_bytes;         /* the same; UINT32_MAX if it is large */
    uint32_t copy_bytes;          /* the same; UINT32_MAX if it is not a few whole words */
    uint32_t tail_at;             /* offset of the flexible array */
    bool is_value;                /* or without pointers: old ones cannot point to young ones */
    bool is_plain;                /* without pointers */
    bool is_const;                /* of BLITZ_VALUE_TYPE() */
    blitz_visit_fn visit;         /* or NULL */
    const char *name;
};

/* By index; written once, under the registry's lock, before the index is published. */
extern struct bz_type *bz_types[BZ_TYPES_MAX];

/* True if a function of a BLITZ_TYPE_VISIT() type is in that range of code. */
bool bz_types_visit_in(uintptr_t start, uintptr_t end);

/* The registered copy; NULL: it cannot be registered, which is logged. */
const struct bz_type *bz_type_make(blitz_type *type);

static BZ_ALWAYS_INLINE const struct bz_type *bz_type_get(blitz_type *type)
{
    /* [A] in type.c */
    uint32_t index = bz_load_acquire((bz_atomic(uint32_t) *)&type->index);
    return BZ_LIKELY(index != 0) ? bz_types[index] : bz_type_make(type);
}

static BZ_ALWAYS_INLINE const struct bz_type *bz_type_of(uint64_t header)
{
    return bz_types[header >> BZ_TYPE_SHIFT & (BZ_TYPES_MAX - 1)];
}

/* The bytes of an object with its header. */
static BZ_ALWAYS_INLINE size_t bz_object_bytes(const struct bz_type *t, size_t count)
{
    if (BZ_LIKELY(count == 0))
        return t->bytes;
    size_t end = t->tail_at + count * t->tail.bytes;
    size_t size = end > t->fixed.bytes ? end : t->fixed.bytes;
    return sizeof(uint64_t) + (size + 7) / 8 * 8;
}

static BZ_ALWAYS_INLINE uint64_t *bz_header_of(const void *object)
{
    return (uint64_t *)(uintptr_t)object - 1;
}

struct blitz_visitor {
    void (*fn)(blitz_visitor *v, bz_slot *slot);
};

/* Call v->fn for each pointer of an object. */
void bz_type_walk(const struct bz_type *t, void *object, size_t count, blitz_visitor *v);

#endif
