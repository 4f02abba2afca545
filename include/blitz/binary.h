/*
 * blitz/binary.h - messages with more than 64 bytes: counted binaries, and blocks that move.
 *
 * A message carries up to 64 bytes by copy. It may carry one thing more, its cargo:
 *
 *   a binary   bytes that no one changes any more, shared by counting references. A slice is a part of a binary, without a
 *              copy. One binary may be in many messages, of many actors.
 *   a block    memory of blitz_msg_alloc() that has one owner. A send moves it: the sender's pointer is cleared, and the
 *              receiver owns the block.
 *
 *     struct picture *p = (struct picture *)blitz_msg_alloc(sizeof *p);
 *     ...
 *     int rc = blitz_actor_send_with(painter, PAINT, NULL, 0, &(blitz_cargo){.move = BLITZ_MOVE(p)});
 *     // rc is 0: p is NULL. Otherwise p is still ours: blitz_msg_drop(p)
 *
 *     BLITZ_HANDLER(on_paint, struct painter, void)
 *     {
 *         paint((struct picture *)m->block);        // freed when the handler returns
 *         state->last = blitz_msg_take(m);          // unless it is taken
 *         return 0;
 *     }
 *
 * A handler reads m->binary or m->block. Both are valid until it returns. To keep the binary, the handler takes a reference
 * of its own (blitz_binary_ref()); to keep the block, it takes the block (blitz_msg_take()). The cargo of a message that is never
 * handled is freed: the actor has ended, its mailbox was full, the timer was cancelled, the caller has left, the runtime ends.
 *
 * C can check part of that: a block that is sent, taken or dropped while it is not owned aborts the program, with a message.
 * Debug builds note the actor that owns a block. They abort if another one sends the block, and if the old owner has written
 * to the block after the move. Under AddressSanitizer every access to a block on its way is reported.
 */
#ifndef BLITZ_BINARY_H
#define BLITZ_BINARY_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/actor.h"
#include "blitz/api.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* ---- marks for readers ---- */

/*
 * Marks that say how a pointer in a declaration is used. C does not check them; clang keeps them as annotations, for tools.
 *
 *   BLITZ_ISO   isolated: the only pointer to a block of blitz_msg_alloc(). It may be moved.
 *                   struct job { struct picture *input BLITZ_ISO; };
 *   BLITZ_VAL   a value: the bytes never change. It may be shared. It is C's const, so the compiler refuses a write.
 *                   BLITZ_VAL struct config *config;
 *   BLITZ_TAG   an identity: it is compared and sent to, and not followed. An id of an actor is one.
 *                   struct session { blitz_actor_id peer BLITZ_TAG; };
 */
#if defined(__clang__)
#define BLITZ_ISO __attribute__((annotate("blitz_iso")))
#define BLITZ_TAG __attribute__((annotate("blitz_tag")))
#else
#define BLITZ_ISO
#define BLITZ_TAG
#endif
#define BLITZ_VAL const

/* ---- binaries ---- */

/*
 * Make a binary. Its bytes are not initialized: write them through blitz_binary_bytes() before you share it.
 * Owns:     the caller holds the first reference; drop it with blitz_binary_unref(). The memory is from the allocator of the
 *           caller's runtime, outside of one from the C library.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_binary_new(size_t size, blitz_binary **out);

/*
 * Make a binary of these bytes.
 * Owns:     copies `size` bytes. *out as blitz_binary_new().
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (bytes is NULL, and size is not 0). *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_binary_copy(const void *bytes, size_t size, blitz_binary **out);

/*
 * Make a binary that is a part of another, without a copy.
 * Owns:     *out is a reference of its own, and keeps all bytes of `of` alive.
 * Suspends: never. Call from a thread that holds a reference.
 * Returns:  0, -EINVAL (the part is not within the binary), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_binary_slice(blitz_binary *of, size_t at, size_t size,
                                                blitz_binary **out);

/*
 * Add a reference.
 * Owns:     the result is a reference of its own.
 * Suspends: never. Call from a thread that holds a reference.
 * Returns:  b.
 */
BLITZ_API blitz_binary *blitz_binary_ref(blitz_binary *b);

/*
 * Release a reference. The last one frees the binary. NULL is ignored.
 * Owns:     takes the reference.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_binary_unref(blitz_binary *b);

/*
 * The bytes of a binary.
 * Owns:     borrowed while the caller holds a reference.
 * Suspends: never. Call from a thread that holds a reference.
 * Returns:  their address, aligned for any type unless it is a slice; never NULL.
 */
BLITZ_API const void *blitz_binary_data(const blitz_binary *b);

/*
 * The number of bytes of a binary.
 * Owns:     borrows the binary until return.
 * Suspends: never. Call from a thread that holds a reference.
 * Returns:  their number.
 */
BLITZ_API size_t blitz_binary_size(const blitz_binary *b);

/* Facts about a binary, as of now. */
typedef struct blitz_binary_info {
    size_t bytes;       /* of this one */
    size_t whole_bytes; /* that it keeps alive: of a slice, the whole */
    uint32_t refs;      /* references, of this thread and others */
} blitz_binary_info;

/*
 * Look at a binary.
 * Owns:     borrows the binary until return. *out is written.
 * Suspends: never. Call from a thread that holds a reference.
 */
BLITZ_API void blitz_binary_info_get(const blitz_binary *b, blitz_binary_info *out);

/*
 * The bytes of a binary that the caller has to itself, for writing.
 * Owns:     borrowed while the caller holds the only reference.
 * Suspends: never. Call from a thread that holds a reference.
 * Returns:  their address; NULL if there is another reference, or it is a slice.
 */
BLITZ_API void *blitz_binary_bytes(blitz_binary *b);

/* ---- blocks ---- */

/*
 * Allocate a block that can be moved in a message. (It returns the memory, as malloc() does: a void ** would need a cast.)
 * Owns:     the block is the caller's until it is moved; drop it with blitz_msg_drop(). The memory is from the allocator of the
 *           caller's runtime, outside of one from the C library.
 * Suspends: never. Call from any thread.
 * Returns:  the block, not initialized and aligned for any type; NULL if there is no memory.
 */
BLITZ_API void *blitz_msg_alloc(size_t size);

/*
 * The size of a block.
 * Owns:     borrows the block until return.
 * Suspends: never. Call from a thread that owns the block, or from its handler.
 * Returns:  as it was allocated.
 */
BLITZ_API size_t blitz_msg_size(const void *block);

/*
 * Free a block. NULL is ignored.
 * Owns:     takes the block, which is the caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_msg_drop(void *block);

/*
 * Take the block of a message, in its handler: it is not freed when the handler returns.
 * Owns:     the block is the caller's.
 * Suspends: never. Call from the owner of the message, that is its handler.
 * Returns:  the block; NULL if the message has none, or it was taken.
 */
BLITZ_API void *blitz_msg_take(const blitz_msg *m);

/* ---- sending ---- */

/* The load of a message besides its payload: nothing, a binary, a block or a reference. */
typedef struct blitz_cargo {
    blitz_binary *binary; /* shared: the message gets a reference of its own; or NULL */
    void *move; /* BLITZ_MOVE(p): p points to a block, which is moved, and becomes NULL; or NULL */
    blitz_reference *reference; /* shared, as a binary: blitz/reference.h; or NULL */
} blitz_cargo;

/* The variable `pointer` gives its block away. */
#define BLITZ_MOVE(pointer) ((void *)&(pointer))

/* The cargo of a reply, for its caller. */
typedef struct blitz_arrival {
    blitz_binary *binary;       /* the caller's: blitz_binary_unref(); or NULL */
    void *block;                /* the caller's: blitz_msg_drop(); or NULL */
    blitz_reference *reference; /* the caller's: blitz_reference_unref(); or NULL */
} blitz_arrival;

/*
 * Send a message with cargo.
 * Owns:     copies `size` bytes of *data. On 0 it shares the binary or takes the block, also if a policy drops the message; on
 *           error both are as before.
 * Suspends: as blitz_actor_send(). Call from anywhere.
 * Returns:  as blitz_actor_send(); -EINVAL also for two of them at once, and for a pointer without a block.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_actor_send_with(blitz_actor_id to, uint32_t what,
                                                   const void *data, size_t size,
                                                   const blitz_cargo *cargo);

/*
 * Make a future that sends a message with cargo.
 * Owns:     borrows *data, *cargo and what it names until the future is ready or cancelled.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_actor_send_with_future_init(blitz_actor_send_future *f, blitz_actor_id to,
                                                 uint32_t what, const void *data, size_t size,
                                                 const blitz_cargo *cargo);

/*
 * Send a message with cargo at a point in time. If the timer is cancelled, or the actor has ended by then, the cargo is freed.
 * Owns:     as blitz_actor_send_with(). *timer is written on 0; NULL: not wanted.
 * Suspends: never. Call from anywhere.
 * Returns:  as blitz_actor_send_with().
 */
BLITZ_API int blitz_actor_send_after_with(blitz_actor_id to, uint32_t what, const void *data,
                                          size_t size, const blitz_cargo *cargo,
                                          blitz_deadline when, uint64_t *timer);

/*
 * Send a message with cargo and wait for its reply, which may have cargo too.
 * Owns:     as blitz_actor_send_with(), and borrows *reply until return. *got is written always, zeroed if nothing came; NULL:
 *           the reply's cargo is freed.
 * Suspends: until the reply, the end of the actor, the deadline or a cancel. Call from anywhere.
 * Returns:  as blitz_actor_call(), and -EINVAL as blitz_actor_send_with(). After -ETIMEDOUT and -ECANCELED the cargo is sent.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_actor_call_with(blitz_actor_id to, uint32_t what,
                                                   const void *data, size_t size,
                                                   const blitz_cargo *cargo, void *reply,
                                                   size_t reply_size, blitz_arrival *got,
                                                   blitz_deadline until);

/*
 * Make a future that calls with cargo. The message is sent by the first poll.
 * Owns:     borrows *data and *cargo until the first poll, *reply and *got until the future is ready or cancelled. *got is zeroed
 *           at once.
 * Suspends: never. Call from anywhere.
 */
BLITZ_API void blitz_actor_call_with_future_init(blitz_actor_call_future *f, blitz_actor_id to,
                                                 uint32_t what, const void *data, size_t size,
                                                 const blitz_cargo *cargo, void *reply,
                                                 size_t reply_size, blitz_arrival *got);

/*
 * Answer a call, with cargo.
 * Owns:     copies `size` bytes of *data. On 0 it shares the binary or takes the block; if the caller has left, the block is
 *           freed.
 * Suspends: never. Call from anywhere.
 * Returns:  as blitz_actor_reply(); -EINVAL also as blitz_actor_send_with(); -ENOMEM (of a reference; nothing was answered).
 */
BLITZ_API int blitz_actor_reply_with(blitz_reply_to to, const void *data, size_t size,
                                     const blitz_cargo *cargo);

BLITZ_END_DECLS

#endif
