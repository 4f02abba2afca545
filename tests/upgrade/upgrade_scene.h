/*
 * upgrade_scene.h - what the upgrade tests share: the paths of libraries, and questions to a counter.
 */
#ifndef T_UPGRADE_SCENE_H
#define T_UPGRADE_SCENE_H

#define VERSION 1
#define IN_PROGRAM 1
#include "counter.c"
#undef VERSION

#include <stdio.h>
#include <sys/auxv.h>

#include "harness.h"

/* The path of a library: "2", "fails". Of this call and the one before. */
static inline const char *library(const char *name)
{
    static char paths[2][512];
    static unsigned at;
    char *path = paths[at++ % 2];
    if (getauxval(AT_BASE) == 0) /* where the kernel has put the loader */
        t_skip("a static program has no loader");
    snprintf(path, sizeof paths[0], "%s/counter_%s.so", UPGRADE_LIBRARIES, name);
    return path;
}

static inline blitz_actor_id born(const blitz_behaviour *b)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(b, NULL, NULL, &id), 0);
    return id;
}

static inline void add(blitz_actor_id id, long from, long until)
{
    for (long i = from; i < until; i++)
        CHECK_EQ(blitz_actor_send(id, ADD, &i, sizeof i), 0);
}

static inline struct counted_by ask(blitz_actor_id id, uint32_t what)
{
    struct counted_by by;
    CHECK_EQ(blitz_actor_call(id, what, NULL, 0, &by, sizeof by, BLITZ_FOREVER), (int)sizeof by);
    return by;
}

/* Upgrade to a library, NULL: the program's, and wait until it is done. */
static inline blitz_upgrade_info upgraded(const char *name, const char *path,
                                          const blitz_upgrade_opts *opts)
{
    blitz_upgrade_info info;
    int rc = blitz_upgrade(name, path, opts, &info);
    if (rc != 0)
        t_note("%s: %d, %s", path != NULL ? path : "the program's", rc, info.text);
    CHECK_EQ(rc, 0);
    CHECK_EQ(blitz_upgrade_wait(name, NULL, &info, BLITZ_FOREVER), 0);
    return info;
}

/* An upgrade that is refused. */
static inline blitz_upgrade_info refused(const char *name, const char *path,
                                         const blitz_upgrade_opts *opts, int want)
{
    blitz_upgrade_info info;
    CHECK_EQ(blitz_upgrade(name, path, opts, &info), want);
    return info;
}

/* The mappings of this process whose file is a copy of a library. */
static inline int mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024];
    int n = 0;
    CHECK_NOT_NULL(f);
    while (fgets(line, sizeof line, f) != NULL)
        n += strstr(line, "/blitz-") != NULL;
    (void)fclose(f);
    return n;
}

/* A joiner is told of the end of an actor before the actor leaves its version. */
static inline void until_unloaded(const char *name)
{
    blitz_upgrade_info info;
    do
        CHECK_EQ(blitz_upgrade_wait(name, NULL, &info, BLITZ_FOREVER), 0);
    while (info.libraries != 0);
    CHECK_EQ(mappings(), 0);
}

#endif
