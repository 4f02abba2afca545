/*
 * A stranger's endless loop on the only worker, built to count its steps: the others go on.
 */
#include <blitz.h>
#include <stdio.h>
#include <unistd.h>

volatile unsigned long g;

static int spins(void *arg)
{
    (void)arg;
    for (;;)
        g++;
    return 0;
}

/* A yield without another ready task is not counted: so the loop has yielded to us each time. */
static int goes_on(void *arg)
{
    blitz_stats s = {0};
    (void)arg;
    if (blitz_spawn(spins, NULL, NULL, NULL) != 0)
        return 1;
    while (s.yielded < 1000) {
        blitz_yield();
        if (blitz_stats_read(NULL, &s) != 0)
            return 1;
    }
    puts(blitz_version_string());
    fflush(stdout);
    _exit(0); /* the loop has no end */
}

int main(void)
{
    blitz_runtime_opts config = {0};
    config.procs = 1;
    return blitz_run(goes_on, NULL, &config);
}
