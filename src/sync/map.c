/*
 * map.c - a hash map in shards, each with its lock.
 *
 * The upper bits of a key's hash choose the shard, the lower ones the bucket. A bucket is a list of nodes, one for each
 * key. There are several shards for each CPU, so two callers on different keys meet at one lock rarely, and the lock is held
 * for a walk over a node or two. A shard has cache lines of its own.
 *
 * No function of the user's runs under a lock, and no allocator does. A call that may insert makes its node before it
 * takes the lock, and frees it afterwards if it was not needed. A shard that has become too full grows in the same way:
 * the caller allocates the larger table without the lock, takes the lock, and moves the nodes if that is still due. That moves
 * each node once for each doubling. A shard does not shrink.
 *
 * Rejected:
 *  - tables of entries without nodes: an entry of unknown size has to lie elsewhere anyway;
 *  - reads without a lock: they need reclamation, and a copy races with a writer;
 *  - comparing keys by a function of the user's, which would run under the lock.
 *
 * The last unref takes the nodes out one by one, since the hook of a value may remove other keys or put new ones.
 *
 * The hash is seeded for each map, so that a peer that chooses the keys cannot choose the buckets.
 *
 * I1  A node is in the bucket of its hash, in the shard of its hash, and no other node there has its key.
 * I2  `count` is the number of nodes of the shard.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include "blitz/map.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "arch/own.h"
#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "base/check.h"
#include "os/lock.h"
#include "wait/waker.h"

enum { SHARDS_A_CPU = 8, SHARDS_MAX = 65536, FIRST_BUCKETS = 8 };

struct node {
    struct node *next;
    uint64_t hash;
    size_t key_bytes;
    _Alignas(max_align_t) char value[]; /* and the key behind it */
};

struct shard {
    BZ_OWN_LINE struct bz_lock lock; /* guards the rest */
    size_t count;                    /* I2 */
    size_t buckets;                  /* a power of two; 0: none yet */
    struct node **bucket;
};

struct blitz_map {
    bz_atomic(uint32_t) refs;
    const struct bz_os *os; /* constant, as are the next ones */
    uint64_t seed;
    size_t value_size, shards; /* shards is a power of two */
    blitz_map_opts opts;
    blitz_allocator alloc;
    struct shard shard[];
};

/* ---- keys ---- */

static uint64_t stir(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t hash_of(const struct blitz_map *m, const void *key, size_t bytes)
{
    const char *at = key;
    uint64_t h = stir(m->seed, bytes);
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = stir(h, word);
    }
    uint64_t rest = 0;
    if (bytes > 0)
        memcpy(&rest, at, bytes);
    return stir(stir(h, rest), m->seed);
}

static struct shard *shard_of(struct blitz_map *m, uint64_t hash)
{
    return &m->shard[hash >> 48 & (m->shards - 1)];
}

static char *key_of(const struct blitz_map *m, struct node *n)
{
    return n->value + m->value_size;
}

/* ---- nodes: without the lock ---- */

static size_t node_bytes(const struct blitz_map *m, size_t key_bytes)
{
    return sizeof(struct node) + m->value_size + key_bytes;
}

static struct node *node_new(struct blitz_map *m, uint64_t hash, const void *key, size_t key_bytes,
                             const void *value)
{
    struct node *n = bz_alloc(&m->alloc, node_bytes(m, key_bytes), _Alignof(struct node));
    if (n == NULL)
        return NULL;
    *n = (struct node){.hash = hash, .key_bytes = key_bytes};
    memcpy(n->value, value, m->value_size);
    if (key_bytes > 0)
        memcpy(key_of(m, n), key, key_bytes);
    return n;
}

static void node_free(struct blitz_map *m, struct node *n)
{
    bz_free(&m->alloc, n, node_bytes(m, n->key_bytes));
}

/* Free a node whose value no caller has. NULL is ignored. */
static void node_drop(struct blitz_map *m, struct node *n)
{
    if (n == NULL)
        return;
    if (m->opts.drop != NULL)
        m->opts.drop(n->value, m->opts.ctx);
    node_free(m, n);
}

/* ---- a shard: under the lock ---- */

static void lock(struct blitz_map *m, struct shard *s)
{
    bz_lock_take(&s->lock, m->os);
}

static void unlock(struct blitz_map *m, struct shard *s)
{
    bz_lock_drop(&s->lock, m->os);
}

/* Return the link that leads to the node of the key: in its bucket, or at the end of it. NULL: there are no buckets. */
static struct node **find(struct blitz_map *m, struct shard *s, uint64_t hash, const void *key,
                          size_t key_bytes)
{
    if (s->buckets == 0)
        return NULL;
    struct node **at = &s->bucket[hash & (s->buckets - 1)];
    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->hash == hash && (*at)->key_bytes == key_bytes &&
            (key_bytes == 0 || memcmp(key_of(m, *at), key, key_bytes) == 0))
            break;
    return at;
}

static bool is_crowded(const struct shard *s)
{
    return s->count >= s->buckets;
}

static void rehash(struct shard *s, struct node **bucket, size_t buckets)
{
    for (size_t i = 0; i < s->buckets; i++)
        for (struct node *n = s->bucket[i], *next; n != NULL; n = next) {
            struct node **to = &bucket[n->hash & (buckets - 1)];
            next = n->next;
            n->next = *to;
            *to = n;
        }
    s->bucket = bucket;
    s->buckets = buckets;
}

/* Give a crowded shard twice as many buckets. Not under the lock. 0, -ENOMEM. */
static int grow(struct blitz_map *m, struct shard *s)
{
    lock(m, s);
    size_t had = s->buckets;
    unlock(m, s);
    size_t wants = had > 0 ? 2 * had : FIRST_BUCKETS, bytes = wants * sizeof(struct node *);
    struct node **bucket = bz_alloc(&m->alloc, bytes, _Alignof(struct node *));
    if (bucket == NULL)
        return -ENOMEM;
    memset(bucket, 0, bytes);
    lock(m, s);
    struct node **old = s->bucket;
    bool is_due = s->buckets == had; /* else another caller was faster */
    if (is_due)
        rehash(s, bucket, wants);
    unlock(m, s);
    if (!is_due)
        bz_free(&m->alloc, bucket, bytes);
    else if (old != NULL)
        bz_free(&m->alloc, old, had * sizeof(struct node *));
    return 0;
}

/* ---- its life ---- */

static size_t map_bytes(size_t shards)
{
    return sizeof(struct blitz_map) + shards * sizeof(struct shard);
}

static size_t shards_for(const struct bz_os *os, unsigned asked)
{
    size_t want = asked > 0 ? asked : (size_t)SHARDS_A_CPU * (size_t)bz_os_cpus(os), n = 1;
    while (n < want && n < SHARDS_MAX)
        n *= 2;
    return n;
}

int blitz_map_new(size_t value_size, const blitz_map_opts *opts, blitz_map **out)
{
    const blitz_map_opts none = {.drop = NULL};
    const struct bz_os *os = bz_os_here();
    opts = opts != NULL ? opts : &none;
    if (value_size == 0 || value_size > PTRDIFF_MAX / 4 || opts->shards > SHARDS_MAX || out == NULL)
        return -EINVAL;
    const blitz_allocator *alloc = opts->alloc != NULL ? opts->alloc : &bz_allocator_libc;
    size_t shards = shards_for(os, opts->shards);
    struct blitz_map *m = bz_alloc(alloc, map_bytes(shards), _Alignof(struct blitz_map));
    if (m == NULL)
        return -ENOMEM;
    *m = (struct blitz_map){
        .os = os, .value_size = value_size, .shards = shards, .opts = *opts, .alloc = *alloc};
    if (bz_os_entropy(os, &m->seed, sizeof m->seed) != 0)
        m->seed = bz_os_now(os); /* harder to guess than a constant */
    bz_atomic_init(&m->refs, 1);
    for (size_t i = 0; i < shards; i++) {
        m->shard[i] = (struct shard){.count = 0};
        bz_lock_init(&m->shard[i].lock);
    }
    *out = m;
    return 0;
}

blitz_map *blitz_map_ref(blitz_map *m)
{
    bz_fetch_add_relaxed(&m->refs, 1); /* relaxed: the caller holds one */
    return m;
}

/* Take any node out of a shard. NULL: it is empty. *at is the first bucket that may have one. */
static struct node *take_any(struct blitz_map *m, struct shard *s, size_t *at)
{
    struct node *n = NULL;
    lock(m, s);
    for (*at = s->count > 0 ? *at : s->buckets; *at < s->buckets && n == NULL; *at += n == NULL)
        n = s->bucket[*at];
    if (n != NULL) {
        s->bucket[*at] = n->next;
        s->count--; /* I2 */
    }
    unlock(m, s);
    return n;
}

/* Drop all values. Return how many. A hook may put others, into a shard that was empty before. */
static size_t drop_all(struct blitz_map *m)
{
    size_t dropped = 0;
    struct node *n;
    for (size_t i = 0; i < m->shards; i++)
        for (size_t at = 0; (n = take_any(m, &m->shard[i], &at)) != NULL; dropped++)
            node_drop(m, n);
    return dropped;
}

void blitz_map_unref(blitz_map *m)
{
    if (m == NULL || bz_fetch_sub_acqrel(&m->refs, 1) != 1) /* [A] */
        return;
    bz_store_relaxed(&m->refs, 1); /* relaxed: ours. The hooks may ref and unref the map */
    while (drop_all(m) > 0)
        ;
    BZ_CHECK(bz_load_relaxed(&m->refs) == 1, /* relaxed: likewise */
             "map %p: the drop hook of its last values keeps a reference", (void *)m);
    for (size_t i = 0; i < m->shards; i++)
        if (m->shard[i].bucket != NULL)
            bz_free(&m->alloc, m->shard[i].bucket, m->shard[i].buckets * sizeof(struct node *));
    blitz_allocator alloc = m->alloc;
    bz_free(&alloc, m, map_bytes(m->shards));
}

/* ---- calls ---- */

int blitz_map_get(blitz_map *m, const void *key, size_t key_bytes, void *value)
{
    uint64_t hash = hash_of(m, key, key_bytes);
    struct shard *s = shard_of(m, hash);
    lock(m, s);
    struct node **at = find(m, s, hash, key, key_bytes);
    bool is_there = at != NULL && *at != NULL;
    if (is_there && value != NULL)
        memcpy(value, (*at)->value, m->value_size);
    unlock(m, s);
    return is_there ? 0 : -ENOENT;
}

/* Insert the node if its shard has room, or replace the node of its key, which goes to *old. -EAGAIN: the shard must grow; the
 * key is there, and `replaces` is false. *is_full tells the two apart. */
static int insert(struct blitz_map *m, struct shard *s, struct node *n, bool replaces,
                  struct node **old, bool *is_full)
{
    lock(m, s);
    struct node **at = find(m, s, n->hash, key_of(m, n), n->key_bytes);
    *is_full = at == NULL || (*at == NULL && is_crowded(s));
    bool is_there = at != NULL && *at != NULL;
    int rc = *is_full || (is_there && !replaces) ? -EAGAIN : 0;
    if (at != NULL && rc == 0) {
        *old = *at;
        n->next = is_there ? (*at)->next : NULL;
        *at = n;
        s->count += !is_there; /* I2 */
    }
    unlock(m, s);
    return rc;
}

static int set(struct blitz_map *m, const void *key, size_t key_bytes, const void *value,
               bool replaces)
{
    if (key_bytes > PTRDIFF_MAX / 4)
        return -EINVAL;
    uint64_t hash = hash_of(m, key, key_bytes);
    struct shard *s = shard_of(m, hash);
    struct node *n = node_new(m, hash, key, key_bytes, value), *old = NULL;
    bool is_full = false;
    int rc = n != NULL ? 0 : -ENOMEM;
    while (rc == 0) {
        rc = insert(m, s, n, replaces, &old, &is_full);
        if (!is_full)
            break;
        rc = grow(m, s);
    }
    if (rc != 0 && n != NULL)
        node_free(m, n); /* the value is still the caller's */
    node_drop(m, old);
    return rc;
}

int blitz_map_put(blitz_map *m, const void *key, size_t key_bytes, const void *value)
{
    return set(m, key, key_bytes, value, true);
}

int blitz_map_add(blitz_map *m, const void *key, size_t key_bytes, const void *value)
{
    return set(m, key, key_bytes, value, false);
}

int blitz_map_swap(blitz_map *m, const void *key, size_t key_bytes, const void *expected,
                   const void *value)
{
    uint64_t hash = hash_of(m, key, key_bytes);
    struct shard *s = shard_of(m, hash);
    lock(m, s);
    struct node **at = find(m, s, hash, key, key_bytes);
    bool is_same = at != NULL && *at != NULL && memcmp((*at)->value, expected, m->value_size) == 0;
    if (is_same)
        memcpy((*at)->value, value, m->value_size);
    unlock(m, s);
    return is_same ? 0 : -EAGAIN;
}

int blitz_map_remove(blitz_map *m, const void *key, size_t key_bytes, void *value)
{
    uint64_t hash = hash_of(m, key, key_bytes);
    struct shard *s = shard_of(m, hash);
    lock(m, s);
    struct node **at = find(m, s, hash, key, key_bytes);
    struct node *n = at != NULL ? *at : NULL;
    if (n != NULL) {
        *at = n->next;
        s->count--; /* I2 */
    }
    unlock(m, s);
    if (n == NULL)
        return -ENOENT;
    if (value == NULL) {
        node_drop(m, n);
        return 0;
    }
    memcpy(value, n->value, m->value_size);
    node_free(m, n);
    return 0;
}

size_t blitz_map_len(blitz_map *m)
{
    size_t len = 0;
    for (size_t i = 0; i < m->shards; i++) {
        lock(m, &m->shard[i]);
        len += m->shard[i].count;
        unlock(m, &m->shard[i]);
    }
    return len;
}

/* ---- all of them ---- */

/* A copy of a shard: the nodes one behind the other, each in a multiple of the alignment. */
static size_t room_for(const struct blitz_map *m, const struct node *n)
{
    size_t align = _Alignof(struct node);
    return (node_bytes(m, n->key_bytes) + align - 1) / align * align;
}

static size_t bytes_of(struct blitz_map *m, struct shard *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->buckets; i++)
        for (struct node *n = s->bucket[i]; n != NULL; n = n->next)
            bytes += room_for(m, n);
    return bytes;
}

static void copy_nodes(struct blitz_map *m, struct shard *s, char *to)
{
    for (size_t i = 0; i < s->buckets; i++)
        for (struct node *n = s->bucket[i]; n != NULL; to += room_for(m, n), n = n->next)
            memcpy(to, n, node_bytes(m, n->key_bytes));
}

/* Copy all nodes of a shard. The memory is allocated without the lock; if the shard has grown meanwhile, again. */
static int copy_shard(struct blitz_map *m, struct shard *s, char **out, size_t *room, size_t *bytes)
{
    *out = NULL;
    *room = 0;
    for (;;) {
        lock(m, s);
        *bytes = bytes_of(m, s);
        bool has_room = *bytes <= *room;
        if (has_room && *bytes > 0)
            copy_nodes(m, s, *out);
        unlock(m, s);
        if (has_room)
            return 0;
        if (*out != NULL)
            bz_free(&m->alloc, *out, *room);
        *room = *bytes + *bytes / 4;
        *out = bz_alloc(&m->alloc, *room, _Alignof(struct node));
        if (*out == NULL)
            return -ENOMEM;
    }
}

int blitz_map_each(blitz_map *m,
                   int (*fn)(const void *key, size_t key_bytes, const void *value, void *arg),
                   void *arg)
{
    int rc = 0;
    for (size_t i = 0; i < m->shards && rc == 0; i++) {
        char *copy;
        size_t room, bytes;
        rc = copy_shard(m, &m->shard[i], &copy, &room, &bytes);
        for (size_t at = 0; rc == 0 && at < bytes;) {
            struct node *n = (struct node *)(void *)(copy + at);
            rc = fn(key_of(m, n), n->key_bytes, n->value, arg);
            at += room_for(m, n);
        }
        if (copy != NULL)
            bz_free(&m->alloc, copy, room);
    }
    return rc;
}
