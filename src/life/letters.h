/*
 * letters.h - memory for messages, in two sizes, from the slabs of the calling proc.
 *
 * A letter is allocated by its sender and freed by its receiver, often on another proc. The slabs send foreign letters home in
 * batches (base/slab.h). Threads without a proc share slabs under a lock.
 */
#ifndef BZ_LETTERS_H
#define BZ_LETTERS_H

#include <stddef.h>

struct bz_runtime;

enum { BZ_LETTER_SMALL = 64, BZ_LETTER_LARGE = 128 };

/* Allocate a letter of at least `bytes`, at most BZ_LETTER_LARGE. NULL if there is no memory. Any thread. */
void *bz_letter_alloc(struct bz_runtime *rt, size_t bytes);
/* Free a letter of that runtime. Any thread, also when the runtime is gone. */
void bz_letter_free(struct bz_runtime *rt, void *letter);

#endif
