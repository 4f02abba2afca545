/*
 * model_os.h - the checker as a keeper of os/os.h.
 *
 * Code that waits, wakes, spins or issues a barrier gets `&m_os` for its keeper. A wait with a
 * deadline may time out at any moment, a clock stands still, and what has nothing to do with the
 * order of events (pages, threads, entropy) is not there.
 */
#ifndef MODEL_OS_H
#define MODEL_OS_H

#include "os/os.h"

extern const struct bz_os m_os;

#endif
