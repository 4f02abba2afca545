/*
 * fetch.c - get a page by HTTP/1.1, as a client would: connect, ask, read the answer.
 *
 *     example_fetch ADDRESS PATH       the body goes to standard output; e.g. 127.0.0.1:80 /
 *
 * One deadline covers everything: the connect, the request, and the last byte of the answer.
 * Chunked bodies are reassembled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <blitz.h>

enum { BUFFER = 16384, PATIENCE_S = 20 };

struct answer {
    blitz_tcp *tcp;
    blitz_deadline until;
    size_t at, have; /* bytes in the buffer; those before `at` are consumed */
    char buffer[BUFFER];
    int status, is_chunked;
    long long length; /* of the body; -1: until the end of the stream */
};

/* Read more bytes into the buffer. Return 0, -ENODATA at the end, or -ENOBUFS. */
static int more(struct answer *a)
{
    memmove(a->buffer, a->buffer + a->at, a->have -= a->at);
    a->at = 0;
    if (a->have == sizeof a->buffer)
        return -ENOBUFS;
    int64_t n = blitz_tcp_read(a->tcp, a->buffer + a->have, sizeof a->buffer - a->have, a->until);
    if (n <= 0)
        return n == 0 ? -ENODATA : (int)n;
    a->have += (size_t)n;
    return 0;
}

/* The next line without its end; it stays where it is until more() is called. */
static int line(struct answer *a, char **out)
{
    for (;;) {
        char *begin = a->buffer + a->at;
        char *end = memchr(begin, '\n', a->have - a->at);
        if (end != NULL) {
            a->at += (size_t)(end + 1 - begin);
            if (end > begin && end[-1] == '\r')
                end--;
            *end = '\0';
            *out = begin;
            return 0;
        }
        int rc = more(a);
        if (rc != 0)
            return rc;
    }
}

static int head(struct answer *a)
{
    char *text;
    int rc = line(a, &text);
    if (rc != 0 || sscanf(text, "HTTP/1.%*1[01] %3d", &a->status) != 1)
        return rc != 0 ? rc : -EPROTO;
    a->length = -1;
    while ((rc = line(a, &text)) == 0 && *text != '\0') {
        if (strncasecmp(text, "content-length:", 15) == 0)
            a->length = strtoll(text + 15, NULL, 10);
        if (strncasecmp(text, "transfer-encoding:", 18) == 0)
            a->is_chunked = 1;
    }
    return rc;
}

/* Copy `count` bytes to standard output; if it is negative, copy to the end. */
static int copy(struct answer *a, long long left)
{
    while (left != 0) {
        size_t n = a->have - a->at;
        int rc;
        if (n == 0) {
            if ((rc = more(a)) != 0)
                return rc == -ENODATA && left < 0 ? 0 : rc;
            continue;
        }
        if (left > 0 && (long long)n > left)
            n = (size_t)left;
        if (fwrite(a->buffer + a->at, 1, n, stdout) != n)
            return -EIO;
        a->at += n;
        left -= left > 0 ? (long long)n : 0;
    }
    return 0;
}

static int chunks(struct answer *a)
{
    char *text, *end;
    int rc;
    while ((rc = line(a, &text)) == 0) {
        long long size = strtoll(text, &end, 16);
        if (end == text || size < 0)
            return -EPROTO;
        if (size == 0)
            return 0;
        if ((rc = copy(a, size)) != 0 || (rc = line(a, &text)) != 0)
            return rc;
    }
    return rc;
}

static int fetch(void *arg)
{
    char **argv = arg, request[2048];
    static struct answer a;
    blitz_addr to;
    int rc = blitz_addr_parse(argv[1], &to);
    if (rc != 0)
        return rc;
    a.until = blitz_after(PATIENCE_S * (uint64_t)BLITZ_S);
    if ((rc = blitz_tcp_connect(&to, &a.tcp, a.until)) != 0)
        return rc;
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
             argv[2], blitz_addr_is_unix(&to) ? "localhost" : argv[1]);
    rc = blitz_tcp_write_all(a.tcp, request, strlen(request), NULL, a.until);
    if (rc == 0 && (rc = head(&a)) == 0)
        rc = a.is_chunked ? chunks(&a) : copy(&a, a.length);
    blitz_tcp_close(a.tcp);
    if (rc == 0 && a.status != 200)
        fprintf(stderr, "fetch: status %d\n", a.status);
    return rc != 0 ? rc : a.status == 200 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s ADDRESS PATH\n", argv[0]);
        return 2;
    }
    int rc = blitz_run(fetch, argv, NULL);
    if (rc < 0)
        fprintf(stderr, "fetch: %s\n", strerror(-rc));
    return rc != 0;
}
