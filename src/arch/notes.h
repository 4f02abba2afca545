/*
 * notes.h - annotations of stacks for sanitizers and Valgrind.
 *
 * A program that switches stacks confuses its checkers. ASan keeps a fake stack and the bounds of
 * the real one per thread, TSan a clock and a shadow call stack. LSan searches only known stacks
 * for pointers, and Valgrind treats a jump of the stack pointer as a huge allocation. Each needs an
 * annotation at its own moment:
 *
 *   when            ASan                    TSan               LSan                Valgrind
 *   stack made                                                 root region         STACK_REGISTER
 *   context made                            create_fiber
 *   before switch   start_switch_fiber      switch_to_fiber
 *   after switch    finish_switch_fiber
 *   context ended   start with a NULL save  destroy_fiber
 *   stack reused    unpoison                                                       MAKE_MEM_UNDEFINED
 *   looked at       (not instrumented)                                             MAKE_MEM_DEFINED
 *   stack returned  unpoison                                   root region gone    STACK_DEREGISTER
 *
 * Without a checker every note is an empty inline function and struct bz_notes has no fields, so
 * the callers need no #ifdef. Valgrind is different: it checks unmodified programs, so its notes
 * are in every build that finds its header. They are a few rotates that do nothing on a real CPU,
 * executed when a stack is made, never at a switch.
 *
 * TSan's switch has flag 0: it synchronises, because the hand-off of a stack between two threads is
 * synchronised by means that TSan cannot see (a switch contains no atomic). Use clang's TSan with
 * many fibers; gcc's stops at about eight thousand. The notes around a switch must always be
 * inlined: TSan counts the calls and returns of each fiber, and a function that is entered on one
 * fiber and left on another makes both counts wrong. LSan gets one region a stack, not one a slab:
 * it reads the whole region, and a slab contains guards.
 */
#ifndef BZ_NOTES_H
#define BZ_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

#if BZ_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

#if BZ_TSAN
/* Declared here: gcc 12 has these functions but no header for them. */
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif

/* For functions that intentionally read memory that other frames may have poisoned, or that
 * contains a job which another thread links into a queue at this moment. */
#if BZ_ASAN
#define BZ_NO_SANITIZE __attribute__((noinline, no_sanitize("address")))
#elif BZ_TSAN
#define BZ_NO_SANITIZE __attribute__((noinline, no_sanitize("thread")))
#else
#define BZ_NO_SANITIZE
#endif

/* Checker state of one context; part of struct bz_ctx. */
struct bz_notes {
#if BZ_ASAN
    /* the stack of this context; for an adopted one, known after its first switch away */
    const void *low;
    size_t size;      /* bytes from low to its top */
    void *fake_stack; /* ASan's fake stack while the context is parked */
#endif
#if BZ_TSAN
    void *fiber;    /* TSan's fiber of this context */
    bool is_native; /* the fiber of a thread, freed by TSan */
#endif
};

#if BZ_ASAN
static inline void bz_note_asan_init(struct bz_notes *n, const void *low, size_t size)
{
    *n = (struct bz_notes){.low = low, .size = size};
}
static BZ_ALWAYS_INLINE void bz_note_asan_leaving(struct bz_notes *to, void **save)
{
    __sanitizer_start_switch_fiber(save, to->low, to->size);
}
/* `left` is the previous context: no other thread can access it before the hook has run. */
static BZ_ALWAYS_INLINE void bz_note_asan_landed(void *fake_stack, struct bz_notes *left)
{
    const void *low = NULL;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &low, &size);
    if (left != NULL && left->low == NULL) { /* an adopted context, on its first switch away */
        left->low = low;
        left->size = size;
    }
}
#define BZ_NOTE_FAKE_STACK(n) (&(n)->fake_stack)
#else
static inline void bz_note_asan_init(struct bz_notes *n, const void *low, size_t size)
{
    (void)n, (void)low, (void)size;
}
static BZ_ALWAYS_INLINE void bz_note_asan_leaving(struct bz_notes *to, void **save)
{
    (void)to, (void)save;
}
static BZ_ALWAYS_INLINE void bz_note_asan_landed(void *fake_stack, struct bz_notes *left)
{
    (void)fake_stack, (void)left;
}
#define BZ_NOTE_FAKE_STACK(n) ((void)(n), (void **)NULL)
#endif

#if BZ_TSAN
static inline void bz_note_tsan_init(struct bz_notes *n, bool is_native)
{
    n->is_native = is_native;
    n->fiber = is_native ? __tsan_get_current_fiber() : __tsan_create_fiber(0);
}
static inline void bz_note_tsan_fini(struct bz_notes *n)
{
    if (!n->is_native)
        __tsan_destroy_fiber(n->fiber);
}
static BZ_ALWAYS_INLINE void bz_note_tsan_leaving(struct bz_notes *to)
{
    __tsan_switch_to_fiber(to->fiber, 0);
}
#else
static inline void bz_note_tsan_init(struct bz_notes *n, bool is_native)
{
    (void)n, (void)is_native;
}
static inline void bz_note_tsan_fini(struct bz_notes *n)
{
    (void)n;
}
static BZ_ALWAYS_INLINE void bz_note_tsan_leaving(struct bz_notes *to)
{
    (void)to;
}
#endif

/* Call when a context on [low, low + size) is made; one adopted from a thread has no bounds yet. */
static inline void bz_note_ctx_init(struct bz_notes *n, const void *low, size_t size)
{
    bz_note_asan_init(n, low, size);
    bz_note_tsan_init(n, low == NULL);
}

static inline void bz_note_ctx_fini(struct bz_notes *n)
{
    bz_note_tsan_fini(n);
}

/* Call last before a switch. `from` is NULL if the context ends. */
static BZ_ALWAYS_INLINE void bz_note_leaving(struct bz_notes *from, struct bz_notes *to)
{
    bz_note_asan_leaving(to, from != NULL ? BZ_NOTE_FAKE_STACK(from) : NULL);
    bz_note_tsan_leaving(to);
}

/* Call first after a switch. `me` is NULL on a stack entered for the first time. */
static BZ_ALWAYS_INLINE void bz_note_landed(struct bz_notes *me, struct bz_notes *left)
{
    void **fake_stack = me != NULL ? BZ_NOTE_FAKE_STACK(me) : NULL;
    bz_note_asan_landed(fake_stack != NULL ? *fake_stack : NULL, left);
}

/* True under Valgrind, for tests of features that its CPU does not have. */
static inline bool bz_note_on_valgrind(void)
{
#if defined(RUNNING_ON_VALGRIND)
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

/* Register a stack, which may hold the only pointer to an allocation. Return Valgrind's id of it; 0
 * without Valgrind. */
static inline unsigned bz_note_stack_made(void *low, size_t size)
{
    (void)low, (void)size;
#if BZ_ASAN
    __lsan_register_root_region(low, size);
#endif
#if defined(VALGRIND_STACK_REGISTER)
    return (unsigned)VALGRIND_STACK_REGISTER(low, (char *)low + size - 1);
#else
    return 0;
#endif
}

/* Unregister a stack whose memory is freed, and unpoison it. */
static inline void bz_note_stack_gone(void *low, size_t size, unsigned id)
{
    (void)low, (void)size, (void)id;
#if BZ_ASAN
    __lsan_unregister_root_region(low, size);
    __asan_unpoison_memory_region(low, size);
#endif
#if defined(VALGRIND_STACK_DEREGISTER)
    VALGRIND_STACK_DEREGISTER(id);
#endif
}

/* Clear the ASan poison left by the previous user of this stack. */
static inline void bz_note_stack_reused(void *low, size_t size, unsigned id)
{
    (void)low, (void)size, (void)id;
#if BZ_ASAN
    __asan_unpoison_memory_region(low, size);
#endif
#if defined(VALGRIND_MAKE_MEM_UNDEFINED)
    if (id != 0)
        VALGRIND_MAKE_MEM_UNDEFINED(low, size);
#endif
}

/* Call before an access to words that may be below the stack pointer of another context. */
static inline void bz_note_stack_looked_at(const void *at, size_t size, unsigned id)
{
    (void)at, (void)size, (void)id;
#if defined(VALGRIND_MAKE_MEM_DEFINED)
    if (id != 0)
        VALGRIND_MAKE_MEM_DEFINED(at, size);
#endif
}

#endif
