/*
 * blitz/binary_view.h - several binaries, one behind the other, without a copy.
 *
 * A view shares its binaries (blitz/binary.h), and has them as pieces for a call that writes many at once:
 *
 *     blitz_binary *parts[] = {head, body, tail};
 *     blitz_binary_view *view;
 *     int rc = blitz_binary_view_new(parts, 3, &view);
 *     size_t count;
 *     const blitz_piece *pieces = blitz_binary_view_pieces(view, &count);
 *     int64_t n = blitz_tcp_writev(connection, pieces, count, until);
 *
 * A view does not change. A write that transfers a part of the pieces continues with a view of the rest, by _slice().
 */
#ifndef BLITZ_BINARY_VIEW_H
#define BLITZ_BINARY_VIEW_H

#include "blitz/binary.h"
#include "blitz/piece.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_binary_view blitz_binary_view;

/*
 * Make a view of binaries, in this order. One may occur several times.
 * Owns:     shares each binary, and copies the array. Give the view up with blitz_binary_view_unref().
 * Suspends: never. Call from a thread that holds references to them.
 * Returns:  0, -EOVERFLOW (the sizes do not add up), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_binary_view_new(blitz_binary *const *parts, size_t count,
                                                   blitz_binary_view **out);

/*
 * Make a view of a part of another: `size` bytes from the byte `at` on.
 * Owns:     as blitz_binary_view_new().
 * Suspends: never. Call from the owner of the view.
 * Returns:  0, -EINVAL (the part is not within it), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_binary_view_slice(const blitz_binary_view *of, size_t at,
                                                     size_t size, blitz_binary_view **out);

/*
 * Give a view up, and its references. NULL is ignored.
 * Owns:     takes the view.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_binary_view_unref(blitz_binary_view *view);

/*
 * The number of bytes of a view.
 * Owns:     borrows the view until return.
 * Suspends: never. Call from any thread.
 * Returns:  their number.
 */
BLITZ_API size_t blitz_binary_view_size(const blitz_binary_view *view);

/*
 * The pieces of a view, for blitz_tcp_writev() and blitz_file_writev(). Empty binaries have none. Their bytes must not be written.
 * Owns:     borrowed while the view exists. *count is written.
 * Suspends: never. Call from any thread.
 * Returns:  the pieces.
 */
BLITZ_API const blitz_piece *blitz_binary_view_pieces(const blitz_binary_view *view, size_t *count);

/*
 * Make one binary of all bytes of a view, by a copy.
 * Owns:     as blitz_binary_new().
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_binary_view_flatten(const blitz_binary_view *view,
                                                       blitz_binary **out);

BLITZ_END_DECLS

#endif
