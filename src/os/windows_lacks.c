/*
 * windows_lacks.c - what Windows does not have, and what blitz does not have there yet.
 *
 *   forks        there are none, so no process is a forked child
 *   interrupts   a thread is not stopped at any instruction: no preemption without a call (os/interrupt.h)
 *   traps        a fault ends the process; no actor survives it
 *   upgrades     libraries are not loaded for upgrades of actors
 *   Ctrl-Break   no dump is written at it
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "base/check.h"
#include "os/forked.h"
#include "os/interrupt.h"
#include "os/library.h"
#include "os/sigquit.h"

/* ---- forks ---- */

static bz_forked_word never = 1;
bz_atomic(bz_forked_word *) bz_forked_at = &never;

void bz_forked_enter(void) {}

void bz_forked_leave(void) {}

bool bz_forked_confirm(void)
{
    return false;
}

void bz_forked_refuse(const char *call)
{
    (void)call;
}

void bz_forked_abort(void)
{
    BZ_CHECK(false, "a fork on a system without forks");
    __builtin_unreachable();
}

/* ---- interrupts ---- */

bool bz_code_may_stop(uintptr_t pc)
{
    (void)pc;
    return false;
}

bool bz_code_is_ours(uintptr_t pc)
{
    (void)pc;
    return false;
}

void bz_code_find(void) {}

void bz_code_renew(void) {}

/* ---- upgrades ---- */

static int library_open(const char *path, struct bz_image *out, char *text, size_t text_bytes)
{
    (void)path;
    (void)out;
    snprintf(text, text_bytes, "this system has no upgrades");
    return -EOPNOTSUPP;
}

static const void *library_find(const struct bz_image *image, const char *name)
{
    (void)image;
    (void)name;
    return NULL;
}

static void library_close(struct bz_image *image)
{
    (void)image;
}

const struct bz_loader bz_loader_system = {library_open, library_find, library_close};
const struct bz_loader *bz_loader = &bz_loader_system;

void bz_images_watch(const struct bz_image *i, bool is_on)
{
    (void)i;
    (void)is_on;
}

bool bz_images_point(const void *data, size_t bytes)
{
    (void)data;
    (void)bytes;
    return false;
}

/* ---- Ctrl-Break ---- */

int bz_sigquit_watch(void (*fn)(void *ctx), void *ctx)
{
    (void)fn;
    (void)ctx;
    return -EOPNOTSUPP;
}

void bz_sigquit_unwatch(void *ctx)
{
    (void)ctx;
}
