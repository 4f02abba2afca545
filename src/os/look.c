/*
 * look.c - see look.h.
 *
 * The copy is process_vm_readv(2) on our own process: one call, our code follows no pointer, and an
 * unmapped page only ends the copy. Rejected: a SIGSEGV handler around plain loads (blitz installs
 * none by default, and it would conflict with the program's own). A write into a pipe (two calls,
 * two descriptors, and it may be full). /proc/self/mem (a descriptor, and often not mounted). A
 * sandbox may forbid process_vm_readv; then the dump shows no stacks, and says so.
 *
 * Words that are known to be mapped (of a machine, or of a header with a reference) are loaded
 * here, in a function without sanitizer instrumentation: their owners write them with plain stores,
 * on purpose.
 */
#include "os/look.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/symtab.h"

#if BZ_TSAN
#define UNWATCHED __attribute__((noinline, no_sanitize("thread")))
#else
#define UNWATCHED BZ_NOINLINE
#endif

int bz_look_copy(void *out, const void *from, size_t bytes)
{
    struct iovec to = {.iov_base = out, .iov_len = bytes};
    struct iovec at = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
    ssize_t n = process_vm_readv(getpid(), &to, 1, &at, 1, 0);
    if (n == (ssize_t)bytes)
        return 0;
    return n >= 0 || errno == EFAULT ? -EFAULT : -ENOSYS;
}

UNWATCHED uintptr_t bz_look_word(const void *at)
{
    /* lint: allow raw-atomic: orders nothing, on purpose; one load, as it stands */
    return *(const volatile uintptr_t *)at;
}

UNWATCHED uint32_t bz_look_half(const void *at)
{
    /* lint: allow raw-atomic: orders nothing, on purpose; one load, as it stands */
    return *(const volatile uint32_t *)at;
}

/* ---- text ---- */

size_t bz_look_text(char *out, size_t size, const char *from)
{
    enum { STEP = 16 }; /* one read does not cross a page */
    size_t used = 0;
    out[0] = '\0';
    while (from != NULL && used + 1 < size) {
        char part[STEP];
        size_t room = STEP - ((uintptr_t)from + used) % STEP;
        if (room > size - 1 - used)
            room = size - 1 - used;
        if (bz_look_copy(part, from + used, room) != 0)
            break;
        size_t length = strnlen(part, room);
        for (size_t i = 0; i < length; i++)
            out[used++] = part[i] >= ' ' && part[i] < 0x7f ? part[i] : '?';
        out[used] = '\0';
        if (length < room)
            break;
    }
    return used;
}

/* The last part of a path. */
static const char *file_of(const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path != NULL ? path : "?";
}

/* The file of the program by a name that always works; the loader knows only the name used by the
 * shell. */
static const char *path_of(const Dl_info *info)
{
    uintptr_t base = (uintptr_t)info->dli_fbase, program = (uintptr_t)getauxval(AT_PHDR);
    return program - base < 4096 ? "/proc/self/exe" : info->dli_fname;
}

struct holder {
    uintptr_t pc;
    Dl_info *info;
};

static int holds(struct dl_phdr_info *object, size_t size, void *arg)
{
    struct holder *h = arg;
    uintptr_t lowest = UINTPTR_MAX;
    bool is_in = false;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        uintptr_t start = (uintptr_t)(object->dlpi_addr + p->p_vaddr);
        if (p->p_type != PT_LOAD)
            continue;
        lowest = start < lowest ? start : lowest;
        is_in = is_in || (h->pc >= start && h->pc - start < p->p_memsz);
    }
    if (is_in)
        *h->info = (Dl_info){.dli_fname = object->dlpi_name, .dli_fbase = (void *)lowest};
    return is_in;
}

/* musl's dladdr() finds nothing in a static program. The program headers say at least which object holds the address. */
static bool find_object(uintptr_t pc, Dl_info *info)
{
    struct holder h = {pc, info};
    return dladdr((void *)pc, info) != 0 || dl_iterate_phdr(holds, &h) != 0;
}

bool bz_look_symbol(char *out, size_t size, uintptr_t pc)
{
    Dl_info info;
    out[0] = '\0';
    if (!find_object(pc, &info))
        return false;
    const char *file = file_of(info.dli_fname);
    uintptr_t base = (uintptr_t)info.dli_fbase, from_start;
    char name[128];
    if (info.dli_sname != NULL)
        snprintf(out, size, "%s+0x%lx (%s)", info.dli_sname,
                 (unsigned long)(pc - (uintptr_t)info.dli_saddr), file);
    else if (bz_symtab_find(path_of(&info), base, pc, name, sizeof name, &from_start))
        snprintf(out, size, "%s+0x%lx (%s)", name, (unsigned long)from_start, file);
    else
        snprintf(out, size, "%s+0x%lx", file, (unsigned long)(pc - (uintptr_t)info.dli_fbase));
    return true;
}

int bz_look_say(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        length -= (size_t)n;
    }
    return 0;
}
