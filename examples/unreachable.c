/* unreachable.c - rooms and their guests hold each other, and end by themselves when no visitor holds a room. */
#include <stdio.h>

#include "blitz.h"

enum { GUESTS = 3 };
enum { ENTER, WELCOME, SAY };

/* A room holds its guests, and each guest holds the room: a circle. */
struct room {
    BLITZ_REF guest[GUESTS];
    int count;
};
BLITZ_TYPE(unreachable_room, struct room, guest[0], guest[1], guest[2]);

struct guest {
    BLITZ_REF room;
};
BLITZ_TYPE(unreachable_guest, struct guest, room);

BLITZ_HANDLER(on_enter, struct room, void)
{
    (void)data;
    blitz_reference *guest = blitz_msg_reference(m), *me = blitz_reference_self();
    state->guest[state->count++] = blitz_actor_reference(guest);
    int rc = blitz_actor_send_with(blitz_reference_id(guest), WELCOME, NULL, 0,
                                   &(blitz_cargo){.reference = me});
    blitz_reference_unref(me);
    return rc;
}

BLITZ_HANDLER(on_say, struct room, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, &state->count, sizeof state->count);
}

BLITZ_HANDLER(on_welcome, struct guest, void)
{
    (void)data;
    state->room = blitz_actor_reference(blitz_msg_reference(m));
    return 0;
}

static const blitz_handler room_handlers[] = {{ENTER, 0, on_enter}, {SAY, 0, on_say}};
static const blitz_behaviour room = {.name = "room",
                                     .state_bytes = sizeof(struct room),
                                     .state_type = &unreachable_room,
                                     .handlers = room_handlers,
                                     .handler_count = 2,
                                     .end_unreachable = true};
static const blitz_handler guest_handlers[] = {{WELCOME, 0, on_welcome}};
static const blitz_behaviour guest = {.name = "guest",
                                      .state_bytes = sizeof(struct guest),
                                      .state_type = &unreachable_guest,
                                      .handlers = guest_handlers,
                                      .handler_count = 1,
                                      .end_unreachable = true};

static int open_room(blitz_reference **out)
{
    int rc = blitz_reference_spawn(&room, NULL, NULL, out);
    for (int i = 0; i < GUESTS && rc == 0; i++) {
        blitz_reference *g;
        rc = blitz_reference_spawn(&guest, NULL, NULL, &g);
        if (rc != 0)
            break;
        rc = blitz_actor_send_with(blitz_reference_id(*out), ENTER, NULL, 0,
                                   &(blitz_cargo){.reference = g});
        blitz_reference_unref(g); /* the message holds the guest, and then the room does */
    }
    return rc;
}

static int visit(void *arg)
{
    (void)arg;
    blitz_reference *r;
    const blitz_msg *m;
    uint64_t ref;
    int count = 0;
    int rc = blitz_receiver_begin(NULL, NULL);
    if (rc != 0 || (rc = open_room(&r)) != 0)
        return rc;
    rc = blitz_actor_monitor(blitz_reference_id(r), &ref);
    if (rc == 0)
        rc = blitz_actor_call(blitz_reference_id(r), SAY, NULL, 0, &count, sizeof count,
                              blitz_after(10 * BLITZ_S));
    printf("the room has %d guests\n", count);
    blitz_reference_unref(r); /* now the room and its guests hold only each other */
    if (rc < 0 || (rc = blitz_receive(NULL, NULL, &m, blitz_after(60 * BLITZ_S))) != 0)
        return rc;
    const blitz_down *down = (const blitz_down *)m->data;
    if (down->reason.kind == BLITZ_EXIT_UNREACHABLE)
        printf("nothing holds the room any more: it has ended, and its guests\n");
    return 0;
}

int main(void)
{
    int rc = blitz_run(visit, NULL, NULL);
    if (rc != 0)
        fprintf(stderr, "unreachable: error %d\n", rc);
    return rc != 0;
}
