/*
 * lines.c - the coherence model: a hash table of lines, and one of sites.
 *
 * Open addressing with linear probing. Keys are never removed, so a probe ends at the first empty
 * slot. The tables belong to the one OS thread that simulates.
 */
#include "scale/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct line {
    uintptr_t key; /* address / LINE_BYTES; 0: unused */
    uint64_t sharers[LINE_SHARER_WORDS];
    uint64_t free_at_ps; /* the end of its last move */
    bool is_owned;       /* by its only sharer */
};

static struct {
    struct line *all;
    size_t room, used; /* room is a power of two */
} table;

#define SITES_ROOM 16384u
static struct line_site sites[SITES_ROOM];

static size_t hash_of(uintptr_t key)
{
    return (size_t)((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static struct line *slot_of(struct line *all, size_t room, uintptr_t key)
{
    size_t i = hash_of(key) & (room - 1);
    while (all[i].key != 0 && all[i].key != key)
        i = (i + 1) & (room - 1);
    return &all[i];
}

static void grow(void)
{
    size_t room = table.room == 0 ? 1u << 16 : table.room * 2;
    struct line *all = calloc(room, sizeof *all);

    BZ_CHECK(all != NULL, "no memory for %zu cache lines", room);
    for (size_t i = 0; i < table.room; i++) {
        if (table.all[i].key != 0)
            *slot_of(all, room, table.all[i].key) = table.all[i];
    }
    free(table.all);
    table.all = all;
    table.room = room;
}

static struct line *find(uintptr_t key)
{
    if (table.used * 2 >= table.room)
        grow();
    struct line *l = slot_of(table.all, table.room, key);
    if (l->key == 0) {
        l->key = key;
        table.used++;
    }
    return l;
}

void lines_reset(void)
{
    free(table.all);
    table.all = NULL;
    table.room = table.used = 0;
    lines_sites_clear();
}

/* ---- one access ------------------------------------------------------------------------------- */

static bool has(const struct line *l, unsigned cpu)
{
    return l->sharers[cpu / 64] >> (cpu % 64) & 1;
}

static unsigned count(const struct line *l)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LINE_SHARER_WORDS; i++)
        n += (unsigned)__builtin_popcountll(l->sharers[i]);
    return n;
}

static void set_sharer(struct line *l, unsigned cpu)
{
    l->sharers[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

static void set_owner(struct line *l, unsigned cpu)
{
    memset(l->sharers, 0, sizeof l->sharers);
    set_sharer(l, cpu);
    l->is_owned = true;
}

static struct line_cost move(struct line *l, uint64_t now, uint64_t price, uint64_t occupies)
{
    uint64_t wait = l->free_at_ps > now ? l->free_at_ps - now : 0;
    l->free_at_ps = now + wait + occupies;
    return (struct line_cost){.price_ps = price, .wait_ps = wait, .is_move = true};
}

static struct line_cost read_line(struct line *l, unsigned cpu, uint64_t now,
                                  const struct line_prices *p)
{
    struct line_cost cost = {.price_ps = p->hit};

    if (has(l, cpu))
        return cost;
    if (count(l) == 0)
        cost.price_ps = p->cold;
    else
        cost = move(l, now, p->move, l->is_owned ? p->move : p->share);
    l->is_owned = count(l) == 0; /* the only copy may be written without asking */
    set_sharer(l, cpu);
    return cost;
}

static struct line_cost write_line(struct line *l, unsigned cpu, uint64_t now,
                                   const struct line_prices *p)
{
    struct line_cost cost = {.price_ps = p->hit};
    unsigned others = count(l) - has(l, cpu);

    if (others > 0) {
        uint64_t price = p->move + p->invalidate * (others - 1);
        cost = move(l, now, price, price);
    } else if (!has(l, cpu)) {
        cost.price_ps = p->cold;
    }
    set_owner(l, cpu);
    return cost;
}

struct line_cost lines_access(uintptr_t key, unsigned cpu, bool is_write, uint64_t now_ps,
                              const struct line_prices *prices)
{
    struct line *l = find(key);
    return is_write ? write_line(l, cpu, now_ps, prices) : read_line(l, cpu, now_ps, prices);
}

/* ---- sites ------------------------------------------------------------------------------------ */

static struct line_site *site_of(uintptr_t pc)
{
    size_t i = hash_of(pc) & (SITES_ROOM - 1);
    for (unsigned tries = 0; sites[i].pc != 0 && sites[i].pc != pc; tries++) {
        BZ_CHECK(tries < SITES_ROOM, "more than %u code addresses move lines", SITES_ROOM);
        i = (i + 1) & (SITES_ROOM - 1);
    }
    sites[i].pc = pc;
    return &sites[i];
}

void lines_site(uintptr_t pc, uintptr_t line, const struct line_cost *cost)
{
    struct line_site *s = site_of(pc);

    s->moves++;
    s->ps += cost->price_ps + cost->wait_ps;
    s->wait_ps += cost->wait_ps;
    if (s->line == line) {
        s->votes++;
        s->here++;
    } else if (s->votes > 0) {
        s->votes--;
    } else {
        s->line = line;
        s->votes = s->here = 1;
    }
}

void lines_sites_clear(void)
{
    memset(sites, 0, sizeof sites);
}

unsigned lines_sites_top(struct line_site *out, unsigned room)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SITES_ROOM; i++) {
        unsigned at = n;
        if (sites[i].pc == 0)
            continue;
        while (at > 0 && out[at - 1].ps < sites[i].ps)
            at--;
        if (at >= room)
            continue;
        n = n < room ? n + 1 : room;
        memmove(&out[at + 1], &out[at], (n - 1 - at) * sizeof *out);
        out[at] = sites[i];
    }
    return n;
}
