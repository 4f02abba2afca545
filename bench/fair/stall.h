/*
 * stall.h - how long the machine itself stood still.
 *
 * A virtual CPU runs only when its host lets it. A pause of the host delays every task of every program, and no scheduler inside
 * can do anything about it. So a process for each CPU sleeps a millisecond at a time, in real-time priority: it runs before all
 * ordinary threads, whatever they do. If it is late, the CPU stood still for so long.
 *
 * Without the privilege there are no such processes, and every delay counts as ours.
 */
#ifndef BENCH_FAIR_STALL_H
#define BENCH_FAIR_STALL_H

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "bench.h"

enum { STALL_CPUS = 64, STALL_NS = 1000000 };

/* The longest delay of each CPU's process since the last stall_reset(). Shared; accessed atomically. */
static uint64_t *stall_longest_ns;
static unsigned stall_cpus;

static void stall_watch_cpu(unsigned cpu)
{
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (;;) {
        uint64_t due_ns = (uint64_t)due.tv_sec * 1000000000 + (uint64_t)due.tv_nsec + STALL_NS;
        due.tv_sec = (time_t)(due_ns / 1000000000);
        due.tv_nsec = (long)(due_ns % 1000000000);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        uint64_t late_ns = bench_now_ns() - due_ns;
        if (late_ns > __atomic_load_n(&stall_longest_ns[cpu], __ATOMIC_RELAXED))
            __atomic_store_n(&stall_longest_ns[cpu], late_ns, __ATOMIC_RELAXED);
        clock_gettime(CLOCK_MONOTONIC, &due);
    }
}

/* Start the processes. They end with this one. Call it before there are threads. */
static void stall_watch(void)
{
    pid_t parent = getpid();
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    stall_longest_ns = mmap(NULL, STALL_CPUS * sizeof *stall_longest_ns, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stall_longest_ns == MAP_FAILED)
        bench_die("mmap");
    for (unsigned cpu = 0; cpu < STALL_CPUS && cpu < cpus; cpu++) {
        if (fork() != 0)
            continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && sched_setaffinity(0, sizeof set, &set) == 0 &&
            sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 50}) == 0)
            stall_watch_cpu(cpu);
        _exit(0);
    }
    stall_cpus = cpus < STALL_CPUS ? (unsigned)cpus : STALL_CPUS;
}

static void stall_reset(void)
{
    for (unsigned cpu = 0; cpu < stall_cpus; cpu++)
        __atomic_store_n(&stall_longest_ns[cpu], 0, __ATOMIC_RELAXED);
}

/* The longest time that a CPU stood still since stall_reset(); 0 if nobody watches. */
static double stall_ms(void)
{
    uint64_t longest = 0;
    for (unsigned cpu = 0; cpu < stall_cpus; cpu++) {
        uint64_t ns = __atomic_load_n(&stall_longest_ns[cpu], __ATOMIC_RELAXED);
        longest = ns > longest ? ns : longest;
    }
    return (double)longest / 1e6;
}

#endif
