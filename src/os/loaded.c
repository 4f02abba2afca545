/*
 * loaded.c - see loaded.h.
 *
 * Our code may be in libblitz.so or in a plugin that was linked with libblitz.a. Either is unmapped
 * when its last user closes it, and a blitz thread that sleeps in it would then return to unmapped
 * code. So while such a thread may exist, we hold a reference: we open the library of our own code
 * once more. Rejected: linking with -z nodelete. That does not help a plugin, and keeps the library
 * loaded even for programs that end all runtimes before they close it.
 *
 * The loader's functions are weak references: a static program has no loader and needs none of
 * this, and its linker would warn about dlopen.
 */
#define _GNU_SOURCE 1
#include "os/loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#pragma weak dlopen
#pragma weak dlclose
#pragma weak dlsym

#if defined(__GLIBC__)
#pragma weak dladdr1

void *bz_loaded_hold(void)
{
    static const char here; /* an address in the library of this code */
    struct link_map *map = NULL;
    Dl_info info;
    if (dlopen == NULL || dlclose == NULL || dladdr1 == NULL)
        return NULL;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return NULL;
    if (map->l_name == NULL || map->l_name[0] == '\0')
        return NULL; /* the main program */
    return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}
#else
/* musl, whose dlclose() unmaps nothing. */
void *bz_loaded_hold(void)
{
    return NULL;
}
#endif

void bz_loaded_release(void *held)
{
    if (held != NULL)
        (void)dlclose(held);
}

/* ---- finding ---- */

struct wanted {
    const char *prefix;
    char path[512]; /* path of the library found; empty: none */
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct wanted *w = arg;
    const char *path = info->dlpi_name, *slash = path != NULL ? strrchr(path, '/') : NULL;
    const char *file = slash != NULL ? slash + 1 : path;
    (void)size;
    if (file == NULL || strncmp(file, w->prefix, strlen(w->prefix)) != 0 ||
        strlen(path) >= sizeof w->path)
        return 0;
    memcpy(w->path, path, strlen(path) + 1);
    return 1;
}

void *bz_loaded_symbol(const char *library, const char *symbol)
{
    struct wanted w = {.prefix = library};
    if (dlopen == NULL || dlsym == NULL || dl_iterate_phdr(look_at, &w) == 0)
        return NULL;
    void *handle = dlopen(w.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    /* the library stays loaded: nothing to close */
    return handle != NULL ? dlsym(handle, symbol) : NULL;
}
