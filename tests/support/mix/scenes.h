/*
 * scenes.h - every scene, and how often each is played.
 *
 * Scenes that need sockets and descriptors of the system are for programs that define MIX_HAS_NET.
 */
#ifndef MIX_SCENES_H
#define MIX_SCENES_H

#include "support/mix/actors.h"
#include "support/mix/calls.h"
#include "support/mix/casts.h"
#include "support/mix/chans.h"
#include "support/mix/delays.h"
#include "support/mix/duplexes.h"
#include "support/mix/gates.h"
#include "support/mix/locks.h"
#include "support/mix/raises.h"
#ifdef MIX_HAS_NET
#include "support/mix/children.h"
#include "support/mix/conns.h"
#include "support/mix/files.h"
#include "support/mix/net.h"
#include "support/mix/nodes.h"
#include "support/mix/streams.h"
#endif
#include "support/mix/objects.h"
#include "support/mix/sets.h"
#include "support/mix/shares.h"
#include "support/mix/signals.h"
#include "support/mix/singles.h"
#include "support/mix/tasks.h"

static const struct mix_scene *const mix_scenes[] = {
    &mix_scene_chans,   &mix_scene_shares,    &mix_scene_mutex,     &mix_scene_rwlock,
    &mix_scene_permits, &mix_scene_semaphore, &mix_scene_condition, &mix_scene_notify,
    &mix_scene_gates,   &mix_scene_barrier,   &mix_scene_oneshot,   &mix_scene_promise,
    &mix_scene_once,    &mix_scene_broadcast, &mix_scene_watch,     &mix_scene_join,
    &mix_scene_reset,   &mix_scene_scope,     &mix_scene_timer,     &mix_scene_sets,
    &mix_scene_calls,   &mix_scene_stop,      &mix_scene_duplex,    &mix_scene_rate,
    &mix_scene_delay,   &mix_scene_objects,   &mix_scene_raises,    &mix_scene_actors,
#ifdef MIX_HAS_NET
    &mix_scene_udp,     &mix_scene_fd,        &mix_scene_streams,   &mix_scene_conns,
    &mix_scene_files,   &mix_scene_names,     &mix_scene_children,  &mix_scene_nodes,
#endif
};

enum { MIX_SCENES = sizeof mix_scenes / sizeof mix_scenes[0] };

#endif
