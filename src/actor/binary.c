/*
 * binary.c - counted binaries, and blocks with one owner.
 *
 * A binary is a header and its bytes in one allocation. A slice is a header alone, and holds a reference on the whole, never on
 * another slice, so a chain of slices does not grow. There is no list of binaries: each is freed by its last reference.
 *
 * shares.h counts the references. A caller that finds the count at 1 is alone, and may write.
 *
 * A block is a header and its bytes. The header says whose it is. The states:
 *
 *                 send      arrive     take      drop
 *     owned       moved     -          -         freed
 *     moved       -         lent       -         -            in a message: only the message may free it
 *     lent        -         -          owned     -            with a handler; the message frees it at the end
 *
 * An empty cell aborts, in all builds: the heap would be damaged otherwise. Debug builds also compare the owner, and keep a sum of
 * the bytes of a moved block. A sum that has changed on arrival means that the old owner has written to it. ASan builds
 * poison a moved block, so that the old owner's access is reported where it happens.
 */
#include <errno.h>
#include <string.h>

#include "actor/cargo.h"
#include "actor/shares.h"
#include "base/check.h"
#include "base/poison.h"

static const blitz_allocator *allocator(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? &m->rt->alloc : &bz_allocator_libc;
}

/* ---- binaries ---- */

struct blitz_binary {
    struct bz_shares refs;
    blitz_binary
        *whole; /* of a slice, with a reference; NULL: the bytes are ours. Constant, as the rest */
    unsigned char *data;
    size_t size;
    blitz_allocator alloc;
    _Alignas(max_align_t) unsigned char bytes[];
};

static blitz_binary *binary_alloc(const blitz_allocator *from, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    blitz_binary *b = bz_alloc(from, sizeof *b + bytes, _Alignof(max_align_t));
    if (b == NULL)
        return NULL;
    bz_shares_init(&b->refs, 1);
    b->whole = NULL;
    b->data = b->bytes;
    b->size = bytes;
    b->alloc = *from;
    return b;
}

int blitz_binary_new(size_t size, blitz_binary **out)
{
    blitz_binary *b = binary_alloc(allocator(), size);
    if (b == NULL)
        return -ENOMEM;
    *out = b;
    return 0;
}

int blitz_binary_copy(const void *bytes, size_t size, blitz_binary **out)
{
    if (bytes == NULL && size > 0)
        return -EINVAL;
    int err = blitz_binary_new(size, out);
    if (err == 0 && size > 0)
        memcpy((*out)->bytes, bytes, size);
    return err;
}

int blitz_binary_slice(blitz_binary *of, size_t at, size_t size, blitz_binary **out)
{
    if (at > of->size || size > of->size - at)
        return -EINVAL;
    blitz_binary *b = binary_alloc(&of->alloc, 0);
    if (b == NULL)
        return -ENOMEM;
    b->whole = blitz_binary_ref(of->whole != NULL ? of->whole : of);
    b->data = of->data + at;
    b->size = size;
    *out = b;
    return 0;
}

blitz_binary *blitz_binary_ref(blitz_binary *b)
{
    bz_shares_add(&b->refs);
    return b;
}

/* Release a reference. Returns the whole of a slice that was freed, to be released next; or NULL. */
static blitz_binary *release(blitz_binary *b)
{
    blitz_binary *whole = b->whole;
    if (!bz_shares_drop(&b->refs))
        return NULL;
    blitz_allocator from = b->alloc;
    bz_free(&from, b, sizeof *b + (whole == NULL ? b->size : 0));
    return whole;
}

void blitz_binary_unref(blitz_binary *b)
{
    while (b != NULL)
        b = release(b);
}

const void *blitz_binary_data(const blitz_binary *b)
{
    return b->data;
}

size_t blitz_binary_size(const blitz_binary *b)
{
    return b->size;
}

void blitz_binary_info_get(const blitz_binary *b, blitz_binary_info *out)
{
    *out = (blitz_binary_info){.bytes = b->size,
                               .whole_bytes = b->whole != NULL ? b->whole->size : b->size,
                               .refs = bz_shares_count(&b->refs)};
}

void *blitz_binary_bytes(blitz_binary *b)
{
    return b->whole == NULL && bz_shares_is_single(&b->refs) ? b->bytes : NULL;
}

/* ---- blocks ---- */

enum { OWNED = 0x0b10c001, MOVED = 0x0b10c002, LENT = 0x0b10c003, FREED = 0x0b10c004 };

struct block {
    blitz_allocator alloc; /* constant, as is */
    size_t size;
    struct bz_block_owner owner;
    uint32_t state;
    uint32_t sum; /* of its bytes, when it was moved; debug builds */
    _Alignas(max_align_t) unsigned char bytes[];
};

static struct block *block_of(const void *bytes)
{
    return (struct block *)((uintptr_t)bytes - offsetof(struct block, bytes));
}

static struct bz_block_owner self(void)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL)
        return (struct bz_block_owner){0, 0};
    return (struct bz_block_owner){me->task.slot.index, bz_actor_generation(me)};
}

#if defined(BZ_DEBUG)
static uint32_t sum_of(const struct block *b)
{
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < b->size; i++)
        sum = (sum ^ b->bytes[i]) * 16777619u;
    return sum;
}

/* A block that no actor owns may be sent by any. */
static bool is_ours(const struct block *b)
{
    struct bz_block_owner me = self();
    return b->owner.generation == 0 ||
           (b->owner.index == me.index && b->owner.generation == me.generation);
}
#else
static uint32_t sum_of(const struct block *b)
{
    (void)b;
    return 0;
}

static bool is_ours(const struct block *b)
{
    (void)b;
    return true;
}
#endif

void *blitz_msg_alloc(size_t size)
{
    const blitz_allocator *from = allocator();
    if (size > SIZE_MAX / 2)
        return NULL;
    struct block *b = bz_alloc(from, sizeof *b + size, _Alignof(max_align_t));
    if (b == NULL)
        return NULL;
    *b = (struct block){.alloc = *from, .size = size, .owner = self(), .state = OWNED};
    return b->bytes;
}

size_t blitz_msg_size(const void *block)
{
    return block_of(block)->size;
}

static void free_block(struct block *b)
{
    blitz_allocator from = b->alloc;
    b->state = FREED;
    bz_free(&from, b, sizeof *b + b->size);
}

void blitz_msg_drop(void *block)
{
    if (block == NULL)
        return;
    struct block *b = block_of(block);
    BZ_CHECK(b->state == OWNED, "block %p is dropped, but %s", block,
             b->state == LENT ? "its message holds it: blitz_msg_take() it first"
                              : "it is not owned");
    free_block(b);
}

void *blitz_msg_take(const blitz_msg *m)
{
    if (m->block == NULL)
        return NULL;
    /* Only letters have blocks: the payload is inside one. */
    struct bz_letter *l =
        (struct bz_letter *)((uintptr_t)m->data - offsetof(struct bz_letter, data));
    if (l->cargo == BZ_CARGO_NONE)
        return NULL;
    l->cargo = BZ_CARGO_NONE;
    bz_block_take(m->block);
    return m->block;
}

void bz_block_send(void *block)
{
    struct block *b = block_of(block);
    BZ_CHECK(b->state == OWNED, "block %p is sent, but %s", block,
             b->state == LENT ? "its message holds it: blitz_msg_take() it first"
                              : "it is not owned");
    BZ_CHECK(is_ours(b), "block %p is sent, but it belongs to actor %u.%u", block, b->owner.index,
             b->owner.generation);
    b->state = MOVED;
    b->sum = sum_of(b);
    bz_poison(b->bytes, b->size);
}

void bz_block_return(void *block)
{
    struct block *b = block_of(block);
    bz_unpoison(b->bytes, b->size);
    b->state = OWNED;
}

void bz_block_arrive(void *block, struct bz_block_owner owner)
{
    struct block *b = block_of(block);
    BZ_CHECK(b->state == MOVED, "block %p arrives, but it was not sent", block);
    bz_unpoison(b->bytes, b->size);
    BZ_CHECK(b->sum == sum_of(b), "block %p was written to after it was moved", block);
    b->state = LENT;
    b->owner = owner;
}

void bz_block_take(void *block)
{
    struct block *b = block_of(block);
    BZ_CHECK(b->state == LENT, "block %p is taken from no message", block);
    b->state = OWNED;
}

void bz_block_release(void *block)
{
    struct block *b = block_of(block);
    BZ_CHECK(b->state == MOVED || b->state == LENT,
             "block %p is freed by a message that does not hold it", block);
    bz_unpoison(b->bytes, b->size);
    free_block(b);
}
