/*
 * faults.h - run a scenario with each of its calls failing in turn.
 *
 *     static int scenario(const struct bz_os *os, const blitz_allocator *memory, void *arg);
 *
 *     FAULTS_EACH(scenario);
 *     FAULTS_EACH(scenario, .arg = &x, .tolerates = T_FAULT(GUARD), .sim_seeds = 20);
 *
 * The scenario is run with the first call that can fail failing, then the second, and so on, until
 * a run in which nothing was failed. It returns 0 or -errno. Checked each time:
 *   - a failure came back as an error, unless its kind is in `tolerates`: then the scenario has
 *     another way, and must return 0. A wait that returns for no reason is always tolerated;
 *   - no thread, slab or block of memory was left behind;
 *   - the run without a failure returned 0.
 * With sim_seeds, each n is run under that many simulations, which must all end well.
 */
#ifndef T_FAULTS_H
#define T_FAULTS_H

#include "harness.h"
#include "sim/fault.h"
#include "support/sim.h"

#define T_FAULT(kind) (1u << BZ_FAULT_##kind)

typedef int (*t_fault_scenario)(const struct bz_os *os, const blitz_allocator *memory, void *arg);

struct t_faults {
    t_fault_scenario scenario;
    void *arg;
    unsigned tolerates;        /* T_FAULT(...) | ... */
    const struct bz_os *under; /* NULL: bz_os_system */
    unsigned sim_seeds;        /* 0: on `under` itself */
    /* Results of the whole, for the caller to check. */
    uint64_t runs;
    unsigned seen; /* kinds that were failed, as T_FAULT bits */
    char verdict[2 * 65536];
};

/* One run with the n-th call failing. */
struct t_faults_run {
    struct t_faults *all;
    uint64_t nth;
    struct bz_fault fault;
    int result;
};

static inline void t_faults_run_on(const struct bz_os *os, void *arg)
{
    struct t_faults_run *run = arg;
    struct bz_fault_plan plan = {.kind = BZ_FAULT_ANY, .nth = run->nth};
    bz_fault_init(&run->fault, os, NULL, &plan);
    run->result = run->all->scenario(&run->fault.os, &run->fault.allocator, run->all->arg);
}

/* Describe an error of this run in all->verdict; return false if there is none. */
static inline bool t_faults_judge(struct t_faults_run *run)
{
    struct t_faults *all = run->all;
    enum bz_fault_kind failed = bz_fault_failed(&run->fault);
    struct bz_fault_books left = bz_fault_books(&run->fault);
    unsigned tolerates = all->tolerates | T_FAULT(WAIT) | T_FAULT(NONE);
    bool must_succeed = tolerates >> failed & 1;

    all->seen |= failed == BZ_FAULT_NONE ? 0 : 1u << failed;
    if (must_succeed && run->result != 0)
        snprintf(all->verdict, sizeof all->verdict,
                 "call %llu (%s) failed, which must be tolerated, and the scenario returned %d",
                 (unsigned long long)run->nth, bz_fault_name(failed), run->result);
    else if (!must_succeed && run->result >= 0)
        snprintf(all->verdict, sizeof all->verdict,
                 "call %llu (%s) failed and the scenario returned %d: the error was ignored",
                 (unsigned long long)run->nth, bz_fault_name(failed), run->result);
    else if (left.threads != 0 || left.slabs != 0 || left.blocks != 0)
        snprintf(all->verdict, sizeof all->verdict,
                 "after call %llu (%s) failed: leaked %lld threads, %lld slabs, %lld blocks",
                 (unsigned long long)run->nth, bz_fault_name(failed), (long long)left.threads,
                 (long long)left.slabs, (long long)left.blocks);
    else
        return false;
    return true;
}

/* Fail the n-th call, on the real backend or under simulation. False: stop here. */
static inline bool t_faults_nth(struct t_faults *all, uint64_t nth, bool *out_failed)
{
    for (unsigned i = 0; i == 0 || i < all->sim_seeds; i++) {
        struct t_faults_run run = {.all = all, .nth = nth};
        uint64_t seed = t_random();
        int err = 0;
        if (all->sim_seeds > 0)
            err = t_sim(seed, t_faults_run_on, &run);
        else
            t_faults_run_on(all->under != NULL ? all->under : &bz_os_system, &run);
        all->runs++;
        if (err != 0) {
            snprintf(all->verdict, sizeof all->verdict, "call %llu failing, seed 0x%llx: %d\n%s",
                     (unsigned long long)nth, (unsigned long long)seed, err, t_sim_report.text);
            return false;
        }
        if (t_faults_judge(&run))
            return false;
        *out_failed |= bz_fault_failed(&run.fault) != BZ_FAULT_NONE;
    }
    return true;
}

/* Run them all; the verdict is empty if all was well. */
static inline void t_faults_each(struct t_faults *all)
{
    bool has_failed = true;
    for (uint64_t nth = 1; has_failed; nth++) {
        has_failed = false;
        if (nth > 100000) {
            snprintf(all->verdict, sizeof all->verdict, "no end after 100,000 failing calls");
            return;
        }
        if (!t_faults_nth(all, nth, &has_failed))
            return;
    }
}

#define FAULTS_EACH(...)                                    \
    do {                                                    \
        static struct t_faults all_;                        \
        all_ = (struct t_faults){.scenario = __VA_ARGS__};  \
        t_faults_each(&all_);                               \
        if (all_.verdict[0] != '\0')                        \
            FAIL("%s", all_.verdict);                       \
        t_note("%llu runs", (unsigned long long)all_.runs); \
    } while (0)

#endif
