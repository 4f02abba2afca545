/*
 * words.h - a list of strings that ends with NULL, as argv and envp do.
 */
#ifndef BZ_PROCESS_WORDS_H
#define BZ_PROCESS_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct bz_words {
    char **at; /* `count` strings and a NULL; NULL if it is empty */
    size_t count, room;
};

/* Append a copy: of `first`, or of the two texts with `between` between them. Returns false if there is no memory. */
bool bz_words_add(struct bz_words *w, const char *first);
bool bz_words_add_pair(struct bz_words *w, const char *first, char between, const char *second,
                       size_t first_bytes);
void bz_words_remove(struct bz_words *w, size_t index);
void bz_words_drop(struct bz_words *w);

#endif
