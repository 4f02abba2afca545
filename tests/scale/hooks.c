/*
 * hooks.c - the functions that instrumented code calls, linked instead of ThreadSanitizer's.
 *
 * `gcc -fsanitize=thread` puts a call before each load and store that another thread could see, and
 * turns each atomic operation into a call. Their names and meanings are those of ThreadSanitizer's
 * runtime. Here each one reports its access to the world. An atomic then performs its operation
 * plainly: a world has one OS thread, and switches threads only inside world_access().
 *
 * memcpy, memmove and memset are not instrumented. The linker sends calls of them here (--wrap).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scale/world.h"

#define HERE ((uintptr_t)__builtin_return_address(0))

/* The compiler knows these names, no header does. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

void __tsan_init(void) {}
void __tsan_func_entry(void *pc)
{
    (void)pc;
}
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void **at, void *value)
{
    (void)value;
    world_access(at, sizeof *at, WORLD_WRITE, HERE);
}
void __tsan_vptr_read(void **at)
{
    world_access(at, sizeof *at, WORLD_READ, HERE);
}

#define PLAIN(n)                                \
    void __tsan_read##n(void *at)               \
    {                                           \
        world_access(at, n, WORLD_READ, HERE);  \
    }                                           \
    void __tsan_write##n(void *at)              \
    {                                           \
        world_access(at, n, WORLD_WRITE, HERE); \
    }                                           \
    void __tsan_volatile_read##n(void *at)      \
    {                                           \
        world_access(at, n, WORLD_READ, HERE);  \
    }                                           \
    void __tsan_volatile_write##n(void *at)     \
    {                                           \
        world_access(at, n, WORLD_WRITE, HERE); \
    }                                           \
    void __tsan_unaligned_read##n(void *at)     \
    {                                           \
        world_access(at, n, WORLD_READ, HERE);  \
    }                                           \
    void __tsan_unaligned_write##n(void *at)    \
    {                                           \
        world_access(at, n, WORLD_WRITE, HERE); \
    }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, size_t bytes)
{
    world_access(at, bytes, WORLD_READ, HERE);
}
void __tsan_write_range(void *at, size_t bytes)
{
    world_access(at, bytes, WORLD_WRITE, HERE);
}

/* ---- atomics ---------------------------------------------------------------------------------- */

#define FETCH(bits, T, name, expr)                                   \
    T __tsan_atomic##bits##_fetch_##name(volatile T *a, T v, int mo) \
    {                                                                \
        (void)mo;                                                    \
        world_access(a, sizeof *a, WORLD_RMW, HERE);                 \
        T was = *a;                                                  \
        *a = (T)(expr);                                              \
        return was;                                                  \
    }

#define CAS(bits, T, how)                                                                       \
    int __tsan_atomic##bits##_compare_exchange_##how(volatile T *a, T *e, T v, int mo, int fmo) \
    {                                                                                           \
        (void)mo;                                                                               \
        (void)fmo;                                                                              \
        world_access(a, sizeof *a, WORLD_RMW, HERE);                                            \
        if (*a == *e) {                                                                         \
            *a = v;                                                                             \
            return 1;                                                                           \
        }                                                                                       \
        *e = *a;                                                                                \
        return 0;                                                                               \
    }

#define ATOMICS(bits, T)                                                    \
    T __tsan_atomic##bits##_load(const volatile T *a, int mo)               \
    {                                                                       \
        (void)mo;                                                           \
        world_access(a, sizeof *a, WORLD_READ, HERE);                       \
        return *a;                                                          \
    }                                                                       \
    void __tsan_atomic##bits##_store(volatile T *a, T v, int mo)            \
    {                                                                       \
        bool fences = mo == __ATOMIC_SEQ_CST;                               \
        world_access(a, sizeof *a, fences ? WORLD_RMW : WORLD_WRITE, HERE); \
        *a = v;                                                             \
    }                                                                       \
    FETCH(bits, T, add, was + v)                                            \
    FETCH(bits, T, sub, was - v)                                            \
    FETCH(bits, T, and, was &v)                                             \
    FETCH(bits, T, or, was | v)                                             \
    FETCH(bits, T, xor, was ^ v)                                            \
    FETCH(bits, T, nand, ~(was & v))                                        \
    T __tsan_atomic##bits##_exchange(volatile T *a, T v, int mo)            \
    {                                                                       \
        (void)mo;                                                           \
        world_access(a, sizeof *a, WORLD_RMW, HERE);                        \
        T was = *a;                                                         \
        *a = v;                                                             \
        return was;                                                         \
    }                                                                       \
    CAS(bits, T, strong)                                                    \
    CAS(bits, T, weak)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int mo)
{
    if (mo == __ATOMIC_SEQ_CST)
        world_fence();
}
void __tsan_atomic_signal_fence(int mo)
{
    (void)mo;
}

/* ---- copies ----------------------------------------------------------------------------------- */

void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int value, size_t bytes);

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    world_access(from, bytes, WORLD_READ, HERE);
    world_access(to, bytes, WORLD_WRITE, HERE);
    return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    world_access(from, bytes, WORLD_READ, HERE);
    world_access(to, bytes, WORLD_WRITE, HERE);
    return __real_memmove(to, from, bytes);
}

void *__wrap_memset(void *to, int value, size_t bytes)
{
    world_access(to, bytes, WORLD_WRITE, HERE);
    return __real_memset(to, value, bytes);
}
