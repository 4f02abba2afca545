/*
 * blitz/group.h - groups of actors under one name.
 *
 *     rc = blitz_group_join("room 7", blitz_actor_self());
 *     ...
 *     int reached = blitz_group_send(NULL, "room 7", SAY, &line, sizeof line);
 *
 * A group exists while it has members. An actor may be in many groups, and in each once. It leaves all of them when it ends, before
 * its links and monitors are told. Groups and names (blitz/actor.h) are apart: a group and an actor may have the same name.
 */
#ifndef BLITZ_GROUP_H
#define BLITZ_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/actor.h"
#include "blitz/api.h"
#include "blitz/binary.h"
#include "blitz/runtime.h"

BLITZ_BEGIN_DECLS

/*
 * Add an actor to a group of its runtime.
 * Owns:     copies the name.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -EEXIST (it is a member), -ESRCH (it has ended), -EINVAL (the name is empty or too long: BLITZ_NAME_BYTES_MAX),
 *           -ENOMEM.
 */
BLITZ_API int blitz_group_join(const char *group, blitz_actor_id id);

/*
 * Remove an actor from a group. A message that was sent to the group before may still arrive.
 * Owns:     borrows the name until return.
 * Suspends: never. Call from anywhere.
 * Returns:  0, -ESRCH (it is no member), -EINVAL (no name).
 */
BLITZ_API int blitz_group_leave(const char *group, blitz_actor_id id);

/*
 * List the members of a group, in no order.
 * Owns:     borrows the name until return, and the runtime; NULL: the caller's. Writes at most `max` ids to *out.
 * Suspends: never. Call from a task, or from any thread with a runtime.
 * Returns:  the number of members, which may be more than max; 0: there is no such group. -EINVAL (no runtime, or no name).
 */
BLITZ_API int blitz_group_members(blitz_runtime *runtime, const char *group, size_t max,
                                  blitz_actor_id *out);

/*
 * Send a message to each member. All messages of one sender arrive at a member in the order of their sends.
 * Owns:     copies `size` bytes of *data; borrows the name until return, and the runtime; NULL: the caller's.
 * Suspends: never. Call from a task, or from any thread with a runtime.
 * Returns:  the number of members in whose mailbox it is: not those that have ended, or whose mailbox is full. -EINVAL as
 *           blitz_actor_send(), or no runtime, or no name; -ENOMEM (sent to none).
 */
BLITZ_API int blitz_group_send(blitz_runtime *runtime, const char *group, uint32_t what,
                               const void *data, size_t size);

/*
 * Send a message with a binary to each member. The members share its bytes.
 * Owns:     as blitz_group_send(); each message shares the binary.
 * Suspends: never. Call from a task, or from any thread with a runtime.
 * Returns:  as blitz_group_send(); -EINVAL also for a block, which has one owner.
 */
BLITZ_API int blitz_group_send_with(blitz_runtime *runtime, const char *group, uint32_t what,
                                    const void *data, size_t size, const blitz_cargo *cargo);

BLITZ_END_DECLS

#endif
