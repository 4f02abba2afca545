/*
 * demo.h - a frame for scenes.
 *
 * A scene shows one feature of blitz. It has a name for --only, a title, a sentence that explains
 * it, live progress, and a result with figures. It also checks its own claim: if the check fails,
 * the scene reports it and the demo ends with exit code 1.
 *
 * To add one: write scene_NAME.c with a `const struct demo_scene scene_NAME`, and list it in
 * scenes.h. Keep it under ten seconds; the whole demo must end within a minute.
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct demo; /* the frame; a scene passes it back */

struct demo_scene {
    const char *name;  /* for --only: one word */
    const char *title; /* a headline */
    const char *about; /* one sentence that explains the scene */
    void (*play)(struct demo *d);
};

/* How much of `full` to do: all of it, or a tenth with --quick. At least 1. */
uint64_t demo_scaled(struct demo *d, uint64_t full);

/* Show the progress. Cheap enough to call often: it draws at most a few times a second. */
void demo_progress(struct demo *d, uint64_t done, uint64_t total, const char *what);

/* Show the progress of other threads, which add to *done. Return when it has reached total. */
void demo_watch(struct demo *d, _Atomic uint64_t *done, uint64_t total, const char *what);

/* Print a line of the result, as printf. The scene continues. */
void demo_result(struct demo *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A claim of the scene: if it does not hold, the scene has failed and says why. */
void demo_claim(struct demo *d, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* This machine cannot show it; say why. The scene returns after this. */
void demo_cannot(struct demo *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Seconds on a clock that only goes forward. */
double demo_seconds(void);

/* Format a number as "8,000,000". The text stays valid for the next few calls. */
const char *demo_count(uint64_t n);

/* Run fn(arg, 0) .. fn(arg, n - 1) on n threads while this one draws, until all have returned. */
void demo_threads(struct demo *d, int n, void (*fn)(void *arg, int index), void *arg,
                  _Atomic uint64_t *done, uint64_t total, const char *what);

#endif
