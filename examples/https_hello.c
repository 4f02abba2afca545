/*
 * https_hello.c - a web server over TLS that says hello, and a client that fetches a page.
 *
 *     example_https_hello                               both, with a certificate of its own
 *     example_https_hello serve CERT.pem KEY.pem [PORT] serve until stopped; the certificate is read again every
 *                                                       second, and connections go on
 *     example_https_hello get HOST PORT CA.pem          fetch "/" from this machine and print it
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>
#include <blitz/tls.h>

#include "tls_self.h"

static const char *const protocols[] = {"http/1.1"};

struct server {
    blitz_tcp_listener *listener;
    blitz_tls_config *config;
    blitz_tls_cert cert;
};

/* ---- a request ---- */

/* Read a head, up to its empty line. Return 1, or 0 at the end; *is_last: the client wants no further answer. */
static int read_head(blitz_buffered_reader *in, int *is_last)
{
    static const char close[] = "Connection: close";
    const char *line;
    int64_t n;
    while ((n = blitz_buffered_line(in, 4096, &line, blitz_after(30 * BLITZ_S))) > 0)
        if (n == sizeof close - 1 && memcmp(line, close, sizeof close - 1) == 0)
            *is_last = 1;
    return n == 0;
}

static int answer(blitz_tls *tls)
{
    char text[512], body[256];
    blitz_tls_info info;
    blitz_tls_info_read(tls, &info);
    int bytes = snprintf(body, sizeof body, "hello by %s, %s%s\n", info.version, info.cipher,
                         info.is_resumed ? ", resumed" : "");
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
                     bytes, body);
    return blitz_tls_write_all(tls, text, (size_t)n, NULL, blitz_after(30 * BLITZ_S));
}

struct guest {
    blitz_tcp *tcp;
    blitz_tls *tls;
};

static int converse(void *arg)
{
    struct guest g = *(struct guest *)arg;
    char room[8192];
    blitz_buffered_reader in;
    int is_last = 0;
    free(arg);
    blitz_buffered_reader_init(&in, blitz_tls_stream(g.tls).in, room, sizeof room);
    if (blitz_tls_handshake(g.tls, blitz_after(10 * BLITZ_S)) == 0) {
        while (!is_last && read_head(&in, &is_last) == 1 && answer(g.tls) == 0)
            ;
        blitz_tls_end(g.tls, blitz_after(10 * BLITZ_S));
    }
    blitz_tls_unref(g.tls);
    blitz_tcp_close(g.tcp);
    return 0;
}

/* ---- the server ---- */

static int accept_all(void *arg)
{
    struct server *s = arg;
    blitz_tcp *tcp;
    int rc;
    while ((rc = blitz_tcp_accept(s->listener, &tcp, NULL, BLITZ_FOREVER)) == 0) {
        struct guest *g = malloc(sizeof *g);
        blitz_tls *tls = NULL;
        if (g == NULL || blitz_tls_new(s->config, blitz_tcp_stream(tcp), NULL, &tls) != 0) {
            free(g);
            blitz_tcp_close(tcp);
            continue;
        }
        *g = (struct guest){tcp, tls};
        if (blitz_spawn(converse, g, NULL, NULL) != 0) {
            free(g);
            blitz_tls_unref(tls);
            blitz_tcp_close(tcp);
        }
    }
    blitz_tcp_listener_unref(s->listener);
    return rc;
}

static int server_open(struct server *s, uint16_t port, blitz_addr *at)
{
    blitz_tls_text why;
    blitz_tls_opts opts = {.certs = &s->cert, .cert_count = 1, .alpn = protocols, .alpn_count = 1};
    int rc = blitz_tls_config_new(BLITZ_TLS_SERVER, &opts, &why, &s->config);
    if (rc != 0) {
        fprintf(stderr, "https_hello: %s\n", why.text);
        return rc;
    }
    *at = blitz_addr_loopback_v4(port);
    rc = blitz_tcp_listen(at, NULL, &s->listener);
    return rc != 0 ? rc : blitz_tcp_listener_local(s->listener, at);
}

/* Read the files again from time to time. A bad file is reported, and the old certificate stays. */
static int reload(void *arg)
{
    struct server *s = arg;
    blitz_tls_text why;
    blitz_tls_opts opts = {.certs = &s->cert, .cert_count = 1, .alpn = protocols, .alpn_count = 1};
    while (blitz_sleep(BLITZ_S) == 0)
        if (blitz_tls_config_reload(s->config, &opts, &why) != 0)
            fprintf(stderr, "https_hello: %s\n", why.text);
    return 0;
}

static int serve(void *arg)
{
    char **argv = arg;
    struct server s = {.cert = {.cert_file = argv[2], .key_file = argv[3]}};
    blitz_addr at;
    int rc = server_open(&s, (uint16_t)(argv[4] != NULL ? atoi(argv[4]) : 0), &at);
    if (rc != 0 || (rc = blitz_spawn(reload, &s, NULL, NULL)) != 0)
        return rc;
    printf("port %d\n", blitz_addr_port(&at));
    fflush(stdout);
    return accept_all(&s);
}

/* ---- the client ---- */

/* Print the answer up to its end. A server that cuts it off is noticed. */
static int print_answer(blitz_tls *tls)
{
    char data[4096];
    int64_t n;
    while ((n = blitz_tls_read(tls, data, sizeof data, blitz_after(10 * BLITZ_S))) > 0)
        fwrite(data, 1, (size_t)n, stdout);
    return (int)n;
}

static int fetch(blitz_tls *tls, const char *host)
{
    char request[400];
    int n = snprintf(request, sizeof request,
                     "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
    int rc = blitz_tls_handshake(tls, blitz_after(10 * BLITZ_S));
    if (rc == 0)
        rc = blitz_tls_write_all(tls, request, (size_t)n, NULL, blitz_after(10 * BLITZ_S));
    if (rc == 0)
        rc = blitz_tls_end(tls, blitz_after(10 * BLITZ_S));
    return rc != 0 ? rc : print_answer(tls);
}

static int get_from(const blitz_addr *at, const char *host, const blitz_tls_opts *opts)
{
    blitz_tls_config *config;
    blitz_tls_text text = {{0}};
    blitz_tls *tls = NULL;
    blitz_tcp *tcp;
    int rc = blitz_tls_config_new(BLITZ_TLS_CLIENT, opts, &text, &config);
    if (rc != 0)
        goto say;
    rc = blitz_tcp_connect(at, &tcp, blitz_after(10 * BLITZ_S));
    if (rc != 0)
        goto unref_config;
    rc = blitz_tls_new(config, blitz_tcp_stream(tcp), host, &tls);
    if (rc == 0 && (rc = fetch(tls, host)) != 0)
        blitz_tls_error(tls, &text);
    blitz_tls_unref(tls);
    blitz_tcp_close(tcp);
unref_config:
    blitz_tls_config_unref(config);
say:
    if (rc != 0)
        fprintf(stderr, "https_hello: %s\n", text.text);
    return rc;
}

static int get(void *arg)
{
    char **argv = arg;
    blitz_addr at = blitz_addr_loopback_v4((uint16_t)atoi(argv[3]));
    return get_from(&at, argv[2],
                    &(blitz_tls_opts){.ca_file = argv[4], .alpn = protocols, .alpn_count = 1});
}

static int try_both(void *arg)
{
    struct tls_self self;
    struct server s = {.config = NULL};
    blitz_addr at;
    blitz_task *accepts;
    (void)arg;
    int rc = tls_self_make(&self, "hello.test");
    s.cert = (blitz_tls_cert){.cert_pem = self.cert, .key_pem = self.key};
    if (rc != 0 || (rc = server_open(&s, 0, &at)) != 0)
        return rc;
    blitz_tcp_listener_ref(s.listener);
    if ((rc = blitz_spawn(accept_all, &s, NULL, &accepts)) != 0)
        return rc;
    rc = get_from(&at, "hello.test", &(blitz_tls_opts){.ca_pem = self.cert});
    printf("and by a wrong name:\n");
    fflush(stdout);
    int wrong = get_from(&at, "other.test", &(blitz_tls_opts){.ca_pem = self.cert});
    blitz_tcp_listener_close(s.listener);
    blitz_task_join(accepts, NULL, BLITZ_FOREVER);
    blitz_tls_config_unref(s.config);
    return rc != 0 ? rc : wrong == -EACCES ? 0 : -EIO;
}

int main(int argc, char **argv)
{
    int is_server = argc >= 4 && strcmp(argv[1], "serve") == 0;
    int is_client = argc == 5 && strcmp(argv[1], "get") == 0;
    if (argc > 1 && !is_server && !is_client) {
        fprintf(stderr, "usage: %s [serve CERT KEY [PORT] | get HOST PORT CA]\n", argv[0]);
        return 2;
    }
    int rc = blitz_run(is_server ? serve : is_client ? get : try_both, argv, NULL);
    if (rc < 0)
        fprintf(stderr, "https_hello: %s\n", strerror(-rc));
    return rc < 0;
}
