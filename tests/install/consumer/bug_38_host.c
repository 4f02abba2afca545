/*
 * Open a plugin, call it, close it. Threads that it left behind are then interrupted in their sleep:
 * they go on in the plugin's code, which had better be there.
 *
 *     bug_38_host plugin.so [end]      `end`: the plugin ends its threads first, and must be unmapped
 *
 * The status is 0, or the number of what went wrong.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int interrupted; /* by several threads */

static void on_signal(int signal)
{
    (void)signal;
    __atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
}

static int count(void)
{
    return __atomic_load_n(&interrupted, __ATOMIC_RELAXED);
}

/* Every thread but ourselves. Returns how many. */
static int interrupt_all(void)
{
    DIR *dir = opendir("/proc/self/task");
    int sent = 0;
    if (dir == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        int tid = atoi(e->d_name);
        if (tid != 0 && tid != getpid() && syscall(SYS_tgkill, getpid(), tid, SIGUSR1) == 0)
            sent++;
    }
    closedir(dir);
    return sent;
}

static int symbol(void *handle, const char *name, void *out)
{
    void *at = dlsym(handle, name);
    memcpy(out, &at, sizeof at);
    return at != NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: their sleep ends */
    int (*sum)(int), (*end)(void);
    if (argc < 2)
        return 12;
    sigaction(SIGUSR1, &action, NULL);
    for (int round = 0; round < 10; round++) {
        void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL || !symbol(handle, "plugin_sum", &sum) ||
            !symbol(handle, "plugin_end", &end)) {
            fprintf(stderr, "%s\n", dlerror());
            return 11;
        }
        if (sum(10000) != 49995000)
            return 1;
        if (argc > 2 && end() != 0)
            return 2;
        if (dlclose(handle) != 0)
            return 3;
        if (argc > 2 && dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL)
            return 4; /* it is still there */
        for (int i = 0; i < 20; i++) {
            int before = count(), sent = interrupt_all();
            if (argc == 2 && sent == 0)
                return 5; /* no thread was left: this shows nothing */
            for (int k = 0; k < 1000 && count() < before + sent; k++)
                /* lint: allow test-sleep: between two looks */
                usleep(100);
        }
    }
    return 0;
}
