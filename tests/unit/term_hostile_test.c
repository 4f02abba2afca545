/*
 * Terms of a hostile peer: cut off anywhere, with lengths that are too large, and deep.
 */
#include "harness.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "support/terms.h"

enum { ROOM = 1 << 16 };

static size_t a_term(struct t_rng *r, unsigned char *buf)
{
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, buf, ROOM);
    blitz_term_put_version(&out);
    t_put_any_term(r, &out, 4, T_TERM_ALL);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return bytes;
}

/* A prefix of a term is no term. The memory ends with the prefix, so a read beyond is seen. */
TEST(term_hostile, a_term_cut_off_at_any_byte_is_refused)
{
    static unsigned char buf[ROOM];
    struct t_rng r = t_rng_of(0);
    for (uint64_t i = 0, n = t_scaled(3000); i < n; i++) {
        size_t bytes = a_term(&r, buf);
        for (size_t cut = bytes > 300 ? bytes - 300 : 0; cut < bytes; cut++) {
            unsigned char *data = t_exactly(buf, cut);
            blitz_term term = {data, 7}, prefix = {data + 1, cut - 1};
            blitz_term_in in;
            char text[8];
            size_t used = 7;
            CHECK_EQ(blitz_term_check(data, cut, NULL, &term, &used), -EPROTO);
            CHECK(term.bytes == 7 && used == 7); /* not written */
            if (cut > 0) {
                in = blitz_term_in_of(prefix);
                CHECK_EQ(blitz_term_skip(&in), -EPROTO);
                CHECK_EQ(in.at, prefix.data);
                CHECK_EQ(blitz_term_print(prefix, text, sizeof text), -EPROTO);
                CHECK_EQ(blitz_term_equal(prefix, prefix), -EPROTO);
            }
            free(data);
        }
    }
}

#define BYTES(...)                                                                         \
    {                                                                                      \
        (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__}) \
    }

/* Each length says more than there is, up to the largest. None may be added to a pointer or multiplied before it is compared. */
TEST(term_hostile, lengths_beyond_the_end_are_refused)
{
    const blitz_term heads[] = {
        BYTES(109), BYTES(108), BYTES(105), BYTES(116), BYTES(111), BYTES(77),
        BYTES(107), BYTES(118), BYTES(100), BYTES(110), BYTES(104), BYTES(119),
        BYTES(115), BYTES(90),  BYTES(114), BYTES(112),
    };
    static const uint32_t lengths[] = {UINT32_MAX, UINT32_MAX - 1, 0x80000000, 0x7fffffff,
                                       0x80000001, 0x40000000,     0x10000,    0xffff,
                                       0xff00,     0x100,          40,         33};
    for (size_t i = 0; i < BZ_ARRAY_LEN(heads); i++)
        for (size_t k = 0; k < BZ_ARRAY_LEN(lengths); k++) {
            uint32_t n = lengths[k];
            unsigned char input[34] = {131,
                                       heads[i].data[0],
                                       (unsigned char)(n >> 24),
                                       (unsigned char)(n >> 16),
                                       (unsigned char)(n >> 8),
                                       (unsigned char)n};
            memset(input + 6, 106, sizeof input - 6);
            unsigned char *data = t_exactly(input, sizeof input);
            blitz_term_in in = blitz_term_in_of((blitz_term){data + 1, sizeof input - 1});
            blitz_term_item item;
            int rc = blitz_term_check(data, sizeof input, NULL, NULL, NULL);
            bool is_short = heads[i].data[0] == 104 || heads[i].data[0] == 119 ||
                            heads[i].data[0] == 115 || heads[i].data[0] == 110 ||
                            heads[i].data[0] == 118 || heads[i].data[0] == 100 ||
                            heads[i].data[0] == 107;
            CHECK(rc == -EPROTO ||
                  (is_short && rc == 0)); /* the upper bytes of n are their length */
            rc = blitz_term_next(&in, &item);
            CHECK(rc == -EPROTO || is_short);
            free(data);
        }
}

/* A count of parts is compared with the bytes that are left: a walk over 5 bytes takes no 2^32 steps. */
TEST(term_hostile, more_parts_than_bytes_are_refused_at_once)
{
    blitz_term_in in = blitz_term_in_of(T_TERM(105, 0, 0, 0, 2, 106));
    uint32_t n;
    CHECK_EQ(blitz_term_get_tuple(&in, &n), -EPROTO);
    in = blitz_term_in_of(T_TERM(108, 0, 0, 0, 1, 106));
    CHECK_EQ(blitz_term_get_list(&in, &n), -EPROTO); /* no room for the tail */
    in = blitz_term_in_of(T_TERM(116, 0, 0, 0, 1, 106));
    CHECK_EQ(blitz_term_get_map(&in, &n), -EPROTO); /* no room for the value */
    in = blitz_term_in_of(T_TERM(116, 128, 0, 0, 0, 106));
    CHECK_EQ(blitz_term_get_map(&in, &n), -EPROTO); /* 2 * 2^31 is not 0 */
    in = blitz_term_in_of(T_TERM(108, 255, 255, 255, 255, 106));
    CHECK_EQ(blitz_term_get_list(&in, &n), -EPROTO); /* 2^32 - 1 + 1 is not 0 */
    in = blitz_term_in_of(T_TERM(108, 0, 0, 0, 0, 106));
    CHECK_EQ(blitz_term_get_list(&in, &n), -EPROTO); /* [] has a tag of its own */
}

TEST(term_hostile, malformed_values_are_refused)
{
    const blitz_term rows[] = {
        BYTES(119, 1, 0xff),                      /* no UTF-8 */
        BYTES(119, 2, 0xc0, 0x80),                /* overlong */
        BYTES(119, 3, 0xed, 0xa0, 0x80),          /* a surrogate */
        BYTES(118, 0, 4, 0xf4, 0x90, 0x80, 0x80), /* above 0x10ffff */
        BYTES(70, 127, 240, 0, 0, 0, 0, 0, 0),    /* infinity */
        BYTES(70, 255, 248, 0, 0, 0, 0, 0, 0),    /* not a number */
        BYTES(77, 0, 0, 0, 1, 9, 0),              /* 9 bits of a byte */
        BYTES(77, 0, 0, 0, 1, 0, 0),              /* none of it */
        BYTES(77, 0, 0, 0, 0, 3),                 /* 3 of no byte */
        BYTES(90, 0, 0, 119, 1, 'a', 0, 0, 0, 1), /* a reference without words */
        BYTES(90, 0, 6, 119, 1, 'a', 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0,
              0, 0, 1, 0, 0, 0, 1),                           /* with 6 */
        BYTES(88, 97, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1), /* a node that is no atom */
        BYTES(113, 119, 1, 'm', 119, 1, 'f', 98, 0, 0, 0, 1), /* an arity in another form */
        BYTES(113, 119, 1, 'm', 97, 1, 97, 1),                /* a function that is no atom */
        BYTES(80, 0, 0, 0, 1, 0x78, 0x9c),                    /* compressed */
        BYTES(82, 0),                                         /* of an atom cache */
        BYTES(99, '1', '.', '5'),                             /* a float as text */
        BYTES(131, 106),                                      /* a second version byte */
    };
    for (size_t i = 0; i < BZ_ARRAY_LEN(rows); i++) {
        blitz_term_in in = blitz_term_in_of(rows[i]);
        blitz_term_item item;
        t_watch("row %zu", i);
        CHECK_EQ(blitz_term_next(&in, &item), -EPROTO);
    }
    unsigned char latin1[3 + 256] = {100, 1, 0}; /* 256 characters */
    blitz_term_in in = blitz_term_in_of((blitz_term){latin1, sizeof latin1});
    CHECK_EQ(blitz_term_skip(&in), -EPROTO);
}

/* The size of a fun must be that of its parts: it is passed on, and the next node would refuse it. */
TEST(term_hostile, a_fun_is_as_long_as_it_says)
{
    struct t_rng r = t_rng_of(0);
    for (unsigned i = 0; i < 200; i++) {
        unsigned char buf[120];
        blitz_term_out out;
        blitz_term_item item;
        size_t bytes;
        blitz_term_out_init(&out, buf, sizeof buf);
        t_put_any_fun(&r, &out);
        CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
        blitz_term_in in = blitz_term_in_of((blitz_term){buf, bytes});
        CHECK_EQ(blitz_term_next(&in, &item), 0);
        CHECK(item.whole.bytes == bytes && item.kind == BLITZ_TERM_IS_FUN);
        unsigned right = buf[4];
        memset(buf + bytes, 106, sizeof buf - bytes);
        for (unsigned size = 0; size < 110; size++) {
            buf[4] = (unsigned char)size;
            in = blitz_term_in_of((blitz_term){buf, sizeof buf});
            CHECK_EQ(blitz_term_next(&in, &item), size == right ? 0 : -EPROTO);
        }
        buf[4] = (unsigned char)right;
        for (unsigned captured = 2; captured < 256;
             captured += 11) { /* other than in the term: 0 or 1 */
            buf[1 + 4 + 1 + 16 + 4 + 3] = (unsigned char)captured;
            in = blitz_term_in_of((blitz_term){buf, sizeof buf});
            CHECK_EQ(blitz_term_next(&in, &item), -EPROTO);
        }
    }
}

/* ---- depth ---- */

/* Fill buf with `depth` heads and a leaf. Returns the size. */
static size_t nested(unsigned char *buf, const unsigned char *head, size_t head_bytes,
                     uint32_t depth, size_t tails)
{
    size_t bytes = 1;
    buf[0] = 131;
    for (uint32_t d = 0; d < depth; d++, bytes += head_bytes)
        memcpy(buf + bytes, head, head_bytes);
    memset(buf + bytes, 106, 1 + tails * depth);
    return bytes + 1 + tails * depth;
}

static const struct {
    unsigned char head[7];
    size_t bytes, tails;
} nests[] = {
    {{104, 1}, 2, 0},               /* {{{...}}} */
    {{105, 0, 0, 0, 1}, 5, 0},      /* the same */
    {{108, 0, 0, 0, 1}, 5, 1},      /* [[[...]]] */
    {{116, 0, 0, 0, 1}, 5, 1},      /* maps as keys */
    {{116, 0, 0, 0, 1, 106}, 6, 0}, /* maps as values */
    {{104, 2}, 2, 1},
};

/* A million levels: no function may recurse, and each must end with -E2BIG. */
TEST(term_hostile, deep_terms_are_refused)
{
    static unsigned char buf[8000000];
    for (size_t i = 0; i < BZ_ARRAY_LEN(nests); i++) {
        size_t bytes = nested(buf, nests[i].head, nests[i].bytes, 1000000, nests[i].tails);
        blitz_term term = {buf + 1, bytes - 1}, view;
        blitz_term_in in = blitz_term_in_of(term);
        blitz_term_list list;
        char text[16];
        CHECK_EQ(blitz_term_check(buf, bytes, NULL, NULL, NULL), -E2BIG);
        CHECK_EQ(blitz_term_skip(&in), -E2BIG);
        CHECK_EQ(blitz_term_take(&in, &view), -E2BIG);
        CHECK_EQ(blitz_term_print(term, text, sizeof text), -E2BIG);
        CHECK_EQ(blitz_term_equal(term, term), -E2BIG);
        int rc = blitz_term_get_elements(&in, &list);
        CHECK(rc == -E2BIG || rc == -EINVAL);
        rc = blitz_term_map_find(term, "a", &view);
        CHECK(rc == -E2BIG || rc == -EINVAL);
    }
}

TEST(term_hostile, the_limit_on_the_depth_is_exact)
{
    static unsigned char buf[4000];
    for (size_t i = 0; i < BZ_ARRAY_LEN(nests); i++)
        for (uint32_t depth = 1; depth <= 260; depth++) {
            size_t bytes = nested(buf, nests[i].head, nests[i].bytes, depth, nests[i].tails), used;
            blitz_term term = {buf + 1, bytes - 1};
            char text[2000];
            int want = depth <= BLITZ_TERM_DEPTH_MAX ? 0 : -E2BIG;
            CHECK_EQ(blitz_term_check(buf, bytes, NULL, NULL, &used), want);
            CHECK_EQ(blitz_term_check(buf, bytes, &(blitz_term_limits){.depth = 1000}, NULL, NULL),
                     want);
            CHECK_EQ(blitz_term_check(buf, bytes, &(blitz_term_limits){.depth = depth}, NULL, NULL),
                     want);
            if (depth > 1)
                CHECK_EQ(blitz_term_check(buf, bytes, &(blitz_term_limits){.depth = depth - 1},
                                          NULL, NULL),
                         -E2BIG);
            CHECK_EQ(blitz_term_equal(term, term), want == 0 ? 1 : want);
            CHECK_EQ(blitz_term_print(term, text, sizeof text) > 0, want == 0);
            if (want == 0)
                CHECK_EQ(used, bytes);
        }
}

/* Peers may send a list as a chain of short ones. Its length is no depth. */
TEST(term_hostile, a_chain_of_tails_is_not_deep)
{
    enum { LINKS = 100000 };
    static unsigned char buf[LINKS * 7 + 2];
    static char text[2 * LINKS + 10];
    blitz_term_list list;
    blitz_term term, element;
    size_t bytes = 1, count = 0;
    buf[0] = 131;
    for (uint32_t i = 0; i < LINKS; i++, bytes += 7)
        memcpy(buf + bytes, (const unsigned char[]){108, 0, 0, 0, 1, 97, 1}, 7);
    buf[bytes++] = 106;
    CHECK_EQ(blitz_term_check(buf, bytes, &(blitz_term_limits){.depth = 1}, &term, NULL), 0);
    blitz_term_in in = blitz_term_in_of(term);
    CHECK_EQ(blitz_term_get_elements(&in, &list), 0);
    while (blitz_term_next_element(&list, &element) == 1)
        count++;
    CHECK_EQ(count, (size_t)LINKS);
    CHECK_EQ(blitz_term_print(term, text, sizeof text), 2 * LINKS + 1);
    CHECK_EQ(blitz_term_equal(term, term), 1);
}

TEST(term_hostile, the_limit_on_the_size_is_exact)
{
    static unsigned char buf[ROOM];
    struct t_rng r = t_rng_of(2);
    for (unsigned i = 0; i < 500; i++) {
        size_t bytes = a_term(&r, buf);
        blitz_term_limits limits = {.bytes =
                                        bytes - 1}; /* the version byte is no part of the term */
        CHECK_EQ(blitz_term_check(buf, bytes, &limits, NULL, NULL), 0);
        limits.bytes--;
        if (limits.bytes > 0)
            CHECK_EQ(blitz_term_check(buf, bytes, &limits, NULL, NULL), -E2BIG);
    }
}

/* Bytes behind a term are not read. The size of the term is returned. */
TEST(term_hostile, bytes_behind_a_term_are_left)
{
    static unsigned char buf[ROOM];
    struct t_rng r = t_rng_of(3);
    for (unsigned i = 0; i < 500; i++) {
        size_t first = a_term(&r, buf);
        size_t second = 0, used;
        unsigned char other[] = {131, 97, 9, 255};
        unsigned char *data = t_exactly(buf, first + sizeof other);
        memcpy(data + first, other, sizeof other);
        CHECK_EQ(blitz_term_check(data, first + sizeof other, NULL, NULL, &used), 0);
        CHECK_EQ(used, first);
        CHECK_EQ(blitz_term_check(data + used, sizeof other, NULL, NULL, &second), 0);
        CHECK_EQ(second, 3u);
        free(data);
    }
}
