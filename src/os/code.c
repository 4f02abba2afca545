/*
 * code.c - the code in which a thread must not be stopped, because it may hold a lock that other
 * threads need.
 *
 * A thread that is stopped in malloc keeps malloc's lock until it continues. So the handler that
 * stops threads checks the interrupted instruction, and refuses if it is in one of these:
 *
 *   - the C library, the loader, the thread library, the unwinder and the C++ library, the vDSO
 *   - the shared object that has malloc or free, if that is another one: an allocator, a sanitizer
 *   - in a program that malloc is linked into (a static program, or one with its own allocator):
 *     a part of the program. If the C library is linked in, too, it is everything from the
 *     lowest of some C library functions to the end, since linkers put libraries after the
 *     program's own objects. Else it is NEAR bytes on either side of malloc.
 *
 * Shared objects are identified by their file names; the names are those of glibc, musl, gcc and
 * clang.
 *
 * These rules do not cover locks of the program itself. Nor do they cover code of the program that
 * the C library calls while it holds a lock: a stdio cookie, a callback of dl_iterate_phdr, an
 * initializer under pthread_once. sched/turns.c handles those: if a worker is blocked, all stopped
 * hogs run for a while. In a program with its own allocator the last rule is a guess that may be
 * too small; the same mechanism covers it.
 *
 * The list is made once, by bz_code_find, because dl_iterate_phdr takes the loader's lock. Objects
 * that are loaded later are treated like the program's code. Entries are written before `count` and
 * never change.
 *
 * [A] find: count release -> may_stop: count acquire   the ranges are filled in
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "os/lock.h"
#include "os/interrupt.h"

enum { RANGES = 64, NEAR = 256 << 10, SLACK = 4 << 10 };

static struct range {
    uintptr_t start, end;
} ranges[RANGES];
static bz_atomic(uint32_t) count;
static struct bz_lock lock = BZ_LOCK_INIT; /* guards the writers */

bool bz_code_may_stop(uintptr_t pc)
{
    uint32_t n = bz_load_acquire(&count); /* [A] */
    for (uint32_t i = 0; i < n; i++)
        if (ranges[i].start <= pc && pc < ranges[i].end)
            return false;
    return true;
}

/* ---- the list ---- */

static void add(unsigned *n, uintptr_t start, uintptr_t end)
{
    if (*n < RANGES)
        ranges[(*n)++] = (struct range){start, end};
}

/* Addresses of C library functions, as seen by the program. In a dynamic program an address may be
 * a jump in the program itself; then the object of malloc is found by its name. */
static const void *const libc_functions[] = {
    (const void *)malloc,      (const void *)free,           (const void *)calloc,
    (const void *)realloc,     (const void *)vsnprintf,      (const void *)snprintf,
    (const void *)memcpy,      (const void *)memset,         (const void *)strlen,
    (const void *)sigaction,   (const void *)pthread_create, (const void *)pthread_join,
    (const void *)getenv,      (const void *)strtoul,        (const void *)fwrite,
    (const void *)pthread_kill};

static bool is_library_name(const char *path)
{
    static const char *const names[] = {
        "libc.so",     "libc-",       "libc.musl", "ld-",         "ld.so",     "libpthread",
        "libdl.",      "libdl-",      "librt.",    "libgcc_s",    "libstdc++", "libc++",
        "linux-gate",  "libasan",     "libtsan",   "liblsan",     "libubsan",  "libjemalloc",
        "libtcmalloc", "libmimalloc", "libunwind", "libclang_rt", "libhwasan"};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < BZ_ARRAY_LEN(names); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

struct search {
    unsigned n;      /* ranges so far */
    bool is_program; /* the next object is the first one: the program */
};

static bool is_in(uintptr_t start, uintptr_t end, const void *at)
{
    return start <= (uintptr_t)at && (uintptr_t)at < end;
}

/* The lowest address of the functions above in this segment; the end of the segment if there is
 * none. */
static uintptr_t lowest_in(uintptr_t start, uintptr_t end)
{
    uintptr_t lowest = end;
    for (size_t i = 0; i < BZ_ARRAY_LEN(libc_functions); i++)
        if (is_in(start, end, libc_functions[i]) && (uintptr_t)libc_functions[i] < lowest)
            lowest = (uintptr_t)libc_functions[i];
    return lowest;
}

/* True if a function of that name is at the address. False if it is a jump to a function of a library. */
#if defined(__GLIBC__)
static bool is_defined_here(const void *function)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
           info.dli_saddr == function && symbol->st_shndx != SHN_UNDEF;
}
#else
static bool is_defined_here(const void *function)
{
    (void)function;
    return false;
}
#endif

/* Add a segment of the program itself. If the program has no loader, it is static and contains the
 * C library. */
static void add_program(struct search *s, uintptr_t start, uintptr_t end, bool is_static)
{
    uintptr_t lowest = lowest_in(start, end);
    if (is_static && lowest < end) {
        add(&s->n, lowest - start > SLACK ? lowest - SLACK : start, end);
        return;
    }
    uintptr_t at = (uintptr_t)malloc;
    if (is_in(start, end, (const void *)malloc) && is_defined_here((const void *)malloc))
        add(&s->n, at - start > NEAR ? at - NEAR : start, end - at > NEAR ? at + NEAR : end);
}

static bool has_loader(const struct dl_phdr_info *info)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            return true;
    return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    bool is_program = s->is_program;
    (void)size;
    s->is_program = false;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        if (is_program)
            add_program(s, start, end, !has_loader(info));
        else if (is_library_name(info->dlpi_name) || is_in(start, end, (const void *)malloc) ||
                 is_in(start, end, (const void *)free))
            add(&s->n, start, end);
    }
    return 0;
}

void bz_code_find(void)
{
    bz_lock_take(&lock, &bz_os_linux);
    if (bz_load_relaxed(&count) == 0) { /* relaxed: under the lock */
        struct search s = {.is_program = true};
        dl_iterate_phdr(visit, &s);
        bz_store_release(&count, s.n); /* [A] */
    }
    bz_lock_drop(&lock, &bz_os_linux);
}
