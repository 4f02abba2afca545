/*
 * verify.c - the debug net: does each object keep the rules of blitz/heap.h?
 *
 * A set of the addresses of all objects is made first. Then each object and the root are looked at:
 *
 *   mapped words      are NULL or in the set (heap.c I1); those of an old value lead to old objects (I2)
 *   all other words   are not in the set: such a word is a pointer that a map has left out, and dangles after the collection. An
 *                     integer could have that value by chance. A union may hold stale words, so types with a function that
 *                     visits are excepted
 *
 * The words in the set are counted, and the mapped ones. Only if the counts differ, the word is searched for.
 *
 * Without memory for the set nothing is checked, which is logged.
 *
 * bz_heap_type_at() is for messages: does a word of a payload lead into an object of the sender's heap? It walks one chunk at most.
 */
#include <string.h>

#include "base/log.h"
#include "heap/heap.h"

/* Addresses, hashed with linear probing. */
struct set {
    uintptr_t *at;
    size_t size; /* a power of two, more than twice the number of addresses */
};

static size_t hash(const struct set *s, uintptr_t address)
{
    return (size_t)((uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 17) & (s->size - 1);
}

static void set_add(struct set *s, uintptr_t address)
{
    size_t i = hash(s, address);
    while (s->at[i] != 0)
        i = (i + 1) & (s->size - 1);
    s->at[i] = address;
}

static bool set_has(const struct set *s, uintptr_t address)
{
    if (address == 0)
        return false;
    for (size_t i = hash(s, address); s->at[i] != 0; i = (i + 1) & (s->size - 1))
        if (s->at[i] == address)
            return true;
    return false;
}

/* ---- all objects ---- */

typedef void object_fn(void *object, void *arg);

static void each_in(char *at, const char *end, object_fn *fn, void *arg)
{
    while (at < end) {
        uint64_t word = *(uint64_t *)at;
        fn(at + sizeof word, arg);
        at += bz_object_bytes(bz_type_of(word), (size_t)(word >> BZ_COUNT_SHIFT));
    }
}

static void each_in_chunks(struct bz_chunk *c, object_fn *fn, void *arg)
{
    for (; c != NULL; c = c->next) {
        each_in((char *)c->data, c->lo, fn, arg);
        each_in(c->hi, bz_chunk_end(c), fn, arg);
    }
}

static void each(struct blitz_heap *h, object_fn *fn, void *arg)
{
    each_in_chunks(h->old, fn, arg);
    each_in_chunks(h->young, fn, arg);
    for (struct bz_large *l = h->old_large; l != NULL; l = l->next)
        fn(bz_large_object(l), arg);
    for (struct bz_large *l = h->young_large; l != NULL; l = l->next)
        fn(bz_large_object(l), arg);
    for (struct blitz_pin *p = h->pins; p != NULL; p = p->next)
        if (p->chunk != NULL && p->chunk->is_apart)
            fn(p->object, arg);
}

static void count_one(void *object, void *arg)
{
    (void)object;
    ++*(size_t *)arg;
}

static void add_one(void *object, void *arg)
{
    set_add(arg, (uintptr_t)object);
}

/* ---- the object at an address ---- */

struct place {
    const char *address;
    const char *type; /* of the object that it is in, or NULL */
};

static void find_one(void *object, void *arg)
{
    struct place *p = arg;
    uint64_t word = *bz_header_of(object);
    const struct bz_type *t = bz_type_of(word);
    size_t bytes = bz_object_bytes(t, (size_t)(word >> BZ_COUNT_SHIFT)) - sizeof word;
    if ((uintptr_t)p->address - (uintptr_t)object < bytes)
        p->type = t->name;
}

static void find_in(struct bz_chunk *c, struct place *p)
{
    while (c != NULL && (uintptr_t)p->address - (uintptr_t)c >= c->bytes)
        c = c->next;
    if (c == NULL)
        return;
    each_in((char *)c->data, c->lo, find_one, p);
    each_in(c->hi, bz_chunk_end(c), find_one, p);
}

const char *bz_heap_type_at(struct blitz_heap *h, const void *address)
{
    struct place p = {address, NULL};
    if (h->young != NULL)
        h->young->lo = h->at;
    find_in(h->young, &p);
    find_in(h->old, &p);
    for (struct bz_large *l = h->old_large; l != NULL; l = l->next)
        find_one(bz_large_object(l), &p);
    for (struct bz_large *l = h->young_large; l != NULL; l = l->next)
        find_one(bz_large_object(l), &p);
    for (struct blitz_pin *pin = h->pins; pin != NULL; pin = pin->next)
        find_one(pin->object, &p);
    return p.type;
}

/* ---- one object ---- */

struct look {
    blitz_visitor visitor; /* first */
    const struct set *set;
    const struct bz_type *type;
    char *object;
    bool is_old_value;
    size_t mapped;         /* pointers that are not NULL */
    const bz_slot *sought; /* is this word mapped? */
    bool is_found;
};

static void look_at(blitz_visitor *v, bz_slot *slot)
{
    struct look *k = (struct look *)v;
    if (*slot == NULL)
        return;
    size_t at = (size_t)((char *)slot - k->object);
    BZ_CHECK(
        set_has(k->set, (uintptr_t)*slot),
        "%s, offset %zu: %p is not an object of this heap. A mapped pointer must be one, or NULL",
        k->type->name, at, *slot);
    BZ_CHECK(!k->is_old_value || *bz_header_of(*slot) & BZ_IS_OLD,
             "%s, offset %zu: a value was written after its birth", k->type->name, at);
    k->mapped++;
    k->is_found |= slot == k->sought;
}

/* The first word of an object that is a pointer and not mapped. */
static size_t unmapped_at(struct look *k, size_t count, size_t words)
{
    const bz_slot *body = (const bz_slot *)k->object;
    for (size_t i = 0; i < words; i++) {
        k->sought = &body[i];
        k->is_found = false;
        if (!set_has(k->set, (uintptr_t)body[i]))
            continue;
        bz_type_walk(k->type, k->object, count, &k->visitor);
        if (!k->is_found)
            return i * sizeof *body;
    }
    return 0;
}

static void look(struct look *k, size_t count, size_t bytes)
{
    const bz_slot *body = (const bz_slot *)k->object;
    size_t words = bytes / sizeof *body, pointers = 0;
    k->mapped = 0;
    k->sought = NULL;
    bz_type_walk(k->type, k->object, count, &k->visitor);
    if (k->type->visit != NULL)
        return;
    for (size_t i = 0; i < words; i++)
        pointers += set_has(k->set, (uintptr_t)body[i]);
    BZ_CHECK(pointers <= k->mapped, "%s, offset %zu: a pointer to an object is not in the map",
             k->type->name, unmapped_at(k, count, words));
}

static void look_one(void *object, void *arg)
{
    struct look *k = arg;
    uint64_t word = *bz_header_of(object);
    size_t count = (size_t)(word >> BZ_COUNT_SHIFT);
    k->type = bz_type_of(word);
    k->object = object;
    k->is_old_value = k->type->is_const && (word & BZ_IS_OLD);
    look(k, count, bz_object_bytes(k->type, count) - sizeof word);
}

void bz_heap_verify(struct blitz_heap *h)
{
    size_t count = 0;
    each(h, count_one, &count);
    struct set set = {.size = (size_t)bz_pow2_up(2 * count + 2)};
    set.at = bz_alloc(&h->alloc, set.size * sizeof *set.at, _Alignof(uintptr_t));
    if (set.at == NULL) {
        bz_log_once(BLITZ_LOG_WARN, "no memory to verify a heap");
        return;
    }
    memset(set.at, 0, set.size * sizeof *set.at);
    each(h, add_one, &set);
    struct look k = {.visitor = {look_at}, .set = &set};
    each(h, look_one, &k);
    if (h->root != NULL) {
        k.type = h->root_type;
        k.object = h->root;
        k.is_old_value = false;
        look(&k, 0, h->root_type->fixed.bytes);
    }
    bz_free(&h->alloc, set.at, set.size * sizeof *set.at);
}
