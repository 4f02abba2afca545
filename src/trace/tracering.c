/*
 * tracering.c - writing a record, and copying the records that are still there.
 *
 * The design, its invariants and its pairings are in tracering.h. This file adds the
 * arithmetic of a reader. Before it copies, it skips records that are surely gone. After the
 * copy it drops records that may have been overwritten meanwhile. Both tests are "record i is whole as long as
 * i + size > head"; the first test saves work, the second is the proof.
 */
#include "trace/tracering.h"

#include <string.h>

#include "base/check.h"

void bz_tracering_init(struct bz_tracering *r, bz_atomic(uint64_t) *words, uint64_t size)
{
    BZ_CHECK(size >= 2 && (size & (size - 1)) == 0, "a ring of %llu records",
             (unsigned long long)size);
    bz_atomic_init(&r->head, 0);
    r->size = size;
    r->words = words;
}

static bz_atomic(uint64_t) *slot(struct bz_tracering *r, uint64_t at)
{
    return &r->words[(at & (r->size - 1)) * BZ_RECORD_WORDS]; /* I2 */
}

void bz_tracering_push(struct bz_tracering *r, const struct bz_record *record)
{
    uint64_t at = bz_load_relaxed(&r->head); /* relaxed: ours, I1 */
    bz_atomic(uint64_t) *to = slot(r, at);
    for (unsigned i = 0; i < BZ_RECORD_WORDS; i++)
        bz_store_release(&to[i], record->word[i]); /* [B] */
    bz_store_release(&r->head, at + 1);            /* [A] */
}

static void copy(struct bz_tracering *r, uint64_t at, struct bz_record *out)
{
    bz_atomic(uint64_t) *from = slot(r, at);
    for (unsigned i = 0; i < BZ_RECORD_WORDS; i++)
        out->word[i] = bz_load_acquire(&from[i]); /* [B] */
}

/* The oldest record that is whole when the writer is at `head`. */
static uint64_t oldest(const struct bz_tracering *r, uint64_t head)
{
    return head >= r->size ? head - r->size + 1 : 0;
}

size_t bz_tracering_read(struct bz_tracering *r, uint64_t *at, struct bz_record *out, size_t max,
                         uint64_t *lost)
{
    uint64_t head = bz_load_acquire(&r->head); /* [A] */
    uint64_t first = *at > oldest(r, head) ? *at : oldest(r, head);
    size_t count = head > first ? (size_t)(head - first) : 0;
    if (count > max)
        count = max;
    for (size_t i = 0; i < count; i++)
        copy(r, first + i, &out[i]);
    uint64_t whole = oldest(r, bz_load_relaxed(&r->head)); /* relaxed: [B] put it after the words */
    size_t torn = whole > first ? (size_t)(whole - first) : 0;
    if (torn > count)
        torn = count;
    memmove(out, out + torn, (count - torn) * sizeof *out);
    *lost += first > *at ? first - *at + torn : torn;
    if (first + count > *at)
        *at = first + count;
    return count - torn;
}
