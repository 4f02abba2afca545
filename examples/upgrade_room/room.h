/*
 * room.h - what all versions of the room share: its messages. And version 1, which is a part of the program.
 */
#ifndef UPGRADE_ROOM_ROOM_H
#define UPGRADE_ROOM_ROOM_H

#include <blitz.h>

enum { SAY, SUMMARY };

struct line {
    int guest;
    char text[40];
};

struct summary {
    int version, lines;
    int by[3]; /* lines of each guest; version 1 does not count them */
};

/* The states. An old one is never changed: libraries know it. */
struct room_1 {
    int lines;
};
struct room_2 {
    int lines;
    int by[3];
};

extern const blitz_behaviour room_of_program;

#endif
