/*
 * heap.h - a heap inside: its chunks, its large objects, its sizes. heap.c has the design.
 */
#ifndef BZ_HEAP_H
#define BZ_HEAP_H

#include "base/alloc.h"
#include "blitz/heap.h"
#include "blitz/pin.h"
#include "heap/type.h"

enum {
    BZ_CHUNK_MIN = 512,         /* with its struct */
    BZ_CHUNK_MAX = 1 << 20,     /* where no object or limit asks for more */
    BZ_YOUNG_BYTES = 16 * 1024, /* the default of young_bytes */
    BZ_YOUNG_VALUES =
        1 << 20, /* the most between two collections of values: a second-level cache */
    BZ_LATE = 8, /* times young_limit: a collection is overdue */
    BZ_PATIENCE_MIN = 16,
    BZ_PATIENCE_MAX = 128 /* times the old part: a full collection is due */
};

/*
 * A piece of memory for objects. Young objects are in [data, lo). Old values are in [data, lo), and grow upward; other old objects
 * are in [hi, end), and grow downward. So a chunk with n free bytes has room for n bytes of any mixture.
 */
struct bz_chunk {
    struct bz_chunk *next;
    size_t bytes; /* with this struct; constant */
    char *lo, *hi;
    char *scan_lo, *scan_hi; /* a collection has looked at [data, scan_lo) and [scan_hi, end) */
    size_t pins;             /* records of pins in it: pin.c */
    bool is_apart;           /* in the list `apart`: only its pinned objects are objects */
    uint64_t data[];
};

/* A pin: pin.c. */
struct blitz_pin {
    struct blitz_pin *next; /* the owner's, as all but is_held */
    struct blitz_heap *heap;
    void *object;
    struct bz_chunk *chunk;      /* of the object; NULL: it is large */
    bool is_over;                /* as the collection found it, which is going on */
    bz_atomic(uint32_t) is_held; /* cleared by its holder, on any thread */
};

/* An object that owns a value outside of the heap: holder.c. Its first field is for users: blitz/heap_binary.h. */
struct bz_holder {
    void *value;
    void (*drop)(void *value);
    size_t bytes;
    uintptr_t next; /* the complement of the address */
};

/* An object with a block of its own. It does not move. */
struct bz_large {
    struct bz_large *next;
    struct bz_large *gray; /* the next one to be looked at, during a collection */
    size_t bytes;          /* with this struct; constant */
    uint64_t header;       /* last: directly before the object */
};

struct blitz_heap {
    char *at, *end;         /* free memory of the first young chunk */
    uint64_t colour;        /* of new headers: 0 or BZ_COLOUR */
    struct bz_chunk *young; /* the first one is being filled */
    struct bz_chunk *old;
    struct bz_chunk *to; /* the chunk of `old` that is being filled; the ones behind it are empty */
    struct bz_chunk *spare; /* empty */
    struct bz_large *young_large, *old_large, *gray;
    struct bz_chunk *apart; /* chunks that stay for their pinned objects alone */
    struct blitz_pin *pins;
    struct bz_holder *young_holders, *old_holders;
    size_t young_outside, outside, holders; /* bytes of their values; their number */
    bz_atomic(size_t) holds; /* 1 of the owner, and 1 for each pin that is held: pin.c */

    size_t young_done; /* bytes in young chunks but the first, and in young large objects */
    size_t young_held; /* bytes of the young chunks and large objects: what the limit counts */
    size_t old_values, old_others; /* bytes of old objects, also large ones */
    size_t apart_held;             /* bytes of the chunks in `apart`: the limit counts them */
    size_t held;                   /* bytes of the allocator, all in all */
    size_t young_limit,
        full_at; /* collect beyond so many young bytes; fully from so many old ones */
    size_t bytes_max, young_bytes; /* of the options; constant */
    uint64_t full, minor;          /* collections */
    size_t since_full; /* bytes allocated from the last full collection to the last one */
    uint32_t patience; /* collect.c: the choice */

    uint64_t skip_mask, skip;       /* during a collection: the headers of objects that stay */
    uintptr_t young_at, young_span; /* and the range outside of which no object is to be moved */

    void *root;
    const struct bz_type *root_type;
    bool verify;
    bool is_late; /* much more than young_limit was allocated since the last collection */
    void (*tell_late)(struct blitz_heap *h); /* is called then, once; or NULL */
    struct bz_task *owner; /* no other task may use it, which debug builds check; NULL: any may */
    blitz_allocator alloc;
};

static inline char *bz_chunk_end(struct bz_chunk *c)
{
    return (char *)c + c->bytes;
}

static inline size_t bz_chunk_room(const struct bz_chunk *c)
{
    return (size_t)(c->hi - c->lo);
}

static inline void *bz_large_object(struct bz_large *l)
{
    return l + 1;
}

static inline struct bz_large *bz_large_of(void *object)
{
    return (struct bz_large *)object - 1;
}

/* In debug builds: abort if the caller is not the actor whose heap it is. A job of the actor that another worker runs is not. */
#if defined(BZ_DEBUG)
void bz_heap_check_owner(const struct blitz_heap *h);
#else
static inline void bz_heap_check_owner(const struct blitz_heap *h)
{
    (void)h;
}
#endif

/* Bytes allocated since the last collection. */
static inline size_t bz_heap_young(const struct blitz_heap *h)
{
    return h->young_done + (h->young != NULL ? (size_t)(h->at - (char *)h->young->data) : 0);
}

/* ---- chunk.c ---- */

/* Take an empty chunk with room for `need` bytes: a spare one, or a new one with room for `want`. NULL: no memory. */
struct bz_chunk *bz_chunk_take(struct blitz_heap *h, size_t need, size_t want);
/* Put a chunk on the spare list: its objects are gone. */
void bz_chunk_spare(struct blitz_heap *h, struct bz_chunk *c);
/* Free spare chunks beyond `keep` bytes, and those smaller than `least`. */
void bz_chunk_trim(struct blitz_heap *h, size_t keep, size_t least);
/* Make a list of empty chunks in which any mixture of small objects of `need` bytes finds room. False: no memory. */
BZ_MUST_USE bool bz_chunk_reserve(struct blitz_heap *h, size_t need, struct bz_chunk **list);
void bz_chunk_free_all(struct blitz_heap *h, struct bz_chunk *list);

/* Allocate and free a large object: `bytes` with the header of 8 bytes. NULL: no memory. */
struct bz_large *bz_large_new(struct blitz_heap *h, size_t bytes);
void bz_large_free(struct blitz_heap *h, struct bz_large *l);

/* ---- pin.c ---- */

/* A collection begins: find the pins that are over. Return the bytes of small objects that it may have to move out of `apart`. */
size_t bz_pins_look(struct blitz_heap *h);
/* Forget pins that are over: a full collection all of them, a minor one those of young objects. */
void bz_pins_drop(struct blitz_heap *h, bool is_full);
/* Keep this chunk, which a collection has emptied, for its pinned objects. */
void bz_pins_set_apart(struct blitz_heap *h, struct bz_chunk *c);
/* After a full collection: make the chunks spare that no pinned object is in any more. */
void bz_pins_settle(struct blitz_heap *h);
/* The owner gives the heap up, after bz_pins_look(). True: free what is left of it. False: the last holder of a pin will. */
BZ_MUST_USE bool bz_pins_end(struct blitz_heap *h);

/* ---- holder.c ---- */

/* Make an object that owns a value of `bytes` bytes. NULL: no memory, or the limit; the value is the caller's. */
struct bz_holder *bz_heap_hold(struct blitz_heap *h, void *value, size_t bytes,
                               void (*drop)(void *value));
/* A collection has found what is alive: release the values of dead holders. Before memory is overwritten. */
void bz_holders_settle(struct blitz_heap *h, bool is_full);
/* Release all values but those of pinned holders: the heap ends. After bz_pins_look(). */
void bz_holders_end(struct blitz_heap *h);
/* Release those as well: the last pin was given up. */
void bz_holders_fini(struct blitz_heap *h);
/* Call fn for each value that is released by `drop`. */
void bz_holders_each_of(const struct blitz_heap *h, void (*drop)(void *value),
                        void (*fn)(void *value, void *ctx), void *ctx);

/* ---- heap.c ---- */

/* Free the chunks and large objects of a heap, and the heap. */
void bz_heap_free(struct blitz_heap *h);

/* ---- collect.c, verify.c ---- */

/* Set the sizes at which the next collection is due. */
void bz_heap_set_limits(struct blitz_heap *h, bool is_full);
/* Abort if an object or the root breaks a rule of blitz/heap.h. */
void bz_heap_verify(struct blitz_heap *h);
/* The type of the object of this heap that an address is in; NULL: it is in none. */
const char *bz_heap_type_at(struct blitz_heap *h, const void *address);

#endif
