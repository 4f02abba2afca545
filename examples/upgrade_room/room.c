/*
 * room.c - the room of upgrade.c: version 1 and 2, by -DVERSION. As a library, and version 1 in the program too.
 */
#include <errno.h>

#include "room.h"

#if !defined(VERSION)
#define VERSION 1 /* for tools that read this file alone */
#endif

#if VERSION == 1
typedef struct room_1 room;
#else
typedef struct room_2 room;
#endif

BLITZ_HANDLER(on_say, room, struct line)
{
    state->lines++;
#if VERSION >= 2
    if (data->guest >= 0 && data->guest < 3)
        state->by[data->guest]++;
#endif
    return blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_summary, room, void)
{
    struct summary now = {.version = VERSION, .lines = state->lines};
#if VERSION >= 2
    for (int i = 0; i < 3; i++)
        now.by[i] = state->by[i];
#endif
    return blitz_actor_reply(m->reply, &now, sizeof now);
}

/* Make the state of this version. It was version `old_version` before. */
#if VERSION == 1
static int from_other(void *old_state, uint32_t old_version, void *new_state)
{
    const struct room_2 *old = (const struct room_2 *)old_state;
    *(struct room_1 *)new_state = (struct room_1){.lines = old->lines};
    return old_version == 2 ? 0 : -EINVAL;
}
static const blitz_change changes[] = {{2, from_other}};
#else
static int from_other(void *old_state, uint32_t old_version, void *new_state)
{
    const struct room_1 *old = (const struct room_1 *)old_state;
    *(struct room_2 *)new_state = (struct room_2){.lines = old->lines};
    return old_version == 1 ? 0 : -EINVAL;
}
static const blitz_change changes[] = {{1, from_other}};
#endif

static const blitz_handler handlers[] = {BLITZ_ON(SAY, struct line, on_say),
                                         BLITZ_ON_EMPTY(SUMMARY, on_summary)};

#if defined(IN_PROGRAM)
const blitz_behaviour room_of_program = {
#else
static const blitz_behaviour this_room = {
#endif
    .name = "room",
    .version = VERSION,
    .changes = changes,
    .change_count = 1,
    .state_bytes = sizeof(room),
    .handlers = handlers,
    .handler_count = 2};

#if !defined(IN_PROGRAM)
BLITZ_LIBRARY(&this_room);
#endif
