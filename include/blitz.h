/*
 * blitz.h - everything blitz offers, in one include.
 *
 * Each of the headers below is complete in itself and is the manual of one topic. You may include them one by
 * one. All of them compile as C11 and as C++17.
 */
#ifndef BLITZ_H
#define BLITZ_H

#include "blitz/actor.h"
#include "blitz/api.h"
#include "blitz/blocking.h"
#include "blitz/bridge.h"
#include "blitz/broadcast.h"
#include "blitz/chan.h"
#include "blitz/combine.h"
#include "blitz/delay_queue.h"
#include "blitz/dump.h"
#include "blitz/fork.h"
#include "blitz/fs.h"
#include "blitz/future.h"
#include "blitz/futures.h"
#include "blitz/hooks.h"
#include "blitz/iter.h"
#include "blitz/join_set.h"
#include "blitz/local.h"
#include "blitz/loop.h"
#include "blitz/net.h"
#include "blitz/object_pool.h"
#include "blitz/oneshot.h"
#include "blitz/par.h"
#include "blitz/poll.h"
#include "blitz/process.h"
#include "blitz/promise.h"
#include "blitz/retry.h"
#include "blitz/runtime.h"
#include "blitz/scope.h"
#include "blitz/select.h"
#include "blitz/shutdown.h"
#include "blitz/signal.h"
#include "blitz/sort.h"
#include "blitz/stats.h"
#include "blitz/stream.h"
#include "blitz/supervisor.h"
#include "blitz/sync.h"
#include "blitz/task.h"
#include "blitz/time.h"
#include "blitz/timer.h"
#include "blitz/trace.h"
#include "blitz/version.h"
#include "blitz/watch.h"
#include "blitz/yield.h"

#endif
