/*
 * unwanted.c - stop work whose result no caller waits for any more.
 *
 * A client asks for a page and waits for at most a while. The page is put together step by step, which takes time. A
 * client that has given up drops its end of the oneshot. The worker waits for its next step or for that drop.
 * If the drop comes first, the worker stops in the middle.
 *
 *     unwanted            three patient clients, three impatient ones
 */
#include <errno.h>
#include <stdio.h>

#include <blitz.h>

enum { CLIENTS = 6, STEPS = 50 };

struct request {
    blitz_oneshot *reply; /* the worker has the sender's end */
    int steps;            /* done by the worker */
};

static int work(void *arg)
{
    struct request *r = arg;
    bool is_wanted = true;
    while (is_wanted && r->steps < STEPS) {
        blitz_closed_future gone;
        blitz_oneshot_wait_closed_future_init(&gone, r->reply);
        blitz_select(BLITZ_FOREVER)
        {
            blitz_on_time(blitz_after(BLITZ_MS))
            {
                r->steps++;
            }
            blitz_on_future(&gone.future)
            {
                is_wanted = false;
            }
            blitz_on_cancel
            {
                is_wanted = false;
            }
        }
    }
    if (!is_wanted) {
        blitz_oneshot_sender_drop(r->reply);
        return -ECANCELED;
    }
    return blitz_oneshot_send(r->reply, &r->steps);
}

/* Ask for a page, and wait until the deadline. True: it came in time. */
static bool ask(struct request *r, blitz_duration patience)
{
    blitz_task *worker;
    int page, rc = blitz_oneshot_new(sizeof page, NULL, &r->reply);
    if (rc != 0)
        return false;
    blitz_oneshot *reply = r->reply;
    if (blitz_spawn(work, r, NULL, &worker) != 0) {
        blitz_oneshot_sender_drop(reply);
        blitz_oneshot_receiver_drop(reply);
        return false;
    }
    rc = blitz_oneshot_recv(reply, &page, blitz_after(patience));
    blitz_oneshot_receiver_drop(reply); /* this ends the work, if it still goes on */
    blitz_task_join(worker, NULL, BLITZ_FOREVER);
    return rc == 0;
}

static int run(void *arg)
{
    int served = 0, stopped = 0;
    (void)arg;
    for (int i = 0; i < CLIENTS; i++) {
        struct request r = {0};
        bool has_page = ask(&r, i % 2 ? 5 * BLITZ_MS : 60 * BLITZ_S);
        printf("client %d: %s after %d of %d steps\n", i + 1, has_page ? "a page" : "gave up",
               r.steps, STEPS);
        served += has_page && r.steps == STEPS;
        stopped += !has_page && r.steps < STEPS;
    }
    return served + stopped == CLIENTS ? 0 : 1;
}

int main(void)
{
    return blitz_run(run, NULL, NULL);
}
