/* life/escape.h: a C program that has loaded C++ code. */
#include "harness.h"

#include <dlfcn.h>

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
