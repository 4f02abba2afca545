/* scenes.h - the programme, in the order it is played. */
#ifndef SCENES_H
#define SCENES_H

#include "demo.h"

#define DEMO_SCENES(SCENE) \
    SCENE(mailbox)         \
    SCENE(ring)            \
    SCENE(slab)            \
    SCENE(stacks)          \
    SCENE(talk)            \
    SCENE(pipeline)        \
    SCENE(skynet)          \
    SCENE(fib)             \
    SCENE(sort)            \
    SCENE(millions)        \
    SCENE(crashes)         \
    SCENE(hogs)            \
    SCENE(files)           \
    SCENE(net)

#define DEMO_DECLARE(name) extern const struct demo_scene scene_##name;
DEMO_SCENES(DEMO_DECLARE)
#undef DEMO_DECLARE

#endif
