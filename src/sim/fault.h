/*
 * fault.h - an OS backend that wraps another and fails the n-th call.
 *
 * Error paths are rarely executed and so rarely correct. This backend wraps any other (Linux, sim)
 * together with an allocator and counts the calls that can fail. It makes one of them fail as the
 * contract allows: the n-th of one kind, or the n-th of all. A scenario that runs with n = 1, 2, 3
 * ... until no call fails has seen every single failure; the macro FAULTS_EACH of
 * tests/support/faults.h does that.
 *
 * It also keeps a balance: threads started and not joined, slabs reserved and not released, blocks
 * allocated and not freed. After a scenario all must be zero, whichever call failed.
 *
 * It can also sleep at delay points, for stress runs on real threads: one time in delay_one_in for
 * up to delay_ns_max. A delay of a microsecond at the right place finds bugs that plain stress
 * never finds.
 */
#ifndef BZ_SIM_FAULT_H
#define BZ_SIM_FAULT_H

#include "blitz/hooks.h"
#include "os/os.h"

enum bz_fault_kind {
    BZ_FAULT_NONE = 0,
    BZ_FAULT_THREAD,    /* thread_start returns -EAGAIN */
    BZ_FAULT_RESERVE,   /* slab_reserve returns -ENOMEM */
    BZ_FAULT_GUARD,     /* slab_guard returns -ENOMEM */
    BZ_FAULT_DISCARD,   /* pages_discard returns -ENOMEM */
    BZ_FAULT_WAIT,      /* wait returns 0 at once: a spurious wake-up */
    BZ_FAULT_BARRIER,   /* barrier_register returns -ENOSYS, and so does every later barrier */
    BZ_FAULT_CPU_TIME,  /* thread_cpu_time returns -ESRCH */
    BZ_FAULT_INTERRUPT, /* thread_interrupt and interrupt_watch return -EAGAIN */
    BZ_FAULT_ENTROPY,   /* entropy returns -EIO */
    BZ_FAULT_MEMORY,    /* the allocator returns NULL */
    BZ_FAULT_KINDS,
    BZ_FAULT_ANY = BZ_FAULT_KINDS /* in a plan: the n-th call of any kind */
};

struct bz_fault_plan {
    enum bz_fault_kind kind; /* the kind of calls to count */
    uint64_t nth;            /* the number of the call that fails, from 1; 0: none */
    bool for_good;           /* all later calls fail, too */
    uint32_t delay_one_in;   /* 0: only the delays of the wrapped backend */
    uint32_t delay_ns_max;
    uint64_t seed; /* seed of the delays */
};

/* Resources acquired and not released. */
struct bz_fault_books {
    int64_t threads, slabs, blocks;
};

/* The caller owns the memory and keeps it in place while the backend or the allocator is in use. */
struct bz_fault {
    struct bz_os os;           /* first member: the backend to pass to users */
    blitz_allocator allocator; /* the allocator to pass to users */
    const struct bz_os *under;
    const blitz_allocator *memory;
    struct bz_fault_plan plan;      /* constant after init */
    bz_atomic(uint64_t) calls;      /* calls counted by the plan so far */
    bz_atomic(uint64_t) delays;     /* delay points passed: the position in the seed's stream */
    bz_atomic(int) failed;          /* enum bz_fault_kind of the call that was failed */
    bz_atomic(bool) has_no_barrier; /* BZ_FAULT_BARRIER has struck */
    bz_atomic(bool) is_shut;        /* every call of the plan's kind fails now */
    bz_atomic(int64_t) threads, slabs, blocks;
};

/*
 * Wrap `under` and `memory` (NULL: the C library's).
 * Owns:     borrows both until the last use of f->os and f->allocator.
 */
void bz_fault_init(struct bz_fault *f, const struct bz_os *under, const blitz_allocator *memory,
                   const struct bz_fault_plan *plan);

/* Fail every call of the plan's kind from now on, until the backend is opened again. Any thread. */
void bz_fault_shut(struct bz_fault *f, bool is_shut);

/* The kind of the failed call; BZ_FAULT_NONE if the plan's n was never reached. */
enum bz_fault_kind bz_fault_failed(struct bz_fault *f);

/* The balance; all zero if nothing leaked. Call it when the backend is no longer in use. */
struct bz_fault_books bz_fault_books(struct bz_fault *f);

/* "thread", "reserve", ... */
const char *bz_fault_name(enum bz_fault_kind kind);

#endif
