/*
 * room.c - a chat room: a group of actors that share each line, and a task that reads along.
 *
 * The room is a group. Each guest is an actor that joins it in `init`; a guest that leaves the program is out of the room by itself.
 * A line is a binary, so it is in memory once, however many guests get it. The host is a plain fiber. It joins the room too, and
 * waits for the lines it cares about with blitz_receive().
 *
 *     example_room [GUESTS]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

enum { SAY, HEARD, LEAVE };
#define ROOM "room"

struct guest {
    int number;
    long heard;
};

/* Say something to everyone in the room. Returns how many heard it. */
static int say(const char *text)
{
    blitz_binary *line;
    if (blitz_binary_copy(text, strlen(text) + 1, &line) != 0)
        return -ENOMEM;
    int reached = blitz_group_send_with(NULL, ROOM, SAY, NULL, 0, &(blitz_cargo){.binary = line});
    blitz_binary_unref(line);
    return reached;
}

static int guest_init(void *state)
{
    (void)state;
    return blitz_group_join(ROOM, blitz_actor_self());
}

/* Guests answer a greeting, once each. */
BLITZ_HANDLER(on_say, struct guest, void)
{
    char answer[64];
    (void)data;
    state->heard++;
    if (strcmp((const char *)blitz_binary_data(m->binary), "hello") != 0)
        return 0;
    snprintf(answer, sizeof answer, "guest %d says hi", state->number);
    return say(answer) < 0 ? -ENOMEM : 0;
}

BLITZ_HANDLER(on_heard, struct guest, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, &state->heard, sizeof state->heard);
}

BLITZ_HANDLER(on_leave, struct guest, void)
{
    (void)state, (void)data, (void)m;
    return BLITZ_ACTOR_STOP;
}

static const blitz_handler handlers[] = {
    BLITZ_ON_EMPTY(SAY, on_say), BLITZ_ON_EMPTY(HEARD, on_heard), BLITZ_ON_EMPTY(LEAVE, on_leave)};
static const blitz_behaviour guest = {.name = "guest",
                                      .state_bytes = sizeof(struct guest),
                                      .init = guest_init,
                                      .handlers = handlers,
                                      .handler_count = 3};

/* Lines of guests; our own greeting comes from ourselves. */
static bool is_by_guest(const blitz_msg *m, void *me)
{
    return m->what == SAY && !blitz_actor_id_equal(m->from, *(blitz_actor_id *)me);
}

static int fill(int guests, blitz_actor_id *id)
{
    int rc = 0;
    for (int i = 0; i < guests && rc == 0; i++)
        rc = blitz_actor_spawn(&guest, &(struct guest){.number = i}, NULL, &id[i]);
    for (int i = 0; i < guests && rc == 0; i++) { /* an answer means that its init has joined */
        long heard;
        rc = blitz_actor_call(id[i], HEARD, NULL, 0, &heard, sizeof heard, BLITZ_FOREVER);
        rc = rc < 0 ? rc : 0;
    }
    return rc;
}

static int host(int guests, blitz_actor_id *id)
{
    blitz_actor_id me;
    const blitz_msg *m;
    int rc = fill(guests, id), answers = 0;
    if (rc == 0)
        rc = blitz_receiver_begin(&(blitz_actor_opts){.name = "host"}, &me);
    if (rc == 0)
        rc = blitz_group_join(ROOM, me);
    if (rc != 0)
        return rc;
    printf("the greeting reaches %d\n", say("hello"));
    while (answers < guests &&
           (rc = blitz_receive(is_by_guest, &me, &m, blitz_after(10 * BLITZ_S))) == 0)
        answers++;
    printf("%d of %d guests answer\n", answers, guests);
    for (int i = 0; i < guests / 2 && rc == 0; i++) {
        rc = blitz_actor_send(id[i], LEAVE, NULL, 0);
        (void)blitz_actor_join(id[i], NULL, BLITZ_FOREVER);
    }
    while (blitz_group_members(NULL, ROOM, 0, NULL) > guests - guests / 2 + 1)
        blitz_yield();
    printf("after half have left, a line reaches %d\n", say("goodbye"));
    return rc;
}

static int chat(void *arg)
{
    int guests = *(int *)arg;
    blitz_actor_id *id = calloc((size_t)guests, sizeof *id);
    int rc = id != NULL ? host(guests, id) : -ENOMEM;
    free(id);
    return rc;
}

int main(int argc, char **argv)
{
    int guests = argc > 1 ? atoi(argv[1]) : 100;
    if (guests < 1 || guests > 10000) {
        fprintf(stderr, "usage: %s [GUESTS, 1 to 10000]\n", argv[0]);
        return 2;
    }
    int rc = blitz_run(chat, &guests, NULL);
    if (rc != 0)
        fprintf(stderr, "room: %s\n", strerror(-rc));
    return rc != 0;
}
