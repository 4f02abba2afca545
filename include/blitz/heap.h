/*
 * blitz/heap.h - a private heap with a precise, moving collector.
 *
 * A heap belongs to one owner, which allocates objects and never frees them. The owner collects at a moment of its choice and
 * names the roots. Objects that the roots reach are moved together; all others are gone.
 *
 *     struct node { struct node *left, *right; long key; };
 *     BLITZ_TYPE(node_type, struct node, left, right);            // where its pointers are: blitz/heap_type.h
 *
 *     blitz_heap *heap;
 *     int rc = blitz_heap_new(NULL, &heap);
 *     struct node *root = (struct node *)blitz_heap_alloc(heap, &node_type);
 *     ...
 *     rc = BLITZ_HEAP_TIDY(heap, &root);                          // root may have moved; other pointers dangle
 *     ...
 *     blitz_heap_unref(heap);                                     // all objects at once
 *
 * The rules:
 *   - A mapped pointer is NULL or the address of an object of this heap, as an allocation returned it. Pointers into the middle
 *     of an object, to another heap or to other memory are not mapped.
 *   - After a collection only the named roots and mapped pointers are valid. A collection never happens by itself.
 *   - An object of a value type is made by blitz_heap_copy() and never written after that.
 *   - One thread at a time uses a heap.
 *
 * A full collection copies all live objects. A minor one copies only live objects that were allocated since the last collection:
 * they become old. Objects of value types can only point to older ones, so a minor collection does not look at old values. It does
 * look at all other old objects, or makes a full collection where that is less work.
 *
 * Debugging: set `.verify` in the options. Each tidy then collects, and a scan of the whole heap before it aborts on:
 *   - a mapped pointer to anything else than an object of this heap
 *   - a pointer to an object that is not in the map of its type (not looked for in types of BLITZ_TYPE_VISIT())
 *   - a value that points to a younger object: it was written after its birth
 * The message names the type and the offset. Released memory is overwritten, and poisoned under AddressSanitizer.
 */
#ifndef BLITZ_HEAP_H
#define BLITZ_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/heap_type.h"
#include "blitz/hooks.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_heap blitz_heap;

/* The options of a heap. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_heap_opts {
    const blitz_allocator *allocator; /* copied; NULL: the C library's */
    size_t
        bytes_max; /* an allocation beyond returns NULL; 0: no limit. Objects with their headers count */
    size_t young_bytes; /* allocate at least this much between two collections; 0: 16 KiB */
    void *root;         /* a struct outside the heap whose pointers are always roots; NULL: none */
    blitz_type *root_type; /* its type, without a flexible array */
    bool verify;           /* check the whole heap before each collection */
} blitz_heap_opts;

/*
 * Make a heap. It holds no memory for objects until the first allocation.
 * Owns:     copies *opts; borrows *opts->root while the heap exists. Give the heap up with blitz_heap_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (a root without a type, or a type that has a flexible array), -ENOMEM, and as blitz_type_register() for the
 *           root's type. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_heap_new(const blitz_heap_opts *opts, blitz_heap **out);

/*
 * Free a heap and all its objects at once. NULL is ignored.
 * Owns:     takes the heap.
 * Suspends: never. Call from any thread, one at a time.
 */
BLITZ_API void blitz_heap_unref(blitz_heap *heap);

/*
 * Allocate an object. (It returns the memory, as malloc() does: a void ** would need a cast.)
 * Owns:     the object is the heap's, until a collection does not find it. Copies the type when it is first used.
 * Suspends: never. Call from any thread, one at a time.
 * Returns:  the object, zeroed and aligned to 8 bytes; NULL: no memory, the limit, or a type that cannot be registered. A type with
 *           a flexible array has no elements.
 */
BLITZ_API void *blitz_heap_alloc(blitz_heap *heap, blitz_type *type);

/*
 * Allocate an object with a flexible array of `count` elements.
 * Owns:     as blitz_heap_alloc().
 * Suspends: never. Call from any thread, one at a time.
 * Returns:  as blitz_heap_alloc(); NULL also if count is not 0 and the type has no flexible array, or it is too large.
 */
BLITZ_API void *blitz_heap_alloc_tail(blitz_heap *heap, blitz_type *type, size_t count);

/*
 * Allocate an object and copy its content: the only way to make one of a value type.
 * Owns:     copies *from: the struct, and `count` elements of its flexible array. Otherwise as blitz_heap_alloc().
 * Suspends: never. Call from any thread, one at a time.
 * Returns:  as blitz_heap_alloc_tail().
 */
BLITZ_API void *blitz_heap_copy(blitz_heap *heap, blitz_type *type, size_t count, const void *from);

/*
 * Allocate bytes without pointers; a string.
 * Owns:     bytes: as blitz_heap_alloc(). string: copies the text, with its end.
 * Suspends: never. Call from any thread, one at a time.
 * Returns:  zeroed bytes, aligned to 8; the copy. NULL: no memory, or the limit.
 */
BLITZ_API void *blitz_heap_bytes(blitz_heap *heap, size_t size);
BLITZ_API char *blitz_heap_string(blitz_heap *heap, const char *text);

/*
 * The number of elements of an object's flexible array, or the size of blitz_heap_bytes().
 * Owns:     borrows the object until return.
 * Suspends: never. Call from any thread, one at a time.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_heap_count(const void *object);

/*
 * Collect: collect always, and all of the heap; tidy only if enough was allocated since the last collection, and no more than is
 * needed. `roots` are addresses of pointer variables. A variable may be named twice.
 * Owns:     borrows the roots until return, and changes the pointers that they name. All other pointers to objects dangle.
 * Suspends: never. Call from any thread, one at a time.
 * Returns:  0; -ENOMEM: nothing has changed, and no pointer dangles.
 */
BLITZ_API int blitz_heap_collect(blitz_heap *heap, void *const *roots, size_t count);
BLITZ_API int blitz_heap_tidy(blitz_heap *heap, void *const *roots, size_t count);

/* Collect with the addresses of these variables as roots: BLITZ_HEAP_COLLECT(heap, &a, &b). At least one, at most 32. */
#define BLITZ_HEAP_COLLECT(heap, ...) blitz_heap_collect_these_(true, heap, __VA_ARGS__, (void *)0)
#define BLITZ_HEAP_TIDY(heap, ...) blitz_heap_collect_these_(false, heap, __VA_ARGS__, (void *)0)

/* Not for programs: behind the macros above. */
BLITZ_API int blitz_heap_collect_these_(bool is_full, blitz_heap *heap, ...);

/* Facts about a heap, as of now. They fit into a message. */
typedef struct blitz_heap_info {
    size_t
        live_bytes; /* of old objects: the live ones of the last collection, and dead old ones since the last full one */
    size_t young_bytes;   /* allocated since the last collection */
    size_t held_bytes;    /* memory of the allocator, all in all */
    uint64_t full, minor; /* collections */
    size_t binary_bytes;  /* of binaries that it refers to, with the wholes of slices */
    size_t pinned_bytes;  /* memory that is kept for pinned objects alone */
    uint32_t binaries;    /* references to binaries: blitz/heap_binary.h */
    uint32_t pins;        /* that are held: blitz/pin.h */
} blitz_heap_info;

/*
 * Look at a heap.
 * Owns:     *out is written.
 * Suspends: never. Call from any thread, one at a time.
 */
BLITZ_API void blitz_heap_info_get(const blitz_heap *heap, blitz_heap_info *out);

BLITZ_END_DECLS

#endif
