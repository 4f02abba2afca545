/*
 * utf8.c - characters of UTF-8, checked as Erlang checks those of atoms.
 */
#include "term/utf8.h"

unsigned bz_utf8_get(const char *text, size_t bytes, uint32_t *c)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (bytes == 0)
        return 0;
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80) {
        *c = first;
        return 1;
    }
    unsigned length = first >= 0xf8   ? 0
                      : first >= 0xf0 ? 4
                      : first >= 0xe0 ? 3
                      : first >= 0xc0 ? 2
                                      : 0;
    if (length == 0 || length > bytes)
        return 0;
    uint32_t sum = first & (0x7fu >> length);
    for (unsigned i = 1; i < length; i++) {
        unsigned char next = (unsigned char)text[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        sum = sum << 6 | (next & 0x3f);
    }
    if (sum < smallest[length] || sum > 0x10ffff || (sum >= 0xd800 && sum <= 0xdfff))
        return 0;
    *c = sum;
    return length;
}

unsigned bz_utf8_put(char *to, uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    unsigned length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = length - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00u >> length) | c);
    return length;
}

bool bz_utf8_is(const char *text, size_t bytes, size_t chars_max)
{
    size_t chars = 0;
    uint32_t c;
    for (size_t at = 0; at < bytes; chars++) {
        unsigned length = bz_utf8_get(text + at, bytes - at, &c);
        if (length == 0 || chars == chars_max)
            return false;
        at += length;
    }
    return true;
}
