/*
 * text.h - the code at which a thread may be stopped: a few ranges of addresses.
 */
#ifndef BZ_TEXT_H
#define BZ_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "os/lock.h"

#if !defined(BZ_TEXT_RANGES)
#define BZ_TEXT_RANGES 64
#endif

/* Zeroed memory is an empty set. */
struct bz_text {
    struct bz_lock lock;         /* of those who change it */
    bz_atomic(uint32_t) version; /* odd: it is being changed */
    struct bz_text_range {
        bz_atomic(uintptr_t) start, end; /* written under the lock; equal: none */
    } range[BZ_TEXT_RANGES];
};

/* Returns: 0, -ENOSPC. */
BZ_MUST_USE int bz_text_add(struct bz_text *t, const struct bz_os *os, uintptr_t start,
                            uintptr_t end);
/* Returns: 0, -ENOENT. */
BZ_MUST_USE int bz_text_remove(struct bz_text *t, const struct bz_os *os, uintptr_t start,
                               uintptr_t end);

/* Is that instruction in one of them? False also if they are being changed. May be called in a signal
 * handler, even one that interrupted a change. */
bool bz_text_has(struct bz_text *t, uintptr_t pc);

#endif
