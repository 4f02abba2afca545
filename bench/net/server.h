/*
 * server.h - the server under load, seen from outside: start it on its CPU, read its port, its CPU time, its
 * memory, and how often it calls the system.
 *
 * CPU time is the process's own clock, which the kernel keeps in nanoseconds for all of its threads, ended
 * ones included. System calls are counted by the kernel's tracepoint at their entry. That slows each of them a little, so it is
 * on only while nothing else is measured. The tracepoint's number is in tracefs; where that is not mounted it is mounted
 * for this process alone.
 */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NET_SERVER_CPU = 0, NET_LOAD_CPU = 1, NET_FDS = 20000, NET_THREADS_MAX = 64 };

struct net_server {
    pid_t pid;
    clockid_t clock;
    int port;
    int counters[NET_THREADS_MAX]; /* perf events, one for each thread it has */
    unsigned counter_count;
};

static inline void net_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    bool is_there = sysconf(_SC_NPROCESSORS_ONLN) > cpu;
    if (is_there && sched_setaffinity(0, sizeof set, &set) != 0 &&
        errno != EINVAL) /* not ours to use */
        bench_die("cannot pin to CPU %d: %s", cpu, strerror(errno));
}

/* Ten thousand connections are as many files, here and in the server, which inherits the limit. */
static inline void net_raise_files(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < NET_FDS)
        limit.rlim_max = NET_FDS;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        bench_die("cannot have %d open files: %s", NET_FDS, strerror(errno));
}

static inline void net_server_exec(char **argv, int out, int cpu)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (cpu >= 0)
        net_pin(cpu);
    dup2(out, STDOUT_FILENO);
    execvp(argv[0], argv);
    bench_die("%s: %s", argv[0], strerror(errno));
}

/* On that CPU; -1: on any. */
static inline void net_server_start_on(struct net_server *s, char **argv, int cpu)
{
    int ends[2];
    if (pipe(ends) != 0)
        bench_die("pipe: %s", strerror(errno));
    s->counter_count = 0;
    s->pid = fork();
    if (s->pid == 0) {
        close(ends[0]);
        net_server_exec(argv, ends[1], cpu);
    }
    close(ends[1]);
    FILE *says = fdopen(ends[0], "r");
    if (says == NULL || fscanf(says, "port %d", &s->port) != 1)
        bench_die("%s said no port", argv[0]);
    /* The pipe stays open: a server may print more, and must not die of that. */
    if (clock_getcpuclockid(s->pid, &s->clock) != 0)
        bench_die("no CPU clock of process %d", (int)s->pid);
}

static inline void net_server_start(struct net_server *s, char **argv)
{
    net_server_start_on(s, argv, NET_SERVER_CPU);
}

static inline void net_server_stop(struct net_server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}

static inline uint64_t net_server_cpu_ns(const struct net_server *s)
{
    struct timespec t;
    if (clock_gettime(s->clock, &t) != 0)
        bench_die("the server is gone");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline double net_server_rss(const struct net_server *s)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)s->pid);
    FILE *f = fopen(path, "r");
    if (f == NULL || fscanf(f, "%*u %lu", &pages) != 1)
        bench_die("no %s", path);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* The tracepoint's number, or -1. */
static inline int net_tracepoint(void)
{
    static const char id_path[] = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
    int id = -1;
    FILE *f = fopen(id_path, "r");
    if (f == NULL && unshare(CLONE_NEWNS) == 0 &&
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) == 0)
        f = fopen(id_path, "r");
    if (f == NULL)
        return -1;
    if (fscanf(f, "%d", &id) != 1)
        id = -1;
    fclose(f);
    return id;
}

static inline int net_count_thread(int id, pid_t thread)
{
    struct perf_event_attr about = {
        .type = PERF_TYPE_TRACEPOINT,
        .size = sizeof about,
        .config = (uint64_t)id,
        .inherit = 1, /* threads that it starts, too */
    };
    return (int)syscall(SYS_perf_event_open, &about, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Begin to count its system calls; false where the system does not let us. */
static inline bool net_server_count(struct net_server *s)
{
    char path[64];
    int id = net_tracepoint();
    snprintf(path, sizeof path, "/proc/%d/task", (int)s->pid);
    DIR *threads = id < 0 ? NULL : opendir(path);
    if (threads == NULL)
        return false;
    for (struct dirent *e; (e = readdir(threads)) != NULL && s->counter_count < NET_THREADS_MAX;) {
        int fd = e->d_name[0] == '.' ? -1 : net_count_thread(id, (pid_t)atoi(e->d_name));
        if (fd >= 0)
            s->counters[s->counter_count++] = fd;
    }
    closedir(threads);
    return s->counter_count > 0;
}

static inline uint64_t net_server_calls(const struct net_server *s)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->counter_count; i++) {
        uint64_t value = 0;
        if (read(s->counters[i], &value, sizeof value) == (ssize_t)sizeof value)
            sum += value;
    }
    return sum;
}

#endif
