/*
 * windows_pages.c - slabs of pages, and guards in them.
 *
 * A slab is one allocation, reserved and committed. Committed pages cost no memory before they are touched, but the system
 * promises memory for them: it counts all slabs against its limit (memory and paging file). Not done yet: to commit the pages of a
 * stack as it grows.
 *
 * A LIGHT guard is pages that are reserved and not committed: any access is an access violation, a system call fails, and nothing is
 * counted. Any number of them splits no allocation. A PROTECT guard is committed pages without access.
 *
 * A discard takes the memory away and commits it again, zeroed. Guards are found by asking the system, so that they stay. Rejected:
 * MEM_RESET, which keeps the memory until the system needs it, and may keep the content.
 *
 * Allocations begin at multiples of 64 KiB. A larger alignment is found by reserving more, giving it back, and asking for the
 * aligned part of it. Another thread may take that in between; then we try again.
 */
#include "os/windows.h"

#include <windows.h>

#include <errno.h>

size_t bz_windows_page_bytes(const struct bz_os *os)
{
    static bz_atomic(uint32_t) page;         /* 0: not read yet */
    uint32_t known = bz_load_relaxed(&page); /* relaxed: a constant once read */
    SYSTEM_INFO info;
    (void)os;
    if (BZ_LIKELY(known != 0))
        return known;
    GetSystemInfo(&info);
    bz_store_relaxed(&page, info.dwPageSize); /* relaxed: as above */
    return info.dwPageSize;
}

static char *map(void *at, size_t bytes)
{
    return VirtualAlloc(at, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static char *map_aligned(size_t bytes, size_t align)
{
    enum { GRANULE = 64 << 10, TRIES = 16 };
    if (align <= GRANULE)
        return map(NULL, bytes);
    if (bytes > SIZE_MAX - align)
        return NULL;
    for (int i = 0; i < TRIES; i++) {
        char *raw = VirtualAlloc(NULL, bytes + align, MEM_RESERVE, PAGE_NOACCESS);
        if (raw == NULL)
            return NULL;
        VirtualFree(raw, 0, MEM_RELEASE);
        char *base = map(raw + (-(uintptr_t)raw & (align - 1)), bytes);
        if (base != NULL)
            return base;
    }
    return NULL;
}

int bz_windows_slab_reserve(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes,
                            size_t align, enum bz_os_slab_flags flags, const char *name)
{
    (void)flags; /* there are no huge pages unless a program asks for them */
    (void)name;
    if (bytes == 0 || bytes % bz_windows_page_bytes(os) != 0 || (align & (align - 1)) != 0)
        return -EINVAL;
    char *base = map_aligned(bytes, align);
    if (base == NULL)
        return -ENOMEM;
    *slab = (struct bz_os_slab){.base = base, .bytes = bytes};
    return 0;
}

void bz_windows_slab_release(const struct bz_os *os, struct bz_os_slab *slab)
{
    (void)os;
    BZ_CHECK(VirtualFree(slab->base, 0, MEM_RELEASE),
             "slab %p of %zu bytes cannot be released: error %lu", (void *)slab->base, slab->bytes,
             GetLastError());
    *slab = (struct bz_os_slab){0};
}

static int zero(char *start, size_t bytes)
{
    if (!VirtualFree(start, bytes, MEM_DECOMMIT))
        return -ENOMEM;
    BZ_CHECK(VirtualAlloc(start, bytes, MEM_COMMIT, PAGE_READWRITE) != NULL,
             "%zu bytes were given back to the system, which has no memory for them any more: "
             "error %lu",
             bytes, GetLastError());
    return 0;
}

int bz_windows_pages_discard(const struct bz_os *os, void *start, size_t bytes)
{
    char *at = start, *end = at + bytes;
    size_t page = bz_windows_page_bytes(os);
    MEMORY_BASIC_INFORMATION here;
    if (((uintptr_t)start | bytes) % page != 0)
        return -EINVAL;
    while (at < end) {
        if (VirtualQuery(at, &here, sizeof here) == 0 || here.State == MEM_FREE)
            return -ENOMEM;
        size_t left = (size_t)(end - at);
        size_t part = here.RegionSize - (size_t)(at - (char *)here.BaseAddress);
        if (part > left)
            part = left;
        bool is_guard = here.State != MEM_COMMIT || here.Protect == PAGE_NOACCESS;
        int err = is_guard ? 0 : zero(at, part);
        if (err != 0)
            return err;
        at += part;
    }
    return 0;
}

/* ---- guards ---- */

static bool guards_fit(const struct bz_os_slab *slab, const struct bz_os_guards *g, size_t page)
{
    if ((g->first | g->bytes) % page != 0 || g->bytes == 0 || g->count == 0)
        return false;
    if (g->first > slab->bytes || g->bytes > slab->bytes - g->first)
        return false;
    if (g->count == 1)
        return true;
    if (g->stride % page != 0 || g->stride < g->bytes)
        return false;
    return g->count - 1 <= (slab->bytes - g->first - g->bytes) / g->stride;
}

static bool place(char *at, size_t bytes, enum bz_os_guard how)
{
    DWORD was;
    return how == BZ_OS_GUARD_LIGHT ? VirtualFree(at, bytes, MEM_DECOMMIT) != 0
                                    : VirtualProtect(at, bytes, PAGE_NOACCESS, &was) != 0;
}

/* Readable and writable again. A failure leaves a guard. */
static void remove_guard(char *at, size_t bytes)
{
    DWORD was;
    if (VirtualAlloc(at, bytes, MEM_COMMIT, PAGE_READWRITE) != NULL)
        VirtualProtect(at, bytes, PAGE_READWRITE, &was);
}

int bz_windows_slab_guard(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                          const struct bz_os_guards *where)
{
    if (!guards_fit(slab, where, bz_windows_page_bytes(os)) || how < BZ_OS_GUARD_BEST ||
        how > BZ_OS_GUARD_PROTECT)
        return -EINVAL;
    if (how == BZ_OS_GUARD_BEST)
        how = BZ_OS_GUARD_LIGHT;
    char *at = slab->base + where->first;
    for (size_t i = 0; i < where->count; i++) {
        if (place(at + i * where->stride, where->bytes, how))
            continue;
        while (i-- > 0)
            remove_guard(at + i * where->stride, where->bytes);
        return -ENOMEM;
    }
    if (how == BZ_OS_GUARD_PROTECT)
        slab->protect_guards += (uint32_t)where->count;
    return (int)how;
}
