/*
 * check.h - the cost of the check that lets the monitor take a proc: one leave and one enter of the
 * runtime (src/queue/retake.h). Measured on these functions, against the same loop without them,
 * because in a whole task the cost is below the noise. Only this part of bench-fair uses internals
 * of the library.
 */
#ifndef BENCH_FAIR_CHECK_H
#define BENCH_FAIR_CHECK_H

#include "proc/enter.h"
#include "proc/state.h"
#include "tasks/tasks.h"

/* In a task, and so in user code: into the runtime and out again. */
static double case_check(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint32_t was;
        struct bz_machine *m = bz_enter(&was);
        bench_keep((uint64_t)(uintptr_t)m);
        bz_leave(was);
        bench_keep(i);
    }
    uint64_t middle = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        bench_keep((uint64_t)(uintptr_t)bz_machine_self());
        bench_keep(i);
    }
    uint64_t with = middle - began, without = tasks_now_ns() - middle;
    return with > without ? (double)(with - without) : 1e-3;
}

#endif
