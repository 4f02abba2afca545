/*
 * exceptions.h - programs in C++ that wait wherever the C++ runtime has an exception in hand.
 *
 * They use the public headers only. The first check that fails is told in `wrong`.
 */
#ifndef T_EXCEPTIONS_H
#define T_EXCEPTIONS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ex_scene {
    unsigned procs, tasks, rounds; /* rounds of each task */
    uint64_t seed;
    uint64_t done;       /* rounds that ran */
    uint64_t migrations; /* waits from which a task came back on another thread */
    char wrong[256];     /* empty: nothing */
};

/* Tasks that throw, rethrow, nest and unwind, and wait at every step. */
void ex_mix(struct ex_scene *s);

/* A plain thread with an exception in hand uses a runtime, and finds its exception again. */
void ex_thread(struct ex_scene *s);

/* A task called `parser` throws std::runtime_error("lost") and does not catch it. */
enum ex_escape { EX_CLAIMED, EX_ELSEWHERE, EX_POINTER, EX_POLL, EX_JOB, EX_BIG_STACK, EX_ESCAPES };
void ex_escape(enum ex_escape how);

#ifdef __cplusplus
}
#endif

#endif
