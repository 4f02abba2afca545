/*
 * calm.c - the load generator of bench-wakes: what a message costs a server that is not busy.
 *
 *     net_calm SERVER [WORDS] BACKEND-CONNS --seconds=S        for example epoll-50
 *
 * Starts the server with BLITZ_IO=BACKEND and opens CONNS connections, each with one message on its way, as
 * redis-benchmark -c CONNS -P 1 does. One thread, which sleeps while nothing has come back; no thread is bound to a
 * CPU. The server has more CPUs than it needs, so a message is cheapest if one of its threads does everything. Printed are
 *
 *     CASE            CPU microseconds of the server for a message
 *     CASE.p99        microseconds from the moment a message was due until the last of it was back
 *     CASE.switches   times that a thread of the server gave up its CPU, for a message: sleeps, in the main
 *     CASE.rate       messages a second
 *
 * A count of switches does not depend on what else the machine does, or only a little.
 */
#include "bench.h"
#include "net/loop.h"
#include "net/server.h"
#include "net/shape.h"

enum { WARM_UP_NS = 400000000, ROUNDS_MIN = 20, WAIT_MS = 1000, LIMIT_S = 55 };

/* Voluntary switches of one thread. */
static uint64_t switches_of(const char *path)
{
    char line[128];
    uint64_t count = 0;
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        unsigned long long n;
        if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1)
            count = n;
    }
    if (f != NULL)
        fclose(f);
    return count;
}

static uint64_t switches(const struct net_server *s)
{
    char path[512];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)s->pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        bench_die("no %s", path);
    for (struct dirent *e; (e = readdir(threads)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)s->pid, e->d_name);
            sum += switches_of(path);
        }
    closedir(threads);
    return sum;
}

static void measure(struct loop *l, struct net_server *s, const char *name, double seconds)
{
    static struct hist times;
    uint64_t span_ns = (uint64_t)(seconds * 1e9), least = ROUNDS_MIN * (uint64_t)l->shape.conns;
    loop_open(l, s->port, l->shape.conns);
    loop_begin(l);
    loop_run(l, WARM_UP_NS, least); /* until the server knows that its load is low */
    l->times = &times;
    uint64_t done = l->done, cpu_ns = net_server_cpu_ns(s), gone = switches(s);
    uint64_t began_ns = bench_now_ns();
    loop_run(l, span_ns, least);
    uint64_t wall_ns = bench_now_ns() - began_ns;
    cpu_ns = net_server_cpu_ns(s) - cpu_ns;
    gone = switches(s) - gone;
    double messages = (double)(l->done - done);
    l->times = NULL;
    loop_drain(l);
    printf("%s %.4f\n%s.p99 %.2f\n", name, (double)cpu_ns / 1000.0 / messages, name,
           hist_ns(&times, 990) / 1000.0);
    printf("%s.switches %.4f\n%s.rate %.0f\n", name, (double)gone / messages, name,
           messages * 1e9 / (double)wall_ns);
    printf("# the server was busy for %.0f%% of the time\n",
           100.0 * (double)cpu_ns / (double)wall_ns);
}

static int usage(void)
{
    fprintf(stderr, "usage: net_calm SERVER [WORDS] BACKEND-CONNS --seconds=S\n");
    return 2;
}

int main(int argc, char **argv)
{
    double seconds = 0.5;
    char backend[16], words[64];
    static struct loop loop;
    struct net_server server;
    struct net_shape shape = {.depth = 1, .bytes = 64};
    if (argc > 2 && sscanf(argv[argc - 1], "--seconds=%lf", &seconds) == 1)
        argv[--argc] = NULL;
    if (argc < 3 || seconds <= 0 ||
        sscanf(argv[argc - 1], "%15[a-z]-%u", backend, &shape.conns) != 2 || shape.conns == 0)
        return usage();
    const char *name = argv[argc - 1];
    snprintf(words, sizeof words, "echo-%ux1x64", shape.conns);
    shape.name = words;
    argv[argc - 1] = words; /* for the server */
    setenv("BLITZ_IO", backend, 1);
    alarm(LIMIT_S);
    net_raise_files();
    net_server_start_on(&server, argv + 1, -1);
    loop_init(&loop, shape);
    loop.wait_ms = WAIT_MS;
    measure(&loop, &server, name, seconds);
    loop_close(&loop);
    net_server_stop(&server);
    return fflush(stdout) != 0;
}
