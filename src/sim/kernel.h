/*
 * kernel.h - shared by the files of the simulated network.
 *
 *   kernel.c         descriptors, pending events, waiting, and the table of calls
 *   kernel_stream.c  stream sockets: connections, bytes, ends
 *   kernel_sock.c    ... and the calls on them
 *   kernel_set.c     readiness: edges, sets, poll(2), counters and pipes
 *   kernel_ring.c    rings
 *   kernel_queue.c   queues of kevents
 *
 * Functions in the table of calls set errno; internal functions return a negative errno.
 */
#ifndef BZ_SIM_KERNEL_H
#define BZ_SIM_KERNEL_H

#include "base/list.h"
#include "base/rng.h"
#include "sim/network.h"
#include "io/sys.h"
#include "io/sys_queues.h"
#include "io/sys_rings.h"
#include "io/sys_sets.h"
#include "io/uring_abi.h"

enum {
    SIM_FD_FIRST = 1 << 16, /* no real descriptor has such a number */
    SIM_FDS = 256,
    SIM_FILES = 384,
    SIM_EVENTS = 1024,
    SIM_ITEMS = 512,
    SIM_NOTES = 1024,
    SIM_FLIGHTS = 256,
    SIM_RINGS = 16,
    SIM_LINE = 16,  /* maximum length of an accept queue */
    SIM_BYTES = 128 /* maximum of bytes in transit or unread: a power of two */
};

struct sim_file;
struct sim_flight;

/* ---- sockets ---- */

/* Bytes to one end. The counters wrap: put >= here >= got >= freed. */
struct sim_queue {
    uint32_t put;   /* written by the sender */
    uint32_t here;  /* arrived */
    uint32_t got;   /* read by the receiver */
    uint32_t freed; /* acknowledged: room is capacity - (put - freed) */
    uint32_t capacity;
    bool has_end, is_end_here; /* the end was sent; the end has arrived */
    uint64_t stands_until_ns;  /* nothing arrives before */
    uint8_t data[SIM_BYTES];
};

enum sim_socket_state { SIM_FRESH, SIM_LISTENS, SIM_CONNECTS, SIM_CONNECTED };

struct sim_socket {
    enum sim_socket_state state;
    int family;
    int error;             /* SO_ERROR */
    struct sim_queue in;   /* incoming bytes */
    struct sim_file *peer; /* NULL: closed, or not connected yet */
    bool is_ended;         /* we have sent the end */
    bool is_deaf;          /* shut down for reading */
    bool is_dead;          /* reset: no output any more */
    bool wants_room;       /* a write was short: an edge follows when there is room */
    bool resets_at_close;  /* SO_LINGER of 0, or never accepted */
    struct sockaddr_storage name, peer_name;
    socklen_t name_bytes, peer_name_bytes;
    struct sim_file *line[SIM_LINE]; /* not accepted yet */
    unsigned line_count, line_room;
};

/* ---- rings ---- */

enum sim_flight_state { SIM_FLIGHT_FREE, SIM_IN_FLIGHT, SIM_COMPLETED };

/* An operation of a ring. */
struct sim_flight {
    struct bz_list parked; /* in file->parked while it waits for an edge */
    enum sim_flight_state state;
    uint32_t generation;          /* counts its uses */
    uint32_t thread;              /* the submitting thread: the flight ends with it */
    bool is_begun;                /* a connect */
    struct sim_file *ring, *file; /* each with a reference; NULL: none */
    struct bz_uring_sqe sqe;
    int32_t result;
    struct bz_list overflow; /* in ring->overflow: completed, but the queue is full */
};

struct sim_ring {
    struct bz_os_slab slab;
    uint32_t sq_entries, cq_entries;
    struct bz_list overflow;
};

/* ---- files ---- */

enum sim_kind { SIM_NO_FILE, SIM_SOCKET, SIM_COUNTER, SIM_SET, SIM_RING, SIM_QUEUE };

struct sim_file {
    enum sim_kind kind;
    uint32_t generation; /* counts its uses */
    unsigned refs;       /* descriptors, waits, flights, accept queue */
    bool blocks;
    bool arrives, rooms;     /* such an event is already pending */
    uint8_t late_sides;      /* enum sim_edge of the edges that are delayed */
    struct bz_list watchers; /* struct sim_item.of_file */
    struct bz_list notes;    /* struct sim_note.of_file */
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
        struct {
            struct bz_list notes;  /* struct sim_note.of_queue */
            struct bz_list active; /* struct sim_note.active, in the order of their edges */
        } queue;
    };
};

/* A file in a set. */
struct sim_item {
    struct bz_list of_set, of_file, ready;
    struct sim_file *set, *file; /* NULL: not in use */
    int fd;
    struct epoll_event event;
};

/* A registration in a queue. */
struct sim_note {
    struct bz_list of_queue, of_file, active;
    struct sim_file *queue; /* NULL: not in use */
    struct sim_file *file;  /* NULL: a user event */
    struct bz_kevent is;    /* as it was last added */
    bool is_triggered;
};

/* ---- pending events ---- */

enum sim_event_kind {
    SIM_NO_EVENT,
    SIM_SYN,    /* a connect reaches the other side */
    SIM_ARRIVE, /* bytes, or the end */
    SIM_ROOM,   /* the sender learns of free room */
    SIM_RESET,
    SIM_EDGE, /* a delayed edge */
    SIM_TRY,  /* retry a flight */
    SIM_POST  /* make a flight's completion visible */
};

struct sim_event {
    enum sim_event_kind kind;
    uint64_t due_ns;
    struct sim_file *file;
    struct sim_flight *flight;
    uint32_t generation; /* generation of the object; if it differs, the event is void */
};

struct sim_kernel {
    const struct bz_os *os;
    struct bz_sim_net_config config;
    struct bz_os_slab slab; /* this */
    struct bz_rng rng;
    struct bz_os_thread wire;
    bz_os_word changed;   /* counts changes; all waiters check it */
    bz_os_word under_way; /* counts new events for the wire */
    bool owes_wake, owes_wire, is_ending;
    uint64_t delay_ns_max;
    uint16_t port;
    struct bz_sim_net_books books;
    struct sim_file *fd[SIM_FDS];
    struct sim_file file[SIM_FILES];
    struct sim_event event[SIM_EVENTS];
    struct sim_item item[SIM_ITEMS];
    struct sim_note note[SIM_NOTES];
    struct sim_flight flight[SIM_FLIGHTS];
};

extern struct sim_kernel *bz_sim_kernel; /* the simulated network; NULL: none */

/* ---- kernel.c ---- */

/* Start of a call: a decision point. End of a call: wakes the waiters. */
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
/* A random delay. */
uint64_t bz_sim_delay(void);
void bz_sim_send_event(enum sim_event_kind kind, struct sim_file *f, struct sim_flight *flight,
                       uint64_t delay_ns);

struct sim_file *bz_sim_file_new(enum sim_kind kind); /* one reference */
void bz_sim_file_unref(struct sim_file *f);
/* Make a descriptor, which takes the reference; -EMFILE: the reference was dropped. */
int bz_sim_fd_new(struct sim_file *f);
bool bz_sim_fd_is_free(void);
void bz_sim_fd_drop(int fd);
/* The file of a descriptor that must be open and of this kind. SIM_NO_FILE: any kind. NULL:
 * -ENOTSOCK. */
struct sim_file *bz_sim_file_of(int fd, enum sim_kind kind);
/* NULL: it is not open, or a real descriptor. */
struct sim_file *bz_sim_file_at(int fd);
/* Convert a result to the return value of a call. */
int64_t bz_sim_outcome(int64_t result);
void bz_sim_copy(void *to, const void *from, size_t bytes);
void bz_sim_zero(void *at, size_t bytes);

/* ---- kernel_stream.c ---- */

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
/* Give it an unused name, unless it has one; check that the name is free. */
void bz_sim_name_it(struct sim_socket *s);
bool bz_sim_is_taken(struct sockaddr_storage *name, socklen_t bytes);
/* Send the end of the stream. */
void bz_sim_say_end(struct sim_file *f);

/* ---- kernel_set.c ---- */

/* Its ready events, as flags of poll(2), which are those of epoll. */
unsigned bz_sim_mask(struct sim_file *f);
/* Report an edge of these sides, at once or a little later. Only queues tell the sides apart. */
enum sim_edge { SIM_EDGE_IN = 1, SIM_EDGE_OUT = 2, SIM_EDGE_BOTH = 3 };
void bz_sim_edge(struct sim_file *f, unsigned sides);
void bz_sim_edge_soon(struct sim_file *f, unsigned sides);
/* All waiters look again. */
void bz_sim_has_changed(void);
void bz_sim_set_end(struct sim_file *f);
/* Remove a file from all sets. */
void bz_sim_forget(struct sim_file *f);

/* ---- kernel_queue.c ---- */

void bz_sim_queues_edge(struct sim_file *f, unsigned sides);
void bz_sim_queue_end(struct sim_file *f);
/* A descriptor is closed. */
void bz_sim_queues_forget(int fd);

/* ---- kernel_ring.c ---- */

void bz_sim_ring_end(struct sim_file *f);
/* Its descriptor is closed: completions are not taken any more. */
void bz_sim_ring_closed(struct sim_file *f);
void bz_sim_flight_event(struct sim_event *e);
void bz_sim_flights_edge(struct sim_file *f);
void bz_sim_flights_of(uint32_t thread); /* it has ended */

/* The calls of each file. */
void bz_sim_sock_calls(struct bz_sys *out);
void bz_sim_set_calls(struct bz_sys *out);
extern const struct bz_sys_queues bz_sim_queues;
extern const struct bz_sys_sets bz_sim_sets;
extern const struct bz_sys_rings bz_sim_rings;

#endif
