/*
 * pubsub.c - one publisher, many subscribers, one of them slow.
 *
 * A broadcast never makes its sender wait. It keeps the last few values, and tells a slower
 * subscriber how many it has missed. A channel would slow all tasks down to the slowest. Here the
 * values are temperatures, and old ones are useless.
 */
#include <stdio.h>

#include <blitz.h>

enum { SUBSCRIBERS = 3, READINGS = 200, KEPT = 16 };

struct subscriber {
    blitz_broadcast_rx rx;
    uint64_t nap_ns; /* the time to process a value */
    int received, missed;
};

static int follow(void *arg)
{
    struct subscriber *s = arg;
    double celsius;
    uint64_t missed;
    while (blitz_broadcast_recv(&s->rx, &celsius, &missed, BLITZ_FOREVER) == 0) {
        s->received++;
        s->missed += (int)missed;
        if (s->nap_ns > 0 && blitz_sleep(s->nap_ns) != 0)
            break; /* cancelled */
    }
    blitz_broadcast_unsubscribe(&s->rx);
    return 0;
}

static int run(void *arg)
{
    static const uint64_t nap[SUBSCRIBERS] = {0, 50 * BLITZ_US, BLITZ_MS};
    struct subscriber s[SUBSCRIBERS];
    blitz_task *t[SUBSCRIBERS];
    blitz_broadcast *b;
    int is_right = 1;
    (void)arg;
    if (blitz_broadcast_new(sizeof(double), KEPT, &b) != 0)
        return 1;
    for (int i = 0; i < SUBSCRIBERS; i++) {
        s[i] = (struct subscriber){.nap_ns = nap[i]};
        blitz_broadcast_subscribe(b, &s[i].rx);
        if (blitz_spawn(follow, &s[i], NULL, &t[i]) != 0)
            return 1;
    }
    for (int i = 0; i < READINGS; i++) {
        double celsius = 20 + 0.01 * i;
        blitz_broadcast_send(b, &celsius);
        if (blitz_sleep(20 * BLITZ_US) != 0)
            break;
    }
    blitz_broadcast_close(b);
    for (int i = 0; i < SUBSCRIBERS; i++) {
        blitz_task_join(t[i], NULL, BLITZ_FOREVER);
        printf("subscriber %d: %3d received, %3d missed\n", i + 1, s[i].received, s[i].missed);
        is_right &= s[i].received + s[i].missed == READINGS;
    }
    blitz_broadcast_unref(b);
    return is_right ? 0 : 1;
}

int main(void)
{
    return blitz_run(run, NULL, NULL);
}
