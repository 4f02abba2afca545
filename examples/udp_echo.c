/*
 * udp_echo.c - echo datagrams, many in a call.
 *
 *     example_udp_echo 127.0.0.1:4001     serve until killed; try: nc -u 127.0.0.1 4001
 *     example_udp_echo                    send itself a thousand datagrams, and exit
 */
#include <stdio.h>
#include <string.h>

#include <blitz.h>

enum { ROOM = 2048, BATCH = 16, QUESTIONS = 1000 };

/* Send each received datagram back to its sender: two system calls for up to 16 datagrams. */
static int echo(void *arg)
{
    static char data[BATCH][ROOM];
    blitz_datagram d[BATCH];
    blitz_udp *u = arg;
    for (;;) {
        for (int i = 0; i < BATCH; i++)
            d[i] = (blitz_datagram){.data = data[i], .bytes = ROOM};
        int n = blitz_udp_recv_many(u, d, BATCH, BLITZ_FOREVER);
        if (n < 0)
            return n;
        for (int i = 0; i < n; i++)
            if (d[i].bytes > ROOM)
                d[i].bytes = ROOM; /* it was cut */
        for (int sent = 0, some; sent < n; sent += some) {
            some = blitz_udp_send_many(u, d + sent, (size_t)(n - sent), BLITZ_FOREVER);
            if (some < 0)
                some = 1; /* that one cannot be answered */
        }
    }
}

/* Datagrams may be lost, so the client resends after a timeout. */
static int ask(const blitz_addr *server)
{
    blitz_addr here = blitz_addr_loopback_v4(0);
    blitz_udp *u;
    int answers = 0, err = blitz_udp_bind(&here, NULL, &u);
    if (err == 0)
        err = blitz_udp_connect(u, server);
    for (int i = 0, back; err == 0 && i < QUESTIONS; i++) {
        do {
            blitz_udp_send(u, &i, sizeof i, BLITZ_FOREVER);
            back = -1;
            blitz_udp_recv(u, &back, sizeof back, blitz_after(100 * BLITZ_MS));
        } while (back != i);
        answers++;
    }
    printf("%d questions, %d answers\n", QUESTIONS, answers);
    blitz_udp_close(u);
    return err;
}

static int run(void *text)
{
    blitz_addr at;
    blitz_udp *u;
    blitz_task *server;
    int err = blitz_addr_parse(text != NULL ? text : "127.0.0.1:0", &at);
    if (err == 0)
        err = blitz_udp_bind(&at, NULL, &u);
    if (err != 0)
        return err;
    if (text != NULL)
        return echo(u);
    blitz_udp_local(u, &at);
    err = blitz_spawn(echo, u, NULL, &server);
    if (err == 0) {
        err = ask(&at);
        blitz_task_cancel(server);
        blitz_task_join(server, NULL, BLITZ_FOREVER);
    }
    blitz_udp_close(u);
    return err;
}

int main(int argc, char **argv)
{
    int err = blitz_run(run, argc > 1 ? argv[1] : NULL, NULL);
    if (err < 0)
        fprintf(stderr, "udp_echo: %s\n", strerror(-err));
    return err < 0;
}
