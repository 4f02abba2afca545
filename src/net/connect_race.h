/*
 * connect_race.h - connect to several addresses at the same time, and keep the first connection. connect_race.c has the
 * rules.
 */
#ifndef BZ_NET_CONNECT_RACE_H
#define BZ_NET_CONNECT_RACE_H

#include "blitz/futures.h"
#include "blitz/tcp.h"

enum { BZ_RACE_MAX = 8, BZ_RACE_DELAY_MS = 250 };

struct bz_race {
    blitz_future future; /* pinned */
    int result;          /* when ready: the index of the address, or a negative errno */
    blitz_tcp *tcp;      /* with an index: the connection, the caller's */
    const blitz_addr *to;
    const blitz_connect_opts *opts;
    int first_error;
    uint8_t count, begun; /* addresses; attempts that were begun, in their order */
    bool is_live[BZ_RACE_MAX];
    bool is_over, is_stopping; /* stopping: no attempt begins any more */
    bool is_cancelled;
    bool has_nap;           /* `nap` is being waited for */
    int8_t winner;          /* -1: none */
    blitz_sleep_future nap; /* until the next attempt begins */
    blitz_net_future one[BZ_RACE_MAX];
};

/* Make a race of 1 to BZ_RACE_MAX addresses. Borrows them and the options (NULL: none) until it is ready. Poll it in a
 * task. */
void bz_race_init(struct bz_race *r, const blitz_addr *to, size_t count,
                  const blitz_connect_opts *opts);

#endif
