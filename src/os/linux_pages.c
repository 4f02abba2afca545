/*
 * linux_pages.c - slabs of pages, and guards in them.
 *
 * A slab is one anonymous private mapping, MAP_NORESERVE: address space that becomes memory when it
 * is touched. (With vm.overcommit_memory = 2 the kernel ignores NORESERVE and counts slabs in full;
 * then reserving may fail with -ENOMEM.)
 *
 * Guards come in two kinds. LIGHT is MADV_GUARD_INSTALL (Linux 6.13): a marker in the page table,
 * no mapping is split, so a million guarded stacks are 25 VMAs. PROTECT is mprotect(PROT_NONE): it
 * works everywhere, but splits the mapping. Each guard costs two VMAs out of vm.max_map_count
 * (65530 by default), and a process at that limit cannot even mmap. So protect guards are counted,
 * process-wide, and refused when they would exceed three quarters of the limit: the stack layer
 * then uses canaries, and the rest of the program still works.
 *
 * LIGHT is detected by its effect, once: install a guard on a scratch page, let a system call write
 * there, and check for EFAULT. The return value of madvise proves nothing, because qemu-user
 * reports success for every unknown madvise. The writer is clock_gettime(2) (the system call, not
 * the vDSO): it needs no file, and every sandbox allows it. The batched form,
 * process_madvise(PIDFD_SELF), is tested in the same way.
 *
 * I1  slab_guard is all or none: after an error the slab has the guards it had before.
 * I2  protected_guards is the sum of protect_guards over all slabs not yet released.
 */
#include "os/linux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Newer than Debian's headers; the numbers are the kernel's ABI. */
#define ADVICE_GUARD_INSTALL 102
#define ADVICE_GUARD_REMOVE 103
#define THIS_PROCESS_FD (-10000) /* PIDFD_SELF_THREAD_GROUP */
#if !defined(PR_SET_VMA)
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#define GUARD_BATCH 128 /* iovecs on the stack: 2 KiB */

/* ---- features of this kernel
 * ------------------------------------------------------------------ */

enum light_support { LIGHT_UNKNOWN, LIGHT_NONE, LIGHT_ONE_BY_ONE, LIGHT_BATCHED };
static bz_atomic(int) light_known; /* enum light_support; all threads find the same value */
static bz_atomic(uint32_t) protected_guards;   /* I2 */
static bz_atomic(uint32_t) protect_guards_max; /* 0: not read yet */

/* True if this page is a guard: a kernel write to it fails. */
static bool page_refuses_writes(void *page)
{
    return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, page) != 0 && errno == EFAULT;
}

static ssize_t advise_self(const struct iovec *iov, size_t count, int advice)
{
    return syscall(SYS_process_madvise, THIS_PROCESS_FD, iov, count, advice, 0);
}

static enum light_support light_probe_pages(char *pages, size_t page)
{
    struct iovec second = {pages + page, page};

    if (madvise(pages, page, ADVICE_GUARD_INSTALL) != 0 || !page_refuses_writes(pages))
        return LIGHT_NONE;
    if (advise_self(&second, 1, ADVICE_GUARD_INSTALL) < 0 || !page_refuses_writes(pages + page))
        return LIGHT_ONE_BY_ONE;
    return LIGHT_BATCHED;
}

static enum light_support light_support(const struct bz_os *os)
{
    int known = bz_load_relaxed(&light_known); /* relaxed: a constant once found, guards nothing */
    if (known != LIGHT_UNKNOWN)
        return (enum light_support)known;

    size_t page = bz_linux_page_bytes(os);
    void *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return LIGHT_NONE; /* only for this call */
    enum light_support found = light_probe_pages(pages, page);
    munmap(pages, 2 * page);
    bz_store_relaxed(&light_known, (int)found); /* relaxed: as above */
    return found;
}

/* vm.max_map_count, less a quarter, in guards of two VMAs each. */
static uint32_t protect_limit(void)
{
    uint32_t limit = bz_load_relaxed(&protect_guards_max); /* relaxed: a constant once read */
    if (limit != 0)
        return limit;

    char text[32] = {0};
    long maps = 65530;
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) > 0)
            maps = strtol(text, NULL, 10);
        close(fd);
    }
    if (maps < 1024)
        maps = 1024;
    if (maps > INT_MAX)
        maps = INT_MAX;
    limit = (uint32_t)(maps - maps / 4) / 2;
    bz_store_relaxed(&protect_guards_max, limit); /* relaxed: as above */
    return limit;
}

/* ---- slabs ------------------------------------------------------------------------------------ */

size_t bz_linux_page_bytes(const struct bz_os *os)
{
    (void)os;
    return getauxval(AT_PAGESZ);
}

void bz_linux_pages_name(void *start, size_t bytes, const char *name)
{
    if (name != NULL) /* kernels without CONFIG_ANON_VMA_NAME return EINVAL: no name then */
        prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, start, bytes, name);
}

/* Map `bytes` at a multiple of `align` (0 or a power of two). Return NULL on failure. */
static char *map_aligned(size_t bytes, size_t align, size_t page)
{
    size_t slack = align > page ? align - page : 0;

    if (bytes > SIZE_MAX - slack)
        return NULL;
    char *raw = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    size_t before = slack == 0 ? 0 : (size_t)(-(uintptr_t)raw & (align - 1));
    if (before > 0)
        munmap(raw, before);
    if (slack > before)
        munmap(raw + before + bytes, slack - before);
    return raw + before;
}

int bz_linux_slab_reserve(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes,
                          size_t align, enum bz_os_slab_flags flags, const char *name)
{
    size_t page = bz_linux_page_bytes(os);

    if (bytes == 0 || bytes % page != 0 || (align & (align - 1)) != 0)
        return -EINVAL;
    char *base = map_aligned(bytes, align, page);
    if (base == NULL)
        return -ENOMEM;
    if (flags & BZ_OS_SLAB_SMALL_PAGES)
        madvise(base, bytes, MADV_NOHUGEPAGE); /* EINVAL: a kernel without huge pages */
    bz_linux_pages_name(base, bytes, name);
    *slab = (struct bz_os_slab){.base = base, .bytes = bytes};
    return 0;
}

void bz_linux_slab_release(const struct bz_os *os, struct bz_os_slab *slab)
{
    (void)os;
    int err = munmap(slab->base, slab->bytes);
    BZ_CHECK(err == 0, "slab %p of %zu bytes cannot be unmapped: errno %d", (void *)slab->base,
             slab->bytes, errno);
    bz_fetch_sub_relaxed(&protected_guards, slab->protect_guards); /* relaxed: a count, I2 */
    *slab = (struct bz_os_slab){0};
}

int bz_linux_pages_discard(const struct bz_os *os, void *start, size_t bytes)
{
    (void)os;
    return madvise(start, bytes, MADV_DONTNEED) == 0 ? 0 : -errno;
}

/* ---- guards ----------------------------------------------------------------------------------- */

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

static void *guard_at(const struct bz_os_slab *slab, const struct bz_os_guards *g, size_t i)
{
    return slab->base + g->first + i * g->stride;
}

/* Place up to GUARD_BATCH guards, starting with number `from`. Return their number or -errno. */
static long light_place_some(const struct bz_os_slab *slab, const struct bz_os_guards *g,
                             size_t from, bool is_batched)
{
    struct iovec iov[GUARD_BATCH];
    size_t count = 0;

    if (!is_batched)
        return madvise(guard_at(slab, g, from), g->bytes, ADVICE_GUARD_INSTALL) == 0 ? 1 : -errno;
    for (; count < GUARD_BATCH && from + count < g->count; count++)
        iov[count] = (struct iovec){guard_at(slab, g, from + count), g->bytes};
    ssize_t done = advise_self(iov, count, ADVICE_GUARD_INSTALL);
    if (done < 0)
        return -errno;
    /* 0: stopped inside the first guard; the caller fails */
    return (long)((size_t)done / g->bytes);
}

static int light_place(const struct bz_os *os, struct bz_os_slab *slab,
                       const struct bz_os_guards *g)
{
    enum light_support support = light_support(os);
    size_t placed = 0;

    if (support == LIGHT_NONE)
        return -ENOSYS;
    while (placed < g->count) {
        long n = light_place_some(slab, g, placed, support == LIGHT_BATCHED);
        if (n <= 0) {
            /* I1; <=: the last guard may be half placed */
            for (size_t i = 0; i <= placed && i < g->count; i++)
                madvise(guard_at(slab, g, i), g->bytes, ADVICE_GUARD_REMOVE);
            return n == -ENOMEM ? -ENOMEM : -ENOSYS; /* EINVAL: locked memory has no light guards */
        }
        placed += (size_t)n;
    }
    return BZ_OS_GUARD_LIGHT;
}

static int protect_place(struct bz_os_slab *slab, const struct bz_os_guards *g)
{
    uint32_t limit = protect_limit();

    if (g->count > limit)
        return -ENOMEM;
    /* relaxed, here and below: a count that orders nothing, I2 */
    if (bz_fetch_add_relaxed(&protected_guards, (uint32_t)g->count) + g->count > limit) {
        bz_fetch_sub_relaxed(&protected_guards, (uint32_t)g->count); /* relaxed: as above */
        return -ENOMEM;
    }
    for (size_t i = 0; i < g->count; i++) {
        if (mprotect(guard_at(slab, g, i), g->bytes, PROT_NONE) == 0)
            continue;
        int err = -errno;
        while (i-- > 0) /* I1 */
            mprotect(guard_at(slab, g, i), g->bytes, PROT_READ | PROT_WRITE);
        bz_fetch_sub_relaxed(&protected_guards, (uint32_t)g->count); /* relaxed: as above */
        return err == -ENOMEM ? -ENOMEM : -ENOSYS;
    }
    slab->protect_guards += (uint32_t)g->count;
    return BZ_OS_GUARD_PROTECT;
}

int bz_linux_slab_guard(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                        const struct bz_os_guards *where)
{
    if (!guards_fit(slab, where, bz_linux_page_bytes(os)))
        return -EINVAL;
    switch (how) {
    case BZ_OS_GUARD_LIGHT:
        return light_place(os, slab, where);
    case BZ_OS_GUARD_PROTECT:
        return protect_place(slab, where);
    case BZ_OS_GUARD_BEST:
        break;
    default:
        return -EINVAL;
    }
    int placed = light_place(os, slab, where);
    return placed == -ENOSYS ? protect_place(slab, where) : placed;
}
