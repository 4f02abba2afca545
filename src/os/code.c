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
 * The list is made by bz_code_find, because dl_iterate_phdr takes the loader's lock. bz_code_renew makes it again when a
 * library was loaded or unloaded (library.c): it may have brought another one of these along, and memory that is free now may
 * become a library of the program. Objects that the program loads by itself are treated like its own code. An entry that is in use
 * stays as it is. One that is gone has the end 0, and holds no address; then it may be another one's. A reader that sees a part of a change
 * sees no range, or one with a start of before and an end of now. That may spare a thread that could be stopped.
 *
 * Blitz itself is no such code: a thread may be stopped there, if it is in user code (sched/turns.c). But its frames must not be
 * skipped (actor/trap.c), so the list has a second part. If blitz is a shared library, its segment is known. In a program
 * base/text.h marks the borders. The end of the last file is not marked: LAST_FILE is more than the code of any file.
 *
 * [A] find: count release -> may_stop: count acquire   the ranges are filled in
 * [B] renew: end release -> may_stop: end acquire   the start is that of this end, or a later one
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

enum { RANGES = 64, NEAR = 256 << 10, SLACK = 4 << 10, LAST_FILE = 64 << 10 };

struct range {
    uintptr_t start, end;
};

static struct {
    bz_atomic(uintptr_t) start, end;
    bool is_found; /* by this walk; guarded by lock */
} ranges[RANGES];
static bz_atomic(uint32_t) count;          /* entries that were ever in use */
static struct bz_lock lock = BZ_LOCK_INIT; /* guards the writers */

bool bz_code_may_stop(uintptr_t pc)
{
    uint32_t n = bz_load_acquire(&count); /* [A] */
    for (uint32_t i = 0; i < n; i++) {
        uintptr_t end = bz_load_acquire(&ranges[i].end);         /* [B] */
        if (pc < end && bz_load_relaxed(&ranges[i].start) <= pc) /* relaxed: [B] */
            return false;
    }
    return true;
}

/* ---- blitz itself ---- */

enum { OWN_SEGMENTS = 4 };

/* In a shared library: its segments with code. In a program: what the borders enclose. */
static struct range own[OWN_SEGMENTS]; /* written before [A] */
static unsigned own_count;

bool bz_code_is_ours(uintptr_t pc)
{
    if (bz_load_acquire(&count) == 0) /* [A] */
        return false;
    for (unsigned i = 0; i < own_count; i++)
        if (own[i].start <= pc && pc < own[i].end)
            return true;
    return false;
}

static void add_own(uintptr_t start, uintptr_t end)
{
    if (own_count < OWN_SEGMENTS)
        own[own_count++] = (struct range){start, end};
}

#if defined(__x86_64__)

/* The distances of base/text.h, from the entry to the border: of .text and of the cold section in turn. The linker defines the
 * two names. */
extern const int32_t borders_begin[] __asm__("__start_bz_text") BZ_HIDDEN;
extern const int32_t borders_end[] __asm__("__stop_bz_text") BZ_HIDDEN;

static void widen(struct range *r, const int32_t *at)
{
    uintptr_t border = (uintptr_t)at + (uintptr_t)(intptr_t)*at;
    if (border < r->start)
        r->start = border;
    if (border > r->end)
        r->end = border;
}

static void find_borders(void)
{
    struct range usual = {UINTPTR_MAX, 0}, cold = {UINTPTR_MAX, 0};
    for (const int32_t *at = borders_begin; at + 1 < borders_end; at += 2) {
        widen(&usual, at);
        widen(&cold, at + 1);
    }
    add_own(usual.start, usual.end + LAST_FILE);
    add_own(cold.start, cold.end); /* the program's own code may follow at once */
}

#else

static void find_borders(void) {}

#endif

/* ---- the list ---- */

/* The entry of a range; else a free one, or the next that was never used. RANGES: the list is full. Under the lock, as the rest. */
static unsigned place_for(unsigned n, uintptr_t start, uintptr_t end)
{
    unsigned place = n;
    for (unsigned i = 0; i < n; i++) {
        uintptr_t is = bz_load_relaxed(&ranges[i].end);              /* relaxed: the lock */
        if (is == end && bz_load_relaxed(&ranges[i].start) == start) /* relaxed: the lock */
            return i;
        if (is == 0)
            place = i;
    }
    return place;
}

static void add(unsigned *n, uintptr_t start, uintptr_t end)
{
    unsigned i = place_for(*n, start, end);
    if (i == RANGES)
        return;
    bz_store_relaxed(&ranges[i].start, start); /* relaxed: [B] */
    bz_store_release(&ranges[i].end, end);     /* [B] */
    ranges[i].is_found = true;
    *n += i == *n;
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
    bool is_first;   /* this is the first walk */
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
        bool has_us = is_in(start, end, (const void *)(uintptr_t)bz_code_find);
        if (has_us && is_program && s->is_first)
            find_borders();
        else if (has_us && s->is_first)
            add_own(start, end);
        if (is_program)
            add_program(s, start, end, !has_loader(info));
        else if (is_library_name(info->dlpi_name) || is_in(start, end, (const void *)malloc) ||
                 is_in(start, end, (const void *)free))
            add(&s->n, start, end);
    }
    return 0;
}

/* Under the lock. */
static void find_all(void)
{
    struct search s = {.n = bz_load_relaxed(&count), .is_program = true}; /* relaxed: the lock */
    s.is_first = s.n == 0;
    for (unsigned i = 0; i < s.n; i++)
        ranges[i].is_found = false;
    dl_iterate_phdr(visit, &s);
    for (unsigned i = 0; i < s.n; i++)
        if (!ranges[i].is_found)
            bz_store_release(&ranges[i].end, (uintptr_t)0); /* [B] */
    bz_store_release(&count, s.n);                          /* [A] */
}

void bz_code_find(void)
{
    bz_lock_take(&lock, &bz_os_system);
    if (bz_load_relaxed(&count) == 0) /* relaxed: under the lock */
        find_all();
    bz_lock_drop(&lock, &bz_os_system);
}

void bz_code_renew(void)
{
    bz_lock_take(&lock, &bz_os_system);
    /* relaxed: under the lock. Before the first need nothing is to be renewed */
    if (bz_load_relaxed(&count) != 0)
        find_all();
    bz_lock_drop(&lock, &bz_os_system);
}
