/*
 * utf8.h - characters of UTF-8, and of Latin-1 as UTF-8.
 */
#ifndef BZ_TERM_UTF8_H
#define BZ_TERM_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the character at the start of these bytes. Return its length, or 0: none, overlong, a surrogate, above 0x10ffff. */
unsigned bz_utf8_get(const char *text, size_t bytes, uint32_t *c);

/* Encode a character into 4 bytes. Return its length, or 0: a surrogate, or above 0x10ffff. */
unsigned bz_utf8_put(char *to, uint32_t c);

/* True if the bytes are UTF-8 of at most `chars_max` characters. */
bool bz_utf8_is(const char *text, size_t bytes, size_t chars_max);

#endif
