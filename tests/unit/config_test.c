/* runtime/config.h: which stack a size asks for, and which limits a runtime has that asks for none. */
#include "harness.h"

#include <stdlib.h>

#include "runtime/config.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

/* The next class that is large enough, and none beyond the largest. */
TEST(config, a_stack_is_of_the_smallest_class_that_fits)
{
    static const uint64_t bytes[BZ_STACK_CLASSES] = {64 * KIB, 256 * KIB, MIB, 8 * MIB};
    CHECK_EQ(bz_stack_class_for(1), 0);
    for (int i = 0; i < BZ_STACK_CLASSES; i++) {
        CHECK_EQ((int)bz_stack_class_for(bytes[i]), i);
        CHECK_EQ((int)bz_stack_class_for(bytes[i] - 1), i);
        CHECK_EQ((int)bz_stack_class_for(bytes[i] + 1), i + 1);
    }
    CHECK_EQ((int)bz_stack_class_for(UINT64_MAX), BZ_STACK_CLASSES);
}

/* As programs rely on them; docs and headers say the same. */
TEST(config, defaults_are_as_documented)
{
    static const char *const names[] = {"BLITZ_PROCS", "BLITZ_STACK",       "BLITZ_TASKS_MAX",
                                        "BLITZ_PLAIN", "BLITZ_THREADS_MAX", "BLITZ_NO_ROTATION",
                                        "BLITZ_IO",    "BLITZ_BURNING_MAX", "BLITZ_TRACE_RECORDS"};
    struct bz_settings s;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    CHECK_EQ(bz_settings_read(&s, &bz_os_system, &(blitz_runtime_opts){.procs = 3}), 0);
    CHECK_EQ(s.procs, 3u);
    CHECK_EQ((int)s.stack_class, (int)bz_stack_class_for(256 * KIB));
    CHECK_EQ(s.tasks_max, 0u);
    CHECK_EQ(s.threads_max, 512u);
    CHECK_EQ(s.trace_records, 0u);
    CHECK(!s.is_plain);
    CHECK(!s.no_rotation);
    CHECK_EQ((int)s.io, (int)BZ_IO_BEST);
    CHECK_STR_EQ(s.name, "blitz");
}

/* Each end of each range is allowed, and one beyond is refused. */
TEST(config, ranges_include_their_ends)
{
    static const struct {
        const char *name, *good[2], *bad[2];
    } of[] = {{"BLITZ_PROCS", {"1", "1024"}, {"0", "1025"}},
              {"BLITZ_STACK", {"1", "8M"}, {"0", "8388609"}},
              {"BLITZ_TASKS_MAX", {"1", "1024G"}, {"0", "1025G"}},
              {"BLITZ_THREADS_MAX", {"4", "64K"}, {"1", "65537"}},
              {"BLITZ_TRACE_RECORDS", {"16", "16M"}, {"15", "17M"}},
              {"BLITZ_NO_ROTATION", {"0", "1"}, {"2", "x"}},
              {"BLITZ_PLAIN", {"0", "1"}, {"2", "01x"}}};
    struct bz_settings s;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int k = 0; k < 2; k++) {
            blitz_runtime_opts c = {.procs = i == 0 ? 0 : 3};
            t_watch("%s=%s and %s", of[i].name, of[i].good[k], of[i].bad[k]);
            setenv(of[i].name, of[i].good[k], 1);
            CHECK_EQ(bz_settings_read(&s, &bz_os_system, &c), 0);
            setenv(of[i].name, of[i].bad[k], 1);
            CHECK_EQ(bz_settings_read(&s, &bz_os_system, &c), -EINVAL);
            unsetenv(of[i].name);
        }
}
