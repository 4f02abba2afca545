/*
 * upgrade.c - a chat that is upgraded while people talk.
 *
 * The room is an actor. Guests send lines and ask how it went. Meanwhile main() loads upgrade_room_2.so, whose room also counts the
 * lines of each guest, and the room changes between two lines: no line is lost, and no guest notices. The way back is the same call.
 *
 *     example_upgrade DIRECTORY-OF-THE-LIBRARIES [LINES]
 *
 * The libraries are upgrade_room/room.c, built twice. The program exports blitz to them: -rdynamic, ENABLE_EXPORTS in CMake.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

#include "upgrade_room/room.h"

enum { GUESTS = 3, LAST_LINES = 10 };

struct guest {
    blitz_actor_id room;
    int number, lines;
};

/* Say so many lines. A call waits for its answer, so that a lost line would be noticed. */
static int talk(void *arg)
{
    const struct guest *g = arg;
    for (int i = 0; i < g->lines; i++) {
        struct line line = {.guest = g->number};
        snprintf(line.text, sizeof line.text, "line %d", i);
        int rc = blitz_actor_call(g->room, SAY, &line, sizeof line, NULL, 0, BLITZ_FOREVER);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int change(const char *dir, int version)
{
    char path[512];
    blitz_upgrade_info info;
    blitz_upgrade_opts opts = {.unload = true};
    snprintf(path, sizeof path, "%s/upgrade_room_%d.so", dir, version);
    int rc = blitz_upgrade("room", path, &opts, &info);
    if (rc == 0)
        rc = blitz_upgrade_wait("room", NULL, &info, blitz_after(10 * BLITZ_S));
    if (rc != 0)
        fprintf(stderr, "upgrade to version %d: error %d %s\n", version, rc, info.text);
    return rc;
}

/* Change while the guests talk, until they are done. */
static int change_all(const char *dir, blitz_task *const *guests)
{
    int rc = 0, result, changes = 0;
    for (int i = 0; i < GUESTS; i++)
        while (rc == 0 && blitz_task_try_join(guests[i], &result) == -EAGAIN)
            if ((rc = change(dir, 2 - changes % 2)) == 0)
                changes++;
    printf("the room has changed %d times while they talked\n", changes);
    if (changes % 2 == 0 && rc == 0)
        rc = change(dir, 2);
    return rc;
}

struct evening {
    const char *dir;
    int lines;
};

/* Start the room as version 1: an upgrade needs a behaviour of that name. */
static int open_room(blitz_actor_id *out)
{
    int rc = blitz_behaviour_register(NULL, &room_of_program);
    return rc == 0 ? blitz_behaviour_spawn("room", 1, NULL, NULL, out) : rc;
}

static int evening(void *arg)
{
    const struct evening *e = arg;
    struct guest guest[GUESTS];
    blitz_task *talks[GUESTS];
    blitz_actor_id room;
    struct summary now;
    int rc = open_room(&room);
    for (int i = 0; i < GUESTS && rc == 0; i++) {
        guest[i] = (struct guest){room, i, e->lines};
        rc = blitz_spawn(talk, &guest[i], NULL, &talks[i]);
    }
    if (rc == 0)
        rc = change_all(e->dir, talks);
    if (rc != 0)
        return rc;
    for (int i = 0; i < GUESTS && rc == 0; i++)
        rc = talk(&(struct guest){room, i, LAST_LINES});
    if (rc != 0)
        return rc;
    rc = blitz_actor_call(room, SUMMARY, NULL, 0, &now, sizeof now, BLITZ_FOREVER);
    if (rc < 0)
        return rc;
    printf("version %d: %d lines", now.version, now.lines);
    printf(", since it counts guests: %d, %d, %d\n", now.by[0], now.by[1], now.by[2]);
    return now.lines == GUESTS * (e->lines + LAST_LINES) && now.version == 2 ? 0 : -EIO;
}

int main(int argc, char **argv)
{
    struct evening e = {argc > 1 ? argv[1] : ".", argc > 2 ? atoi(argv[2]) : 20000};
    int rc = blitz_run(evening, &e, NULL);
    if (rc != 0)
        fprintf(stderr, "error %d\n", rc);
    return rc == 0 ? 0 : 1;
}
