/*
 * values.c - a list of blocks of values. The essay is in values.h.
 *
 * I1  first is NULL, or first..last hold the present values and last..end have the room for later ones.
 */
#include "chan/values.h"

enum { BLOCK_BYTES = 4096, SLOTS_LEAST = 8 };

static size_t block_bytes(const struct bz_values *s)
{
    return offsetof(struct bz_block, slot) + s->slots * s->size;
}

size_t bz_values_block_slots(size_t size)
{
    size_t slots = (BLOCK_BYTES - offsetof(struct bz_block, slot)) / size;
    return slots > SLOTS_LEAST ? slots : SLOTS_LEAST;
}

struct bz_block *bz_block_new(const struct bz_values *s, const blitz_allocator *alloc)
{
    struct bz_block *b = bz_alloc(alloc, block_bytes(s), _Alignof(max_align_t));
    if (b != NULL)
        b->next = NULL;
    return b;
}

void bz_block_free(const struct bz_values *s, struct bz_block *b, const blitz_allocator *alloc)
{
    bz_free(alloc, b, block_bytes(s));
}

static char *slot(const struct bz_values *s, struct bz_block *b, size_t index)
{
    return b->slot + index * s->size;
}

void bz_values_append(struct bz_values *s, struct bz_block *b)
{
    if (s->end != NULL) {
        s->end->next = b;
    } else {
        s->first = s->last = b;
        s->head_at = s->tail_at = 0;
    }
    s->end = b;
    s->room += s->slots;
}

void *bz_values_block_push(struct bz_values *s)
{
    BZ_ASSERT(s->room > 0);
    if (s->tail_at == s->slots) {
        s->last = s->last->next;
        s->tail_at = 0;
    }
    s->room--;
    return slot(s, s->last, s->tail_at++);
}

/* Remove the first block, which is used up. It becomes room at the end, or is retired. */
static void retire_first(struct bz_values *s)
{
    struct bz_block *b = s->first;
    s->first = b->next;
    s->head_at = 0;
    b->next = NULL;
    if (s->last == s->end) {
        bz_values_append(s, b);
    } else {
        b->next = s->retired;
        s->retired = b;
    }
}

void *bz_values_block_take(struct bz_values *s)
{
    if (s->head_at == s->slots)
        retire_first(s);
    return slot(s, s->first, s->head_at++);
}

void bz_blocks_free(const struct bz_values *s, struct bz_block *b, const blitz_allocator *alloc)
{
    while (b != NULL) {
        struct bz_block *next = b->next;
        bz_block_free(s, b, alloc);
        b = next;
    }
}

void bz_values_fini(struct bz_values *s, const blitz_allocator *alloc)
{
    bz_blocks_free(s, s->first, alloc);
    bz_blocks_free(s, bz_values_retired(s), alloc);
    s->first = s->last = s->end = NULL;
}
