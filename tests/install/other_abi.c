/*
 * other_abi.c - stands in for a libblitz.so.0 of another binary interface: the functions are there,
 * the symbol blitz_abi_0 is not. The install check sees to it that no program starts with it.
 */
int blitz_version_number(void);
const char *blitz_version_string(void);
int blitz_log_set(void (*fn)(void *, int, const char *), void *ctx, int max);

int blitz_version_number(void)
{
    return 9999999;
}

const char *blitz_version_string(void)
{
    return "999.99.99";
}

int blitz_log_set(void (*fn)(void *, int, const char *), void *ctx, int max)
{
    (void)fn;
    (void)ctx;
    (void)max;
    return 0;
}

extern _Thread_local void *blitz_self_;
_Thread_local void *blitz_self_;
void blitz_fork_slow_(void *job);
int blitz_join_slow_(void *job);
void *blitz_worker_slow_(void);
int blitz_run(int (*fn)(void *), void *arg, const void *config);

void blitz_fork_slow_(void *job)
{
    (void)job;
}

int blitz_join_slow_(void *job)
{
    (void)job;
    return 0;
}

void *blitz_worker_slow_(void)
{
    return blitz_self_;
}

int blitz_run(int (*fn)(void *), void *arg, const void *config)
{
    (void)config;
    return fn(arg);
}
