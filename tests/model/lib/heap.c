/*
 * heap.c - allocations of a model: deterministic, and watched.
 *
 * Blocks are cut from one arena, from its start in every execution, so that addresses repeat. A
 * freed block is not handed out again (settings.reuse_memory: the last freed of that size first,
 * for tests in which reuse is the point); so an access to it can be told for what it is. A free is
 * to a block what a plain write is to a field: every access must happen before it, in any execution
 * order of the search. So no decision is needed to find a use after free. Fresh and freed memory
 * are filled with patterns that make bad pointers.
 */
#include <stdio.h>
#include <string.h>

#include "engine.h"

#define ARENA_SIZE (1 << 18)

static char arena[ARENA_SIZE] __attribute__((aligned(4096)));
static size_t arena_used;

void m_heap_reset(void)
{
    arena_used = 0;
    m.blocks = 0;
}

int16_t m_heap_find(uintptr_t addr)
{
    if (addr - (uintptr_t)arena >= ARENA_SIZE)
        return M_NONE;
    for (int i = m.blocks - 1; i >= 0; i--)
        if (addr - m.block[i].addr < m.block[i].size)
            return (int16_t)i;
    return M_NONE;
}

static struct m_block *block_reused(size_t size)
{
    struct m_block *last = NULL;
    if (!m.set.reuse_memory)
        return NULL;
    for (int i = 0; i < m.blocks; i++) {
        struct m_block *b = &m.block[i];
        if (b->free_event != M_NONE && b->size == size &&
            m_before(&m.event[b->free_event], &m_me()->hb) &&
            (last == NULL || b->free_event > last->free_event))
            last = b;
    }
    return last;
}

static struct m_block *block_new(size_t size, size_t align, struct m_site *at)
{
    size_t start = (arena_used + align - 1) & ~(align - 1);
    if (m.blocks == M_BLOCKS_MAX || start + size > ARENA_SIZE)
        m_fail(M_FAULT_LIMIT, at, "more than %d allocations or %d bytes", M_BLOCKS_MAX, ARENA_SIZE);
    arena_used = start + size;
    struct m_block *b = &m.block[m.blocks++];
    *b = (struct m_block){.addr = (uintptr_t)arena + start, .size = size};
    memset(arena + start, 0xA5, size);
    return b;
}

void *m_alloc_at(size_t size, size_t align, struct m_site *at)
{
    m_step_begin();
    struct m_block *b = block_reused(size);
    if (b == NULL)
        b = block_new(size, align, at);
    struct m_event *e = m_event_new(M_ALLOC, BZ_RELAXED, NULL, at);
    b->alloc_event = (int16_t)(e - m.event);
    b->free_event = M_NONE;
    e->put = b->addr;
    e->got = size;
    m_event_done(e);
    return (void *)b->addr;
}

/* Everything that was done to the block happens before the current event? */
static void check_users(int block, struct m_site *at)
{
    const struct m_thread *t = m_me();
    for (int i = 0; i < m.events - 1; i++) {
        const struct m_event *e = &m.event[i];
        if (e->kind == M_FIRST || e->kind == M_WAKE || e->loc == M_NONE ||
            m.loc[e->loc].block != block || m_before(e, &t->hb))
            continue;
        m.other_event = i;
        m_fail(M_FAULT_USE_AFTER_FREE, at, "freed while thread %d may still use it", e->thread);
    }
}

void m_free_at(void *p, struct m_site *at)
{
    m_step_begin();
    int16_t i = m_heap_find((uintptr_t)p);
    if (i == M_NONE || m.block[i].addr != (uintptr_t)p)
        m_fail(M_FAULT_DOUBLE_FREE, at, "free of what was never allocated");
    struct m_event *e = m_event_new(M_FREE, BZ_RELAXED, NULL, at);
    e->put = (uintptr_t)p;
    m_event_done(e);
    if (m.block[i].free_event != M_NONE) {
        m.other_event = m.block[i].free_event;
        m_fail(M_FAULT_DOUBLE_FREE, at, "freed a second time");
    }
    if (!BZ_BROKEN(25))
        check_users(i, at);
    m.block[i].free_event = (int16_t)(e - m.event);
    memset(p, 0xDD, m.block[i].size);
}

void m_heap_check_access(struct m_loc *x, struct m_site *at)
{
    if (x->block == M_NONE || m.block[x->block].free_event == M_NONE || BZ_BROKEN(25))
        return;
    m.other_event = m.block[x->block].free_event;
    m_fail(M_FAULT_USE_AFTER_FREE, at, "touched after it was freed");
}

void m_heap_check_leaks(void)
{
    for (int i = 0; i < m.blocks && !m.set.leaks_are_fine; i++)
        if (m.block[i].free_event == M_NONE) {
            m.other_event = m.block[i].alloc_event;
            m_fail(M_FAULT_LEAK, m.event[m.block[i].alloc_event].at, "%zu bytes were never freed",
                   m.block[i].size);
        }
}

static void *hook_alloc(void *ctx, size_t size, size_t align)
{
    static struct m_site at = {.file = "allocator", .expr = "alloc"};
    (void)ctx;
    return m_alloc_at(size, align, &at);
}

static void hook_free(void *ctx, void *memory, size_t size)
{
    static struct m_site at = {.file = "allocator", .expr = "free"};
    (void)ctx;
    int16_t i = m_heap_find((uintptr_t)memory);
    if (i != M_NONE && m.block[i].size != size)
        m_fail(M_FAULT_DOUBLE_FREE, &at, "freed as %zu bytes, allocated as %zu", size,
               m.block[i].size);
    m_free_at(memory, &at);
}

const blitz_allocator m_allocator = {hook_alloc, hook_free, NULL};
