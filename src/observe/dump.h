/*
 * dump.h - a runtime as text: the inside of blitz/dump.h.
 */
#ifndef BZ_DUMP_H
#define BZ_DUMP_H

#include <stdint.h>

#include "base/compiler.h"
#include "blitz/dump.h"

struct bz_runtime;

/* blitz_dump_to, for arguments that were checked already. */
BZ_MUST_USE int bz_dump(struct bz_runtime *rt, blitz_dump_fn fn, void *ctx, unsigned flags);

/* Start to answer SIGQUIT with a dump by the monitor, if the config says so; and stop that. */
void bz_dump_watch(struct bz_runtime *rt);
void bz_dump_unwatch(struct bz_runtime *rt);
/* For the monitor: write a dump if SIGQUIT has come. */
void bz_dump_if_asked(struct bz_runtime *rt);

/* Format a time span for people, "2.1 s" or "8.4 ms", in `out` of at least BZ_SPAN_MAX bytes. */
enum { BZ_SPAN_MAX = 24 };
const char *bz_span_text(char out[BZ_SPAN_MAX], uint64_t ns);

#endif
