/*
 * library.c - see library.h.
 *
 * The loader knows a library by its name, and by device and inode. A path that was loaded before gives the library that is in
 * memory, whatever the file has become since. So each load copies the file to a temporary one with a name that did not exist, loads
 * that, and removes the name. The inode stays in use while it is mapped, so a later copy cannot have the same. The program may replace
 * its file at any time: a file that is overwritten while it is mapped would crash the process.
 *
 * Rejected: memfd_create() and /proc/self/fd/N. The number N is used again after a close, and the loader finds the earlier library
 * by that name; a descriptor that stays open for each library would be needed. Systems may forbid to execute such files, too. The
 * same is true of a /tmp without exec: TMPDIR names another place. Rejected: dlmopen(), whose name spaces are few, and have a C
 * library of their own.
 *
 * Some libraries must stay. These are recognised, and such a library is never unloaded:
 *  - it has thread-local variables: their memory, and destructors of C++, belong to threads that live on
 *  - it calls pthread_create, thrd_create, pthread_key_create, tss_create, pthread_atfork, atexit or signal functions: a thread, a
 *    destructor or a handler may be called after the end. The names are those of its relocations
 *
 * The loader's functions are weak references, as in loaded.c: a static program cannot load.
 *
 * [W] watch: end, start, end release -> point: end, start, end acquire   a start between two equal ends belongs to them
 */
#define _GNU_SOURCE 1
#include "os/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "os/interrupt.h"
#include "os/os.h"

#pragma weak dlopen
#pragma weak dlclose
#pragma weak dlsym
#pragma weak dlerror
#pragma weak dlinfo

/* ---- a copy with a name of its own ---- */

static int copy_all(int from, int to)
{
    char buffer[16 * 1024];
    for (;;) {
        ssize_t n = read(from, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (ssize_t done = 0; done < n;) {
            ssize_t w = write(to, buffer + done, (size_t)(n - done));
            if (w < 0 && errno != EINTR)
                return -errno;
            done += w > 0 ? w : 0;
        }
    }
}

/* Copy the file to a new one. On 0 `name` is its path, to be removed by the caller. */
static int copy_file(const char *path, char *name, size_t name_bytes)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent setenv cannot be prevented */
    const char *dir = getenv("TMPDIR");
    int length =
        snprintf(name, name_bytes, "%s/blitz-XXXXXX", dir != NULL && dir[0] == '/' ? dir : "/tmp");
    if (length < 0 || (size_t)length >= name_bytes)
        return -ENAMETOOLONG;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return -errno;
    int err = 0, to = mkostemp(name, O_CLOEXEC);
    if (to < 0)
        err = -errno;
    else if ((err = copy_all(from, to)) != 0)
        (void)unlink(name);
    if (to >= 0 && close(to) != 0 && err == 0) {
        err = -errno;
        (void)unlink(name);
    }
    (void)close(from);
    return err;
}

/* ---- looking at a library ---- */

/* Names whose use means that something may call the library after its last actor has left. */
static bool keeps_code(const char *name)
{
    static const char *const names[] = {"pthread_create",
                                        "thrd_create",
                                        "pthread_key_create",
                                        "tss_create",
                                        "pthread_atfork",
                                        "atexit",
                                        "at_quick_exit",
                                        "__cxa_thread_atexit_impl",
                                        "signal",
                                        "sigaction",
                                        "on_exit",
                                        "timer_create"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The dynamic section of a library, as the loader has left it: its addresses are absolute, or relative to the base. */
struct dynamic {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * rela, *jumps;
    size_t rela_bytes, jump_bytes;
};

static uintptr_t absolute(const struct dynamic *d, uintptr_t at)
{
    return at < d->base ? d->base + at : at;
}

static void read_dynamic(struct dynamic *d, const ElfW(Dyn) * at)
{
    for (; at->d_tag != DT_NULL; at++) {
        uintptr_t where = absolute(d, at->d_un.d_ptr);
        switch (at->d_tag) {
        case DT_SYMTAB:
            d->symbols = (const ElfW(Sym) *)where;
            break;
        case DT_STRTAB:
            d->strings = (const char *)where;
            break;
        case DT_RELA:
            d->rela = (const ElfW(Rela) *)where;
            break;
        case DT_JMPREL:
            d->jumps = (const ElfW(Rela) *)where;
            break;
        case DT_RELASZ:
            d->rela_bytes = at->d_un.d_val;
            break;
        case DT_PLTRELSZ:
            d->jump_bytes = at->d_un.d_val;
            break;
        default:
            break;
        }
    }
}

static bool calls_keeper(const struct dynamic *d, const ElfW(Rela) * r, size_t bytes)
{
    for (size_t i = 0; r != NULL && i < bytes / sizeof *r; i++) {
        size_t symbol = sizeof(void *) == 8 ? r[i].r_info >> 32 : r[i].r_info >> 8;
        if (symbol != 0 && keeps_code(d->strings + d->symbols[symbol].st_name))
            return true;
    }
    return false;
}

struct look {
    struct bz_image *image;
    struct link_map *map;
};

static void look_at_segments(const struct dl_phdr_info *info, struct bz_image *out)
{
    out->start = UINTPTR_MAX;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *s = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + s->p_vaddr;
        if (s->p_type == PT_TLS && s->p_memsz > 0)
            out->stays = "it has thread-local variables";
        if (s->p_type != PT_LOAD)
            continue;
        out->start = start < out->start ? start : out->start;
        out->end = start + s->p_memsz > out->end ? start + s->p_memsz : out->end;
    }
}

static int look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct look *l = ctx;
    (void)size;
    if (info->dlpi_addr != l->map->l_addr || strcmp(info->dlpi_name, l->map->l_name) != 0)
        return 0;
    look_at_segments(info, l->image);
    struct dynamic d = {.base = info->dlpi_addr};
    read_dynamic(&d, l->map->l_ld);
    if (d.symbols != NULL && d.strings != NULL &&
        (calls_keeper(&d, d.jumps, d.jump_bytes) || calls_keeper(&d, d.rela, d.rela_bytes)))
        l->image->stays = "it starts threads, or leaves functions to be called later";
    return 1;
}

static void look(struct bz_image *i)
{
    struct look l = {.image = i};
    i->stays = NULL;
    i->start = i->end = 0;
    if (dlinfo == NULL || dlinfo(i->handle, RTLD_DI_LINKMAP, &l.map) != 0 ||
        dl_iterate_phdr(look_at, &l) == 0) {
        i->start = i->end = 0;
        i->stays = "its place in memory is not known";
    }
}

/* ---- the loader of the system ---- */

static int system_open(const char *path, struct bz_image *out, char *text, size_t text_bytes)
{
    char name[256];
    if (dlopen == NULL || dlclose == NULL || dlsym == NULL || dlerror == NULL) {
        snprintf(text, text_bytes, "this program has no loader");
        return -EOPNOTSUPP;
    }
    int err = copy_file(path, name, sizeof name);
    if (err != 0) {
        snprintf(text, text_bytes, "%s cannot be copied: error %d", path, -err);
        return err;
    }
    out->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (out->handle == NULL)
        snprintf(text, text_bytes, "%s",
                 dlerror()); /* NOLINT(concurrency-mt-unsafe): it is per thread */
    (void)unlink(name);
    if (out->handle == NULL)
        return -ENOEXEC;
    look(out);
    bz_code_renew();
    return 0;
}

static const void *system_find(const struct bz_image *image, const char *name)
{
    return dlsym(image->handle, name);
}

static void system_close(struct bz_image *image)
{
    (void)dlclose(image->handle);
    bz_code_renew();
}

const struct bz_loader bz_loader_system = {system_open, system_find, system_close};
const struct bz_loader *bz_loader = &bz_loader_system;

/* ---- payloads ---- */

enum { WATCHED = 32, CLAIMED = 1 };

static struct {
    bz_atomic(uintptr_t) start;
    bz_atomic(uintptr_t) end; /* 0: free. CLAIMED: its start is being written */
} watched[WATCHED];

void bz_images_watch(const struct bz_image *i, bool is_on)
{
    for (unsigned k = 0; k < WATCHED && i->end != 0; k++) {
        uintptr_t is = is_on ? 0 : i->end;
        /* acq_rel: [W] with the reader, and behind the change that has freed the entry */
        if (!bz_cas_strong_acqrel_acq(&watched[k].end, &is, (uintptr_t)(is_on ? CLAIMED : 0)))
            continue;
        if (is_on) {
            bz_store_release(&watched[k].start, i->start); /* [W] */
            bz_store_release(&watched[k].end, i->end);     /* [W] */
        }
        return;
    }
}

/* The entry may change meanwhile. Then its end is another one, before the start is read or after it. */
static bool is_watched(uintptr_t at)
{
    for (unsigned k = 0; k < WATCHED; k++) {
        uintptr_t end = bz_load_acquire(&watched[k].end);                             /* [W] */
        if (at < end && end != CLAIMED && at >= bz_load_acquire(&watched[k].start) && /* [W] */
            bz_load_relaxed(&watched[k].end) == end) /* relaxed: behind the start, [W] */
            return true;
    }
    return false;
}

bool bz_images_point(const void *data, size_t bytes)
{
    const char *at = data;
    for (size_t i = 0; i + sizeof(uintptr_t) <= bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, at + i, sizeof word);
        if (is_watched(word))
            return true;
    }
    return false;
}
