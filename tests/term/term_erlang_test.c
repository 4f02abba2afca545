/*
 * The encoding of terms beside that of libei and of Erlang.
 */
#include "harness.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/terms.h"

#if defined(BLITZ_HAS_EI)
#include <ei.h>
#endif

enum { ROOM = 1 << 16, TEXT_ROOM = 1 << 17 };

/* A random term. Returns its size with the version byte. */
static size_t a_term(struct t_rng *r, unsigned char *buf, unsigned with)
{
    size_t bytes;
    blitz_term_out out;
    blitz_term_out_init(&out, buf, ROOM);
    blitz_term_put_version(&out);
    t_put_any_term(r, &out, 5, with);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return bytes;
}

/* ---- libei ---- */

#if defined(BLITZ_HAS_EI)

static const char *name_of(blitz_term_atom atom)
{
    static char text[MAXATOMLEN_UTF8];
    CHECK_GE(blitz_term_atom_copy(atom, text, sizeof text), 0);
    return text;
}

static int ei_identity(ei_x_buff *x, const blitz_term_item *item)
{
    erlang_pid pid = {
        .num = item->as.pid.id, .serial = item->as.pid.serial, .creation = item->as.pid.creation};
    erlang_port port = {.id = item->as.port.id, .creation = item->as.port.creation};
    erlang_ref ref = {.len = (int)item->as.ref.words, .creation = item->as.ref.creation};
    switch (item->kind) {
    case BLITZ_TERM_IS_PID:
        memcpy(pid.node, name_of(item->as.pid.node), sizeof pid.node);
        return ei_x_encode_pid(x, &pid);
    case BLITZ_TERM_IS_PORT:
        memcpy(port.node, name_of(item->as.port.node), sizeof port.node);
        return ei_x_encode_port(x, &port);
    default:
        memcpy(ref.node, name_of(item->as.ref.node), sizeof ref.node);
        for (uint32_t i = 0; i < item->as.ref.words; i++)
            ref.n[i] = item->as.ref.id[i];
        return ei_x_encode_ref(x, &ref);
    }
}

static int ei_export(ei_x_buff *x, const blitz_term_export *fun)
{
    erlang_fun f = {.arity = fun->arity, .type = EI_FUN_EXPORT};
    char function[MAXATOMLEN_UTF8];
    memcpy(f.module, name_of(fun->module), sizeof f.module);
    memcpy(function, name_of(fun->function), sizeof function);
    f.u.exprt.func = function;
    f.u.exprt.func_allocated = 0;
    return ei_x_encode_fun(x, &f);
}

static int ei_big(ei_x_buff *x, blitz_term_big big)
{
    unsigned long long sum = 0;
    CHECK(big.bytes <= 8 && !big.is_negative);
    for (uint32_t i = big.bytes; i-- > 0;)
        sum = sum << 8 | big.digits[i];
    return ei_x_encode_ulonglong(x, sum);
}

static int ei_item(ei_x_buff *x, const blitz_term_item *item)
{
    switch (item->kind) {
    case BLITZ_TERM_IS_INT:
        return ei_x_encode_longlong(x, item->as.integer);
    case BLITZ_TERM_IS_BIG:
        return ei_big(x, item->as.big);
    case BLITZ_TERM_IS_FLOAT:
        return ei_x_encode_double(x, item->as.number);
    case BLITZ_TERM_IS_ATOM:
        return ei_x_encode_atom_len_as(x, item->as.atom.text, item->as.atom.bytes, ERLANG_UTF8,
                                       ERLANG_UTF8);
    case BLITZ_TERM_IS_TUPLE:
        return ei_x_encode_tuple_header(x, item->as.count);
    case BLITZ_TERM_IS_NIL:
        return ei_x_encode_empty_list(x);
    case BLITZ_TERM_IS_LIST:
        return ei_x_encode_list_header(x, item->as.count);
    case BLITZ_TERM_IS_STRING:
        return ei_x_encode_string_len(x, (const char *)item->as.binary.data,
                                      (int)item->as.binary.bytes);
    case BLITZ_TERM_IS_MAP:
        return ei_x_encode_map_header(x, item->as.count);
    case BLITZ_TERM_IS_BINARY:
        return ei_x_encode_binary(x, item->as.binary.data, (int)item->as.binary.bytes);
    case BLITZ_TERM_IS_BITS:
        return ei_x_encode_bitstring(x, (const char *)item->as.bits.data, 0, item->as.bits.bits);
    case BLITZ_TERM_IS_EXPORT:
        return ei_export(x, &item->as.fun);
    default:
        return ei_identity(x, item);
    }
}

/* libei must write the same bytes, term by term, and read them to their end. */
TEST(term_erlang, libei_writes_the_same_bytes)
{
    static unsigned char buf[ROOM];
    struct t_rng r = t_rng_of(0);
    for (uint64_t i = 0, n = t_scaled(20000); i < n; i++) {
        size_t bytes = a_term(&r, buf, T_TERM_MAPS | T_TERM_NODES);
        blitz_term_in in = blitz_term_in_of((blitz_term){buf + 1, bytes - 1});
        blitz_term_item item;
        ei_x_buff x;
        CHECK_EQ(ei_x_new_with_version(&x), 0);
        while (!blitz_term_at_end(&in)) {
            CHECK_EQ(blitz_term_next(&in, &item), 0);
            CHECK_EQ(ei_item(&x, &item), 0);
        }
        CHECK_EQ((size_t)x.index, bytes);
        CHECK_MEM_EQ(x.buff, buf, bytes);
        int index = 1;
        CHECK_EQ(ei_skip_term((const char *)buf, &index), 0);
        CHECK_EQ((size_t)index, bytes);
        CHECK_EQ(ei_x_free(&x), 0);
    }
}

/* From 2^27 to 2^31 libei writes digits where Erlang writes 4 bytes: another form of the same integer. */
TEST(term_erlang, libei_reads_and_writes_all_integers)
{
    static const int64_t values[] = {0,
                                     255,
                                     256,
                                     -1,
                                     (1 << 27) - 1,
                                     1 << 27,
                                     INT32_MAX,
                                     INT32_MIN,
                                     INT64_C(1) << 31,
                                     -(INT64_C(1) << 31) - 1,
                                     INT64_MAX,
                                     INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        unsigned char buf[16];
        char theirs[32];
        blitz_term_out out;
        size_t bytes;
        long long got;
        int64_t ours;
        int index = 0;
        blitz_term_out_init(&out, buf, sizeof buf);
        blitz_term_put_int(&out, values[i]);
        CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
        CHECK_EQ(ei_decode_longlong((const char *)buf, &index, &got), 0);
        CHECK_EQ(got, values[i]);
        index = 0;
        CHECK_EQ(ei_encode_longlong(theirs, &index, values[i]), 0);
        blitz_term_in in =
            blitz_term_in_of((blitz_term){(const unsigned char *)theirs, (size_t)index});
        CHECK_EQ(blitz_term_get_int(&in, &ours), 0);
        CHECK_EQ(ours, values[i]);
    }
}

#else

TEST(term_erlang, libei_writes_the_same_bytes)
{
    t_skip("libei is not installed (erlang-dev)");
}

#endif

/* ---- Erlang ---- */

struct exchange {
    char dir[64], in[80], out[80];
};

static void begin(struct exchange *x)
{
    if (system("command -v escript >/dev/null 2>&1") != 0)
        t_skip("escript is not installed (erlang-base)");
    (void)snprintf(x->dir, sizeof x->dir, "/tmp/blitz-terms-XXXXXX");
    CHECK_NOT_NULL(mkdtemp(x->dir));
    (void)snprintf(x->in, sizeof x->in, "%s/in", x->dir);
    (void)snprintf(x->out, sizeof x->out, "%s/out", x->dir);
}

static void end(struct exchange *x)
{
    (void)unlink(x->in);
    (void)unlink(x->out);
    CHECK_EQ(rmdir(x->dir), 0);
}

static void run(const char *what, const char *first, const char *second)
{
    char command[600];
    (void)snprintf(command, sizeof command, "escript %s %s %s %s", TERMS_ESCRIPT, what, first,
                   second);
    int status = system(command);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static void put_frame(FILE *f, const void *data, size_t bytes)
{
    unsigned char head[4] = {(unsigned char)(bytes >> 24), (unsigned char)(bytes >> 16),
                             (unsigned char)(bytes >> 8), (unsigned char)bytes};
    CHECK_EQ(fwrite(head, 1, sizeof head, f), sizeof head);
    CHECK_EQ(fwrite(data, 1, bytes, f), bytes);
}

/* Read a frame. Returns its size, or 0 at the end. */
static size_t get_frame(FILE *f, unsigned char *buf, size_t room)
{
    unsigned char head[4];
    if (fread(head, 1, sizeof head, f) != sizeof head)
        return 0;
    size_t bytes = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    CHECK_LE(bytes, room);
    CHECK_EQ(fread(buf, 1, bytes, f), bytes);
    return bytes;
}

static bool has(blitz_term term, blitz_term_kind kind)
{
    blitz_term_in in = blitz_term_in_of(term);
    blitz_term_item item;
    while (blitz_term_next(&in, &item) == 0)
        if (item.kind == kind)
            return true;
    return false;
}

/* Erlang decodes each of our terms and encodes it in the same bytes. Only the keys of a map may come in another order. */
static void echo(unsigned with, bool has_text)
{
    static unsigned char ours[ROOM], theirs[ROOM];
    static char text[TEXT_ROOM];
    struct exchange x;
    begin(&x);
    uint64_t n = t_scaled(4000);
    FILE *f = fopen(x.in, "wb");
    CHECK_NOT_NULL(f);
    struct t_rng r = t_rng_of(1);
    for (uint64_t i = 0; i < n; i++) {
        size_t bytes = a_term(&r, ours, with);
        int64_t length = blitz_term_print((blitz_term){ours + 1, bytes - 1}, text, sizeof text);
        CHECK(length > 0 && length < (int64_t)sizeof text);
        put_frame(f, ours, bytes);
        put_frame(f, text, has_text ? (size_t)length : 0);
    }
    CHECK_EQ(fclose(f), 0);

    run("echo", x.in, x.out);

    f = fopen(x.out, "rb");
    CHECK_NOT_NULL(f);
    r = t_rng_of(1);
    for (uint64_t i = 0; i < n; i++) {
        size_t bytes = a_term(&r, ours, with);
        blitz_term a = {ours + 1, bytes - 1}, b;
        CHECK_EQ(get_frame(f, theirs, sizeof theirs), bytes);
        CHECK_EQ(blitz_term_check(theirs, bytes, NULL, &b, NULL), 0);
        CHECK_EQ(blitz_term_equal(a, b), 1);
        if (!has(a, BLITZ_TERM_IS_MAP))
            CHECK_MEM_EQ(theirs, ours, bytes);
    }
    CHECK_EQ(fclose(f), 0);
    end(&x);
}

TEST_LIMIT(term_erlang, erlang_writes_the_same_bytes, 300)
{
    echo(T_TERM_ALL, false);
}

TEST_LIMIT(term_erlang, erlang_parses_what_we_print_as_the_same_term, 300)
{
    echo(T_TERM_BIGS | T_TERM_WIDE | T_TERM_MAPS, true);
}

/* Terms of Erlang, with its pids, references, ports and funs, are read and written again in the same bytes. With Latin-1 atoms
 * it is an equal term. */
TEST_LIMIT(term_erlang, terms_of_erlang_come_back_in_the_same_bytes, 300)
{
    static unsigned char first[1 << 19], second[1 << 19], copy[1 << 19];
    struct exchange x;
    char seed[40];
    begin(&x);
    (void)snprintf(seed, sizeof seed, "%u", (unsigned)t_random_below(1u << 30));
    CHECK_EQ(setenv("TERMS_SEED", seed, 1), 0);
    run("make", "2000", x.out);
    FILE *f = fopen(x.out, "rb");
    CHECK_NOT_NULL(f);
    size_t bytes, count = 0;
    for (; (bytes = get_frame(f, first, sizeof first)) != 0; count++) {
        t_watch("term %zu of seed %s", count, seed);
        blitz_term a, b;
        blitz_term_out out;
        size_t used;
        CHECK_EQ(blitz_term_check(first, bytes, NULL, &a, &used), 0);
        CHECK_EQ(used, bytes);
        blitz_term_out_init(&out, copy, sizeof copy);
        blitz_term_put_version(&out);
        CHECK_EQ(t_copy_term(a, &out), 0);
        CHECK_EQ(blitz_term_out_end(&out, &used), 0);
        CHECK_EQ(used, bytes);
        CHECK_MEM_EQ(copy, first, bytes);
        bytes = get_frame(f, second, sizeof second);
        CHECK_EQ(blitz_term_check(second, bytes, NULL, &b, NULL), 0);
        int same = blitz_term_equal(a, b);
        /* A fun is compared as bytes, and those of a fun of a module have the name of the module in Latin-1 there. */
        CHECK(same == 1 || (same == 0 && has(a, BLITZ_TERM_IS_FUN)));
    }
    CHECK_GE(count, 2000u);
    CHECK_EQ(fclose(f), 0);
    end(&x);
}
