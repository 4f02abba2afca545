/*
 * demo.c - plays the scenes and draws them.
 *
 * On a terminal a scene's progress is one line that is redrawn; elsewhere (a pipe, a CI log) there
 * are no control characters and only results are printed.
 */
#include "demo.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "blitz.h"
#include "scenes.h"

struct demo {
    bool is_terminal, is_quick;
    bool has_drawn; /* a progress line is on the screen */
    double drawn_at;
    int failures;
    bool is_skipped;
};

#define DEMO_LIST(name) &scene_##name,
static const struct demo_scene *const scenes[] = {DEMO_SCENES(DEMO_LIST)};
enum { SCENES = sizeof scenes / sizeof scenes[0] };

double demo_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t demo_scaled(struct demo *d, uint64_t full)
{
    uint64_t n = d->is_quick ? full / 10 : full;
    return n > 0 ? n : 1;
}

const char *demo_count(uint64_t n)
{
    static _Thread_local char text[8][32];
    static _Thread_local unsigned turn;
    char digits[24], *out = text[turn++ % 8];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

/* ---- drawing ---- */

static void wipe(struct demo *d)
{
    if (d->has_drawn)
        printf("\r\033[K");
    d->has_drawn = false;
}

void demo_progress(struct demo *d, uint64_t done, uint64_t total, const char *what)
{
    enum { WIDTH = 30 };
    double now = demo_seconds();
    if (!d->is_terminal || now - d->drawn_at < 0.05)
        return;
    if (done > total)
        done = total;
    int filled = total > 0 ? (int)(done * WIDTH / total) : WIDTH;
    printf("\r\033[K     [");
    for (int i = 0; i < WIDTH; i++)
        putchar(i < filled ? '#' : '.');
    printf("] %3d%%  %s %s", total > 0 ? (int)(done * 100 / total) : 100, demo_count(done), what);
    fflush(stdout);
    d->has_drawn = true;
    d->drawn_at = now;
}

static void pause_a_little(void)
{
    struct timespec t = {0, 10 * 1000 * 1000};
    nanosleep(&t, NULL);
}

void demo_watch(struct demo *d, _Atomic uint64_t *done, uint64_t total, const char *what)
{
    uint64_t now;
    while ((now = *done) < total) {
        demo_progress(d, now, total, what);
        pause_a_little();
    }
}

static void line(struct demo *d, const char *mark, const char *color, const char *format,
                 va_list args)
{
    wipe(d);
    if (d->is_terminal)
        printf("  \033[%sm%s\033[0m ", color, mark);
    else
        printf("  %s ", mark);
    vprintf(format, args);
    putchar('\n');
    fflush(stdout);
}

void demo_result(struct demo *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(d, "=>", "1;32", format, args);
    va_end(args);
}

void demo_claim(struct demo *d, bool holds, const char *format, ...)
{
    if (holds)
        return;
    va_list args;
    va_start(args, format);
    line(d, "!!", "1;31", format, args);
    va_end(args);
    d->failures++;
}

void demo_cannot(struct demo *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(d, "--", "1;33", format, args);
    va_end(args);
    d->is_skipped = true;
}

/* ---- threads under a progress line ---- */

struct team {
    void (*fn)(void *, int);
    void *arg;
    int index;
    pthread_t thread;
};

static void *team_main(void *p)
{
    struct team *t = p;
    t->fn(t->arg, t->index);
    return NULL;
}

void demo_threads(struct demo *d, int n, void (*fn)(void *arg, int index), void *arg,
                  _Atomic uint64_t *done, uint64_t total, const char *what)
{
    struct team *team = calloc((size_t)n, sizeof *team);
    for (int i = 0; team != NULL && i < n; i++) {
        team[i] = (struct team){.fn = fn, .arg = arg, .index = i};
        if (pthread_create(&team[i].thread, NULL, team_main, &team[i]) != 0) {
            fprintf(stderr, "demo: cannot start thread %d of %d\n", i + 1, n);
            exit(1);
        }
    }
    demo_watch(d, done, total, what);
    for (int i = 0; team != NULL && i < n; i++)
        pthread_join(team[i].thread, NULL);
    free(team);
}

/* ---- the programme ---- */

static void play(struct demo *d, const struct demo_scene *s, int number, int of)
{
    int failures = d->failures;
    double start = demo_seconds();
    if (d->is_terminal)
        printf("\n\033[1m%d/%d  %s\033[0m  \033[2m[%s]\033[0m\n     %s\n", number, of, s->title,
               s->name, s->about);
    else
        printf("\n%d/%d  %s  [%s]\n     %s\n", number, of, s->title, s->name, s->about);
    fflush(stdout);
    s->play(d);
    wipe(d);
    if (d->failures > failures)
        printf("     FAILED after %.1f s\n", demo_seconds() - start);
}

static const char *const help =
    "usage: demo [--list] [--only NAME[,NAME...]] [--quick]\n"
    "\n"
    "Plays scenes that show what blitz can do on this machine, each with its figures.\n"
    "  --list    name the scenes and stop\n"
    "  --only    play these alone\n"
    "  --quick   a tenth of the work\n"
    "  --help    this text\n"
    "Exit code: 0, or 1 if a scene's own check failed, or 2 for a bad option.\n";

static void list(FILE *to)
{
    for (int i = 0; i < SCENES; i++)
        fprintf(to, "  %-10s %s\n", scenes[i]->name, scenes[i]->title);
}

static int usage(const char *problem, const char *word)
{
    fprintf(stderr, "demo: %s: %s\nscenes:\n", problem, word);
    list(stderr);
    return 2;
}

/* Marks the scenes named in a comma-separated list; returns 0 or the usage error. */
static int choose(char *names, bool *is_chosen)
{
    for (char *rest = NULL, *name = strtok_r(names, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        int i = 0;
        while (i < SCENES && strcmp(scenes[i]->name, name) != 0)
            i++;
        if (i == SCENES)
            return usage("no such scene", name);
        is_chosen[i] = true;
    }
    return 0;
}

static int play_all(struct demo *d, const bool *is_chosen)
{
    int count = 0, number = 0, skipped = 0;
    double start = demo_seconds();
    for (int i = 0; i < SCENES; i++)
        count += is_chosen[i];
    printf("blitz %s on %ld CPUs\n", blitz_version_string(), sysconf(_SC_NPROCESSORS_ONLN));
    for (int i = 0; i < SCENES; i++)
        if (is_chosen[i]) {
            d->is_skipped = false;
            play(d, scenes[i], ++number, count);
            skipped += d->is_skipped;
        }
    printf("\n%d scenes in %.1f s", count, demo_seconds() - start);
    if (skipped > 0)
        printf(", %d could not be shown here", skipped);
    printf(d->failures > 0 ? ", %d claims FAILED\n" : "\n", d->failures);
    return d->failures > 0;
}

int main(int argc, char **argv)
{
    struct demo d = {.is_terminal = isatty(STDOUT_FILENO) != 0};
    bool is_chosen[SCENES] = {false}, has_chosen = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return fputs(help, stdout), 0;
        if (strcmp(argv[i], "--list") == 0)
            return list(stdout), 0;
        char *names = NULL;
        if (strcmp(argv[i], "--quick") == 0)
            d.is_quick = true;
        else if (strncmp(argv[i], "--only=", 7) == 0)
            names = argv[i] + 7;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            names = argv[++i];
        else
            return usage("unknown option", argv[i]);
        if (names != NULL && choose(names, is_chosen) != 0)
            return 2;
        has_chosen |= names != NULL;
    }
    for (int i = 0; i < SCENES && !has_chosen; i++)
        is_chosen[i] = true;
    return play_all(&d, is_chosen);
}
