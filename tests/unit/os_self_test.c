/* The runtime's one thread-local. */
#include "harness.h"
#include "os/self.h"

#define THREADS 4

TEST(os_self, a_fresh_thread_has_no_self)
{
    CHECK_NULL(bz_self_get());
}

TEST(os_self, get_returns_the_value_of_the_last_set)
{
    int a, b;
    bz_self_set(&a);
    CHECK_EQ(bz_self_get(), (void *)&a);
    bz_self_set(&b);
    CHECK_EQ(bz_self_get(), (void *)&b);
    bz_self_set(NULL);
    CHECK_NULL(bz_self_get());
}

/* The assembly and the compiler must mean the same slot. */
TEST(os_self, the_fast_form_and_the_call_agree)
{
    int a, b;
    bz_self_set(&a);
    CHECK_EQ(bz_self_get_slow(), (void *)&a);
    bz_self_set_slow(&b);
    CHECK_EQ(bz_self_get(), (void *)&b);
}

static void each_keeps_its_own(void *arg, int index)
{
    char *names = arg;
    CHECK_NULL(bz_self_get());
    bz_self_set(&names[index]);
    for (int i = 0; i < 100000; i++) {
        CHECK_EQ(bz_self_get(), (void *)&names[index]);
        if (i % 1000 == index)
            bz_self_set(&names[index]);
    }
}

TEST(os_self, every_thread_has_its_own)
{
    char names[THREADS];
    t_threads(THREADS, each_keeps_its_own, names);
    CHECK_NULL(bz_self_get());
}
