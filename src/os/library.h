/*
 * library.h - load a library of the program's under a name of its own, and unload it: for upgrades of actors.
 *
 * A loader is a table, so that a simulation or a test can put tables of functions in the place of files.
 */
#ifndef BZ_LIBRARY_H
#define BZ_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct bz_image {
    void *handle;
    uintptr_t start, end; /* of its mapping; both 0: nothing is known */
    const char *stays;    /* why it must not be unloaded; NULL: it may be */
};

struct bz_loader {
    /* Load what is in the file now. Returns 0 or -errno, and says why in *text. May block for long, and runs constructors. */
    int (*open)(const char *path, struct bz_image *out, char *text, size_t text_bytes);
    /* The address of an exported name; NULL: there is none. */
    const void *(*find)(const struct bz_image *image, const char *name);
    /* Unload it. Runs destructors. */
    void (*close)(struct bz_image *image);
};

extern const struct bz_loader bz_loader_system;
/* The loader of this process. Tests set it before they load. */
extern const struct bz_loader *bz_loader;

static inline bool bz_image_has(const struct bz_image *i, uintptr_t at)
{
    return at - i->start < i->end - i->start;
}

/*
 * Debug builds: the ranges of libraries that may be unloaded, for a check of payloads. A library that finds no room is not checked.
 */
void bz_images_watch(const struct bz_image *i, bool is_on);
/* True if a word among these bytes is an address in such a library. Any thread. */
bool bz_images_point(const void *data, size_t bytes);

#endif
