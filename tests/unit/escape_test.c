/* life/escape.h: a C program that has loaded C++ code, or in which foreign code throws. */
#include "harness.h"

#include <dlfcn.h>
#include <string.h>
#include <unwind.h>

#include "arch/eh.h"
#include "blitz.h"

static int has_exceptions(void *arg)
{
    (void)arg;
    return bz_eh_is_used();
}

/* The exceptions of a task go with it from then on; a plugin may bring the C++ runtime. */
TEST(escape, the_c_plus_plus_runtime_is_found_where_it_was_loaded)
{
    if (dlsym(RTLD_DEFAULT, "__cxa_get_globals") != NULL)
        t_skip("this program has the C++ runtime from the start, as with a sanitizer");
    CHECK_EQ(blitz_run(has_exceptions, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
    if (dlopen("libstdc++.so.6", RTLD_NOW) == NULL)
        t_skip("no C++ runtime on this system");
    CHECK_EQ(blitz_run(has_exceptions, NULL, &(blitz_runtime_opts){.procs = 1}), 1);
}

/* Throw as a foreign language does. The search for a handler returns if there is none. */
static BZ_NOINLINE int throws(void)
{
    struct _Unwind_Exception e;
    memset(&e, 0, sizeof e);
    return (int)_Unwind_RaiseException(&e);
}

static int throws_as_int(void *arg)
{
    (void)arg;
    return throws();
}

static void *throws_as_pointer(void *arg)
{
    *(int *)arg = throws();
    return NULL;
}

static blitz_poll throws_in_a_poll(void *state, blitz_cx *cx)
{
    (void)state;
    cx->result = throws();
    return BLITZ_READY;
}

/* Let it run on its own: a join would run it above our frames, and our own function ends the search, too. */
static int result_of(blitz_task *t)
{
    int result = -1;
    blitz_yield();
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int throws_everywhere(void *arg)
{
    blitz_task *t;
    int result = -1;
    (void)arg;
    CHECK_EQ(blitz_spawn(throws_as_int, NULL, NULL, &t), 0);
    CHECK_EQ(result_of(t), _URC_FATAL_PHASE1_ERROR);
    CHECK_EQ(blitz_spawn_poll(throws_in_a_poll, NULL, 0, NULL, &t), 0);
    CHECK_EQ(result_of(t), _URC_FATAL_PHASE1_ERROR);
    CHECK_EQ(blitz_spawn_ptr(throws_as_pointer, &result, NULL, &t), 0);
    CHECK_EQ(result_of(t), 0);
    CHECK_EQ(result, _URC_FATAL_PHASE1_ERROR);
    CHECK_EQ(blitz_on_big_stack(throws_as_int, NULL, 1 << 20), _URC_FATAL_PHASE1_ERROR);
    return 0;
}

/* Else the search goes on in the frames of the scheduler, or of the task that joins: to the end of the stack here. */
TEST(escape, the_search_for_a_handler_ends_at_the_function_of_a_task)
{
    if ((unsigned)throws() > _URC_CONTINUE_UNWIND)
        t_skip(
            "the unwinder returns no code of its own for a throw that fails"); /* gcc 12, aarch64 */
    CHECK_EQ(throws(), _URC_END_OF_STACK);
    CHECK_EQ(blitz_run(throws_everywhere, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}
