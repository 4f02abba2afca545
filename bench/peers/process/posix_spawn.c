/*
 * posix_spawn and waitpid: `true`, one after the other, and on sixteen threads.
 */
#include "bench.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static uint64_t left;

static void one(void)
{
    char name[] = "true";
    char *argv[] = {name, NULL};
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("a process failed");
}

static double start_wait(uint64_t ops)
{
    uint64_t done = 0, began = bench_now_ns();
    for (; done < ops && !bench_is_over(); done++)
        one();
    return (double)(bench_now_ns() - began) / (double)done;
}

static void *worker(void *arg)
{
    while (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) - 1 < UINT64_MAX / 2)
        one();
    return arg;
}

static double start_wait_16(uint64_t ops)
{
    pthread_t t[16];
    left = ops;
    uint64_t began = bench_now_ns();
    for (int i = 0; i < 16; i++)
        if (pthread_create(&t[i], NULL, worker, NULL) != 0)
            bench_die("no thread");
    for (int i = 0; i < 16; i++)
        pthread_join(t[i], NULL);
    return (double)(bench_now_ns() - began) / (double)ops;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {{"start-wait", start_wait},
                                              {"start-wait-16", start_wait_16}};
    return bench_main(argc, argv, cases, 2);
}
