/* Unlocks what another task has locked: a debug build notices, a release build does not. */
#include <blitz.h>

static blitz_mutex mutex = BLITZ_MUTEX_INIT;

static int unlocks(void *arg)
{
    (void)arg;
    blitz_mutex_unlock(&mutex);
    return 0;
}

static int locks(void *arg)
{
    blitz_task *t;
    (void)arg;
    if (blitz_mutex_lock(&mutex, BLITZ_FOREVER) != 0 || blitz_spawn(unlocks, NULL, NULL, &t) != 0)
        return 1;
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

int main(void)
{
    return blitz_run(locks, NULL, NULL);
}
