/*
 * load.c - the load generator of bench-net: starts a server, loads it, and prints what that cost.
 *
 *     net_load SERVER [WORDS] CASE --seconds=S
 *
 * The server runs on CPU 0, this program on CPU 1. echo-*: after a warm-up the loop (loop.h) runs
 * for S seconds, or longer until every connection has had two messages. Then it runs for a tenth of
 * a second to count system calls, then it waits for the outstanding messages. It prints
 *
 *     CASE          CPU microseconds of the server for a message
 *     CASE.rate     messages a second
 *     CASE.p50 .p99 .p999    microseconds from the moment a message was due until the last of it was back
 *     CASE.calls    system calls of the server for a message, if this system lets us count them
 *
 * idle, idle-task: bytes of resident memory for each of 10,000 connections on which one message
 * went back and forth.
 *
 * http-*: requests a second as measured by wrk (a program that is not ours), and .cpu, microseconds
 * each.
 */
#include "bench.h"
#include "net/loop.h"
#include "net/server.h"
#include "net/shape.h"

enum { WARM_UP_PART = 4, ROUNDS_MIN = 2, COUNT_NS = 100000000, IDLE_BEFORE = 1024, LIMIT_S = 55 };

static FILE *figures; /* shown when everything has come back as it should */

static void echo_figures(const char *name, const struct hist *times, uint64_t messages,
                         uint64_t wall_ns, uint64_t cpu_ns)
{
    if (messages == 0)
        bench_die("no message came back");
    fprintf(figures, "%s %.4f\n", name, (double)cpu_ns / 1000.0 / (double)messages);
    fprintf(figures, "%s.rate %.0f\n", name, (double)messages * 1e9 / (double)wall_ns);
    fprintf(figures, "%s.p50 %.2f\n", name, hist_ns(times, 500) / 1000.0);
    fprintf(figures, "%s.p99 %.2f\n", name, hist_ns(times, 990) / 1000.0);
    fprintf(figures, "%s.p999 %.2f\n", name, hist_ns(times, 999) / 1000.0);
    fprintf(figures, "# %llu messages; the server was busy for %.0f%% of the time\n",
            (unsigned long long)messages, 100.0 * (double)cpu_ns / (double)wall_ns);
}

/* Not a figure of speed: counting makes system calls slower. */
static void count_calls(struct loop *l, struct net_server *s)
{
    if (!net_server_count(s)) {
        fprintf(figures, "# system calls cannot be counted here: %s\n", strerror(errno));
        return;
    }
    uint64_t done = l->done, calls = net_server_calls(s);
    loop_run(l, COUNT_NS, 0);
    done = l->done - done;
    calls = net_server_calls(s) - calls;
    if (done > 0 && calls > 0)
        fprintf(figures, "%s.calls %.4f\n", l->shape.name, (double)calls / (double)done);
}

static void echo(struct loop *l, struct net_server *s, double seconds)
{
    static struct hist times;
    uint64_t span_ns = (uint64_t)(seconds * 1e9);
    uint64_t in_flight = (uint64_t)l->shape.conns * l->shape.depth;
    loop_open(l, s->port, l->shape.conns);
    loop_begin(l);
    loop_run(l, span_ns / WARM_UP_PART, in_flight);
    l->times = &times;
    uint64_t done = l->done, cpu_ns = net_server_cpu_ns(s), began_ns = bench_now_ns();
    loop_run(l, span_ns, ROUNDS_MIN * in_flight);
    cpu_ns = net_server_cpu_ns(s) - cpu_ns;
    uint64_t wall_ns = bench_now_ns() - began_ns;
    done = l->done - done;
    l->times = NULL;
    echo_figures(l->shape.name, &times, done, wall_ns, cpu_ns);
    count_calls(l, s);
    loop_drain(l);
    fprintf(figures, "# %llu messages in all\n", (unsigned long long)l->done);
}

/* The first few connections are not counted: they pay for what a server makes once. */
static void idle(struct loop *l, struct net_server *s)
{
    loop_open(l, s->port, IDLE_BEFORE);
    double before = net_server_rss(s);
    unsigned count = l->shape.conns - IDLE_BEFORE;
    loop_open(l, s->port, count);
    double each = (net_server_rss(s) - before) / (double)count;
    fprintf(figures, "%s %.1f\n", l->shape.name, each > 1 ? each : 1);
}

static double wrk_time_us(const char *text)
{
    double value = 0;
    char unit[8] = "";
    if (sscanf(text, "%lf%7s", &value, unit) != 2)
        return 0;
    return value * (strcmp(unit, "us") == 0 ? 1 : strcmp(unit, "ms") == 0 ? 1e3 : 1e6);
}

static void http(struct net_server *s, const char *name, double seconds)
{
    char command[128], line[256], error[256] = "";
    double rate = 0, requests = 0, p50 = 0, p99 = 0;
    snprintf(command, sizeof command, "wrk -t1 -c64 -d%ds --latency %s//127.0.0.1:%d/",
             seconds < 1 ? 1 : (int)seconds, "http:", s->port);
    uint64_t cpu_ns = net_server_cpu_ns(s);
    FILE *wrk = popen(command, "r");
    if (wrk == NULL)
        bench_die("popen: %s", strerror(errno));
    while (fgets(line, sizeof line, wrk) != NULL) {
        sscanf(line, " Requests/sec: %lf", &rate);
        sscanf(line, " %lf requests in", &requests);
        char *at;
        if ((at = strstr(line, " 50% ")) != NULL)
            p50 = wrk_time_us(at + 5);
        if ((at = strstr(line, " 99% ")) != NULL)
            p99 = wrk_time_us(at + 5);
        if (strstr(line, "Non-2xx") != NULL || strstr(line, "Socket errors") != NULL)
            memcpy(error, line, sizeof error);
    }
    cpu_ns = net_server_cpu_ns(s) - cpu_ns;
    if (pclose(wrk) != 0 || rate <= 0 || requests <= 0)
        bench_die("wrk failed (tools/setup bench-net installs it)");
    if (error[0] != '\0')
        bench_die("wrk: %s", error);
    fprintf(figures, "%s %.0f\n%s.cpu %.3f\n", name, rate, name,
            (double)cpu_ns / 1000.0 / requests);
    fprintf(figures, "%s.p50 %.2f\n%s.p99 %.2f\n", name, p50, name, p99);
}

static int usage(void)
{
    fprintf(stderr, "usage: net_load SERVER [WORDS] CASE --seconds=S\n"
                    "cases: echo-64 echo-1000 echo-10000 echo-depth16 echo-16k idle idle-task "
                    "http-64 echo-CONNSxDEPTHxBYTES\n");
    return 2;
}

int main(int argc, char **argv)
{
    double seconds = 0.5;
    struct net_shape shape;
    static struct loop loop;
    struct net_server server;
    if (argc > 2 && sscanf(argv[argc - 1], "--seconds=%lf", &seconds) == 1)
        argv[--argc] = NULL;
    if (argc < 3 || seconds <= 0 || !net_shape_of(argv[argc - 1], &shape))
        return usage();
    char *text = NULL;
    size_t text_bytes = 0;
    figures = open_memstream(&text, &text_bytes);
    if (figures == NULL)
        bench_die("no memory");
    alarm(LIMIT_S);
    net_pin(NET_LOAD_CPU);
    net_raise_files();
    net_server_start(&server, argv + 1);
    loop_init(&loop, shape);
    if (net_is_http(shape.name))
        http(&server, shape.name, seconds);
    else if (strncmp(shape.name, "idle", 4) == 0)
        idle(&loop, &server);
    else
        echo(&loop, &server, seconds);
    loop_close(&loop);
    net_server_stop(&server);
    return fclose(figures) != 0 || fputs(text, stdout) < 0 || fflush(stdout) != 0;
}
