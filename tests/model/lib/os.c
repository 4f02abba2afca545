/*
 * os.c - see model_os.h. Each call is a step of the model (wait.c) under a place of its own; the
 * report names the function that asked, since a call through a table has no line.
 */
#include "model_os.h"

#include "engine.h"

static uint64_t os_now(const struct bz_os *os)
{
    (void)os;
    return 1;
}

static int os_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns)
{
    static struct m_site at = {.file = "os_wait", .expr = "word"};
    (void)os;
    return m_word_wait_at(word, expected, until_ns != BZ_OS_FOREVER, &at);
}

static void os_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    static struct m_site at = {.file = "os_wake", .expr = "word"};
    (void)os;
    (void)m_word_wake_at(word, count_max > M_LANES ? M_LANES : (int)count_max, &at);
}

static void os_relax(const struct bz_os *os, unsigned round)
{
    static struct m_site at = {.file = "os_relax", .expr = ""};
    (void)os;
    (void)round;
    m_relax_at(&at);
}

static int os_barrier(const struct bz_os *os)
{
    static struct m_site at = {.file = "os_barrier", .expr = ""};
    (void)os;
    m_membarrier_at(&at);
    return 0;
}

static int os_barrier_register(const struct bz_os *os)
{
    (void)os;
    return 0;
}

const struct bz_os m_os = {
    .name = "model",
    .now = os_now,
    .wait = os_wait,
    .wake = os_wake,
    .relax = os_relax,
    .barrier = os_barrier,
    .barrier_register = os_barrier_register,
};
