/*
 * peers.c - the other nodes that nodes of this process know, by number and by name.
 *
 * An id of another node has a number instead of a name. The number is a place in one table for the process, with a count of its uses. Two
 * nodes of one process may know the same name, and each has a peer of its own for it. So a number alone says which of our nodes
 * sends, and an id can be sent to from any thread.
 *
 * A peer stays until its node stops. So an id stays valid over a lost connection, and a view of the name is safe. The table is bounded.
 * A name gets into it by a handshake with the right cookie, or by a call of the program. A pid in a message of a peer does not add
 * one, so a peer cannot fill the table with messages.
 *
 * Rejected: a table for each node, and its number in the id. It needs a table of nodes with the same rules, and a lookup more.
 *
 * I1  A place in the table holds a reference of its peer.
 * I2  No lock is taken under that of the table.
 * I3  A peer holds a reference of its node. So a thread that sends may use both while the node stops.
 */
#include <errno.h>
#include <string.h>

#include "node/node.h"

enum { PLACES = BLITZ_NODE_PEERS_MAX, LIFE_MASK = 0x3fffff };

static struct {
    struct bz_lock lock;
    struct bz_peer *peer[PLACES]; /* guarded by lock, as the rest */
    uint32_t life[PLACES];
} table = {.lock = BZ_LOCK_INIT};

static uint32_t hash_of(const char *name, size_t bytes)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

static void lock_table(void)
{
    bz_lock_take(&table.lock, bz_os_here());
}

static void unlock_table(void)
{
    bz_lock_drop(&table.lock, bz_os_here());
}

struct bz_peer *bz_peer_find(uint32_t number)
{
    uint32_t place = number % PLACES;
    lock_table();
    struct bz_peer *p = table.peer[place];
    if (p != NULL && p->number == number)
        p->refs++;
    else
        p = NULL;
    unlock_table();
    return p;
}

struct bz_peer *bz_peer_ref(struct bz_peer *p)
{
    lock_table();
    p->refs++;
    unlock_table();
    return p;
}

void bz_peer_unref(struct bz_peer *p)
{
    if (p == NULL)
        return;
    lock_table();
    bool is_last = --p->refs == 0;
    unlock_table();
    if (!is_last)
        return;
    blitz_node *n = p->node;
    bz_free(&n->alloc, p, sizeof *p);
    bz_node_unref(n);
}

void bz_node_ref(blitz_node *n)
{
    lock_table();
    n->refs++;
    unlock_table();
}

void bz_node_unref(blitz_node *n)
{
    lock_table();
    bool is_last = --n->refs == 0;
    unlock_table();
    if (!is_last)
        return;
    blitz_allocator from = n->alloc;
    bz_free(&from, n->copies, n->copies_bytes);
    bz_free(&from, n, sizeof *n);
}

bool bz_node_enter(blitz_node *n)
{
    bz_lock_take(&n->lock, bz_os_here());
    bool may = !n->is_stopping;
    n->running += may;
    bz_lock_drop(&n->lock, bz_os_here());
    return may;
}

void bz_node_leave(blitz_node *n)
{
    bz_lock_take(&n->lock, bz_os_here());
    bool is_last = --n->running == 0 && n->is_stopping;
    bz_lock_drop(&n->lock, bz_os_here());
    if (is_last)
        blitz_event_set(&n->idle);
}

bool bz_node_allows(const blitz_node *n, const char *name)
{
    if (n->opts.allowed == NULL)
        return true;
    for (size_t i = 0; i < n->opts.allowed_count; i++)
        if (strcmp(n->opts.allowed[i], name) == 0)
            return true;
    return false;
}

/* Under the lock. NULL: there is none; *empty is an empty place, PLACES: none. */
static struct bz_peer *look_up(const blitz_node *n, const char *name, size_t bytes, uint32_t hash,
                               uint32_t *empty)
{
    *empty = PLACES;
    for (uint32_t i = PLACES; i-- > 0;) {
        struct bz_peer *p = table.peer[i];
        if (p == NULL)
            *empty = i;
        else if (p->hash == hash && p->node == n && p->bytes == bytes &&
                 memcmp(p->name, name, bytes) == 0)
            return p;
    }
    return NULL;
}

static struct bz_peer *peer_new(blitz_node *n, const char *name, size_t bytes, uint32_t hash)
{
    struct bz_peer *p = bz_alloc(&n->alloc, sizeof *p, _Alignof(struct bz_peer));
    if (p == NULL)
        return NULL;
    *p = (struct bz_peer){.node = n, .hash = hash, .bytes = (uint16_t)bytes, .refs = 2}; /* I1 */
    memcpy(p->name, name, bytes);
    bz_lock_init_ranked(&p->lock, BZ_RANK_WAIT);
    bz_list_init(&p->waiters);
    bz_list_init(&p->calls);
    for (unsigned i = 0; i < BZ_ANSWER_LISTS; i++)
        bz_list_init(&p->answers[i]);
    blitz_notify_init(&p->work);
    bz_list_init(&p->changes);
    return p;
}

int bz_peer_get(blitz_node *n, const char *name, size_t bytes, bool makes, struct bz_peer **out)
{
    uint32_t hash = hash_of(name, bytes), empty;
    struct bz_peer *fresh = makes ? peer_new(n, name, bytes, hash) : NULL;
    lock_table();
    struct bz_peer *p = look_up(n, name, bytes, hash, &empty);
    if (p != NULL) {
        p->refs++;
    } else if (fresh != NULL && empty < PLACES) {
        table.life[empty] = (table.life[empty] + 1) & LIFE_MASK;
        table.life[empty] += table.life[empty] == 0; /* the number 0 is this process */
        p = fresh;
        n->refs++; /* I3 */
        p->number = table.life[empty] * PLACES + empty;
        table.peer[empty] = p;
        fresh = NULL;
    }
    unlock_table();
    bool is_full = fresh != NULL;
    bz_free(&n->alloc, fresh, sizeof *fresh);
    if (p == NULL)
        return !makes ? -ESRCH : is_full ? -ENFILE : -ENOMEM;
    *out = p;
    return 0;
}

struct bz_peer *bz_peer_take(const blitz_node *n, uint32_t *at)
{
    struct bz_peer *p = NULL;
    lock_table();
    for (; *at < PLACES && p == NULL; (*at)++)
        if (table.peer[*at] != NULL && table.peer[*at]->node == n) {
            p = table.peer[*at];
            table.peer[*at] = NULL;
        }
    unlock_table();
    return p;
}

uint32_t bz_peers_count(blitz_node *n, uint32_t *up)
{
    uint32_t count = 0;
    *up = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        lock_table();
        struct bz_peer *p = table.peer[i];
        bool is_ours = p != NULL && p->node == n;
        if (is_ours)
            p->refs++;
        unlock_table();
        if (!is_ours)
            continue;
        bz_peer_lock(p);
        *up += p->state == BZ_PEER_UP;
        bz_peer_unlock(p);
        count++;
        bz_peer_unref(p);
    }
    return count;
}
