/*
 * blitz/term.h - Erlang terms: encode and decode the external term format.
 *
 * A writer encodes terms into a buffer of the caller. A reader walks an encoded term where it lies. Neither allocates memory.
 *
 *     unsigned char buf[256];
 *     blitz_term_out out;
 *     blitz_term_out_init(&out, buf, sizeof buf);
 *     blitz_term_put_version(&out);
 *     blitz_term_put_tuple(&out, 2);              // {add, 42}
 *     blitz_term_put_atom(&out, "add");
 *     blitz_term_put_int(&out, 42);
 *     size_t bytes;
 *     int rc = blitz_term_out_end(&out, &bytes);  // -ENOSPC: bytes is the size that it needs
 *
 *     blitz_term term;
 *     rc = blitz_term_check(buf, bytes, NULL, &term, NULL);   // the whole term is well-formed
 *     blitz_term_in in = blitz_term_in_of(term);
 *     uint32_t arity;
 *     int64_t n;
 *     if (rc == 0 && (rc = blitz_term_get_tuple(&in, &arity)) == 0 && arity == 2 &&
 *         (rc = blitz_term_get_this_atom(&in, "add")) == 0 && (rc = blitz_term_get_int(&in, &n)) == 0)
 *         ...
 *
 * Every read checks each length before it uses it, also without blitz_term_check(). No function recurses. Atoms are not interned: an
 * atom is a view of its text. blitz/term_struct.h maps payload structs to terms and back. docs/terms.md is the guide.
 *
 * Refused: compressed terms, references to an atom cache, terms local to a node, floats as text, and floats that are not finite.
 *
 * Errors, the same everywhere:
 *   -EPROTO  these bytes are no term: an unknown tag, a length beyond the end, an atom that is no UTF-8, ...
 *   -EINVAL  a term, and of another kind than asked for
 *   -ERANGE  of that kind, and too large for the variable
 *   -E2BIG   deeper or larger than the limits
 *   -ENOSPC  the buffer is too small
 */
#ifndef BLITZ_TERM_H
#define BLITZ_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/piece.h"

BLITZ_BEGIN_DECLS

enum {
    BLITZ_TERM_VERSION = 131,       /* the byte before a term */
    BLITZ_TERM_DEPTH_MAX = 256,     /* the deepest term that is read */
    BLITZ_TERM_ATOM_CHARS_MAX = 255 /* of an atom */
};

/* ---- values ---- */

/* An encoded term, without the version byte. A view: it is valid as long as the bytes are. */
typedef struct blitz_term {
    const unsigned char *data;
    size_t bytes;
} blitz_term;

/* An atom. A view of its text, which has no zero at the end. */
typedef struct blitz_term_atom {
    const char *text;
    uint16_t bytes;
    bool is_latin1; /* else UTF-8. Old peers send it */
} blitz_term_atom;

typedef struct blitz_term_pid {
    blitz_term_atom node;
    uint32_t id, serial, creation;
} blitz_term_pid;

typedef struct blitz_term_ref {
    blitz_term_atom node;
    uint32_t creation;
    uint32_t words; /* 1 to 5 */
    uint32_t id[5]; /* those above `words` are 0 */
} blitz_term_ref;

typedef struct blitz_term_port {
    blitz_term_atom node;
    uint64_t id;
    uint32_t creation;
} blitz_term_port;

/* fun Module:Function/Arity */
typedef struct blitz_term_export {
    blitz_term_atom module, function;
    uint8_t arity;
} blitz_term_export;

/* An integer of any size. */
typedef struct blitz_term_big {
    const unsigned char *digits; /* of the magnitude, base 256, the lowest first; a view */
    uint32_t bytes;              /* the highest digit is not 0 */
    bool is_negative;
} blitz_term_big;

/* Some bits. */
typedef struct blitz_term_bits {
    const unsigned char *data; /* a view */
    uint64_t
        bits; /* the last byte holds bits % 8 of them, in its high bits; its others mean nothing */
} blitz_term_bits;

typedef enum blitz_term_kind {
    BLITZ_TERM_IS_INT, /* fits an int64_t */
    BLITZ_TERM_IS_BIG, /* an integer that does not */
    BLITZ_TERM_IS_FLOAT,
    BLITZ_TERM_IS_ATOM,
    BLITZ_TERM_IS_TUPLE,  /* `count` terms follow */
    BLITZ_TERM_IS_NIL,    /* [] */
    BLITZ_TERM_IS_LIST,   /* `count` terms follow, and one more: the tail, usually [] */
    BLITZ_TERM_IS_STRING, /* a proper list of bytes, in `binary` */
    BLITZ_TERM_IS_MAP,    /* 2 * `count` terms follow: key, value, key, value, ... */
    BLITZ_TERM_IS_BINARY,
    BLITZ_TERM_IS_BITS, /* a bit string that is no binary */
    BLITZ_TERM_IS_PID,
    BLITZ_TERM_IS_REF,
    BLITZ_TERM_IS_PORT,
    BLITZ_TERM_IS_EXPORT, /* fun m:f/1 */
    BLITZ_TERM_IS_FUN     /* any other fun: pass it on with blitz_term_put_term() */
} blitz_term_kind;

/* An item that blitz_term_next() has read. */
typedef struct blitz_term_item {
    blitz_term_kind kind;
    blitz_term
        whole; /* its bytes; of a tuple, a list and a map: its head without the terms that follow */
    union {
        int64_t integer;
        double number;
        uint32_t count; /* TUPLE, LIST, MAP */
        blitz_term_big big;
        blitz_term_atom atom;
        blitz_term binary; /* BINARY, STRING: the bytes themselves */
        blitz_term_bits bits;
        blitz_term_pid pid;
        blitz_term_ref ref;
        blitz_term_port port;
        blitz_term_export fun;
    } as;
} blitz_term_item;

/* ---- writing ---- */

/* A writer. The fields are not yours, but for reading `piece_count` and `total`. */
typedef struct blitz_term_out {
    unsigned char *data;
    size_t cap;
    size_t bytes;  /* of the buffer: used, or needed if that is more than cap */
    size_t total;  /* with the binaries that lie elsewhere */
    uint64_t owed; /* terms that are still to come */
    int state;
    int error;           /* the first */
    blitz_piece *pieces; /* NULL: all is copied */
    uint32_t piece_count;
    uint32_t piece_max;
    size_t borrow_min;
    size_t piece_from; /* where the buffer's part of the next piece begins */
} blitz_term_out;

/*
 * Begin to write. buf NULL and cap 0: count only.
 *
 * Errors stick: put what you like, and ask blitz_term_out_end() once. When the buffer is full, the writer goes on counting.
 * Owns:     borrows the buffer until the last use of *out.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_out_init(blitz_term_out *out, void *buf, size_t cap);

/*
 * Begin to write, for a call that writes several pieces (blitz/piece.h). Binaries of at least borrow_min bytes are not copied: a
 * piece refers to them. When no piece is left, binaries are copied into the buffer. At most 2 * borrowed + 1 pieces are used, and
 * at least 3 are needed to borrow one. The first `piece_count` pieces are valid once blitz_term_out_end() has returned 0.
 * Owns:     borrows the buffer and the pieces until the last use of *out, and each borrowed binary until the pieces are written.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_out_pieces(blitz_term_out *out, void *buf, size_t cap,
                                     blitz_piece *pieces, uint32_t piece_max, size_t borrow_min);

/*
 * End the writing.
 * Owns:     borrows the arguments until return. *bytes, unless NULL, is the size in the buffer, also on -ENOSPC.
 * Suspends: never. Call from anywhere.
 * Returns:  0; -ENOSPC (*bytes are needed; also if the buffer was NULL); -EINVAL (a term lacks parts, or there is none; a second term
 *           without a version byte; an atom that is no UTF-8 or longer than 255 characters; a float that is not finite; a
 *           reference without words); -E2BIG (a term with a size of 2^32 or more).
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_out_end(blitz_term_out *out, size_t *bytes);

/*
 * Put the version byte, which begins a term. Each term after the first must begin with it, too.
 * Put bytes that belong to no term, between terms: the head of a frame.
 * Owns:     copies the bytes.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_version(blitz_term_out *out);
BLITZ_API void blitz_term_put_bytes(blitz_term_out *out, const void *data, size_t bytes);

/*
 * Put an integer. _big: of any size; leading zeros of the magnitude are skipped.
 * Owns:     copies the digits.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_int(blitz_term_out *out, int64_t value);
BLITZ_API void blitz_term_put_uint(blitz_term_out *out, uint64_t value);
BLITZ_API void blitz_term_put_big(blitz_term_out *out, blitz_term_big value);

/*
 * Put a float, which must be finite.
 * Owns:     borrows *out until return.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_double(blitz_term_out *out, double value);

/*
 * Put an atom: a C string in UTF-8; so many bytes of UTF-8; one that was read; true or false.
 * Owns:     copies the text.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_atom(blitz_term_out *out, const char *text);
BLITZ_API void blitz_term_put_atom_n(blitz_term_out *out, const char *text, size_t bytes);
BLITZ_API void blitz_term_put_atom_view(blitz_term_out *out, blitz_term_atom atom);
BLITZ_API void blitz_term_put_bool(blitz_term_out *out, bool value);

/*
 * Begin a tuple, a list, a map. Its terms are put next: of a list, `count` elements and then the tail, usually
 * blitz_term_put_nil(); of a map, `count` times a key and its value. A list of 0 elements is [], and has no tail.
 * Owns:     borrows *out until return.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_tuple(blitz_term_out *out, uint32_t arity);
BLITZ_API void blitz_term_put_list(blitz_term_out *out, uint32_t count);
BLITZ_API void blitz_term_put_nil(blitz_term_out *out);
BLITZ_API void blitz_term_put_map(blitz_term_out *out, uint32_t count);

/*
 * Put a list of bytes, as Erlang's "text" is one; a binary; a bit string.
 * Owns:     copies the bytes; a large binary or bit string is borrowed, after blitz_term_out_pieces().
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_string(blitz_term_out *out, const void *data, size_t bytes);
BLITZ_API void blitz_term_put_binary(blitz_term_out *out, const void *data, size_t bytes);
BLITZ_API void blitz_term_put_bits(blitz_term_out *out, blitz_term_bits bits);

/*
 * Put a pid, a reference, a port, a fun of a module.
 * Owns:     copies the value and the atoms.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_pid(blitz_term_out *out, const blitz_term_pid *pid);
BLITZ_API void blitz_term_put_ref(blitz_term_out *out, const blitz_term_ref *ref);
BLITZ_API void blitz_term_put_port(blitz_term_out *out, const blitz_term_port *port);
BLITZ_API void blitz_term_put_export(blitz_term_out *out, const blitz_term_export *fun);

/*
 * Put a term that is encoded already. The writer does not look at it: it must be one whole term.
 * Owns:     copies the bytes; if they are at least borrow_min, they are borrowed as a binary is.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_term_put_term(blitz_term_out *out, blitz_term term);

/* ---- reading ---- */

/* The limits of a term of a peer. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_term_limits {
    size_t bytes; /* of a term; 0: 2^32 - 1, which is also the most */
    uint32_t
        depth; /* of terms inside others; 0: 256, which is also the most. The tail of a list is as deep as the list */
} blitz_term_limits;

/* A reader: a position in bytes. Copy it to read the same terms again. The fields are not yours. */
typedef struct blitz_term_in {
    const unsigned char *at, *end;
} blitz_term_in;

/*
 * Check a term with its version byte, in all its parts. Bytes may follow it.
 * Owns:     borrows the bytes until return. *term, unless NULL, is a view of the term without the version byte. *used, unless
 *           NULL, is the size with it.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EPROTO, -E2BIG. *term and *used are written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_check(const void *data, size_t bytes,
                                              const blitz_term_limits *limits, blitz_term *term,
                                              size_t *used);

/*
 * Begin to read these bytes, one term or several one after another, each without a version byte.
 * Owns:     borrows the bytes while the reader and what it has read are in use.
 * Suspends: never. Call from anywhere.
 * Returns:  the reader. _at_end: true if all is read.
 */
BLITZ_API blitz_term_in blitz_term_in_of(blitz_term bytes);
BLITZ_API bool blitz_term_at_end(const blitz_term_in *in);

/*
 * Read the next term, or the head of a tuple, a list or a map. _peek does not move on.
 * Owns:     *item holds views of the bytes.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EPROTO (also at the end), -E2BIG (a fun that is too deep). On an error nothing is read.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_next(blitz_term_in *in, blitz_term_item *item);
BLITZ_API BLITZ_MUST_USE int blitz_term_peek(const blitz_term_in *in, blitz_term_item *item);

/*
 * Skip the next term with all its parts. _take stores a view of it.
 * Owns:     *term is a view of the bytes.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EPROTO, -E2BIG (too deep). On an error nothing is read.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_skip(blitz_term_in *in);
BLITZ_API BLITZ_MUST_USE int blitz_term_take(blitz_term_in *in, blitz_term *term);

/*
 * Read a value of a kind.
 *
 *   _uint                0 to 2^64 - 1
 *   _double              a float, or an integer that a double holds exactly
 *   _bool                the atom true or false
 *   _tuple, _list, _map  the head; blitz_term_kind says which terms follow
 *   _list                *count is 0 for [], which has no tail. A STRING is another kind: see blitz_term_get_elements()
 *   _bits                a bit string, or a binary
 *
 * Owns:     views of the bytes are stored.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EPROTO, -EINVAL (another kind), -ERANGE, -E2BIG (a fun that is too deep). On an error nothing is read or stored.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_get_int(blitz_term_in *in, int64_t *value);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_uint(blitz_term_in *in, uint64_t *value);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_double(blitz_term_in *in, double *value);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_bool(blitz_term_in *in, bool *value);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_atom(blitz_term_in *in, blitz_term_atom *atom);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_tuple(blitz_term_in *in, uint32_t *arity);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_list(blitz_term_in *in, uint32_t *count);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_nil(blitz_term_in *in);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_map(blitz_term_in *in, uint32_t *count);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_binary(blitz_term_in *in, blitz_term *bytes);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_bits(blitz_term_in *in, blitz_term_bits *bits);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_pid(blitz_term_in *in, blitz_term_pid *pid);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_ref(blitz_term_in *in, blitz_term_ref *ref);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_port(blitz_term_in *in, blitz_term_port *port);

/*
 * Read one certain atom; a tuple of one certain arity.
 * Owns:     borrows the text until return.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EPROTO, -EINVAL (something else). On an error nothing is read.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_get_this_atom(blitz_term_in *in, const char *text);
BLITZ_API BLITZ_MUST_USE int blitz_term_get_this_tuple(blitz_term_in *in, uint32_t arity);

/*
 * Read text into buf, with a zero at its end: a binary; a string or a list of code points, as UTF-8; [].
 * Owns:     writes up to `cap` bytes of buf. *bytes, unless NULL, is the length without the zero. A binary may contain zeros.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EPROTO, -EINVAL (another kind, or an element that is no character), -ERANGE (longer). On an error nothing is read.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_get_text(blitz_term_in *in, char *buf, size_t cap,
                                                 size_t *bytes);

/* The elements of a list, however it is encoded. The fields are not yours, but for reading `tail`. */
typedef struct blitz_term_list {
    blitz_term_in in;
    uint32_t left; /* elements before a tail */
    bool is_string;
    unsigned char byte[2]; /* an element of a string, encoded */
    blitz_term tail;       /* of an improper list, after -EINVAL */
} blitz_term_list;

/*
 * Read a list, and then walk over its elements. blitz_term_get_elements() reads the whole list: the reader stands behind it.
 * Owns:     *list and the elements are views. An element of a string is valid until the next call, while *list is.
 * Suspends: never. Call from anywhere.
 * Returns:  get_elements: 0, -EPROTO, -EINVAL (no list), -E2BIG. next_element: 1 and *element; 0 (the end); -EPROTO; -E2BIG; -EINVAL
 *           (the tail is not []: it is list->tail).
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_get_elements(blitz_term_in *in, blitz_term_list *list);
BLITZ_API BLITZ_MUST_USE int blitz_term_next_element(blitz_term_list *list, blitz_term *element);

/*
 * Find the value of a key that is an atom, in a map.
 * Owns:     *value is a view. Borrows the rest until return.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ENOENT (no such key), -EINVAL (no map), -EPROTO, -E2BIG.
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_map_find(blitz_term map, const char *key,
                                                 blitz_term *value);

/* ---- atoms ---- */

/*
 * A view of a C string in UTF-8, for the structs above.
 * Compare an atom with a C string in UTF-8; two atoms. Latin-1 and UTF-8 of the same text are equal.
 * Owns:     borrows the text; _of: while the view is in use.
 * Suspends: never. Call from anywhere.
 * Returns:  the view; true if they are equal.
 */
BLITZ_API blitz_term_atom blitz_term_atom_of(const char *text);
BLITZ_API bool blitz_term_atom_is(blitz_term_atom atom, const char *text);
BLITZ_API bool blitz_term_atom_equal(blitz_term_atom a, blitz_term_atom b);

/*
 * Copy the text of an atom as UTF-8, with a zero at the end.
 * Owns:     writes up to `cap` bytes of buf. An atom may contain a zero.
 * Suspends: never. Call from anywhere.
 * Returns:  the length without the zero; -ERANGE (longer).
 */
BLITZ_API int blitz_term_atom_copy(blitz_term_atom atom, char *buf, size_t cap);

/* ---- for messages and tests ---- */

/*
 * Print a term as Erlang text: {ok,[1,2],<<"text">>}. Pids, ports, references and funs are printed as #Pid<name.1.0>, which
 * Erlang does not parse. Bytes that are no term end the text with "...".
 * Owns:     writes up to `cap` bytes of buf, with a zero at the end if cap is not 0. Borrows the term until return.
 * Suspends: never. Call from anywhere.
 * Returns:  the length of the whole text, as snprintf() does; -EPROTO or -E2BIG (the text ends there).
 */
BLITZ_API int64_t blitz_term_print(blitz_term term, char *buf, size_t cap);

/*
 * True if two terms are equal, as Erlang's =:= is: 1 and 1.0 are not. However they are encoded: lists, atoms, integers, and
 * maps in any order.
 * Owns:     borrows the terms until return.
 * Suspends: never. Call from anywhere.
 * Returns:  1 (equal), 0 (not), -EPROTO, -E2BIG (too deep; or maps whose orders differ so much that it would take more than
 *           2^24 comparisons).
 */
BLITZ_API BLITZ_MUST_USE int blitz_term_equal(blitz_term a, blitz_term b);

BLITZ_END_DECLS

#endif
