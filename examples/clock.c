/*
 * clock.c - test a program that waits for hours, in milliseconds.
 *
 * The program under test mails a report. If the mail server is down, it tries again after one hour, two, four and so on,
 * for at most a day. Its tests run in a runtime with a virtual clock (blitz/clock.h), which goes to the next
 * timer whenever all tasks wait. The last test moves the clock by hand, to look at the program between two tries.
 *
 *     clock
 */
#include <errno.h>
#include <stdio.h>

#include "blitz.h"

#define HOUR (3600 * BLITZ_S)

/* ---- the program under test: it knows nothing of virtual clocks ---- */

struct server {
    blitz_instant up_at; /* from then on it accepts mail */
    int calls;
};

static int send_mail(void *arg)
{
    struct server *s = arg;
    s->calls++;
    return blitz_now() >= s->up_at ? 0 : -EHOSTUNREACH;
}

static int mail_report(struct server *s)
{
    const blitz_backoff_opts pauses = {.first = HOUR, .most = 8 * HOUR, .is_exact = true};
    return blitz_retry(send_mail, s, &pauses, blitz_after(24 * HOUR));
}

/* ---- its tests ---- */

#define EXPECT(what)                                              \
    do {                                                          \
        if (!(what)) {                                            \
            printf("%s:%d: not %s\n", __FILE__, __LINE__, #what); \
            return -EPROTO;                                       \
        }                                                         \
    } while (0)

/* The server comes up after five hours: the fourth try, after 1 + 2 + 4 hours, succeeds. */
static int test_of_a_late_server(void *arg)
{
    blitz_instant start = blitz_now();
    struct server s = {.up_at = start + 5 * HOUR};
    (void)arg;
    EXPECT(mail_report(&s) == 0);
    EXPECT(s.calls == 4);
    EXPECT(blitz_now() == start + 7 * HOUR); /* to the nanosecond */
    return 0;
}

static int test_of_a_dead_server(void *arg)
{
    blitz_instant start = blitz_now();
    struct server s = {.up_at = BLITZ_FOREVER};
    (void)arg;
    EXPECT(mail_report(&s) < 0);
    EXPECT(blitz_now() <= start + 24 * HOUR);
    return 0;
}

static int report(void *server)
{
    return mail_report(server);
}

/* On a clock that is moved by hand the test looks at the program between two tries. */
static int test_between_two_tries(void *arg)
{
    struct server s = {.up_at = blitz_after(2 * HOUR)};
    blitz_task *t;
    int err = blitz_spawn(report, &s, NULL, &t), result = -1;
    (void)arg;
    EXPECT(err == 0);
    EXPECT(blitz_clock_advance(NULL, HOUR - 1, BLITZ_FOREVER) == 0);
    EXPECT(s.calls == 1);
    EXPECT(blitz_clock_advance(NULL, 1, BLITZ_FOREVER) == 0);
    EXPECT(s.calls == 2);
    s.up_at = 0; /* repaired */
    EXPECT(blitz_clock_advance(NULL, 2 * HOUR, BLITZ_FOREVER) == 0);
    EXPECT(blitz_task_join(t, &result, BLITZ_FOREVER) == 0);
    EXPECT(result == 0);
    EXPECT(s.calls == 3);
    return 0;
}

static int run(const char *name, int (*test)(void *), blitz_clock_mode mode)
{
    blitz_instant start = blitz_now(); /* on this thread: real time */
    int err = blitz_run(test, NULL, &(blitz_runtime_opts){.clock = mode});
    printf("%-24s %s, after %llu ms of real time\n", name, err == 0 ? "ok" : "FAILED",
           (unsigned long long)((blitz_now() - start) / BLITZ_MS));
    return err != 0;
}

int main(void)
{
    int failed = run("a late server", test_of_a_late_server, BLITZ_CLOCK_AUTO);
    failed += run("a dead server", test_of_a_dead_server, BLITZ_CLOCK_AUTO);
    failed += run("between two tries", test_between_two_tries, BLITZ_CLOCK_MANUAL);
    return failed;
}
