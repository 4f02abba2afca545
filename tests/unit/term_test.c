/*
 * Terms: each tag, in bytes and as text, the edges between two forms, and what the functions of the reader accept.
 */
#include "harness.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "support/terms.h"

#define BYTES(...)                                                                         \
    {                                                                                      \
        (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__}) \
    }

static const struct {
    blitz_term term;
    const char *text;
    bool is_old; /* we write it in another form */
} tags[] = {
    {BYTES(97, 0), "0", false},
    {BYTES(97, 255), "255", false},
    {BYTES(98, 0, 0, 1, 0), "256", false},
    {BYTES(98, 255, 255, 255, 255), "-1", false},
    {BYTES(98, 128, 0, 0, 0), "-2147483648", false},
    {BYTES(98, 0, 0, 0, 7), "7", true},
    {BYTES(110, 4, 0, 0, 0, 0, 128), "2147483648", false},
    {BYTES(110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 128), "-9223372036854775808", false},
    {BYTES(110, 8, 0, 0, 0, 0, 0, 0, 0, 0, 128), "9223372036854775808", false},
    {BYTES(110, 9, 1, 255, 0, 0, 0, 0, 0, 0, 0, 1), "-16#100000000000000FF", false},
    {BYTES(110, 0, 1), "0", true},
    {BYTES(110, 3, 0, 5, 0, 0), "5", true},
    {BYTES(111, 0, 0, 0, 1, 1, 5), "-5", true},
    {BYTES(70, 63, 248, 0, 0, 0, 0, 0, 0), "1.5", false},
    {BYTES(70, 128, 0, 0, 0, 0, 0, 0, 0), "-0.0", false},
    {BYTES(70, 127, 239, 255, 255, 255, 255, 255, 255), "1.7976931348623157e308", false},
    {BYTES(70, 0, 0, 0, 0, 0, 0, 0, 1), "4.9e-324", false},
    {BYTES(70, 63, 185, 153, 153, 153, 153, 153, 154), "1.0e-1", false},
    {BYTES(119, 2, 'o', 'k'), "ok", false},
    {BYTES(119, 0), "''", false},
    {BYTES(119, 2, 0xc3, 0xbc), "'\xc3\xbc'", false},
    {BYTES(119, 3, 'e', 'n', 'd'), "'end'", false},
    {BYTES(119, 4, 'i', 't', '\'', 's'), "'it\\'s'", false},
    {BYTES(119, 2, 10, 1), "'\\n\\x{1}'", false},
    {BYTES(118, 0, 2, 'o', 'k'), "ok", true},
    {BYTES(100, 0, 2, 'o', 'k'), "ok", true},
    {BYTES(100, 0, 1, 0xfc), "'\xc3\xbc'", true},
    {BYTES(115, 2, 0xe4, 0xfc), "'\xc3\xa4\xc3\xbc'", true},
    {BYTES(104, 0), "{}", false},
    {BYTES(104, 2, 97, 1, 104, 1, 97, 2), "{1,{2}}", false},
    {BYTES(105, 0, 0, 0, 1, 97, 1), "{1}", true},
    {BYTES(106), "[]", false},
    {BYTES(107, 0, 2, 'a', '"'), "\"a\\\"\"", false},
    {BYTES(107, 0, 2, 1, 2), "[1,2]", false},
    {BYTES(107, 0, 0), "[]", true},
    {BYTES(108, 0, 0, 0, 2, 97, 1, 97, 2, 106), "[1,2]", false},
    {BYTES(108, 0, 0, 0, 1, 97, 1, 97, 2), "[1|2]", false},
    {BYTES(108, 0, 0, 0, 1, 97, 1, 108, 0, 0, 0, 1, 97, 2, 106), "[1,2]", false},
    {BYTES(108, 0, 0, 0, 1, 97, 1, 107, 0, 2, 2, 3), "[1,2,3]", false},
    {BYTES(108, 0, 0, 0, 1, 106, 108, 0, 0, 0, 1, 106, 97, 9), "[[],[]|9]", false},
    {BYTES(116, 0, 0, 0, 0), "#{}", false},
    {BYTES(116, 0, 0, 0, 2, 97, 1, 97, 2, 119, 1, 'a', 116, 0, 0, 0, 0), "#{1=>2,a=>#{}}", false},
    {BYTES(109, 0, 0, 0, 0), "<<>>", false},
    {BYTES(109, 0, 0, 0, 2, 'h', 'i'), "<<\"hi\">>", false},
    {BYTES(109, 0, 0, 0, 2, 0, 255), "<<0,255>>", false},
    {BYTES(77, 0, 0, 0, 1, 3, 0xa0), "<<5:3>>", false},
    {BYTES(77, 0, 0, 0, 2, 1, 'a', 0x80), "<<97,1:1>>", false},
    {BYTES(77, 0, 0, 0, 1, 3, 0xbf), "<<5:3>>", true}, /* unused bits */
    {BYTES(77, 0, 0, 0, 1, 8, 7), "<<7>>", true},
    {BYTES(77, 0, 0, 0, 0, 0), "<<>>", true},
    {BYTES(88, 119, 3, 'a', 'b', '1', 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 4), "#Pid<ab1.9.1>", false},
    {BYTES(103, 100, 0, 1, 'a', 0, 0, 0, 9, 0, 0, 0, 1, 3), "#Pid<a.9.1>", true},
    {BYTES(90, 0, 2, 119, 1, 'a', 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2), "#Ref<a.2.1>", false},
    {BYTES(90, 0, 5, 119, 1, 'a', 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0,
           0, 5),
     "#Ref<a.5.4.3.2.1>", false},
    {BYTES(114, 0, 1, 119, 1, 'a', 2, 0, 0, 0, 1), "#Ref<a.1>", true},
    {BYTES(101, 119, 1, 'a', 0, 0, 0, 1, 2), "#Ref<a.1>", true},
    {BYTES(89, 119, 1, 'a', 15, 255, 255, 255, 0, 0, 0, 4), "#Port<a.268435455>", false},
    {BYTES(120, 119, 1, 'a', 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 4), "#Port<a.268435456>", false},
    {BYTES(120, 119, 1, 'a', 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 4), "#Port<a.7>", true},
    {BYTES(102, 119, 1, 'a', 0, 0, 0, 7, 1), "#Port<a.7>", true},
    {BYTES(113, 119, 1, 'm', 119, 1, 'f', 97, 2), "fun m:f/2", false},
    {BYTES(112, 0, 0, 0, 57, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 3,
           0, 0, 0, 1, 119, 1, 'm', 97, 3, 98, 0, 1, 2, 3, 88, 119, 1, 'a', 0, 0, 0, 5, 0, 0, 0, 0,
           0, 0, 0, 9, 97, 42),
     "#Fun<m/2>", false},
};

/* Each term is read, printed and written again: in the same bytes, unless a newer or shorter form is the usual one. */
TEST(term, each_tag_is_read_printed_and_written)
{
    for (size_t i = 0; i < BZ_ARRAY_LEN(tags); i++) {
        unsigned char external[100] = {131}, copy[100];
        char text[100];
        blitz_term term, again;
        blitz_term_out out;
        size_t bytes;
        t_watch("%s", tags[i].text);
        memcpy(external + 1, tags[i].term.data, tags[i].term.bytes);

        CHECK_EQ(blitz_term_check(external, tags[i].term.bytes + 1, NULL, &term, &bytes), 0);
        CHECK_EQ(bytes, tags[i].term.bytes + 1);
        CHECK_EQ(blitz_term_print(term, text, sizeof text), (int64_t)strlen(tags[i].text));
        CHECK_STR_EQ(text, tags[i].text);

        blitz_term_out_init(&out, copy, sizeof copy);
        CHECK_EQ(t_copy_term(term, &out), 0);
        CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
        again = (blitz_term){copy, bytes};
        CHECK_EQ(blitz_term_equal(term, again), 1);
        bool same = bytes == term.bytes && memcmp(copy, term.data, bytes) == 0;
        CHECK_EQ(same, !tags[i].is_old);
    }
}

TEST(term, unknown_tags_are_refused)
{
    for (unsigned tag = 0; tag < 256; tag++) {
        unsigned char input[64] = {131, (unsigned char)tag};
        bool is_known = false;
        for (size_t i = 0; i < BZ_ARRAY_LEN(tags); i++)
            is_known |= tags[i].term.data[0] == tag;
        int rc = blitz_term_check(input, sizeof input, NULL, NULL, NULL);
        if (!is_known)
            CHECK_EQ(rc, -EPROTO);
    }
    CHECK_EQ(blitz_term_check("", 0, NULL, NULL, NULL), -EPROTO);
    CHECK_EQ(blitz_term_check("\x83", 1, NULL, NULL, NULL), -EPROTO);
    CHECK_EQ(blitz_term_check("\x82j", 2, NULL, NULL, NULL), -EPROTO); /* another version */
}

static size_t written(blitz_term_out *out)
{
    size_t bytes;
    CHECK_EQ(blitz_term_out_end(out, &bytes), 0);
    return bytes;
}

/* ---- edges of the writer ---- */

TEST(term, integers_take_the_shortest_form)
{
    static const struct {
        int64_t value;
        size_t bytes;
    } edges[] = {{0, 2},
                 {255, 2},
                 {256, 5},
                 {-1, 5},
                 {INT32_MAX, 5},
                 {INT32_MIN, 5},
                 {INT64_C(1) << 31, 7},
                 {-(INT64_C(1) << 31) - 1, 7},
                 {(INT64_C(1) << 32) - 1, 7},
                 {INT64_C(1) << 32, 8},
                 {INT64_MAX, 11},
                 {INT64_MIN, 11}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(edges); i++) {
        unsigned char buf[16];
        blitz_term_out out;
        int64_t value;
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_int(&out, edges[i].value);
        CHECK_EQ(written(&out), edges[i].bytes);
        blitz_term_in in = blitz_term_in_of((blitz_term){buf, edges[i].bytes});
        CHECK_EQ(blitz_term_get_int(&in, &value), 0);
        CHECK_EQ(value, edges[i].value);
        CHECK(blitz_term_at_end(&in));
    }
}

TEST(term, atoms_change_their_form_at_256_bytes_and_end_at_255_characters)
{
    char text[1100];
    static unsigned char buf[1200];
    for (unsigned chars = 250; chars <= 257; chars++)
        for (unsigned wide = 1; wide <= 4; wide++) {
            static const char *const some[] = {"", "a", "\xc3\xbc", "\xe6\x97\xa5",
                                               "\xf0\x9f\x98\x80"};
            blitz_term_out out;
            blitz_term_atom atom;
            size_t bytes;
            for (unsigned i = 0; i < chars; i++)
                memcpy(text + (size_t)i * wide, some[wide], wide);
            text[(size_t)chars * wide] = '\0';
            blitz_term_out_init(&out, buf, sizeof buf);
            blitz_term_put_atom(&out, text);
            int rc = blitz_term_out_end(&out, &bytes);
            CHECK_EQ(rc, chars <= 255 ? 0 : -EINVAL);
            if (rc != 0)
                continue;
            CHECK_EQ(buf[0], (size_t)chars * wide <= 255 ? 119 : 118);
            blitz_term_in in = blitz_term_in_of((blitz_term){buf, bytes});
            CHECK_EQ(blitz_term_get_atom(&in, &atom), 0);
            CHECK(blitz_term_atom_is(atom, text));
        }
    blitz_term_out out;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK(!blitz_term_atom_is(blitz_term_atom_of("x"), text));
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_pid(&out, &(blitz_term_pid){blitz_term_atom_of(text), 1, 2, 3});
    CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL);
}

TEST(term, tuples_strings_and_big_integers_change_their_form_at_their_limits)
{
    static unsigned char buf[400000], bytes[65536];
    blitz_term_out out;
    for (uint32_t arity = 254; arity <= 257; arity++) {
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_tuple(&out, arity);
        for (uint32_t i = 0; i < arity; i++)
            blitz_term_put_nil(&out);
        CHECK_EQ(written(&out), arity + (arity <= 255 ? 2u : 5u));
        CHECK_EQ(buf[0], arity <= 255 ? 104 : 105);
    }
    for (size_t n = 65534; n <= 65536; n++) {
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_string(&out, bytes, n);
        CHECK_EQ(written(&out), n <= 65535 ? n + 3 : 2 * n + 6);
        CHECK_EQ(buf[0], n <= 65535 ? 107 : 108);
    }
    memset(bytes, 1, sizeof bytes);
    for (uint32_t n = 254; n <= 257; n++) {
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_big(&out, (blitz_term_big){bytes, n, true});
        CHECK_EQ(written(&out), n + (n <= 255 ? 3u : 6u));
        CHECK_EQ(buf[0], n <= 255 ? 110 : 111);
    }
}

static void put_everything(blitz_term_out *out)
{
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 3);
    blitz_term_put_atom(out, "data");
    blitz_term_put_binary(out, "0123456789", 10);
    blitz_term_put_bits(out, (blitz_term_bits){(const unsigned char *)"abcdefghi", 68});
}

/* A buffer of any smaller size is not enough, and the writer says how much is. */
TEST(term, a_short_buffer_gives_the_needed_size)
{
    unsigned char whole[64];
    blitz_term_out out;
    size_t needed, bytes;
    blitz_term_out_init(&out, NULL, 0);
    put_everything(&out);
    CHECK_EQ(blitz_term_out_end(&out, &needed), -ENOSPC);
    for (size_t cap = 0; cap <= needed; cap++) {
        unsigned char *buf = t_exactly(whole, cap);
        blitz_term_out_init(&out, buf, cap);
        put_everything(&out);
        CHECK_EQ(blitz_term_out_end(&out, &bytes), cap < needed ? -ENOSPC : 0);
        CHECK_EQ(bytes, needed);
        free(buf);
    }
}

TEST(term, large_binaries_are_borrowed)
{
    unsigned char flat[64], buf[64], joined[64];
    blitz_piece pieces[8];
    blitz_term_out out;
    size_t needed, bytes;
    blitz_term_out_init(&out, flat, sizeof flat);
    put_everything(&out);
    needed = written(&out);
    for (uint32_t max = 0; max <= 8; max++)
        for (size_t least = 1; least < 12; least++) {
            blitz_term_out_pieces(&out, buf, sizeof buf, pieces, max, least);
            put_everything(&out);
            int rc = blitz_term_out_end(&out, &bytes);
            CHECK_EQ(rc, max == 0 ? -ENOSPC : 0); /* the buffer itself needs a piece */
            if (rc != 0)
                continue;
            size_t at = 0;
            for (uint32_t i = 0; i < out.piece_count; i++) {
                CHECK_GT(pieces[i].bytes, 0u);
                memcpy(joined + at, pieces[i].data, pieces[i].bytes);
                at += pieces[i].bytes;
            }
            CHECK_LE(out.piece_count, max);
            CHECK_EQ(at, needed);
            CHECK_EQ(out.total, needed);
            CHECK_MEM_EQ(joined, flat, needed);
            unsigned borrowed = (max >= 3 && least <= 10) + (max >= 5 && least <= 8) +
                                ((max == 3 || max == 4) && least > 10 && least <= 8);
            CHECK_EQ(out.piece_count, 2 * borrowed + 1);
        }
}

/* A short buffer of a writer with pieces is counted as well, and no piece is made of memory behind it. */
TEST(term, a_short_buffer_beside_pieces_gives_the_needed_size)
{
    unsigned char buf[64];
    blitz_piece pieces[8];
    blitz_term_out out;
    size_t needed, bytes;
    blitz_term_out_pieces(&out, buf, sizeof buf, pieces, 8, 4);
    put_everything(&out);
    needed = written(&out);
    for (size_t cap = 0; cap < needed; cap++) {
        blitz_term_out_pieces(&out, buf, cap, pieces, 8, 4);
        put_everything(&out);
        CHECK_EQ(blitz_term_out_end(&out, &bytes), -ENOSPC);
        CHECK_EQ(bytes, needed);
    }
}

TEST(term, incomplete_and_surplus_terms_are_refused)
{
    unsigned char buf[64];
    blitz_term_out out;
    blitz_term_out_init(&out, buf, sizeof buf);
    CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL); /* none */
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_tuple(&out, 2);
    blitz_term_put_int(&out, 1);
    CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL); /* a part is missing */
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_list(&out, 1);
    blitz_term_put_int(&out, 1);
    CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL); /* the tail is missing */
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_int(&out, 1);
    blitz_term_put_int(&out, 2);
    CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL); /* a second one, without a version */
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_tuple(&out, 1);
    blitz_term_put_version(&out);
    CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL); /* a version inside a term */
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_bytes(&out, "head", 4);
    blitz_term_put_version(&out);
    blitz_term_put_int(&out, 1);
    blitz_term_put_version(&out);
    blitz_term_put_nil(&out);
    CHECK_EQ(written(&out), 9u);
    CHECK_MEM_EQ(buf,
                 "head\x83"
                 "a\1\x83"
                 "j",
                 9);
}

TEST(term, values_that_no_term_has_are_refused)
{
    unsigned char buf[64];
    blitz_term_out out;
    static const char *const texts[] = {
        "\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(texts); i++) {
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_atom(&out, texts[i]);
        CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL);
    }
    const double numbers[] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
    for (size_t i = 0; i < BZ_ARRAY_LEN(numbers); i++) {
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_double(&out, numbers[i]);
        CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL);
    }
    for (uint32_t words = 0; words <= 6; words++) {
        blitz_term_ref ref = {blitz_term_atom_of("a"), 1, words, {1, 2, 3, 4, 5}};
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_ref(&out, &ref);
        CHECK_EQ(blitz_term_out_end(&out, NULL), words >= 1 && words <= 5 ? 0 : -EINVAL);
    }
}

/* ---- the reader ---- */

TEST(term, a_read_of_another_kind_moves_nothing)
{
    blitz_term_in in = blitz_term_in_of(T_TERM(104, 1, 119, 4, 't', 'r', 'u', 'e'));
    blitz_term_in start = in;
    int64_t i;
    uint64_t u;
    double d;
    bool b;
    uint32_t n;
    blitz_term t;
    blitz_term_bits bits;
    blitz_term_pid pid;
    blitz_term_ref ref;
    blitz_term_port port;
    blitz_term_atom atom;
    blitz_term_list list;
    char text[8];
    CHECK_EQ(blitz_term_get_int(&in, &i), -EINVAL);
    CHECK_EQ(blitz_term_get_uint(&in, &u), -EINVAL);
    CHECK_EQ(blitz_term_get_double(&in, &d), -EINVAL);
    CHECK_EQ(blitz_term_get_bool(&in, &b), -EINVAL);
    CHECK_EQ(blitz_term_get_list(&in, &n), -EINVAL);
    CHECK_EQ(blitz_term_get_nil(&in), -EINVAL);
    CHECK_EQ(blitz_term_get_map(&in, &n), -EINVAL);
    CHECK_EQ(blitz_term_get_binary(&in, &t), -EINVAL);
    CHECK_EQ(blitz_term_get_bits(&in, &bits), -EINVAL);
    CHECK_EQ(blitz_term_get_pid(&in, &pid), -EINVAL);
    CHECK_EQ(blitz_term_get_ref(&in, &ref), -EINVAL);
    CHECK_EQ(blitz_term_get_port(&in, &port), -EINVAL);
    CHECK_EQ(blitz_term_get_atom(&in, &atom), -EINVAL);
    CHECK_EQ(blitz_term_get_text(&in, text, sizeof text, NULL), -EINVAL);
    CHECK_EQ(blitz_term_get_elements(&in, &list), -EINVAL);
    CHECK_EQ(blitz_term_get_this_tuple(&in, 2), -EINVAL);
    CHECK_EQ(in.at, start.at);
    CHECK_EQ(blitz_term_get_this_tuple(&in, 1), 0);
    CHECK_EQ(blitz_term_get_this_atom(&in, "tru"), -EINVAL);
    CHECK_EQ(blitz_term_get_this_atom(&in, "true!"), -EINVAL);
    CHECK_EQ(blitz_term_get_bool(&in, &b), 0);
    CHECK(b && blitz_term_at_end(&in));
    CHECK_EQ(blitz_term_get_int(&in, &i), -EPROTO); /* the end */
}

TEST(term, numbers_out_of_range_say_so)
{
    blitz_term huge = T_TERM(110, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
    blitz_term above = T_TERM(110, 8, 0, 255, 255, 255, 255, 255, 255, 255, 255);
    blitz_term odd = T_TERM(110, 7, 0, 1, 0, 0, 0, 0, 0, 32); /* 2^53 + 1 */
    blitz_term minus = T_TERM(98, 255, 255, 255, 255);
    blitz_term_in in;
    int64_t i;
    uint64_t u;
    double d;
    in = blitz_term_in_of(huge);
    CHECK_EQ(blitz_term_get_int(&in, &i), -ERANGE);
    CHECK_EQ(blitz_term_get_uint(&in, &u), -ERANGE);
    CHECK_EQ(blitz_term_get_double(&in, &d), -ERANGE);
    in = blitz_term_in_of(above);
    CHECK_EQ(blitz_term_get_int(&in, &i), -ERANGE);
    CHECK_EQ(blitz_term_get_uint(&in, &u), 0);
    CHECK_EQ(u, UINT64_MAX);
    in = blitz_term_in_of(minus);
    CHECK_EQ(blitz_term_get_uint(&in, &u), -ERANGE);
    CHECK_EQ(blitz_term_get_double(&in, &d), 0);
    CHECK(d == -1.0);
    in = blitz_term_in_of(odd);
    CHECK_EQ(blitz_term_get_double(&in, &d), -ERANGE);
    in = blitz_term_in_of(T_TERM(110, 8, 0, 255, 255, 255, 255, 255, 255, 255, 127));
    CHECK_EQ(blitz_term_get_double(&in, &d), -ERANGE);
}

TEST(term, text_is_a_binary_or_a_list_of_characters)
{
    const struct {
        blitz_term term;
        int rc;
        const char *text;
    } rows[] = {
        {BYTES(109, 0, 0, 0, 2, 'h', 'i'), 0, "hi"},
        {BYTES(107, 0, 2, 'h', 0xfc), 0, "h\xc3\xbc"},
        {BYTES(106), 0, ""},
        {BYTES(108, 0, 0, 0, 1, 98, 0, 0, 0x65, 0xe5, 106), 0, "\xe6\x97\xa5"},
        {BYTES(108, 0, 0, 0, 1, 97, 'a', 107, 0, 1, 'b'), 0, "ab"},
        {BYTES(107, 0, 3, 'a', 'b', 'c'), 0, "abc"},
        {BYTES(107, 0, 4, 'a', 'b', 'c', 'd'), -ERANGE, NULL},
        {BYTES(109, 0, 0, 0, 4, 'a', 'b', 'c', 'd'), -ERANGE, NULL},
        {BYTES(108, 0, 0, 0, 1, 97, 'a', 97, 'b'), -EINVAL, NULL},
        {BYTES(108, 0, 0, 0, 1, 98, 0, 0, 0xd8, 0, 106), -EINVAL, NULL},
        {BYTES(108, 0, 0, 0, 1, 98, 255, 255, 255, 255, 106), -EINVAL, NULL},
        {BYTES(108, 0, 0, 0, 1, 119, 1, 'a', 106), -EINVAL, NULL},
        {BYTES(108, 0, 0, 0, 1, 97, 'a'), -EPROTO, NULL},
    };
    for (size_t i = 0; i < BZ_ARRAY_LEN(rows); i++) {
        blitz_term_in in = blitz_term_in_of(rows[i].term);
        char text[4];
        size_t bytes;
        CHECK_EQ(blitz_term_get_text(&in, text, sizeof text, &bytes), rows[i].rc);
        CHECK_EQ(blitz_term_at_end(&in), rows[i].rc == 0);
        if (rows[i].rc == 0) {
            CHECK_STR_EQ(text, rows[i].text);
            CHECK_EQ(bytes, strlen(text));
        }
    }
    blitz_term_in in = blitz_term_in_of(T_TERM(106));
    CHECK_EQ(blitz_term_get_text(&in, NULL, 0, NULL), -ERANGE);
}

TEST(term, a_list_is_walked_however_it_is_cut)
{
    const blitz_term lists[] = {
        BYTES(107, 0, 3, 1, 2, 3),
        BYTES(108, 0, 0, 0, 3, 97, 1, 97, 2, 97, 3, 106),
        BYTES(108, 0, 0, 0, 1, 97, 1, 107, 0, 2, 2, 3),
        BYTES(108, 0, 0, 0, 1, 97, 1, 108, 0, 0, 0, 1, 97, 2, 108, 0, 0, 0, 1, 97, 3, 106),
        BYTES(108, 0, 0, 0, 3, 97, 1, 97, 2, 97, 3, 107, 0, 0),
    };
    blitz_term element;
    blitz_term_list list;
    for (size_t i = 0; i < BZ_ARRAY_LEN(lists); i++) {
        blitz_term_in in = blitz_term_in_of(lists[i]);
        CHECK_EQ(blitz_term_get_elements(&in, &list), 0);
        CHECK(blitz_term_at_end(&in));
        for (int64_t want = 1; want <= 3; want++) {
            int64_t got;
            CHECK_EQ(blitz_term_next_element(&list, &element), 1);
            blitz_term_in one = blitz_term_in_of(element);
            CHECK_EQ(blitz_term_get_int(&one, &got), 0);
            CHECK_EQ(got, want);
        }
        CHECK_EQ(blitz_term_next_element(&list, &element), 0);
        CHECK_EQ(blitz_term_next_element(&list, &element), 0);
        for (size_t k = 0; k < BZ_ARRAY_LEN(lists); k++)
            CHECK_EQ(blitz_term_equal(lists[i], lists[k]), 1);
    }
    blitz_term_in in = blitz_term_in_of(T_TERM(108, 0, 0, 0, 1, 97, 1, 119, 1, 'x'));
    CHECK_EQ(blitz_term_get_elements(&in, &list), 0);
    CHECK_EQ(blitz_term_next_element(&list, &element), 1);
    CHECK_EQ(blitz_term_next_element(&list, &element), -EINVAL);
    CHECK_EQ(list.tail.bytes, 3u);
    CHECK_EQ(list.tail.data[0], 119);
}

TEST(term, a_value_is_found_in_a_map)
{
    blitz_term map = T_TERM(116, 0, 0, 0, 3, 97, 1, 104, 1, 97, 7, 115, 1, 'a', 97, 8, 119, 2, 0xc3,
                            0xbc, 97, 9);
    blitz_term value;
    CHECK_EQ(blitz_term_map_find(map, "a", &value), 0);
    CHECK_EQ(value.data[1], 8);
    CHECK_EQ(blitz_term_map_find(map, "\xc3\xbc", &value), 0);
    CHECK_EQ(value.data[1], 9);
    CHECK_EQ(blitz_term_map_find(map, "b", &value), -ENOENT);
    CHECK_EQ(blitz_term_map_find(T_TERM(97, 1), "a", &value), -EINVAL);
    CHECK_EQ(blitz_term_map_find((blitz_term){map.data, map.bytes - 1}, "b", &value), -EPROTO);
}

TEST(term, atoms_are_equal_in_latin1_and_utf8)
{
    blitz_term_atom latin1 = {"\xfc", 1, true}, utf8 = blitz_term_atom_of("\xc3\xbc");
    char text[3];
    CHECK(blitz_term_atom_equal(latin1, utf8) && blitz_term_atom_equal(utf8, latin1));
    CHECK(!blitz_term_atom_equal(latin1, (blitz_term_atom){"\xc3\xbc", 2, true}));
    CHECK(!blitz_term_atom_is(latin1, "u") && !blitz_term_atom_is(latin1, "\xc3\xbcx"));
    CHECK_EQ(blitz_term_atom_copy(latin1, text, 3), 2);
    CHECK_STR_EQ(text, "\xc3\xbc");
    CHECK_EQ(blitz_term_atom_copy(latin1, text, 2), -ERANGE);
    CHECK_EQ(blitz_term_atom_copy(utf8, text, 0), -ERANGE);
}

/* ---- equality ---- */

TEST(term, different_terms_are_different)
{
    for (size_t i = 0; i < BZ_ARRAY_LEN(tags); i++)
        for (size_t k = 0; k < BZ_ARRAY_LEN(tags); k++) {
            bool is_zero = strcmp(tags[i].text, "0") == 0 || strcmp(tags[k].text, "0") == 0;
            int same = blitz_term_equal(tags[i].term, tags[k].term);
            CHECK(same == 0 || same == 1);
            CHECK(is_zero || same == (strcmp(tags[i].text, tags[k].text) == 0) ||
                  tags[i].text[0] == '#'); /* creations are not printed */
        }
    CHECK_EQ(blitz_term_equal(T_TERM(97, 1), T_TERM(70, 63, 240, 0, 0, 0, 0, 0, 0)), 0);
    CHECK_EQ(blitz_term_equal(T_TERM(104, 2, 97, 1, 97, 2), T_TERM(104, 2, 97, 1, 97, 3)), 0);
    CHECK_EQ(blitz_term_equal(T_TERM(108, 0, 0, 0, 1, 97, 1, 97, 2), T_TERM(107, 0, 2, 1, 2)), 0);
    CHECK_EQ(blitz_term_equal(T_TERM(97, 1), T_TERM(97)), -EPROTO);
}

static size_t a_map(unsigned char *buf, size_t room, uint32_t count, bool backwards)
{
    blitz_term_out out;
    blitz_term_out_init(&out, buf, room);
    blitz_term_put_map(&out, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = backwards ? count - 1 - i : i;
        blitz_term_put_map(&out, 1); /* a map as the key */
        blitz_term_put_int(&out, key % 7);
        blitz_term_put_int(&out, key);
        blitz_term_put_tuple(&out, 1);
        blitz_term_put_int(&out, key * 2);
    }
    return written(&out);
}

TEST(term, maps_are_equal_in_any_order)
{
    static unsigned char a[1 << 20], b[1 << 20];
    for (uint32_t n = 0; n < 40; n++) {
        blitz_term x = {a, a_map(a, sizeof a, n, false)}, y = {b, a_map(b, sizeof b, n, true)};
        CHECK_EQ(blitz_term_equal(x, y), 1);
        if (n > 0) {
            CHECK_EQ(blitz_term_equal((blitz_term){a, a_map(a, sizeof a, n - 1, false)}, y), 0);
            x.bytes = a_map(a, sizeof a, n, false);
            a[x.bytes - 1] ^= 1;
            CHECK_EQ(blitz_term_equal(x, y), 0);
            CHECK_EQ(blitz_term_equal(y, x), 0);
        }
    }
    /* The search for keys is bounded; in the same order there is none. */
    blitz_term x = {a, a_map(a, sizeof a, 10000, false)}, y = {b, a_map(b, sizeof b, 10000, true)};
    CHECK_EQ(blitz_term_equal(x, y), -E2BIG);
    CHECK_EQ(blitz_term_equal(x, x), 1);
}

/* Erlang refuses a map with a key twice. The reader does not look for it, and equality is symmetric all the same. */
TEST(term, a_map_with_a_key_twice_equals_no_other)
{
    blitz_term twice = T_TERM(116, 0, 0, 0, 2, 97, 0, 97, 9, 97, 0, 97, 9);
    blitz_term once = T_TERM(116, 0, 0, 0, 2, 97, 0, 97, 9, 97, 1, 97, 9);
    CHECK_EQ(blitz_term_equal(twice, once), 0);
    CHECK_EQ(blitz_term_equal(once, twice), 0);
    CHECK_EQ(blitz_term_equal(twice, twice), 1);
}

/* ---- the print ---- */

TEST(term, a_print_is_cut_at_the_end_of_the_buffer)
{
    blitz_term term = T_TERM(104, 2, 119, 2, 'o', 'k', 107, 0, 3, 'a', 'b', 'c');
    for (size_t cap = 0; cap < 16; cap++) {
        char *buf = (char *)t_exactly("xxxxxxxxxxxxxxxx", cap);
        CHECK_EQ(blitz_term_print(term, cap == 0 ? NULL : buf, cap), 10);
        if (cap > 0) {
            CHECK_EQ(strlen(buf), cap - 1 < 10 ? cap - 1 : 10);
            CHECK_MEM_EQ(buf, "{ok,\"abc\"}", strlen(buf));
        }
        free(buf);
    }
    char text[32];
    CHECK_EQ(blitz_term_print((blitz_term){term.data, 8}, text, sizeof text), -EPROTO);
    CHECK_STR_EQ(text, "{ok...");
}

TEST(term, a_float_is_printed_with_a_point_in_every_locale)
{
    char text[32];
    blitz_term term = T_TERM(70, 63, 248, 0, 0, 0, 0, 0, 0);
    bool has_comma = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    CHECK_GT(blitz_term_print(term, text, sizeof text), 0);
    CHECK_STR_EQ(text, "1.5");
    t_note("%s",
           has_comma ? "with a comma in the locale" : "this machine has no locale with a comma");
}
