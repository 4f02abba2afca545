/*
 * Payload structs as terms: each kind of field, its range, and what is refused.
 */
#include "harness.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "blitz/term_struct.h"
#include "support/terms.h"

struct point {
    int32_t x, y;
};
BLITZ_TERM_TUPLE(point_term, struct point, BLITZ_TERM_INT(struct point, x),
                 BLITZ_TERM_INT(struct point, y));

enum colour { RED, GREEN };

struct order {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    bool paid;
    double price;
    char state[8], note[8], name[8];
    unsigned char key[4], data[300];
    uint16_t data_used;
    blitz_actor_id from;
    struct point at;
};
#define ORDER(kind, field) kind(struct order, field)
BLITZ_TERM_STRUCT(order_term, struct order, "order", ORDER(BLITZ_TERM_INT, i8),
                  ORDER(BLITZ_TERM_INT, i16), ORDER(BLITZ_TERM_INT, i32),
                  ORDER(BLITZ_TERM_INT, i64), ORDER(BLITZ_TERM_UINT, u8),
                  ORDER(BLITZ_TERM_UINT, u16), ORDER(BLITZ_TERM_UINT, u32),
                  ORDER(BLITZ_TERM_UINT, u64), ORDER(BLITZ_TERM_BOOL, paid),
                  ORDER(BLITZ_TERM_DOUBLE, price), ORDER(BLITZ_TERM_ATOM, state),
                  ORDER(BLITZ_TERM_TEXT, note), ORDER(BLITZ_TERM_STRING, name),
                  ORDER(BLITZ_TERM_FIXED, key), BLITZ_TERM_BYTES(struct order, data, data_used),
                  ORDER(BLITZ_TERM_ID, from), BLITZ_TERM_NESTED(struct order, at, point_term));

static int pid_of(void *ctx, blitz_actor_id id, blitz_term_pid *pid)
{
    *pid = (blitz_term_pid){blitz_term_atom_of("here"), id.index, id.generation, id.creation};
    return *(int *)ctx;
}

static int id_of(void *ctx, const blitz_term_pid *pid, blitz_actor_id *id)
{
    if (!blitz_term_atom_is(pid->node, "here"))
        return -ESRCH;
    *id = (blitz_actor_id){.index = pid->id, .generation = pid->serial, .creation = pid->creation};
    return *(int *)ctx;
}

static int verdict;
static blitz_term_env env = {pid_of, id_of, &verdict, {NULL, 0}};

static unsigned char buf[1000];
static char text[1000];

static blitz_term term_of(const blitz_term_type *type, const void *value)
{
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, buf, sizeof buf);
    CHECK_EQ(blitz_term_put_struct(&out, type, value, &env), 0);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    CHECK_GT(blitz_term_print((blitz_term){buf, bytes}, text, sizeof text), 0);
    return (blitz_term){buf, bytes};
}

static int put_error(const blitz_term_type *type, const void *value, blitz_term_env *e)
{
    blitz_term_out out;
    blitz_term_out_init(&out, buf, sizeof buf);
    int rc = blitz_term_put_struct(&out, type, value, e);
    CHECK_EQ(blitz_term_out_end(&out, NULL), rc);
    return rc;
}

static const struct order sample = {
    -128, -32768, INT32_MIN,   INT64_MIN, 255,          65535,  UINT32_MAX, UINT64_MAX,   true,
    2.5,  "open", "h\xc3\xbc", "Bob",     {1, 2, 3, 4}, {9, 8}, 2,          {5, 6, 0, 7}, {-1, 1}};

TEST(term_struct, each_kind_of_field_becomes_its_term)
{
    term_of(&order_term, &sample);
    CHECK_STR_EQ(text,
                 "{order,-128,-32768,-2147483648,-9223372036854775808,255,65535,4294967295,"
                 "18446744073709551615,true,2.5,open,<<104,195,188>>,\"Bob\",<<1,2,3,4>>,<<9,8>>,"
                 "#Pid<here.5.6>,{-1,1}}");
}

TEST(term_struct, a_struct_comes_back)
{
    struct order got;
    blitz_term_in in = blitz_term_in_of(term_of(&order_term, &sample));
    memset(&got, 0xa5, sizeof got);
    CHECK_EQ(blitz_term_get_struct(&in, &order_term, &got, &env), 0);
    CHECK(blitz_term_at_end(&in));
    CHECK(got.i8 == sample.i8 && got.i16 == sample.i16 && got.i32 == sample.i32 &&
          got.i64 == sample.i64);
    CHECK(got.u8 == sample.u8 && got.u16 == sample.u16 && got.u32 == sample.u32 &&
          got.u64 == sample.u64);
    CHECK(got.paid && got.price == 2.5 && got.data_used == 2);
    CHECK_STR_EQ(got.state, "open");
    CHECK_STR_EQ(got.note, "h\xc3\xbc");
    CHECK_STR_EQ(got.name, "Bob");
    CHECK_MEM_EQ(got.key, sample.key, sizeof got.key);
    CHECK_MEM_EQ(got.data, sample.data, sizeof got.data); /* the unused bytes are 0 */
    CHECK_MEM_EQ(&got.from, &sample.from, sizeof got.from);
    CHECK(got.at.x == -1 && got.at.y == 1);
}

/* A term that is cut, or has a part of another kind, is refused, and the reader stays where it was. */
TEST(term_struct, other_terms_are_refused)
{
    struct order got;
    blitz_term term = term_of(&order_term, &sample);
    for (size_t cut = 0; cut < term.bytes; cut++) {
        unsigned char *data = t_exactly(term.data, cut);
        blitz_term_in in = blitz_term_in_of((blitz_term){data, cut}), start = in;
        CHECK_EQ(blitz_term_get_struct(&in, &order_term, &got, &env), -EPROTO);
        CHECK_EQ(in.at, start.at);
        free(data);
    }
    const blitz_term others[] = {
        T_TERM(97, 1),
        T_TERM(104, 0),
        T_TERM(104, 1, 119, 5, 'o', 'r', 'd', 'e', 'r'),
        T_TERM(119, 5, 'o', 'r', 'd', 'e', 'r'),
    };
    for (size_t i = 0; i < BZ_ARRAY_LEN(others); i++) {
        blitz_term_in in = blitz_term_in_of(others[i]);
        CHECK_EQ(blitz_term_get_struct(&in, &order_term, &got, &env), -EINVAL);
    }
    for (uint32_t wrong = 0; wrong < order_term.count;
         wrong++) { /* a {} in the place of each part */
        unsigned char other[1000];
        blitz_term_in in = blitz_term_in_of(term_of(&order_term, &sample));
        blitz_term part;
        blitz_term_out out;
        size_t bytes;
        uint32_t arity;
        blitz_term_out_init(&out, other, sizeof other);
        CHECK_EQ(blitz_term_get_tuple(&in, &arity), 0);
        blitz_term_put_tuple(&out, arity);
        for (uint32_t i = 0; i < arity; i++) {
            CHECK_EQ(blitz_term_take(&in, &part), 0);
            if (i == wrong + 1)
                blitz_term_put_tuple(&out, 0);
            else
                blitz_term_put_term(&out, part);
        }
        CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
        in = blitz_term_in_of((blitz_term){other, bytes});
        CHECK_EQ(blitz_term_get_struct(&in, &order_term, &got, &env), -EINVAL);
    }
}

/* ---- ranges ---- */

#define RANGE(type, macro) \
    struct of_##type {     \
        type value;        \
    };                     \
    BLITZ_TERM_BARE(bare_##type, struct of_##type, macro(struct of_##type, value));
RANGE(int8_t, BLITZ_TERM_INT)
RANGE(int16_t, BLITZ_TERM_INT)
RANGE(int32_t, BLITZ_TERM_INT)
RANGE(int64_t, BLITZ_TERM_INT)
RANGE(uint8_t, BLITZ_TERM_UINT)
RANGE(uint16_t, BLITZ_TERM_UINT)
RANGE(uint32_t, BLITZ_TERM_UINT)
RANGE(uint64_t, BLITZ_TERM_UINT)

static int get_int(const blitz_term_type *type, const unsigned char *digits, uint32_t bytes,
                   bool is_negative)
{
    unsigned char term[32], value[8];
    blitz_term_out out;
    size_t n;
    blitz_term_out_init(&out, term, sizeof term);
    blitz_term_put_big(&out, (blitz_term_big){digits, bytes, is_negative});
    CHECK_EQ(blitz_term_out_end(&out, &n), 0);
    blitz_term_in in = blitz_term_in_of((blitz_term){term, n});
    return blitz_term_get_struct(&in, type, value, NULL);
}

TEST(term_struct, integers_out_of_range_are_refused)
{
    const blitz_term_type *const is_signed[] = {&bare_int8_t, &bare_int16_t, &bare_int32_t,
                                                &bare_int64_t};
    const blitz_term_type *const is_unsigned[] = {&bare_uint8_t, &bare_uint16_t, &bare_uint32_t,
                                                  &bare_uint64_t};
    for (unsigned i = 0; i < 4; i++) {
        uint32_t width = 1u << i;
        unsigned char half[9] = {0}, full[9] = {0}, above_half[9] = {1};
        half[width - 1] = 0x80; /* 2^(bits - 1) */
        above_half[width - 1] |= 0x80;
        full[width] = 1; /* 2^bits */
        CHECK_EQ(get_int(is_signed[i], half, 9, true), 0);
        CHECK_EQ(get_int(is_signed[i], half, 9, false), -ERANGE);
        if (width > 1)
            CHECK_EQ(get_int(is_signed[i], above_half, 9, true), -ERANGE);
        CHECK_EQ(get_int(is_unsigned[i], half, 9, false), 0);
        CHECK_EQ(get_int(is_unsigned[i], half, 9, true), -ERANGE);
        CHECK_EQ(get_int(is_unsigned[i], full, 9, false), -ERANGE);
        memset(full, 0xff, width);
        full[width] = 0;
        CHECK_EQ(get_int(is_unsigned[i], full, 9, false), 0); /* 2^bits - 1 */
        full[width - 1] = 0x7f;
        CHECK_EQ(get_int(is_signed[i], full, 9, false), 0); /* 2^(bits - 1) - 1 */
    }
}

struct words {
    char atom[4], text[4], list[4];
};
BLITZ_TERM_TUPLE(words_term, struct words, BLITZ_TERM_ATOM(struct words, atom),
                 BLITZ_TERM_TEXT(struct words, text), BLITZ_TERM_STRING(struct words, list));

static int get_words(blitz_term term, struct words *w)
{
    blitz_term_in in = blitz_term_in_of(term);
    return blitz_term_get_struct(&in, &words_term, w, NULL);
}

TEST(term_struct, text_must_fit_with_its_end)
{
    struct words w;
    CHECK_EQ(get_words(T_TERM(104, 3, 119, 3, 'a', 'b', 'c', 107, 0, 3, 'd', 'e', 'f', 109, 0, 0, 0,
                              3, 'g', 'h', 'i'),
                       &w),
             0);
    CHECK(strcmp(w.atom, "abc") == 0 && strcmp(w.text, "def") == 0 && strcmp(w.list, "ghi") == 0);
    CHECK_EQ(get_words(T_TERM(104, 3, 115, 1, 0xfc, 106, 106), &w), 0);
    CHECK_STR_EQ(w.atom, "\xc3\xbc");
    CHECK_EQ(get_words(T_TERM(104, 3, 119, 4, 'a', 'b', 'c', 'd', 106, 106), &w), -ERANGE);
    CHECK_EQ(get_words(T_TERM(104, 3, 119, 0, 107, 0, 4, 'a', 'b', 'c', 'd', 106), &w), -ERANGE);
    CHECK_EQ(get_words(T_TERM(104, 3, 119, 0, 107, 0, 3, 'a', 0xfc, 0xfc, 106), &w),
             -ERANGE); /* 5 bytes of UTF-8 */
    /* A zero inside would end the C string: refused, and not cut. */
    CHECK_EQ(get_words(T_TERM(104, 3, 119, 2, 'a', 0, 106, 106), &w), -EINVAL);
    CHECK_EQ(get_words(T_TERM(104, 3, 119, 0, 107, 0, 1, 0, 106), &w), -EINVAL);
    CHECK_EQ(get_words(T_TERM(104, 3, 119, 0, 106, 109, 0, 0, 0, 1, 0), &w), -EINVAL);
}

TEST(term_struct, text_without_an_end_or_no_utf8_is_refused)
{
    struct words w = {"abc", "abc", "\xe6\x97\xa5"};
    term_of(&words_term, &w);
    CHECK_STR_EQ(text, "{abc,<<\"abc\">>,[26085]}");
    memcpy(w.list, "\xff", 2);
    CHECK_EQ(put_error(&words_term, &w, NULL), -EINVAL);
    memcpy(w.list, "abcd", 4);
    CHECK_EQ(put_error(&words_term, &w, NULL), -EINVAL);
    memcpy(w.list, "abc", 4);
    memcpy(w.text, "abcd", 4);
    CHECK_EQ(put_error(&words_term, &w, NULL), -EINVAL);
    memcpy(w.text, "\xff", 2); /* a binary has any bytes */
    CHECK_EQ(put_error(&words_term, &w, NULL), 0);
    memcpy(w.atom, "\xff", 2);
    blitz_term_out out;
    blitz_term_out_init(&out, buf, sizeof buf);
    CHECK_EQ(blitz_term_put_struct(&out, &words_term, &w, NULL), 0);
    CHECK_EQ(blitz_term_out_end(&out, NULL), -EINVAL);
}

struct blob {
    unsigned char data[300];
    uint8_t used;
    unsigned char fixed[2];
};
BLITZ_TERM_TUPLE(blob_term, struct blob, BLITZ_TERM_BYTES(struct blob, data, used),
                 BLITZ_TERM_FIXED(struct blob, fixed));

TEST(term_struct, binaries_must_fit_the_array_and_its_count)
{
    static const uint32_t sizes[] = {0, 1, 255, 256, 300, 301};
    for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++)
        for (uint32_t fixed = 1; fixed <= 3; fixed++) {
            static unsigned char zeros[301];
            struct blob b;
            blitz_term_out out;
            size_t bytes;
            blitz_term_out_init(&out, buf, sizeof buf);
            blitz_term_put_tuple(&out, 2);
            blitz_term_put_binary(&out, zeros, sizes[i]);
            blitz_term_put_binary(&out, zeros, fixed);
            CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
            blitz_term_in in = blitz_term_in_of((blitz_term){buf, bytes});
            int want = sizes[i] > 255 ? -ERANGE : fixed != 2 ? -EINVAL : 0;
            CHECK_EQ(blitz_term_get_struct(&in, &blob_term, &b, NULL), want);
            if (want == 0)
                CHECK_EQ(b.used, sizes[i]);
        }
    struct order o = sample;
    o.data_used = 301;
    CHECK_EQ(put_error(&order_term, &o, &env), -EINVAL);
}

/* ---- ids and cargo ---- */

TEST(term_struct, ids_are_the_nodes_to_translate)
{
    struct order o = sample, got;
    CHECK_EQ(put_error(&order_term, &o, NULL), -EOPNOTSUPP);
    blitz_term_in in = blitz_term_in_of(term_of(&order_term, &o));
    CHECK_EQ(blitz_term_get_struct(&in, &order_term, &got, NULL), -EOPNOTSUPP);
    verdict = -EHOSTUNREACH;
    CHECK_EQ(put_error(&order_term, &o, &env), -EHOSTUNREACH);
    verdict = 0;
    in = blitz_term_in_of(term_of(&order_term, &o));
    verdict = -ESRCH;
    CHECK_EQ(blitz_term_get_struct(&in, &order_term, &got, &env), -ESRCH);
    verdict = 0;
    o.from = (blitz_actor_id){0, 0, 0, 0}; /* no id: no node is asked */
    in = blitz_term_in_of(term_of(&order_term, &o));
    CHECK_NOT_NULL(strstr(text, ",undefined,{-1,1}}"));
    CHECK_EQ(blitz_term_get_struct(&in, &order_term, &got, NULL), 0);
    CHECK_MEM_EQ(&got.from, &o.from, sizeof got.from);
}

BLITZ_TERM_CARGO_ONLY(blob_message, "blob");
BLITZ_TERM_EMPTY(stop_message, "stop");
BLITZ_TERM_STRUCT(move_message, struct point, "move", BLITZ_TERM_INT(struct point, x),
                  BLITZ_TERM_INT(struct point, y));
BLITZ_TERM_STRUCT(move1_message, struct point, "move", BLITZ_TERM_INT(struct point, x));
BLITZ_TERM_BARE(number_message, int64_t, BLITZ_TERM_WHOLE_INT(int64_t));
enum { BLOB = 7, STOP, MOVE, MOVE1, POINT, NUMBER };
static const blitz_term_message messages[] = {
    {BLOB, &blob_message, NULL},   {STOP, &stop_message, NULL}, {MOVE, &move_message, NULL},
    {MOVE1, &move1_message, NULL}, {POINT, &point_term, NULL},  {NUMBER, &number_message, NULL}};

static void message_is(uint32_t what, const void *payload, size_t size, const char *want)
{
    blitz_term_out out;
    size_t bytes;
    unsigned char got[16];
    const blitz_term_message *row = NULL;
    blitz_term_env e = {.cargo = {(const unsigned char *)"xyz", 3}};
    blitz_term_out_init(&out, buf, sizeof buf);
    CHECK_EQ(
        blitz_term_put_message(&out, messages, BZ_ARRAY_LEN(messages), what, payload, size, &e), 0);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    CHECK_GT(blitz_term_print((blitz_term){buf, bytes}, text, sizeof text), 0);
    CHECK_STR_EQ(text, want);
    blitz_term_in in = blitz_term_in_of((blitz_term){buf, bytes});
    e.cargo = (blitz_term){NULL, 0};
    CHECK_EQ(
        blitz_term_get_message(&in, messages, BZ_ARRAY_LEN(messages), &row, got, sizeof got, &e),
        0);
    CHECK_NOT_NULL(row);
    CHECK_EQ(row->what, what);
    CHECK_EQ(row->payload->size, size);
    if (size > 0 && what != MOVE1)
        CHECK_MEM_EQ(got, payload, size);
    CHECK_EQ(e.cargo.bytes, what == BLOB ? 3u : 0u);
    if (what == BLOB)
        CHECK_MEM_EQ(e.cargo.data, "xyz", 3);
}

TEST(term_struct, messages_are_told_by_tag_and_number_of_parts)
{
    struct point p = {3, -4};
    int64_t number = -5;
    message_is(BLOB, NULL, 0, "{blob,<<\"xyz\">>}");
    message_is(STOP, NULL, 0, "stop");
    message_is(MOVE, &p, sizeof p, "{move,3,-4}");
    message_is(MOVE1, &p, sizeof p, "{move,3}");
    message_is(POINT, &p, sizeof p, "{3,-4}");
    message_is(NUMBER, &number, sizeof number, "-5");
}

TEST(term_struct, unknown_messages_are_refused)
{
    unsigned char got[16];
    const blitz_term_message *row;
    blitz_term_out out;
    blitz_term_in in = blitz_term_in_of(T_TERM(119, 2, 'n', 'o'));
    CHECK_EQ(blitz_term_get_message(&in, messages, 5, &row, got, sizeof got, NULL), -ENOENT);
    CHECK_EQ(blitz_term_get_message(&in, messages, 6, &row, got, sizeof got, NULL),
             -EINVAL); /* the bare row */
    in = blitz_term_in_of(T_TERM(104, 2, 119, 4, 'm', 'o', 'v', 'e', 97, 1));
    CHECK_EQ(blitz_term_get_message(&in, messages, 6, &row, got, 7, NULL), -ERANGE); /* no room */
    in = blitz_term_in_of(T_TERM(104, 2, 119, 4, 'b', 'l', 'o', 'b', 109, 0, 0, 0, 0));
    CHECK_EQ(blitz_term_get_message(&in, messages, 6, &row, got, sizeof got, NULL),
             -EOPNOTSUPP); /* no env for it */
    in = blitz_term_in_of((blitz_term){NULL, 0});
    CHECK_EQ(blitz_term_get_message(&in, messages, 6, &row, got, sizeof got, NULL), -EPROTO);
    blitz_term_out_init(&out, buf, sizeof buf);
    CHECK_EQ(blitz_term_put_message(&out, messages, 6, 99, NULL, 0, NULL), -ENOENT);
    CHECK_EQ(blitz_term_out_end(&out, NULL), -ENOENT);
    blitz_term_out_init(&out, buf, sizeof buf);
    CHECK_EQ(blitz_term_put_message(&out, messages, 6, MOVE, got, 7, NULL), -EINVAL);
}

/* A table that contains itself is a bug of the program; it must not overflow the stack. */
TEST(term_struct, a_table_that_contains_itself_is_refused)
{
    static blitz_term_part part = {BLITZ_TERM_PART_NESTED_, 0, 8, 0, 0, NULL};
    static blitz_term_type type = {NULL, 8, 0, 1, &part};
    unsigned char value[8] = {0}, deep[] = {104, 1, 104, 1, 104, 1, 104, 1, 104, 1,
                                            104, 1, 104, 1, 104, 1, 104, 1, 106};
    part.of = &type;
    CHECK_EQ(put_error(&type, value, NULL), -EINVAL);
    blitz_term_in in = blitz_term_in_of((blitz_term){deep, sizeof deep});
    CHECK_EQ(blitz_term_get_struct(&in, &type, value, NULL), -EINVAL);
}
