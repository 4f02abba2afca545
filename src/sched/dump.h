/*
 * dump.h - a runtime as text: the inside of blitz/dump.h.
 */
#ifndef BZ_DUMP_H
#define BZ_DUMP_H

#include <stdint.h>

#include "base/compiler.h"
#include "blitz/dump.h"

struct bz_runtime;

/* blitz_dump_to, with what was asked checked already. */
BZ_MUST_USE int bz_dump(struct bz_runtime *rt, blitz_dump_fn fn, void *ctx, unsigned flags);

/* SIGQUIT is to be answered with a dump, if the config says so, by the monitor; and no longer. */
void bz_dump_watch(struct bz_runtime *rt);
void bz_dump_unwatch(struct bz_runtime *rt);
/* For the monitor: has it come? */
void bz_dump_if_asked(struct bz_runtime *rt);

/* "2.1 s", "8.4 ms": a stretch of time for people, in `out` of at least BZ_SPAN_MAX bytes. */
enum { BZ_SPAN_MAX = 24 };
const char *bz_span_text(char out[BZ_SPAN_MAX], uint64_t ns);

#endif
