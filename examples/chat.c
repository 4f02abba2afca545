/*
 * chat.c - a chat server: every guest receives the lines of all other guests.
 *
 *     example_chat 127.0.0.1:4000        and then, in other terminals: nc 127.0.0.1 4000
 *     example_chat                       talks to itself, and ends
 *
 * Each guest has two fibers, one for each direction of the connection. The reader sends lines into
 * a broadcast channel that all guests share. The writer receives from the channel and writes to its
 * guest. When the guest disconnects, the reader cancels and joins the writer. A guest that does not
 * read its lines misses some, and is told how many; it does not delay other guests.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

enum { TEXT = 256, KEPT = 256, GUESTS = 5 };

struct line {
    unsigned from;
    char text[TEXT];
};

static blitz_broadcast *room;

struct guest {
    unsigned number;
    blitz_tcp *in, *out;
    blitz_broadcast_rx hears;
};

/* ---- a guest ---- */

static int writes_to(void *arg)
{
    struct guest *g = arg;
    struct line line;
    uint64_t missed;
    while (blitz_broadcast_recv(&g->hears, &line, &missed, BLITZ_FOREVER) == 0) {
        char text[TEXT + 64];
        int n = 0;
        if (missed > 0)
            n = snprintf(text, sizeof text, "(%llu missed)\n", (unsigned long long)missed);
        if (line.from != g->number)
            n += snprintf(text + n, sizeof text - (size_t)n, "%u: %s\n", line.from, line.text);
        if (n > 0 &&
            blitz_tcp_write_all(g->out, text, (size_t)n, NULL, blitz_after(10 * BLITZ_S)) != 0)
            break; /* the guest has disconnected, or does not read */
    }
    return 0;
}

/* Broadcast each complete line of the buffer. Return the number of remaining bytes. */
static size_t say_lines(const struct guest *g, char *data, size_t bytes)
{
    struct line line = {.from = g->number};
    char *start = data, *end;
    while ((end = memchr(start, '\n', bytes - (size_t)(start - data))) != NULL) {
        size_t length = (size_t)(end - start);
        memcpy(line.text, start, length);
        line.text[length] = '\0';
        blitz_broadcast_send(room, &line);
        start = end + 1;
    }
    memmove(data, start, bytes - (size_t)(start - data));
    return bytes - (size_t)(start - data);
}

static void reads_from(const struct guest *g)
{
    char data[TEXT];
    size_t have = 0;
    int64_t n;
    while (have < sizeof data && /* a longer line is no line of ours */
           (n = blitz_tcp_read(g->in, data + have, sizeof data - have, BLITZ_FOREVER)) > 0)
        have = say_lines(g, data, have + (size_t)n);
}

struct arrival {
    blitz_tcp *tcp;
    unsigned number;
};

static int guest(void *arg)
{
    struct arrival came = *(struct arrival *)arg;
    struct guest g = {.number = came.number};
    blitz_task *writer;
    free(arg);
    if (blitz_tcp_split(came.tcp, &g.in, &g.out) != 0) {
        blitz_tcp_close(came.tcp);
        return -ENOMEM;
    }
    blitz_broadcast_subscribe(room, &g.hears);
    if (blitz_spawn(writes_to, &g, NULL, &writer) == 0) {
        reads_from(&g);
        blitz_task_cancel(writer);
        blitz_task_join(writer, NULL, BLITZ_FOREVER);
    }
    blitz_broadcast_unsubscribe(&g.hears);
    blitz_tcp_close(g.in);
    blitz_tcp_close(g.out);
    return 0;
}

/* ---- the server ---- */

static int serve(void *arg)
{
    struct arrival came = {.number = 0};
    int err;
    while ((err = blitz_tcp_accept(arg, &came.tcp, NULL, BLITZ_FOREVER)) == 0) {
        struct arrival *a = malloc(sizeof *a);
        came.number++;
        if (a != NULL)
            *a = came;
        if (a == NULL || blitz_spawn(guest, a, NULL, NULL) != 0) {
            blitz_tcp_close(came.tcp);
            free(a);
        }
    }
    return err;
}

/* ---- guests of our own, to show it ---- */

static blitz_addr at;
/* the number of guests that have heard all others */
static blitz_latch happy = BLITZ_LATCH_INIT(GUESTS);

/* The guests heard so far, by the number at the start of their lines. */
static unsigned heard_in(const char *data, int64_t bytes, unsigned heard)
{
    for (int64_t i = 0; i + 1 < bytes; i++)
        if (data[i] >= '1' && data[i] <= '9' && data[i + 1] == ':')
            heard |= 1u << (data[i] - '0');
    return heard;
}

/* Send hello until every guest has heard every other guest. */
static int talker(void *arg)
{
    char data[4096];
    unsigned heard = 0, others = 0;
    blitz_tcp *t;
    (void)arg;
    int err = blitz_tcp_connect(&at, &t, blitz_after(5 * BLITZ_S));
    if (err != 0)
        return err;
    while (err == 0 && blitz_latch_left(&happy) > 0) {
        err = blitz_tcp_write_all(t, "hello\n", 6, NULL, BLITZ_FOREVER);
        int64_t n = blitz_tcp_read(t, data, sizeof data, blitz_after(5 * BLITZ_MS));
        heard = heard_in(data, n, heard);
        unsigned now = 0;
        for (unsigned bits = heard; bits != 0; bits &= bits - 1)
            now++;
        if (now == GUESTS - 1 && others < now)
            blitz_latch_count_down(&happy, 1);
        others = now;
    }
    blitz_tcp_close(t);
    return err;
}

static int talk(void)
{
    blitz_task *task[GUESTS];
    int n = 0, err = 0;
    while (n < GUESTS && blitz_spawn(talker, NULL, NULL, &task[n]) == 0)
        n++;
    for (int i = 0; i < n; i++) {
        int result = 0;
        blitz_task_join(task[i], &result, BLITZ_FOREVER);
        err = err != 0 ? err : result;
    }
    if (err == 0)
        printf("%d guests have heard each other\n", n);
    return err;
}

static int run(void *text)
{
    blitz_tcp_listener *l;
    blitz_task *server;
    int err = blitz_addr_parse(text != NULL ? text : "127.0.0.1:0", &at);
    if (err == 0)
        err = blitz_broadcast_new(sizeof(struct line), KEPT, &room);
    if (err == 0)
        err = blitz_tcp_listen(&at, NULL, &l);
    if (err != 0)
        return err;
    blitz_tcp_listener_local(l, &at);
    if (text != NULL)
        return serve(l);
    err = blitz_spawn(serve, l, NULL, &server);
    if (err == 0) {
        err = talk();
        blitz_tcp_listener_close(blitz_tcp_listener_ref(l));
        blitz_task_join(server, NULL, BLITZ_FOREVER);
    }
    blitz_tcp_listener_close(l);
    return err; /* guests that are still there are cancelled */
}

int main(int argc, char **argv)
{
    int err = blitz_run(run, argc > 1 ? argv[1] : NULL, NULL);
    blitz_broadcast_unref(room);
    if (err < 0)
        fprintf(stderr, "chat: %s\n", strerror(-err));
    return err < 0;
}
