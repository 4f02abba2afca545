/*
 * net_future.h - shared by the futures of the network. net_future.c has the loop and the plain calls,
 * message.c calls with an address or descriptors, datagrams.c several datagrams at once.
 */
#ifndef BZ_NET_FUTURE_H
#define BZ_NET_FUTURE_H

#include "blitz/futures.h"
#include "blitz/udp.h"
#include "net/net.h"

enum bz_net_call {
    BZ_CALL_PLAIN,
    BZ_CALL_EXACT,
    BZ_CALL_ALL,
    BZ_CALL_WAIT,
    BZ_CALL_FROM, /* message.c: with an address */
    BZ_CALL_FDS,  /* with descriptors */
    BZ_CALL_ACCEPT,
    BZ_CALL_CONNECT, /* these start when polled */
    BZ_CALL_FD,
    BZ_CALL_MANY
};

/* The content of a blitz_net_future, and the front of the others. */
struct bz_net_future {
    blitz_future future;
    int64_t result;
    union {
        size_t done;
        const blitz_connect_opts *opts; /* CONNECT; NULL: none */
    };
    struct bz_socket *made;
    union {
        struct bz_socket *of; /* the handle, or the connecting socket */
        const blitz_addr *to; /* CONNECT, until it starts */
        blitz_fd fd;          /* FD */
    };
    uint32_t nap_us; /* the last sleep */
    uint8_t call;    /* enum bz_net_call */
    bool is_begun;   /* `in` is being waited for */
    bool is_ready;
    uint8_t is_napping : 1;  /* `in.nap` is being waited for */
    uint8_t is_stopping : 1; /* cancelled, and pinned */
    uint8_t is_copy : 1;     /* FD: uses a duplicate descriptor */
    uint8_t is_read : 1;     /* FD, MANY: the side */
    union {
        struct bz_io_future io;
        blitz_sleep_future nap;
        struct {
            blitz_datagram *datagrams;
            size_t count;
        } many; /* MANY, until it starts */
    } in;
};

/* The content of a blitz_pieces_future, up to the header, and of a blitz_message_future. */
struct bz_message_future {
    struct bz_net_future net;
    struct bz_message message; /* a blitz_pieces_future: its header alone */
    union {
        blitz_addr *from; /* FROM; NULL: not requested */
        blitz_fd *fds;    /* FDS */
    };
    size_t room; /* FDS */
};

/* Initialise: not started, nothing done. */
struct bz_net_future *bz_net_future_init(void *out, enum bz_net_call call, struct bz_socket *of);
/* Set its result; return true. */
bool bz_net_future_over(struct bz_net_future *f, int64_t result);
/* Initialise an operation on its handle; the caller then fills in the arguments of its kind. */
void bz_net_future_begin(struct bz_net_future *f, enum bz_op_code code);
/* Take the class of the backend. */
void bz_net_future_class(struct bz_net_future *f);

/* Unpack a completed message: message.c. Returns the call's result. */
int64_t bz_message_came(struct bz_net_future *f, int64_t result);

/* Several datagrams: datagrams.c. Start at the first poll; returns 0 or a negative errno. */
BZ_MUST_USE int bz_many_begin(struct bz_net_future *f);
/* Store the results of n datagrams (0 or less: none), and free the memory. */
void bz_many_end(struct bz_net_future *f, int64_t count);

#endif
