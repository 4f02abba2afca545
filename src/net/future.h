/*
 * future.h - what the futures of the network share. future.c has the loop and the plain calls,
 * message.c those with something beside the bytes, batch.c several datagrams at once.
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
    BZ_CALL_FROM,  /* message.c: an address comes with it */
    BZ_CALL_CARGO, /* descriptors do */
    BZ_CALL_ACCEPT,
    BZ_CALL_CONNECT, /* these begin when they are polled */
    BZ_CALL_FD,
    BZ_CALL_MANY
};

/* What lies in a blitz_net_future, and at the front of the others. */
struct bz_net_future {
    blitz_future future;
    int64_t result;
    size_t done;
    struct bz_socket *made;
    union {
        struct bz_socket *of; /* the handle, or what is being connected */
        const blitz_addr *to; /* CONNECT, until it is begun */
        blitz_fd fd;          /* FD */
    };
    uint32_t nap_us; /* the last one */
    uint8_t call;    /* enum bz_net_call */
    bool is_begun;   /* there is something to wait for: `in` */
    bool is_ready;
    uint8_t is_napping : 1;  /* `in.nap` is what is waited for */
    uint8_t is_stopping : 1; /* cancelled, and pinned */
    uint8_t is_copy : 1;     /* FD: by a descriptor of our own */
    uint8_t is_read : 1;     /* FD, MANY: which side */
    union {
        struct bz_io_future io;
        blitz_sleep_future nap;
        struct {
            blitz_datagram *datagrams;
            size_t count;
        } many; /* MANY, until it is begun */
    } in;
};

/* What lies in a blitz_pieces_future, up to the header, and in a blitz_message_future. */
struct bz_message_future {
    struct bz_net_future net;
    struct msghdr header;
    struct iovec piece;
    union {
        blitz_addr *from; /* FROM; NULL: nobody asks */
        blitz_fd *fds;    /* CARGO */
    };
    size_t room; /* CARGO */
    union {
        struct sockaddr_storage name;
        union bz_cargo cargo;
    } beside;
};

/* Not begun, nothing done. */
struct bz_net_future *bz_net_future_init(void *out, enum bz_net_call call, struct bz_socket *of);
/* Its result; true. */
bool bz_net_future_over(struct bz_net_future *f, int64_t result);
/* An operation on its handle: the arguments of its kind are then the caller's to fill in. */
void bz_net_future_begin(struct bz_net_future *f, enum bz_op_code code);
/* The keeper's class is its own. */
void bz_net_future_class(struct bz_net_future *f);

/* What came with a message, once it is complete: message.c. Returns the call's result. */
int64_t bz_message_came(struct bz_net_future *f, int64_t result);

/* Several datagrams: batch.c. Begin, when first polled; 0, or why not. */
BZ_MUST_USE int bz_many_begin(struct bz_net_future *f);
/* So many were; 0 or less: none. The operation is over, and its memory is given back. */
void bz_many_end(struct bz_net_future *f, int64_t count);

#endif
