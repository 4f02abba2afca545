/*
 * producer_consumer.c - producers, consumers, and a channel between them.
 *
 * Three producers make numbers, two consumers test whether they are prime. The channel holds eight
 * values: a fast producer waits in its send, an idle consumer in its receive; no other signalling
 * is needed. The channel counts its producers, so the last one to finish closes it. Consumers drain
 * the remaining values and then get -EPIPE.
 */
#include <stdio.h>

#include <blitz.h>

enum { PRODUCERS = 3, CONSUMERS = 2, EACH = 2000 };

BLITZ_CHAN_OF(numbers, unsigned);

struct producer {
    numbers out;
    unsigned first;
};

static int produce(void *arg)
{
    struct producer *p = arg;
    int rc = 0;
    for (unsigned i = 0; i < EACH && rc == 0; i++)
        rc = numbers_send(p->out, p->first + i * PRODUCERS, BLITZ_FOREVER);
    blitz_chan_sender_drop(p->out.chan); /* the last one closes the channel */
    return rc;
}

static int is_prime(unsigned n)
{
    for (unsigned d = 2; d * d <= n; d++)
        if (n % d == 0)
            return 0;
    return n >= 2;
}

static int consume(void *arg)
{
    numbers in = {arg};
    unsigned n;
    int primes = 0;
    while (numbers_recv(in, &n, BLITZ_FOREVER) == 0) /* -EPIPE: closed, and all received */
        primes += is_prime(n);
    return primes;
}

static int run(void *arg)
{
    numbers c;
    struct producer producer[PRODUCERS];
    blitz_task *consumer[CONSUMERS];
    int primes = 0, started = 0;
    (void)arg;
    if (numbers_new(8, NULL, &c) != 0)
        return -1;
    for (int i = 0; i < CONSUMERS; i++)
        started += blitz_spawn(consume, c.chan, NULL, &consumer[started]) == 0;
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producer[i] = (struct producer){c, i};
        blitz_chan_sender_add(c.chan);
    }
    for (unsigned i = 0; i < PRODUCERS; i++)
        if (blitz_spawn(produce, &producer[i], NULL, NULL) != 0)
            blitz_chan_sender_drop(c.chan);
    for (int i = 0; i < started; i++) {
        int found = 0;
        blitz_task_join(consumer[i], &found, BLITZ_FOREVER);
        printf("consumer %d found %d primes\n", i + 1, found);
        primes += found;
    }
    numbers_unref(c);
    return primes;
}

int main(void)
{
    int primes = blitz_run(run, NULL, NULL);
    printf("%d primes below %d\n", primes, PRODUCERS * EACH);
    return primes == 783 ? 0 : 1;
}
