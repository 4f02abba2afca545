/*
 * consumer.c - a program of somebody who has installed blitz. C11, and C++17 as it stands.
 *
 * Prints the version of the library it runs with; fails if headers and library do not fit.
 */
#include <stdio.h>

#include <blitz.h>

/* What is made of macros and inline functions compiles in somebody else's program, as C++ too. */
struct count {
    blitz_frame frame;
    blitz_sleep_future nap;
    int left;
};

static blitz_poll count_down(void *state, blitz_cx *cx)
{
    struct count *me = (struct count *)state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->left > 0) {
        BLITZ_SLEEP(rc, &me->nap, BLITZ_US);
        if (rc < 0)
            BLITZ_RETURN(rc);
        BLITZ_YIELD();
        me->left--;
    }
    BLITZ_END(4);
}

static int run(void *arg)
{
    struct count state = {{0, 0}, {{NULL}, 0, {NULL}}, 3};
    blitz_task *t;
    int result = -1;
    (void)arg;
    if (blitz_spawn_poll(count_down, &state, sizeof state, NULL, &t) != 0)
        return 5;
    blitz_task_join(t, BLITZ_FOREVER, &result);
    return result == 4 ? 0 : 6;
}

int main(void)
{
    if (blitz_log_set(NULL, NULL, BLITZ_LOG_WARN) != 0)
        return 2;
    if (!blitz_version_ok())
        return 3;
    if (blitz_run(run, NULL, NULL) != 0)
        return 4;
    printf("%s\n", blitz_version_string());
    return 0;
}
