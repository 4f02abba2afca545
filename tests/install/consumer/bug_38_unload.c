/*
 * Load the library, use it, unload it, again and again: nothing may stay behind, neither threads nor
 * the code they would go on to run. With `exit` as a second argument: leave the process while workers
 * of a runtime are at work.
 *
 *     bug_38_unload libblitz.so [exit]
 *
 * The status is 0, or the number of what went wrong.
 */
#include <blitz.h>
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing of the library is linked: it must be possible to unload it. */
static struct {
    __typeof__(&blitz_run) run;
    __typeof__(&blitz_runtime_new) runtime_new;
    __typeof__(&blitz_spawn) spawn;
    __typeof__(&blitz_task_join) join;
    __typeof__(&blitz_sleep_until) sleep_until;
    __typeof__(&blitz_now) now;
    __typeof__(&blitz_par_runtime) par_runtime;
    __typeof__(&blitz_par_end) par_end;
} lib;

static void find(void *handle, const char *name, void *out)
{
    void *symbol = dlsym(handle, name);
    memcpy(out, &symbol, sizeof symbol);
    if (symbol == NULL)
        exit(10);
}

static void *load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(11);
    }
    find(handle, "blitz_run", &lib.run);
    find(handle, "blitz_runtime_new", &lib.runtime_new);
    find(handle, "blitz_spawn", &lib.spawn);
    find(handle, "blitz_task_join", &lib.join);
    find(handle, "blitz_sleep_until", &lib.sleep_until);
    find(handle, "blitz_now", &lib.now);
    find(handle, "blitz_par_runtime", &lib.par_runtime);
    find(handle, "blitz_par_end", &lib.par_end);
    return handle;
}

static int nap(void *arg)
{
    (void)arg;
    return lib.sleep_until(lib.now() + 100000);
}

static int some_naps(void *arg)
{
    blitz_task *t[20];
    (void)arg;
    for (int i = 0; i < 20; i++)
        if (lib.spawn(nap, NULL, NULL, &t[i]) != 0)
            return 1;
    for (int i = 0; i < 20; i++)
        if (lib.join(t[i], NULL, BLITZ_FOREVER) != 0)
            return 1;
    return 0;
}

static int threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = 0;
    if (dir == NULL)
        return 1;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* The system lists a thread for a moment after it was joined. */
static int threads_in_the_end(void)
{
    int count = threads();
    for (int tries = 0; count != 1 && tries < 100000; tries++) {
        sched_yield();
        count = threads();
    }
    return count;
}

static int use_and_unload(const char *path)
{
    void *handle = load(path);
    if (lib.run(some_naps, NULL, &(blitz_runtime_opts){.procs = 2}) != 0)
        return 1;
    if (lib.par_runtime() == NULL || lib.par_end() != 0)
        return 2;
    if (threads_in_the_end() != 1)
        return 3;
    if (dlclose(handle) != 0)
        return 4;
    return dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL ? 5 : 0; /* it is still there */
}

static int turn_round(void *arg)
{
    volatile unsigned long *turns = arg;
    while (++*turns != 0) {
    }
    return 0;
}

/* Two that never end, one that sleeps, and the process's own runtime; none of them is waited
 * for. */
static int leave_them(const char *path)
{
    static volatile unsigned long turns;
    blitz_runtime *rt;
    (void)load(path);
    if (lib.par_runtime() == NULL || lib.runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt) != 0)
        return 1;
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < 3; i++)
        if (lib.spawn(i < 2 ? turn_round : nap, (void *)&turns, &opts, NULL) != 0)
            return 2;
    while (turns == 0) {
    }
    return 0;
}

int main(int argc, char **argv)
{
    int err = 0;
    if (argc < 2)
        return 12;
    if (argc > 2)
        exit(leave_them(argv[1]));
    for (int i = 0; i < 50 && err == 0; i++)
        err = use_and_unload(argv[1]);
    return err;
}
