/*
 * sim_kernel.h - what the files of the simulated network share.
 *
 *   sim_kernel.c   descriptors, what is under way, waiting, and the table of calls
 *   sim_stream.c   stream sockets: connections, bytes, ends
 *   sim_sock.c     ... and the calls on them
 *   sim_set.c      readiness: edges, sets, poll(2), counters and pipes
 *   sim_ring.c     rings
 *
 * What stands in the table of calls sets errno; what is inner returns a negative one.
 */
#ifndef BZ_IO_SIM_KERNEL_H
#define BZ_IO_SIM_KERNEL_H

#include "base/list.h"
#include "base/rng.h"
#include "io/sim_net.h"
#include "io/sys.h"
#include "io/uring_abi.h"

enum {
    SIM_FD_FIRST = 1 << 16, /* no number of the real system's is mistaken for one of ours */
    SIM_FDS = 256,
    SIM_FILES = 384,
    SIM_EVENTS = 1024,
    SIM_ITEMS = 512,
    SIM_FLIGHTS = 256,
    SIM_RINGS = 16,
    SIM_LINE = 16,  /* connections in line, at most */
    SIM_BYTES = 128 /* on their way or unread, at most: a power of two */
};

struct sim_file;
struct sim_flight;

/* ---- sockets ---- */

/* Bytes to somebody. The counters run free: put >= here >= got >= freed. */
struct sim_queue {
    uint32_t put;   /* by the sender */
    uint32_t here;  /* arrived */
    uint32_t got;   /* by the receiver */
    uint32_t freed; /* the sender knows of: room is capacity - (put - freed) */
    uint32_t capacity;
    bool has_end, is_end_here; /* nothing follows; and that has arrived */
    uint8_t data[SIM_BYTES];
};

enum sim_socket_state { SIM_FRESH, SIM_LISTENS, SIM_CONNECTS, SIM_CONNECTED };

struct sim_socket {
    enum sim_socket_state state;
    int family;
    int error;             /* SO_ERROR */
    struct sim_queue in;   /* what comes to us */
    struct sim_file *peer; /* NULL: gone, or none yet */
    bool is_ended;         /* we have said that nothing follows */
    bool is_deaf;          /* shut down for reading */
    bool is_dead;          /* reset: nothing goes out any more */
    bool wants_room;       /* a write was cut short: it is told when there is room */
    bool resets_at_close;  /* SO_LINGER of 0, or never accepted */
    struct sockaddr_storage name, peer_name;
    socklen_t name_bytes, peer_name_bytes;
    struct sim_file *line[SIM_LINE]; /* not accepted yet */
    unsigned line_count, line_room;
};

/* ---- rings ---- */

enum sim_flight_state { SIM_FLIGHT_FREE, SIM_FLIES, SIM_COMPLETED };

/* An operation that a ring has. */
struct sim_flight {
    struct bz_list parked; /* file->parked, while nothing else is under way for it */
    enum sim_flight_state state;
    uint32_t generation;          /* counts its uses */
    uint32_t thread;              /* that handed it in: it ends with that */
    bool is_begun;                /* a connect */
    struct sim_file *ring, *file; /* each with a reference; file NULL: has none */
    struct bz_uring_sqe sqe;
    int32_t result;
    struct bz_list overflow; /* ring->overflow: it has completed, and the queue is full */
};

struct sim_ring {
    struct bz_os_slab slab;
    uint32_t sq_entries, cq_entries;
    struct bz_list overflow;
};

/* ---- files ---- */

enum sim_kind { SIM_NO_FILE, SIM_SOCKET, SIM_COUNTER, SIM_SET, SIM_RING };

struct sim_file {
    enum sim_kind kind;
    uint32_t generation; /* counts its uses */
    unsigned refs;       /* descriptors, waits, flights, the line it is in */
    bool blocks;
    bool arrives, rooms;     /* such an event is under way already */
    struct bz_list watchers; /* struct sim_item.of_file */
    struct bz_list parked;   /* struct sim_flight.parked */
    union {
        struct sim_socket socket;
        struct {
            uint64_t count;
            struct sim_file *reader; /* a pipe's end for writing: the other one; NULL: itself */
        } counter;
        struct {
            struct bz_list items; /* struct sim_item.of_set */
            struct bz_list ready; /* struct sim_item.ready */
        } set;
        struct sim_ring ring;
    };
};

/* A file in a set. */
struct sim_item {
    struct bz_list of_set, of_file, ready;
    struct sim_file *set, *file; /* NULL: not in use */
    int fd;
    struct epoll_event event;
};

/* ---- what is under way ---- */

enum sim_event_kind {
    SIM_NO_EVENT,
    SIM_SYN,    /* a connect reaches the other side */
    SIM_ARRIVE, /* bytes, or the end */
    SIM_ROOM,   /* the sender learns that there is some */
    SIM_RESET,
    SIM_EDGE, /* something has happened that is told only now */
    SIM_TRY,  /* a flight: again */
    SIM_POST  /* a flight: its completion becomes visible */
};

struct sim_event {
    enum sim_event_kind kind;
    uint64_t due_ns;
    struct sim_file *file;
    struct sim_flight *flight;
    uint32_t generation; /* of whichever it is; another by then: the event is void */
};

struct sim_kernel {
    const struct bz_os *os;
    struct bz_sim_net_config config;
    struct bz_os_slab slab; /* this */
    struct bz_rng rng;
    struct bz_os_thread wire;
    bz_os_word changed;   /* counts what those who wait may be waiting for */
    bz_os_word under_way; /* counts what the wire has not seen */
    bool owes_wake, owes_wire, is_ending;
    uint64_t delay_ns_max;
    uint16_t port;
    struct bz_sim_net_books books;
    struct sim_file *fd[SIM_FDS];
    struct sim_file file[SIM_FILES];
    struct sim_event event[SIM_EVENTS];
    struct sim_item item[SIM_ITEMS];
    struct sim_flight flight[SIM_FLIGHTS];
};

extern struct sim_kernel *bz_sim_kernel; /* the one; NULL: there is none */

/* ---- sim_kernel.c ---- */

/* A call begins: others may go first. It ends: who waits hears of it. */
void bz_sim_call(void);
void bz_sim_called(void);
/* Sleep until `changed` is not what it was, or until_ns. */
void bz_sim_sleep(uint32_t was, uint64_t until_ns);
uint32_t bz_sim_changes(void);
/* 0: not at all; else BZ_OS_FOREVER or when. */
uint64_t bz_sim_until_ms(int ms);

/* True once in n times, but never if it is calm; from 0 below n. */
bool bz_sim_odd(uint32_t n);
uint32_t bz_sim_below(uint32_t n);
/* How long something is under way. */
uint64_t bz_sim_delay(void);
void bz_sim_send_event(enum sim_event_kind kind, struct sim_file *f, struct sim_flight *flight,
                       uint64_t delay_ns);

struct sim_file *bz_sim_file_new(enum sim_kind kind); /* one reference */
void bz_sim_file_unref(struct sim_file *f);
/* A descriptor that takes the reference; -EMFILE: it was dropped. */
int bz_sim_fd_new(struct sim_file *f);
bool bz_sim_fd_is_free(void);
void bz_sim_fd_drop(int fd);
/* Of a descriptor that must be open, and of that kind. SIM_NO_FILE: any. NULL: -ENOTSOCK. */
struct sim_file *bz_sim_file_of(int fd, enum sim_kind kind);
/* NULL: it is not open, or the real system's. */
struct sim_file *bz_sim_file_at(int fd);
/* What a call returns. */
int64_t bz_sim_outcome(int64_t result);
void bz_sim_copy(void *to, const void *from, size_t bytes);
void bz_sim_zero(void *at, size_t bytes);

/* ---- sim_stream.c ---- */

void bz_sim_socket_init(struct sim_file *f);
void bz_sim_socket_end(struct sim_file *f);
unsigned bz_sim_socket_mask(struct sim_file *f);
void bz_sim_socket_event(struct sim_event *e);
int64_t bz_sim_recv(struct sim_file *f, const struct iovec *vector, size_t count, int flags);
int64_t bz_sim_send(struct sim_file *f, const struct iovec *vector, size_t count);
int64_t bz_sim_accept(struct sim_file *f, struct sockaddr *name, socklen_t *bytes, bool blocks);
int64_t bz_sim_connect(struct sim_file *f, const struct sockaddr *name, socklen_t bytes);
int bz_sim_error_of(struct sim_file *f); /* SO_ERROR */
/* Two ends of one connection. */
void bz_sim_be_peers(struct sim_file *a, struct sim_file *b);
/* A name that nobody has, unless it has one; is that one taken? */
void bz_sim_name_it(struct sim_socket *s);
bool bz_sim_is_taken(struct sockaddr_storage *name, socklen_t bytes);
/* Nothing follows. */
void bz_sim_say_end(struct sim_file *f);

/* ---- sim_set.c ---- */

/* What is ready of it, in the words of poll(2), which are those of epoll. */
unsigned bz_sim_mask(struct sim_file *f);
/* Something has happened to it: at once, or told a little later. */
void bz_sim_edge(struct sim_file *f);
void bz_sim_edge_soon(struct sim_file *f);
void bz_sim_set_end(struct sim_file *f);
/* A file goes: no set knows it any more. */
void bz_sim_forget(struct sim_file *f);

/* ---- sim_ring.c ---- */

void bz_sim_ring_end(struct sim_file *f);
/* Its descriptor is: nobody takes completions any more. */
void bz_sim_ring_closed(struct sim_file *f);
void bz_sim_flight_event(struct sim_event *e);
void bz_sim_flights_edge(struct sim_file *f);
void bz_sim_flights_of(uint32_t thread); /* it has ended */

/* The calls of each file. */
void bz_sim_sock_calls(struct bz_sys *out);
void bz_sim_set_calls(struct bz_sys *out);
void bz_sim_ring_calls(struct bz_sys *out);

#endif
