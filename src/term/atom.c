/*
 * atom.c - atoms: views of their text, in UTF-8 or Latin-1.
 *
 * A peer may send any number of different atoms, so none is interned. An atom is compared and copied as text. Old peers send Latin-1,
 * which cannot become UTF-8 in place; so a view says which of the two it is, and two views are compared by characters.
 */
#include "blitz/term.h"

#include <string.h>

#include "term/utf8.h"

blitz_term_atom blitz_term_atom_of(const char *text)
{
    size_t bytes = strlen(text);
    /* A text that is too long stays too long, so the writer refuses it. */
    return (blitz_term_atom){text, bytes > UINT16_MAX ? UINT16_MAX : (uint16_t)bytes, false};
}

/* Read the next character. The text of an atom was checked when it was read; a wrong byte of another source stands for itself. */
static uint32_t next_char(blitz_term_atom *a)
{
    uint32_t c;
    unsigned length = a->is_latin1 ? 0 : bz_utf8_get(a->text, a->bytes, &c);
    if (length == 0) {
        c = (unsigned char)a->text[0];
        length = 1;
    }
    a->text += length;
    a->bytes = (uint16_t)(a->bytes - length);
    return c;
}

bool blitz_term_atom_equal(blitz_term_atom a, blitz_term_atom b)
{
    if (a.is_latin1 == b.is_latin1)
        return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.text, b.text, a.bytes) == 0);
    while (a.bytes > 0 && b.bytes > 0)
        if (next_char(&a) != next_char(&b))
            return false;
    return a.bytes == 0 && b.bytes == 0;
}

bool blitz_term_atom_is(blitz_term_atom atom, const char *text)
{
    return blitz_term_atom_equal(atom, blitz_term_atom_of(text));
}

int blitz_term_atom_copy(blitz_term_atom atom, char *buf, size_t cap)
{
    size_t length = 0;
    while (atom.bytes > 0) {
        char utf8[4];
        unsigned n = bz_utf8_put(utf8, next_char(&atom));
        if (n == 0 || cap - length <= n || cap <= length)
            return -ERANGE;
        memcpy(buf + length, utf8, n);
        length += n;
    }
    if (length >= cap)
        return -ERANGE;
    buf[length] = '\0';
    return (int)length;
}
