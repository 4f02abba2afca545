/*
 * fault.h - a keeper that lets another do the work, and fails the n-th call.
 *
 * What a program does when the system says no is rarely run and so rarely right. This keeper wraps
 * any other (Linux, sim) together with an allocator, counts the calls that can fail, and makes one
 * of them fail in the way the contract allows: the n-th of one kind, or the n-th of all. A scenario
 * run with n = 1, 2, 3 ... until nothing failed any more has seen every failure there is; the macro
 * FAULTS_EACH of tests/support/faults.h does that.
 *
 * It also keeps books: threads started and not joined, slabs reserved and not released, blocks
 * allocated and not freed. After a scenario they must be even, whatever failed in between.
 *
 * And it can linger at delay points, for stress runs on real threads: one time in delay_one_in for up
 * to delay_ns_max. A delay of a microsecond at the right place finds in each run what plain stress
 * never does.
 */
#ifndef BZ_OS_FAULT_H
#define BZ_OS_FAULT_H

#include "blitz/hooks.h"
#include "os/os.h"

enum bz_fault_kind {
    BZ_FAULT_NONE = 0,
    BZ_FAULT_THREAD,   /* thread_start says -EAGAIN */
    BZ_FAULT_RESERVE,  /* slab_reserve says -ENOMEM */
    BZ_FAULT_GUARD,    /* slab_guard says -ENOMEM */
    BZ_FAULT_DISCARD,  /* pages_discard says -ENOMEM */
    BZ_FAULT_WAIT,     /* wait returns 0 at once: no error, but no reason either */
    BZ_FAULT_BARRIER,  /* barrier_register says -ENOSYS, and so does every barrier from then on */
    BZ_FAULT_CPU_TIME, /* thread_cpu_time says -ESRCH */
    BZ_FAULT_URGE,     /* thread_urge and urge_watch say -EAGAIN */
    BZ_FAULT_ENTROPY,  /* entropy says -EIO */
    BZ_FAULT_MEMORY,   /* the allocator returns NULL */
    BZ_FAULT_KINDS,
    BZ_FAULT_ANY = BZ_FAULT_KINDS /* in a plan: whichever kind the n-th call is of */
};

struct bz_fault_plan {
    enum bz_fault_kind kind; /* which calls are counted */
    uint64_t nth;            /* which of them fails, from 1; 0: none */
    bool for_good;           /* and so do all that come after it */
    uint64_t late_max;       /* ... but for so many at most; 0: without end */
    uint32_t delay_one_in;   /* 0: no delays but those of the keeper beneath */
    uint32_t delay_ns_max;
    uint64_t seed; /* of the delays */
};

/* What was taken and not given back. */
struct bz_fault_books {
    int64_t threads, slabs, blocks;
};

/* The memory is the caller's; it stays put while anybody uses the keeper or the allocator. */
struct bz_fault {
    struct bz_os os;           /* first: the keeper to hand on */
    blitz_allocator allocator; /* the allocator to hand on */
    const struct bz_os *under;
    const blitz_allocator *memory;
    struct bz_fault_plan plan;      /* constant after init */
    bz_atomic(uint64_t) calls;      /* that the plan counts, so far */
    bz_atomic(uint64_t) delays;     /* delay points passed: the place in the seed's stream */
    bz_atomic(int) failed;          /* enum bz_fault_kind of the call that was failed */
    bz_atomic(bool) has_no_barrier; /* BZ_FAULT_BARRIER has struck */
    bz_atomic(int64_t) threads, slabs, blocks;
};

/*
 * Wrap `under` and `memory` (NULL: the C library's).
 * Owns:     borrows both until the last use of f->os and f->allocator.
 */
void bz_fault_init(struct bz_fault *f, const struct bz_os *under, const blitz_allocator *memory,
                   const struct bz_fault_plan *plan);

/* What kind of call was made to fail; BZ_FAULT_NONE if the plan's n was never reached. */
enum bz_fault_kind bz_fault_failed(struct bz_fault *f);

/* The books; all zero when nothing leaked. When nobody uses the keeper any more. */
struct bz_fault_books bz_fault_books(struct bz_fault *f);

/* "thread", "reserve", ... */
const char *bz_fault_name(enum bz_fault_kind kind);

#endif
