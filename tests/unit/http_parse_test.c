/* http_parse_test.c - the parser of the HTTP example: what it takes, what it refuses, and nonsense by the million. */
#include "../../examples/http_parse.h"
#include "harness.h"

#define GET "GET /index.html HTTP/1.1\r\n"
#define HOST "Host: a\r\n"

/* Bytes as they come: without an end. */
static size_t put(char *to, const char *from, size_t len)
{
    memcpy(to, from, len);
    return len;
}

/* On the heap and exactly as long: a byte read past the end is found. */
static int parse_exactly(const char *bytes, size_t len, struct http_request *r, char **copy)
{
    *copy = malloc(len + (len == 0));
    put(*copy, bytes, len);
    return http_parse(*copy, len, r);
}

static int parse(const char *text, struct http_request *r)
{
    char *copy;
    int got = parse_exactly(text, strlen(text), r, &copy);
    free(copy);
    return got;
}

TEST(http_parse, parses_requests_of_browsers)
{
    struct http_request r;
    static const char text[] = GET "Host: a\r\nUser-Agent: x\r\nAccept: */*\r\n\r\nrest";

    int got = http_parse(text, sizeof text - 1, &r);

    CHECK_EQ(got, (int)sizeof text - 1 - 4);
    CHECK(http_is(r.method, "GET"));
    CHECK(http_is(r.target, "/index.html"));
    CHECK_EQ(r.minor, 1);
    CHECK(r.is_kept);
    CHECK(!r.has_length && !r.is_chunked);
}

/* Every cut of a good head asks for more; only the whole is taken. */
TEST(http_parse, a_head_in_pieces_is_waited_for)
{
    struct http_request r;
    static const char text[] = "POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n"
                               "Connection: close\r\nX-Odd: \t a b \r\n\r\n";
    for (size_t len = 0; len < sizeof text - 1; len++) {
        char *copy;
        CHECK_EQ(parse_exactly(text, len, &r, &copy), 0);
        free(copy);
    }
    CHECK_EQ(parse(text, &r), (int)sizeof text - 1);
    CHECK(r.has_length);
    CHECK_EQ(r.length, 12);
    CHECK(!r.is_kept);
}

TEST(http_parse, connections_are_kept_as_the_version_has_it)
{
    struct http_request r;
    CHECK_GT(parse("GET / HTTP/1.0\r\n\r\n", &r), 0);
    CHECK(!r.is_kept);
    CHECK_GT(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", &r), 0);
    CHECK(r.is_kept);
    CHECK_GT(parse(GET HOST "\r\n", &r), 0);
    CHECK(r.is_kept);
    CHECK_GT(parse(GET HOST "Connection: upgrade , CLOSE\r\n\r\n", &r), 0);
    CHECK(!r.is_kept);
}

/* Input that two servers parse differently allows request smuggling. */
TEST(http_parse, refuses_ambiguous_requests)
{
    struct http_request r;
    static const struct {
        const char *text;
        int status;
    } wrong[] = {
        {GET "\r\n", -400},                        /* no Host */
        {GET HOST HOST "\r\n", -400},              /* two */
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", -400}, /* two spaces */
        {"GET / HTTP/1.1\n" HOST "\r\n", -400},    /* a bare LF */
        {GET "Host: a\n\r\n", -400},               /* another */
        {GET "Host: a\rb\r\n\r\n", -400},          /* a bare CR */
        {GET "Host : a\r\n\r\n", -400},            /* space before the colon */
        {GET HOST " folded\r\n\r\n", -400},        /* a folded line */
        {GET HOST ": nothing\r\n\r\n", -400},      /* no name */
        {GET HOST "X: \x01\r\n\r\n", -400},        /* a control character */
        {GET HOST "X: \x7f\r\n\r\n", -400},        /* another */
        {GET HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", -400}, /* two lengths */
        {GET HOST "Content-Length: +1\r\n\r\n", -400},                     /* no number */
        {GET HOST "Content-Length: \r\n\r\n", -400},                       /* none at all */
        {GET HOST "Content-Length: 1,1\r\n\r\n", -400},                    /* a list */
        {GET HOST "Content-Length: 9999999999999999\r\n\r\n", -400},       /* no such file */
        {GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", -400},
        {GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", -400},
        {GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", -501},
        {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", -400},
        {"GET / HTTP/2.0\r\n" HOST "\r\n", -505},
        {"GET / HTTP/1.10\r\n" HOST "\r\n", -400},
        {"GET / http/1.1\r\n" HOST "\r\n", -400},
        {"GET /a#b HTTP/1.1\r\n" HOST "\r\n", -400},
        {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", -400},
        {" GET / HTTP/1.1\r\n" HOST "\r\n", -400},
        {"G\"T / HTTP/1.1\r\n" HOST "\r\n", -400},
        {"\r\n" GET HOST "\r\n", -400},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int got = parse(wrong[i].text, &r);
        if (got != wrong[i].status)
            printf("case %zu: %s\n", i, wrong[i].text);
        CHECK_EQ(got, wrong[i].status);
    }
}

/* The memory for a request is bounded, however much a client sends. */
TEST(http_parse, heads_have_limits)
{
    struct http_request r;
    static char text[HTTP_HEAD_MAX + 1];
    memset(text, 'a', sizeof text - 1);
    CHECK_EQ(http_parse(text, sizeof text - 1, &r), -414); /* a method without end */
    put(text, "GET /", 5);
    CHECK_EQ(http_parse(text, HTTP_LINE_MAX + 100, &r), -414);
    put(text, GET "X:", sizeof GET "X:" - 1);
    CHECK_EQ(http_parse(text, HTTP_HEAD_MAX - 1, &r), 0);
    CHECK_EQ(http_parse(text, HTTP_HEAD_MAX, &r), -431);
    size_t len = (size_t)snprintf(text, sizeof text, GET HOST);
    for (int i = 0; i < HTTP_FIELDS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "X%d: y\r\n", i);
    len += (size_t)snprintf(text + len, sizeof text - len, "\r\n");
    CHECK_EQ(http_parse(text, len, &r), -431);
}

static bool path_of(const char *target, char *out)
{
    return http_path((struct http_text){target, strlen(target)}, out);
}

TEST(http_parse, a_path_stays_below_its_folder)
{
    char out[HTTP_PATH_MAX];
    CHECK(path_of("/", out) && strcmp(out, "") == 0);
    CHECK(path_of("/a/b.html?c=../d", out) && strcmp(out, "a/b.html") == 0);
    CHECK(path_of("/a%20b%C3%a4", out) && strcmp(out, "a b\xc3\xa4") == 0);
    static const char *wrong[] = {
        "",         "a",     "*",       "/../a",  "/a/../b",      "/%2e%2e/a",
        "/.hidden", "//a",   "/a//b",   "/a%00b", "/a%0ab",       "/a%",
        "/a%2",     "/a%zz", "/a/%2e/", "a:/b",   "/a%2f%2e%2e/b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!path_of(wrong[i], out));
}

/* ---- nonsense ---- */

/* The same rules once more, said differently: what a head that was taken must look like. */
static void check_taken(const char *bytes, size_t len, const struct http_request *r)
{
    CHECK_GE(len, sizeof "G / HTTP/1.0\r\n\r\n" - 1);
    CHECK(memcmp(bytes + len - 4, "\r\n\r\n", 4) == 0);
    unsigned lines = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        CHECK(c != '\0' && c != 0x7f);
        CHECK((c == '\n') == (i > 0 && bytes[i - 1] == '\r'));
        if (c == '\n' && i + 1 < len)
            CHECK(bytes[i + 1] != ' ' && bytes[i + 1] != '\t' && bytes[i + 1] != ':');
        lines += c == '\n';
    }
    CHECK_GE(lines, r->minor > 0 ? 3 : 2);
    CHECK(r->method.at == bytes && r->target.at > bytes &&
          r->target.at + r->target.len < bytes + len);
    char first[] = "\r\n\r\n";
    CHECK(memmem(bytes, len, first, 4) == bytes + len - 4); /* no empty line before the last */
}

static const char *const pieces[] = {
    GET,
    HOST,
    "\r\n",
    "\r",
    "\n",
    " ",
    ":",
    "GET ",
    "POST ",
    "/",
    "a",
    "%2e",
    "..",
    "\x80",
    "HTTP/1.1",
    "HTTP/1.0\r\n",
    "X: y\r\n",
    "Content-Length: 7\r\n",
    "\t",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Connection: ,,\r\n",
    "\x01",
    "#",
    "?",
};

/* Pieces of requests in any order; then single bytes of it are spoilt. */
static size_t make_nonsense(char *out, size_t room)
{
    size_t len = 0;
    unsigned count = (unsigned)(t_random() % 12);
    if (t_random() % 2 == 0)
        len = put(out, GET HOST, sizeof GET HOST - 1);
    for (unsigned i = 0; i < count; i++) {
        const char *piece = pieces[t_random() % (sizeof pieces / sizeof *pieces)];
        size_t n = strlen(piece);
        if (len + n > room)
            break;
        len += put(out + len, piece, n);
    }
    if (t_random() % 2 == 0 && len + 2 <= room)
        len += put(out + len, "\r\n", 2);
    for (unsigned i = (unsigned)(t_random() % 3); i > 0 && len > 0; i--)
        out[t_random() % len] = (char)t_random();
    return len;
}

TEST(http_parse, nonsense_is_refused_or_right)
{
    char bytes[512], *copy;
    unsigned taken = 0;
    for (int i = 0; i < 100000; i++) {
        struct http_request r;
        size_t len = make_nonsense(bytes, sizeof bytes);
        int got = parse_exactly(bytes, len, &r, &copy);
        CHECK(got == 0 || got == -400 || got == -501 || got == -505 ||
              (got > 0 && (size_t)got <= len));
        if (got > 0) {
            taken++;
            check_taken(copy, (size_t)got, &r);
            char path[HTTP_PATH_MAX];
            if (http_path(r.target, path))
                CHECK(path[0] != '/' && path[0] != '.' && strstr(path, "/.") == NULL);
        }
        free(copy);
        /* Less of it never says something else, only "more": an answer does not depend on how it was cut. */
        size_t cut = len == 0 ? 0 : t_random() % len;
        int before = parse_exactly(bytes, cut, &r, &copy);
        CHECK(before == 0 || before == got);
        free(copy);
    }
    CHECK_GT(taken, 100); /* else it was no test */
}
