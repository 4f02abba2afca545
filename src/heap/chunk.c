/*
 * chunk.c - memory of a heap: chunks for small objects, blocks for large ones.
 *
 * Chunks start at 512 bytes. A heap that grows takes larger ones, so their number stays small. A collection empties chunks; they
 * are kept as spare chunks for the next objects, because fresh memory costs more than the collection: the system zeroes its pages.
 * The memory that is kept is in proportion to the live data, so a heap that has shrunk gives memory back. The C library keeps freed
 * blocks between others that are in use: 100 MB of them were resident beside 8 MB of live data. So the pages of a large chunk are
 * discarded before it is freed. Allocators of the program are not the C library's, and their pages are theirs.
 *
 * A collection reserves all memory that it could need before it moves the first object. If that fails, nothing has happened. The
 * worst case is that all objects live, in whatever order. An object that does not fit leaves less than BZ_SMALL_MAX bytes of a chunk
 * unused; bz_chunk_reserve() counts them.
 *
 * Spare memory is poisoned for AddressSanitizer. Debug builds, and heaps that verify, overwrite it as well, so that a pointer left
 * out of a map leads to bytes 0xdb.
 */
#include <string.h>

#include "base/poison.h"
#include "heap/heap.h"
#include "wait/waker.h"

static void reset(struct bz_chunk *c)
{
    c->next = NULL;
    c->lo = c->scan_lo = (char *)c->data;
    c->hi = c->scan_hi = bz_chunk_end(c);
}

static struct bz_chunk *chunk_new(struct blitz_heap *h, size_t room)
{
    size_t bytes = sizeof(struct bz_chunk) + (room + 7) / 8 * 8;
    if (bytes < BZ_CHUNK_MIN)
        bytes = BZ_CHUNK_MIN;
    struct bz_chunk *c = bz_alloc(&h->alloc, bytes, _Alignof(max_align_t));
    if (c == NULL)
        return NULL;
    c->bytes = bytes;
    c->pins = 0;
    c->is_apart = false;
    reset(c);
    h->held += bytes;
    return c;
}

/* Give the pages of a block back that is about to be freed. */
static void discard(struct blitz_heap *h, void *block, size_t bytes)
{
    enum { PAGE = 65536, LEAST = 4 * PAGE }; /* the largest page that there is */
    if (bytes < LEAST || h->alloc.alloc != bz_allocator_libc.alloc)
        return;
    uintptr_t from = ((uintptr_t)block + PAGE - 1) / PAGE * PAGE;
    uintptr_t to = ((uintptr_t)block + bytes) / PAGE * PAGE;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): an address inside the block */
    (void)bz_os_pages_discard(bz_os_here(), (void *)from, to - from); /* refused: they stay */
}

static void chunk_free(struct blitz_heap *h, struct bz_chunk *c)
{
    h->held -= c->bytes;
    bz_unpoison(c->data, c->bytes - sizeof *c);
    discard(h, c, c->bytes);
    bz_free(&h->alloc, c, c->bytes);
}

/* Unlink the spare chunk behind *link. */
static struct bz_chunk *unspare(struct bz_chunk **link)
{
    struct bz_chunk *c = *link;
    *link = c->next;
    bz_unpoison(c->data, c->bytes - sizeof *c);
    reset(c);
    return c;
}

struct bz_chunk *bz_chunk_take(struct blitz_heap *h, size_t need, size_t want)
{
    for (struct bz_chunk **link = &h->spare; *link != NULL; link = &(*link)->next)
        if ((*link)->bytes - sizeof **link >= need)
            return unspare(link);
    return chunk_new(h, want > need ? want : need);
}

void bz_chunk_spare(struct blitz_heap *h, struct bz_chunk *c)
{
    size_t bytes = c->bytes - sizeof *c;
#if defined(BZ_DEBUG)
    bool is_filled = true;
#else
    bool is_filled = h->verify;
#endif
    if (is_filled)
        memset(c->data, 0xdb, bytes);
    bz_poison(c->data, bytes);
    c->next = h->spare;
    h->spare = c;
}

void bz_chunk_trim(struct blitz_heap *h, size_t keep, size_t least)
{
    size_t kept = 0;
    for (struct bz_chunk **link = &h->spare, *c; (c = *link) != NULL;) {
        if (c->bytes >= least && kept + c->bytes <= keep) {
            kept += c->bytes;
            link = &c->next;
        } else {
            *link = c->next;
            chunk_free(h, c);
        }
    }
}

bool bz_chunk_reserve(struct blitz_heap *h, size_t need, struct bz_chunk **list)
{
    size_t size = need / 8;
    if (size < 64 * 1024)
        size = 64 * 1024;
    if (size > BZ_CHUNK_MAX)
        size = BZ_CHUNK_MAX;
    *list = NULL;
    for (struct bz_chunk **last = list; need > 0;) {
        size_t least = need < size ? need : 4 * BZ_SMALL_MAX; /* a smaller one is of no use */
        struct bz_chunk *c = bz_chunk_take(h, least, need < size ? need : size);
        if (c == NULL) {
            bz_chunk_free_all(h, *list);
            *list = NULL;
            return false;
        }
        *last = c;
        last = &c->next;
        size_t room = bz_chunk_room(c);
        need = room >= need ? 0 : need - (room - BZ_SMALL_MAX);
    }
    return true;
}

void bz_chunk_free_all(struct blitz_heap *h, struct bz_chunk *list)
{
    for (struct bz_chunk *next; list != NULL; list = next) {
        next = list->next;
        chunk_free(h, list);
    }
}

struct bz_large *bz_large_new(struct blitz_heap *h, size_t bytes)
{
    size_t all = sizeof(struct bz_large) - sizeof(uint64_t) + bytes;
    struct bz_large *l = bz_alloc(&h->alloc, all, _Alignof(max_align_t));
    if (l == NULL)
        return NULL;
    l->bytes = all;
    l->gray = NULL;
    h->held += all;
    return l;
}

void bz_large_free(struct blitz_heap *h, struct bz_large *l)
{
    size_t bytes = l->bytes;
    h->held -= bytes;
    discard(h, l, bytes);
    bz_free(&h->alloc, l, bytes);
}
