/*
 * no_kqueue.c - the place of the kqueue backend on a system without queues.
 *
 * The build takes this file or kqueue_calls.c. A simulation on such a system sets both pointers, to run the backend on its
 * own queues.
 */
#include <stddef.h>

#include "io/poll.h"
#include "io/sys_queues.h"

const struct bz_sys_queues *bz_sys_queues = NULL;
const struct bz_poll_maker *bz_poll_kqueue = NULL;
