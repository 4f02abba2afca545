/*
 * The reader of terms on random input.
 *
 * An input begins as a valid term and then loses or changes a few bytes, or it is made of random bytes, most of them tags. It lies in
 * memory of exactly its size, so that AddressSanitizer sees each access beyond. Each function that reads is called for each input. A
 * term that passes blitz_term_check() must then be readable, printable, and equal to its own copy.
 *
 * `make fuzz-terms` runs twelve million inputs; BLITZ_FUZZ_INPUTS sets another number for each case.
 */
#include "harness.h"

#include "base/bits.h"
#include "base/compiler.h"
#include "blitz/term_struct.h"
#include "support/terms.h"

enum { ROOM = 4096 };

static uint64_t inputs(void)
{
    const char *text = getenv("BLITZ_FUZZ_INPUTS");
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : t_scaled(40000);
}

static uint32_t below(struct t_rng *r, uint32_t n)
{
    return (uint32_t)t_rng_below(r, n);
}

static const unsigned char tags[] = {70,  77,  88,  89,  90,  97,  98,  100, 101, 102,
                                     103, 104, 105, 106, 107, 108, 109, 110, 111, 112,
                                     113, 114, 115, 116, 118, 119, 120, 131};

/* Change, drop or double a few bytes. Returns the new length. */
static size_t damage(struct t_rng *r, unsigned char *data, size_t bytes, size_t room)
{
    static const unsigned char edges[] = {0, 1, 2, 127, 128, 254, 255};
    for (uint32_t times = below(r, 6); times > 0 && bytes > 0; times--) {
        size_t at = below(r, (uint32_t)bytes), n = 1 + below(r, 8);
        n = n < bytes - at ? n : bytes - at;
        switch (below(r, 7)) {
        case 0:
            data[at] = (unsigned char)below(r, 256);
            break;
        case 1:
            data[at] ^= (unsigned char)(1u << below(r, 8));
            break;
        case 2:
            memmove(data + at, data + at + n, bytes - at - n);
            bytes -= n;
            break;
        case 3:
            if (bytes + n <= room) {
                memmove(data + at + n, data + at, bytes - at);
                bytes += n;
            }
            break;
        case 4:
            data[at] = tags[below(r, sizeof tags)];
            break;
        case 5:
            data[at] = edges[below(r, sizeof edges)];
            break;
        default:
            bytes = at;
            break;
        }
    }
    return bytes;
}

struct point {
    int16_t x, y;
};
struct sample {
    int8_t small;
    uint64_t large;
    bool flag;
    double number;
    char name[8], text[9], list[10];
    unsigned char bytes[6];
    uint8_t used;
    struct point at;
};
BLITZ_TERM_TUPLE(point_term, struct point, BLITZ_TERM_INT(struct point, x),
                 BLITZ_TERM_INT(struct point, y));
BLITZ_TERM_STRUCT(sample_term, struct sample, "sample", BLITZ_TERM_INT(struct sample, small),
                  BLITZ_TERM_UINT(struct sample, large), BLITZ_TERM_BOOL(struct sample, flag),
                  BLITZ_TERM_DOUBLE(struct sample, number), BLITZ_TERM_ATOM(struct sample, name),
                  BLITZ_TERM_TEXT(struct sample, text), BLITZ_TERM_STRING(struct sample, list),
                  BLITZ_TERM_BYTES(struct sample, bytes, used),
                  BLITZ_TERM_NESTED(struct sample, at, point_term), BLITZ_TERM_CARGO());
BLITZ_TERM_EMPTY(stop_term, "ok");
static const blitz_term_message messages[] = {{1, &sample_term, NULL}, {2, &stop_term, NULL}};

static void put_sample(struct t_rng *r, blitz_term_out *out)
{
    struct sample s = {(int8_t)below(r, 256),
                       t_rng_next(r),
                       below(r, 2) == 0,
                       0.5,
                       "name",
                       "text",
                       "list",
                       {1, 2, 3},
                       (uint8_t)below(r, 7),
                       {3, -4}};
    blitz_term_env env = {.cargo = {(const unsigned char *)"cargo", 5}};
    CHECK_EQ(blitz_term_put_struct(out, &sample_term, &s, &env), 0);
}

static void expected(int rc)
{
    CHECK(rc == 0 || rc == -EPROTO || rc == -EINVAL || rc == -ERANGE || rc == -E2BIG ||
          rc == -ENOENT || rc == -EOPNOTSUPP);
}

/* Read bytes of any kind by each function, for what AddressSanitizer says to that. */
static void read_by_each(const unsigned char *data, size_t bytes)
{
    const blitz_term term = {data, bytes};
    blitz_term_in in = blitz_term_in_of(term), copy;
    blitz_term_item item;
    blitz_term_list list;
    blitz_term view;
    char text[24];
    unsigned char payload[sizeof(struct sample)];
    const blitz_term_message *row;
    blitz_term_env env = {0};
    (void)blitz_term_print(term, text, sizeof text);
    expected(blitz_term_map_find(term, "ok", &view));
    while (blitz_term_next(&in, &item) == 0) {
        copy = in;
        expected(blitz_term_skip(&copy));
        copy = in;
        expected(blitz_term_get_text(&copy, text, sizeof text, NULL));
        copy = in;
        if (blitz_term_get_elements(&copy, &list) == 0)
            while (blitz_term_next_element(&list, &view) == 1)
                CHECK_GE(view.bytes, 1u);
        copy = in;
        expected(blitz_term_get_message(&copy, messages, BZ_ARRAY_LEN(messages), &row, payload,
                                        sizeof payload, &env));
    }
}

struct tally {
    uint64_t good, bad, deep, equal, different;
};

/* A term that was accepted is one for every reader. */
static void check_good(struct tally *t, blitz_term term, blitz_term other)
{
    static unsigned char buf[3 * ROOM];
    static char text[64];
    blitz_term copy;
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, buf, sizeof buf);
    blitz_term_put_version(&out);
    CHECK_EQ(t_copy_term(term, &out), 0);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    CHECK_EQ(blitz_term_check(buf, bytes, NULL, &copy, NULL), 0);
    CHECK_EQ(copy.bytes, bytes - 1);
    CHECK_EQ(blitz_term_equal(term, copy), 1);
    CHECK_EQ(blitz_term_equal(copy, term), 1);
    CHECK_GE(blitz_term_print(term, text, sizeof text), 1);
    int same = blitz_term_equal(term, other);
    CHECK(same == 0 || same == 1);
    CHECK_EQ(blitz_term_equal(other, term), same);
    t->equal += same == 1;
    t->different += same == 0;
}

static void try_input(struct tally *t, const unsigned char *bytes, size_t n, blitz_term other)
{
    unsigned char *data = t_exactly(bytes, n);
    blitz_term term;
    size_t used;
    int rc = blitz_term_check(data, n, NULL, &term, &used);
    CHECK(rc == 0 || rc == -EPROTO || rc == -E2BIG);
    if (rc == 0) {
        CHECK_LE(used, n);
        CHECK_EQ(used, term.bytes + 1);
        check_good(t, term, other);
        t->good++;
    } else {
        t->bad += rc == -EPROTO;
        t->deep += rc == -E2BIG;
    }
    read_by_each(data + (n > 0), n - (n > 0));
    free(data);
}

TEST_LIMIT(term_fuzz, damaged_terms, 7200)
{
    struct t_rng r = t_rng_of(0);
    struct tally t = {0};
    static unsigned char first[ROOM], input[ROOM];
    for (uint64_t i = 0, n = inputs(); i < n; i++) {
        blitz_term_out out;
        size_t bytes;
        blitz_term_out_init(&out, first, sizeof first);
        blitz_term_put_version(&out);
        if (below(&r, 4) == 0)
            put_sample(&r, &out);
        else
            t_put_any_term(&r, &out, below(&r, 4), T_TERM_ALL);
        if (blitz_term_out_end(&out, &bytes) != 0)
            continue; /* too long for the buffer */
        memcpy(input, first, bytes);
        size_t length = damage(&r, input, bytes, sizeof input);
        try_input(&t, input, length, (blitz_term){first + 1, bytes - 1});
    }
    t_note("%llu terms, %llu no terms, %llu equal, %llu different", (unsigned long long)t.good,
           (unsigned long long)t.bad, (unsigned long long)t.equal, (unsigned long long)t.different);
    if (inputs() >= 1000) { /* the inputs are not all refused at the door */
        CHECK_GT(t.good, 0u);
        CHECK_GT(t.bad, 0u);
        CHECK_GT(t.different, 0u);
    }
}

TEST_LIMIT(term_fuzz, random_tags, 7200)
{
    struct t_rng r = t_rng_of(1);
    struct tally t = {0};
    unsigned char input[400];
    for (uint64_t i = 0, n = inputs(); i < n; i++) {
        size_t bytes = 1 + below(&r, below(&r, 8) == 0 ? sizeof input : 24);
        uint32_t most = 1 + below(&r, 6);
        input[0] = 131;
        for (size_t at = 1; at < bytes; at++)
            input[at] = below(&r, 8) < most ? tags[below(&r, sizeof tags)]
                                            : (unsigned char)below(&r, below(&r, 2) == 0 ? 3 : 256);
        try_input(&t, input, bytes, T_TERM(97, 1));
    }
    t_note("%llu terms, %llu no terms, %llu too deep", (unsigned long long)t.good,
           (unsigned long long)t.bad, (unsigned long long)t.deep);
}

/* Heads of tuples, lists and maps alone: deep terms, which the limit on the depth must end. Few, since each level is read by each. */
TEST_LIMIT(term_fuzz, deep_terms, 7200)
{
    static const unsigned char heads[][5] = {
        {104, 1}, {108, 0, 0, 0, 1}, {116, 0, 0, 0, 1}, {104, 2}};
    static const size_t sizes[] = {2, 5, 5, 2};
    struct t_rng r = t_rng_of(2);
    struct tally t = {0};
    static unsigned char input[ROOM];
    for (uint64_t i = 0, n = 40 + inputs() / 10000; i < n; i++) {
        size_t bytes = 1;
        uint32_t only = below(&r, 6), depth = below(&r, 600);
        input[0] = 131;
        for (uint32_t d = 0; d < depth; d++) {
            uint32_t head = only < 4 ? only : below(&r, 4);
            memcpy(input + bytes, heads[head], sizes[head]);
            bytes += sizes[head];
            if (head == 2 && below(&r, 2) == 0)
                input[bytes++] = 106; /* a key: the next is in the value */
        }
        while (bytes < ROOM && below(&r, 2 * depth + 2) != 0)
            input[bytes++] = 106;
        try_input(&t, input, bytes, T_TERM(97, 1));
    }
    t_note("%llu terms, %llu no terms, %llu too deep", (unsigned long long)t.good,
           (unsigned long long)t.bad, (unsigned long long)t.deep);
    CHECK_GT(t.deep, 0u);
}
