/* Copies without the memory of the process: through a pipe, also if that is refused or a peer
 * closes. */
#include "harness.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/stream.h"
#include "blitz/unix.h"
#include "io/attempt.h"
#include "support/keepers.h"
#include "support/net.h"

enum { BIG = 3 << 20 };

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

static bz_atomic(uint32_t) splices; /* relaxed: counted */
static uint32_t refused_from;       /* this one and those after it say -EINVAL; 0: none */

static int count_splices(const char *call)
{
    if (strcmp(call, "splice") != 0)
        return 0;
    uint32_t n = bz_fetch_add_relaxed(&splices, 1) + 1; /* relaxed: as above */
    return refused_from != 0 && n >= refused_from ? EINVAL : 0;
}

static int no_pipes(const char *call)
{
    return strcmp(call, "pipe2") == 0 ? EMFILE : count_splices(call);
}

static char byte_at(uint64_t i)
{
    return (char)(i * 31 + (i >> 9) + (i >> 17));
}

/* ---- a client, a proxy, a server that gives everything back ---- */

struct pour {
    blitz_tcp *to;
    char *data;
};

static int pours(void *arg)
{
    struct pour *p = arg;
    CHECK_EQ(blitz_tcp_write_all(p->to, p->data, BIG, NULL, soon()), 0);
    return blitz_tcp_shutdown(p->to, BLITZ_WRITABLE);
}

static int gives_back(void *arg)
{
    blitz_stream s = blitz_tcp_stream(arg);
    CHECK_EQ(blitz_stream_copy(s.in, s.out, NULL, soon()), 0);
    return blitz_writer_end(s.out, soon());
}

struct proxy {
    blitz_tcp *client, *server;
};

static int proxies(void *arg)
{
    struct proxy *p = arg;
    uint64_t there = 0, back = 0;
    int err = blitz_stream_copy_both(blitz_tcp_stream(p->client), blitz_tcp_stream(p->server), 0,
                                     &there, &back, soon());
    CHECK_EQ(there, err == 0 ? BIG : there);
    CHECK_EQ(back, err == 0 ? BIG : back);
    return err;
}

static int through_a_proxy(void *arg)
{
    bool is_unix = arg != NULL;
    blitz_tcp *client[2], *server[2];
    char *data = malloc(BIG), *got = malloc(BIG), c;
    for (uint64_t i = 0; i < BIG; i++)
        data[i] = byte_at(i);
    (is_unix ? (void)!blitz_unix_pair(client) : t_tcp_pair(client));
    (is_unix ? (void)!blitz_unix_pair(server) : t_tcp_pair(server));
    struct pour pour = {client[0], data};
    struct proxy proxy = {client[1], server[0]};
    blitz_task *task[] = {t_spawn(proxies, &proxy), t_spawn(gives_back, server[1]),
                          t_spawn(pours, &pour)};
    CHECK_EQ(blitz_tcp_read_exact(client[0], got, BIG, NULL, soon()), 0);
    CHECK_EQ(blitz_tcp_read(client[0], &c, 1, soon()), 0); /* the end came round */
    CHECK(memcmp(got, data, BIG) == 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(task); i++)
        CHECK_EQ(t_join(task[i]), 0);
    t_close_both(client);
    t_close_both(server);
    free(data);
    free(got);
    return 0;
}

TEST(stream_copy, much_goes_through_a_pipe_and_arrives_whole)
{
    bz_io_fault = count_splices;
    t_on_keepers(through_a_proxy, NULL);
    CHECK_GT(bz_load_relaxed(&splices), 0u); /* relaxed: counted */
    t_on_keepers(through_a_proxy, &(char){1});
}

/* For any first refused call: the bytes in the pipe are still copied. */
TEST(stream_copy, where_a_pipe_is_refused_nothing_is_lost)
{
    bz_io_fault = count_splices;
    for (refused_from = 1; refused_from <= 8; refused_from++) {
        t_watch("splice %u and later are refused", refused_from);
        bz_store_relaxed(&splices, 0); /* relaxed: no thread counts yet */
        CHECK_EQ(blitz_run(through_a_proxy, NULL, &(blitz_runtime_opts){.procs = 2, .io = "epoll"}),
                 0);
        CHECK_GE(bz_load_relaxed(&splices), refused_from); /* relaxed: counted */
    }
    bz_io_fault = no_pipes;
    bz_store_relaxed(&splices, 0); /* relaxed: no thread counts yet */
    CHECK_EQ(blitz_run(through_a_proxy, NULL, &(blitz_runtime_opts){.procs = 2, .io = "epoll"}), 0);
    CHECK_EQ(bz_load_relaxed(&splices), 0u); /* relaxed: counted */
}

/* ---- cancelled ---- */

struct one_way {
    blitz_tcp *from, *to;
    uint64_t copied;
};

static int copies(void *arg)
{
    struct one_way *w = arg;
    return blitz_stream_copy(blitz_tcp_reader(w->from), blitz_tcp_writer(w->to), &w->copied,
                             soon());
}

static int pours_while_it_can(void *arg)
{
    struct pour *p = arg;
    while (blitz_tcp_write_all(p->to, p->data, BIG, NULL, soon()) == 0)
        continue;
    return 0;
}

/* The far end does not read: the copy waits with a full pipe, and is cancelled. The reported bytes
 * were copied. */
static int cancelled(void *arg)
{
    blitz_tcp *in[2], *out[2];
    char *data = calloc(1, BIG), *into = malloc(BIG);
    uint64_t got = 0;
    int64_t n;
    (void)arg;
    t_tcp_pair(in);
    t_tcp_pair(out);
    struct pour pour = {in[0], data};
    struct one_way way = {in[1], out[0], 0};
    blitz_task *source = t_spawn(pours_while_it_can, &pour), *copy = t_spawn(copies, &way);
    CHECK_EQ(blitz_tcp_read_exact(out[1], into, 1 << 20, NULL, soon()), 0); /* well under way */
    t_until_waits(copy);
    blitz_task_cancel(copy);
    CHECK_EQ(t_join(copy), -ECANCELED);
    blitz_tcp_close(in[1]);
    CHECK_EQ(t_join(source), 0);
    CHECK_EQ(blitz_tcp_shutdown(out[0], BLITZ_WRITABLE), 0);
    while ((n = blitz_tcp_read(out[1], into, BIG, soon())) > 0)
        got += (uint64_t)n;
    CHECK_EQ(n, 0);
    CHECK_EQ(got + (1 << 20), way.copied);
    blitz_tcp_close(in[0]);
    t_close_both(out);
    free(data);
    free(into);
    return 0;
}

TEST(stream_copy, bug_21_a_copy_that_is_cancelled_says_how_much_went_over)
{
    t_on_keepers(cancelled, NULL);
}

/* ---- a closed peer ---- */

static int goes_away(void *arg)
{
    blitz_tcp *t = arg;
    char data[100000];
    CHECK_EQ(blitz_tcp_read_exact(t, data, sizeof data, NULL, soon()), 0);
    CHECK_EQ(blitz_tcp_set_linger(t, 0), 0);
    blitz_tcp_close(t);
    return 0;
}

static void check_gone(int err)
{
    CHECK(err == -EPIPE || err == -ECONNRESET);
}

static int to_nobody(void *arg)
{
    blitz_tcp *in[2], *out[2];
    blitz_fd_stream file, pipe_in;
    int fd[2];
    char *data = calloc(1, BIG);
    FILE *f = tmpfile();
    (void)arg;
    CHECK_NOT_NULL(f);
    CHECK_EQ(ftruncate(fileno(f), 8 * BIG), 0);
    CHECK_EQ(blitz_fd_stream_init(&file, fileno(f)), 0);
    t_tcp_pair(out); /* a file */
    blitz_task *reader = t_spawn(goes_away, out[1]);
    check_gone(blitz_stream_copy(blitz_fd_reader(&file), blitz_tcp_writer(out[0]), NULL, soon()));
    CHECK_EQ(t_join(reader), 0);
    blitz_tcp_close(out[0]);
    fclose(f);

    t_tcp_pair(in); /* a connection */
    t_tcp_pair(out);
    struct pour pour = {in[0], data};
    blitz_task *source = t_spawn(pours_while_it_can, &pour);
    reader = t_spawn(goes_away, out[1]);
    check_gone(blitz_stream_copy(blitz_tcp_reader(in[1]), blitz_tcp_writer(out[0]), NULL, soon()));
    CHECK_EQ(t_join(reader), 0);
    blitz_tcp_close(in[1]);
    CHECK_EQ(t_join(source), 0);
    blitz_tcp_close(in[0]);
    blitz_tcp_close(out[0]);

    CHECK_EQ(pipe(fd), 0); /* a pipe */
    CHECK_EQ(blitz_fd_stream_init(&pipe_in, fd[1]), 0);
    close(fd[0]);
    CHECK_EQ(blitz_writer_write(blitz_fd_writer(&pipe_in), data, 10, soon()), -EPIPE);
    close(fd[1]);
    free(data);
    return 0;
}

/* sendfile, splice and write have no flag that says so: the signal would end the process. */
TEST(stream_copy, a_peer_that_has_gone_is_an_error_and_no_signal)
{
    t_on_keepers(to_nobody, NULL);
}

/* ---- cost ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * BLITZ_S + (uint64_t)t.tv_nsec;
}

/* Both ends are other processes: what is counted is the copy. */
static pid_t fork_end(int fd, int other, bool is_source, size_t bytes)
{
    static char data[65536];
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    close(other);
    while (is_source && bytes > 0) {
        ssize_t n = write(fd, data, bytes < sizeof data ? bytes : sizeof data);
        if (n <= 0)
            break;
        bytes -= (size_t)n;
    }
    while (!is_source && read(fd, data, sizeof data) > 0)
        continue;
    _exit(0);
}

struct cost {
    int in[2], out[2];
    bool is_piped;
    uint64_t copied, ns;
};

static int costs(void *arg)
{
    struct cost *c = arg;
    blitz_tcp *from, *to;
    CHECK_EQ(blitz_tcp_adopt(c->in[1], &from), 0);
    CHECK_EQ(blitz_tcp_adopt(c->out[0], &to), 0);
    blitz_limited all = {blitz_tcp_reader(from), UINT64_MAX}; /* not a connection to the copy */
    uint64_t begun = cpu_ns();
    CHECK_EQ(blitz_stream_copy(c->is_piped ? blitz_tcp_reader(from) : blitz_limited_reader(&all),
                               blitz_tcp_writer(to), &c->copied, soon()),
             0);
    c->ns = cpu_ns() - begun;
    blitz_tcp_close(from);
    blitz_tcp_close(to);
    return 0;
}

static int raw_pair(void *arg)
{
    blitz_tcp *t[2];
    int *fd = arg;
    t_tcp_pair(t);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_tcp_release(t[i], &fd[i]), 0);
        CHECK_EQ(fcntl(fd[i], F_SETFL, 0), 0); /* of the other processes: they block */
    }
    return 0;
}

static double us_per_megabyte(bool is_piped, size_t bytes)
{
    struct cost c = {.is_piped = is_piped};
    CHECK_EQ(blitz_run(raw_pair, c.in, NULL), 0);
    CHECK_EQ(blitz_run(raw_pair, c.out, NULL), 0);
    pid_t source = fork_end(c.in[0], c.in[1], true, bytes);
    close(c.in[0]);
    pid_t sink = fork_end(c.out[1], c.out[0], false, 0);
    close(c.out[1]);
    CHECK_EQ(blitz_run(costs, &c, &(blitz_runtime_opts){.procs = 1, .io = "epoll"}), 0);
    CHECK_EQ(waitpid(source, NULL, 0), source);
    CHECK_EQ(waitpid(sink, NULL, 0), sink);
    CHECK_EQ(c.copied, bytes);
    return (double)c.ns / 1000 / ((double)bytes / (1 << 20));
}

/* The figure in docs/networking.md; what it is on this machine, now, is for who reads it. */
TEST(stream_copy, a_megabyte_has_its_price)
{
    size_t bytes = (size_t)t_scaled(48) << 20;
    double by_memory = 1e9, by_pipe = 1e9;
    for (int round = 0; round < 3; round++) {
        double one = us_per_megabyte(false, bytes), other = us_per_megabyte(true, bytes);
        by_memory = one < by_memory ? one : by_memory;
        by_pipe = other < by_pipe ? other : by_pipe;
    }
    t_note("CPU of a megabyte, connection to connection: %.0f us through memory, %.0f us through a "
           "pipe",
           by_memory, by_pipe);
}

/* ---- parts of files ---- */

static bz_atomic(uint32_t) sendfiles; /* relaxed: counted */

static int count_sendfiles(const char *call)
{
    if (strcmp(call, "sendfile") == 0)
        bz_fetch_add_relaxed(&sendfiles, 1); /* relaxed: as above */
    return 0;
}

enum { FILE_BYTES = 300 * 1000, PART_AT = 1000, PART_BYTES = 200 * 1000 };

static int file_of_bytes(void)
{
    char name[] = "/tmp/blitz-part-XXXXXX";
    int fd = mkstemp(name);
    CHECK_GE(fd, 0);
    unlink(name);
    for (uint64_t i = 0; i < FILE_BYTES;) {
        char piece[1000];
        for (size_t k = 0; k < sizeof piece; k++)
            piece[k] = byte_at(i + k);
        CHECK_EQ(write(fd, piece, sizeof piece), (ssize_t)sizeof piece);
        i += sizeof piece;
    }
    return fd;
}

struct send_part {
    blitz_tcp *to;
    int fd;
    bool is_buffered;
    uint64_t limit, copied;
};

static int sends_a_part(void *arg)
{
    struct send_part *p = arg;
    blitz_fd_stream stream;
    char room[512];
    blitz_buffered_reader buffer;
    CHECK_EQ(blitz_fd_stream_init(&stream, p->fd), 0);
    blitz_limited outer = {blitz_fd_reader(&stream), p->limit};
    blitz_limited part = {blitz_limited_reader(&outer), p->limit + 1}; /* limits nest */
    blitz_reader from = blitz_limited_reader(&part);
    if (p->is_buffered) {
        const char *seen;
        CHECK_EQ(blitz_buffered_reader_init(&buffer, from, room, sizeof room), 0);
        CHECK_EQ(blitz_buffered_peek(&buffer, 100, &seen, soon()), 512);
        from = blitz_buffered_as_reader(&buffer);
    }
    int err = blitz_stream_copy(from, blitz_tcp_writer(p->to), &p->copied, soon());
    CHECK_EQ(outer.left, p->limit - p->copied);
    CHECK_EQ(part.left, outer.left + 1);
    CHECK_EQ(blitz_tcp_shutdown(p->to, BLITZ_WRITABLE), 0);
    return err;
}

static void send_part(bool is_buffered, uint64_t limit, uint64_t want)
{
    blitz_tcp *pair[2];
    char *got = malloc(FILE_BYTES), c;
    struct send_part p = {.fd = file_of_bytes(), .is_buffered = is_buffered, .limit = limit};
    CHECK_NOT_NULL(got);
    CHECK_EQ(lseek(p.fd, PART_AT, SEEK_SET), PART_AT);
    t_tcp_pair(pair);
    p.to = pair[0];
    blitz_task *t = t_spawn(sends_a_part, &p);
    CHECK_EQ(blitz_tcp_read_exact(pair[1], got, want, NULL, soon()), 0);
    CHECK_EQ(blitz_tcp_read(pair[1], &c, 1, soon()), 0); /* and no more */
    CHECK_EQ(t_join(t), 0);
    CHECK_EQ(p.copied, want);
    for (uint64_t i = 0; i < want; i++)
        if (got[i] != byte_at(PART_AT + i))
            CHECK_EQ(i, want);
    t_close_both(pair);
    close(p.fd);
    free(got);
}

static int send_parts(void *arg)
{
    (void)arg;
    send_part(false, PART_BYTES, PART_BYTES);
    send_part(true, PART_BYTES, PART_BYTES);
    send_part(false, 10 * FILE_BYTES, FILE_BYTES - PART_AT); /* the file ends before the limit */
    send_part(true, 10 * FILE_BYTES, FILE_BYTES - PART_AT);
    return 0;
}

/* The count is of epoll, where sendfile is possible: whole files and parts of them go past our memory. */
TEST(stream_copy, a_part_of_a_file_goes_past_memory_as_a_whole_one_does)
{
    bz_io_fault = count_sendfiles;
    t_on_keepers(send_parts, NULL);
    bz_store_relaxed(&sendfiles, 0); /* relaxed: nothing runs */
    CHECK_EQ(blitz_run(send_parts, NULL, &(blitz_runtime_opts){.procs = 2, .io = "epoll"}), 0);
    CHECK_GE(bz_load_relaxed(&sendfiles), 4u); /* relaxed: counted */
}
